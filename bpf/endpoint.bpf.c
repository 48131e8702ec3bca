// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * XCP in the kernel's own TCP, sender and receiver: a congestion control (endpoint_window.h), by
 * another sender where that is asked for (endpoint_robust.h), who speaks it (endpoint_handshake.h),
 * the header option (endpoint_options.h), room for it beside SACK (endpoint_room.h), shares of
 * those for whom a host sends (endpoint_share.h) and a view of all of it (endpoint_show.h), around
 * the state of a connection in its socket's storage. What senders and receiver do is
 * engine/sender.h's, engine/robust_sender.h's and engine/receiver.h's; losses, retransmission and
 * the timer are the kernel's.
 *
 * Everything here runs with the socket's lock held, but for packets that waited for a neighbour's
 * address: those may find the sums of a receiver that is being updated. The worst is one feedback
 * counted twice or lost.
 */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "robust_sender.h"
#include "xcp.h"

#include "endpoint.h"
#include "headers.h"

char _license[] SEC("license") = "GPL";

const volatile struct xcp_settings settings = {};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE); /* a listener's wish is its children's */
    __type(key, int);
    __type(value, struct xcp_connection);
} connections SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct xcp_endpoint_counts);
} counts SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct xcp_about);
} about SEC(".maps");

/* Ports, ours or the peer's, whose connections are given XCP. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, __u16);
    __type(value, __u8);
} ports SEC(".maps");

/* Destinations likewise. */
struct {
    __uint(type, BPF_MAP_TYPE_LPM_TRIE);
    __uint(max_entries, 1024);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, struct xcp_prefix);
    __type(value, __u8);
} prefixes SEC(".maps");

#define SOL_TCP 6
#define TCP_CONGESTION 13
#define TCP_USER_TIMEOUT 18
#define TCP_SAVE_SYN 27
#define TCP_BPF_IW 1001
#define TCP_INIT_CWND 10 /* include/net/tcp.h */
#define ENOMSG 42
#define AF_INET 2
#define ETHERNET_HEADER 14

static __always_inline struct xcp_endpoint_counts *books(void) {
    __u32 zero = 0;
    return bpf_map_lookup_elem(&counts, &zero);
}

/* A connection goes on as the fallback; whoever calls this switches the congestion control. */
static __always_inline void fall(struct xcp_connection *c, __u8 why) {
    struct xcp_endpoint_counts *b = books();
    c->state = XCP_FALLEN;
    c->fall = why;
    c->sending = 0;
    if (!b)
        return;
    if (why == XCP_FALL_PEER)
        __sync_fetch_and_add(&b->fallen_peer, 1);
    else if (why == XCP_FALL_SILENT)
        __sync_fetch_and_add(&b->fallen_silent, 1);
    else
        __sync_fetch_and_add(&b->fallen_late, 1);
}

/* The RTT that headers tell: our own average, before its first sample the handshake's. */
static __always_inline __u64 srtt_ns(const struct xcp_connection *c, const struct tcp_sock *tp) {
    return c->srtt_ns ? c->srtt_ns : (__u64)tp->srtt_us * 125; /* srtt_us is shifted by 3 */
}

/* Whether the window is what holds the sender back: it was, at some time within the last round trip
 * (tcp_cwnd_validate), or half of it was used. The kernel does not look while it only retransmits
 * after a timeout: there it is. */
static __always_inline __u32 cwnd_limited(const struct tcp_sock *tp) {
    return BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) == TCP_CA_Loss ||
           BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) || tp->max_packets_out > tp->snd_cwnd >> 1;
}

/* Packets that the peer's window and the data at hand let be in flight. */
static __always_inline __u32 sendable(const struct tcp_sock *tp) {
    __u32 mss = tp->mss_cache, limit = XCP_NO_LIMIT, window;
    if (mss == 0)
        return limit;
    /* nothing more to send, or no buffer for it */
    if (!cwnd_limited(tp) && tp->write_seq - tp->snd_nxt < mss) {
        limit = tp->max_packets_out > tp->packets_out ? tp->max_packets_out : tp->packets_out;
        limit = limit ? limit : 1;
    }
    window = tp->snd_wnd / mss;
    window = window ? window : 1;
    return window < limit ? window : limit;
}

/* Twice the largest window that the peer has offered, 2^-32 packets: no answer raises ours beyond
 * that, for the peer may lie about what routers said. */
static __always_inline __u64 twice_the_peers(const struct tcp_sock *tp) {
    return tp->mss_cache ? (__u64)(tp->max_window / tp->mss_cache) << 33 : ~0ULL;
}

/* What pacing becomes, bytes/s above TCP, but no more than the application wants
 * (SO_MAX_PACING_RATE). */
static __always_inline void pace_at(struct sock *sk, __u64 rate) {
    __u64 most = sk->sk_max_pacing_rate;
    sk->sk_pacing_rate = rate < most ? rate : most;
}

/* What the option of a packet has to carry. */
static __always_inline __u32 parts(const struct xcp_connection *c, __u32 data) {
    return (data && c->sending ? XCP_PART_FORWARD : 0) | (c->receiving ? XCP_PART_RETURN : 0);
}

static __always_inline __u32 option_length(const struct xcp_connection *c, __u32 which) {
    __u32 forward = which & XCP_PART_FORWARD, returned = which >> 1 & 1;
    if (which == 0)
        return 0;
    if (c->ask.flags & XCP_ASK_CLASSIC)
        return forward * XCP_CLASSIC_FORWARD_LENGTH + returned * XCP_CLASSIC_RETURN_LENGTH;
    return xcp_extended_length((__u8)(forward * XCP_WIRE_FORWARD | returned * XCP_WIRE_RETURN |
                                      (c->ids ? XCP_WIRE_IDS : 0)));
}

/* While no router has been heard of, round trips shorter than this are not paced: as TCP's are not,
 * and the timer could not keep up. */
#define XCP_PACED_NS 1000000ULL

#include "endpoint_robust.h"
#include "endpoint_share.h"

#include "endpoint_handshake.h"
#include "endpoint_options.h"

#include "endpoint_listeners.h"
#include "endpoint_room.h"
#include "endpoint_show.h"
#include "endpoint_start.h"
#include "endpoint_window.h"
