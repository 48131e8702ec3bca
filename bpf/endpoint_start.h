/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a connection begins on a host that is its own router. Such a host shapes the link, so it
 * knows what is free, and need not learn it one round trip after the other (alpha of it at a time:
 * XCP-IR eq. (1)). User space keeps two accounts, in packets, with a limit each; what is taken
 * counts up, here. What a connection takes is a part of what is left, so that no number of
 * beginners takes more than there is, but for a packet each.
 *
 *   1. The first window, when more waits than the one packet that everybody has, while the round
 *      trip is not known: a quarter of what is left, between 2 and 64 packets; 1 packet where
 *      nothing is. Before the first ACK nothing more could be sent in any case: the window in a SYN
 *      is not scaled (RFC 7323 §2.2).
 *   2. The rest, when data wait for the window, the round trip is known, and the peer's window has
 *      room: with the first ACK, or at once where the handshake was over long before (connections
 *      that the proxy keeps open, xcp-pep's trunk). Where little waits, twice as much, again and
 *      again in one round trip, so that short transfers leave room for others; where much does, all
 *      at once: seven eighths of what is left, or three quarters shared with those that began in
 *      the same round trip; and less where the connection's round trip is shorter than the one that
 *      the accounts are for. What is sent is paced, at what the window and the rest of what is left
 *      come to. Who has nothing to send takes nothing.
 *   3. Who had all acknowledged that it had to send, less than its window, and has more than that
 *      now, begins anew: a browser's connection, whose first answer was short and whose second is
 *      not.
 *   4. Who sends less than its window lets it is paced in the same way, later too: an answer that
 *      is a third of a window would be a third of a round trip longer on its way than it need be,
 *      on a link that has room.
 *   5. The robust sender adds what it is lent to its own W, unless it has a bound. When it has
 *      taken of the rest, it asks the router for no more in that round trip, and has no more than
 *      W in flight. None of this needs a promise, for the router sees it at once. While bounds are
 *      what limits, the link carries less than user space was told, which then lends first windows
 *      only.
 *
 * Part of endpoint.bpf.c.
 */

/* struct xcp_connection.started */
#define XCP_START_ANEW 0
#define XCP_START_HAS_WINDOW 1
#define XCP_START_TAKES_REST 2
#define XCP_STARTED 3

#define XCP_START_LEAST 2
#define XCP_START_MOST 64
/* Packets that wait are much: no short transfer's. */
#define XCP_START_MUCH 64

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, XCP_START_ENTRIES);
    __type(key, __u32);
    __type(value, __u32);
} start_limits SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, XCP_START_ENTRIES);
    __type(key, __u32);
    __type(value, __u32);
} start_taken SEC(".maps");

/* Packets left in an account; both count modulo 2^32. */
static __always_inline __u32 start_left(__u32 account) {
    __u32 *limit = bpf_map_lookup_elem(&start_limits, &account),
          *taken = bpf_map_lookup_elem(&start_taken, &account);
    __s32 left = limit && taken ? (__s32)(*limit - *taken) : 0;
    return left > 0 ? left : 0;
}

static __always_inline void start_take(__u32 account, __u32 packets) {
    __u32 *taken = bpf_map_lookup_elem(&start_taken, &account);
    if (taken)
        __sync_fetch_and_add(taken, packets);
}

static __always_inline __u32 start_window(void) {
    __u32 left = start_left(XCP_START_WINDOW), packets = left / 4;
    packets = packets > XCP_START_MOST    ? XCP_START_MOST
              : packets < XCP_START_LEAST ? XCP_START_LEAST
                                          : packets;
    if (!left)
        packets = 1;
    start_take(XCP_START_WINDOW, packets);
    return packets;
}

/* The window, in packets. r: the robust sender, or 0. */
static __always_inline __u32 window_of(const struct xcp_connection *c,
                                       const struct xcp_robust_connection *r) {
    return xcp_sender_cwnd(r ? &r->sender.xcp : &c->sender);
}

/* Difference 5. */
__noinline int xcp_robust_lent(struct xcp_robust_connection *r, __u64 now, __u32 packets) {
    if (r)
        xcp_robust_sender_lent(&r->sender, now, packets);
    return 0;
}

/* The window grows by so many packets. */
static __always_inline void start_grow(struct xcp_connection *c, struct xcp_robust_connection *r,
                                       const struct tcp_sock *tp, __u32 packets) {
    if (r)
        xcp_robust_lent(r, stamp_ns(tp), packets);
    else
        xcp_sender_restore(&c->sender, c->sender.cwnd + ((__u64)packets << 32),
                           c->sender.threshold);
}

/* Takes so many at the most. Returns whether there was something. */
static __always_inline __u32 start_rest(struct xcp_connection *c, struct xcp_robust_connection *r,
                                        const struct tcp_sock *tp, __u64 own_ns, __u32 wanted) {
    __u32 entry = XCP_START_BEGINNERS, *among = bpf_map_lookup_elem(&start_limits, &entry), *rtt_us;
    /* with what it has taken, so that its part is the same however often it takes */
    __u32 left = start_left(XCP_START_REST) + (__u32)c->start_taken,
          share = among && *among ? *among : 1,
          most = (left - (left >> (share == 1 ? 3 : 2))) / share;
    __u64 own_us = own_ns / 1000;
    entry = XCP_START_RTT;
    rtt_us = bpf_map_lookup_elem(&start_limits, &entry);
    if (rtt_us && own_us < *rtt_us)
        most = most * own_us / *rtt_us;
    most = most > c->start_taken ? most - (__u32)c->start_taken : 0;
    most = most < wanted ? most : wanted;
    c->start_taken += most;
    start_take(XCP_START_REST, most);
    start_grow(c, r, tp, most);
    return most != 0;
}

/* Whether more waits than the window lets go, and the peer would take more. */
static __always_inline __u32 start_waits(const struct tcp_sock *tp, __u32 cwnd) {
    __u32 mss = tp->mss_cache, room = cwnd > tp->packets_out ? cwnd - tp->packets_out : 0;
    return mss && tp->write_seq - tp->snd_nxt > room * mss && tp->snd_wnd / mss > cwnd;
}

/* Whether the last flight was as long as the window. The kernel's own bit for that stays until
 * another flight is over. */
static __always_inline __u32 fills_window(const struct tcp_sock *tp, __u32 cwnd) {
    return tp->max_packets_out >= cwnd;
}

/* Packets by which it is paced faster than its window: those by which that may still grow in this
 * round trip, or those for which there is room where the window is not what limits it. */
static __always_inline __u32 start_more(const struct xcp_connection *c,
                                        const struct xcp_robust_connection *r,
                                        const struct tcp_sock *tp, __u64 now) {
    __u32 grows = c->started == XCP_START_TAKES_REST && now - c->start_ns <= srtt_ns(c, tp);
    if (!(c->ask.flags & XCP_ASK_START) || (r && r->sender.mode != XCP_ROBUST_FREE) ||
        (!grows && fills_window(tp, window_of(c, r))))
        return 0;
    return start_left(XCP_START_REST);
}

/* Whether it has begun, and does not begin anew. */
static __always_inline __u32 has_started(const struct xcp_connection *c,
                                         const struct tcp_sock *tp) {
    return c->started == XCP_STARTED && tp->packets_out;
}

/* Before anything is sent. Returns whether the window has changed. */
static __always_inline __u32 start(struct xcp_connection *c, struct xcp_robust_connection *r,
                                   const struct tcp_sock *tp, __u64 now) {
    __u32 begins = c->started == XCP_START_ANEW, cwnd = window_of(c, r), much, wait;
    __u64 rtt = srtt_ns(c, tp);
    if (c->started == XCP_START_TAKES_REST && now - c->start_ns > rtt)
        c->started = XCP_STARTED;
    if (r && r->sender.mode != XCP_ROBUST_FREE) {
        if (r->sender.routed && xcp_robust_has_come(&r->sender))
            start_take(XCP_START_BOUND, 1);
        return 0;
    }
    if (has_started(c, tp) || !tp->mss_cache)
        return 0;
    if (c->started == XCP_STARTED) {
        if (!rtt || now - c->start_ns <= rtt || !start_waits(tp, cwnd) || fills_window(tp, cwnd))
            return 0;
        c->started = XCP_START_HAS_WINDOW;
        c->start_taken = 0;
        start_take(XCP_START_BEGINNERS, 1);
    }
    wait = (tp->write_seq - tp->snd_nxt) / tp->mss_cache + 1;
    much = wait > XCP_START_MUCH && tp->snd_wnd / tp->mss_cache > cwnd;
    if (!start_waits(tp, cwnd) && !(much && rtt))
        return 0;
    if (rtt && c->started != XCP_START_TAKES_REST) {
        c->started = XCP_START_TAKES_REST;
        c->start_ns = now;
    }
    if (begins)
        start_take(XCP_START_BEGINNERS, 1);
    if (rtt && much)
        c->started = XCP_STARTED;
    if (rtt && start_rest(c, r, tp, rtt, much ? XCP_NO_LIMIT : 2 * wait))
        return 1;
    if (!begins)
        return 0;
    if (!rtt)
        c->started = XCP_START_HAS_WINDOW;
    if (r) /* it keeps the one that it has */
        return 0;
    xcp_sender_restore(&c->sender, (__u64)start_window() << 32, c->sender.threshold);
    return 1;
}
