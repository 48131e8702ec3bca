//! What is wrong with a grid: told before anything runs, or, in one too large for that, on the way.

use std::fmt::Write as _;
use std::fs;

use crate::{SMALL, home, listing, rows, run, text};

#[test]
fn what_is_wrong_is_told_before_anything_runs() {
    let home = home(SMALL);
    let dir = home.path();
    fs::write(dir.join("typo.toml"), SMALL.replace("delay ", "dealy ")).unwrap();
    fs::write(dir.join("broken.toml"), "duration = ").unwrap();
    fs::create_dir(dir.join("taken")).unwrap();
    fs::write(dir.join("taken/flows.parquet"), "something else").unwrap();
    let mut table = String::new();
    for arguments in [
        "s.toml",
        "s.toml --out s.toml",
        "s.toml --out taken",
        "missing.toml --out out",
        "broken.toml --out out --variant XCP",
        "typo.toml --out out --set queue.target=0,1",
        "s.toml --out out --variant RED",
        "s.toml --out out --seeds 20..1",
        "s.toml --out out --seeds 1,3,2",
        "s.toml --out out --seeds=",
        "s.toml --out out --seeds 1..99999999999",
        "s.toml --out out --set seed=1,2",
        "s.toml --out out --set queue.target",
        "s.toml --out out --set queue.target=",
        "s.toml --out out --set queue.target=1,,2",
        "s.toml --out out --set queue.target=0,0",
        "s.toml --out out --set queue.target=0,1 --set queue.target=2",
        "s.toml --out out --set link.bottleneck.queue.limit=5,6 --set link.bottleneck.queue=red,xcp",
        "s.toml --out out --set link.bottleneck.queue=[red",
        "s.toml --out out --set queue.tagret=0,1",
        "s.toml --out out --set flow.congestion=reno,cubik,xcp",
        "s.toml --out out --set queue.target=0,90 --set queue.limit=100,50",
        "s.toml --out out --set queue.alpha=0.4,1.5",
        "s.toml --out out --variant TCP --set queue.target=0,1",
    ] {
        let output = run(2, &format!("sweep {arguments}"), dir);
        assert_eq!(text(&output.stdout), "", "{arguments}");
        writeln!(table, "──── {arguments}\n{}", text(&output.stderr)).unwrap();
    }
    assert_eq!(listing(dir), ["broken.toml", "s.toml", "taken", "typo.toml"]);
    insta::assert_snapshot!(table);
}

/// Of a grid too large to be read beforehand, what is wrong with a combination is found on the way.
/// What was done is kept.
#[test]
fn what_is_wrong_far_into_a_large_grid_stops_it_cleanly() {
    let home = home(&SMALL.replace("300ms", "1ms"));
    let dir = home.path();
    // Each value is right by itself, with the first of the others.
    let grid = "sweep s.toml --variant XCP --set queue.limit=400,40..390:10 --set \
        queue.target=0..50 --out out";
    let output = run(2, grid, dir);
    let told = text(&output.stderr);
    assert!(told.contains("the queue's target exceeds its limit"), "{told}");
    assert!(told.contains("of 1887 runs are done and kept in out"), "{told}");
    let grid = "sweep s.toml --variant XCP --set queue.limit=50..400:10 --set queue.target=0..50 \
        --out all";
    let output = run(0, grid, dir);
    let table = text(&output.stdout);
    assert!(table.ends_with("... and 1796 more points; all are in all/links.parquet\n"), "{table}");
    assert_eq!(rows(&dir.join("all/runs.parquet")).len(), 1836);
}
