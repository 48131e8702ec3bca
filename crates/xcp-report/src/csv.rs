//! Series as tidy tables in CSV: one row per time and subject, one column per quantity.
//!
//! Two tables per run, links and flows. The first two columns are `time_s` (end of the sampling
//! interval, seconds) and `link` or `flow`; the others are the quantities that were recorded, named
//! as [`Quantity::column`] says. A missing value is an empty field. Rows are ordered by subject,
//! then time. RFC 4180: comma, LF, double quotes only where a name needs them. No name begins as a
//! spreadsheet's formula does: a scenario with such a name is refused (`xcp-scenario`).

use std::fmt::Write as _;
use std::io;

use xcp_model::run::{Quantity, Run, Series, Subject};
use xcp_model::units::{NANOS_PER_SEC, Nanos};

/// The kinds of subject, each a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Link directions.
    Links,
    /// Flows.
    Flows,
}

impl Kind {
    /// Name of the table in file names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Links => "links",
            Self::Flows => "flows",
        }
    }

    /// Name of the column that holds the subject.
    #[must_use]
    pub fn column(self) -> &'static str {
        match self {
            Self::Links => "link",
            Self::Flows => "flow",
        }
    }

    /// The subject's name if it is of this kind.
    #[must_use]
    pub fn subject(self, subject: &Subject) -> Option<&str> {
        match (self, subject) {
            (Self::Links, Subject::Link(name)) | (Self::Flows, Subject::Flow(name)) => Some(name),
            _ => None,
        }
    }
}

/// One table: its subjects with their series by quantity, and the quantities that occur, in the
/// order of [`Quantity`].
pub(crate) struct Frame<'a> {
    /// The quantities, one column each.
    pub(crate) quantities: Vec<Quantity>,
    /// Name and series, in order of appearance; the series in order of `quantities`.
    pub(crate) subjects: Vec<(&'a str, Vec<Option<&'a Series>>)>,
}

impl<'a> Frame<'a> {
    pub(crate) fn new(run: &'a Run, kind: Kind) -> Self {
        let of_kind =
            || run.series.iter().filter_map(|s| kind.subject(&s.subject).map(|name| (name, s)));
        let mut quantities: Vec<Quantity> = of_kind().map(|(_, s)| s.quantity).collect();
        quantities.sort_unstable();
        quantities.dedup();
        let mut index = std::collections::BTreeMap::new();
        let mut subjects: Vec<(&str, Vec<Option<&Series>>)> = Vec::new();
        for (name, series) in of_kind() {
            let at = *index.entry(name).or_insert_with(|| {
                subjects.push((name, vec![None; quantities.len()]));
                subjects.len() - 1
            });
            let column = quantities.binary_search(&series.quantity).expect("collected above");
            subjects[at].1[column] = Some(series);
        }
        Self { quantities, subjects }
    }
}

/// Writes one table of a run.
///
/// # Errors
/// The writer's.
pub fn write(run: &Run, kind: Kind, out: &mut impl io::Write) -> io::Result<()> {
    let frame = Frame::new(run, kind);
    let mut text = format!("time_s,{}", kind.column());
    for quantity in &frame.quantities {
        text.push(',');
        text.push_str(quantity.column());
    }
    text.push('\n');
    for (name, columns) in &frame.subjects {
        let name = field(name);
        let Some(longest) = columns.iter().flatten().max_by_key(|s| s.times.len()) else {
            continue;
        };
        for (i, &time) in longest.times.iter().enumerate() {
            decimal(time, &mut text);
            text.push(',');
            text.push_str(&name);
            for series in columns {
                text.push(',');
                if let Some(value) = series.and_then(|s| s.values.get(i)).filter(|v| v.is_finite())
                {
                    // Shortest text that reads back as the same number; never in exponents.
                    let _ = write!(text, "{value}");
                }
            }
            text.push('\n');
            if text.len() > 1 << 16 {
                out.write_all(text.as_bytes())?;
                text.clear();
            }
        }
    }
    out.write_all(text.as_bytes())
}

/// Seconds, exact: as many of nine decimals as are not zero.
fn decimal(time: Nanos, out: &mut String) {
    let (whole, part) = (time / NANOS_PER_SEC, time % NANOS_PER_SEC);
    let _ = write!(out, "{whole}");
    if part > 0 {
        let digits = format!("{part:09}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
}

fn field(name: &str) -> String {
    if name.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_and_names_quoted() {
        let text = |t| {
            let mut s = String::new();
            decimal(t, &mut s);
            s
        };
        assert_eq!(text(0), "0");
        assert_eq!(text(100_000_000), "0.1");
        assert_eq!(text(60_000_000_001), "60.000000001");
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
