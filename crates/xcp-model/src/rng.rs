//! Random numbers, one independent stream per purpose and index, so that a flow added here never
//! changes the losses drawn there.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

use crate::units::Nanos;

/// What a stream is for. The numbers are part of what makes old results repeatable: never renumber.
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
pub enum Purpose {
    /// Jitter of a flow's start; index: flow.
    Start = 1,
    /// Losses; index: link direction. Where there are some before the queue and some on the way,
    /// those before the queue.
    Loss = 2,
    /// A RED queue's early drops; index: link direction.
    Red = 3,
    /// A router's rounding of feedback; index: link direction.
    Router = 4,
    /// A datagram source's gaps; index: flow.
    Datagrams = 5,
    /// Times between the starts of a group's members; by the group's name.
    Arrivals = 6,
    /// Sizes of the transfers of a group's members; by the group's name.
    Sizes = 7,
    /// Losses on the way where there are others before the queue; index: link direction.
    LossOnTheWay = 8,
    /// How long stations of a shared medium back off; by the medium's name.
    Medium = 9,
    /// Which packets others overtake, and for how long; index: link direction.
    Reordering = 10,
}

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream of a purpose and index under the run's seed.
    #[must_use]
    pub fn new(seed: u64, purpose: Purpose, index: usize) -> Self {
        Self::of(seed, purpose, index as u64)
    }

    fn of(seed: u64, purpose: Purpose, index: u64) -> Self {
        let state = mix(mix(mix(seed) ^ purpose as u64) ^ index);
        Self(Pcg64Mcg::seed_from_u64(state))
    }

    /// The stream of a purpose and a name under the run's seed: it stays the same wherever what has
    /// the name stands in the file.
    #[must_use]
    pub fn named(seed: u64, purpose: Purpose, name: &str) -> Self {
        // FNV-1a, 64 bits.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self::of(seed, purpose, hash)
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// The next number, uniform in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0..bound`; 0 for a bound of 0. Multiply-shift: the bias is at most bound / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Exponentially distributed with this mean, nanoseconds.
    pub fn exponential(&mut self, mean: Nanos) -> Nanos {
        (self.unit_exponential() * mean as f64) as Nanos
    }

    /// Pareto distributed with least value 1 and this shape: greater than x with probability
    /// `x^-shape`.
    pub fn unit_pareto(&mut self, shape: f64) -> f64 {
        libm::exp(self.unit_exponential() / shape)
    }

    /// Exponentially distributed with mean 1.
    pub fn unit_exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }
}

/// SplitMix64's finaliser: spreads small numbers over 64 bits.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |seed, purpose, index| Stream::new(seed, purpose, index).bits();
        assert_eq!(draw(1, Purpose::Loss, 0), draw(1, Purpose::Loss, 0));
        let others =
            [draw(2, Purpose::Loss, 0), draw(1, Purpose::Red, 0), draw(1, Purpose::Loss, 1)];
        assert!(others.iter().all(|&x| x != draw(1, Purpose::Loss, 0)));
        let named = |seed, purpose, name| Stream::named(seed, purpose, name).bits();
        assert_eq!(named(1, Purpose::Sizes, "web"), named(1, Purpose::Sizes, "web"));
        let others = [
            named(2, Purpose::Sizes, "web"),
            named(1, Purpose::Arrivals, "web"),
            named(1, Purpose::Sizes, "wed"),
        ];
        assert!(others.iter().all(|&x| x != named(1, Purpose::Sizes, "web")));
    }

    /// The same bits on every platform, whatever its mathematical library.
    #[test]
    fn draws_are_the_same_everywhere() {
        let mut s = Stream::new(7, Purpose::Sizes, 3);
        let exponential = [(); 4].map(|()| s.unit_exponential().to_bits());
        let pareto = [1.1, 1.3, 2.0, 5.0].map(|shape| s.unit_pareto(shape).to_bits());
        assert_eq!(
            exponential,
            [
                0x3f90_08d3_48ca_81a5,
                0x3fd5_6a97_9ede_6716,
                0x3fec_67cc_b2ac_9fed,
                0x4006_9e65_7581_4e86
            ]
        );
        assert_eq!(
            pareto,
            [
                0x3ff3_6d20_580e_153b,
                0x3ff0_f58e_b5dc_3be2,
                0x4002_4bc6_db79_57c0,
                0x3ff4_d6df_78e4_dfd8
            ]
        );
    }

    #[test]
    fn distributions_have_their_means() {
        let mut s = Stream::new(7, Purpose::Datagrams, 3);
        let n = 100_000;
        let unit = (0..n).map(|_| s.unit()).sum::<f64>() / f64::from(n);
        let exponential =
            (0..n).map(|_| s.exponential(1_000_000) as f64).sum::<f64>() / f64::from(n);
        let below = (0..n).map(|_| s.below(1000) as f64).sum::<f64>() / f64::from(n);
        // Four standard errors each.
        assert!((unit - 0.5).abs() < 4.0 * 0.2887 / f64::from(n).sqrt(), "{unit}");
        assert!((exponential - 1e6).abs() < 4.0 * 1e6 / f64::from(n).sqrt(), "{exponential}");
        assert!((below - 499.5).abs() < 4.0 * 288.7 / f64::from(n).sqrt(), "{below}");
    }
}
