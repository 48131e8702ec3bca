//! `xcpnet theory`, and theory in the report of a run.

use std::fs;

use serde_json::Value;

use crate::{SMALL, home, run, text};

#[test]
fn theory_says_what_it_expects() {
    let home = home(SMALL);
    let told = run(0, &["theory", "s.toml"], home.path());
    let table = text(&told.stdout);
    assert!(
        table.contains("5.00 Mbit/s")
            && table.contains("stable")
            && table.contains("no equilibrium"),
        "{table}"
    );
    let told = run(0, &["theory", "s.toml", "--json", "--variant", "XCP"], home.path());
    let json: Value = serde_json::from_str(text(&told.stdout)).unwrap();
    let near = |pointer: &str, expected: f64| {
        let found = json.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
        assert!((found / expected - 1.0).abs() < 0.02, "{pointer}: {found}, not {expected}");
    };
    near("/flows/0/max_min/wire", 5e6);
    near("/flows/0/max_min/goodput", 5e6 * 1436.0 / 1500.0);
    near("/flows/0/equilibrium/wire", 5e6);
    near("/links/0/equilibrium/cap", 5e6);
    near("/links/0/margins/phase_degrees", 45.0 - (0.4 * std::f64::consts::SQRT_2).to_degrees());
    near("/fluid/flows/0/mean/wire", 5e6);
    let wrong = run(2, &["theory", "s.toml", "--at", "soon"], home.path());
    assert!(text(&wrong.stderr).contains("soon"));
    run(2, &["theory", "s.toml", "--variant", "nobody"], home.path());
    run(2, &["theory", "absent.toml"], home.path());
}

#[test]
fn theory_says_how_wrong_a_calendar_may_be() {
    let robust = SMALL
        .replace("congestion = \"xcp\"", "congestion = \"xcp-robust\"")
        .replace("kind = \"xcp\"", "kind = \"xcp\", law = \"robust\"");
    let (robust, _) = robust.split_once("[[variant]]").unwrap();
    let home = home(robust);
    let told = run(0, &["theory", "s.toml"], home.path());
    let table = text(&told.stdout);
    assert!(table.contains("late by") && table.contains("mean queue"), "{table}");
    let told = run(0, &["theory", "s.toml", "--json"], home.path());
    let json: Value = serde_json::from_str(text(&told.stdout)).unwrap();
    let number = |pointer: &str| json.pointer(pointer).and_then(Value::as_f64).unwrap();
    assert!((number("/links/0/margins/gain") - 2.0 / 0.7).abs() < 0.01);
    assert!(number("/links/0/margins/calendar/late") > 0.0);
    assert!(number("/fluid/links/0/queue_mean") > 0.0);
}

/// Where there is too much to follow, the report has no line, and says so.
#[test]
fn a_report_says_where_it_has_no_theory() {
    let steps = |n: u64| {
        let step = |i| format!("[\"{i}ms\", \"{}mbit\"]", 1 + i % 2);
        format!(
            "udp = {{ pattern = \"schedule\", steps = [{}] }}",
            (0..n).map(step).collect::<Vec<_>>().join(", ")
        )
    };
    for (changes, said) in [(600, false), (10_500, true)] {
        let file = SMALL.replace("\"8s\"", "\"11s\"").replace(
            "[[variant]]\nname = \"XCP\"",
            &format!(
                "[[flow]]\nname = \"cbr\"\nfrom = \"S\"\nto = \"D\"\n{}\n\n[[variant]]\nname = \"XCP\"",
                steps(changes)
            ),
        );
        let home = home(&file);
        run(0, &["run", "s.toml", "--out", "out", "--variant", "XCP"], home.path());
        let page = fs::read_to_string(home.path().join("out/report.html")).unwrap();
        assert_eq!(page.contains("No theory is drawn"), said);
        assert_eq!(page.contains("\"theory\":\""), !said);
    }
}

#[test]
fn a_report_has_theory_beside_the_packets() {
    let home = home(SMALL);
    run(0, &["run", "s.toml", "--out", "out"], home.path());
    let page = fs::read_to_string(home.path().join("out/report.html")).unwrap();
    // One link: both theories agree for XCP, and TCP has no equilibrium.
    assert!(page.contains(">by max-min and equilibrium</th>") && page.contains(">by max-min</th>"));
    assert!(page.contains("\"theory\":\"max-min and equilibrium\""));
}
