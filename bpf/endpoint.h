/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the endpoint's programs and their loader (crates/xcp-linux/src/shared.rs) share. The
 * loader's structures and numbers are made from these: numbers are enumerations, and some structure
 * has each, for the compiler's BTF names nothing else. */
#ifndef XCP_BPF_ENDPOINT_H
#define XCP_BPF_ENDPOINT_H

#define XCP_CA_NAME 16 /* TCP_CA_NAME_MAX */

/* How one connection is asked to behave: bits. */
enum xcp_ask_flags {
    XCP_ASK_OWN = 0x01,     /* the socket's own wish, not the default */
    XCP_ASK_CLASSIC = 0x02, /* the 2005 format; no negotiation: both ends are configured */
    XCP_ASK_UNPACED = 0x04,
    XCP_ASK_UNBOUNDED = 0x08, /* the 2005 sender: engine/sender.h, honest = 0 */
    XCP_ASK_HALVE = 0x10,     /* halve the window on three duplicate ACKs */
    XCP_ASK_IDS = 0x20,       /* bottleneck ids, if the peer understands them */
    XCP_ASK_START = 0x40,     /* begin with what this host's router lends: endpoint_start.h */
    XCP_ASK_ROBUST = 0x80,    /* the sender of engine/robust_sender.h; not in the 2005 format */
};

struct xcp_ask {
    enum xcp_ask_flags flags;
    __u32 initial_window; /* packets; 0: the kernel's */
    __u32 own_id;         /* with ids: the access link's, or 0 (engine/sender.h) */
    /* longest time between retransmissions where round trips are shorter than half of it; 0: the
     * kernel's */
    __u32 rto_max_ms;
};

/* What a router lends connections that begin: entries of the maps start_limits and start_taken. Two
 * accounts, and who they are for. */
#define XCP_START_WINDOW 0 /* for first windows */
#define XCP_START_REST 1   /* for what follows when the RTT is known */
/* limits: how many share the rest; taken: how many have begun so far */
#define XCP_START_BEGINNERS 2
/* limits: the round trip that the accounts are for, us; taken: keeps counting while a bound of its
 * own is what limits a robust sender */
#define XCP_START_RTT 3
#define XCP_START_BOUND 3
#define XCP_START_ENTRIES 4

/* Whom connections are given to that did not ask. */
enum xcp_give {
    XCP_GIVE_NONE = 0,
    XCP_GIVE_ALL = 1,
    XCP_GIVE_LISTED = 2, /* a port or a prefix is listed */
};

enum __attribute__((packed)) xcp_connection_state {
    XCP_UNTOUCHED = 0,
    XCP_OFFERED = 1, /* the SYN carried the offer */
    XCP_AGREED = 2,
    XCP_FALLEN = 3, /* carries on as the fallback */
};

enum __attribute__((packed)) xcp_fall {
    XCP_FALL_NOT = 0,
    XCP_FALL_PEER = 1,   /* the peer, or something on the way, does not speak it */
    XCP_FALL_SILENT = 2, /* feedback stopped coming */
    XCP_FALL_LATE = 3,   /* chosen for a connection that was open already */
};

/* What one option is to carry. */
#define XCP_PART_FORWARD 1
#define XCP_PART_RETURN 2

/* One connection: socket storage. */
struct xcp_connection {
    struct xcp_ask ask;
    enum xcp_connection_state state;
    enum xcp_fall fall;
    __u8 sending;        /* our congestion control governs it: data carry forward headers */
    __u8 receiving;      /* data with forward headers came: ACKs carry return headers */
    __u8 reserved_parts; /* what fits the packet being built */
    /* options carry bottleneck ids: we were asked for them, or the peer sends some */
    __u8 ids;
    __u8 started; /* how far it has begun: endpoint_start.h */
    /* those of our callbacks that some other program had asked for before us: not ours to take
     * back */
    __u8 others;
    __u32 packet_bytes; /* a full packet on the wire */
    __u32 unheard;      /* ACKs of new data since the last return header */
    __u64 heard_ns;     /* when that came */
    /* smoothed from segments sent once: retransmissions, and timeouts with them, stay out */
    __u64 srtt_ns;
    __u64 rtt_sum_us;
    __u64 rtt_samples;
    __u64 forwards; /* headers sent */
    __u64 returns;  /* headers that came back */
    __u64 received; /* segments with forward headers */
    __u64 losses;   /* recoveries entered */
    __u64 timeouts;
    __u64 trimmed; /* packets whose SACK blocks made room */
    /* of all return headers: 2^-20 bytes/s, or 2^-12 packets in the classic format */
    __s64 feedback_sum;
    __u32 last_feedback; /* code of the newest */
    __u32 rto_max_ms;    /* as set now; 0: the kernel's */
    /* the loss or timeout answered last: for when it proves to have been none */
    __u64 cwnd_before;
    __u64 threshold_before;
    __u64 start_ns;           /* when it began to take what is lent */
    __u64 start_taken;        /* packets that it has taken, first window aside */
    struct xcp_return opened; /* what the SYN was answered, all zero where it was not */
    struct xcp_sender sender;
    struct xcp_receiver receiver;
};

/* Set once, before loading. */
struct xcp_settings {
    char name[XCP_CA_NAME];     /* our congestion control's */
    char fallback[XCP_CA_NAME]; /* the one that takes over */
    struct xcp_ask ask;         /* for sockets without a wish of their own */
    enum xcp_give give;
    __u32 receive_window; /* packets, first advertised window; 0: the kernel's */
};

/* Why there is no room for the option beside SACK. */
enum __attribute__((packed)) xcp_no_room {
    XCP_ROOM = 0,         /* there is */
    XCP_ROOM_REFUSED = 1, /* the kernel does not take the program */
    XCP_ROOM_NO_TCX = 2,  /* the kernel has no TCX */
};

/* What user space notes down for those who come later; no program reads it. */
struct xcp_about {
    char name[XCP_CA_NAME];
    char fallback[XCP_CA_NAME];
    char cgroup[223]; /* path */
    enum xcp_no_room no_room;
};

struct xcp_endpoint_counts {
    __u64 agreed;
    __u64 fallen_peer;
    __u64 fallen_silent;
    __u64 fallen_late;
    __u64 malformed; /* options of ours that contradict themselves, ignored */
};

/* Longest-prefix key: IPv4 addresses as ::ffff:a.b.c.d. */
struct xcp_prefix {
    __u32 length;
    __u32 address[4];
};

/* Whose a connection is, of those among whom a link is shared: a network, as in xcp_prefix. */
struct xcp_whose {
    __u32 address[4];
};

/* What the iterator knows of each connection. */
struct xcp_shown {
    __u32 namespace;
    __u16 family;
    __u16 tcp_state;
    __u32 local[4];
    __u32 remote[4];
    __u16 local_port;
    __u16 remote_port;
    __u32 snd_cwnd;
    struct xcp_connection connection;
};

/* What it writes. */
struct xcp_record {
    struct xcp_shown shown;
    struct xcp_robust_sender robust; /* all zero where there is none */
};

#endif
