//! The results of a sweep on standard output: the table or the lines of JSON.

use std::path::Path;

use serde::Serialize;
use xcp_report::SweepTable;
use xcp_report::json::Told;
use xcp_sweep::grid::Grid;
use xcp_sweep::journal::Journal;
use xcp_sweep::tables::{each, file};

use crate::failure::Failure;
use crate::interrupt;
use crate::output::{Printer, width};
use crate::terminal::tell;

/// Points shown in the table.
pub const SHOWN: u64 = 40;
/// Lines of JSON are printed when they are this long together.
const PRINTED: usize = 1 << 16;

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
    for (note, runs) in table.notes() {
        tell(&format!("note: {note} ({})", many(runs, "run")));
    }
    printer.text(&out)
}

/// A line of `--json`: what `run --json` prints, and where in the grid it is.
#[derive(Serialize)]
struct Line<'a> {
    run: u64,
    settings: serde_json::Map<String, serde_json::Value>,
    #[serde(flatten)]
    summary: Told<'a>,
}

/// Prints a line for each run.
///
/// # Errors
/// Standard output's.
pub fn print_json(grid: &Grid, journal: &Journal, printer: &mut Printer) -> Result<(), Failure> {
    let mut lines = String::new();
    // What is wrong with standard output is not the sweep's business.
    let mut told = Ok(());
    each(grid, journal, &interrupt::asked, |_, entry| {
        let columns = grid.columns().into_iter().zip(&entry.settings);
        let settings = columns.map(|((name, _), value)| (name.to_owned(), value.json())).collect();
        let line = Line { run: entry.run, settings, summary: entry.summary.into() };
        lines.push_str(&serde_json::to_string(&line).map_err(xcp_sweep::Error::refused)?);
        lines.push('\n');
        if lines.len() >= PRINTED && told.is_ok() {
            told = printer.text(&std::mem::take(&mut lines));
        }
        Ok(())
    })?;
    told?;
    printer.text(&lines)
}
