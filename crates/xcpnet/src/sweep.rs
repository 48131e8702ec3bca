//! `xcpnet sweep`: a scenario over a grid of settings, variants and seeds.
//!
//! Command line → [`grid`] → [`scenarios`] → [`work`] → [`journal`] → [`finish`]: threads simulate
//! and append to the journal, and when nothing is missing the results are made from it, in the
//! order of the grid. So they do not depend on the number of threads, on what finished first, or on
//! how often the sweep was interrupted.

mod bar;
mod finish;
mod grid;
mod journal;
mod lists;
mod scenarios;
mod work;

use std::fs::{self, File};
use std::hash::Hasher as _;
use std::io::{self, Read as _};
use std::path::Path;

use xcp_report::files::WriteError;
use xcp_report::sweep::TABLES;
use xcp_scenario::read_text;

use crate::cli::SweepArguments;
use crate::failure::{Failure, INTERRUPTED};
use crate::output::{Printer, command};
use crate::run::chosen_variants;
use crate::sweep::grid::Grid;
use crate::sweep::journal::{Description, Journal};
use crate::sweep::lists::Seeds;
use crate::sweep::scenarios::Scenarios;
use crate::terminal::tell;
use crate::{batch, interrupt};

/// Runs what was asked for, or what is missing of it.
pub fn sweep(arguments: &SweepArguments, printer: &mut Printer) -> Result<(), Failure> {
    let dir = arguments.out.as_path();
    let text = read_text(&arguments.file)?;
    let grid = grid_of(arguments, &text)?;
    let scenarios = Scenarios::new(&arguments.file, &text, &grid);
    let jobs = batch::jobs(arguments.jobs);
    scenarios.check(jobs)?;
    let mut journal = open(arguments, &grid, &text)?;
    if journal.is_complete() {
        let missing: Vec<&str> =
            TABLES.into_iter().filter(|table| !finish::file(dir, table).is_file()).collect();
        if let [table, ..] = missing.as_slice() {
            let path = finish::file(dir, table);
            return Err(Failure::new(format!(
                "this sweep is complete, but {} is gone; make it again with --restart",
                path.display()
            )));
        }
        tell(&format!("this sweep is complete: {} runs in {}", grid.runs(), dir.display()));
        return Ok(());
    }
    if journal.done() > 0 {
        tell(&format!("going on: {} of {} runs are done", journal.done(), grid.runs()));
    }
    interrupt::listen()?;
    let kept = |failure: Failure, journal: &Journal| {
        let status = failure.status;
        let (done, all) = (journal.done(), grid.runs());
        let what = format!(
            "{failure}\n{done} of {all} runs are done and kept in {}; to go on: {}",
            dir.display(),
            again()
        );
        Failure::with_status(what, status)
    };
    work::work(&grid, &scenarios, &mut journal, jobs).map_err(|failure| kept(failure, &journal))?;
    if journal.done() < grid.runs() {
        return Err(kept(Failure::with_status("interrupted", INTERRUPTED), &journal));
    }
    let table = finish::write(&grid, &journal, dir).map_err(|failure| kept(failure, &journal))?;
    if arguments.json {
        finish::print_json(&grid, &journal, printer).map_err(|failure| kept(failure, &journal))?;
    } else {
        finish::print_table(&grid, &title(&text, &arguments.file), &table, dir, printer)?;
    }
    journal.complete()?;
    tell(&format!(
        "wrote {}",
        TABLES.map(|table| finish::file(dir, table).display().to_string()).join(", ")
    ));
    Ok(())
}

fn grid_of(arguments: &SweepArguments, text: &str) -> Result<Grid, Failure> {
    let axes = grid::axes(&arguments.settings).map_err(Failure::new)?;
    let seeds = arguments
        .seeds
        .as_deref()
        .map(Seeds::parse)
        .transpose()
        .map_err(|e| Failure::new(format!("--seeds: {e}")))?;
    let mut variants = chosen_variants(&arguments.file, text, &arguments.variants)?;
    if variants.is_empty() {
        // The text is not even TOML; reading it will say so.
        variants.push(String::new());
    }
    Grid::new(axes, variants, seeds).map_err(Failure::new)
}

/// Opens the directory's journal.
fn open(arguments: &SweepArguments, grid: &Grid, text: &str) -> Result<Journal, Failure> {
    let dir = arguments.out.as_path();
    let description = Description {
        program: format!("xcpnet {}", env!("CARGO_PKG_VERSION")),
        build: build(),
        name: stem(&arguments.file),
        settings: grid.axes.iter().map(|axis| (axis.path.clone(), axis.written.clone())).collect(),
        variants: grid.variants.clone(),
        seeds: grid.seeds.as_ref().map(Seeds::to_string),
        runs: grid.runs(),
        scenario: text.to_owned(),
    };
    let fail = |source| WriteError { path: dir.to_owned(), source };
    if dir.exists() && !dir.is_dir() {
        return Err(fail(io::Error::from(io::ErrorKind::NotADirectory)).into());
    }
    fs::create_dir_all(dir).map_err(fail)?;
    if !arguments.restart && !dir.join(journal::NAME).exists() {
        // Results of something else would be written over.
        if let Some(there) =
            TABLES.map(|table| finish::file(dir, table)).into_iter().find(|path| path.exists())
        {
            let what = format!(
                "{} is there already, and not of this sweep; choose another directory, or \
                    --restart to replace it",
                there.display()
            );
            return Err(Failure::new(what));
        }
    }
    let journal = Journal::open(dir, &description, arguments.restart)?;
    if arguments.restart {
        // Nobody shall take the old results for the new ones.
        for path in
            TABLES.map(|table| finish::file(dir, table)).into_iter().filter(|path| path.exists())
        {
            fs::remove_file(&path).map_err(|source| WriteError { path, source })?;
        }
    }
    Ok(journal)
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The scenario's title; what is shown above the table.
fn title(text: &str, path: &Path) -> String {
    let overrides = xcp_scenario::Overrides::none();
    let loaded = xcp_scenario::load(path, text, &overrides).ok();
    loaded
        .and_then(|list| list.into_iter().next())
        .map_or_else(|| stem(path), |scenario| scenario.title)
}

/// The command that goes on with this sweep: the same, but that it does not start over.
fn again() -> String {
    command().split(' ').filter(|word| *word != "--restart").collect::<Vec<_>>().join(" ")
}

/// Tells builds of one version apart by the program's own bytes: a sweep must not be half by one
/// and half by another.
fn build() -> String {
    let hash = || {
        let mut file = File::open("/proc/self/exe")?;
        let mut hasher = std::hash::DefaultHasher::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok::<_, std::io::Error>(format!("{:016x}", hasher.finish())),
                n => hasher.write(&buffer[..n]),
            }
        }
    };
    hash().unwrap_or_default()
}
