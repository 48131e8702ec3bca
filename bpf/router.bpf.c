// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * An XCP router on a device's way out: TCX (or clsact) egress, in front of the root qdisc, whose
 * rate is the capacity and whose backlog is the queue. Finds the XCP option (seen.h), lets
 * engine/router.h see and lower it. One router per loaded object. The law that remembers its
 * promises has a program of its own: robust.bpf.c.
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

#include "xcp.h"

#include "router.h"

#include "guard.h"

/* What only the policer needs is not in a program that has none: the verifier takes it out. */
const volatile enum xcp_police police = XCP_POLICE_NOBODY;
const volatile __u32 police_sets = 1; /* entries of the table, a power of two */
/* What counts of a source address, as it lies in the packet. */
const volatile __u32 police_mask_v4 = ~0U;
const volatile __u64 police_mask_v6[2] = {~0ULL, ~0ULL};
/* Where XCP's packets and all others wait in queues of their own: the classes of the shaper
 * (crates/xcp-linux/src/qdisc). 0: there is one queue. */
const volatile __u32 xcp_class = 0;
const volatile __u32 others_class = 0;
/* Where what is urgent may have a queue of its own: its class. The rest keeps the priority that it
 * has, unless that is a class of ours, and goes where the shaper sends what it knows nothing of. */
const volatile __u32 urgent_class = 0;
const volatile __u32 urgent_places = 4096; /* for its flows: a power of two */

#define XCP_ASKS_WHOSE police
#define XCP_CHANGES_WINDOW police
#include "seen.h"

extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym;

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

static __always_inline struct xcp_port *the_port(void) {
    __u32 zero = 0;
    return bpf_map_lookup_elem(&port, &zero);
}

/* A packet that has nothing to say to the law. */
static __always_inline void count(const struct xcp_seen *seen, __u64 backlog) {
    struct xcp_port *p = the_port();
    if (!p)
        return;
    if (backlog < p->others.least_backlog)
        /* of two at once one may be lost: neither is far from the other */
        p->others.least_backlog = backlog;
    count_other(&p->others, seen, 1);
}

/* Whose a packet is, for the policer's table. */
__noinline __u64 xcp_whose(struct __sk_buff *skb, const struct xcp_seen *seen) {
    struct xcp_port *p = the_port();
    struct xcp_ends ends;
    __u64 key;
    if (!seen || !p || !read_ends(skb, seen, &ends))
        return 0;
    key = ends.words[0];
    if (ends.is_v4) {
        if (police == XCP_POLICE_SOURCES)
            return *(__u32 *)ends.words & police_mask_v4;
    } else {
        if (police == XCP_POLICE_SOURCES)
            return xcp_policer_join(&p->policer, key & police_mask_v6[0],
                                    ends.words[1] & police_mask_v6[1]);
        key = xcp_policer_join(&p->policer, key, ends.words[1]);
        key = xcp_policer_join(&p->policer, key, ends.words[2]);
        key = xcp_policer_join(&p->policer, key, ends.words[3]);
    }
    return xcp_policer_join(&p->policer, key, ends.ports);
}

/* The policer, before the law. Returns 1 where it refuses the packet. */
__noinline int xcp_police(struct xcp_port *p, struct xcp_policed_set *set, __u32 owner,
                          const struct xcp_seen *seen, struct xcp_forward *forward) {
    if (!p || !set || !seen || !forward)
        return 0;
    return xcp_policer_packet(&p->policer, &p->router, set, owner, seen->now, seen->bytes,
                              seen->segments, forward);
}

#include "router_urgent.h"

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

    taken = take(&p->sequence);
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
        give(&p->sequence, taken);
        return XCP_REFUSED;
    }
    xcp_router_burst(&p->router, now, size, segments, &forward);
    count_data(&p->counts, seen, &forward);
    give(&p->sequence, taken);
    seen->forward = forward;
    return XCP_SETTLED;
}

/* Of all queueing disciplines of a device, how many are looked at for one: those whose numbers have
 * the same hash. */
#define XCP_DISCIPLINES 16
/* hash_32 of linux/hash.h, by which the kernel files queueing disciplines in qdisc_hash. */
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

/*
 * Sends a packet to its queue. XCP's are those that the law, and the policer, answer for, and the
 * acknowledgements that come back for them: a header that the law does not believe, or that no data
 * stands behind, is no ticket.
 */
static __always_inline void classify(struct __sk_buff *skb, const struct xcp_seen *seen) {
    forget_class(skb);
    if (urgent_class && xcp_is_urgent(skb, seen))
        skb->priority = urgent_class;
    if (!xcp_class)
        return;
    skb->priority =
        seen->is_forward == XCP_BELIEVED || (!seen->is_forward && seen->is_return && !seen->payload)
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
    __u64 backlog = xcp_class && !rehearsal ? xcp_class_backlog(skb) : waiting(skb, kernel);
    int settled;
    xcp_look(skb, &seen);
    measure(skb, &seen);
    classify(skb, &seen);
    if (!seen.is_forward) {
        count(&seen, backlog);
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
        count(&seen, backlog);
        xcp_router_withhold(&seen.forward);
        seen.forward.flags &= ~XCP_KEEPS; /* difference 15 of router.h */
    }
    xcp_write_back(skb, &seen,
                   BPF_CORE_READ_BITFIELD(kernel, ip_summed) == CHECKSUM_PARTIAL && !rehearsal);
    return XCP_NEXT;
}
