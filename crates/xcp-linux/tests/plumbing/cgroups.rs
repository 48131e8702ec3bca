//! Control groups: opened, made, entered by a process of the test's own, removed.

use std::process::{Command, Stdio};

use xcp_linux::cgroup::{Cgroup, mount};

/// A group of this test's own; removed at the end, whatever happens.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(test: &str) -> Option<(Self, Cgroup)> {
        let name = format!("xcpnet-test-{}-{}", std::process::id(), test.replace(' ', "-"));
        match Cgroup::make(&name) {
            Ok(group) => Some((Self(group.path().to_owned()), group)),
            Err(e) => {
                println!("SKIPPED: {test}: {e}");
                None
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[test]
fn a_group_is_made_filled_emptied_and_removed() {
    let Some((scratch, group)) = Scratch::new("life of a group") else { return };
    assert_eq!(Cgroup::make(&scratch.0).unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(group.processes().unwrap(), []);
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    group.add(child.id()).unwrap();
    assert_eq!(group.processes().unwrap(), [child.id()]);
    let full = Cgroup::open(&scratch.0).unwrap().remove().unwrap_err().to_string();
    assert!(full.contains("still in it"), "{full}");
    drop(child.stdin.take());
    child.wait().unwrap();
    group.remove().unwrap();
    assert!(!scratch.0.exists());
}

#[test]
fn the_root_and_ones_own_are_found() {
    let (Ok(root), Ok(own)) = (Cgroup::root(), Cgroup::current()) else {
        println!("SKIPPED: root cgroup: {:?}", mount());
        return;
    };
    assert!(own.path().starts_with(root.path()));
    assert!(own.processes().unwrap().contains(&std::process::id()));
}

#[test]
fn what_is_no_group_is_refused_with_the_place_to_look() {
    let Ok(mount) = mount() else {
        println!("SKIPPED: refused cgroups: none is mounted");
        return;
    };
    let place = mount.display().to_string();
    let file = mount.join("cgroup.procs");
    for (path, words) in [
        ("/tmp", "not a cgroup"),
        ("/no/such/group", "No such file"),
        ("no-such-group", "No such file"),
        (file.to_str().unwrap(), "give the directory"),
        ("/sys/fs/cgroup/cpu", "version 1"),
    ] {
        if path.starts_with("/sys/fs/cgroup/cpu") && !std::path::Path::new(path).exists() {
            continue;
        }
        let text = Cgroup::open(path).unwrap_err().to_string();
        assert!(text.contains(words) && text.contains(&place), "{path}: {text}");
    }
    // No directory is made where there are no groups.
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("group");
    assert!(Cgroup::make(&inside).unwrap_err().to_string().contains("not a cgroup"));
    assert!(!inside.exists());
}
