/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What our programs know of the kernel: a hand-kept subset of its types, by name only. libbpf finds
 * the fields' places in the running kernel's BTF when it loads a program (CO-RE), so that neither
 * order nor completeness matters for the kernel's own structures. The contexts (__sk_buff,
 * bpf_sock_ops) are user-space ABI and complete as far as they go.
 *
 * A full vmlinux.h would be 3 MB for one kernel; linux/bpf.h of a distribution may be years older
 * than its kernel.
 */
#ifndef XCP_VMLINUX_H
#define XCP_VMLINUX_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u16 __sum16;
typedef _Bool bool;
#define true 1
#define false 0

enum {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_LRU_HASH = 9,
    BPF_MAP_TYPE_LPM_TRIE = 11,
    BPF_MAP_TYPE_SK_STORAGE = 24,
};

enum {
    BPF_NOEXIST = 1,
    BPF_F_NO_PREALLOC = 1,
    BPF_SK_STORAGE_GET_F_CREATE = 1,
    BPF_LOAD_HDR_OPT_TCP_SYN = 1,
    BPF_F_CLONE = 1 << 9,
};

struct bpf_spin_lock {
    __u32 val;
};

struct bpf_sock;
struct tcp_sock;

struct __sk_buff {
    __u32 len;
    __u32 pkt_type;
    __u32 mark;
    __u32 queue_mapping;
    __u32 protocol;
    __u32 vlan_present;
    __u32 vlan_tci;
    __u32 vlan_proto;
    __u32 priority;
    __u32 ingress_ifindex;
    __u32 ifindex;
    __u32 tc_index;
    __u32 cb[5];
    __u32 hash;
    __u32 tc_classid;
    __u32 data;
    __u32 data_end;
    __u32 napi_id;
    __u32 family;
    __u32 remote_ip4;
    __u32 local_ip4;
    __u32 remote_ip6[4];
    __u32 local_ip6[4];
    __u32 remote_port;
    __u32 local_port;
    __u32 data_meta;
    __u64 flow_keys;
    __u64 tstamp;
    __u32 wire_len;
    __u32 gso_segs;
    union {
        struct bpf_sock *sk;
        __u64 : 64;
    } __attribute__((aligned(8)));
    __u32 gso_size;
};

struct bpf_sock_ops {
    __u32 op;
    union {
        __u32 args[4];
        __u32 reply;
        __u32 replylong[4];
    };
    __u32 family;
    __u32 remote_ip4;
    __u32 local_ip4;
    __u32 remote_ip6[4];
    __u32 local_ip6[4];
    __u32 remote_port; /* network order: bpf_ntohl(remote_port) is the port */
    __u32 local_port;  /* host order */
    __u32 is_fullsock;
    __u32 snd_cwnd;
    __u32 srtt_us; /* << 3 */
    __u32 bpf_sock_ops_cb_flags;
    __u32 state;
    __u32 rtt_min;
    __u32 snd_ssthresh;
    __u32 rcv_nxt;
    __u32 snd_nxt;
    __u32 snd_una;
    __u32 mss_cache;
    __u32 ecn_flags;
    __u32 rate_delivered;
    __u32 rate_interval_us;
    __u32 packets_out;
    __u32 retrans_out;
    __u32 total_retrans;
    __u32 segs_in;
    __u32 data_segs_in;
    __u32 segs_out;
    __u32 data_segs_out;
    __u32 lost_out;
    __u32 sacked_out;
    __u32 sk_txhash;
    __u64 bytes_received;
    __u64 bytes_acked;
    union {
        struct bpf_sock *sk;
        __u64 : 64;
    } __attribute__((aligned(8)));
    union {
        void *skb_data;
        __u64 : 64;
    } __attribute__((aligned(8)));
    union {
        void *skb_data_end;
        __u64 : 64;
    } __attribute__((aligned(8)));
    __u32 skb_len;
    __u32 skb_tcp_flags;
};

/* include/uapi/linux/bpf.h: what sock_ops programs are called for. */
enum {
    BPF_SOCK_OPS_RWND_INIT = 2,
    BPF_SOCK_OPS_TCP_CONNECT_CB = 3,
    BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
    BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
    BPF_SOCK_OPS_TCP_LISTEN_CB = 11,
    BPF_SOCK_OPS_PARSE_HDR_OPT_CB = 13,
    BPF_SOCK_OPS_HDR_OPT_LEN_CB = 14,
    BPF_SOCK_OPS_WRITE_HDR_OPT_CB = 15,
};
enum {
    BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG = 1 << 5,
    BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG = 1 << 6,
};
enum {
    BPF_WRITE_HDR_TCP_CURRENT_MSS = 1,
    BPF_WRITE_HDR_TCP_SYNACK_COOKIE = 2,
};

/* enum tcp_ca_state */
enum {
    TCP_CA_Open = 0,
    TCP_CA_Recovery = 3,
    TCP_CA_Loss = 4,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct gnet_stats_queue {
    __u32 qlen;
    __u32 backlog;
};

struct qdisc_skb_head {
    __u32 qlen;
};

struct hlist_node {
    struct hlist_node *next;
};

struct hlist_head {
    struct hlist_node *first;
};

struct Qdisc {
    struct hlist_node hash;
    __u32 handle;
    struct qdisc_skb_head q;
    struct gnet_stats_queue qstats;
};

struct netdev_queue {
    struct Qdisc *qdisc;
};

struct net_device {
    struct netdev_queue *_tx;
    /* the queueing disciplines below the root, by their numbers */
    struct hlist_head qdisc_hash[16];
};

struct sk_buff {
    struct net_device *dev;
    char cb[48];
    __u8 ip_summed : 2;
    __u32 end; /* an offset from head, on 64-bit machines */
    unsigned char *head;
};

struct skb_shared_info {
    unsigned short gso_size;
    unsigned short gso_segs;
};

struct tcp_skb_cb {
    union {
        struct {
            __u16 tcp_gso_segs;
        };
    };
};

struct bpf_sock_ops_kern {
    struct sock *sk;
    struct sk_buff *skb;
};

struct request_sock {
    __u8 num_retrans;
};

struct in6_addr {
    union {
        __be32 u6_addr32[4];
    } in6_u;
};

struct ns_common {
    unsigned int inum;
};

struct netns_ipv4 {
    __u8 sysctl_tcp_retries2;
    __u8 sysctl_tcp_mtu_probing;
};

struct net {
    struct ns_common ns;
    struct netns_ipv4 ipv4;
};

typedef struct {
    struct net *net;
} possible_net_t;

struct sock_common {
    __be32 skc_daddr;
    __be32 skc_rcv_saddr;
    __be16 skc_dport;
    __u16 skc_num;
    unsigned short skc_family;
    volatile unsigned char skc_state;
    struct in6_addr skc_v6_daddr;
    struct in6_addr skc_v6_rcv_saddr;
    possible_net_t skc_net;
    unsigned long skc_flags;
};

struct socket {
    unsigned long flags;
};

struct sock {
    struct sock_common __sk_common;
    unsigned long sk_pacing_rate;
    unsigned long sk_max_pacing_rate;
    __u32 sk_pacing_status;
    struct socket *sk_socket;
};

struct inet_sock {
    struct sock sk;
};

struct tcp_congestion_ops;

struct inet_connection_sock_af_ops {
    __u16 net_header_len;
};

struct inet_connection_sock {
    struct inet_sock icsk_inet;
    const struct inet_connection_sock_af_ops *icsk_af_ops;
    const struct tcp_congestion_ops *icsk_ca_ops;
    __u8 icsk_ca_state : 5, icsk_ca_initialized : 1, icsk_ca_setsockopt : 1;
    __u8 icsk_retransmits;
    __u32 icsk_user_timeout;
};

struct tcp_options_received {
    __u32 rcv_tsval;
    __u16 saw_tstamp : 1, tstamp_ok : 1;
};

struct tcp_md5sig_info;
struct tcp_ao_info;

struct tcp_rack {
    __u64 mstamp;
    __u32 rtt_us;
    __u32 end_seq;
};

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    struct tcp_options_received rx_opt;
    struct tcp_md5sig_info *md5sig_info;
    struct tcp_ao_info *ao_info;
    __u8 save_syn : 2;
    __u8 bpf_sock_ops_cb_flags;
    __u16 tcp_header_len;
    __u32 snd_cwnd;
    __u32 snd_cwnd_clamp;
    __u32 snd_ssthresh;
    __u32 srtt_us; /* << 3 */
    __u32 mss_cache;
    __u32 data_segs_out;
    __u32 packets_out;
    __u32 sacked_out;
    __u32 max_packets_out;
    __u32 snd_wnd;
    __u32 max_window;
    __u32 snd_nxt;
    __u32 snd_una;
    __u32 write_seq;
    __u64 tcp_mstamp; /* us */
    struct tcp_rack rack;
    __u32 lost;
    __u8 is_cwnd_limited : 1;
};

struct rate_sample {
    long rtt_us;
    __u32 acked_sacked;
};

struct tcp_congestion_ops {
    __u32 (*ssthresh)(struct sock *sk);
    void (*set_state)(struct sock *sk, __u8 new_state);
    void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
    __u32 (*undo_cwnd)(struct sock *sk);
    __u32 (*min_tso_segs)(struct sock *sk);
    __u32 (*sndbuf_expand)(struct sock *sk);
    char name[16];
    __u32 flags;
    void (*init)(struct sock *sk);
    void (*release)(struct sock *sk);
};

struct seq_file;
struct bpf_iter_meta {
    struct seq_file *seq;
};
struct bpf_iter__tcp {
    struct bpf_iter_meta *meta;
    struct sock_common *sk_common;
};
struct bpf_map;
struct bpf_iter__bpf_sk_storage_map {
    struct bpf_iter_meta *meta;
    struct bpf_map *map;
    struct sock *sk;
    void *value;
};

#pragma clang attribute pop

#endif
