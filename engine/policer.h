/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A policer before the law: takes from senders that claim, or take, what is not theirs whatever
 * they would gain by it. What a packet's header says is believed as far as the clock bears it out,
 * and no flow gets more through than the law itself would leave it. Only packets with a forward
 * header are policed; what has none belongs in a class of its own.
 *
 *   1. The clock. X = RTT / window is the time between two packets of a flow, so the X of an honest
 *      flow add up to the time that passes. A flow has a clock that its packets' X move forward,
 *      never beyond now, and that never lags behind by more than XCP_POLICER_LAG d; what is claimed
 *      beyond it is not believed, and the header's window is rewritten to what is (0, unknown,
 *      where that is nothing). A flow that is seen for the first time has no time behind it: forged
 *      addresses count for nothing.
 *   2. The rate. The law gives a flow cp X and takes cn s for each packet of s bytes, so cp / cn is
 *      the rate at which it does neither: the share of whoever this link limits. It is smoothed
 *      over some 2^XCP_POLICER_MEMORY intervals, with what pools had in them, and is never below
 *      capacity / flows. A flow may be ahead of it by XCP_POLICER_DEPTH d; then packets are refused
 *      (the generic cell rate algorithm, ITU-T I.371). In any case it may be by a first window of
 *      ten packets (RFC 6928): on a path that is shorter than a packet takes to be sent, d says
 *      nothing of what must be in flight. There is no margin: a flow that obeys is
 *      corrected by gamma of what it has too much in every d, so that all it ever had too much is
 *      less than ten d of what it loses; and the smoothed share falls no faster than a flow that
 *      was alone and must make room. (Where the gain follows a flow's own RTT, so does the depth.)
 *      Where the law takes next to nothing from anybody (the link is not full, or nobody that is
 *      limited here says so to a law that asks), no flow can be said to have too much.
 *   3. The fine. A refused packet costs a tenth of what it would have cost, up to twice the depth:
 *      else a sender that never listens keeps its bucket at the brim and gains by the fluctuations.
 *      And whoever was refused one has an eighth of that depth for a time of eight of them: else a
 *      sender that rests while it is fined comes back with a burst, before which the others give
 *      way and after which the link is empty. But four packets: two for a receiver that waits for
 *      the second one (RFC 1122 §4.2.3.2), one that is sent meanwhile, and one for clocks that
 *      are not the same.
 *   4. The longest RTT believed is XCP_POLICER_LAG d, and at most `longest_rtt_ns`, which holds
 *      before any honest flow has spoken too; d can follow paths that become longer, in several
 *      intervals, but no single claim moves it far.
 *
 * Flows are found in a table of sets of XCP_POLICER_WAYS places, by a hash with a secret seed. A
 * flow that has no place takes the one that was used least lately, if that is idle, with no time
 * behind it: packets with ever new addresses find no clock that others left behind. Nor does it owe
 * what the last one took; who only rests keeps its place, and its debt, until another one needs it.
 * If it is not idle, there are more flows than places, or a flood of addresses. Such packets pass,
 * but nothing that they claim is believed; one in XCP_POLICER_PATIENCE takes the place all the
 * same, so that flows take turns. They are counted (`crowded`): a table is good for about as many
 * flows as it has sets.
 *
 * Not cured: many flows of one sender (let addresses or prefixes be the key), traffic without
 * headers.
 */
#ifndef XCP_POLICER_H
#define XCP_POLICER_H

#include "router.h"

#define XCP_POLICER_WAYS 4
#define XCP_POLICER_LAG 4
#define XCP_POLICER_DEPTH 32
#define XCP_POLICER_MEMORY 4
#define XCP_POLICER_FINE 10
#define XCP_POLICER_STILL (1ULL << 26) /* a 64th, as a fraction of 2^32 */
#define XCP_POLICER_PATIENCE 16
#define XCP_POLICER_STRICT 8 /* both eights */
#define XCP_POLICER_FIRST 10 /* packets */
#define XCP_POLICER_LEAST 4

/* What is kept of a flow. All zero: never used. */
struct xcp_policed {
    xcp_u64 clock_ns;  /* up to where X has been believed */
    xcp_u64 due_ns;    /* when all that passed would have passed at the rate allowed */
    xcp_u64 caught_ns; /* when a packet of it was refused last */
};

/* One set of the table. */
struct xcp_policed_set {
    xcp_u32 owner[XCP_POLICER_WAYS];
    struct xcp_policed flow[XCP_POLICER_WAYS];
};

/* One link's policer; the router's state beside it is its law's. */
struct xcp_policer {
    xcp_u64 intervals; /* of the router's, those learnt from */
    xcp_u64 gain;      /* what a flow is given in a time of d, q20 bytes/s, smoothed */
    xcp_u64 loss;      /* what is taken from it of what it has, fraction of 2^32, smoothed */
    xcp_u64 flows;     /* q20, smoothed */
    xcp_u64 lag_ns;
    xcp_u64 depth_ns;
    struct xcp_num cost; /* ns per byte at the rate allowed */
    struct xcp_num up;   /* what the law gives in the running interval, bytes/s per ns of X */
    struct xcp_num down; /* and takes, bytes/s per byte */
    xcp_u64 longest_rtt_ns;
    xcp_u64 seed;
    /* for those who look at it */
    xcp_u64 share; /* q20 bytes/s */
    xcp_u64 refused;
    xcp_u64 refused_bytes;
    xcp_u64 corrected; /* packets whose claim was cut */
    xcp_u64 crowded;
};

/* What d means for the policer, and the rate allowed. */
XCP_INLINE void xcp_policer_set(struct xcp_policer *p, struct xcp_router *r, struct xcp_num share) {
    xcp_u64 d = xcp_num_u64(r->d, XCP_INTERVAL_LIMIT);
    if (d > p->longest_rtt_ns)
        d = p->longest_rtt_ns;
    if (d < r->law.min_interval_ns)
        d = r->law.min_interval_ns;
    p->lag_ns = XCP_POLICER_LAG * d;
    p->depth_ns = XCP_POLICER_DEPTH * d;
    r->believed_rtt_ns = p->lag_ns < p->longest_rtt_ns ? p->lag_ns : p->longest_rtt_ns;
    p->share = xcp_num_q20(share);
    p->cost = xcp_num_div(xcp_num_of(XCP_NS_PER_S), share);
}

/* longest_rtt_ns: of the paths that there are; seed: secret, for the table. */
XCP_INLINE void xcp_policer_init(struct xcp_policer *p, struct xcp_router *r,
                                 xcp_u64 longest_rtt_ns, xcp_u64 seed) {
    __builtin_memset(p, 0, sizeof(*p));
    p->longest_rtt_ns =
        longest_rtt_ns < r->law.max_interval_ns ? longest_rtt_ns : r->law.max_interval_ns;
    p->seed = seed;
    xcp_policer_set(p, r, xcp_num_of(r->law.capacity));
}

/* Smoothed over about 2^XCP_POLICER_MEMORY values, the first one as it is. */
XCP_INLINE xcp_u64 xcp_policer_smooth(xcp_u64 old, xcp_u64 new, xcp_u32 first) {
    return first ? new : old - (old >> XCP_POLICER_MEMORY) + (new >> XCP_POLICER_MEMORY);
}

/* a + b, good to 2^-30. */
XCP_INLINE struct xcp_num xcp_policer_sum(struct xcp_num a, struct xcp_num b) {
    struct xcp_num more = xcp_num_less(a, b) ? b : a, less = xcp_num_less(a, b) ? a : b;
    xcp_s32 shift = more.e - less.e;
    xcp_u64 m = (xcp_u64)more.m << 30;
    if (less.m && shift <= 62)
        m += ((xcp_u64)less.m << 30) >> shift;
    return xcp_num_scaled(m, more.e - 30);
}

/* What the law gives flows in the interval that begins, and takes from them: of those that are
 * limited here. */
XCP_INLINE void xcp_policer_note(struct xcp_policer *p, const struct xcp_router *r) {
    p->up = r->cp;
    p->down = r->cn;
    if (r->law.shuffle == XCP_SHUFFLE_MATCHING) {
        p->up = xcp_policer_sum(r->law.spare == XCP_SPARE_LIMITED ? r->limited.fp : p->up,
                                r->limited.hp);
        p->down = xcp_policer_sum(p->down, r->limited.hn);
    }
}

/* What flows were given in the interval that was closed last, and what was taken from them. Pools
 * that ran dry gave less than was planned; traffic in bursts empties that of decreases more
 * often. */
XCP_PART xcp_policer_account(struct xcp_policer *p, const struct xcp_router *r) {
    struct xcp_num elapsed, n;
    xcp_u32 first;
    XCP_PART_NEEDS(p && r);
    if (r->closed_sum_x.m == 0) /* nobody told an RTT: nothing is known of flows */
        return 0;
    first = p->flows == 0;
    elapsed = xcp_num_of(r->elapsed_ns ? r->elapsed_ns : 1);
    n = xcp_num_mul(xcp_num_mul(p->up, elapsed), xcp_num_scaled(r->met_pos, -32));
    p->gain = xcp_policer_smooth(p->gain, xcp_num_q20(n), first);
    n = xcp_num_mul(xcp_num_mul(p->down, elapsed), xcp_num_scaled(r->met_neg, -32));
    n = xcp_num_div(n, xcp_num_of(XCP_NS_PER_S));
    p->loss = xcp_policer_smooth(p->loss, xcp_scale(n.m, n.e + 32, XCP_Q20_MAX), first);
    n = xcp_num_div(r->closed_sum_x, elapsed);
    p->flows = xcp_policer_smooth(p->flows, xcp_scale(n.m, n.e + 20, XCP_Q20_MAX), first);
    return 0;
}

/* The router has closed an interval: what a flow may send from now on. */
XCP_PART xcp_policer_learn(struct xcp_policer *p, struct xcp_router *r) {
    struct xcp_num capacity, share, least;
    XCP_PART_NEEDS(p && r);
    xcp_policer_account(p, r);
    xcp_policer_note(p, r);
    p->intervals = r->intervals;
    capacity = xcp_num_of(r->law.capacity);
    least = p->flows >> 20 ? xcp_num_div(capacity, xcp_num_scaled(p->flows, -20)) : capacity;
    share = p->loss > XCP_POLICER_STILL
                ? xcp_num_div(xcp_num_scaled(p->gain, -20), xcp_num_scaled(p->loss, -32))
                : capacity;
    if (xcp_num_less(share, least))
        share = least;
    if (xcp_num_less(capacity, share))
        share = capacity;
    xcp_policer_set(p, r, share);
    return 0;
}

/* A flow's hash, of which its set and its mark are made. */
XCP_INLINE xcp_u64 xcp_policer_hash(const struct xcp_policer *p, xcp_u64 key) {
    xcp_u64 z = xcp_mix(key ^ p->seed);
    return z ^ z >> 31;
}

/* A key of several words: the first one as it is, each of the others joined to it. */
XCP_INLINE xcp_u64 xcp_policer_join(const struct xcp_policer *p, xcp_u64 key, xcp_u64 word) {
    return xcp_policer_hash(p, key) ^ word;
}

/* The number of its set, of `sets`, a power of two. */
XCP_INLINE xcp_u32 xcp_policer_place(xcp_u64 hash, xcp_u32 sets) {
    return (xcp_u32)(hash >> 32) & (sets - 1);
}

/* The flow's place in its set, or 0 where it has none. */
XCP_INLINE struct xcp_policed *xcp_policer_find(const struct xcp_policer *p,
                                                struct xcp_policed_set *set, xcp_u32 owner,
                                                xcp_u64 now) {
    xcp_u32 i, oldest = 0, busy;
    for (i = 0; i < XCP_POLICER_WAYS; i++)
        if (set->owner[i] == owner)
            return &set->flow[i];
    for (i = 1; i < XCP_POLICER_WAYS; i++)
        if (set->flow[i].clock_ns < set->flow[oldest].clock_ns)
            oldest = i;
    /* a clock lags behind its flow's newest packet by `lag` at most */
    busy = set->flow[oldest].clock_ns && now - set->flow[oldest].clock_ns <= 2 * p->lag_ns;
    if (busy && ((xcp_u32)now ^ owner) * 2654435769U >= ~0U / XCP_POLICER_PATIENCE)
        return 0;
    set->owner[oldest] = owner;
    set->flow[oldest].clock_ns = now;
    /* what the last one took, and was refused, is not this one's */
    set->flow[oldest].due_ns = 0;
    set->flow[oldest].caught_ns = 0;
    return busy ? 0 : &set->flow[oldest];
}

/* X of the packets is believed as far as time has passed; the rest of what their header claims is
 * taken out of it. */
XCP_PART xcp_policer_correct(struct xcp_forward *h, const struct xcp_path *path, xcp_u64 used,
                             xcp_u32 segments) {
    struct xcp_num window;
    XCP_PART_NEEDS(h && path);
    if (!used) {
        h->window = 0;
        return 0;
    }
    window = xcp_num_div(xcp_num_mul(xcp_num_scaled(path->rtt, path->re), xcp_num_of(segments)),
                         xcp_num_of(used));
    if (h->flags & XCP_CLASSIC)
        /* rounded up */
        h->window = xcp_classic_window_encode(xcp_scale(window.m, window.e + 32, 1ULL << 62) +
                                              (1ULL << 31) - 1);
    else
        h->window = xcp_extended_window_encode(window.m, window.e);
    return 0;
}

/* How far ahead of its share a flow may be, of which a packet costs so much. Where the gain follows
 * a flow's own RTT, one of longer RTT makes room more slowly. */
XCP_INLINE xcp_u64 xcp_policer_depth(const struct xcp_policer *p, const struct xcp_router *r,
                                     const struct xcp_policed *f, const struct xcp_path *path,
                                     xcp_u64 now, xcp_u64 packet) {
    xcp_u64 rtt, depth = p->depth_ns, least = XCP_POLICER_FIRST * packet;
    if (r->law.gain == XCP_GAIN_OWN_RTT && path->known) {
        rtt = (xcp_u64)path->rtt << path->re;
        rtt = rtt < r->believed_rtt_ns ? rtt : r->believed_rtt_ns;
        depth = XCP_POLICER_DEPTH * rtt > depth ? XCP_POLICER_DEPTH * rtt : depth;
    }
    depth = depth > least ? depth : least;
    if (XCP_UNLIKELY(f->caught_ns) && now - f->caught_ns < XCP_POLICER_STRICT * depth) {
        depth /= XCP_POLICER_STRICT;
        least = XCP_POLICER_LEAST * packet;
        depth = depth > least ? depth : least;
    }
    return depth;
}

/*
 * Packets of one flow come, together `bytes` on the wire, as for xcp_router_burst, and before it;
 * what has run out must have been closed. set: the flow's. Returns 1 where they are refused: then
 * the law must not see them. Else the header says no more than is believed.
 */
XCP_INLINE xcp_u32 xcp_policer_packet(struct xcp_policer *p, struct xcp_router *r,
                                      struct xcp_policed_set *set, xcp_u32 owner, xcp_u64 now,
                                      xcp_u64 bytes, xcp_u32 segments, struct xcp_forward *h) {
    struct xcp_path path;
    struct xcp_policed *f;
    xcp_u64 depth, ahead, cost, x, used;
    if (XCP_UNLIKELY(r->intervals != p->intervals))
        xcp_policer_learn(p, r);

    f = xcp_policer_find(p, set, owner, now);
    if (XCP_UNLIKELY(!f)) {
        p->crowded += segments;
        h->window = 0;
        return 0;
    }
    if (f->clock_ns + p->lag_ns < now)
        f->clock_ns = now - p->lag_ns;
    if (f->clock_ns > now) /* the time has stepped back */
        f->clock_ns = now;
    xcp_path_read(h, &path);
    cost = xcp_scale((xcp_u64)p->cost.m * (bytes >> 31 ? 1U << 31 : (xcp_u32)bytes), p->cost.e,
                     1ULL << 58);
    depth = xcp_policer_depth(p, r, f, &path, now, segments > 1 ? cost / segments : cost);
    ahead = f->due_ns - now;
    ahead = ahead >> 63 ? 0 : ahead;
    if (XCP_UNLIKELY(ahead > depth)) {
        ahead += cost / XCP_POLICER_FINE;
        f->due_ns = now + (ahead < 2 * depth ? ahead : 2 * depth);
        f->caught_ns = now;
        p->refused += segments;
        p->refused_bytes += bytes;
        return 1;
    }
    ahead += cost;
    f->due_ns = now + (ahead < 2 * depth ? ahead : 2 * depth);

    if (!path.known)
        return 0;
    x = xcp_scale((xcp_u64)path.x * segments, path.xe, 1ULL << 62);
    used = now - f->clock_ns;
    used = x < used ? x : used;
    f->clock_ns += used;
    if (used < x) {
        p->corrected += segments;
        xcp_policer_correct(h, &path, used, segments);
    }
    return 0;
}

#endif
