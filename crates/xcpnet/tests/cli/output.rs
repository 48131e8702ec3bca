//! What `xcpnet run` puts out: a table, JSON or files, and the same bytes whatever else runs.

use std::fs;

use serde_json::Value;

use crate::{SMALL, home, listing, run, text};

#[test]
fn a_table_on_stdout_and_nothing_on_stderr() {
    let home = home(SMALL);
    let output = run(0, &["run", "s.toml"], home.path());
    let table = text(&output.stdout);
    for word in ["Two flows", "bottleneck", "XCP", "TCP", "flow-2", "Jain"] {
        assert!(table.contains(word), "{word} in\n{table}");
    }
    assert_eq!(text(&output.stderr), "", "no progress bar in a pipe");
    assert_eq!(listing(home.path()), ["s.toml"]);
}

#[test]
fn json_is_one_object_per_variant() {
    let home = home(SMALL);
    let output = run(0, &["run", "s.toml", "--json", "--seed", "7"], home.path());
    let runs: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(runs.len(), 2);
    for (run, variant) in runs.iter().zip(["XCP", "TCP"]) {
        assert_eq!(
            (&run["seed"], &run["backend"], &run["variant"]),
            (&7.into(), &"sim".into(), &variant.into())
        );
        assert!(run["links"]["bottleneck"]["utilisation"].as_f64().unwrap() > 0.1);
        assert!(run["links"]["bottleneck.reverse"]["queue_mean"].is_number());
        assert_eq!(run["flows"][1]["name"], "flow-2");
        assert!(run["jain"].as_f64().unwrap() <= 1.0);
    }
    let one = run(
        0,
        &["run", "s.toml", "--json", "--variant", "TCP", "--set", "link.bottleneck.rate=20mbit"],
        home.path(),
    );
    assert_eq!(text(&one.stdout).lines().count(), 1);
}

#[test]
fn the_same_seed_gives_the_same_bytes_however_many_run_at_once() {
    let home = home(SMALL);
    run(0, &["run", "s.toml", "--seed", "3", "--jobs", "1", "--out", "a"], home.path());
    run(0, &["run", "s.toml", "--seed", "3", "--jobs", "4", "--out", "b"], home.path());
    run(0, &["run", "s.toml", "--seed", "4", "--out", "c"], home.path());
    let read = |dir: &str, name: &str| fs::read(home.path().join(dir).join(name)).unwrap();
    let names = listing(&home.path().join("a"));
    assert_eq!(
        names,
        [
            "TCP.flows.csv",
            "TCP.links.csv",
            "XCP.flows.csv",
            "XCP.links.csv",
            "report.html",
            "s.toml",
            "summary.json"
        ]
    );
    for name in names.iter().filter(|n| *n != "report.html") {
        assert!(read("a", name) == read("b", name), "{name}");
    }
    assert_ne!(
        read("a", "XCP.flows.csv"),
        read("c", "XCP.flows.csv"),
        "another seed, another start"
    );
    assert_eq!(text(&read("a", "s.toml")), SMALL);
    assert!(text(&read("a", "report.html")).starts_with("<!doctype html>"));
}

/// A long link that carries enough to be worth dividing at; the short ones at its ends are not.
const DIVISIBLE: &str = r#"
title    = "Divisible"
duration = "1s"
link = [
    { between = ["A", "B"], rate = "10gbit", delay = "10us" },
    { name = "long", between = ["B", "C"], rate = "400mbit", delay = "25ms", queue = "xcp" },
    { between = ["C", "D"], rate = "10gbit", delay = "10us" },
]
flow = [{ count = 5, from = "A", to = "D", congestion = "xcp", start-jitter = "100ms" }]
"#;

#[test]
fn threads_give_the_same_bytes() {
    let home = home(DIVISIBLE);
    let mut told = Vec::new();
    for threads in ["1", "2", "3"] {
        let output = run(
            0,
            &["run", "s.toml", "--json", "--out", threads, "--threads", threads],
            home.path(),
        );
        let series = ["s.links.csv", "s.flows.csv"]
            .map(|file| fs::read(home.path().join(threads).join(file)).unwrap());
        told.push((output.stdout, series));
    }
    assert!(told.iter().all(|other| *other == told[0]));
    let output = run(2, &["run", "s.toml", "--threads", "0"], home.path());
    assert!(text(&output.stderr).contains("--threads"), "{}", text(&output.stderr));
}

#[test]
fn parquet_beside_the_csv() {
    let home = home(SMALL);
    run(0, &["run", "s.toml", "--variant", "XCP", "--out", "out", "--parquet"], home.path());
    assert_eq!(
        listing(&home.path().join("out")),
        [
            "XCP.flows.csv",
            "XCP.flows.parquet",
            "XCP.links.csv",
            "XCP.links.parquet",
            "report.html",
            "s.toml",
            "summary.json"
        ]
    );
    run(2, &["run", "s.toml", "--parquet"], home.path());
}

/// The other variant makes no claim of its own, and its series are needed all the same.
#[test]
fn a_claim_compares_with_the_series_of_a_variant_that_claims_nothing() {
    let claim = "[[expect]]\nmetric = \"links.bottleneck.utilisation\"\nfrom = \"1s\"\nto = \"3s\"\nmin = 0.01\n\
        variant = \"XCP\"\nthan = { variant = \"TCP\" }\n";
    let home = home(&format!("{SMALL}\n{claim}"));
    let told = run(0, &["run", "s.toml"], home.path());
    assert!(text(&told.stdout).contains("inside"), "{}", text(&told.stdout));
}
