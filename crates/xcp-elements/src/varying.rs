//! Exact transmission times on a line whose rate changes at known times: a packet that is on the
//! line then is sent on at the new rate. What [`Serializer`](crate::Serializer) is for a constant
//! rate, which nearly all links have and which costs less.

use xcp_model::steps::Steps;
use xcp_model::units::{NANOS_PER_SEC, Nanos};

/// A line, and how far it has sent.
#[derive(Debug, Clone)]
pub struct Varying {
    rates: Steps,
    /// The step that held when it last began to send.
    step: usize,
    /// When it has sent all it was given.
    until: Nanos,
    /// What the last nanosecond before that could have sent besides, bits times nanoseconds.
    spare: u128,
    framing: u32,
}

impl Varying {
    /// An idle line that sends so many bytes of framing with each packet.
    #[must_use]
    pub fn new(rates: Steps, framing: u32) -> Self {
        Self { rates, step: 0, until: 0, spare: 0, framing }
    }

    /// When a packet that begins to be sent at `starts`, not before the last one's end, has been
    /// sent.
    pub fn transmit(&mut self, starts: Nanos, size: u16) -> Nanos {
        let bits = 8 * (u128::from(size) + u128::from(self.framing));
        let mut need = bits * u128::from(NANOS_PER_SEC);
        // A busy line loses nothing between packets; an idle one begins on a whole nanosecond.
        let had = if starts == self.until { self.spare } else { 0 };
        let left = had.saturating_sub(need);
        need = need.saturating_sub(had);
        let steps = self.rates.steps();
        let mut at = starts;
        loop {
            let ends = steps.get(self.step + 1).map_or(Nanos::MAX, |(ends, _)| *ends);
            if at >= ends && ends < Nanos::MAX {
                self.step += 1;
                continue;
            }
            let rate = u128::from(steps[self.step].1);
            let time = need.div_ceil(rate);
            if time <= u128::from(ends - at) {
                self.spare = time * rate - need + left;
                self.until = at + time as Nanos;
                return self.until;
            }
            if ends == Nanos::MAX {
                self.until = Nanos::MAX;
                return self.until;
            }
            need -= u128::from(ends - at) * rate;
            at = ends;
        }
    }

    /// What could be sent between two instants, bytes.
    #[must_use]
    pub fn capacity_bytes(&self, from: Nanos, to: Nanos) -> f64 {
        self.rates.capacity_bytes(from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Where the rate does not change, it never drifts.
        #[test]
        fn one_rate_never_drifts(rate_bps in 1u64..=1_000_000_000_000, framing in 0u32..200, sizes in prop::collection::vec(any::<u16>(), 1..200)) {
            let mut line = Varying::new(Steps::new(rate_bps, &[(5_000, rate_bps)]), framing);
            let (mut now, mut bits) = (0, 0u128);
            for size in sizes {
                now = line.transmit(now, size);
                bits += 8 * (u128::from(size) + u128::from(framing));
                prop_assert_eq!(u128::from(now), (bits * 1_000_000_000).div_ceil(u128::from(rate_bps)));
            }
        }

        /// Back to back, as many bits have been sent as the rates give, to a nanosecond.
        #[test]
        fn a_busy_line_sends_what_its_rates_give(
            first in 1_000_000u64..10_000_000_000,
            changes in prop::collection::vec((1u64..2_000_000, 1_000_000u64..10_000_000_000), 0..20),
            sizes in prop::collection::vec(64u16..9000, 1..300),
        ) {
            let mut at = 0;
            let changes: Vec<(Nanos, u64)> = changes.into_iter().map(|(gap, rate)| { at += gap; (at, rate) }).collect();
            let rates = Steps::new(first, &changes);
            let mut line = Varying::new(rates.clone(), 0);
            let (mut now, mut bytes) = (0, 0.0);
            for size in sizes {
                now = line.transmit(now, size);
                bytes += f64::from(size);
                let (least, most) = (rates.capacity_bytes(0, now - 1), rates.capacity_bytes(0, now));
                prop_assert!(least <= bytes + 1e-6 && bytes <= most + 1e-6, "{bytes} of {least} to {most} at {now}");
            }
        }
    }

    #[test]
    fn a_packet_on_the_line_goes_on_at_the_new_rate() {
        // 1000 bytes: 500 at 8 Mbit/s take half a millisecond, the others at 1 Mbit/s four.
        let mut line = Varying::new(Steps::new(8_000_000, &[(500_000, 1_000_000)]), 0);
        assert_eq!(line.transmit(0, 1000), 4_500_000);
    }
}
