//! `xcpnet router`: settings that only the device can judge.
#![cfg(target_os = "linux")]

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::process::Command;

use xcp_linux::namespace::Namespace;
use xcp_linux::netlink::Netlink;

/// A queue that holds no full frame would let nothing but acknowledgements through.
#[test]
fn a_queue_holds_a_full_frame_of_its_device() {
    if !rustix::process::geteuid().is_root() {
        return xcp_skip::skipped!("root", "the limit of a router's queue: needs root");
    }
    let namespace = Namespace::new().unwrap();
    let mut netlink = Netlink::open_in(&namespace).unwrap();
    netlink.add_veth("left", "right", &namespace).unwrap();
    let index = netlink.index_of("left").unwrap().unwrap();
    netlink.set_up(index).unwrap();
    let netns = format!("/proc/{}/fd/{}", std::process::id(), namespace.as_fd().as_raw_fd());
    let router = |words: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_xcpnet"))
            .arg("router")
            .args(words.split(' '))
            .args(["--netns", &netns])
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
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
