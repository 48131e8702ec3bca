// SPDX-License-Identifier: GPL-2.0-or-later
/* A program that does nothing: what a packet costs before any of ours has looked at it. For crates/xcp-linux/benches/router_cost.rs. */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

SEC("tcx/egress")
int xcp_nothing(struct __sk_buff *skb) {
    return -1;
}
