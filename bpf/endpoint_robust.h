/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The robust sender (engine/robust_sender.h) on the kernel's TCP: for connections that ask for it,
 * beside their state in storage of its own. Part of endpoint.bpf.c.
 *
 *   1. The engine wants an acknowledgement's RTT before its feedback. The option is read first, so
 *      what returns waits for cong_control, which the kernel calls for each acknowledgement that
 *      answers anything.
 *   2. RTTs are the kernel's rate_sample's, of the newest segment delivered. When that was sent is
 *      RACK's time (RFC 8985 §6.2 step 2), which knows retransmissions, too.
 *   3. What is lost is what the kernel takes for lost (tp->lost), but not at a timeout and not
 *      before that is repaired: what was under way then may have been lost with the path.
 *   4. The kernel's window is what may be in flight; the rate is pacing's alone, exactly, since
 *      the window is wider by half. (TCP's pacing counts payloads, the rate is on the wire.) It
 *      does not move a packet that waits: the sender's difference 11.
 *   5. TCP does not pace its first ten segments. Until one of them has been answered no more than
 *      the first window is sent.
 *   6. The engine's clock is the one that segments are stamped with, so that what is sent after a
 *      round has begun is never older than the round.
 */

struct xcp_robust_connection {
    struct xcp_robust_sender sender;
    struct xcp_return returned; /* not taken yet */
    __u32 segments;             /* that it stands for; 0: none waits */
    __u32 lost;                 /* tp->lost as far as it is counted */
};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct xcp_robust_connection);
} robust SEC(".maps");

/* What an acknowledgement says. */
struct xcp_robust_news {
    __u64 now;
    __u64 rtt_ns; /* 0: no sample */
    __u64 srtt_ns;
    __u64 sent_ns; /* when what it answers was sent */
    __u32 segments;
    __u32 lost;
    __u32 limited;
};

static __always_inline struct xcp_robust_connection *robust_of(const struct xcp_connection *c,
                                                               void *sk) {
    return c->ask.flags & XCP_ASK_ROBUST ? bpf_sk_storage_get(&robust, sk, 0, 0) : 0;
}

/* The time on segments. */
static __always_inline __u64 stamp_ns(const struct tcp_sock *tp) {
    return tp->tcp_mstamp * 1000;
}

/* Whether the window, or pacing, is all that holds the sender back: data wait, and the peer takes
 * them. */
static __always_inline __u32 robust_limited(const struct tcp_sock *tp) {
    __u32 mss = tp->mss_cache, flight = tp->snd_nxt - tp->snd_una;
    return cwnd_limited(tp) || (tp->write_seq - tp->snd_nxt >= mss && tp->snd_wnd >= flight + mss);
}

/* The feedback that waits. */
__noinline int xcp_robust_take(struct xcp_robust_connection *r, struct xcp_robust_news *news) {
    if (!r || !news)
        return 0;
    if (r->segments)
        xcp_robust_sender_feedback(&r->sender, news->now, &r->returned, news->limited,
                                   news->sent_ns, r->segments);
    r->segments = 0;
    return 0;
}

/* What it delivered. */
__noinline int xcp_robust_acked(struct xcp_robust_connection *r, struct xcp_robust_news *news) {
    if (!r || !news)
        return 0;
    xcp_robust_sender_lost(&r->sender, news->lost);
    if (news->segments)
        xcp_robust_sender_acked(&r->sender, news->now, news->segments, news->limited,
                                news->sent_ns);
    return 0;
}

__noinline int xcp_robust_timeout(struct xcp_robust_connection *r, __u64 now) {
    if (r)
        xcp_robust_sender_timeout(&r->sender, now);
    return 0;
}

/* The header of a packet that leaves. */
__noinline int xcp_robust_header(struct xcp_robust_connection *r, __u64 now, __u32 limit,
                                 struct xcp_forward *out) {
    if (r && out)
        xcp_robust_sender_header(&r->sender, now, limit, 1, out);
    return 0;
}

/* What the window and pacing become. */
static __always_inline void robust_settle(struct tcp_sock *tp, const struct xcp_connection *c,
                                          const struct xcp_robust_connection *r) {
    struct sock *sk = (struct sock *)tp;
    __u64 base = r->sender.base_ns, rate = ~0ULL;
    __u32 cwnd =
        r->sender.round_ns ? xcp_robust_sender_limit(&r->sender) : xcp_sender_cwnd(&r->sender.xcp);
    tp->snd_cwnd = cwnd < tp->snd_cwnd_clamp ? cwnd : tp->snd_cwnd_clamp;
    if (base && (r->sender.ever || base >= XCP_PACED_NS) && c->packet_bytes) {
        rate = xcp_sender_rate(&r->sender.xcp, base);
        rate = rate < 1ULL << 44 ? rate * tp->mss_cache / c->packet_bytes : ~0ULL;
        rate = rate ? rate : 1;
    }
    sk->sk_pacing_rate = rate;
}

/* A connection begins, with a first window in packets. Returns 0 where there is no memory for it.
 */
static __always_inline int robust_begin(struct sock *sk, struct tcp_sock *tp,
                                        struct xcp_connection *c, __u32 first) {
    struct xcp_robust_connection *r =
        bpf_sk_storage_get(&robust, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (!r)
        return 0;
    xcp_robust_sender_init(&r->sender, c->packet_bytes, (__u64)first << 32);
    if (c->ids)
        xcp_sender_use_ids(&r->sender.xcp, c->ask.own_id);
    r->segments = 0;
    r->lost = tp->lost;
    if (tp->srtt_us) /* the handshake's, of a connection that came in */
        xcp_robust_sender_sample(&r->sender, srtt_ns(c, tp), srtt_ns(c, tp), stamp_ns(tp));
    robust_settle(tp, c, r);
    return 1;
}

/* A return header came. */
static __always_inline void robust_heard(struct xcp_robust_connection *r, const struct tcp_sock *tp,
                                         const struct xcp_return *returned, __u32 segments) {
    struct xcp_robust_news news = {};
    r->returned = *returned;
    r->segments = segments ? segments : 1;
    if (tp->packets_out)
        return;
    /* nothing is under way, so that the kernel will not call cong_control */
    news.now = stamp_ns(tp);
    news.sent_ns = tp->rack.mstamp * 1000;
    news.limited = robust_limited(tp);
    xcp_robust_take(r, &news);
}

/* An acknowledgement came. opening: it is the SYN's. */
static __always_inline void robust_advance(struct xcp_robust_connection *r, struct tcp_sock *tp,
                                           const struct xcp_connection *c,
                                           const struct rate_sample *rs, __u32 has_sample,
                                           __u32 opening) {
    struct xcp_robust_news news = {};
    __u32 lost = tp->lost;
    if (r->sender.xcp.packet.m == 0)
        return;
    news.now = stamp_ns(tp);
    news.sent_ns = tp->rack.mstamp * 1000;
    news.srtt_ns = srtt_ns(c, tp);
    news.rtt_ns = has_sample ? (__u64)rs->rtt_us * 1000 : 0;
    news.segments = rs->acked_sacked;
    news.limited = robust_limited(tp);
    if (BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) != TCP_CA_Loss)
        news.lost = lost - r->lost;
    r->lost = lost;
    if (news.segments)
        xcp_robust_sender_sample(&r->sender, news.rtt_ns, news.srtt_ns, news.sent_ns);
    if (opening)
        return;
    xcp_robust_take(r, &news);
    xcp_robust_acked(r, &news);
}
