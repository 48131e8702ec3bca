/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the router program and its loader (crates/xcp-linux/src/router.rs) share. */
#ifndef XCP_BPF_ROUTER_H
#define XCP_BPF_ROUTER_H

/* What passed, in packets (a super-packet of segmentation offload counts as its segments) since the program was attached. */
struct xcp_port_counts {
    __u64 processed; /* XCP data packets: counted and given feedback */
    __u64 lowered;   /* of these, whose feedback was lowered here */
    __u64 returned;  /* XCP's acknowledgements, without a forward header */
    __u64 other;     /* everything else */
    __u64 other_bytes;
    __u64 bytes;       /* everything */
    __u64 fragments;   /* of other: TCP in pieces, never looked into */
    __u64 malformed;   /* of all: TCP headers or options whose lengths contradict each other */
    __u64 unreadable;  /* of other: headers beyond the linear part that could not be pulled in */
    __u64 backlog;     /* bytes waiting when the newest packet came */
    __u64 backlog_max; /* since user space last set it to 0 */
};

/* One router: the engine's state with what guards it. */
struct xcp_port {
    struct bpf_spin_lock lock;
    __u32 reserved;
    struct xcp_router router;
    struct xcp_port_counts counts;
};

/* Written by user space while the program runs. */
struct xcp_control {
    __u64 capacity; /* bytes/s */
};

#endif
