/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every connection that has our storage, in all network namespaces, as struct xcp_record: what
 * `ss -i` cannot show. Part of endpoint.bpf.c. */

/* For what it has not, and for BTF to name it. */
const struct xcp_record nobody = {};

SEC("iter/bpf_sk_storage_map")
int xcp_show(struct bpf_iter__bpf_sk_storage_map *ctx) {
    struct xcp_connection *c = ctx->value;
    struct sock *sk = ctx->sk;
    struct xcp_robust_connection *r;
    struct xcp_shown out = {};
    if (!c || !sk)
        return 0;
    out.namespace = sk->__sk_common.skc_net.net->ns.inum;
    out.family = sk->__sk_common.skc_family;
    out.tcp_state = sk->__sk_common.skc_state;
    out.local_port = sk->__sk_common.skc_num;
    out.remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
    if (out.family == AF_INET) {
        out.local[3] = sk->__sk_common.skc_rcv_saddr;
        out.remote[3] = sk->__sk_common.skc_daddr;
    } else {
        __u32 i;
        for (i = 0; i < 4; i++) {
            out.local[i] = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[i];
            out.remote[i] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[i];
        }
    }
    out.connection = *c;
    r = robust_of(c, sk);
    bpf_seq_write(ctx->meta->seq, &out, sizeof(out));
    bpf_seq_write(ctx->meta->seq, r ? &r->sender : &nobody.robust, sizeof(nobody.robust));
    return 0;
}
