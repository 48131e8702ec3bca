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
 *   3. What is lost is what the kernel takes for lost (tp->lost), but not before all that was under
 *      way at a timeout is repaired, for it may have been lost with the path. (The kernel's own
 *      state does not tell: where an acknowledgement was lost with the path, it believes that the
 *      timeout was spurious and that the lost packets are in flight. The window is wider by as many
 *      then.) What an acknowledgement skips is known before: RACK finds it lost when it is older
 *      than what has come by a quarter of a round trip (RFC 8985 §6.2), and where packets have been
 *      overtaken before, that is over many acknowledgements.
 *   4. The kernel's window is what may be in flight; the rate is pacing's alone, exactly, since
 *      the window is wider by half. (TCP's pacing counts payloads, the rate is on the wire.) It
 *      does not move a packet that waits: the sender's difference 12. What a router on this host
 *      lends is sent faster, but within W.
 *   5. TCP does not pace its first ten segments, whatever the rate is. Headers say so, for
 *      difference 15 of robust.h. The same bit has another meaning in a packet that answers, so
 *      of what is sent at once only single segments answer, and only where there is something to
 *      say; the answer to a request may come with a later packet.
 *   6. The engine's clock is the one that segments are stamped with, so that what is sent after a
 *      round has begun is never older than the round.
 *   7. In an outage the retransmission timer is bounded by the kernel's own option (Linux 6.15;
 *      before, it backs off). The kernel derives from that bound how long it keeps a silent
 *      connection, too, which is to stay as it was: it is told that time (TCP_USER_TIMEOUT). Who
 *      chooses another congestion control in an outage keeps both, for a congestion control that is
 *      released may set no option.
 *   8. It asks for no more than there is data for, as the simulator's does, where the application
 *      is not waiting for room: what is promised to a transfer that is over by then is nobody's.
 *      But it does not ask for less than it has, for most connections send again.
 *   9. What the SYN was answered is heard when the connection is established, which may be before
 *      or after the kernel begins with its congestion control (endpoint_handshake.h).
 *  10. The receiver's clock is RFC 7323's TSval. A receiver that paces data of its own may stamp an
 *      acknowledgement with a time slightly in the future, by one packet at its own rate at most.
 */

#define TCP_RTO_MAX_MS 44
#define TCP_RTO_MIN_MS 200   /* net/ipv4/tcp_timer.c begins with it, whatever the round trip */
#define TCP_RTO_DOUBLINGS 10 /* beyond two minutes, the most that it may be bounded by */
#define TCP_UNPACED 10       /* segments: net/ipv4/tcp_output.c, tcp_update_skb_after_send() */
#define SOCK_DEAD 1          /* the first bit of skc_flags */
#define SOCK_NOSPACE 2       /* a bit of a socket's flags: include/linux/net.h */

struct xcp_robust_connection {
    struct xcp_robust_sender sender;
    struct xcp_return returned; /* not taken yet */
    __u32 segments;             /* that it stands for; 0: none waits */
    __u32 lost;                 /* tp->lost as far as it is counted */
    __u32 repaired;             /* no loss counts before all up to it is acknowledged */
    __u32 newest;               /* sequence number of the newest data that is in */
    __u32 rto_max_ms;           /* in an outage: the bound on the timer before, else 0 */
    __u32 kept_ms;              /* likewise: the TCP_USER_TIMEOUT that is ours */
};

/* The kernel puts 72 bytes before it and rounds up to 512; more would take 1024. */
_Static_assert(sizeof(struct xcp_robust_connection) <= 512 - 72, "no larger than one object");

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct xcp_robust_connection);
} robust SEC(".maps");

static __always_inline struct xcp_robust_connection *robust_of(const struct xcp_connection *c,
                                                               void *sk) {
    return c->ask.flags & XCP_ASK_ROBUST ? bpf_sk_storage_get(&robust, sk, 0, 0) : 0;
}

/* The time on segments. */
static __always_inline __u64 stamp_ns(const struct tcp_sock *tp) {
    return tp->tcp_mstamp * 1000;
}

/* The receiver's time on the newest acknowledgement: difference 10. */
static __always_inline void robust_stamp(const struct tcp_sock *tp,
                                         struct xcp_robust_answer *answer) {
    answer->stamped = BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp);
    answer->stamp_ms = tp->rx_opt.rcv_tsval;
}

/* Whether what is sent now is sent at once: difference 5. */
static __always_inline __u32 robust_at_once(const struct xcp_connection *c, __u32 data_segs_out) {
    return c->ask.flags & XCP_ASK_ROBUST && data_segs_out < TCP_UNPACED;
}

/* Whether the window, or pacing, is all that holds the sender back: data wait, and the peer takes
 * them. */
static __always_inline __u32 robust_limited(const struct tcp_sock *tp) {
    __u32 mss = tp->mss_cache, flight = tp->snd_nxt - tp->snd_una;
    return cwnd_limited(tp) || (tp->write_seq - tp->snd_nxt >= mss && tp->snd_wnd >= flight + mss);
}

__noinline int xcp_robust_timeout(struct xcp_robust_connection *r, __u64 now) {
    if (r)
        xcp_robust_sender_timeout(&r->sender, now);
    return 0;
}

/* Where there is nothing under way, or the peer's window is closed, the kernel has other timers,
 * for which the options count, too; a closed socket is kept for less; and where the kernel probes
 * the path's MTU, each expiry after the third makes segments smaller. */
static __always_inline __u32 patience_ms(const struct sock *sk,
                                         const struct xcp_robust_connection *r) {
    const struct tcp_sock *tp = (const struct tcp_sock *)sk;
    if (!tp->packets_out || !tp->snd_wnd || sk->__sk_common.skc_flags & SOCK_DEAD ||
        sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_mtu_probing)
        return 0;
    return xcp_robust_sender_patience(&r->sender) / XCP_NS_PER_MS;
}

/* How long the kernel keeps a connection that hears nothing, ms: retransmits_timed_out() in
 * net/ipv4/tcp_timer.c. */
static __always_inline __u32 kept_ms(const struct sock *sk, __u32 rto_max_ms) {
    __u32 retries = sk->__sk_common.skc_net.net->ipv4.sysctl_tcp_retries2, sum = 0, i;
    __u32 rto = TCP_RTO_MIN_MS;
    for (i = 0; i < TCP_RTO_DOUBLINGS && rto < rto_max_ms; i++) {
        sum += rto;
        if (retries == i)
            return sum;
        rto <<= 1;
    }
    return sum + (retries + 1 - i) * rto_max_ms;
}

/* Bounds the retransmission timer, in ms, or (0) no longer: difference 7. A bound that the
 * connection asked for itself stays. */
static __always_inline void robust_bound_rto(struct sock *sk, const struct xcp_connection *c,
                                             struct xcp_robust_connection *r, __u32 most) {
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    __u32 none = 0, was, need = srtt_ns(c, tp) >> 19; /* two round trips in ms, nearly */
    if (most && !c->ask.rto_max_ms) {
        most = most > need ? most : need;
        if (!r->rto_max_ms) {
            if (bpf_getsockopt(sk, SOL_TCP, TCP_RTO_MAX_MS, &was, sizeof(was)) || was <= most)
                return;
            r->rto_max_ms = was;
        }
        if (tp->inet_conn.icsk_user_timeout == 0) {
            r->kept_ms = kept_ms(sk, r->rto_max_ms);
            bpf_setsockopt(sk, SOL_TCP, TCP_USER_TIMEOUT, &r->kept_ms, sizeof(r->kept_ms));
        }
        if (tp->inet_conn.icsk_user_timeout)
            bpf_setsockopt(sk, SOL_TCP, TCP_RTO_MAX_MS, &most, sizeof(most));
    } else if (!most && r->rto_max_ms) {
        bpf_setsockopt(sk, SOL_TCP, TCP_RTO_MAX_MS, &r->rto_max_ms, sizeof(r->rto_max_ms));
        if (r->kept_ms && tp->inet_conn.icsk_user_timeout == r->kept_ms)
            bpf_setsockopt(sk, SOL_TCP, TCP_USER_TIMEOUT, &none, sizeof(none));
        r->rto_max_ms = r->kept_ms = 0;
    }
}

/* The header of a packet that leaves. */
__noinline int xcp_robust_header(struct xcp_robust_connection *r, __u64 now, __u32 limit,
                                 struct xcp_forward *out) {
    if (r && out)
        xcp_robust_sender_header(&r->sender, now, limit, 1, out);
    return 0;
}

/* Whether what it sends in this round trip is lent: endpoint_start.h. */
static __always_inline __u32 takes_lent(const struct xcp_connection *c, const struct tcp_sock *tp,
                                        __u64 now) {
    return c->start_taken && now - c->start_ns <= srtt_ns(c, tp);
}

/* Of what may be in flight, what there is data for: difference 8. It is more than what is written
 * where the application waits for room, in the buffer or by TCP_NOTSENT_LOWAT. */
static __always_inline __u32 robust_at_hand(const struct tcp_sock *tp,
                                            const struct xcp_robust_connection *r, __u32 limit) {
    const struct socket *socket = ((const struct sock *)tp)->sk_socket;
    __u32 least = xcp_sender_cwnd(&r->sender.xcp) + 1, packets;
    if (tp->mss_cache == 0 || (socket && socket->flags & 1UL << SOCK_NOSPACE))
        return limit;
    packets = (tp->write_seq - tp->snd_una + tp->mss_cache - 1) / tp->mss_cache;
    packets = packets > least ? packets : least;
    return packets < limit ? packets : limit;
}

/* What was on its way at a timeout is not repaired yet. What has never been sent is none of this
 * connection's: the kernel has no sequence number before it connects. */
static __always_inline __u32 robust_repairs(const struct xcp_robust_connection *r,
                                            const struct tcp_sock *tp) {
    return (__s32)(r->repaired - tp->snd_una) > 0 && (__s32)(tp->snd_nxt - r->repaired) >= 0;
}

/* Of a full packet with our option, what TCP's pacing counts: difference 4. */
static __always_inline __u32 payload_bytes(const struct tcp_sock *tp,
                                           const struct xcp_connection *c) {
    __u32 option = (option_length(c, parts(c, 1)) + 3) & ~3U;
    return tp->mss_cache > option ? tp->mss_cache - option : tp->mss_cache;
}

/* What the window and pacing become. more: as for pace() in endpoint_window.h. */
static __always_inline void robust_settle(struct tcp_sock *tp, const struct xcp_connection *c,
                                          const struct xcp_robust_connection *r, __u32 more) {
    struct sock *sk = (struct sock *)tp;
    __u64 base = r->sender.base_ns, rate = ~0ULL;
    __u32 cwnd = xcp_robust_sender_limit(&r->sender);
    /* what is lent is sent at any rate, but no more of it: difference 4 */
    if (more || takes_lent(c, tp, bpf_ktime_get_ns())) {
        __u32 window = xcp_sender_cwnd(&r->sender.xcp);
        cwnd = cwnd < window ? cwnd : window;
    }
    /* a timeout taken for a spurious one: difference 3 */
    if (robust_repairs(r, tp) && tp->mss_cache &&
        BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) < TCP_CA_Recovery)
        cwnd += (r->repaired - tp->snd_una) / tp->mss_cache;
    tp->snd_cwnd = cwnd < tp->snd_cwnd_clamp ? cwnd : tp->snd_cwnd_clamp;
    if (base && (r->sender.ever || base >= XCP_PACED_NS) && c->packet_bytes) {
        rate = xcp_sender_rate(&r->sender.xcp, base);
        rate += (__u64)more * c->packet_bytes * XCP_NS_PER_S / base;
        rate = rate < 1ULL << 44 ? rate * payload_bytes(tp, c) / c->packet_bytes : ~0ULL;
        rate = rate ? rate : 1;
    }
    pace_at(sk, rate);
}

/* A first window is what the SYN was answered. Returns what may be in flight, packets. */
__noinline int xcp_robust_opened(struct xcp_robust_connection *r, const struct xcp_return *opened,
                                 __u64 now) {
    struct xcp_robust_answer answer = {.now = now, .sent_ns = now, .answers = 1};
    if (!r || !opened)
        return 0;
    answer.returned = *opened;
    xcp_robust_sender_opened(&r->sender, &answer);
    return xcp_robust_sender_limit(&r->sender);
}

/* The handshake's round trip. */
static __always_inline void robust_handshake(struct xcp_robust_connection *r,
                                             const struct xcp_connection *c,
                                             const struct tcp_sock *tp) {
    struct xcp_robust_answer answer = {.now = stamp_ns(tp), .sent_ns = stamp_ns(tp), .covered = 1};
    answer.rtt_ns = answer.srtt_ns = srtt_ns(c, tp);
    robust_stamp(tp, &answer);
    xcp_robust_sender_answered(&r->sender, &answer);
}

static __always_inline __u32 robust_open(struct xcp_robust_connection *r, struct xcp_connection *c,
                                         const struct tcp_sock *tp) {
    const struct xcp_return opened = c->opened, none = {0, 0, 0, 0};
    if (!r->sender.base_ns && tp->srtt_us)
        robust_handshake(r, c, tp);
    c->opened = none; /* whoever begins again later has heard more than that */
    return xcp_robust_opened(r, &opened, stamp_ns(tp));
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
    r->repaired = r->newest = tp->snd_una;
    robust_bound_rto(sk, c, r, 0); /* it was this sender's in an outage, and is again */
    if (tp->srtt_us)               /* of a connection that came in */
        robust_handshake(r, c, tp);
    if (c->opened.flags)
        robust_open(r, c, tp);
    robust_settle(tp, c, r, 0);
    return 1;
}

/* Adds the return header that waits, if there is one. */
static __always_inline void robust_returned(struct xcp_robust_connection *r,
                                            struct xcp_robust_answer *answer) {
    answer->returned = r->returned;
    answer->answers = r->segments;
    r->segments = 0;
}

/* A return header came. */
static __always_inline void robust_heard(struct xcp_robust_connection *r, const struct tcp_sock *tp,
                                         const struct xcp_return *returned, __u32 segments) {
    struct xcp_robust_answer answer = {};
    r->returned = *returned;
    r->segments = segments ? segments : 1;
    if (tp->packets_out)
        return;
    /* nothing is under way, so that the kernel will not call cong_control */
    answer.now = stamp_ns(tp);
    answer.sent_ns = tp->rack.mstamp * 1000;
    answer.limited = robust_limited(tp);
    robust_returned(r, &answer);
    xcp_robust_sender_hold(&r->sender, twice_the_peers(tp));
    xcp_robust_sender_answered(&r->sender, &answer);
}

/* What had been sent again has no sample, and repairing a burst of losses may take minutes. RACK
 * knows when it was sent, and leaves out what may answer the first transmission (RFC 8985 §6.2,
 * step 2; here no such answer is to make base less); its RTT is this acknowledgement's if it is as
 * long ago. The kernel's smoothed RTT stays that of the queue before the losses. */
static __always_inline void robust_again(const struct xcp_robust_connection *r,
                                         const struct tcp_sock *tp,
                                         struct xcp_robust_answer *answer) {
    __u64 rtt_ns = (__u64)tp->rack.rtt_us * 1000;
    if (!answer->covered || rtt_ns < r->sender.base_ns || rtt_ns != answer->now - answer->sent_ns)
        return;
    answer->rtt_ns = rtt_ns;
    if (r->sender.srtt_ns)
        answer->srtt_ns = r->sender.srtt_ns - r->sender.srtt_ns / 8 + rtt_ns / 8;
}

/* What it skips, and what is missing: difference 3. */
static __always_inline void robust_skipped(struct xcp_robust_connection *r,
                                           const struct tcp_sock *tp,
                                           struct xcp_robust_answer *answer) {
    __u32 newest = tp->rack.end_seq, mss = tp->mss_cache, by = newest - r->newest, below;
    if (by <= tp->snd_nxt - r->newest) /* or there is none yet */
        r->newest = newest;
    else
        by = 0;
    below = (__s32)(r->newest - tp->snd_una) > 0 ? r->newest - tp->snd_una : 0;
    if (mss == 0)
        return;
    by /= mss;
    below /= mss;
    answer->skipped = by > answer->covered ? by - answer->covered : 0;
    answer->missing = below > tp->sacked_out ? below - tp->sacked_out : 0;
}

/* An acknowledgement came. opening: it is the SYN's. */
static __always_inline void robust_advance(struct xcp_robust_connection *r, struct tcp_sock *tp,
                                           const struct xcp_connection *c,
                                           const struct rate_sample *rs, __u32 has_sample,
                                           __u32 opening) {
    struct xcp_robust_answer answer = {};
    __u32 lost = tp->lost;
    if (r->sender.xcp.packet.m == 0)
        return;
    answer.now = stamp_ns(tp);
    answer.sent_ns = tp->rack.mstamp * 1000;
    answer.srtt_ns = srtt_ns(c, tp);
    answer.covered = rs->acked_sacked;
    if (has_sample)
        answer.rtt_ns = (__u64)rs->rtt_us * 1000;
    else
        robust_again(r, tp, &answer);
    robust_stamp(tp, &answer);
    if (!opening) {
        answer.delivered = answer.covered;
        answer.limited = robust_limited(tp);
        robust_skipped(r, tp, &answer);
        if (!robust_repairs(r, tp)) {
            answer.lost = lost - r->lost;
            r->repaired = tp->snd_una;
        }
        robust_returned(r, &answer);
        xcp_robust_sender_hold(&r->sender, twice_the_peers(tp));
    }
    r->lost = lost;
    xcp_robust_sender_answered(&r->sender, &answer);
}
