//! What a figure shows: curves and clouds of points made from runs, with what its axes measure.

use std::collections::BTreeMap;
use std::fmt;

use xcp_model::run::{FlowSummary, GroupSummary, Quantity, Run, Subject};
use xcp_model::{Sampling, Scenario};

use crate::axis::Unit;
use crate::table::{groups, quantile};
use crate::{human, links};

/// More flows than this in a run are drawn as groups, each by its median.
const LINES: usize = 8;

/// The kinds of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A quantity over time.
    Series,
    /// The part of the flows that have no more than a value.
    Cdf,
    /// Completion time against size, a point for each flow.
    Completion,
    /// Goodput against round trip, a point for each flow.
    Delay,
}

/// The figure that is wanted.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// Kind of the figure.
    pub kind: Kind,
    /// Of [`Kind::Series`] a quantity's column name, of [`Kind::Cdf`] that of a flow's number;
    /// `None` for the usual one.
    pub quantity: Option<&'a str>,
    /// The link direction whose series is drawn; `None` for the bottleneck.
    pub link: Option<&'a str>,
}

/// A figure, ready to be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it is of.
    pub title: String,
    pub(super) x: Measure,
    pub(super) y: Measure,
    pub(super) curves: Vec<Curve>,
}

/// What an axis measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Measure {
    pub name: &'static str,
    pub unit: Unit,
    pub range: Range,
}

/// From where to where an axis goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Range {
    /// From zero to a little above the greatest value.
    FromZero,
    /// From zero to the greatest value: time.
    ToTheEnd,
    /// Around the values.
    Around,
    /// The same, every doubling as wide as any other.
    Logarithmic,
}

/// How a curve is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    Line,
    Points,
}

/// A curve and its name.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curve {
    pub name: String,
    pub manner: Manner,
    pub points: Vec<(f64, f64)>,
}

/// Why there is no such figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoFigure {
    /// There is no such quantity; these there are.
    Quantity(String, Vec<&'static str>),
    /// There is no such link direction; these there are.
    Link(String, Vec<String>),
    /// The runs do not have what it shows.
    Nothing(&'static str),
}

impl fmt::Display for NoFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantity(name, known) => {
                write!(
                    f,
                    "there is no quantity \"{name}\" for this figure; the quantities are {}",
                    known.join(", ")
                )
            }
            Self::Link(name, known) => {
                write!(
                    f,
                    "there is no link \"{name}\" in these runs; the links are {}",
                    known.join(", ")
                )
            }
            Self::Nothing(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for NoFigure {}

const fn measure(name: &'static str, unit: Unit) -> Measure {
    Measure { name, unit, range: Range::FromZero }
}

/// Quantities that can be drawn over time, and what they measure; the first is the usual one.
const SERIES: [(Quantity, Measure); 15] = [
    (Quantity::QueueMean, measure("Queue, packets", Unit::Plain)),
    (Quantity::QueueMax, measure("Largest queue, packets", Unit::Plain)),
    (Quantity::Utilisation, measure("Utilisation", Unit::Share)),
    (Quantity::Drops, measure("Drops, packets", Unit::Plain)),
    (Quantity::Lost, measure("Losses on the link, packets", Unit::Plain)),
    (Quantity::Goodput, measure("Goodput", Unit::Rate)),
    (Quantity::Cwnd, measure("Congestion window, packets", Unit::Plain)),
    (Quantity::Srtt, measure("Smoothed round-trip time", Unit::Seconds)),
    (Quantity::Retransmits, measure("Retransmissions, segments", Unit::Plain)),
    (Quantity::ControlInterval, measure("Control interval", Unit::Seconds)),
    (Quantity::FlowsEstimated, measure("Flows estimated", Unit::Plain)),
    (Quantity::Phi, measure("Aggregate feedback", Unit::Rate)),
    (Quantity::Shuffled, measure("Shuffled traffic", Unit::Rate)),
    (Quantity::PersistentQueue, measure("Persistent queue", Unit::Bytes)),
    (Quantity::InputTraffic, measure("Input traffic", Unit::Rate)),
];

/// A flow's number, for distributions.
type OfFlow = fn(&FlowSummary) -> Option<f64>;

/// Numbers whose distribution over flows can be drawn; the first is the usual one.
const NUMBERS: [(&str, Measure, OfFlow); 3] = [
    ("completion_time_s", measure("Completion time", Unit::Seconds), |flow| flow.completion_time),
    ("goodput_bps", measure("Goodput", Unit::Rate), |flow| flow.goodput()),
    ("rtt_mean_s", measure("Mean round-trip time", Unit::Seconds), |flow| flow.rtt_mean()),
];

impl Wanted<'_> {
    /// Whether runs of these scenarios can have what the figure shows, as far as that is known
    /// before they are run.
    ///
    /// # Errors
    /// They cannot.
    pub fn check(&self, scenarios: &[&Scenario]) -> Result<(), NoFigure> {
        let transfers = || scenarios.iter().flat_map(|s| &s.flows).any(|f| f.bytes().is_some());
        match self.kind {
            Kind::Series => self.check_series(scenarios),
            Kind::Cdf if number_of(self.quantity)?.0 == NUMBERS[0].1 && !transfers() => {
                Err(NoFigure::Nothing(
                    "no flow has such a number; completion times need flows with `bytes`",
                ))
            }
            Kind::Completion if !transfers() => {
                Err(NoFigure::Nothing("no flow completes a transfer; the flows need `bytes`"))
            }
            Kind::Cdf | Kind::Completion | Kind::Delay => Ok(()),
        }
    }

    fn check_series(&self, scenarios: &[&Scenario]) -> Result<(), NoFigure> {
        let (quantity, _) = series_of(self.quantity)?;
        let directions: BTreeMap<String, bool> = scenarios
            .iter()
            .flat_map(|s| &s.links)
            .flat_map(|link| {
                let names = [link.name.clone(), format!("{}.reverse", link.name)];
                names.into_iter().zip(link.directions.iter().map(|d| d.queue.router().is_some()))
            })
            .fold(BTreeMap::new(), |mut all, (name, routed)| {
                *all.entry(name).or_default() |= routed;
                all
            });
        if let Some(link) = self.link {
            if !directions.contains_key(link) {
                return Err(NoFigure::Link(link.to_owned(), directions.into_keys().collect()));
            }
            if quantity.is_of_flows() {
                return Err(NoFigure::Nothing(
                    "--link names a link, and this is a quantity of flows",
                ));
            }
        }
        let routed =
            directions.iter().any(|(name, routed)| *routed && self.link.is_none_or(|l| l == name));
        if quantity.is_of_routers() && !routed {
            return Err(NoFigure::Nothing(
                "the runs have no such series: only a queue of kind \"xcp\" has this quantity",
            ));
        }
        if scenarios.iter().all(|s| s.sample == Sampling::Off) {
            return Err(NoFigure::Nothing(
                "the runs have no series, because sample is \"off\"; leave that out",
            ));
        }
        Ok(())
    }
}

/// Makes a figure from runs and, in the same order, the scenarios they came from.
///
/// # Errors
/// Where the runs do not have what it shows.
pub fn figure(
    runs: &[Run],
    scenarios: &[Scenario],
    wanted: &Wanted<'_>,
) -> Result<Figure, NoFigure> {
    wanted.check(&scenarios.iter().collect::<Vec<_>>())?;
    let title = runs.first().map_or_else(String::new, |run| run.title.clone());
    let (x, y, curves) = match wanted.kind {
        Kind::Series => {
            let (quantity, y) = series_of(wanted.quantity)?;
            let curves = series(runs, scenarios, quantity, wanted.link);
            (Measure { range: Range::ToTheEnd, ..measure("Time", Unit::Seconds) }, y, curves)
        }
        Kind::Cdf => {
            let (x, of) = number_of(wanted.quantity)?;
            let mut curves = clouds(runs, |flow| of(flow).map(|value| (value, 0.0)));
            curves.iter_mut().for_each(accumulate);
            (x, measure("Fraction of the flows", Unit::Share), curves)
        }
        Kind::Completion => {
            let point =
                |flow: &FlowSummary| Some((flow.bytes?.get() as f64, flow.completion_time?));
            let logarithmic = |name, unit| Measure { name, unit, range: Range::Logarithmic };
            let curves = clouds(runs, point);
            (
                logarithmic("Size", Unit::Bytes),
                logarithmic("Completion time", Unit::Seconds),
                curves,
            )
        }
        Kind::Delay => {
            let point = |flow: &FlowSummary| Some((flow.rtt_mean()?, flow.goodput()?));
            let curves = clouds(runs, point);
            let rtt =
                Measure { range: Range::Around, ..measure("Mean round-trip time", Unit::Seconds) };
            (rtt, measure("Goodput", Unit::Rate), curves)
        }
    };
    let drawn = |curve: &Curve| curve.points.iter().any(|(x, y)| x.is_finite() && y.is_finite());
    if !curves.iter().any(drawn) {
        return Err(NoFigure::Nothing(match wanted.kind {
            Kind::Series => {
                "the runs have no such series: the quantity belongs to another kind of queue than \
                 the bottleneck's; name a link with --link"
            }
            Kind::Cdf => "no flow has such a number: none ran, or none completed its transfer",
            Kind::Completion => "no flow completed its transfer; make the run longer",
            Kind::Delay => "no flow has RTT samples in the measured period",
        }));
    }
    Ok(Figure { title, x, y, curves })
}

fn series_of(name: Option<&str>) -> Result<(Quantity, Measure), NoFigure> {
    let Some(name) = name else { return Ok(SERIES[0]) };
    let unknown =
        || NoFigure::Quantity(name.to_owned(), SERIES.iter().map(|(q, _)| q.column()).collect());
    SERIES.into_iter().find(|(quantity, _)| quantity.column() == name).ok_or_else(unknown)
}

fn number_of(name: Option<&str>) -> Result<(Measure, OfFlow), NoFigure> {
    let wanted = name.unwrap_or(NUMBERS[0].0);
    let unknown =
        || NoFigure::Quantity(wanted.to_owned(), NUMBERS.iter().map(|(name, ..)| *name).collect());
    NUMBERS
        .into_iter()
        .find(|(name, ..)| *name == wanted)
        .map(|(_, measure, of)| (measure, of))
        .ok_or_else(unknown)
}

/// The series of a quantity: of a link one curve for each run, of flows one for each flow or group.
fn series(
    runs: &[Run],
    scenarios: &[Scenario],
    quantity: Quantity,
    link: Option<&str>,
) -> Vec<Curve> {
    let mut curves = Vec::new();
    for run in runs {
        let name = human::run_name(run);
        if !quantity.is_of_flows() {
            let bottleneck = links::bottlenecks(runs, scenarios).into_iter().next();
            let Some(link) = link.or(bottleneck) else { continue };
            let points = points(run, &Subject::Link(link.to_owned()), quantity);
            // Where there is more than one link with its two directions, which it is.
            let several = links::all(runs).len() > 2;
            let name = if several { together(runs, name, link, false) } else { name.to_owned() };
            curves.push(Curve { name, manner: Manner::Line, points });
            continue;
        }
        let entities = groups(&run.summary.flows, LINES);
        let alone = entities.len() == 1;
        for (group, members) in entities {
            let own: Vec<Vec<(f64, f64)>> = members
                .iter()
                .map(|&flow| {
                    points(run, &Subject::Flow(run.summary.flows[flow].name.to_string()), quantity)
                })
                .collect();
            let name = together(runs, name, &group, alone);
            curves.push(Curve { name, manner: Manner::Line, points: median(&own) });
        }
    }
    curves
}

fn points(run: &Run, subject: &Subject, quantity: Quantity) -> Vec<(f64, f64)> {
    let Some(series) = run.find(subject, quantity) else { return Vec::new() };
    series
        .times
        .iter()
        .zip(series.values.iter())
        .map(|(&time, value)| (time as f64 / 1e9, value))
        .collect()
}

/// At each time the median of the curves that have a value.
fn median(curves: &[Vec<(f64, f64)>]) -> Vec<(f64, f64)> {
    if let [only] = curves {
        return only.clone();
    }
    let longest = curves.iter().max_by_key(|curve| curve.len()).map_or(&[][..], Vec::as_slice);
    let at = |i: usize| {
        let mut values: Vec<f64> = curves
            .iter()
            .filter_map(|curve| curve.get(i))
            .map(|point| point.1)
            .filter(|v| v.is_finite())
            .collect();
        values.sort_unstable_by(f64::total_cmp);
        quantile(&values, 0.5)
    };
    longest.iter().enumerate().map(|(i, point)| (point.0, at(i))).collect()
}

/// A run's name and that of flows in it, which may be `alone` there: as much of both as tells
/// curves apart.
fn together(runs: &[Run], run: &str, flows: &str, alone: bool) -> String {
    match (runs.len(), alone) {
        (1, _) => flows.to_owned(),
        (_, true) => run.to_owned(),
        _ => format!("{run}: {flows}"),
    }
}

/// A point for each flow that has one, the flows of a `[[flow]]` together.
fn clouds(runs: &[Run], point: impl Fn(&FlowSummary) -> Option<(f64, f64)>) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let alone = runs.iter().all(|run| run.summary.groups.len() <= 1);
    for run in runs {
        let mut flows = run.summary.flows.iter();
        for GroupSummary { name, flows: count, .. } in &run.summary.groups {
            let points: Vec<(f64, f64)> = flows.by_ref().take(*count).filter_map(&point).collect();
            if points.is_empty() {
                continue;
            }
            let name = together(runs, human::run_name(run), name, alone);
            let place = *known.entry(name.clone()).or_insert_with(|| {
                curves.push(Curve { name, manner: Manner::Points, points: Vec::new() });
                curves.len() - 1
            });
            curves[place].points.extend(points);
        }
    }
    curves
}

/// Values, as the steps of their distribution.
fn accumulate(curve: &mut Curve) {
    let mut values: Vec<f64> = curve.points.iter().map(|point| point.0).collect();
    values.sort_unstable_by(f64::total_cmp);
    let all = values.len() as f64;
    curve.manner = Manner::Line;
    curve.points = values
        .iter()
        .enumerate()
        .flat_map(|(i, &value)| [(value, i as f64 / all), (value, (i + 1) as f64 / all)])
        .collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_rises_from_none_to_all() {
        let points = [3.0, 1.0, 2.0, 2.0].map(|value| (value, 0.0)).to_vec();
        let mut curve = Curve { name: String::new(), manner: Manner::Points, points };
        accumulate(&mut curve);
        let expected = [
            (1.0, 0.0),
            (1.0, 0.25),
            (2.0, 0.25),
            (2.0, 0.5),
            (2.0, 0.5),
            (2.0, 0.75),
            (3.0, 0.75),
            (3.0, 1.0),
        ];
        assert_eq!(curve.points, expected);
    }

    #[test]
    fn the_median_leaves_out_what_is_not_there() {
        let curves =
            [vec![(1.0, 5.0), (2.0, f64::NAN)], vec![(1.0, 7.0), (2.0, 3.0)], vec![(1.0, 9.0)]];
        assert_eq!(median(&curves), [(1.0, 7.0), (2.0, 3.0)]);
    }
}
