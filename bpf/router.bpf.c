// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An XCP router on a device's way out: TCX (or clsact) egress, in front of the root qdisc, whose
 * rate is the capacity and whose backlog is the queue. Finds the XCP option, lets engine/router.h
 * see and lower it, mends the checksum. One router per loaded object.
 *
 *   1. A packet is seen once, before it enters the queue: arrival and departure are settled
 *      together then, with the backlog of before the packet (engine: xcp_router_burst). The
 *      engine's other user, the simulator, settles the departure when the packet leaves.
 *   2. Anything that is not XCP, or cannot be read, passes untouched and counts as input traffic:
 *      by a counter, of which the law hears with the next packet of XCP's. It closes no interval;
 *      where no XCP passes there is nothing to close.
 *   3. Nothing is dropped, unless there is a policer (engine/policer.h): then what it refuses. It
 *      knows senders by their addresses; a packet that does not get at the law's state passes
 *      without it, too.
 *   4. A forward header on a packet without data is not believed: the packet counts as other
 *      traffic, and what it asks for is set to nothing. Claims without traffic cost their sender
 *      next to nothing, and as many small packets as you like may be sent for the price of one of
 *      data.
 *   5. Where XCP's packets and all others have a queue each, the program says which (skb->priority)
 *      and looks at the one of XCP's.
 *   6. Or what is urgent has a queue of its own, up to a bound (router_urgent.h): the law sees both
 *      queues as one, and gives an urgent packet what it gives any other.
 */
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
/* enum xcp_police. What only the policer needs is not in a program that has none: the verifier
 * takes it out. */
const volatile __u32 police = XCP_POLICE_NOBODY;
const volatile __u32 police_sets = 1; /* entries of the table, a power of two */
/* What counts of a source address, as it lies in the packet. */
const volatile __u32 police_mask_v4 = ~0U;
const volatile __u64 police_mask_v6[2] = {~0ULL, ~0ULL};
/* Where XCP's packets and all others wait in queues of their own: the classes of the shaper
 * (crates/xcp-linux/src/qdisc). 0: there is one queue. */
const volatile __u32 xcp_class = 0;
const volatile __u32 others_class = 0;
/* Where what is urgent may have a queue of its own: its class. The rest keeps the priority that it
 * has, and goes where the shaper sends what it knows nothing of. */
const volatile __u32 urgent_class = 0;

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct xcp_port);
} port SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct xcp_control);
} control SEC(".maps");

/* The policer's table; the loader gives it as many entries as there are sets. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct xcp_policed_set);
} policed SEC(".maps");

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym;
extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym;

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
    __u16 option;  /* offset of the XCP option from the frame's start */
    __u16 tcp;     /* of the TCP header */
    __u16 headers; /* bytes before the payload, as far as they are known */
    __u16 ip;      /* offset of the IP header, where the policer asks for it */
    __u8 is_forward;
    __u8 is_return;
    __u8 classic;
    __u8 malformed;
    __u8 found; /* enum xcp_found */
    __u8 dscp;
    __u8 reserved[2];
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
/* Looks for the XCP option in a TCP header, length bytes of options from there on. */
#define XCP_FAR 2048
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
        seen->headers = segment.tcp + TCP_HEADER + segment.options;
        if (police)
            seen->ip = segment.ip;
        xcp_look_into(skb, segment.tcp + TCP_HEADER, segment.options, seen);
    }
    return 0;
}

static __always_inline struct xcp_port *the_port(void) {
    __u32 zero = 0;
    return bpf_map_lookup_elem(&port, &zero);
}

/* A packet that has nothing to say to the law. */
static __always_inline void count_other(const struct xcp_seen *seen, __u64 backlog) {
    struct xcp_port *p = the_port();
    struct xcp_port_others *o;
    __u32 segments = seen->segments;
    if (!p)
        return;
    o = &p->others;
    __sync_fetch_and_add(&o->packets, segments);
    __sync_fetch_and_add(&o->bytes, seen->bytes);
    if (backlog < o->least_backlog)
        /* of two at once one may be lost: neither is far from the other */
        o->least_backlog = backlog;
    if (seen->is_return && !seen->is_forward) {
        __sync_fetch_and_add(&o->returned, segments);
        __sync_fetch_and_add(&o->returned_bytes, seen->bytes);
    }
    if (seen->found == XCP_FOUND_FRAGMENT)
        __sync_fetch_and_add(&o->fragments, segments);
    else if (seen->found == XCP_FOUND_BEYOND)
        __sync_fetch_and_add(&o->unreadable, segments);
    if (seen->malformed || seen->found == XCP_FOUND_BROKEN)
        __sync_fetch_and_add(&o->malformed, segments);
    if (seen->is_forward == XCP_BELIEVED)
        __sync_fetch_and_add(&o->contended, segments);
}

/* Whose a packet is, for the policer's table. */
__noinline __u64 xcp_whose(struct __sk_buff *skb, const struct xcp_seen *seen) {
    void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
    struct xcp_port *p = the_port();
    __u64 key;
    __u8 *ip, *tcp;
    if (!seen || !p)
        return 0;
    ip = data + (seen->ip & (XCP_FAR - 1));
    tcp = data + (seen->tcp & (XCP_FAR - 1));
    if ((void *)ip + 40 > end || (void *)tcp + 4 > end) /* 40: IPv6, and IPv4 with TCP behind it */
        return 0;
    if (ip[0] >> 4 == 4) {
        if (police == XCP_POLICE_SOURCES)
            return *(__u32 *)(ip + 12) & police_mask_v4;
        key = *(__u64 *)(ip + 12); /* both addresses */
    } else {
        key = *(__u64 *)(ip + 8);
        if (police == XCP_POLICE_SOURCES)
            return xcp_policer_join(&p->policer, key & police_mask_v6[0],
                                    *(__u64 *)(ip + 16) & police_mask_v6[1]);
        key = xcp_policer_join(&p->policer, key, *(__u64 *)(ip + 16));
        key = xcp_policer_join(&p->policer, key, *(__u64 *)(ip + 24));
        key = xcp_policer_join(&p->policer, key, *(__u64 *)(ip + 32));
    }
    return xcp_policer_join(&p->policer, key, *(__u32 *)tcp); /* both ports */
}

/* The policer, before the law. Returns 1 where it refuses the packet. */
__noinline int xcp_police(struct xcp_port *p, struct xcp_policed_set *set, __u32 owner,
                          const struct xcp_seen *seen, struct xcp_forward *forward) {
    if (!p || !set || !seen || !forward)
        return 0;
    return xcp_policer_packet(&p->policer, &p->router, set, owner, seen->now, seen->bytes,
                              seen->segments, forward);
}

#define XCP_TRIES 1024

/* Takes the guard; returns what to give back with, or 0. */
static __always_inline __u64 take(struct xcp_port *p) {
    __u32 i;
    for (i = 0; i < XCP_TRIES; i++) {
        __u64 free = *(volatile __u64 *)&p->sequence;
        if (!(free & 1) && __sync_val_compare_and_swap(&p->sequence, free, free + 1) == free)
            return free + 1;
    }
    return 0;
}

/* An exchange, for its barrier: what was written must be seen before the guard is seen free. */
static __always_inline void give(struct xcp_port *p, __u64 taken) {
    __sync_lock_test_and_set(&p->sequence, taken + 1);
}

#include "router_urgent.h"

/* What became of a packet. */
enum xcp_settled {
    XCP_SETTLED,
    XCP_REFUSED,
    XCP_CONTENDED, /* nobody has asked the law */
};

/* The policer if there is one, the router's law, and the books. key: whose the packet is. Returns
 * enum xcp_settled. */
__noinline int xcp_settle(struct xcp_seen *seen, __u64 key) {
    struct xcp_port *p = the_port();
    struct xcp_policed_set *set = 0;
    struct xcp_control *c;
    struct xcp_forward forward;
    __u64 now, backlog, capacity, packets, bytes, returned, returned_bytes, least, taken;
    __u32 zero = 0, segments, size, owner = 0;
    if (!seen)
        return XCP_CONTENDED;
    c = bpf_map_lookup_elem(&control, &zero);
    if (!p || !c)
        return XCP_CONTENDED;
    if (police) {
        /* the seed stays what it is: that needs no guard */
        __u64 hash = xcp_policer_hash(&p->policer, key);
        __u32 place = xcp_policer_place(hash, police_sets);
        owner = (__u32)hash;
        set = bpf_map_lookup_elem(&policed, &place);
        if (!set)
            return XCP_CONTENDED;
    }
    forward = seen->forward;
    now = seen->now;
    backlog = seen->backlog;
    segments = seen->segments;
    size = seen->bytes;
    capacity = c->capacity;
    if (seen->malformed)
        __sync_fetch_and_add(&p->others.malformed, segments);

    taken = take(p);
    if (!taken)
        return XCP_CONTENDED;
    if (capacity != p->router.law.capacity)
        xcp_router_set_capacity(&p->router, capacity);
    packets = p->others.packets;
    if (packets != p->told.packets) {
        bytes = p->others.bytes;
        least = p->others.least_backlog;
        p->others.least_backlog = ~0ULL;
        returned = p->others.returned;
        returned_bytes = p->others.returned_bytes;
        xcp_router_others(&p->router, bytes - p->told.bytes, packets - p->told.packets,
                          returned_bytes - p->told.returned_bytes, returned - p->told.returned,
                          least);
        p->told.returned = returned;
        p->told.returned_bytes = returned_bytes;
        p->told.packets = packets;
        p->told.bytes = bytes;
    }
    xcp_router_tick(&p->router, now, backlog);
    if (police && xcp_police(p, set, owner, seen, &forward)) {
        give(p, taken);
        return XCP_REFUSED;
    }
    xcp_router_burst(&p->router, now, size, segments, &forward);
    p->counts.processed += segments;
    p->counts.processed_bytes += size;
    p->counts.lowered += forward.feedback != seen->forward.feedback ? segments : 0;
    p->counts.backlog = backlog;
    if (backlog > p->counts.backlog_max)
        p->counts.backlog_max = backlog;
    give(p, taken);
    seen->forward = forward;
    return XCP_SETTLED;
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
        if (police) {
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
        if (police)
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

/* Of all queueing disciplines of a device, how many are looked at for one: those whose numbers have
 * the same hash. */
/* hash_32 of linux/hash.h, by which the kernel files queueing disciplines in qdisc_hash. */
#define XCP_DISCIPLINES 16
#define XCP_QDISC_BUCKET(handle) ((__u32)((handle)*0x61c88647U) >> 28)

/* Bytes that wait in the queue of XCP's class, or at the device where somebody has taken that
 * away. */
__noinline __u64 xcp_class_backlog(struct __sk_buff *skb) {
    struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
    struct hlist_node *node = kernel->dev->qdisc_hash[XCP_QDISC_BUCKET(XCP_CLASS_QUEUE)].first;
    __u32 i;
    for (i = 0; i < XCP_DISCIPLINES && node; i++) {
        struct Qdisc *qdisc =
            bpf_rdonly_cast((void *)node - bpf_core_field_offset(struct Qdisc, hash),
                            bpf_core_type_id_kernel(struct Qdisc));
        if (qdisc->handle == XCP_CLASS_QUEUE)
            return qdisc->qstats.backlog;
        node = qdisc->hash.next;
    }
    return kernel->dev->_tx->qdisc->qstats.backlog;
}

/* Bytes that wait at the device. */
static __always_inline __u64 waiting(struct __sk_buff *skb, const struct sk_buff *kernel) {
    if (rehearsal) {
        __u32 mark = skb->mark;
        /* one load for both branches would need address arithmetic on the context */
        XCP_OPAQUE(mark);
        return mark;
    }
    if (xcp_class)
        return xcp_class_backlog(skb);
    return kernel->dev->_tx->qdisc->qstats.backlog;
}

/*
 * Sends a packet to its queue. XCP's are those that the law, and the policer, answer for, and the
 * acknowledgements that come back for them: a header that the law does not believe, or that no data
 * stands behind, is no ticket.
 */
static __always_inline void classify(struct __sk_buff *skb, const struct xcp_seen *seen) {
    __u32 empty = skb->len <= seen->headers;
    if (urgent_class && xcp_is_urgent(skb, seen))
        skb->priority = urgent_class;
    if (!xcp_class)
        return;
    skb->priority =
        seen->is_forward == XCP_BELIEVED || (!seen->is_forward && seen->is_return && empty)
            ? xcp_class
            : others_class;
}

/* More than the coarse clock lags behind: two ticks of the slowest kernels. */
#define XCP_COARSE_NS 20000000ULL

/*
 * The time. The law wants it only to see whether an interval has run out; while that is far off,
 * the coarse clock, which is one load, shows it as well as the exact one, which asks the
 * processor's counter (29 of 163 ns here).
 *
 * The policer always has the exact one. It reckons with the time between packets; and who gets to
 * see now the one and now the other sees time step back by up to a tick in every interval, which
 * senders could claim twice: 4 ms of a d of 100 are more than the policer lets anybody gain.
 */
static __always_inline __u64 time(struct __sk_buff *skb) {
    struct xcp_port *p = the_port();
    __u64 coarse;
    if (rehearsal)
        return skb->tstamp;
    if (police)
        return bpf_ktime_get_ns();
    coarse = bpf_ktime_get_coarse_ns();
    if (p && p->router.rtt_known && coarse + XCP_COARSE_NS < p->router.next_ns)
        return coarse;
    return bpf_ktime_get_ns();
}

SEC("tcx/egress")
int xcp_router(struct __sk_buff *skb) {
    struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
    struct xcp_seen seen = {};
    __u64 backlog = waiting(skb, kernel);
    int settled;
    xcp_look(skb, &seen);
    seen.bytes = skb->wire_len;
    seen.segments = xcp_segments(skb->gso_segs, skb->gso_size,
                                 skb->len > seen.headers ? skb->len - seen.headers : 0);
    /* no sender of ours writes a forward header without data: it is a claim without the traffic
     * that it is about */
    if (seen.is_forward && skb->len <= seen.headers)
        seen.is_forward = XCP_EMPTY;
    classify(skb, &seen);
    if (!seen.is_forward) {
        count_other(&seen, backlog);
        return XCP_NEXT;
    }
    seen.backlog = backlog;
    if (seen.is_forward == XCP_BELIEVED)
        seen.now = time(skb);
    settled =
        seen.is_forward == XCP_EMPTY ? -1 : xcp_settle(&seen, police ? xcp_whose(skb, &seen) : 0);
    if (police && settled == XCP_REFUSED)
        return XCP_DROP;
    if (settled) {
        count_other(&seen, backlog);
        xcp_router_withhold(&seen.forward);
    }
    xcp_write_back(skb, &seen,
                   BPF_CORE_READ_BITFIELD(kernel, ip_summed) == CHECKSUM_PARTIAL && !rehearsal);
    return XCP_NEXT;
}
