/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Laws that know which flows a link limits, by the bottleneck id in each packet: iXCP, and a cured
 * kind of it.
 *
 * iXCP ("Improving XCP to Achieve Max-Min Fair Bandwidth Allocation", §3, eq. (3)): spare bandwidth
 * goes to all packets as in XCP, the shuffle is measured over, taken from and given to those
 * packets only whose id is this link's. XCP_SHUFFLE_MATCHING alone is this, the paper's rule. Where
 * it differs, and why:
 *
 *   1. The paper's pseudo-code is in a report we do not have. Both denominators of the shuffle run
 *      over matching packets: with those of all packets more would be taken from the matching ones
 *      than is given back to them.
 *   2. Residue pools, of which the paper does not speak: increase, decrease and the two sides of
 *      the shuffle have one each. They are charged with what is offered, taken or not, for nobody's
 *      refusal has to be made up for. The shuffle's two hold a quarter more than is planned: if one
 *      side were cut short before the other, the shuffle would move rate in or out of the link.
 *   3. Packets with unknown RTT or window are matched by nobody and claimed by nobody.
 *   4. Id 0 is no link's. Senders start with it (sender.h) unless told to start with their access
 *      link's, as the paper has it.
 *
 * XCP_SPARE_LIMITED with it is the cured kind. What ails the paper's rule: a flow just below its
 * share at the link that limits it is offered a gain there, while a full link elsewhere, which does
 * not match it, offers the n-th part of nothing: that one is the smaller, so the wrong link claims
 * the flow, and a round trip later the flow has an equal part of a shuffle that is not its own.
 * What the large flow of that link loses comes back only through its n-th part of the spare
 * bandwidth. So:
 *
 *   5. A link answers a packet of another link's flow with what the flow would gain here were it
 *      limited here, a shuffle of full size among the flows limited here, if that is more than its
 *      part of the spare bandwidth: the wrong link's offer is then the larger. It is capped: all
 *      such packets of an interval together get a tenth of the capacity at most.
 *   6. Increase goes to the flows limited here, and to those that name no link, instead of to all;
 *      the others would not take it. It is charged to a pool; when that is empty, a packet gets
 *      what it would get in XCP. Decrease is everybody's.
 *   7. Nothing else is charged but the shuffle's pools of 2.
 *
 * Feedback is computed in 2^-20 bytes/s, the format's least step; each term is good to half of it
 * and to 2^-31 of itself.
 */
#ifndef XCP_LIMITED_H
#define XCP_LIMITED_H

#include "dither.h"
#include "path.h"
#include "router_state.h"

/* Of the capacity, what all packets of flows limited elsewhere may be offered in an interval: a
 * tenth, as a fraction of 2^32. */
#define XCP_HEADROOM 429496730U

/* What a link has for one packet, before it is rounded into the header. */
struct xcp_grant {
    xcp_u32 size;     /* limited.h: one packet's size on this link */
    xcp_u32 segments; /* and how many packets there are */
    xcp_u64 fb;       /* |pos - neg| = fb * 2^e bytes/s, fb below 2^62 */
    xcp_s32 e;
    xcp_u32 below; /* 1 where pos is less than neg */
    xcp_u64 pos_q; /* both terms in q20, for the pools, of one packet; 0 where there are none */
    xcp_u64 neg_q;
};

/* What a pool has for each of some packets. */
XCP_INLINE xcp_u64 xcp_router_each(xcp_u64 pool, xcp_u32 segments) {
    return segments == 1 ? pool : pool / segments;
}

/* The link that the packet's flow is limited by, as it knows; 0 where it does not. */
XCP_INLINE xcp_u32 xcp_limited_by(const struct xcp_forward *h) {
    return h->flags & XCP_IDS ? h->bottleneck_id : 0;
}

/* Packets of one flow, whose RTT and window are known, are input. */
XCP_PART xcp_limited_count(struct xcp_router *r, const struct xcp_forward *h, xcp_u64 bytes,
                           xcp_u32 segments, const struct xcp_path *p) {
    struct xcp_limited *l = &r->limited;
    xcp_u32 by;
    XCP_PART_NEEDS(r && h && p);
    by = xcp_limited_by(h);
    if (by == r->id) {
        l->input += bytes;
        xcp_acc_add_times(&l->sum_x, p->x, p->xe + 64, segments);
    } else if (by == 0) {
        xcp_acc_add_times(&l->sum_x_unknown, p->x, p->xe + 64, segments);
    }
    return 0;
}

/* The larger one. */
XCP_INLINE struct xcp_num xcp_limited_max(struct xcp_num a, struct xcp_num b) {
    return xcp_num_less(a, b) ? b : a;
}

/*
 * The end of an interval, when cp, cn, the pools of increase and decrease, and the next interval's
 * length are known; the shuffle follows from them. silence: as for line 13 (router.h).
 */
XCP_PART xcp_limited_close(struct xcp_router *r, xcp_u32 silence) {
    struct xcp_limited *l = &r->limited;
    struct xcp_num sum_x, input, at_least, zero = {0, XCP_LEAST_E};
    xcp_u64 turnover, shuffle, f;
    XCP_PART_NEEDS(r);
    f = r->f < 0 ? -(xcp_u64)r->f : (xcp_u64)r->f;
    sum_x = xcp_acc_num(&l->sum_x, -64);
    input = xcp_num_of(l->input);
    at_least = xcp_num_of(r->interval_ns); /* what one flow's X sums up to in the next interval */
    turnover = xcp_mul_fraction(xcp_rate(l->input, r->elapsed_ns), r->law.gamma);
    shuffle = turnover > f ? turnover - f : 0;
    r->shuffled = shuffle;
    l->hp = l->hn = l->gp = l->gn = l->cap = zero;
    l->fp = r->cp;
    l->pool_hp = l->pool_hn = xcp_q20_add(shuffle, shuffle >> 2);
    if (sum_x.m) {
        struct xcp_num over = silence ? xcp_limited_max(sum_x, at_least) : sum_x;
        l->hp = xcp_num_or_least(xcp_num_div(xcp_num_scaled(shuffle, -20), over));
        l->hn = xcp_num_or_least(xcp_num_div(xcp_num_scaled(shuffle, -20), input));
        if (r->law.spare == XCP_SPARE_LIMITED) {
            struct xcp_acc elsewhere = xcp_acc_minus(&r->sum_x, &l->sum_x), here = l->sum_x;
            xcp_acc_plus(&here, &l->sum_x_unknown);
            l->fp = xcp_num_div(xcp_num_scaled(r->pool_pos, -20),
                                xcp_limited_max(xcp_acc_num(&here, -64), at_least));
            l->fp = xcp_num_or_least(l->fp);
            l->gp = xcp_num_or_least(xcp_num_div(xcp_num_scaled(turnover, -20), over));
            l->gn = xcp_num_or_least(xcp_num_div(xcp_num_scaled(turnover, -20), input));
            l->cap = xcp_num_div(
                xcp_num_scaled(xcp_mul_fraction(r->law.capacity << 20, XCP_HEADROOM), -20),
                xcp_limited_max(xcp_acc_num(&elsewhere, -64), at_least));
            l->cap = xcp_num_or_least(l->cap);
        }
    } else if (r->law.spare == XCP_SPARE_LIMITED) {
        r->pool_pos = 0; /* who begins to be limited here has the part that everybody has */
    }
    l->input = 0;
    l->sum_x.hi = l->sum_x.lo = 0;
    l->sum_x_unknown.hi = l->sum_x_unknown.lo = 0;
    return 0;
}

/* A factor times X or a size, q20, at most what the pool has for each of some packets, for which it
 * is charged. */
XCP_INLINE xcp_u64 xcp_limited_take(struct xcp_num factor, struct xcp_num of, xcp_u64 *pool,
                                    xcp_u32 segments) {
    xcp_u64 q20 = xcp_num_q20(xcp_num_mul(factor, of)), most = xcp_router_each(*pool, segments);
    if (q20 > most)
        q20 = most;
    *pool -= q20 * segments;
    return q20;
}

/* What the shuffle gives (of is X) or takes (of is the size), charged where there are pools. */
XCP_INLINE xcp_u64 xcp_limited_share(const struct xcp_router *r, struct xcp_num factor,
                                     struct xcp_num of, xcp_u64 *pool, xcp_u32 segments) {
    return r->law.pools ? xcp_limited_take(factor, of, pool, segments)
                        : xcp_num_q20(xcp_num_mul(factor, of));
}

/* Lines 20-22 and the charging of pools, for each of some packets of one flow, of which g says how
 * large and how many they are. */
XCP_PART xcp_limited_grant(struct xcp_router *r, const struct xcp_path *p,
                           const struct xcp_forward *h, struct xcp_grant *g) {
    struct xcp_limited *l = &r->limited;
    struct xcp_num x, size;
    xcp_u32 by, here, cured, segments;
    xcp_u64 pos, neg;
    XCP_PART_NEEDS(r && p && h && g);
    x = xcp_num_scaled(p->x, p->xe);
    size = xcp_num_of(g->size);
    segments = g->segments ? g->segments : 1;
    by = xcp_limited_by(h);
    here = p->known && by == r->id;
    cured = r->law.spare == XCP_SPARE_LIMITED;
    /* all terms are proportional to X or to the size */
    if (r->law.gain == XCP_GAIN_OWN_RTT && p->known) {
        struct xcp_num gain;
        if (xcp_router_slower(r, p, &gain)) {
            x = xcp_num_mul(x, gain);
            size = xcp_num_mul(size, gain);
        }
    }
    x = xcp_num_or_least(x);
    if (cured) {
        pos = xcp_num_q20(xcp_num_mul(r->cp, x));
        neg = xcp_num_q20(xcp_num_mul(r->cn, size));
        if (here) { /* 6 */
            xcp_u64 own = xcp_num_q20(xcp_num_mul(l->fp, x));
            if (!r->law.pools) {
                pos = own;
            } else if (own <= xcp_router_each(r->pool_pos, segments)) {
                pos = own;
                r->pool_pos -= own * segments;
            }
        } else if (p->known && by != 0) { /* 5 */
            xcp_u64 up = xcp_num_q20(xcp_num_mul(l->gp, x)),
                    down = xcp_num_q20(xcp_num_mul(l->gn, size));
            xcp_u64 gain = up > down ? up - down : 0, cap = xcp_num_q20(xcp_num_mul(l->cap, x));
            gain = gain > cap ? cap : gain;
            pos = gain > pos ? gain : pos;
        }
    } else {
        pos = xcp_limited_share(r, r->cp, x, &r->pool_pos, segments);
        neg = xcp_limited_share(r, r->cn, size, &r->pool_neg, segments);
    }
    if (here) {
        pos = xcp_q20_add(pos, xcp_limited_share(r, l->hp, x, &l->pool_hp, segments));
        neg = xcp_q20_add(neg, xcp_limited_share(r, l->hn, size, &l->pool_hn, segments));
    }
    g->below = pos < neg;
    g->fb = g->below ? neg - pos : pos - neg;
    g->e = -20;
    g->pos_q = pos;
    g->neg_q = neg;
    return 0;
}

#endif
