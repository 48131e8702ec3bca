/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The header option of connections whose ends have agreed on it (endpoint_handshake.h): written
 * into what is sent and read from what comes. Part of endpoint.bpf.c.
 *
 *   1. All feedback, asked for or returned, is per packet of one MSS. A super-packet's option is
 *      copied into each of its segments by segmentation, and merged again by the receiver's
 *      coalescing only where it is the same: the receiver multiplies by the segments it stands for,
 *      and what is returned is divided by the segments it is sent in.
 *   2. Headers are believed only in segments that TCP will accept: the kernel calls us when it has
 *      looked at sequence number and timestamp, before it looks at the acknowledgement number (RFC
 *      9293 §3.10.7.4, RFC 5961 §5); that is looked at here. A segment without the timestamp that
 *      the connection agreed on is not the peer's (RFC 7323 §3.2), though Linux takes it.
 *   3. What returns never raises the window beyond twice what the peer ever offered to receive. An
 *      honest answer cannot: each request is what brings the window to the peer's within a round
 *      trip. No bound by what an acknowledgement acknowledges would be honest: alone on a fast
 *      link, a flow of two packets is given two fifths of the link's bandwidth-delay product in one
 *      round trip.
 */

/* Segments that a packet which is being sent will be cut into: TCP's own count. The packet is told
 * only when its header is complete. */
static __always_inline __u32 segments_to_be(struct bpf_sock_ops *ops) {
    struct bpf_sock_ops_kern *kernel = bpf_cast_to_kern_ctx(ops);
    struct sk_buff *skb = kernel->skb;
    struct tcp_skb_cb *tcb = bpf_rdonly_cast(skb->cb, bpf_core_type_id_kernel(struct tcp_skb_cb));
    return tcb->tcp_gso_segs ? tcb->tcp_gso_segs : 1;
}

/* How much room the option of the next packet needs. */
__noinline int xcp_reserve(struct bpf_sock_ops *ops) {
    struct xcp_connection *c;
    __u32 which;
    if (ops->skb_tcp_flags & TCP_FLAG_SYN) {
        struct xcp_opening o;
        plan_opening(ops, &o);
        if (o.length && bpf_reserve_hdr_opt(ops, o.length, 0))
            bpf_reserve_hdr_opt(ops, XCP_EXTENDED_OFFER_LENGTH, 0);
        return 0;
    }
    c = connection(ops, 0);
    if (!c)
        return 0;
    c->reserved_parts = 0;
    if (c->state == XCP_FALLEN) {
        let_be(ops, c);
        return 0;
    }
    if (c->state != XCP_AGREED || signs(ops)) /* a key may come when the connection is open */
        return 0;
    which = parts(c, ops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS || ops->skb_len > 0);
    /* difference 5 of endpoint_robust.h */
    if (ops->args[0] != BPF_WRITE_HDR_TCP_CURRENT_MSS && which & XCP_PART_FORWARD &&
        robust_at_once(c, ops->data_segs_out) && (c->receiver.sum == 0 || segments_to_be(ops) > 1))
        which = XCP_PART_FORWARD;
    /* what finds no room beside SACK now gets it in endpoint_room.h */
    if (which && bpf_reserve_hdr_opt(ops, option_length(c, which), 0)) {
        which = which == (XCP_PART_FORWARD | XCP_PART_RETURN) ? XCP_PART_RETURN : 0;
        if (which && bpf_reserve_hdr_opt(ops, option_length(c, which), 0))
            which = 0;
    }
    c->reserved_parts = (__u8)which;
    return 0;
}

/* The sender's half of a packet's option. count: its segments. */
static __always_inline void put_forward(struct xcp_connection *c, const struct tcp_sock *tp,
                                        struct bpf_sock *sk, __u32 count, struct xcp_forward *out) {
    __u64 now = bpf_ktime_get_ns(), rtt = srtt_ns(c, tp);
    struct xcp_robust_connection *r = robust_of(c, sk);
    __u32 limit = sendable(tp);
    c->forwards++;
    if (r) {
        limit = robust_at_hand(tp, r, limit);
        if (takes_lent(c, tp, now)) { /* it asks for no more than a part of a packet */
            __u32 cwnd = xcp_sender_cwnd(&r->sender.xcp) + 1;
            limit = limit < cwnd ? limit : cwnd;
        }
        xcp_robust_header(r, now, limit, out);
        if (robust_at_once(c, tp->data_segs_out))
            out->flags |= XCP_OPENS;
        return;
    }
    xcp_sender_header(&c->sender, now, rtt, limit, out);
    share(sk, out, count, rtt, now);
}

/* Writes these parts into a buffer of XCP_EXTENDED_LENGTH_MAX bytes; returns their length. count:
 * segments of the packet. */
static __always_inline __u32 build(struct xcp_connection *c, const struct tcp_sock *tp,
                                   struct bpf_sock *sk, __u32 which, __u32 count, __u8 *out) {
    struct xcp_forward forward = {0, 0, 0, 0, 0, 0, 0};
    struct xcp_return returned = {0, 0, 0, 0};
    __u32 length = 0;
    if (which & XCP_PART_FORWARD)
        put_forward(c, tp, sk, count, &forward);
    if (which & XCP_PART_RETURN)
        returned = xcp_receiver_return(&c->receiver, count);
    else if (c->receiving && !c->received) /* difference 4 of endpoint_handshake.h */
        xcp_receiver_init(&c->receiver, c->ask.flags & XCP_ASK_CLASSIC);
    if (!(c->ask.flags & XCP_ASK_CLASSIC))
        return xcp_extended_write(out, &forward, &returned, c->ids);
    if (which & XCP_PART_FORWARD) {
        xcp_classic_write_forward(out, &forward);
        length = XCP_CLASSIC_FORWARD_LENGTH;
    }
    if (which & XCP_PART_RETURN) {
        xcp_classic_write_return(out + length, &returned);
        length += XCP_CLASSIC_RETURN_LENGTH;
    }
    return length;
}

/* Writes the option into the packet that leaves. */
__noinline int xcp_write(struct bpf_sock_ops *ops) {
    struct xcp_connection *c;
    struct tcp_sock *tp;
    struct bpf_sock *sk;
    struct xcp_raw raw = {};
    __u32 length, which;
    if (ops->skb_tcp_flags & TCP_FLAG_SYN) {
        write_opening(ops);
        return 0;
    }
    sk = ops->sk;
    if (!sk)
        return 0;
    c = connection(ops, 0);
    tp = bpf_skc_to_tcp_sock(sk);
    if (!c || !tp || c->state != XCP_AGREED)
        return 0;
    which = c->reserved_parts;
    if (which == 0)
        return 0;
    length = build(c, tp, sk, which, segments_to_be(ops), raw.bytes);
    if (c->ask.flags & XCP_ASK_CLASSIC) {
        __u32 forward = which & XCP_PART_FORWARD ? XCP_CLASSIC_FORWARD_LENGTH : 0;
        if (forward)
            bpf_store_hdr_opt(ops, raw.bytes, XCP_CLASSIC_FORWARD_LENGTH, 0);
        if (which & XCP_PART_RETURN)
            bpf_store_hdr_opt(ops, raw.bytes + forward, XCP_CLASSIC_RETURN_LENGTH, 0);
    } else if (length >= XCP_EXTENDED_OFFER_LENGTH && length <= XCP_EXTENDED_LENGTH_MAX) {
        bpf_store_hdr_opt(ops, raw.bytes, length, 0);
    }
    return 0;
}

/* Segments that a packet which came stands for: coalesced by the device, the receive path or the
 * backlog, or never segmented. What a virtual machine is given by its host has the segments' size
 * and not their number. */
static __always_inline __u32 segments(struct bpf_sock_ops *ops, __u32 payload) {
    struct bpf_sock_ops_kern *kernel = bpf_cast_to_kern_ctx(ops);
    struct sk_buff *skb = kernel->skb;
    struct skb_shared_info *info =
        bpf_rdonly_cast(skb->head + skb->end, bpf_core_type_id_kernel(struct skb_shared_info));
    return xcp_segments(info->gso_segs, info->gso_size, payload);
}

/* Reads what came, in either format. */
static __always_inline void read_options(struct bpf_sock_ops *ops, const struct xcp_connection *c,
                                         struct xcp_extended *out) {
    struct xcp_raw raw = {};
    struct xcp_extended none = {{0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0}, 0};
    *out = none;
    if (!(c->ask.flags & XCP_ASK_CLASSIC)) {
        if (load_extended(ops, &raw, 0))
            xcp_extended_read(raw.bytes, out);
        return;
    }
    raw.bytes[0] = XCP_CLASSIC_FORWARD_KIND;
    if (bpf_load_hdr_opt(ops, raw.bytes, XCP_CLASSIC_FORWARD_LENGTH, 0) ==
        XCP_CLASSIC_FORWARD_LENGTH)
        xcp_classic_read_forward(raw.bytes, &out->forward);
    raw.bytes[0] = XCP_CLASSIC_RETURN_KIND;
    raw.bytes[1] = 0;
    if (bpf_load_hdr_opt(ops, raw.bytes, XCP_CLASSIC_RETURN_LENGTH, 0) == XCP_CLASSIC_RETURN_LENGTH)
        xcp_classic_read_return(raw.bytes, &out->returned);
}

/* Whether TCP will take the acknowledgement of a segment that it called us for, so that what the
 * segment carries is the peer's. */
static __always_inline int is_believed(const struct tcp_sock *tp, __u32 ack) {
    if (BPF_CORE_READ_BITFIELD(tp, rx_opt.tstamp_ok) &&
        !BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp))
        return 0;
    return (__s32)(tp->snd_nxt - ack) >= 0 && (__s32)(ack - (tp->snd_una - tp->max_window)) >= 0;
}

/* The sender's half: feedback moves the engine's window. */
__noinline int xcp_heard(struct bpf_sock_ops *ops, struct xcp_return *returned, __u32 count) {
    struct xcp_connection *c = connection(ops, 0);
    struct bpf_sock *sk = ops->sk;
    struct xcp_robust_connection *r;
    struct tcp_sock *tp;
    __u64 now = bpf_ktime_get_ns(), before;
    if (!c || !sk || !returned)
        return 0;
    tp = bpf_skc_to_tcp_sock(sk);
    if (!tp)
        return 0;
    c->returns++;
    c->unheard = 0;
    c->heard_ns = now;
    c->last_feedback = returned->feedback;
    c->feedback_sum +=
        (returned->flags & XCP_CLASSIC ? xcp_classic_feedback_decode(returned->feedback)
                                       : xcp_extended_feedback_decode(returned->feedback)) *
        count;
    if (!c->sending)
        return 0;
    r = robust_of(c, sk);
    if (r) {
        robust_heard(r, tp, returned, count);
        return 0;
    }
    before = c->sender.cwnd;
    xcp_sender_feedback(&c->sender, now, returned, srtt_ns(c, tp), cwnd_limited(tp), count);
    xcp_sender_hold(&c->sender, before, twice_the_peers(tp));
    return 0;
}

/* Reads the option of a packet that came. */
__noinline int xcp_parse(struct bpf_sock_ops *ops) {
    struct xcp_connection *c = connection(ops, 0);
    struct xcp_extended in;
    struct bpf_sock *sk = ops->sk;
    void *tcp = ops->skb_data, *end = ops->skb_data_end;
    struct tcp_sock *tp;
    __u32 header, ack, payload, count;
    if (!c || !sk || c->state != XCP_AGREED || tcp + TCP_HEADER > end)
        return 0;
    header = (*(__u8 *)(tcp + 12) >> 4) * 4;
    ack = bpf_ntohl(*(__be32 *)(tcp + 8));
    tp = bpf_skc_to_tcp_sock(sk);
    if (!tp || !is_believed(tp, ack))
        return 0;
    read_options(ops, c, &in);
    payload = ops->skb_len > header ? ops->skb_len - header : 0;
    count = segments(ops, payload);
    if (in.forward.flags & XCP_PRESENT && payload) {
        xcp_receiver_data(&c->receiver, &in.forward, count);
        c->receiving = 1;
        if (in.forward.flags & XCP_IDS)
            c->ids = 1; /* they have to go back */
        c->received += count;
    }
    if (in.returned.flags & XCP_PRESENT && (__s32)(ack - tp->snd_una) >= 0) {
        in.returned.flags |= payload ? XCP_SHARED : 0;
        xcp_heard(ops, &in.returned, count);
    }
    return 0;
}

SEC("sockops")
int xcp_endpoint(struct bpf_sock_ops *ops) {
    switch (ops->op) {
    case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
        xcp_reserve(ops);
        break;
    case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
        xcp_write(ops);
        break;
    case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
        xcp_parse(ops);
        break;
    case BPF_SOCK_OPS_RWND_INIT:
        if (settings.receive_window)
            ops->reply = settings.receive_window;
        break;
    case BPF_SOCK_OPS_TCP_CONNECT_CB:
        xcp_connect(ops);
        break;
    case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
        xcp_connected(ops);
        break;
    case BPF_SOCK_OPS_TCP_LISTEN_CB:
        xcp_listen(ops);
        break;
    case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
        xcp_accepted(ops);
        break;
    default:
        break;
    }
    return 1;
}
