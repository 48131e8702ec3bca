/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a path's length jumps all the time, so that round trips say nothing of a queue: for a
 * sender that goes by delay (robust_sender.h), which knows what to do about it.
 *
 * A queue becomes longer by as much as comes in beyond what goes out. That two packets' RTTs differ
 * by more than the time between them therefore takes more than twice the rate that the queue can
 * forward. Bursts do that, but such a queue drains again, unless the burst goes on. A link whose
 * rate falls to less than half does it, too, but then one RTT after the other rises so, while a
 * path becomes longer between two packets. So RTTs that grow by more than a queue which matters,
 * faster than that, once and neither before nor after it, and stay in the upper half of it until
 * two rounds have ended, are a path that has become longer. (Where acknowledgements come in
 * bunches, as over a medium that is shared, RTTs grow as suddenly, but fall again within each.)
 *
 * Where packets take long, a few of them are such a rise: one of each flow that shares the link is
 * what the link carries between two of one's own. So it has to be more than that time, too. And a
 * queue that has overflowed has grown, whatever it looked like.
 *
 * One such jump is no habit: a queue of the usual kind may be on the new path. Each counts for 64
 * rounds, 255 at most, and the path is held to jump while more than 64 are on the count: after two
 * of them within 64 rounds, and for 190 rounds at most after the last.
 */
#ifndef XCP_JUMPS_H
#define XCP_JUMPS_H

#include "types.h"

#define XCP_JUMPS_ROUNDS 64
#define XCP_JUMPS_OFTEN 64
#define XCP_JUMPS_MOST 255
#define XCP_JUMPS_STAYS 2 /* ends of rounds */

#define XCP_JUMPS_ROSE 1
#define XCP_JUMPS_WATCHED 2

struct xcp_jumps {
    xcp_u32 rtt; /* of the last sample; this and the next two in 1024 ns; 0: none */
    xcp_u32 sent;
    xcp_u32 middle; /* of the rise that is watched; 0: none */
    xcp_u8 stays;   /* rounds that have ended since */
    xcp_u8 rose;    /* the last rise was as sudden; or is the one that is watched */
    xcp_u16 count;  /* rounds */
};

/* An RTT of a packet sent at sent_ns that an acknowledgement of several brought: one of a single
 * packet may have waited with the receiver. matters_ns: a queue below that is of no interest.
 * gap_ns: between two packets of this flow, in the mean. */
XCP_INLINE void xcp_jumps_sample(struct xcp_jumps *j, xcp_u64 sent_ns, xcp_u64 rtt_ns,
                                 xcp_u64 matters_ns, xcp_u64 gap_ns) {
    xcp_u32 rtt = (xcp_u32)(rtt_ns >> 10), sent = (xcp_u32)(sent_ns >> 10);
    xcp_u32 rise = j->rtt && rtt > j->rtt ? rtt - j->rtt : 0;
    xcp_u8 rose = rise > matters_ns >> 12 && sent - j->sent < rise ? XCP_JUMPS_ROSE : 0;
    if (rtt < j->middle || (rose && j->rose == XCP_JUMPS_WATCHED))
        j->middle = 0;
    else if (rose && !j->rose && j->middle == 0 && rise > matters_ns >> 10 && rise > gap_ns >> 10) {
        j->middle = rtt - rise / 2;
        j->stays = 0;
        rose = XCP_JUMPS_WATCHED;
    }
    j->rose = rose;
    j->rtt = rtt;
    j->sent = sent;
}

/* Any other RTT, which can only show that the path is as short as it was. */
XCP_INLINE void xcp_jumps_shorter(struct xcp_jumps *j, xcp_u64 rtt_ns) {
    if ((xcp_u32)(rtt_ns >> 10) < j->middle)
        j->middle = 0;
}

/* full: so much was lost in this round that the queue is full, and what has grown is the queue. */
XCP_INLINE void xcp_jumps_round_ends(struct xcp_jumps *j, xcp_u32 full) {
    if (j->count)
        j->count--;
    if (full)
        j->middle = 0;
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
