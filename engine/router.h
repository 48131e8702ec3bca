/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The router's law: what an XCP router does when a packet arrives, when one departs, and at the end
 * of each control interval (which is in router_interval.h).
 *
 * Katabi, Handley & Rohrs (2002) in the rate form of draft-falk-xcp-spec-03, whose line numbers are
 * given. Where it differs, and why:
 *
 *   1. No timers. A control interval, or a queue estimation period, that has run out is closed by
 *      the next packet to arrive or depart, and input traffic (line 8) is divided by the time that
 *      has really passed.
 *   2. Before any RTT is known d is 50 ms (as in ns-2), or as much shorter as the first RTT heard
 *      of is. An interval in which no packet tells its RTT leaves d as it was and grants nothing
 *      (Cp = 0): nobody is known to share it among.
 *   3. After silence (an interval closed later than twice its length) line 13 divides by the sum of
 *      X or by the next interval's length, whichever is larger: there is at least one flow. The sum
 *      covers the few packets before the silence only, and each of the first ones after it would
 *      otherwise be granted a large part of the whole spare capacity.
 *   4. Lines 20 and 21: pos and neg are bounded by what is left in their pools before their
 *      difference is taken (as in ns-2), so that what is handed out in an interval never exceeds
 *      the pools. Lines 30 and 31 follow from it: an empty pool gives nothing.
 *   5. Line 27: pos cannot become negative, which in the draft would refill the pool when
 *      upstream's decrease exceeds the negative pool.
 *   6. Packets with unknown RTT or window get no positive feedback and are not summed, but count as
 *      input traffic, and neg is taken from them. In the classic format, which counts feedback in
 *      packets of window, that cannot be said without an RTT: such a request is lowered to 0.
 *   7. ALLOWED_QUEUE (line 35) is 2 ms or d, whichever is shorter. With an RTT of 10 us, 2 ms would
 *      be 200 round trips on one stale queue.
 *   8. The persistent queue is the minimum of the backlog right after packets leave (and before
 *      packets arrive), as line 32 means it. ns-2 looks before the packet leaves and never sees
 *      less than one packet.
 *   9. X is at most 69 s (path.h).
 *  10. A queue target is taken off the persistent queue before beta weighs it (0 in XCP itself); d
 *      may be the longest RTT instead of the mean; both terms of the feedback may be scaled by
 *      min(1, d / RTT) (law.h).
 *  11. XCP-IR (Sakumoto, Ohsaki & Imase 2010, eqs. (2) and (3)): other traffic is taken off the
 *      capacity as bytes that departed in the interval over the time it took. Where a packet is
 *      seen but once (xcp_router_others: the kernel's program), they count when they enter the
 *      queue. Input is XCP's own, acknowledgements included.
 *  12. P-XCP: N is the sum of X over the interval's packets, N_b the same sum over those that asked
 *      for no less than this link gave them; both over the time of one interval, so that their
 *      quotient needs no time. The published papers do not say how N_b is found, nor name a bound:
 *      here N / N_b is at most law.spare_most, and the shuffle and decreases are not scaled. The
 *      positive pool holds what is scaled.
 *  13. iXCP and its cured kind: limited.h.
 *  14. A window below one packet is taken for one (path.h).
 *  15. Where a header says that its sender keeps its rate whatever its queue does (XCP_KEEPS), that
 *      is taken back: this law counts on windows that acknowledgements clock.
 *
 * Feedback is rounded stochastically when written (dither.h), but for whole packets (XCP_WHOLE),
 * whose rounding the pools know nothing of, as in the study. A header value is only ever lowered.
 *
 * Precision, against the law in exact arithmetic on the decoded header, for RTTs of 10 us to 65 s,
 * 1 kB/s to 1 TB/s, packets of 64 to 65535 bytes and up to a million flows
 * (crates/xcp-engine/tests/law_precision.rs): d and the sums within 1.5e-9; rates within 2^-20
 * bytes/s, and F within 2^-28 of the largest term it is the difference of; a packet's feedback
 * within 2^-29 of the larger of pos and neg, and what the error of F adds. So feedback is good to
 * 1e-6 unless its terms and those of F, one times the other, cancel to less than a fiftieth. Rates
 * saturate at 4.4 TB/s, Q / d included.
 */
#ifndef XCP_ROUTER_H
#define XCP_ROUTER_H

#include "limited.h"
#include "router_interval.h"

/* A link's id, from its seed: at random, never 0. */
XCP_INLINE xcp_u32 xcp_router_id(xcp_u64 seed) {
    xcp_u64 z = xcp_mix(seed + 0x9e3779b97f4a7c15ULL) >> 32;
    return z ? (xcp_u32)z : 1;
}

/* Returns XCP_LAW_OK, or what is wrong with the law; then the router must not be used. */
XCP_INLINE int xcp_router_init(struct xcp_router *r, const struct xcp_law *law, xcp_u64 now_ns,
                               xcp_u64 seed) {
    int wrong = xcp_law_check(law);
    __builtin_memset(r, 0, sizeof(*r));
    if (wrong)
        return wrong;
    if (law->control != XCP_CONTROL_DRAFT) /* robust.h */
        return XCP_LAW_CONTROL;
    r->law = *law;
    r->believed_rtt_ns = law->max_interval_ns;
    r->start_ns = now_ns;
    r->interval_ns = XCP_FIRST_INTERVAL_NS;
    r->queue_start_ns = now_ns;
    r->queue_period_ns = XCP_ALLOWED_QUEUE_NS;
    r->d = xcp_num_of(XCP_FIRST_INTERVAL_NS);
    r->cp = r->cn = xcp_num_or_least(r->cp);
    r->id = xcp_router_id(seed);
    r->random = seed ^ 0x9e3779b97f4a7c15ULL;
    xcp_dither_next(&r->random);
    xcp_router_prepare(r);
    return XCP_LAW_OK;
}

/* Takes effect at the end of the interval. What is out of range becomes the nearest possible. */
XCP_INLINE void xcp_router_set_capacity(struct xcp_router *r, xcp_u64 capacity) {
    r->law.capacity = capacity == 0 ? 1 : capacity > XCP_CAPACITY_MAX ? XCP_CAPACITY_MAX : capacity;
}

/*
 * Another law from now on; what the last interval's end decided stays until the next one's. Returns
 * XCP_LAW_OK, or what is wrong with the law; then the router goes on with the one it has.
 */
XCP_INLINE int xcp_router_set_law(struct xcp_router *r, const struct xcp_law *law) {
    int wrong = xcp_law_check(law);
    if (wrong)
        return wrong;
    if (law->control != XCP_CONTROL_DRAFT)
        return XCP_LAW_CONTROL;
    r->law = *law;
    /* a policer bounds it again with the next interval */
    r->believed_rtt_ns = law->max_interval_ns;
    r->others = 0;
    r->sum_x_own.hi = r->sum_x_own.lo = 0;
    __builtin_memset(&r->limited, 0, sizeof(r->limited));
    xcp_router_prepare(r);
    return XCP_LAW_OK;
}

/*
 * Whether a packet is of the usual kind: nothing has run out, its header is an extended one that
 * says everything, and it is XCP itself that is carried out. The host has the code for such packets
 * in one piece without calls, and everything else in functions of its own (XCP_SPLIT); both are
 * compiled from the same lines, in which `usual` is 1 where all this is known.
 */
XCP_INLINE int xcp_router_is_usual(const struct xcp_router *r, xcp_u64 now,
                                   const struct xcp_forward *h) {
    return (h->flags & (XCP_PRESENT | XCP_CLASSIC)) == XCP_PRESENT && h->rtt >= 1 << 11 &&
           h->window >= 1 << 10 && r->usual && !xcp_router_is_due(r, now);
}

/* What the header says. */
XCP_INLINE void xcp_router_read(const struct xcp_forward *h, struct xcp_path *p, xcp_u32 usual) {
    if (usual)
        xcp_path_read_extended(h, p);
    else
        xcp_path_read(h, p);
}

/* Lines 1-6: packets of one flow, whose headers say p, together `bytes` on this link, are input. */
XCP_INLINE void xcp_router_count(struct xcp_router *r, xcp_u64 now, xcp_u64 bytes, xcp_u32 segments,
                                 const struct xcp_forward *h, const struct xcp_path *p,
                                 xcp_u32 usual) {
    xcp_u64 rtt_ns;
    r->input += bytes;
    if (!usual && !p->known)
        return;
    if (!usual && r->law.shuffle == XCP_SHUFFLE_MATCHING) {
        struct xcp_path path = *p; /* a copy, as in xcp_router_settle */
        xcp_limited_count(r, h, bytes, segments, &path);
    }
    xcp_acc_add_times(&r->sum_x, p->x, p->xe + 64, segments);
    rtt_ns = (xcp_u64)p->rtt << p->re;
    if (XCP_LIKELY(rtt_ns <= r->believed_rtt_ns)) {
        xcp_acc_add_times(&r->sum_xr, (xcp_u64)p->x * p->rtt, p->xe + p->re + 32, segments);
    } else {
        struct xcp_num most = xcp_num_of(r->believed_rtt_ns);
        rtt_ns = r->believed_rtt_ns;
        xcp_acc_add_times(&r->sum_xr, (xcp_u64)p->x * most.m, p->xe + most.e + 32, segments);
    }
    if (rtt_ns > r->longest_rtt)
        r->longest_rtt = rtt_ns;
    if (!usual && !r->rtt_known)
        xcp_router_first_rtt(r, now, rtt_ns);
}

XCP_INLINE void xcp_router_arrive(struct xcp_router *r, xcp_u64 now, xcp_u32 size,
                                  const struct xcp_forward *h, xcp_u64 backlog, xcp_u32 usual) {
    struct xcp_path p;
    xcp_router_tick(r, now, backlog);
    xcp_router_read(h, &p, usual);
    xcp_router_count(r, now, xcp_law_size(&r->law, size), 1, h, &p, usual);
}

XCP_COLD void xcp_router_arrive_any(struct xcp_router *r, xcp_u64 now, xcp_u32 size,
                                    const struct xcp_forward *h, xcp_u64 backlog) {
    xcp_router_arrive(r, now, size, h, backlog, 0);
}

/*
 * A packet arrives, whether or not the queue then takes it. size: bytes on the wire; h: its forward
 * header; backlog: bytes waiting before it, without the packet in transmission. Lines 1-6.
 */
XCP_INLINE void xcp_router_arrival(struct xcp_router *r, xcp_u64 now, xcp_u32 size,
                                   const struct xcp_forward *h, xcp_u64 backlog) {
    if (XCP_SPLIT && XCP_LIKELY(xcp_router_is_usual(r, now, h)))
        xcp_router_arrive(r, now, size, h, backlog, 1);
    else
        xcp_router_arrive_any(r, now, size, h, backlog);
}

/* A packet without forward header arrives: other traffic, or XCP's own acknowledgements. */
XCP_INLINE void xcp_router_other_arrival(struct xcp_router *r, xcp_u64 now, xcp_u32 size,
                                         xcp_u32 is_xcp, xcp_u64 backlog) {
    xcp_router_tick(r, now, backlog);
    if (r->law.input == XCP_INPUT_ALL || is_xcp)
        r->input += xcp_law_size(&r->law, size);
}

/* A packet without forward header departs. */
XCP_INLINE void xcp_router_other_departure(struct xcp_router *r, xcp_u64 now, xcp_u32 size,
                                           xcp_u32 is_xcp, xcp_u64 backlog) {
    xcp_router_tick(r, now, backlog);
    if (r->law.capacity_for_xcp == XCP_CAPACITY_MINUS_OTHER && !is_xcp)
        r->others += xcp_law_size(&r->law, size);
}

/* Both terms times min(1, d / RTT). */
XCP_INLINE void xcp_router_own_gain(const struct xcp_router *r, const struct xcp_path *p,
                                    xcp_u64 *pos, xcp_s32 *pe, xcp_u64 *neg, xcp_s32 *ne) {
    struct xcp_num gain, n;
    if (!p->known || !xcp_router_slower(r, p, &gain))
        return;
    n = xcp_num_or_least(xcp_num_mul(xcp_num_scaled(*pos, *pe), gain));
    *pos = (xcp_u64)n.m << 30;
    *pe = n.e - 30;
    n = xcp_num_or_least(xcp_num_mul(xcp_num_scaled(*neg, *ne), gain));
    *neg = (xcp_u64)n.m << 30;
    *ne = n.e - 30;
}

/* Feedback of the classic format, 2^-12 packets, as q20 bytes/s. Saturates. */
XCP_INLINE xcp_s64 xcp_router_from_packets(xcp_s64 packets, struct xcp_num per_packet) {
    xcp_u32 negative = packets < 0;
    struct xcp_num n = xcp_num_scaled(negative ? -(xcp_u64)packets : (xcp_u64)packets, -12);
    xcp_u64 q20 = n.m ? xcp_num_q20(xcp_num_mul(n, per_packet)) : 0;
    return negative ? -(xcp_s64)q20 : (xcp_s64)q20;
}

/* Lines 20-22, for each of some packets. s: one packet's size on this link. */
XCP_INLINE void xcp_router_grant(struct xcp_router *r, const struct xcp_path *p, xcp_u32 s,
                                 xcp_u32 segments, struct xcp_grant *g, xcp_u32 usual) {
    /* cp and cn have 32 bits, X at most 32, s at most 25: both terms stay below 2^62 */
    xcp_u64 pos = ((xcp_u64)r->cp.m * p->x) >> 2;
    xcp_s32 pe = r->cp.e + p->xe + 2;
    xcp_u64 neg = ((xcp_u64)r->cn.m * s) << 5;
    xcp_s32 ne = r->cn.e - 5;
    xcp_s32 shift;
    xcp_u64 fb;
    g->pos_q = g->neg_q = 0;
    if (!usual && r->law.gain == XCP_GAIN_OWN_RTT)
        xcp_router_own_gain(r, p, &pos, &pe, &neg, &ne);
    if (usual || r->law.pools) {
        xcp_u64 pos_q = xcp_scale(pos, pe + 20, ~0ULL); /* the pool is the bound */
        xcp_u64 most = xcp_router_each(r->pool_pos, segments);
        if (XCP_UNLIKELY(pos_q > most)) {
            r->short_pos = xcp_q20_add(r->short_pos, (pos_q - most) * segments);
            pos_q = pos = most;
            pe = -20;
        }
        g->pos_q = pos_q;
    }
    if (neg == 0) { /* a link with room for everybody: what is below would come to the same */
        g->fb = pos;
        g->e = pe;
        g->below = 0;
        return;
    }
    if (usual || r->law.pools) {
        xcp_u64 neg_q = xcp_scale(neg, ne + 20, ~0ULL);
        xcp_u64 most = xcp_router_each(r->pool_neg, segments);
        if (XCP_UNLIKELY(neg_q > most)) {
            r->short_neg = xcp_q20_add(r->short_neg, (neg_q - most) * segments);
            neg_q = neg = most;
            ne = -20;
        }
        g->neg_q = neg_q;
    }
    /* both to the larger exponent, so that nothing is lost but 2^-40 of the larger term; written
     * without branches, for signs are random */
    shift = pe - ne;
    pos >>= shift >= 0 ? 0 : shift < -63 ? 63 : -shift;
    neg >>= shift <= 0 ? 0 : shift > 63 ? 63 : shift;
    fb = pos - neg;
    g->e = shift >= 0 ? pe : ne;
    g->below = (xcp_u32)(fb >> 63);
    g->fb = (fb ^ (0 - (xcp_u64)g->below)) + g->below;
}

/* The same as a part of its own; g says how large and how many the packets are. */
XCP_PART xcp_router_grant_any(struct xcp_router *r, const struct xcp_path *p, struct xcp_grant *g) {
    XCP_PART_NEEDS(r && p && g);
    xcp_router_grant(r, p, g->size, g->segments ? g->segments : 1, g, 0);
    return 0;
}

/* What became of a grant. */
struct xcp_settlement {
    xcp_u64 dither;
    xcp_u16 code;     /* the grant, encoded */
    xcp_u32 lowered;  /* whether the header asked for more */
    xcp_u32 own;      /* or for just as much: nobody before this link gives less */
    xcp_s64 upstream; /* if not: what it asks for, q20 */
};

/* Lines 23 and 24 in the classic format. */
XCP_PART xcp_router_settle_classic(struct xcp_router *r, const struct xcp_path *p,
                                   const struct xcp_forward *h, struct xcp_grant *g,
                                   struct xcp_settlement *to) {
    xcp_s64 theirs;
    xcp_u32 s;
    XCP_PART_NEEDS(r && p && h && g && to);
    theirs = xcp_classic_feedback_decode(h->feedback);
    s = g->size;
    if (p->known) {
        /* products normalise */
        struct xcp_num n = xcp_num_scaled(g->fb, g->e), rtt = {p->rtt, p->re};
        if (XCP_UNLIKELY(s != r->last_size)) {
            r->last_size = s;
            r->last_size_recip =
                xcp_num_div(xcp_num_div(xcp_num_of(1), xcp_num_of(s)), xcp_num_of(XCP_NS_PER_S));
        }
        /* packets = bytes/s * rtt / (s * 10^9) */
        n = xcp_num_mul(n, xcp_num_mul(rtt, r->last_size_recip));
        to->code = h->flags & XCP_WHOLE
                       ? xcp_classic_feedback_encode_whole(n.m, n.e, g->below)
                       : xcp_classic_feedback_encode(n.m, n.e, g->below, to->dither);
        to->lowered = theirs > xcp_classic_feedback_decode(to->code);
        to->own = theirs >= xcp_classic_feedback_decode(to->code);
        if (!to->lowered)
            to->upstream = xcp_router_from_packets(
                theirs, xcp_num_div(xcp_num_mul(xcp_num_of(s), xcp_num_of(XCP_NS_PER_S)), rtt));
    } else {
        to->code = 0;
        to->lowered = theirs > 0;
        g->neg_q = 0; /* nothing given, nothing taken */
    }
    return 0;
}

/* Lines 20-29: the header of packets of s bytes on this link, which says p, is lowered to what the
 * link has for each of them. */
XCP_INLINE void xcp_router_settle(struct xcp_router *r, xcp_u32 s, xcp_u32 segments,
                                  const struct xcp_path *p, struct xcp_forward *h, xcp_u64 dither,
                                  xcp_u32 usual) {
    struct xcp_grant g;
    xcp_u32 lowered, own;
    xcp_s64 upstream = 0;
    if (usual) {
        xcp_router_grant(r, p, s, segments, &g, 1);
    } else {
        /* copies, whose addresses may be known without harm to the usual way */
        struct xcp_grant any = {s, segments, 0, 0, 0, 0, 0};
        struct xcp_path path = *p;
        if (r->law.shuffle == XCP_SHUFFLE_MATCHING)
            xcp_limited_grant(r, &path, h, &any);
        else
            xcp_router_grant_any(r, &path, &any);
        g = any;
    }

    /* lines 23 and 24 */
    if (usual || !(h->flags & XCP_CLASSIC)) {
        xcp_s32 granted = (xcp_s32)xcp_extended_feedback_magnitude(g.fb, g.e, dither),
                asked = xcp_extended_feedback_order(h->feedback);
        /* with its sign, as xcp_extended_feedback_order has it */
        granted = (granted ^ -(xcp_s32)g.below) + (xcp_s32)g.below;
        lowered = asked > granted;
        own = asked >= granted;
        if (lowered)
            h->feedback = granted < 0 ? (xcp_u16)(0x8000 - granted) : (xcp_u16)granted;
        else
            upstream = xcp_extended_feedback_decode(h->feedback);
        /* difference 15 */
        h->flags = (xcp_u8)((h->flags | XCP_MARK) & ~XCP_KEEPS);
    } else {
        /* copies, whose addresses may be known without harm to the code above */
        struct xcp_grant grant = g;
        struct xcp_path path = *p;
        struct xcp_settlement to = {dither, 0, 0, 0, 0};
        grant.size = s;
        xcp_router_settle_classic(r, &path, h, &grant, &to);
        if (to.lowered)
            h->feedback = to.code;
        lowered = to.lowered;
        own = to.own;
        upstream = to.upstream;
        g.neg_q = grant.neg_q;
    }
    if (!usual && r->law.spare == XCP_SPARE_SCALED && own && p->known)
        xcp_acc_add_times(&r->sum_x_own, p->x, p->xe + 64, segments);
    if (!usual && r->law.shuffle == XCP_SHUFFLE_MATCHING) { /* which has charged its pools */
        if (lowered && p->known && h->flags & XCP_IDS)
            h->next_bottleneck_id = r->id;
        return;
    }
    if (!usual && !r->law.pools)
        return;
    if (lowered) { /* lines 28 and 29; both are within their pools */
        r->pool_pos -= g.pos_q * segments;
        r->pool_neg -= g.neg_q * segments;
        /* lines 26 and 27: what the link would have given beyond upstream's value is booked as
         * taken */
    } else {
        xcp_s64 more = (xcp_s64)g.pos_q - upstream;
        xcp_u64 most_neg = xcp_router_each(r->pool_neg, segments),
                most_pos = xcp_router_each(r->pool_pos, segments);
        xcp_u64 neg = more <= 0 ? 0 : (xcp_u64)more < most_neg ? (xcp_u64)more : most_neg, pos;
        more = upstream + (xcp_s64)neg;
        pos = more <= 0 ? 0 : (xcp_u64)more;
        r->pool_pos -= (pos < most_pos ? pos : most_pos) * segments;
        r->pool_neg -= neg * segments;
    }
}

XCP_INLINE void xcp_router_depart(struct xcp_router *r, xcp_u64 now, xcp_u32 size,
                                  struct xcp_forward *h, xcp_u64 backlog, xcp_u32 usual) {
    struct xcp_path p;
    xcp_u64 dither = xcp_dither_next(&r->random);
    xcp_router_tick(r, now, backlog);
    if (!usual && !(h->flags & XCP_PRESENT))
        return;
    xcp_router_read(h, &p, usual);
    xcp_router_settle(r, xcp_law_size(&r->law, size), 1, &p, h, dither, usual);
}

XCP_COLD void xcp_router_depart_any(struct xcp_router *r, xcp_u64 now, xcp_u32 size,
                                    struct xcp_forward *h, xcp_u64 backlog) {
    xcp_router_depart(r, now, size, h, backlog, 0);
}

/*
 * A packet departs: its header's feedback is lowered to what this link has for it. Size as for the
 * arrival; backlog: bytes waiting when it has left the queue, itself excluded. Lines 20-32.
 */
XCP_INLINE void xcp_router_departure(struct xcp_router *r, xcp_u64 now, xcp_u32 size,
                                     struct xcp_forward *h, xcp_u64 backlog) {
    if (XCP_SPLIT && XCP_LIKELY(xcp_router_is_usual(r, now, h)))
        xcp_router_depart(r, now, size, h, backlog, 1);
    else
        xcp_router_depart_any(r, now, size, h, backlog);
}

/* s: one packet's size on this link; bytes: that of all. What has run out has been closed. */
XCP_INLINE void xcp_router_arrive_and_depart(struct xcp_router *r, xcp_u64 now, xcp_u32 s,
                                             xcp_u64 bytes, xcp_u32 segments, struct xcp_forward *h,
                                             xcp_u32 usual) {
    struct xcp_path p;
    xcp_u64 dither;
    xcp_router_read(h, &p, usual);
    xcp_router_count(r, now, bytes, segments, h, &p, usual);
    dither = xcp_dither_next(&r->random);
    if (usual || (h->flags & XCP_PRESENT))
        xcp_router_settle(r, s, segments, &p, h, dither, usual);
}

XCP_COLD void xcp_router_pass_any(struct xcp_router *r, xcp_u64 now, xcp_u32 size,
                                  struct xcp_forward *h) {
    xcp_u32 s = xcp_law_size(&r->law, size);
    xcp_router_tick(r, now, 0);
    xcp_router_arrive_and_depart(r, now, s, s, 1, h, 0);
}

/*
 * A packet arrives and departs at once: nothing waits and nothing is in transmission. The same as
 * the two calls, whose second tick could not find anything to close after the first.
 */
XCP_INLINE void xcp_router_pass(struct xcp_router *r, xcp_u64 now, xcp_u32 size,
                                struct xcp_forward *h) {
    xcp_u32 s = xcp_law_size(&r->law, size);
    if (XCP_SPLIT && XCP_LIKELY(xcp_router_is_usual(r, now, h))) {
        xcp_router_tick(r, now, 0);
        xcp_router_arrive_and_depart(r, now, s, s, 1, h, 1);
    } else {
        xcp_router_pass_any(r, now, size, h);
    }
}

/*
 * Packets of one flow pass together and share a header, of which each will carry a copy: what
 * segmentation offload hands the kernel's queues in one piece. The header's feedback is for each of
 * them. bytes: all of them on the wire. segments: 1 to XCP_SEGMENTS_MAX. What has run out must have
 * been closed (xcp_router_tick, with the bytes that wait before them). The feedback is settled when
 * they enter the queue, not when they leave it: a kernel program sees a packet only once.
 */
XCP_PART xcp_router_burst(struct xcp_router *r, xcp_u64 now, xcp_u64 bytes, xcp_u32 segments,
                          struct xcp_forward *h) {
    xcp_u64 all, each;
    XCP_PART_NEEDS(r && h && segments);
    all = bytes + (xcp_u64)r->law.overhead * segments;
    each = segments == 1 ? all : all / segments;
    if (each > XCP_SIZE_MAX + XCP_OVERHEAD_MAX)
        each = XCP_SIZE_MAX + XCP_OVERHEAD_MAX;
    if (XCP_LIKELY(xcp_router_is_usual(r, now, h)))
        xcp_router_arrive_and_depart(r, now, (xcp_u32)each, all, segments, h, 1);
    else
        xcp_router_arrive_and_depart(r, now, (xcp_u32)each, all, segments, h, 0);
    return 0;
}

/* A packet has to pass without the law (its state cannot be got at in time). Nobody knows what the
 * link has for it, and a request that comes home as it went out is taken for a grant: it may not
 * ask for more than it has. */
XCP_INLINE void xcp_router_withhold(struct xcp_forward *h) {
    if (!(h->feedback & 0x8000)) /* the sign, in both formats */
        h->feedback = 0;
    if (h->flags & XCP_CLASSIC)
        return;
    h->flags |= XCP_MARK;
}

/* Packets without forward header passed since the last call, whose headers nobody but a counter
 * saw: `bytes` of them on the wire, in `packets`, and of these `returned_bytes` in `returned` of
 * XCP's own acknowledgements; least_backlog: the least that waited before one of them. They arrive
 * and depart at once, but close no interval: the next packet with a header does. */
XCP_INLINE void xcp_router_others(struct xcp_router *r, xcp_u64 bytes, xcp_u64 packets,
                                  xcp_u64 returned_bytes, xcp_u64 returned, xcp_u64 least_backlog) {
    xcp_u64 all = bytes + r->law.overhead * packets,
            xcp = returned_bytes + r->law.overhead * returned;
    r->input += r->law.input == XCP_INPUT_ALL ? all : xcp;
    if (r->law.capacity_for_xcp == XCP_CAPACITY_MINUS_OTHER)
        /* counters read one after another may disagree by a packet */
        r->others += all > xcp ? all - xcp : 0;
    if (least_backlog < r->min_queue)
        r->min_queue = least_backlog;
}

/* As xcp_router_pass, for a packet without forward header. */
XCP_INLINE void xcp_router_other_pass(struct xcp_router *r, xcp_u64 now, xcp_u32 size,
                                      xcp_u32 is_xcp) {
    xcp_router_other_arrival(r, now, size, is_xcp, 0);
    if (r->law.capacity_for_xcp == XCP_CAPACITY_MINUS_OTHER && !is_xcp)
        r->others += xcp_law_size(&r->law, size);
}

#endif
