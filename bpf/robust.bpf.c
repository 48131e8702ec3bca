// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An XCP router that remembers its promises (engine/robust.h), on a device's way out. As
 * router.bpf.c, which says what is not said here; different are:
 *
 *   1. Every packet goes to the law at once, others too, and may be the one that ends a part of the
 *      control interval: what the law decides of TCP must not outlive the packets of XCP's.
 *   2. TCP's data without XCP may be dropped, before it enters the queue: the law steers it. Of a
 *      super-packet all segments are.
 *   3. Time is the exact clock's. A part may be half a millisecond, and what is booked under a time
 *      is looked for under that time.
 *   4. There is no policer, and no queue for others apart: the law has no answer to either.
 *   5. Nobody sees packets leave one by one: the capacity is never more than user space says.
 */
#include "headers.h"

#include "xcp.h"

#include "robust.h"

#define XCP_ASKS_WHOSE 1
#define XCP_CHANGES_WINDOW 0
#include "guard.h"
#include "seen.h"

/* One router: as struct xcp_port of router.h. */
struct xcp_robust_port {
    __u64 sequence;
    struct xcp_robust router;
    struct xcp_port_counts counts;
    struct xcp_port_others others; /* guarded, here */
    struct xcp_port_others missed; /* not guarded: those that did not get at the law */
    __u64 steered;                 /* packets of TCP that the law had dropped */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct xcp_robust_port);
} port SEC(".maps");

/* Of this the program reads the capacity only. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct xcp_control);
} control SEC(".maps");

/* What a packet is to the law, beside XCP_OTHER_... of engine/robust.h. */
#define XCP_DATA 3

static __always_inline __u32 kind_of(const struct xcp_seen *seen) {
    if (seen->is_forward == XCP_BELIEVED || (seen->is_forward && xcp_is_opening(&seen->forward)))
        return XCP_DATA;
    if (seen->found != XCP_FOUND_TCP || seen->is_forward)
        return XCP_OTHER_UNKNOWN;
    if (seen->payload) /* a header for the way back makes no XCP of it */
        return XCP_OTHER_TCP;
    return seen->is_return ? XCP_OTHER_ACK : XCP_OTHER_UNKNOWN;
}

/* A hash of a TCP packet's addresses and ports; the law mixes it once more. */
__noinline __u64 xcp_flow(struct __sk_buff *skb, const struct xcp_seen *seen) {
    struct xcp_ends ends;
    xcp_u64 key;
    if (!seen || !read_ends(skb, seen, &ends))
        return 0;
    key = ends.words[0];
    if (!ends.is_v4) {
        xcp_dither_next(&key);
        key ^= ends.words[1];
        xcp_dither_next(&key);
        key ^= ends.words[2];
        xcp_dither_next(&key);
        key ^= ends.words[3];
    }
    xcp_dither_next(&key);
    return key ^ ends.ports;
}

/* The law, and the books. flow: TCP's. Returns enum xcp_settled. */
__noinline int xcp_settle(struct xcp_seen *seen, __u32 kind, __u64 flow) {
    struct xcp_robust_port *p;
    struct xcp_control *c;
    struct xcp_forward forward;
    __u64 now, backlog, capacity, taken;
    __u32 zero = 0, segments, size;
    int settled = XCP_SETTLED;
    if (!seen)
        return XCP_CONTENDED;
    p = bpf_map_lookup_elem(&port, &zero);
    c = bpf_map_lookup_elem(&control, &zero);
    if (!p || !c)
        return XCP_CONTENDED;
    forward = seen->forward;
    now = seen->now;
    backlog = seen->backlog;
    segments = seen->segments;
    size = seen->bytes;
    capacity = c->capacity;

    taken = take(&p->sequence);
    if (!taken) {
        count_other(&p->missed, seen, 1);
        return XCP_CONTENDED;
    }
    if (capacity != p->router.law.capacity)
        xcp_robust_set_capacity(&p->router, capacity);
    xcp_robust_tick(&p->router, now, backlog);
    if (kind == XCP_DATA) {
        xcp_robust_burst(&p->router, now, size, segments, &forward);
        count_data(&p->counts, seen, &forward);
        if (seen->malformed)
            p->others.malformed += segments;
    } else {
        count_other(&p->others, seen, 0);
        if (!xcp_robust_other_burst(&p->router, size, segments, kind, flow)) {
            p->steered += segments;
            settled = XCP_REFUSED;
        }
    }
    give(&p->sequence, taken);
    seen->forward = forward;
    return settled;
}

SEC("tcx/egress")
int xcp_robust(struct __sk_buff *skb) {
    struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
    struct xcp_seen seen = {};
    __u32 kind;
    int settled;
    seen.backlog = waiting(skb, kernel);
    forget_class(skb);
    xcp_look(skb, &seen);
    measure(skb, &seen);
    seen.now = rehearsal ? skb->tstamp : bpf_ktime_get_ns();
    kind = kind_of(&seen);
    settled = xcp_settle(&seen, kind, kind == XCP_OTHER_TCP ? xcp_flow(skb, &seen) : 0);
    if (settled == XCP_REFUSED)
        return XCP_DROP;
    if (!seen.is_forward)
        return XCP_NEXT;
    if (settled || kind != XCP_DATA)
        xcp_router_withhold(&seen.forward);
    xcp_write_back(skb, &seen,
                   BPF_CORE_READ_BITFIELD(kernel, ip_summed) == CHECKSUM_PARTIAL && !rehearsal);
    return XCP_NEXT;
}
