//! Safe wrappers around single pieces of engine/num.h, path.h and router.h, so that tests can hold
//! them against exact arithmetic.
#![allow(missing_docs, reason = "private to this crate's tests; the C headers say what each is")]

pub use crate::ffi::{Acc, Grant, Num, Path, View};
use crate::{ForwardHeader, ReturnHeader, RobustRouter, RobustSender, Router, Sender, ffi};

pub fn num_scaled(m: u64, e: i32) -> Num {
    let mut out = Num::default();
    // SAFETY: writes one Num.
    unsafe { ffi::xcp_shim_num_scaled(m, e, &mut out) };
    out
}

pub fn num_mul(a: Num, b: Num) -> Num {
    let mut out = Num::default();
    // SAFETY: reads two Nums, writes one.
    unsafe { ffi::xcp_shim_num(0, &a, &b, &mut out) };
    out
}

pub fn num_div(a: Num, b: Num) -> Num {
    let mut out = Num::default();
    // SAFETY: reads two Nums, writes one.
    unsafe { ffi::xcp_shim_num(1, &a, &b, &mut out) };
    out
}

/// Leading zeros of `v` (not 0): the host's way and BPF's.
pub fn clz(v: u64) -> (i32, i32) {
    assert_ne!(v, 0);
    (ffi::xcp_shim_clz(v, 0), ffi::xcp_shim_clz(v, 1))
}

pub fn scale(m: u64, e: i32, max: u64) -> u64 {
    ffi::xcp_shim_scale(m, e, max)
}

pub fn mul_fraction(v: u64, f: u32) -> u64 {
    ffi::xcp_shim_mul_fraction(v, f)
}

pub fn acc_add(acc: &mut Acc, m: u64, e: i32) {
    // SAFETY: reads and writes one Acc.
    unsafe { ffi::xcp_shim_acc_add(acc, m, e) };
}

pub fn recip16(v: u16) -> Num {
    assert_ne!(v, 0);
    let mut out = Num::default();
    // SAFETY: writes one Num.
    unsafe { ffi::xcp_shim_recip16(u32::from(v), &mut out) };
    out
}

pub fn path(h: &ForwardHeader) -> Path {
    let mut out = Path::default();
    // SAFETY: reads one header, writes one Path.
    unsafe { ffi::xcp_shim_path(h, &mut out) };
    out
}

pub fn view(router: &Router) -> View {
    router.view()
}

/// What the router would grant a packet now, unrounded.
pub fn grant(router: &Router, size: u32, h: &ForwardHeader) -> Grant {
    let mut g = Grant::default();
    // SAFETY: reads an initialised router and a header, writes one Grant.
    unsafe { ffi::xcp_shim_router_grant(router.words(), size, h, &mut g) };
    g
}

/// The whole state, to be compared.
pub fn router_words(router: &Router) -> &[u64] {
    router.words()
}

/// The whole state, to be compared.
pub fn sender_words(sender: &Sender) -> &[u64] {
    sender.words()
}

/// What of a router's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    Arrival = 0,
    Departure = 1,
    Both = 2,
}

/// A packet at a router, by the way for all packets.
pub fn router_any(
    router: &mut Router,
    what: Work,
    now_ns: u64,
    size: u32,
    h: &mut ForwardHeader,
    backlog: u64,
) {
    // SAFETY: an initialised router and a header, both exclusive.
    unsafe { ffi::xcp_shim_router_any(router.words_mut(), what as u32, now_ns, size, h, backlog) };
}

/// The same at a router that remembers its promises.
pub fn robust_any(
    router: &mut RobustRouter,
    what: Work,
    now_ns: u64,
    size: u32,
    h: &mut ForwardHeader,
    backlog: u64,
) {
    // SAFETY: as in `router_any`.
    unsafe { ffi::xcp_shim_robust_any(router.words_mut(), what as u32, now_ns, size, h, backlog) };
}

/// [`Sender::header`] by the way for all senders.
pub fn sender_header_any(
    sender: &mut Sender,
    now_ns: u64,
    srtt_ns: u64,
    limit: u32,
) -> ForwardHeader {
    let mut h = ForwardHeader::default();
    // SAFETY: an initialised sender; writes one header.
    unsafe { ffi::xcp_shim_sender_header_any(sender.words_mut(), now_ns, srtt_ns, limit, &mut h) };
    h
}

/// [`RobustSender::write_header`] by the way for all senders.
pub fn robust_header_any(
    sender: &mut RobustSender,
    now_ns: u64,
    limit: u32,
    late: bool,
) -> ForwardHeader {
    let (words, mut h) = (sender.words_mut(), ForwardHeader::default());
    // SAFETY: as in `sender_header_any`.
    unsafe {
        ffi::xcp_shim_robust_sender_header_any(words, now_ns, limit, late.into(), &mut h);
    }
    h
}

/// [`Sender::feedback`] by the way for all senders.
pub fn sender_feedback_any(
    sender: &mut Sender,
    now_ns: u64,
    h: &ReturnHeader,
    srtt_ns: u64,
    cwnd_limited: bool,
    segments: u32,
) {
    // SAFETY: an initialised sender; reads one header.
    unsafe {
        ffi::xcp_shim_sender_feedback_any(
            sender.words_mut(),
            now_ns,
            h,
            srtt_ns,
            u32::from(cwnd_limited),
            segments,
        )
    };
}

/// The integer square root, and the cube root.
pub fn roots(v: u64) -> (u64, u64) {
    (ffi::xcp_shim_root(v, 0), ffi::xcp_shim_root(v, 1))
}

/// Base-2 logarithm of `v`, times 2^16.
pub fn log2_q16(v: u32) -> u32 {
    assert_ne!(v, 0);
    ffi::xcp_shim_log2_q16(v)
}

/// engine/cubic.h; windows in packets.
#[derive(Debug, Default)]
pub struct Cubic(ffi::Cubic);

impl Cubic {
    pub fn start(window: f64) -> Cubic {
        let mut cubic = Cubic::default();
        cubic.call(0, window, 0, 0, 0);
        cubic
    }

    pub fn acked(&mut self, now: u64, srtt_ns: u64, segments: u32) {
        self.call(1, 0.0, now, srtt_ns, segments);
    }

    pub fn lost(&mut self, flight: f64) {
        self.call(2, flight, 0, 0, 0);
    }

    pub fn window(&self) -> f64 {
        self.0.cwnd as f64 / 4_294_967_296.0
    }

    fn call(&mut self, what: u32, window: f64, now: u64, srtt_ns: u64, segments: u32) {
        let window = (window * 4_294_967_296.0) as u64;
        // SAFETY: reads and writes one Cubic.
        unsafe { ffi::xcp_shim_cubic(&mut self.0, what, window, now, srtt_ns, segments) };
    }
}
