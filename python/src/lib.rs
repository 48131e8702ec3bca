//! xcpnet for Python: what is native of the package `xcpnet`. Hands texts, bytes and tables across;
//! the names that people use, and what runs where, are Python's (`python/xcpnet`).
//!
//! Whatever takes long lets go of the interpreter's lock, and asks it several times a second
//! whether somebody pressed Ctrl-C.

mod errors;
mod run;
mod scenario;
mod sweep;
mod table;

use pyo3::prelude::*;

/// The module `xcpnet._native`.
#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    m.add("BUILD", xcp_sweep::BUILD)?;
    m.add_class::<run::Runs>()?;
    m.add_class::<sweep::Plan>()?;
    m.add_class::<table::Table>()?;
    m.add_function(wrap_pyfunction!(run::run, m)?)?;
    m.add_function(wrap_pyfunction!(scenario::read_traces, m)?)?;
    m.add_function(wrap_pyfunction!(scenario::with_traces, m)?)?;
    m.add_function(wrap_pyfunction!(scenario::variants, m)?)?;
    m.add_function(wrap_pyfunction!(scenario::check, m)?)?;
    m.add_function(wrap_pyfunction!(scenario::on_kernel, m)?)?;
    m.add_function(wrap_pyfunction!(scenario::schema, m)?)?;
    m.add_function(wrap_pyfunction!(scenario::theory, m)?)?;
    m.add_function(wrap_pyfunction!(sweep::cancel, m)?)?;
    Ok(())
}
