/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every function of engine/ that a kernel program calls, each in a program of its own, with state
 * and packets in maps' values as there. */

#include "xcp.h"

#define SEC(name) __attribute__((section(name), used))

struct packet {
    xcp_u64 now, backlog;
    xcp_u32 size, length;
    struct xcp_forward forward;
    struct xcp_return returned;
    xcp_u8 options[XCP_OPTIONS_MAX];
};

struct xcp_router router;
struct xcp_policer policer;
struct xcp_policed_set set;
struct xcp_sender sender;
struct xcp_receiver receiver;
struct xcp_law law;
struct packet packet;
struct xcp_options found;

SEC("tc") int init(void *ctx) {
    (void)ctx;
    xcp_sender_init(&sender, 0, packet.size, packet.now, packet.now, packet.backlog, 1);
    xcp_receiver_init(&receiver, 0);
    return xcp_router_init(&router, &law, packet.now, 1);
}

SEC("tc") int arrival(void *ctx) {
    (void)ctx;
    xcp_router_arrival(&router, packet.now, packet.size, &packet.forward, packet.backlog);
    return 0;
}

SEC("tc") int departure(void *ctx) {
    (void)ctx;
    xcp_router_departure(&router, packet.now, packet.size, &packet.forward, packet.backlog);
    return 0;
}

SEC("tc") int both(void *ctx) {
    (void)ctx;
    xcp_router_arrival(&router, packet.now, packet.size, &packet.forward, packet.backlog);
    xcp_router_departure(&router, packet.now, packet.size, &packet.forward, packet.backlog);
    return 0;
}

SEC("tc") int other(void *ctx) {
    (void)ctx;
    xcp_router_other_arrival(&router, packet.now, packet.size, 0, packet.backlog);
    xcp_router_other_departure(&router, packet.now, packet.size, 0, packet.backlog);
    return 0;
}

SEC("tc") int police(void *ctx) {
    xcp_u64 hash = xcp_policer_hash(&policer, packet.now);
    (void)ctx;
    return (int)xcp_policer_packet(&policer, &router, &set, (xcp_u32)hash, packet.now, packet.size,
                                   packet.length, &packet.forward);
}

SEC("tc") int options(void *ctx) {
    (void)ctx;
    xcp_options_find(packet.options, packet.length, &found);
    return 0;
}

SEC("tc") int ends(void *ctx) {
    (void)ctx;
    xcp_sender_header(&sender, packet.now, packet.backlog, packet.size, &packet.forward);
    xcp_receiver_data(&receiver, &packet.forward, 1);
    packet.returned = xcp_receiver_return(&receiver, packet.length);
    xcp_sender_feedback(&sender, packet.now, &packet.returned, packet.backlog, 1, packet.length);
    return (int)xcp_extended_write(packet.options, &packet.forward, &packet.returned, 0);
}

char _license[] SEC("license") = "GPL";
