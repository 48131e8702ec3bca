//! The command line: arguments in, exit status out. What the commands do is in the modules; what
//! runs, files and reports are is in the other crates.

mod backend;
mod batch;
mod cli;
mod experiments;
mod failure;
mod interrupt;
#[cfg(target_os = "linux")]
mod kernel;
mod memory;
mod output;
mod plot;
mod progress;
mod references;
mod reproduce;
mod run;
mod sweep;
mod terminal;
mod theory;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};
use crate::output::Printer;

fn main() -> ExitCode {
    let cli = Cli::parse_from(cli::router::with_flags(std::env::args_os()));
    let mut printer = Printer::new();
    let result = match cli.command {
        Command::Run(arguments) => run::run(&arguments, &mut printer),
        Command::Plot(arguments) => plot::plot(&arguments),
        Command::Sweep(arguments) => sweep::sweep(&arguments, &mut printer),
        Command::Theory(arguments) => theory::theory(&arguments, &mut printer),
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments, &mut printer),
        #[cfg(target_os = "linux")]
        Command::Lab { command } => kernel::lab::lab(&command, &mut printer),
        #[cfg(target_os = "linux")]
        Command::Router(arguments) => kernel::router::router(&arguments, &mut printer),
        #[cfg(target_os = "linux")]
        Command::Endpoint(arguments) => kernel::endpoint::endpoint(&arguments, &mut printer),
        #[cfg(target_os = "linux")]
        Command::Pep(arguments) => kernel::pep::pep(&arguments, &mut printer),
        #[cfg(target_os = "linux")]
        Command::Doctor(arguments) => kernel::doctor::doctor(&arguments, &mut printer),
        Command::Schema => serde_json::to_string_pretty(&xcp_scenario::schema())
            .map_err(|e| failure::Failure::new(e.to_string()))
            .and_then(|text| printer.line(&text)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            ExitCode::from(failure.status)
        }
    }
}
