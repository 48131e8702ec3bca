/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where a frame's TCP header is: Ethernet with up to two VLAN tags, or no link layer at all; IPv4
 * with options, IPv6 with the extension headers that hosts send. Says why where it cannot tell;
 * what is in the TCP header is the engine's business (engine/options.h).
 */
#ifndef XCP_HEADERS_H
#define XCP_HEADERS_H

#include "vmlinux.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* TCX_NEXT, and TC_ACT_UNSPEC for clsact: go on as if we were not here */
#define XCP_NEXT (-1)
#define XCP_DROP 2 /* TCX_DROP, and TC_ACT_SHOT */

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define ETH_P_8021Q 0x8100
#define ETH_P_8021AD 0x88a8
#define PROTO_TCP 6

#define TCP_HEADER 20
#define TCP_FLAGS 13 /* their byte in the header */
#define TCP_FLAG_SYN 0x02
#define TCP_FLAG_ACK 0x10

enum xcp_found {
    XCP_FOUND_TCP,
    XCP_FOUND_OTHER,    /* not TCP */
    XCP_FOUND_FRAGMENT, /* TCP options are not there, or cannot be trusted to be all */
    XCP_FOUND_BROKEN,   /* lengths that contradict each other */
    XCP_FOUND_BEYOND,   /* the headers are not in the linear part */
};

struct xcp_segment {
    __u32 ip;      /* offset of the IP header from the frame's start, where there is TCP */
    __u32 dscp;    /* of whatever goes by IP; 0 elsewhere */
    __u32 tcp;     /* offset of the TCP header from the frame's start */
    __u32 options; /* bytes of options, 0..40 */
    __u32 end;     /* of the packet by IP's own length, from the frame's start; 0: it tells none */
};

struct xcp_vlan {
    __be16 tci;
    __be16 protocol;
};

/* Segments that a packet stands for. What comes from a virtual machine or a packet socket has their
 * size only, until a device has looked (SKB_GSO_DODGY). payload: bytes behind all headers. */
static __always_inline __u32 xcp_segments(__u32 count, __u32 size, __u32 payload) {
    if (!count && size)
        count = (payload + size - 1) / size;
    return count ? count : 1;
}

/* Most IPv6 extension headers that are walked past: hop-by-hop, destination options, routing. */
#define XCP_IPV6_HEADERS 4

static __always_inline enum xcp_found xcp_find_ipv6(void *data, void *end, __u32 at, __u32 *tcp) {
    __u8 *ip = data + at;
    __u32 next, i;
    if ((void *)ip + 40 > end)
        return XCP_FOUND_BEYOND;
    next = ip[6];
    at += 40;
    for (i = 0; i < XCP_IPV6_HEADERS; i++) {
        __u8 *header = data + at;
        if (next == PROTO_TCP)
            break;
        if (next == 44)
            return XCP_FOUND_FRAGMENT;
        if (next != 0 && next != 43 && next != 60)
            return XCP_FOUND_OTHER;
        if ((void *)header + 8 > end)
            return XCP_FOUND_BEYOND;
        next = header[0];
        at += (header[1] + 1U) * 8;
    }
    if (next != PROTO_TCP)
        return XCP_FOUND_OTHER;
    *tcp = at;
    return XCP_FOUND_TCP;
}

/* link: bytes of the link layer's header without VLAN tags, 14 or 0. */
static __always_inline enum xcp_found xcp_find_tcp(void *data, void *end, __u32 link,
                                                   struct xcp_segment *out) {
    __u32 at = link, tcp, length;
    __u8 *p;
    if (link) {
        __be16 protocol;
        __u32 i;
        if (data + 14 > end)
            return XCP_FOUND_BEYOND;
        protocol = *(__be16 *)(data + 12);
        for (i = 0;
             i < 2 && (protocol == bpf_htons(ETH_P_8021Q) || protocol == bpf_htons(ETH_P_8021AD));
             i++) {
            struct xcp_vlan *tag = data + at;
            if ((void *)(tag + 1) > end)
                return XCP_FOUND_BEYOND;
            protocol = tag->protocol;
            at += sizeof(*tag);
        }
        if (protocol != bpf_htons(ETH_P_IP) && protocol != bpf_htons(ETH_P_IPV6))
            return XCP_FOUND_OTHER;
    }
    p = data + at;
    if ((void *)p + 20 > end)
        return XCP_FOUND_BEYOND;
    if (p[0] >> 4 == 4) {
        __u32 header = (p[0] & 15) * 4;
        out->dscp = p[1] >> 2;
        if (p[9] != PROTO_TCP)
            return XCP_FOUND_OTHER;
        if (*(__be16 *)(p + 6) & bpf_htons(0x3fff)) /* more fragments, or an offset */
            return XCP_FOUND_FRAGMENT;
        if (header < 20)
            return XCP_FOUND_BROKEN;
        tcp = at + header;
        length = bpf_ntohs(*(__be16 *)(p + 2));
        out->end = length ? at + length : 0;
    } else if (p[0] >> 4 == 6) {
        enum xcp_found found = xcp_find_ipv6(data, end, at, &tcp);
        out->dscp = (p[0] & 15U) << 2 | p[1] >> 6;
        if (found != XCP_FOUND_TCP)
            return found;
        length = bpf_ntohs(*(__be16 *)(p + 4));
        out->end = length ? at + 40 + length : 0;
    } else {
        return XCP_FOUND_OTHER;
    }
    p = data + tcp;
    if ((void *)p + TCP_HEADER > end)
        return XCP_FOUND_BEYOND;
    length = (__u32)(p[12] >> 4) * 4;
    if (length < TCP_HEADER)
        return XCP_FOUND_BROKEN;
    out->ip = at;
    out->tcp = tcp;
    out->options = length - TCP_HEADER;
    if ((void *)p + length > end)
        return XCP_FOUND_BEYOND;
    return XCP_FOUND_TCP;
}

#endif
