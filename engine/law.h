/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The choices that make up a router's law. A named protocol is a preset of them; router.h carries them out.
 *
 * Every value has a number even where router.h does not carry it out yet: xcp_law_check refuses those, so that nobody runs one law and
 * believes it is another.
 */
#ifndef XCP_LAW_H
#define XCP_LAW_H

#include "num.h"

/* Control interval d. */
#define XCP_INTERVAL_MEAN 0 /* mean RTT over flows (Katabi et al. 2002) */
#define XCP_INTERVAL_MAX 1  /* longest RTT seen in the interval ("An Example of Instability in XCP") */

/* What of the link is XCP's. */
#define XCP_CAPACITY_CONFIGURED 0
#define XCP_CAPACITY_MINUS_OTHER 1 /* less the measured traffic of others (XCP-IR); not carried out yet */

/* Whose packets are shuffled. */
#define XCP_SHUFFLE_ALL 0
#define XCP_SHUFFLE_MATCHING 1 /* those whose bottleneck id is this link (iXCP); not carried out yet */

/* Who gets spare bandwidth. */
#define XCP_SPARE_ALL 0
#define XCP_SPARE_SCALED 1  /* by N / N_b (P-XCP); not carried out yet */
#define XCP_SPARE_LIMITED 2 /* the flows limited here, with headroom for the others; not carried out yet */

/* Gain on one packet's feedback. */
#define XCP_GAIN_UNIFORM 0
#define XCP_GAIN_OWN_RTT 1 /* min(1, d / the packet's RTT), on both signs alike, else shares become unfair */

/* What counts as input traffic. */
#define XCP_INPUT_ALL 0
#define XCP_INPUT_XCP 1 /* XCP data and its acknowledgements, as ns-2's XCP queue counts */

/* Katabi et al. 2002, as fractions of 2^32. */
#define XCP_ALPHA 1717986918U /* 0.4 */
#define XCP_BETA 970662609U   /* 0.226 = 0.4^2 * sqrt(2) */
#define XCP_GAMMA 429496730U  /* 0.1 */

#define XCP_CAPACITY_MAX (1ULL << 40)   /* bytes/s: 1.1 TB/s */
#define XCP_INTERVAL_LIMIT (1ULL << 42) /* ns: 4398 s, what the RTT field can say */
#define XCP_OVERHEAD_MAX 65535

struct xcp_law {
    xcp_u64 capacity;           /* bytes/s, 1 .. XCP_CAPACITY_MAX */
    xcp_u64 min_interval_ns;    /* shortest control interval */
    xcp_u64 max_interval_ns;    /* longest one, and the longest RTT that is believed */
    xcp_u64 queue_target;       /* bytes that may stand in the queue */
    xcp_u32 alpha, beta, gamma; /* fractions of 2^32 */
    xcp_u32 overhead;           /* bytes of framing the router cannot see, added to every packet */
    xcp_u8 interval;
    xcp_u8 capacity_for_xcp;
    xcp_u8 shuffle;
    xcp_u8 spare;
    xcp_u8 gain;
    xcp_u8 input;
    xcp_u8 pools; /* charge feedback to residue pools */
    xcp_u8 reserved;
};

/*
 * XCP as published.
 *
 * Shortest interval 100 us: ten packets at 1 Gbit/s; shorter RTTs than that (10 us on a LAN) still count at their own length where the law
 * divides by d, they are only served at a lower gain. Longest 65.536 s: draft-falk-xcp-spec-03 says 1 s or the propagation delay, whichever
 * is longer, and a router that cuts d below the true RTT multiplies the loop's gain by what it cut off, so that flows of 65 s, which the
 * format serves, would oscillate under 1 s. The price: a sender that claims 65 s slows the router for everyone. Whoever knows the longest
 * RTT of their paths and does not trust their senders sets it.
 */
XCP_INLINE void xcp_law_xcp(struct xcp_law *law, xcp_u64 capacity) {
    struct xcp_law xcp = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    xcp.capacity = capacity;
    xcp.min_interval_ns = 100000;
    xcp.max_interval_ns = 65536000000ULL;
    xcp.alpha = XCP_ALPHA;
    xcp.beta = XCP_BETA;
    xcp.gamma = XCP_GAMMA;
    xcp.pools = 1;
    *law = xcp;
}

/* What is wrong with a law. */
#define XCP_LAW_OK 0
#define XCP_LAW_CAPACITY 1
#define XCP_LAW_INTERVALS 2
#define XCP_LAW_ALPHA 3
#define XCP_LAW_OVERHEAD 4
#define XCP_LAW_QUEUE_TARGET 5
#define XCP_LAW_CHOICE 6 /* a value unknown or not carried out */

XCP_INLINE int xcp_law_check(const struct xcp_law *law) {
    if (law->capacity == 0 || law->capacity > XCP_CAPACITY_MAX)
        return XCP_LAW_CAPACITY;
    if (law->min_interval_ns == 0 || law->min_interval_ns > law->max_interval_ns || law->max_interval_ns > XCP_INTERVAL_LIMIT)
        return XCP_LAW_INTERVALS;
    if (law->alpha == 0)
        return XCP_LAW_ALPHA;
    if (law->overhead > XCP_OVERHEAD_MAX)
        return XCP_LAW_OVERHEAD;
    if (law->queue_target > XCP_CAPACITY_MAX)
        return XCP_LAW_QUEUE_TARGET;
    if (law->interval > XCP_INTERVAL_MAX || law->capacity_for_xcp != XCP_CAPACITY_CONFIGURED || law->shuffle != XCP_SHUFFLE_ALL ||
        law->spare != XCP_SPARE_ALL || law->gain > XCP_GAIN_OWN_RTT || law->input > XCP_INPUT_XCP || law->pools > 1 || law->reserved != 0)
        return XCP_LAW_CHOICE;
    return XCP_LAW_OK;
}

#endif
