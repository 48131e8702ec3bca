//! `make mutants`: whether the claims of the experiments would say so if the law or a sender were
//! wrong. Each mutant of `crates/xcp-engine/src/mutants/list.rs` runs what `xcpnet reproduce
//! --quick` runs of the papers, and each claim that holds without it and fails with it has noticed.
//!
//! [`figures`] reads, runs and judges; [`table`] says what came of it.

#[cfg(feature = "mutants")]
mod figures;
#[cfg(feature = "mutants")]
mod table;

use std::process::ExitCode;

#[cfg(not(feature = "mutants"))]
fn main() -> ExitCode {
    eprintln!("xcp-mutants: built without mutants; `make mutants` builds it with them and runs it");
    ExitCode::FAILURE
}

#[cfg(feature = "mutants")]
fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("xcp-mutants: {error}");
            ExitCode::from(2)
        }
    }
}

/// What is asked for.
#[cfg(feature = "mutants")]
#[derive(Debug, Default)]
struct Arguments {
    experiments: Option<std::path::PathBuf>,
    write: Option<std::path::PathBuf>,
    details: bool,
    numbers: bool,
    words: Vec<String>,
}

#[cfg(feature = "mutants")]
const USAGE: &str = "xcp-mutants [--experiments DIR] [--write PAGE] [--details | --numbers] \
    [MUTANT|PAPER|FIGURE|PAPER/FIGURE]...
  --experiments DIR  where PAPER/FIGURE.toml are (default: experiments)
  --write PAGE       writes the tables between the page's marks, else to standard output
  --details          also a line for each claim that notices a mutant, to standard error
  --numbers          and one for each claim that does not: what it measured all the same
  MUTANT ...         only these mutants, or only these figures (default: all)";

/// Whether everything is noticed as it should be.
#[cfg(feature = "mutants")]
fn run() -> Result<bool, String> {
    let mut arguments = Arguments::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value =
            || words.next().map(Into::into).ok_or(format!("{word} takes a value\n{USAGE}"));
        match word.as_str() {
            "--experiments" => arguments.experiments = Some(value()?),
            "--write" => arguments.write = Some(value()?),
            "--details" => arguments.details = true,
            "--numbers" => arguments.numbers = true,
            "--help" | "-h" => {
                println!("{USAGE}");
                return Ok(true);
            }
            other if other.starts_with('-') => {
                return Err(format!("{other} is not known\n{USAGE}"));
            }
            other => arguments.words.push(other.into()),
        }
    }
    let is_mutant = |word: &&String| xcp_engine::mutants::MUTANTS.iter().any(|m| m.name == **word);
    let (mutants, wanted): (Vec<&String>, Vec<&String>) =
        arguments.words.iter().partition(is_mutant);
    let dir = arguments.experiments.clone().unwrap_or_else(|| "experiments".into());
    let figures = figures::read(&dir, &wanted)?;
    let noticed = figures::run(&figures, &mutants)?;
    if arguments.details || arguments.numbers {
        noticed.iter().for_each(|one| table::details(one, &figures, arguments.numbers));
    }
    let text = table::tables(&figures, &noticed);
    match &arguments.write {
        Some(page) => table::write(page, &text)?,
        None => print!("{text}"),
    }
    // What is wrong with a part of the mutants or figures is wrong with nothing.
    Ok(!arguments.words.is_empty() || noticed.iter().all(table::suffices))
}
