//! `xcpnet doctor`: what XCP on Linux needs of this machine, and what to do where it is not there.

use xcp_linux::doctor::{Group, Ready, examine};

use crate::cli::DoctorArguments;
use crate::failure::{Failure, LACKING};
use crate::output::{Printer, width};

/// Looks and tells.
pub fn doctor(arguments: &DoctorArguments, printer: &mut Printer) -> Result<(), Failure> {
    let report = examine();
    if arguments.json {
        printer.line(&serde_json::to_string(&report).map_err(Failure::new)?)?;
    } else {
        printer.text(&report.table(width()))?;
    }
    let ready = [Group::Endpoint, Group::Router].map(|group| report.ready(group));
    if ready.contains(&Ready::No) {
        Err(Failure::with_status("something that endpoint or router need is missing; what to do is told with each", LACKING))
    } else if ready.contains(&Ready::Unknown) {
        Err(Failure::with_status("not everything could be tried; what to do is told with each", LACKING))
    } else {
        Ok(())
    }
}
