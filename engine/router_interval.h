/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The router's law at the end of a control interval, and of a queue estimation period: what the
 * next interval has to give (cp and cn, and the pools that bound it), and how long it takes. Lines
 * 7-19 and 32-36 of draft-falk-xcp-spec-03. router.h says where they are done differently and why,
 * and has what becomes of packets.
 */
#ifndef XCP_ROUTER_INTERVAL_H
#define XCP_ROUTER_INTERVAL_H

#include "limited.h"

/* Brings next_ns and usual up to date with what they are made of. */
XCP_INLINE void xcp_router_prepare(struct xcp_router *r) {
    xcp_u64 end = r->start_ns + r->interval_ns, queue_end = r->queue_start_ns + r->queue_period_ns;
    r->next_ns = (queue_end - end) >> 63 ? queue_end : end; /* the earlier one */
    r->usual = r->rtt_known && r->law.pools && r->law.gain == XCP_GAIN_UNIFORM &&
               r->law.shuffle == XCP_SHUFFLE_ALL && r->law.spare == XCP_SPARE_ALL;
}

/* No interval with an RTT has ended yet: the running one ends one round trip from now, if that is
 * sooner. */
XCP_COLD void xcp_router_first_rtt(struct xcp_router *r, xcp_u64 now, xcp_u64 rtt_ns) {
    xcp_u64 elapsed = now - r->start_ns;
    xcp_u64 end = elapsed + (rtt_ns > r->law.min_interval_ns ? rtt_ns : r->law.min_interval_ns);
    if (elapsed < r->interval_ns && end < r->interval_ns) { /* not where the clock stepped back */
        r->interval_ns = end;
        xcp_router_prepare(r);
    }
}

/* Lines 33-36. */
XCP_COLD void xcp_router_close_queue_period(struct xcp_router *r, xcp_u64 now, xcp_u64 backlog) {
    xcp_u64 d = xcp_num_u64(r->d, XCP_INTERVAL_LIMIT);
    xcp_u64 drain = 0, allowed = d < XCP_ALLOWED_QUEUE_NS ? d : XCP_ALLOWED_QUEUE_NS;
    if (backlog) {
        struct xcp_num bits = xcp_num_mul(xcp_num_of(backlog), xcp_num_of(XCP_NS_PER_S));
        drain = xcp_num_u64(xcp_num_div(bits, xcp_num_of(r->law.capacity)), XCP_INTERVAL_LIMIT);
    }
    r->queue = r->min_queue;
    r->min_queue = backlog;
    r->queue_start_ns = now;
    r->queue_period_ns = d > drain ? (d - drain) >> 1 : 0;
    if (r->queue_period_ns < allowed)
        r->queue_period_ns = allowed;
    if (r->queue_period_ns == 0)
        r->queue_period_ns = 1;
}

/* Line 9 as its magnitude and sign: F = alpha (C - y) - beta (Q - Q_target) / d. */
XCP_INLINE xcp_u64 xcp_router_spare(const struct xcp_router *r, xcp_u64 y, xcp_u32 *negative) {
    xcp_u64 plus = xcp_mul_fraction(r->law.capacity << 20, r->law.alpha);
    xcp_u64 minus = xcp_mul_fraction(y, r->law.alpha);
    xcp_u64 gap = r->queue > r->law.queue_target ? r->queue - r->law.queue_target
                                                 : r->law.queue_target - r->queue;
    if (gap) {
        struct xcp_num per_d =
            xcp_num_div(xcp_num_mul(xcp_num_of(gap), xcp_num_of(XCP_NS_PER_S)), r->d);
        xcp_u64 term = xcp_mul_fraction(xcp_num_q20(per_d), r->law.beta);
        if (r->queue > r->law.queue_target)
            minus = xcp_q20_add(minus, term);
        else
            plus = xcp_q20_add(plus, term);
    }
    *negative = minus > plus;
    return *negative ? minus - plus : plus - minus;
}

/* P-XCP: spare bandwidth f times N / N_b, flows here by flows limited here, at most law.spare_most;
 * where nobody is limited, f. */
XCP_COLD xcp_u64 xcp_router_scaled(const struct xcp_router *r, xcp_u64 f, struct xcp_num sum_x) {
    struct xcp_num own = xcp_acc_num(&r->sum_x_own, -64), most = xcp_num_of(r->law.spare_most),
                   ratio;
    if (own.m == 0 || !xcp_num_less(own, sum_x))
        return f;
    ratio = xcp_num_div(sum_x, own);
    if (xcp_num_less(most, ratio))
        ratio = most;
    return xcp_num_q20(xcp_num_mul(xcp_num_scaled(f, -20), ratio));
}

/* Which part of what was due was had: had / (had + short), a fraction of 2^32. */
XCP_INLINE xcp_u32 xcp_router_met(xcp_u64 had, xcp_u64 lacked) {
    struct xcp_num part;
    if (lacked == 0)
        return ~0U;
    part = xcp_num_div(xcp_num_of(had), xcp_num_of(xcp_q20_add(had, lacked)));
    return (xcp_u32)xcp_scale(part.m, part.e + 32, ~0U);
}

/* Lines 7-14, 18 and 19. silence: difference 3 of router.h. */
XCP_PART xcp_router_close_interval(struct xcp_router *r, xcp_u64 now, xcp_u32 silence) {
    struct xcp_num cp = {0, 0}, sum_x, at_least;
    xcp_u64 elapsed, y, f, shuffle = 0, spare;
    xcp_u32 negative;
    XCP_PART_NEEDS(r);
    sum_x = xcp_acc_num(&r->sum_x, -64);
    elapsed = now - r->start_ns;
    r->met_pos = xcp_router_met(r->given_pos - r->pool_pos, r->short_pos);
    r->met_neg = xcp_router_met(r->given_neg - r->pool_neg, r->short_neg);

    if (sum_x.m) { /* line 7 */
        r->d = r->law.interval == XCP_INTERVAL_MAX
                   ? xcp_num_of(r->longest_rtt)
                   : xcp_num_div(xcp_acc_num(&r->sum_xr, -32), sum_x);
        if (r->d.m == 0)
            r->d = xcp_num_of(1);
        if (xcp_num_u64(r->d, XCP_INTERVAL_LIMIT) > r->law.max_interval_ns)
            r->d = xcp_num_of(r->law.max_interval_ns);
        r->rtt_known = 1;
    }
    y = xcp_rate(r->input, elapsed);                                                  /* line 8 */
    f = xcp_router_spare(r, xcp_q20_add(y, xcp_rate(r->others, elapsed)), &negative); /* line 9 */
    spare = negative || r->law.spare != XCP_SPARE_SCALED ? f : xcp_router_scaled(r, f, sum_x);
    if (r->law.shuffle == XCP_SHUFFLE_ALL) { /* line 10 */
        xcp_u64 turnover = xcp_mul_fraction(y, r->law.gamma);
        shuffle = turnover > f ? turnover - f : 0;
    }
    r->pool_pos = negative ? shuffle : xcp_q20_add(shuffle, spare); /* line 11 */
    r->pool_neg = negative ? xcp_q20_add(shuffle, f) : shuffle;     /* line 12 */

    /* lines 18 and 19 */
    r->interval_ns = xcp_num_u64(r->d, r->law.max_interval_ns);
    if (r->interval_ns < r->law.min_interval_ns)
        r->interval_ns = r->law.min_interval_ns;
    r->start_ns = now;

    /* line 13 */
    at_least = r->interval_ns > r->law.min_interval_ns ? r->d : xcp_num_of(r->law.min_interval_ns);
    if (sum_x.m)
        cp = xcp_num_div(xcp_num_scaled(r->pool_pos, -20),
                         silence && xcp_num_less(sum_x, at_least) ? at_least : sum_x);
    r->cp = xcp_num_or_least(cp);
    /* line 14 */
    r->cn = xcp_num_or_least(xcp_num_div(xcp_num_scaled(r->pool_neg, -20), xcp_num_of(r->input)));

    r->given_pos = r->pool_pos;
    r->given_neg = r->pool_neg;
    r->short_pos = r->short_neg = 0;
    r->intervals++;
    r->elapsed_ns = elapsed;
    r->closed_sum_x = sum_x;
    r->y = y;
    r->f = negative ? -(xcp_s64)f : (xcp_s64)f;
    r->shuffled = shuffle;
    return 0;
}

/* Lines 15-17. */
XCP_COLD void xcp_router_begin_interval(struct xcp_router *r) {
    r->input = 0;
    r->others = 0;
    r->sum_x.hi = r->sum_x.lo = 0;
    r->sum_xr.hi = r->sum_xr.lo = 0;
    r->sum_x_own.hi = r->sum_x_own.lo = 0;
    r->longest_rtt = 0;
}

/* Closes what has run out. */
XCP_COLD void xcp_router_close(struct xcp_router *r, xcp_u64 now, xcp_u64 backlog) {
    if (xcp_passed(now, r->queue_start_ns, r->queue_period_ns))
        xcp_router_close_queue_period(r, now, backlog);
    if (xcp_passed(now, r->start_ns, r->interval_ns)) {
        xcp_u32 silence = (now - r->start_ns) >> 1 > r->interval_ns;
        xcp_router_close_interval(r, now, silence);
        if (r->law.shuffle == XCP_SHUFFLE_MATCHING)
            xcp_limited_close(r, silence);
        xcp_router_begin_interval(r);
    }
    xcp_router_prepare(r);
}

/* Whether anything may have run out: not before next_ns. A clock that has stepped back is before it
 * too. */
XCP_INLINE int xcp_router_is_due(const struct xcp_router *r, xcp_u64 now) {
    return !((now - r->next_ns) >> 63);
}

/* backlog: bytes waiting, without the packet in transmission, and without the one that arrives or
 * departs. */
XCP_INLINE void xcp_router_tick(struct xcp_router *r, xcp_u64 now, xcp_u64 backlog) {
    if (backlog < r->min_queue) /* line 32 */
        r->min_queue = backlog;
    if (XCP_UNLIKELY(xcp_router_is_due(r, now)))
        xcp_router_close(r, now, backlog);
}

#endif
