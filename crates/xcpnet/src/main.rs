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

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::cli::given::Given;
use crate::cli::negative::with_negative_values;
use crate::cli::{Cli, Command};
use crate::failure::Failure;
use crate::output::Printer;

fn main() -> ExitCode {
    let mut printer = Printer::new();
    match command_line().and_then(|typed| obey(typed, &mut printer)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.tell();
            ExitCode::from(failure.status)
        }
    }
}

fn obey(typed: Typed, printer: &mut Printer) -> Result<(), Failure> {
    let Some(cli) = read(&typed, printer)? else { return Ok(()) };
    carry_out(cli.command, printer).map_err(|failure| typed.from_file.told(failure))
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

/// A command line, and what of it is from a file.
struct Typed {
    line: Vec<OsString>,
    from_file: Given,
}

impl Typed {
    /// What clap has against it, where there is more to say than clap knows.
    fn refused(&self, error: &clap::Error) -> Option<Failure> {
        #[cfg(target_os = "linux")]
        if let Some(failure) = cli::router::fixed_when_added(&self.line, error) {
            return Some(failure);
        }
        self.from_file.refused(error)
    }
}

/// The command that a line is; none if it asks for help or the version, which are then printed. A
/// line that is wrong ends the program with clap's message.
fn read(typed: &Typed, printer: &mut Printer) -> Result<Option<Cli>, Failure> {
    let matches = Cli::command().try_get_matches_from(&typed.line);
    match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => Ok(Some(cli)),
        Err(e) if e.use_stderr() => match typed.refused(&e) {
            Some(failure) => Err(failure),
            None => e.exit(),
        },
        Err(e) => printer.text(&e.render().to_string()).map(|()| None),
    }
}

/// What was typed, with settings written as tc's, and those of files, as flags.
fn command_line() -> Result<Typed, Failure> {
    let line = with_negative_values(std::env::args_os());
    #[cfg(target_os = "linux")]
    let (line, from_file) = {
        cli::pep::refuse_negative_rates(&line)?;
        let line = cli::router::with_flags(line.into_iter());
        cli::config_file::written_out(&Cli::command(), line)?
    };
    #[cfg(not(target_os = "linux"))]
    let from_file = Given::default();
    Ok(Typed { line, from_file })
}
