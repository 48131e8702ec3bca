//! The numbers along a chart's edge: a range, steps that read well, a unit. Drawing is the charts'.

use crate::human;

/// What is measured, for its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A share of one, shown in percent.
    Share,
    /// Bit/s.
    Rate,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Packets, flows, indices.
    Plain,
}

/// A range of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Axis {
    pub low: f64,
    pub high: f64,
    pub unit: Unit,
}

impl Axis {
    /// From zero (or below, where there are such values) to a little above the greatest value.
    pub fn from_zero(values: impl Iterator<Item = f64>, unit: Unit) -> Self {
        let (low, high) = values
            .filter(|v| v.is_finite())
            .fold((0.0f64, 0.0f64), |(a, b), v| (a.min(v), b.max(v)));
        let room = if high > low { (high - low) * 0.06 } else { 1.0 };
        let low = if low < 0.0 { low - room } else { 0.0 };
        let high = if unit == Unit::Share { (high + 0.02).max(1.05) } else { high + room };
        Self { low, high, unit }
    }

    /// Around the values, for those that differ little: a fifth of their range beyond, and not
    /// beyond zero if they are not.
    pub fn around(values: impl Iterator<Item = f64> + Clone, unit: Unit) -> Self {
        let there = values.filter(|v| v.is_finite());
        let (least, greatest) =
            there.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        if least > greatest {
            return Self { low: 0.0, high: 1.0, unit };
        }
        let room = match greatest - least {
            range if range > 0.0 => range * 0.2,
            _ if greatest == 0.0 => 1.0,
            _ => greatest.abs() * 0.1,
        };
        let low = if least >= 0.0 { (least - room).max(0.0) } else { least - room };
        Self { low, high: greatest + room, unit }
    }

    /// Where a value lies, 0 at the low end and 1 at the high one; values beyond are at the ends.
    pub fn share(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// At most `most` steps of 1, 2 or 5 times a power of ten.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let rough = (self.high - self.low) / most.max(1) as f64;
        let decade = power_of_ten(decade(rough));
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|m| m * decade)
            .find(|s| *s >= rough * 0.999)
            .unwrap_or(decade * 10.0);
        let first = (self.low / step).ceil();
        let last = (self.high / step + 1e-9).floor();
        if !(step.is_finite() && first.is_finite() && last - first < 100.0) {
            return Vec::new();
        }
        #[expect(clippy::cast_possible_truncation, reason = "less than a hundred")]
        let count = (last - first).max(-1.0) as i64 + 1;
        (0..count).map(|i| (first + i as f64) * step).collect()
    }

    /// The divisor and name of the unit in which the greatest value reads best.
    pub fn scale(&self) -> (f64, &'static str) {
        let largest = self.high.abs().max(self.low.abs());
        match self.unit {
            Unit::Share => (0.01, "%"),
            Unit::Rate => human::bit_units(largest),
            Unit::Seconds => human::time_units(largest),
            Unit::Bytes => human::byte_units(largest),
            Unit::Plain => (1.0, ""),
        }
    }

    /// A tick's label, without the unit.
    pub fn label(&self, tick: f64) -> String {
        let text = format!("{:.6}", tick / self.scale().0);
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            &text
        };
        if text == "-0" { "0".to_owned() } else { text.to_owned() }
    }
}

/// The power of ten that is not above a value, from the least to the greatest there is.
pub(crate) fn decade(value: f64) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "some hundreds at most")]
    let decade = libm::log10(value).floor().clamp(-324.0, 308.0) as i32;
    decade
}

/// Ten to a small power, the same number on every platform.
pub(crate) fn power_of_ten(n: i32) -> f64 {
    let size = (0..n.unsigned_abs()).fold(1.0, |size, _| size * 10.0);
    if n < 0 { 1.0 / size } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        for (low, high, most, expected) in [
            (0.0, 1.05, 3, vec![0.0, 0.5, 1.0]),
            (0.0, 12.4, 4, vec![0.0, 5.0, 10.0]),
            (0.93, 0.97, 4, vec![0.93, 0.94, 0.95, 0.96, 0.97]),
            (-3.0, 3.0, 3, vec![-2.0, 0.0, 2.0]),
        ] {
            let ticks = Axis { low, high, unit: Unit::Plain }.ticks(most);
            assert_eq!(ticks.len(), expected.len(), "{ticks:?}");
            assert!(ticks.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9), "{ticks:?}");
        }
        assert!(Axis { low: 0.0, high: f64::INFINITY, unit: Unit::Plain }.ticks(4).is_empty());
    }

    #[test]
    fn labels_are_in_the_unit() {
        let label = |high: f64, unit, tick| Axis { low: 0.0, high, unit }.label(tick);
        assert_eq!(label(1.05, Unit::Share, 0.5), "50");
        assert_eq!(label(12e6, Unit::Rate, 5e6), "5");
        assert_eq!(label(0.5, Unit::Seconds, 0.25), "250");
        assert_eq!(label(2.0, Unit::Plain, 0.1 + 0.2), "0.3");
    }
}
