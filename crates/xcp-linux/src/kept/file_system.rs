//! The BPF file system: found, mounted where it is missing, and our directories in it.
//!
//! Others may write into a BPF file system: as the kernel mounts it without options everybody may.
//! Whatever is kept, opened or removed is therefore reached from a descriptor of a directory that
//! was seen to be root's, and no symbolic link is followed on the way: a path that is walked again
//! could lead elsewhere the second time.

use std::ffi::CStr;
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

use crate::error::{Error, Result};

pub(crate) const MOUNT: &str = "/sys/fs/bpf";
const OURS: &str = "xcpnet";

/// BPF_FS_MAGIC.
const MAGIC: i64 = 0xcafe_4a11;

/// How long a command waits for others, which take a second at the most, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(30);
const AGAIN: Duration = Duration::from_millis(10);

/// How long a command waits for another one's mount, at the most.
const MOUNTING: Duration = Duration::from_secs(1);

/// Rights of a directory: all of root's, none of anybody else's.
const PRIVATE: Mode = Mode::RWXU;

/// Whether it is there.
pub(crate) fn is_mounted() -> bool {
    rustix::fs::statfs(MOUNT).is_ok_and(|s| i128::from(s.f_type) == i128::from(MAGIC))
}

/// Mounts one in which only root may do anything.
pub(crate) fn mount_private() -> io::Result<()> {
    let options: &CStr = c"mode=0700";
    Ok(mount(
        "bpf",
        MOUNT,
        "bpf",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        Some(options),
    )?)
}

/// Mounts one unless one is there. Where two commands are the first at the same time, both would,
/// and what one of them keeps would be out of sight below the other's mount. So whoever mounts one
/// holds what is beneath, and whoever has waited for that looks again. But any user can hold
/// it for as long as they like, so nobody waits for longer than a mount takes.
fn mount_where_missing() -> Result<()> {
    if is_mounted() {
        return Ok(());
    }
    let told = |e| Error::because(format_args!("cannot mount a BPF file system at {MOUNT}"), e);
    let descriptor = rustix::fs::open(MOUNT, FLAGS, Mode::empty()).map_err(|e| told(e.into()))?;
    let begin = Instant::now();
    while rustix::fs::flock(&descriptor, FlockOperation::NonBlockingLockExclusive).is_err()
        && begin.elapsed() < MOUNTING
    {
        thread::sleep(AGAIN);
    }
    if is_mounted() { Ok(()) } else { mount_private().map_err(told) }
}

/// Whether this process is in a mount namespace of `ip netns exec`, which mounts a /sys of its own
/// and names it after the network namespace. A mount made there would go with the command that made
/// it.
pub(crate) fn is_netns_exec() -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // proc_pid_mountinfo(5): the mount point is the fifth field; type and source come after " - ".
    let mut sys = mounts
        .lines()
        .filter_map(|line| line.split_once(" - "))
        .filter(|(before, _)| before.split(' ').nth(4) == Some("/sys"));
    sys.next_back().and_then(|(_, after)| after.strip_prefix("sysfs ")).is_some_and(|rest| {
        let source = rest.split(' ').next().unwrap_or_default();
        !["sysfs", "none", "sys"].contains(&source)
    })
}

/// What is said of something below /sys that is not there for this reason.
pub(crate) fn absent_below_sys(what: impl fmt::Display) -> Error {
    Error::new(format!("under `ip netns exec` there is no {what}")).remedy(
        "run xcpnet outside; commands that are about this network namespace take --netns NAME",
    )
}

/// Refuses where it could not be kept mounted.
pub(crate) fn check_mount_namespace() -> Result<()> {
    if is_mounted() || !is_netns_exec() {
        return Ok(());
    }
    Err(absent_below_sys(format_args!("{MOUNT}, where xcpnet keeps what it sets up")))
}

/// A directory that is root's and in which nobody else may write, held open.
#[derive(Debug)]
pub(crate) struct Directory {
    descriptor: OwnedFd,
    /// For messages only.
    path: PathBuf,
}

/// Our directory with nobody else at work in it, for as long as the value lives. When it goes, so
/// does the directory if there is nothing in it.
#[derive(Debug)]
pub(super) struct Alone {
    root: Directory,
    ours: Directory,
}

impl Alone {
    /// Waits for those who are at work there; makes the directory if need be.
    pub fn make() -> Result<Self> {
        check_mount_namespace()?;
        mount_where_missing()?;
        loop {
            let root = Directory::root()?;
            let ours = root.make(OURS)?;
            if let Some(alone) = Self::hold(root, ours)? {
                return Ok(alone);
            }
        }
    }

    /// Waits for those who are at work there; `None` where nothing is kept.
    pub fn existing() -> Result<Option<Self>> {
        check_mount_namespace()?;
        if !is_mounted() {
            return Ok(None);
        }
        loop {
            let root = Directory::root()?;
            let Some(ours) = root.open(OURS)? else { return Ok(None) };
            if let Some(alone) = Self::hold(root, ours)? {
                return Ok(Some(alone));
            }
        }
    }

    /// Whoever was waited for may have removed the directory, and others may be at work in the next
    /// one of this name already: `None` then.
    fn hold(root: Directory, ours: Directory) -> Result<Option<Self>> {
        ours.lock()?;
        let is_the_one = root.open(OURS)?.is_some_and(|now| now.is(&ours));
        // Not a value that would remove what is there now.
        Ok(is_the_one.then(|| Self { root, ours }))
    }

    /// What is kept of a kind; `None` if nothing is.
    pub fn open(&self, kind: &str) -> Result<Option<Directory>> {
        self.ours.open(kind)
    }

    /// Where what is of a kind is kept, made if need be.
    pub fn make_in(&self, kind: &str) -> Result<Directory> {
        self.ours.make(kind)
    }

    /// Removes what is kept of a kind: all of it, or what has that name.
    pub fn clear(&self, kind: &str, name: Option<&str>) -> Result<()> {
        let Some(name) = name else { return self.ours.remove(kind) };
        if let Some(above) = self.ours.open(kind)? {
            above.remove(name)?;
        }
        self.ours.remove_empty(kind);
        Ok(())
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.root.remove_empty(OURS);
    }
}

impl Directory {
    /// The mount itself. Others may write there, but must not be able to move what is root's.
    fn root() -> Result<Self> {
        let path = PathBuf::from(MOUNT);
        let told =
            |e: Errno| Error::because(format_args!("cannot open {MOUNT}"), io::Error::from(e));
        let descriptor = rustix::fs::open(MOUNT, FLAGS, Mode::empty()).map_err(told)?;
        let status = rustix::fs::fstat(&descriptor).map_err(told)?;
        let mode = Mode::from_raw_mode(status.st_mode);
        if status.st_uid != 0 || mode.intersects(OTHERS_WRITE) && !mode.contains(Mode::SVTX) {
            return Err(Error::new(format!(
                "users other than root may move away what is kept in {MOUNT} ({})",
                whose(&status)
            ))
            .remedy(format!("give it to root: chown root {MOUNT} && chmod 0700 {MOUNT}")));
        }
        Ok(Self { descriptor, path })
    }

    /// A directory in this one; `None` if there is nothing of that name.
    ///
    /// # Errors
    /// It is not a directory, or somebody else than root may write into it.
    pub fn open(&self, name: &str) -> Result<Option<Self>> {
        let path = self.path.join(name);
        let told = |e: Errno| {
            Error::because(format_args!("cannot open {}", path.display()), io::Error::from(e))
        };
        match rustix::fs::openat(&self.descriptor, name, FLAGS, Mode::empty()) {
            Ok(descriptor) => {
                let status = rustix::fs::fstat(&descriptor).map_err(told)?;
                if status.st_uid != 0
                    || Mode::from_raw_mode(status.st_mode).intersects(OTHERS_WRITE)
                {
                    return Err(not_roots(&path, &status));
                }
                Ok(Some(Self { descriptor, path }))
            }
            Err(Errno::NOENT) => Ok(None),
            // A symbolic link, or no directory.
            Err(Errno::LOOP | Errno::NOTDIR) => Err(not_roots(
                &path,
                &rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_err(told)?,
            )),
            Err(e) => Err(told(e)),
        }
    }

    /// A directory in this one, made unless it is there.
    pub fn make(&self, name: &str) -> Result<Self> {
        loop {
            match rustix::fs::mkdirat(&self.descriptor, name, PRIVATE) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => {
                    return Err(Error::because(
                        format_args!("cannot make {}", self.shown(name)),
                        io::Error::from(e),
                    ));
                }
            }
            // Somebody may have removed it in between.
            if let Some(made) = self.open(name)? {
                return Ok(made);
            }
        }
    }

    /// Gives a directory in this one another name.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        rustix::fs::renameat(&self.descriptor, from, &self.descriptor, to).map_err(|e| {
            let doing = format_args!("cannot rename {} to {to}", self.shown(from));
            Error::because(doing, io::Error::from(e))
        })
    }

    /// Keeps everybody else who asks for it waiting, for as long as the value lives.
    ///
    /// # Errors
    /// Somebody keeps it for longer than [`PATIENCE`]; the system has no locks for it.
    fn lock(&self) -> Result<()> {
        let begin = Instant::now();
        loop {
            match rustix::fs::flock(&self.descriptor, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if begin.elapsed() < PATIENCE => thread::sleep(AGAIN),
                Err(Errno::WOULDBLOCK) => {
                    let who = self.holder().map_or_else(
                        || "another process has".to_owned(),
                        |process| format!("process {process} has"),
                    );
                    return Err(Error::new(format!(
                        "{who} been at work in {self} for {} seconds",
                        PATIENCE.as_secs()
                    ))
                    .remedy("wait for it, or end it if it hangs"));
                }
                Err(e) => {
                    let doing = format_args!("cannot lock {self}");
                    return Err(Error::because(doing, io::Error::from(e)));
                }
            }
        }
    }

    /// Who holds the lock, by proc_locks(5).
    fn holder(&self) -> Option<u32> {
        let inode = format!(":{}", rustix::fs::fstat(&self.descriptor).ok()?.st_ino);
        let locks = fs::read_to_string("/proc/locks").ok()?;
        locks.lines().find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [_, "FLOCK", _, _, process, file, ..] if file.ends_with(&inode) => {
                    process.parse().ok()
                }
                _ => None,
            }
        })
    }

    /// Whether both are one and the same.
    fn is(&self, other: &Self) -> bool {
        let which = |one: &Self| rustix::fs::fstat(&one.descriptor).map(|s| (s.st_dev, s.st_ino));
        matches!((which(self), which(other)), (Ok(this), Ok(that)) if this == that)
    }

    /// Whether there is something of that name.
    pub fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// What is in it.
    pub fn names(&self) -> Result<Vec<String>> {
        let told =
            |e: Errno| Error::because(format_args!("cannot list {self}"), io::Error::from(e));
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor).map_err(told)? {
            let entry = entry.map_err(told)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Removes a directory in this one with the files in it.
    pub fn remove(&self, name: &str) -> Result<()> {
        let Some(directory) = self.open(name)? else { return Ok(()) };
        let told = |e: Errno| {
            Error::because(format_args!("cannot remove {}", self.shown(name)), io::Error::from(e))
        };
        for file in directory.names()? {
            rustix::fs::unlinkat(&directory.descriptor, file, AtFlags::empty()).map_err(told)?;
        }
        rustix::fs::unlinkat(&self.descriptor, name, AtFlags::REMOVEDIR).map_err(told)
    }

    /// Removes a directory in this one if there is nothing in it.
    fn remove_empty(&self, name: &str) {
        let _ = rustix::fs::unlinkat(&self.descriptor, name, AtFlags::REMOVEDIR);
    }

    /// A path by which bpf(2) reaches something in this very directory, whatever has become of its
    /// name.
    pub fn reach(&self, name: &str) -> PathBuf {
        Path::new("/proc/self/fd").join(self.descriptor.as_fd().as_raw_fd().to_string()).join(name)
    }

    /// How something in it is called in messages.
    pub fn shown(&self, name: &str) -> impl fmt::Display + use<> {
        self.path.join(name).display().to_string()
    }
}

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

const FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const OTHERS_WRITE: Mode = Mode::WGRP.union(Mode::WOTH);

fn whose(status: &rustix::fs::Stat) -> String {
    format!("it belongs to user {}, with mode {:04o}", status.st_uid, status.st_mode & 0o7777)
}

fn not_roots(path: &Path, status: &rustix::fs::Stat) -> Error {
    let path = path.display();
    let what = match FileType::from_raw_mode(status.st_mode) {
        FileType::Directory => "can be changed by users other than root",
        FileType::Symlink => "is a symbolic link",
        _ => "is not a directory",
    };
    Error::new(format!(
        "{path} {what} ({}): somebody else made it, and xcpnet touches nothing there",
        whose(status)
    ))
    .remedy(format!("check what it is, and remove it if nothing needs it: rm -r {path}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change, unmount};
    use rustix::thread::UnshareFlags;

    use super::*;

    #[test]
    fn whoever_is_first_at_the_same_time_mounts_it_once() {
        if !crate::error::is_root() {
            return xcp_skip::skipped!("root", "two commands that mount bpffs at once: needs root");
        }
        let unmount_all = || {
            let mut there = 0;
            while is_mounted() {
                unmount(MOUNT, UnmountFlags::DETACH).unwrap();
                there += 1;
            }
            there
        };
        let on_its_own = || {
            // SAFETY: what makes it unsafe is leaving the table of descriptors, which is not asked
            // for.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.unwrap();
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
            unmount_all();
            let together = Barrier::new(4);
            for attempt in 0..50 {
                thread::scope(|scope| {
                    for _ in 0..4 {
                        scope.spawn(|| {
                            together.wait();
                            drop(Alone::make().unwrap());
                        });
                    }
                });
                assert_eq!(unmount_all(), 1, "attempt {attempt}");
            }
            // Whoever holds what is beneath keeps nobody from it.
            let beneath = rustix::fs::open(MOUNT, FLAGS, Mode::empty()).unwrap();
            rustix::fs::flock(&beneath, FlockOperation::LockExclusive).unwrap();
            drop(Alone::make().unwrap());
            assert_eq!(unmount_all(), 1);
        };
        thread::scope(|scope| scope.spawn(on_its_own).join()).unwrap();
    }
}
