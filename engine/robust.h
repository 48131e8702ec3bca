/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A router that remembers what it has promised: the choice XCP_CONTROL_CALENDAR of a law.
 *
 * XCP is an integrator behind a dead time of one round trip: what it grants now arrives as traffic
 * a round trip later, and until then the router does not know of it. So it may close a gap only
 * slowly (alpha = 0.4 a round trip; beyond 0.555 it swings). A router that books every grant under
 * the time at which it will be seen knows what is on its way, and may close most of the gap ten
 * times a round trip. docs/robust.md has the picture and what each part is for.
 *
 * Where it differs from router.h:
 *
 *   1. A control interval is cut in ten; sums run over the last d ("window"), traffic is measured
 *      over the last two parts ("M"), and what they decide holds for one part. A part is no
 *      shorter than forty packets of 1500 bytes take, nor than half the mean X: fewer packets
 *      measure nothing.
 *   2. F = alpha (C - y - O - (Q' - Q_T) / d), alpha = 0.7. O is the sum of all grants that y does
 *      not show yet; Q' is the queue at the time when what is granted now takes effect, followed
 *      through the calendar; Q_T two packets, and the law's target.
 *   3. F is weighed down by |gap| sqrt(n) / C below 1, where n packets fit the link during M: what
 *      n packets cannot measure is noise. Not after silence, when the gap is no measurement.
 *   4. Two lines against winding up: F takes no more than there is, y + O; and while more than a
 *      quarter of C d waits and does not get less, nothing is promised, for then the plant does
 *      not obey its model.
 *   5. Shares are iXCP's with the cure of limited.h, differences 5 and 6, but what nobody took of
 *      an increase goes back into its pool, to be offered to the next packet: charged is what the
 *      header says afterwards. Increase is divided by the flows that ask for more, not by all.
 *   6. A packet without ids is taken for one of a flow that this link limits, so that plain XCP
 *      senders share as in XCP.
 *   7. TCP without XCP in the same queue: its packets are dropped at random with a probability that
 *      steers their rate to the part of the link that the number of their flows has a right to
 *      (linear counting, 512 bits a second). They never fill the queue, so XCP does not give way.
 *   8. XCP_CAPACITY_MEASURED: C is what departs while packets wait, never more than the law's.
 *
 * Booked is what a header says when it leaves, within the capacity, under the time now + its RTT;
 * of flows limited elsewhere only what is taken, for an increase is another link's to give. The
 * calendar has 256 slots of d/64 to d/32; what is due later is booked in the last one.
 */
#ifndef XCP_ROBUST_H
#define XCP_ROBUST_H

#include "dither.h"
#include "limited.h"
#include "path.h"
#include "roots.h"
#include "router.h"

#define XCP_ROBUST_PARTS 10 /* of a control interval; a window has up to 16 */
#define XCP_ROBUST_PAST 16
#define XCP_ROBUST_SLOTS 256
#define XCP_ROBUST_PACKET 1500
#define XCP_ROBUST_PACKETS 40 /* least in a part */
#define XCP_ROBUST_TARGET (2 * XCP_ROBUST_PACKET)
#define XCP_ROBUST_LEAST_PART 500000ULL        /* ns */
#define XCP_ROBUST_COUNTING 1000000000ULL      /* ns between two counts of TCP's flows */
#define XCP_ROBUST_DROP_LEAST 281474976ULL     /* 1e-6, a fraction of 2^48 */
#define XCP_ROBUST_DROP_MOST 56294995342131ULL /* 0.2 */
#define XCP_ROBUST_LN2_512 23258160ULL         /* 512 ln 2, in 2^-16 */

/* What a packet without forward header is. */
#define XCP_OTHER_UNKNOWN 0
#define XCP_OTHER_ACK 1 /* XCP's own acknowledgement */
#define XCP_OTHER_TCP 2 /* TCP's data without XCP */

/* Sums over a part, or several. X in 2^-8 ns. */
struct xcp_robust_sums {
    xcp_u64 elapsed; /* ns */
    xcp_u64 all;     /* bytes */
    xcp_u64 xcp;     /* of these XCP's, acknowledgements included */
    xcp_u64 tcp;
    xcp_u64 here;    /* of flows limited here */
    xcp_u64 packets; /* XCP's */
    xcp_u64 x;
    xcp_u64 x_here;
    xcp_u64 x_unknown; /* of flows that name no link */
    xcp_u64 x_asking;  /* of these two kinds, those that ask for more */
    struct xcp_acc xr; /* X * RTT, 2^-32 ns^2 */
};

/* One link's state. */
struct xcp_robust {
    struct xcp_law law;
    xcp_u64 start_ns;
    xcp_u64 interval_ns; /* of the running part */
    xcp_u64 d_ns;
    xcp_u64 random;
    xcp_u32 id;
    xcp_u32 rtt_known;
    struct xcp_robust_sums now;
    /* what the last part's end decided; factors of X in bytes/s per ns, of sizes in bytes/s per
     * byte */
    struct xcp_num cp; /* increase: everybody's */
    struct xcp_num cn; /* decrease */
    struct xcp_num fp; /* increase: of those limited here */
    struct xcp_num hp; /* the shuffle's two */
    struct xcp_num hn;
    struct xcp_num gp; /* what a flow limited elsewhere would gain here */
    struct xcp_num gn;
    struct xcp_num cap; /* of that */
    xcp_u64 pool_fp;    /* q20 */
    xcp_u64 pool_n;
    xcp_u64 pool_hp;
    xcp_u64 pool_hn;
    /* the queue */
    xcp_u64 min_queue; /* of the running part */
    xcp_u64 last_min;  /* of the one before */
    /* the capacity, bytes/s, and what it is measured by */
    xcp_u64 capacity;
    xcp_u64 busy_bytes;
    xcp_u64 busy_ns;
    xcp_u64 idle_ns;
    xcp_u64 busy_until_ns;
    xcp_u64 left_ns;     /* when a packet left last */
    xcp_u64 left_bytes;  /* its size */
    xcp_u64 left_behind; /* what waited then */
    /* TCP */
    xcp_u64 seen[8]; /* a bit for each flow's hash */
    xcp_u64 seen_since;
    xcp_u64 tcp_rate;  /* q20 */
    xcp_u64 drop;      /* probability, a fraction of 2^48 */
    xcp_u32 tcp_flows; /* 2^-16 */
    xcp_u32 shift;     /* a slot is 2^shift ns */
    /* for those who look at it */
    xcp_u64 intervals;
    xcp_u64 elapsed_ns;
    xcp_u64 y;     /* q20 */
    xcp_s64 f;     /* q20 */
    xcp_s64 owed;  /* q20: O */
    xcp_u64 queue; /* the persistent queue, bytes */
    xcp_u64 shuffled;
    struct xcp_num flows; /* N */
    /* the calendar */
    xcp_u64 first_ns; /* when its first slot begins */
    xcp_u32 newest;
    xcp_u32 past_parts;
    struct xcp_robust_sums past[XCP_ROBUST_PAST];
    xcp_s64 due[XCP_ROBUST_SLOTS]; /* q20 */
};

/* Returns XCP_LAW_OK, or what is wrong with the law; then the router must not be used. */
XCP_INLINE int xcp_robust_init(struct xcp_robust *r, const struct xcp_law *law, xcp_u64 now_ns,
                               xcp_u64 seed) {
    int wrong = xcp_law_check(law);
    struct xcp_num none = {0, XCP_LEAST_E};
    __builtin_memset(r, 0, sizeof(*r));
    if (wrong)
        return wrong;
    if (law->control != XCP_CONTROL_CALENDAR)
        return XCP_LAW_CONTROL;
    r->law = *law;
    r->capacity = law->capacity;
    r->start_ns = r->first_ns = r->seen_since = now_ns;
    r->interval_ns = r->d_ns = XCP_FIRST_INTERVAL_NS;
    r->shift = 20;
    r->id = xcp_router_id(seed);
    r->random = seed ^ 0x9e3779b97f4a7c15ULL;
    xcp_dither_next(&r->random);
    r->cp = r->cn = r->fp = r->hp = r->hn = r->gp = r->gn = r->cap = none;
    return XCP_LAW_OK;
}

/* Takes effect at the end of the part. */
XCP_INLINE void xcp_robust_set_capacity(struct xcp_robust *r, xcp_u64 capacity) {
    r->law.capacity = capacity == 0 ? 1 : capacity > XCP_CAPACITY_MAX ? XCP_CAPACITY_MAX : capacity;
    r->capacity = r->law.capacity;
}

/* a + b within what q20 holds; both are. */
XCP_INLINE xcp_s64 xcp_robust_sum(xcp_s64 a, xcp_s64 b) {
    const xcp_s64 most = (xcp_s64)XCP_Q20_MAX;
    xcp_s64 sum = a + b;
    return sum > most ? most : sum < -most ? -most : sum;
}

/* v times a fraction of 2^32. */
XCP_INLINE xcp_s64 xcp_robust_part_of(xcp_s64 v, xcp_u32 f) {
    return v < 0 ? -(xcp_s64)xcp_mul_fraction(-(xcp_u64)v, f)
                 : (xcp_s64)xcp_mul_fraction((xcp_u64)v, f);
}

/* a / b as a fraction of 2^32, at most just below 1. */
XCP_INLINE xcp_u32 xcp_robust_fraction(xcp_u64 a, xcp_u64 b) {
    struct xcp_num n = xcp_num_div(xcp_num_of(a), xcp_num_of(b ? b : 1));
    return (xcp_u32)xcp_scale(n.m, n.e + 32, ~0U);
}

/* bytes of a capacity in so many ns */
XCP_INLINE xcp_u64 xcp_robust_carries(xcp_u64 capacity, xcp_u64 ns) {
    struct xcp_num n = xcp_num_mul(xcp_num_of(capacity), xcp_num_of(ns));
    return xcp_num_u64(xcp_num_div(n, xcp_num_of(XCP_NS_PER_S)), 1ULL << 62);
}

/* What is due at a time is `rate` more. */
XCP_INLINE void xcp_robust_book(struct xcp_robust *r, xcp_u64 due_ns, xcp_s64 rate) {
    xcp_u64 slot = due_ns >= r->first_ns ? (due_ns - r->first_ns) >> r->shift : 0;
    xcp_s64 most = (xcp_s64)(r->law.capacity << 20);
    if (slot >= XCP_ROBUST_SLOTS)
        slot = XCP_ROBUST_SLOTS - 1;
    rate = rate > most ? most : rate < -most ? -most : rate;
    r->due[slot] = xcp_robust_sum(r->due[slot], rate);
}

/* Slots that are over by `seen_ns` are given up, and slots become twice or half as long where d has
 * become so. */
XCP_PART xcp_robust_turn(struct xcp_robust *r, xcp_u64 seen_ns) {
    xcp_u64 by;
    xcp_u32 shift, i;
    XCP_PART_NEEDS(r);
    by = seen_ns > r->first_ns ? (seen_ns - r->first_ns) >> r->shift : 0;
    if (by) {
        for (i = 0; i < XCP_ROBUST_SLOTS; i++)
            r->due[i] = i + by < XCP_ROBUST_SLOTS ? r->due[(i + by) & (XCP_ROBUST_SLOTS - 1)] : 0;
        r->first_ns += by << r->shift;
    }
    shift = (xcp_u32)xcp_top_bit((r->d_ns >> 5) | 1);
    if (shift > r->shift) {
        for (i = 0; i < XCP_ROBUST_SLOTS / 2; i++)
            r->due[i] = xcp_robust_sum(r->due[2 * i], r->due[2 * i + 1]);
        for (i = XCP_ROBUST_SLOTS / 2; i < XCP_ROBUST_SLOTS; i++)
            r->due[i] = 0;
        r->shift++;
    } else if (shift < r->shift) {
        xcp_s64 late = 0;
        for (i = XCP_ROBUST_SLOTS / 2; i < XCP_ROBUST_SLOTS; i++)
            late = xcp_robust_sum(late, r->due[i]);
        for (i = XCP_ROBUST_SLOTS / 2; i-- > 0;) {
            xcp_s64 all = r->due[i], half = all >> 1;
            r->due[2 * i] = half;
            r->due[2 * i + 1] = all - half;
        }
        r->due[XCP_ROBUST_SLOTS - 1] = xcp_robust_sum(r->due[XCP_ROBUST_SLOTS - 1], late);
        r->shift--;
    }
    return 0;
}

/* What the calendar says: O, and Q' as the rate that would have it drained in d. */
struct xcp_robust_outlook {
    xcp_u64 now;
    xcp_u64 over_ns; /* M */
    xcp_u64 y;       /* q20, of all */
    xcp_u64 others;  /* of these not XCP's */
    xcp_u64 queue;   /* bytes now */
    xcp_s64 owed;
    xcp_u64 drain; /* q20 */
};

XCP_PART xcp_robust_look_ahead(const struct xcp_robust *r, struct xcp_robust_outlook *l) {
    xcp_u64 slot, start, now, over, d, queue;
    xcp_s64 y, owed = 0, others, capacity;
    struct xcp_num n;
    xcp_u32 i;
    XCP_PART_NEEDS(r && l);
    now = l->now;
    over = l->over_ns;
    d = r->d_ns;
    slot = 1ULL << (r->shift & 63);
    start = r->first_ns + (slot >> 1);
    y = (xcp_s64)l->y;
    others = (xcp_s64)l->others;
    capacity = (xcp_s64)(r->capacity << 20);
    queue = xcp_rate(l->queue, slot); /* in bytes per slot, so that a rate's part of it is itself */
    for (i = 0; i < XCP_ROBUST_SLOTS; i++, start += slot) {
        xcp_s64 due = r->due[i];
        if (start < now) { /* y shows it in part: it was there for a part of M */
            xcp_u64 hidden = start + over > now ? start + over - now : 0;
            due = due ? xcp_robust_part_of(due, xcp_robust_fraction(hidden, over)) : 0;
        }
        owed = xcp_robust_sum(owed, due);
        y = xcp_robust_sum(y, due);
        if (start >= now && start - now < d) {
            xcp_s64 gap = (y > others ? y : others) - capacity;
            if (gap >= 0)
                queue = xcp_q20_add(queue, (xcp_u64)gap);
            else
                queue = queue > -(xcp_u64)gap ? queue + (xcp_u64)gap : 0;
        }
    }
    n = xcp_num_div(xcp_num_of(slot), xcp_num_of(d));
    l->drain = xcp_num_q20(xcp_num_mul(xcp_num_scaled(queue, -20), n));
    l->owed = owed;
    return 0;
}

XCP_INLINE void xcp_robust_plus(struct xcp_robust_sums *to, const struct xcp_robust_sums *from) {
    to->elapsed += from->elapsed;
    to->all += from->all;
    to->xcp += from->xcp;
    to->tcp += from->tcp;
    to->here += from->here;
    to->packets += from->packets;
    to->x += from->x;
    to->x_here += from->x_here;
    to->x_unknown += from->x_unknown;
    to->x_asking += from->x_asking;
    xcp_acc_plus(&to->xr, &from->xr);
}

/* C from what departed while packets waited; where nothing waits and the link is full all the same,
 * it may be more. st: the part over d, a fraction of 2^32. */
XCP_PART xcp_robust_measure(struct xcp_robust *r, xcp_u64 elapsed, xcp_u64 all, xcp_u32 st) {
    xcp_u64 most, c;
    XCP_PART_NEEDS(r);
    most = r->law.capacity;
    c = r->capacity;
    if (r->busy_bytes > 4 * XCP_ROBUST_PACKET) {
        xcp_u64 m = xcp_rate(r->busy_bytes, r->busy_ns) >> 20;
        xcp_u32 k = st < 1U << 29 ? st << 2 : 1U << 31;
        m = m < most ? m : most;
        if (m > c)
            c += xcp_mul_fraction(m - c, k);
        else
            c -= xcp_mul_fraction(c - m, k);
        r->busy_bytes = r->busy_ns = 0;
    } else if (r->idle_ns > elapsed / 20 &&
               xcp_rate(all, elapsed) >> 20 > c - c / 10) { /* a tenth more each d */
        c += xcp_mul_fraction(c / 10, st);
    }
    r->capacity = c > most ? most : c < XCP_ROBUST_PACKET ? XCP_ROBUST_PACKET : c;
    return 0;
}

/* How many flows of TCP there were: -512 ln(empty / 512). */
XCP_PART xcp_robust_count_tcp(struct xcp_robust *r) {
    xcp_u32 empty = 0, i, j;
    XCP_PART_NEEDS(r);
    for (i = 0; i < 8; i++) {
        xcp_u64 word = ~r->seen[i];
        for (j = 0; j < 64; j++)
            empty += (xcp_u32)(word >> j) & 1;
        r->seen[i] = 0;
    }
    r->tcp_flows =
        (xcp_u32)(((9ULL << 16) - xcp_log2_q16(empty ? empty : 1)) * XCP_ROBUST_LN2_512 >> 16);
    return 0;
}

/* The probability of a drop for TCP, by its rate over its right: p doubles no faster than twice a
 * second. y_others: what is neither TCP's nor of flows limited here is nobody's to divide. */
XCP_PART xcp_robust_steer(struct xcp_robust *r, const struct xcp_robust_sums *part,
                          xcp_u64 elsewhere, const struct xcp_num *here) {
    struct xcp_num share, one = {1U << 31, -31};
    xcp_u64 capacity, right, rate, off, p;
    xcp_u32 k, x;
    XCP_PART_NEEDS(r && part && here);
    k = part->elapsed < XCP_NS_PER_S ? xcp_robust_fraction(part->elapsed, XCP_NS_PER_S) : ~0U;
    rate = xcp_rate(part->tcp, part->elapsed);
    if (rate > r->tcp_rate)
        r->tcp_rate += xcp_mul_fraction(rate - r->tcp_rate, k);
    else
        r->tcp_rate -= xcp_mul_fraction(r->tcp_rate - rate, k);
    if (r->tcp_flows <= 1U << 15) { /* no whole flow */
        r->drop = 0;
        return 0;
    }
    capacity = r->capacity << 20;
    right = capacity > elsewhere ? capacity - elsewhere : 0;
    if (right < capacity / 10)
        right = capacity / 10;
    /* n / (n + m): both as 2^-16 flows */
    {
        xcp_u64 m = xcp_scale(here->m, here->e + 16, 1ULL << 40);
        xcp_u64 all = r->tcp_flows + m;
        share = all > 1U << 16 ? xcp_num_div(xcp_num_of(r->tcp_flows), xcp_num_of(all))
                               : xcp_num_scaled(r->tcp_flows, -16);
        if (!xcp_num_less(share, one))
            share = one;
    }
    right = xcp_num_q20(xcp_num_mul(xcp_num_scaled(right, -20), share));
    if (right < 1U << 20)
        right = 1U << 20;
    p = r->drop < XCP_ROBUST_DROP_LEAST ? XCP_ROBUST_DROP_LEAST : r->drop;
    off = r->tcp_rate > right ? r->tcp_rate - right : right - r->tcp_rate;
    if (off > 2 * right)
        off = 2 * right;
    /* exp(+-x) to the second order, x the error times the time, at most a half */
    {
        struct xcp_num n = xcp_num_div(xcp_num_of(off), xcp_num_of(right));
        n = xcp_num_mul(n, xcp_num_scaled(k, -32));
        x = (xcp_u32)xcp_scale(n.m, n.e + 32, 1U << 31);
    }
    if (r->tcp_rate > right)
        p += xcp_mul_fraction(p, x) + (xcp_mul_fraction(xcp_mul_fraction(p, x), x) >> 1);
    else
        p += (xcp_mul_fraction(xcp_mul_fraction(p, x), x) >> 1) - xcp_mul_fraction(p, x);
    r->drop = p < XCP_ROBUST_DROP_LEAST  ? XCP_ROBUST_DROP_LEAST
              : p > XCP_ROBUST_DROP_MOST ? XCP_ROBUST_DROP_MOST
                                         : p;
    return 0;
}

/* Who gets what of F in the next part. w: sums over d. */
XCP_PART xcp_robust_divide(struct xcp_robust *r, const struct xcp_robust_sums *w, xcp_u32 silence) {
    struct xcp_num none = {0, XCP_LEAST_E}, scale, x, here, open, asking, least, pos, neg;
    xcp_u64 f, turnover, shuffle;
    XCP_PART_NEEDS(r && w);
    f = r->f < 0 ? -(xcp_u64)r->f : (xcp_u64)r->f;
    pos = xcp_num_scaled(r->f > 0 ? f : 0, -20);
    neg = xcp_num_scaled(r->f < 0 ? f : 0, -20);
    least = xcp_num_of(r->interval_ns); /* what one flow's X sums up to in the next part */
    scale = xcp_num_div(least, xcp_num_of(w->elapsed));
    x = xcp_num_mul(xcp_num_scaled(w->x, -8), scale);
    here = xcp_num_mul(xcp_num_scaled(w->x_here, -8), scale);
    open = xcp_num_mul(xcp_num_scaled(w->x_here + w->x_unknown, -8), scale);
    asking = xcp_num_mul(xcp_num_scaled(w->x_asking, -8), scale);
    r->flows = xcp_num_div(xcp_num_scaled(w->x, -8), xcp_num_of(w->elapsed));
    r->cp = r->cn = r->fp = r->hp = r->hn = r->gp = r->gn = r->cap = none;
    if (w->x)
        r->cp = xcp_num_div(pos, silence ? xcp_limited_max(x, least) : x);
    if (w->xcp)
        r->cn = xcp_num_div(neg, xcp_num_mul(xcp_num_of(w->xcp), scale));
    r->pool_fp = r->f > 0 ? f : 0;
    r->pool_n = r->f < 0 ? f + (f >> 2) : 0;
    turnover = xcp_mul_fraction(xcp_rate(w->here, w->elapsed), r->law.gamma);
    shuffle = r->interval_ns < r->d_ns
                  ? xcp_mul_fraction(turnover, xcp_robust_fraction(r->interval_ns, r->d_ns))
                  : turnover;
    shuffle = shuffle > f ? shuffle - f : 0;
    r->shuffled = shuffle;
    r->pool_hp = r->pool_hn = xcp_q20_add(shuffle, shuffle >> 2);
    asking = xcp_limited_max(asking, least);
    open = xcp_limited_max(w->x_here ? open : x, least);
    r->fp = xcp_num_div(pos, xcp_num_less(asking, open) ? asking : open);
    if (w->x_here && w->here) {
        struct xcp_num bytes = xcp_num_mul(xcp_num_of(w->here), scale), d = xcp_num_of(r->d_ns),
                       elsewhere, one = xcp_num_of(w->elapsed),
                       gamma = xcp_num_mul(xcp_num_scaled(r->law.gamma, -32),
                                           xcp_num_of(XCP_NS_PER_S)); /* per s, of ns */
        struct xcp_num h = xcp_num_scaled(shuffle, -20);
        r->hp = xcp_num_div(h, here);
        r->hn = xcp_num_div(h, bytes);
        r->gn = xcp_num_div(gamma, d);
        r->gp = xcp_num_mul(r->gn, xcp_num_div(xcp_num_of(w->here), xcp_num_scaled(w->x_here, -8)));
        /* a tenth of C by the flows limited elsewhere, at least one, and d */
        elsewhere = xcp_limited_max(xcp_num_scaled(w->x - w->x_here, -8), one);
        elsewhere = xcp_num_mul(xcp_num_div(elsewhere, one), d);
        r->cap = xcp_num_div(xcp_num_scaled(xcp_mul_fraction(r->capacity << 20, XCP_HEADROOM), -20),
                             elsewhere);
    } else {
        r->pool_hp = r->pool_hn = 0;
    }
    r->cp = xcp_num_or_least(r->cp);
    r->cn = xcp_num_or_least(r->cn);
    r->fp = xcp_num_or_least(r->fp);
    r->hp = xcp_num_or_least(r->hp);
    r->hn = xcp_num_or_least(r->hn);
    r->gp = xcp_num_or_least(r->gp);
    r->gn = xcp_num_or_least(r->gn);
    r->cap = xcp_num_or_least(r->cap);
    return 0;
}

/* F: differences 2 to 4. m: sums over the last two parts. */
XCP_INLINE xcp_s64 xcp_robust_spare(struct xcp_robust *r, const struct xcp_robust_sums *m,
                                    xcp_u64 now, xcp_u64 backlog, xcp_u32 silence, xcp_u32 falls) {
    struct xcp_robust_outlook look = {now, m->elapsed, 0, 0, r->queue, 0, 0};
    xcp_u64 xcp = xcp_rate(m->xcp, m->elapsed), gap, f, carried;
    xcp_s64 room, result, least;
    r->y = look.y = xcp_rate(m->all, m->elapsed);
    look.others = r->y > xcp ? r->y - xcp : 0;
    xcp_robust_look_ahead(r, &look);
    r->owed = look.owed;
    room = xcp_robust_sum((xcp_s64)(r->capacity << 20), -(xcp_s64)r->y);
    room = xcp_robust_sum(room, -look.owed);
    room = xcp_robust_sum(room, -(xcp_s64)look.drain);
    room =
        xcp_robust_sum(room, (xcp_s64)xcp_rate(r->law.queue_target + XCP_ROBUST_TARGET, r->d_ns));
    gap = room < 0 ? -(xcp_u64)room : (xcp_u64)room;
    f = gap;
    if (!silence) {
        struct xcp_num sure;
        f = xcp_mul_fraction(gap, r->law.alpha);
        carried = xcp_robust_carries(r->capacity, m->elapsed) / XCP_ROBUST_PACKET;
        carried = carried > 1ULL << 46 ? 1ULL << 46 : carried ? carried : 1;
        sure = xcp_num_mul(xcp_num_scaled(gap, -20), xcp_num_scaled(xcp_isqrt(carried << 16), -8));
        sure = xcp_num_div(sure, xcp_num_of(r->capacity));
        if (sure.m == 0 || sure.e + 31 < 0) /* below 1 */
            f = xcp_mul_fraction(f, (xcp_u32)xcp_scale(sure.m, sure.e + 32, ~0U));
    }
    result = room < 0 ? -(xcp_s64)f : (xcp_s64)f;
    if (result > 0 && !falls && backlog > xcp_robust_carries(r->capacity, r->d_ns) >> 2)
        result = 0;
    least = xcp_robust_sum((xcp_s64)xcp, look.owed);
    least = least > 0 ? -least : 0;
    return result > least ? result : least;
}

/* The end of a part. */
XCP_PART xcp_robust_close_part(struct xcp_robust *r, xcp_u64 now, xcp_u64 backlog) {
    struct xcp_robust_sums w = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0}}, m;
    xcp_u64 elapsed, part, least;
    xcp_u32 silence, falls, i, st;
    XCP_PART_NEEDS(r);
    elapsed = now - r->start_ns ? now - r->start_ns : 1;
    silence = elapsed >> 1 > (r->interval_ns > r->d_ns ? r->interval_ns : r->d_ns);
    r->now.elapsed = r->elapsed_ns = elapsed;
    r->newest = (r->newest + 1) & (XCP_ROBUST_PAST - 1);
    r->past[r->newest] = r->now;
    r->past_parts = silence                           ? 1
                    : r->past_parts < XCP_ROBUST_PAST ? r->past_parts + 1
                                                      : r->past_parts;
    for (i = 0; i < XCP_ROBUST_PAST; i++) { /* up to the last d */
        if (i < r->past_parts && (i == 0 || w.elapsed < r->d_ns - (r->d_ns >> 10)))
            xcp_robust_plus(&w, &r->past[(r->newest - i) & (XCP_ROBUST_PAST - 1)]);
    }
    m = r->now;
    if (r->past_parts > 1)
        xcp_robust_plus(&m, &r->past[(r->newest - 1) & (XCP_ROBUST_PAST - 1)]);
    if (w.x) {
        r->d_ns = xcp_num_u64(xcp_num_div(xcp_acc_num(&w.xr, -32), xcp_num_scaled(w.x, -8)),
                              r->law.max_interval_ns);
        if (r->d_ns < r->law.min_interval_ns)
            r->d_ns = r->law.min_interval_ns;
        r->rtt_known = 1;
    }
    /* difference 1 */
    part = r->d_ns / XCP_ROBUST_PARTS;
    least = XCP_ROBUST_PACKETS * XCP_ROBUST_PACKET * XCP_NS_PER_S / r->capacity;
    if (w.packets && (w.x / w.packets) >> 9 > least)
        least = (w.x / w.packets) >> 9;
    if (least < XCP_ROBUST_LEAST_PART)
        least = XCP_ROBUST_LEAST_PART;
    if (least > r->d_ns >> 1)
        least = r->d_ns >> 1;
    r->interval_ns = part > least ? part : least ? least : 1;
    st = elapsed < r->d_ns ? xcp_robust_fraction(elapsed, r->d_ns) : ~0U;
    if (now > r->busy_until_ns && backlog == 0)
        r->idle_ns += now - (r->busy_until_ns > r->start_ns ? r->busy_until_ns : r->start_ns);
    if (r->law.capacity_known == XCP_CAPACITY_MEASURED)
        xcp_robust_measure(r, elapsed, r->now.all, st);
    r->idle_ns = 0;
    falls = r->min_queue < r->last_min - r->last_min / 50;
    r->queue = r->past_parts > 1 && r->last_min < r->min_queue ? r->last_min : r->min_queue;
    r->last_min = r->min_queue;
    r->min_queue = backlog;
    xcp_robust_turn(r, now - m.elapsed);
    r->f = xcp_robust_spare(r, &m, now, backlog, silence, falls);
    xcp_robust_divide(r, &w, silence);
    if (r->law.tcp == XCP_TCP_STEERED) {
        xcp_u64 xcp = xcp_rate(m.xcp, m.elapsed), here = xcp_rate(w.here, w.elapsed);
        struct xcp_num flows = xcp_num_div(xcp_num_scaled(w.x_here, -8), xcp_num_of(w.elapsed));
        if (xcp_passed(now, r->seen_since,
                       r->d_ns >> 28 ? 4 * r->d_ns : XCP_ROBUST_COUNTING)) { /* d of a quarter s */
            xcp_robust_count_tcp(r);
            r->seen_since = now;
        }
        xcp_robust_steer(r, &r->now, xcp > here ? xcp - here : 0, &flows);
    }
    r->start_ns = now;
    r->intervals++;
    __builtin_memset(&r->now, 0, sizeof(r->now));
    return 0;
}

/* backlog: as for xcp_router_tick. */
XCP_INLINE void xcp_robust_tick(struct xcp_robust *r, xcp_u64 now, xcp_u64 backlog) {
    if (backlog < r->min_queue)
        r->min_queue = backlog;
    if (XCP_UNLIKELY(xcp_passed(now, r->start_ns, r->interval_ns)))
        xcp_robust_close_part(r, now, backlog);
    if (backlog == 0 && now > r->busy_until_ns) {
        r->idle_ns += now - (r->busy_until_ns > r->start_ns ? r->busy_until_ns : r->start_ns);
        r->busy_until_ns = now;
    }
}

XCP_INLINE xcp_u32 xcp_robust_size(const struct xcp_robust *r, xcp_u32 size) {
    return (size < XCP_SIZE_MAX ? size : XCP_SIZE_MAX) + r->law.overhead;
}

/* The link that limits the packet's flow: difference 6. */
XCP_INLINE xcp_u32 xcp_robust_limited_by(const struct xcp_robust *r, const struct xcp_forward *h) {
    return h->flags & XCP_IDS ? h->bottleneck_id : r->id;
}

/* RTT, as far as it is believed. */
XCP_INLINE xcp_u64 xcp_robust_rtt(const struct xcp_robust *r, const struct xcp_path *p) {
    xcp_u64 rtt = (xcp_u64)p->rtt << p->re;
    return rtt < r->law.max_interval_ns ? rtt : r->law.max_interval_ns;
}

/* A packet with forward header arrives, whether or not the queue then takes it. Arguments as for
 * xcp_router_arrival. */
XCP_COLD void xcp_robust_arrival(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                 const struct xcp_forward *h, xcp_u64 backlog) {
    struct xcp_path p;
    struct xcp_num rtt;
    xcp_u64 s = xcp_robust_size(r, size), x, believed;
    xcp_u32 by;
    xcp_robust_tick(r, now, backlog);
    r->now.all += s;
    r->now.xcp += s;
    r->now.packets++;
    xcp_path_read(h, &p);
    if (!p.known)
        return;
    believed = xcp_robust_rtt(r, &p);
    rtt = xcp_num_of(believed);
    x = xcp_scale(p.x, p.xe + 8, 1ULL << 44);
    r->now.x += x;
    xcp_acc_add(&r->now.xr, (xcp_u64)p.x * rtt.m, p.xe + rtt.e + 32);
    by = xcp_robust_limited_by(r, h);
    if (by == r->id) {
        r->now.x_here += x;
        r->now.here += s;
    } else if (by == 0) {
        r->now.x_unknown += x;
    }
    if ((by == r->id || by == 0) && !(h->feedback & 0x8000) && h->feedback)
        r->now.x_asking += x;
    if (!r->rtt_known && now - r->start_ns + believed < r->interval_ns)
        r->interval_ns = now - r->start_ns + believed;
}

/* A factor times X or a size, q20, within a pool, which is charged. */
XCP_INLINE xcp_u64 xcp_robust_take(struct xcp_num factor, struct xcp_num of, xcp_u64 *pool) {
    return factor.m ? xcp_limited_take(factor, of, pool, 1) : 0;
}

/* The header's request, q20 bytes/s; s: the packet's size here. */
XCP_INLINE xcp_s64 xcp_robust_asked(const struct xcp_forward *h, const struct xcp_path *p,
                                    xcp_u32 s) {
    struct xcp_num rtt = {p->rtt, p->re};
    if (!(h->flags & XCP_CLASSIC))
        return xcp_extended_feedback_decode(h->feedback);
    return xcp_router_from_packets(
        xcp_classic_feedback_decode(h->feedback),
        xcp_num_div(xcp_num_mul(xcp_num_of(s), xcp_num_of(XCP_NS_PER_S)), rtt));
}

/* A rate of q20 bytes/s, encoded as the header's format has it. */
XCP_INLINE xcp_u16 xcp_robust_encode(const struct xcp_forward *h, const struct xcp_path *p,
                                     xcp_u32 s, xcp_s64 rate, xcp_u64 dither) {
    struct xcp_num rtt = {p->rtt, p->re}, n;
    xcp_u32 negative = rate < 0;
    xcp_u64 m = negative ? -(xcp_u64)rate : (xcp_u64)rate;
    if (!(h->flags & XCP_CLASSIC))
        return xcp_extended_feedback_encode(m, -20, negative, dither);
    n = xcp_num_div(xcp_num_mul(xcp_num_scaled(m, -20), rtt),
                    xcp_num_mul(xcp_num_of(s), xcp_num_of(XCP_NS_PER_S)));
    return h->flags & XCP_WHOLE ? xcp_classic_feedback_encode_whole(n.m, n.e, negative)
                                : xcp_classic_feedback_encode(n.m, n.e, negative, dither);
}

/* The header is lowered to what there is for the packet, and what it then says is booked. */
XCP_COLD void xcp_robust_settle(struct xcp_robust *r, xcp_u64 now, xcp_u32 s,
                                struct xcp_forward *h) {
    struct xcp_path p;
    struct xcp_num x, size = xcp_num_of(s);
    xcp_u64 dither = xcp_dither_next(&r->random), neg, offered = 0;
    xcp_s64 asked, f;
    xcp_u32 by, here;
    xcp_path_read(h, &p);
    if (!(h->flags & XCP_CLASSIC)) {
        if (h->hops < XCP_HOPS_MAX)
            h->hops++;
        h->flags |= XCP_MARK;
    }
    if (!p.known) { /* nothing is given, nothing taken, nothing booked */
        if (!(h->feedback & 0x8000))
            h->feedback = 0;
        return;
    }
    x = xcp_num_or_least(xcp_num_scaled(p.x, p.xe));
    asked = xcp_robust_asked(h, &p, s);
    by = xcp_robust_limited_by(r, h);
    here = by == r->id || by == 0;
    neg = xcp_robust_take(r->cn, size, &r->pool_n);
    if (here) {
        f = 0;
        if (r->fp.m) {
            offered = xcp_num_q20(xcp_num_mul(r->fp, x));
            if (offered > r->pool_fp)
                offered = r->pool_fp;
            f = (xcp_s64)offered;
        }
        if (by == r->id) {
            f = xcp_robust_sum(f, (xcp_s64)xcp_robust_take(r->hp, x, &r->pool_hp));
            f = xcp_robust_sum(f, -(xcp_s64)xcp_robust_take(r->hn, size, &r->pool_hn));
        }
    } else {
        xcp_u64 part = r->cp.m ? xcp_num_q20(xcp_num_mul(r->cp, x)) : 0;
        if (r->gp.m) { /* limited.h, difference 5 */
            xcp_u64 up = xcp_num_q20(xcp_num_mul(r->gp, x)),
                    down = xcp_num_q20(xcp_num_mul(r->gn, size)), gain = up > down ? up - down : 0,
                    cap = xcp_num_q20(xcp_num_mul(r->cap, x));
            gain = gain > cap ? cap : gain;
            part = gain > part ? gain : part;
        }
        f = (xcp_s64)part;
    }
    f = xcp_robust_sum(f, -(xcp_s64)neg);
    if (f < asked) {
        h->feedback = xcp_robust_encode(h, &p, s, f, dither);
        if (h->flags & XCP_IDS)
            h->next_bottleneck_id = r->id;
        asked = f;
    }
    if (offered) { /* difference 5 */
        xcp_s64 taken = xcp_robust_sum(asked, (xcp_s64)neg);
        r->pool_fp -= taken <= 0 ? 0 : (xcp_u64)taken < offered ? (xcp_u64)taken : offered;
    }
    if (here || asked < 0)
        xcp_robust_book(r, now + xcp_robust_rtt(r, &p), asked);
}

/* What leaves is what the capacity is measured by. */
XCP_INLINE void xcp_robust_leave(struct xcp_robust *r, xcp_u64 now, xcp_u32 s, xcp_u64 backlog) {
    if (r->law.capacity_known == XCP_CAPACITY_MEASURED) {
        if (r->left_behind) {
            r->busy_bytes += r->left_bytes;
            r->busy_ns += now - r->left_ns;
        }
        r->left_ns = now;
        r->left_bytes = s;
        r->left_behind = backlog;
        r->busy_until_ns = now + s * XCP_NS_PER_S / r->law.capacity;
    }
}

/* A packet with forward header departs; arguments as for xcp_router_departure. */
XCP_INLINE void xcp_robust_departure(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                     struct xcp_forward *h, xcp_u64 backlog) {
    xcp_u32 s = xcp_robust_size(r, size);
    xcp_robust_tick(r, now, backlog);
    xcp_robust_leave(r, now, s, backlog);
    xcp_robust_settle(r, now, s, h);
}

/* Both at once; nothing waits and nothing is in transmission. */
XCP_INLINE void xcp_robust_pass(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                struct xcp_forward *h) {
    xcp_robust_arrival(r, now, size, h, 0);
    xcp_robust_departure(r, now, size, h, 0);
}

/* A packet without forward header arrives: kind is XCP_OTHER_...; flow: a hash of whose it is, for
 * TCP. Returns 0 where it is to be dropped. */
XCP_INLINE int xcp_robust_other_arrival(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                        xcp_u32 kind, xcp_u64 flow, xcp_u64 backlog) {
    xcp_u64 s = xcp_robust_size(r, size);
    xcp_robust_tick(r, now, backlog);
    r->now.all += s;
    if (kind == XCP_OTHER_ACK) {
        r->now.xcp += s;
        r->now.packets++;
    } else if (kind == XCP_OTHER_TCP && r->law.tcp == XCP_TCP_STEERED) {
        xcp_u32 bit = xcp_router_id(flow);
        r->now.tcp += s;
        r->seen[bit >> 6 & 7] |= 1ULL << (bit & 63);
        if (r->drop && xcp_dither_next(&r->random) >> 16 < r->drop)
            return 0;
    }
    return 1;
}

/* It departs. */
XCP_INLINE void xcp_robust_other_departure(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                           xcp_u64 backlog) {
    xcp_robust_tick(r, now, backlog);
    xcp_robust_leave(r, now, xcp_robust_size(r, size), backlog);
}

#endif
