/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is urgent goes first, up to a bound: packets whose DSCP (RFC 2474) user space has named.
 * Part of router.bpf.c.
 *
 *   1. The bound is a share of the capacity, kept by a token bucket: as the time until which what
 *      went first would take at that rate, which may be so far ahead of now as the burst takes (the
 *      virtual scheduling algorithm of ITU-T I.371, and in effect RFC 2697's committed bucket). The
 *      burst takes the link XCP_URGENT_LINK_NS, so nobody waits longer than that for what is
 *      urgent. One packet may go whatever its size.
 *   2. Who meets an empty bucket is ordinary from then on for XCP_URGENT_ORDINARY_NS, and not with
 *      this packet alone: a flow whose packets took now the one queue and now the other would
 *      overtake itself all the time, and TCP would take that for losses.
 *   3. A flow that has more than XCP_URGENT_PART of the bound finds the bucket empty when it is
 *      half empty: so those that send much are the first to be ordinary, and a call goes on
 *      undisturbed beside downloads that have its mark.
 *   4. The law knows nothing of this: an urgent flow is given what others are given. Where
 *      everybody marks everything all have their shares, and the bound's part of the packets goes
 *      first.
 */

/* What the bucket holds, as time of the whole link. */
#define XCP_URGENT_LINK_NS 20000000ULL
#define XCP_URGENT_ORDINARY_NS 2000000000ULL
/* The part of the bound that makes a flow a large one: an eighth. */
#define XCP_URGENT_PART 8
/* Tries to account for a packet, beside other processors. */
#define XCP_URGENT_TRIES 8

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct xcp_urgency);
} urgency SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct xcp_urgent);
} urgent SEC(".maps");

/* urgent_places of them where there may be urgent ones: the loader sees to that. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct xcp_urgent_flow);
} urgent_flows SEC(".maps");

/* Lets a packet of a flow go first, or not. */
static __always_inline __u32 urgent_fits(struct xcp_urgent *all, struct xcp_urgent_flow *flow,
                                         __u64 cost, __u64 burst, __u64 now) {
    __u64 own = flow->until_ns > now ? flow->until_ns : now, seen, from;
    __u64 room = own - now > burst ? burst / 2 : burst;
    __u32 i;
    for (i = 0; i < XCP_URGENT_TRIES; i++) {
        seen = *(volatile __u64 *)&all->until_ns;
        from = seen > now ? seen : now;
        if (from - now > room)
            break;
        if (__sync_val_compare_and_swap(&all->until_ns, seen, from + cost) == seen) {
            /* of two at once one may be lost: the flow is a little larger than it seems */
            flow->until_ns = own + cost * XCP_URGENT_PART;
            return 1;
        }
    }
    flow->ordinary_ns = now + XCP_URGENT_ORDINARY_NS;
    return 0;
}

/* Whether a packet goes first. */
__noinline int xcp_is_urgent(struct __sk_buff *skb, const struct xcp_seen *seen) {
    __u32 zero = 0, place;
    struct xcp_urgent_flow *flow;
    struct xcp_urgency *u;
    struct xcp_control *c;
    struct xcp_urgent *all;
    __u64 now, share, rate;
    if (!seen)
        return 0;
    u = bpf_map_lookup_elem(&urgency, &zero);
    if (!u || !(u->codes >> (seen->dscp & 63) & 1))
        return 0;
    c = bpf_map_lookup_elem(&control, &zero);
    all = bpf_map_lookup_elem(&urgent, &zero);
    place = bpf_get_hash_recalc(skb) & (urgent_places - 1);
    flow = bpf_map_lookup_elem(&urgent_flows, &place);
    if (!c || !all || !flow)
        return 0;
    share = u->share;
    rate = c->capacity * share; /* thousandths of bytes/s */
    if (rate == 0)
        return 0;
    now = bpf_ktime_get_ns();
    if (now >= flow->ordinary_ns && urgent_fits(all, flow, seen->bytes * 1000000000000ULL / rate,
                                                XCP_URGENT_LINK_NS * 1000 / share, now)) {
        __sync_fetch_and_add(&all->packets, seen->segments);
        __sync_fetch_and_add(&all->bytes, seen->bytes);
        return 1;
    }
    __sync_fetch_and_add(&all->excess, seen->segments);
    __sync_fetch_and_add(&all->excess_bytes, seen->bytes);
    return 0;
}
