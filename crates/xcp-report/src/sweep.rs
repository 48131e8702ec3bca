//! The results of a sweep as tidy tables in Parquet: runs, links, flows and groups of flows. Every
//! row of each carries its run's number, variant, seed and settings, so that no join is needed.
//!
//! Written run by run, in whatever order they are given; what is in memory does not depend on how
//! many there are.

use std::io;

use serde_json::Number;
use xcp_model::run::Summary;
use xcp_model::spread::Percentiles;
use xcp_model::units::Nanos;

use crate::columns;
use crate::parquet::{Cell, ColumnKind, Said, Table};

/// A setting's value, as a column has it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A whole number.
    Integer(i64),
    /// Another number.
    Number(f64),
    /// Anything else.
    Text(String),
}

impl Value {
    fn cell(&self) -> Cell<'_> {
        match self {
            &Self::Integer(n) => Cell::Integer(n),
            &Self::Number(x) => Cell::Number(x),
            Self::Text(text) => Cell::Text(text),
        }
    }

    /// The value as JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        match self {
            &Self::Integer(n) => n.into(),
            &Self::Number(x) => Number::from_f64(x).map_or(serde_json::Value::Null, Into::into),
            Self::Text(text) => text.as_str().into(),
        }
    }
}

/// The values of one setting: numbers if all of them are, else text.
#[must_use]
pub fn values(written: &[String]) -> (ColumnKind, Vec<Value>) {
    let integers: Option<Vec<i64>> = written.iter().map(|v| v.parse().ok()).collect();
    if let Some(integers) = integers {
        return (ColumnKind::Integer, integers.into_iter().map(Value::Integer).collect());
    }
    let number = |v: &String| {
        v.parse().ok().filter(|x: &f64| x.is_finite() && v.contains(|c: char| c.is_ascii_digit()))
    };
    if let Some(numbers) = written.iter().map(number).collect::<Option<Vec<f64>>>() {
        return (ColumnKind::Number, numbers.into_iter().map(Value::Number).collect());
    }
    (ColumnKind::Text, written.iter().cloned().map(Value::Text).collect())
}

/// One run of a sweep.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// Its number, from 0, in the order of the grid.
    pub run: u64,
    /// The values of the settings, in the order of the columns.
    pub settings: Vec<&'a Value>,
    /// How far it came.
    pub completed: Nanos,
    /// What came of it.
    pub summary: &'a Summary,
}

/// The four tables of a sweep's results.
pub struct Tables<W: io::Write + Send> {
    runs: Table<W>,
    links: Table<W>,
    flows: Table<W>,
    groups: Table<W>,
}

/// Names of the four tables; their files are called after them.
pub const TABLES: [&str; 4] = ["runs", "links", "flows", "groups"];

/// The three columns of percentiles.
fn percentiles(percentiles: Option<Percentiles>) -> [Cell<'static>; 3] {
    percentiles.map_or([Cell::Missing; 3], |p| [p.p50, p.p95, p.p99].map(Cell::Number))
}

impl<W: io::Write + Send> Tables<W> {
    /// Tables whose settings have these names and kinds, with what is said of all of them, written
    /// to these places, in the order of [`TABLES`].
    ///
    /// # Errors
    /// The writer's.
    pub fn new(
        settings: &[(&str, ColumnKind)],
        metadata: &[Said],
        [runs, links, flows, groups]: [W; 4],
    ) -> io::Result<Self> {
        use ColumnKind::{Integer, Number, Text};
        let with = |own: &[(&'static str, ColumnKind)]| {
            let mut columns = vec![("run", Integer), ("variant", Text), ("seed", Integer)];
            columns.extend_from_slice(settings);
            columns.extend_from_slice(own);
            columns
        };
        Ok(Self {
            runs: Table::new(runs, &with(&[("jain", Number), ("completed_s", Number)]), metadata)?,
            links: Table::new(
                links,
                &with(&[
                    ("link", Text),
                    ("utilisation", Number),
                    ("queue_mean_packets", Number),
                    ("queue_max_packets", Integer),
                    ("drops", Integer),
                    ("lost", Integer),
                    ("packets", Integer),
                    ("queue_delay_p50_s", Number),
                    ("queue_delay_p95_s", Number),
                    ("queue_delay_p99_s", Number),
                ]),
                metadata,
            )?,
            flows: Table::new(
                flows,
                &with(&[
                    ("flow", Text),
                    ("goodput_bps", Number),
                    ("rtt_mean_s", Number),
                    ("retransmits", Integer),
                    ("timeouts", Integer),
                    ("cwnd_mean_packets", Number),
                    ("completed_at_s", Number),
                    ("group", Text),
                    ("from", Text),
                    ("to", Text),
                    ("start_s", Number),
                    // Numbers, for there may be none.
                    ("size_bytes", Number),
                    ("completion_time_s", Number),
                ]),
                metadata,
            )?,
            groups: Table::new(
                groups,
                &with(&[
                    ("group", Text),
                    ("from", Text),
                    ("to", Text),
                    ("flows", Integer),
                    ("completed", Integer),
                    ("completion_time_p50_s", Number),
                    ("completion_time_p95_s", Number),
                    ("completion_time_p99_s", Number),
                    ("rtt_p50_s", Number),
                    ("rtt_p95_s", Number),
                    ("rtt_p99_s", Number),
                ]),
                metadata,
            )?,
        })
    }

    /// Adds a run: a row to the runs, one for each link direction, flow and group of flows.
    ///
    /// # Errors
    /// The writer's.
    pub fn add(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        let summary = entry.summary;
        let mut shared =
            vec![Cell::from(entry.run), Cell::Text(&summary.variant), Cell::from(summary.seed)];
        shared.extend(entry.settings.iter().map(|v| v.cell()));
        let shared = || shared.iter().copied();
        self.runs.row(shared().chain([
            summary.jain.map_or(Cell::Missing, Cell::Number),
            Cell::Number(entry.completed as f64 / 1e9),
        ]))?;
        for (name, link) in &summary.links {
            let cells = [
                Cell::Text(name),
                Cell::Number(link.utilisation),
                Cell::Number(link.queue_mean),
                link.queue_max.into(),
                link.drops.into(),
                link.lost.into(),
                link.packets.into(),
            ];
            self.links.row(shared().chain(cells).chain(percentiles(link.queue_delay)))?;
        }
        for group in &summary.groups {
            let cells = [
                Cell::Text(&group.name),
                Cell::Text(&group.from),
                Cell::Text(&group.to),
                (group.flows as u64).into(),
                (group.completed as u64).into(),
            ];
            let cells = cells
                .into_iter()
                .chain(percentiles(group.completion_time))
                .chain(percentiles(group.rtt));
            self.groups.row(shared().chain(cells))?;
        }
        let groups =
            summary.groups.iter().flat_map(|group| std::iter::repeat_n(group, group.flows));
        let maybe = |value: Option<f64>| value.map_or(Cell::Missing, Cell::Number);
        for (flow, group) in summary.flows.iter().zip(groups) {
            let name = flow.name.to_string();
            self.flows.row(shared().chain([
                Cell::Text(&name),
                maybe(flow.goodput()),
                maybe(flow.rtt_mean()),
                flow.retransmits.into(),
                u64::from(flow.timeouts).into(),
                maybe(flow.cwnd_mean()),
                maybe(flow.completed_at),
                Cell::Text(&group.name),
                Cell::Text(&group.from),
                Cell::Text(&group.to),
                Cell::Number(flow.start),
                maybe(flow.bytes.map(|bytes| bytes.get() as f64)),
                maybe(flow.completion_time),
            ]))?;
        }
        Ok(())
    }

    /// Adds the rows of a file that has a part of a table, by its place in [`TABLES`].
    ///
    /// # Errors
    /// It is not a part of that table, or the writer's.
    ///
    /// # Panics
    /// There is no such table.
    pub fn append(&mut self, table: usize, part: Vec<u8>) -> io::Result<()> {
        let part = columns::read(bytes::Bytes::from(part))?;
        let table = [&mut self.runs, &mut self.links, &mut self.flows, &mut self.groups]
            .into_iter()
            .nth(table)
            .expect("one of the four");
        let kinds: Vec<ColumnKind> = part.columns.iter().map(|(_, v)| v.kind()).collect();
        if !table.has(&kinds) {
            return Err(io::Error::other("a part has other columns than its table"));
        }
        (0..part.rows).try_for_each(|row| table.row(part.row(row)))
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The writer's.
    pub fn finish(self) -> io::Result<()> {
        self.runs.finish()?;
        self.links.finish()?;
        self.flows.finish()?;
        self.groups.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_of_numbers_if_all_of_it_is() {
        let of =
            |written: &[&str]| values(&written.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            of(&["0", "-150"]),
            (ColumnKind::Integer, vec![Value::Integer(0), Value::Integer(-150)])
        );
        assert_eq!(
            of(&["0", "0.5", "1e3"]),
            (
                ColumnKind::Number,
                vec![Value::Number(0.0), Value::Number(0.5), Value::Number(1000.0)]
            )
        );
        for texts in [&["0", "2bdp"][..], &["nan"], &["inf", "1"], &["true"], &["infinity"]] {
            assert_eq!(
                of(texts),
                (ColumnKind::Text, texts.iter().map(|t| Value::Text((*t).to_owned())).collect())
            );
        }
    }
}
