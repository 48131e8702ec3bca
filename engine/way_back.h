/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much longer than at its best an acknowledgement was on its way, by the receiver's clock on it
 * (RFC 7323's TSval): so that a sender which goes by delay (robust_sender.h) does not take what
 * fills the way back for a queue on the way there.
 *
 * The two clocks differ by an amount that nobody knows and that hardly changes. So the least
 * difference between the time at which an acknowledgement comes and the one on it is that of a way
 * back without a queue, and what a difference is beyond that, the acknowledgement has waited.
 *
 *   1. The receiver's clock is Linux's, in milliseconds, so a millisecond is nothing.
 *   2. Nobody waits for longer on the way back than the whole round trip is beyond its least. What
 *      a clock says beyond that is wrong, because it has stood still, with its machine, or is
 *      another one, as of microseconds: nothing of it is believed, and the least is that of now.
 *   3. Clocks do not go alike. The least is forgotten by a millisecond in 2^33 ns, which is 116
 *      parts in a million: a crystal that nobody corrects is good for 50 or so. So a way back that
 *      has become longer for good is its own least some day, if after an hour for half a second.
 */
#ifndef XCP_WAY_BACK_H
#define XCP_WAY_BACK_H

#include "types.h"

#define XCP_NS_PER_MS 1000000ULL
#define XCP_WAY_BACK_FORGETS 33 /* as a power of two, ns: difference 3 */

struct xcp_way_back {
    xcp_u32 least_ms; /* our time less the receiver's, modulo 2^32 */
    xcp_u32 as_of;    /* 1 and the time of the last stamp in 2^33 ns; 0: there was none */
};

/* An acknowledgement comes with the receiver's time: how long it has waited, ns. most_ns: how much
 * longer than the least its round trip is. */
XCP_INLINE xcp_u64 xcp_way_back_waited(struct xcp_way_back *b, xcp_u64 now, xcp_u32 stamp_ms,
                                       xcp_u64 most_ns) {
    xcp_u32 differs = (xcp_u32)(now / XCP_NS_PER_MS) - stamp_ms, beyond;
    xcp_u32 as_of = (xcp_u32)(now >> XCP_WAY_BACK_FORGETS) + 1;
    b->least_ms += as_of - b->as_of;
    beyond = differs - b->least_ms; /* a new least is beyond by nearly 2^32 */
    if (b->as_of == 0 || beyond > (xcp_u32)(most_ns / XCP_NS_PER_MS) + 2) {
        b->least_ms = differs;
        beyond = 0;
    }
    b->as_of = as_of;
    return beyond > 1 ? (beyond - 1) * XCP_NS_PER_MS : 0;
}

#endif
