/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The end of a part of a control interval, at a router that remembers its promises: what its sums
 * come to, what may be granted or has to be taken in the next one, by whom, and how often TCP is
 * dropped. Differences, by number: robust.h.
 */
#ifndef XCP_ROBUST_PART_H
#define XCP_ROBUST_PART_H

#include "limited.h"
#include "robust_calendar.h"
#include "roots.h"

XCP_STEP xcp_robust_plus(struct xcp_robust_sums *to, const struct xcp_robust_sums *from) {
    XCP_PART_NEEDS(to && from);
    to->elapsed += from->elapsed;
    to->all += from->all;
    to->xcp += from->xcp;
    to->loose += from->loose;
    to->at_once += from->at_once;
    to->tcp += from->tcp;
    to->here += from->here;
    to->packets += from->packets;
    to->others += from->others;
    to->x += from->x;
    to->x_here += from->x_here;
    to->x_unknown += from->x_unknown;
    to->x_asking += from->x_asking;
    to->found += from->found;
    xcp_acc_plus(&to->xr, &from->xr);
    return 0;
}

/* Whether the last packets that were timed make a rate. */
XCP_INLINE xcp_u32 xcp_robust_agree(const struct xcp_robust *r) {
    return r->agreeing >= XCP_ROBUST_AGREEING;
}

/* The packet that left last was sent in so many ns, and others waited. One that takes longer or
 * shorter may be noise, as on a shared medium; four in a row that agree within an eighth are a
 * rate. Where that is not C within a quarter, C has changed: what was measured before is forgotten,
 * and the part ends. */
XCP_PART xcp_robust_took(struct xcp_robust *r, xcp_u64 ns) {
    xcp_u64 rate, off;
    XCP_PART_NEEDS(r);
    ns = ns ? ns : 1;
    rate = xcp_robust_rate(r->left_bytes, ns) >> 20;
    rate = rate < r->law.capacity ? rate : r->law.capacity;
    off = rate > r->left_rate ? rate - r->left_rate : r->left_rate - rate;
    r->agreeing = off <= r->left_rate >> 3 ? r->agreeing + 1 : 1;
    r->left_rate = rate;
    off = rate > r->capacity ? rate - r->capacity : r->capacity - rate;
    if (xcp_robust_agree(r) && off > r->capacity >> 2) {
        r->busy_bytes = r->busy_ns = 0;
        r->interval_ns = 1;
    }
    r->busy_bytes += r->left_bytes;
    r->busy_ns += ns;
    return 0;
}

/* C is a packet a second at the least, and what was told at the most. */
XCP_INLINE xcp_u64 xcp_robust_between(xcp_u64 c, xcp_u64 most) {
    c = c < XCP_ROBUST_PACKET ? XCP_ROBUST_PACKET : c;
    return c > most ? most : c;
}

/* C from what departed while packets waited, at once where the last ones agree; where nothing waits
 * in a whole part though C is used, C is more: twice as much after d, until something waits. st:
 * the part over d, a fraction of 2^32. */
XCP_PART xcp_robust_measure(struct xcp_robust *r, xcp_u64 elapsed, xcp_u64 all, xcp_u32 st) {
    xcp_u64 most, c;
    XCP_PART_NEEDS(r);
    most = r->law.capacity;
    c = r->capacity;
    if (r->busy_bytes) {
        xcp_u64 m = xcp_robust_rate(r->busy_bytes, r->busy_ns) >> 20;
        xcp_u32 k = xcp_robust_agree(r) ? ~0U : st < 1U << 29 ? st << 2 : 1U << 31;
        m = m < most ? m : most;
        if (m > c)
            c += xcp_mul_fraction(m - c, k);
        else
            c -= xcp_mul_fraction(c - m, k);
        r->busy_bytes = r->busy_ns = 0;
    } else if (r->idle_ns > elapsed / 20 && xcp_robust_rate(all, elapsed) >> 20 > c - c / 10) {
        c += xcp_mul_fraction(c, st);
    }
    r->capacity = xcp_robust_between(c, most);
    return 0;
}

/* C of the next part where it was told (difference 11). While packets wait throughout M it is no
 * more than what left in M, by what came and what waits (which is without the law's overhead), and
 * the largest packet, for the one being sent is in neither. Otherwise it doubles every d,
 * as far as what was told. Where M began before that, or in silence, it is what was told. st: the
 * part over d, a fraction of 2^32. In the kernel, packets that did not get at the law are missing
 * in what left, and in y alike. */
XCP_PART xcp_robust_serve(struct xcp_robust *r, xcp_u64 backlog, xcp_u32 silence, xcp_u32 st) {
    const struct xcp_robust_sums *m;
    xcp_u64 most, c, bare, left;
    XCP_PART_NEEDS(r);
    m = &r->measured;
    most = r->law.capacity;
    c = r->capacity + xcp_mul_fraction(r->capacity, st);
    r->told_for = silence ? 1 : r->told_for <= XCP_ROBUST_PAST ? r->told_for + 1 : r->told_for;
    if (r->told_for <= r->measured_parts) {
        c = most;
    } else if (r->queue) {
        bare = m->all - (m->packets + m->others) * r->law.overhead;
        left = bare + r->waited_before;
        left += r->largest > r->last_largest ? r->largest : r->last_largest;
        left = left > backlog ? left - backlog : 0;
        if (r->law.overhead && bare)
            left = xcp_num_u64(
                xcp_num_div(xcp_num_mul(xcp_num_of(left), xcp_num_of(m->all)), xcp_num_of(bare)),
                1ULL << 62);
        c = xcp_robust_rate(left, m->elapsed) >> 20;
    }
    r->capacity = xcp_robust_between(c, most);
    r->waited_then = backlog;
    r->last_largest = r->largest;
    r->largest = 0;
    return 0;
}

/* How many flows of TCP there are, by the bits that are set: -512 ln(empty / 512). A second that is
 * over counts until the next one is, or has had more. */
XCP_PART xcp_robust_count_tcp(struct xcp_robust *r, xcp_u32 over) {
    xcp_u32 empty, flows;
    XCP_PART_NEEDS(r);
    empty = r->seen_bits < 512 ? 512 - r->seen_bits : 1;
    flows = (xcp_u32)(((9ULL << 16) - xcp_log2_q16(empty)) * XCP_ROBUST_LN2_512 >> 16);
    if (over || flows > r->tcp_flows)
        r->tcp_flows = flows;
    if (over) {
        __builtin_memset(r->seen, 0, sizeof(r->seen));
        r->seen_bits = 0;
        r->tcp_new -= r->tcp_new > 0;
    }
    return 0;
}

/* Where TCP that has come sends more than its right, the least probability of a drop. Until all of
 * its flows have been counted once, that is a sixteenth of what they would have their right with if
 * their RTT were d, 1.5 / w^2 with windows of w packets (Mathis et al. 1997, eq. (3)), or of the
 * most there is: their RTT may be four times d. */
XCP_INLINE xcp_u64 xcp_robust_drop_least(const struct xcp_robust *r, xcp_u64 right) {
    struct xcp_num w, one;
    xcp_u64 p;
    if (!r->tcp_new || !r->rtt_known)
        return XCP_ROBUST_DROP_LEAST;
    w = xcp_num_mul(xcp_num_scaled(right, -20), xcp_num_of(r->d_ns));
    one = xcp_num_mul(xcp_num_of(XCP_NS_PER_S), xcp_num_of(XCP_ROBUST_PACKET));
    w = xcp_num_div(w, xcp_num_mul(one, xcp_num_scaled(r->tcp_flows, -16)));
    w = xcp_num_div(xcp_num_scaled(3, -1), xcp_num_mul(w, w));
    p = xcp_scale(w.m, w.e + 48 - 4, XCP_ROBUST_DROP_MOST / 16);
    return p < XCP_ROBUST_DROP_LEAST ? XCP_ROBUST_DROP_LEAST : p;
}

/* The probability of a drop for TCP, by its rate, and its part of what the queue has to be drained
 * by beyond Q_T, over its right: p grows by e^2 in a second at most. elsewhere: what flows
 * limited elsewhere send is nobody's to divide. */
XCP_PART xcp_robust_steer(struct xcp_robust *r, const struct xcp_robust_sums *part,
                          xcp_u64 elsewhere, const struct xcp_num *here) {
    struct xcp_num share, one = {1U << 31, -31};
    xcp_u64 capacity, right, rate, off, least, p;
    xcp_u32 k, x;
    XCP_PART_NEEDS(r && part && here);
    k = part->elapsed < XCP_NS_PER_S ? xcp_robust_fraction(part->elapsed, XCP_NS_PER_S) : ~0U;
    rate = xcp_robust_rate(part->tcp, part->elapsed);
    if (rate > r->tcp_rate)
        r->tcp_rate += xcp_mul_fraction(rate - r->tcp_rate, k);
    else
        r->tcp_rate -= xcp_mul_fraction(r->tcp_rate - rate, k);
    if (r->tcp_flows <= 1U << 15) { /* no whole flow */
        r->drop = r->tcp_right = 0;
        r->tcp_new = XCP_ROBUST_NEW;
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
    r->tcp_right = right;
    rate = r->tcp_rate + xcp_mul_fraction(r->drain, xcp_robust_fraction(right, capacity));
    least = rate > right ? xcp_robust_drop_least(r, right) : XCP_ROBUST_DROP_LEAST;
    p = r->drop < least ? least : r->drop;
    off = rate > right ? rate - right : right - rate;
    if (off > 2 * right)
        off = 2 * right;
    /* exp(+-x) to the second order, x the error times the time, at most a half */
    {
        struct xcp_num n = xcp_num_div(xcp_num_of(off), xcp_num_of(right));
        n = xcp_num_mul(n, xcp_num_scaled(k, -32));
        x = (xcp_u32)xcp_scale(n.m, n.e + 32, 1U << 31);
    }
    if (rate > right)
        p += xcp_mul_fraction(p, x) + (xcp_mul_fraction(xcp_mul_fraction(p, x), x) >> 1);
    else
        p += (xcp_mul_fraction(xcp_mul_fraction(p, x), x) >> 1) - xcp_mul_fraction(p, x);
    r->drop = p < least ? least : p > XCP_ROBUST_DROP_MOST ? XCP_ROBUST_DROP_MOST : p;
    return 0;
}

/* What flows limited elsewhere would gain here (limited.h, difference 5). */
XCP_PART xcp_robust_headroom(struct xcp_robust *r) {
    const struct xcp_robust_sums *w;
    struct xcp_num d, elsewhere, one, gamma;
    XCP_PART_NEEDS(r);
    w = &r->window;
    d = xcp_num_of(r->d_ns);
    one = xcp_num_of(w->elapsed);
    /* per second, of ns */
    gamma = xcp_num_mul(xcp_num_scaled(r->law.gamma, -32), xcp_num_of(XCP_NS_PER_S));
    r->gn = xcp_num_div(gamma, d);
    r->gp = xcp_num_mul(r->gn, xcp_num_div(xcp_num_of(w->here), xcp_num_scaled(w->x_here, -8)));
    /* a tenth of C by the flows limited elsewhere, at least one, and d */
    elsewhere = xcp_limited_max(xcp_num_scaled(w->x - w->x_here, -8), one);
    elsewhere = xcp_num_mul(xcp_num_div(elsewhere, one), d);
    r->cap = xcp_num_div(xcp_num_scaled(xcp_mul_fraction(r->capacity << 20, XCP_HEADROOM), -20),
                         elsewhere);
    if (!xcp_num_less(r->cp, r->cap)) { /* everybody gets no less than that in any case */
        r->gp.m = 0;
        return 0;
    }
    r->gp = xcp_num_or_least(r->gp);
    r->gn = xcp_num_or_least(r->gn);
    r->cap = xcp_num_or_least(r->cap);
    return 0;
}

/* The shuffle among the flows limited here. */
XCP_PART xcp_robust_shuffle(struct xcp_robust *r) {
    const struct xcp_robust_sums *w;
    xcp_u64 turnover, shuffle, f;
    struct xcp_num h, scale;
    XCP_PART_NEEDS(r);
    w = &r->window;
    f = r->f < 0 ? -(xcp_u64)r->f : (xcp_u64)r->f;
    scale = xcp_num_div(xcp_num_of(r->interval_ns), xcp_num_of(w->elapsed));
    turnover = xcp_mul_fraction(xcp_robust_rate(w->here, w->elapsed), r->law.gamma);
    shuffle = r->interval_ns < r->d_ns
                  ? xcp_mul_fraction(turnover, xcp_robust_fraction(r->interval_ns, r->d_ns))
                  : turnover;
    shuffle = shuffle > f ? shuffle - f : 0;
    r->shuffled = shuffle;
    if (!w->x_here || !w->here) {
        r->pool_hp = r->pool_hn = 0;
        return 0;
    }
    r->pool_hp = r->pool_hn = xcp_q20_add(shuffle, shuffle >> 2);
    h = xcp_num_scaled(shuffle, -20);
    r->hp = xcp_num_div(h, xcp_num_mul(xcp_num_scaled(w->x_here, -8), scale));
    r->hn = xcp_num_div(h, xcp_num_mul(xcp_num_of(w->here), scale));
    r->hp = xcp_num_or_least(r->hp);
    r->hn = xcp_num_or_least(r->hn);
    return 0;
}

/* XCP's bytes that will hear of a decrease in the next part: as many as came, but no more than what
 * the link can carry (difference 9). scale: a part over the last d. */
XCP_INLINE struct xcp_num xcp_robust_heard(const struct xcp_robust *r,
                                           const struct xcp_num *scale) {
    const struct xcp_robust_sums *w = &r->window;
    struct xcp_num come = xcp_num_mul(xcp_num_of(w->xcp), *scale), leave;
    if (r->early)
        return come;
    leave = xcp_num_of(xcp_robust_carries(r->capacity, r->interval_ns));
    leave = xcp_num_div(xcp_num_mul(leave, xcp_num_of(w->xcp)), xcp_num_of(w->all));
    return xcp_num_less(leave, come) ? leave : come;
}

/* Who gets what of F in the next part. */
XCP_PART xcp_robust_divide(struct xcp_robust *r, xcp_u32 silence) {
    struct xcp_num none = {0, XCP_LEAST_E}, one = {1U << 31, -31}, scale, x, open, asking, least,
                   pos, neg;
    const struct xcp_robust_sums *w;
    xcp_u64 f;
    XCP_PART_NEEDS(r);
    w = &r->window;
    f = r->f < 0 ? -(xcp_u64)r->f : (xcp_u64)r->f;
    pos = xcp_num_scaled(r->f > 0 ? f : 0, -20);
    neg = xcp_num_scaled(r->f < 0 ? f : 0, -20);
    least = xcp_num_of(r->interval_ns); /* what one flow's X sums up to in the next part */
    scale = xcp_num_div(least, xcp_num_of(w->elapsed));
    /* as many as sent before the silence, not only whoever comes first: difference 12 */
    if (silence && r->wary && !xcp_num_less(r->flows, one))
        least = xcp_num_mul(least, r->flows);
    x = xcp_num_mul(xcp_num_scaled(w->x, -8), scale);
    open = xcp_num_mul(xcp_num_scaled(w->x_here + w->x_unknown, -8), scale);
    asking = xcp_num_mul(xcp_num_scaled(w->x_asking, -8), scale);
    r->flows = xcp_num_div(xcp_num_scaled(w->x, -8), xcp_num_of(w->elapsed));
    r->cp = r->cn = r->fp = r->hp = r->hn = r->gp = r->gn = r->cap = none;
    if (w->x)
        r->cp = xcp_num_div(pos, silence ? xcp_limited_max(x, least) : x);
    if (w->xcp)
        r->cn = xcp_num_div(neg, xcp_robust_heard(r, &scale));
    r->pool_fp = r->f > 0 ? f : 0;
    r->pool_n = r->f < 0 ? xcp_q20_add(f, f >> 2) : 0;
    asking = xcp_limited_max(asking, least);
    open = xcp_limited_max(w->x_here ? open : x, least);
    r->fp = xcp_num_div(pos, xcp_num_less(asking, open) ? asking : open);
    r->cp = xcp_num_or_least(r->cp);
    r->cn = xcp_num_or_least(r->cn);
    r->fp = xcp_num_or_least(r->fp);
    return 0;
}

/* How a part ended. */
#define XCP_ROBUST_SILENCE 1 /* later than twice its length, or d */
#define XCP_ROBUST_FALLS 2   /* with a shorter queue than the one before */

/* Whether flows have fewer than XCP_ROBUST_FEW packets in a d, and what part of as many, of 2^32:
 * difference 13. */
XCP_INLINE xcp_u32 xcp_robust_are_few(const struct xcp_robust *r) {
    return r->apart > r->d_ns / XCP_ROBUST_FEW;
}

XCP_INLINE xcp_u32 xcp_robust_few(const struct xcp_robust *r) {
    return xcp_robust_fraction(r->d_ns, XCP_ROBUST_FEW * r->apart);
}

/* The gain of the next part: differences 12 and 13. */
XCP_PART xcp_robust_trust(struct xcp_robust *r) {
    struct xcp_num most;
    XCP_PART_NEEDS(r);
    r->gain = r->law.alpha;
    if (xcp_robust_are_few(r))
        r->gain = xcp_mul_fraction(r->gain, xcp_robust_few(r));
    r->wary = 0;
    if (!r->loose)
        return 0;
    most = xcp_num_mul(xcp_num_scaled(XCP_ALPHA, -32), xcp_num_of(r->interval_ns));
    most = xcp_num_div(most, xcp_num_mul(xcp_num_of(r->d_ns), xcp_num_scaled(r->loose, -32)));
    r->wary = xcp_num_less(most, xcp_num_scaled(r->gain, -32));
    if (r->wary)
        r->gain = (xcp_u32)xcp_scale(most.m, most.e + 32, ~0U);
    return 0;
}

/* What XCP has a right to beside TCP that sends more than its own, which makes a queue and takes
 * room that is not TCP's: the rest of the link. Elsewhere 0. */
XCP_INLINE xcp_u64 xcp_robust_right(const struct xcp_robust *r, xcp_u64 others) {
    const struct xcp_robust_sums *m = &r->measured;
    xcp_u64 tcp = xcp_robust_rate(m->tcp, m->elapsed), taken;
    if (r->tcp_right == 0 || (r->tcp_rate <= r->tcp_right && tcp <= r->tcp_right))
        return 0;
    taken = r->tcp_right + (others > tcp ? others - tcp : 0);
    return r->capacity << 20 > taken ? (r->capacity << 20) - taken : 0;
}

/* The least F: of what XCP has, y + O, and its right, which it gives up only for its own part in
 * draining the queue, and never beyond a quarter. What it has less it is given again. Difference
 * 7. */
XCP_INLINE xcp_s64 xcp_robust_least(xcp_s64 has, xcp_u64 right, xcp_u64 drain) {
    xcp_s64 floor = (xcp_s64)(right / 4);
    xcp_s64 keeps = right - floor > drain ? (xcp_s64)(right - drain) : floor;
    if (has > keeps)
        return keeps - has;
    return right && has < floor ? floor - has : 0;
}

/* The queue that has to be drained, bytes: the least one in M, and where flows have few packets as
 * much of what the mean one has beyond it (difference 13). */
XCP_INLINE xcp_u64 xcp_robust_stands(const struct xcp_robust *r) {
    const struct xcp_robust_sums *m = &r->measured;
    xcp_u64 packets = m->packets + m->others, mean = packets ? m->found / packets : 0;
    if (!xcp_robust_are_few(r) || mean <= r->queue)
        return r->queue;
    return r->queue + xcp_mul_fraction(mean - r->queue, ~xcp_robust_few(r));
}

/* Q_T, bytes. For two packets one waits long on a slow link: longer than senders wait for a queue
 * without taking it for one that no router governs (XCP_ROBUST_TAU, of which this is half). TCP in
 * the same queue has it longer in any case. */
XCP_INLINE xcp_u64 xcp_robust_target(const struct xcp_robust *r) {
    xcp_u64 packets = XCP_ROBUST_TARGET;
    xcp_u64 most = r->capacity / (XCP_NS_PER_S / XCP_ROBUST_TARGET_NS);
    return r->tcp_right || packets < most ? packets : most;
}

/* How long what waited throughout the part that has ended takes to leave, as far as it is TCP's:
 * what headers say of it. TCP's is as much of it as it has sent of what the link can carry, in the
 * last d, or where that was more in the last second. Difference 7. */
XCP_INLINE xcp_u8 xcp_robust_tcp_wait(const struct xcp_robust *r) {
    xcp_u64 tcp = xcp_robust_rate(r->window.tcp, r->window.elapsed), ns;
    struct xcp_num n = xcp_num_mul(xcp_num_of(r->last_min), xcp_num_of(r->byte_time));
    if (r->tcp_right == 0)
        return 0;
    tcp = tcp > r->tcp_rate ? tcp : r->tcp_rate;
    ns = xcp_mul_fraction(xcp_scale(n.m, n.e - 16, 1ULL << 40),
                          xcp_robust_fraction(tcp, r->capacity << 20));
    return (xcp_u8)xcp_extended_wait_encode(ns);
}

/* F: differences 2 to 4 and 7. how: XCP_ROBUST_... */
XCP_PART xcp_robust_spare(struct xcp_robust *r, xcp_u64 now, xcp_u64 backlog, xcp_u32 how) {
    const struct xcp_robust_sums *m;
    struct xcp_robust_outlook look = {now, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    xcp_u64 spread, xcp, gap, f, carried, drain, tcp, beyond, target;
    xcp_s64 room, result, least;
    xcp_u32 own;
    XCP_PART_NEEDS(r);
    m = &r->measured;
    spread = xcp_robust_rate(r->window.at_once, r->window.elapsed);
    xcp = xcp_robust_rate(m->xcp - m->at_once, m->elapsed) + spread;
    r->y = xcp_robust_rate(m->all - m->at_once, m->elapsed) + spread;
    look.over_ns = m->elapsed;
    look.reach_ns = r->d_ns + xcp_robust_wait(r);
    look.y = (xcp_s64)r->y;
    look.others = r->y > xcp ? (xcp_s64)(r->y - xcp) : 0;
    look.queue = xcp_robust_stands(r);
    xcp_robust_look_ahead(r, &look);
    r->owed = look.owed;
    room = xcp_robust_sum((xcp_s64)(r->capacity << 20), -(xcp_s64)r->y);
    room = xcp_robust_sum(room, -look.owed);
    /* XCP's own part of the queue, and of TCP's what TCP has a right to: difference 7 */
    r->drain = look.drain;
    own = ~xcp_robust_fraction(r->tcp_right, r->capacity << 20);
    drain = xcp_mul_fraction(look.drain, own);
    tcp = look.drain - drain;
    beyond = r->tcp_rate + tcp > r->tcp_right ? r->tcp_rate + tcp - r->tcp_right : 0;
    drain += tcp > beyond ? tcp - beyond : 0;
    room = xcp_robust_sum(room, -(xcp_s64)drain);
    target = xcp_robust_rate(r->law.queue_target + xcp_robust_target(r), r->d_ns);
    room = xcp_robust_sum(room, (xcp_s64)target);
    r->drain -= r->drain < target ? r->drain : target;
    gap = room < 0 ? -(xcp_u64)room : (xcp_u64)room;
    f = xcp_mul_fraction(gap, r->gain);
    if (how & XCP_ROBUST_SILENCE) {
        f = r->wary ? f : gap;
    } else {
        struct xcp_num sure;
        carried = xcp_robust_carries(r->capacity, m->elapsed) / XCP_ROBUST_PACKET;
        carried = carried > 1ULL << 46 ? 1ULL << 46 : carried ? carried : 1;
        sure = xcp_num_mul(xcp_num_scaled(gap, -20), xcp_num_scaled(xcp_isqrt(carried << 16), -8));
        sure = xcp_num_div(sure, xcp_num_of(r->capacity));
        if (sure.m == 0 || sure.e + 31 < 0) /* below 1 */
            f = xcp_mul_fraction(f, (xcp_u32)xcp_scale(sure.m, sure.e + 32, ~0U));
    }
    result = room < 0 ? -(xcp_s64)f : (xcp_s64)f;
    carried = xcp_robust_carries(r->capacity, r->d_ns);
    if (result > 0 && !(how & XCP_ROBUST_FALLS) && backlog > carried >> 2)
        result = 0;
    least = xcp_robust_least(xcp_robust_sum((xcp_s64)xcp, look.owed),
                             xcp_robust_right(r, (xcp_u64)look.others), drain);
    r->f = result > least ? result : least;
    return 0;
}

/* Sums over the parts of the last d. */
XCP_PART xcp_robust_sum_up(struct xcp_robust *r) {
    struct xcp_robust_sums *w;
    xcp_u32 i;
    XCP_PART_NEEDS(r);
    w = &r->window;
    __builtin_memset(w, 0, sizeof(*w));
    for (i = 0; i < XCP_ROBUST_PAST; i++) {
        if (i < r->past_parts && (i == 0 || w->elapsed < r->d_ns - (r->d_ns >> 10)))
            xcp_robust_plus(w, &r->past[(r->newest - i) & (XCP_ROBUST_PAST - 1)]);
    }
    return 0;
}

/* And over M, with the least queue in it and what waited when it began. Differences 1 and 12. */
XCP_PART xcp_robust_look_back(struct xcp_robust *r) {
    struct xcp_robust_sums *m;
    xcp_u64 over;
    xcp_u32 i;
    XCP_PART_NEEDS(r);
    m = &r->measured;
    __builtin_memset(m, 0, sizeof(*m));
    r->queue = ~0ULL;
    over = xcp_mul_fraction(r->d_ns, r->loose);
    over -= over >> 10;
    for (i = 0; i < XCP_ROBUST_PAST; i++) {
        const struct xcp_robust_sums *s = &r->past[(r->newest - i) & (XCP_ROBUST_PAST - 1)];
        if (i < r->past_parts && (i < 2 || m->elapsed < over)) {
            xcp_robust_plus(m, s);
            r->queue = s->least < r->queue ? s->least : r->queue;
            r->waited_before = s->waited;
            r->measured_parts = i + 1;
        }
    }
    return 0;
}

/* The length of the next part, ns: difference 1. */
XCP_INLINE xcp_u64 xcp_robust_part_length(struct xcp_robust *r) {
    const struct xcp_robust_sums *w = &r->window;
    xcp_u64 part = r->d_ns / XCP_ROBUST_PARTS;
    xcp_u64 least = XCP_ROBUST_PACKETS * XCP_ROBUST_PACKET * XCP_NS_PER_S / r->capacity;
    if (least < XCP_ROBUST_LEAST_PART)
        least = XCP_ROBUST_LEAST_PART;
    if (least > r->d_ns >> 1)
        least = r->d_ns >> 1;
    r->apart = r->gap;
    r->gap = w->packets ? (w->x / w->packets) >> 8 : 0;
    if (r->apart > r->gap)
        r->apart = r->gap;
    if (least < r->apart)
        least = r->apart;
    if (least > r->d_ns)
        least = r->d_ns;
    return part > least ? part : least ? least : 1;
}

/* The end of a part. */
XCP_PART xcp_robust_close_part(struct xcp_robust *r, xcp_u64 now, xcp_u64 backlog) {
    const struct xcp_robust_sums *w;
    struct xcp_robust_sums *m;
    xcp_u64 elapsed, slowest, half;
    xcp_u32 silence, falls, st;
    XCP_PART_NEEDS(r);
    elapsed = now - r->start_ns ? now - r->start_ns : 1;
    silence = elapsed >> 1 > (r->interval_ns > r->d_ns ? r->interval_ns : r->d_ns);
    r->now.elapsed = r->elapsed_ns = elapsed;
    r->now.least = r->min_queue;
    r->now.waited = r->waited_then;
    r->newest = (r->newest + 1) & (XCP_ROBUST_PAST - 1);
    r->past[r->newest] = r->now;
    r->past_parts = silence                           ? 1
                    : r->past_parts < XCP_ROBUST_PAST ? r->past_parts + 1
                                                      : r->past_parts;
    xcp_robust_sum_up(r);
    w = &r->window;
    m = &r->measured;
    if (w->xcp)
        r->loose = xcp_robust_fraction(w->loose, w->xcp);
    xcp_robust_look_back(r);
    if (w->x) {
        r->d_ns = xcp_num_u64(xcp_num_div(xcp_acc_num(&w->xr, -32), xcp_num_scaled(w->x, -8)),
                              r->law.max_interval_ns);
        if (r->d_ns < r->law.min_interval_ns)
            r->d_ns = r->law.min_interval_ns;
        r->rtt_known = 1;
        r->size = ~0U;
    }
    r->interval_ns = xcp_robust_part_length(r);
    st = elapsed < r->d_ns ? xcp_robust_fraction(elapsed, r->d_ns) : ~0U;
    if (r->law.capacity_known == XCP_CAPACITY_MEASURED) {
        if (now > r->busy_until_ns && backlog == 0)
            r->idle_ns += now - (r->busy_until_ns > r->start_ns ? r->busy_until_ns : r->start_ns);
        xcp_robust_measure(r, elapsed, r->now.all, st);
        r->idle_ns = 0;
    }
    falls = r->min_queue < r->last_min - r->last_min / 50;
    r->last_min = r->min_queue;
    r->min_queue = backlog;
    if (r->law.capacity_known != XCP_CAPACITY_MEASURED)
        xcp_robust_serve(r, backlog, silence, st);
    slowest = (1ULL << 35) - 1;
    r->byte_time = (XCP_NS_PER_S << 16) / r->capacity;
    if (r->byte_time > slowest)
        r->byte_time = slowest;
    xcp_robust_trust(r);
    /* M may be a long silence: a calendar that began before it would end before what is granted now
     * is due, so half of it has to lie ahead */
    half = (xcp_u64)(XCP_ROBUST_SLOTS / 2) << (r->shift & 63);
    xcp_robust_turn(r, now - (m->elapsed < half ? m->elapsed : half));
    xcp_robust_spare(r, now, backlog,
                     (silence ? XCP_ROBUST_SILENCE : 0) | (falls ? XCP_ROBUST_FALLS : 0));
    xcp_robust_divide(r, silence);
    xcp_robust_shuffle(r);
    if (w->x_here && w->here)
        xcp_robust_headroom(r);
    if (r->law.tcp == XCP_TCP_STEERED) {
        xcp_u64 xcp = xcp_robust_rate(m->xcp, m->elapsed),
                here = xcp_robust_rate(w->here, w->elapsed);
        struct xcp_num flows = xcp_num_div(xcp_num_scaled(w->x_here, -8), xcp_num_of(w->elapsed));
        xcp_u32 over =
            xcp_passed(now, r->seen_since,
                       r->d_ns >> 28 ? 4 * r->d_ns : XCP_ROBUST_COUNTING); /* d of a quarter s */
        xcp_robust_count_tcp(r, over);
        if (over)
            r->seen_since = now;
        xcp_robust_steer(r, &r->now, xcp > here ? xcp - here : 0, &flows);
        r->tcp_wait = xcp_robust_tcp_wait(r);
    }
    r->start_ns = now;
    r->intervals++;
    __builtin_memset(&r->now, 0, sizeof(r->now));
    return 0;
}

#endif
