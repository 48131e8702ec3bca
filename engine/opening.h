/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The header of a SYN that asks how large a first window may be (robust_first.h): a forward header
 * of a sender that keeps its rate, with the window it would begin with, whose round trip is not
 * known yet, and which asks for all there is. */
#ifndef XCP_OPENING_H
#define XCP_OPENING_H

#include "wire_extended.h"

/* window: in 2^-32 packets. */
XCP_INLINE void xcp_opening_write(xcp_u64 window, struct xcp_forward *h) {
    const struct xcp_forward none = {0, 0, 0, 0, 0, 0, 0};
    *h = none;
    h->flags = XCP_PRESENT | XCP_KEEPS | XCP_OPENS;
    h->window = xcp_extended_window_encode(window, -32);
    h->feedback = XCP_EXTENDED_FEEDBACK_MAX;
}

/* Whether a header is one, or was when it was sent: routers may have lowered what it asks for. */
XCP_INLINE xcp_u32 xcp_is_opening(const struct xcp_forward *h) {
    return (h->flags & (XCP_OPENS | XCP_KEEPS | XCP_CLASSIC)) == (XCP_OPENS | XCP_KEEPS) &&
           h->rtt == 0 && h->window >= 1 << 10 && h->feedback && !(h->feedback & 0x8000);
}

/* Whether routers have answered one: difference 5 of robust_first.h. */
XCP_INLINE xcp_u32 xcp_is_opened(const struct xcp_return *h) {
    return (h->flags & (XCP_PRESENT | XCP_MARK)) == (XCP_PRESENT | XCP_MARK) && h->feedback &&
           !(h->feedback & 0x8000);
}

#endif
