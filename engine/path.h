/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a forward header says of its flow, out of either format: RTT and X = RTT / window, the time
 * between two packets of the flow.
 *
 * A window below one packet is taken for one. Nobody has less than a packet in flight: a sender
 * slower than a packet per round trip can say so by a longer RTT, and X is then what it was.
 * Believed, such a window is the cheapest lie there is: X of a second beside an RTT of 1 ms, so
 * that a few small packets count as many flows, while the control interval, which goes by the RTT,
 * grows shorter instead of longer. The classic format cannot say a window below one.
 */
#ifndef XCP_PATH_H
#define XCP_PATH_H

#include "recip.h"
#include "wire_classic.h"
#include "wire_extended.h"

/* X * 2^xe ns and rtt * 2^re ns; known is 0 where the header does not say, and then so are X and
 * rtt. */
struct xcp_path {
    xcp_u32 known;
    xcp_u32 rtt; /* at most 30 bits */
    xcp_s32 re;
    xcp_u32 x; /* 31 or 32 bits (fewer for RTTs below 2 us) */
    xcp_s32 xe;
};

/* X above 2^36 ns (69 s) is taken as that: a flow that slow counts as one packet per 69 s. Keeps
 * sums and products in their words. */
#define XCP_X_CAP 36

/* Bounds X. */
XCP_INLINE void xcp_path_cap(struct xcp_path *p) {
    if (XCP_UNLIKELY(p->xe > 4) && (p->xe > XCP_X_CAP || p->x >> (XCP_X_CAP - p->xe))) {
        p->x = 1U << 31;
        p->xe = XCP_X_CAP - 31;
    }
    p->known = 1;
}

/* An extended header whose RTT and window are both known. */
XCP_INLINE void xcp_path_read_extended(const struct xcp_forward *h, struct xcp_path *p) {
    xcp_s32 we;
    xcp_u32 w = xcp_extended_window_decode(
        h->window < XCP_EXTENDED_WINDOW_ONE ? XCP_EXTENDED_WINDOW_ONE : h->window, &we);
    p->rtt = xcp_extended_rtt_decode(h->rtt, &p->re);
    /* rtt * 2^re / (w * 2^we), 1 / w = recip * 2^-42; 12 of the product's 44 bits are rounded
     * away */
    p->x = (xcp_u32)(((xcp_u64)p->rtt * xcp_recip[w & 1023] + 2048) >> 12);
    p->xe = p->re - we - 30;
    xcp_path_cap(p);
}

XCP_INLINE void xcp_path_read(const struct xcp_forward *h, struct xcp_path *p) {
    struct xcp_path none = {0, 0, 0, 0, XCP_LEAST_E};
    *p = none;
    if (!(h->flags & XCP_CLASSIC)) {
        if (h->rtt != 0 && h->window >= 1 << 10)
            xcp_path_read_extended(h, p);
    } else if (h->rtt != 0 && h->window != 0) {
        struct xcp_num x;
        xcp_s32 e;
        xcp_u64 r = xcp_recip16(h->window, &e);
        p->rtt = (xcp_u32)h->rtt * 15625; /* 1 ms = 15625 * 2^6 ns */
        p->re = 6;
        x = xcp_num_scaled((xcp_u64)p->rtt * r, p->re + e);
        p->x = x.m;
        p->xe = x.e;
        xcp_path_cap(p);
    }
}

#endif
