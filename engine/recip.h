/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reciprocals of window mantissas: a table instead of a division per packet (a 64-bit division
 * costs 35 to 88 cycles on current servers).
 *
 * xcp_recip[i] = 2^42 / (1024 + i), rounded to nearest, at most 2^32 - 1: relative error at most
 * 2^-32. The compiler computes it.
 */
#ifndef XCP_RECIP_H
#define XCP_RECIP_H

#include "num.h"

#define XCP_R1(i) ((xcp_u32)((i) == 0 ? 0xffffffffULL : ((1ULL << 43) / (1024 + (i)) + 1) >> 1)),
#define XCP_R4(i) XCP_R1(i) XCP_R1((i) + 1) XCP_R1((i) + 2) XCP_R1((i) + 3)
#define XCP_R16(i) XCP_R4(i) XCP_R4((i) + 4) XCP_R4((i) + 8) XCP_R4((i) + 12)
#define XCP_R64(i) XCP_R16(i) XCP_R16((i) + 16) XCP_R16((i) + 32) XCP_R16((i) + 48)
#define XCP_R256(i) XCP_R64(i) XCP_R64((i) + 64) XCP_R64((i) + 128) XCP_R64((i) + 192)

static const xcp_u32 xcp_recip[1024]
    __attribute__((unused)) = {XCP_R256(0) XCP_R256(256) XCP_R256(512) XCP_R256(768)};

/*
 * 1 / v for v of at most 16 bits and not 0, as m * 2^e with m from 2^31 - 2 to 2^32: the table's 11
 * bits, doubled twice by Newton's iteration. Relative error below 2^-29.
 */
XCP_INLINE xcp_u64 xcp_recip16(xcp_u32 v, xcp_s32 *e) {
    xcp_s32 shift = xcp_clz(v) - 32; /* v << shift has bit 31 set */
    xcp_u32 d = v << shift;
    xcp_u64 r = xcp_recip[(d >> 21) & 1023]; /* d * r is about 2^63: r is 2^63 / d to 10 bits */
    xcp_u64 p = (d * r) >> 31;               /* about 2^32 */
    r = (r * ((1ULL << 33) - p)) >> 32;
    p = (d * r) >> 31;
    r = (r * ((1ULL << 33) - p)) >> 32;
    *e = shift - 63;
    return r;
}

#endif
