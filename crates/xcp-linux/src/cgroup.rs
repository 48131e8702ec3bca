//! Control groups, version 2: where they are mounted, and one opened, made, entered or removed. Programs are attached to them elsewhere.
//!
//! A socket belongs for good to the group that its process is in when it is made.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// `CGROUP2_SUPER_MAGIC` and `CGROUP_SUPER_MAGIC` (linux/magic.h): what kind of file system a directory is on.
const VERSION_2: u64 = 0x6367_7270;
const VERSION_1: u64 = 0x0027_e0eb;

/// Where version 2 is mounted: `/sys/fs/cgroup`, or `/sys/fs/cgroup/unified` beside version 1. An error of kind `NotFound` if nowhere.
pub fn mount() -> io::Result<PathBuf> {
    let mounts = fs::read("/proc/self/mountinfo").map_err(|e| told("cannot read /proc/self/mountinfo", &e))?;
    mount_in(&mounts).ok_or_else(|| {
        let text = "no cgroup v2 is mounted; mount it with:  mount -t cgroup2 none /sys/fs/cgroup/unified  (make the directory first)";
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

/// Finds it in what proc_pid_mountinfo(5) describes: number, parent, device, root, mount point, options, some tags, a hyphen, type, source, options.
fn mount_in(mountinfo: &[u8]) -> Option<PathBuf> {
    let mut of_a_part = None;
    for line in mountinfo.split(|byte| *byte == b'\n') {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let (Some(root), Some(point), Some(hyphen)) = (fields.get(3), fields.get(4), fields.iter().position(|f| *f == b"-")) else {
            continue;
        };
        if fields.get(hyphen + 1) != Some(&&b"cgroup2"[..]) {
            continue;
        }
        let point = PathBuf::from(OsString::from_vec(unescaped(point)));
        // A mount of the whole hierarchy rather than of a part of it.
        if *root == b"/" {
            return Some(point);
        }
        of_a_part = of_a_part.or(Some(point));
    }
    of_a_part
}

/// White space and backslashes are written as `\040` there.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &after[3..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

/// A control group of version 2.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
    directory: OwnedFd,
}

impl Cgroup {
    /// The one at the top, which has every process in it or below it.
    pub fn root() -> io::Result<Self> {
        Self::open(mount()?)
    }

    /// The one that the calling process is in.
    pub fn current() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/self/cgroup").map_err(|e| told("cannot read /proc/self/cgroup", &e))?;
        // Version 2 is hierarchy 0 and has no controllers: "0::/user.slice".
        let own = text.lines().find_map(|line| line.strip_prefix("0::/"));
        let own = own.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "this process is in no cgroup v2; see `xcpnet doctor`"))?;
        Self::open(mount()?.join(own))
    }

    /// An existing one: a directory, or what follows the mount point (`system.slice/web.service`).
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = resolved(path.as_ref())?;
        let doing = format!("cannot open the cgroup {}", path.display());
        let directory = File::open(&path).map_err(|e| {
            let remedy = match (e.kind(), mount()) {
                (io::ErrorKind::NotFound, Ok(mount)) => {
                    format!("; cgroup v2 is mounted on {}, and groups are directories below", mount.display())
                }
                _ => String::new(),
            };
            io::Error::new(e.kind(), format!("{doing}: {e}{remedy}"))
        })?;
        let kind = rustix::fs::fstatfs(&directory).map_err(|e| told(&doing, &e.into()))?.f_type as u64;
        let is_directory = directory.metadata().is_ok_and(|m| m.is_dir());
        if kind == VERSION_2 && is_directory {
            return Ok(Self { path, directory: directory.into() });
        }
        let why = match kind {
            VERSION_2 => "it is a file in a cgroup; give the directory",
            VERSION_1 => "it is a cgroup of version 1, to which these programs cannot be attached",
            _ => "it is not a cgroup",
        };
        let remedy = mount().map_or_else(|e| e.to_string(), |mount| format!("cgroup v2 is mounted on {}", mount.display()));
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{doing}: {why}; {remedy}")))
    }

    /// A new one, below one that exists. An error of kind `AlreadyExists` if it does.
    pub fn make(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = resolved(path.as_ref())?;
        // Elsewhere, this would make an ordinary directory.
        Self::open(path.parent().unwrap_or(Path::new("/")))?;
        fs::create_dir(&path).map_err(|e| {
            let remedy = if e.kind() == io::ErrorKind::PermissionDenied { "; this needs root" } else { "" };
            io::Error::new(e.kind(), format!("cannot make the cgroup {}: {e}{remedy}", path.display()))
        })?;
        Self::open(path)
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the calling process into it, with all its threads; sockets that it has stay where they were made.
    pub fn enter(&self) -> io::Result<()> {
        self.add(0)
    }

    /// Moves a process into it.
    pub fn add(&self, process: u32) -> io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), process.to_string()).map_err(|e| {
            let remedy = match e.raw_os_error() {
                Some(libc::EACCES | libc::EPERM) => "; this needs root, or a group that was handed over to the user",
                Some(libc::EBUSY) => "; it hands controllers on (cgroup.subtree_control): processes go into a group below it",
                Some(libc::ESRCH) => "; there is no such process",
                _ => "",
            };
            io::Error::new(e.kind(), format!("cannot move a process into the cgroup {}: {e}{remedy}", self.path.display()))
        })
    }

    /// The processes in it, those in groups below it not counted.
    pub fn processes(&self) -> io::Result<Vec<u32>> {
        let path = self.path.join("cgroup.procs");
        let text = fs::read_to_string(&path).map_err(|e| told(&format!("cannot read {}", path.display()), &e))?;
        Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// Removes it. It must have no process and no group in it.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_dir(&self.path).map_err(|e| {
            let remedy = match e.raw_os_error() {
                Some(libc::EBUSY | libc::ENOTEMPTY) => "; processes (cgroup.procs) or groups are still in it",
                Some(libc::EACCES | libc::EPERM) => "; this needs root",
                _ => "",
            };
            io::Error::new(e.kind(), format!("cannot remove the cgroup {}: {e}{remedy}", self.path.display()))
        })
    }
}

impl AsFd for Cgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

/// A path that does not begin at the root begins at the mount point.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    if path.is_absolute() { Ok(path.to_owned()) } else { Ok(mount()?.join(path)) }
}

fn told(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_mount_is_found_wherever_it_is() {
        let v1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n";
        let part = "40 31 0:38 /docker/1 /mnt rw - cgroup2 cgroup2 rw\n";
        let usual = "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:9 master:1 - cgroup2 cgroup2 rw,nsdelegate\n";
        let odd = "42 31 0:38 / /mnt/c\\040\\134g rw - cgroup2 none rw\n";
        let found = |text: &str| mount_in(text.as_bytes()).map(|p| p.display().to_string());
        assert_eq!(found(&format!("{v1}{part}{usual}")).as_deref(), Some("/sys/fs/cgroup"));
        assert_eq!(found(&format!("{v1}{part}")).as_deref(), Some("/mnt"));
        assert_eq!(found(odd).as_deref(), Some("/mnt/c \\g"));
        assert_eq!(found(v1), None);
        assert_eq!(found("nonsense\n\n - cgroup2"), None);
    }

    proptest! {
        #[test]
        fn no_mountinfo_makes_it_panic(bytes in proptest::collection::vec(proptest::sample::select(b"/ -\\049\ncgroup2x".to_vec()), 0..80)) {
            let _ = mount_in(&bytes);
        }
    }
}
