//! `xcpnet doctor`: what XCP on Linux needs of this machine, and what to do where it is not there.

use xcp_linux::doctor::{Group, Ready, examine};

use crate::cli::DoctorArguments;
use crate::failure::{Failure, LACKING};
use crate::output::{Printer, width};

/// Looks and tells.
pub fn doctor(arguments: &DoctorArguments, printer: &mut Printer) -> Result<(), Failure> {
    let mut report = examine();
    if let Some(group) = arguments.group {
        report = report.only(group);
    }
    if arguments.json {
        printer.line(&serde_json::to_string(&report).map_err(Failure::new)?)?;
    } else {
        printer.text(&report.table(width()))?;
    }
    let groups = arguments.group.map_or(vec![Group::Endpoint, Group::Router], |group| vec![group]);
    let ready: Vec<Ready> = groups.iter().map(|&group| report.ready(group)).collect();
    if ready.contains(&Ready::No) {
        let who = groups.iter().map(|group| group.name()).collect::<Vec<_>>().join(" or ");
        let need = if groups.len() == 1 { "needs" } else { "need" };
        Err(Failure::with_status(
            format!("something that {who} {need} is missing; each entry says what to do"),
            LACKING,
        ))
    } else if ready.contains(&Ready::Unknown) {
        Err(Failure::with_status(
            "not everything could be tried; each entry says what to do",
            LACKING,
        ))
    } else {
        Ok(())
    }
}
