//! Output that is there whole or not at all: written beside its place and renamed into it.
//!
//! An interrupted program or a full disk leaves nothing half-written: the temporary is deleted on
//! the way out, and what was there before stays.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, TempDir};

/// What could not be written, and why.
#[derive(Debug)]
pub struct WriteError {
    /// The file or directory the user asked for (not the temporary).
    pub path: PathBuf,
    /// The reason that the system gave.
    pub source: io::Error,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write {}: {}", self.path.display(), reason(&self.source))
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// An error in words, with what to do where that is plain.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::QuotaExceeded => "your disk quota is used up".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        io::ErrorKind::NotADirectory => "a part of the path is a file, not a directory".to_owned(),
        io::ErrorKind::NotFound => "there is no such file or directory".to_owned(),
        io::ErrorKind::AlreadyExists => "a file of this name is in the way".to_owned(),
        io::ErrorKind::IsADirectory => "this is a directory, not a file".to_owned(),
        _ => error.to_string(),
    }
}

/// A set of files that appear together in a directory, or not at all.
///
/// Where the directory is new, it appears by one rename. Where it was there before, each file
/// replaces its predecessor by one rename, and files of other names stay.
#[derive(Debug)]
pub struct Staged {
    target: PathBuf,
    // Deleted before the parents that were made for it: fields are dropped in this order.
    temporary: TempDir,
    parents: MadeDirectories,
    names: Vec<PathBuf>,
}

/// Directories made on the way, outermost first; removed again when dropped, unless something is in
/// them.
#[derive(Debug)]
struct MadeDirectories(Vec<PathBuf>);

impl MadeDirectories {
    fn make(path: &Path) -> io::Result<Self> {
        let mut missing: Vec<PathBuf> = path
            .ancestors()
            .take_while(|p| !p.as_os_str().is_empty() && !p.exists())
            .map(Path::to_owned)
            .collect();
        missing.reverse();
        let mut made = Self(Vec::new());
        for dir in missing {
            match fs::create_dir(&dir) {
                Ok(()) => made.0.push(dir),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
                Err(e) => return Err(e),
            }
        }
        Ok(made)
    }
}

impl Drop for MadeDirectories {
    fn drop(&mut self) {
        for dir in self.0.iter().rev() {
            // Only empty directories can be removed this way, which is what is wanted.
            let _ = fs::remove_dir(dir);
        }
    }
}

/// How often parents are made that others take away at the same time.
const PARENTS_TRIES: u32 = 1000;

impl Staged {
    /// Prepares to fill `target`. Makes its parents. Fails at once if nothing could be written
    /// there, so that this can be asked before a long run.
    ///
    /// # Errors
    /// The directory cannot be made or written to.
    pub fn new(target: &Path) -> Result<Self, WriteError> {
        let fail = |source| WriteError { path: target.to_owned(), source };
        if target.exists() && !target.is_dir() {
            return Err(fail(io::Error::from(io::ErrorKind::NotADirectory)));
        }
        // Within an existing directory, since its parent may belong to another file system or to
        // somebody else; else beside the new one.
        let place = if target.is_dir() { target.to_owned() } else { parent(target) };
        let mut builder = Builder::new();
        builder.prefix(".xcpnet-");
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        // Another program that gives up takes the parents that it made away, as long as they are
        // empty; they may be ours, too.
        let mut tries = 0;
        let (temporary, parents) = loop {
            let made = MadeDirectories::make(&place)
                .and_then(|parents| Ok((builder.tempdir_in(&place)?, parents)));
            match made {
                Err(e) if e.kind() == io::ErrorKind::NotFound && tries < PARENTS_TRIES => {
                    tries += 1;
                }
                // As in /proc: its parent is there, and yet there is no such place.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    break Err(fail(io::Error::other("no files can be created there")))?;
                }
                made => break made.map_err(fail)?,
            }
        };
        Ok(Self { target: target.to_owned(), temporary, parents, names: Vec::new() })
    }

    /// Where things are until they are committed, for a program that must end at once and wants to
    /// leave nothing.
    #[must_use]
    pub fn temporary(&self) -> &Path {
        self.temporary.path()
    }

    /// Writes one file; `name` may have directories in it.
    ///
    /// # Errors
    /// As the system reports, naming the place the file was meant for.
    pub fn write(&mut self, name: impl AsRef<Path>, content: &[u8]) -> Result<(), WriteError> {
        self.write_with(name, |file| file.write_all(content))
    }

    /// Writes one file through a function, for formats that stream.
    ///
    /// # Errors
    /// As the system reports, naming the place the file was meant for.
    pub fn write_with(
        &mut self,
        name: impl AsRef<Path>,
        fill: impl FnOnce(&mut fs::File) -> io::Result<()>,
    ) -> Result<(), WriteError> {
        let name = name.as_ref();
        let path = self.temporary.path().join(name);
        let done = (|| {
            fs::create_dir_all(parent(&path))?;
            let mut file = fs::File::create(&path)?;
            fill(&mut file)?;
            // A full disk may be noticed only when the data reach it.
            file.sync_all()
        })();
        done.map_err(|source| WriteError { path: self.target.join(name), source })?;
        self.names.push(name.to_owned());
        Ok(())
    }

    /// Moves everything into place.
    ///
    /// # Errors
    /// As the system reports; of several files replaced one by one, the first that failed.
    pub fn commit(mut self) -> Result<(), WriteError> {
        if !self.target.exists() {
            fs::rename(self.temporary.path(), &self.target)
                .map_err(|source| WriteError { path: self.target.clone(), source })?;
            // Renamed away: there is nothing left to delete.
            self.temporary.disable_cleanup(true);
            self.parents.0.clear();
            return Ok(());
        }
        for name in &self.names {
            let path = self.target.join(name);
            let moved = fs::create_dir_all(parent(&path))
                .and_then(|()| fs::rename(self.temporary.path().join(name), &path));
            moved.map_err(|source| WriteError { path, source })?;
        }
        Ok(())
    }
}

/// The directory a path is in; the working directory for a bare name.
fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_is_seen_until_commit_and_everything_after() {
        let home = tempfile::tempdir().unwrap();
        let out = home.path().join("a/out");
        drop(Staged::new(&out).unwrap());
        assert!(
            listing(home.path()).is_empty(),
            "given up, it takes the parents it made away, too"
        );
        let mut staged = Staged::new(&out).unwrap();
        staged.write("one.txt", b"1").unwrap();
        staged.write("sub/two.txt", b"2").unwrap();
        assert!(!out.exists());
        staged.commit().unwrap();
        assert_eq!(listing(&out), ["one.txt", "sub"]);
        assert_eq!(fs::read(out.join("sub/two.txt")).unwrap(), b"2");
        assert_eq!(listing(&home.path().join("a")), ["out"], "no temporary is left");
    }

    /// Who gives up takes empty parents away, which others may just be about to use.
    #[test]
    fn several_at_once_do_not_take_each_others_parents_away() {
        use std::sync::atomic::Ordering::Relaxed;
        let home = tempfile::tempdir().unwrap();
        let all_there = std::sync::Barrier::new(4);
        let failed = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for n in 0..4 {
                let (home, all_there, failed) = (home.path(), &all_there, &failed);
                scope.spawn(move || {
                    for round in 0..500 {
                        all_there.wait();
                        let new = Staged::new(&home.join(format!("{round}/a/{n}")));
                        failed.fetch_add(u32::from(new.is_err()), Relaxed);
                    }
                });
            }
        });
        assert_eq!(failed.into_inner(), 0);
    }

    #[test]
    fn given_up_it_leaves_what_was_there() {
        let out = tempfile::tempdir().unwrap();
        fs::write(out.path().join("one.txt"), "old").unwrap();
        let mut staged = Staged::new(out.path()).unwrap();
        staged.write("one.txt", b"new").unwrap();
        drop(staged);
        assert_eq!(listing(out.path()), ["one.txt"]);
        assert_eq!(fs::read(out.path().join("one.txt")).unwrap(), b"old");
        let mut staged = Staged::new(out.path()).unwrap();
        staged.write("one.txt", b"new").unwrap();
        staged.commit().unwrap();
        assert_eq!(listing(out.path()), ["one.txt"]);
        assert_eq!(fs::read(out.path().join("one.txt")).unwrap(), b"new");
    }

    #[test]
    fn a_full_disk_is_named() {
        let home = tempfile::tempdir().unwrap();
        let out = home.path().join("out");
        let mut staged = Staged::new(&out).unwrap();
        let error = staged
            .write_with("report.html", |_| {
                fs::OpenOptions::new().write(true).open("/dev/full")?.write_all(b"x")
            })
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("cannot write {}: the disk is full", out.join("report.html").display())
        );
        drop(staged);
        assert!(listing(home.path()).is_empty());
    }

    #[test]
    fn a_file_in_the_way_is_an_error_before_the_run() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(Staged::new(&file).is_err());
        assert!(Staged::new(&file.join("below")).is_err());
    }
}
