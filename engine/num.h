/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Wide arithmetic: numbers of any size with 32 significant bits, exact sums in 128 bits,
 * fixed-point rates.
 *
 * The law multiplies quantities from 10^-13 s (a 10 us round trip over 10^8 packets) to 10^28 ns^2
 * (a million flows of 65 s), which no 64-bit fixed point holds. Zhang & Henderson (2005) used
 * {32-bit integer, scale, shift} and measured errors of 1e-5. Here:
 *
 *   struct xcp_num   m * 2^e, m normalised to bit 31 or 0. Every operation rounds to nearest:
 *                    relative error at most 2^-32 (division 2^-31).
 *   struct xcp_acc   a sum as two 64-bit words. What is added is truncated to the sum's last bit,
 *                    nothing else is lost.
 *   q20              rates as xcp_u64 or xcp_s64 in 2^-20 bytes/s, saturating at XCP_Q20_MAX
 *                    (4.4 TB/s).
 */
#ifndef XCP_NUM_H
#define XCP_NUM_H

#include "types.h"

#define XCP_Q20_MAX ((1ULL << 62) - 1) /* two of them add up without overflow, signed too */

#define XCP_LEAST_E (-4096)

/* m * 2^e; m has bit 31 set, or is 0 and then e means nothing. */
struct xcp_num {
    xcp_u32 m;
    xcp_s32 e;
};

/* hi * 2^64 + lo, in units its user states. */
struct xcp_acc {
    xcp_u64 hi;
    xcp_u64 lo;
};

/* Leading zeros of v (not 0) by halving, in arithmetic only: BPF's verifier would follow each of a
 * branch's two ways through all that comes after. */
XCP_INLINE xcp_s32 xcp_clz_halving(xcp_u64 v) {
    xcp_u64 k, n;
    n = k = ((v >> 32) + 0xffffffffULL) >> 32 << 5; /* the sum carries unless v >> 32 is 0 */
    v >>= k;
    n += k = ((v >> 16) + 0xffff) >> 16 << 4;
    v >>= k;
    n += k = ((v >> 8) + 0xff) >> 8 << 3;
    v >>= k;
    n += k = ((v >> 4) + 0xf) >> 4 << 2;
    v >>= k;
    n += k = ((v >> 2) + 3) >> 2 << 1;
    v >>= k;
    return (xcp_s32)(63 - n - (v >> 1));
}

/* Leading zeros; v must not be 0. (BPF has no instruction for it, and clang 14's back end crashes
 * on the builtin.) */
XCP_INLINE xcp_s32 xcp_clz(xcp_u64 v) {
#ifdef __bpf__
    return xcp_clz_halving(v);
#else
    return (xcp_s32)__builtin_clzll(v);
#endif
}

/* The number of v's highest bit; v must not be 0. */
XCP_INLINE xcp_s32 xcp_top_bit(xcp_u64 v) {
    return xcp_clz(v) ^ 63;
}

/* m * 2^e rounded to nearest; no branch, for the verifier's sake and the host's. */
XCP_INLINE struct xcp_num xcp_num_scaled(xcp_u64 m, xcp_s32 e) {
    struct xcp_num n;
    xcp_s32 k = xcp_clz(m | 1), carry;
    m <<= k;
    m = (m >> 32) + ((m >> 31) & 1);
    carry = (xcp_s32)(m >> 32); /* 2^32 - 1/2 and above round up to 2^32 */
    n.m = (xcp_u32)(m >> carry);
    n.e = e + 32 - k + carry;
    return n;
}

XCP_INLINE struct xcp_num xcp_num_of(xcp_u64 v) {
    return xcp_num_scaled(v, 0);
}

/* a * b; a and b need not be normalised. */
XCP_INLINE struct xcp_num xcp_num_mul(struct xcp_num a, struct xcp_num b) {
    return xcp_num_scaled((xcp_u64)a.m * b.m, a.e + b.e);
}

/* a / b, not necessarily normalised either; 0 where b is 0, which callers test for where it can
 * happen. */
XCP_INLINE struct xcp_num xcp_num_div(struct xcp_num a, struct xcp_num b) {
    struct xcp_num zero = {0, 0};
    if (b.m == 0)
        return zero;
    return xcp_num_scaled((((xcp_u64)a.m << 32) + (b.m >> 1)) / b.m, a.e - b.e - 32);
}

XCP_INLINE int xcp_num_less(struct xcp_num a, struct xcp_num b) {
    if (a.m == 0 || b.m == 0)
        return b.m != 0;
    return a.e != b.e ? a.e < b.e : a.m < b.m;
}

/* m * 2^e as an integer, rounded to nearest, at most max (itself at most 2^63, or all ones: more
 * than anything). */
XCP_INLINE xcp_u64 xcp_scale(xcp_u64 m, xcp_s32 e, xcp_u64 max) {
    if (XCP_UNLIKELY(e >= 0)) {
        if (m == 0)
            return 0;
        if (e >= 63 || m > (max >> e))
            return max;
        return m << e;
    }
    if (XCP_UNLIKELY(e < -64))
        return 0;
    m >>= -e - 1;
    m -= m >> 1; /* half of it, a half rounded up */
    return m > max ? max : m;
}

/* Zero as the smallest of numbers: of two to be brought to one exponent, the other one's is
 * chosen. */
XCP_INLINE struct xcp_num xcp_num_or_least(struct xcp_num n) {
    if (n.m == 0)
        n.e = XCP_LEAST_E;
    return n;
}

XCP_INLINE xcp_u64 xcp_num_u64(struct xcp_num n, xcp_u64 max) {
    return xcp_scale(n.m, n.e, max);
}

/* A rate in bytes/s as q20. */
XCP_INLINE xcp_u64 xcp_num_q20(struct xcp_num n) {
    return xcp_scale(n.m, n.e + 20, XCP_Q20_MAX);
}

/* a * b as q20, rounded once; neither need be normalised. */
XCP_INLINE xcp_u64 xcp_num_product_q20(struct xcp_num a, struct xcp_num b) {
    return xcp_scale((xcp_u64)a.m * b.m, a.e + b.e + 20, XCP_Q20_MAX);
}

/* v * f / 2^32, rounded down: v times a fraction. */
XCP_INLINE xcp_u64 xcp_mul_fraction(xcp_u64 v, xcp_u32 f) {
    return (v >> 32) * f + (((v & 0xffffffffULL) * f) >> 32);
}

/* acc += m * 2^e in the sum's own units, saturating at 2^127. (Whether the low words carry is a
 * coin toss: no branch may depend on it.) */
XCP_INLINE void xcp_acc_add(struct xcp_acc *acc, xcp_u64 m, xcp_s32 e) {
    xcp_u64 hi, lo;
    if (XCP_LIKELY(e > 0 && e < 64)) {
        hi = m >> (64 - e);
        lo = m << e;
    } else if (e <= 0) {
        hi = 0;
        lo = e <= -64 ? 0 : m >> -e;
    } else {
        lo = 0;
        hi = m == 0 ? 0 : (e >= 127 || m > (~0ULL >> (e - 63))) ? ~0ULL >> 1 : m << (e - 64);
    }
    lo += acc->lo;
    hi += acc->hi + (lo < acc->lo); /* each of the two is below 2^63 */
    if (XCP_UNLIKELY(hi >> 63)) {
        hi = ~0ULL >> 1;
        lo = ~0ULL;
    }
    acc->hi = hi;
    acc->lo = lo;
}

/* The sum as a number; e is the exponent of the sum's last bit. */
XCP_INLINE struct xcp_num xcp_acc_num(const struct xcp_acc *acc, xcp_s32 e) {
    xcp_s32 k;
    if (acc->hi == 0)
        return xcp_num_scaled(acc->lo, e);
    k = xcp_clz(acc->hi);
    return xcp_num_scaled(k ? (acc->hi << k) | (acc->lo >> (64 - k)) : acc->hi, e + 64 - k);
}

/* acc += segments * m * 2^e, m below 2^64, segments up to 65535. */
XCP_INLINE void xcp_acc_add_times(struct xcp_acc *acc, xcp_u64 m, xcp_s32 e, xcp_u32 segments) {
    if (segments == 1) {
        xcp_acc_add(acc, m, e);
    } else {
        xcp_acc_add(acc, (m >> 32) * segments, e + 32);
        xcp_acc_add(acc, (m & 0xffffffffULL) * segments, e);
    }
}

/* acc += b, saturating as xcp_acc_add. */
XCP_INLINE void xcp_acc_plus(struct xcp_acc *acc, const struct xcp_acc *b) {
    xcp_acc_add(acc, b->lo, 0);
    xcp_acc_add(acc, b->hi, 64);
}

/* a - b for sums of which b is part of a. */
XCP_INLINE struct xcp_acc xcp_acc_minus(const struct xcp_acc *a, const struct xcp_acc *b) {
    struct xcp_acc left = {a->hi - b->hi - (a->lo < b->lo), a->lo - b->lo};
    return left;
}

/* min(a + b, XCP_Q20_MAX) for q20 values. */
XCP_INLINE xcp_u64 xcp_q20_add(xcp_u64 a, xcp_u64 b) {
    xcp_u64 sum = a + b;
    return sum > XCP_Q20_MAX ? XCP_Q20_MAX : sum;
}

/* bytes in elapsed ns (0 counts as 1) as q20 bytes/s. */
XCP_INLINE xcp_u64 xcp_rate(xcp_u64 bytes, xcp_u64 elapsed) {
    return xcp_num_q20(xcp_num_div(xcp_num_mul(xcp_num_of(bytes), xcp_num_of(XCP_NS_PER_S)),
                                   xcp_num_of(elapsed ? elapsed : 1)));
}

/* Whether length has passed since start; a clock that steps back has not. */
XCP_INLINE int xcp_passed(xcp_u64 now, xcp_u64 start, xcp_u64 length) {
    xcp_u64 elapsed = now - start;
    return elapsed >= length && !(elapsed >> 63);
}

#endif
