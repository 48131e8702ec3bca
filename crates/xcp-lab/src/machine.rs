//! What this machine has for a lab, and what it lacks.

use std::fs;

use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use xcp_model::Congestion;

use crate::plan::Machine;
use crate::{LabError, Options};

/// Where the kernel lists its congestion controls.
const CONGESTIONS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Names of the kernel's congestion controls.
pub(crate) fn congestions() -> Result<Vec<String>, LabError> {
    let text = fs::read_to_string(CONGESTIONS)
        .map_err(|why| LabError::missing(format_args!("cannot read {CONGESTIONS}: {why}")))?;
    Ok(Congestion::of_kernel(&text))
}

/// This machine.
pub(crate) fn here(options: Options) -> Result<Machine, LabError> {
    let Options { family, offload } = options;
    let rto_min = fs::exists("/proc/sys/net/ipv4/tcp_rto_min_us").unwrap_or(false);
    Ok(Machine { congestions: congestions()?, rto_min, family, offload })
}

/// Refuses what could not work, before anything is done.
pub(crate) fn check() -> Result<(), LabError> {
    if geteuid().is_root() {
        return Ok(());
    }
    Err(LabError::Missing(
        "the lab makes and removes network namespaces and kernel programs, which needs root: run \
         it with sudo"
            .into(),
    ))
}

/// Every connection takes three descriptors.
pub(crate) fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // With fewer the lab may do, too; where it does not, opening says so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
