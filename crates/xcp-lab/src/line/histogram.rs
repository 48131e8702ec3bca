//! A histogram of durations with logarithmic buckets, eight to an octave: a quantile is at most an
//! eighth too large, over all of 64 bits. The crate hdrhistogram does more, at any precision, and
//! allocates; this is all that is needed here.

use std::fmt;

use xcp_model::units::Nanos;

/// Buckets to an octave, as a power of two.
const OCTAVE_BITS: u32 = 3;
const PER_OCTAVE: usize = 1 << OCTAVE_BITS;
/// Values below two octaves' worth have buckets of their own.
const BUCKETS: usize = (64 - OCTAVE_BITS as usize + 1) * PER_OCTAVE;

/// Durations, counted.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    buckets: [u64; BUCKETS],
    count: u64,
    max: Nanos,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], count: 0, max: 0 }
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} values, p50 {} ns, p99 {} ns, max {} ns",
            self.count,
            self.quantile(0.5),
            self.quantile(0.99),
            self.max
        )
    }
}

impl Histogram {
    /// Counts one.
    pub fn record(&mut self, value: Nanos) {
        self.buckets[bucket(value)] += 1;
        self.count += 1;
        self.max = self.max.max(value);
    }

    /// How many.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest; exact.
    #[must_use]
    pub fn max(&self) -> Nanos {
        self.max
    }

    /// A value that this share (0 to 1) does not exceed, at most an eighth too large; 0 where
    /// nothing was counted.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Nanos {
        let rank = ((share * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut seen = 0;
        for (index, &count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return last_of(index).min(self.max);
            }
        }
        self.max
    }
}

/// The bucket of a value: the position of its highest bit and the three bits below that.
fn bucket(value: Nanos) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(OCTAVE_BITS + 1);
    shift as usize * PER_OCTAVE + (value >> shift) as usize
}

/// The largest value of a bucket.
fn last_of(index: usize) -> Nanos {
    let shift = (index / PER_OCTAVE).saturating_sub(1);
    let leading = (index - shift * PER_OCTAVE) as u64;
    (leading << shift) | ((1u64 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_is_narrow_and_holds_its_values(value in any::<u64>(), shift in 0u32..64) {
            let value = value >> shift;
            let index = bucket(value);
            prop_assert!(index < BUCKETS);
            let last = last_of(index);
            prop_assert!(value <= last && last - value <= value / 8);
            prop_assert_eq!(bucket(last), index);
            prop_assert!(last == u64::MAX || bucket(last + 1) == index + 1);
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_values(mut values in prop::collection::vec(0u64..10_000_000, 1..200), share in 0.0f64..=1.0) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.record(value));
            values.sort_unstable();
            let rank = ((share * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            let quantile = histogram.quantile(share);
            prop_assert!(exact <= quantile && quantile <= exact + exact / 8);
            prop_assert_eq!(histogram.max(), *values.last().unwrap());
        }
    }

    #[test]
    fn empty_is_zero() {
        assert_eq!(Histogram::default().quantile(0.99), 0);
    }
}
