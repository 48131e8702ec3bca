// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Programs for tests and measurements only: what a packet costs before any of ours has looked at it, a
 * middlebox that takes our option out, one that loses packets, a neighbour that keeps them to itself.
 */
#include "headers.h"

#include "xcp.h"

char _license[] SEC("license") = "GPL";

SEC("tcx/egress")
int xcp_nothing(struct __sk_buff *skb) {
    return XCP_NEXT;
}

/* Overwrites the extended option of Linux's own segments with NOPs and mends the checksum. */
SEC("tcx/egress")
int xcp_strip(struct __sk_buff *skb) {
    struct xcp_segment segment = {0, 0};
    __u8 was[XCP_OPTIONS_MAX] = {}, is[XCP_OPTIONS_MAX];
    __u32 at, i, length;
    if (xcp_find_tcp((void *)(long)skb->data, (void *)(long)skb->data_end, 14, &segment) != XCP_FOUND_TCP)
        return XCP_NEXT;
    at = segment.tcp + TCP_HEADER + 12; /* after NOP NOP timestamps */
    length = segment.options - 12;
    XCP_OPAQUE(length);
    if (length < 4 || length > XCP_OPTIONS_MAX - 12 || bpf_skb_load_bytes(skb, at, was, length) || was[0] != XCP_EXTENDED_KIND)
        return XCP_NEXT;
    __builtin_memset(is, 0, sizeof(is));
    for (i = 0; i < XCP_OPTIONS_MAX; i++)
        is[i] = i < length ? 1 : 0;
    XCP_OPAQUE(length);
    if (length < 4 || length > XCP_OPTIONS_MAX - 12 || bpf_skb_store_bytes(skb, at, is, length, 0))
        return XCP_NEXT;
    bpf_l4_csum_replace(skb, segment.tcp + 16, 0, bpf_csum_diff((__be32 *)was, XCP_OPTIONS_MAX, (__be32 *)is, XCP_OPTIONS_MAX, 0), 0);
    return XCP_NEXT;
}

/* Decides on every packet, as Cilium's programs do: those that come after it see none. */
SEC("tcx/egress")
int xcp_pass(struct __sk_buff *skb) {
    return 0; /* TCX_PASS */
}

/* Loses one packet in sixteen. */
SEC("tcx/egress")
int xcp_lose(struct __sk_buff *skb) {
    return bpf_get_prandom_u32() & 15 ? XCP_NEXT : 2; /* TCX_DROP */
}
