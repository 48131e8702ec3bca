//! Parquet files: a writer for tables that are made row by row, and the tables of [`crate::csv`],
//! column for column.
//!
//! Flat tables of integers, numbers and texts are all that is needed, so this uses the `parquet`
//! crate's column writers without Arrow, which would take longer to compile than everything else
//! together. Pages are compressed with Snappy, which every reader has. What is written depends on
//! the rows alone: row groups end after so many rows, no clock is asked.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;
use xcp_model::run::{Run, Series};

use crate::csv::{Frame, Kind};

/// Rows in memory before they are written as a row group.
const ROW_GROUP: usize = 1 << 16;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Whole numbers of 64 bits.
    Integer,
    /// Doubles; values may be missing.
    Number,
    /// UTF-8.
    Text,
}

/// What a file says of itself: a key and a value of its metadata. The keys begin with `xcpnet.`;
/// the units of the columns are added to them.
pub type Said = (&'static str, String);

/// The units that the ends of columns' names stand for.
const UNITS: [(&str, &str); 4] =
    [("_s", "seconds"), ("_bps", "bits per second"), ("_bytes", "bytes"), ("_packets", "packets")];

/// The units of those columns that have one, as a JSON object.
fn units(columns: &[(&str, ColumnKind)]) -> String {
    let unit =
        |name: &str| UNITS.iter().find(|(end, _)| name.ends_with(end)).map(|(_, unit)| *unit);
    let units = columns.iter().filter(|(_, kind)| *kind != ColumnKind::Text);
    let units = units.filter_map(|(name, _)| Some(((*name).to_owned(), unit(name)?.into())));
    serde_json::Value::Object(units.collect()).to_string()
}

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// For a column of integers.
    Integer(i64),
    /// For a column of numbers; what is not finite is missing.
    Number(f64),
    /// For a column of numbers.
    Missing,
    /// For a column of texts.
    Text(&'a str),
}

impl From<u64> for Cell<'_> {
    /// Counts; none comes near 2^63.
    fn from(count: u64) -> Self {
        Self::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }
}

/// A column's values of the row group in the making.
enum Buffer {
    Integers(Vec<i64>),
    /// The values there are, and for each row whether there is one.
    Numbers(Vec<f64>, Vec<i16>),
    /// Equal texts share their bytes.
    Texts(Vec<ByteArray>, HashMap<String, ByteArray>),
}

impl Buffer {
    fn push(&mut self, cell: Cell<'_>) {
        match (self, cell) {
            (Self::Integers(values), Cell::Integer(n)) => values.push(n),
            (Self::Numbers(values, levels), Cell::Number(x)) if x.is_finite() => {
                values.push(x);
                levels.push(1);
            }
            (Self::Numbers(_, levels), Cell::Number(_) | Cell::Missing) => levels.push(0),
            (Self::Texts(values, known), Cell::Text(text)) => {
                if !known.contains_key(text) {
                    known.insert(text.to_owned(), ByteArray::from(text));
                }
                values.push(known[text].clone());
            }
            (_, cell) => panic!("{cell:?} in a column of another kind"),
        }
    }
}

/// A table that is written as its rows come. Holds one row group in memory. Not complete until
/// [`Table::finish`].
pub struct Table<W: io::Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Buffer>,
    rows: usize,
}

impl<W: io::Write + Send> Table<W> {
    /// An empty table with these columns, which says this of itself.
    ///
    /// # Errors
    /// The writer's.
    pub fn new(out: W, columns: &[(&str, ColumnKind)], metadata: &[Said]) -> io::Result<Self> {
        let field = |&(name, kind): &(&str, ColumnKind)| {
            let (physical, repetition, logical) = match kind {
                ColumnKind::Integer => (Physical::INT64, Repetition::REQUIRED, None),
                ColumnKind::Number => (Physical::DOUBLE, Repetition::OPTIONAL, None),
                ColumnKind::Text => {
                    (Physical::BYTE_ARRAY, Repetition::REQUIRED, Some(LogicalType::String))
                }
            };
            Type::primitive_type_builder(name, physical)
                .with_repetition(repetition)
                .with_logical_type(logical)
                .build()
                .map(Arc::new)
        };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>().map_err(error)?;
        let schema =
            Type::group_type_builder("schema").with_fields(fields).build().map_err(error)?;
        let said =
            metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone()));
        let said = said.chain([KeyValue::new("xcpnet.units".to_owned(), units(columns))]).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(said))
            .build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))
            .map_err(error)?;
        let buffer = |&(_, kind): &(&str, ColumnKind)| match kind {
            ColumnKind::Integer => Buffer::Integers(Vec::new()),
            ColumnKind::Number => Buffer::Numbers(Vec::new(), Vec::new()),
            ColumnKind::Text => Buffer::Texts(Vec::new(), HashMap::new()),
        };
        Ok(Self { writer, columns: columns.iter().map(buffer).collect(), rows: 0 })
    }

    /// Whether its columns are of these kinds.
    #[must_use]
    pub fn has(&self, kinds: &[ColumnKind]) -> bool {
        let kind = |buffer: &Buffer| match buffer {
            Buffer::Integers(_) => ColumnKind::Integer,
            Buffer::Numbers(..) => ColumnKind::Number,
            Buffer::Texts(..) => ColumnKind::Text,
        };
        self.columns.iter().map(kind).eq(kinds.iter().copied())
    }

    /// Adds a row: a cell for each column, of the column's kind.
    ///
    /// # Errors
    /// The writer's.
    ///
    /// # Panics
    /// When the cells do not suit the columns.
    pub fn row<'c>(&mut self, cells: impl IntoIterator<Item = Cell<'c>>) -> io::Result<()> {
        let mut count = 0;
        for cell in cells {
            self.columns[count].push(cell);
            count += 1;
        }
        assert_eq!(count, self.columns.len(), "a row has a cell for each column");
        self.rows += 1;
        if self.rows == ROW_GROUP { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut group = self.writer.next_row_group().map_err(error)?;
        for buffer in &mut self.columns {
            let mut column =
                group.next_column().map_err(error)?.expect("the group has the table's columns");
            match buffer {
                Buffer::Integers(values) => {
                    column.typed::<Int64Type>().write_batch(values, None, None).map_err(error)?;
                    values.clear();
                }
                Buffer::Numbers(values, levels) => {
                    column
                        .typed::<DoubleType>()
                        .write_batch(values, Some(levels), None)
                        .map_err(error)?;
                    values.clear();
                    levels.clear();
                }
                Buffer::Texts(values, known) => {
                    column
                        .typed::<ByteArrayType>()
                        .write_batch(values, None, None)
                        .map_err(error)?;
                    values.clear();
                    known.clear();
                }
            }
            column.close().map_err(error)?;
        }
        group.close().map_err(error)?;
        self.rows = 0;
        Ok(())
    }

    /// Writes what is left and the file's end.
    ///
    /// # Errors
    /// The writer's.
    pub fn finish(mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.flush()?;
        }
        self.writer.finish().map(drop).map_err(error)
    }
}

/// The system's own error if that is what it was: a full disk should be told as one.
fn error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(inner) => *inner,
            Err(inner) => io::Error::other(inner),
        },
        other => io::Error::other(other),
    }
}

/// Writes one table of a run's series: `time_s`, `link` or `flow`, and the quantities as numbers.
///
/// # Errors
/// The writer's.
pub fn write(
    run: &Run,
    kind: Kind,
    metadata: &[Said],
    out: impl io::Write + Send,
) -> io::Result<()> {
    let frame = Frame::new(run, kind);
    let mut columns = vec![("time_s", ColumnKind::Number), (kind.column(), ColumnKind::Text)];
    columns.extend(frame.quantities.iter().map(|q| (q.column(), ColumnKind::Number)));
    let mut table = Table::new(out, &columns, metadata)?;
    for (name, columns) in &frame.subjects {
        let Some(longest) = columns.iter().flatten().max_by_key(|s| s.times.len()) else {
            continue;
        };
        for (i, &time) in longest.times.iter().enumerate() {
            let value = |series: &Option<&Series>| {
                series.and_then(|s: &Series| s.values.get(i)).map_or(Cell::Missing, Cell::Number)
            };
            table.row(
                [Cell::Number(time as f64 / 1e9), Cell::Text(name)]
                    .into_iter()
                    .chain(columns.iter().map(value)),
            )?;
        }
    }
    table.finish()
}
