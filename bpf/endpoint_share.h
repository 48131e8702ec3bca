/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shares by subscriber, on a host that sends for many (the proxy). Part of endpoint.bpf.c.
 *
 *   1. A router shares by flows, so who opens fifty has fifty shares. What it gives goes by X =
 *      RTT / window, the time between two packets of a flow (router.h, path.h). Where a subscriber
 *      has n flows each is to have an n-th of a share, and says so by a window n times as large: X
 *      is an n-th then, the router counts one flow for all of them, and each is given an n-th of
 *      what a flow is given. What is taken goes by bytes, as ever. So shuffling ends where
 *      subscribers have equal shares.
 *   2. n is found as a router finds it: the sum of X over all that the subscriber sends, over the
 *      time, here about a round trip. What is idle counts for nothing. Until a round trip is over
 *      what was seen of it counts where it is many more, so that fifty that begin at once are known
 *      within it.
 *   3. n may be less than one: a fast flow's pacing timer is late on a busy host, and it sends less
 *      than its window lets it (.7 of it was seen, beside fifty slow flows that sent all of theirs
 *      and had 1.4 times as much). By n times its window it is known for what it sends. But half is
 *      the least, so that nobody who sends now and then is given everything; and who was silent is
 *      one flow again.
 *   4. A connection's own window, its pacing and what it is lent to begin with are untouched.
 */

/* Whose a socket is, as user space says; no entry: nobody's but its own. */
struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct xcp_whose);
} whose SEC(".maps");

struct xcp_subscriber {
    __u64 since_ns; /* the interval's beginning */
    __u64 sum_ns;   /* of X in it */
    __u64 flows;    /* in the last one, 2^-16 */
};

/* As many as user space asks for; those that were silent longest give way. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1);
    __type(key, struct xcp_whose);
    __type(value, struct xcp_subscriber);
} subscribers SEC(".maps");

#define XCP_ONE_FLOW (1ULL << 16)
/* Intervals after which a subscriber was silent. */
#define XCP_SHARE_SILENT 4
/* An interval, where round trips are shorter. */
#define XCP_SHARE_LEAST_NS 10000000ULL

/* Flows of a subscriber, 2^-16, with a packet of `count` segments of one of them. */
static __always_inline __u64 share_flows(struct xcp_subscriber *s, __u64 x, __u32 count, __u64 rtt,
                                         __u64 now) {
    __u64 interval = rtt > XCP_SHARE_LEAST_NS ? rtt : XCP_SHARE_LEAST_NS, flows = s->flows;
    __u64 since = s->since_ns, elapsed = now > since ? now - since : 0, sum, seen;
    __sync_fetch_and_add(&s->sum_ns, x * (count ? count : 1));
    sum = s->sum_ns;
    seen = (sum << 16) / (elapsed > interval ? elapsed : interval);
    if (elapsed >= XCP_SHARE_SILENT * interval)
        flows = seen = XCP_ONE_FLOW;
    if (seen > flows + (flows >> 2))
        flows = seen;
    if (elapsed >= interval && __sync_val_compare_and_swap(&s->since_ns, since, now) == since) {
        __sync_fetch_and_add(&s->sum_ns, -sum);
        flows = (flows + seen) / 2;
        s->flows = flows;
    }
    return flows > XCP_ONE_FLOW / 2 ? flows : XCP_ONE_FLOW / 2;
}

/* The window that a header tells is made that of an n-th of a subscriber. */
static __always_inline void share(struct bpf_sock *sk, struct xcp_forward *h, __u32 count,
                                  __u64 rtt, __u64 now) {
    struct xcp_subscriber first = {now, 0, XCP_ONE_FLOW}, *s;
    struct xcp_whose *key;
    __u64 packets; /* 2^-10 */
    xcp_s32 e;
    __u32 m;
    if (h->flags & XCP_CLASSIC || rtt == 0 || h->window < XCP_EXTENDED_WINDOW_ONE)
        return;
    key = bpf_sk_storage_get(&whose, sk, 0, 0);
    if (!key)
        return;
    s = bpf_map_lookup_elem(&subscribers, key);
    if (!s) {
        bpf_map_update_elem(&subscribers, key, &first, BPF_NOEXIST);
        s = bpf_map_lookup_elem(&subscribers, key);
        if (!s)
            return;
    }
    m = xcp_extended_window_decode(h->window, &e);
    packets = (__u64)m << (e + 10 < 32 ? e + 10 : 32);
    h->window = xcp_extended_window_encode(
        m * share_flows(s, (rtt << 10) / packets, count, rtt, now), e - 16);
}
