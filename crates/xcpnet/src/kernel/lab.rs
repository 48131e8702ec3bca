//! The backend `--on linux`, and `xcpnet lab`: what they do is `xcp_lab`'s.

use std::path::Path;

use xcp_model::Scenario;
use xcp_model::run::{Observer, Run};
use xcp_scenario::Overrides;

use crate::cli::LabCommand;
use crate::failure::Failure;
use crate::output::Printer;

impl From<xcp_lab::LabError> for Failure {
    fn from(error: xcp_lab::LabError) -> Self {
        Self::new(error)
    }
}

/// `xcpnet lab`.
pub fn lab(command: &LabCommand, printer: &mut Printer) -> Result<(), Failure> {
    match command {
        LabCommand::Plan { file } => plan(file, printer),
        LabCommand::Clean => clean(printer),
    }
}

/// Shows what would be built.
fn plan(file: &Path, printer: &mut Printer) -> Result<(), Failure> {
    for loaded in xcp_scenario::load_file(file, &overrides()?)? {
        if !loaded.scenario.variant.is_empty() {
            printer.line(&format!("──── {}", loaded.scenario.variant))?;
        }
        printer.text(&xcp_lab::describe(&loaded.scenario, xcp_lab::Options::default())?)?;
    }
    Ok(())
}

/// Removes what labs have left behind that are no more.
fn clean(printer: &mut Printer) -> Result<(), Failure> {
    let removed = xcp_lab::clean()?;
    for what in &removed {
        printer.line(&format!("removed {what}"))?;
    }
    if removed.is_empty() {
        printer.line("nothing to remove")?;
    }
    Ok(())
}

/// Refuses early what could not be run anyway.
pub fn check() -> Result<(), Failure> {
    Ok(xcp_lab::check()?)
}

/// Settings for reading a file that this kernel will run.
pub fn overrides() -> Result<Overrides, Failure> {
    Ok(Overrides::none().on_kernel(xcp_lab::congestions()?))
}

/// A run; `offload`: with packets of several segments.
pub fn run(
    scenario: &Scenario,
    offload: bool,
    observer: &mut dyn Observer,
) -> Result<Run, Failure> {
    Ok(xcp_lab::run_with(
        scenario,
        xcp_lab::Options { offload, ..xcp_lab::Options::default() },
        observer,
    )?)
}
