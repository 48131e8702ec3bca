//! Namespaces are apart from one another, are entered by the thread that asks and by no other, and
//! need no name.

use std::os::fd::AsFd as _;
use std::os::fd::AsRawFd as _;

use xcp_linux::namespace::Namespace;
use xcp_linux::netlink::Netlink;
use xcp_linux::sysctl;

use crate::namespace;

#[test]
fn a_new_one_has_only_a_loopback_device_that_is_up() {
    let Some(new) = namespace("a new namespace") else { return };
    let links = Netlink::open_in(&new).unwrap().links().unwrap();
    let real: Vec<_> = links.iter().filter(|l| l.up).collect();
    assert_eq!(real.len(), 1, "{links:?}");
    assert!(real[0].loopback && real[0].name == "lo", "{links:?}");
}

#[test]
fn only_what_is_run_in_it_is_in_it() {
    let Some(new) = namespace("running in a namespace") else { return };
    let before = Namespace::current().unwrap().inode();
    let inside = new.run(|| Namespace::current().unwrap().inode()).unwrap();
    assert_eq!(inside, new.inode());
    assert_ne!(inside, before);
    assert_eq!(Namespace::current().unwrap().inode(), before);
}

#[test]
fn a_thread_that_enters_stays_and_takes_no_other_with_it() {
    let Some(new) = namespace("entering a namespace") else { return };
    let before = Namespace::current().unwrap().inode();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            new.enter().unwrap();
            assert_eq!(Namespace::current().unwrap().inode(), new.inode());
        });
    });
    assert_eq!(Namespace::current().unwrap().inode(), before);
}

#[test]
fn a_panic_within_comes_out_and_leaves_the_caller_where_it_was() {
    let Some(new) = namespace("panic in a namespace") else { return };
    let before = Namespace::current().unwrap().inode();
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        new.run(|| std::panic::panic_any("within"))
    }));
    assert_eq!(*panic.unwrap_err().downcast::<&str>().unwrap(), "within");
    assert_eq!(Namespace::current().unwrap().inode(), before);
}

#[test]
fn one_can_be_opened_by_path() {
    let Some(new) = namespace("opening a namespace by path") else { return };
    let path = format!("/proc/self/fd/{}", new.as_fd().as_raw_fd());
    assert_eq!(Namespace::named(&path).unwrap().inode(), new.inode());
}

#[test]
fn what_is_no_namespace_is_refused_with_a_remedy() {
    for (name, expected) in [
        ("no-such-namespace", "ip netns"),
        ("..", "ip netns"),
        ("", "ip netns"),
        ("/proc/self/ns/uts", "not a network namespace"),
        ("/etc/passwd", "not a network namespace"),
        ("/no/such/path", "/no/such/path"),
    ] {
        let error = Namespace::named(name).unwrap_err().to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn settings_are_those_of_the_namespace() {
    let Some(new) = namespace("settings of a namespace") else { return };
    let name = "net.ipv4.ip_forward";
    let outside = sysctl::read(name).unwrap();
    for value in ["1", "0"] {
        new.run(|| sysctl::write(name, value)).unwrap().unwrap();
        assert_eq!(new.run(|| sysctl::read(name)).unwrap().unwrap(), value);
        assert_eq!(sysctl::read(name).unwrap(), outside);
    }
    assert_eq!(new.run(|| sysctl::numbers("net.ipv4.tcp_rmem")).unwrap().unwrap().len(), 3);
}
