//! The router's law on one outgoing link (engine/router.h), with checked settings in real units.

use crate::ffi::{self, ROUTER_WORDS};
use crate::header::ForwardHeader;
use std::fmt;

/// Control interval d.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interval {
    /// Mean RTT over flows (XCP).
    #[default]
    Mean,
    /// Longest RTT seen in the interval ("An Example of Instability in XCP").
    Max,
}

/// What of the link is XCP's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CapacityForXcp {
    /// The configured capacity.
    #[default]
    Configured,
    /// The configured capacity less the measured traffic of others (XCP-IR). Not carried out yet: refused.
    MinusOther,
}

/// Whose packets are shuffled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shuffle {
    /// Everybody's.
    #[default]
    All,
    /// Those whose bottleneck id is this link (iXCP). Not carried out yet: refused.
    Matching,
}

/// Who gets spare bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spare {
    /// All flows alike.
    #[default]
    All,
    /// All flows, scaled by N / N_b (P-XCP). Not carried out yet: refused.
    Scaled,
    /// The flows limited here, with headroom for the others. Not carried out yet: refused.
    Limited,
}

/// Gain on one packet's feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gain {
    /// One for all.
    #[default]
    Uniform,
    /// min(1, d / the packet's RTT), on increase and decrease alike.
    OwnRtt,
}

/// Settings of a router: one value per choice of the law.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterConfig {
    /// Capacity of the link, bytes/s: 1 to 2^40.
    pub capacity_bytes_per_sec: u64,
    /// Gain on spare bandwidth: above 0, below 1. (Stable for equal RTTs below pi / (4 sqrt 2) = 0.555.)
    pub alpha: f64,
    /// Gain on the persistent queue: 0 to below 1.
    pub beta: f64,
    /// Part of the traffic that is shuffled in a control interval: 0 to below 1.
    pub gamma: f64,
    /// Bytes of framing per packet that the router does not see: at most 65535.
    pub overhead_bytes: u32,
    /// Charge feedback to residue pools.
    pub pools: bool,
    /// Count traffic without XCP headers as input too. Without it only XCP's own packets count, acknowledgements included.
    pub count_other: bool,
    /// Control interval.
    pub interval: Interval,
    /// Shortest control interval, ns: at least 1.
    pub min_interval_ns: u64,
    /// Longest control interval and the longest RTT that is believed, ns: at most 2^42. What paths may really have (engine/law.h says why).
    pub max_interval_ns: u64,
    /// Bytes that may stand in the queue: at most 2^40.
    pub queue_target_bytes: u64,
    /// Gain on one packet's feedback.
    pub gain: Gain,
    /// What of the link is XCP's.
    pub capacity_for_xcp: CapacityForXcp,
    /// Whose packets are shuffled.
    pub shuffle: Shuffle,
    /// Who gets spare bandwidth.
    pub spare: Spare,
}

impl RouterConfig {
    /// XCP as published (Katabi, Handley & Rohrs 2002): alpha 0.4, beta 0.226, gamma 0.1, d the mean RTT, everything in the queue is input.
    pub fn xcp(capacity_bytes_per_sec: u64) -> Self {
        let mut law = ffi::Law::default();
        // SAFETY: writes one Law to the pointer, which is valid and exclusive.
        unsafe { ffi::xcp_shim_law_xcp(&mut law, capacity_bytes_per_sec) };
        RouterConfig {
            capacity_bytes_per_sec,
            alpha: 0.4,
            beta: 0.226,
            gamma: 0.1,
            overhead_bytes: law.overhead,
            pools: law.pools != 0,
            count_other: law.input == 0,
            interval: Interval::Mean,
            min_interval_ns: law.min_interval_ns,
            max_interval_ns: law.max_interval_ns,
            queue_target_bytes: law.queue_target,
            gain: Gain::Uniform,
            capacity_for_xcp: CapacityForXcp::Configured,
            shuffle: Shuffle::All,
            spare: Spare::All,
        }
    }

    fn law(&self) -> Result<ffi::Law, ConfigError> {
        Ok(ffi::Law {
            capacity: self.capacity_bytes_per_sec,
            min_interval_ns: self.min_interval_ns,
            max_interval_ns: self.max_interval_ns,
            queue_target: self.queue_target_bytes,
            alpha: fraction("alpha", self.alpha)?,
            beta: fraction("beta", self.beta)?,
            gamma: fraction("gamma", self.gamma)?,
            overhead: self.overhead_bytes,
            interval: match self.interval {
                Interval::Mean => 0,
                Interval::Max => 1,
            },
            capacity_for_xcp: match self.capacity_for_xcp {
                CapacityForXcp::Configured => 0,
                CapacityForXcp::MinusOther => 1,
            },
            shuffle: match self.shuffle {
                Shuffle::All => 0,
                Shuffle::Matching => 1,
            },
            spare: match self.spare {
                Spare::All => 0,
                Spare::Scaled => 1,
                Spare::Limited => 2,
            },
            gain: match self.gain {
                Gain::Uniform => 0,
                Gain::OwnRtt => 1,
            },
            input: u8::from(!self.count_other),
            pools: u8::from(self.pools),
            reserved: 0,
        })
    }
}

/// A gain as a fraction of 2^32.
fn fraction(name: &'static str, v: f64) -> Result<u32, ConfigError> {
    let scaled = (v * 4_294_967_296.0).round();
    if (0.0..=f64::from(u32::MAX)).contains(&scaled) { Ok(scaled as u32) } else { Err(ConfigError::Gain { name, value: v }) }
}

/// What is wrong with a [`RouterConfig`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// Capacity is 0 or above 2^40 bytes/s.
    Capacity,
    /// The intervals are not 0 < min <= max <= 2^42 ns.
    Intervals,
    /// A gain is outside its range.
    Gain {
        /// Which.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// More than 65535 bytes of overhead.
    Overhead,
    /// A queue target above 2^40 bytes.
    QueueTarget,
    /// A choice that is defined but not carried out yet.
    NotCarriedOut,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Capacity => write!(f, "capacity must be between 1 byte/s and 2^40 bytes/s (8.8 Tbit/s)"),
            ConfigError::Intervals => write!(f, "control intervals must satisfy 0 < shortest <= longest <= 2^42 ns (4398 s)"),
            ConfigError::Gain { name, value } => {
                let least = if *name == "alpha" { "above 0" } else { "at least 0" };
                write!(f, "{name} = {value} is outside its range: {least} and below 1")
            }
            ConfigError::Overhead => write!(f, "overhead per packet must be at most 65535 bytes"),
            ConfigError::QueueTarget => write!(f, "the queue target must be at most 2^40 bytes"),
            ConfigError::NotCarriedOut => {
                write!(f, "this router carries out capacity_for_xcp = Configured, shuffle = All and spare = All only")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

/// The law's state on one outgoing link. Cloning it clones the random numbers too.
#[derive(Debug, Clone)]
pub struct Router([u64; ROUTER_WORDS]);

/// What a router's last closed control interval came to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RouterState {
    /// d: the estimate the law divides by, seconds.
    pub mean_rtt_s: f64,
    /// Length planned for the running interval, seconds: d within the configured bounds.
    pub control_interval_s: f64,
    /// Flows, estimated as the sum of RTT/window over the interval's packets, divided by its length.
    pub flows_estimated: f64,
    /// Aggregate feedback F (phi), bit/s.
    pub phi_bps: f64,
    /// Shuffled traffic, bit/s.
    pub shuffled_bps: f64,
    /// Input traffic y, overhead included, bit/s.
    pub input_traffic_bps: f64,
    /// Persistent queue, bytes.
    pub persistent_queue_bytes: f64,
    /// Left to hand out in the running interval, bit/s.
    pub residue_pos_bps: f64,
    /// Left to take back in the running interval, bit/s.
    pub residue_neg_bps: f64,
    /// Capacity the law reckons with, bit/s.
    pub capacity_bps: f64,
    /// Intervals closed so far.
    pub intervals: u64,
}

impl Router {
    /// A router that starts at `now_ns`; `seed` is for the rounding of feedback.
    ///
    /// # Errors
    /// A setting out of range, or a choice that is not carried out yet.
    pub fn new(config: &RouterConfig, now_ns: u64, seed: u64) -> Result<Router, ConfigError> {
        let law = config.law()?;
        let mut state = [0; ROUTER_WORDS];
        // SAFETY: shim.c asserts that struct xcp_router has ROUTER_WORDS words; `law` mirrors struct xcp_law. Both outlive the call.
        let wrong = unsafe { ffi::xcp_shim_router_init(&mut state, &law, now_ns, seed) };
        match wrong {
            0 => Ok(Router(state)),
            1 => Err(ConfigError::Capacity),
            2 => Err(ConfigError::Intervals),
            3 => Err(ConfigError::Gain { name: "alpha", value: config.alpha }),
            4 => Err(ConfigError::Overhead),
            5 => Err(ConfigError::QueueTarget),
            _ => Err(ConfigError::NotCarriedOut),
        }
    }

    /// A packet arrives at the queue, whether or not the queue then takes it. `queue_bytes`: bytes waiting before it, without the packet in
    /// transmission. A default header is treated as in [`Router::other_arrival`] with `is_xcp` true.
    #[inline]
    pub fn arrival(&mut self, now_ns: u64, size_bytes: u32, header: &ForwardHeader, queue_bytes: u64) {
        // SAFETY: `self.0` was initialised by `new`; both pointers are valid for the call.
        unsafe { ffi::xcp_shim_router_arrival(&mut self.0, now_ns, size_bytes, header, queue_bytes) }
    }

    /// A packet leaves the queue for the transmitter: its feedback is lowered to what this link has for it, and it is marked. `queue_bytes`: bytes
    /// waiting when it has left the queue, itself excluded; a packet that finds the transmitter free departs at once, with 0.
    #[inline]
    pub fn departure(&mut self, now_ns: u64, size_bytes: u32, header: &mut ForwardHeader, queue_bytes: u64) {
        // SAFETY: as in `arrival`.
        unsafe { ffi::xcp_shim_router_departure(&mut self.0, now_ns, size_bytes, header, queue_bytes) }
    }

    /// A packet finds an empty queue and a free transmitter: [`Router::arrival`] and [`Router::departure`] at once, in one call.
    #[inline]
    pub fn pass(&mut self, now_ns: u64, size_bytes: u32, header: &mut ForwardHeader) {
        // SAFETY: as in `arrival`.
        unsafe { ffi::xcp_shim_router_pass(&mut self.0, now_ns, size_bytes, header) }
    }

    /// Packets of one flow (1 to 65535) pass together under one header, of which each will carry a copy, as segmentation offload hands them to a
    /// kernel's queue; what the header gets is for each of them. `bytes`: all of them on the wire; `queue_bytes`: what waits before them.
    pub fn burst(&mut self, now_ns: u64, bytes: u64, segments: u16, header: &mut ForwardHeader, queue_bytes: u64) {
        // SAFETY: as in `arrival`.
        unsafe { ffi::xcp_shim_router_burst(&mut self.0, now_ns, bytes, u32::from(segments.max(1)), header, queue_bytes) }
    }

    /// A packet has to pass without the law, because its state cannot be got at in time: the header may not ask for more than it has.
    pub fn withhold(header: &mut ForwardHeader) {
        // SAFETY: `header` is valid for the call.
        unsafe { ffi::xcp_shim_router_withhold(header) }
    }

    /// Packets without forward header that passed since the last packet with one, and were only counted; `least_backlog`: the least that waited
    /// before one of them, bytes. They are input, and close no interval.
    pub fn others(&mut self, bytes: u64, packets: u64, least_backlog: u64) {
        // SAFETY: as in `arrival`.
        unsafe { ffi::xcp_shim_router_others(&mut self.0, bytes, packets, least_backlog) }
    }

    /// A packet without forward header arrives; `is_xcp`: it belongs to an XCP flow (an acknowledgement). Counted as input if it is one or if
    /// [`RouterConfig::count_other`] is set. `queue_bytes` as in [`Router::arrival`].
    #[inline]
    pub fn other_arrival(&mut self, now_ns: u64, size_bytes: u32, is_xcp: bool, queue_bytes: u64) {
        // SAFETY: as in `arrival`.
        unsafe { ffi::xcp_shim_router_other_arrival(&mut self.0, now_ns, size_bytes, u32::from(is_xcp), queue_bytes) }
    }

    /// A packet without forward header finds an empty queue and a free transmitter: [`Router::other_arrival`] and [`Router::other_departure`] at
    /// once, in one call.
    #[inline]
    pub fn other_pass(&mut self, now_ns: u64, size_bytes: u32, is_xcp: bool) {
        // SAFETY: as in `arrival`.
        unsafe { ffi::xcp_shim_router_other_pass(&mut self.0, now_ns, size_bytes, u32::from(is_xcp)) }
    }

    /// A packet without forward header departs. `queue_bytes` as in [`Router::departure`]; it matters: the persistent queue is sampled here too.
    #[inline]
    pub fn other_departure(&mut self, now_ns: u64, queue_bytes: u64) {
        // SAFETY: as in `arrival`.
        unsafe { ffi::xcp_shim_router_other_departure(&mut self.0, now_ns, queue_bytes) }
    }

    /// The link's capacity changed, bytes/s (bounded to 1..=2^40); counts from the end of the running interval.
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
            flows_estimated: if v.elapsed_ns == 0 { 0.0 } else { scaled(v.x_m, v.x_e) / v.elapsed_ns as f64 },
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

    /// The state as it lies in memory, here and in a kernel program's map: `struct xcp_router` of engine/router.h.
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
