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
mod output;
mod playground;
mod plot;
mod progress;
mod reproduce;
mod run;
mod sweep;
mod terminal;
mod theory;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::cli::{Cli, Command};
use crate::output::Printer;

fn main() -> ExitCode {
    let cli = match command_line() {
        Ok(line) => read(line),
        Err(failure) => {
            failure.tell();
            return ExitCode::from(failure.status);
        }
    };
    let mut printer = Printer::new();
    let result = match cli.command {
        Command::Run(arguments) => run::run(&arguments, &mut printer),
        Command::Plot(arguments) => plot::plot(&arguments),
        Command::Playground(arguments) => playground::write(&arguments),
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
        Command::Serve(arguments) => kernel::serve::serve(&arguments, &mut printer),
        #[cfg(target_os = "linux")]
        Command::Doctor(arguments) => kernel::doctor::doctor(&arguments, &mut printer),
        Command::Completions { shell } => printer.text(&cli::generated::completions(shell)),
        Command::Man { directory } => cli::generated::manual(&directory),
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

/// The command that a line is, or the end of the program with clap's message.
fn read(line: Vec<std::ffi::OsString>) -> Cli {
    let matches = taking_negative_numbers(Cli::command()).get_matches_from(line);
    Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit())
}

/// So that -1 is a value which the option refuses, and not an unknown option -1, for which clap's
/// advice is to write `-- -1`.
fn taking_negative_numbers(command: clap::Command) -> clap::Command {
    command
        .mut_args(|a| {
            let takes = a.get_action().takes_values();
            if takes { a.allow_negative_numbers(true) } else { a }
        })
        .mut_subcommands(taking_negative_numbers)
}

/// What was typed, with settings written as tc's, and those of files, as flags.
#[cfg(target_os = "linux")]
fn command_line() -> Result<Vec<std::ffi::OsString>, failure::Failure> {
    let line = cli::router::with_flags(std::env::args_os());
    cli::config_file::written_out(&Cli::command(), line)
}

#[cfg(not(target_os = "linux"))]
fn command_line() -> Result<Vec<std::ffi::OsString>, failure::Failure> {
    Ok(std::env::args_os().collect())
}
