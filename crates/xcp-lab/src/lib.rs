//! Backend 2: a scenario in network namespaces, with real kernel TCP and xcpnet's kernel programs.
//! Takes a resolved scenario, returns a run, as the simulator does; `docs/lab.md` says what becomes
//! of what.
//!
//! Where things are: `plan` works out what is to be built, `site` builds it, `wires` starts the
//! delay [`mod@line`]s; `traffic` sends and receives, `measure` looks, `run` puts all of it together
//! and takes it down; `trust` says whether the result can be believed. `home` is the control group,
//! `xcp` the one place that knows our kernel programs.
//!
//! ```
//! use xcp_lab::LabError;
//!
//! // Needs root, and a kernel that has what it takes; says what is not there.
//! match xcp_lab::check() {
//!     Ok(()) => assert!(xcp_lab::congestions()?.contains(&"reno".to_owned())),
//!     Err(LabError::Missing(what)) => println!("{what}"),
//!     Err(e) => return Err(e),
//! }
//! # Ok::<(), LabError>(())
//! ```

mod changes;
mod clock;
mod error;
mod home;
pub mod line;
mod machine;
mod measure;
mod plan;
mod run;
mod site;
mod traffic;
mod trust;
mod wires;
mod xcp;

use xcp_model::Scenario;
use xcp_model::run::{Observer, Run};

pub use error::{Cause, LabError};
pub use home::leave_at_once;
pub use plan::Family;

/// What can be chosen about a lab beside the scenario.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// The internet protocol that its hosts speak.
    pub family: Family,
    /// Whether hosts hand down packets of several segments at any rate, as behind a network card
    /// that cuts them up; the routers' queues do that here, and nobody puts together what comes.
    pub offload: bool,
}

/// Refuses what cannot be done on this machine or by this user, before anything is.
///
/// # Errors
/// [`LabError::Missing`], with the remedy.
pub fn check() -> Result<(), LabError> {
    machine::check()
}

/// Names of the kernel's congestion controls, which a scenario that is for it may name.
///
/// # Errors
/// [`LabError::Missing`] where the kernel does not tell.
pub fn congestions() -> Result<Vec<String>, LabError> {
    machine::congestions()
}

/// Runs a scenario on this machine, in real time. One at a time in a process: another one waits.
///
/// # Errors
/// When the scenario cannot be run on Linux, the machine lacks something, or something fails.
/// Nothing is left behind then, nor otherwise.
pub fn run(scenario: &Scenario, observer: &mut dyn Observer) -> Result<Run, LabError> {
    run_with(scenario, Options::default(), observer)
}

/// [`run`], with a say in how.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    scenario: &Scenario,
    options: Options,
    observer: &mut dyn Observer,
) -> Result<Run, LabError> {
    run::run(scenario, &machine::here(options)?, observer)
}

/// What is to be built for a scenario, as a text; nothing is built.
///
/// # Errors
/// Where the scenario cannot be run on Linux.
pub fn describe(scenario: &Scenario, options: Options) -> Result<String, LabError> {
    let plan = plan::Plan::new(scenario, &machine::here(options)?)?;
    run::check(scenario, &plan)?;
    Ok(plan.to_string())
}

/// Removes what labs have left behind that were killed: their control groups. Returns what it
/// removed.
///
/// # Errors
/// When something cannot be removed.
pub fn clean() -> Result<Vec<String>, LabError> {
    machine::check()?;
    Ok(home::clean()?
        .into_iter()
        .map(|directory| format!("the control group {}", directory.display()))
        .collect())
}
