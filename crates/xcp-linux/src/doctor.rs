//! What XCP on Linux needs of a machine, whether it is there, and what to do where it is not. A
//! feature is looked for by using it, in places of which nothing stays; a version says little of
//! kernels into which distributions carry features back. What is refused to those who are not root
//! is not called missing.

mod distribution;
mod endpoint;
mod kernel;
mod lab;
mod machine;
mod network;
mod pep;
mod remedies;
mod report;
mod scratch;
mod table;

pub use report::{Check, Group, Readiness, Ready, Remedy, Report, Status};

use std::sync::{Mutex, PoisonError};

use machine::Machine;

/// What is made to try something out is named after the process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Looks at everything. Needs no rights, but finds out little without root's; changes nothing that
/// stays.
#[must_use]
pub fn examine() -> Report {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = Machine::look();
    let network = network::checks(&machine);
    let mut checks = kernel::checks(&machine);
    checks.push(network.way_out);
    checks.extend(endpoint::checks(&machine, network.tcx));
    checks.extend(network.router);
    checks.extend(network.lab);
    checks.extend(lab::checks(&machine));
    checks.extend(network.pep);
    Report::new(&machine, checks)
}
