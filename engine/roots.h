/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Integer roots and a logarithm, in bounded steps. */
#ifndef XCP_ROOTS_H
#define XCP_ROOTS_H

#include "num.h"

/* floor(sqrt(v)), by Heron's method from a power of two within a factor of sqrt 2 of it. The first
 * step needs no division, and after it the root is at most .061 of itself too large; three more
 * leave less than 10^-11 of it, which is nothing in 32 bits. No step leads below the floor. */
XCP_INLINE xcp_u64 xcp_isqrt(xcp_u64 v) {
    xcp_u32 half = (xcp_u32)(xcp_top_bit(v | 1) + 1) >> 1;
    xcp_u64 root = ((1ULL << half) + (v >> half) + 1) >> 1;
    if (v == 0)
        return 0;
    root = (root + v / root) >> 1;
    root = (root + v / root) >> 1;
    root = (root + v / root) >> 1;
    return root > v / root ? root - 1 : root;
}

/* floor(cbrt(v)), bit by bit, and without a branch, which BPF's verifier would follow both ways for
 * each bit (as newer ones do where a number that is 0 or -1 is a mask): what is compared is below
 * 2^63. */
XCP_ANY(xcp_u64) xcp_icbrt(xcp_u64 v) {
    xcp_u64 root = 0;
    xcp_u32 i;
    for (i = 0; i < 22; i++) {
        xcp_u32 s = 63 - 3 * i;
        xcp_u64 b, set;
        root <<= 1;
        b = 3 * root * (root + 1) + 1;
        set = (((v >> s) - b) >> 63) ^ 1;
        XCP_OPAQUE(set);
        v -= (b << s) * set;
        root += set;
    }
    return root;
}

/* log2(v) * 2^16, rounded down; v not 0. */
XCP_INLINE xcp_u32 xcp_log2_q16(xcp_u32 v) {
    xcp_s32 top = xcp_top_bit(v);
    xcp_u64 m = (xcp_u64)v << (31 - top); /* 1 to 2, in 2^-31 */
    xcp_u32 log = (xcp_u32)top, i;
    for (i = 0; i < 16; i++) {
        xcp_u32 two;
        m = (m * m) >> 31;
        two = (xcp_u32)(m >> 32);
        m >>= two;
        log = log << 1 | two;
    }
    return log;
}

#endif
