//! `make mutants`: whether the claims of the experiments would say so if the law or a sender were
//! wrong. Each mutant of `crates/xcp-engine/src/mutants/list.rs` runs what `xcpnet reproduce
//! --quick` runs of the papers, and each claim that holds without it and fails with it has noticed.
//! And `make robust-parts`: what each part and constant of the robust law is for (`parts`).
//!
//! `figures` reads, runs and judges; `record` keeps what came of it, by `digest`s; `table` says it;
//! `files` writes.

#[cfg(any(feature = "mutants", test))]
mod digest;
#[cfg(feature = "mutants")]
mod figures;
#[cfg(feature = "mutants")]
mod files;
#[cfg(feature = "mutants")]
mod parts;
#[cfg(feature = "mutants")]
mod record;
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
    record: Option<std::path::PathBuf>,
    again: bool,
    write: Option<std::path::PathBuf>,
    numbers: bool,
    parts: bool,
    words: Vec<String>,
}

#[cfg(feature = "mutants")]
const USAGE: &str = "xcp-mutants [--experiments DIR] [--record FILE [--again]] [--write PAGE] \
    [--numbers] [MUTANT|PAPER|FIGURE|PAPER/FIGURE]...
xcp-mutants --parts [--experiments DIR] [--record FILE [--again]] [--write PAGE] [PART|ROW]...
  --experiments DIR  where PAPER/FIGURE.toml are (default: experiments)
  --record FILE      runs only what FILE does not know yet, and adds it there, run by run
  --again            runs what is named although FILE knows it
  --write PAGE       writes the tables between the page's marks, else to standard output
  --numbers          also a line for each claim without and with each mutant, to standard error:
                     * if it noticed, and what it measured
  --parts            the robust law without a part or with another constant instead of mutants, in
                     the rows of the tables of failures
  MUTANT ...         only these mutants, or only these figures (default: all); none: runs nothing";

#[cfg(feature = "mutants")]
fn arguments() -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value =
            || words.next().map(Into::into).ok_or(format!("{word} takes a value\n{USAGE}"));
        match word.as_str() {
            "--experiments" => arguments.experiments = Some(value()?),
            "--record" => arguments.record = Some(value()?),
            "--again" => arguments.again = true,
            "--write" => arguments.write = Some(value()?),
            "--numbers" => arguments.numbers = true,
            "--parts" => arguments.parts = true,
            "--help" | "-h" => return Ok(None),
            other if other.starts_with('-') => {
                return Err(format!("{other} is not known\n{USAGE}"));
            }
            other => arguments.words.push(other.into()),
        }
    }
    Ok(Some(arguments))
}

/// Whether everything is noticed as it should be.
#[cfg(feature = "mutants")]
fn run() -> Result<bool, String> {
    use std::sync::Mutex;

    use record::Record;
    use xcp_engine::mutants::MUTANTS;

    let Some(arguments) = arguments()? else {
        println!("{USAGE}");
        return Ok(true);
    };
    let dir = arguments.experiments.clone().unwrap_or_else(|| "experiments".into());
    if arguments.parts {
        parts::run(&parts::Wanted {
            experiments: &dir,
            record: arguments.record.as_deref(),
            again: arguments.again,
            page: arguments.write.as_deref(),
            words: &arguments.words,
        })?;
        return Ok(true);
    }
    let figures = figures::read(&dir)?;
    let record = match &arguments.record {
        Some(file) => Record::read(file, &figures)?,
        None => Record::new(&figures),
    };
    let names = |word: &str| MUTANTS.iter().any(|m| m.name == word);
    let (mutants, files): (Vec<&String>, Vec<&String>) =
        arguments.words.iter().filter(|w| *w != "none").partition(|w| names(w));
    if let Some(word) = files.iter().find(|w| !figures.iter().any(|f| f.is_called(w))) {
        return Err(format!("{word}: neither a mutant nor a figure of {}", dir.display()));
    }
    let nothing = arguments.words.iter().any(|w| w == "none");
    let wanted: Vec<Vec<usize>> = figures
        .iter()
        .zip(&record.figures)
        .map(|(figure, known)| {
            if nothing || !files.is_empty() && !files.iter().any(|w| figure.is_called(w)) {
                return Vec::new();
            }
            let named =
                |m: usize| mutants.is_empty() || mutants.iter().any(|w| **w == MUTANTS[m].name);
            let missing = |m: usize| arguments.again || known[m].is_none();
            (0..MUTANTS.len()).filter(|&m| named(m) && missing(m)).collect()
        })
        .collect();
    let record = Mutex::new(record);
    figures::run(&figures, &wanted, &|judged| {
        let outside = judged.verdicts.iter().enumerate().filter(|(_, v)| !v.inside);
        let noticed = outside.map(|(number, _)| number).collect();
        if arguments.numbers {
            table::numbers(&figures[judged.figure], judged);
        }
        let Some(mutant) = judged.mutant else { return Ok(()) };
        record.lock().expect("no panic").note(&figures, judged.figure, mutant, noticed)
    })?;
    let record = record.into_inner().expect("no panic");
    let text = table::tables(&figures, &record);
    match &arguments.write {
        Some(page) => table::write(page, &figures, &text)?,
        None => print!("{text}"),
    }
    // What is wrong with a part of the mutants or figures is wrong with nothing.
    Ok(!arguments.words.is_empty() || (0..MUTANTS.len()).all(|m| table::suffices(&record, m)))
}
