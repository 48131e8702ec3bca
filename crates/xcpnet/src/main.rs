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
use crate::failure::Failure;
use crate::output::Printer;

fn main() -> ExitCode {
    let mut printer = Printer::new();
    let done = command_line()
        .and_then(|line| read(line, &mut printer))
        .and_then(|cli| cli.map_or(Ok(()), |cli| carry_out(cli.command, &mut printer)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            ExitCode::from(failure.status)
        }
    }
}

fn carry_out(command: Command, printer: &mut Printer) -> Result<(), Failure> {
    match command {
        Command::Run(arguments) => run::run(&arguments, printer),
        Command::Plot(arguments) => plot::plot(&arguments),
        Command::Playground(arguments) => playground::write(&arguments),
        Command::Sweep(arguments) => sweep::sweep(&arguments, printer),
        Command::Theory(arguments) => theory::theory(&arguments, printer),
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments, printer),
        #[cfg(target_os = "linux")]
        Command::Lab { command } => kernel::lab::lab(&command, printer),
        #[cfg(target_os = "linux")]
        Command::Router(arguments) => kernel::router::router(&arguments, printer),
        #[cfg(target_os = "linux")]
        Command::Endpoint(arguments) => kernel::endpoint::endpoint(&arguments, printer),
        #[cfg(target_os = "linux")]
        Command::Pep(arguments) => kernel::pep::pep(&arguments, printer),
        #[cfg(target_os = "linux")]
        Command::Serve(arguments) => kernel::serve::serve(&arguments, printer),
        #[cfg(target_os = "linux")]
        Command::Doctor(arguments) => kernel::doctor::doctor(&arguments, printer),
        Command::Completions { shell } => printer.text(&cli::generated::completions(shell)),
        Command::Man { directory } => cli::generated::manual(&directory),
        Command::Schema => serde_json::to_string_pretty(&xcp_scenario::schema())
            .map_err(|e| Failure::new(e.to_string()))
            .and_then(|text| printer.line(&text)),
    }
}

/// The command that a line is; none if it asks for help or the version, which are then printed. A
/// line that is wrong ends the program with clap's message.
fn read(line: Vec<std::ffi::OsString>, printer: &mut Printer) -> Result<Option<Cli>, Failure> {
    let matches = taking_negative_numbers(Cli::command()).try_get_matches_from(line);
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => Ok(Some(cli)),
        Err(e) if e.use_stderr() => e.exit(),
        Err(e) => printer.text(&e.render().to_string()).map(|()| None),
    }
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
fn command_line() -> Result<Vec<std::ffi::OsString>, Failure> {
    let line = cli::router::with_flags(std::env::args_os());
    cli::config_file::written_out(&Cli::command(), line)
}

#[cfg(not(target_os = "linux"))]
fn command_line() -> Result<Vec<std::ffi::OsString>, Failure> {
    Ok(std::env::args_os().collect())
}
