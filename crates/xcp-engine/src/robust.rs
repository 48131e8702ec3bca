//! A router that remembers its promises on one outgoing link (engine/robust.h). Its settings are
//! law.rs's.

use crate::ffi::{self, ROBUST_WORDS};
use crate::header::ForwardHeader;
use crate::law;
use xcp_law::{ConfigError, Control, RouterConfig, RouterState};

/// What a packet without forward header is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// None of the following.
    Unknown,
    /// XCP's own acknowledgement.
    Ack,
    /// TCP's data without XCP, of the flow with this hash.
    Tcp(u64),
}

impl Other {
    /// `XCP_OTHER_...` of engine/robust.h, and the flow's hash.
    fn code(self) -> (u32, u64) {
        match self {
            Self::Unknown => (0, 0),
            Self::Ack => (1, 0),
            Self::Tcp(flow) => (2, flow),
        }
    }
}

/// The law's state on one outgoing link. Cloning it clones the random numbers too.
#[derive(Debug, Clone)]
pub struct RobustRouter(Box<[u64; ROBUST_WORDS]>);

impl RobustRouter {
    /// A router that starts at `now_ns`; `seed` is for the rounding of feedback, for drops, and for
    /// the link's id.
    ///
    /// # Errors
    /// A setting out of range, or choices that the calendar does not know.
    pub fn new(config: &RouterConfig, now_ns: u64, seed: u64) -> Result<Self, ConfigError> {
        let law = law::checked(config, Control::Calendar)?;
        let mut state = Box::new([0; ROBUST_WORDS]);
        // SAFETY: shim.c asserts that struct xcp_robust has ROBUST_WORDS words; `law` mirrors
        // struct xcp_law. Both outlive the call.
        let wrong = unsafe { ffi::xcp_shim_robust_init(&mut *state, &law, now_ns, seed) };
        debug_assert_eq!(wrong, 0, "refused by xcp_law_check alone: {config:?}");
        Ok(RobustRouter(state))
    }

    /// A packet arrives, as in [`crate::Router::arrival`].
    #[inline]
    pub fn arrival(
        &mut self,
        now_ns: u64,
        size_bytes: u32,
        header: &ForwardHeader,
        queue_bytes: u64,
    ) {
        // SAFETY: `self.0` was initialised by `new`; both pointers are valid for the call.
        unsafe {
            ffi::xcp_shim_robust_arrival(&mut *self.0, now_ns, size_bytes, header, queue_bytes)
        }
    }

    /// A packet departs, as in [`crate::Router::departure`].
    #[inline]
    pub fn departure(
        &mut self,
        now_ns: u64,
        size_bytes: u32,
        header: &mut ForwardHeader,
        queue_bytes: u64,
    ) {
        // SAFETY: as in `arrival`.
        unsafe {
            ffi::xcp_shim_robust_departure(&mut *self.0, now_ns, size_bytes, header, queue_bytes)
        }
    }

    /// A packet without forward header arrives; `false`: it is to be dropped.
    #[inline]
    #[must_use]
    pub fn other_arrival(
        &mut self,
        now_ns: u64,
        size_bytes: u32,
        what: Other,
        queue_bytes: u64,
    ) -> bool {
        let (kind, flow) = what.code();
        // SAFETY: as in `arrival`.
        unsafe {
            ffi::xcp_shim_robust_other_arrival(
                &mut *self.0,
                now_ns,
                size_bytes,
                kind,
                flow,
                queue_bytes,
            ) != 0
        }
    }

    /// A packet without forward header departs.
    #[inline]
    pub fn other_departure(&mut self, now_ns: u64, size_bytes: u32, queue_bytes: u64) {
        // SAFETY: as in `arrival`.
        unsafe {
            ffi::xcp_shim_robust_other_departure(&mut *self.0, now_ns, size_bytes, queue_bytes)
        }
    }

    /// A packet arrives and departs at once, as in [`crate::Router::pass`].
    #[inline]
    pub fn pass(&mut self, now_ns: u64, size_bytes: u32, header: &mut ForwardHeader) {
        // SAFETY: as in `arrival`.
        unsafe { ffi::xcp_shim_robust_pass(&mut *self.0, now_ns, size_bytes, header) }
    }

    /// So does a packet without forward header; `false`: it is to be dropped.
    #[inline]
    #[must_use]
    pub fn other_pass(&mut self, now_ns: u64, size_bytes: u32, what: Other) -> bool {
        let (kind, flow) = what.code();
        // SAFETY: as in `arrival`.
        unsafe {
            ffi::xcp_shim_robust_other_pass(&mut *self.0, now_ns, size_bytes, kind, flow) != 0
        }
    }

    /// As [`crate::Router::burst`]; the packets arrive and depart at once.
    pub fn burst(
        &mut self,
        now_ns: u64,
        bytes: u64,
        segments: u16,
        header: &mut ForwardHeader,
        queue_bytes: u64,
    ) {
        // SAFETY: as in `arrival`.
        unsafe {
            ffi::xcp_shim_robust_burst(
                &mut *self.0,
                now_ns,
                bytes,
                u32::from(segments.max(1)),
                header,
                queue_bytes,
            )
        }
    }

    /// The same for packets without forward header; `false`: they are to be dropped.
    #[must_use]
    pub fn other_burst(
        &mut self,
        now_ns: u64,
        bytes: u64,
        segments: u16,
        what: Other,
        queue_bytes: u64,
    ) -> bool {
        let (kind, flow) = what.code();
        // SAFETY: as in `arrival`.
        unsafe {
            ffi::xcp_shim_robust_other_burst(
                &mut *self.0,
                now_ns,
                bytes,
                u32::from(segments.max(1)),
                kind,
                flow,
                queue_bytes,
            ) != 0
        }
    }

    /// The state as it lies in memory, here and in a kernel program's map: `struct xcp_robust` of
    /// engine/robust_state.h.
    pub fn words(&self) -> &[u64; ROBUST_WORDS] {
        &self.0
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64; ROBUST_WORDS] {
        &mut self.0
    }

    /// A router in the state that [`RobustRouter::words`] gave.
    pub fn from_words(words: &[u64; ROBUST_WORDS]) -> Self {
        Self(Box::new(*words))
    }

    /// The link's capacity changed, bytes/s (bounded to 1..=2^40); ends the running part of
    /// the interval.
    pub fn set_capacity(&mut self, bytes_per_sec: u64) {
        // SAFETY: as in `arrival`.
        unsafe { ffi::xcp_shim_robust_set_capacity(&mut *self.0, bytes_per_sec) }
    }

    /// The law's variables, as of the end of the last part. The running interval is a part of d;
    /// the residues are what is left to hand out and to take in it.
    pub fn state(&self) -> RouterState {
        const BITS: f64 = 8.0 / 1_048_576.0; // bit/s per q20 byte/s
        let v = self.view();
        RouterState {
            mean_rtt_s: v.d_ns as f64 / 1e9,
            control_interval_s: v.interval_ns as f64 / 1e9,
            min_interval_s: v.min_interval_ns as f64 / 1e9,
            max_interval_s: v.max_interval_ns as f64 / 1e9,
            flows_estimated: if v.flows.m == 0 {
                0.0
            } else {
                f64::from(v.flows.m) * f64::from(v.flows.e).exp2()
            },
            phi_bps: v.f as f64 * BITS,
            shuffled_bps: v.shuffled as f64 * BITS,
            input_traffic_bps: v.y as f64 * BITS,
            persistent_queue_bytes: v.queue as f64,
            residue_pos_bps: v.pool_fp as f64 * BITS,
            residue_neg_bps: v.pool_n as f64 * BITS,
            capacity_bps: v.told as f64 * 8.0,
            intervals: v.intervals,
        }
    }

    /// The capacity that the law reckons with, bit/s: what was told, or less where less leaves.
    pub fn capacity_bps(&self) -> f64 {
        self.view().capacity as f64 * 8.0
    }

    /// What has been promised and has not been seen yet (O), bit/s.
    pub fn promised_bps(&self) -> f64 {
        self.view().owed as f64 * 8.0 / 1_048_576.0
    }

    /// The probability of a drop for TCP's packets, and the number of its flows, as counted.
    pub fn tcp(&self) -> (f64, f64) {
        let v = self.view();
        (v.drop as f64 / 48f64.exp2(), v.tcp_flows as f64 / 65_536.0)
    }

    fn view(&self) -> ffi::RobustView {
        let mut v = ffi::RobustView::default();
        // SAFETY: reads one initialised router, writes one view; ffi.rs mirrors the C struct.
        unsafe { ffi::xcp_shim_robust_view(&*self.0, &mut v) };
        v
    }
}
