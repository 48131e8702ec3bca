/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The extended wire format, the default: 16-bit floating-point words and the layout of the TCP
 * option. docs/wire-format.md specifies it.
 *
 *   rtt       5-bit exponent, 11-bit mantissa, 1 ns: m ns if e = 0, else (2048 + m) * 2^(e-1) ns
 *   window    6-bit exponent, 10-bit mantissa, packets: unknown if e = 0, else (1024 + m) *
 *             2^(e-21)
 *   feedback  sign, 6-bit exponent, 9-bit mantissa, bytes/s: m * 2^-20 if e = 0,
 *             else (512 + m) * 2^(e-21)
 *   wait      4 bits: 3-bit exponent, 1-bit mantissa of c - 1, the least ns of a class: none if
 *             c = 0, else (2 + m) * 2^(e+21)
 */
#ifndef XCP_WIRE_EXTENDED_H
#define XCP_WIRE_EXTENDED_H

#include "dither.h"

#define XCP_EXTENDED_FEEDBACK_MAX 0x7fff

/* Round-trip time in ns to its code, nearest; 0 stays 0, what is longer than the format holds (4397
 * s) is the longest. */
XCP_INLINE xcp_u16 xcp_extended_rtt_encode(xcp_u64 ns) {
    xcp_s32 k;
    xcp_u64 code;
    if (XCP_UNLIKELY(ns < 4096))
        return (xcp_u16)ns; /* exact: codes below 4096 are the nanoseconds themselves */
    k = xcp_top_bit(ns) - 11;
    /* the mantissa's leading 1 adds the exponent's 1 */
    code = ((xcp_u64)(xcp_u32)k << 11) + (((ns >> (k - 1)) + 1) >> 1);
    return code > 0xffff ? 0xffff : (xcp_u16)code;
}

/* The code's mantissa m and exponent e: m * 2^e ns. */
XCP_INLINE xcp_u32 xcp_extended_rtt_decode(xcp_u32 code, xcp_s32 *e) {
    xcp_u32 field = code >> 11;
    *e = field ? (xcp_s32)field - 1 : 0;
    return (code & 2047) + (field ? 2048 : 0);
}

/* Window of m * 2^e packets to its code, nearest; never 0 (unknown): what is smaller than 2^-10
 * packets becomes that. */
XCP_INLINE xcp_u16 xcp_extended_window_encode(xcp_u64 m, xcp_s32 e) {
    xcp_s32 k, field;
    xcp_u64 code;
    if (m == 0)
        return 1 << 10;
    k = xcp_top_bit(m) - 10; /* bits beyond 11 */
    field = k + e + 21;
    if (XCP_UNLIKELY((xcp_u32)(field - 1) > 62))
        return field < 1 ? 1 << 10 : 0xffff;
    code = ((xcp_u64)(xcp_u32)(field - 1) << 10) +
           (XCP_LIKELY(k > 0) ? ((m >> (k - 1)) + 1) >> 1 : m << -k);
    return code > 0xffff ? 0xffff : (xcp_u16)code;
}

/* A window of one packet. Codes order as windows do. */
#define XCP_EXTENDED_WINDOW_ONE (11 << 10)

/* Mantissa of the window (1024..2047), or 0 where it is unknown; value = mantissa * 2^e packets. */
XCP_INLINE xcp_u32 xcp_extended_window_decode(xcp_u32 code, xcp_s32 *e) {
    xcp_u32 field = code >> 10;
    *e = (xcp_s32)field - 21;
    return field ? 1024 + (code & 1023) : 0;
}

/* Magnitude m * 2^e bytes/s (m below 2^63) to a code without sign, rounded by the dither
 * (dither.h); too much becomes the most there is. */
XCP_INLINE xcp_u32 xcp_extended_feedback_magnitude(xcp_u64 m, xcp_s32 e, xcp_u64 dither) {
    xcp_s32 k, field;
    xcp_u64 code;
    if (XCP_UNLIKELY(m == 0))
        return 0;
    k = xcp_top_bit(m) - 9; /* bits beyond 10 */
    field = k + e + 20;     /* 512..1023 << field, in 2^-20 bytes/s */
    if (XCP_UNLIKELY((xcp_u32)field > 62)) {
        if (field > 62)
            return XCP_EXTENDED_FEEDBACK_MAX;
        k -= field;
        return (xcp_u32)(k > 0 ? xcp_dither_shift(m, k, dither) : m << -k);
    }
    /* a mantissa rounded up to 1024 carries into the exponent as it should */
    code = ((xcp_u64)(xcp_u32)field << 9) +
           (XCP_LIKELY(k > 0) ? (m + (dither >> (-k & 63))) >> k : m << -k);
    return code > XCP_EXTENDED_FEEDBACK_MAX ? XCP_EXTENDED_FEEDBACK_MAX : (xcp_u32)code;
}

/* The same with the sign (0 or 1); there is no negative zero. */
XCP_INLINE xcp_u16 xcp_extended_feedback_encode(xcp_u64 m, xcp_s32 e, xcp_u32 negative,
                                                xcp_u64 dither) {
    xcp_u32 code = xcp_extended_feedback_magnitude(m, e, dither);
    return code == 0 ? 0 : (xcp_u16)(code | negative << 15);
}

/* Feedback in q20 bytes/s, saturating at XCP_Q20_MAX either way. */
XCP_INLINE xcp_s64 xcp_extended_feedback_decode(xcp_u32 code) {
    xcp_u32 field = (code >> 9) & 63;
    xcp_u64 m = code & 511;
    if (XCP_LIKELY(field))
        m = XCP_UNLIKELY(field > 53) ? XCP_Q20_MAX : (m | 512) << (field - 1);
    return code & 0x8000 ? -(xcp_s64)m : (xcp_s64)m;
}

/* Feedback without its sign as m * 2^e bytes/s, m at most 10 bits: what decoding and rounding to a
 * number (num.h) give, saturated too. */
XCP_INLINE xcp_u32 xcp_extended_feedback_parts(xcp_u32 code, xcp_s32 *e) {
    xcp_u32 field = (code >> 9) & 63;
    xcp_u32 m = code & 511;
    *e = -20;
    if (XCP_LIKELY(field)) {
        *e = field > 53 ? 33 : (xcp_s32)field - 21;
        m = field > 53 ? 512 : m + 512;
    }
    return m;
}

/* Codes in the order of their values, minus zero equal to zero. */
XCP_INLINE xcp_s32 xcp_extended_feedback_order(xcp_u32 code) {
    xcp_s32 negative = (xcp_s32)(code >> 15);
    return ((xcp_s32)(code & 0x7fff) ^ -negative) + negative; /* the sign is random: no branch */
}

/* How long a packet waits, ns, as a code, which says no more than at least how long. */
XCP_INLINE xcp_u32 xcp_extended_wait_encode(xcp_u64 ns) {
    xcp_u64 code;
    xcp_s32 k;
    if (ns >> 22 == 0)
        return 0;
    k = xcp_top_bit(ns);
    code = 2 * (xcp_u64)(k - 22) + (ns >> (k - 1) & 1) + 1;
    return code < XCP_WAIT_MAX ? (xcp_u32)code : XCP_WAIT_MAX;
}

/* The most that a code may mean, which is the least that the next one does, or would do. */
XCP_INLINE xcp_u64 xcp_extended_wait_decode(xcp_u32 code) {
    return code ? (2ULL + (code & 1)) << (21 + (code >> 1)) : 0;
}

/* Of a packet that waits twice. A code means an eighth less than its most, about the middle of what
 * it may mean; the sum is no less than either. */
XCP_INLINE xcp_u32 xcp_extended_wait_add(xcp_u32 a, xcp_u32 b) {
    xcp_u64 most = xcp_extended_wait_decode(a) + xcp_extended_wait_decode(b);
    return xcp_extended_wait_encode(most - (most >> 3));
}

/* Layout, bytes from the start of the option; 16-bit fields lie on even offsets so that checksums
 * can be mended word by word. */
#define XCP_EXTENDED_KIND 254    /* RFC 4727, RFC 6994 */
#define XCP_EXTENDED_EXID 0x5843 /* "XC"; not registered with IANA */
#define XCP_EXTENDED_AT_EXID 2
#define XCP_EXTENDED_AT_FLAGS 4
/* the forward wait in the upper half, the returned one in the lower */
#define XCP_EXTENDED_AT_WAIT 5
#define XCP_EXTENDED_AT_RTT 6
#define XCP_EXTENDED_AT_WINDOW 8
#define XCP_EXTENDED_AT_FEEDBACK 10
#define XCP_EXTENDED_FORWARD_END 12 /* of the three words of a forward header */
#define XCP_EXTENDED_OFFER_LENGTH 6
#define XCP_EXTENDED_LENGTH_MAX 26

/* The flags byte. */
#define XCP_WIRE_VERSION_MASK 0xc0
#define XCP_WIRE_VERSION 0x40 /* version 1 */
#define XCP_WIRE_FORWARD 0x20 /* rtt, window and feedback follow */
#define XCP_WIRE_RETURN 0x10  /* returned feedback follows */
#define XCP_WIRE_IDS 0x08     /* ids follow; in an offer: ids are understood */
#define XCP_WIRE_MARK 0x04    /* a router processed this packet */
/* a router processed the newest packet this acknowledges */
#define XCP_WIRE_MARK_RETURNED 0x02
/* the same bit with a forward header alone: the packet was sent at once with others */
#define XCP_WIRE_AT_ONCE 0x02
/* with a forward header: its sender keeps the rate that it is given, and no router so far has no
 * use for that; without one: so it was in the newest packet that this acknowledges */
#define XCP_WIRE_KEEPS 0x01

/* Length that the flags imply. */
XCP_INLINE xcp_u32 xcp_extended_length(xcp_u8 flags) {
    xcp_u32 forward = (xcp_u32)flags >> 5 & 1, returned = (xcp_u32)flags >> 4 & 1,
            ids = (xcp_u32)flags >> 3 & 1;
    return XCP_EXTENDED_OFFER_LENGTH + 6 * forward + 2 * returned +
           ids * (8 * forward + 4 * returned);
}

XCP_INLINE xcp_u16 xcp_get16(const xcp_u8 *p) {
    return (xcp_u16)((xcp_u32)p[0] << 8 | p[1]);
}

XCP_INLINE xcp_u32 xcp_get32(const xcp_u8 *p) {
    return (xcp_u32)xcp_get16(p) << 16 | xcp_get16(p + 2);
}

XCP_INLINE void xcp_put16(xcp_u8 *p, xcp_u16 v) {
    p[0] = (xcp_u8)(v >> 8);
    p[1] = (xcp_u8)v;
}

XCP_INLINE void xcp_put32(xcp_u8 *p, xcp_u32 v) {
    xcp_put16(p, (xcp_u16)(v >> 16));
    xcp_put16(p + 2, (xcp_u16)v);
}

#endif
