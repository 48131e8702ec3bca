//! What others take away from a proxy that is running, or put in its way.

use xcp_linux::sysctl;
use xcp_pep::gateway::state::Place;

use super::look::{all_done, text};
use super::owner::carries;
use super::site::{Proxy, SERVER, Site, pep};
use super::{DELAY, leftovers, one, settles, until};

const DEVICES: [&str; 4] = ["--wan", "wan", "--lan", "lan"];

/// How many lines of the log of the near gateway have these words.
fn logged(site: &Site, words: &str) -> usize {
    let log = std::fs::read_to_string(Place::of(&site.near, "main").log()).unwrap();
    log.lines().filter(|line| line.contains(words)).count()
}

#[test]
fn a_routing_rule_that_is_lost_is_put_back() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let before = leftovers(&site.near);
    let Some(near) = Proxy::up(&site.near, &[]) else { return };
    let up = leftovers(&site.near);
    let losses = [
        ("rule del priority 1900", 0),
        ("route flush table 22595", 0),
        ("-6 rule del priority 1900", 1),
        ("-6 route flush table 22595", 1),
    ];
    for (at, (words, family)) in losses.into_iter().enumerate() {
        if !all_done(&site.near, "ip", &[words]) {
            return;
        }
        assert_ne!(leftovers(&site.near), up, "{words}");
        settles(&site.near, &up);
        until("it is logged", || logged(&site, "has been put back") == at + 1);
        assert!(carries(&site, &near, SERVER[family], 5081 + at as u16));
    }
    assert_eq!(near.show()["gateway"]["in_the_way"], serde_json::json!([]));
    // The filter's tables are nobody else's to remove.
    if all_done(&site.near, "nft", &["flush ruleset"]) {
        assert!(carries(&site, &near, SERVER[0], 5085));
    }
    near.down(true);
    settles(&site.near, &before);
}

#[test]
fn what_comes_to_be_in_the_way_is_told() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let Some(near) = Proxy::up(&site.near, &[]) else { return };
    let told = |words: &str| {
        until("it is told", || text(&pep(&site.near, "show", &[])).contains(words));
        assert_eq!(logged(&site, &format!("WARN new connections hang: {words}")), 1);
    };
    let is_over = || {
        until("it is over", || near.show()["gateway"]["in_the_way"] == serde_json::json!([]));
    };
    let checked = || text(&pep(&site.near, "check", &DEVICES));
    // Somebody's rule comes first.
    let rule = "rule add priority 1000 lookup 77";
    if all_done(&site.near, "ip", &["route add default dev wan table 77", rule]) {
        let words = "IPv4 packets with the mark of the proxy that is running (0x58435045)";
        told(words);
        assert!(checked().contains(words), "{}", checked());
        assert!(all_done(&site.near, "ip", &["rule del priority 1000"]));
        is_over();
        assert!(!checked().contains(words), "{}", checked());
    }
    let switch = |value: &'static str| {
        let name = "net.ipv4.conf.all.src_valid_mark";
        site.near.run(move || sysctl::write(name, value).unwrap()).unwrap();
    };
    switch("1");
    told("net.ipv4.conf.all.src_valid_mark is on");
    let shown = text(&pep(&site.near, "show", &[]));
    assert!(shown.contains("sysctl -w net.ipv4.conf.all.src_valid_mark=0"), "{shown}");
    switch("0");
    is_over();
    assert!(carries(&site, &near, SERVER[0], 5086));
}
