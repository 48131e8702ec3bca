/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a path's length jumps all the time, so that round trips say nothing of a queue: for a
 * sender that goes by delay (robust_sender.h), which knows what to do about it.
 *
 * A queue becomes longer by as much as comes in beyond what goes out. That two packets' RTTs differ
 * by more than the time between them therefore takes more than twice the rate that the queue can
 * forward. Bursts do that, but such a queue drains again, unless the burst goes on. So RTTs that
 * grow by more than a queue which matters, faster than that, and stay in the upper half of it until
 * two rounds have ended, are a path that has become longer. (Where acknowledgements come in
 * bunches, as over a medium that is shared, RTTs grow as suddenly, but fall again within each.)
 *
 * One such jump is no habit: a queue of the usual kind may be on the new path, and where packets
 * take long, a few of them may look like one. Each counts for 64 rounds, and the path is held to
 * jump while more than 128 are on the count, so after three of them within 64 rounds, and for as
 * long as they come more often than every 64.
 */
#ifndef XCP_JUMPS_H
#define XCP_JUMPS_H

#include "types.h"

#define XCP_JUMPS_ROUNDS 64
#define XCP_JUMPS_OFTEN 128
#define XCP_JUMPS_MOST 255
#define XCP_JUMPS_STAYS 2 /* ends of rounds */

struct xcp_jumps {
    xcp_u32 rtt; /* of the last sample; this and the next two in 1024 ns; 0: none */
    xcp_u32 sent;
    xcp_u32 middle; /* of the rise that is watched; 0: none */
    xcp_u16 stays;  /* rounds that have ended since */
    xcp_u16 count;  /* rounds */
};

/* An RTT of a packet sent at sent_ns that an acknowledgement of several brought: one of a single
 * packet may have waited with the receiver. matters_ns: a queue below that is of no interest. */
XCP_INLINE void xcp_jumps_sample(struct xcp_jumps *j, xcp_u64 sent_ns, xcp_u64 rtt_ns,
                                 xcp_u64 matters_ns) {
    xcp_u32 rtt = (xcp_u32)(rtt_ns >> 10), sent = (xcp_u32)(sent_ns >> 10);
    xcp_u32 rise = rtt > j->rtt ? rtt - j->rtt : 0;
    if (rtt < j->middle)
        j->middle = 0;
    if (j->middle == 0 && j->rtt && rise > matters_ns >> 10 && sent - j->sent < rise) {
        j->middle = rtt - rise / 2;
        j->stays = 0;
    }
    j->rtt = rtt;
    j->sent = sent;
}

XCP_INLINE void xcp_jumps_round_ends(struct xcp_jumps *j) {
    if (j->count)
        j->count--;
    if (j->middle && ++j->stays >= XCP_JUMPS_STAYS) {
        j->middle = 0;
        j->count = j->count < XCP_JUMPS_MOST - XCP_JUMPS_ROUNDS ? j->count + XCP_JUMPS_ROUNDS
                                                                : XCP_JUMPS_MOST;
    }
}

XCP_INLINE xcp_u32 xcp_jumps_often(const struct xcp_jumps *j) {
    return j->count > XCP_JUMPS_OFTEN;
}

#endif
