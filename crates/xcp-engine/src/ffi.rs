//! What shim.c exports, as it is declared there; everything here is private to the crate.
#![allow(missing_docs, reason = "mirrors of C structs, private to the crate and its tests")]

use crate::header::{ForwardHeader, ReturnHeader};
use crate::robust_sender::Answer;

/// 64-bit words of a router's state.
pub const ROUTER_WORDS: usize = 58;
/// 64-bit words of a policer's state.
pub const POLICER_WORDS: usize = 16;
/// 64-bit words of a set of the policer's table.
pub const POLICED_SET_WORDS: usize = 14;
/// 64-bit words of a sender's state.
pub const SENDER_WORDS: usize = 10;
/// 64-bit words of a robust router's state.
pub const ROBUST_WORDS: usize = 689;
/// 64-bit words of a robust sender's state, which begins with a sender's.
pub const ROBUST_SENDER_WORDS: usize = 51;
/// The word with the window, in 2^-32 packets.
pub const SENDER_CWND: usize = 0;
/// A robust sender's word with its base RTT, in ns.
pub const SENDER_BASE: usize = 10;
/// 64-bit words of a receiver's state.
pub const RECEIVER_WORDS: usize = 2;

/// `struct xcp_law`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Law {
    pub capacity: u64,
    pub min_interval_ns: u64,
    pub max_interval_ns: u64,
    pub queue_target: u64,
    pub alpha: u32,
    pub beta: u32,
    pub gamma: u32,
    pub overhead: u32,
    pub interval: u8,
    pub capacity_for_xcp: u8,
    pub shuffle: u8,
    pub spare: u8,
    pub gain: u8,
    pub input: u8,
    pub pools: u8,
    pub spare_most: u8,
    pub control: u8,
    pub tcp: u8,
    pub capacity_known: u8,
    pub unused: [u8; 5],
}

/// `struct xcp_num`: `m * 2^e`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Num {
    pub m: u32,
    pub e: i32,
}

/// `struct xcp_acc`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acc {
    pub hi: u64,
    pub lo: u64,
}

/// `struct xcp_path`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Path {
    pub known: u32,
    pub rtt: u32,
    pub re: i32,
    pub x: u32,
    pub xe: i32,
}

/// `struct xcp_grant`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Grant {
    pub size: u32,
    pub segments: u32,
    pub fb: u64,
    pub e: i32,
    pub below: u32,
    pub pos_q: u64,
    pub neg_q: u64,
}

/// `struct xcp_shim_view`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct View {
    pub start_ns: u64,
    pub interval_ns: u64,
    pub elapsed_ns: u64,
    pub input: u64,
    pub sum_x_hi: u64,
    pub sum_x_lo: u64,
    pub sum_xr_hi: u64,
    pub sum_xr_lo: u64,
    pub queue: u64,
    pub queue_period_ns: u64,
    pub min_queue: u64,
    pub pool_pos: u64,
    pub pool_neg: u64,
    pub y: u64,
    pub shuffled: u64,
    pub intervals: u64,
    pub rtt_known: u64,
    pub capacity: u64,
    pub f: i64,
    pub cp_m: u64,
    pub cn_m: u64,
    pub d_m: u64,
    pub x_m: u64,
    pub cp_e: i64,
    pub cn_e: i64,
    pub d_e: i64,
    pub x_e: i64,
    pub id: u64,
    pub pool_hp: u64,
    pub pool_hn: u64,
    pub min_interval_ns: u64,
    pub max_interval_ns: u64,
    pub hp: Num,
    pub hn: Num,
    pub fp: Num,
    pub gp: Num,
    pub gn: Num,
    pub cap: Num,
}

/// `struct xcp_shim_robust_view`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RobustView {
    pub start_ns: u64,
    pub interval_ns: u64,
    pub elapsed_ns: u64,
    pub d_ns: u64,
    pub queue: u64,
    pub pool_fp: u64,
    pub pool_n: u64,
    pub y: u64,
    pub shuffled: u64,
    pub intervals: u64,
    pub told: u64,
    pub capacity: u64,
    pub min_interval_ns: u64,
    pub max_interval_ns: u64,
    pub drop: u64,
    pub tcp_flows: u64,
    pub id: u64,
    pub f: i64,
    pub owed: i64,
    pub flows: Num,
}

/// `struct xcp_shim_robust_sender_view`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct RobustSenderView {
    pub window: u64,
    pub bound: u64,
    pub base_ns: u64,
    pub explicit_window: u64,
    pub mode: u32,
    pub routed: u32,
    pub binds: u32,
    pub competes: u32,
    pub jumps: u32,
}

/// `struct xcp_cubic`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Cubic {
    pub cwnd: u64,
    pub ssthresh: u64,
    pub plateau: u64,
    pub prior: u64,
    pub reno: u64,
    pub epoch_ns: u64,
    pub last_ns: u64,
    pub k: u32,
    pub from_slow_start: u32,
}

/// `struct xcp_passage`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Passage {
    pub now: u64,
    pub key: u64,
    pub bytes: u64,
    pub backlog: u64,
    pub segments: u64,
}

/// `struct xcp_shim_policer_view`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PolicerView {
    pub share: u64,
    pub flows: u64,
    pub refused: u64,
    pub refused_bytes: u64,
    pub corrected: u64,
    pub crowded: u64,
}

/// `struct xcp_options`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    pub extended: u8,
    pub classic_forward: u8,
    pub classic_return: u8,
    pub malformed: u8,
}

/// `struct xcp_extended`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Extended {
    pub forward: ForwardHeader,
    pub returned: ReturnHeader,
    pub ids: u8,
}

unsafe extern "C" {
    #[cfg(test)]
    pub fn xcp_shim_law_preset(law: *mut Law, preset: u32, capacity: u64);
    pub fn xcp_shim_router_init(
        r: *mut [u64; ROUTER_WORDS],
        law: *const Law,
        now: u64,
        seed: u64,
    ) -> i32;
    pub fn xcp_shim_router_set_law(r: *mut [u64; ROUTER_WORDS], law: *const Law) -> i32;
    pub fn xcp_shim_router_law(r: *const [u64; ROUTER_WORDS], law: *mut Law);
    pub safe fn xcp_shim_router_id(seed: u64) -> u32;
    pub fn xcp_shim_policer_init(
        p: *mut [u64; POLICER_WORDS],
        r: *mut [u64; ROUTER_WORDS],
        longest_rtt_ns: u64,
        seed: u64,
    );
    pub fn xcp_shim_policer_packet(
        p: *mut [u64; POLICER_WORDS],
        r: *mut [u64; ROUTER_WORDS],
        table: *mut [u64; POLICED_SET_WORDS],
        sets: u32,
        packet: *const Passage,
        h: *mut ForwardHeader,
    ) -> u32;
    pub safe fn xcp_shim_policer_join(p: &[u64; POLICER_WORDS], key: u64, word: u64) -> u64;
    pub fn xcp_shim_policer_view(p: *const [u64; POLICER_WORDS], v: *mut PolicerView);
    pub fn xcp_shim_router_set_capacity(r: *mut [u64; ROUTER_WORDS], capacity: u64);
    pub fn xcp_shim_router_arrival(
        r: *mut [u64; ROUTER_WORDS],
        now: u64,
        size: u32,
        h: *const ForwardHeader,
        backlog: u64,
    );
    pub fn xcp_shim_router_other_arrival(
        r: *mut [u64; ROUTER_WORDS],
        now: u64,
        size: u32,
        is_xcp: u32,
        backlog: u64,
    );
    pub fn xcp_shim_router_departure(
        r: *mut [u64; ROUTER_WORDS],
        now: u64,
        size: u32,
        h: *mut ForwardHeader,
        backlog: u64,
    );
    pub fn xcp_shim_router_pass(
        r: *mut [u64; ROUTER_WORDS],
        now: u64,
        size: u32,
        h: *mut ForwardHeader,
    );
    pub fn xcp_shim_router_burst(
        r: *mut [u64; ROUTER_WORDS],
        now: u64,
        bytes: u64,
        segments: u32,
        h: *mut ForwardHeader,
        backlog: u64,
    );
    pub fn xcp_shim_router_withhold(h: *mut ForwardHeader);
    pub fn xcp_shim_router_others(
        r: *mut [u64; ROUTER_WORDS],
        bytes: u64,
        packets: u64,
        returned_bytes: u64,
        returned: u64,
        least_backlog: u64,
    );
    pub fn xcp_shim_router_other_pass(
        r: *mut [u64; ROUTER_WORDS],
        now: u64,
        size: u32,
        is_xcp: u32,
    );
    pub fn xcp_shim_router_other_departure(
        r: *mut [u64; ROUTER_WORDS],
        now: u64,
        size: u32,
        is_xcp: u32,
        backlog: u64,
    );
    pub fn xcp_shim_router_view(r: *const [u64; ROUTER_WORDS], view: *mut View);
    pub fn xcp_shim_sender_init(
        s: *mut [u64; SENDER_WORDS],
        classic: u32,
        packet_bytes: u32,
        initial: u64,
        min_window: u64,
        max_window: u64,
        honest: u32,
    );
    pub fn xcp_shim_sender_set_whole(s: *mut [u64; SENDER_WORDS]);
    pub fn xcp_shim_sender_use_ids(s: *mut [u64; SENDER_WORDS], own: u32);
    pub fn xcp_shim_sender_limited_by(s: *const [u64; SENDER_WORDS]) -> u32;
    pub fn xcp_shim_sender_marked(s: *const [u64; SENDER_WORDS]) -> u32;
    pub fn xcp_shim_sender_header(
        s: *mut [u64; SENDER_WORDS],
        now: u64,
        srtt_ns: u64,
        limit: u32,
        h: *mut ForwardHeader,
    );
    pub fn xcp_shim_sender_feedback(
        s: *mut [u64; SENDER_WORDS],
        now: u64,
        h: *const ReturnHeader,
        srtt_ns: u64,
        cwnd_limited: u32,
        segments: u32,
    );
    pub fn xcp_shim_sender_timeout(s: *mut [u64; SENDER_WORDS]);
    pub fn xcp_shim_sender_restore(s: *mut [u64; SENDER_WORDS], before: *const [u64; SENDER_WORDS]);
    pub fn xcp_shim_sender_loss(s: *mut [u64; SENDER_WORDS], halve_when_marked: u32);
    pub fn xcp_shim_receiver_init(r: *mut [u64; RECEIVER_WORDS], classic: u32);
    pub fn xcp_shim_receiver_data(
        r: *mut [u64; RECEIVER_WORDS],
        h: *const ForwardHeader,
        segments: u32,
    );
    pub fn xcp_shim_receiver_answer(
        r: *mut [u64; RECEIVER_WORDS],
        h: *const ForwardHeader,
    ) -> ReturnHeader;
    pub fn xcp_shim_receiver_return(r: *mut [u64; RECEIVER_WORDS], segments: u32) -> ReturnHeader;
    pub safe fn xcp_shim_extended_rtt_encode(ns: u64) -> u16;
    pub safe fn xcp_shim_extended_rtt_decode(code: u16) -> u64;
    pub safe fn xcp_shim_extended_window_encode(m: u64, e: i32) -> u16;
    pub fn xcp_shim_extended_window_decode(code: u16, e: *mut i32) -> u32;
    pub safe fn xcp_shim_extended_feedback_encode(
        m: u64,
        e: i32,
        negative: u32,
        dither: u64,
    ) -> u16;
    pub safe fn xcp_shim_extended_feedback_decode(code: u16) -> i64;
    pub safe fn xcp_shim_classic_rtt_encode(ns: u64) -> u16;
    pub safe fn xcp_shim_classic_window_encode(q32: u64) -> u16;
    pub safe fn xcp_shim_classic_feedback_encode(m: u64, e: i32, negative: u32, dither: u64)
    -> u16;
    pub safe fn xcp_shim_classic_feedback_decode(code: u16) -> i64;
    pub fn xcp_shim_path(h: *const ForwardHeader, p: *mut Path);
    pub fn xcp_shim_router_grant(
        r: *const [u64; ROUTER_WORDS],
        size: u32,
        h: *const ForwardHeader,
        g: *mut Grant,
    );
    pub fn xcp_shim_router_any(
        r: *mut [u64; ROUTER_WORDS],
        what: u32,
        now: u64,
        size: u32,
        h: *mut ForwardHeader,
        backlog: u64,
    );
    pub fn xcp_shim_sender_header_any(
        s: *mut [u64; SENDER_WORDS],
        now: u64,
        srtt_ns: u64,
        limit: u32,
        h: *mut ForwardHeader,
    );
    pub fn xcp_shim_sender_feedback_any(
        s: *mut [u64; SENDER_WORDS],
        now: u64,
        h: *const ReturnHeader,
        srtt_ns: u64,
        cwnd_limited: u32,
        segments: u32,
    );
    pub fn xcp_shim_recip16(v: u32, n: *mut Num);
    pub fn xcp_shim_num(op: u32, a: *const Num, b: *const Num, out: *mut Num);
    pub fn xcp_shim_num_scaled(m: u64, e: i32, out: *mut Num);
    pub safe fn xcp_shim_clz(v: u64, halving: u32) -> i32;
    pub safe fn xcp_shim_scale(m: u64, e: i32, max: u64) -> u64;
    pub safe fn xcp_shim_mul_fraction(v: u64, f: u32) -> u64;
    pub fn xcp_shim_acc_add(acc: *mut Acc, m: u64, e: i32);
    pub fn xcp_shim_options_find(block: *const u8, length: u32, found: *mut Options);
    pub fn xcp_shim_extended_read(option: *const u8, out: *mut Extended);
    pub fn xcp_shim_extended_write(
        option: *mut u8,
        f: *const ForwardHeader,
        r: *const ReturnHeader,
        ids: u32,
    ) -> u32;
    pub fn xcp_shim_classic_read_forward(option: *const u8, out: *mut ForwardHeader);
    pub fn xcp_shim_classic_write_forward(option: *mut u8, f: *const ForwardHeader);
    pub fn xcp_shim_classic_read_return(option: *const u8, out: *mut ReturnHeader);
    pub fn xcp_shim_classic_write_return(option: *mut u8, r: *const ReturnHeader);
    pub fn xcp_shim_robust_init(
        r: *mut [u64; ROBUST_WORDS],
        law: *const Law,
        now: u64,
        seed: u64,
    ) -> i32;
    pub fn xcp_shim_robust_set_capacity(r: *mut [u64; ROBUST_WORDS], capacity: u64);
    pub fn xcp_shim_robust_arrival(
        r: *mut [u64; ROBUST_WORDS],
        now: u64,
        size: u32,
        h: *const ForwardHeader,
        backlog: u64,
    );
    pub fn xcp_shim_robust_departure(
        r: *mut [u64; ROBUST_WORDS],
        now: u64,
        size: u32,
        h: *mut ForwardHeader,
        backlog: u64,
    );
    pub fn xcp_shim_robust_other_arrival(
        r: *mut [u64; ROBUST_WORDS],
        now: u64,
        size: u32,
        kind: u32,
        flow: u64,
        backlog: u64,
    ) -> u32;
    pub fn xcp_shim_robust_other_departure(
        r: *mut [u64; ROBUST_WORDS],
        now: u64,
        size: u32,
        backlog: u64,
    );
    pub fn xcp_shim_robust_pass(
        r: *mut [u64; ROBUST_WORDS],
        now: u64,
        size: u32,
        h: *mut ForwardHeader,
    );
    pub fn xcp_shim_robust_other_pass(
        r: *mut [u64; ROBUST_WORDS],
        now: u64,
        size: u32,
        kind: u32,
        flow: u64,
    ) -> u32;
    pub fn xcp_shim_robust_any(
        r: *mut [u64; ROBUST_WORDS],
        what: u32,
        now: u64,
        size: u32,
        h: *mut ForwardHeader,
        backlog: u64,
    );
    pub fn xcp_shim_robust_burst(
        r: *mut [u64; ROBUST_WORDS],
        now: u64,
        bytes: u64,
        segments: u32,
        h: *mut ForwardHeader,
        backlog: u64,
    );
    pub fn xcp_shim_robust_other_burst(
        r: *mut [u64; ROBUST_WORDS],
        now: u64,
        bytes: u64,
        segments: u32,
        kind: u32,
        flow: u64,
        backlog: u64,
    ) -> u32;
    pub fn xcp_shim_robust_view(r: *const [u64; ROBUST_WORDS], v: *mut RobustView);
    pub fn xcp_shim_robust_sender_init(
        s: *mut [u64; ROBUST_SENDER_WORDS],
        packet_bytes: u32,
        initial: u64,
        ids: u32,
        own: u32,
    );
    pub fn xcp_shim_robust_sender_header(
        s: *mut [u64; ROBUST_SENDER_WORDS],
        now: u64,
        limit: u32,
        late: u32,
        h: *mut ForwardHeader,
    );
    pub fn xcp_shim_robust_sender_header_any(
        s: *mut [u64; ROBUST_SENDER_WORDS],
        now: u64,
        limit: u32,
        late: u32,
        h: *mut ForwardHeader,
    );
    pub fn xcp_shim_robust_sender_answered(s: *mut [u64; ROBUST_SENDER_WORDS], a: *const Answer);
    pub fn xcp_shim_robust_sender_open(
        s: *const [u64; ROBUST_SENDER_WORDS],
        limit: u32,
        h: *mut ForwardHeader,
    );
    pub fn xcp_shim_robust_sender_opened(s: *mut [u64; ROBUST_SENDER_WORDS], a: *const Answer);
    pub fn xcp_shim_robust_sender_lent(s: *mut [u64; ROBUST_SENDER_WORDS], now: u64, packets: u32);
    pub fn xcp_shim_robust_sender_hold(s: *mut [u64; ROBUST_SENDER_WORDS], packets: u32);
    pub fn xcp_shim_robust_sender_timeout(s: *mut [u64; ROBUST_SENDER_WORDS], now: u64);
    pub fn xcp_shim_robust_sender_patience(s: *const [u64; ROBUST_SENDER_WORDS]) -> u64;
    pub fn xcp_shim_robust_sender_limit(s: *const [u64; ROBUST_SENDER_WORDS]) -> u32;
    pub fn xcp_shim_robust_sender_view(
        s: *const [u64; ROBUST_SENDER_WORDS],
        v: *mut RobustSenderView,
    );
    pub safe fn xcp_shim_root(v: u64, cube: u32) -> u64;
    pub safe fn xcp_shim_log2_q16(v: u32) -> u32;
    pub fn xcp_shim_cubic(
        c: *mut Cubic,
        what: u32,
        window: u64,
        now: u64,
        srtt_ns: u64,
        segments: u32,
    );
}
