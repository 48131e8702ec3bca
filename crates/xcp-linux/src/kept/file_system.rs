//! The BPF file system: found, mounted where it is missing, and our directories in it.

use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount};

use crate::error::{Error, Result};

pub(crate) const MOUNT: &str = "/sys/fs/bpf";
const OURS: &str = "xcpnet";

/// BPF_FS_MAGIC.
const MAGIC: i64 = 0xcafe_4a11;

/// Whether it is there.
pub(crate) fn is_mounted() -> bool {
    rustix::fs::statfs(MOUNT).is_ok_and(|s| i128::from(s.f_type) == i128::from(MAGIC))
}

/// Whether this process is in a mount namespace of `ip netns exec`, which mounts a /sys of its own and names it after the network namespace. A
/// mount made there would go with the command that made it.
fn is_netns_exec() -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // proc_pid_mountinfo(5): the mount point is the fifth field; type and source come after " - ".
    let mut sys = mounts.lines().filter_map(|line| line.split_once(" - ")).filter(|(before, _)| before.split(' ').nth(4) == Some("/sys"));
    sys.next_back().and_then(|(_, after)| after.strip_prefix("sysfs ")).is_some_and(|rest| {
        let source = rest.split(' ').next().unwrap_or_default();
        !["sysfs", "none", "sys"].contains(&source)
    })
}

/// Refuses where it could not be kept mounted.
pub(crate) fn check_mount_namespace() -> Result<()> {
    if is_mounted() || !is_netns_exec() {
        return Ok(());
    }
    Err(Error::new(format!("under `ip netns exec` there is no {MOUNT}, in which xcpnet keeps what it sets up"))
        .remedy("run xcpnet outside and name the network namespace: --netns NAME"))
}

/// Our directory; `None` where nothing was ever kept.
pub(super) fn existing() -> Result<Option<PathBuf>> {
    check_mount_namespace()?;
    let ours = Path::new(MOUNT).join(OURS);
    Ok((is_mounted() && ours.is_dir()).then_some(ours))
}

/// Our directory, made if need be.
pub(super) fn ours() -> Result<PathBuf> {
    check_mount_namespace()?;
    if !is_mounted() {
        mount("bpf", MOUNT, "bpf", MountFlags::empty(), None::<&CStr>)
            .map_err(|e| Error::because(format_args!("cannot mount a BPF file system at {MOUNT}"), &std::io::Error::from(e)))?;
    }
    let ours = Path::new(MOUNT).join(OURS);
    make(&ours)?;
    Ok(ours)
}

/// Makes a directory unless it is there.
pub(super) fn make(directory: &Path) -> Result<()> {
    match fs::create_dir(directory) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Error::because(format_args!("cannot make {}", directory.display()), &e))
        }
        _ => Ok(()),
    }
}

/// Removes a directory with what is kept in it, and those above it that it leaves empty, ours included.
pub(super) fn clear(directory: &Path) -> Result<()> {
    let told = |e: std::io::Error| Error::because(format_args!("cannot remove {}", directory.display()), &e);
    if directory.is_dir() {
        for entry in fs::read_dir(directory).map_err(told)? {
            fs::remove_file(entry.map_err(told)?.path()).map_err(told)?;
        }
        fs::remove_dir(directory).map_err(told)?;
    }
    for above in directory.ancestors().skip(1).take_while(|a| *a != Path::new(MOUNT)) {
        if fs::remove_dir(above).is_err() {
            break;
        }
    }
    Ok(())
}
