/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CUBIC (RFC 9438) in integers: what a robust sender (robust_sender.h) bounds itself by where a
 * queue without a router is shared with TCP.
 *
 * Where it differs:
 *
 *   1. Windows in 2^-32 packets, times in 2^-10 s; no window beyond 2^30 packets, no time from the
 *      plateau beyond 128 s.
 *   2. No HyStart++: the sender ends slow start by its own rule. No undo (section 4.9).
 *   3. While something other than this window limits the sender, the epoch's clock stands still
 *      (section 5.8 leaves the manner open).
 */
#ifndef XCP_CUBIC_H
#define XCP_CUBIC_H

#include "roots.h"

#define XCP_CUBIC_MOST (1ULL << 62)
#define XCP_CUBIC_BETA 3006477107U  /* 0.7 (section 4.6), a fraction of 2^32 */
#define XCP_CUBIC_ALPHA 2273806215U /* 3 (1 - beta) / (1 + beta): 9/17 (section 4.3) */
#define XCP_CUBIC_AGAIN 3650722202U /* (1 + beta) / 2: fast convergence (section 4.7) */
#define XCP_CUBIC_TICK 976562ULL    /* 2^-10 s, in ns */
#define XCP_CUBIC_FAR (1ULL << 17)

struct xcp_cubic {
    xcp_u64 cwnd;
    xcp_u64 ssthresh;
    xcp_u64 plateau;  /* W_max */
    xcp_u64 prior;    /* the window before the last reduction */
    xcp_u64 reno;     /* the Reno-friendly estimate of this epoch */
    xcp_u64 epoch_ns; /* 0 before congestion avoidance */
    xcp_u64 last_ns;
    xcp_u32 k;               /* ticks from the epoch's start to the plateau */
    xcp_u32 from_slow_start; /* the next epoch has K = 0 (section 4.8) */
};

/* In slow start from this window. */
XCP_INLINE void xcp_cubic_start(struct xcp_cubic *c, xcp_u64 window) {
    __builtin_memset(c, 0, sizeof(*c));
    c->cwnd = c->reno = window;
    c->ssthresh = XCP_CUBIC_MOST;
    c->from_slow_start = 1;
}

/* Past slow start, with this window as its plateau. */
XCP_INLINE void xcp_cubic_at(struct xcp_cubic *c, xcp_u64 window) {
    xcp_cubic_start(c, window);
    c->ssthresh = c->plateau = c->prior = window;
}

/* RFC 9438 (1), at so many ticks of the epoch: C = 0.4 packets/s^3 is 8/5 of 2^-32 packets per
 * cubic tick. */
XCP_INLINE xcp_u64 xcp_cubic_curve(const struct xcp_cubic *c, xcp_u64 ticks) {
    xcp_u64 far = ticks < c->k ? c->k - ticks : ticks - c->k, by;
    if (far > XCP_CUBIC_FAR)
        far = XCP_CUBIC_FAR;
    by = far * far * far * 8 / 5;
    if (ticks < c->k)
        return by < c->plateau ? c->plateau - by : 0;
    return by < XCP_CUBIC_MOST - c->plateau ? c->plateau + by : XCP_CUBIC_MOST;
}

/* Congestion avoidance (sections 4.2 to 4.5); part: segments acknowledged over the window, a
 * fraction of 2^32. */
XCP_INLINE void xcp_cubic_avoid(struct xcp_cubic *c, xcp_u64 now, xcp_u64 srtt_ns, xcp_u32 part) {
    xcp_u64 ticks, curve, target;
    if (c->epoch_ns == 0) {
        if (c->from_slow_start || c->plateau < c->cwnd) {
            c->plateau = c->cwnd;
            c->k = 0;
        } else { /* (W_max - cwnd) / C, in cubic ticks */
            c->k = (xcp_u32)xcp_icbrt((c->plateau - c->cwnd) / 8 * 5);
        }
        c->reno = c->cwnd;
        c->epoch_ns = now ? now : 1;
    }
    ticks = (now - c->epoch_ns) / XCP_CUBIC_TICK;
    c->reno += c->reno >= c->prior ? part : xcp_mul_fraction(part, XCP_CUBIC_ALPHA);
    curve = xcp_cubic_curve(c, ticks);
    if (curve < c->reno) { /* the Reno-friendly region */
        if (c->cwnd < c->reno)
            c->cwnd = c->reno;
        return;
    }
    /* towards where the curve will be a round trip from now, by at most half per round trip */
    target = xcp_cubic_curve(c, ticks + srtt_ns / XCP_CUBIC_TICK);
    if (target > c->cwnd + (c->cwnd >> 1))
        target = c->cwnd + (c->cwnd >> 1);
    if (target > c->cwnd)
        c->cwnd += xcp_mul_fraction(target - c->cwnd, part);
}

/* So much was acknowledged, 2^-32 packets; limited: by this window. */
XCP_INLINE void xcp_cubic_acked(struct xcp_cubic *c, xcp_u64 now, xcp_u64 srtt_ns, xcp_u64 left,
                                xcp_u32 limited) {
    xcp_u64 since = now - c->last_ns;
    c->last_ns = now;
    if (!limited) {
        if (c->epoch_ns)
            c->epoch_ns += since;
        return;
    }
    if (c->cwnd < c->ssthresh) {
        xcp_u64 step = c->ssthresh - c->cwnd < left ? c->ssthresh - c->cwnd : left;
        c->cwnd += step;
        left -= step;
    }
    if (left) {
        struct xcp_num part = xcp_num_div(xcp_num_of(left), xcp_num_of(c->cwnd));
        xcp_cubic_avoid(c, now, srtt_ns, (xcp_u32)xcp_scale(part.m, part.e + 32, ~0U));
    }
    if (c->cwnd > XCP_CUBIC_MOST)
        c->cwnd = XCP_CUBIC_MOST;
}

/* Section 4.6 and 4.7, with so much in flight. */
XCP_INLINE void xcp_cubic_lost(struct xcp_cubic *c, xcp_u64 flight) {
    xcp_u64 least = 1ULL << 32;
    c->prior = c->cwnd;
    c->plateau = c->cwnd < c->plateau ? xcp_mul_fraction(c->cwnd, XCP_CUBIC_AGAIN) : c->cwnd;
    c->ssthresh = xcp_mul_fraction(flight, XCP_CUBIC_BETA);
    if (c->ssthresh < least)
        c->ssthresh = least;
    c->cwnd = c->ssthresh;
    c->epoch_ns = 0;
    c->from_slow_start = 0;
}

/* Section 4.8. */
XCP_INLINE void xcp_cubic_timeout(struct xcp_cubic *c, xcp_u64 flight) {
    xcp_cubic_lost(c, flight);
    if (c->ssthresh < 2ULL << 32)
        c->ssthresh = 2ULL << 32;
    c->cwnd = 1ULL << 32;
    c->from_slow_start = 1;
}

#endif
