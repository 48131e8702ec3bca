//! Puts the parts of all shards together into the tables that one machine would have written, byte
//! for byte: the same rows in the same order through the same writer. Reads part by part.

use std::path::Path;

use xcp_report::sweep::TABLES;

use crate::compute::{Failed, marker, part};
use crate::directory::read_marker;
use crate::error::Error;
use crate::manifest::Manifest;
use crate::sweep::Sweep;
use crate::tables::{unwritten, write_with};

/// Shards named in a message.
const NAMED: usize = 20;

/// Which shards are not done, in words.
fn missing(missing: &[u64], shards: u64) -> Error {
    let some: Vec<String> =
        missing.iter().take(NAMED).map(|shard| (shard + 1).to_string()).collect();
    let more = if missing.len() > NAMED { ", ..." } else { "" };
    Error::refused(format!(
        "{} of {shards} shards {} not done: {}{more}; run them, and then merge",
        missing.len(),
        if missing.len() == 1 { "is" } else { "are" },
        some.join(", ")
    ))
}

/// Writes the tables into a directory. `has` says whether a name is there, `fetch` gives what it
/// holds. Returns the runs that could not be done; unless `without_failed` they are refused.
///
/// # Errors
/// A shard that is missing, a part that is not what its marker says, a run that failed, or what
/// cannot be written.
pub fn merge(
    manifest: &Manifest,
    dir: &Path,
    without_failed: bool,
    has: &mut dyn FnMut(&str) -> Result<bool, Error>,
    fetch: &mut dyn FnMut(&str) -> Result<Vec<u8>, Error>,
) -> Result<Vec<Failed>, Error> {
    let mut absent = Vec::new();
    for shard in 0..manifest.shards() {
        if !has(&marker(shard))? {
            absent.push(shard);
        }
    }
    if !absent.is_empty() {
        return Err(missing(&absent, manifest.shards()));
    }
    let mut failed = Vec::new();
    let mut markers = Vec::new();
    for shard in 0..manifest.shards() {
        let mut read = read_marker(manifest, shard, &fetch(&marker(shard))?)?;
        failed.append(&mut read.failed);
        markers.push(read.parts);
    }
    if let (Some(Failed { run, error }), false) = (failed.first(), without_failed) {
        return Err(Error::refused(format!(
            "{} of {} runs failed, run {run} first: {error}",
            failed.len(),
            manifest.sweep.runs
        )));
    }
    // The tables are the same whatever build puts them together; what they say is the sweep's.
    let sweep = Sweep::described(&manifest.sweep)?;
    write_with(dir, &sweep.grid.columns(), &manifest.sweep.metadata(), |tables| {
        for (shard, parts) in (0..).zip(&markers) {
            for (table, &(length, sum)) in parts.iter().enumerate().take(TABLES.len()) {
                let name = part(TABLES[table], shard);
                let bytes = fetch(&name)?;
                if (bytes.len(), crc32fast::hash(&bytes)) != (length, sum) {
                    return Err(Error::refused(format!(
                        "{name} does not match {}; delete that marker, and run the shard again",
                        marker(shard)
                    )));
                }
                tables.append(table, bytes).map_err(|source| unwritten(dir, source))?;
            }
        }
        Ok(())
    })?;
    Ok(failed)
}
