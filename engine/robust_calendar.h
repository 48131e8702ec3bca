/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The calendar of promises: what is granted is booked under the time at which it will be seen, and
 * what is due by then is read off it. */
#ifndef XCP_ROBUST_CALENDAR_H
#define XCP_ROBUST_CALENDAR_H

#include "robust_state.h"

/* The place of the calendar's slot number `at`, counted from its first. A mask that the compiler
 * must not take away: BPF's verifier learns nothing of a number from what was found of its copy. */
XCP_INLINE xcp_u32 xcp_robust_slot(const struct xcp_robust *r, xcp_u64 at) {
    at += r->first;
    XCP_OPAQUE(at);
    return (xcp_u32)at & (XCP_ROBUST_SLOTS - 1);
}

/* What is due at a time is `rate` more. */
XCP_INLINE void xcp_robust_book(struct xcp_robust *r, xcp_u64 due_ns, xcp_s64 rate) {
    xcp_u64 slot = due_ns >= r->first_ns ? (due_ns - r->first_ns) >> r->shift : 0;
    xcp_s64 most = (xcp_s64)(r->law.capacity << 20);
    if (slot >= XCP_ROBUST_SLOTS)
        slot = XCP_ROBUST_SLOTS - 1;
    if (r->last < slot)
        r->last = (xcp_u16)slot;
    rate = rate > most ? most : rate < -most ? -most : rate;
    slot = xcp_robust_slot(r, slot);
    r->due[slot] = xcp_robust_sum(r->due[slot], rate);
}

/* Two slots become one. */
XCP_STEP xcp_robust_join(struct xcp_robust *r, xcp_u32 i) {
    xcp_s64 all;
    XCP_PART_NEEDS(r);
    all = xcp_robust_sum(r->due[xcp_robust_slot(r, 2 * i)], r->due[xcp_robust_slot(r, 2 * i + 1)]);
    r->due[xcp_robust_slot(r, i)] = all;
    return 0;
}

/* One becomes two. */
XCP_STEP xcp_robust_halve(struct xcp_robust *r, xcp_u32 i) {
    xcp_s64 all, half;
    XCP_PART_NEEDS(r);
    all = r->due[xcp_robust_slot(r, i)];
    half = all >> 1;
    r->due[xcp_robust_slot(r, 2 * i)] = half;
    r->due[xcp_robust_slot(r, 2 * i + 1)] = all - half;
    return 0;
}

/* What is due in one is due late. */
XCP_STEP xcp_robust_gather(const struct xcp_robust *r, xcp_s64 *late, xcp_u32 i) {
    XCP_PART_NEEDS(r && late);
    *late = xcp_robust_sum(*late, r->due[xcp_robust_slot(r, i)]);
    return 0;
}

/* Slots that are over by `seen_ns` are given up, and slots become twice or half as long where d has
 * become so. */
XCP_PART xcp_robust_turn(struct xcp_robust *r, xcp_u64 seen_ns) {
    xcp_u64 by;
    xcp_u32 shift, i;
    XCP_PART_NEEDS(r);
    by = seen_ns > r->first_ns ? (seen_ns - r->first_ns) >> (r->shift & 63) : 0;
    for (i = 0; i < XCP_ROBUST_SLOTS && i < by; i++)
        r->due[xcp_robust_slot(r, i)] = 0;
    r->first = xcp_robust_slot(r, by);
    r->first_ns += by << (r->shift & 63);
    r->last = r->last > by ? r->last - (xcp_u16)by : 0;
    shift = (xcp_u32)xcp_top_bit((r->d_ns >> 5) | 1);
    if (shift > r->shift) {
        for (i = 0; i < XCP_ROBUST_SLOTS / 2; i++)
            xcp_robust_join(r, i);
        for (i = XCP_ROBUST_SLOTS / 2; i < XCP_ROBUST_SLOTS; i++)
            r->due[xcp_robust_slot(r, i)] = 0;
        r->last >>= 1;
        r->shift++;
    } else if (shift < r->shift) {
        xcp_s64 late = 0;
        for (i = XCP_ROBUST_SLOTS / 2; i < XCP_ROBUST_SLOTS; i++)
            xcp_robust_gather(r, &late, i);
        for (i = XCP_ROBUST_SLOTS / 2; i-- > 0;)
            xcp_robust_halve(r, i);
        i = xcp_robust_slot(r, XCP_ROBUST_SLOTS - 1);
        r->due[i] = xcp_robust_sum(r->due[i], late);
        r->last = r->last < XCP_ROBUST_SLOTS / 2 ? 2 * r->last + 1 : XCP_ROBUST_SLOTS - 1;
        r->shift--;
    }
    return 0;
}

/* What the calendar says: O, and Q' as the rate that would have it drained in d. */
struct xcp_robust_outlook {
    xcp_u64 now;
    xcp_u64 over_ns;  /* M */
    xcp_u64 reach_ns; /* until what is granted now takes effect: d, and what it waits first */
    xcp_s64 y;        /* q20, of all */
    xcp_s64 others;   /* of these not XCP's */
    xcp_u64 queue;    /* bytes, or bytes per slot */
    xcp_s64 owed;
    xcp_s64 gap;   /* q20: slot by slot, what comes then beyond the capacity */
    xcp_u64 drain; /* q20 */
    xcp_u64 start; /* the middle of the slot looked at */
};

/* By how much what comes is then beyond what the link can carry, with what is owed by then. */
XCP_INLINE xcp_s64 xcp_robust_beyond(const struct xcp_robust *r,
                                     const struct xcp_robust_outlook *l) {
    xcp_s64 y = xcp_robust_sum(l->y, l->owed);
    return (y > l->others ? y : l->others) - (xcp_s64)(r->capacity << 20);
}

/* One slot of those within reach. */
XCP_STEP xcp_robust_look_at(const struct xcp_robust *r, struct xcp_robust_outlook *l, xcp_u32 i) {
    xcp_s64 due;
    XCP_PART_NEEDS(r && l);
    due = r->due[xcp_robust_slot(r, i)];
    if (due) {
        if (l->start < l->now) { /* y shows it in part: it was there for a part of M */
            xcp_u64 hidden = l->start + l->over_ns > l->now ? l->start + l->over_ns - l->now : 0;
            due = xcp_robust_part_of(due, xcp_robust_fraction(hidden, l->over_ns));
        }
        l->owed = xcp_robust_sum(l->owed, due);
        l->gap = xcp_robust_beyond(r, l);
    }
    if (l->start >= l->now) {
        if (l->gap >= 0)
            l->queue = xcp_q20_add(l->queue, (xcp_u64)l->gap);
        else
            l->queue = l->queue > -(xcp_u64)l->gap ? l->queue + (xcp_u64)l->gap : 0;
    }
    l->start += 1ULL << (r->shift & 63);
    return 0;
}

/* What is due later, from slot i on, is owed, too. */
XCP_STEP xcp_robust_look_beyond(const struct xcp_robust *r, struct xcp_robust_outlook *l,
                                xcp_u32 i) {
    XCP_PART_NEEDS(r && l);
    for (; i < XCP_ROBUST_SLOTS && i <= r->last; i++) {
        xcp_s64 due = r->due[xcp_robust_slot(r, i)];
        if (due)
            l->owed = xcp_robust_sum(l->owed, due);
    }
    return 0;
}

XCP_STEP xcp_robust_look_ahead(const struct xcp_robust *r, struct xcp_robust_outlook *l) {
    xcp_u64 slot;
    struct xcp_num n;
    xcp_u32 i;
    XCP_PART_NEEDS(r && l);
    slot = 1ULL << (r->shift & 63);
    l->start = r->first_ns + (slot >> 1);
    /* in bytes per slot, so that a rate's part of it is itself */
    l->queue = xcp_robust_rate(l->queue, slot);
    l->gap = xcp_robust_beyond(r, l);
    for (i = 0; i < XCP_ROBUST_SLOTS && (l->start < l->now || l->start - l->now < l->reach_ns); i++)
        xcp_robust_look_at(r, l, i);
    XCP_OPAQUE(i);
    xcp_robust_look_beyond(r, l, i);
    n = xcp_num_div(xcp_num_of(slot), xcp_num_of(r->d_ns));
    l->drain = xcp_num_q20(xcp_num_mul(xcp_num_scaled(l->queue, -20), n));
    return 0;
}

#endif
