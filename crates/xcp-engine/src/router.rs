//! The router's law on one outgoing link (engine/router.h). Its settings are law.rs's.

use crate::ffi::{self, ROUTER_WORDS};
use crate::header::ForwardHeader;
use xcp_law::{ConfigError, Control, Preset, RouterConfig, RouterState};

use crate::law;

/// The law's state on one outgoing link. Cloning it clones the random numbers too.
#[derive(Debug, Clone)]
pub struct Router([u64; ROUTER_WORDS]);

/// The id of the link of a router with this seed; never 0.
pub fn bottleneck_id(seed: u64) -> u32 {
    ffi::xcp_shim_router_id(seed)
}

impl Router {
    /// A router that starts at `now_ns`; `seed` is for the rounding of feedback and the link's id.
    ///
    /// # Errors
    /// A setting out of range, or choices that contradict each other.
    pub fn new(config: &RouterConfig, now_ns: u64, seed: u64) -> Result<Router, ConfigError> {
        let law = law::checked(config, Control::Draft)?;
        let mut state = [0; ROUTER_WORDS];
        // SAFETY: shim.c asserts that struct xcp_router has ROUTER_WORDS words; `law` mirrors
        // struct xcp_law. Both outlive the call.
        let wrong = unsafe { ffi::xcp_shim_router_init(&mut state, &law, now_ns, seed) };
        debug_assert_eq!(wrong, 0, "refused by xcp_law_check alone: {config:?}");
        Ok(Router(state))
    }

    /// Another law from now on; what the last interval's end decided stays until the next one's.
    ///
    /// # Errors
    /// A setting out of range, or choices that contradict each other; the law stays as it is.
    pub fn set_law(&mut self, config: &RouterConfig) -> Result<(), ConfigError> {
        let law = law::checked(config, Control::Draft)?;
        // SAFETY: `self.0` was initialised by `new`; `law` mirrors struct xcp_law. Both outlive the
        // call.
        let wrong = unsafe { ffi::xcp_shim_router_set_law(&mut self.0, &law) };
        debug_assert_eq!(wrong, 0, "refused by xcp_law_check alone: {config:?}");
        Ok(())
    }

    /// A packet arrives at the queue, whether or not the queue then takes it. `queue_bytes`: bytes
    /// waiting before it, without the packet in transmission. A default header is treated as in
    /// [`Router::other_arrival`] with `is_xcp` true.
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
            ffi::xcp_shim_router_arrival(&mut self.0, now_ns, size_bytes, header, queue_bytes)
        }
    }

    /// A packet leaves the queue for the transmitter: its feedback is lowered to what this link has
    /// for it, and it is marked. `queue_bytes`: bytes waiting when it has left the queue, itself
    /// excluded; a packet that finds the transmitter free departs at once, with 0.
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
            ffi::xcp_shim_router_departure(&mut self.0, now_ns, size_bytes, header, queue_bytes)
        }
    }

    /// A packet finds an empty queue and a free transmitter: [`Router::arrival`] and
    /// [`Router::departure`] at once, in one call.
    #[inline]
    pub fn pass(&mut self, now_ns: u64, size_bytes: u32, header: &mut ForwardHeader) {
        // SAFETY: as in `arrival`.
        unsafe { ffi::xcp_shim_router_pass(&mut self.0, now_ns, size_bytes, header) }
    }

    /// Packets of one flow (1 to 65535) pass together under one header, of which each will carry a
    /// copy, as segmentation offload hands them to a kernel's queue; what the header gets is for
    /// each of them. `bytes`: all of them on the wire; `queue_bytes`: what waits before them.
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
            ffi::xcp_shim_router_burst(
                &mut self.0,
                now_ns,
                bytes,
                u32::from(segments.max(1)),
                header,
                queue_bytes,
            )
        }
    }

    /// A packet has to pass without the law, because its state cannot be got at in time: the header
    /// may not ask for more than it has.
    pub fn withhold(header: &mut ForwardHeader) {
        // SAFETY: `header` is valid for the call.
        unsafe { ffi::xcp_shim_router_withhold(header) }
    }

    /// Packets without forward header that passed since the last packet with one, and were only
    /// counted; `returned` of them, in `returned_bytes`, were XCP's own acknowledgements;
    /// `least_backlog`: the least that waited before one of them, bytes. They close no interval.
    pub fn others(
        &mut self,
        bytes: u64,
        packets: u64,
        returned_bytes: u64,
        returned: u64,
        least_backlog: u64,
    ) {
        // SAFETY: as in `arrival`.
        unsafe {
            ffi::xcp_shim_router_others(
                &mut self.0,
                bytes,
                packets,
                returned_bytes,
                returned,
                least_backlog,
            )
        }
    }

    /// A packet without forward header arrives; `is_xcp`: it belongs to an XCP flow (an
    /// acknowledgement). Counted as input if it is one or if [`RouterConfig::input`] is `All`.
    /// `queue_bytes` as in [`Router::arrival`].
    #[inline]
    pub fn other_arrival(&mut self, now_ns: u64, size_bytes: u32, is_xcp: bool, queue_bytes: u64) {
        // SAFETY: as in `arrival`.
        unsafe {
            ffi::xcp_shim_router_other_arrival(
                &mut self.0,
                now_ns,
                size_bytes,
                u32::from(is_xcp),
                queue_bytes,
            )
        }
    }

    /// A packet without forward header finds an empty queue and a free transmitter:
    /// [`Router::other_arrival`] and [`Router::other_departure`] at once, in one call.
    #[inline]
    pub fn other_pass(&mut self, now_ns: u64, size_bytes: u32, is_xcp: bool) {
        // SAFETY: as in `arrival`.
        unsafe {
            ffi::xcp_shim_router_other_pass(&mut self.0, now_ns, size_bytes, u32::from(is_xcp))
        }
    }

    /// A packet without forward header departs; `is_xcp` as in [`Router::other_arrival`].
    /// `queue_bytes` as in [`Router::departure`]; it matters: the persistent queue is sampled here
    /// too.
    #[inline]
    pub fn other_departure(
        &mut self,
        now_ns: u64,
        size_bytes: u32,
        is_xcp: bool,
        queue_bytes: u64,
    ) {
        // SAFETY: as in `arrival`.
        unsafe {
            ffi::xcp_shim_router_other_departure(
                &mut self.0,
                now_ns,
                size_bytes,
                u32::from(is_xcp),
                queue_bytes,
            )
        }
    }

    /// The link's capacity changed, bytes/s (bounded to 1..=2^40); counts from the end of the
    /// running interval.
    pub fn set_capacity(&mut self, bytes_per_sec: u64) {
        // SAFETY: as in `arrival`.
        unsafe { ffi::xcp_shim_router_set_capacity(&mut self.0, bytes_per_sec) }
    }

    /// The law's variables, as of the last interval's end. Costs more than a packet: for sampling.
    pub fn state(&self) -> RouterState {
        const BITS: f64 = 8.0 / 1_048_576.0; // bit/s per q20 byte/s
        let v = self.view();
        RouterState {
            mean_rtt_s: scaled(v.d_m, v.d_e) / 1e9,
            control_interval_s: v.interval_ns as f64 / 1e9,
            min_interval_s: v.min_interval_ns as f64 / 1e9,
            max_interval_s: v.max_interval_ns as f64 / 1e9,
            flows_estimated: if v.elapsed_ns == 0 {
                0.0
            } else {
                scaled(v.x_m, v.x_e) / v.elapsed_ns as f64
            },
            phi_bps: v.f as f64 * BITS,
            shuffled_bps: v.shuffled as f64 * BITS,
            input_traffic_bps: v.y as f64 * BITS,
            persistent_queue_bytes: v.queue as f64,
            residue_pos_bps: v.pool_pos as f64 * BITS,
            residue_neg_bps: v.pool_neg as f64 * BITS,
            capacity_bps: v.capacity as f64 * 8.0,
            intervals: v.intervals,
        }
    }

    /// The state as it lies in memory, here and in a kernel program's map: `struct xcp_router` of
    /// engine/router_state.h.
    pub fn words(&self) -> &[u64; ROUTER_WORDS] {
        &self.0
    }

    /// A router in the state that [`Router::words`] gave.
    pub fn from_words(words: [u64; ROUTER_WORDS]) -> Router {
        Router(words)
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64; ROUTER_WORDS] {
        &mut self.0
    }

    /// The named law that it runs, if its choices are those of one.
    pub fn law(&self) -> Option<Preset> {
        let mut theirs = ffi::Law::default();
        // SAFETY: reads one initialised router, writes one Law; ffi.rs mirrors the C structs.
        unsafe { ffi::xcp_shim_router_law(&self.0, &mut theirs) };
        law::named(&theirs)
    }

    pub(crate) fn view(&self) -> ffi::View {
        let mut v = ffi::View::default();
        // SAFETY: reads one initialised router, writes one View; ffi.rs mirrors the C struct.
        unsafe { ffi::xcp_shim_router_view(&self.0, &mut v) };
        v
    }
}

fn scaled(m: u64, e: i64) -> f64 {
    if m == 0 { 0.0 } else { m as f64 * (e as f64).exp2() }
}
