//! The options of the shapers and of their queues, in the kernel's structures (linux/pkt_sched.h),
//! and how large a shaper's burst is.

use crate::netlink::message::{Request, attribute, number};

/// How long a shaper may be late without losing any of its rate: it makes up for what it was not
/// there to send. In exchange so much may leave at once after a pause. Timers are late by
/// microseconds as a rule, by some 100 us on a busy machine.
const BURST_NS: u64 = 1_000_000;
/// Nanoseconds in the kernel's unit of a burst (PSCHED_SHIFT, net/pkt_sched.h; the same since
/// 2.6.31, and what /proc/net/psched says).
const TICK_NS: u64 = 64;
/// `TC_LINKLAYER_ETHERNET`: the kernel reckons time from bytes itself. Without it, it would want
/// tables (net/sched/sch_htb.c, "backward compatible").
const ETHERNET: u8 = 1;
/// Bytes of an Ethernet header with a VLAN tag, which shapers count, too.
const ETHERNET_HEADER: u64 = 18;

/// `TCA_HTB_...`
mod htb_attribute {
    pub const PARMS: u16 = 1;
    pub const INIT: u16 = 2;
    pub const RATE64: u16 = 6;
    pub const CEIL64: u16 = 7;
}
/// `TCA_TBF_...`
mod tbf_attribute {
    pub const PARMS: u16 = 1;
    pub const RATE64: u16 = 4;
    pub const BURST: u16 = 6;
}

/// A rate with the burst that suits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Bytes a second, the Ethernet header counted.
    pub bytes_per_s: u64,
    /// Bytes that may leave at once.
    pub burst: u32,
    /// Bytes of the largest frame.
    frame: u32,
    /// Bytes that each frame takes on the link beside those that the kernel counts.
    overhead: u16,
}

impl Rate {
    /// For a device of this MTU. One frame on top of [`BURST_NS`]: a token bucket must hold a frame
    /// before it sends one, and what comes in while it is full is lost.
    pub fn new(rate_bps: u64, mtu: u32) -> Self {
        let bytes_per_s = rate_bps / 8;
        let frame = u64::from(mtu) + ETHERNET_HEADER;
        let burst = frame + (u128::from(bytes_per_s) * u128::from(BURST_NS) / 1_000_000_000) as u64;
        let bounded = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        Self { bytes_per_s, burst: bounded(burst), frame: bounded(frame), overhead: 0 }
    }

    /// The same for a link on which each frame takes so many bytes more.
    pub fn with_overhead(self, overhead: u16) -> Self {
        Self { overhead, ..self }
    }

    /// So many thousandths of it, with a burst of one frame: what the whole may send at once is
    /// bounded by its own.
    pub fn share(&self, thousandths: u16) -> Self {
        let bytes_per_s = (u128::from(self.bytes_per_s) * u128::from(thousandths) / 1000) as u64;
        Self { bytes_per_s: bytes_per_s.max(1), burst: self.frame, ..*self }
    }

    /// The burst as the time that it takes.
    fn ticks(&self) -> u32 {
        let bytes = u128::from(self.burst) + u128::from(self.overhead);
        let ns = (bytes * 1_000_000_000).div_ceil(u128::from(self.bytes_per_s.max(1)));
        u32::try_from(ns.div_ceil(u128::from(TICK_NS))).unwrap_or(u32::MAX)
    }

    /// `struct tc_ratespec`. A rate of 4 GB/s or more is in an attribute of its own.
    fn specification(&self) -> [u8; 12] {
        let mut bytes = [0; 12];
        bytes[1] = ETHERNET;
        bytes[2..4].copy_from_slice(&self.overhead.to_ne_bytes());
        bytes[8..]
            .copy_from_slice(&u32::try_from(self.bytes_per_s).unwrap_or(u32::MAX).to_ne_bytes());
        bytes
    }

    fn is_large(&self) -> bool {
        self.bytes_per_s > u64::from(u32::MAX)
    }
}

/// Options of htb itself (`struct tc_htb_glob`): everything goes to the class of this number unless
/// a filter says otherwise.
pub fn htb(request: &mut Request, default_class: u32) {
    /// `TC_HTB_PROTOVER`: the major number of the version that the kernel insists on.
    const VERSION: u32 = 3;
    /// Not used, as the class has a quantum of its own; 0 is refused.
    const RATE_TO_QUANTUM: u32 = 10;
    let fields = [VERSION, RATE_TO_QUANTUM, default_class, 0, 0];
    request.attribute(htb_attribute::INIT, &fields.map(u32::to_ne_bytes).concat());
}

/// Options of htb's class (`struct tc_htb_opt`): a rate of its own, and the ceiling up to which it
/// may have what other classes leave. Of those that want it, the one of the lowest priority number
/// has it first.
pub fn htb_class(request: &mut Request, rate: &Rate, ceiling: &Rate, priority: u32) {
    let mut parameters = [rate.specification(), ceiling.specification()].concat();
    // What a class may send of what others leave before another has its turn: a frame. One that the
    // kernel finds too small or too large (1000 to 200000) it would log.
    let quantum = rate.frame.clamp(1_000, 200_000);
    // burst, burst of the ceiling, quantum, level, priority
    parameters.extend(
        [rate.ticks(), ceiling.ticks(), quantum, 0, priority].map(u32::to_ne_bytes).concat(),
    );
    request.attribute(htb_attribute::PARMS, &parameters);
    if rate.is_large() {
        request.attribute(htb_attribute::RATE64, &rate.bytes_per_s.to_ne_bytes());
    }
    if ceiling.is_large() {
        request.attribute(htb_attribute::CEIL64, &ceiling.bytes_per_s.to_ne_bytes());
    }
}

/// Options of tbf (`struct tc_tbf_qopt`). Its limit goes to the queue below it, in the unit of that
/// one, if it is a pfifo or bfifo; if there is none yet, the kernel makes a bfifo.
pub fn tbf(request: &mut Request, rate: &Rate, limit: u32) {
    // No peak rate. The MTU is looked at with one only.
    let mut parameters = [rate.specification(), [0; 12]].concat();
    parameters.extend([limit, rate.ticks(), 0].map(u32::to_ne_bytes).concat());
    request.attribute(tbf_attribute::PARMS, &parameters);
    request.number(tbf_attribute::BURST, rate.burst);
    if rate.is_large() {
        request.attribute(tbf_attribute::RATE64, &rate.bytes_per_s.to_ne_bytes());
    }
}

/// The rate in htb's class, of its ceiling, in bit/s.
pub fn htb_class_rate_bps(options: &[u8]) -> Option<u64> {
    // The ceiling's specification follows that of the rate.
    rate_bps(
        attribute(options, htb_attribute::PARMS)?.get(12..)?,
        attribute(options, htb_attribute::CEIL64),
    )
}

/// The rate of its own that htb's class has, in bit/s, and its priority.
pub fn htb_class_share(options: &[u8]) -> Option<(u64, u32)> {
    let parameters = attribute(options, htb_attribute::PARMS)?;
    Some((
        rate_bps(parameters, attribute(options, htb_attribute::RATE64))?,
        number(parameters, 40)?,
    ))
}

/// The rate of a tbf, in bit/s.
pub fn tbf_rate_bps(options: &[u8]) -> Option<u64> {
    rate_bps(attribute(options, tbf_attribute::PARMS)?, attribute(options, tbf_attribute::RATE64))
}

/// What the specification of a rate, which comes first in the parameters of htb's class and of tbf,
/// adds to each frame.
fn overhead(parameters: &[u8]) -> Option<u16> {
    Some(u16::from_ne_bytes(parameters.get(2..4)?.try_into().ok()?))
}

/// What htb's class adds to each frame, in bytes.
pub fn htb_class_overhead(options: &[u8]) -> Option<u16> {
    overhead(attribute(options, htb_attribute::PARMS)?)
}

/// What a tbf adds to each frame, in bytes.
pub fn tbf_overhead(options: &[u8]) -> Option<u16> {
    overhead(attribute(options, tbf_attribute::PARMS)?)
}

/// The burst of a tbf, in bytes of the longest frame that it lets through; `None` where it is more
/// than the kernel tells.
pub fn tbf_burst(options: &[u8]) -> Option<u32> {
    // rate, peak rate, limit, buffer
    let ticks = number(attribute(options, tbf_attribute::PARMS)?, 28)?;
    let bytes_per_s = u128::from(tbf_rate_bps(options)? / 8);
    let bytes = (u128::from(ticks) * u128::from(TICK_NS) * bytes_per_s / 1_000_000_000)
        .saturating_sub(u128::from(tbf_overhead(options)?));
    u32::try_from(bytes).ok().filter(|_| ticks < u32::MAX)
}

fn rate_bps(specification: &[u8], large: Option<&[u8]>) -> Option<u64> {
    let small = u64::from(number(specification, 8)?);
    let large = large.and_then(|bytes| Some(u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?)));
    Some(large.unwrap_or(0).max(small).saturating_mul(8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::{attributes, messages};
    use proptest::prelude::*;

    /// The options as they come back from the kernel.
    fn written(fill: impl FnOnce(&mut Request)) -> Vec<u8> {
        let mut request = Request::new(0, 0, &[]);
        fill(&mut request);
        let bytes = request.finish(0);
        messages(&bytes).next().unwrap().payload.to_vec()
    }

    proptest! {
        #[test]
        fn a_burst_is_a_frame_and_a_millisecond(rate_bps in 8u64..400_000_000_000, mtu in 68u32..65536) {
            let rate = Rate::new(rate_bps, mtu);
            prop_assert!(rate.burst > mtu + 14);
            let millisecond = rate_bps / 8 / 1000;
            prop_assert!(u64::from(rate.burst) <= u64::from(mtu) + ETHERNET_HEADER + millisecond);
            prop_assert!(u64::from(rate.burst) >= millisecond);
        }

        #[test]
        fn time_and_bytes_of_a_burst_agree(rate_bps in 100_000u64..400_000_000_000, mtu in 68u32..9001) {
            let rate = Rate::new(rate_bps, mtu);
            let bytes = u128::from(rate.ticks()) * u128::from(TICK_NS) * u128::from(rate.bytes_per_s) / 1_000_000_000;
            let tick = u128::from(TICK_NS) * u128::from(rate.bytes_per_s) / 1_000_000_000 + 1;
            prop_assert!(bytes >= u128::from(rate.burst) && bytes <= u128::from(rate.burst) + tick, "{bytes} {}", rate.burst);
        }

        #[test]
        fn rates_are_read_back(bytes_per_s in 1u64..50_000_000_000, overhead: u16) {
            let rate = Rate::new(bytes_per_s * 8, 1500).with_overhead(overhead);
            prop_assert_eq!(htb_class_rate_bps(&written(|r| htb_class(r, &rate.share(300), &rate, 1))), Some(bytes_per_s * 8));
            let share = (u128::from(bytes_per_s) * 3 / 10).max(1) as u64;
            prop_assert_eq!(htb_class_share(&written(|r| htb_class(r, &rate.share(300), &rate, 1))), Some((share * 8, 1)));
            let class = written(|r| htb_class(r, &rate.share(300), &rate, 1));
            prop_assert_eq!(htb_class_overhead(&class), Some(overhead));
            let tbf = written(|r| tbf(r, &rate, 5));
            prop_assert_eq!(tbf_overhead(&tbf), Some(overhead));
            prop_assert_eq!(tbf_rate_bps(&tbf), Some(bytes_per_s * 8));
            let tick = (bytes_per_s * TICK_NS).div_ceil(1_000_000_000) as u32;
            match tbf_burst(&tbf) {
                Some(burst) => prop_assert!(burst >= rate.burst && burst <= rate.burst + tick),
                None => prop_assert_eq!(rate.ticks(), u32::MAX),
            }
        }
    }

    #[test]
    fn a_very_low_rate_has_the_longest_burst_the_kernel_can_hold() {
        assert_eq!(Rate::new(8, 65535).ticks(), u32::MAX);
        assert_eq!(Rate::new(0, 1500).burst, 1518);
    }

    #[test]
    fn structures_have_the_kernels_lengths() {
        let rate = Rate::new(1_000_000, 1500);
        let lengths = |options: Vec<u8>| {
            attributes(&options).map(|(kind, value)| (kind, value.len())).collect::<Vec<_>>()
        };
        assert_eq!(lengths(written(|r| htb(r, 1))), [(2, 20)]);
        assert_eq!(lengths(written(|r| htb_class(r, &rate, &rate, 0))), [(1, 44)]);
        assert_eq!(lengths(written(|r| tbf(r, &rate, 5))), [(1, 36), (6, 4)]);
        let large = Rate::new(100_000_000_000, 1500);
        assert_eq!(
            lengths(written(|r| htb_class(r, &large, &large, 0))),
            [(1, 44), (6, 8), (7, 8)]
        );
    }
}
