/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The guard of a router's state, a sequence lock of our own: bpf/router.h says why and how. */
#ifndef XCP_GUARD_H
#define XCP_GUARD_H

#include "headers.h"

#define XCP_TRIES 1024

/* Takes the guard; returns what to give back with, or 0. */
static __always_inline __u64 take(__u64 *sequence) {
    __u32 i;
    for (i = 0; i < XCP_TRIES; i++) {
        __u64 free = *(volatile __u64 *)sequence;
        if (!(free & 1) && __sync_val_compare_and_swap(sequence, free, free + 1) == free)
            return free + 1;
    }
    return 0;
}

/* An exchange, for its barrier: what was written must be seen before the guard is seen free. */
static __always_inline void give(__u64 *sequence, __u64 taken) {
    __sync_lock_test_and_set(sequence, taken + 1);
}

#endif
