//! Scenarios: what their files say, and what theory says of them.

use std::path::Path;

use pyo3::prelude::*;
use xcp_scenario::{Loaded, Overrides, load_with_origins, variant_names};

use crate::errors;

/// Settings as `--set` takes them.
pub type Settings = Vec<(String, String)>;

/// Reads a text with settings over it, and those of its variants that are named, all if none is.
pub fn load(
    name: &str,
    text: &str,
    settings: Settings,
    variants: &[String],
) -> PyResult<Vec<Loaded>> {
    let path = Path::new(name);
    xcp_sweep::chosen_variants(path, text, variants).map_err(errors::sweep)?;
    let overrides = Overrides { settings, ..Overrides::none() }.only(variants);
    load_with_origins(path, text, &overrides).map_err(errors::scenario)
}

/// The names of a text's variants; one empty name if it has none.
#[pyfunction]
pub fn variants(text: &str) -> Vec<String> {
    variant_names(text)
}

/// Reads a scenario and tells all that is wrong with it. Gives the title.
#[pyfunction]
pub fn check(
    name: &str,
    text: &str,
    settings: Settings,
    variants: Vec<String>,
) -> PyResult<String> {
    let loaded = load(name, text, settings, &variants)?;
    Ok(loaded.into_iter().next().map(|one| one.scenario.title).unwrap_or_default())
}

/// The JSON schema of the scenario file.
#[pyfunction]
pub fn schema() -> String {
    xcp_scenario::schema().to_string()
}

/// What theory says of each variant, as JSON.
#[pyfunction]
pub fn theory(
    py: Python<'_>,
    name: &str,
    text: &str,
    settings: Settings,
    variants: Vec<String>,
    at: Option<&str>,
    fluid: bool,
) -> PyResult<Vec<String>> {
    let at = at
        .map(xcp_scenario::typed::time)
        .transpose()
        .map_err(|e| pyo3::exceptions::PyValueError::new_err(format!("at: {e}")))?;
    let loaded = load(name, text, settings, &variants)?;
    let said = py.detach(|| {
        loaded.iter().map(|one| xcp_theory::said::say(&one.scenario, at, fluid)).collect::<Vec<_>>()
    });
    said.iter().map(|said| serde_json::to_string(said).map_err(errors::other)).collect()
}
