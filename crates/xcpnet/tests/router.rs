//! `xcpnet router`: settings that only the device can judge.
#![cfg(target_os = "linux")]

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::Command;

use xcp_linux::namespace::Namespace;
use xcp_linux::netlink::Netlink;

/// A namespace with a pair of devices, `left` and `right`; the number of `left`.
fn site(test: &str) -> Option<(Namespace, Netlink, u32)> {
    if !rustix::process::geteuid().is_root() {
        xcp_skip::skipped!("root", "{test}: needs root");
        return None;
    }
    let namespace = Namespace::new().unwrap();
    let mut netlink = Netlink::open_in(&namespace).unwrap();
    netlink.add_veth("left", "right", &namespace).unwrap();
    let index = netlink.index_of("left").unwrap().unwrap();
    netlink.set_up(index).unwrap();
    Some((namespace, netlink, index))
}

/// Types `xcpnet router WORDS` for a namespace: whether it could be done, and what was said.
fn router(namespace: &Namespace, words: &str) -> (bool, String) {
    let netns = format!("/proc/{}/fd/{}", std::process::id(), namespace.as_fd().as_raw_fd());
    let output = Command::new(env!("CARGO_BIN_EXE_xcpnet"))
        .arg("router")
        .args(words.split(' '))
        .args(["--netns", &netns])
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// A queue that holds no full frame would let nothing but acknowledgements through.
#[test]
fn a_queue_holds_a_full_frame_of_its_device() {
    let Some((namespace, mut netlink, index)) = site("the limit of a router's queue") else {
        return;
    };
    let router = |words: &str| router(&namespace, words);
    for (mtu, frame) in [(1500, 1514), (9000, 9014)] {
        netlink.set_mtu(index, mtu).unwrap();
        let least = format!("{frame}b");
        for (shaper, queue) in [("htb", ""), ("tbf", ""), ("htb", " others fair")] {
            let add = format!("add dev left capacity 10mbit shaper {shaper}{queue}");
            for few in ["1b".to_owned(), format!("{}b", frame - 1)] {
                let (done, text) = router(&format!("{add} limit {few}"));
                assert!(!done && text.contains(&format!("at least {least}")), "{few}: {text}");
            }
            for enough in [&*least, "0.0001bdp", "1p"] {
                let (done, text) = router(&format!("{add} limit {enough}"));
                let limit = if enough == "1p" { "limit 1p" } else { &format!("limit {least}") };
                assert!(done && text.contains(limit), "{enough}: {text}");
                let (done, text) = router("change dev left limit 60b");
                assert!(!done && text.contains(&format!("at least {least}")), "{text}");
                let (done, text) = router("change dev left limit 0.0001bdp");
                assert!(done && text.contains(&format!("limit {least}")), "{text}");
                assert!(router("del dev left").0);
            }
        }
    }
}

/// What keeps a router from its work is said when it is added, and as long as it is so.
#[test]
fn what_a_router_cannot_do_at_its_device_is_said() {
    let Some((namespace, mut netlink, index)) = site("what a router cannot do") else { return };
    let router = |words: &str| router(&namespace, words);
    let told = |device: &str, settings: &str, note: &str| {
        let (done, text) = router(&format!("add dev {device} capacity 10mbit {settings}"));
        assert!(done && text.contains(note), "{text}");
        let (done, text) = router("show");
        assert!(done && text.contains(note), "{text}");
        assert!(router(&format!("del dev {device}")).0);
    };
    told("left", "shaper none", "nothing holds left to the capacity");
    let (done, text) = router("add dev left capacity 10mbit limit 2000b");
    assert!(done && text.lines().count() == 1, "nothing is in its way: {text}");
    netlink.set_mtu(index, 9000).unwrap();
    let (_, text) = router("show");
    let note = "the queue drops frames of more than 2000 bytes, and the MTU is 9000";
    assert!(text.contains(note) && text.contains("change dev left limit 9014b"), "{text}");
    let (_, text) = router("change dev left limit 9014b");
    assert!(text.lines().count() == 1, "{text}");
    assert!(router("del dev left").0);

    let added = namespace
        .run(|| Command::new("ip").args("link add hub type bridge".split(' ')).output())
        .unwrap();
    match added {
        Ok(added) if added.status.success() => told("hub", "shaper htb", "hub is a bridge: "),
        other => xcp_skip::skipped!("kernel", "a router at a bridge: {other:?}"),
    }
}
