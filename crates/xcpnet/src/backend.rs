//! The two backends: what each needs of a scenario file, how many runs it does at a time, and a
//! run.

use xcp_model::Scenario;
use xcp_model::run::{Observer, Run};
use xcp_scenario::Overrides;

use crate::cli::Backend;
use crate::failure::Failure;
#[cfg(target_os = "linux")]
use crate::kernel::lab;
use crate::terminal;

/// Other systems have no such kernel.
#[cfg(not(target_os = "linux"))]
mod lab {
    use super::{Failure, Observer, Overrides, Run, Scenario};

    fn absent<T>() -> Result<T, Failure> {
        Err(Failure::new("--on linux needs Linux; without --on, the scenario is simulated"))
    }

    pub fn check() -> Result<(), Failure> {
        absent()
    }

    pub fn overrides() -> Result<Overrides, Failure> {
        absent()
    }

    pub fn run(_: &Scenario, _: bool, _: &mut dyn Observer) -> Result<Run, Failure> {
        absent()
    }
}

impl Backend {
    /// Refuses early what could not be run anyway.
    pub fn check(self) -> Result<(), Failure> {
        match self {
            Self::Sim => Ok(()),
            Self::Linux | Self::LinuxOffload => lab::check(),
        }
    }

    /// Settings for reading a file that it will run.
    pub fn overrides(self) -> Result<Overrides, Failure> {
        match self {
            Self::Sim => Ok(Overrides::none()),
            Self::Linux | Self::LinuxOffload => lab::overrides(),
        }
    }

    /// How many of `jobs` runs may go on at a time: those on Linux share the machine's processors
    /// with the network they build, and would disturb one another.
    pub fn jobs(self, jobs: usize) -> usize {
        match self {
            Self::Sim => jobs,
            Self::Linux | Self::LinuxOffload => 1,
        }
    }

    /// What is done with a scenario's time, in a word.
    pub fn done(self) -> &'static str {
        match self {
            Self::Sim => "simulated",
            Self::Linux | Self::LinuxOffload => "run on Linux",
        }
    }

    /// A run; one that is simulated on at most `threads` processors.
    pub fn run(
        self,
        scenario: &Scenario,
        threads: usize,
        observer: &mut dyn Observer,
    ) -> Result<Run, Failure> {
        match self {
            Self::Sim => xcp_sim::simulate_on(scenario, threads, observer).map_err(Failure::new),
            Self::Linux => lab::run(scenario, false, observer),
            Self::LinuxOffload => lab::run(scenario, true, observer),
        }
    }
}

/// Tells what one should know before believing a run's numbers.
pub fn tell_notes(run: &Run) {
    for note in &run.summary.notes {
        let variant =
            if run.variant.is_empty() { String::new() } else { format!("{}: ", run.variant) };
        terminal::tell(&format!("note: {}: {variant}{note}", run.summary.backend));
    }
}
