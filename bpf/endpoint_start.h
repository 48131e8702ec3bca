/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a connection begins on a host that is its own router. Such a host shapes the link, so it
 * knows what is free, and need not learn it one round trip after the other (alpha of it at a time:
 * XCP-IR eq. (1)). User space keeps two accounts, in packets, with a limit each; what is taken
 * counts up, here. What a connection takes is a part of what is left, so that no number of
 * beginners takes more than there is, but for a packet each.
 *
 *   1. The first window, when the connection is established: a quarter of what is left, between 2
 *      and 64 packets; 1 packet where nothing is. Before the first ACK nothing more could be sent
 *      in any case: the window in a SYN is not scaled (RFC 7323 §2.2).
 *   2. The rest, with the first ACK at which data wait for the window: three quarters of what is
 *      left, shared with those that began in the same round trip; and less where the connection's
 *      round trip, which is known by then, is shorter than the one that the accounts are for. What
 *      is sent is paced. Who has nothing to send takes nothing.
 *
 * Part of endpoint.bpf.c.
 */

#define XCP_START_LEAST 2
#define XCP_START_MOST 64

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, XCP_START_ENTRIES);
    __type(key, __u32);
    __type(value, __u32);
} start_limits SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, XCP_START_ENTRIES);
    __type(key, __u32);
    __type(value, __u32);
} start_taken SEC(".maps");

/* Packets left in an account; both count modulo 2^32. */
static __always_inline __u32 start_left(__u32 account) {
    __u32 *limit = bpf_map_lookup_elem(&start_limits, &account),
          *taken = bpf_map_lookup_elem(&start_taken, &account);
    __s32 left = limit && taken ? (__s32)(*limit - *taken) : 0;
    return left > 0 ? left : 0;
}

static __always_inline void start_take(__u32 account, __u32 packets) {
    __u32 *taken = bpf_map_lookup_elem(&start_taken, &account);
    if (taken)
        __sync_fetch_and_add(taken, packets);
}

static __always_inline __u32 start_window(void) {
    __u32 left = start_left(XCP_START_WINDOW), packets = left / 4;
    packets = packets > XCP_START_MOST    ? XCP_START_MOST
              : packets < XCP_START_LEAST ? XCP_START_LEAST
                                          : packets;
    if (!left)
        packets = 1;
    start_take(XCP_START_WINDOW, packets);
    start_take(XCP_START_BEGINNERS, 1);
    return packets;
}

static __always_inline void start_rest(struct xcp_connection *c) {
    __u32 entry = XCP_START_BEGINNERS, *among = bpf_map_lookup_elem(&start_limits, &entry), *rtt_us;
    __u32 left = start_left(XCP_START_REST),
          packets = (left - left / 4) / (among && *among ? *among : 1);
    __u64 own_us = c->srtt_ns / 1000;
    entry = XCP_START_RTT;
    rtt_us = bpf_map_lookup_elem(&start_limits, &entry);
    if (rtt_us && own_us < *rtt_us)
        packets = packets * own_us / *rtt_us;
    c->started = 1;
    start_take(XCP_START_REST, packets);
    xcp_sender_restore(&c->sender, c->sender.cwnd + ((__u64)packets << 32), c->sender.threshold);
}
