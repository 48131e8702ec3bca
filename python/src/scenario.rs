//! Scenarios: what their files say, and what theory says of them.

use std::path::Path;

use pyo3::prelude::*;
use xcp_model::Congestion;
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
    read(name, text, settings, variants, Overrides::none())
}

/// The same for this machine's kernel.
pub fn load_for_kernel(
    name: &str,
    text: &str,
    settings: Settings,
    variants: &[String],
) -> PyResult<Vec<Loaded>> {
    // What the lab lacks it says itself, and better.
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default();
    let names = Congestion::of_kernel(&names);
    read(name, text, settings, variants, Overrides::none().on_kernel(names))
}

fn read(
    name: &str,
    text: &str,
    settings: Settings,
    variants: &[String],
    overrides: Overrides,
) -> PyResult<Vec<Loaded>> {
    let path = Path::new(name);
    xcp_sweep::chosen_variants(path, text, variants).map_err(errors::sweep)?;
    let overrides = Overrides { settings, ..overrides }.only(variants);
    load_with_origins(path, text, &overrides).map_err(errors::scenario)
}

/// The traces that the text of a file names, which lie beside it: their names and contents.
#[pyfunction]
pub fn read_traces(name: &str, text: &str) -> PyResult<Vec<(String, String)>> {
    xcp_scenario::read_traces(Path::new(name), text).map_err(errors::scenario)
}

/// The text with these traces written out as lists, for the longest duration that it or a setting
/// has.
#[pyfunction]
pub fn with_traces(
    name: &str,
    text: String,
    settings: Settings,
    traces: Vec<(String, String)>,
) -> PyResult<String> {
    xcp_scenario::with_traces(Path::new(name), text, &settings, &traces).map_err(errors::scenario)
}

/// The names of a text's variants; one empty name if it has none.
#[pyfunction]
pub fn variants(text: &str) -> Vec<String> {
    variant_names(text)
}

/// Reads a scenario and tells all that is wrong with it for the simulator, unless this machine's
/// kernel takes it. Gives the title.
#[pyfunction]
pub fn check(
    name: &str,
    text: &str,
    settings: Settings,
    variants: Vec<String>,
) -> PyResult<String> {
    let loaded = load(name, text, settings.clone(), &variants)
        .or_else(|e| load_for_kernel(name, text, settings, &variants).map_err(|_| e))?;
    Ok(loaded.into_iter().next().map(|one| one.scenario.title).unwrap_or_default())
}

/// What a run on this machine's kernel has to do: the variants' names and durations in seconds.
#[pyfunction]
pub fn on_kernel(
    name: &str,
    text: &str,
    settings: Settings,
    variants: Vec<String>,
) -> PyResult<Vec<(String, f64)>> {
    let loaded = load_for_kernel(name, text, settings, &variants)?;
    Ok(loaded.into_iter().map(|l| (l.scenario.variant, l.scenario.duration as f64 / 1e9)).collect())
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
        .map(xcp_law::typed::time)
        .transpose()
        .map_err(|e| pyo3::exceptions::PyValueError::new_err(format!("at: {e}")))?;
    let loaded = load(name, text, settings, &variants)?;
    for one in &loaded {
        if at.is_some_and(|at| at > one.scenario.duration) {
            let end = one.scenario.duration as f64 / 1e9;
            return Err(pyo3::exceptions::PyValueError::new_err(format!(
                "at: the run ends at {end} s; give an earlier instant"
            )));
        }
    }
    let said = py.detach(|| {
        loaded.iter().map(|one| xcp_theory::said::say(&one.scenario, at, fluid)).collect::<Vec<_>>()
    });
    said.iter().map(|said| serde_json::to_string(said).map_err(errors::other)).collect()
}
