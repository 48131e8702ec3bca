//! A sweep's shards in a directory, which several machines may share. Every file appears whole, by
//! one rename: under a temporary name it is written and brought to the disk first. A shard's marker
//! comes last. **That a marker is there is the only state**: no lock, no journal; who is killed
//! leaves nothing but a file under a temporary name, which [`tidy`] takes away.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use xcp_report::files::{WriteError, reason};
use xcp_report::sweep::TABLES;

use crate::compute::{Marker, Object, Shard, marker};
use crate::error::Error;
use crate::journal;
use crate::manifest::{self, Manifest};
use crate::tables;

/// How the names of files in the making begin.
const UNFINISHED: &str = ".xcpnet-";

/// Writes a file so that it is there whole or not at all; with `once` only if it is not there yet.
fn put(dir: &Path, object: &Object, once: bool) -> Result<(), Error> {
    let path = dir.join(&object.name);
    let fail = |source| WriteError { path: path.clone(), source };
    let parent = path.parent().unwrap_or(dir);
    let written = || {
        fs::create_dir_all(parent)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(UNFINISHED);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(parent)?;
        file.write_all(&object.bytes)?;
        file.as_file().sync_all()?;
        if once {
            match file.persist_noclobber(&path) {
                Err(e) if e.error.kind() != io::ErrorKind::AlreadyExists => return Err(e.error),
                _ => {}
            }
        } else {
            file.persist(&path).map_err(|e| e.error)?;
        }
        // The name is to reach the disk before the marker does.
        File::open(parent)?.sync_all()
    };
    written().map_err(fail)?;
    Ok(())
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::system(format!("cannot read {}: {}", path.display(), reason(&e)))),
    }
}

/// The manifest of a directory, if it has one.
///
/// # Errors
/// It cannot be read.
pub fn manifest(dir: &Path) -> Result<Option<Manifest>, Error> {
    let Some(bytes) = read(&dir.join(manifest::NAME))? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    Manifest::read(&text).map(Some).map_err(|e| Error::refused(format!("{}: {e}", dir.display())))
}

/// Puts a manifest into a directory, or finds that it is there already. Two who begin at once are
/// one too late, who then finds the other's.
///
/// # Errors
/// The directory cannot be written to, or holds something else.
pub fn begin(dir: &Path, wanted: &Manifest) -> Result<(), Error> {
    if manifest(dir)?.is_none() {
        let others = [dir.join(journal::NAME)];
        let tables = TABLES.map(|table| tables::file(dir, table));
        if let Some(there) = others.iter().chain(&tables).find(|path| path.exists()) {
            return Err(Error::refused(format!(
                "{} already exists and does not belong to a sweep in shards; choose another \
                 directory",
                there.display()
            )));
        }
        let object = Object { name: manifest::NAME.into(), bytes: wanted.text().into_bytes() };
        put(dir, &object, true)?;
    }
    match manifest(dir)? {
        Some(there) => wanted.same_as(&there, &dir.display().to_string()),
        None => Err(Error::system(format!(
            "{} disappeared as soon as it was written",
            dir.join(manifest::NAME).display()
        ))),
    }
}

/// Stores a shard that was done: its parts, then its marker.
///
/// # Errors
/// What cannot be written; the shard counts as not done then.
pub fn store(dir: &Path, shard: &Shard) -> Result<(), Error> {
    for object in shard.parts.iter().chain([&shard.marker]) {
        put(dir, object, false)?;
    }
    Ok(())
}

/// Whether a shard is done.
#[must_use]
pub fn is_done(dir: &Path, shard: u64) -> bool {
    dir.join(marker(shard)).is_file()
}

/// What a directory holds under a name.
///
/// # Errors
/// It is not there or cannot be read.
pub fn fetch(dir: &Path, name: &str) -> Result<Vec<u8>, Error> {
    let path = dir.join(name);
    read(&path)?.ok_or_else(|| Error::system(format!("{} is gone", path.display())))
}

/// Removes what killed workers left under temporary names. Only when nobody works there any more.
///
/// # Errors
/// As the system reports.
pub fn tidy(dir: &Path) -> Result<(), Error> {
    let mut places: Vec<PathBuf> = vec![dir.to_owned(), dir.join("done")];
    places.extend(TABLES.map(|table| dir.join(table)));
    for place in places.iter().filter(|place| place.is_dir()) {
        let fail = |source| WriteError { path: place.clone(), source };
        for entry in fs::read_dir(place).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                fs::remove_file(entry.path()).map_err(fail)?;
            }
        }
    }
    Ok(())
}

/// The marker of a shard that is done.
///
/// # Errors
/// It is not there, cannot be read, or is of another sweep.
pub fn read_marker(manifest: &Manifest, shard: u64, bytes: &[u8]) -> Result<Marker, Error> {
    let fault = |what: &str| Error::refused(format!("{} {what}", marker(shard)));
    let read: Marker =
        serde_json::from_slice(bytes).map_err(|e| fault(&format!("is not a marker: {e}")))?;
    if read.digest != manifest.digest || read.shard != shard {
        return Err(fault("is of another sweep; delete it, and do that shard again"));
    }
    Ok(read)
}
