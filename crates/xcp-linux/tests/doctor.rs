//! The doctor on the machine at hand. What it finds is the machine's; that it tells something about
//! everything, contradicts itself nowhere and leaves nothing behind is to be seen anywhere.
//! Machines that lack something are `crates/xcpnet/tests/doctor.rs`'s.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use xcp_linux::doctor::{Group, Ready, Report, Status, examine};

const NAMES: [&str; 31] = [
    "kernel",
    "btf",
    "bpf",
    "memlock",
    "bpffs",
    "tcx",
    "cgroup2",
    "sock_ops",
    "struct_ops",
    "iterators",
    "endpoint_programs",
    "room_beside_sack",
    "fallback",
    "tcp_rmem",
    "tcp_wmem",
    "router_program",
    "htb",
    "tbf",
    "pfifo",
    "bfifo",
    "netns",
    "veth",
    "packet_rings",
    "sched_fifo",
    "nf_tables",
    "nft_tproxy",
    "nft_queue",
    "nft_reject_inet",
    "inet_diag_destroy",
    "fq",
    "bbr",
];

fn contradicts_itself_nowhere(report: &Report) {
    assert_eq!(
        report.checks.iter().map(|check| check.name).collect::<Vec<_>>(),
        NAMES,
        "published names"
    );
    let titles: HashSet<&str> = report.checks.iter().map(|check| check.title).collect();
    assert_eq!(titles.len(), NAMES.len(), "titles tell checks apart");
    for check in &report.checks {
        assert!(
            !check.found.is_empty() && !check.purpose.is_empty() && !check.groups.is_empty(),
            "{check:?}"
        );
        assert_eq!(check.remedy.is_some(), check.status != Status::Ok, "{check:?}");
        assert!(check.remedy.as_ref().is_none_or(|remedy| !remedy.text.is_empty()), "{check:?}");
    }
    for group in Group::ALL {
        let missing = report.with(group, Status::Missing).count();
        let unknown = report.with(group, Status::Unknown).count();
        assert_eq!(report.ready(group) == Ready::No, missing > 0);
        assert_eq!(report.ready(group) == Ready::Yes, missing + unknown == 0);
    }
    let table = report.table(80);
    for check in &report.checks {
        assert!(table.contains(check.title), "{} in\n{table}", check.title);
    }
}

/// What a look could leave: names with this process's number.
fn left() -> Vec<String> {
    let id = std::process::id();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let points = mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        ["cgroup2 ", "bpf "]
            .iter()
            .any(|kind| after.starts_with(kind))
            .then(|| before.split(' ').nth(4))?
    });
    let mut left: Vec<String> = points
        .map(|point| format!("{point}/xcpnet-doctor-{id}"))
        .filter(|path| fs::exists(path).unwrap_or(false))
        .collect();
    let controls = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
        .unwrap_or_default();
    left.extend(
        controls.split_whitespace().filter(|name| *name == format!("xcpd{id}")).map(str::to_owned),
    );
    left
}

#[test]
fn looks_at_everything_and_leaves_nothing_behind() {
    for _ in 0..2 {
        let report = examine();
        contradicts_itself_nowhere(&report);
        if report.user == "root" {
            assert!(
                report.checks.iter().all(|check| !check.found.starts_with("not tried: root")),
                "root may try everything: {report:#?}"
            );
        }
        let deadline = Instant::now() + Duration::from_secs(30);
        while !left().is_empty() {
            assert!(Instant::now() < deadline, "{:?} stayed", left());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn json_has_the_published_fields() {
    let report = serde_json::to_value(examine()).unwrap();
    let keys = |value: &serde_json::Value| {
        value.as_object().unwrap().keys().cloned().collect::<HashSet<_>>()
    };
    let expected =
        |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<HashSet<_>>();
    assert_eq!(
        keys(&report),
        expected(&["kernel", "architecture", "distribution", "user", "ready", "checks"])
    );
    assert_eq!(keys(&report["ready"]), expected(&["endpoint", "router", "lab", "pep"]));
    for check in report["checks"].as_array().unwrap() {
        assert_eq!(
            keys(check),
            expected(&["name", "title", "groups", "status", "purpose", "found", "remedy"])
        );
        assert!(
            check["remedy"].is_null() || keys(&check["remedy"]) == expected(&["text", "commands"])
        );
    }
}
