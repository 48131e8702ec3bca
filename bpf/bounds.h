/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bounds of numbers, said so that every kernel's verifier and every compiler's output go
 * together. */
#ifndef XCP_BPF_BOUNDS_H
#define XCP_BPF_BOUNDS_H

/*
 * Whether a number lies in a range, said so that every verifier understands it. Each comparison
 * reads it anew: of two that the compiler may look at together it makes one,
 * `x - low > high - low`, of a copy, from which the verifiers of Linux 6.12 to 6.18 learn nothing
 * of x itself.
 */
static __always_inline int between(__u64 *x, __u64 low, __u64 high) {
    XCP_OPAQUE(*x);
    if (*x < low)
        return 0;
    XCP_OPAQUE(*x);
    return *x <= high;
}

/*
 * A length that was found to be right, as helpers want it: above 0 for every verifier there is,
 * some of which forget that it was compared (7.3 among them), and at most `most`, one less than a
 * power of two, plus 1.
 */
static __always_inline __u64 some(__u64 x, __u64 most) {
    XCP_OPAQUE(x);
    return ((x - 1) & most) + 1;
}

#endif
