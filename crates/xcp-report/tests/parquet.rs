//! Parquet holds what the CSV holds, and reads back bit for bit.

mod common;

use common::{Manner, run};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::RowAccessor as _;
use xcp_model::run::{Quantity, Subject};
use xcp_report::csv::Kind;
use xcp_report::parquet::{Cell, ColumnKind, Table};

fn reader(file: Vec<u8>) -> SerializedFileReader<bytes::Bytes> {
    SerializedFileReader::new(bytes::Bytes::from(file)).unwrap()
}

#[test]
fn values_read_back() {
    let run = run(Manner::DropTail, 3);
    let mut file = Vec::new();
    let said = vec![("xcpnet.seed", "7".to_owned())];
    xcp_report::parquet::write(&run, Kind::Flows, &said, &mut file).unwrap();
    let reader = reader(file);
    let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let said: Vec<_> =
        metadata.iter().map(|pair| (pair.key.as_str(), pair.value.as_deref().unwrap())).collect();
    let units = r#"{"cwnd_packets":"packets","goodput_bps":"bits per second","srtt_s":"seconds","time_s":"seconds"}"#;
    assert_eq!(said, [("xcpnet.seed", "7"), ("xcpnet.units", units)]);
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let at =
        |name: &str| (0..schema.num_columns()).find(|&i| schema.column(i).name() == name).unwrap();
    let (flow, cwnd) = (at("flow"), at("cwnd_packets"));
    let (mut names, mut cwnds) = (Vec::new(), Vec::new());
    for row in reader.get_row_iter(None).unwrap().map(Result::unwrap) {
        names.push(row.get_string(flow).unwrap().clone());
        cwnds.push(row.get_double(cwnd).unwrap());
    }
    assert_eq!(names.len(), 3 * 600);
    let second = run.find(&Subject::Flow("flow-2".into()), Quantity::Cwnd).unwrap();
    assert_eq!(cwnds[600..1200], second.values.to_vec());
    assert!(names[600..1200].iter().all(|n| n == "flow-2"));
}

/// More rows than a row group holds, missing values, texts that repeat and texts that do not.
#[test]
fn long_tables_are_written_in_groups() {
    let rows = 150_000_i64;
    let columns = [
        ("n", ColumnKind::Integer),
        ("x", ColumnKind::Number),
        ("group", ColumnKind::Text),
        ("id", ColumnKind::Text),
    ];
    let mut file = Vec::new();
    let mut table = Table::new(&mut file, &columns, &[]).unwrap();
    let number = |i: i64| match i % 3 {
        0 => Cell::Missing,
        1 => Cell::Number(f64::NAN),
        _ => Cell::Number(0.1 * i as f64),
    };
    for i in 0..rows {
        table
            .row([
                Cell::Integer(-i),
                number(i),
                Cell::Text(["a", "ü"][i as usize % 2]),
                Cell::Text(&i.to_string()),
            ])
            .unwrap();
    }
    table.finish().unwrap();
    let reader = reader(file);
    assert_eq!(reader.num_row_groups(), 3);
    let mut read = 0;
    for row in reader.get_row_iter(None).unwrap().map(Result::unwrap) {
        assert_eq!(row.get_long(0).unwrap(), -read);
        assert_eq!(row.get_double(1).ok(), (read % 3 == 2).then_some(0.1 * read as f64));
        assert_eq!(row.get_string(2).unwrap(), ["a", "ü"][read as usize % 2]);
        assert_eq!(*row.get_string(3).unwrap(), read.to_string());
        read += 1;
    }
    assert_eq!(read, rows);
}

#[test]
fn a_table_without_rows_is_a_table() {
    let mut file = Vec::new();
    Table::new(&mut file, &[("n", ColumnKind::Integer)], &[]).unwrap().finish().unwrap();
    assert_eq!(reader(file).metadata().file_metadata().num_rows(), 0);
}

#[test]
fn a_full_disk_is_told_as_one() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let error =
        Table::new(full, &[("n", ColumnKind::Integer)], &[]).and_then(Table::finish).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
}
