//! Cgroups, version 2: where they are mounted, and a directory of our own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// CGROUP2_SUPER_MAGIC.
const MAGIC: i64 = 0x6367_7270;

/// Where version 2 is mounted: /sys/fs/cgroup, or beside version 1 somewhere else.
///
/// # Errors
/// It is not.
pub fn mount_point() -> Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|e| Error::because("/proc/self/mountinfo", &e))?;
    // proc_pid_mountinfo(5): the mount point is the fifth field, the type comes after " - ".
    let found = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        after.starts_with("cgroup2 ").then(|| before.split(' ').nth(4).map(PathBuf::from)).flatten()
    });
    found.ok_or_else(|| Error::new("cgroup v2 is not mounted").remedy("mount -t cgroup2 none /sys/fs/cgroup"))
}

/// Opens a cgroup's directory.
///
/// # Errors
/// It is not there, or not one of version 2.
pub fn open(directory: &Path) -> Result<File> {
    let file = File::open(directory).map_err(|e| Error::because(format_args!("cannot open the cgroup {}", directory.display()), &e))?;
    let system = rustix::fs::fstatfs(&file).map_err(|e| Error::because(directory.display(), &std::io::Error::from(e)))?;
    if i128::from(system.f_type) != i128::from(MAGIC) {
        let remedy = mount_point().map_or_else(|e| e.to_string(), |at| format!("version 2 is mounted at {}", at.display()));
        return Err(Error::new(format!("{} is not a cgroup of version 2", directory.display())).remedy(remedy));
    }
    Ok(file)
}

/// Makes a cgroup.
///
/// # Errors
/// It is there already; not permitted.
pub fn make(directory: &Path) -> Result<()> {
    fs::create_dir(directory).map_err(|e| Error::because(format_args!("cannot make the cgroup {}", directory.display()), &e))
}

/// Removes one that is empty.
///
/// # Errors
/// Processes are left in it.
pub fn remove(directory: &Path) -> Result<()> {
    fs::remove_dir(directory).map_err(|e| Error::because(format_args!("cannot remove the cgroup {}", directory.display()), &e))
}

/// Moves this process, all its threads, into a cgroup.
///
/// # Errors
/// Not permitted.
pub fn enter(directory: &Path) -> Result<()> {
    let file = directory.join("cgroup.procs");
    fs::write(&file, std::process::id().to_string()).map_err(|e| Error::because(format_args!("cannot enter {}", directory.display()), &e))
}

/// The cgroup this process is in.
///
/// # Errors
/// Version 2 is not mounted.
pub fn current() -> Result<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").map_err(|e| Error::because("/proc/self/cgroup", &e))?;
    let inside = text.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    Ok(mount_point()?.join(inside.trim_start_matches('/')))
}
