//! `xcpnet sweep` as its user meets it: the same bytes whatever the number of threads and however
//! often it was killed, clear refusals. Here is how these tests run it, and on what; shards are
//! `tests/shards.rs`'s.

mod refusals;
mod resumed;
mod seeds;
mod tables;
mod terminal;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;

/// Two variants, some randomness, a few milliseconds to run.
const SMALL: &str = r#"
title    = "Two flows"
duration = "300ms"
sample   = "off"

[[link]]
name    = "bottleneck"
between = ["S", "D"]
rate    = "10mbit"
delay   = "5ms"
queue   = { kind = "xcp", limit = 100 }

[[flow]]
count      = 2
from       = "S"
to         = "D"
congestion = "xcp"
start-jitter = "100ms"

[[variant]]
name = "XCP"

[[variant]]
name = "TCP"
set  = { "queue.kind" = "drop-tail", "flow.congestion" = "reno" }
"#;

const FILES: [&str; 4] = ["runs.parquet", "links.parquet", "flows.parquet", "groups.parquet"];

fn xcpnet(arguments: &str, dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xcpnet"));
    command.args(arguments.split_whitespace()).current_dir(dir).stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs and checks the exit status; arguments are separated by spaces.
fn run(status: i32, arguments: &str, dir: &Path) -> Output {
    let output = xcpnet(arguments, dir).output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(status),
        "{arguments}\n{}\n{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

fn home(scenario: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.toml"), scenario).unwrap();
    dir
}

fn listing(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn results(dir: &Path) -> [Vec<u8>; 4] {
    FILES.map(|name| fs::read(dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}")))
}

/// The rows of a Parquet file: names of the columns and their values.
fn rows(path: &Path) -> Vec<Vec<(String, Field)>> {
    let reader = SerializedFileReader::try_from(path).unwrap();
    let row = |row: parquet::record::Row| row.into_columns();
    reader.get_row_iter(None).unwrap().map(|r| row(r.unwrap())).collect()
}

const GRID: &str = "sweep s.toml --set queue.target=0,20 --set flow.count=1..3 --seeds 1..3";
