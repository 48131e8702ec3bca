//! What a sweep has done so far, on disk: a file that runs are appended to as they finish, whatever
//! order that is, and from which the sweep goes on after it was killed. Leaves to others what the
//! runs are and what becomes of them.
//!
//! `sweep.journal` is text. Its first line says what it is and whether the sweep is complete; the
//! second describes the sweep; then comes a line for each run: a checksum (CRC-32, eight
//! hexadecimal digits) of the rest of the line, the run's number, what came of it as JSON. A line
//! that was torn by a kill or a loss of power does not agree with its checksum; it and what follows
//! is cut off, and those runs are done again.
//!
//! The file is locked (flock) for as long as it is open, so that no two sweeps write into one
//! directory; the kernel lets go of the lock however the program ends. It is never replaced or
//! renamed, for then the lock would hold another file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use xcp_report::files::WriteError;
use xcp_report::parquet::Said;

use crate::error::Error;
use crate::sweep::Description;

/// Name of the file.
pub const NAME: &str = "sweep.journal";

// 1 did not draw arrivals and sizes anew for each seed. Equally long, so that one can be written
// over the other: the change is a single small write within a sector.
const RUNNING: &[u8] = b"xcpnet sweep 2, under way\n";
const COMPLETE: &[u8] = b"xcpnet sweep 2, complete \n";

/// What was appended reaches the disk at least this often; a loss of power costs no more than the
/// runs of this time. A kill costs none.
const SYNC_EVERY: Duration = Duration::from_secs(5);

/// The journal of a sweep, open for writing.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// Length of the two lines at its head.
    head: u64,
    end: u64,
    /// For each run where its line begins; 0 if it is not done.
    places: Vec<u64>,
    done: u64,
    complete: bool,
    synced: Instant,
    metadata: Vec<Said>,
}

/// A line with its checksum.
fn line(rest: &str) -> String {
    format!("{:08x} {rest}\n", crc32fast::hash(rest.as_bytes()))
}

/// The line of a run, made where the run was made: what is serial should be short.
///
/// # Errors
/// What cannot be written as JSON.
pub fn record(run: u64, result: &impl Serialize) -> io::Result<String> {
    Ok(line(&format!("{run} {}", serde_json::to_string(result)?)))
}

/// The rest of a line if it is whole and agrees with its checksum.
fn checked(line: &[u8]) -> Option<&str> {
    let (sum, rest) = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?.split_once(' ')?;
    (sum.len() == 8 && u32::from_str_radix(sum, 16).ok()? == crc32fast::hash(rest.as_bytes()))
        .then_some(rest)
}

impl Journal {
    /// Opens the journal of a directory, makes one if there is none. With `restart` what is there
    /// is forgotten.
    ///
    /// # Errors
    /// Another program has it open, it is of another sweep, or the system will not have it.
    pub fn open(dir: &Path, description: &Description, restart: bool) -> Result<Self, Error> {
        let path = dir.join(NAME);
        let fail = |source| WriteError { path: path.clone(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let what = format!(
                    "another sweep is writing into {}; wait for it, or choose another directory",
                    dir.display()
                );
                return Err(Error::refused(what));
            }
            Err(TryLockError::Error(e)) => {
                return Err(Error::refused(format!("cannot lock {}: {e}", path.display())));
            }
        }
        let described = line(&serde_json::to_string(description).map_err(Error::refused)?);
        let head = [RUNNING, described.as_bytes()].concat();
        let begun = head.len() as u64;
        let length = file.metadata().map_err(fail)?.len();
        if !restart && length > 0 {
            match Self::state(&mut file, dir, &head, description)? {
                State::Torn => {}
                State::Complete => {
                    // Whoever was killed between saying so and cutting the file.
                    file.set_len(begun).map_err(fail)?;
                    return Ok(Self::new(file, path, begun, description, true));
                }
                State::Running => {
                    let mut journal = Self::new(file, path, begun, description, false);
                    journal
                        .scan()
                        .map_err(|source| WriteError { path: journal.path.clone(), source })?;
                    return Ok(journal);
                }
            }
        }
        let begin = || {
            file.set_len(0)?;
            file.write_all_at(&head, 0)?;
            file.sync_all()?;
            // The file's name is in the directory, which is to reach the disk, too.
            File::open(dir)?.sync_all()
        };
        begin().map_err(fail)?;
        Ok(Self::new(file, path, begun, description, false))
    }

    fn new(
        file: File,
        path: PathBuf,
        head: u64,
        description: &Description,
        complete: bool,
    ) -> Self {
        let runs = description.runs;
        let places = vec![0; if complete { 0 } else { runs as usize }];
        Self {
            file,
            path,
            head,
            end: head,
            places,
            done: if complete { runs } else { 0 },
            complete,
            synced: Instant::now(),
            metadata: description.metadata(),
        }
    }

    /// What Parquet files made of it say of themselves.
    pub fn metadata(&self) -> &[Said] {
        &self.metadata
    }

    /// What the head of a file says; refuses other files and other sweeps.
    fn state(
        file: &mut File,
        dir: &Path,
        head: &[u8],
        description: &Description,
    ) -> Result<State, Error> {
        let path = dir.join(NAME);
        let fail = |e| Error::refused(format!("cannot read {}: {e}", path.display()));
        let mut reader = BufReader::new(&*file);
        let mut start = vec![0; head.len()];
        let mut read = 0;
        while read < start.len() {
            match reader.read(&mut start[read..]).map_err(fail)? {
                0 => break,
                n => read += n,
            }
        }
        start.truncate(read);
        if start == head {
            return Ok(State::Running);
        }
        if head.starts_with(&start) {
            return Ok(State::Torn);
        }
        if start.strip_prefix(COMPLETE).is_some_and(|rest| rest == &head[RUNNING.len()..]) {
            return Ok(State::Complete);
        }
        let on = format!(
            "; choose another directory, or start over with --restart, which discards what is in \
             {}",
            dir.display()
        );
        reader.seek(SeekFrom::Start(RUNNING.len() as u64)).map_err(fail)?;
        let mut second = Vec::new();
        reader.read_until(b'\n', &mut second).map_err(fail)?;
        let known = start.starts_with(RUNNING) || start.starts_with(COMPLETE);
        if start.starts_with(RUNNING)
            && checked(&second).is_some()
            && reader.fill_buf().map_err(fail)?.is_empty()
        {
            // Another sweep that has done nothing: there is nothing to lose.
            return Ok(State::Torn);
        }
        let other: Option<Description> =
            checked(&second).filter(|_| known).and_then(|text| serde_json::from_str(text).ok());
        Err(Error::refused(match other {
            Some(other) => {
                let what = description.differences(&other).join("; ");
                format!("{} holds another sweep ({what}){on}", dir.display())
            }
            None => format!("{} is not the journal of a sweep of this version{on}", path.display()),
        }))
    }

    /// Finds what is done; cuts off what is torn.
    fn scan(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.head))?;
        let mut reader = BufReader::with_capacity(1 << 16, &self.file);
        let mut text = Vec::new();
        loop {
            text.clear();
            let length = reader.read_until(b'\n', &mut text)? as u64;
            let run = checked(&text).and_then(|rest| rest.split_once(' ')?.0.parse::<usize>().ok());
            let Some(place) = run.and_then(|run| self.places.get_mut(run)) else { break };
            if *place == 0 {
                self.done += 1;
            }
            *place = self.end;
            self.end += length;
        }
        self.file.set_len(self.end)
    }

    /// Whether the sweep was completed before.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Runs that are done.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Which runs are done.
    pub fn each_done(&self) -> Vec<bool> {
        self.places.iter().map(|&place| place > 0).collect()
    }

    /// Appends a run's line, see [`record`].
    ///
    /// # Errors
    /// As the system reports. What was written in part is cut off when the journal is opened next.
    pub fn append(&mut self, run: u64, record: &str) -> Result<(), Error> {
        let written = self.file.write_all_at(record.as_bytes(), self.end).and_then(|()| {
            if self.synced.elapsed() < SYNC_EVERY {
                return Ok(());
            }
            self.synced = Instant::now();
            self.file.sync_data()
        });
        written.map_err(|source| WriteError { path: self.path.clone(), source })?;
        let place = &mut self.places[run as usize];
        if *place == 0 {
            self.done += 1;
        }
        *place = self.end;
        self.end += record.len() as u64;
        Ok(())
    }

    /// Brings what was appended to the disk.
    ///
    /// # Errors
    /// As the system reports.
    pub fn sync(&self) -> Result<(), Error> {
        self.file
            .sync_data()
            .map_err(|source| WriteError { path: self.path.clone(), source }.into())
    }

    /// Hands out what came of the runs, in the order of the grid; all must be done.
    ///
    /// # Errors
    /// Those of `each`, or that the journal cannot be read.
    pub fn replay(
        &self,
        mut each: impl FnMut(u64, &str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let fail =
            |e: io::Error| Error::refused(format!("cannot read {}: {e}", self.path.display()));
        let mut reader = BufReader::with_capacity(1 << 18, &self.file);
        let mut at = reader.seek(SeekFrom::Start(self.head)).map_err(fail)?;
        let mut text = Vec::new();
        for (run, &place) in self.places.iter().enumerate() {
            text.clear();
            // Runs finish nearly in order: the next is mostly in the buffer already.
            reader.seek_relative(place as i64 - at as i64).map_err(fail)?;
            at = place + reader.read_until(b'\n', &mut text).map_err(fail)? as u64;
            let result = checked(&text)
                .and_then(|rest| rest.split_once(' '))
                .filter(|(n, _)| *n == run.to_string());
            let Some((_, result)) = result else {
                return Err(fail(io::Error::other(format!(
                    "run {run} has changed since it was written"
                ))));
            };
            each(run as u64, result)?;
        }
        Ok(())
    }

    /// Says that the sweep is complete and forgets the runs.
    ///
    /// # Errors
    /// As the system reports.
    pub fn complete(mut self) -> Result<(), Error> {
        let done = (|| {
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(COMPLETE)?;
            self.file.sync_all()?;
            self.file.set_len(self.head)
        })();
        done.map_err(|source| WriteError { path: self.path.clone(), source }.into())
    }
}

/// What a file's head says.
enum State {
    /// Nothing was done yet; perhaps not even the head was written.
    Torn,
    /// Of this sweep, which goes on.
    Running,
    /// Of this sweep, which is complete.
    Complete,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn description() -> Description {
        Description {
            program: "1".into(),
            build: "2".into(),
            name: "s".into(),
            settings: vec![("a".into(), vec!["1".into(), "2".into()])],
            variants: vec![String::new()],
            seeds: Some("1..3".into()),
            runs: 6,
            scenario: "duration = \"1s\"\n".into(),
        }
    }

    fn replayed(journal: &Journal) -> Vec<String> {
        let mut all = Vec::new();
        journal
            .replay(|run, text| {
                assert_eq!(run, all.len() as u64);
                all.push(text.to_owned());
                Ok(())
            })
            .unwrap();
        all
    }

    /// Does what is missing.
    fn fill(journal: &mut Journal, order: &[u64]) {
        let done = journal.each_done();
        for &run in order.iter().filter(|&&run| !done[run as usize]) {
            journal.append(run, &record(run, &format!("result {}", run * run)).unwrap()).unwrap();
        }
    }

    #[test]
    fn cut_anywhere_it_goes_on_from_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        let mut journal = Journal::open(dir.path(), &description(), false).unwrap();
        fill(&mut journal, &[1, 0, 2, 4, 3, 5]);
        let expected = replayed(&journal);
        assert_eq!(expected[3], "\"result 9\"");
        drop(journal);
        let whole = fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            let mut journal = Journal::open(dir.path(), &description(), false).unwrap();
            let lines = whole[..length].iter().filter(|&&b| b == b'\n').count() as u64;
            assert_eq!(journal.done(), lines.saturating_sub(2), "cut at {length}");
            fill(&mut journal, &[0, 1, 2, 3, 4, 5]);
            assert_eq!(replayed(&journal), expected, "cut at {length}");
            drop(journal);
            // And what was written after the cut is as good as what was written before it.
            let again = Journal::open(dir.path(), &description(), false).unwrap();
            assert_eq!((again.done(), replayed(&again)), (6, expected.clone()), "cut at {length}");
        }
    }

    /// A loss of power may leave zeros or older bytes where the last lines were to be.
    #[test]
    fn what_does_not_agree_with_its_checksum_is_done_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        let mut journal = Journal::open(dir.path(), &description(), false).unwrap();
        fill(&mut journal, &[0, 1, 2, 3, 4, 5]);
        let (head, expected) = (journal.head as usize, replayed(&journal));
        drop(journal);
        let whole = fs::read(&path).unwrap();
        for at in head..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            fs::write(&path, &wrong).unwrap();
            let mut journal = Journal::open(dir.path(), &description(), false).unwrap();
            assert!(journal.done() < 6, "byte {at}");
            fill(&mut journal, &[0, 1, 2, 3, 4, 5]);
            assert_eq!(replayed(&journal), expected, "byte {at}");
        }
    }

    #[test]
    fn two_cannot_have_it_and_other_sweeps_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(dir.path(), &description(), false).unwrap();
        fill(&mut journal, &[2]);
        let told = |description: &Description| {
            Journal::open(dir.path(), description, false).unwrap_err().to_string()
        };
        assert!(told(&description()).contains("another sweep is writing"));
        drop(journal);
        for (other, word) in [
            (Description { scenario: "duration = \"2s\"\n".into(), ..description() }, "scenario"),
            (Description { settings: Vec::new(), ..description() }, "other --set"),
            (Description { seeds: Some("1..4".into()), ..description() }, "other --seeds"),
            (Description { variants: vec!["x".into()], ..description() }, "variants"),
            (Description { build: "3".into(), ..description() }, "another build"),
        ] {
            let told = told(&other);
            assert!(told.contains(word) && told.contains("--restart"), "{told}");
        }
        fs::write(dir.path().join(NAME), "a diary").unwrap();
        assert!(told(&description()).contains("is not the journal"));
        assert_eq!(
            fs::read(dir.path().join(NAME)).unwrap(),
            b"a diary",
            "what is refused is left alone"
        );
        assert_eq!(Journal::open(dir.path(), &description(), true).unwrap().done(), 0);
    }

    #[test]
    fn a_sweep_that_did_nothing_gives_way() {
        let dir = tempfile::tempdir().unwrap();
        drop(Journal::open(dir.path(), &description(), false).unwrap());
        let other = Description { seeds: Some("1..4".into()), ..description() };
        let mut journal = Journal::open(dir.path(), &other, false).unwrap();
        fill(&mut journal, &[0]);
        drop(journal);
        assert!(Journal::open(dir.path(), &description(), false).is_err());
        assert_eq!(Journal::open(dir.path(), &other, false).unwrap().done(), 1);
    }

    #[test]
    fn complete_it_is_small_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(dir.path(), &description(), false).unwrap();
        fill(&mut journal, &[0, 1, 2, 3, 4, 5]);
        journal.complete().unwrap();
        let text = fs::read_to_string(dir.path().join(NAME)).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        let again = Journal::open(dir.path(), &description(), false).unwrap();
        assert!(again.is_complete());
        assert_eq!(again.done(), 6);
        drop(again);
        assert!(!Journal::open(dir.path(), &description(), true).unwrap().is_complete());
    }
}
