//! Routers whose device went away or elsewhere, whose command was interrupted, or at which several
//! commands worked at once: whatever is left of them the next command clears away.

use std::ffi::CString;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::{apart, assert_nothing_left, device, htb, mount_bpf, plan};
use xcp_linux::kept::{self, RouterPlan};
use xcp_linux::namespace::Namespace;
use xcp_linux::netlink::Netlink;
use xcp_linux::qdisc::{self, Limit, Shaper, Whose};
use xcp_linux::router::Hook;

const OURS: &str = "/sys/fs/bpf/xcpnet";

fn nothing_is_kept() -> bool {
    !Path::new(OURS).exists()
}

/// The device's new number in the other namespace.
fn move_left(from: &Namespace, to: &Namespace) -> u32 {
    let path = format!("/proc/{}/fd/{}", std::process::id(), to.as_fd().as_raw_fd());
    let moved = from
        .run(|| Command::new("ip").args(["link", "set", "left", "netns", &path]).status())
        .unwrap();
    assert!(moved.unwrap().success());
    Netlink::open_in(to).unwrap().index_of("left").unwrap().unwrap()
}

#[test]
fn a_device_that_moves_leaves_its_router_behind() {
    apart(|| {
        mount_bpf(c"mode=0700");
        for hook in [Hook::Any, Hook::Clsact] {
            // Whoever asks first, in the namespace that it left or in the one that it came to.
            for first_there in [true, false] {
                let ((old, _), new) = (device(), Namespace::new().unwrap());
                kept::add(&plan(htb(), hook), &old).unwrap();
                let index = move_left(&old, &new);
                let asked = if first_there { &new } else { &old };
                until_cleared(asked);
                assert_nothing_left(&new, index);
                assert!(kept::need("left", &new).is_err() && kept::need("left", &old).is_err());
                // It can have another one there, which stays when it is asked for in its old place.
                kept::add(&plan(htb(), hook), &new).unwrap();
                assert!(kept::list(&old).unwrap().is_empty());
                assert_eq!(kept::list(&new).unwrap().len(), 1);
                kept::delete("left", &new).unwrap();
            }
        }
    });
}

/// A program that has no device left goes a moment later.
fn until_cleared(asked: &Namespace) {
    let end = Instant::now() + Duration::from_secs(10);
    while !nothing_is_kept() {
        assert!(Instant::now() < end, "what is left of a router stays");
        assert!(kept::list(asked).unwrap().is_empty());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_router_goes_with_its_namespace() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let here = Namespace::new().unwrap();
        for hook in [Hook::Any, Hook::Clsact] {
            let (namespace, _) = device();
            kept::add(&plan(htb(), hook), &namespace).unwrap();
            assert!(kept::list(&here).unwrap().is_empty() && !nothing_is_kept(), "it works on");
            drop(namespace);
            until_cleared(&here);
        }
    });
}

/// As it is when `router add` ends between two of its steps: each of what it keeps missing, the
/// shaper there.
#[test]
fn what_an_interrupted_command_left_is_cleared_away() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let (namespace, index) = device();
        let half = |missing: &[&str]| {
            drop(kept::add(&plan(htb(), Hook::Any), &namespace).unwrap());
            let directory = directory(&namespace, index);
            for file in missing {
                std::fs::remove_file(Path::new(&directory).join(file)).unwrap();
            }
        };
        for missing in [&["link"] as &[&str], &["link", "control"], &["link", "port", "control"]] {
            half(missing);
            assert!(kept::list(&namespace).unwrap().is_empty(), "{missing:?}");
            assert!(nothing_is_kept(), "{missing:?}");
            assert_nothing_left(&namespace, index);
            half(missing);
            kept::delete("left", &namespace).unwrap();
            assert_nothing_left(&namespace, index);
            half(missing);
            kept::add(&plan(htb(), Hook::Any), &namespace).unwrap();
            kept::delete("left", &namespace).unwrap();
            assert!(kept::delete("left", &namespace).is_err(), "{missing:?}");
        }
    });
}

/// As it is when `router add` is killed on its way: what hangs already is for a command that sees
/// its device, where the shaper is; the rest is for anybody, and so is all of it once the namespace
/// is gone.
#[test]
fn what_an_interrupted_command_left_goes_with_its_namespace() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let here = Namespace::new().unwrap();
        let half = |namespace: &Namespace, index: u32, hook: Hook, missing: &[&str]| {
            drop(kept::add(&plan(htb(), hook), namespace).unwrap());
            let directory = directory(namespace, index);
            for file in missing {
                std::fs::remove_file(Path::new(&directory).join(file)).unwrap();
            }
            if !missing.is_empty() {
                let mut netlink = Netlink::open_in(namespace).unwrap();
                qdisc::remove(&mut netlink, index, Whose::Router).unwrap();
            }
            let unfinished = directory.replace("router/", "router/unfinished-");
            std::fs::rename(directory, unfinished).unwrap();
        };
        for missing in [&["link"] as &[&str], &["link", "control"], &["link", "port", "control"]] {
            let (namespace, index) = device();
            half(&namespace, index, Hook::Any, missing);
            until_cleared(&here);
            assert_nothing_left(&namespace, index);
        }
        for hook in [Hook::Any, Hook::Clsact] {
            let (namespace, index) = device();
            half(&namespace, index, hook, &[]);
            assert!(kept::list(&here).unwrap().is_empty() && !nothing_is_kept(), "{hook:?}");
            assert!(kept::list(&namespace).unwrap().is_empty() && nothing_is_kept(), "{hook:?}");
            assert_nothing_left(&namespace, index);
            half(&namespace, index, hook, &[]);
            kept::add(&plan(htb(), hook), &namespace).unwrap();
            kept::delete("left", &namespace).unwrap();
            assert_nothing_left(&namespace, index);
            half(&namespace, index, hook, &[]);
            drop(namespace);
            until_cleared(&here);
        }
    });
}

fn directory(namespace: &Namespace, index: u32) -> String {
    format!("{OURS}/router/{}-{index}", namespace.cookie().unwrap())
}

/// Ended after the first step of `router del`, or by `bpftool link detach`.
#[test]
fn a_router_that_was_taken_off_leaves_no_shaper() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let (namespace, index) = device();
        let take_off = || {
            kept::add(&plan(htb(), Hook::Any), &namespace).unwrap();
            let link = CString::new(format!("{}/link", directory(&namespace, index))).unwrap();
            // SAFETY: a terminated string; the descriptor is the kernel's own and closed at once.
            unsafe {
                let link = OwnedFd::from_raw_fd(libbpf_sys::bpf_obj_get(link.as_ptr()));
                assert_eq!(libbpf_sys::bpf_link_detach(link.as_raw_fd()), 0);
            }
        };
        take_off();
        assert!(kept::list(&namespace).unwrap().is_empty() && nothing_is_kept());
        assert_nothing_left(&namespace, index);
        take_off();
        kept::delete("left", &namespace).unwrap();
        assert_nothing_left(&namespace, index);
    });
}

/// The program of a filter that was removed goes a moment later.
#[test]
fn a_filter_that_was_removed_is_gone_at_once() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let (namespace, index) = device();
        for _ in 0..5 {
            kept::add(&plan(htb(), Hook::Clsact), &namespace).unwrap();
            let remove =
                || Command::new("tc").args(["qdisc", "del", "dev", "left", "clsact"]).status();
            assert!(namespace.run(remove).unwrap().unwrap().success());
            kept::add(&plan(htb(), Hook::Clsact), &namespace).unwrap();
            kept::delete("left", &namespace).unwrap();
            assert_nothing_left(&namespace, index);
        }
    });
}

/// A namespace's number in /proc is the next one's as soon as it is gone.
#[test]
fn the_next_namespace_keeps_its_own_shaper() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let (gone, gone_index) = device();
        let number = gone.inode();
        kept::add(&plan(htb(), Hook::Clsact), &gone).unwrap();
        drop(gone);
        let next = (0..100).map(|_| device()).find(|(next, _)| next.inode() == number);
        let Some((next, index)) = next else {
            return xcp_skip::skipped!("kernel", "a namespace with the number of one that is gone");
        };
        assert_eq!(index, gone_index);
        let mut netlink = Netlink::open_in(&next).unwrap();
        qdisc::install(
            &mut netlink,
            index,
            Whose::Router,
            Shaper::Htb,
            10_000_000,
            Limit::Packets(9),
        )
        .unwrap();
        until_cleared(&next);
        assert!(qdisc::root(&mut netlink, index).unwrap().whose.is_some());
    });
}

fn add(namespace: &Namespace, plan: &RouterPlan) -> Result<(), String> {
    kept::add(plan, namespace).map(drop).map_err(|e| e.to_string())
}

/// Of two at the same moment one adds its router and the other is told of it. (Each would otherwise
/// clear the other's away.)
#[test]
fn two_that_add_at_once_do_not_harm_each_other() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let (namespace, index) = device();
        for _ in 0..5 {
            let added = thread::scope(|scope| {
                let add = || scope.spawn(|| add(&namespace, &plan(htb(), Hook::Any)));
                [add(), add()].map(|one| one.join().unwrap())
            });
            let refused: Vec<&String> = added.iter().filter_map(|one| one.as_ref().err()).collect();
            assert!(refused.len() == 1 && refused[0].contains("already has a router"), "{added:?}");
            kept::need("left", &namespace).unwrap();
            kept::delete("left", &namespace).unwrap();
            assert_nothing_left(&namespace, index);
        }
    });
}

/// One who removes the last router removes the directory that others wait for.
#[test]
fn one_that_removes_and_two_that_add_take_turns() {
    apart(|| {
        mount_bpf(c"mode=0700");
        let (namespace, index) = device();
        let plan = plan(htb(), Hook::Any);
        for round in 0..30 {
            add(&namespace, &plan).unwrap();
            let added = thread::scope(|scope| {
                let remove = scope.spawn(|| kept::delete("left", &namespace));
                let adding = [(); 2].map(|()| scope.spawn(|| add(&namespace, &plan)));
                let added = adding.map(|one| one.join().unwrap());
                // It was there, whoever came first.
                remove.join().unwrap().unwrap();
                added
            });
            let refused: Vec<&String> = added.iter().filter_map(|one| one.as_ref().err()).collect();
            assert!(
                refused.iter().all(|why| why.contains("already has a router")),
                "{round}: {added:?}"
            );
            let there = kept::list(&namespace).unwrap().len();
            let shaped = qdisc::root(&mut Netlink::open_in(&namespace).unwrap(), index)
                .unwrap()
                .whose
                .is_some();
            assert_eq!((there, shaped), (2 - refused.len(), there == 1), "{round}: {added:?}");
            if there == 1 {
                kept::delete("left", &namespace).unwrap();
            }
            assert_nothing_left(&namespace, index);
            assert!(nothing_is_kept());
        }
    });
}
