/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every connection that has our storage, as struct xcp_record: what `ss -i` cannot show. Of all
 * network namespaces, or, where the kernel refuses an iterator over storage (some that are locked
 * down do), of the reader's. Part of endpoint.bpf.c. */

/* For what it has not, and for BTF to name it. */
const struct xcp_record nobody = {};

static __always_inline int show(struct seq_file *seq, struct sock *sk, struct xcp_connection *c) {
    struct xcp_robust_connection *r;
    struct xcp_shown out = {};
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
    bpf_seq_write(seq, &out, sizeof(out));
    bpf_seq_write(seq, r ? &r->sender : &nobody.robust, sizeof(nobody.robust));
    return 0;
}

SEC("iter/bpf_sk_storage_map")
int xcp_show(struct bpf_iter__bpf_sk_storage_map *ctx) {
    struct xcp_connection *c = ctx->value;
    struct sock *sk = ctx->sk;
    return c && sk ? show(ctx->meta->seq, sk, c) : 0;
}

SEC("iter/tcp")
int xcp_show_here(struct bpf_iter__tcp *ctx) {
    struct sock_common *sk = ctx->sk_common;
    struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
    struct xcp_connection *c = tp ? bpf_sk_storage_get(&connections, (struct sock *)tp, 0, 0) : 0;
    return c ? show(ctx->meta->seq, (struct sock *)tp, c) : 0;
}
