//! How a time is spread: counts in classes that are fine enough for percentiles, in little room.
//!
//! 128 classes to each doubling, so that what is read is within 0.4 % of what was put in; below 128
//! ns every value has its own. Spreads of parts add up to the spread of the whole, in any order.

use serde::{Deserialize, Serialize};

use crate::units::{NANOS_PER_SEC, Nanos};

/// Classes to a doubling, as a power of two.
const FINE: u32 = 7;

/// A spread of times.
#[derive(Debug, Clone, Default)]
pub struct Spread {
    /// Counts of the classes from `first` to the last that has any.
    counts: Vec<u64>,
    first: usize,
    /// Times of no length.
    zeros: u64,
    total: u64,
}

/// Percentiles of a time, seconds: half, 95 % and 99 % were no longer than this.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// The median of the values.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
}

fn class(time: Nanos) -> usize {
    let doublings = (Nanos::BITS - time.leading_zeros()).saturating_sub(FINE + 1);
    ((doublings as usize) << FINE) + (time >> doublings) as usize
}

/// The middle of a class, nanoseconds.
fn middle(class: usize) -> f64 {
    let doublings = (class >> FINE).saturating_sub(1);
    let first = (class - (doublings << FINE)) as f64;
    let width = (1_u64 << doublings) as f64;
    first * width + (width - 1.0) / 2.0
}

impl Spread {
    /// Counts one more value, nanoseconds.
    #[inline]
    pub fn add(&mut self, time: Nanos) {
        let class = class(time);
        let place = class.wrapping_sub(self.first);
        match self.counts.get_mut(place) {
            Some(count) => *count += 1,
            None => self.extend(class, 1),
        }
        self.total += 1;
    }

    /// Counts so many of a class that there was no room for.
    #[cold]
    fn extend(&mut self, class: usize, count: u64) {
        if self.counts.is_empty() {
            self.first = class;
        } else if class < self.first {
            self.counts.splice(0..0, std::iter::repeat_n(0, self.first - class));
            self.first = class;
        }
        let place = class - self.first;
        self.counts.resize(self.counts.len().max(place + 1), 0);
        self.counts[place] += count;
    }

    /// Counts so many times of zero length.
    pub fn add_zeros(&mut self, count: u64) {
        self.zeros += count;
        self.total += count;
    }

    /// Counts what another has counted.
    pub fn merge(&mut self, other: &Self) {
        for (place, &count) in other.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            self.extend(other.first + place, count);
        }
        self.zeros += other.zeros;
        self.total += other.total;
    }

    /// How many were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The time, in nanoseconds, that this part of all were no longer than; `None` of none.
    fn quantile(&self, part: f64) -> Option<f64> {
        let rank = ((self.total as f64 * part).ceil() as u64).max(1);
        let mut seen = self.zeros;
        if seen >= rank {
            return Some(0.0);
        }
        let place = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        place.map(|place| middle(self.first + place))
    }

    /// Its percentiles; `None` where nothing was counted.
    #[must_use]
    pub fn percentiles(&self) -> Option<Percentiles> {
        let seconds = |part| self.quantile(part).map(|nanos| nanos / NANOS_PER_SEC as f64);
        Some(Percentiles { p50: seconds(0.5)?, p95: seconds(0.95)?, p99: seconds(0.99)? })
    }
}

impl Percentiles {
    /// Of these numbers, by the same rule; `None` of none.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let value = |part| nearest_rank(&values, part);
        Some(Self { p50: value(0.5)?, p95: value(0.95)?, p99: value(0.99)? })
    }
}

/// The value that so great a part of them, 0 to 1, do not exceed: of ascending values, by nearest
/// rank; `None` of none.
#[must_use]
pub fn nearest_rank(ascending: &[f64], part: f64) -> Option<f64> {
    let rank = ((ascending.len() as f64 * part).ceil() as usize).max(1) - 1;
    ascending.get(rank).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn classes_ascend_and_hold_what_is_theirs(a in any::<u64>(), shift in 0u32..64, step in 0u64..1000) {
            let time = a >> shift;
            prop_assert!(class(time) <= class(time.saturating_add(step)));
            let error = (middle(class(time)) - time as f64).abs();
            prop_assert!(error <= time as f64 / 256.0, "{time}: {}", middle(class(time)));
            if time < 128 {
                prop_assert_eq!(middle(class(time)), time as f64);
            }
        }

        /// Beside the sorted list, and beside the same in two parts.
        #[test]
        fn percentiles_are_those_of_the_list(
            times in prop::collection::vec(0u64..3_000_000_000, 1..300),
            zeros in 0u64..100,
            cut in any::<prop::sample::Index>(),
        ) {
            let mut whole = Spread::default();
            times.iter().for_each(|&time| whole.add(time));
            whole.add_zeros(zeros);
            let mut parts = [Spread::default(), Spread::default()];
            let cut = cut.index(times.len());
            times[..cut].iter().for_each(|&time| parts[0].add(time));
            times[cut..].iter().for_each(|&time| parts[1].add(time));
            parts[1].add_zeros(zeros);
            let [mut sum, second] = parts;
            sum.merge(&second);
            prop_assert_eq!(&sum.percentiles(), &whole.percentiles());
            prop_assert_eq!(whole.total(), times.len() as u64 + zeros);
            let list = times.iter().map(|&time| time as f64 / 1e9);
            let exact = Percentiles::of(list.chain((0..zeros).map(|_| 0.0)).collect()).unwrap();
            let found = whole.percentiles().unwrap();
            for (found, exact) in [(found.p50, exact.p50), (found.p95, exact.p95), (found.p99, exact.p99)] {
                prop_assert!((found - exact).abs() <= exact / 256.0 + 1e-15, "{found} {exact}");
            }
        }
    }

    #[test]
    fn nothing_has_no_percentiles() {
        assert_eq!(Spread::default().percentiles(), None);
        assert_eq!(Percentiles::of(Vec::new()), None);
    }
}
