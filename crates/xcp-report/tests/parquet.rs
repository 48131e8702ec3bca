//! Parquet holds what the CSV holds. Only with the feature.
#![cfg(feature = "parquet")]

mod common;

use arrow_array::cast::AsArray as _;
use arrow_array::types::Float64Type;
use common::{Manner, run};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use xcp_report::csv::Kind;
use xcp_scenario::run::{Quantity, Subject};

#[test]
fn values_read_back() {
    let run = run(Manner::DropTail, 3);
    let file = tempfile::NamedTempFile::new().unwrap();
    xcp_report::parquet::write(&run, Kind::Flows, file.reopen().unwrap()).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file.reopen().unwrap()).unwrap().build().unwrap();
    let (mut names, mut cwnds) = (Vec::new(), Vec::new());
    for batch in reader.map(Result::unwrap) {
        names.extend(batch.column_by_name("flow").unwrap().as_string::<i32>().iter().map(|n| n.unwrap().to_owned()));
        cwnds.extend(batch.column_by_name("cwnd_packets").unwrap().as_primitive::<Float64Type>().iter().map(Option::unwrap));
    }
    assert_eq!(names.len(), 3 * 600);
    let second = run.find(&Subject::Flow("flow-2".into()), Quantity::Cwnd).unwrap();
    assert_eq!(cwnds[600..1200], second.values[..]);
    assert!(names[600..1200].iter().all(|n| n == "flow-2"));
}
