/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The wire format of Zhang & Henderson's Linux implementation (2005), bit for bit.
 *
 * Kind 14, length 8: feedback, rtt (ms; 0 is unknown) and window (packets), 16-bit words in network
 * order.
 *
 * Kind 15, length 4: feedback.
 *
 * Feedback has a mantissa m in bits 15 to 3, two's complement, and an exponent e in bits 2 to 0,
 * and stands for m * 16^(e-3) packets of window.
 *
 * The options are the alternate-checksum ones of RFC 1146, long out of use; only their lengths tell
 * them apart.
 *
 * The study's "alternative implementation" (its Fig. 3) has an integer for feedback: whole packets,
 * rounded to the nearest, so that less than half a packet is lost. Headers with XCP_WHOLE in memory
 * are of that kind. They are in this format, which can say any integer up to 4095 and larger ones
 * to .2 %; the study does not say what its 16 bits held instead.
 */
#ifndef XCP_WIRE_CLASSIC_H
#define XCP_WIRE_CLASSIC_H

#include "dither.h"

#define XCP_CLASSIC_FORWARD_KIND 14
#define XCP_CLASSIC_FORWARD_LENGTH 8
#define XCP_CLASSIC_RETURN_KIND 15
#define XCP_CLASSIC_RETURN_LENGTH 4
#define XCP_CLASSIC_AT_FEEDBACK 2
#define XCP_CLASSIC_AT_RTT 4
#define XCP_CLASSIC_AT_WINDOW 6

/* 4095 * 16^4 packets. */
#define XCP_CLASSIC_FEEDBACK_MAX 0x7fff

/* Round-trip time in ns to whole milliseconds, nearest, but at least 1 where it is known at all. */
XCP_INLINE xcp_u16 xcp_classic_rtt_encode(xcp_u64 ns) {
    xcp_u64 ms;
    if (ns == 0)
        return 0;
    if (ns > 65535000000ULL)
        return 0xffff;
    ms = (ns + 500000) / 1000000;
    return ms == 0 ? 1 : (xcp_u16)ms;
}

/* Window in 2^-32 packets to whole packets, nearest, 1..65535. */
XCP_INLINE xcp_u16 xcp_classic_window_encode(xcp_u64 q32) {
    xcp_u64 packets = (q32 >> 32) + ((q32 >> 31) & 1);
    return packets == 0 ? 1 : packets > 0xffff ? 0xffff : (xcp_u16)packets;
}

/* Magnitude m * 2^e packets (m below 2^63) and sign (0 or 1) to a code: the smallest exponent whose
 * mantissa fits, rounded by the dither. */
XCP_INLINE xcp_u16 xcp_classic_feedback_encode(xcp_u64 m, xcp_s32 e, xcp_u32 negative,
                                               xcp_u64 dither) {
    xcp_s32 bits, x = 0;
    xcp_u64 v;
    if (m == 0)
        return 0;
    e += 12; /* in units of 2^-12 packets, what exponent 0 counts */
    bits = 64 - xcp_clz(m) + e;
    if (bits > 40)
        return negative ? 0x8007 + 8 : XCP_CLASSIC_FEEDBACK_MAX;
    if (bits > 12)
        x = (xcp_s32)((xcp_u32)(bits - 9) >> 2);
    v = 4 * x - e > 0 ? xcp_dither_shift(m, 4 * x - e, dither) : m << (e - 4 * x);
    if (v > 4095) {
        if (x == 7) {
            v = 4095;
        } else {
            v = 256; /* 4096 = 256 * 16 */
            x++;
        }
    }
    /* v or -v: which of the two is random, so no branch */
    v = (v ^ (0 - (xcp_u64)negative)) + negative;
    return v == 0 ? 0 : (xcp_u16)((v << 3) | (xcp_u32)x);
}

/* As above, rounded to the nearest whole packet. */
XCP_INLINE xcp_u16 xcp_classic_feedback_encode_whole(xcp_u64 m, xcp_s32 e, xcp_u32 negative) {
    return e < 0 ? xcp_classic_feedback_encode(xcp_dither_shift(m, -e, XCP_NEAREST), 0, negative,
                                               XCP_DOWN)
                 : xcp_classic_feedback_encode(m, e, negative, XCP_DOWN);
}

/* Feedback in 2^-12 packets. */
XCP_INLINE xcp_s64 xcp_classic_feedback_decode(xcp_u16 code) {
    xcp_s64 m = (xcp_s64)((code >> 3) ^ 4096) - 4096; /* extends the sign of 13 bits */
    return m * (xcp_s64)(1ULL << (4 * (code & 7)));
}

#endif
