/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Integer types and the two headers, as every other file of engine/ knows them.
 *
 * engine/ is compiled twice: as C11 for the host (simulator, tests) and with `clang -target bpf`
 * for the kernel. It therefore uses nothing but unsigned 64-bit arithmetic and bounded loops: no
 * libc, no floating point, no signed division, no 128-bit types, no global state. Time and packets
 * are arguments.
 */
#ifndef XCP_TYPES_H
#define XCP_TYPES_H

typedef __UINT8_TYPE__ xcp_u8;
typedef __UINT16_TYPE__ xcp_u16;
typedef __UINT32_TYPE__ xcp_u32;
typedef __UINT64_TYPE__ xcp_u64;
typedef __INT32_TYPE__ xcp_s32;
typedef __INT64_TYPE__ xcp_s64;

#define XCP_INLINE static inline __attribute__((always_inline, unused))

/* Once per interval, not per packet: kept out of the hot path on the host. In BPF everything is
 * inlined, because a lock may be held. */
#ifdef __bpf__
#define XCP_COLD XCP_INLINE
#else
#define XCP_COLD static __attribute__((noinline, unused))
#endif

/*
 * A part of the law that only some laws or some packets need. On the host a function like other
 * cold ones. In BPF a function that is not static: the verifier goes through it once, knowing
 * nothing of its callers, instead of once for every way that leads to it. For that it takes five
 * arguments at most, returns a number, and asks whether its pointers are any (XCP_PART_NEEDS).
 */
#ifdef __bpf__
#define XCP_PART __attribute__((noinline)) int
#define XCP_PART_NEEDS(pointers)                                                                   \
    do {                                                                                           \
        if (!(pointers))                                                                           \
            return -1;                                                                             \
    } while (0)
#else
#define XCP_PART static __attribute__((noinline, unused)) int
#define XCP_PART_NEEDS(pointers) ((void)0)
#endif

/* On the host a piece of what it stands in. In BPF a function as above, of what is done in each
 * round of a long loop, since the verifier goes through a loop as often as it is run; or of what
 * has many ways, which would multiply with those of the rest. */
#ifdef __bpf__
#define XCP_STEP XCP_PART
#else
#define XCP_STEP static inline __attribute__((always_inline, unused)) int
#endif

/* A number that the verifier is to know nothing of, however it came about: of a bound that it
 * reached, say, it would follow the consequences through all that comes after. On the host the
 * compiler decides where it is inlined: everywhere, the robust sender would not fit a processor's
 * first cache. */
#ifdef __bpf__
#define XCP_ANY(type) __attribute__((noinline)) type
#else
#define XCP_ANY(type) static __attribute__((unused)) type
#endif

/* Whether what is common is compiled by itself, and what is rare as a function of its own that
 * calls nothing back. In BPF there is one of each. */
#ifdef __bpf__
#define XCP_SPLIT 0
#else
#define XCP_SPLIT 1
#endif

#define XCP_LIKELY(x) __builtin_expect(!!(x), 1)
#define XCP_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The compiler must not reason about x: for arithmetic that it would turn back into the branches it
 * replaces. */
#define XCP_OPAQUE(x) __asm__ volatile("" : "+r"(x))

#define XCP_NS_PER_S 1000000000ULL

/* Flags of a header in memory. They are not the wire's: wire_extended.h and wire_classic.h
 * translate. */
#define XCP_PRESENT 0x01 /* there is a header; all-zero means none */
/* the 16-bit words are encoded as wire_classic.h says, else as wire_extended.h says */
#define XCP_CLASSIC 0x02
#define XCP_MARK 0x04 /* at least one router processed the packet */
#define XCP_IDS 0x08  /* the bottleneck ids mean something */
/* in a return header: it came with data, so that it may be one of several segments' part of a sum;
 * on no wire */
#define XCP_SHARED 0x10
/* the sender keeps the rate that it is given (robust_sender.h), and no router so far has no use for
 * that; in a return header: none had, but where it came with data it says nothing of that */
#define XCP_KEEPS 0x20
/* in a forward header: it came with a SYN (on no wire), or, where the RTT is known, the packet was
 * sent at once with others of its window, not spread over the RTT */
#define XCP_OPENS 0x40
/* classic: feedback is whole packets; for comparison, on no wire (wire_classic.h) */
#define XCP_WHOLE 0x80

/* Forward header: travels with data, words in host order and still encoded. */
struct xcp_forward {
    xcp_u16 rtt;      /* the sender's round-trip time; 0 is unknown */
    xcp_u16 window;   /* packets the sender will really send per round trip */
    xcp_u16 feedback; /* the sender's request, lowered by routers */
    xcp_u8 flags;     /* XCP_PRESENT ... */
    xcp_u8 wait;      /* behind TCP that routers steer: wire_extended.h */
    xcp_u32 bottleneck_id;
    xcp_u32 next_bottleneck_id;
};

/* Return header: travels with acknowledgements. */
struct xcp_return {
    xcp_u16 feedback; /* sum over the packets acknowledged, divided by the segments it is sent in */
    xcp_u8 flags;
    xcp_u8 wait; /* the newest packet's */
    xcp_u32 next_bottleneck_id;
};

#define XCP_WAIT_MAX 15

#endif
