/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The congestion control: the kernel's window is the engine's. Part of endpoint.bpf.c.
 *
 *   1. Feedback was applied when the option was parsed, before the kernel calls cong_control for
 *      the same ACK; here the window is only handed over.
 *   2. Three duplicate ACKs leave the window alone (or halve it, if asked, or where no router has
 *      been heard of); with cong_control the kernel does no proportional rate reduction. A timeout
 *      sets one packet. What the kernel finds spurious afterwards (RFC 3522, RFC 5682, duplicate
 *      SACK) is undone.
 *   3. The RTT is averaged here, from the kernel's samples but for those that it takes from a
 *      timestamp because retransmitted data were acknowledged. The timestamp echoed may be one of
 *      before the timeout (2.6 s were seen after an outage of 2 s in which ACKs were lost too), and
 *      H_rtt would tell the routers.
 *   4. The time between retransmissions may be bounded (rto_max_ms), but never below two round
 *      trips: with more connections than packets fit on the link, round trips grow beyond any bound
 *      chosen before, and everything would be sent twice.
 *   5. Pacing is TCP's internal one, at 31/32 of the window's rate on the wire, which is 1.02
 *      windows of payload in a round trip: the timer comes late sometimes, and the window still
 *      bounds what is sent.
 */

/* After a timeout the next packet waits this part of a round trip at the most: the kernel does not
 * plan a gap anew when the window has grown. */
#define XCP_RESTART_PACKETS 16

/* Segments of a super-packet at the least, with the robust sender and with others: the kernel's
 * default (net.ipv4.tcp_min_tso_segs) is pairs, which a window of a few packets must not be sent
 * in. */
#define XCP_ROBUST_LEAST_SEGMENTS 1
#define XCP_LEAST_SEGMENTS 2

#define FLAG_RETRANS_DATA_ACKED 0x08 /* net/ipv4/tcp_input.c */
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_CONG_NON_RESTRICTED 1
#define SK_PACING_NONE 0
#define SK_PACING_NEEDED 1

/* ACKs of new data, time and round trips without any feedback after which the peer is taken to have
 * stopped. */
#define XCP_SILENT_ACKS 32
#define XCP_SILENT_NS 1000000000ULL
#define XCP_SILENT_ROUND_TRIPS 4

/* Retransmissions of the first data that carry headers: endpoint_handshake.h, difference 3. */
#define XCP_UNANSWERED 2

/* Bytes of a full packet on the wire, Ethernet's header included: what a router counts. (An IPv6
 * socket may speak IPv4.) */
static __always_inline __u32 wire_bytes(const struct tcp_sock *tp) {
    return tp->mss_cache + tp->tcp_header_len + tp->inet_conn.icsk_af_ops->net_header_len +
           ETHERNET_HEADER;
}

/* `more`: packets that the window may be expected to grow by before long. */
static __always_inline void pace(struct tcp_sock *tp, const struct xcp_connection *c, __u32 more) {
    struct sock *sk = (struct sock *)tp;
    __u64 rtt = srtt_ns(c, tp), rate, least;
    if (c->ask.flags & XCP_ASK_UNPACED || rtt == 0)
        return;
    if (!c->sender.marked && rtt < XCP_PACED_NS) {
        pace_at(sk, ~0ULL);
        return;
    }
    /* on the wire; the kernel counts what is above TCP, 5 % less in full packets */
    rate = xcp_sender_rate(&c->sender, rtt) + (__u64)more * c->packet_bytes * XCP_NS_PER_S / rtt;
    rate -= rate >> 5;
    if (BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) == TCP_CA_Loss) {
        least = XCP_RESTART_PACKETS * c->packet_bytes * XCP_NS_PER_S / rtt;
        rate = rate > least ? rate : least;
    }
    pace_at(sk, rate);
}

/* What the engine's window has become. */
static __always_inline void hand_over(struct tcp_sock *tp, const struct xcp_connection *c,
                                      const struct xcp_robust_connection *r, __u64 now) {
    __u32 more = start_more(c, r, tp, now), cwnd;
    if (r) {
        robust_settle(tp, c, r, more);
        return;
    }
    cwnd = xcp_sender_cwnd(&c->sender);
    tp->snd_cwnd = cwnd < tp->snd_cwnd_clamp ? cwnd : tp->snd_cwnd_clamp;
    pace(tp, c, more);
}

/* Linux 6.15; before, the kernel's two minutes stay. */
static __always_inline void bound_rto(struct tcp_sock *tp, struct xcp_connection *c) {
    /* the kernel's, which timestamps tell although everything is sent twice */
    __u64 rtt = tp->srtt_us * 125ULL;
    __u32 need, most = c->ask.rto_max_ms, i;
    if (!most)
        return;
    need = (rtt > c->srtt_ns ? rtt : c->srtt_ns) >> 19; /* two round trips in ms, nearly */
    for (i = 0; i < 6; i++)
        most <<= most < need;
    if (most == c->rto_max_ms)
        return;
    c->rto_max_ms = most;
    bpf_setsockopt(tp, SOL_TCP, TCP_RTO_MAX_MS, &most, sizeof(most));
}

SEC("struct_ops")
void BPF_PROG(xcp_init, struct sock *sk) {
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct xcp_connection *c = bpf_sk_storage_get(&connections, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    __u32 flags, first;
    if (!c)
        return;
    if (c->state == XCP_UNTOUCHED)
        use_default(c);
    flags = c->ask.flags;
    first = c->ask.initial_window   ? c->ask.initial_window
            : flags & XCP_ASK_START ? start_window()
                                    : tp->snd_cwnd;
    c->packet_bytes = wire_bytes(tp);
    c->sending = c->state == XCP_OFFERED || c->state == XCP_AGREED;
    xcp_sender_init(&c->sender, flags & XCP_ASK_CLASSIC, c->packet_bytes, (__u64)first << 32,
                    1ULL << 32, (__u64)XCP_NO_LIMIT << 32, !(flags & XCP_ASK_UNBOUNDED));
    if (c->ids)
        xcp_sender_use_ids(&c->sender, c->ask.own_id);
    tp->snd_cwnd = xcp_sender_cwnd(&c->sender);
    tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
    /* the last congestion control's pacing would cap ours */
    pace_at(sk, ~0ULL);
    if (!(flags & XCP_ASK_UNPACED) && sk->sk_pacing_status == SK_PACING_NONE)
        sk->sk_pacing_status = SK_PACING_NEEDED;
    bound_rto(tp, c);
    if (flags & XCP_ASK_ROBUST && robust_begin(sk, tp, c, first))
        return;
    c->ask.flags &= ~XCP_ASK_ROBUST;
    pace(tp, c, 0);
}

/* Another congestion control takes over, or the socket is closed: what that one sends is not ours
 * to announce. xcp_init takes it up again. */
SEC("struct_ops")
void BPF_PROG(xcp_release, struct sock *sk) {
    struct xcp_connection *c = bpf_sk_storage_get(&connections, sk, 0, 0);
    if (c)
        c->sending = 0;
    /* the kernel paces for who has a limit of his own */
    if (sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_max_pacing_rate == ~0UL)
        sk->sk_pacing_status = SK_PACING_NONE;
    pace_at(sk, ~0ULL);
}

/* RFC 6298 §2.3 with samples that Karn's rule admits. */
static __always_inline void sample_rtt(struct xcp_connection *c, long rtt_us) {
    __u64 sample = (__u64)rtt_us * 1000;
    c->srtt_ns = c->srtt_ns ? c->srtt_ns - (c->srtt_ns >> 3) + (sample >> 3) : sample;
    c->rtt_sum_us += rtt_us;
    c->rtt_samples++;
}

SEC("struct_ops")
void BPF_PROG(xcp_cong_control, struct sock *sk, __u32 ack, int flag,
              const struct rate_sample *rs) {
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct xcp_connection *c = bpf_sk_storage_get(&connections, sk, 0, 0);
    struct xcp_robust_connection *r;
    __u64 now = bpf_ktime_get_ns();
    __u32 has_sample = rs->rtt_us > 0 && !(flag & FLAG_RETRANS_DATA_ACKED);
    if (!c) { /* there was no memory for it: better another congestion control than none */
        bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, (void *)settings.fallback, XCP_CA_NAME);
        return;
    }
    if (has_sample)
        sample_rtt(c, rs->rtt_us);
    if (rs->acked_sacked)
        c->unheard++;
    if (c->state == XCP_AGREED && c->unheard > XCP_SILENT_ACKS &&
        BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) == TCP_CA_Open &&
        now - c->heard_ns > XCP_SILENT_NS &&
        now - c->heard_ns > XCP_SILENT_ROUND_TRIPS * srtt_ns(c, tp))
        fall(c, XCP_FALL_SILENT);
    else if (c->state == XCP_UNTOUCHED)
        fall(c, XCP_FALL_LATE);
    r = robust_of(c, sk);
    if (c->state == XCP_FALLEN) {
        if (r)
            robust_bound_rto(sk, c, r, 0);
        tp->snd_ssthresh = tp->snd_cwnd;
        bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, (void *)settings.fallback, XCP_CA_NAME);
        return;
    }
    if (c->packet_bytes != wire_bytes(tp)) {
        c->packet_bytes = wire_bytes(tp);
        xcp_sender_set_packet(r ? &r->sender.xcp : &c->sender, c->packet_bytes);
    }
    if (r)
        robust_advance(r, tp, c, rs, has_sample, c->state == XCP_OFFERED);
    /* where the kernel does not ask before it sends */
    if (c->ask.flags & XCP_ASK_START &&
        BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) == TCP_CA_Open)
        start(c, r, tp, now);
    hand_over(tp, c, r, now);
    if (r)
        robust_bound_rto(sk, c, r, patience_ms(sk, r));
    bound_rto(tp, c);
}

SEC("struct_ops")
void BPF_PROG(xcp_set_state, struct sock *sk, __u8 new_state) {
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct xcp_connection *c = bpf_sk_storage_get(&connections, sk, 0, 0);
    struct xcp_robust_connection *r = c ? robust_of(c, sk) : 0;
    if (r && new_state == TCP_CA_Loss) { /* each one that follows, too */
        xcp_robust_timeout(r, stamp_ns(tp));
        r->lost = tp->lost;
        r->repaired = tp->snd_nxt;
        robust_bound_rto(sk, c, r, patience_ms(sk, r));
    }
    /* the kernel counts when it has told us */
    if (c && new_state == TCP_CA_Loss && c->state == XCP_AGREED && c->returns == 0 &&
        c->unheard == 0 && tp->inet_conn.icsk_retransmits >= XCP_UNANSWERED)
        fall(c, XCP_FALL_SILENT);
    if (!c || BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) == new_state)
        return;
    if (new_state == TCP_CA_Recovery || new_state == TCP_CA_Loss) {
        c->cwnd_before = c->sender.cwnd;
        c->threshold_before = c->sender.threshold;
    }
    if (new_state == TCP_CA_Recovery) {
        xcp_sender_loss(&c->sender, c->ask.flags & XCP_ASK_HALVE);
        c->losses++;
    } else if (new_state == TCP_CA_Loss) {
        xcp_sender_timeout(&c->sender);
        c->timeouts++;
    }
}

SEC("struct_ops")
__u32 BPF_PROG(xcp_ssthresh, struct sock *sk) {
    return TCP_INFINITE_SSTHRESH;
}

SEC("struct_ops")
__u32 BPF_PROG(xcp_undo_cwnd, struct sock *sk) {
    struct xcp_connection *c = bpf_sk_storage_get(&connections, sk, 0, 0);
    struct xcp_robust_connection *r = c ? robust_of(c, sk) : 0;
    if (!c)
        return ((struct tcp_sock *)sk)->snd_cwnd;
    if (r) /* it gives itself back what a timeout took */
        return xcp_robust_sender_limit(&r->sender);
    xcp_sender_restore(&c->sender, c->cwnd_before, c->threshold_before);
    return xcp_sender_cwnd(&c->sender);
}

/* The kernel asks before it sends, and when the window is full. */
SEC("struct_ops")
__u32 BPF_PROG(xcp_min_tso_segs, struct sock *sk) {
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct xcp_connection *c = bpf_sk_storage_get(&connections, sk, 0, 0);
    struct xcp_robust_connection *r = c ? robust_of(c, sk) : 0;
    __u64 now = bpf_ktime_get_ns();
    if (c && c->ask.flags & XCP_ASK_START && !has_started(c, tp) && c->state != XCP_FALLEN &&
        BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) == TCP_CA_Open && start(c, r, tp, now))
        hand_over(tp, c, r, now);
    return r ? XCP_ROBUST_LEAST_SEGMENTS : XCP_LEAST_SEGMENTS;
}

/* The send buffer in windows: a window may more than double from one round trip to the next. */
SEC("struct_ops")
__u32 BPF_PROG(xcp_sndbuf_expand, struct sock *sk) {
    return 4;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops xcp = {
    .init = (void *)xcp_init,
    .release = (void *)xcp_release,
    .cong_control = (void *)xcp_cong_control,
    .set_state = (void *)xcp_set_state,
    .ssthresh = (void *)xcp_ssthresh,
    .undo_cwnd = (void *)xcp_undo_cwnd,
    .min_tso_segs = (void *)xcp_min_tso_segs,
    .sndbuf_expand = (void *)xcp_sndbuf_expand,
    .flags = TCP_CONG_NON_RESTRICTED,
    .name = "xcp",
};
