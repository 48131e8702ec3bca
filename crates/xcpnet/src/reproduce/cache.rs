//! Runs kept from one `reproduce` to the next: one file for each, named by a hash of all that
//! decides what it holds, so that nothing is ever taken for something else: the scenario as it was
//! resolved (settings, variant and seed in it) and the simulator's sources. What words are around
//! it (titles, claims and their bands) is not part of that: claims are judged anew on the runs that
//! are there.
//!
//! A file is a line (what it is, its key, a checksum of the rest), the length of what follows, a
//! JSON text (summary, and what series there are), and the series' numbers; both compressed. A file
//! that is torn, damaged or of another format is as good as none. Files appear by renaming, so that
//! several programs may share the directory. So may several users: the directory is made for its
//! user alone, but where it is another one, and others can write to it, only files are taken that
//! nobody but this user or root can have written (`--trust-cache` takes all). A run that is taken
//! is believed: the checksum is against accidents, and anybody can make one. When it grows beyond
//! [`LIMIT`] bytes the files not used for longest are deleted.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::num::{NonZeroU32, NonZeroU64};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use xcp_model::run::{Quantity, Run, Series, Subject, Summary};
use xcp_model::units::Nanos;
use xcp_model::{Flow, Scenario, Values};
use xcp_sweep::fingerprint::Fingerprint;

use crate::terminal;

/// Most bytes that stay after a run of the command.
pub const LIMIT: u64 = 4 << 30;
const FORMAT: &str = "xcpnet run 3";
const EXTENSION: &str = "run";
/// Begin of the names of files in the making.
const UNFINISHED: &str = ".new-";

/// A directory of runs.
#[derive(Debug)]
pub struct Cache {
    dir: PathBuf,
    /// Whether files are taken whoever wrote them.
    trusting: bool,
    /// Whether it was told that nothing can be written here.
    told: AtomicBool,
    /// Whether it was told that there are files of others.
    told_of_others: AtomicBool,
}

/// Permission of the group and of all others to write. Where a file has an access list, the group's
/// stands for all that it allows.
const OTHERS_WRITE: u32 = 0o022;

/// Whether nobody but this user and root can have written what is in a file.
fn is_ours(file: &File) -> bool {
    // SAFETY: no arguments, no memory.
    let user = unsafe { libc::geteuid() };
    file.metadata().is_ok_and(|about| {
        about.is_file() && [user, 0].contains(&about.uid()) && about.mode() & OTHERS_WRITE == 0
    })
}

/// Which run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Of a scenario on this build's simulator.
    pub fn of(scenario: &Scenario) -> Self {
        struct Into(Fingerprint);
        impl std::fmt::Write for Into {
            fn write_str(&mut self, text: &str) -> std::fmt::Result {
                self.0.mix(text.as_bytes());
                Ok(())
            }
        }
        let bare = Scenario {
            title: String::new(),
            variant: String::new(),
            description: String::new(),
            expectations: Vec::new(),
            flows: Vec::new(),
            ..scenario.clone()
        };
        let mut hash = Into(Fingerprint::new());
        hash.0.add(FORMAT.as_bytes());
        hash.0.add(xcp_sweep::SIMULATOR.as_bytes());
        // Every field, floats to the last bit; a hash cannot refuse to be written to.
        let _ = write!(hash, "{bare:?}");
        // What members share is said once: thousands of transfers may be one group's.
        for members in scenario.groups() {
            let _ = members.first().map(|first| write!(hash, "{:?}", first.group));
            hash.0.mix(&members.len().to_le_bytes());
            for Flow { group: _, number, start, own_bytes } in members {
                hash.0.mix(&number.map_or(0, NonZeroU32::get).to_le_bytes());
                hash.0.mix(&start.to_le_bytes());
                hash.0.mix(&own_bytes.map_or(0, NonZeroU64::get).to_le_bytes());
            }
        }
        Self(hash.0.hex())
    }
}

/// The JSON text of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Content {
    completed: Nanos,
    duration: Nanos,
    summary: Summary,
    /// Lengths of the lists of times.
    times: Vec<usize>,
    series: Vec<Entry>,
}

/// A series without its numbers.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    subject: Subject,
    quantity: Quantity,
    /// Which list of times.
    times: usize,
    /// How often its first number comes, how many lie between, and how often the last one.
    first: usize,
    between: usize,
    last: usize,
}

impl Cache {
    /// In a directory, or where the system keeps such things (XDG: `$XDG_CACHE_HOME/xcpnet`, else
    /// `~/.cache/xcpnet`); `None` if it says nothing. `trusting`: files are taken whoever wrote
    /// them.
    pub fn new(dir: Option<&Path>, trusting: bool) -> Option<Self> {
        let absolute =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let usual = || {
            absolute("XDG_CACHE_HOME")
                .or_else(|| Some(absolute("HOME")?.join(".cache")))
                .map(|p| p.join("xcpnet"))
        };
        let dir = dir.map(Path::to_owned).or_else(usual)?;
        Some(Self {
            dir,
            trusting,
            told: AtomicBool::new(false),
            told_of_others: AtomicBool::new(false),
        })
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.dir.join(format!("{}.{EXTENSION}", key.0))
    }

    /// Whether there is a file; it may turn out to be damaged.
    pub fn has(&self, key: &Key) -> bool {
        self.path(key).is_file()
    }

    /// The run, as if the scenario had just been run; `None` if it is not there or cannot be read.
    pub fn load(&self, key: &Key, scenario: &Scenario) -> Option<Run> {
        let path = self.path(key);
        let mut file = File::open(&path).ok()?;
        if !self.trusting && !is_ours(&file) {
            if !self.told_of_others.swap(true, Ordering::Relaxed) {
                let dir = self.dir.display();
                terminal::tell(&format!(
                    "note: runs in {dir} that others may have written are made again; \
                     --trust-cache uses them as they are"
                ));
            }
            return None;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let mut run = decode(&bytes, key)?;
        // It was used: others go first. Where that cannot be noted it is as if it had not been.
        let _ = File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(SystemTime::now()));
        for words in [(&mut run.title, &scenario.title), (&mut run.variant, &scenario.variant)] {
            words.0.clone_from(words.1);
        }
        run.summary.title.clone_from(&run.title);
        run.summary.variant.clone_from(&run.variant);
        Some(run)
    }

    /// Keeps a run. That it could not be kept is told once and changes nothing else.
    pub fn store(&self, key: &Key, run: &Run) {
        let write = || {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
            let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.dir)?;
            file.write_all(&encode(run, key)?)?;
            file.persist(self.path(key)).map_err(|e| e.error)
        };
        if let Err(error) = write()
            && !self.told.swap(true, Ordering::Relaxed)
        {
            let reason = xcp_report::files::reason(&error);
            terminal::tell(&format!(
                "note: runs cannot be kept in {}: {reason}",
                self.dir.display()
            ));
        }
    }

    /// Deletes what was not used for longest until no more than `limit` bytes are left, and what a
    /// killed program left unfinished.
    pub fn trim(&self, limit: u64) {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let path = entry.path();
            if path.extension().is_some_and(|e| e == EXTENSION) {
                files.push((used, about.len(), path));
            } else if entry.file_name().to_string_lossy().starts_with(UNFINISHED)
                && used.elapsed().is_ok_and(|age| age > Duration::from_secs(3600))
            {
                let _ = fs::remove_file(path);
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if total <= limit {
                return;
            }
            // Somebody else may have been quicker.
            let _ = fs::remove_file(path);
            total -= bytes;
        }
    }
}

fn encode(run: &Run, key: &Key) -> std::io::Result<Vec<u8>> {
    let mut lists: Vec<&Arc<Vec<Nanos>>> = Vec::new();
    let mut series = Vec::new();
    let mut numbers: Vec<u8> = Vec::new();
    for one in &run.series {
        let known = lists.iter().position(|list| Arc::ptr_eq(list, &one.times));
        let times = known.unwrap_or_else(|| {
            lists.push(&one.times);
            lists.len() - 1
        });
        let (first, last, parts) = one.values.parts();
        series.push(Entry {
            subject: one.subject.clone(),
            quantity: one.quantity,
            times,
            first,
            between: one.values.len() - first - last,
            last,
        });
        planes(parts.map(f64::to_bits), &mut numbers);
    }
    for list in &lists {
        let before = std::iter::once(0).chain(list.iter().copied());
        planes(list.iter().zip(before).map(|(t, before)| t.wrapping_sub(before)), &mut numbers);
    }
    let content = Content {
        completed: run.completed,
        duration: run.duration,
        summary: run.summary.clone(),
        times: lists.iter().map(|list| list.len()).collect(),
        series,
    };
    let packed =
        |bytes: &[u8]| snap::raw::Encoder::new().compress_vec(bytes).map_err(std::io::Error::other);
    let text = packed(&serde_json::to_vec(&content)?)?;
    let mut body = (text.len() as u64).to_le_bytes().to_vec();
    body.extend(text);
    body.extend(packed(&numbers)?);
    let mut file = format!("{FORMAT} {} {:08x}\n", key.0, crc32fast::hash(&body)).into_bytes();
    file.extend(body);
    Ok(file)
}

fn decode(file: &[u8], key: &Key) -> Option<Run> {
    let end = file.iter().position(|b| *b == b'\n')?;
    let (line, body) = (std::str::from_utf8(&file[..end]).ok()?, &file[end + 1..]);
    let sum =
        line.strip_prefix(FORMAT)?.strip_prefix(' ')?.strip_prefix(&key.0)?.strip_prefix(' ')?;
    if u32::from_str_radix(sum, 16).ok()? != crc32fast::hash(body) {
        return None;
    }
    let (length, body) = body.split_first_chunk()?;
    let (text, packed) =
        body.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let unpacked = |bytes: &[u8]| snap::raw::Decoder::new().decompress_vec(bytes).ok();
    let content: Content = serde_json::from_slice(&unpacked(text)?).ok()?;
    let numbers = unpacked(packed)?;
    let mut rest = &numbers[..];
    let values: Vec<Values> = content
        .series
        .iter()
        .map(|s| {
            let numbers = unplaned(s.between.checked_add(2)?, &mut rest)?;
            Values::from_parts(s.first, s.last, numbers.into_iter().map(f64::from_bits).collect())
        })
        .collect::<Option<_>>()?;
    let mut lists = Vec::new();
    for length in content.times {
        let mut now: Nanos = 0;
        let steps = unplaned(length, &mut rest)?.into_iter();
        lists.push(Arc::new(
            steps
                .map(|step| {
                    now = now.wrapping_add(step);
                    now
                })
                .collect::<Vec<Nanos>>(),
        ));
    }
    let series = content.series.into_iter().zip(values).map(|(entry, values)| {
        Some(Series {
            subject: entry.subject,
            quantity: entry.quantity,
            times: lists.get(entry.times)?.clone(),
            values,
        })
    });
    Some(Run {
        title: content.summary.title.clone(),
        variant: content.summary.variant.clone(),
        completed: content.completed,
        duration: content.duration,
        summary: content.summary,
        series: series.collect::<Option<_>>()?,
    })
}

/// All first bytes, then all second ones, and so on: neighbours of a curve are alike in most of
/// theirs, which is what the compression looks for.
fn planes(words: impl Iterator<Item = u64>, out: &mut Vec<u8>) {
    let words: Vec<[u8; 8]> = words.map(u64::to_le_bytes).collect();
    for byte in 0..8 {
        out.extend(words.iter().map(|word| word[byte]));
    }
}

/// Takes `length` words back from what [`planes`] wrote.
fn unplaned(length: usize, rest: &mut &[u8]) -> Option<Vec<u64>> {
    let (mine, others) = rest.split_at_checked(length.checked_mul(8)?)?;
    *rest = others;
    Some(
        (0..length)
            .map(|i| u64::from_le_bytes(std::array::from_fn(|byte| mine[byte * length + i])))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use xcp_scenario::Overrides;

    use super::*;

    const FILE: &str = r#"
duration = "2s"
link = [{ name = "b", between = ["S", "D"], rate = "5mbit", delay = "10ms", queue = "xcp" }]
flow = [{ count = 2, from = "S", to = "D", congestion = "xcp", start-jitter = "100ms" }]
"#;

    fn scenario(text: &str, seed: u64) -> Scenario {
        xcp_scenario::load(
            Path::new("x.toml"),
            text,
            &Overrides::none().with("seed", seed.to_string()),
        )
        .unwrap()
        .remove(0)
    }

    /// NaN is equal to itself here.
    fn told(run: &Run) -> String {
        format!("{run:?}")
    }

    #[test]
    fn what_was_kept_comes_back_to_the_bit() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(&dir.path().join("new")), false).unwrap();
        let scenario = scenario(FILE, 1);
        let key = Key::of(&scenario);
        assert!(cache.load(&key, &scenario).is_none());
        let run = xcp_sim::simulate(&scenario, &mut ()).unwrap();
        cache.store(&key, &run);
        assert_eq!(told(&cache.load(&key, &scenario).unwrap()), told(&run));
        assert!(
            run.series.iter().any(|s| s.values.iter().any(|v| v.is_finite())),
            "something was kept"
        );
    }

    #[test]
    fn a_key_is_what_is_run_and_not_what_is_said_of_it() {
        let key = |text: &str, seed| Key::of(&scenario(text, seed));
        assert_ne!(key(FILE, 1), key(FILE, 2));
        assert_ne!(key(FILE, 1), key(&FILE.replace("10ms", "11ms"), 1));
        assert_ne!(
            key(FILE, 1),
            key(
                &FILE.replace(
                    "\"xcp\" }]\nflow",
                    "{ kind = \"xcp\", law = { alpha = 0.41 } } }]\nflow"
                ),
                1
            )
        );
        // Of each group, and of each of its members.
        let mut group = scenario(FILE, 1);
        let flow = group.flows[0].clone();
        group.flows.push(Flow { number: NonZeroU32::new(2), ..flow });
        let changes: [fn(&mut Flow); 4] = [
            |flow| flow.start += 1,
            |flow| flow.own_bytes = NonZeroU64::new(1),
            |flow| flow.number = NonZeroU32::new(3),
            |flow| std::sync::Arc::make_mut(&mut flow.group).packet_bytes += 1,
        ];
        for change in changes {
            let mut other = group.clone();
            change(&mut other.flows[1]);
            assert_ne!(Key::of(&other), Key::of(&group));
        }
        let claimed =
            format!("title = \"Other words\"\n{FILE}\n[[expect]]\nmetric = \"jain\"\nmin = 0.5\n");
        assert_eq!(key(FILE, 1), key(&claimed, 1));
    }

    #[test]
    fn damage_and_other_formats_are_as_good_as_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(dir.path()), false).unwrap();
        let scenario = scenario(FILE, 1);
        let key = Key::of(&scenario);
        cache.store(&key, &xcp_sim::simulate(&scenario, &mut ()).unwrap());
        let sound = fs::read(cache.path(&key)).unwrap();
        assert!(decode(&sound, &key).is_some());
        assert!(decode(&sound, &Key("0".repeat(32))).is_none(), "renamed by somebody");
        for at in (0..sound.len()).step_by(97) {
            let mut other = sound.clone();
            other[at] ^= 0x20;
            fs::write(cache.path(&key), &other).unwrap();
            // The checksum is not over itself: its letters may be of either case.
            assert!(cache.load(&key, &scenario).is_none() || at < 64, "byte {at}");
            assert!(decode(&sound[..at], &key).is_none(), "torn at {at}");
        }
    }

    /// A run that somebody else can have put there is made again, unless one says that it is to be
    /// believed.
    #[test]
    fn what_others_can_have_written_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("shared");
        let (careful, trusting) =
            (Cache::new(Some(&place), false).unwrap(), Cache::new(Some(&place), true).unwrap());
        let scenario = scenario(FILE, 1);
        let key = Key::of(&scenario);
        careful.store(&key, &xcp_sim::simulate(&scenario, &mut ()).unwrap());
        let path = careful.path(&key);
        assert_eq!(
            fs::metadata(&place).unwrap().mode() & 0o777,
            0o700,
            "what it makes is its user's"
        );
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        for (mode, taken) in
            [(0o600, true), (0o644, true), (0o664, false), (0o602, false), (0o600, true)]
        {
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(careful.load(&key, &scenario).is_some(), taken, "{mode:o}");
            assert!(trusting.load(&key, &scenario).is_some());
        }
        // SAFETY: no arguments, no memory.
        if unsafe { libc::geteuid() } == 0 {
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            assert!(
                careful.load(&key, &scenario).is_none() && trusting.load(&key, &scenario).is_some(),
                "another user's"
            );
        } else {
            xcp_skip::skipped!("root", "a file of another user's in the cache: this needs root");
        }
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(dir.path()), false).unwrap();
        let names = ["a", "b", "c"].map(|n| dir.path().join(format!("{n}.run")));
        for (age, path) in [50, 10, 30].into_iter().zip(&names) {
            fs::write(path, [0; 100]).unwrap();
            let file = File::options().append(true).open(path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        }
        cache.trim(300);
        assert!(names.iter().all(|p| p.exists()));
        cache.trim(150);
        assert_eq!(names.map(|p| p.exists()), [false, true, false]);
    }
}
