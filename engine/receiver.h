/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The receiver's part: feedback summed over the packets that one acknowledgement answers, and sent
 * back.
 *
 * The sum is exact. What the return word cannot express stays in the sum for the next
 * acknowledgement, so that nothing drifts however many there are.
 *
 *   1. What is returned is per segment, as all feedback is (docs/wire-format.md): an
 *      acknowledgement that travels in a packet of several segments says in each of them its part
 *      of the sum, and who gets them takes each part once. Segmentation copies the option, so that
 *      a sum would be applied once for every segment.
 *   2. Where routers appear on a path that had none, the increase that unmarked packets asked for
 *      is dropped: nobody granted it, and the mark of the packet that follows would vouch for it.
 */
#ifndef XCP_RECEIVER_H
#define XCP_RECEIVER_H

#include "wire_classic.h"
#include "wire_extended.h"

/* Sums saturate here: 4.4 TB/s, or 10^15 packets. */
#define XCP_SUM_MAX ((xcp_s64)XCP_Q20_MAX)

/* One connection's state. */
struct xcp_receiver {
    /* extended: 2^-20 bytes/s; classic: 2^-12 packets; where lone: a code of the extended format */
    xcp_s64 sum;
    xcp_u32 next_bottleneck_id;
    xcp_u8 format; /* as a header's flags have it: XCP_PRESENT, and XCP_CLASSIC in that format */
    xcp_u8 flags;  /* mark, ids and XCP_KEEPS of the newest packet */
    xcp_u8 wait;
    /* the sum is one packet's feedback, which goes home as it came unless more is added to it */
    xcp_u8 lone;
};

XCP_INLINE void xcp_receiver_init(struct xcp_receiver *r, xcp_u32 classic) {
    __builtin_memset(r, 0, sizeof(*r));
    r->format = classic ? XCP_PRESENT | XCP_CLASSIC : XCP_PRESENT;
}

/* Adds count times value, saturating. count: segments that came with one header (receive
 * coalescing), at most 65535. */
XCP_INLINE void xcp_receiver_add(struct xcp_receiver *r, xcp_s64 value, xcp_u32 count) {
    xcp_u64 magnitude = value < 0 ? -(xcp_u64)value : (xcp_u64)value;
    xcp_s64 sum;
    if (count > 65535)
        count = 65535;
    /* 2^62 / 65535 is more than 2^46 */
    if (magnitude > (1ULL << 46) && count > 1)
        magnitude = magnitude > XCP_Q20_MAX / count ? XCP_Q20_MAX : magnitude * count;
    else
        magnitude *= count;
    if (magnitude > XCP_Q20_MAX)
        magnitude = XCP_Q20_MAX;
    /* both below 2^62: no overflow */
    sum = r->sum + (value < 0 ? -(xcp_s64)magnitude : (xcp_s64)magnitude);
    r->sum = sum > XCP_SUM_MAX ? XCP_SUM_MAX : sum < -XCP_SUM_MAX ? -XCP_SUM_MAX : sum;
}

/* Adds what a header says that is not alone, or cannot be returned as it is. */
XCP_COLD void xcp_receiver_sum(struct xcp_receiver *r, xcp_u16 feedback, xcp_u32 segments) {
    if (r->lone) {
        r->sum = xcp_extended_feedback_decode((xcp_u16)r->sum);
        r->lone = 0;
    }
    xcp_receiver_add(r,
                     r->format & XCP_CLASSIC ? xcp_classic_feedback_decode(feedback)
                                             : xcp_extended_feedback_decode(feedback),
                     segments);
}

/* Whether nothing has been added to the sum, and this header's feedback can be returned as it is:
 * an extended code up to field 53, the last one before rates saturate, comes out of decoding and
 * encoding as it went in (negative zero as zero). */
XCP_INLINE int xcp_receiver_is_lone(const struct xcp_receiver *r, const struct xcp_forward *h) {
    return r->sum == 0 && r->format == XCP_PRESENT &&
           (h->flags & (XCP_PRESENT | XCP_CLASSIC)) == XCP_PRESENT &&
           (h->feedback & 0x7fff) < 54 << 9;
}

/* The feedback that is returned as it is. */
XCP_INLINE xcp_u16 xcp_receiver_lone(const struct xcp_forward *h) {
    return h->feedback & 0x7fff ? h->feedback : 0;
}

/* What an acknowledgement says besides feedback is the newest header's. */
XCP_INLINE void xcp_receiver_newest(struct xcp_receiver *r, const struct xcp_forward *h) {
    r->flags = h->flags & (XCP_MARK | XCP_IDS | XCP_KEEPS);
    r->wait = h->wait;
    r->next_bottleneck_id = h->next_bottleneck_id;
}

/* Forgets a positive sum. */
XCP_COLD void xcp_receiver_drop_increase(struct xcp_receiver *r) {
    if (r->lone ? r->sum & 0x8000 : r->sum < 0)
        return;
    r->sum = 0;
    r->lone = 0;
}

/* Data came; segments: how many packets this header stands for. A header of the other format is
 * ignored. */
XCP_INLINE void xcp_receiver_data(struct xcp_receiver *r, const struct xcp_forward *h,
                                  xcp_u32 segments) {
    if ((h->flags & (XCP_PRESENT | XCP_CLASSIC)) != r->format)
        return;
    if (XCP_UNLIKELY(r->sum && h->flags & ~r->flags & XCP_MARK))
        xcp_receiver_drop_increase(r);
    if (xcp_receiver_is_lone(r, h) && segments == 1) {
        r->sum = xcp_receiver_lone(h);
        r->lone = r->sum != 0;
    } else {
        xcp_receiver_sum(r, h->feedback, segments);
    }
    xcp_receiver_newest(r, h);
}

/* What of the sum each of so many segments can return, encoded; the rest stays. What no classic
 * code can say is not kept: only requests for all there is come to that, and they would come home
 * for ever. */
XCP_COLD xcp_u16 xcp_receiver_take(struct xcp_receiver *r, xcp_u32 segments) {
    xcp_u32 negative = r->sum < 0;
    xcp_u64 magnitude = negative ? -(xcp_u64)r->sum : (xcp_u64)r->sum, taken;
    xcp_s64 each;
    xcp_u16 code;
    if (segments > 1)
        magnitude /= segments;
    if (r->format & XCP_CLASSIC) {
        code = xcp_classic_feedback_encode(magnitude, -12, negative, XCP_DOWN);
        each = xcp_classic_feedback_decode(code);
        if (code == XCP_CLASSIC_FEEDBACK_MAX)
            r->sum = 0;
    } else {
        code = xcp_extended_feedback_encode(magnitude, -20, negative, XCP_DOWN);
        each = xcp_extended_feedback_decode(code);
    }
    /* not more than the sum: the code was rounded down, and so was the quotient */
    taken = (negative ? -(xcp_u64)each : (xcp_u64)each) * (segments ? segments : 1);
    if (r->sum)
        r->sum -= negative ? -(xcp_s64)taken : (xcp_s64)taken;
    return code;
}

/* The header of an acknowledgement with this feedback. */
XCP_INLINE struct xcp_return xcp_receiver_write(const struct xcp_receiver *r, xcp_u16 feedback) {
    struct xcp_return h;
    h.feedback = feedback;
    h.flags = r->format | r->flags;
    h.wait = r->wait;
    h.next_bottleneck_id = r->next_bottleneck_id;
    return h;
}

/* The header of an acknowledgement that leaves now, in a packet that is, or will be cut into, so
 * many segments. */
XCP_INLINE struct xcp_return xcp_receiver_return(struct xcp_receiver *r, xcp_u32 segments) {
    xcp_u16 feedback;
    if (r->lone && segments <= 1) {
        feedback = (xcp_u16)r->sum;
        r->sum = 0;
        r->lone = 0;
    } else {
        if (r->lone)
            xcp_receiver_sum(r, 0, 1); /* a sum again */
        feedback = xcp_receiver_take(r, segments);
    }
    return xcp_receiver_write(r, feedback);
}

XCP_COLD struct xcp_return xcp_receiver_answer_any(struct xcp_receiver *r,
                                                   const struct xcp_forward *h) {
    xcp_receiver_data(r, h, 1);
    return xcp_receiver_return(r, 1);
}

/* Data came and is acknowledged at once: both of the above. */
XCP_INLINE struct xcp_return xcp_receiver_answer(struct xcp_receiver *r,
                                                 const struct xcp_forward *h) {
    if (!XCP_SPLIT || XCP_UNLIKELY(!xcp_receiver_is_lone(r, h)))
        return xcp_receiver_answer_any(r, h);
    xcp_receiver_newest(r, h);
    return xcp_receiver_write(r, xcp_receiver_lone(h));
}

#endif
