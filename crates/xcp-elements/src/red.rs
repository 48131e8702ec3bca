//! Random early detection (Floyd & Jacobson 1993), in packets.
//!
//! Where this differs from the paper, and why:
//! 1. The weight of the average may be derived from the link's rate, 1 - exp(-1/C) with C in
//!    1000-byte packets a second, a one-second time constant of the link: what ns-2 does by
//!    default, so that the runs compare.
//! 2. `gentle`: above the upper threshold the probability rises on linearly and reaches 1 at twice
//!    the threshold (Floyd 2000) instead of jumping to 1. Off, it is the paper's.
//! 3. The idle period is filled with departures of 1000-byte packets; the paper leaves the typical
//!    size open.
//! 4. No byte mode and no marking: packets count alike and are dropped.

use xcp_model as model;
use xcp_model::rng::Stream;
use xcp_model::units::{NANOS_PER_SEC, Nanos};

const TYPICAL_PACKET_BITS: f64 = 8000.0;

/// State of a RED queue.
#[derive(Debug)]
pub struct Red {
    config: model::Red,
    rate_bps: u64,
    weight: f64,
    average: f64,
    /// Packets since the last early drop; `None` while the average is below the lower threshold.
    count: Option<u64>,
    random: Stream,
}

impl Red {
    /// An empty queue before a link of this rate, bit/s.
    #[must_use]
    pub fn new(config: &model::Red, rate_bps: u64, random: Stream) -> Self {
        let packets_per_second = rate_bps as f64 / TYPICAL_PACKET_BITS;
        let weight = config.weight.unwrap_or_else(|| 1.0 - libm::exp(-1.0 / packets_per_second));
        Self { config: config.clone(), rate_bps, weight, average: 0.0, count: None, random }
    }

    /// The average queue, packets.
    #[must_use]
    pub fn average(&self) -> f64 {
        self.average
    }

    /// Decides on an arrival: `true` lets it in. `idle_since` is when the transmitter fell idle, if
    /// it is.
    #[inline]
    pub fn arrival(
        &mut self,
        now: Nanos,
        queue_packets: u64,
        idle_since: Option<Nanos>,
        full: bool,
    ) -> bool {
        if let Some(since) = idle_since {
            // Floyd & Jacobson 1993 §4: m small packets could have been sent meanwhile.
            let idle_seconds = (now - since) as f64 / NANOS_PER_SEC as f64;
            let m = idle_seconds * self.rate_bps as f64 / TYPICAL_PACKET_BITS;
            self.average *= libm::pow(1.0 - self.weight, m);
        }
        self.average += self.weight * (queue_packets as f64 - self.average);

        let Some(p_b) = self.early_drop_probability() else {
            self.count = None;
            return !full;
        };
        let count = self.count.map_or(0, |c| c + 1);
        // Floyd & Jacobson 1993 fig. 2: p_a = p_b / (1 - count p_b) spaces the drops uniformly.
        let room = 1.0 - count as f64 * p_b;
        let p_a = if p_b >= 1.0 || room <= p_b { 1.0 } else { p_b / room };
        let dropped = full || self.random.unit() < p_a;
        self.count = Some(if dropped { 0 } else { count });
        !dropped
    }

    /// p_b; `None` below the lower threshold.
    fn early_drop_probability(&self) -> Option<f64> {
        let model::Red { min_packets: low, max_packets: high, max_probability, gentle, .. } =
            self.config;
        if self.average < low {
            None
        } else if self.average < high {
            Some(max_probability * (self.average - low) / (high - low))
        } else if gentle && self.average < 2.0 * high {
            Some(max_probability + (1.0 - max_probability) * (self.average - high) / high)
        } else {
            Some(1.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use xcp_model::rng::Purpose;

    use super::*;

    fn red(weight: f64, gentle: bool) -> Red {
        let config = model::Red {
            min_packets: 10.0,
            max_packets: 30.0,
            max_probability: 0.1,
            weight: Some(weight),
            gentle,
        };
        Red::new(&config, 8_000_000, Stream::new(1, Purpose::Red, 0))
    }

    /// Share of arrivals dropped while the queue stays at `packets`.
    fn drop_share(queue: &mut Red, packets: u64) -> f64 {
        let n = 200_000;
        let dropped = (0..n).filter(|&i| !queue.arrival(i, packets, None, false)).count();
        dropped as f64 / n as f64
    }

    #[test]
    fn drops_nothing_below_and_everything_above() {
        assert_eq!(drop_share(&mut red(1.0, false), 9), 0.0);
        assert_eq!(drop_share(&mut red(1.0, false), 30), 1.0);
        assert_eq!(drop_share(&mut red(1.0, true), 60), 1.0);
    }

    /// The paper's algorithm counts the arrival after a drop as the first, so gaps are uniform on
    /// 1..=1/p_b - 1, with mean 1/(2 p_b).
    #[test]
    fn drops_at_the_rate_of_the_uniform_method() {
        for (packets, p_b) in [(15, 0.025), (20, 0.05), (25, 0.075)] {
            let share = drop_share(&mut red(1.0, false), packets);
            let expected = 2.0 * p_b;
            assert!(
                (share / expected - 1.0).abs() < 0.03,
                "{packets} packets: {share}, expected {expected}"
            );
        }
    }

    #[test]
    fn average_follows_with_its_weight_and_decays_when_idle() {
        let mut queue = red(0.01, false);
        for i in 0..100 {
            queue.arrival(i, 20, None, false);
        }
        assert!((queue.average() - 20.0 * (1.0 - 0.99f64.powi(100))).abs() < 1e-9);
        let before = queue.average();
        // 100 ms idle on 8 Mbit/s: 100 packets of 1000 bytes, then this arrival's own sample of 0.
        queue.arrival(1_000 + 100_000_000, 0, Some(1_000), false);
        assert!((queue.average() / before - 0.99f64.powi(101)).abs() < 1e-9);
    }
}
