//! The command line as scripts meet it: exit statuses, messages, what is left on disk. Here is how
//! these tests run it, and on what; sweeps, pages and what needs root have programs of their own
//! beside this one.

mod help;
mod interrupted;
mod output;
mod plot;
mod refusals;
mod reproduce;
mod terminal;
mod theory;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SMALL: &str = r#"
title    = "Two flows"
duration = "8s"
measure  = { from = "4s", to = "8s" }

[[link]]
name    = "bottleneck"
between = ["S", "D"]
rate    = "10mbit"
delay   = "20ms"
queue   = { kind = "xcp", limit = "2bdp" }

[[flow]]
count      = 2
from       = "S"
to         = "D"
congestion = "xcp"
start-jitter = "1s"

[[variant]]
name = "XCP"

[[variant]]
name = "TCP"
set  = { "link.bottleneck.queue.kind" = "drop-tail", "flow.flow.congestion" = "reno" }
"#;

fn xcpnet() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xcpnet"));
    // Not the user's own.
    command
        .stdin(Stdio::null())
        .env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs and checks the exit status.
fn run(status: i32, arguments: &[&str], dir: &Path) -> Output {
    let output = xcpnet().args(arguments).current_dir(dir).output().unwrap();
    let told = format!("{arguments:?}\n{}\n{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{told}");
    output
}

fn home(scenario: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.toml"), scenario).unwrap();
    dir
}

/// What is in a directory, but for the page that only programs with an engine for it write
/// (tests/playground.rs).
fn listing(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "playground.html");
    names.sort();
    names
}
