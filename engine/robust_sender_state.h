/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the robust sender keeps of a connection, and what follows from it at any time: W, B, the
 * window that is told. What changes B is in robust_bound.h, what packets and acknowledgements do in
 * robust_sender.h, which says what all of it is for.
 */
#ifndef XCP_ROBUST_SENDER_STATE_H
#define XCP_ROBUST_SENDER_STATE_H

#include "cubic.h"
#include "jumps.h"
#include "sender.h"
#include "way_back.h"

#define XCP_ROBUST_UNBOUNDED (~0ULL)
#define XCP_ROBUST_WINDOW_MOST (1ULL << 62)
#define XCP_ROBUST_ONE (1ULL << 32)
#define XCP_ROBUST_LEAST_WINDOW (XCP_ROBUST_ONE >> 5)
#define XCP_ROBUST_STEP (XCP_ROBUST_ONE >> 1)
#define XCP_ROBUST_TAU 10000000ULL  /* ns */
#define XCP_ROBUST_TENTH 429496730U /* fractions of 2^32 */
#define XCP_ROBUST_SEVEN_TENTHS 3006477107U
#define XCP_ROBUST_RESTORE_NS 2000000000ULL
#define XCP_ROBUST_PATIENCE_NS 1000000000ULL
#define XCP_ROBUST_WAIT 40000000ULL       /* ns */
#define XCP_ROBUST_WAIT_MOST 200000000ULL /* ns */

/* Two packets for a receiver that waits for the second one (RFC 1122 §4.2.3.2), and one that is
 * sent meanwhile. */
#define XCP_ROBUST_LEAST_FLIGHT (3 * XCP_ROBUST_ONE)

/* Segments that a round must deliver to say anything of a queue: where it is fewer, each may be
 * acknowledged alone, when the receiver's timer for delayed acknowledgements has run out. */
#define XCP_ROBUST_TELLING 4

/* Rounds of a queue that are evidence, and where one has vanished, for so many rounds without it;
 * so long, too, is a clock not believed that has hidden one. */
#define XCP_ROBUST_EVIDENCE 3
#define XCP_ROBUST_EVIDENCE_VANISHED 12
#define XCP_ROBUST_VANISHED 128

/* Losses that tell of a queue that cannot be seen (difference 18): so many, besides a part of what
 * came, a fortieth where nothing is known; of those that are skipped at once, so many count. */
#define XCP_ROBUST_MISSED 8
#define XCP_ROBUST_PART_OF 240
#define XCP_ROBUST_PART 6
#define XCP_ROBUST_AT_ONCE 4

/* Cuts that tell that there is none (difference 19): so many, each no more rounds after the one
 * before. Cuts after which it is tried in any case, doubled so often at most; the rounds of a
 * trial, and those in which W grows by half at most. */
#define XCP_ROBUST_CUTS 6
#define XCP_ROBUST_SOON 4
#define XCP_ROBUST_STAYS 32
#define XCP_ROBUST_TRIES 4
#define XCP_ROBUST_TRIAL 1024
#define XCP_ROBUST_GENTLE 16

/* Rounds that a queue stands until it is tried, and until it is others' (difference 6). */
#define XCP_ROBUST_STANDS 6
#define XCP_ROBUST_OTHERS 8

/* By how many rounds in which nothing is said of TCP's queue one is made up for whose losses were
 * held to be TCP's, and from how many of these on nothing is believed of it: difference 20. */
#define XCP_ROBUST_EXCUSE 16
#define XCP_ROBUST_EXCUSES 128

/* Rounds after which the first window has been answered: the first answer ends one, what was sent
 * after it the next one. */
#define XCP_ROBUST_FIRST_ROUNDS 2

/* The timer has expired while routers were content; has done so again; or it is congestion. */
#define XCP_ROBUST_OUTAGE 1
#define XCP_ROBUST_OUTAGE_LASTS 2
#define XCP_ROBUST_CONGESTION 3

#define XCP_ROBUST_FREE 0
#define XCP_ROBUST_DELAY 1
#define XCP_ROBUST_COMPETE 2

/* One connection's state. First what the header of a packet needs where nothing bounds the sender,
 * in two cache lines; then what most acknowledgements need; then the rest. */
struct xcp_robust_sender {
    struct xcp_sender xcp; /* its cwnd is min(W, B base / srtt) */
    xcp_u64 base_ns;       /* 0 before the first sample */
    xcp_u64 srtt_ns;
    struct xcp_jumps jumps;
    xcp_u32 back;       /* what acknowledgements wait for on their way, smoothed; 2^10 ns */
    xcp_u8 rounds : 2;  /* that have ended, no more than matter */
    xcp_u8 wait : 4;    /* behind TCP that routers steer, as headers have it */
    xcp_u8 excuses : 1; /* losses of this round were TCP's */
    xcp_u8 routed : 1;  /* routers answer */
    xcp_u8 ever : 1;    /* one did */
    xcp_u8 limited : 1;
    xcp_u8 slow_start : 1;
    xcp_u8 calm : 1;   /* the last round's feedback was less than a tenth of the window */
    xcp_u8 relied : 1; /* all routers on the path rely on the rate being kept */
    xcp_u8 fills : 1;  /* the way back does: difference 17 */
    xcp_u8 unseen : 1; /* losses count, and RTTs do not: difference 18 */
    xcp_u8 said : 1;   /* in this round, that packets waited behind TCP */
    xcp_u8 mode;
    xcp_u8 doubted; /* rounds until the receiver is believed again: differences 17 and 20 */

    xcp_u64 bound;
    xcp_u64 explicit_window; /* W; XCP_ROBUST_UNBOUNDED where no router is */
    xcp_u64 top;             /* the largest window of this base RTT and of the last one */
    xcp_u64 last_top;
    xcp_u64 top_ns;
    xcp_u64 cap;   /* no increase beyond it */
    xcp_u64 floor; /* least W in this round */
    xcp_s64 fb;    /* what feedback came to in this round */
    xcp_u64 added;
    xcp_u64 round_ns;
    xcp_u64 least_ns; /* RTTs of this round */
    xcp_u64 most_ns;
    xcp_u64 sum_ns;
    xcp_u64 saved;      /* W before a timeout */
    xcp_u64 timeout_ns; /* 0 before the first one */
    xcp_u64 restored_ns;
    struct xcp_way_back way_back;
    xcp_u16 back_last; /* what the last one waited for, and the one before the round; 2^20 ns */
    xcp_u16 back_then;
    xcp_u32 samples;
    xcp_u32 acked;
    xcp_u16 gap;   /* segments skipped at once and not found lost yet: difference 18 */
    xcp_u8 marked; /* whether there were answers of routers in this round */
    xcp_u8 outage; /* what the timer's expiries are taken for until something comes: see above */

    xcp_u64 first_ns; /* when the first of those came that acked counts */
    xcp_u64 before;   /* the bound before the first cut */
    xcp_s64 high_fb;  /* what feedback came to in the rounds since the queue stands */
    xcp_u64 spread_ns;
    xcp_u64 last_infl_ns;
    struct xcp_cubic cubic;
    xcp_u32 lost; /* of a gap no more than count: difference 18 */
    xcp_u32 came; /* segments of the last few rounds, or of all in which losses have counted; and of
                   * these, missed */
    xcp_u32 missed;
    xcp_u16 grown;
    xcp_u16 high;
    xcp_u16 holds; /* cuts until a trial, or rounds of it that are left: difference 19 */
    xcp_u8 binds;  /* for those who look, 255 at most */
    xcp_u8 competes;
    xcp_u8 unmarked; /* answers of this round that no router has marked */
    xcp_u8 tries;    /* trials that have failed */
    xcp_u8 parts;    /* of what comes, the part that is not too much to miss; of 240 */
    xcp_u8 cuts;     /* one soon after the other; and rounds since the last */
    xcp_u8 since;
    xcp_u8 stuck; /* 1 and the rounds that the queue stands since the first cut, or 0 */
    xcp_u8 skip : 4;
    xcp_u8 over : 4;
    xcp_u8 excused; /* rounds until all of that is made up for: difference 20 */
    xcp_u8 empty;
    xcp_u8 empties;  /* rounds with an empty queue that end COMPETE */
    xcp_u8 vanished; /* quiet rounds until queues are believed again: difference 14 */
    xcp_u8 flat;     /* rounds running in which the queue has not moved since the first cut */
};

XCP_INLINE void xcp_robust_sender_init(struct xcp_robust_sender *s, xcp_u32 packet_bytes,
                                       xcp_u64 initial) {
    __builtin_memset(s, 0, sizeof(*s));
    xcp_sender_init(&s->xcp, 0, packet_bytes, initial, XCP_ROBUST_LEAST_WINDOW,
                    (xcp_u64)XCP_NO_LIMIT << 32, 1);
    s->explicit_window = initial;
    s->bound = s->cap = XCP_ROBUST_UNBOUNDED;
    s->floor = XCP_ROBUST_ONE;
    s->least_ns = ~0ULL;
    s->routed = s->limited = s->empties = s->relied = 1;
    s->parts = XCP_ROBUST_PART;
}

XCP_INLINE xcp_u64 xcp_robust_less(xcp_u64 a, xcp_u64 b) {
    return a < b ? a : b;
}

XCP_INLINE xcp_u64 xcp_robust_more(xcp_u64 a, xcp_u64 b) {
    return a > b ? a : b;
}

/* v * a / b; unbounded stays so. */
XCP_ANY(xcp_u64) xcp_robust_times(xcp_u64 v, xcp_u64 a, xcp_u64 b) {
    struct xcp_num n;
    if (a == b || b == 0 || v == XCP_ROBUST_UNBOUNDED)
        return v;
    n = xcp_num_div(xcp_num_mul(xcp_num_of(v), xcp_num_of(a)), xcp_num_of(b));
    return xcp_num_u64(n, XCP_ROBUST_WINDOW_MOST);
}

/* What acknowledgements wait for on their way, ns, smoothed as RTTs are. */
XCP_INLINE xcp_u64 xcp_robust_back(const struct xcp_robust_sender *s) {
    return (xcp_u64)s->back << 10;
}

/* The smoothed RTT without that, no shorter than base. */
XCP_INLINE xcp_u64 xcp_robust_srtt(const struct xcp_robust_sender *s) {
    return xcp_robust_more(s->srtt_ns - xcp_robust_less(s->srtt_ns, xcp_robust_back(s)),
                           s->base_ns);
}

/* What routers grant comes sooner or later than they expect: differences 13 and 17. */
XCP_INLINE xcp_u32 xcp_robust_follows_slowly(const struct xcp_robust_sender *s) {
    return s->fills || xcp_jumps_often(&s->jumps);
}

/* Losses count as they do for TCP: difference 18. */
XCP_INLINE xcp_u32 xcp_robust_heeds_losses(const struct xcp_robust_sender *s) {
    return !s->routed || s->unseen;
}

/* The RTTs of a round. */
XCP_INLINE void xcp_robust_forget_samples(struct xcp_robust_sender *s) {
    s->least_ns = ~0ULL;
    s->most_ns = s->sum_ns = 0;
    s->samples = 0;
}

/* The least queue that matters, ns. */
XCP_INLINE xcp_u64 xcp_robust_matters(const struct xcp_robust_sender *s) {
    return xcp_robust_more(XCP_ROBUST_TAU, s->base_ns / 10);
}

/* Whether TCP has filled the queue of a router, which steers it: difference 20. */
XCP_INLINE xcp_u32 xcp_robust_is_steered(const struct xcp_robust_sender *s) {
    return xcp_extended_wait_decode(s->wait) > xcp_robust_matters(s);
}

/* Twice base, but what a receiver may wait for more at the least, ns: difference 16. */
XCP_INLINE xcp_u64 xcp_robust_twice(const struct xcp_robust_sender *s) {
    return s->base_ns + xcp_robust_more(s->base_ns, XCP_ROBUST_WAIT);
}

/* min(W srtt / base, B): what is meant to be in flight. */
XCP_INLINE xcp_u64 xcp_robust_flight(const struct xcp_robust_sender *s) {
    return xcp_robust_less(xcp_robust_times(s->explicit_window, xcp_robust_srtt(s), s->base_ns),
                           s->bound);
}

/* The rate times base. */
XCP_INLINE xcp_u64 xcp_robust_window(const struct xcp_robust_sender *s) {
    return xcp_robust_less(s->explicit_window,
                           xcp_robust_times(s->bound, s->base_ns, xcp_robust_srtt(s)));
}

/* Makes the window that sender.h tells what it has become. */
XCP_INLINE void xcp_robust_settle_window(struct xcp_robust_sender *s, xcp_u64 now) {
    s->xcp.cwnd = xcp_sender_bounded(&s->xcp, xcp_robust_window(s));
    if (xcp_passed(now, s->top_ns, s->base_ns)) {
        s->last_top = s->top;
        s->top = 0;
        s->top_ns = now;
    }
    s->top = xcp_robust_more(s->top, s->xcp.cwnd);
}

#endif
