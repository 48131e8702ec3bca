//! From the journal of a sweep to its results: the Parquet files, the table or the lines of JSON.
//! Reads run by run, in the order of the grid.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use xcp_report::SweepTable;
use xcp_report::files::WriteError;
use xcp_report::sweep::{Entry, TABLES, Tables};
use xcp_scenario::run::Summary;

use crate::failure::{Failure, INTERRUPTED};
use crate::interrupt;
use crate::output::{Printer, width};
use crate::sweep::grid::Grid;
use crate::sweep::journal::Journal;
use crate::sweep::work::Done;

/// Points shown in the table.
const SHOWN: u64 = 40;
/// Lines of JSON are printed when they are this long together.
const PRINTED: usize = 1 << 16;

/// Where a table goes.
pub fn file(dir: &Path, table: &str) -> PathBuf {
    dir.join(format!("{table}.parquet"))
}

/// A file under a name of its own until it is complete. Of the same name every time: what a kill
/// leaves is written over by the next attempt.
struct Temporary {
    file: File,
    path: PathBuf,
    target: PathBuf,
}

impl Temporary {
    fn new(dir: &Path, table: &str) -> Result<Self, WriteError> {
        let target = file(dir, table);
        let path = dir.join(format!(".{table}.parquet.part"));
        let file =
            File::create(&path).map_err(|source| WriteError { path: target.clone(), source })?;
        Ok(Self { file, path, target })
    }

    fn put(self) -> Result<(), WriteError> {
        let put = self.file.sync_all().and_then(|()| fs::rename(&self.path, &self.target));
        put.map_err(|source| WriteError { path: self.target.clone(), source })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Given up, or renamed away already.
        let _ = fs::remove_file(&self.path);
    }
}

/// Hands out every run of a journal with its place in the grid.
fn each(
    grid: &Grid,
    journal: &Journal,
    mut tell: impl FnMut(u64, &Entry<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    journal.replay(|run, text| {
        if interrupt::asked() {
            return Err(Failure::with_status(
                "interrupted while the results were written",
                INTERRUPTED,
            ));
        }
        let done: Done = serde_json::from_str(text)
            .map_err(|e| Failure::new(format!("run {run} in the journal cannot be read: {e}")))?;
        let place = grid.place(run);
        let entry = Entry {
            run,
            settings: grid.values(place.combination),
            completed: done.completed,
            summary: &done.summary,
        };
        tell(place.point, &entry)
    })
}

/// Writes the Parquet files; they appear one after another, each complete. Gives the table for the
/// terminal.
///
/// # Errors
/// What cannot be written, or that Ctrl-C was pressed; nothing is lost then.
pub fn write(grid: &Grid, journal: &Journal, dir: &Path) -> Result<SweepTable, Failure> {
    let mut temporaries = Vec::new();
    for table in TABLES {
        temporaries.push(Temporary::new(dir, table)?);
    }
    let [runs, links, flows, groups] = temporaries.as_slice() else {
        unreachable!("there are four tables")
    };
    // Which of the four was being written is not known here; they are in one place.
    let fail =
        |source: io::Error| Failure::from(WriteError { path: dir.join("*.parquet"), source });
    let files = [&runs.file, &links.file, &flows.file, &groups.file];
    let mut tables = Tables::new(&grid.columns(), journal.metadata(), files).map_err(fail)?;
    let swept: Vec<usize> =
        (0..grid.axes.len()).filter(|&i| grid.axes[i].written.len() > 1).collect();
    let variants = grid.variants.len() > 1;
    let mut headings: Vec<String> = swept.iter().map(|&i| grid.axes[i].path.clone()).collect();
    headings.extend(variants.then(|| "variant".to_owned()));
    let mut table = SweepTable::new(headings, SHOWN as usize);
    each(grid, journal, |point, entry| {
        let labels = || {
            let choice = grid.choice(grid.place(entry.run).combination);
            let mut labels: Vec<String> =
                swept.iter().map(|&i| grid.axes[i].written[choice[i]].clone()).collect();
            labels.extend(variants.then(|| entry.summary.variant.clone()));
            labels
        };
        table.add(point, labels, entry.summary);
        tables.add(entry).map_err(fail)
    })?;
    tables.finish().map_err(fail)?;
    for temporary in temporaries {
        temporary.put()?;
    }
    File::open(dir)
        .and_then(|d| d.sync_all())
        .map_err(|source| WriteError { path: dir.to_owned(), source })?;
    Ok(table)
}

/// Prints the table, and what it is of.
///
/// # Errors
/// Standard output's.
pub fn print_table(
    grid: &Grid,
    title: &str,
    table: &SweepTable,
    dir: &Path,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let many = |n: u64, one: &str| xcp_report::human::plural(n, one);
    let mut out = format!(
        "{title}\n{}: {} x {}",
        many(grid.runs(), "run"),
        many(grid.points(), "point"),
        many(grid.seeds(), "seed")
    );
    for axis in grid.axes.iter().filter(|a| a.written.len() == 1) {
        out.push_str(&format!(", {}={}", axis.path, axis.written[0]));
    }
    out.push_str("\n\n");
    out.push_str(&table.render(width()));
    if grid.points() > SHOWN {
        let rest = grid.points() - SHOWN;
        out.push_str(&format!(
            "... and {}; all are in {}\n",
            many(rest, "more point"),
            file(dir, "links").display()
        ));
    }
    printer.text(&out)
}

/// A line of `--json`: what `run --json` prints, and where in the grid it is.
#[derive(Serialize)]
struct Line<'a> {
    run: u64,
    settings: serde_json::Map<String, serde_json::Value>,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// Prints a line for each run.
///
/// # Errors
/// Standard output's.
pub fn print_json(grid: &Grid, journal: &Journal, printer: &mut Printer) -> Result<(), Failure> {
    let mut lines = String::new();
    each(grid, journal, |_, entry| {
        let columns = grid.columns().into_iter().zip(&entry.settings);
        let settings = columns.map(|((name, _), value)| (name.to_owned(), value.json())).collect();
        let line = Line { run: entry.run, settings, summary: entry.summary };
        lines.push_str(&serde_json::to_string(&line).map_err(Failure::new)?);
        lines.push('\n');
        if lines.len() < PRINTED {
            return Ok(());
        }
        printer.text(&std::mem::take(&mut lines))
    })?;
    printer.text(&lines)
}
