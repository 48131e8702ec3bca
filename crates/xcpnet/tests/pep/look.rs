//! What is in the way of a proxy is told before anything is done: by `pep check` all of it, by
//! `pep up` as a refusal.

use std::io::ErrorKind;
use std::process::{Command, Output};

use xcp_linux::namespace::Namespace;
use xcp_linux::sysctl;

use super::site::{CLIENT, Proxy, SERVER, Site, pep, skipped};
use super::traffic::{connect, listen};
use super::{DELAY, leftovers, one, settles};

const DEVICES: [&str; 4] = ["--wan", "wan", "--lan", "lan"];

/// Commands of iproute2 or nft; whether all went well.
pub(super) fn all_done(namespace: &Namespace, program: &str, commands: &[&str]) -> bool {
    commands.iter().all(|words| {
        let done = namespace.run(|| Command::new(program).args(words.split(' ')).output()).unwrap();
        let well = done.as_ref().is_ok_and(|output| output.status.success());
        match &done {
            Err(e) if e.kind() == ErrorKind::NotFound && program == "nft" => {
                xcp_skip::skipped!("nft", "what `pep check` finds after `nft {words}`");
            }
            Ok(output) if output.status.success() => {}
            _ => skipped(format!("{program} {words}: {done:?}")),
        }
        well
    })
}

pub(super) fn text(output: &Output) -> String {
    [&output.stdout[..], &output.stderr[..]].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

/// Both tell of it in these words, and nothing is changed.
fn in_the_way(site: &Site, devices: &[&str], words: &[&str]) {
    let before = leftovers(&site.near);
    let check = pep(&site.near, "check", devices);
    let said = text(&check);
    assert!(
        check.status.code() == Some(1) && said.contains("in the way"),
        "{:?} {said}",
        check.status
    );
    let up = pep(&site.near, "up", devices);
    let refused = text(&up);
    assert!(!up.status.success(), "{refused}");
    assert!(
        words.iter().all(|word| said.contains(word) && refused.contains(word)),
        "{words:?}: {said} {refused}"
    );
    settles(&site.near, &before);
}

/// What `check` says of one thing, where nothing is in the way.
fn standing(site: &Site, name: &str) -> (String, String) {
    let check = pep(&site.near, "check", &[&DEVICES[..], &["--json"]].concat());
    assert_eq!(check.status.code(), Some(0), "{}", text(&check));
    let answer: serde_json::Value = serde_json::from_slice(&check.stdout).unwrap();
    let all = answer["findings"].as_array().unwrap();
    let one = all
        .iter()
        .find(|finding| finding["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {answer}"));
    (
        one["standing"].as_str().unwrap().to_owned(),
        one["remedy"].as_str().unwrap_or_default().to_owned(),
    )
}

fn carries(site: &Site, near: &Proxy, family: usize, port: u16) {
    let listener = listen(&site.server, SERVER[family], port);
    let stream = connect(&site.client, SERVER[family], port).unwrap();
    let (_there, peer) = listener.accept().unwrap();
    assert_eq!(peer.ip().to_string(), CLIENT[family]);
    let ours = stream.local_addr().unwrap().to_string();
    assert!(
        near.show()["connections"].as_array().unwrap().iter().any(|c| c["client"] == ours.as_str())
    );
}

#[test]
fn a_bridge_whose_packets_are_filtered_is_refused_and_so_is_a_port_of_it() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let bridge = [
        "link add br0 type bridge",
        "addr flush dev lan",
        "link set lan master br0",
        "link set br0 up",
    ];
    let addresses = ["addr add 10.71.1.1/24 dev br0", "-6 addr add fd71:1::1/64 dev br0 nodad"];
    if !all_done(&site.near, "ip", &[&bridge[..], &addresses].concat()) {
        return;
    }
    in_the_way(&site, &DEVICES, &["port of the bridge br0", "--lan br0"]);
    let name = "net.bridge.bridge-nf-call-iptables";
    let devices = ["--wan", "wan", "--lan", "br0"];
    let set = |value: &'static str| site.near.run(move || sysctl::write(name, value)).unwrap();
    if let Err(e) = set("1") {
        return skipped(e);
    }
    in_the_way(
        &site,
        &devices,
        &["br0 is a bridge", "sysctl -w net.bridge.bridge-nf-call-iptables=0"],
    );
    set("0").unwrap();
    site.near.run(|| sysctl::write("net.bridge.bridge-nf-call-ip6tables", "0").unwrap()).unwrap();
    if !all_done(&site.near, "ip", &["link set br0 type bridge nf_call_iptables 1"]) {
        return;
    }
    in_the_way(&site, &devices, &["calls the packet filter itself", "nf_call_iptables 0"]);
    if !all_done(&site.near, "ip", &["link set br0 type bridge nf_call_iptables 0"]) {
        return;
    }
    let Some(near) = Proxy::up_as(&site.near, "main", &devices) else { return };
    carries(&site, &near, 0, 5041);
}

#[test]
fn settings_that_would_drop_what_is_diverted_are_in_the_way() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    site.near.run(|| sysctl::write("net.ipv4.conf.lan.src_valid_mark", "1").unwrap()).unwrap();
    in_the_way(
        &site,
        &DEVICES,
        &["src_valid_mark", "sysctl -w net.ipv4.conf.lan.src_valid_mark=0"],
    );
    site.near.run(|| sysctl::write("net.ipv4.conf.lan.src_valid_mark", "0").unwrap()).unwrap();
    assert_eq!(standing(&site, "way_back").0, "ok");
    let chain = "add chain inet strict input { type filter hook input priority 0 ; policy drop ; }";
    if all_done(&site.near, "nft", &["add table inet strict", chain]) {
        let (standing, remedy) = standing(&site, "firewall");
        assert_eq!(standing, "warning");
        assert!(
            remedy.contains("nft insert rule inet strict input meta mark 0x58435045 accept"),
            "{remedy}"
        );
    }
}

#[test]
fn a_gateway_of_one_version_is_one() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    site.near.run(|| sysctl::write("net.ipv6.conf.all.forwarding", "0").unwrap()).unwrap();
    let (told, remedy) = standing(&site, "forwarding");
    assert!(
        told == "warning" && remedy.contains("net.ipv6.conf.all.forwarding=1"),
        "{told} {remedy}"
    );
    // IPv6 alone.
    site.near.run(|| sysctl::write("net.ipv6.conf.all.forwarding", "1").unwrap()).unwrap();
    site.near.run(|| sysctl::write("net.ipv4.ip_forward", "0").unwrap()).unwrap();
    in_the_way(&site, &DEVICES, &["does not forward", "ip_forward=1"]);
    if !all_done(&site.near, "ip", &["-4 addr flush dev lan", "-4 addr flush dev wan"]) {
        return;
    }
    let Some(near) = Proxy::up(&site.near, &[]) else { return };
    carries(&site, &near, 1, 5042);
    near.down(true);
    site.near.run(|| sysctl::write("net.ipv6.conf.all.forwarding", "0").unwrap()).unwrap();
    in_the_way(&site, &DEVICES, &["net.ipv6.conf.all.forwarding=1"]);
}

#[test]
fn a_gateway_whose_ipv6_is_switched_off_carries_ipv4() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    site.near.run(|| sysctl::write("net.ipv6.conf.all.disable_ipv6", "1").unwrap()).unwrap();
    let up = pep(&site.near, "up", &DEVICES);
    assert!(!text(&up).contains("IPv6"), "{}", text(&up));
    if !up.status.success() {
        return skipped(text(&up));
    }
    let near = Proxy { namespace: &site.near, name: "main", pid: 0 };
    carries(&site, &near, 0, 5043);
    assert_eq!(near.show()["gateway"]["in_the_way"], serde_json::json!([]));
    near.down(true);
}
