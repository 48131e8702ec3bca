//! Reads back the tables that [`crate::parquet`] writes, whole columns at a time: flat columns of
//! integers, numbers and texts. Files of other writers are for other readers.

use std::io;

use ::parquet::basic::Type as Physical;
use ::parquet::column::reader::ColumnReader;
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{ChunkReader, FileReader as _, SerializedFileReader};

use crate::parquet::{Cell, ColumnKind};

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Integers(Vec<i64>),
    /// Numbers; some may be missing.
    Numbers(Vec<Option<f64>>),
    /// Texts, one behind the other, and where each ends.
    Texts(String, Vec<usize>),
}

impl Values {
    fn new(kind: ColumnKind) -> Self {
        match kind {
            ColumnKind::Integer => Self::Integers(Vec::new()),
            ColumnKind::Number => Self::Numbers(Vec::new()),
            ColumnKind::Text => Self::Texts(String::new(), Vec::new()),
        }
    }

    /// The value of a row.
    ///
    /// # Panics
    /// There is no such row.
    #[must_use]
    pub fn cell(&self, row: usize) -> Cell<'_> {
        match self {
            Self::Integers(values) => Cell::Integer(values[row]),
            Self::Numbers(values) => values[row].map_or(Cell::Missing, Cell::Number),
            Self::Texts(text, ends) => {
                let start = if row == 0 { 0 } else { ends[row - 1] };
                Cell::Text(&text[start..ends[row]])
            }
        }
    }

    /// What kind they are of.
    #[must_use]
    pub fn kind(&self) -> ColumnKind {
        match self {
            Self::Integers(_) => ColumnKind::Integer,
            Self::Numbers(_) => ColumnKind::Number,
            Self::Texts(..) => ColumnKind::Text,
        }
    }

    fn append(&mut self, other: Self) -> bool {
        match (self, other) {
            (Self::Integers(all), Self::Integers(more)) => all.extend(more),
            (Self::Numbers(all), Self::Numbers(more)) => all.extend(more),
            (Self::Texts(text, ends), Self::Texts(more, more_ends)) => {
                let before = text.len();
                text.push_str(&more);
                ends.extend(more_ends.into_iter().map(|end| end + before));
            }
            _ => return false,
        }
        true
    }
}

/// A table in memory: its columns by name, and how many rows it has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Columns {
    /// Names and values of the columns, in their order.
    pub columns: Vec<(String, Values)>,
    /// Number of rows.
    pub rows: usize,
}

impl Columns {
    /// The cells of a row.
    pub fn row(&self, row: usize) -> impl Iterator<Item = Cell<'_>> {
        self.columns.iter().map(move |(_, values)| values.cell(row))
    }

    /// Adds the rows of a table with the same columns; to nothing yet, those of any.
    ///
    /// # Errors
    /// It has other columns.
    pub fn append(&mut self, other: Self) -> io::Result<()> {
        let other_columns = || io::Error::other("the tables have different columns");
        if self.columns.is_empty() {
            *self = other;
            return Ok(());
        }
        if self.columns.len() != other.columns.len() {
            return Err(other_columns());
        }
        for ((name, values), (other_name, more)) in self.columns.iter_mut().zip(other.columns) {
            if *name != other_name || !values.append(more) {
                return Err(other_columns());
            }
        }
        self.rows += other.rows;
        Ok(())
    }
}

fn error(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

/// Reads a file.
///
/// # Errors
/// It is not one of ours, or damaged.
pub fn read(file: impl ChunkReader + 'static) -> io::Result<Columns> {
    let reader = SerializedFileReader::new(file).map_err(error)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let kind = |physical: Physical| match physical {
        Physical::INT64 => Ok(ColumnKind::Integer),
        Physical::DOUBLE => Ok(ColumnKind::Number),
        Physical::BYTE_ARRAY => Ok(ColumnKind::Text),
        other => Err(io::Error::other(format!("no table of xcpnet has a column of {other}"))),
    };
    let mut columns = Vec::new();
    for column in schema.columns() {
        columns.push((column.name().to_owned(), Values::new(kind(column.physical_type())?)));
    }
    let mut rows = 0;
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(error)?;
        let count = usize::try_from(group.metadata().num_rows()).map_err(io::Error::other)?;
        rows += count;
        for (i, (_, values)) in columns.iter_mut().enumerate() {
            add(group.get_column_reader(i).map_err(error)?, count, values)?;
        }
    }
    Ok(Columns { columns, rows })
}

/// Adds a column chunk of so many rows.
fn add(reader: ColumnReader, count: usize, values: &mut Values) -> io::Result<()> {
    let short = || io::Error::other("a column has fewer values than rows");
    let mut levels = Vec::new();
    let read = match (reader, values) {
        (ColumnReader::Int64ColumnReader(mut reader), Values::Integers(all)) => {
            reader.read_records(count, None, None, all).map_err(error)?.0
        }
        (ColumnReader::DoubleColumnReader(mut reader), Values::Numbers(all)) => {
            let mut there = Vec::new();
            let read =
                reader.read_records(count, Some(&mut levels), None, &mut there).map_err(error)?.0;
            let mut there = there.into_iter();
            all.extend(levels.iter().map(|&level| if level > 0 { there.next() } else { None }));
            read
        }
        (ColumnReader::ByteArrayColumnReader(mut reader), Values::Texts(text, ends)) => {
            let mut texts = Vec::new();
            let read = reader.read_records(count, None, None, &mut texts).map_err(error)?.0;
            for one in &texts {
                text.push_str(one.as_utf8().map_err(error)?);
                ends.push(text.len());
            }
            read
        }
        _ => return Err(io::Error::other("a column is not of the kind that the file says")),
    };
    if read == count { Ok(()) } else { Err(short()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parquet::Table;

    proptest! {
        /// What was written is read, and written again it is the same bytes.
        #[test]
        fn tables_come_back(rows in prop::collection::vec((any::<i64>(), prop::option::of(-1e300f64..1e300), "\\PC{0,8}"), 0..50)) {
            let columns = [("a", ColumnKind::Integer), ("b_s", ColumnKind::Number), ("c", ColumnKind::Text)];
            let written = |rows: &mut dyn Iterator<Item = Vec<Cell<'_>>>| {
                let mut out = Vec::new();
                let mut table = Table::new(&mut out, &columns, &[("xcpnet.x", "y".to_owned())]).unwrap();
                rows.for_each(|row| table.row(row).unwrap());
                table.finish().unwrap();
                out
            };
            let bytes = written(&mut rows.iter().map(|(a, b, c)| {
                vec![Cell::Integer(*a), b.map_or(Cell::Missing, Cell::Number), Cell::Text(c)]
            }));
            let back = read(bytes::Bytes::from(bytes.clone())).unwrap();
            prop_assert_eq!(back.rows, rows.len());
            for (i, (a, b, c)) in rows.iter().enumerate() {
                let cells: Vec<Cell<'_>> = back.row(i).collect();
                prop_assert_eq!(cells, vec![Cell::Integer(*a), b.map_or(Cell::Missing, Cell::Number), Cell::Text(c)]);
            }
            prop_assert_eq!(written(&mut (0..back.rows).map(|i| back.row(i).collect())), bytes);
            let mut twice = back.clone();
            twice.append(back.clone()).unwrap();
            prop_assert_eq!(twice.rows, 2 * back.rows);
            for i in 0..twice.rows {
                prop_assert!(twice.row(i).eq(back.row(i % back.rows)));
            }
        }
    }

    #[test]
    fn what_is_no_table_is_refused() {
        assert!(read(bytes::Bytes::from_static(b"a diary")).is_err());
    }
}
