//! Does one shard: its parts of the tables and the marker that says it is done, as bytes. The same
//! shard is the same bytes wherever and however often it is done. Where they go is for
//! [`crate::directory`] and whoever has another store.

use serde::{Deserialize, Serialize};
use xcp_report::sweep::{Entry, TABLES, Tables};

use crate::error::Error;
use crate::manifest::Manifest;
use crate::sweep::Sweep;
use crate::work::{Asked, Done, Sink, Tally, work};

/// Something to be stored: a name with `/` in it, and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Below the sweep's directory.
    pub name: String,
    /// Content of the file.
    pub bytes: Vec<u8>,
}

/// The name of a shard's part of a table; shards count from 0.
#[must_use]
pub fn part(table: &str, shard: u64) -> String {
    format!("{table}/part-{shard:05}.parquet")
}

/// The name of a shard's marker.
#[must_use]
pub fn marker(shard: u64) -> String {
    format!("done/{shard:05}.json")
}

/// What a marker says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// Digest of the manifest.
    pub digest: String,
    /// Which shard, from 0.
    pub shard: u64,
    /// Number of its first run.
    pub first: u64,
    /// The run behind its last one.
    pub end: u64,
    /// Length and CRC-32 of the parts, in the order of the tables.
    pub parts: Vec<(usize, u32)>,
    /// Runs that could not be done, and why; they have no rows.
    pub failed: Vec<Failed>,
}

/// A run that could not be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Number of the run.
    pub run: u64,
    /// Why it failed.
    pub error: String,
}

/// A shard that is done.
#[derive(Debug, Clone)]
pub struct Shard {
    /// Its parts of the tables, to be stored before the marker.
    pub parts: Vec<Object>,
    /// Its marker, to be stored last.
    pub marker: Object,
    /// Runs that were done.
    pub runs: u64,
    /// Runs that could not be done.
    pub failed: Vec<Failed>,
}

/// Holds what comes of a shard's runs until all are done.
struct Kept<'a> {
    first: u64,
    done: Vec<Option<Done>>,
    failed: Vec<Failed>,
    keep_failed: bool,
    tick: &'a mut dyn FnMut(&Tally) -> Result<(), Error>,
}

impl Sink for Kept<'_> {
    type Record = Done;

    fn record(_: u64, done: Done) -> Result<Done, Error> {
        Ok(done)
    }

    fn keep(&mut self, run: u64, done: Done) -> Result<(), Error> {
        self.done[(run - self.first) as usize] = Some(done);
        Ok(())
    }

    fn failed(&mut self, run: u64, error: Error) -> Result<(), Error> {
        if !self.keep_failed {
            return Err(error);
        }
        self.failed.push(Failed { run, error: error.to_string() });
        Ok(())
    }

    fn tick(&mut self, tally: &Tally) -> Result<(), Error> {
        (self.tick)(tally)
    }
}

/// How a shard is done.
pub struct Manner<'a> {
    /// Runs at a time.
    pub jobs: usize,
    /// Whether a run that cannot be done is noted; else it ends the shard.
    pub keep_failed: bool,
    /// Whether somebody asked to end.
    pub asked: Asked<'a>,
}

/// Does a shard of a manifest, whose sweep this is; `tick` is called several times a second.
///
/// # Errors
/// A run that cannot be done, that somebody asked to end, or those of `tick`.
pub fn compute(
    manifest: &Manifest,
    sweep: &Sweep,
    shard: u64,
    manner: &Manner<'_>,
    tick: &mut dyn FnMut(&Tally) -> Result<(), Error>,
) -> Result<Shard, Error> {
    let runs = manifest.runs(shard)?;
    let count = (runs.end - runs.start) as usize;
    let grid = &sweep.grid;
    let mut kept = Kept {
        first: runs.start,
        done: (0..count).map(|_| None).collect(),
        failed: Vec::new(),
        keep_failed: manner.keep_failed,
        tick,
    };
    let to_do = vec![false; count];
    work(grid, &sweep.scenarios(), runs.clone(), to_do, manner.jobs, manner.asked, &mut kept)?;
    let Kept { done, mut failed, .. } = kept;
    let finished = done.iter().flatten().count();
    if finished + failed.len() < count {
        return Err(Error::interrupted("interrupted"));
    }
    failed.sort_by_key(|failed| failed.run);
    let mut metadata = manifest.sweep.metadata();
    metadata.push(("xcpnet.digest", manifest.digest.clone()));
    metadata.push(("xcpnet.runs", format!("{}..{}", runs.start, runs.end)));
    let mut bytes: [Vec<u8>; 4] = Default::default();
    // Memory is not full; nothing else can be wrong with it.
    let fail = |e: std::io::Error| Error::system(format!("shard {}: {e}", shard + 1));
    let mut tables = Tables::new(&grid.columns(), &metadata, bytes.each_mut()).map_err(fail)?;
    for (run, done) in (runs.start..).zip(&done) {
        let Some(done) = done else { continue };
        let settings = grid.values(grid.place(run).combination);
        let entry = Entry { run, settings, completed: done.completed, summary: &done.summary };
        tables.add(&entry).map_err(fail)?;
    }
    tables.finish().map_err(fail)?;
    let said = Marker {
        digest: manifest.digest.clone(),
        shard,
        first: runs.start,
        end: runs.end,
        parts: bytes.iter().map(|part| (part.len(), crc32fast::hash(part))).collect(),
        failed,
    };
    let text = serde_json::to_string(&said).map_err(Error::refused)?;
    let parts = TABLES.iter().zip(bytes);
    Ok(Shard {
        parts: parts.map(|(table, bytes)| Object { name: part(table, shard), bytes }).collect(),
        marker: Object { name: marker(shard), bytes: format!("{text}\n").into_bytes() },
        runs: finished as u64,
        failed: said.failed,
    })
}
