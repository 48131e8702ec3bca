//! The lab's control group: the kernel programs of the endpoint serve the sockets of a group, and a socket belongs to the group of the process that
//! makes it. So a lab moves its process into a group of its own, and back when it is done.
//!
//! This is all that outlives a killed lab: an empty directory `xcpnet-lab-PID-STARTTIME`. What it was for is in its name, so that the next lab can
//! tell that nobody needs it any more.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use crate::LabError;

/// How the groups' names begin.
const PREFIX: &str = "xcpnet-lab-";

/// The group; left and removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Home {
    directory: PathBuf,
    descriptor: OwnedFd,
    /// Where the process came from.
    before: PathBuf,
}

/// Where control groups of version 2 are mounted (cgroups(7)): not everywhere at the same place, and often beside version 1.
fn mount() -> Result<PathBuf, LabError> {
    let text = fs::read_to_string("/proc/self/mountinfo").map_err(|why| LabError::missing(format_args!("cannot read its mounts: {why}")))?;
    mount_in(&text).ok_or_else(|| {
        LabError::missing("no control groups of version 2 are mounted: `mount -t cgroup2 none /sys/fs/cgroup/unified` does that")
    })
}

/// Its place in the text of /proc/PID/mountinfo: `ID PARENT DEVICE ROOT PLACE OPTIONS... - TYPE SOURCE OPTIONS`, see proc(5).
fn mount_in(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, file_system) = line.split_once(" - ")?;
        let place = mount.split(' ').nth(4)?;
        file_system.starts_with("cgroup2 ").then(|| PathBuf::from(unescape(place)))
    })
}

/// Spaces and the like are octal numbers after a backslash.
fn unescape(place: &str) -> String {
    let mut parts = place.split('\\');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..3).and_then(|octal| u8::from_str_radix(octal, 8).ok()) {
            Some(code) => {
                out.push(code.into());
                out.push_str(&part[3..]);
            }
            None => {
                out.push('\\');
                out.push_str(part);
            }
        }
    }
    out
}

/// When a process was started, in the kernel's ticks since boot: with the number, what tells it from all others. `None` if it is no more.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; field 22 is the 20th after it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// The process that a group's name speaks of: number and start.
fn owner(name: &str) -> Option<(u32, u64)> {
    let (pid, start) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Some((pid.parse().ok()?, start.parse().ok()?))
}

/// Removes the groups of labs that are no more. Returns what it removed.
pub(crate) fn clean() -> Result<Vec<PathBuf>, LabError> {
    let mount = mount()?;
    let entries = fs::read_dir(&mount).map_err(|why| LabError::failed(format_args!("look into {}", mount.display()), why))?;
    let mut removed = Vec::new();
    for directory in entries.flatten().map(|entry| entry.path()) {
        let owner = directory.file_name().and_then(|name| owner(name.to_str()?));
        if owner.is_some_and(|(pid, start)| start_time(pid) != Some(start)) {
            match fs::remove_dir(&directory) {
                Ok(()) => removed.push(directory),
                // Another lab was faster.
                Err(why) if why.kind() == io::ErrorKind::NotFound => {}
                Err(why) => {
                    let step = format!("remove the control group {} of a lab that is no more", directory.display());
                    return Err(LabError::failed(step, format_args!("{why}; does a process live in it? Its cgroup.procs says")));
                }
            }
        }
    }
    removed.sort();
    Ok(removed)
}

impl Home {
    /// Makes a group and moves this process into it.
    pub fn enter() -> Result<Self, LabError> {
        let mount = mount()?;
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = own.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").trim_start_matches('/').to_owned();
        let pid = std::process::id();
        let directory = mount.join(format!("{PREFIX}{pid}-{}", start_time(pid).unwrap_or(0)));
        let enter = || {
            fs::create_dir(&directory)?;
            let home = Self { descriptor: File::open(&directory)?.into(), before: mount.join(own), directory: directory.clone() };
            move_to(&home.directory)?;
            Ok(home)
        };
        enter().map_err(|why: io::Error| {
            let _ = fs::remove_dir(&directory);
            let step = format!("make the control group {} and enter it", directory.display());
            LabError::failed(step, format_args!("{why}; `xcpnet doctor` says what this kernel can do"))
        })
    }

    /// The group's directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl AsFd for Home {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Moves this process, with all its threads.
fn move_to(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}

impl Drop for Home {
    fn drop(&mut self) {
        // Where that fails, the group stays for the next lab to remove.
        let _ = move_to(&self.before).and_then(|()| fs::remove_dir(&self.directory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_mounted_in_many_ways() {
        let old = "30 23 0:26 / /sys/fs/cgroup ro shared:9 - tmpfs tmpfs ro\n41 31 0:38 / /sys/fs/cgroup/uni\\040fied rw - cgroup2 cgroup2 rw\n";
        assert_eq!(mount_in(old), Some(PathBuf::from("/sys/fs/cgroup/uni fied")));
        assert_eq!(mount_in("41 31 0:38 / /sys/fs/cgroup rw shared:4 master:7 - cgroup2 none rw\n"), Some(PathBuf::from("/sys/fs/cgroup")));
        assert_eq!(mount_in("30 23 0:26 / /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"), None);
    }

    #[test]
    fn owners_are_known_by_their_start() {
        let own = std::process::id();
        let start = start_time(own).unwrap();
        assert!(start > 0 && start_time(own) == Some(start));
        assert_eq!(start_time(u32::MAX), None);
        assert_eq!(owner(&format!("{PREFIX}{own}-{start}")), Some((own, start)));
        for other in ["system.slice", "xcpnet-lab-", "xcpnet-lab-12", "xcpnet-lab-x-1"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }
}
