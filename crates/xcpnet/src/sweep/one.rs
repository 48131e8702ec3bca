//! A sweep on one machine: what is done goes into the journal, from which the same command goes on
//! wherever it was killed; when nothing is missing the tables are made from it.

use std::fs;
use std::io;

use xcp_report::files::WriteError;
use xcp_report::sweep::TABLES;
use xcp_sweep::journal::{self, Journal, record};
use xcp_sweep::manifest;
use xcp_sweep::tables::{self, file};
use xcp_sweep::work::{Done, Sink, Tally, work};
use xcp_sweep::{Error, Sweep};

use crate::cli::SweepArguments;
use crate::failure::{Failure, INTERRUPTED};
use crate::output::{Printer, command};
use crate::sweep::bar::Bar;
use crate::sweep::finish::{SHOWN, print_json, print_table};
use crate::terminal::tell;
use crate::{batch, interrupt};

/// The journal, and the bar that shows how far it is.
struct Kept<'a> {
    journal: &'a mut Journal,
    bar: Bar,
}

impl Sink for Kept<'_> {
    type Record = String;

    fn record(run: u64, done: Done) -> Result<String, Error> {
        record(run, &done).map_err(Error::refused)
    }

    fn keep(&mut self, run: u64, record: String) -> Result<(), Error> {
        self.journal.append(run, &record)
    }

    fn tick(&mut self, tally: &Tally) -> Result<(), Error> {
        self.bar.show(self.journal.done(), tally);
        Ok(())
    }
}

/// Runs what is missing of a sweep.
pub fn one(
    arguments: &SweepArguments,
    sweep: &Sweep,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let dir = arguments.out();
    let grid = &sweep.grid;
    let scenarios = sweep.scenarios();
    let jobs = batch::jobs(arguments.jobs);
    scenarios.check(jobs)?;
    let mut journal = open(arguments, sweep)?;
    if journal.is_complete() {
        let missing: Vec<&str> =
            TABLES.into_iter().filter(|table| !file(dir, table).is_file()).collect();
        if let [table, ..] = missing.as_slice() {
            let path = file(dir, table);
            return Err(Failure::new(format!(
                "this sweep is complete, but {} is missing; run it again with --restart",
                path.display()
            )));
        }
        tell(&format!("this sweep is complete: {} runs in {}", grid.runs(), dir.display()));
        return Ok(());
    }
    if journal.done() > 0 {
        tell(&format!("resuming: {} of {} runs are done", journal.done(), grid.runs()));
    }
    interrupt::listen()?;
    let kept = |failure: Failure, journal: &Journal| {
        let status = failure.status;
        let (done, all) = (journal.done(), grid.runs());
        let what = format!(
            "{failure}\n{done} of {all} runs are done and kept in {}; to resume: {}",
            dir.display(),
            again()
        );
        Failure::with_status(what, status)
    };
    fill(sweep, jobs, &mut journal).map_err(|error| kept(error.into(), &journal))?;
    if journal.done() < grid.runs() {
        return Err(kept(Failure::with_status("interrupted", INTERRUPTED), &journal));
    }
    let table = tables::write(grid, &journal, dir, SHOWN as usize, &interrupt::asked)
        .map_err(|error| kept(error.into(), &journal))?;
    if arguments.json {
        print_json(grid, &journal, printer).map_err(|failure| kept(failure, &journal))?;
    } else {
        print_table(grid, &sweep.title(), &table, dir, printer)?;
    }
    journal.complete()?;
    tell(&written(arguments));
    Ok(())
}

/// Does the runs that are missing in a journal.
fn fill(sweep: &Sweep, jobs: usize, journal: &mut Journal) -> Result<(), Error> {
    let (done, each_done) = (journal.done(), journal.each_done());
    let grid = &sweep.grid;
    let mut kept = Kept { journal, bar: Bar::new(grid.runs(), done) };
    let scenarios = sweep.scenarios();
    let all = 0..grid.runs();
    let outcome = work(grid, &scenarios, all, each_done, jobs, &interrupt::asked, &mut kept);
    kept.bar.clear();
    journal.sync()?;
    outcome
}

/// Which files there are now.
pub fn written(arguments: &SweepArguments) -> String {
    let names = TABLES.map(|table| file(arguments.out(), table).display().to_string());
    format!("wrote {}", names.join(", "))
}

/// Opens the directory's journal.
fn open(arguments: &SweepArguments, sweep: &Sweep) -> Result<Journal, Failure> {
    let dir = arguments.out();
    let fail = |source| WriteError { path: dir.to_owned(), source };
    if dir.exists() && !dir.is_dir() {
        return Err(fail(io::Error::from(io::ErrorKind::NotADirectory)).into());
    }
    if dir.join(manifest::NAME).exists() {
        return Err(Failure::new(format!(
            "{} holds a sweep in shards; continue with --shard and --merge, or choose another \
             directory",
            dir.display()
        )));
    }
    fs::create_dir_all(dir).map_err(fail)?;
    if !arguments.restart && !dir.join(journal::NAME).exists() {
        // Results of something else would be written over.
        if let Some(there) =
            TABLES.map(|table| file(dir, table)).into_iter().find(|path| path.exists())
        {
            let what = format!(
                "{} already exists and does not belong to this sweep; choose another directory, \
                 or use --restart to replace it",
                there.display()
            );
            return Err(Failure::new(what));
        }
    }
    let journal = Journal::open(dir, &sweep.description, arguments.restart)?;
    if arguments.restart {
        // Nobody shall take the old results for the new ones.
        for path in TABLES.map(|table| file(dir, table)).into_iter().filter(|path| path.exists()) {
            fs::remove_file(&path).map_err(|source| WriteError { path, source })?;
        }
    }
    Ok(journal)
}

/// The command that goes on with this sweep: the same, but that it does not start over.
pub fn again() -> String {
    command().split(' ').filter(|word| *word != "--restart").collect::<Vec<_>>().join(" ")
}
