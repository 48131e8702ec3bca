/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the router program and its loader (crates/xcp-linux/src/shared.rs) share. */
#ifndef XCP_BPF_ROUTER_H
#define XCP_BPF_ROUTER_H

/* The numbers of the shapers, a router's and a proxy's (crates/xcp-linux/src/qdisc/mod.rs), but for
 * what tells their classes apart. */
#define XCP_SHAPER 0x7863U
#define XCP_PROXYS_SHAPER 0x7870U

/* The number of the queue of XCP's packets, where all others have another one
 * (crates/xcp-linux/src/qdisc/mod.rs). */
#define XCP_CLASS_QUEUE 0x78640000U

/* What passed, in packets (a super-packet of segmentation offload counts as its segments) since the
 * program was attached. */
struct xcp_port_counts {
    __u64 processed; /* XCP data packets: counted and given feedback */
    __u64 processed_bytes;
    __u64 lowered;     /* of these, whose feedback was lowered here */
    __u64 backlog;     /* bytes waiting when the newest of them came */
    __u64 backlog_max; /* most of these */
};

/* What passed without a forward header. Counted with atomic additions, without the lock and without
 * a clock: this is what all traffic that is not ours pays. */
struct xcp_port_others {
    __u64 packets; /* of both kinds */
    __u64 bytes;
    __u64 returned; /* of these: XCP's acknowledgements */
    __u64 returned_bytes;
    __u64 fragments; /* of these: TCP in pieces, never looked into */
    /* of all packets: TCP headers or options whose lengths contradict each other */
    __u64 malformed;
    __u64 unreadable; /* of these: headers beyond the linear part that could not be pulled in */
    /* of these: XCP data packets that did not get at the law's state in time */
    __u64 contended;
    __u64 least_backlog; /* before one of them, since the law last heard of them */
};

/*
 * One router: the engine's state with what guards it.
 *
 * The guard is a sequence lock of our own: even, free; odd, held; two more with every packet. The
 * verifier's bpf_spin_lock would switch interrupts off, which costs more than the law (45 of 163 ns
 * here), and would spin on a virtual processor that is not running. Ours is held with bottom halves
 * disabled, as every transmission is, by code that calls nothing; who does not get it within
 * XCP_TRIES lets the packet pass without the law and withholds what it asks for. User space reads
 * the state between two equal even values.
 */
struct xcp_port {
    __u64 sequence;
    struct xcp_router router;
    struct xcp_port_counts counts;
    struct xcp_port_others told;   /* of the others, what the law has heard of */
    struct xcp_port_others others; /* not guarded */
    struct xcp_policer policer;    /* guarded; only where there is one */
};

/* How the policer tells senders apart: by whose clock a packet goes. */
enum xcp_police {
    XCP_POLICE_NOBODY,  /* there is no policer */
    XCP_POLICE_FLOWS,   /* by addresses and ports */
    XCP_POLICE_SOURCES, /* by the source address, or its first bits */
};

/* Written by user space while the program runs. */
struct xcp_control {
    __u64 capacity; /* bytes/s */
    /* noted down for those who come later; the program does not read it */
    __u64 clsact;           /* whether the program hangs by a clsact filter */
    __u64 made_clsact;      /* and the hook was not there before */
    __u64 police;           /* enum xcp_police */
    __u64 police_sets;      /* of the policer's table */
    __u64 police_prefix_v4; /* bits of a source address that count */
    __u64 police_prefix_v6;
    __u64 law_share; /* thousandths of the link's capacity that the law has */
    __u64 calendar;  /* whether the program is robust.bpf.c's */
};

/* What is urgent (router_urgent.h); likewise. */
struct xcp_urgency {
    __u64 codes; /* a bit for each DSCP; none: nothing is urgent */
    __u64 share; /* the bound: thousandths of the capacity */
};

/* Of what is urgent, since the program was attached. */
struct xcp_urgent {
    /* When all that went first would have left, had it had the bound's rate and no more. */
    __u64 until_ns;
    __u64 packets; /* that went first; a super-packet counts as its segments */
    __u64 bytes;
    __u64 excess; /* that were beyond the bound, and went with the others */
    __u64 excess_bytes;
};

/* One flow of it, or several whose numbers are the same. */
struct xcp_urgent_flow {
    __u64 until_ns;    /* as above, with XCP_URGENT_PART of the bound's rate */
    __u64 ordinary_ns; /* until then it goes with the others */
};

#endif
