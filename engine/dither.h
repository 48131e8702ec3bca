/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stochastic rounding: a value between two codes becomes the upper one with the probability that
 * makes the mean exact.
 *
 * A remainder carried from packet to packet on a link would also have no drift, but would hand the
 * remainder of a fast flow, whose codes lie far apart, to whichever slow flow comes next. Random
 * bits keep every flow's own mean.
 */
#ifndef XCP_DITHER_H
#define XCP_DITHER_H

#include "num.h"

/* Round to nearest, ties away from zero, as a dither argument. */
#define XCP_NEAREST (1ULL << 63)
/* Round towards zero. */
#define XCP_DOWN 0ULL

/* The next 64 random bits; the high ones are the good ones (Knuth's MMIX generator: one
 * multiplication, and no state that must not be 0). */
XCP_INLINE xcp_u64 xcp_dither_next(xcp_u64 *state) {
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return *state;
}

/* A number of which at least the upper half looks random, whatever x is (SplitMix64's mixing but
 * for its last step); 0 stays 0. */
XCP_INLINE xcp_u64 xcp_mix(xcp_u64 x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
    return (x ^ x >> 27) * 0x94d049bb133111ebULL;
}

/* m / 2^k, up with probability (remainder / 2^k) over the dither; m below 2^63, k from 0 to any
 * size. */
XCP_INLINE xcp_u64 xcp_dither_shift(xcp_u64 m, xcp_s32 k, xcp_u64 dither) {
    if (k <= 0)
        return m;
    if (XCP_UNLIKELY(k > 63)) {
        if (k > 126)
            return 0;
        m >>= k - 63;
        k = 63;
    }
    return (m + (dither >> (64 - k))) >> k;
}

#endif
