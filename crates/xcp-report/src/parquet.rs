//! Series as Parquet: the tables of [`crate::csv`], column for column, numbers as 64-bit floats, compressed with zstd.

use std::io;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::Compression;
use ::parquet::file::properties::WriterProperties;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use xcp_scenario::run::{Run, Series};

use crate::csv::{Frame, Kind};

/// Writes one table of a run.
///
/// # Errors
/// The writer's.
pub fn write(run: &Run, kind: Kind, out: impl io::Write + Send) -> io::Result<()> {
    let frame = Frame::new(run, kind);
    let mut fields = vec![Field::new("time_s", DataType::Float64, false), Field::new(kind.column(), DataType::Utf8, false)];
    fields.extend(frame.quantities.iter().map(|q| Field::new(q.column(), DataType::Float64, true)));
    let schema = Arc::new(Schema::new(fields));
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(Default::default())).build();
    let mut writer = ArrowWriter::try_new(out, Arc::clone(&schema), Some(properties)).map_err(io::Error::other)?;
    for (name, columns) in &frame.subjects {
        let Some(longest) = columns.iter().flatten().max_by_key(|s| s.times.len()) else { continue };
        let rows = longest.times.len();
        let times: ArrayRef = Arc::new(longest.times.iter().map(|&t| t as f64 / 1e9).collect::<Float64Array>());
        let names: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|_| *name)));
        let values = columns.iter().map(|series| {
            let at = |i: usize| series.and_then(|s: &Series| s.values.get(i)).copied().filter(|v| v.is_finite());
            Arc::new((0..rows).map(at).collect::<Float64Array>()) as ArrayRef
        });
        let batch =
            RecordBatch::try_new(Arc::clone(&schema), [times, names].into_iter().chain(values).collect()).map_err(io::Error::other)?;
        writer.write(&batch).map_err(io::Error::other)?;
    }
    writer.close().map_err(io::Error::other)?;
    Ok(())
}
