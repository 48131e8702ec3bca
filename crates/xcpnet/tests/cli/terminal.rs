//! What a terminal gets: progress while something runs, and nothing that it would act on.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{SMALL, home, run, text, xcpnet};

#[test]
fn a_terminal_sees_progress() {
    let home = home(SMALL);
    let line = format!("{} run s.toml", env!("CARGO_BIN_EXE_xcpnet"));
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(home.path())
        .stdin(Stdio::null())
        .env("TERM", "xterm")
        .output();
    match output {
        Ok(output) if output.status.success() => {
            assert!(text(&output.stdout).contains("simulated"), "{}", text(&output.stdout));
        }
        _ => xcp_skip::skipped!(
            "script",
            "no pseudo-terminal; install script(1), package bsdutils or util-linux"
        ),
    }
}

/// What a terminal would act on, in every place of a file whose words are printed.
const HOSTILE: &str = r#"
title       = "Two flows\u001b]0;owned\u0007\u001b[2J\u009b2J\u202e\nforged line\r"
description = "\u001b[2J"
duration    = "2s"
link = [{ name = "bottle\u202eneck", between = ["S\u2066", "D"], rate = "10mbit", delay = "2ms", queue = "xcp" }]
flow = [{ name = "fl\u2069ow", from = "S\u2066", to = "D", congestion = "xcp" }]
[[expect]]
metric = "links.bottle\u202eneck.utilisation"
min    = 0.1
"#;

/// Neither stream holds anything that a terminal acts on, whatever a file, its name or a setting
/// says, and the words are still there to be seen.
#[test]
fn terminals_only_show_what_files_say() {
    let dir = home(HOSTILE);
    let evil = "evil\u{1b}[2J\u{202e}.toml";
    fs::write(dir.path().join(evil), HOSTILE.replace("\"2ms\"", "\"2 \\u001b[31mfortnights\""))
        .unwrap();
    fs::write(dir.path().join("pep.toml"), "listen = \"\\u001b[2J\"\n\"\\u009b2J\" = 1\n").unwrap();
    let mut told = String::new();
    for (status, arguments) in [
        (Some(0), &["run", "s.toml"][..]),
        (Some(0), &["run", "s.toml", "--json"]),
        (Some(0), &["sweep", "s.toml", "--seeds", "1,2", "--out", "sweep"]),
        (Some(0), &["theory", "s.toml"]),
        (Some(0), &["theory", "s.toml", "--json"]),
        (Some(0), &["reproduce", "s.toml", "--no-cache"]),
        (Some(0), &["reproduce", "s.toml", "--no-cache", "--json"]),
        (Some(2), &["run", evil]),
        (Some(2), &["theory", evil]),
        (Some(2), &["run", "\u{1b}[2Jabsent.toml"]),
        (Some(2), &["run", "s.toml", "--set", "flow.\u{1b}[2J=1"]),
        (Some(2), &["run", "s.toml", "--variant", "\u{1b}[2J"]),
        (Some(2), &["pep", "run", "--config", "pep.toml"]),
        (None, &["lab", "plan", "s.toml"]),
    ] {
        let output = xcpnet().args(arguments).current_dir(dir.path()).output().unwrap();
        let both = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(
            status.is_none_or(|status| output.status.code() == Some(status)),
            "{arguments:?}\n{both}"
        );
        let acts = |c: &char| {
            (c.is_control() && *c != '\n' && *c != '\t')
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        assert_eq!(both.chars().find(acts), None, "{arguments:?}\n{both:?}");
        assert!(!both.contains("\nforged line"), "a title is one line: {both}");
        told.push_str(&both);
    }
    for shown in [
        "Two flows\\u001b]0;owned\\u0007\\u001b[2J\\u009b2J\\u202e forged line",
        "bottle\\u202eneck",
        "\\u001b[2Jabsent.toml",
    ] {
        assert!(told.contains(shown), "{shown} in\n{told}");
    }
    // What is JSON says what it said.
    let output = run(0, &["run", "s.toml", "--json"], dir.path());
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["title"], "Two flows\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}2J\u{202e} forged line");
}
