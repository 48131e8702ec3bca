/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an XCP router keeps for one link. What is done with it: router.h, router_interval.h,
 * limited.h. */
#ifndef XCP_ROUTER_STATE_H
#define XCP_ROUTER_STATE_H

#include "law.h"
#include "path.h"

#define XCP_FIRST_INTERVAL_NS 50000000ULL
#define XCP_ALLOWED_QUEUE_NS 2000000ULL
/* Packets that may pass together. */
#define XCP_SEGMENTS_MAX 65535

/* Of a link that knows, by the ids in headers, which flows it limits (limited.h). */
struct xcp_limited {
    /* this interval's packets of flows limited here */
    xcp_u64 input;                /* bytes */
    struct xcp_acc sum_x;         /* 2^-64 ns */
    struct xcp_acc sum_x_unknown; /* that of packets that name no link at all */
    /* what the last interval's end decided, as for cp and cn */
    struct xcp_num hp; /* the shuffle's two factors */
    struct xcp_num hn;
    struct xcp_num fp; /* spare bandwidth for the flows limited here */
    /* the shuffle's factors were it at its full size: what a flow limited elsewhere would gain
     * here */
    struct xcp_num gp;
    struct xcp_num gn;
    struct xcp_num cap; /* of that */
    xcp_u64 pool_hp;    /* q20 */
    xcp_u64 pool_hn;
};

/* One link's state; 8-byte aligned, no pointers, no padding that matters: it can live in a BPF map.
 * What every packet touches comes first. */
struct xcp_router {
    xcp_u64 next_ns; /* before this nothing has to be closed */
    /* rtt_known, and the law's choices are XCP's own: the common case, see xcp_router_is_usual */
    xcp_u32 usual;
    xcp_u32 rtt_known; /* d comes from packets */
    /* this interval */
    xcp_u64 input;         /* bytes */
    struct xcp_acc sum_x;  /* 2^-64 ns */
    struct xcp_acc sum_xr; /* X * RTT, 2^-32 ns^2 */
    xcp_u64 longest_rtt;   /* ns */
    xcp_u64 min_queue;     /* since queue_start_ns */
    xcp_u64 random;
    /* what the last interval's end decided */
    struct xcp_num cp; /* bytes/s per ns of X */
    struct xcp_num cn; /* bytes/s per byte */
    xcp_u64 pool_pos;  /* q20 */
    xcp_u64 pool_neg;
    struct xcp_law law;
    struct xcp_num d; /* ns */
    xcp_u64 start_ns;
    xcp_u64 interval_ns;
    /* the persistent queue */
    xcp_u64 queue_start_ns;
    xcp_u64 queue_period_ns;
    xcp_u64 queue;
    /* reciprocal of the size seen last, for the classic format: 1 / (size * 1 s in ns) */
    struct xcp_num last_size_recip;
    xcp_u32 last_size;
    /* this link's, for laws that know which link limits a flow; not 0, which is nobody's */
    xcp_u32 id;
    /* for those who look at it */
    xcp_u64 intervals;
    /* longest RTT that is believed: the law's longest interval, or less (policer.h) */
    xcp_u64 believed_rtt_ns;
    xcp_u64 elapsed_ns; /* of the interval closed last */
    xcp_u64 given_pos;  /* what the pools held when the running interval began, q20 */
    xcp_u64 given_neg;
    xcp_u64 short_pos; /* what they were short of since, q20 */
    xcp_u64 short_neg;
    /* which part of what was due the closed interval's pools had, fraction of 2^32 */
    xcp_u32 met_pos;
    xcp_u32 met_neg;
    struct xcp_num closed_sum_x;
    xcp_u64 y;        /* q20: input traffic */
    xcp_s64 f;        /* q20: aggregate feedback */
    xcp_u64 shuffled; /* q20 */
    /* what only some laws need */
    xcp_u64 others; /* this interval's bytes of other traffic that departed */
    /* P-XCP: X of the packets that this link gave no less than they asked for, 2^-64 ns */
    struct xcp_acc sum_x_own;
    struct xcp_limited limited;
};

/*
 * Whether a packet's own gain (XCP_GAIN_OWN_RTT) is less than 1: d / RTT, of as long an RTT as is
 * believed. Who claims a longer one would else be slow to give back what it took.
 */
XCP_INLINE xcp_u32 xcp_router_slower(const struct xcp_router *r, const struct xcp_path *p,
                                     struct xcp_num *gain) {
    struct xcp_num rtt = xcp_num_scaled(p->rtt, p->re), most = xcp_num_of(r->believed_rtt_ns);
    if (xcp_num_less(most, rtt))
        rtt = most;
    if (!xcp_num_less(r->d, rtt))
        return 0;
    *gain = xcp_num_div(r->d, rtt);
    return 1;
}

#endif
