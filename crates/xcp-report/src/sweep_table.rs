//! A sweep on the terminal: one row for each point of the grid, put together over its seeds. The
//! full numbers are in the Parquet files.

use std::collections::BTreeMap;

use xcp_model::run::{FlowSummary, Summary};

use crate::grid::{Align, Grid};
use crate::human;

/// Least, greatest and mean of what came of several seeds.
#[derive(Debug, Clone, Copy)]
struct Spread {
    count: u64,
    sum: f64,
    least: f64,
    greatest: f64,
}

impl Default for Spread {
    fn default() -> Self {
        Self { count: 0, sum: 0.0, least: f64::INFINITY, greatest: f64::NEG_INFINITY }
    }
}

impl Spread {
    fn add(&mut self, x: f64) {
        self.count += 1;
        self.sum += x;
        self.least = self.least.min(x);
        self.greatest = self.greatest.max(x);
    }

    fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    /// `mean unit (least–greatest)`; the brackets only where they say something.
    fn show(&self, unit: &str, number: impl Fn(f64) -> String) -> String {
        let [mean, least, greatest] = [self.mean(), self.least, self.greatest].map(number);
        if least == greatest {
            format!("{mean}{unit}")
        } else {
            format!("{mean}{unit} ({least}–{greatest})")
        }
    }
}

/// A link direction at one point.
#[derive(Debug, Clone, Copy, Default)]
struct LinkSpread {
    utilisation: Spread,
    queue: Spread,
    drops: Spread,
}

/// A point of the grid.
#[derive(Debug, Default)]
struct Point {
    labels: Vec<String>,
    links: BTreeMap<String, LinkSpread>,
    jain: Spread,
    goodput: Spread,
}

/// Collects runs, point by point, and shows them. Keeps the first points only, as many as it will
/// show.
#[derive(Debug)]
pub struct SweepTable {
    headings: Vec<String>,
    points: Vec<Point>,
    shown: usize,
    /// What to know before believing some runs, and how many.
    notes: BTreeMap<String, u64>,
}

/// Different notes that are kept; more say nothing new.
const NOTES: usize = 20;

impl SweepTable {
    /// A table whose rows begin with these labels; of more than `shown` points the rest is left
    /// out.
    #[must_use]
    pub fn new(headings: Vec<String>, shown: usize) -> Self {
        Self { headings, points: Vec::new(), shown, notes: BTreeMap::new() }
    }

    /// Adds a run of the `point`-th point. Points come in order.
    pub fn add(&mut self, point: u64, labels: impl FnOnce() -> Vec<String>, summary: &Summary) {
        for note in &summary.notes {
            if let Some(runs) = self.notes.get_mut(note) {
                *runs += 1;
            } else if self.notes.len() < NOTES {
                self.notes.insert(note.clone(), 1);
            }
        }
        let Some(point) = usize::try_from(point).ok().filter(|&p| p < self.shown) else { return };
        if point >= self.points.len() {
            self.points.push(Point { labels: labels(), ..Point::default() });
        }
        let at = &mut self.points[point];
        for (name, link) in &summary.links {
            let spread = at.links.entry(name.clone()).or_default();
            spread.utilisation.add(link.utilisation);
            spread.queue.add(link.queue_mean);
            spread.drops.add(link.drops as f64);
        }
        if let Some(jain) = summary.jain {
            at.jain.add(jain);
        }
        let goodputs: Vec<f64> = summary.flows.iter().filter_map(FlowSummary::goodput).collect();
        if !goodputs.is_empty() {
            at.goodput.add(goodputs.iter().sum::<f64>() / goodputs.len() as f64);
        }
    }

    /// The different notes of all runs, each with the number of runs that have it.
    pub fn notes(&self) -> impl Iterator<Item = (&str, u64)> {
        self.notes.iter().map(|(note, runs)| (note.as_str(), *runs))
    }

    /// The link direction that all rows speak of: the one used most, over all points.
    fn bottleneck(&self) -> Option<&str> {
        let mut used: BTreeMap<&str, f64> = BTreeMap::new();
        for (name, link) in self.points.iter().flat_map(|p| &p.links) {
            *used.entry(name).or_default() += link.utilisation.mean();
        }
        // Of equals the first by name.
        used.into_iter().rev().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
    }

    /// The rows, and a line that says what they are. `width` is the terminal's.
    #[must_use]
    pub fn render(&self, width: usize) -> String {
        let bottleneck = self.bottleneck().unwrap_or_default();
        let mut columns: Vec<(&str, Align)> =
            self.headings.iter().map(|h| (h.as_str(), Align::Right)).collect();
        let own = ["utilisation", "mean queue", "drops", "fairness", "mean goodput"];
        columns.extend(own.map(|heading| (heading, Align::Right)));
        let mut grid = Grid::new(&columns);
        grid.grouped = false;
        for point in &self.points {
            let mut row = point.labels.clone();
            let link = point.links.get(bottleneck).copied().unwrap_or_default();
            let (divisor, unit) = human::bit_units(point.goodput.mean());
            if link.utilisation.count == 0 {
                row.extend(["–", "–", "–"].map(str::to_owned));
            } else {
                row.push(link.utilisation.show(" %", |x| format!("{:.1}", x * 100.0)));
                row.push(link.queue.show("", human::fixed));
                row.push(link.drops.show("", human::number));
            }
            row.push(if point.jain.count == 0 {
                "–".to_owned()
            } else {
                point.jain.show("", human::index)
            });
            if point.goodput.count == 0 {
                row.push("–".to_owned());
            } else {
                row.push(point.goodput.show(&format!(" {unit}"), |x| human::fixed(x / divisor)));
            }
            grid.push(row);
        }
        let several = self.points.iter().any(|p| p.jain.count > 1);
        let means = if several { "; means over the seeds (least–greatest)" } else { "" };
        let mut out = format!("utilisation, queue (packets) and drops of {bottleneck}{means}\n\n");
        grid.render(width, &mut out);
        out
    }
}
