/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which connections speak XCP, and how they begin: the option is offered in the SYN, accepted in
 * the SYN-ACK, and asks there how large a first window may be. What comes after that is in
 * endpoint_options.h. Part of endpoint.bpf.c.
 *
 *   1. A listener answers offers whether or not its own data are sent by XCP: to receive costs
 *      nothing.
 *   2. Connections to the host itself are left alone. So are those whose segments are signed (RFC
 *      2385, RFC 5925): the kernel signs before the option is written, and MD5's leaves no room for
 *      it.
 *   3. Some devices drop what carries an option that they do not know, instead of taking it out. So
 *      later SYNs do not carry the offer (as MPTCP's do not in Linux:
 *      net.mptcp.syn_retrans_before_tcp_fallback), and a connection whose first data do not get
 *      through goes on without headers.
 *   4. With the robust sender the offer asks how large the first window may be (engine/opening.h),
 *      and is answered in the SYN-ACK, or by the acknowledgement of that. A SYN-ACK asks for all
 *      connections that are given XCP: whose they are by their listener's own choice is not known
 *      before they are established. The answer counts where the connection is established, and is
 *      forgotten where that packet does not carry it: later it would be an increase. Where there is
 *      no room, beside TCP Fast Open's cookie or MPTCP's options, the question is left out, then
 *      the answer, and the offer goes alone.
 */

/* SYNs, and SYN-ACKs, that carry the offer: a first one may have been lost. */
#define XCP_OFFERS 2

/* An extended option as it lies in the header. */
struct xcp_raw {
    __u8 bytes[XCP_EXTENDED_LENGTH_MAX];
};

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym;
extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym;

/* Reads the first extended option; returns its length or 0. where: 0, or
 * BPF_LOAD_HDR_OPT_TCP_SYN. */
static __always_inline __u32 load_extended(struct bpf_sock_ops *ops, struct xcp_raw *raw,
                                           __u64 where) {
    int length;
    raw->bytes[0] = XCP_EXTENDED_KIND;
    raw->bytes[1] = 4;
    xcp_put16(raw->bytes + XCP_EXTENDED_AT_EXID, XCP_EXTENDED_EXID);
    length = bpf_load_hdr_opt(ops, raw, sizeof(*raw), where);
    if (length < XCP_EXTENDED_OFFER_LENGTH || length > XCP_EXTENDED_LENGTH_MAX)
        return 0;
    if ((raw->bytes[XCP_EXTENDED_AT_FLAGS] & XCP_WIRE_VERSION_MASK) != XCP_WIRE_VERSION ||
        (__u32)length != xcp_extended_length(raw->bytes[XCP_EXTENDED_AT_FLAGS])) {
        struct xcp_endpoint_counts *b = books();
        if (b)
            __sync_fetch_and_add(&b->malformed, 1);
        return 0;
    }
    return (__u32)length;
}

static __always_inline int is_ours(struct bpf_sock_ops *ops) {
    char name[XCP_CA_NAME] = {};
    __u32 i;
    if (bpf_getsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof(name)))
        return 0;
    for (i = 0; i < XCP_CA_NAME; i++) {
        if (name[i] != settings.name[i])
            return 0;
        if (name[i] == 0)
            break;
    }
    return 1;
}

/* A word of the context, read where it stands: the verifier allows no address arithmetic on it,
 * which the compiler would make of two reads. */
static __always_inline __u32 word(const __u32 *at) {
    __u32 v = *(const volatile __u32 *)at;
    XCP_OPAQUE(v);
    return v;
}

/* Both ends' addresses; IPv4's as ::ffff:a.b.c.d. */
static __always_inline void ends_of(struct bpf_sock_ops *ops, struct xcp_prefix *peer,
                                    struct xcp_prefix *self) {
    __u32 remote = word(&ops->remote_ip4), local = word(&ops->local_ip4);
    peer->address[0] = word(&ops->remote_ip6[0]);
    peer->address[1] = word(&ops->remote_ip6[1]);
    peer->address[2] = word(&ops->remote_ip6[2]);
    peer->address[3] = word(&ops->remote_ip6[3]);
    self->address[0] = word(&ops->local_ip6[0]);
    self->address[1] = word(&ops->local_ip6[1]);
    self->address[2] = word(&ops->local_ip6[2]);
    self->address[3] = word(&ops->local_ip6[3]);
    peer->length = self->length = 128;
    if (ops->family == AF_INET) {
        peer->address[0] = peer->address[1] = self->address[0] = self->address[1] = 0;
        peer->address[2] = self->address[2] = bpf_htonl(0xffff);
        peer->address[3] = remote;
        self->address[3] = local;
    }
}

static __always_inline int is_local(struct bpf_sock_ops *ops) {
    struct xcp_prefix peer, self;
    ends_of(ops, &peer, &self);
    if (peer.address[2] == bpf_htonl(0xffff) &&
        (peer.address[3] & bpf_htonl(0xff000000)) == bpf_htonl(0x7f000000))
        return 1;
    return peer.address[0] == self.address[0] && peer.address[1] == self.address[1] &&
           peer.address[2] == self.address[2] && peer.address[3] == self.address[3];
}

/* Whether connections of these ends are given XCP. */
static __always_inline int is_meant(struct bpf_sock_ops *ops) {
    struct xcp_prefix peer, self;
    __u16 local, remote;
    if (settings.give == XCP_GIVE_NONE)
        return 0;
    if (settings.give == XCP_GIVE_ALL)
        return 1;
    local = (__u16)ops->local_port;
    remote = (__u16)bpf_ntohl(ops->remote_port);
    if (bpf_map_lookup_elem(&ports, &local) || bpf_map_lookup_elem(&ports, &remote))
        return 1;
    ends_of(ops, &peer, &self);
    return bpf_map_lookup_elem(&prefixes, &peer) != 0;
}

/* Whether a connection gets XCP although its application did not ask for it. */
static __always_inline int is_given(struct bpf_sock_ops *ops) {
    struct bpf_sock *sk = ops->sk;
    struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
    /* the application chose another one */
    if (!tp || BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_setsockopt))
        return 0;
    return is_meant(ops);
}

static __always_inline void choose(struct bpf_sock_ops *ops, const volatile char *name) {
    char copy[XCP_CA_NAME];
    __u32 i;
    for (i = 0; i < XCP_CA_NAME; i++)
        copy[i] = name[i];
    bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, copy, sizeof(copy));
}

#define XCP_CALLBACKS                                                                              \
    (BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG)

/* From now on we are called for this socket's options. The flags are one set for all sock_ops
 * programs of the socket. */
static __always_inline void call_us(struct bpf_sock_ops *ops) {
    bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | XCP_CALLBACKS);
}

/* No more; what another program had asked for before stays. */
static __always_inline void let_be(struct bpf_sock_ops *ops, const struct xcp_connection *c) {
    __u32 ours = XCP_CALLBACKS & ~(c ? c->others : 0);
    bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags & ~ours);
}

/* Whether its segments are, or can be, signed. */
static __always_inline int is_signed(const struct tcp_sock *tp) {
    if (bpf_core_field_exists(tp->md5sig_info) && tp->md5sig_info)
        return 1;
    return bpf_core_field_exists(tp->ao_info) && tp->ao_info;
}

static __always_inline int signs(struct bpf_sock_ops *ops) {
    struct bpf_sock *sk = ops->sk;
    struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
    return tp && is_signed(tp);
}

static __always_inline struct xcp_connection *connection(struct bpf_sock_ops *ops, __u64 create) {
    struct bpf_sock *sk = ops->sk;
    return sk ? bpf_sk_storage_get(&connections, sk, 0, create) : 0;
}

static __always_inline void use_default(struct xcp_connection *c) {
    if (c->ask.flags & XCP_ASK_OWN)
        return;
    c->ask.flags = settings.ask.flags;
    c->ask.initial_window = settings.ask.initial_window;
    c->ask.own_id = settings.ask.own_id;
    c->ask.rto_max_ms = settings.ask.rto_max_ms;
}

/* Both ends speak it. offer: the peer's. */
static __always_inline void agree(struct xcp_connection *c, struct bpf_sock *sk, __u32 sending,
                                  const struct xcp_raw *offer) {
    struct xcp_robust_connection *r = robust_of(c, sk);
    struct xcp_endpoint_counts *b = books();
    c->state = XCP_AGREED;
    c->sending = sending != 0;
    c->heard_ns = bpf_ktime_get_ns();
    c->unheard = 0;
    xcp_receiver_init(&c->receiver, c->ask.flags & XCP_ASK_CLASSIC);
    /* who asks, or answers, for a first window understands ids, too */
    if (!(c->ask.flags & XCP_ASK_CLASSIC) && c->ask.flags & XCP_ASK_IDS &&
        offer->bytes[XCP_EXTENDED_AT_FLAGS] & (XCP_WIRE_IDS | XCP_WIRE_FORWARD | XCP_WIRE_RETURN)) {
        c->ids = 1;
        xcp_sender_use_ids(&c->sender, c->ask.own_id);
        if (r)
            xcp_sender_use_ids(&r->sender.xcp, c->ask.own_id);
    }
    if (b)
        __sync_fetch_and_add(&b->agreed, 1);
}

/* What a SYN was answered: the robust sender, where the kernel has it already, begins so; else it
 * will (robust_begin). */
static __always_inline void be_told(struct bpf_sock_ops *ops, struct xcp_connection *c,
                                    const struct xcp_return *returned) {
    struct bpf_sock *sk = ops->sk;
    struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
    struct xcp_robust_connection *r;
    int packets;
    if (!tp || !xcp_is_opened(returned))
        return;
    c->opened = *returned;
    r = robust_of(c, sk);
    if (!r)
        return;
    packets = robust_open(r, c, tp);
    bpf_setsockopt(ops, SOL_TCP, TCP_BPF_IW, &packets, sizeof(packets));
}

/* The socket was connected before (connect(2), AF_UNSPEC): what is known of that path says nothing
 * of this one. */
static __always_inline void forget(struct xcp_connection *c, struct bpf_sock *sk) {
    struct xcp_ask ask = c->ask;
    __u8 others = c->others;
    __builtin_memset(c, 0, sizeof(*c));
    c->ask = ask;
    c->others = others;
    if (sk)
        bpf_sk_storage_delete(&robust, sk);
}

/* The application connects: its SYN will carry the offer. */
__noinline int xcp_connect(struct bpf_sock_ops *ops) {
    struct xcp_connection *c;
    int ours = is_ours(ops);
    if (is_local(ops) || signs(ops)) {
        if (ours)
            choose(ops, settings.fallback);
        return 0;
    }
    if (!ours && !is_given(ops))
        return 0;
    c = connection(ops, BPF_SK_STORAGE_GET_F_CREATE);
    if (!c)
        return 0;
    use_default(c);
    if (c->state == XCP_UNTOUCHED)
        c->others = ops->bpf_sock_ops_cb_flags & XCP_CALLBACKS;
    else
        forget(c, ops->sk);
    c->state = XCP_OFFERED;
    call_us(ops);
    if (!ours)
        choose(ops, settings.name);
    return 0;
}

/* The connection this host opened is established: the SYN-ACK says whether the peer speaks it. */
__noinline int xcp_connected(struct bpf_sock_ops *ops) {
    struct xcp_connection *c = connection(ops, 0);
    struct bpf_sock *sk = ops->sk;
    struct xcp_raw raw = {};
    struct xcp_extended in;
    __u32 classic;
    if (!c || !sk || c->state != XCP_OFFERED)
        return 0;
    classic = c->ask.flags & XCP_ASK_CLASSIC;
    if (!classic && !load_extended(ops, &raw, 0)) {
        fall(c, XCP_FALL_PEER);
        let_be(ops, c);
        choose(ops, settings.fallback);
        return 0;
    }
    agree(c, sk, 1, &raw);
    if (classic)
        return 0;
    xcp_extended_read(raw.bytes, &in);
    if (in.forward.flags & XCP_PRESENT) {
        xcp_receiver_data(&c->receiver, &in.forward, 1);
        c->receiving = 1;
    }
    be_told(ops, c, &in.returned);
    return 0;
}

/* Children inherit the callbacks, and the SYN is kept for them, unless the application has it kept
 * already, perhaps with the link's header. What other programs had asked for is noted for the
 * children. */
__noinline int xcp_listen(struct bpf_sock_ops *ops) {
    __u32 others = ops->bpf_sock_ops_cb_flags & XCP_CALLBACKS;
    struct xcp_connection *c;
    struct bpf_sock *sk = ops->sk;
    struct tcp_sock *tp;
    int one = 1;
    if (!sk)
        return 0;
    tp = bpf_skc_to_tcp_sock(sk);
    if (!tp)
        return 0;
    if (!BPF_CORE_READ_BITFIELD(tp, save_syn))
        bpf_setsockopt(ops, SOL_TCP, TCP_SAVE_SYN, &one, sizeof(one));
    if (others) {
        c = connection(ops, BPF_SK_STORAGE_GET_F_CREATE);
        if (!c)
            return 0;
        c->others = (__u8)others;
    }
    call_us(ops);
    return 0;
}

/* Whether the SYN was signed, or offered what is not to be answered because it will be. */
static __always_inline int syn_is_signed(struct bpf_sock_ops *ops) {
    struct xcp_raw raw = {};
    raw.bytes[0] = XCP_OPTION_MD5;
    if (bpf_load_hdr_opt(ops, &raw, sizeof(raw), BPF_LOAD_HDR_OPT_TCP_SYN) != -ENOMSG)
        return 1;
    raw.bytes[0] = XCP_OPTION_AO;
    raw.bytes[1] = 0;
    return bpf_load_hdr_opt(ops, &raw, sizeof(raw), BPF_LOAD_HDR_OPT_TCP_SYN) != -ENOMSG;
}

/* Whether a SYN offers XCP, and may be answered; what it offers. */
static __always_inline int is_offered(struct bpf_sock_ops *ops, struct xcp_raw *raw) {
    return load_extended(ops, raw, BPF_LOAD_HDR_OPT_TCP_SYN) && !syn_is_signed(ops);
}

/* A connection that came in is established: its SYN says whether the peer speaks it. */
__noinline int xcp_accepted(struct bpf_sock_ops *ops) {
    struct xcp_connection *c = connection(ops, 0);
    __u32 asked = c && c->ask.flags & XCP_ASK_OWN ? c->ask.flags : settings.ask.flags;
    struct bpf_sock *sk = ops->sk;
    struct xcp_raw raw;
    int ours = is_ours(ops), given, speaks;
    if (!sk)
        return 0;
    speaks = asked & XCP_ASK_CLASSIC ? asked & XCP_ASK_OWN || ours || is_given(ops)
                                     : is_offered(ops, &raw);
    if (signs(ops))
        speaks = 0;
    /* most connections of a machine have nothing to do with it, and get no storage */
    if (!speaks && !ours) {
        let_be(ops, c);
        return 0;
    }
    c = connection(ops, BPF_SK_STORAGE_GET_F_CREATE);
    if (!c)
        return 0;
    use_default(c);
    if (speaks) {
        given = !ours && is_given(ops);
        agree(c, sk, ours || given, &raw);
        call_us(ops);
        if (!(asked & XCP_ASK_CLASSIC) && load_extended(ops, &raw, 0)) {
            struct xcp_extended in;
            xcp_extended_read(raw.bytes, &in);
            be_told(ops, c, &in.returned);
        }
        if (given)
            choose(ops, settings.name);
    } else {
        if (ours) {
            fall(c, XCP_FALL_PEER);
            choose(ops, settings.fallback);
        }
        let_be(ops, c);
    }
    return 0;
}

/* How often a SYN-ACK has been sent again. */
static __always_inline __u32 answered_again(struct bpf_sock_ops *ops) {
    struct bpf_sock_ops_kern *kernel = bpf_cast_to_kern_ctx(ops);
    struct request_sock *request =
        bpf_rdonly_cast(kernel->sk, bpf_core_type_id_kernel(struct request_sock));
    return request->num_retrans;
}

/* Whether connections that ask for this ask for a first window. Who has a router on the same host
 * is lent one: endpoint_start.h. */
static __always_inline int asks_first(__u32 flags) {
    return (flags & (XCP_ASK_ROBUST | XCP_ASK_START | XCP_ASK_CLASSIC)) == XCP_ASK_ROBUST;
}

/* What the option of a SYN or SYN-ACK is. */
struct xcp_opening {
    struct xcp_forward forward;
    struct xcp_return returned;
    __u32 length; /* with all that it should have; 0: there is to be none */
};

/* The option that the SYN or SYN-ACK which is being sent is to have: differences 3 and 4. */
static __always_inline void plan_opening(struct bpf_sock_ops *ops, struct xcp_opening *o) {
    const struct xcp_opening none = {{0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0}, 0};
    __u32 flags = 0, first = 0;
    struct xcp_connection *c;
    struct xcp_raw raw;
    *o = none;
    if (ops->skb_tcp_flags & TCP_FLAG_ACK) {
        struct xcp_extended in;
        if (ops->args[0] == BPF_WRITE_HDR_TCP_SYNACK_COOKIE || /* forgets what was offered */
            answered_again(ops) >= XCP_OFFERS || !is_offered(ops, &raw))
            return;
        xcp_extended_read(raw.bytes, &in);
        if (in.forward.flags & XCP_PRESENT) {
            struct xcp_receiver receiver;
            xcp_receiver_init(&receiver, 0);
            xcp_receiver_data(&receiver, &in.forward, 1);
            o->returned = xcp_receiver_return(&receiver, 1);
        }
        if (asks_first(settings.ask.flags) && is_meant(ops)) {
            flags = settings.ask.flags;
            first = settings.ask.initial_window;
        }
    } else {
        c = connection(ops, 0);
        if (!c || c->state != XCP_OFFERED || c->ask.flags & XCP_ASK_CLASSIC ||
            ops->total_retrans >= XCP_OFFERS)
            return;
        flags = c->ask.flags;
        first = c->ask.initial_window;
    }
    if (asks_first(flags))
        xcp_opening_write((__u64)(first ? first : TCP_INIT_CWND) << 32, &o->forward);
    o->length = xcp_extended_length((o->forward.flags & XCP_PRESENT ? XCP_WIRE_FORWARD : 0) |
                                    (o->returned.flags & XCP_PRESENT ? XCP_WIRE_RETURN : 0));
}

/* Bytes of the room that has been reserved in the packet which is being sent, for whomever: a
 * multiple of four. */
static __always_inline __u32 room_of(struct bpf_sock_ops *ops) {
    void *tcp = ops->skb_data, *end = ops->skb_data_end;
    __u32 header;
    if (tcp + TCP_HEADER > end)
        return 0;
    header = (*(__u8 *)(tcp + 12) >> 4) * 4;
    return header - (__u32)(end - tcp);
}

/* Writes it. What did not fit was not reserved, but for the offer. */
static __always_inline void write_opening(struct bpf_sock_ops *ops) {
    const struct xcp_forward nothing = {0, 0, 0, 0, 0, 0, 0};
    const struct xcp_return nobody = {0, 0, 0, 0};
    __u32 room = room_of(ops), length;
    struct xcp_raw raw = {};
    struct xcp_opening o;
    plan_opening(ops, &o);
    if (!o.length) /* the room is another program's */
        return;
    if (o.length > room) {
        o.forward = nothing;
        o.length = xcp_extended_length(o.returned.flags & XCP_PRESENT ? XCP_WIRE_RETURN : 0);
    }
    if (o.length > room)
        o.returned = nobody;
    length = xcp_extended_write(raw.bytes, &o.forward, &o.returned, 0);
    if (length == XCP_EXTENDED_OFFER_LENGTH)
        length = xcp_extended_write(raw.bytes, &nothing, &nobody, 1);
    if (length <= XCP_EXTENDED_LENGTH_MAX)
        bpf_store_hdr_opt(ops, raw.bytes, length, 0);
}
