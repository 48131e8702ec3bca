//! `xcpnet sweep` as its user meets it: the same bytes whatever the number of threads and however
//! often it was killed, clear refusals.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

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

fn number(field: &Field) -> f64 {
    match field {
        Field::Long(n) => *n as f64,
        Field::Double(x) => *x,
        other => panic!("{other:?} is no number"),
    }
}

fn cell<'a>(row: &'a [(String, Field)], name: &str) -> &'a Field {
    &row.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no column {name}")).1
}

const GRID: &str = "sweep s.toml --set queue.target=0,20 --set flow.count=1..3 --seeds 1..3";

#[test]
fn the_tables_hold_what_run_prints() {
    let home = home(SMALL);
    let dir = home.path();
    let output = run(0, &format!("{GRID} --out out --json"), dir);
    assert_eq!(
        text(&output.stderr),
        "wrote out/runs.parquet, out/links.parquet, out/flows.parquet, out/groups.parquet\n",
        "no progress bar in a pipe"
    );
    assert_eq!(
        listing(&dir.join("out")),
        ["flows.parquet", "groups.parquet", "links.parquet", "runs.parquet", "sweep.journal"]
    );
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (runs, links, flows) = (
        rows(&dir.join("out/runs.parquet")),
        rows(&dir.join("out/links.parquet")),
        rows(&dir.join("out/flows.parquet")),
    );
    assert_eq!((lines.len(), runs.len(), links.len(), flows.len()), (36, 36, 72, 12 * (1 + 2 + 3)));
    let mut expected = Vec::new();
    for target in [0, 20] {
        for count in 1..=3 {
            for variant in ["XCP", "TCP"] {
                for seed in 1..=3 {
                    expected.push((target, count, variant, seed));
                }
            }
        }
    }
    for (i, (&(target, count, variant, seed), line)) in expected.iter().zip(&lines).enumerate() {
        assert_eq!(line["run"], i);
        assert_eq!(
            line["settings"],
            serde_json::json!({ "queue.target": target, "flow.count": count })
        );
        assert_eq!((&line["variant"], &line["seed"]), (&variant.into(), &seed.into()));
        let row = &runs[i];
        assert_eq!(
            row.iter().map(|c| c.0.as_str()).collect::<Vec<_>>()[..5],
            ["run", "variant", "seed", "queue.target", "flow.count"]
        );
        assert_eq!(cell(row, "variant"), &Field::Str(variant.into()));
        assert_eq!(number(cell(row, "jain")).to_bits(), line["jain"].as_f64().unwrap().to_bits());
        assert_eq!(number(cell(row, "completed_s")), 0.3);
        let of_run = |row: &&Vec<(String, Field)>| number(cell(row, "run")) == i as f64;
        for row in links.iter().filter(of_run) {
            let Field::Str(name) = cell(row, "link") else { panic!() };
            assert_eq!(
                [number(cell(row, "queue.target")), number(cell(row, "seed"))],
                [f64::from(target), f64::from(seed)]
            );
            for (column, field) in [
                ("utilisation", "utilisation"),
                ("queue_mean_packets", "queue_mean"),
                ("queue_max_packets", "queue_max"),
                ("drops", "drops"),
                ("lost", "lost"),
                ("packets", "packets"),
            ] {
                assert_eq!(
                    number(cell(row, column)).to_bits(),
                    line["links"][name.as_str()][field].as_f64().unwrap().to_bits(),
                    "{column}"
                );
            }
        }
        let listed = line["flows"].as_array().unwrap();
        assert_eq!(flows.iter().filter(of_run).count(), listed.len());
        for (row, flow) in flows.iter().filter(of_run).zip(listed) {
            assert_eq!(cell(row, "flow"), &Field::Str(flow["name"].as_str().unwrap().into()));
            for (column, field) in [
                ("goodput_bps", "goodput"),
                ("rtt_mean_s", "rtt_mean"),
                ("retransmits", "retransmits"),
                ("timeouts", "timeouts"),
                ("cwnd_mean_packets", "cwnd_mean"),
            ] {
                assert_eq!(
                    number(cell(row, column)).to_bits(),
                    flow[field].as_f64().unwrap().to_bits(),
                    "{column}"
                );
            }
            assert_eq!(cell(row, "completed_at_s"), &Field::Null);
        }
        // One in five by itself: a sweep's runs are those of `run`.
        if i % 5 == 0 {
            let single = format!(
                "run s.toml --set queue.target={target} --set flow.count={count} --seed {seed} \
                    --json{}",
                // A law's setting without any law would be refused.
                if variant == "XCP" { " --variant XCP" } else { "" }
            );
            let output = run(0, &single, dir);
            let mut alone: Vec<Value> = text(&output.stdout)
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            let alone = alone.pop().unwrap();
            for (key, value) in alone.as_object().unwrap() {
                assert_eq!(&line[key], value, "{key}");
            }
        }
    }
}

/// What one needs for a plot of completion times is in the files, with settings in base units, and
/// so is what one needs to make them again.
#[test]
fn tables_say_of_themselves_what_they_are() {
    let scenario = SMALL.replace("start-jitter", "bytes = 3000\nstart-jitter");
    let home = home(&scenario);
    let dir = home.path();
    run(0, "sweep s.toml --set link.bottleneck.rate=10..20mbit:10 --seeds 4 --out out", dir);
    let (flows, groups) =
        (rows(&dir.join("out/flows.parquet")), rows(&dir.join("out/groups.parquet")));
    assert_eq!((flows.len(), groups.len()), (8, 4));
    for (row, rate) in groups.iter().zip([1e7, 1e7, 2e7, 2e7]) {
        assert_eq!(number(cell(row, "link.bottleneck.rate_bps")), rate);
        let Field::Str(written) = cell(row, "link.bottleneck.rate") else { panic!("no text") };
        assert_eq!(written, &format!("{}mbit", rate / 1e6));
        let [group, from, to] = ["group", "from", "to"].map(|name| cell(row, name));
        assert_eq!(
            [group, from, to],
            ["flow", "S", "D"].map(|text| Field::Str(text.into())).each_ref()
        );
        assert_eq!((number(cell(row, "flows")), number(cell(row, "completed"))), (2.0, 2.0));
        // A round trip at least; a delayed acknowledgement at most.
        let times =
            ["p50", "p95", "p99"].map(|p| number(cell(row, &format!("completion_time_{p}_s"))));
        assert!(times[0] >= 0.01 && times.is_sorted() && times[2] < 0.08, "{times:?}");
        let rtts = ["p50", "p95", "p99"].map(|p| number(cell(row, &format!("rtt_{p}_s"))));
        assert!(rtts[0] >= 0.01 && rtts.is_sorted() && rtts[2] < 0.06, "{rtts:?}");
    }
    for row in &flows {
        let [start, end, time] =
            ["start_s", "completed_at_s", "completion_time_s"].map(|name| number(cell(row, name)));
        assert!((start + time - end).abs() < 1e-9 && start > 0.0, "{start} {time} {end}");
        assert_eq!(number(cell(row, "size_bytes")), 3000.0);
    }
    for name in FILES {
        let reader = SerializedFileReader::try_from(dir.join("out").join(name).as_path()).unwrap();
        let said = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let value = |key: &str| {
            said.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.clone())
        };
        assert_eq!(value("xcpnet.scenario").as_deref(), Some(scenario.as_str()), "{name}");
        assert_eq!(
            value("xcpnet.settings").as_deref(),
            Some(r#"{"link.bottleneck.rate":["10mbit","20mbit"]}"#)
        );
        assert_eq!(value("xcpnet.seeds").as_deref(), Some("4"));
        let units: Value = serde_json::from_str(&value("xcpnet.units").unwrap()).unwrap();
        assert_eq!(units["link.bottleneck.rate_bps"], "bits per second", "{name}");
    }
}

/// Everything that a seed decides, while the file is read and while it runs.
const RANDOM: &str = r#"
title    = "Everything random"
duration = "2s"
sample   = "off"

[[link]]
name    = "first"
between = ["S", "R"]
rate    = "10mbit"
delay   = "5ms"
loss    = 0.01
queue   = { kind = "red", limit = 40 }

[[link]]
name    = "second"
between = ["R", "D"]
rate    = "8mbit"
delay   = "5ms"
loss    = { probability = 0.01, place = "before-queue" }
queue   = { kind = "xcp", limit = 100 }

[[flow]]
name       = "web"
from       = "S"
to         = "D"
congestion = "sack"
arrivals   = "50ms"
bytes      = { mean = "20kb", distribution = "pareto", shape = 1.3 }

[[flow]]
name       = "mice"
count      = 5
from       = "S"
to         = "D"
congestion = "xcp"
bytes      = { mean = "10kb", distribution = "exponential" }
start-jitter = "500ms"

[[flow]]
name = "phones"
from = "S"
to   = "D"
udp  = { pattern = "on-off", rate = "100kbit", on = "200ms", off = "300ms", random = true }

[[flow]]
name = "noise"
from = "S"
to   = "D"
udp  = { pattern = "poisson", rate = "200kbit" }
"#;

#[test]
fn each_seed_draws_everything_anew() {
    let home = home(RANDOM);
    let dir = home.path();
    let output = run(0, "sweep s.toml --seeds 1..4 --set queue.target=0,5 --out out --json", dir);
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 8);
    for line in &lines {
        let (seed, target) = (&line["seed"], &line["settings"]["queue.target"]);
        let alone =
            run(0, &format!("run s.toml --seed {seed} --set queue.target={target} --json"), dir);
        let alone: Value = serde_json::from_slice(&alone.stdout).unwrap();
        for (key, value) in alone.as_object().unwrap() {
            assert_eq!(&line[key], value, "seed {seed}, target {target}: {key}");
        }
    }
    let arrivals = |line: &Value| {
        line["flows"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|f| f["name"].as_str().unwrap().starts_with("web"))
            .count()
    };
    let drawn: std::collections::BTreeSet<usize> = lines.iter().map(arrivals).collect();
    assert!(drawn.len() > 1, "as many arrive whatever the seed: {drawn:?}");
}

/// What is wrong with one seed only is found before the first one runs.
#[test]
fn a_seed_without_arrivals_is_told_beforehand() {
    let sparse = SMALL
        .replace("count      = 2\n", "arrivals   = \"200ms\"\n")
        .replace("start-jitter = \"100ms\"\n", "");
    let home = home(&sparse);
    let output = run(2, "sweep s.toml --seeds 1..40 --out out", home.path());
    assert!(text(&output.stderr).contains("with this seed no member"), "{}", text(&output.stderr));
    assert_eq!(listing(home.path()), ["s.toml"]);
}

#[test]
fn the_same_bytes_however_many_run_at_once() {
    let home = home(SMALL);
    let one = run(0, &format!("{GRID} --out one --jobs 1 --json"), home.path());
    let two = run(0, &format!("{GRID} --out two --jobs 2 --json"), home.path());
    let many = run(0, &format!("{GRID} --out many --jobs 7"), home.path());
    assert_eq!(one.stdout, two.stdout);
    let expected = results(&home.path().join("one"));
    assert!(expected == results(&home.path().join("two")));
    assert!(expected == results(&home.path().join("many")));
    insta::assert_snapshot!(text(&many.stdout));
}

#[test]
fn complete_it_does_nothing_more() {
    let home = home(SMALL);
    run(0, &format!("{GRID} --out out"), home.path());
    let before = results(&home.path().join("out"));
    let output = run(0, &format!("{GRID} --out out"), home.path());
    assert_eq!(text(&output.stderr), "this sweep is complete: 36 runs in out\n");
    assert_eq!(text(&output.stdout), "");
    assert!(before == results(&home.path().join("out")));
    fs::remove_file(home.path().join("out/links.parquet")).unwrap();
    let output = run(2, &format!("{GRID} --out out"), home.path());
    assert!(
        text(&output.stderr).contains("out/links.parquet is missing"),
        "{}",
        text(&output.stderr)
    );
    run(0, &format!("{GRID} --out out --restart"), home.path());
    assert!(before == results(&home.path().join("out")));
}

/// What a kill or a loss of power leaves of the journal, at any byte, is gone on from.
#[test]
fn a_journal_cut_anywhere_gives_the_same_bytes() {
    let home = home(&SMALL.replace("300ms", "20ms").replace("100ms", "10ms"));
    let dir = home.path();
    let grid = "sweep s.toml --variant XCP --seeds 1..4 --out";
    run(0, &format!("{grid} whole"), dir);
    let expected = results(&dir.join("whole"));
    // A directory in the way lets every run be done and no result be written.
    fs::create_dir_all(dir.join("cut/.runs.parquet.part")).unwrap();
    let told = run(2, &format!("{grid} cut"), dir);
    assert!(text(&told.stderr).contains("cannot write cut/runs.parquet"), "{}", text(&told.stderr));
    assert!(
        text(&told.stderr).contains("4 of 4 runs are done and kept in cut"),
        "{}",
        text(&told.stderr)
    );
    fs::remove_dir(dir.join("cut/.runs.parquet.part")).unwrap();
    let journal = fs::read(dir.join("cut/sweep.journal")).unwrap();
    // Every byte is the journal's own test; here some within each part of it, and the ends of
    // lines.
    let ends = (0..journal.len()).filter(|&i| journal[i] == b'\n').flat_map(|i| [i, i + 1]);
    let mut cuts: Vec<usize> = (0..=journal.len()).step_by(101).chain(ends).collect();
    cuts.sort_unstable();
    cuts.dedup();
    for cut in cuts {
        fs::write(dir.join("cut/sweep.journal"), &journal[..cut]).unwrap();
        for name in FILES.map(|name| dir.join("cut").join(name)).iter().filter(|path| path.exists())
        {
            fs::remove_file(name).unwrap();
        }
        run(0, &format!("{grid} cut"), dir);
        assert!(results(&dir.join("cut")) == expected, "cut at {cut} of {}", journal.len());
    }
}

/// Lines of the journal, the two at its head not counted.
fn done(dir: &Path) -> usize {
    fs::read(dir.join("sweep.journal"))
        .unwrap_or_default()
        .iter()
        .filter(|&&b| b == b'\n')
        .count()
        .saturating_sub(2)
}

#[test]
fn killed_again_and_again_it_gives_the_same_bytes() {
    let home = home(SMALL);
    let dir = home.path();
    let grid = "sweep s.toml --set duration=2s --set flow.count=1..4 --seeds 1..15 --out";
    run(0, &format!("{grid} whole"), dir);
    let mut kills = 0;
    // One that was too fast to be caught is forgotten; not all of so many are.
    for _ in 0..100 {
        if kills == 5 {
            break;
        }
        let before = done(&dir.join("killed"));
        let mut child = xcpnet(&format!("{grid} killed --jobs 2"), dir)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while done(&dir.join("killed")) < before + 7 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            fs::remove_dir_all(dir.join("killed")).unwrap();
            kills = 0;
            continue;
        }
        kills += 1;
        assert!(done(&dir.join("killed")) >= before, "nothing done is lost");
    }
    assert_eq!(kills, 5, "it was never caught at work five times in a row");
    let output = run(0, &format!("{grid} killed"), dir);
    assert!(text(&output.stderr).starts_with("resuming: "), "{}", text(&output.stderr));
    assert!(results(&dir.join("killed")) == results(&dir.join("whole")));
    assert_eq!(listing(&dir.join("killed")), listing(&dir.join("whole")), "nothing else is left");
}

#[test]
fn interrupted_it_says_how_to_go_on() {
    let home = home(SMALL);
    let dir = home.path();
    let mut child = xcpnet("sweep s.toml --set duration=20ms,10000h --jobs 1 --out out", dir)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Both variants of the short one are done; the long one never will be.
    while done(&dir.join("out")) < 2 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // Meanwhile nobody else may write there.
    let refused = run(2, "sweep s.toml --set duration=20ms,10000h --out out", dir);
    assert!(
        text(&refused.stderr).contains("another sweep is writing into out"),
        "{}",
        text(&refused.stderr)
    );
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(
        text(&output.stderr),
        "error: interrupted\n2 of 4 runs are done and kept in out; to resume: xcpnet sweep s.toml \
            --set duration=20ms,10000h --jobs 1 --out out\n"
    );
    assert_eq!(listing(&dir.join("out")), ["sweep.journal"]);
}

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

#[test]
fn another_sweep_is_left_alone() {
    let home = home(SMALL);
    let dir = home.path();
    run(0, "sweep s.toml --seeds 1..2 --out out", dir);
    let before = results(&dir.join("out"));
    let mut table = String::new();
    for arguments in
        ["--seeds 1..3", "--seeds 1..2 --variant TCP", "--seeds 1..2 --set queue.target=0"]
    {
        let output = run(2, &format!("sweep s.toml {arguments} --out out"), dir);
        writeln!(table, "──── {arguments}\n{}", text(&output.stderr)).unwrap();
    }
    fs::write(dir.join("s.toml"), SMALL.replace("10mbit", "20mbit")).unwrap();
    let output = run(2, "sweep s.toml --seeds 1..2 --out out", dir);
    writeln!(table, "──── the file was changed\n{}", text(&output.stderr)).unwrap();
    insta::assert_snapshot!(table);
    assert!(before == results(&dir.join("out")));
    run(0, "sweep s.toml --seeds 1..2 --out out --restart", dir);
    assert!(before != results(&dir.join("out")));
}

/// A reader that shares no code with the writer. `PYTHON` names another interpreter.
#[test]
fn others_read_the_files() {
    let home = home(SMALL);
    let dir = home.path();
    let output = run(0, &format!("{GRID} --set queue.alpha=0.2,0.4 --out out --json"), dir);
    let script = r#"
import importlib, json, sys
names = ["runs", "links", "flows"]
readers = []
try:
    pq = importlib.import_module("pyarrow.parquet")
    readers.append(("pyarrow", {n: pq.read_table(f"out/{n}.parquet").to_pylist() for n in names}))
except ImportError: pass
try:
    duckdb = importlib.import_module("duckdb")
    def rows(n):
        r = duckdb.sql(f"select * from 'out/{n}.parquet'")
        return [dict(zip(r.columns, row)) for row in r.fetchall()]
    readers.append(("duckdb", {n: rows(n) for n in names}))
except ImportError: pass
try:
    polars = importlib.import_module("polars")
    readers.append(("polars", {n: polars.read_parquet(f"out/{n}.parquet").to_dicts() for n in names}))
except ImportError: pass
if not readers:
    print("no reader")
    sys.exit()
lines = [json.loads(line) for line in open("lines.json")]
for reader, tables in readers:
    runs, links, flows = [], [], []
    for line in lines:
        shared = {"run": line["run"], "variant": line["variant"], "seed": line["seed"], **{k: line["settings"][k] for k in ["queue.target", "flow.count", "queue.alpha"]}}
        runs.append({**shared, "jain": line["jain"], "completed_s": 0.3})
        for name in sorted(line["links"]):
            l = line["links"][name]
            links.append({**shared, "link": name, "utilisation": l["utilisation"], "queue_mean_packets": l["queue_mean"],
                          "queue_max_packets": l["queue_max"], "drops": l["drops"], "lost": l["lost"], "packets": l["packets"]})
        for f in line["flows"]:
            flows.append({**shared, "flow": f["name"], "goodput_bps": f["goodput"], "rtt_mean_s": f["rtt_mean"] or None, "retransmits": f["retransmits"],
                          "timeouts": f["timeouts"], "cwnd_mean_packets": f["cwnd_mean"], "completed_at_s": f.get("completed_at")})
    for name, expected in zip(names, [runs, links, flows]):
        got = tables[name]
        assert [list(r) for r in got[:1]] == [list(r) for r in expected[:1]], (reader, name, got[0], expected[0])
        assert got == expected, (reader, name, [p for p in zip(got, expected) if p[0] != p[1]][:1])
    print(reader, "agrees")
"#;
    fs::write(dir.join("lines.json"), &output.stdout).unwrap();
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let output = match Command::new(&python).args(["-c", script]).current_dir(dir).output() {
        Ok(output) => output,
        Err(e) => return xcp_skip::skipped!("parquet-reader", "cannot start {python}: {e}"),
    };
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    if text(&output.stdout) == "no reader\n" {
        xcp_skip::skipped!(
            "parquet-reader",
            "{python} has no reader of Parquet; pip install pyarrow, duckdb or polars"
        );
    } else {
        assert!(text(&output.stdout).lines().all(|line| line.ends_with(" agrees")));
        eprint!("{}", text(&output.stdout));
    }
}

#[test]
fn a_terminal_sees_progress() {
    let home = home(&SMALL.replace("300ms", "20s"));
    let line = format!("{} sweep s.toml --seeds 1..4 --out out", env!("CARGO_BIN_EXE_xcpnet"));
    let output = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .current_dir(home.path())
        .stdin(Stdio::null())
        .env("TERM", "xterm")
        .output();
    match output {
        Ok(output) if output.status.success() => {
            assert!(text(&output.stdout).contains("of 8 runs done"), "{}", text(&output.stdout));
        }
        _ => xcp_skip::skipped!(
            "script",
            "no pseudo-terminal; install script(1), package bsdutils or util-linux"
        ),
    }
}
