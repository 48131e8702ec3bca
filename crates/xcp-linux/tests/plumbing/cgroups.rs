//! Control groups: opened, made, entered by a process of the test's own, removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use xcp_linux::cgroup;

/// A group of this test's own; removed at the end, whatever happens.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Option<Self> {
        let path = cgroup::mount_point().map(|at| {
            at.join(format!("xcpnet-test-{}-{}", std::process::id(), test.replace(' ', "-")))
        });
        match path.and_then(|path| cgroup::make(&path).map(|()| path)) {
            Ok(path) => Some(Self(path)),
            Err(e) => {
                xcp_skip::skipped!("root", "{test}: {e}");
                None
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_group_is_made_filled_emptied_and_removed() {
    let Some(Scratch(group)) = &Scratch::new("life of a group") else { return };
    assert!(cgroup::make(group).unwrap_err().to_string().contains("exists"));
    cgroup::open(group).unwrap();
    // A name as /proc/PID/cgroup has it: the right one is told.
    let told =
        cgroup::open(&Path::new("/").join(group.file_name().unwrap())).unwrap_err().to_string();
    assert!(told.ends_with(&format!("say {}", group.display())), "{told}");
    let processes = || fs::read_to_string(group.join("cgroup.procs")).unwrap();
    assert_eq!(processes(), "");
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    cgroup::add(group, child.id()).unwrap();
    assert_eq!(processes(), format!("{}\n", child.id()));
    let full = cgroup::remove(group).unwrap_err().to_string();
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(full.contains("cgroup.procs"), "{full}");
    let gone = cgroup::add(group, child.id()).unwrap_err().to_string();
    assert!(gone.contains("no such process"), "{gone}");
    cgroup::remove(group).unwrap();
    assert!(!group.exists());
}

#[test]
fn ones_own_is_found() {
    let (Ok(root), Ok(own)) = (cgroup::mount_point(), cgroup::current()) else {
        xcp_skip::skipped!("root", "own cgroup: {:?}", cgroup::mount_point());
        return;
    };
    assert!(own.starts_with(&root));
    cgroup::open(&own).unwrap();
    let processes = fs::read_to_string(own.join("cgroup.procs")).unwrap();
    assert!(processes.lines().any(|line| line == std::process::id().to_string()), "{processes}");
}

#[test]
fn what_is_no_group_is_refused_with_the_place_to_look() {
    let Ok(mount) = cgroup::mount_point() else {
        xcp_skip::skipped!("root", "refused cgroups: none is mounted");
        return;
    };
    let place = mount.display().to_string();
    let file = mount.join("cgroup.procs");
    let first_version = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let first_version = first_version
        .lines()
        .find(|line| line.contains(" - cgroup "))
        .and_then(|line| line.split(' ').nth(4));
    let mut cases = vec![
        ("/tmp", "not a cgroup"),
        ("/no/such/group", "No such file"),
        (file.to_str().unwrap(), "not the cgroup's directory"),
    ];
    cases.extend(first_version.map(|path| (path, "version 1")));
    for (path, words) in cases {
        let text = cgroup::open(Path::new(path)).unwrap_err().to_string();
        assert!(text.contains(words) && text.contains(&place), "{path}: {text}");
    }
    // No directory is made where there are no groups.
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("group");
    assert!(cgroup::make(&inside).unwrap_err().to_string().contains("not a cgroup"));
    assert!(!inside.exists());
}
