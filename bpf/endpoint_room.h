/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Room for the option beside SACK: TCX egress on the host's own device. Part of endpoint.bpf.c.
 *
 * Timestamps and three SACK blocks fill the forty bytes there are, and the kernel asks nobody who
 * wants to write more. As the 2005 Linux study did in the stack, blocks give way here: those named
 * last are the oldest news (RFC 2018 §4: the first block is the newest). The header's length stays.
 * Only headers as Linux lays them out are touched: [NOP NOP timestamps] NOP NOP SACK [XCP]
 * [NOP...].
 */

#include "bounds.h"

#define TCPOPT_SACK 5

/* A block of options, and what some() may reach beyond it. */
struct xcp_block {
    __u8 bytes[64];
};

/* How the block of options of one packet is to be laid out anew. */
struct xcp_layout {
    __u32 length; /* of the whole block, which stays */
    __u32 sack;   /* where the kind of the SACK option is */
    __u32 keep;   /* blocks of it that stay */
    __u32 size;   /* of our option, which follows them */
    struct xcp_raw option;
    __u8 beyond[6]; /* as in struct xcp_block */
};

/*
 * Lays the options out: the SACK blocks that stay, our option, NOPs to the end; mends the checksum.
 *
 * A function that is not static, because the verifier goes through it once and takes every number
 * in the layout for unknown. Were this a part of xcp_make_room, it would go through it for each of
 * the layouts that can come out there, which took 640,000 of the million instructions that it is
 * willing to look at.
 */
__noinline int xcp_lay_out(struct __sk_buff *skb, __u32 options_at, struct xcp_layout *layout) {
    struct xcp_block old = {}, new = {};
    __u64 length, size, fill, ours;
    __u32 i;
    __u8 sack[1];
    if (!layout)
        return -1;
    length = layout->length;
    size = layout->size;
    ours = layout->sack + 2 + layout->keep * 8;
    fill = length - ours - size;
    if (!between(&length, 12, XCP_OPTIONS_MAX) ||
        bpf_skb_load_bytes(skb, options_at, old.bytes, some(length, 63)))
        return -1;
    sack[0] = (__u8)(2 + layout->keep * 8);
    if (bpf_skb_store_bytes(skb, options_at + layout->sack + 1, sack, 1, 0))
        return -1;
    if (!between(&size, 1, XCP_EXTENDED_LENGTH_MAX) ||
        bpf_skb_store_bytes(skb, options_at + ours, layout->option.bytes, some(size, 31), 0))
        return -1;
    for (i = 0; i < XCP_OPTIONS_MAX; i++)
        new.bytes[i] = 1;
    if (between(&fill, 1, XCP_OPTIONS_MAX))
        bpf_skb_store_bytes(skb, options_at + ours + size, new.bytes, some(fill, 63), 0);
    /* the whole block before and after: no-op where the checksum is yet to be made */
    __builtin_memset(&new, 0, sizeof(new));
    length = layout->length;
    if (!between(&length, 12, XCP_OPTIONS_MAX) ||
        bpf_skb_load_bytes(skb, options_at, new.bytes, some(length, 63)))
        return -1;
    bpf_l4_csum_replace(skb, options_at - TCP_HEADER + 16, 0,
                        bpf_csum_diff((__be32 *)old.bytes, XCP_OPTIONS_MAX, (__be32 *)new.bytes,
                                      XCP_OPTIONS_MAX, 0),
                        0);
    return 0;
}

/* Makes room in a packet, if our option lacks it. length: of all options; data: whether it has
 * any. */
__noinline int xcp_make_room(struct __sk_buff *skb, __u32 tcp_at, __u32 length, __u32 data) {
    struct xcp_layout layout = {};
    struct xcp_block old = {};
    struct xcp_connection *c;
    struct tcp_sock *tp;
    struct bpf_sock *sk = skb->sk;
    struct xcp_extended there = {{0, 0, 0, 0, 0, 0, 0}, {0, 0, 0, 0}, 0};
    __u32 at = 0, blocks, which;
    __u64 bytes = length, from;
    if (!sk || length < 12 || length > XCP_OPTIONS_MAX || tcp_at > 512)
        return 0;
    sk = bpf_sk_fullsock(sk);
    if (!sk)
        return 0;
    c = bpf_sk_storage_get(&connections, sk, 0, 0);
    tp = bpf_skc_to_tcp_sock(sk);
    if (!c || !tp || c->state != XCP_AGREED || c->ask.flags & XCP_ASK_CLASSIC)
        return 0;
    which = parts(c, data);
    if (which == 0 || !between(&bytes, 12, XCP_OPTIONS_MAX) ||
        bpf_skb_load_bytes(skb, tcp_at + TCP_HEADER, old.bytes, some(bytes, 63)))
        return 0;
    if (old.bytes[0] == 1 && old.bytes[1] == 1 && old.bytes[2] == 8)
        at = 12;
    if (old.bytes[at] != 1 || old.bytes[at + 1] != 1 || old.bytes[at + 2] != TCPOPT_SACK)
        return 0;
    blocks = old.bytes[at + 3] >> 3;
    from = at + 4 + blocks * 8;
    if (from > length)
        return 0;
    if (length - from >= XCP_EXTENDED_OFFER_LENGTH) { /* ours is there: is all of it? */
        if (!between(&from, 12, XCP_OPTIONS_MAX - XCP_EXTENDED_OFFER_LENGTH - 6) ||
            old.bytes[from] != XCP_EXTENDED_KIND)
            return 0;
        if (!(which & XCP_PART_FORWARD) ||
            old.bytes[from + XCP_EXTENDED_AT_FLAGS] & XCP_WIRE_FORWARD)
            return 0;
        there.returned.feedback = xcp_get16(old.bytes + from + 6);
        there.returned.flags =
            (__u8)(XCP_PRESENT |
                   (old.bytes[from + XCP_EXTENDED_AT_FLAGS] & XCP_WIRE_MARK_RETURNED ? XCP_MARK
                                                                                     : 0));
        there.returned.wait = old.bytes[from + XCP_EXTENDED_AT_WAIT] & 15;
        if (old.bytes[from + XCP_EXTENDED_AT_FLAGS] & XCP_WIRE_IDS)
            there.returned.next_bottleneck_id = xcp_get32(old.bytes + from + 8);
    }
    layout.size = option_length(c, which);
    if (length < at + 4 + 8 + layout.size)
        return 0;
    layout.length = length;
    layout.sack = at + 2;
    layout.keep = (length - at - 4 - layout.size) >> 3;
    if (layout.keep > blocks)
        layout.keep = blocks;
    if (there.returned.flags & XCP_PRESENT) {
        put_forward(c, tp, sk, skb->gso_segs, &there.forward);
        xcp_extended_write(layout.option.bytes, &there.forward, &there.returned, c->ids);
    } else {
        build(c, tp, sk, which, skb->gso_segs, layout.option.bytes);
    }
    if (!xcp_lay_out(skb, tcp_at + TCP_HEADER, &layout))
        c->trimmed++;
    return 0;
}

/* Most packets have no SACK: they must get away quickly. */
static __always_inline int room(struct __sk_buff *skb, __u32 link_bytes) {
    void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
    struct xcp_segment segment = {};
    __u8 *block;
    __u32 at = 0;
    if (!skb->sk || xcp_find_tcp(data, end, link_bytes, &segment) != XCP_FOUND_TCP ||
        segment.options < 12)
        return XCP_NEXT;
    block = data + segment.tcp + TCP_HEADER;
    if ((void *)block + 12 > end)
        return XCP_NEXT;
    if (block[2] == 8)
        at = 12;
    if ((void *)block + at + 4 > end || segment.options <= at || block[at + 2] != TCPOPT_SACK)
        return XCP_NEXT;
    xcp_make_room(skb, segment.tcp, segment.options,
                  skb->len > segment.tcp + TCP_HEADER + segment.options);
    return XCP_NEXT;
}

SEC("tcx/egress")
int xcp_room_ethernet(struct __sk_buff *skb) {
    return room(skb, ETHERNET_HEADER);
}

/* Tunnels and other devices without a link layer. */
SEC("tcx/egress")
int xcp_room_bare(struct __sk_buff *skb) {
    return room(skb, 0);
}
