/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The robust sender's bound B on what is in flight: what a round of acknowledgements tells of a
 * queue that no router governs, and what becomes of B, and of who is heard, at its end. Differences
 * 4 to 8, 10, 13, 14 and 16 to 20 of robust_sender.h, which also has what happens within a round.
 */
#ifndef XCP_ROBUST_BOUND_H
#define XCP_ROBUST_BOUND_H

#include "robust_sender_state.h"

/* Whether W has come up to B, so that B is what limits. */
XCP_INLINE xcp_u32 xcp_robust_has_come(const struct xcp_robust_sender *s) {
    return xcp_robust_times(s->bound, s->base_ns, xcp_robust_srtt(s)) <= s->explicit_window;
}

/* What a bound of w grows by in a round, after so many rounds in which it has grown. */
XCP_INLINE xcp_u64 xcp_robust_growth(xcp_u64 w, xcp_u32 grown) {
    xcp_u64 root = (xcp_isqrt(w) << 16) >> 3; /* sqrt(2^32 w) = 2^16 sqrt(w) */
    return xcp_robust_less(root * (grown > 8 ? grown - 7 : 1) + XCP_ROBUST_STEP, w >> 2);
}

/* What W grows by in a round at most where the path jumps. */
XCP_INLINE xcp_u64 xcp_robust_slowly(xcp_u64 w) {
    return xcp_robust_more(w / 16, XCP_ROBUST_ONE);
}

XCP_INLINE void xcp_robust_compete(struct xcp_robust_sender *s, xcp_u64 window) {
    s->mode = XCP_ROBUST_COMPETE;
    s->competes += s->competes < 255;
    xcp_cubic_at(&s->cubic, window);
    s->bound = window;
    s->empty = 0;
    s->stuck = 0;
}

XCP_INLINE void xcp_robust_bind(struct xcp_robust_sender *s, xcp_u64 before, xcp_u64 bound) {
    s->binds += s->binds < 255;
    s->mode = XCP_ROBUST_DELAY;
    s->before = before;
    s->bound = xcp_robust_more(bound, XCP_ROBUST_ONE / 8);
    s->stuck = 1;
    s->flat = 0;
    s->skip = 1;
    s->grown = 0;
    s->over = 0;
}

/* FREE; where losses counted, for a trial: difference 19. */
XCP_INLINE void xcp_robust_free(struct xcp_robust_sender *s) {
    if (s->unseen)
        s->holds = XCP_ROBUST_TRIAL;
    s->mode = XCP_ROBUST_FREE;
    s->bound = XCP_ROBUST_UNBOUNDED;
    s->over = 0;
    s->slow_start = 0;
    s->cuts = 0;
    s->unseen = 0;
    s->missed = s->came = 0;
}

/* What is lost at random counts from twice as much on: difference 19. */
XCP_INLINE void xcp_robust_is_random(struct xcp_robust_sender *s) {
    xcp_u64 lost = (xcp_u64)s->missed + XCP_ROBUST_MISSED / 2;
    xcp_u64 twice = 2 * XCP_ROBUST_PART_OF * lost / (s->came ? s->came : 1);
    s->parts = (xcp_u8)xcp_robust_less(xcp_robust_more(twice, XCP_ROBUST_PART + 1), 255);
}

/* W below B three times: FREE, and after COMPETE a longer path is known as one: difference 7.
 * bound: B, without what it has just grown by, which is only asked for now. coming: what was asked
 * for is. */
XCP_INLINE void xcp_robust_release(struct xcp_robust_sender *s, xcp_u64 bound, xcp_u32 coming) {
    s->over = s->routed && !coming && s->explicit_window < bound ? s->over + 1 : 0;
    if (s->over >= 3) {
        if (s->mode == XCP_ROBUST_COMPETE) {
            s->explicit_window = xcp_robust_more(s->explicit_window, xcp_robust_flight(s));
            s->base_ns = s->least_ns;
        }
        xcp_robust_free(s);
    }
}

/* What a round was like. */
struct xcp_robust_round {
    xcp_u64 infl;
    xcp_u64 mean;
    xcp_u64 tau;
    xcp_u64 flight;
    xcp_u64 delivered; /* in a base RTT, 2^-32 packets */
    xcp_u32 heavy;
    xcp_u32 push;
    xcp_u32 still;
    xcp_u32 slow;    /* as difference 16 has it */
    xcp_u32 jumps;   /* the path does, or losses count: RTTs say nothing */
    xcp_u32 waits;   /* acknowledgements do, by a receiver's clock */
    xcp_u32 shows;   /* RTTs show a queue again: difference 18 */
    xcp_u32 doubted; /* the receiver's clock was: difference 17 */
};

/* What of the flight a queue leaves room for, half at least. */
XCP_INLINE xcp_u64 xcp_robust_share(const struct xcp_robust_sender *s,
                                    const struct xcp_robust_round *q) {
    return xcp_robust_more(xcp_robust_times(q->flight, s->base_ns, q->mean), q->flight >> 1);
}

XCP_PART xcp_robust_round_free(struct xcp_robust_sender *s, const struct xcp_robust_round *q) {
    xcp_u32 evident;
    XCP_PART_NEEDS(s && q);
    evident = s->acked >= XCP_ROBUST_TELLING &&
              s->high >= (s->vanished ? XCP_ROBUST_EVIDENCE_VANISHED : XCP_ROBUST_EVIDENCE) &&
              s->high_fb > -(xcp_s64)xcp_mul_fraction(q->flight, XCP_ROBUST_TENTH);
    if (s->limited && evident) {
        xcp_robust_bind(
            s, q->flight,
            xcp_robust_more(q->delivered, xcp_robust_less(s->explicit_window, q->flight) >> 2));
    } else if (q->heavy) {
        xcp_u64 had = xcp_robust_more(q->delivered, XCP_ROBUST_ONE);
        xcp_robust_bind(s, had, xcp_mul_fraction(had, XCP_ROBUST_SEVEN_TENTHS));
    }
    return 0;
}

XCP_PART xcp_robust_round_delay(struct xcp_robust_sender *s, const struct xcp_robust_round *q) {
    xcp_u64 by = 0;
    XCP_PART_NEEDS(s && q);
    if (q->infl < q->tau >> 1) {
        if (s->stuck > XCP_ROBUST_STANDS)
            s->bound = xcp_robust_less(2 * s->bound, s->before);
        s->stuck = 0;
    } else if (s->stuck) {
        s->stuck++;
    }
    s->flat = s->stuck && q->still ? s->flat + 1 : 0;
    if (s->stuck == XCP_ROBUST_STANDS) {
        s->bound = xcp_robust_more(xcp_robust_share(s, q) >> 1, XCP_ROBUST_ONE / 8);
        s->stuck++;
        s->skip = 2;
    } else if (s->skip) {
        s->skip--;
    } else if (q->heavy || (q->infl > q->tau && (q->push || q->infl > 2 * q->tau))) {
        xcp_u64 cut = q->heavy && q->infl < q->tau
                          ? xcp_mul_fraction(q->flight, XCP_ROBUST_SEVEN_TENTHS)
                          : xcp_robust_share(s, q);
        if (!s->stuck) {
            s->before = q->flight;
            s->stuck = 1;
        }
        s->bound = xcp_robust_more(cut + xcp_robust_growth(q->flight, 0), XCP_ROBUST_ONE / 8);
        s->skip = 1;
        s->grown = 0;
    } else if (s->limited && xcp_robust_has_come(s)) {
        s->grown += s->grown < 0xffff;
        by = xcp_robust_growth(s->bound, s->grown);
        s->bound = xcp_robust_less(s->bound + by, XCP_ROBUST_WINDOW_MOST);
    }
    if (s->stuck > XCP_ROBUST_OTHERS || s->flat > 3) {
        s->empties = s->empties < 8 ? 2 * s->empties : 16;
        xcp_robust_compete(s, s->before);
    } else {
        xcp_robust_release(s, s->bound - by, s->fb > 0);
    }
    return 0;
}

XCP_PART xcp_robust_round_compete(struct xcp_robust_sender *s, const struct xcp_robust_round *q) {
    xcp_u64 flight;
    xcp_u32 waits;
    XCP_PART_NEEDS(s && q);
    flight = q->flight;
    waits = s->skip;
    if (s->slow_start && (s->lost || (!s->unseen && q->infl > q->tau))) {
        s->slow_start = 0;
        if (!s->unseen) {
            xcp_robust_bind(s, flight, xcp_robust_share(s, q));
            return 0;
        }
        if (s->cubic.cwnd < s->cubic.ssthresh) /* what was lost is a round trip ago: half */
            flight = flight / 7 * 5;
    }
    s->skip = 0;
    /* as long as losses do not count, one at an empty queue is not congestion's */
    if (s->lost &&
        (xcp_robust_heeds_losses(s) ? !waits : s->most_ns - s->base_ns > q->tau >> 1 || q->heavy)) {
        xcp_cubic_lost(&s->cubic, flight);
        s->bound = s->cubic.cwnd;
        s->skip = 1;
        if (s->since > XCP_ROBUST_SOON) {
            /* the last one has ended it: it is no random loss, and a clock hides what is full */
            if (s->routed && s->unseen && s->cuts && q->waits)
                s->doubted = XCP_ROBUST_VANISHED;
            s->cuts = 0;
        }
        s->cuts += s->cuts < 255;
        s->holds -= s->unseen && s->routed && s->holds;
        s->since = 0;
    }
    s->since += s->since < 255;
    if (!s->slow_start && !q->jumps) {
        s->empty = q->infl < q->tau >> 1 ? s->empty + 1 : 0;
        if (s->empty >= s->empties) {
            s->mode = XCP_ROBUST_DELAY;
            s->stuck = 0;
            s->grown = 0;
            s->skip = 0;
            s->empty = 0;
            s->empties = s->empties > 1 ? s->empties >> 1 : 1;
        }
    }
    xcp_robust_release(s, s->bound, s->fb > 0 && !q->still);
    return 0;
}

/* Whether routers are there: difference 8. */
XCP_INLINE void xcp_robust_listen(struct xcp_robust_sender *s) {
    if (!s->routed || s->marked || s->unmarked == 0 || (s->unmarked < 3 && s->ever))
        return;
    s->routed = 0;
    if (s->bound == XCP_ROBUST_UNBOUNDED) {
        xcp_u64 w = xcp_robust_times(s->explicit_window, xcp_robust_srtt(s), s->base_ns);
        if (s->ever) {
            xcp_robust_compete(s, xcp_robust_less(w, (xcp_u64)(s->acked ? s->acked : 1) << 32));
        } else {
            xcp_robust_compete(s, w);
            xcp_cubic_start(&s->cubic, w);
            s->slow_start = 1;
        }
    }
    s->explicit_window = XCP_ROBUST_UNBOUNDED;
}

/* Whether a trial is so young that W grows by half at most: difference 19. */
XCP_INLINE xcp_u32 xcp_robust_is_gentle(const struct xcp_robust_sender *s) {
    return !s->unseen && s->holds > XCP_ROBUST_TRIAL - XCP_ROBUST_GENTLE;
}

/* The floor of W: difference 10. */
XCP_INLINE xcp_u64 xcp_robust_floor(const struct xcp_robust_sender *s) {
    return s->explicit_window > XCP_ROBUST_ONE
               ? XCP_ROBUST_ONE
               : xcp_robust_more(s->explicit_window >> 1, XCP_ROBUST_LEAST_WINDOW);
}

/* Whether a loss is answered at once, as TCP does. */
XCP_INLINE xcp_u32 xcp_robust_cuts_at_once(const struct xcp_robust_sender *s) {
    return s->lost && xcp_robust_heeds_losses(s) && s->mode == XCP_ROBUST_COMPETE && !s->skip;
}

/* Of so many segments a loss of how many tells of a queue. */
XCP_INLINE xcp_u64 xcp_robust_parts_of(const struct xcp_robust_sender *s) {
    return (xcp_u64)s->came * s->parts / XCP_ROBUST_PART_OF;
}

/* What losses tell: differences 18 and 19. */
XCP_PART xcp_robust_look_at_losses(struct xcp_robust_sender *s, struct xcp_robust_round *q) {
    XCP_PART_NEEDS(s && q);
    s->came += s->lost + s->acked;
    if (s->unseen) {
        if (s->lost && !s->routed && q->waits) {
            s->doubted = XCP_ROBUST_VANISHED;
        } else if (q->infl > 2 * q->tau && !s->lost && (s->routed || !q->doubted)) {
            s->unseen = 0;
            s->holds = s->tries = 0;
            s->parts = XCP_ROBUST_PART;
            q->shows = s->mode == XCP_ROBUST_COMPETE && !s->slow_start;
        } else if (s->routed && !s->slow_start &&
                   (s->holds == 0 || (s->cuts >= XCP_ROBUST_CUTS && s->parts == XCP_ROBUST_PART))) {
            s->parts = XCP_ROBUST_PART;
            if (s->holds)
                xcp_robust_is_random(s);
            s->explicit_window = xcp_robust_window(s);
            xcp_robust_free(s);
        }
    } else if (s->lost && q->infl < q->tau && s->last_infl_ns < q->tau &&
               (!s->routed || s->missed >= XCP_ROBUST_MISSED + xcp_robust_parts_of(s))) {
        s->unseen = 1;
        s->cuts = 0;
        s->tries += s->routed && s->holds && s->tries < XCP_ROBUST_TRIES;
        s->holds = (xcp_u16)(XCP_ROBUST_STAYS << s->tries);
        s->missed = s->came = 0;
        if (s->mode == XCP_ROBUST_FREE) {
            q->flight = xcp_robust_more(q->delivered, XCP_ROBUST_ONE);
            xcp_robust_compete(s, q->flight);
        }
    } else if (s->holds && --s->holds == 0) {
        s->tries = 0;
        s->parts = XCP_ROBUST_PART;
    }
    if (!s->unseen || s->came >> 30) {
        s->missed -= s->missed / 4;
        s->came -= s->came / 4;
    }
    return 0;
}

/* Whether what is said of TCP's queue may still be true: difference 20. */
XCP_INLINE void xcp_robust_excuse(struct xcp_robust_sender *s) {
    if (!s->excuses)
        s->excused -= s->excused && !s->said && !s->doubted;
    else if (s->excused + XCP_ROBUST_EXCUSE < XCP_ROBUST_EXCUSES)
        s->excused += XCP_ROBUST_EXCUSE;
    else
        s->doubted = XCP_ROBUST_VANISHED;
    if (!s->said || s->doubted)
        s->wait = 0;
    s->excuses = s->said = 0;
}

XCP_PART xcp_robust_round_ends(struct xcp_robust_sender *s, xcp_u64 now) {
    struct xcp_robust_round q;
    xcp_u64 flight, sum, moved;
    xcp_u32 queued;
    XCP_PART_NEEDS(s);
    xcp_robust_listen(s);
    q.mean = s->sum_ns / (s->samples ? s->samples : 1);
    s->spread_ns += (s->most_ns - s->least_ns) / 4 - s->spread_ns / 4;
    q.tau = xcp_robust_more(xcp_robust_matters(s), s->spread_ns + (s->spread_ns >> 1));
    q.flight = flight = xcp_robust_flight(s);
    q.delivered = xcp_robust_times((xcp_u64)s->acked << 32, s->base_ns,
                                   xcp_robust_more(now - s->first_ns, s->base_ns));
    sum = (xcp_u64)s->lost + s->acked;
    /* What is lost to a queue is missed a round later, so the round before tells of it, too. */
    queued = q.mean - s->base_ns > q.tau >> 1 || s->last_infl_ns > q.tau >> 1;
    q.waits = xcp_robust_back(s) > q.tau >> 1;
    q.doubted = s->doubted;
    q.heavy = s->lost >= 3 && (4ULL * s->lost > sum || (20ULL * s->lost > sum && queued));
    if (q.heavy && q.waits && !queued) { /* a clock hides what is full: difference 17 */
        s->doubted = XCP_ROBUST_VANISHED;
    } else if (s->doubted && --s->doubted == 0 && s->unseen && !s->routed) {
        /* as much in flight, of which a part is to be what waits on the way back again */
        q.flight = flight =
            xcp_robust_more(xcp_robust_times(flight, s->base_ns, q.mean), XCP_ROBUST_ONE);
        xcp_robust_compete(s, flight);
    }
    xcp_robust_excuse(s);
    xcp_jumps_round_ends(&s->jumps, q.heavy);
    q.jumps = xcp_jumps_often(&s->jumps);
    q.infl = q.jumps ? 0 : s->least_ns - s->base_ns;
    q.shows = 0;
    xcp_robust_look_at_losses(s, &q);
    flight = q.flight;
    q.jumps |= s->unseen;
    moved = q.infl > s->last_infl_ns ? q.infl - s->last_infl_ns : s->last_infl_ns - q.infl;
    q.still = moved < q.infl >> 4;
    q.push = !s->routed || s->fb > (xcp_s64)(flight / 50);
    if (q.infl < q.tau >> 1) {
        if (s->mode == XCP_ROBUST_DELAY && s->stuck && s->last_infl_ns > 2 * q.tau)
            s->vanished = XCP_ROBUST_VANISHED;
        else if (s->vanished)
            s->vanished--;
    }
    q.slow = !q.jumps && q.mean > xcp_robust_twice(s);
    s->high = q.infl > q.tau || q.slow ? s->high + 1 : 0;
    s->high_fb = q.infl < q.tau >> 1 && !q.slow ? 0 : s->high_fb - (s->high_fb >> 3) + s->fb;
    if (q.jumps && s->mode == XCP_ROBUST_DELAY)
        xcp_robust_compete(s, flight);
    if (q.shows)
        xcp_robust_bind(s, flight, xcp_robust_share(s, &q));
    else if (s->mode == XCP_ROBUST_FREE)
        xcp_robust_round_free(s, &q);
    else if (s->mode == XCP_ROBUST_DELAY)
        xcp_robust_round_delay(s, &q);
    else
        xcp_robust_round_compete(s, &q);
    if (s->bound != XCP_ROBUST_UNBOUNDED && s->routed) /* difference 7 */
        s->explicit_window = xcp_robust_less(
            s->explicit_window, xcp_robust_more(xcp_robust_flight(s), flight) + s->added);
    s->floor = xcp_robust_floor(s);
    s->last_infl_ns = q.infl;
    s->calm =
        (s->fb < 0 ? -(xcp_u64)s->fb : (xcp_u64)s->fb) < xcp_mul_fraction(flight, XCP_ROBUST_TENTH);
    s->cap = ((xcp_robust_is_gentle(s) ? 3ULL : 16ULL) * s->acked / 2 + 4) << 32;
    s->fills = s->back_last > s->back_then + (s->base_ns >> 22);
    s->back_then = s->back_last;
    if (xcp_robust_follows_slowly(s) && s->routed) {
        xcp_u64 w = s->explicit_window;
        s->cap = xcp_robust_less(s->cap, w + xcp_robust_slowly(w));
        s->floor = xcp_robust_more(s->floor, w - w / 8);
    }
    s->round_ns = now;
    if (s->rounds < XCP_ROBUST_FIRST_ROUNDS)
        s->rounds++;
    xcp_robust_forget_samples(s);
    s->fb = 0;
    s->added = 0;
    s->lost = s->acked = 0;
    s->marked = s->unmarked = 0;
    s->limited = 0;
    return 0;
}

#endif
