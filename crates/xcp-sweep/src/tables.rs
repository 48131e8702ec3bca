//! The tables of a sweep as files that are there whole or not at all, and how they are made from a
//! journal: run by run, in the order of the grid.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use xcp_report::SweepTable;
use xcp_report::files::WriteError;
use xcp_report::parquet::{ColumnKind, Said};
use xcp_report::sweep::{Entry, TABLES, Tables};

use crate::error::Error;
use crate::grid::Grid;
use crate::journal::Journal;
use crate::work::{Asked, Done};

/// Where a table goes.
#[must_use]
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

/// Writes the Parquet files of a directory; they appear one after another, each complete, when
/// `fill` has filled them.
///
/// # Errors
/// What cannot be written, and those of `fill`; nothing appears then.
pub fn write_with(
    dir: &Path,
    columns: &[(&str, ColumnKind)],
    metadata: &[Said],
    fill: impl FnOnce(&mut Tables<&File>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut temporaries = Vec::new();
    for table in TABLES {
        temporaries.push(Temporary::new(dir, table)?);
    }
    let [runs, links, flows, groups] = temporaries.as_slice() else {
        unreachable!("there are four tables")
    };
    let files = [&runs.file, &links.file, &flows.file, &groups.file];
    let mut tables =
        Tables::new(columns, metadata, files).map_err(|source| unwritten(dir, source))?;
    fill(&mut tables)?;
    tables.finish().map_err(|source| unwritten(dir, source))?;
    for temporary in temporaries {
        temporary.put()?;
    }
    File::open(dir)
        .and_then(|d| d.sync_all())
        .map_err(|source| WriteError { path: dir.to_owned(), source })?;
    Ok(())
}

/// Which of the four was being written is not known; they are in one place.
pub(crate) fn unwritten(dir: &Path, source: io::Error) -> Error {
    WriteError { path: dir.join("*.parquet"), source }.into()
}

/// Hands out every run of a journal with its place in the grid.
///
/// # Errors
/// Those of `tell`, a journal that cannot be read, or that somebody asked to end.
pub fn each(
    grid: &Grid,
    journal: &Journal,
    asked: Asked<'_>,
    mut tell: impl FnMut(u64, &Entry<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    journal.replay(|run, text| {
        if asked() {
            return Err(Error::interrupted("interrupted while the results were written"));
        }
        let done: Done = serde_json::from_str(text)
            .map_err(|e| Error::refused(format!("run {run} in the journal cannot be read: {e}")))?;
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

/// Writes the tables of a journal whose runs are all done; gives the table for the terminal, of at
/// most so many points.
///
/// # Errors
/// What cannot be written, or that somebody asked to end; nothing is lost then.
pub fn write(
    grid: &Grid,
    journal: &Journal,
    dir: &Path,
    shown: usize,
    asked: Asked<'_>,
) -> Result<SweepTable, Error> {
    let swept: Vec<usize> =
        (0..grid.axes.len()).filter(|&i| grid.axes[i].written.len() > 1).collect();
    let variants = grid.variants.len() > 1;
    let mut headings: Vec<String> = swept.iter().map(|&i| grid.axes[i].path.clone()).collect();
    headings.extend(variants.then(|| "variant".to_owned()));
    let mut table = SweepTable::new(headings, shown);
    write_with(dir, &grid.columns(), journal.metadata(), |tables| {
        each(grid, journal, asked, |point, entry| {
            let labels = || {
                let choice = grid.choice(grid.place(entry.run).combination);
                let mut labels: Vec<String> =
                    swept.iter().map(|&i| grid.axes[i].written[choice[i]].clone()).collect();
                labels.extend(variants.then(|| entry.summary.variant.clone()));
                labels
            };
            table.add(point, labels, entry.summary);
            tables.add(entry).map_err(|source| unwritten(dir, source))
        })
    })?;
    Ok(table)
}
