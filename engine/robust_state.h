/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a router that remembers its promises keeps for one link, and the arithmetic of it. What is
 * done with it: robust.h. */
#ifndef XCP_ROBUST_STATE_H
#define XCP_ROBUST_STATE_H

#include "law.h"
#include "num.h"
#include "path.h"

#define XCP_ROBUST_PARTS 10 /* of a control interval; a window has up to 16 */
#define XCP_ROBUST_PAST 16
#define XCP_ROBUST_SLOTS 256
/* A part's sum of X that has this bit is full, and counts no more: 16 parts, each with a packet
 * beyond, do not wrap. */
#define XCP_ROBUST_FULL 58
#define XCP_ROBUST_PACKET 1500
#define XCP_ROBUST_PACKETS 40 /* least in a part */
#define XCP_ROBUST_FEW 4ULL   /* windows of fewer packets: difference 13 */
#define XCP_ROBUST_TARGET (2 * XCP_ROBUST_PACKET)
#define XCP_ROBUST_TARGET_NS 5000000ULL
#define XCP_ROBUST_AGREEING 4                  /* packets that make a rate */
#define XCP_ROBUST_LEAST_PART 500000ULL        /* ns */
#define XCP_ROBUST_COUNTING 1000000000ULL      /* ns between two counts of TCP's flows */
#define XCP_ROBUST_NEW 2                       /* counts, of which one is whole */
#define XCP_ROBUST_DROP_LEAST 281474976ULL     /* 1e-6, a fraction of 2^48 */
#define XCP_ROBUST_DROP_MOST 56294995342131ULL /* 0.2 */
#define XCP_ROBUST_LN2_512 23258160ULL         /* 512 ln 2, in 2^-16 */

/* Sums over a part, or several. X in 2^-8 ns. */
struct xcp_robust_sums {
    xcp_u64 elapsed; /* ns */
    xcp_u64 all;     /* bytes */
    xcp_u64 xcp;     /* of these XCP's, acknowledgements included */
    xcp_u64 loose;   /* of these the ones with a header whose sender does not keep its rate */
    xcp_u64 at_once; /* of these the ones that were sent at once: difference 15 */
    xcp_u64 tcp;
    xcp_u64 here;    /* of flows limited here */
    xcp_u64 packets; /* whose header says how far apart its flow's are */
    xcp_u64 others;  /* all others */
    xcp_u64 x;
    xcp_u64 x_here;
    xcp_u64 x_unknown; /* of flows that name no link */
    xcp_u64 x_asking;  /* of these two kinds, those that ask for more */
    struct xcp_acc xr; /* X * RTT, 2^-32 ns^2 */
    xcp_u64 found;     /* what each packet found waiting, bytes */
    xcp_u64 least;     /* of what waited, bytes */
    xcp_u64 waited;    /* when it began, bytes */
};

/* Packets of one flow that come together under one header, and what becomes of them. */
struct xcp_robust_pass {
    xcp_u64 now;
    xcp_u64 bytes; /* of all, on this link */
    xcp_u32 size;  /* of each */
    xcp_u32 segments;
    struct xcp_path path;
    xcp_u32 by;      /* the link that limits their flow */
    xcp_u64 rtt;     /* ns, as far as it is believed */
    xcp_u64 x;       /* X, 2^-8 ns */
    xcp_s64 asked;   /* q20: what the header says */
    xcp_s64 granted; /* q20: what there is for each */
    xcp_u64 offered; /* q20: of that, what goes back where it is not taken */
    xcp_u64 taken;   /* q20: what decrease takes of it */
    xcp_u64 dither;
};

/* One link's state. */
struct xcp_robust {
    struct xcp_law law;
    xcp_u64 start_ns;
    xcp_u64 interval_ns; /* of the running part */
    xcp_u64 d_ns;
    xcp_u64 gap;   /* between two packets of a flow, over the last d, ns */
    xcp_u64 apart; /* the lesser one of that and of the part's before */
    xcp_u64 random;
    xcp_u64 begun; /* bytes of first windows, less what has drained: robust_first.h */
    xcp_u64 begun_ns;
    xcp_u64 size_rate; /* a packet of `size` bytes each d, q20 */
    xcp_u32 size;      /* all ones: of another d */
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
    xcp_u64 min_queue;     /* of the running part */
    xcp_u64 last_min;      /* of the one before */
    xcp_u64 waiting;       /* now, bytes */
    xcp_u64 waited_then;   /* when the running part began */
    xcp_u64 waited_before; /* when M began */
    xcp_u64 largest;       /* bytes that came together, in the running part */
    xcp_u64 last_largest;
    xcp_u64 byte_time; /* a byte's at the capacity, 2^-16 ns, below 2^35 */
    /* the capacity, bytes/s, and what it is measured by */
    xcp_u64 capacity;
    xcp_u64 told_for; /* parts since it was last told, or silence ended, no more than matter */
    xcp_u64 measured_parts; /* in M */
    xcp_u64 busy_bytes;
    xcp_u64 busy_ns;
    xcp_u64 idle_ns;
    xcp_u64 busy_until_ns;
    xcp_u64 left_ns;     /* when a packet left last */
    xcp_u64 left_bytes;  /* its size */
    xcp_u64 left_behind; /* what waited then */
    xcp_u64 left_rate;   /* at which the one before it was sent */
    xcp_u64 agreeing;    /* how many in a row had that rate */
    /* TCP */
    xcp_u64 seen[8];   /* a bit for each flow's hash */
    xcp_u32 seen_bits; /* that are set */
    xcp_u32 tcp_new;   /* counts until all of TCP's flows have been counted once */
    xcp_u64 seen_since;
    xcp_u64 tcp_rate;  /* q20 */
    xcp_u64 tcp_right; /* q20; 0 without TCP */
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
    xcp_u64 drain; /* q20: what would drain Q' - Q_T in d */
    xcp_u64 shuffled;
    struct xcp_num flows; /* N */
    /* the calendar */
    xcp_u64 first_ns; /* when its first slot begins */
    xcp_u32 first;    /* where that lies in `due`, which goes round */
    xcp_u8 newest;
    xcp_u8 past_parts;
    xcp_u16 last;    /* no slot after it has anything due */
    xcp_u8 tcp_wait; /* how long TCP's part of the queue takes to leave, as headers say it */
    xcp_u8 early;    /* grants are made when packets enter the queue */
    xcp_u16 wary;    /* the gain is lower because of senders that do not keep their rates */
    xcp_u32 loose;   /* the part of XCP's traffic whose senders do not keep their rates, of 2^32 */
    xcp_u32 gain;    /* the part of the gap that F closes, of 2^32 */
    struct xcp_robust_sums past[XCP_ROBUST_PAST];
    /* over the last d and over M, of the part's end only: here, since BPF's stack is short */
    struct xcp_robust_sums window;
    struct xcp_robust_sums measured;
    xcp_s64 due[XCP_ROBUST_SLOTS]; /* q20 */
    struct xcp_robust_pass pass;   /* the newest, where packets are seen once; elsewhere unused */
};

/* a + b within what q20 holds; both are. */
XCP_ANY(xcp_s64) xcp_robust_sum(xcp_s64 a, xcp_s64 b) {
    const xcp_s64 most = (xcp_s64)XCP_Q20_MAX;
    xcp_s64 sum = a + b;
    return sum > most ? most : sum < -most ? -most : sum;
}

/* v times a fraction of 2^32. */
XCP_ANY(xcp_s64) xcp_robust_part_of(xcp_s64 v, xcp_u32 f) {
    return v < 0 ? -(xcp_s64)xcp_mul_fraction(-(xcp_u64)v, f)
                 : (xcp_s64)xcp_mul_fraction((xcp_u64)v, f);
}

/* a / b as a fraction of 2^32, at most just below 1. */
XCP_ANY(xcp_u32) xcp_robust_fraction(xcp_u64 a, xcp_u64 b) {
    struct xcp_num n = xcp_num_div(xcp_num_of(a), xcp_num_of(b ? b : 1));
    return (xcp_u32)xcp_scale(n.m, n.e + 32, ~0U);
}

/* xcp_rate. */
XCP_ANY(xcp_u64) xcp_robust_rate(xcp_u64 bytes, xcp_u64 elapsed) {
    return xcp_rate(bytes, elapsed);
}

/* How long what is granted now waits before it leaves, ns. */
XCP_INLINE xcp_u64 xcp_robust_wait(const struct xcp_robust *r) {
    const xcp_u64 most = 1ULL << 28; /* bytes */
    return r->early ? (r->waiting < most ? r->waiting : most) * r->byte_time >> 16 : 0;
}

/* bytes of a capacity in so many ns */
XCP_ANY(xcp_u64) xcp_robust_carries(xcp_u64 capacity, xcp_u64 ns) {
    struct xcp_num n = xcp_num_mul(xcp_num_of(capacity), xcp_num_of(ns));
    return xcp_num_u64(xcp_num_div(n, xcp_num_of(XCP_NS_PER_S)), 1ULL << 62);
}

#endif
