//! Scenarios on this machine's own TCP: short ones, one for each thing the lab builds. They need
//! root and say so where it is not there. What they assert holds on a busy machine, too: what was
//! sent, counted and lost, not how fast.

mod building;
mod changes;
mod classes;
mod police;
mod settings;

use std::collections::BTreeSet;
use std::path::Path;

use xcp_lab::{LabError, Options};
use xcp_model::Scenario;
use xcp_model::run::{FlowSummary, LinkSummary, Observer, Run};
use xcp_scenario::{Overrides, load};

/// A scenario for this kernel.
fn scenario(text: &str) -> Scenario {
    let overrides = Overrides::none().on_kernel(xcp_lab::congestions().unwrap_or_default());
    load(Path::new("x.toml"), text, &overrides).unwrap_or_else(|e| panic!("{e}")).remove(0)
}

/// Runs it; `None`, and the reason printed, where this machine or this user cannot.
fn lab_with(
    test: &str,
    scenario: &Scenario,
    options: Options,
    observer: &mut dyn Observer,
) -> Option<Run> {
    match xcp_lab::check().and_then(|()| xcp_lab::run_with(scenario, options, observer)) {
        Ok(run) => Some(run),
        Err(LabError::Missing(why)) => {
            xcp_skip::skipped!("root", "{test}: {why}");
            None
        }
        Err(why) => panic!("{test}: {why}"),
    }
}

fn lab(test: &str, text: &str) -> Option<Run> {
    lab_with(test, &scenario(text), Options::default(), &mut ())
}

fn link<'a>(run: &'a Run, name: &str) -> &'a LinkSummary {
    &run.summary.links[name]
}

fn flow<'a>(run: &'a Run, name: &str) -> &'a FlowSummary {
    run.summary
        .flows
        .iter()
        .find(|flow| flow.name == name.into())
        .unwrap_or_else(|| panic!("no flow {name}"))
}

/// What a run has series of.
fn series(run: &Run) -> BTreeSet<String> {
    run.series.iter().map(|s| format!("{:?} {:?}", s.subject, s.quantity)).collect()
}
