//! Holds a run against what its scenario expects. What the metrics are called is `metric.rs`'s;
//! showing verdicts is for others.

use crate::metric::{self, Metric, Number, Over, Part, Stat};
use crate::model::{Flow, OverSeeds, Scenario};
use crate::run::{FlowSummary, LinkSummary, Quantity, Run, Series, Subject, jain};
use crate::spread::Percentiles;
use crate::units::{NANOS_PER_SEC, Nanos, Period};

/// What became of one expectation.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// The claim in words, and whose it is.
    pub claim: String,
    /// Metric that the expectation is about.
    pub metric: String,
    /// The number; `None` where the run did not give it (interrupted, no samples, transfer not
    /// complete).
    pub measured: Option<f64>,
    /// Least value inside the band.
    pub min: Option<f64>,
    /// Greatest value inside the band.
    pub max: Option<f64>,
    /// Where the band comes from, if it comes from another number.
    pub than: Option<Multiple>,
    /// Whether the number is inside the band; `false` where there is none, nor a band.
    pub inside: bool,
    /// The part of the run that was looked at.
    pub period: Period,
    /// What was measured with each seed; one number if there is only one.
    pub seeds: Vec<Option<f64>>,
    /// With how many of the seeds the number is inside the band.
    pub seeds_inside: usize,
    /// What is asked of the seeds.
    pub over_seeds: OverSeeds,
}

fn within(measured: Option<f64>, min: Option<f64>, max: Option<f64>) -> bool {
    let bounded = min.is_some() || max.is_some();
    bounded
        && measured
            .is_some_and(|x| min.is_none_or(|min| x >= min) && max.is_none_or(|max| x <= max))
}

/// Puts the verdicts of a variant's seeds together: a list for each seed, all of the same claims.
/// What is measured is then the median, and so is a bound that comes from another number. A seed
/// that gave no number counts as outside; if half of them gave none there is no median.
#[must_use]
pub fn over_seeds(each: &[Vec<Verdict>]) -> Vec<Verdict> {
    let Some(first) = each.first() else { return Vec::new() };
    let together = |(claim, verdict): (usize, &Verdict)| {
        let of_seeds: Vec<&Verdict> = each.iter().filter_map(|list| list.get(claim)).collect();
        let middle = |of: fn(&Verdict) -> Option<f64>| {
            median(&of_seeds.iter().map(|v| of(v)).collect::<Vec<_>>())
        };
        let mut verdict = Verdict {
            measured: middle(|v| v.measured),
            min: middle(|v| v.min),
            max: middle(|v| v.max),
            seeds: of_seeds.iter().map(|v| v.measured).collect(),
            seeds_inside: of_seeds.iter().filter(|v| v.inside).count(),
            ..verdict.clone()
        };
        if let Some(than) = &mut verdict.than {
            than.measured = middle(|v| v.than.as_ref()?.measured);
        }
        verdict.inside = match verdict.over_seeds {
            OverSeeds::Median => within(verdict.measured, verdict.min, verdict.max),
            OverSeeds::All => verdict.seeds_inside == of_seeds.len(),
            OverSeeds::Share(share) => verdict.seeds_inside as f64 >= share * of_seeds.len() as f64,
        };
        verdict
    };
    first.iter().enumerate().map(together).collect()
}

/// The middle one, of an even number the mean of the two; none if half are missing.
fn median(seeds: &[Option<f64>]) -> Option<f64> {
    let mut values: Vec<f64> = seeds.iter().flatten().copied().collect();
    if values.len() * 2 <= seeds.len() {
        return None;
    }
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    Some(if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    })
}

/// A band given in multiples of another number.
#[derive(Debug, Clone, PartialEq)]
pub struct Multiple {
    /// The variant whose run that number is from, where it is another one.
    pub variant: Option<String>,
    /// Which number, where it is another one, or another part of the run.
    pub metric: Option<String>,
    /// The number; `None` where the run did not give it.
    pub measured: Option<f64>,
    /// The lower bound is so many times the number.
    pub min: Option<f64>,
    /// The upper bound is so many times the number.
    pub max: Option<f64>,
}

/// One verdict for each expectation, in the file's order. Claims that compare this run with another
/// variant's are left out: see [`evaluate_variants`].
#[must_use]
pub fn evaluate(scenario: &Scenario, run: &Run) -> Vec<Verdict> {
    judge(scenario, run, &[(scenario, run)])
}

/// The verdicts on the runs of a file's variants, a list for each. A claim that compares a run with
/// one that is not there is left out.
#[must_use]
pub fn evaluate_variants(scenarios: &[Scenario], runs: &[Run]) -> Vec<Vec<Verdict>> {
    let all: Vec<(&Scenario, &Run)> = scenarios.iter().zip(runs).collect();
    all.iter().map(|(scenario, run)| judge(scenario, run, &all)).collect()
}

fn judge(scenario: &Scenario, run: &Run, all: &[(&Scenario, &Run)]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for expectation in &scenario.expectations {
        let mut band = (expectation.min, expectation.max);
        let mut than = None;
        if let Some(other) = &expectation.than {
            let Some((their_scenario, their_run)) =
                all.iter().find(|(s, _)| s.variant == other.variant)
            else {
                continue;
            };
            let theirs = number(their_scenario, their_run, &other.metric, other.period);
            let times = |factor: Option<f64>| factor.and_then(|factor| theirs.map(|x| factor * x));
            band = (times(expectation.min), times(expectation.max));
            than = Some(Multiple {
                variant: (other.variant != scenario.variant).then(|| other.variant.clone()),
                metric: (other.metric != expectation.metric || other.period != expectation.period)
                    .then(|| other.metric.clone()),
                measured: theirs,
                min: expectation.min,
                max: expectation.max,
            });
        }
        let measured = number(scenario, run, &expectation.metric, expectation.period);
        let (min, max) = band;
        let inside = within(measured, min, max);
        verdicts.push(Verdict {
            claim: expectation.claim.clone(),
            metric: expectation.metric.clone(),
            measured,
            min,
            max,
            than,
            inside,
            period: expectation.period.unwrap_or(scenario.measure),
            seeds: vec![measured],
            seeds_inside: usize::from(inside),
            over_seeds: expectation.over_seeds,
        });
    }
    verdicts
}

/// A number of a run, if the run gave it.
fn number(scenario: &Scenario, run: &Run, metric: &str, period: Option<Period>) -> Option<f64> {
    let metric = metric::parse(metric).ok()?;
    Look { scenario, run, period }.at(&metric).filter(|x| x.is_finite())
}

struct Look<'a> {
    scenario: &'a Scenario,
    run: &'a Run,
    period: Option<Period>,
}

/// A sample and the seconds it stands for.
#[derive(Debug, Clone, Copy)]
struct Sample {
    end: Nanos,
    seconds: f64,
    value: f64,
}

impl Look<'_> {
    fn at(&self, metric: &Metric) -> Option<f64> {
        match metric {
            Metric::Jain if self.period.is_none() => self.run.summary.jain,
            Metric::Jain => {
                let flows = self.scenario.flows.iter().enumerate().filter(|(_, f)| f.is_tcp());
                let goodput = Number::Sampled(Quantity::Goodput, Stat::Mean);
                let goodputs: Vec<f64> =
                    flows.filter_map(|(i, f)| self.flow(i, f, goodput)).collect();
                jain(&goodputs)
            }
            Metric::Link { direction, number } => self.link(direction, *number),
            Metric::Flow { flows, number, over } => {
                let values = metric::select(flows, &self.scenario.flows)
                    .map(|(i, f)| self.flow(i, f, *number));
                // When all are done nobody knows before the last is. Other numbers are those of the
                // flows that have them: some have not begun, or ended before, or are under way when
                // the run ends, or are there for less than a sample.
                let values: Option<Vec<f64>> = if *number == Number::CompletedAt {
                    values.collect()
                } else {
                    Some(values.flatten().collect())
                };
                put_together(&values?, *over)
            }
        }
    }

    fn link(&self, direction: &str, number: Number) -> Option<f64> {
        let period = self.period.unwrap_or(self.scenario.measure);
        if self.period.is_none()
            && let Some(value) = from_link_summary(self.run.summary.links.get(direction)?, number)
        {
            return Some(value);
        }
        match number {
            Number::IdleTime => {
                let utilisation =
                    self.link(direction, Number::Sampled(Quantity::Utilisation, Stat::Mean))?;
                Some((1.0 - utilisation) * seconds(period.length()))
            }
            Number::Sampled(quantity, stat) => statistic(
                &samples(self.run.find(&Subject::Link(direction.into()), quantity)?, period),
                stat,
            ),
            _ => None,
        }
    }

    /// A number of the scenario's flow number `index`.
    fn flow(&self, index: usize, flow: &Flow, number: Number) -> Option<f64> {
        if self.period.is_none()
            && let Some(value) =
                self.run.summary.flows.get(index).and_then(|s| from_flow_summary(s, number))
        {
            return value;
        }
        let Number::Sampled(quantity, stat) = number else { return None };
        statistic(
            &samples(
                self.run.find(&Subject::Flow(flow.name().to_string()), quantity)?,
                self.active(index, flow)?,
            ),
            stat,
        )
    }

    /// The part of the period in which a flow was active: started, not stopped, not complete.
    fn active(&self, index: usize, flow: &Flow) -> Option<Period> {
        let period = self.period.unwrap_or(self.scenario.measure);
        let summary = self.run.summary.flows.get(index)?;
        #[expect(
            clippy::cast_sign_loss,
            clippy::cast_possible_truncation,
            reason = "a time of the run"
        )]
        let time = |seconds: f64| (seconds * NANOS_PER_SEC as f64).round() as Nanos;
        let complete = summary.completed_at.map_or(Nanos::MAX, time);
        let active = Period {
            from: period.from.max(time(summary.start)),
            to: period.to.min(flow.group.stop.unwrap_or(Nanos::MAX)).min(complete),
        };
        (active.from < active.to).then_some(active)
    }
}

fn seconds(t: Nanos) -> f64 {
    t as f64 / NANOS_PER_SEC as f64
}

fn from_link_summary(link: &LinkSummary, number: Number) -> Option<f64> {
    match number {
        Number::Sampled(Quantity::Utilisation, Stat::Mean) => Some(link.utilisation),
        Number::Sampled(Quantity::QueueMean, Stat::Mean) => Some(link.queue_mean),
        Number::Sampled(Quantity::QueueMax, Stat::Max) => Some(link.queue_max as f64),
        Number::Sampled(Quantity::Drops, Stat::Sum) => Some(link.drops as f64),
        Number::Sampled(Quantity::Lost, Stat::Sum) => Some(link.lost as f64),
        Number::Packets => Some(link.packets as f64),
        Number::Refused => Some(link.refused as f64),
        Number::QueueDelay(part) => link.queue_delay.map(|delay| match part {
            Part::Half => delay.p50,
            Part::P95 => delay.p95,
            Part::P99 => delay.p99,
        }),
        _ => None,
    }
}

/// What a summary says of a number: nothing, or its value, if the flow has one.
fn from_flow_summary(flow: &FlowSummary, number: Number) -> Option<Option<f64>> {
    Some(match number {
        Number::Sampled(Quantity::Goodput, Stat::Mean) => flow.goodput(),
        Number::Sampled(Quantity::Srtt, Stat::Mean) => flow.rtt_mean(),
        Number::Sampled(Quantity::Cwnd, Stat::Mean) => flow.cwnd_mean(),
        Number::Sampled(Quantity::Retransmits, Stat::Sum) => Some(flow.retransmits as f64),
        Number::Timeouts => Some(f64::from(flow.timeouts)),
        Number::CompletedAt => flow.completed_at,
        Number::CompletionTime => flow.completion_time,
        _ => return None,
    })
}

/// The samples whose interval ends within the period (its end included), those without a value left
/// out.
fn samples(series: &Series, period: Period) -> Vec<Sample> {
    let mut start = 0;
    let mut result = Vec::new();
    for (&end, value) in series.times.iter().zip(series.values.iter()) {
        if period.from < end && end <= period.to && !value.is_nan() {
            result.push(Sample { end, seconds: seconds(end - start), value });
        }
        start = end;
    }
    result
}

/// How near to its level at the end a number has to stay to have settled (Sakumoto, Ohsaki & Imase
/// 2010, section 4.1).
const SETTLED: f64 = 0.05;
/// The part of the period whose mean that level is.
const LEVEL_AT_THE_END: f64 = 0.1;

fn statistic(samples: &[Sample], stat: Stat) -> Option<f64> {
    let last = samples.last()?;
    let weight: f64 = samples.iter().map(|s| s.seconds).sum();
    let mean =
        |f: &dyn Fn(&Sample) -> f64| samples.iter().map(|s| s.seconds * f(s)).sum::<f64>() / weight;
    let average = mean(&|s| s.value);
    Some(match stat {
        Stat::Mean => average,
        Stat::Min => samples.iter().map(|s| s.value).fold(f64::INFINITY, f64::min),
        Stat::Max => samples.iter().map(|s| s.value).fold(f64::NEG_INFINITY, f64::max),
        Stat::Sum => samples.iter().map(|s| s.value).sum(),
        Stat::Cov => mean(&|s| (s.value - average).powi(2)).sqrt() / average,
        Stat::End => last.value,
        Stat::Growth => {
            let centre = mean(&|s| seconds(s.end));
            mean(&|s| (seconds(s.end) - centre) * (s.value - average))
                / mean(&|s| (seconds(s.end) - centre).powi(2))
        }
        Stat::Median => {
            let mut sorted: Vec<&Sample> = samples.iter().collect();
            sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
            let mut passed = 0.0;
            let middle = sorted.iter().find(|s| {
                passed += s.seconds;
                passed >= weight / 2.0
            });
            middle.map_or(last.value, |s| s.value)
        }
        Stat::Settling => {
            let first = samples.first()?;
            let begin = seconds(first.end) - first.seconds;
            let late = begin + (seconds(last.end) - begin) * (1.0 - LEVEL_AT_THE_END);
            let end: Vec<f64> =
                samples.iter().filter(|s| seconds(s.end) > late).map(|s| s.value).collect();
            let level = end.iter().sum::<f64>() / end.len() as f64;
            let away =
                samples.iter().rev().find(|s| (s.value - level).abs() > SETTLED * level.abs());
            away.map_or(0.0, |s| seconds(s.end) - begin)
        }
    })
}

fn put_together(values: &[f64], over: Over) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let sum: f64 = values.iter().sum();
    let mean = sum / values.len() as f64;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(match over {
        Over::Mean => mean,
        Over::Min => least,
        Over::Max => greatest,
        Over::Sum => sum,
        Over::Jain => jain(values)?,
        Over::Spread => (greatest - least) / mean,
        Over::P95 => Percentiles::of(values.to_vec())?.p95,
        Over::P99 => Percentiles::of(values.to_vec())?.p99,
        Over::Median => {
            let mut sorted = values.to_vec();
            sorted.sort_by(f64::total_cmp);
            let middle = sorted.len() / 2;
            if sorted.len() % 2 == 1 {
                sorted[middle]
            } else {
                f64::midpoint(sorted[middle - 1], sorted[middle])
            }
        }
    })
}
