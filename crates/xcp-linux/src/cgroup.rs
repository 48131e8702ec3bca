//! Control groups, version 2: where they are mounted, and one opened, made, entered or removed.
//! Programs are attached to them elsewhere.
//!
//! A socket belongs for good to the group that its process is in when it is made.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::kept::file_system::{absent_below_sys, is_netns_exec};

/// `CGROUP2_SUPER_MAGIC` and `CGROUP_SUPER_MAGIC` (linux/magic.h): what kind of file system a
/// directory is on.
const VERSION_2: i128 = 0x6367_7270;
const VERSION_1: i128 = 0x0027_e0eb;

/// Where version 2 is mounted: `/sys/fs/cgroup`, or beside version 1 somewhere else.
///
/// # Errors
/// It is not.
pub fn mount_point() -> Result<PathBuf> {
    let mounts = fs::read("/proc/self/mountinfo")
        .map_err(|e| Error::because("cannot read /proc/self/mountinfo", e))?;
    let remedy = "mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified";
    mount_in(&mounts).ok_or_else(|| {
        if is_netns_exec() {
            absent_below_sys("cgroup v2, which determines which connections are served")
        } else {
            Error::new("cgroup v2 is not mounted").remedy(remedy)
        }
    })
}

/// Finds it in what proc_pid_mountinfo(5) describes: number, parent, device, root, mount point,
/// options, some tags, a hyphen, type, source, options.
fn mount_in(mountinfo: &[u8]) -> Option<PathBuf> {
    let mut of_a_part = None;
    for line in mountinfo.split(|byte| *byte == b'\n') {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let (Some(root), Some(point), Some(hyphen)) =
            (fields.get(3), fields.get(4), fields.iter().position(|f| *f == b"-"))
        else {
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
        let octal = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok());
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

/// Opens a cgroup's directory.
///
/// # Errors
/// It is not there, or not one of version 2.
pub fn open(directory: &Path) -> Result<File> {
    let doing = format!("cannot open the cgroup {}", directory.display());
    let file = File::open(directory).map_err(|e| {
        let kind = e.kind();
        let error = Error::because(&doing, e);
        // As /proc/PID/cgroup and systemd write it: from the mount point on.
        let below =
            mount_point().map(|at| at.join(directory.strip_prefix("/").unwrap_or(directory)));
        match (kind, below) {
            (io::ErrorKind::NotFound, Ok(below)) if below.is_dir() => {
                error.remedy(format!("say {}", below.display()))
            }
            (io::ErrorKind::NotFound, _) => error.remedy(place()),
            _ => error,
        }
    })?;
    let system =
        rustix::fs::fstatfs(&file).map_err(|e| Error::because(&doing, io::Error::from(e)))?;
    let why = match i128::from(system.f_type) {
        VERSION_2 if file.metadata().is_ok_and(|m| m.is_dir()) => return Ok(file),
        VERSION_2 => "it is a file in a cgroup, not the cgroup's directory",
        VERSION_1 => "it is a version 1 cgroup, to which programs for sockets cannot be attached",
        _ => "it is not a cgroup",
    };
    Err(Error::new(format!("{doing}: {why}")).remedy(place()))
}

fn place() -> String {
    mount_point().map_or_else(
        |e| e.to_string(),
        |at| {
            format!(
                "version 2 is mounted at {}, and its groups are directories below",
                at.display()
            )
        },
    )
}

/// Makes a cgroup, below one that exists.
///
/// # Errors
/// It is there already; not permitted; not below a cgroup of version 2.
pub fn make(directory: &Path) -> Result<()> {
    // Elsewhere, this would make an ordinary directory.
    open(directory.parent().unwrap_or(Path::new("/")))?;
    fs::create_dir(directory).map_err(|e| {
        Error::because(format_args!("cannot make the cgroup {}", directory.display()), e)
    })
}

/// How long the last threads of a group may take to leave it.
const LEAVING: Duration = Duration::from_secs(2);

/// Removes one that is empty, or about to be: a thread that was joined, a process that was killed,
/// has told so before it has left its group.
///
/// # Errors
/// Processes, or groups, are left in it.
pub fn remove(directory: &Path) -> Result<()> {
    let begin = Instant::now();
    let removed = loop {
        match fs::remove_dir(directory) {
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) && begin.elapsed() < LEAVING => {
                std::thread::sleep(Duration::from_millis(2))
            }
            other => break other,
        }
    };
    removed.map_err(|e| {
        let number = e.raw_os_error();
        let error =
            Error::because(format_args!("cannot remove the cgroup {}", directory.display()), e);
        match number {
            Some(libc::EBUSY | libc::ENOTEMPTY) => error.remedy(
                "end the processes in it (its cgroup.procs lists them) and remove the groups \
                 below it",
            ),
            _ => error,
        }
    })
}

/// Moves this process, all its threads, into a cgroup. Sockets that it has stay where they were
/// made.
///
/// # Errors
/// Not permitted; the group hands controllers on to groups below it.
pub fn enter(directory: &Path) -> Result<()> {
    add(directory, std::process::id())
}

/// Moves a process into a cgroup.
///
/// # Errors
/// Not permitted; there is no such process; the group hands controllers on to groups below it.
pub fn add(directory: &Path, process: u32) -> Result<()> {
    fs::write(directory.join("cgroup.procs"), process.to_string()).map_err(|e| {
        let number = e.raw_os_error();
        let error = Error::because(
            format_args!("cannot move process {process} into the cgroup {}", directory.display()),
            e,
        );
        match number {
            // "No internal processes" (Documentation/admin-guide/cgroup-v2.rst).
            Some(libc::EBUSY) => error
                .remedy("it delegates controllers (cgroup.subtree_control): use a group below it"),
            Some(libc::ESRCH) => error.remedy("there is no such process"),
            _ => error,
        }
    })
}

/// The cgroup this process is in.
///
/// # Errors
/// Version 2 is not mounted.
pub fn current() -> Result<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup")
        .map_err(|e| Error::because("cannot read /proc/self/cgroup", e))?;
    // Version 2 is the hierarchy number 0 and has no controllers (cgroups(7)).
    let inside = text.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    Ok(mount_point()?.join(inside.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_mount_is_found_wherever_it_is() {
        let v1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n";
        let part = "40 31 0:38 /docker/1 /mnt rw - cgroup2 cgroup2 rw\n";
        let usual = "41 31 0:38 / /sys/fs/cgroup rw,relatime shared:9 master:1 - cgroup2 cgroup2 \
            rw,nsdelegate\n";
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
