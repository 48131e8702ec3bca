/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The choices that make up a router's law, and the named protocols, each a preset of them.
 * router.h, router_interval.h, limited.h and robust.h carry them out.
 *
 * Choices are independent but for what xcp_law_check refuses: combinations that would count
 * something twice, or ask for what nobody knows.
 */
#ifndef XCP_LAW_H
#define XCP_LAW_H

#include "num.h"

/* Control interval d. */
#define XCP_INTERVAL_MEAN 0 /* mean RTT over flows (Katabi et al. 2002) */
/* longest RTT seen in the interval ("An Example of Instability in XCP") */
#define XCP_INTERVAL_MAX 1

/* What of the link is XCP's. */
#define XCP_CAPACITY_CONFIGURED 0
/* less the traffic of others that departed (XCP-IR, eq. (2)) */
#define XCP_CAPACITY_MINUS_OTHER 1

/* Whose packets are shuffled. */
#define XCP_SHUFFLE_ALL 0
#define XCP_SHUFFLE_MATCHING 1 /* those whose bottleneck id is this link (iXCP, eq. (3)) */

/* Who gets spare bandwidth. */
#define XCP_SPARE_ALL 0
#define XCP_SPARE_SCALED 1 /* all flows, N / N_b times as much (P-XCP) */
/* the flows limited here, with headroom for the others (limited.h) */
#define XCP_SPARE_LIMITED 2

/* Gain on one packet's feedback. */
#define XCP_GAIN_UNIFORM 0
/* min(1, d / the packet's RTT), on both signs alike, else shares become unfair */
#define XCP_GAIN_OWN_RTT 1

/* What counts as input traffic. */
#define XCP_INPUT_ALL 0
#define XCP_INPUT_XCP 1 /* XCP data and its acknowledgements, as ns-2's XCP queue counts */

/* What the router knows of what it has granted. */
#define XCP_CONTROL_DRAFT 0 /* nothing: draft-falk-xcp-spec-03 (router.h) */
/* all of it, and when it will be seen (robust.h); then every choice above is as in the preset
 * `robust` */
#define XCP_CONTROL_CALENDAR 1

/* TCP without XCP in the queue of a router with a calendar. */
#define XCP_TCP_LEFT 0    /* it is nobody's business */
#define XCP_TCP_STEERED 1 /* dropped at random, so that it has what its flows have a right to */

/* How a router with a calendar knows its capacity. */
#define XCP_CAPACITY_GIVEN 0
#define XCP_CAPACITY_MEASURED 1 /* by what departs, never more than it was given */

/* Katabi et al. 2002, as fractions of 2^32. */
#define XCP_ALPHA 1717986918U /* 0.4 */
#define XCP_BETA 970662609U   /* 0.226 = 0.4^2 * sqrt(2) */
#define XCP_GAMMA 429496730U  /* 0.1 */

/* For XCP_SPARE_LIMITED, which hands out more than XCP: two-way traffic oscillates from an alpha of
 * 0.35 on (docs/protocol.md). */
#define XCP_ALPHA_LIMITED 1073741824U /* 0.25 */
#define XCP_BETA_LIMITED 379675109U   /* 0.0884 = 0.25^2 * sqrt(2) */

/* For XCP_CONTROL_CALENDAR: of the gap, each tenth of a round trip. */
#define XCP_ALPHA_CALENDAR 3006477107U /* 0.7 */

#define XCP_CAPACITY_MAX (1ULL << 40)   /* bytes/s: 1.1 TB/s */
#define XCP_INTERVAL_LIMIT (1ULL << 42) /* ns: the RTT field ends at 4397 s */
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
    xcp_u8 pools;      /* charge feedback to residue pools */
    xcp_u8 spare_most; /* XCP_SPARE_SCALED: N / N_b is taken for no more than this */
    xcp_u8 control;
    xcp_u8 tcp;
    xcp_u8 capacity_known;
    xcp_u8 unused[5];
};

/* Packets are taken for at most this long: no link carries longer ones, and products stay in 64
 * bits. */
#define XCP_SIZE_MAX (1U << 24)

/* A packet's size on the link. */
XCP_INLINE xcp_u32 xcp_law_size(const struct xcp_law *law, xcp_u32 size) {
    return (size < XCP_SIZE_MAX ? size : XCP_SIZE_MAX) + law->overhead;
}

/* N / N_b at most: P-XCP's paper names no bound, but a link whose own flows are few would
 * over-allocate without one. */
#define XCP_SPARE_MOST 8

/*
 * XCP as published.
 *
 * Shortest interval 100 us: ten packets at 1 Gbit/s; shorter RTTs than that (10 us on a LAN) still
 * count at their own length where the law divides by d, they are only served at a lower gain.
 * Longest 65.536 s: draft-falk-xcp-spec-03 says 1 s or the propagation delay, whichever is longer,
 * and a router that cuts d below the true RTT multiplies the loop's gain by what it cut off, so
 * that flows of 65 s, which the format serves, would oscillate under 1 s. The price: a sender that
 * claims 65 s slows the router for everyone. Whoever knows the longest RTT of their paths and does
 * not trust their senders sets it (`max-interval` in a scenario); `xcpnet router add` does by
 * itself (docs/linux.md).
 */
XCP_INLINE void xcp_law_xcp(struct xcp_law *law, xcp_u64 capacity) {
    struct xcp_law xcp;
    __builtin_memset(&xcp, 0, sizeof(xcp));
    xcp.capacity = capacity;
    xcp.min_interval_ns = 100000;
    xcp.max_interval_ns = 65536000000ULL;
    xcp.alpha = XCP_ALPHA;
    xcp.beta = XCP_BETA;
    xcp.gamma = XCP_GAMMA;
    xcp.pools = 1;
    xcp.spare_most = XCP_SPARE_MOST;
    *law = xcp;
}

/* The named laws. */
#define XCP_PRESET_XCP 0
/* Sakumoto, Ohsaki & Imase 2010: capacity less other traffic, XCP counted apart; the queue target
 * is the user's */
#define XCP_PRESET_XCP_IR 1
/* "Improving XCP to Achieve Max-Min Fair Bandwidth Allocation", as it stands there */
#define XCP_PRESET_IXCP 2
/* the same with spare bandwidth for the flows limited here, see limited.h */
#define XCP_PRESET_IXCP_R 3
#define XCP_PRESET_P_XCP 4   /* Zhou et al. 2004: spare bandwidth times N / N_b */
#define XCP_PRESET_MAX_RTT 5 /* "An Example of Instability in XCP": d is the longest RTT */
#define XCP_PRESET_OWN_RTT 6 /* gain by every flow's own RTT */
/* a calendar of promises, with iXCP's shares (robust.h) */
#define XCP_PRESET_ROBUST 7
#define XCP_PRESETS 8

/* A preset below XCP_PRESETS. */
XCP_INLINE void xcp_law_preset(struct xcp_law *law, xcp_u32 preset, xcp_u64 capacity) {
    xcp_law_xcp(law, capacity);
    if (preset == XCP_PRESET_XCP_IR) {
        law->capacity_for_xcp = XCP_CAPACITY_MINUS_OTHER;
        law->input = XCP_INPUT_XCP;
    } else if (preset == XCP_PRESET_IXCP) {
        law->shuffle = XCP_SHUFFLE_MATCHING;
    } else if (preset == XCP_PRESET_IXCP_R) {
        law->shuffle = XCP_SHUFFLE_MATCHING;
        law->spare = XCP_SPARE_LIMITED;
        law->alpha = XCP_ALPHA_LIMITED;
        law->beta = XCP_BETA_LIMITED;
    } else if (preset == XCP_PRESET_P_XCP) {
        law->spare = XCP_SPARE_SCALED;
    } else if (preset == XCP_PRESET_MAX_RTT) {
        law->interval = XCP_INTERVAL_MAX;
    } else if (preset == XCP_PRESET_OWN_RTT) {
        law->gain = XCP_GAIN_OWN_RTT;
    } else if (preset == XCP_PRESET_ROBUST) {
        law->control = XCP_CONTROL_CALENDAR;
        law->tcp = XCP_TCP_STEERED;
        law->shuffle = XCP_SHUFFLE_MATCHING;
        law->spare = XCP_SPARE_LIMITED;
        law->alpha = XCP_ALPHA_CALENDAR;
        law->beta = 0;
    }
}

/* What is wrong with a law. */
#define XCP_LAW_OK 0
#define XCP_LAW_CAPACITY 1
#define XCP_LAW_INTERVALS 2
#define XCP_LAW_ALPHA 3
#define XCP_LAW_OVERHEAD 4
#define XCP_LAW_QUEUE_TARGET 5
#define XCP_LAW_CHOICE 6 /* a value unknown */
/* XCP_CAPACITY_MINUS_OTHER and XCP_INPUT_ALL: others' traffic would be taken off twice */
#define XCP_LAW_TWICE 7
/* XCP_SPARE_LIMITED without XCP_SHUFFLE_MATCHING: the shuffle would go on moving rate to flows that
 * cannot use it */
#define XCP_LAW_IDS 8
/* a calendar with choices that it does not know, what belongs to it without one, or a router of the
 * other kind */
#define XCP_LAW_CONTROL 9

/* The longest target with a calendar, as a part of what the link carries in a second, or bytes: its
 * senders take a queue that stands for 10 ms, or less where it varies, for one that no router
 * governs (robust_sender.h). */
#define XCP_CALENDAR_TARGET_PART 200
#define XCP_CALENDAR_TARGET_LEAST 3000

XCP_INLINE int xcp_law_check(const struct xcp_law *law) {
    if (law->capacity == 0 || law->capacity > XCP_CAPACITY_MAX)
        return XCP_LAW_CAPACITY;
    if (law->min_interval_ns == 0 || law->min_interval_ns > law->max_interval_ns ||
        law->max_interval_ns > XCP_INTERVAL_LIMIT)
        return XCP_LAW_INTERVALS;
    if (law->alpha == 0)
        return XCP_LAW_ALPHA;
    if (law->overhead > XCP_OVERHEAD_MAX)
        return XCP_LAW_OVERHEAD;
    if (law->queue_target > XCP_CAPACITY_MAX)
        return XCP_LAW_QUEUE_TARGET;
    if (law->interval > XCP_INTERVAL_MAX || law->capacity_for_xcp > XCP_CAPACITY_MINUS_OTHER ||
        law->shuffle > XCP_SHUFFLE_MATCHING || law->spare > XCP_SPARE_LIMITED ||
        law->gain > XCP_GAIN_OWN_RTT || law->input > XCP_INPUT_XCP || law->pools > 1 ||
        law->spare_most == 0 || law->control > XCP_CONTROL_CALENDAR || law->tcp > XCP_TCP_STEERED ||
        law->capacity_known > XCP_CAPACITY_MEASURED)
        return XCP_LAW_CHOICE;
    if (law->control == XCP_CONTROL_CALENDAR) {
        if (law->queue_target > XCP_CALENDAR_TARGET_LEAST &&
            law->queue_target > law->capacity / XCP_CALENDAR_TARGET_PART)
            return XCP_LAW_QUEUE_TARGET;
        if (law->interval != XCP_INTERVAL_MEAN || law->input != XCP_INPUT_ALL ||
            law->capacity_for_xcp != XCP_CAPACITY_CONFIGURED || law->gain != XCP_GAIN_UNIFORM ||
            law->shuffle != XCP_SHUFFLE_MATCHING || law->spare != XCP_SPARE_LIMITED ||
            !law->pools || law->beta || law->spare_most != XCP_SPARE_MOST)
            return XCP_LAW_CONTROL;
    } else if (law->tcp != XCP_TCP_LEFT || law->capacity_known != XCP_CAPACITY_GIVEN) {
        return XCP_LAW_CONTROL;
    }
    if (law->capacity_for_xcp == XCP_CAPACITY_MINUS_OTHER && law->input == XCP_INPUT_ALL)
        return XCP_LAW_TWICE;
    if (law->spare == XCP_SPARE_LIMITED && law->shuffle != XCP_SHUFFLE_MATCHING)
        return XCP_LAW_IDS;
    return XCP_LAW_OK;
}

#endif
