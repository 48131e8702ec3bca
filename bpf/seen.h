/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A packet as a router's program sees it: what it is, where its XCP option lies, what waits before
 * it; and the header written back with its checksum mended. What the law makes of it is left to the
 * programs: router.bpf.c, and robust.bpf.c for the law that remembers its promises.
 *
 * A program defines before it includes this:
 *
 *   XCP_ASKS_WHOSE      whether it wants to know where the IP header is
 *   XCP_CHANGES_WINDOW  whether the header's window may have to be written back, too
 */
#ifndef XCP_SEEN_H
#define XCP_SEEN_H

#include "headers.h"

#include <bpf/bpf_core_read.h>

#include "xcp.h"

#include "router.h"

#define CHECKSUM_PARTIAL 3
#define XCP_PULL 256 /* bytes that hold all headers we look at */

char _license[] SEC("license") = "GPL";

/* Set by the loader before the program is loaded. */
const volatile __u32 link_bytes = 14; /* of the device's link-layer header, VLAN tags not counted */
/* Under test: time is skb->tstamp and the backlog skb->mark, so that a run can be repeated on the
 * host. */
const volatile __u32 rehearsal = 0;

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym;

/* What a forward header is to the router (xcp_seen.is_forward). */
#define XCP_BELIEVED 1
#define XCP_EMPTY 2 /* on a packet that carries no data */

/* What a packet is to the router. */
struct xcp_seen {
    struct xcp_forward forward;
    __u64 now;
    __u64 backlog; /* bytes that wait before it */
    __u32 bytes;
    __u32 segments;
    __u32 payload; /* bytes behind all headers, as far as they are known */
    __u16 option;  /* offset of the XCP option from the frame's start */
    __u16 tcp;     /* of the TCP header */
    __u16 ip;      /* offset of the IP header, where somebody asks for it */
    __u8 is_forward;
    __u8 is_return;
    __u8 classic;
    __u8 malformed;
    __u8 found; /* enum xcp_found */
    __u8 dscp;
};

/*
 * The program is made of functions that are not static: the verifier goes through each of them
 * once, knowing nothing of its callers, instead of once for every way that leads to it.
 */

/* Any layout: the options go to the engine. */
__noinline int xcp_search(struct __sk_buff *skb, __u32 from, __u32 length,
                          struct xcp_options *found) {
    __u8 block[XCP_OPTIONS_MAX] = {};
    if (!found)
        return -1;
    if (length == 0 || length > XCP_OPTIONS_MAX || bpf_skb_load_bytes(skb, from, block, length))
        return -1;
    xcp_options_find(block, length, found);
    return 0;
}

/* Headers reach at most this far into a frame; the verifier wants a bound. */
#define XCP_FAR 2048

/* The ends of a connection, as they stand in the packet. */
struct xcp_ends {
    __u64 words[4]; /* both addresses; of IPv4 in the first */
    __u32 ports;    /* both */
    __u8 is_v4;
};

/* Reads them from a packet of TCP. Returns 0 where it is too short. */
static __always_inline int read_ends(struct __sk_buff *skb, const struct xcp_seen *seen,
                                     struct xcp_ends *ends) {
    void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
    __u8 *ip = data + (seen->ip & (XCP_FAR - 1)), *tcp = data + (seen->tcp & (XCP_FAR - 1));
    if ((void *)ip + 40 > end || (void *)tcp + 4 > end) /* 40: IPv6, and IPv4 with TCP behind it */
        return 0;
    ends->is_v4 = ip[0] >> 4 == 4;
    ends->words[0] = *(__u64 *)(ip + (ends->is_v4 ? 12 : 8));
    ends->words[1] = *(__u64 *)(ip + 16);
    ends->words[2] = *(__u64 *)(ip + 24);
    ends->words[3] = *(__u64 *)(ip + 32);
    ends->ports = *(__u32 *)tcp;
    return 1;
}

/* Looks for the XCP option in a TCP header, length bytes of options from there on. */
__noinline int xcp_look_into(struct __sk_buff *skb, __u32 from, __u32 length,
                             struct xcp_seen *seen) {
    void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
    __u32 at = 0;
    __u8 *block, *option;
    struct xcp_options found = {XCP_NOT_FOUND, XCP_NOT_FOUND, XCP_NOT_FOUND, 0};
    if (!seen || from >= XCP_FAR || length == 0 || length > XCP_OPTIONS_MAX)
        return -1;
    /* what was compared may have been a copy: the mask is what the verifier sees */
    XCP_OPAQUE(from);
    from &= XCP_FAR - 1;
    block = data + from;
    /* Linux's own segments need no search: [NOP NOP timestamps] [NOP NOP SACK], and then nothing,
     * or ours */
    if (length >= 12 && (void *)block + 12 <= end && *(__u32 *)block == bpf_htonl(0x0101080a)) {
        if (length == 12)
            return 0;
        at = 12;
    }
    if (length - at >= 12 && (void *)block + at + 4 <= end && block[at] == 1 &&
        block[at + 1] == 1 && block[at + 2] == 5) {
        __u32 next = at + 2 + block[at + 3];
        if (next == length)
            return 0;
        if (next < length)
            at = next;
    }
    option = block + at;
    /* what engine/options.h calls an option of ours, when it comes first and a signature has no
     * room after it */
    if (length - at >= XCP_EXTENDED_OFFER_LENGTH &&
        (void *)option + XCP_EXTENDED_OFFER_LENGTH <= end && option[0] == XCP_EXTENDED_KIND &&
        option[1] <= length - at && length - at - option[1] < XCP_OPTION_SIGNATURE_MIN &&
        xcp_get16(option + XCP_EXTENDED_AT_EXID) == XCP_EXTENDED_EXID &&
        (option[XCP_EXTENDED_AT_FLAGS] & XCP_WIRE_VERSION_MASK) == XCP_WIRE_VERSION &&
        option[1] == xcp_extended_length(option[XCP_EXTENDED_AT_FLAGS])) {
        found.extended = (xcp_u8)at;
    } else if (xcp_search(skb, from, length, &found)) {
        return 0;
    }
    seen->malformed = found.malformed;
    data = (void *)(long)skb->data;
    end = (void *)(long)skb->data_end;
    if (found.extended < XCP_OPTIONS_MAX) {
        option = data + from + found.extended;
        if ((void *)option + XCP_EXTENDED_OFFER_LENGTH > end)
            return 0;
        seen->is_return = (option[XCP_EXTENDED_AT_FLAGS] & XCP_WIRE_RETURN) != 0;
        if (option[XCP_EXTENDED_AT_FLAGS] & XCP_WIRE_FORWARD &&
            (void *)option + XCP_EXTENDED_FORWARD_END <= end) {
            xcp_extended_read_forward(option, &seen->forward);
            seen->is_forward = 1;
            seen->option = from + found.extended;
            if (option[XCP_EXTENDED_AT_FLAGS] & XCP_WIRE_IDS) {
                __u8 *ids = option + xcp_extended_ids_at(option[XCP_EXTENDED_AT_FLAGS]);
                if ((void *)ids + 8 <= end)
                    xcp_extended_read_ids(ids, &seen->forward);
            }
        }
    } else if (found.classic_forward < XCP_OPTIONS_MAX) {
        option = data + from + found.classic_forward;
        if ((void *)option + XCP_CLASSIC_FORWARD_LENGTH > end)
            return 0;
        xcp_classic_read_forward(option, &seen->forward);
        seen->is_forward = 1;
        seen->classic = 1;
        seen->option = from + found.classic_forward;
    } else if (found.classic_return < XCP_OPTIONS_MAX) {
        seen->is_return = 1;
    }
    return 0;
}

/* Looks at a packet. */
__noinline int xcp_look(struct __sk_buff *skb, struct xcp_seen *seen) {
    struct xcp_segment segment = {};
    enum xcp_found found;
    __u32 headers = 0, end = skb->len;
    if (!seen)
        return -1;
    found =
        xcp_find_tcp((void *)(long)skb->data, (void *)(long)skb->data_end, link_bytes, &segment);
    if (found == XCP_FOUND_BEYOND &&
        !bpf_skb_pull_data(skb, skb->len < XCP_PULL ? skb->len : XCP_PULL))
        found = xcp_find_tcp((void *)(long)skb->data, (void *)(long)skb->data_end, link_bytes,
                             &segment);
    seen->found = found;
    seen->dscp = segment.dscp;
    if (found == XCP_FOUND_TCP) {
        seen->tcp = segment.tcp;
        headers = segment.tcp + TCP_HEADER + segment.options;
        /* what Ethernet fills a short frame up with is no data; only what is yet to be cut up may
         * have no length of its own (BIG TCP) */
        if (segment.end ? segment.end < end : !skb->gso_size)
            end = segment.end;
        if (XCP_ASKS_WHOSE)
            seen->ip = segment.ip;
        xcp_look_into(skb, segment.tcp + TCP_HEADER, segment.options, seen);
        if (seen->is_forward && !seen->forward.rtt) {
            __u8 flags = 0;
            if (!bpf_skb_load_bytes(skb, segment.tcp + TCP_FLAGS, &flags, 1) &&
                flags & TCP_FLAG_SYN)
                seen->forward.flags |= XCP_OPENS;
        }
    }
    seen->payload = end > headers ? end - headers : 0;
    return 0;
}

/* What a packet is by its length, when its headers have been looked at. */
static __always_inline void measure(struct __sk_buff *skb, struct xcp_seen *seen) {
    seen->bytes = skb->wire_len;
    seen->segments = xcp_segments(skb->gso_segs, skb->gso_size, seen->payload);
    /* no sender of ours writes a forward header without data: it is a claim without the traffic
     * that it is about */
    if (seen->is_forward && !seen->payload)
        seen->is_forward = XCP_EMPTY;
}

/*
 * htb takes a packet's priority for the number of a class of its own, or for its own number, and
 * then sends the packet past all of them, as fast as the device can (htb_classify). Our shapers'
 * numbers are known, and priorities are set by those who may not set up shapers: whoever has
 * CAP_NET_RAW in a container, on a macvlan or VLAN above this device.
 */
static __always_inline void forget_class(struct __sk_buff *skb) {
    __u32 shaper = skb->priority >> 16;
    if (shaper == XCP_SHAPER || shaper == XCP_PROXYS_SHAPER)
        skb->priority = 0;
}

/* Adds to a counter, which others may be adding to at the same time. */
static __always_inline void add(__u64 *to, __u64 more, int shared) {
    if (shared)
        __sync_fetch_and_add(to, more);
    else
        *to += more;
}

/* What became of a packet. */
enum xcp_settled {
    XCP_SETTLED,
    XCP_REFUSED,
    XCP_CONTENDED, /* nobody has asked the law */
};

/* A packet whose header the law has made this of, in the books, which somebody guards. */
static __always_inline void count_data(struct xcp_port_counts *counts, const struct xcp_seen *seen,
                                       const struct xcp_forward *forward) {
    counts->processed += seen->segments;
    counts->processed_bytes += seen->bytes;
    counts->lowered += forward->feedback != seen->forward.feedback ? seen->segments : 0;
    counts->backlog = seen->backlog;
    if (seen->backlog > counts->backlog_max)
        counts->backlog_max = seen->backlog;
}

/* A packet that has nothing to say to the law, in the books; shared: nothing guards them. */
static __always_inline void count_other(struct xcp_port_others *o, const struct xcp_seen *seen,
                                        int shared) {
    __u32 segments = seen->segments;
    add(&o->packets, segments, shared);
    add(&o->bytes, seen->bytes, shared);
    if (seen->is_return && !seen->is_forward) {
        add(&o->returned, segments, shared);
        add(&o->returned_bytes, seen->bytes, shared);
    }
    if (seen->found == XCP_FOUND_FRAGMENT)
        add(&o->fragments, segments, shared);
    else if (seen->found == XCP_FOUND_BEYOND)
        add(&o->unreadable, segments, shared);
    if (seen->malformed || seen->found == XCP_FOUND_BROKEN)
        add(&o->malformed, segments, shared);
    if (seen->is_forward == XCP_BELIEVED)
        add(&o->contended, segments, shared);
}

/* Bytes that wait at the device, but for XCP's own queue where it has one. */
static __always_inline __u64 waiting(struct __sk_buff *skb, const struct sk_buff *kernel) {
    if (rehearsal) {
        __u32 mark = skb->mark;
        /* one load for both branches would need address arithmetic on the context */
        XCP_OPAQUE(mark);
        return mark;
    }
    return kernel->dev->_tx->qdisc->qstats.backlog;
}

/* RFC 1624 eq. (3), with 32-bit words: what the checksum becomes when `was` is replaced by `is`,
 * both as they lie in memory. */
static __always_inline __u16 mend(__u16 checksum, __u32 was, __u32 is) {
    __u64 sum = (__u16)~checksum;
    sum += (__u32)~was;
    sum += is;
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (__u16)~sum;
}

/* Four bytes of the packet, rotated into the checksum's words where they start at an odd offset. */
static __always_inline __u32 words(const __u8 *p, __u32 odd) {
    __u32 v;
    __builtin_memcpy(&v, p, 4);
    return odd ? v << 8 | v >> 24 : v;
}

/*
 * Writes the header back. A checksum that the device or the stack has yet to make
 * (CHECKSUM_PARTIAL) covers what is written here. A function of its own so that what it keeps on
 * the stack is not there too while the law runs: 512 bytes are all there is.
 */
__noinline int xcp_write_back(struct __sk_buff *skb, const struct xcp_seen *seen, __u32 partial) {
    void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
    __u32 at, tcp_at, odd, was;
    __u8 *option, *tcp;
    __u16 *checksum;
    if (!seen)
        return -1;
    at = seen->option;
    tcp_at = seen->tcp;
    odd = (at ^ tcp_at) & 1;
    option = data + at;
    tcp = data + tcp_at;
    checksum = (__u16 *)(tcp + 16);
    if (at > XCP_FAR || tcp_at > XCP_FAR || (void *)tcp + TCP_HEADER > end)
        return -1;
    if (seen->classic) {
        if ((void *)option + XCP_CLASSIC_FORWARD_LENGTH > end)
            return -1;
        was = words(option, odd);
        xcp_put16(option + XCP_CLASSIC_AT_FEEDBACK, seen->forward.feedback);
        if (!partial)
            *checksum = mend(*checksum, was, words(option, odd));
        if (XCP_CHANGES_WINDOW) {
            was = words(option + XCP_CLASSIC_AT_RTT, odd);
            xcp_put16(option + XCP_CLASSIC_AT_WINDOW, seen->forward.window);
            if (!partial)
                *checksum = mend(*checksum, was, words(option + XCP_CLASSIC_AT_RTT, odd));
        }
    } else {
        __u32 was_flags;
        if ((void *)option + XCP_EXTENDED_FORWARD_END > end)
            return -1;
        was_flags = words(option + XCP_EXTENDED_AT_FLAGS, odd);
        was = words(option + XCP_EXTENDED_AT_WINDOW, odd);
        xcp_extended_rewrite(option, &seen->forward);
        if (XCP_CHANGES_WINDOW)
            xcp_put16(option + XCP_EXTENDED_AT_WINDOW, seen->forward.window);
        if (!partial)
            *checksum = mend(mend(*checksum, was_flags, words(option + XCP_EXTENDED_AT_FLAGS, odd)),
                             was, words(option + XCP_EXTENDED_AT_WINDOW, odd));
        if (seen->forward.flags & XCP_IDS) {
            __u8 *next = option + xcp_extended_ids_at(option[XCP_EXTENDED_AT_FLAGS]) + 4;
            if ((void *)next + 4 > end)
                return -1;
            was = words(next, odd);
            xcp_put32(next, seen->forward.next_bottleneck_id);
            if (!partial)
                *checksum = mend(*checksum, was, words(next, odd));
        }
    }
    return 0;
}

#endif
