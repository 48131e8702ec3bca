//! A quantity of a link over time, its rate or its delay: what it is at an instant, and what could
//! have been sent at such rates. When a packet leaves such a line is the simulator's business.

use crate::record::capacity_bytes;
use crate::units::Nanos;

/// From when which value holds: the first from 0, the others in order of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Steps(Vec<(Nanos, u64)>);

impl From<u64> for Steps {
    /// A value that does not change.
    fn from(value: u64) -> Self {
        Self(vec![(0, value)])
    }
}

impl Steps {
    /// A value and what takes its place later, in order of time.
    #[must_use]
    pub fn new(first: u64, changes: &[(Nanos, u64)]) -> Self {
        Self([(0, first)].into_iter().chain(changes.iter().copied()).collect())
    }

    /// From when which value holds.
    #[must_use]
    pub fn steps(&self) -> &[(Nanos, u64)] {
        &self.0
    }

    /// The value at an instant; one that begins then holds already.
    #[must_use]
    pub fn at(&self, at: Nanos) -> u64 {
        let known = self.0.partition_point(|(from, _)| *from <= at);
        self.0.get(known.saturating_sub(1)).map_or(0, |(_, value)| *value)
    }

    /// The same in a time that is later by this.
    #[must_use]
    pub fn later(&self, by: Nanos) -> Self {
        let later = self.0.iter().enumerate();
        Self(
            later
                .map(|(i, &(at, v))| (if i == 0 { 0 } else { at.saturating_add(by) }, v))
                .collect(),
        )
    }

    /// The least and the greatest value.
    #[must_use]
    pub fn range(&self) -> (u64, u64) {
        let values = || self.0.iter().map(|(_, value)| *value);
        (values().min().unwrap_or(0), values().max().unwrap_or(0))
    }

    /// What could be sent between two instants, bytes, if these are rates in bit/s.
    #[must_use]
    pub fn capacity_bytes(&self, from: Nanos, to: Nanos) -> f64 {
        let ends = self.0.iter().skip(1).map(|(end, _)| *end).chain([Nanos::MAX]);
        let length = |begin: Nanos, end: Nanos| end.min(to).saturating_sub(begin.max(from));
        self.0
            .iter()
            .zip(ends)
            .map(|(&(begin, rate), end)| (rate, length(begin, end)))
            .filter(|(_, length)| *length > 0)
            .map(|(rate, length)| capacity_bytes(rate, length))
            .fold(0.0, |sum, bytes| sum + bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    #[test]
    fn a_rate_holds_until_the_next_begins() {
        let rates = Steps::new(8_000, &[(SECOND, 16_000), (3 * SECOND, 800)]);
        assert_eq!(
            [0, SECOND - 1, SECOND, 5 * SECOND].map(|at| rates.at(at)),
            [8_000, 8_000, 16_000, 800]
        );
        let sent = |from: u64, to: u64| rates.capacity_bytes(from * SECOND / 2, to * SECOND / 2);
        assert_eq!([sent(0, 2), sent(1, 3), sent(0, 8), sent(4, 4)], [1000.0, 1500.0, 5100.0, 0.0]);
    }
}
