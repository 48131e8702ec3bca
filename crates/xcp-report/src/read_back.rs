//! The series of a run out of the files that were written of it ([`crate::parquet`]), for programs
//! that have a run done by another.

use std::io;
use std::sync::Arc;

use xcp_model::run::{Quantity, Series, Subject};
use xcp_model::units::{NANOS_PER_SEC, Nanos};

use crate::columns::{Columns, Values};
use crate::csv::Kind;

/// The series of a table of links or of flows. What has no value at any time was not recorded;
/// columns that this version does not know are left out.
///
/// # Errors
/// The table is another one.
pub fn series(table: &Columns, kind: Kind) -> io::Result<Vec<Series>> {
    let other = || io::Error::other(format!("this is no table of the series of {}", kind.name()));
    let [(time, Values::Numbers(times)), (subject, Values::Texts(names, ends)), columns @ ..] =
        &table.columns[..]
    else {
        return Err(other());
    };
    if time != "time_s" || subject != kind.column() {
        return Err(other());
    }
    let nanos = |time: &Option<f64>| nanoseconds(time.ok_or_else(other)?).ok_or_else(other);
    let times = times.iter().map(nanos).collect::<io::Result<Vec<Nanos>>>()?;
    let name = |row: usize| &names[if row == 0 { 0 } else { ends[row - 1] }..ends[row]];
    let quantity = |name: &str| Quantity::ALL.into_iter().find(|q| q.column() == name);
    let mut all = Vec::new();
    let mut shared = Arc::new(Vec::new());
    let mut from = 0;
    // The rows of a subject are one after another.
    while from < table.rows {
        let to = (from..table.rows).find(|&row| name(row) != name(from)).unwrap_or(table.rows);
        if shared[..] != times[from..to] {
            shared = Arc::new(times[from..to].to_vec());
        }
        for (column, values) in columns {
            let Values::Numbers(values) = values else { return Err(other()) };
            let values = &values[from..to];
            let Some(quantity) = quantity(column).filter(|_| values.iter().any(Option::is_some))
            else {
                continue;
            };
            all.push(Series {
                subject: match kind {
                    Kind::Links => Subject::Link(name(from).to_owned()),
                    Kind::Flows => Subject::Flow(name(from).to_owned()),
                },
                quantity,
                times: Arc::clone(&shared),
                values: values.iter().map(|value| value.unwrap_or(f64::NAN)).collect(),
            });
        }
        from = to;
    }
    Ok(all)
}

/// The whole nanoseconds that were written as seconds.
fn nanoseconds(seconds: f64) -> Option<Nanos> {
    let nanos = (seconds * NANOS_PER_SEC as f64).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the bounds of the type, as was looked"
    )]
    (0.0..u64::MAX as f64).contains(&nanos).then_some(nanos as Nanos)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use xcp_model::run::{Run, Summary};

    use super::*;

    fn run(series: Vec<Series>) -> Run {
        Run {
            title: String::new(),
            variant: String::new(),
            completed: 0,
            duration: 0,
            summary: Summary {
                seed: 1,
                backend: "linux".into(),
                title: String::new(),
                variant: String::new(),
                links: BTreeMap::new(),
                flows: Vec::new(),
                groups: Vec::new(),
                jain: Some(1.0),
                interrupted: false,
                notes: Vec::new(),
            },
            series,
        }
    }

    fn read(run: &Run, kind: Kind) -> io::Result<Vec<Series>> {
        let mut bytes = Vec::new();
        crate::parquet::write(run, kind, &[], &mut bytes)?;
        series(&crate::columns::read(bytes::Bytes::from(bytes))?, kind)
    }

    /// A NaN is not equal to itself; its text is.
    fn text(series: &[Series]) -> String {
        format!("{series:?}")
    }

    proptest! {
        /// What was written is read, those times and values, to the bit.
        #[test]
        fn series_come_back(
            step in 1u64..3_000_000_000,
            values in prop::collection::vec(prop::collection::vec(prop::option::of(-1e300f64..1e300), 4), 1..6),
            recorded in prop::collection::vec(any::<bool>(), 6),
        ) {
            let times = Arc::new((1..=4).map(|i| i * step).collect::<Vec<_>>());
            let mut all = Vec::new();
            for (i, values) in values.iter().enumerate() {
                let values: xcp_model::Values = values.iter().map(|v| v.unwrap_or(f64::NAN)).collect();
                // One with nothing in it is not written as such.
                if values.iter().all(|v| v.is_nan()) {
                    continue;
                }
                let subject = Subject::Link(format!("link {}", i / 2));
                let quantity = Quantity::ALL[i];
                if recorded[i] {
                    all.push(Series { subject, quantity, times: Arc::clone(&times), values });
                }
            }
            let run = run(all);
            prop_assert_eq!(text(&read(&run, Kind::Links).unwrap()), text(&run.series));
            prop_assert_eq!(read(&run, Kind::Flows).unwrap(), vec![]);
        }
    }

    #[test]
    fn another_table_is_refused() {
        let bytes = {
            let mut bytes = Vec::new();
            crate::parquet::write(&run(Vec::new()), Kind::Links, &[], &mut bytes).unwrap();
            crate::columns::read(bytes::Bytes::from(bytes)).unwrap()
        };
        assert!(series(&bytes, Kind::Flows).unwrap_err().to_string().contains("of flows"));
        assert!(series(&Columns::default(), Kind::Links).is_err());
    }

    #[test]
    fn every_quantity_is_in_the_list() {
        // In their order and without gaps; the last is the last.
        for (i, quantity) in Quantity::ALL.into_iter().enumerate() {
            assert_eq!(quantity as usize, i);
        }
    }
}
