//! Safe wrappers around single pieces of engine/num.h, path.h and router.h, so that tests can hold them against exact arithmetic.
#![allow(missing_docs, reason = "private to this crate's tests; the C headers say what each is")]

pub use crate::ffi::{Acc, Grant, Num, Path, View};
use crate::{ForwardHeader, Router, ffi};

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
