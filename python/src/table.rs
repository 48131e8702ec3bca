//! Tables, as anything that knows Arrow's PyCapsule interface takes them: polars, pandas, pyarrow,
//! DuckDB. None of those is needed.

use std::fs::File;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use xcp_report::columns::{self, Columns, Values};
use xcp_report::parquet::{Cell, ColumnKind};

use crate::errors;

/// Rows to a batch: few enough that the texts of a column can be counted with 32 bits.
const BATCH: usize = 1 << 20;

/// A table whose columns are integers, numbers (some may be missing) and texts.
#[pyclass(frozen, module = "xcpnet")]
pub struct Table {
    columns: Columns,
}

impl Table {
    /// Of these columns.
    pub fn new(columns: Columns) -> Self {
        Self { columns }
    }

    fn schema(&self) -> Schema {
        let field = |(name, values): &(String, Values)| {
            let (kind, missing) = match values.kind() {
                ColumnKind::Integer => (DataType::Int64, false),
                ColumnKind::Number => (DataType::Float64, true),
                ColumnKind::Text => (DataType::Utf8, false),
            };
            Field::new(name, kind, missing)
        };
        Schema::new(self.columns.columns.iter().map(field).collect::<Vec<_>>())
    }

    fn batch(&self, schema: &Arc<Schema>, from: usize) -> Result<RecordBatch, ArrowError> {
        let rows = from..(from + BATCH).min(self.columns.rows);
        let array = |(_, values): &(String, Values)| -> ArrayRef {
            match values {
                Values::Integers(all) => {
                    Arc::new(Int64Array::from_iter_values(all[rows.clone()].iter().copied()))
                }
                Values::Numbers(all) => {
                    Arc::new(all[rows.clone()].iter().copied().collect::<Float64Array>())
                }
                Values::Texts(..) => {
                    let texts = rows.clone().map(|row| match values.cell(row) {
                        Cell::Text(text) => text,
                        _ => "",
                    });
                    Arc::new(StringArray::from_iter_values(texts))
                }
            }
        };
        let arrays = self.columns.columns.iter().map(array).collect();
        RecordBatch::try_new(schema.clone(), arrays)
    }

    fn values(&self, name: &str) -> PyResult<&Values> {
        let found = self.columns.columns.iter().find(|(own, _)| own == name);
        let there = || {
            let names: Vec<&str> = self.columns.columns.iter().map(|(n, _)| n.as_str()).collect();
            PyKeyError::new_err(format!("no column {name}; there are {}", names.join(", ")))
        };
        found.map(|(_, values)| values).ok_or_else(there)
    }
}

#[pymethods]
impl Table {
    /// Puts Parquet files together that xcpnet wrote, given as bytes.
    #[staticmethod]
    fn of_parquet(py: Python<'_>, parts: Vec<Vec<u8>>) -> PyResult<Self> {
        let read = || {
            let mut all = Columns::default();
            for part in parts {
                all.append(columns::read(bytes::Bytes::from(part))?)?;
            }
            Ok(Self::new(all))
        };
        py.detach(read).map_err(|e: std::io::Error| errors::other(e))
    }

    /// Puts Parquet files together that xcpnet wrote.
    #[staticmethod]
    fn of_files(py: Python<'_>, paths: Vec<String>) -> PyResult<Self> {
        let read = || {
            let mut all = Columns::default();
            for path in paths {
                all.append(columns::read(File::open(path)?)?)?;
            }
            Ok(Self::new(all))
        };
        py.detach(read)
            .map_err(|e: std::io::Error| pyo3::exceptions::PyOSError::new_err(e.to_string()))
    }

    fn __len__(&self) -> usize {
        self.columns.rows
    }

    fn __repr__(&self) -> String {
        let rows = self.columns.rows;
        let many = if rows == 1 { "" } else { "s" };
        format!("<xcpnet.Table: {rows} row{many}; columns {}>", self.column_names().join(", "))
    }

    /// The columns' names.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.columns.columns.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// A column as a list; `None` where a number is missing.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        match self.values(name)? {
            Values::Integers(all) => PyList::new(py, all),
            Values::Numbers(all) => PyList::new(py, all),
            values @ Values::Texts(..) => {
                let texts = (0..self.columns.rows).map(|row| match values.cell(row) {
                    Cell::Text(text) => text,
                    _ => "",
                });
                PyList::new(py, texts.collect::<Vec<_>>())
            }
        }
    }

    /// Tables stay in their process.
    fn __reduce__(&self) -> PyResult<()> {
        let what = "a Table cannot be pickled or copied: return its columns, or \
                    pyarrow.table(table)";
        Err(PyTypeError::new_err(what))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer pass over what it cannot do.
        let _ = requested_schema;
        let schema = Arc::new(self.schema());
        let batches: Vec<_> =
            (0..self.columns.rows).step_by(BATCH).map(|from| self.batch(&schema, from)).collect();
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(batches, schema)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&self.schema()).map_err(errors::other)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }
}
