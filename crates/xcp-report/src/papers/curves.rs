//! Which charts a figure gets: over time, a row for each quantity that its claims are about, a
//! chart for each variant; or, where there are more variants than can be looked at, the claimed
//! numbers of all variants beside one another. What they look like is `chart.rs`'s.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use xcp_model::Scenario;
use xcp_model::Verdict;
use xcp_model::run::{Quantity, Run, Subject};

use super::Theories;
use super::chart::{Curve, Judged, Told, by_variant, over_time};
use crate::Reference;
use crate::axis::{Axis, Unit};
use crate::html::escape;
use crate::table::{groups, quantile};
use crate::{human, links};

/// Most variants whose curves are drawn; of more the first ones are, if no claim's numbers can
/// stand for them.
const VARIANTS: usize = 6;
/// Most flows drawn one by one; more are drawn as groups.
const FLOWS: usize = 5;
/// Most link directions in a row of charts.
const LINKS: usize = 2;
/// Most rows of charts.
const ROWS: usize = 5;
/// A number claimed of so many variants is drawn for all of them beside one another.
const BESIDE: usize = 3;

/// A row of charts: a quantity of links or flows.
struct Row {
    heading: &'static str,
    quantity: Quantity,
    unit: Unit,
}

const ROW: [Row; 12] = [
    Row { heading: "Utilisation", quantity: Quantity::Utilisation, unit: Unit::Share },
    Row { heading: "Queue", quantity: Quantity::QueueMean, unit: Unit::Plain },
    Row { heading: "Drops", quantity: Quantity::Drops, unit: Unit::Plain },
    Row { heading: "Losses on the link", quantity: Quantity::Lost, unit: Unit::Plain },
    Row { heading: "Goodput", quantity: Quantity::Goodput, unit: Unit::Rate },
    Row { heading: "Congestion window", quantity: Quantity::Cwnd, unit: Unit::Plain },
    Row { heading: "Round-trip time", quantity: Quantity::Srtt, unit: Unit::Seconds },
    Row { heading: "Retransmissions", quantity: Quantity::Retransmits, unit: Unit::Plain },
    Row { heading: "Control interval", quantity: Quantity::ControlInterval, unit: Unit::Seconds },
    Row { heading: "Persistent queue", quantity: Quantity::PersistentQueue, unit: Unit::Bytes },
    Row { heading: "Input traffic", quantity: Quantity::InputTraffic, unit: Unit::Rate },
    Row {
        heading: "Flows the router counts",
        quantity: Quantity::FlowsEstimated,
        unit: Unit::Plain,
    },
];

/// The row that shows best what a metric is about.
fn row_of(metric: &str) -> Option<&'static Row> {
    let number = match metric.split('.').collect::<Vec<_>>()[..] {
        ["jain"] => "goodput",
        ["links", _, "reverse", number] | ["links", _, number] | ["flows", _, number, ..] => number,
        _ => return None,
    };
    let quantity = [
        ("utilisation", Quantity::Utilisation),
        ("idle_time", Quantity::Utilisation),
        ("persistent_queue", Quantity::PersistentQueue),
        ("queue", Quantity::QueueMean),
        ("drops", Quantity::Drops),
        ("lost", Quantity::Lost),
        ("goodput", Quantity::Goodput),
        ("completion", Quantity::Goodput),
        ("completed", Quantity::Goodput),
        ("cwnd", Quantity::Cwnd),
        ("rtt", Quantity::Srtt),
        ("retransmits", Quantity::Retransmits),
        ("timeouts", Quantity::Retransmits),
        ("control_interval", Quantity::ControlInterval),
        ("input_traffic", Quantity::InputTraffic),
        ("flows_estimated", Quantity::FlowsEstimated),
    ];
    let (_, quantity) = quantity.into_iter().find(|(begin, _)| number.starts_with(begin))?;
    ROW.iter().find(|r| r.quantity == quantity)
}

/// What is drawn of a figure.
pub(super) struct Content<'a> {
    pub scenarios: &'a [Scenario],
    pub runs: &'a [Run],
    pub verdicts: &'a [Vec<Verdict>],
    pub theory: &'a [Vec<Theories>],
    pub references: &'a [Vec<Reference>],
    pub seeds: usize,
}

impl Content<'_> {
    /// All charts.
    pub fn write(&self, page: &mut String) {
        let beside = self.beside(page);
        if self.runs.len() > VARIANTS && beside > 0 {
            return;
        }
        let metrics: Vec<&str> =
            self.verdicts.iter().flatten().map(|v| v.metric.as_str()).collect();
        let mut rows: Vec<&Row> = ROW
            .iter()
            .filter(|row| {
                metrics.iter().any(|m| row_of(m).is_some_and(|r| r.quantity == row.quantity))
            })
            .collect();
        if rows.is_empty() {
            rows = ROW[..2].iter().collect();
        }
        let chosen = self.links(&metrics);
        for row in rows.into_iter().take(ROWS) {
            self.row(row, &chosen, page);
        }
    }

    /// The link directions that claims are about, else the bottlenecks.
    fn links(&self, metrics: &[&str]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for metric in metrics {
            let name = match metric.split('.').collect::<Vec<_>>()[..] {
                ["links", name, "reverse", _] => format!("{name}.reverse"),
                ["links", name, _] => name.to_owned(),
                _ => continue,
            };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() {
            names = links::bottlenecks(self.runs, self.scenarios)
                .into_iter()
                .map(str::to_owned)
                .collect();
        }
        names.truncate(LINKS);
        names
    }

    fn row(&self, row: &Row, chosen: &[String], page: &mut String) {
        let drawn: Vec<(usize, Vec<Curve>)> = self
            .runs
            .iter()
            .enumerate()
            .take(VARIANTS)
            .map(|(i, run)| (i, self.curves(i, run, row, chosen)))
            // Theory alone is no chart: the run was not sampled.
            .filter(|(_, curves)| {
                curves
                    .iter()
                    .any(|c| !matches!(c, Curve::Dashed { .. }) && values(c).any(|v| v.is_finite()))
            })
            .collect();
        if drawn.is_empty() {
            return;
        }
        let axis = Axis::from_zero(
            drawn.iter().flat_map(|(_, curves)| curves.iter().flat_map(values)),
            row.unit,
        );
        let unit = match (row.unit, row.quantity) {
            (Unit::Plain, Quantity::FlowsEstimated) => "flows",
            (Unit::Plain, Quantity::Drops | Quantity::Lost | Quantity::Retransmits) => {
                "packets in each interval"
            }
            (Unit::Plain, _) => "packets",
            _ => axis.scale().1,
        };
        let columns = if drawn.len() == 4 { 2 } else { drawn.len().clamp(1, 3) };
        let _ = write!(
            page,
            "<h3>{} <span class=\"unit\">{unit}</span></h3>\n<div class=\"charts\" \
                style=\"--cols:{columns}\">\n",
            row.heading
        );
        for (i, curves) in &drawn {
            let run = &self.runs[*i];
            let name = human::run_name(run);
            let measured = self
                .scenarios
                .get(*i)
                .map(|s| [s.measure.from as f64 / 1e9, s.measure.to as f64 / 1e9]);
            let described = format!("{} over time, {name}", row.heading);
            let told = Told { described: &described, column: row.quantity.column() };
            let chart = over_time(curves, &axis, run.completed as f64 / 1e9, measured, told);
            let caption = if self.runs.len() > 1 {
                format!("<figcaption>{}</figcaption>", escape(name))
            } else {
                String::new()
            };
            let _ = writeln!(page, "<figure>{caption}{chart}</figure>");
        }
        page.push_str("</div>\n");
        legend(drawn.iter().flat_map(|(_, curves)| curves), page);
    }

    fn curves(&self, index: usize, run: &Run, row: &Row, chosen: &[String]) -> Vec<Curve> {
        let points = |subject: &Subject| -> Vec<(f64, f64)> {
            let series = run.find(subject, row.quantity);
            series.map_or_else(Vec::new, |s| {
                s.times.iter().map(|t| *t as f64 / 1e9).zip(s.values.iter()).collect()
            })
        };
        let mut curves: Vec<Curve> = Vec::new();
        if matches!(
            row.quantity,
            Quantity::Goodput | Quantity::Cwnd | Quantity::Srtt | Quantity::Retransmits
        ) {
            for (colour, (name, members)) in
                groups(&run.summary.flows, FLOWS).into_iter().take(8).enumerate()
            {
                let all: Vec<Vec<(f64, f64)>> = members
                    .iter()
                    .map(|&i| points(&Subject::Flow(run.summary.flows[i].name.to_string())))
                    .collect();
                curves.push(match &all[..] {
                    [one] => Curve::Line { name, colour, points: one.clone() },
                    many => Curve::Spread {
                        name: format!("{name}, {} flows", many.len()),
                        colour,
                        points: spread(many),
                    },
                });
            }
        } else {
            for (colour, name) in chosen.iter().enumerate() {
                let points = points(&Subject::Link(name.clone()));
                curves.push(Curve::Line {
                    name: if chosen.len() > 1 { name.clone() } else { String::new() },
                    colour,
                    points,
                });
            }
        }
        if row.quantity == Quantity::Goodput {
            let end = run.completed as f64 / 1e9;
            for (dashes, reference) in self.references.get(index).into_iter().flatten().enumerate()
            {
                for curve in reference.goodputs.iter().take(FLOWS) {
                    curves.push(Curve::Dashed {
                        name: reference.name.clone(),
                        of: curve.name.clone(),
                        dashes,
                        points: steps(&curve.points, end),
                    });
                }
            }
        }
        curves
    }

    /// Claimed numbers of all variants beside one another. Gives how many there are.
    fn beside(&self, page: &mut String) -> usize {
        // By metric and part of the run, in the order of the file.
        let mut order: Vec<(&str, u64, u64)> = Vec::new();
        let mut numbers: BTreeMap<(&str, u64, u64), Vec<Judged>> = BTreeMap::new();
        for (i, (run, verdicts)) in self.runs.iter().zip(self.verdicts).enumerate() {
            for (j, v) in verdicts.iter().enumerate() {
                let key = (v.metric.as_str(), v.period.from, v.period.to);
                if !order.contains(&key) {
                    order.push(key);
                }
                let list = numbers.entry(key).or_default();
                let name = human::run_name(run);
                if let Some(known) = list.iter_mut().find(|k| k.name == name) {
                    // Of several claims about the same number the bands are put together.
                    known.band = [
                        tighter(known.band[0], v.min, f64::max),
                        tighter(known.band[1], v.max, f64::min),
                    ];
                    known.inside &= v.inside;
                    continue;
                }
                let there = || v.seeds.iter().flatten().copied();
                let range = (v.seeds.len() > 1).then(|| {
                    [
                        there().fold(f64::INFINITY, f64::min),
                        there().fold(f64::NEG_INFINITY, f64::max),
                    ]
                });
                list.push(Judged {
                    name: name.to_owned(),
                    measured: v.measured,
                    range: range.filter(|r| r[0].is_finite()),
                    band: [v.min, v.max],
                    inside: v.inside,
                    theory: self.theory.get(i).and_then(|t| t.get(j)).cloned().unwrap_or_default(),
                });
            }
        }
        let lists: Vec<_> = order
            .into_iter()
            .map(|key| (key, &numbers[&key]))
            .filter(|(_, list)| list.len() >= BESIDE)
            .take(6)
            .collect();
        if lists.is_empty() {
            return 0;
        }
        let columns = if lists.len() == 4 { 2 } else { lists.len().clamp(1, 3) };
        let _ = writeln!(page, "<div class=\"charts\" style=\"--cols:{columns}\">");
        for ((metric, from, to), list) in &lists {
            let shown = list.iter().flat_map(|j| {
                j.measured
                    .into_iter()
                    .chain(j.range.into_iter().flatten())
                    .chain(j.band.into_iter().flatten())
                    .chain(j.theory.iter().map(|t| t.1))
            });
            let axis = Axis::around(shown, unit_of(metric));
            let unit = axis.scale().1;
            let span = if self
                .scenarios
                .first()
                .is_some_and(|s| (s.measure.from, s.measure.to) == (*from, *to))
            {
                String::new()
            } else {
                format!(", {} to {}", human::nanos(*from), human::nanos(*to))
            };
            let unit = if unit.is_empty() { String::new() } else { format!(" [{unit}]") };
            let chart = by_variant(list, &axis, &format!("{metric} in each variant"));
            let _ = writeln!(
                page,
                "<figure><figcaption><code>{}</code>{unit}{span}</figcaption>{chart}</figure>",
                escape(metric)
            );
        }
        page.push_str(
            "</div>\n<p class=\"note\">Shaded: the band that is claimed. ● inside, ✕ outside",
        );
        if self.seeds > 1 {
            let _ = write!(
                page,
                "; the median of {} seeds, with a line from the least to the greatest",
                self.seeds
            );
        }
        let mut theories: Vec<&str> = lists
            .iter()
            .flat_map(|(_, list)| list.iter().flat_map(|j| &j.theory))
            .map(|t| t.0)
            .collect();
        theories.sort_unstable();
        theories.dedup();
        if !theories.is_empty() {
            let lines =
                if theories.len() > 1 { "; dashed and dotted: theory" } else { "; dashed: theory" };
            let _ = write!(page, "{lines} ({})", theories.join(", "));
        }
        page.push_str(".</p>\n");
        lists.len()
    }
}

fn tighter(a: Option<f64>, b: Option<f64>, of: fn(f64, f64) -> f64) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(of(a, b)),
        (a, b) => a.or(b),
    }
}

/// The unit of a claimed number: ratios and counts have none.
fn unit_of(metric: &str) -> Unit {
    let last = metric.rsplit('.').next().unwrap_or_default();
    let ratio = |part: &str| part.ends_with("_cov") || part.ends_with("_growth");
    if ["jain", "spread"].contains(&last) || metric.split('.').any(ratio) {
        return Unit::Plain;
    }
    if metric.contains("idle_time") || metric.contains("complet") || metric.contains("_settling") {
        return Unit::Seconds;
    }
    row_of(metric).map_or(Unit::Plain, |row| row.unit)
}

fn values(curve: &Curve) -> Box<dyn Iterator<Item = f64> + '_> {
    match curve {
        Curve::Line { points, .. } | Curve::Dashed { points, .. } => {
            Box::new(points.iter().map(|p| p.1))
        }
        Curve::Spread { points, .. } => Box::new(points.iter().flat_map(|p| p.1)),
    }
}

/// A curve whose values each hold until the next.
fn steps(points: &[(f64, f64)], end: f64) -> Vec<(f64, f64)> {
    let ends = points.iter().skip(1).map(|p| p.0).chain([end]);
    points.iter().zip(ends).flat_map(|(p, end)| [*p, (end, p.1)]).collect()
}

/// Least, median and greatest of the flows that have a value at each time.
fn spread(flows: &[Vec<(f64, f64)>]) -> Vec<(f64, [f64; 3])> {
    let longest = flows.iter().max_by_key(|f| f.len()).map_or(&[][..], |f| f);
    let mut values = Vec::with_capacity(flows.len());
    let at = |(i, (t, _)): (usize, &(f64, f64))| {
        values.clear();
        values.extend(flows.iter().filter_map(|f| f.get(i)).map(|p| p.1).filter(|v| v.is_finite()));
        values.sort_unstable_by(f64::total_cmp);
        (*t, [0.0, 0.5, 1.0].map(|q| quantile(&values, q)))
    };
    longest.iter().enumerate().map(at).collect()
}

/// Names of curves, each once.
fn legend<'a>(curves: impl Iterator<Item = &'a Curve>, page: &mut String) {
    let mut items: Vec<(String, String)> = Vec::new();
    let mut spread = false;
    for curve in curves {
        let (name, class) = match curve {
            Curve::Line { name, colour, .. } => (name, format!("k{}", colour % 8)),
            Curve::Spread { name, colour, .. } => {
                spread = true;
                (name, format!("k{}", colour % 8))
            }
            Curve::Dashed { name, dashes, .. } => (name, format!("d d{dashes}")),
        };
        if !name.is_empty() && !items.iter().any(|(known, _)| known == name) {
            items.push((name.clone(), class));
        }
    }
    if items.is_empty() {
        return;
    }
    page.push_str("<ul class=\"legend\">");
    for (name, class) in items {
        let _ = write!(
            page,
            "<li><svg class=\"key\" viewBox=\"0 0 16 4\" aria-hidden=\"true\"><path \
                class=\"{class}\" d=\"M0 2H16\"/></svg>{}</li>",
            escape(&name)
        );
    }
    page.push_str("</ul>\n");
    if spread {
        page.push_str(
            "<p class=\"note\">Groups of flows are shown by their median, with the range from the \
             least to the greatest shaded.</p>\n",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_no_unit() {
        assert_eq!(unit_of("flows.*.goodput_cov.max"), Unit::Plain);
        assert_eq!(unit_of("flows.*.goodput.max"), Unit::Rate);
    }

    #[test]
    fn a_claim_chooses_its_row() {
        for (metric, quantity) in [
            ("jain", Some(Quantity::Goodput)),
            ("links.b.queue_mean", Some(Quantity::QueueMean)),
            ("links.b.reverse.utilisation", Some(Quantity::Utilisation)),
            ("links.b.persistent_queue_max", Some(Quantity::PersistentQueue)),
            ("flows.*.cwnd_max.max", Some(Quantity::Cwnd)),
            ("flows.a.completion_time", Some(Quantity::Goodput)),
            ("links.b.packets", None),
        ] {
            assert_eq!(row_of(metric).map(|r| r.quantity), quantity, "{metric}");
        }
    }
}
