/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Integer roots and a logarithm, bit by bit: bounded loops without division, for what is done once
 * a round trip or once a control interval. */
#ifndef XCP_ROOTS_H
#define XCP_ROOTS_H

#include "num.h"

/* floor(sqrt(v)). Without a branch, which BPF's verifier would follow both ways for each bit (as
 * newer ones do where a number that is 0 or -1 is a mask). */
XCP_INLINE xcp_u64 xcp_isqrt(xcp_u64 v) {
    xcp_u64 root = 0, bit = 1ULL << 62;
    xcp_u32 i = 0;
    if (XCP_SPLIT) { /* bits above the first do nothing */
        i = (xcp_u32)xcp_clz(v | 1) >> 1;
        bit >>= 2 * i;
    }
    for (; i < 32; i++) {
        xcp_u64 more = root + bit, left = v - more;
        /* 1 where v - more needs no borrow: v is not less */
        xcp_u64 set = (((~v & more) | ((~v | more) & left)) >> 63) ^ 1;
        XCP_OPAQUE(set);
        v -= more * set;
        root = (root >> 1) + bit * set;
        bit >>= 2;
    }
    return root;
}

/* floor(cbrt(v)). Without a branch, too: what is compared is below 2^63. */
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
