//! What tells the members of a group apart: when each starts, and how much it transfers. Draws
//! both, once, when the scenario is read, so that every backend meets the same flows. A group's
//! draws depend on the seed and on its name, and starts and sizes not on each other: other groups
//! may come and go, and variants that differ in congestion control have the same arrivals of the
//! same sizes.

use std::num::NonZeroU64;

use crate::fields::Fields;
use crate::spec::BYTES;
use xcp_law::quantity::{MAX_BYTES, MAX_TIME};
use xcp_model::rng::{Purpose, Stream};
use xcp_model::units::Nanos;

/// When the members of a group start.
#[derive(Debug)]
pub(crate) enum Starts {
    /// Evenly spaced, the first one at once.
    Staggered { next: Nanos, stagger: Nanos },
    /// A Poisson process that ends at `end`. Gaps keep their fractions of a nanosecond, which add
    /// up over a million of short ones.
    Poisson { at: f64, mean: Nanos, end: Nanos, random: Stream },
}

impl Starts {
    /// A Poisson process of a group from `start` to `end`.
    pub fn poisson(seed: u64, group: &str, start: Nanos, mean: Nanos, end: Nanos) -> Self {
        Self::Poisson {
            at: start as f64,
            mean,
            end,
            random: Stream::named(seed, Purpose::Arrivals, group),
        }
    }
}

impl Iterator for Starts {
    type Item = Nanos;

    /// The next member's start; `None` if it never starts.
    fn next(&mut self) -> Option<Nanos> {
        match self {
            Self::Staggered { next, stagger } => {
                let start = *next;
                *next = start.saturating_add(*stagger);
                (start <= MAX_TIME).then_some(start)
            }
            Self::Poisson { at, mean, end, random } => {
                *at += random.unit_exponential() * *mean as f64;
                let start = *at as Nanos;
                (start < *end).then_some(start)
            }
        }
    }
}

/// How much the members of a group transfer, where that is drawn.
#[derive(Debug)]
pub(crate) struct Sizes {
    mean: f64,
    /// `None` is exponential.
    pareto_shape: Option<f64>,
    max: u64,
}

impl Sizes {
    /// One size after the other.
    pub fn draw(&self, seed: u64, group: &str) -> impl Iterator<Item = NonZeroU64> + use<> {
        let mut random = Stream::named(seed, Purpose::Sizes, group);
        let (mean, shape, max) = (self.mean, self.pareto_shape, self.max);
        std::iter::repeat_with(move || {
            let size = match shape {
                Some(shape) => mean * (shape - 1.0) / shape * random.unit_pareto(shape),
                None => mean * random.unit_exponential(),
            };
            // A transfer has a byte at least. A double beyond the greatest integer becomes that.
            NonZeroU64::new((size.round() as u64).min(max)).unwrap_or(NonZeroU64::MIN)
        })
    }
}

/// `bytes` of a flow: one size for all, or how to draw them.
#[derive(Debug)]
pub(crate) enum Amounts {
    Endless,
    Fixed(u64),
    Drawn(Sizes),
}

/// Reads `bytes`; `None` if it is wrong.
pub(crate) fn amounts(flow: &Fields<'_>) -> Option<Amounts> {
    if flow.item("bytes").is_none() {
        return Some(Amounts::Endless);
    }
    let fields = flow.table("bytes", &BYTES)?;
    fields.require("mean");
    let mean = fields.size("mean");
    let distribution = fields
        .choice("distribution")
        .or_else(|| fields.item("distribution").is_none().then_some("fixed"))?;
    let belongs: &[&str] = match distribution {
        "pareto" => &["mean", "distribution", "shape", "max"],
        "exponential" => &["mean", "distribution", "max"],
        _ => &["mean", "distribution"],
    };
    fields.only(belongs, &format!("the distribution \"{distribution}\""));
    if distribution == "fixed" {
        return mean.map(Amounts::Fixed);
    }
    let pareto_shape = match distribution {
        "pareto" => {
            fields.require("shape");
            Some(fields.number("shape")?)
        }
        _ => None,
    };
    let max = if fields.item("max").is_some() { fields.size("max")? } else { MAX_BYTES };
    let mean = mean?;
    if max < mean {
        let what = format!("the greatest size, {max} bytes, is below the mean, {mean} bytes");
        fields.faults.add(fields.span_of("max"), what, "write a larger `max` or a smaller `mean`");
        return None;
    }
    Some(Amounts::Drawn(Sizes { mean: mean as f64, pareto_shape, max }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const N: usize = 20_000;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Gaps have their mean, within five standard errors (one in two million), and the spread
        /// of a Poisson process.
        #[test]
        fn arrivals_are_a_poisson_process(seed: u64, mean in 1u64..1_000_000_000, start in 0u64..1_000_000_000) {
            let starts: Vec<f64> = Starts::poisson(seed, "g", start, mean, Nanos::MAX).take(N).map(|t| t as f64).collect();
            let n = N as f64;
            let total = starts[N - 1] - start as f64;
            prop_assert!((total / mean as f64 - n).abs() < 5.0 * n.sqrt() + 1.0, "{total}");
            // The variance of an exponential's square is 20 mean^4. Cutting starts to nanoseconds
            // blurs gaps of a few.
            if mean > 1000 {
                let squares: f64 = starts.windows(2).map(|w| ((w[1] - w[0]) / mean as f64).powi(2)).sum();
                prop_assert!((squares - 2.0 * n).abs() < 5.0 * (20.0 * n).sqrt(), "{squares}");
            }
        }

        /// The logarithm of a Pareto variable over its least value is exponential with mean
        /// 1/shape, whatever the shape.
        #[test]
        fn pareto_sizes_have_their_shape(seed: u64, shape in 1.05..10.0f64, mean in 1e6..1e9f64) {
            let least = mean * (shape - 1.0) / shape;
            let sizes = Sizes { mean, pareto_shape: Some(shape), max: u64::MAX };
            let logs: Vec<f64> = sizes.draw(seed, "g").take(N).map(|s| (s.get() as f64 / least).ln()).collect();
            prop_assert!(logs.iter().all(|&l| l > -1e-4));
            let (n, sum) = (N as f64, logs.iter().sum::<f64>());
            prop_assert!((sum * shape - n).abs() < 5.0 * n.sqrt(), "{sum}");
        }

        /// Where the variance is finite, the mean is what is asked for.
        #[test]
        fn sizes_have_their_mean(seed: u64, shape in prop::option::of(3.0..20.0f64), mean in 1e4..1e9f64) {
            let sizes = Sizes { mean, pareto_shape: shape, max: u64::MAX };
            let sum: f64 = sizes.draw(seed, "g").take(N).map(|s| s.get() as f64).sum();
            let deviation = shape.map_or(1.0, |a| 1.0 / (a * (a - 2.0)).sqrt());
            // At shape 3 the tail is heavy enough for the sum to be far from normal: six standard
            // errors.
            prop_assert!((sum / mean - N as f64).abs() < 6.0 * deviation * (N as f64).sqrt(), "{}", sum / mean / N as f64);
        }

        #[test]
        fn no_size_exceeds_the_greatest_or_is_nothing(seed: u64, mean in 1u64..100, over in 0u64..100) {
            let sizes = Sizes { mean: mean as f64, pareto_shape: Some(1.1), max: mean + over };
            prop_assert!(sizes.draw(seed, "g").take(1000).all(|s| s.get() <= mean + over));
        }
    }

    #[test]
    fn staggered_starts_end_where_time_does() {
        let starts: Vec<Nanos> = Starts::Staggered { next: 1, stagger: MAX_TIME / 2 }.collect();
        assert_eq!(starts, [1, 1 + MAX_TIME / 2]);
    }
}
