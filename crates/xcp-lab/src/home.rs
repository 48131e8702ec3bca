//! The lab's control group: the kernel programs of the endpoint serve the sockets of a group, and a
//! socket belongs to the group of the process that makes it. So a lab moves its process into a
//! group of its own, and back when it is done.
//!
//! This is all that outlives a killed lab: an empty directory `xcpnet-lab-PID-STARTTIME`. What it
//! was for is in its name, so that the next lab can tell that nobody needs it any more.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use xcp_linux::cgroup;
use xcp_linux::process::start_time;

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

/// The group of the lab that is running, and where the process came from, for [`leave_at_once`].
static ENTERED: Mutex<Option<(PathBuf, PathBuf)>> = Mutex::new(None);

/// Leaves and removes the group of a lab that is running: the process is about to end without any
/// destructor.
pub fn leave_at_once() {
    if let Ok(mut entered) = ENTERED.lock()
        && let Some((directory, before)) = entered.take()
    {
        leave(&directory, &before);
    }
}

/// Where that fails, the group stays for the next lab to remove.
fn leave(directory: &Path, before: &Path) {
    let _ = cgroup::enter(before).and_then(|()| cgroup::remove(directory));
}

/// The process that a group's name speaks of: number and start.
fn owner(name: &str) -> Option<(u32, u64)> {
    let (pid, start) = name.strip_prefix(PREFIX)?.split_once('-')?;
    Some((pid.parse().ok()?, start.parse().ok()?))
}

/// Removes the groups of labs that are no more. Returns what it removed.
pub(crate) fn clean() -> Result<Vec<PathBuf>, LabError> {
    let mount = cgroup::mount_point().map_err(LabError::lacks)?;
    let entries = fs::read_dir(&mount)
        .map_err(|why| LabError::failed(format_args!("look into {}", mount.display()), why))?;
    let mut removed = Vec::new();
    for directory in entries.flatten().map(|entry| entry.path()) {
        let owner = directory.file_name().and_then(|name| owner(name.to_str()?));
        if owner.is_some_and(|(pid, start)| start_time(pid) != Some(start)) {
            match cgroup::remove(&directory) {
                Ok(()) => removed.push(directory),
                // Another lab was faster.
                Err(_) if !directory.exists() => {}
                Err(why) => {
                    let step = format!(
                        "remove the control group {} of a lab that has ended",
                        directory.display()
                    );
                    return Err(LabError::failed(step, why));
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
        let missing = |why: xcp_linux::Error| LabError::lacks(why);
        let (mount, before) =
            (cgroup::mount_point().map_err(missing)?, cgroup::current().map_err(missing)?);
        let pid = std::process::id();
        let directory = mount.join(format!("{PREFIX}{pid}-{}", start_time(pid).unwrap_or(0)));
        cgroup::make(&directory).map_err(missing)?;
        let entered =
            cgroup::open(&directory).and_then(|file| cgroup::enter(&directory).map(|()| file));
        let file = entered.map_err(|why| {
            let _ = cgroup::remove(&directory);
            missing(why)
        })?;
        if let Ok(mut entered) = ENTERED.lock() {
            *entered = Some((directory.clone(), before.clone()));
        }
        Ok(Self { descriptor: file.into(), before, directory })
    }
}

impl AsFd for Home {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Ok(mut entered) = ENTERED.lock() {
            *entered = None;
        }
        leave(&self.directory, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_known_by_their_start() {
        let own = std::process::id();
        let start = start_time(own).unwrap();
        assert_eq!(owner(&format!("{PREFIX}{own}-{start}")), Some((own, start)));
        for other in ["system.slice", "xcpnet-lab-", "xcpnet-lab-12", "xcpnet-lab-x-1"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }
}
