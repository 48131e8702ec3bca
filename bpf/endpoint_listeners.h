/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sockets that listened before the endpoint was there: what xcp_listen (endpoint_handshake.h) does
 * for those that come later. Part of endpoint.bpf.c.
 *
 * Run once, over the sockets of the network namespace of whoever runs it. Sockets outside the
 * cgroup get the flags too; no program is called for them. Kernels before 6.12 refuse; a byte is
 * written for every socket that has to be opened anew.
 */

#define TCP_LISTEN 10
#define TCP_BPF_SOCK_OPS_CB_FLAGS 1008

SEC("iter/tcp")
int xcp_listeners(struct bpf_iter__tcp *ctx) {
    struct sock_common *sk = ctx->sk_common;
    struct xcp_connection *c;
    struct tcp_sock *tp;
    int one = 1, flags;
    if (!sk || sk->skc_state != TCP_LISTEN)
        return 0;
    tp = bpf_skc_to_tcp_sock(sk);
    if (!tp)
        return 0;
    flags = tp->bpf_sock_ops_cb_flags;
    /* not an earlier endpoint's: another program's */
    if (flags & XCP_CALLBACKS && !BPF_CORE_READ_BITFIELD(tp, save_syn)) {
        c = bpf_sk_storage_get(&connections, (struct sock *)tp, 0, BPF_SK_STORAGE_GET_F_CREATE);
        if (c)
            c->others = flags & XCP_CALLBACKS;
    }
    flags |= XCP_CALLBACKS;
    if ((!BPF_CORE_READ_BITFIELD(tp, save_syn) &&
         bpf_setsockopt(tp, SOL_TCP, TCP_SAVE_SYN, &one, sizeof(one))) ||
        bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
        bpf_seq_write(ctx->meta->seq, &one, 1);
    return 0;
}
