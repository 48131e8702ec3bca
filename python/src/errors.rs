//! Errors as Python has them: `ScenarioError` with its problems, `SweepError`, `OSError`,
//! `KeyboardInterrupt`.

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use xcp_scenario::{Problem, ScenarioError};

/// An exception of a class that Python defines.
fn of_class(class: &str, arguments: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) -> PyErr {
    Python::attach(|py| {
        let made = || {
            let class = py.import("xcpnet._errors")?.getattr(class)?;
            class.call1(arguments(py)?.bind(py).cast::<pyo3::types::PyTuple>()?)
        };
        made().map_or_else(|e| e, PyErr::from_value)
    })
}

fn told(message: &str, problems: &[Problem]) -> PyErr {
    let text = serde_json::to_string(problems).unwrap_or_default();
    of_class("ScenarioError", |py| {
        let told = (message.trim_end(), text).into_pyobject(py)?;
        Ok(told.into_any().unbind())
    })
}

/// A scenario's faults.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub fn scenario(error: ScenarioError) -> PyErr {
    told(&error.to_string(), error.problems())
}

/// A sweep's.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub fn sweep(error: xcp_sweep::Error) -> PyErr {
    let message = error.to_string();
    if let Some(problems) = error.problems() {
        told(&message, problems)
    } else if error.is_interrupted() {
        PyKeyboardInterrupt::new_err(message)
    } else if error.is_system() {
        PyOSError::new_err(message)
    } else {
        of_class("SweepError", |py| {
            Ok((message.trim_end(),).into_pyobject(py)?.into_any().unbind())
        })
    }
}

/// Anything else that can be told.
pub fn other(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
