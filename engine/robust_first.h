/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The answer to a SYN: how large a first window may be. Ten packets are nothing where a link has
 * room, and a flood where a hundred connections open at once, or where thousands have less than a
 * packet each. So a sender that keeps its rate asks in its SYN, as with Quick-Start (RFC 4782), and
 * waits no longer for the answer than for the SYN-ACK in which it comes.
 *
 *   1. What is asked is a window, for the round trip is not known yet (RTT 0). What is answered is
 *      a rate, which becomes a window when the SYN-ACK has shown the round trip.
 *   2. First windows together are no more than half of what the link holds, C d / 2, in each d: a
 *      bucket of that size, which empties at half of C. Who finds less there has what is left, and
 *      one packet at the least.
 *   3. They are not booked. Who comes takes the place of who leaves, as a rule, which nobody
 *      announces: to make room for the one and not to expect the other left a sixth of the link
 *      unused under transfers that come and go (docs/robust-parts.md).
 *   4. Nor is a flow's equal share the most. How many flows there are is what headers say, and
 *      whoever floods with claims of long round trips would keep all others from beginning.
 *   5. Only SYNs are answered (XCP_OPENS), for the answer is no increase, of which data could get
 *      one after the other. Without an answer, or with one of 0, which is what other laws and older
 *      routers make of it, a connection begins as it would have.
 */
#ifndef XCP_ROBUST_FIRST_H
#define XCP_ROBUST_FIRST_H

#include "opening.h"
#include "robust_state.h"

/* The rate, q20, at which a flow may begin that asks for so many bytes. */
XCP_PART xcp_robust_first(struct xcp_robust *r, xcp_u64 now, xcp_u64 asked, xcp_u64 *rate) {
    xcp_u64 most, drained, left;
    XCP_PART_NEEDS(r && rate);
    /* not before the last one: another processor may have looked at its clock earlier */
    if (!xcp_passed(now, r->begun_ns, 0))
        now = r->begun_ns;
    drained = xcp_robust_carries(r->capacity, now - r->begun_ns) >> 1;
    r->begun -= r->begun < drained ? r->begun : drained;
    r->begun_ns = now;
    most = xcp_robust_carries(r->capacity, r->d_ns) >> 1;
    left = most > r->begun ? most - r->begun : 0;
    *rate = r->capacity << 20;
    if (asked > left) {
        asked = left > XCP_ROBUST_PACKET ? left : XCP_ROBUST_PACKET;
        *rate = xcp_robust_rate(asked, r->d_ns);
    }
    /* no deeper than full, however many ask: a d later there is as much again */
    r->begun += asked < left ? asked : left;
    return 0;
}

#endif
