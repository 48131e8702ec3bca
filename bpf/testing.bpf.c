// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Programs for tests and measurements only: what a packet costs before any of ours has looked at
 * it, middleboxes that take our option out or drop what has it, one that loses packets, a neighbour
 * that keeps them to itself, one on the same cgroup, a sender that lies, and the robust sender
 * without a connection.
 */
#include "headers.h"

#include "robust_sender.h"
#include "xcp.h"

#include "bounds.h"

char _license[] SEC("license") = "GPL";

SEC("tcx/egress")
int xcp_nothing(struct __sk_buff *skb) {
    return XCP_NEXT;
}

/* Overwrites the extended option of Linux's own segments with NOPs and mends the checksum. */
SEC("tcx/egress")
int xcp_strip(struct __sk_buff *skb) {
    struct xcp_segment segment = {};
    __u8 was[64] = {}, is[64]; /* some() may reach beyond XCP_OPTIONS_MAX */
    __u64 length;
    __u32 at, i;
    if (xcp_find_tcp((void *)(long)skb->data, (void *)(long)skb->data_end, 14, &segment) !=
        XCP_FOUND_TCP)
        return XCP_NEXT;
    at = segment.tcp + TCP_HEADER + 12; /* after NOP NOP timestamps */
    length = segment.options - 12;
    if (!between(&length, 4, XCP_OPTIONS_MAX - 12) ||
        bpf_skb_load_bytes(skb, at, was, some(length, 63)) || was[0] != XCP_EXTENDED_KIND)
        return XCP_NEXT;
    __builtin_memset(is, 0, sizeof(is));
    for (i = 0; i < XCP_OPTIONS_MAX; i++)
        is[i] = i < length ? 1 : 0;
    if (!between(&length, 4, XCP_OPTIONS_MAX - 12) ||
        bpf_skb_store_bytes(skb, at, is, some(length, 63), 0))
        return XCP_NEXT;
    bpf_l4_csum_replace(
        skb, segment.tcp + 16, 0,
        bpf_csum_diff((__be32 *)was, XCP_OPTIONS_MAX, (__be32 *)is, XCP_OPTIONS_MAX, 0), 0);
    return XCP_NEXT;
}

/* Drops what carries the extended option: where the handshake's packets may have it, all others. */
static __always_inline int drop_ours(struct __sk_buff *skb, __u32 handshakes_too) {
    struct xcp_segment segment = {};
    __u8 flags, kind;
    __u32 before;
    if (xcp_find_tcp((void *)(long)skb->data, (void *)(long)skb->data_end, 14, &segment) !=
            XCP_FOUND_TCP ||
        bpf_skb_load_bytes(skb, segment.tcp + TCP_FLAGS, &flags, 1))
        return XCP_NEXT;
    if (flags & TCP_FLAG_SYN && !handshakes_too)
        return XCP_NEXT;
    /* Linux's own: MSS, SACK permitted, timestamps, window scale; or NOP NOP timestamps */
    before = flags & TCP_FLAG_SYN ? 20 : 12;
    if (segment.options <= before ||
        bpf_skb_load_bytes(skb, segment.tcp + TCP_HEADER + before, &kind, 1))
        return XCP_NEXT;
    return kind == XCP_EXTENDED_KIND ? XCP_DROP : XCP_NEXT;
}

SEC("tcx/egress")
int xcp_refuse(struct __sk_buff *skb) {
    return drop_ours(skb, 1);
}

SEC("tcx/egress")
int xcp_refuse_headers(struct __sk_buff *skb) {
    return drop_ours(skb, 0);
}

/* Decides on every packet, as Cilium's programs do: those that come after it see none. */
SEC("tcx/egress")
int xcp_pass(struct __sk_buff *skb) {
    return 0; /* TCX_PASS */
}

/* Loses one of TCP's packets in sixteen; of those that ask for a neighbour's address three in a row
 * would make the host unreachable.
 */
SEC("tcx/egress")
int xcp_lose(struct __sk_buff *skb) {
    struct xcp_segment segment = {};
    if (xcp_find_tcp((void *)(long)skb->data, (void *)(long)skb->data_end, 14, &segment) !=
        XCP_FOUND_TCP)
        return XCP_NEXT;
    return bpf_get_prandom_u32() & 15 ? XCP_NEXT : XCP_DROP;
}

/* To this port the window claimed is an eighth of what is sent. */
#define XCP_LIE_PORT 7863
/* 2^3, in the exponent of a window's code (wire_extended.h). */
#define XCP_LIE (3 << 10)

/* Makes a liar of a sender whose segments are Linux's own. */
SEC("tcx/egress")
int xcp_lie(struct __sk_buff *skb) {
    struct xcp_segment segment = {};
    __u8 option[XCP_EXTENDED_FORWARD_END];
    __be16 port = 0, was, is;
    __u32 at;
    if (xcp_find_tcp((void *)(long)skb->data, (void *)(long)skb->data_end, 14, &segment) !=
        XCP_FOUND_TCP)
        return XCP_NEXT;
    at = segment.tcp + TCP_HEADER + 12; /* after NOP NOP timestamps */
    if (bpf_skb_load_bytes(skb, segment.tcp + 2, &port, sizeof(port)) ||
        port != bpf_htons(XCP_LIE_PORT) || segment.options < 12 + XCP_EXTENDED_FORWARD_END ||
        bpf_skb_load_bytes(skb, at, option, sizeof(option)))
        return XCP_NEXT;
    was = bpf_htons(xcp_get16(option + XCP_EXTENDED_AT_WINDOW));
    if (option[0] != XCP_EXTENDED_KIND || !(option[XCP_EXTENDED_AT_FLAGS] & XCP_WIRE_FORWARD) ||
        bpf_ntohs(was) <= XCP_LIE)
        return XCP_NEXT;
    is = bpf_htons(bpf_ntohs(was) - XCP_LIE);
    if (!bpf_skb_store_bytes(skb, at + XCP_EXTENDED_AT_WINDOW, &is, sizeof(is), 0))
        bpf_l4_csum_replace(skb, segment.tcp + 16, was, is, sizeof(is));
    return XCP_NEXT;
}

/* How often the neighbour was asked for room in packets of connections that came in. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} asked SEC(".maps");

/* Bytes that the neighbour has room made for in SYN-ACKs, and leaves empty. */
#define XCP_NEIGHBOURS_ROOM 8

/* Another user of header options, who asks for callbacks on listeners, for the connections that
 * come in to inherit. */
SEC("sockops")
int xcp_neighbour(struct bpf_sock_ops *ops) {
    __u32 zero = 0;
    __u64 *count;
    if (ops->op == BPF_SOCK_OPS_TCP_LISTEN_CB) {
        bpf_sock_ops_cb_flags_set(ops,
                                  ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
    } else if (ops->op == BPF_SOCK_OPS_HDR_OPT_LEN_CB && ops->skb_tcp_flags & TCP_FLAG_SYN) {
        if (ops->skb_tcp_flags & TCP_FLAG_ACK)
            bpf_reserve_hdr_opt(ops, XCP_NEIGHBOURS_ROOM, 0);
    } else if (ops->op == BPF_SOCK_OPS_HDR_OPT_LEN_CB) {
        count = bpf_map_lookup_elem(&asked, &zero);
        if (count)
            __sync_fetch_and_add(count, 1);
    }
    return 1;
}

/* What happens to a robust sender (engine/robust_sender.h), and what it is before and after. */
enum xcp_step {
    XCP_STEP_BEGINS,
    XCP_STEP_ANSWERED,
    XCP_STEP_LENT,
    XCP_STEP_TIMEOUT,
};

struct xcp_robust_step {
    struct xcp_robust_answer answer; /* of others than answers, `now` */
    __u64 window;                    /* the first */
    enum xcp_step what;
    __u32 packet_bytes;
    __u32 lent; /* packets */
    __u32 sendable;
    /* what it then writes, and how much may be in flight */
    struct xcp_forward header;
    __u32 limit;
    __u32 late; /* the pacer is */
    struct xcp_robust_sender sender;
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct xcp_robust_step);
} robust_step SEC(".maps");

SEC("tcx/egress")
int xcp_robust_steps(struct __sk_buff *skb) {
    __u32 zero = 0;
    struct xcp_robust_step *s = bpf_map_lookup_elem(&robust_step, &zero);
    if (!s)
        return XCP_NEXT;
    if (s->what == XCP_STEP_BEGINS) {
        xcp_robust_sender_init(&s->sender, s->packet_bytes, s->window);
    } else if (s->what == XCP_STEP_ANSWERED) {
        xcp_robust_sender_answered(&s->sender, &s->answer);
    } else if (s->what == XCP_STEP_LENT) {
        xcp_robust_sender_lent(&s->sender, s->answer.now, s->lent);
    } else {
        xcp_robust_sender_timeout(&s->sender, s->answer.now);
    }
    s->limit = xcp_robust_sender_limit(&s->sender);
    xcp_robust_sender_header(&s->sender, s->answer.now, s->sendable, s->late, &s->header);
    return XCP_NEXT;
}
