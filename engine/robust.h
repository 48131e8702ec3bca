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
 *      shorter than half a millisecond, nor than forty packets of 1500 bytes take, for fewer
 *      measure nothing, as far as d / 2; nor than the mean X, for in less not every flow hears of
 *      it (the lesser one of this part's end and the last one's, for windows of one may be a
 *      fallen capacity's and pass).
 *   2. F = alpha (C - y - O - (Q' - Q_T) / d), alpha = 0.7. O is the sum of all grants that y does
 *      not show yet; Q' is the queue at the time when what is granted now takes effect, followed
 *      through the calendar; Q_T two packets, no more than 5 ms of them where there is no TCP, and
 *      the law's target.
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
 *   7. TCP without XCP in the same queue: its packets are dropped at random with a probability
 *      that steers their rate to the part of the link that the number of their flows has a right
 *      to (linear counting, 512 bits, anew each second, or every 4 d where d is more than a
 *      quarter of one; a count holds until the next one is complete or larger). The probability
 *      follows their rate, but begins near what TCP's own equation has for such a rate, for it is
 *      long in coming from nothing. Each side has the same part in draining the queue: TCP's is
 *      counted as its rate, and XCP does not give way for it, but where TCP's rate with it is
 *      still within its right: otherwise few flows of XCP would keep what many of TCP have left,
 *      and the queue would stand. To TCP that takes more than its right XCP gives up nothing of
 *      the rest of the link but its own part in draining the queue, and a quarter of the rest not
 *      even for that. If it has less, it is given it again at once: flows that have given way
 *      altogether send a packet now and then, and so seldom are they heard and measured, too. And
 *      headers say for how long packets wait behind TCP, to senders that would otherwise take that
 *      for a queue that no router governs (robust_sender.h, difference 20).
 *   8. XCP_CAPACITY_MEASURED: C is what departs while packets wait, never more than the law's.
 *   9. Another capacity, told or measured, ends the part. And a decrease is divided among the bytes
 *      that will leave in the next part, which C bounds, not among all that come: it is said to
 *      those that leave.
 *  10. Senders may lie. A decrease that was not said here is booked, for it may be another link's,
 *      but as no more than the packet's size each d: no flow gives up more than it sends. Nobody's
 *      packets are further apart than the longest RTT that is believed, and sums of X stop before
 *      they would wrap.
 *  11. The capacity may be less than was told: a medium is shared, a shaper's rate is wrong. While
 *      packets wait throughout M, C is no more than what left in M; after that it doubles every d,
 *      as far as what was told.
 *  12. A calendar is of use only where senders keep the rate that they are given, which headers say
 *      (XCP_KEEPS). A window that acknowledgements move does not. The loop through such senders
 *      closes no more of the gap in a d than XCP's does, which is stable whatever the delay: where
 *      a part of the traffic is theirs, alpha times this part is no more than XCP's alpha, and M is
 *      no shorter than this part of d, for they send in bursts. Where that lowers alpha, the gap
 *      after silence is not offered whole, nor to whoever comes first alone, but to as many flows
 *      as there were before. The last d with traffic says whose they are.
 *  13. Where flows have fewer than four packets in a d, F closes as much less of the gap: with one
 *      packet each, a part is d, a decision is heard by then and seen when the next packet comes,
 *      and the calendar, which has it due at one time, knows only the day and not the hour. And
 *      all flows may send at one time of the day: then the least queue says nothing of the rest of
 *      it, so Q' starts by as much from the mean one, as packets find it.
 *  14. A SYN is told how large a first window may be: robust_first.h.
 *  15. A first window that is sent at once (XCP_OPENS) is a round trip's traffic in an instant.
 *      Measured over M it is a rate several times the flow's, which everybody would be told to make
 *      room for, and then nothing: so it is measured over d.
 *
 * In a kernel program, which sees each packet once and before it waits, arrival and departure are
 * one (xcp_robust_burst), and 8 cannot be. What is granted there waits behind the queue first: it
 * is booked, and Q' followed, as much later.
 *
 * Booked is what a header says when it leaves, within the capacity, under the time now + its RTT;
 * of flows limited elsewhere only what is taken, for an increase is another link's to give. The
 * calendar has 256 slots of d/64 to d/32; what is due later is booked in the last one.
 */
#ifndef XCP_ROBUST_H
#define XCP_ROBUST_H

#include "dither.h"
#include "robust_first.h"
#include "robust_part.h"
#include "router.h"

/* What a packet without forward header is. */
#define XCP_OTHER_UNKNOWN 0
#define XCP_OTHER_ACK 1 /* XCP's own acknowledgement */
#define XCP_OTHER_TCP 2 /* TCP's data without XCP */

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

/* Ends the part: what was promised of a capacity that is gone is taken back at once. */
XCP_INLINE void xcp_robust_set_capacity(struct xcp_robust *r, xcp_u64 capacity) {
    capacity = capacity == 0 ? 1 : capacity > XCP_CAPACITY_MAX ? XCP_CAPACITY_MAX : capacity;
    if (capacity != r->law.capacity) {
        r->interval_ns = 1;
        r->told_for = 0;
    }
    r->law.capacity = r->capacity = capacity;
}

/* Whether nobody told the capacity, so that it is measured by what leaves. */
XCP_INLINE int xcp_robust_measures(const struct xcp_robust *r) {
    return r->law.capacity_known == XCP_CAPACITY_MEASURED;
}

/* Whether the running part is over. */
XCP_INLINE int xcp_robust_is_due(const struct xcp_robust *r, xcp_u64 now) {
    return xcp_passed(now, r->start_ns, r->interval_ns);
}

/* So many bytes wait. usual: the part is not over. */
XCP_INLINE void xcp_robust_see(struct xcp_robust *r, xcp_u64 now, xcp_u64 backlog, xcp_u32 usual) {
    if (backlog < r->min_queue)
        r->min_queue = backlog;
    r->waiting = backlog;
    if (!usual && XCP_UNLIKELY(xcp_robust_is_due(r, now)))
        xcp_robust_close_part(r, now, backlog);
    if (xcp_robust_measures(r) && backlog == 0 && now > r->busy_until_ns) {
        r->idle_ns += now - (r->busy_until_ns > r->start_ns ? r->busy_until_ns : r->start_ns);
        r->busy_until_ns = now;
    }
}

/* backlog: as for xcp_router_tick. */
XCP_INLINE void xcp_robust_tick(struct xcp_robust *r, xcp_u64 now, xcp_u64 backlog) {
    xcp_robust_see(r, now, backlog, 0);
}

/* The link that limits the packet's flow: difference 6. */
XCP_INLINE xcp_u32 xcp_robust_limited_by(const struct xcp_robust *r, const struct xcp_forward *h) {
    return h->flags & XCP_IDS ? h->bottleneck_id : r->id;
}

/*
 * Whether a packet is of the usual kind: it comes in the middle of a part, with an extended header
 * that says all there is to say of a flow which keeps its rate. As in router.h, the host has the
 * code for such packets in one piece without calls (XCP_SPLIT); both are compiled from the same
 * lines, in which `usual` is 1 where all this is known.
 */
XCP_INLINE int xcp_robust_is_usual(const struct xcp_robust *r, xcp_u64 now,
                                   const struct xcp_forward *h) {
    return (h->flags & (XCP_PRESENT | XCP_CLASSIC | XCP_IDS | XCP_KEEPS | XCP_OPENS)) ==
               (XCP_PRESENT | XCP_IDS | XCP_KEEPS) &&
           h->rtt >= 1 << 11 && h->window >= 1 << 10 && r->rtt_known && !xcp_robust_is_due(r, now);
}

/* The header says more than is believed: difference 10. (path.h bounds X by the RTT that is
 * claimed, not by the one believed.) */
XCP_INLINE void xcp_robust_doubt(const struct xcp_robust *r, struct xcp_robust_pass *of) {
    xcp_u64 most = r->law.max_interval_ns;
    of->rtt = most;
    if (of->x > most << 8) {
        struct xcp_num n = xcp_num_of(most);
        of->path.x = n.m;
        of->path.xe = n.e;
        of->x = most << 8;
    }
}

/* What a header says of its flow, as far as it is believed. */
XCP_INLINE void xcp_robust_read(const struct xcp_robust *r, const struct xcp_forward *h,
                                struct xcp_robust_pass *to, xcp_u32 usual) {
    struct xcp_path *p = &to->path;
    if (usual)
        xcp_path_read_extended(h, p);
    else
        xcp_path_read(h, p);
    to->by = usual ? h->bottleneck_id : xcp_robust_limited_by(r, h);
    to->rtt = (xcp_u64)p->rtt << p->re;
    to->x = xcp_scale(p->x, p->xe + 8, ~0ULL);          /* no more than 2^44: path.h */
    if (XCP_UNLIKELY(to->rtt > r->law.max_interval_ns)) /* and only then may X be */
        xcp_robust_doubt(r, to);
}

/* They are input. */
XCP_INLINE void xcp_robust_count(struct xcp_robust *r, const struct xcp_forward *h,
                                 const struct xcp_robust_pass *of, xcp_u32 usual) {
    const struct xcp_path *p = &of->path;
    xcp_u64 x;
    r->now.all += of->bytes;
    r->now.xcp += of->bytes;
    r->now.found += r->waiting * of->segments;
    if (!usual) {
        r->now.loose += h->flags & XCP_KEEPS ? 0 : of->bytes;
        r->now.at_once += h->flags & XCP_OPENS && p->known ? of->bytes : 0;
    }
    if (of->bytes > r->largest)
        r->largest = of->bytes;
    if ((!usual && !p->known) || XCP_UNLIKELY(r->now.x >> XCP_ROBUST_FULL)) {
        r->now.others += of->segments;
        return;
    }
    r->now.packets += of->segments;
    x = of->x * of->segments;
    if (of->segments > 1) /* one is far below: path.h */
        x = x < 1ULL << XCP_ROBUST_FULL ? x : 1ULL << XCP_ROBUST_FULL;
    r->now.x += x;
    if (XCP_LIKELY(of->rtt == (xcp_u64)p->rtt << p->re)) {
        xcp_acc_add_times(&r->now.xr, (xcp_u64)p->x * p->rtt, p->xe + p->re + 32, of->segments);
    } else {
        struct xcp_num rtt = xcp_num_of(of->rtt);
        xcp_acc_add_times(&r->now.xr, (xcp_u64)p->x * rtt.m, p->xe + rtt.e + 32, of->segments);
    }
    if (of->by == r->id) {
        r->now.x_here += x;
        r->now.here += of->bytes;
    } else if (of->by == 0) {
        r->now.x_unknown += x;
    }
    if ((of->by == r->id || of->by == 0) && !(h->feedback & 0x8000) && h->feedback)
        r->now.x_asking += x;
    if (!usual && !r->rtt_known && of->now - r->start_ns + of->rtt < r->interval_ns)
        r->interval_ns = of->now - r->start_ns + of->rtt;
}

/* One packet that comes, of `bytes` on this link. */
XCP_INLINE void xcp_robust_arrive(struct xcp_robust *r, xcp_u64 now, xcp_u32 bytes,
                                  const struct xcp_forward *h, struct xcp_robust_pass *pass,
                                  xcp_u32 usual) {
    pass->now = now;
    pass->bytes = pass->size = bytes;
    pass->segments = 1;
    xcp_robust_read(r, h, pass, usual);
    xcp_robust_count(r, h, pass, usual);
}

XCP_COLD void xcp_robust_arrive_any(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                    const struct xcp_forward *h, xcp_u64 backlog) {
    struct xcp_robust_pass pass;
    xcp_robust_tick(r, now, backlog);
    xcp_robust_arrive(r, now, xcp_law_size(&r->law, size), h, &pass, 0);
}

/* A packet with forward header arrives, whether or not the queue then takes it. Arguments as for
 * xcp_router_arrival. */
XCP_INLINE void xcp_robust_arrival(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                   const struct xcp_forward *h, xcp_u64 backlog) {
    if (XCP_SPLIT && XCP_LIKELY(xcp_robust_is_usual(r, now, h))) {
        struct xcp_robust_pass pass;
        xcp_robust_see(r, now, backlog, 1);
        xcp_robust_arrive(r, now, xcp_law_size(&r->law, size), h, &pass, 1);
    } else {
        xcp_robust_arrive_any(r, now, size, h, backlog);
    }
}

/* A factor times X or a size, q20, within a pool's part for each of some packets. */
XCP_INLINE xcp_u64 xcp_robust_of_pool(struct xcp_num factor, struct xcp_num of, xcp_u64 pool,
                                      xcp_u32 segments) {
    if (!factor.m)
        return 0;
    return xcp_scale((xcp_u64)factor.m * of.m, factor.e + of.e + 20,
                     xcp_router_each(pool, segments));
}

/* The pool is charged for it. (xcp_limited_take rounds once more, and older presets are to stay
 * what they are.) */
XCP_INLINE xcp_u64 xcp_robust_take(struct xcp_num factor, struct xcp_num of, xcp_u64 *pool,
                                   xcp_u32 segments) {
    xcp_u64 q20 = xcp_robust_of_pool(factor, of, *pool, segments);
    *pool -= q20 * segments;
    return q20;
}

/* The header's request. */
XCP_INLINE void xcp_robust_ask(struct xcp_robust_pass *of, const struct xcp_forward *h,
                               xcp_u32 usual) {
    if (!usual && h->flags & XCP_CLASSIC) {
        struct xcp_num rtt = {of->path.rtt, of->path.re},
                       bytes = xcp_num_mul(xcp_num_of(of->size), xcp_num_of(XCP_NS_PER_S));
        of->asked = xcp_router_from_packets(xcp_classic_feedback_decode(h->feedback),
                                            xcp_num_div(bytes, rtt));
    } else {
        of->asked = xcp_extended_feedback_decode(h->feedback);
    }
}

/* What there is for each of them. */
XCP_INLINE void xcp_robust_offer(struct xcp_robust *r, struct xcp_robust_pass *to) {
    /* the factors of a product need not be normalised */
    struct xcp_num x = {to->path.x, to->path.xe}, size = {to->size, 0};
    xcp_u32 by = to->by, segments = to->segments;
    xcp_s64 f = 0;
    to->offered = 0;
    to->taken = xcp_robust_take(r->cn, size, &r->pool_n, segments);
    if (by == r->id || by == 0) {
        to->offered = xcp_robust_of_pool(r->fp, x, r->pool_fp, segments);
        f = (xcp_s64)to->offered;
        if (by == r->id) { /* pools are within what q20 holds: two and two of them are in 64 bits */
            f += (xcp_s64)xcp_robust_take(r->hp, x, &r->pool_hp, segments);
            f -= (xcp_s64)xcp_robust_take(r->hn, size, &r->pool_hn, segments);
        }
    } else {
        xcp_u64 part = r->cp.m ? xcp_num_product_q20(r->cp, x) : 0;
        if (r->gp.m) { /* limited.h, difference 5 */
            xcp_u64 up = xcp_num_product_q20(r->gp, x), down = xcp_num_product_q20(r->gn, size),
                    gain = up > down ? up - down : 0, cap = xcp_num_product_q20(r->cap, x);
            gain = gain > cap ? cap : gain;
            part = gain > part ? gain : part;
        }
        f = (xcp_s64)part;
    }
    to->granted = xcp_robust_sum(f, -(xcp_s64)to->taken);
}

/* That, encoded as the header's format has it. */
XCP_INLINE void xcp_robust_write(struct xcp_forward *h, const struct xcp_robust_pass *of,
                                 xcp_u32 usual) {
    xcp_u32 negative = of->granted < 0;
    xcp_u64 m = negative ? -(xcp_u64)of->granted : (xcp_u64)of->granted;
    if (!usual && h->flags & XCP_CLASSIC) {
        struct xcp_num rtt = {of->path.rtt, of->path.re};
        struct xcp_num n = xcp_num_div(xcp_num_mul(xcp_num_scaled(m, -20), rtt),
                                       xcp_num_mul(xcp_num_of(of->size), xcp_num_of(XCP_NS_PER_S)));
        h->feedback = h->flags & XCP_WHOLE
                          ? xcp_classic_feedback_encode_whole(n.m, n.e, negative)
                          : xcp_classic_feedback_encode(n.m, n.e, negative, of->dither);
    } else {
        h->feedback = xcp_extended_feedback_encode(m, -20, negative, of->dither);
    }
}

/* What is granted to so many packets alike is due at a time. */
XCP_INLINE void xcp_robust_promise(struct xcp_robust *r, xcp_u64 due_ns, xcp_s64 each,
                                   xcp_u32 segments) {
    xcp_s64 most = (xcp_s64)(r->law.capacity << 20);
    if (segments != 1) { /* the calendar's bound, before the product can overflow */
        xcp_s64 part = (xcp_s64)((xcp_u64)most / segments);
        each = each > part ? most : each < -part ? -most : each * (xcp_s64)segments;
    }
    xcp_robust_book(r, due_ns, each);
}

/* A SYN's request for a first window is lowered to what it may have: robust_first.h. */
XCP_INLINE void xcp_robust_open(struct xcp_robust *r, struct xcp_forward *h,
                                struct xcp_robust_pass *of) {
    xcp_u64 rate = 0, asked;
    xcp_s32 e;
    asked = xcp_extended_window_decode(h->window, &e);
    asked = xcp_num_u64(xcp_num_scaled(asked, e), 1 << 20) * XCP_ROBUST_PACKET;
    xcp_robust_first(r, of->now, asked, &rate);
    of->asked = xcp_extended_feedback_decode(h->feedback);
    of->granted = (xcp_s64)(rate < XCP_Q20_MAX ? rate : XCP_Q20_MAX);
    if (of->granted < of->asked)
        xcp_robust_write(h, of, 0);
}

/* What a packet of this size is a d, q20. Nearly all are of one size, and d is a part's. */
XCP_INLINE xcp_u64 xcp_robust_sends(struct xcp_robust *r, xcp_u32 size) {
    if (XCP_UNLIKELY(r->size != size)) {
        r->size = size;
        r->size_rate = xcp_robust_rate(size, r->d_ns);
    }
    return r->size_rate;
}

/* The header is lowered to what there is for each of them, and what it then says is booked. */
XCP_INLINE void xcp_robust_settle(struct xcp_robust *r, struct xcp_forward *h,
                                  struct xcp_robust_pass *of, xcp_u32 usual) {
    of->dither = xcp_dither_next(&r->random);
    if (usual || !(h->flags & XCP_CLASSIC)) {
        if (r->tcp_wait)
            h->wait = (xcp_u8)xcp_extended_wait_add(h->wait & XCP_WAIT_MAX, r->tcp_wait);
        h->flags |= XCP_MARK;
    }
    if (!usual && !of->path.known) { /* nothing is given, nothing taken, nothing booked */
        if (xcp_is_opening(h))
            xcp_robust_open(r, h, of);
        else if (!(h->feedback & 0x8000))
            h->feedback = 0;
        return;
    }
    xcp_robust_ask(of, h, usual);
    xcp_robust_offer(r, of);
    if (of->granted < of->asked) {
        xcp_robust_write(h, of, usual);
        if (usual || h->flags & XCP_IDS)
            h->next_bottleneck_id = r->id;
        of->asked = of->granted;
    }
    if (of->offered) { /* difference 5 */
        xcp_s64 taken = xcp_robust_sum(of->asked, (xcp_s64)of->taken);
        xcp_u64 most = of->offered;
        r->pool_fp -= (taken <= 0              ? 0
                       : (xcp_u64)taken < most ? (xcp_u64)taken
                                               : most) *
                      of->segments;
    }
    if (of->asked < 0 && of->asked < of->granted) {
        /* Difference 10: a flow's packets add up, over d, to what it sends. */
        xcp_s64 least = -(xcp_s64)xcp_robust_sends(r, of->size);
        least = of->granted < least ? of->granted : least;
        of->asked = of->asked < least ? least : of->asked;
    }
    if (of->by == r->id || of->by == 0 || of->asked < 0)
        xcp_robust_promise(r, of->now + xcp_robust_wait(r) + of->rtt, of->asked, of->segments);
}

/* What leaves is what the capacity is measured by. */
XCP_INLINE void xcp_robust_leave(struct xcp_robust *r, xcp_u64 now, xcp_u32 s, xcp_u64 backlog) {
    if (xcp_robust_measures(r)) {
        if (r->left_behind)
            xcp_robust_took(r, now - r->left_ns);
        r->left_ns = now;
        r->left_bytes = s;
        r->left_behind = backlog;
        r->busy_until_ns = now + s * XCP_NS_PER_S / r->law.capacity;
    }
}

XCP_INLINE void xcp_robust_depart(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                  struct xcp_forward *h, xcp_u64 backlog, xcp_u32 usual) {
    struct xcp_robust_pass pass;
    pass.now = now;
    pass.size = xcp_law_size(&r->law, size);
    pass.segments = 1;
    xcp_robust_see(r, now, backlog, usual);
    xcp_robust_leave(r, now, pass.size, backlog);
    xcp_robust_read(r, h, &pass, usual);
    xcp_robust_settle(r, h, &pass, usual);
}

XCP_COLD void xcp_robust_depart_any(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                    struct xcp_forward *h, xcp_u64 backlog) {
    xcp_robust_depart(r, now, size, h, backlog, 0);
}

/* Apart, since it calls xcp_robust_took. */
XCP_COLD void xcp_robust_depart_measured(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                         struct xcp_forward *h, xcp_u64 backlog) {
    xcp_robust_depart(r, now, size, h, backlog, 1);
}

/* A packet with forward header departs; arguments as for xcp_router_departure. */
XCP_INLINE void xcp_robust_departure(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                     struct xcp_forward *h, xcp_u64 backlog) {
    if (!XCP_SPLIT || XCP_UNLIKELY(!xcp_robust_is_usual(r, now, h)))
        xcp_robust_depart_any(r, now, size, h, backlog);
    else if (XCP_UNLIKELY(xcp_robust_measures(r)))
        xcp_robust_depart_measured(r, now, size, h, backlog);
    else
        xcp_robust_depart(r, now, size, h, backlog, 1);
}

XCP_INLINE void xcp_robust_arrive_and_depart(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                             struct xcp_forward *h, xcp_u32 usual) {
    xcp_u32 bytes = xcp_law_size(&r->law, size);
    struct xcp_robust_pass pass;
    xcp_robust_see(r, now, 0, usual);
    xcp_robust_arrive(r, now, bytes, h, &pass, usual);
    xcp_robust_leave(r, now, bytes, 0);
    xcp_robust_settle(r, h, &pass, usual);
}

XCP_COLD void xcp_robust_pass_any(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                  struct xcp_forward *h) {
    xcp_robust_arrive_and_depart(r, now, size, h, 0);
}

XCP_COLD void xcp_robust_pass_measured(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                       struct xcp_forward *h) {
    xcp_robust_arrive_and_depart(r, now, size, h, 1);
}

/*
 * A packet arrives and departs at once: nothing waits and nothing is in transmission. The same as
 * the two calls, whose second tick could not find anything to close after the first.
 */
XCP_INLINE void xcp_robust_pass(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                struct xcp_forward *h) {
    if (!XCP_SPLIT || XCP_UNLIKELY(!xcp_robust_is_usual(r, now, h)))
        xcp_robust_pass_any(r, now, size, h);
    else if (XCP_UNLIKELY(xcp_robust_measures(r)))
        xcp_robust_pass_measured(r, now, size, h);
    else
        xcp_robust_arrive_and_depart(r, now, size, h, 1);
}

/*
 * Both at once, of packets of one flow that pass together and share a header; arguments as for
 * xcp_router_burst, and as there what has run out must have been closed (xcp_robust_tick, with the
 * bytes that wait before them). The capacity cannot be measured there: nobody sees them leave.
 */
XCP_PART xcp_robust_burst(struct xcp_robust *r, xcp_u64 now, xcp_u64 bytes, xcp_u32 segments,
                          struct xcp_forward *h) {
    /* In the router's own state: of what lies there BPF's verifier knows nothing, and need not
     * follow each of the ways in which it came about. */
    struct xcp_robust_pass *pass;
    xcp_u64 each;
    XCP_PART_NEEDS(r && h && segments);
    pass = &r->pass;
    r->early = 1;
    pass->now = now;
    pass->bytes = bytes + (xcp_u64)r->law.overhead * segments;
    each = segments == 1 ? pass->bytes : pass->bytes / segments;
    pass->size =
        (xcp_u32)(each > XCP_SIZE_MAX + XCP_OVERHEAD_MAX ? XCP_SIZE_MAX + XCP_OVERHEAD_MAX : each);
    pass->segments = segments;
    xcp_robust_read(r, h, pass, 0);
    xcp_robust_count(r, h, pass, 0);
    xcp_robust_settle(r, h, pass, 0);
    return 0;
}

/* Packets without forward header, `bytes` in all on this link, are input: kind is XCP_OTHER_...;
 * flow: a hash of whose they are, for TCP. Returns 0 where they are to be dropped, and so are no
 * input, though their flow counts: of several that are one to whoever drops, as many times as
 * probable as of one, since TCP answers to how often it loses something and not to how much. */
XCP_INLINE int xcp_robust_others(struct xcp_robust *r, xcp_u64 bytes, xcp_u32 segments,
                                 xcp_u32 kind, xcp_u64 flow) {
    if (kind == XCP_OTHER_TCP && r->law.tcp == XCP_TCP_STEERED) {
        xcp_u32 bit = xcp_router_id(flow);
        xcp_u64 *seen = &r->seen[bit >> 6 & 7], one = 1ULL << (bit & 63);
        r->seen_bits += !(*seen & one);
        *seen |= one;
        if (r->drop && xcp_dither_next(&r->random) >> 16 < r->drop * segments)
            return 0;
        r->now.tcp += bytes;
    }
    if (kind == XCP_OTHER_ACK)
        r->now.xcp += bytes;
    r->now.all += bytes;
    r->now.others += segments;
    r->now.found += r->waiting * segments;
    if (bytes > r->largest)
        r->largest = bytes;
    return 1;
}

/* A packet without forward header arrives; returns 0 where it is to be dropped. */
XCP_INLINE int xcp_robust_other_arrival(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                        xcp_u32 kind, xcp_u64 flow, xcp_u64 backlog) {
    xcp_robust_tick(r, now, backlog);
    return xcp_robust_others(r, xcp_law_size(&r->law, size), 1, kind, flow);
}

/* Several pass together, `bytes` on the wire: as for xcp_robust_burst. Returns 0 where they are to
 * be dropped. */
XCP_INLINE int xcp_robust_other_burst(struct xcp_robust *r, xcp_u64 bytes, xcp_u32 segments,
                                      xcp_u32 kind, xcp_u64 flow) {
    return xcp_robust_others(r, bytes + (xcp_u64)r->law.overhead * segments, segments, kind, flow);
}

/* It departs. */
XCP_INLINE void xcp_robust_other_departure(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                           xcp_u64 backlog) {
    xcp_robust_tick(r, now, backlog);
    xcp_robust_leave(r, now, xcp_law_size(&r->law, size), backlog);
}

XCP_COLD int xcp_robust_other_pass_any(struct xcp_robust *r, xcp_u64 now, xcp_u32 size,
                                       xcp_u32 kind, xcp_u64 flow) {
    int admitted = xcp_robust_other_arrival(r, now, size, kind, flow, 0);
    if (admitted)
        xcp_robust_leave(r, now, xcp_law_size(&r->law, size), 0);
    return admitted;
}

/* As xcp_robust_pass, for a packet without forward header; returns 0 where it is to be dropped. */
XCP_INLINE int xcp_robust_other_pass(struct xcp_robust *r, xcp_u64 now, xcp_u32 size, xcp_u32 kind,
                                     xcp_u64 flow) {
    if (!XCP_SPLIT || XCP_UNLIKELY(xcp_robust_is_due(r, now) || xcp_robust_measures(r)))
        return xcp_robust_other_pass_any(r, now, size, kind, flow);
    xcp_robust_see(r, now, 0, 1);
    return xcp_robust_others(r, xcp_law_size(&r->law, size), 1, kind, flow);
}

#endif
