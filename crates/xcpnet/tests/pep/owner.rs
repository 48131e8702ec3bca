//! Who has a long link: one proxy each, whatever becomes of files and processes; what `show` and
//! `down` say in every half-state, and that nobody takes back what is another one's.

use std::io::Write as _;
use std::process::Command;

use xcp_linux::namespace::Namespace;
use xcp_linux::{qdisc, sysctl};
use xcp_pep::gateway::state::Place;

use super::site::{Proxy, SERVER, Site, join, number, pep};
use super::traffic::{connect, listen};
use super::{DELAY, RATE, leftovers, one, settles, until};

fn said(output: &std::process::Output) -> String {
    [&output.stdout[..], &output.stderr[..]].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

/// Whether a new connection is carried by this proxy. The server's listener takes it.
pub(super) fn carries(site: &Site, proxy: &Proxy, to: &str, port: u16) -> bool {
    let listener = listen(&site.server, to, port);
    listener.set_nonblocking(true).unwrap();
    let stream = connect(&site.client, to, port).unwrap();
    let mut accepted = None;
    until("the server hears of it", || {
        accepted = listener.accept().ok();
        accepted.is_some()
    });
    let ours = stream.local_addr().unwrap().to_string();
    proxy.show()["connections"].as_array().unwrap().iter().any(|c| c["client"] == ours.as_str())
}

/// The process that takes back what a proxy leaves.
fn keeper(proxy: u32) -> u32 {
    let is_keeper = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace().nth(1).map(str::to_owned));
        after.flatten().is_some_and(|parent| parent == proxy.to_string())
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|e| e.file_name().to_str()?.parse().ok()).find(is_keeper).expect("a keeper")
}

/// Both at once, the keeper first: nothing is taken back.
fn kill_with_keeper(proxy: Proxy) {
    let pids = [keeper(proxy.pid), proxy.pid];
    for pid in pids {
        // SAFETY: signals to processes that this test started.
        unsafe { libc::kill(pid as i32, libc::SIGKILL) };
    }
    for pid in pids {
        until("it is gone", || xcp_pep::gateway::state::start_time(pid).is_none());
    }
    std::mem::forget(proxy);
}

#[test]
fn a_second_one_is_refused_and_the_first_goes_on() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let before = leftovers(&site.near);
    let Some(near) = Proxy::up(&site.near, RATE) else { return };
    let up = leftovers(&site.near);
    let arguments = ["--name", "two", "--wan", "wan", "--lan", "lan", "--rate", "10mbit"];
    let second = pep(&site.near, "up", &arguments);
    let text = said(&second);
    assert!(
        !second.status.success() && text.contains("here for wan") && text.contains("pep down"),
        "{text}"
    );
    settles(&site.near, &up);
    assert!(carries(&site, &near, SERVER[0], 5021));
    // Who asks for the other name is told what there is.
    for command in ["show", "down"] {
        let other = pep(&site.near, command, &["--name", "two"]);
        assert!(
            other.status.code() == Some(2) && said(&other).contains("there is \"main\""),
            "{command}: {}",
            said(&other)
        );
    }
    near.down(true);
    settles(&site.near, &before);
    let nobody = pep(&site.near, "down", &["--name", "two"]);
    assert_eq!(nobody.status.code(), Some(0), "{}", said(&nobody));
    // One with a name is ended by its name, whether it is a gateway or not.
    let down = format!("`xcpnet pep down --name two --netns {}`", Site::path(&site.near));
    for arguments in [&["--listen", "127.0.0.1:1080"][..], &["--wan", "wan", "--lan", "lan"]] {
        let Some(near) = Proxy::up_as(&site.near, "two", arguments) else { return };
        for command in ["up", "check"] {
            let second = pep(&site.near, command, &[&["--name", "two"], arguments].concat());
            let text = said(&second);
            assert!(!second.status.success() && text.contains(&down), "{command}: {text}");
        }
        near.down(true);
    }
    settles(&site.near, &before);
}

/// Files beside the directories of proxies that are this namespace's.
fn logs(namespace: &Namespace) -> Vec<std::path::PathBuf> {
    let place = Place::of(namespace, "main");
    let beside = place.path().parent().unwrap().read_dir().into_iter().flatten().flatten();
    let name = place.path().file_name().unwrap().to_string_lossy().into_owned();
    let mut found: Vec<_> = beside
        .filter(|e| e.file_name().to_string_lossy().starts_with(&format!("{name}.")))
        .map(|e| e.path())
        .collect();
    found.sort();
    found
}

#[test]
fn the_log_stays_after_a_crash_and_goes_after_an_end() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let log = Place::of(&site.near, "main").log();
    // A namespace may have the number of an earlier one.
    let _ = std::fs::remove_file(&log);
    let before = leftovers(&site.near);
    let Some(near) = Proxy::up(&site.near, &[]) else { return };
    let says_so = || std::fs::read_to_string(&log).unwrap().contains("the proxy is up");
    until("it logs that it is up", says_so);
    near.signal(libc::SIGKILL);
    std::mem::forget(near);
    settles(&site.near, &before);
    assert!(says_so());
    // One that does not come up leaves it alone, and nothing of its own.
    let refused = pep(&site.near, "up", &["--wan", "wan", "--lan", "wan"]);
    assert!(!refused.status.success() && said(&refused).contains("both"), "{}", said(&refused));
    assert_eq!(logs(&site.near), std::slice::from_ref(&log));
    assert!(says_so());
    let Some(near) = Proxy::up(&site.near, &[]) else { return };
    near.down(true);
    settles(&site.near, &before);
    assert!(logs(&site.near).is_empty());
}

#[test]
fn of_two_that_start_at_once_the_one_that_comes_up_has_its_log() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let log = Place::of(&site.near, "main").log();
    for _ in 0..3 {
        let devices = ["--wan", "wan", "--lan", "lan"];
        let both = std::thread::scope(|scope| {
            let up = || scope.spawn(|| pep(&site.near, "up", &devices));
            [up(), up()].map(|one| one.join().unwrap().status.success())
        });
        // Each may give way to the other.
        assert_ne!(both, [true; 2]);
        if both == [false; 2] {
            continue;
        }
        until("it logs that it is up", || {
            std::fs::read_to_string(&log).is_ok_and(|text| text.contains("the proxy is up"))
        });
        assert!(pep(&site.near, "down", &["--now"]).status.success());
    }
}

#[test]
fn without_its_directory_it_is_known_and_can_be_ended() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let before = leftovers(&site.near);
    let Some(near) = Proxy::up(&site.near, RATE) else { return };
    let path = Place::of(&site.near, "main").path().to_owned();
    std::fs::remove_dir_all(&path).unwrap();
    let up = leftovers(&site.near);
    let process = format!("process {}", near.pid);
    let shown = pep(&site.near, "show", &[]);
    let text = said(&shown);
    assert!(
        !shown.status.success()
            && text.contains(&process)
            && text.contains("directory was removed"),
        "{text}"
    );
    let second = pep(&site.near, "up", &["--wan", "wan", "--lan", "lan", "--rate", "10mbit"]);
    assert!(!second.status.success() && said(&second).contains(&process), "{}", said(&second));
    settles(&site.near, &up);
    near.down(true);
    settles(&site.near, &before);
}

#[test]
fn what_both_have_left_is_told_and_taken_back() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let before = leftovers(&site.near);
    let Some(near) = Proxy::up(&site.near, RATE) else { return };
    kill_with_keeper(near);
    assert_ne!(leftovers(&site.near), before, "nobody was there to take it back");
    until("it is told", || {
        let shown = pep(&site.near, "show", &[]);
        !shown.status.success() && said(&shown).contains("killed together with its keeper")
    });
    assert!(pep(&site.near, "down", &[]).status.success());
    settles(&site.near, &before);
    // The same where nothing is written any more: the rules go, and it is said what is not known.
    let Some(near) = Proxy::up(&site.near, &[]) else { return };
    kill_with_keeper(near);
    std::fs::remove_dir_all(Place::of(&site.near, "main").path()).unwrap();
    let rules = |all: Vec<String>| {
        all.into_iter().filter(|line| line.contains("lookup")).collect::<Vec<_>>()
    };
    assert_ne!(rules(leftovers(&site.near)), rules(before.clone()));
    let down = pep(&site.near, "down", &[]);
    assert!(down.status.success() && said(&down).contains("1 routing rule"), "{}", said(&down));
    assert_eq!(rules(leftovers(&site.near)), rules(before));
    let again = pep(&site.near, "down", &[]);
    assert!(said(&again).contains("no proxy"), "{}", said(&again));
}

#[test]
fn one_that_does_not_answer_is_told_of_and_ended_all_the_same() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let before = leftovers(&site.near);
    let Some(near) = Proxy::up(&site.near, RATE) else { return };
    near.signal(libc::SIGSTOP);
    let shown = pep(&site.near, "show", &[]);
    let text = said(&shown);
    assert!(
        !shown.status.success()
            && text.contains(&format!("process {}) has not answered", near.pid))
            && text
                .contains(&format!("`xcpnet pep down --netns {} --now`", Site::path(&site.near))),
        "{text}"
    );
    let down = pep(&site.near, "down", &["--now"]);
    let text = said(&down);
    assert!(down.status.success() && text.contains("is killed"), "{text}");
    std::mem::forget(near);
    settles(&site.near, &before);
}

/// `xcpnet router`, and what it said.
fn router(namespace: &Namespace, words: &str) -> (bool, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_xcpnet"))
        .arg("router")
        .args(words.split(' '))
        .args(["--netns", &Site::path(namespace)])
        .output()
        .unwrap();
    (done.status.success(), said(&done))
}

#[test]
fn a_shaper_is_its_proxys_or_its_routers() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let before = leftovers(&site.near);
    let Some(near) = Proxy::up(&site.near, RATE) else { return };
    let up = leftovers(&site.near);
    let down = format!("`xcpnet pep down --netns {}`", Site::path(&site.near));
    for command in ["add dev wan capacity 3mbit", "change dev wan capacity 3mbit", "del dev wan"] {
        let (done, text) = router(&site.near, command);
        assert!(!done && text.contains("proxy") && text.contains(&down), "{command}: {text}");
        assert_eq!(leftovers(&site.near), up, "{command}");
    }
    near.down(true);
    settles(&site.near, &before);
    // And where the router was there first.
    let (done, text) = router(&site.near, "add dev wan capacity 3mbit");
    assert!(done, "{text}");
    let shaped = leftovers(&site.near);
    let refused = pep(&site.near, "up", &["--wan", "wan", "--lan", "lan", "--rate", "1mbit"]);
    assert!(
        !refused.status.success() && said(&refused).contains("already has an XCP router"),
        "{}",
        said(&refused)
    );
    let Some(near) = Proxy::up(&site.near, &[]) else { return };
    near.down(true);
    settles(&site.near, &shaped);
    let (done, text) = router(&site.near, "del dev wan");
    assert!(done, "{text}");
    settles(&site.near, &before);
}

fn address(namespace: &Namespace, device: &str, address: &str) {
    let (mut netlink, index) = number(namespace, device);
    netlink.add_address(index, address.parse().unwrap(), 24).unwrap();
}

fn route(namespace: &Namespace, device: &str, via: &str) {
    let (mut netlink, index) = number(namespace, device);
    netlink.add_route("10.71.3.0".parse().unwrap(), 24, Some(via.parse().unwrap()), index).unwrap();
}

fn ip(namespace: &Namespace, words: &str) {
    let words: Vec<&str> = words.split(' ').collect();
    let done = namespace.run(|| Command::new("ip").args(&words).status()).unwrap();
    assert!(done.is_ok_and(|status| status.success()), "ip {words:?}");
}

/// The devices of a second long link, and what is lost with them.
fn plug(site: &Site) {
    join((&site.near, "wan2"), (&site.far, "wan2"));
    address(&site.near, "wan2", "10.71.8.1");
    address(&site.far, "wan2", "10.71.8.2");
    route(&site.near, "wan2", "10.71.8.2");
    ip(&site.far, "route add default via 10.71.8.1 dev wan2 table 100");
}

/// A second long link beside the first, to another network of the server's.
fn second_link(site: &Site) -> &'static str {
    plug(site);
    address(&site.far, "lan", "10.71.3.1");
    address(&site.server, "s0", "10.71.3.2");
    route(&site.client, "c0", "10.71.1.1");
    // What the server answers comes back the same way.
    ip(&site.far, "rule add from 10.71.3.0/24 lookup 100");
    "10.71.3.2"
}

/// The client sends until something is so.
fn sends(site: &Site, to: &str, port: u16, mut is: impl FnMut() -> bool) {
    let listener = listen(&site.server, to, port);
    let mut stream = connect(&site.client, to, port).unwrap();
    let reader = std::thread::spawn(move || {
        let (mut there, _) = listener.accept().unwrap();
        let _ = std::io::copy(&mut there, &mut std::io::sink());
    });
    until("the router sees packets", || {
        stream.write_all(&[0; 20_000]).unwrap();
        is()
    });
    drop(stream);
    reader.join().unwrap();
}

#[test]
fn a_device_that_comes_back_is_set_up_again() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let other = second_link(&site);
    let before = leftovers(&site.near);
    let devices =
        ["--wan", "wan2", "--lan", "lan", "--rate", "100mbit", "--rtt", "40ms", "--workers", "1"];
    let Some(near) = Proxy::up_as(&site.near, "main", &devices) else { return };
    // By XCP, which its router counts.
    let Some(_far) = Proxy::up_as(&site.far, "main", &devices) else { return };
    assert!(carries(&site, &near, other, 5026));
    let shaped =
        || leftovers(&site.near).iter().filter(|line| line.contains("htb 7870: dev wan2")).count();
    let forwarded = || near.show()["gateway"]["input_traffic"].as_f64().unwrap();
    assert_eq!(shaped(), 1);
    let shown = said(&pep(&site.near, "show", &[]));
    assert!(!shown.contains(".0 bytes") && shown.contains(" bytes queued"), "{shown}");
    sends(&site, other, 5036, || forwarded() > 0.0);
    for port in [5027, 5028] {
        let (mut netlink, index) = number(&site.near, "wan2");
        netlink.delete_link(index).unwrap();
        until("the device is gone", || netlink.index_of("wan2").unwrap().is_none());
        until("it is told", || said(&pep(&site.near, "show", &[])).contains("the device is gone"));
        plug(&site);
        until("the shaper is back", || shaped() == 1);
        assert!(carries(&site, &near, other, port));
        sends(&site, other, port + 10, || forwarded() > 0.0);
    }
    // The same device, which had another name for a while, or was in another namespace.
    let elsewhere = Namespace::new().unwrap();
    let to_there = format!("netns {}", Site::path(&elsewhere));
    let and_back = format!("wan2 netns {}", Site::path(&site.near));
    for (port, at, away, back) in [
        (5029, &site.near, "name other", "other name wan2"),
        (5030, &elsewhere, to_there.as_str(), and_back.as_str()),
    ] {
        ip(&site.near, "link set wan2 down");
        ip(&site.near, &format!("link set wan2 {away}"));
        until("it is told", || said(&pep(&site.near, "show", &[])).contains("the device is gone"));
        ip(at, &format!("link set {back}"));
        ip(&site.near, "link set wan2 up");
        until("it is back", || !said(&pep(&site.near, "show", &[])).contains("the device is gone"));
        ip(&site.near, "addr replace 10.71.8.1/24 dev wan2");
        route(&site.near, "wan2", "10.71.8.2");
        assert_eq!(shaped(), 1);
        assert!(carries(&site, &near, other, port));
        sends(&site, other, port + 10, || forwarded() > 0.0);
        for rate in [50, 100] {
            assert!(pep(&site.near, "rate", &[&format!("{rate}mbit")]).status.success());
            let (mut netlink, index) = number(&site.near, "wan2");
            let shaper = qdisc::root(&mut netlink, index).unwrap();
            assert_eq!(shaper.rate_bps, Some(rate * 1_000_000));
        }
    }
    near.down(true);
    settles(&site.near, &before);
}

#[test]
fn two_long_links_have_a_proxy_each() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let other = second_link(&site);
    let before = leftovers(&site.near);
    let devices = |wan| {
        ["--wan", wan, "--lan", "lan", "--rate", "100mbit", "--rtt", "40ms", "--workers", "1"]
    };
    let Some(first) = Proxy::up_as(&site.near, "main", &devices("wan")) else { return };
    let second = Proxy::up_as(&site.near, "two", &devices("wan2")).expect("the first one came up");
    assert!(carries(&site, &first, SERVER[0], 5022) && carries(&site, &second, other, 5023));
    assert!(!carries(&site, &first, other, 5024), "each its own");
    let tuned = site.near.run(|| sysctl::read("net.ipv4.tcp_retries2").unwrap()).unwrap();
    first.down(true);
    // What the first has changed is needed still.
    assert_eq!(site.near.run(|| sysctl::read("net.ipv4.tcp_retries2").unwrap()).unwrap(), tuned);
    assert!(carries(&site, &second, other, 5025));
    second.down(true);
    settles(&site.near, &before);
}
