//! `xcpnet sweep --shard` and `--merge` as their user meets them: the bytes of one machine's sweep
//! from any number of shards, in any order, by workers that were killed; clear refusals.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Two variants, some randomness, a few milliseconds to run; runs of very different lengths.
const SMALL: &str = r#"
title    = "Two flows"
duration = "300ms"
sample   = "off"
link     = [{ name = "bottleneck", between = ["S", "D"], rate = "10mbit", delay = "5ms", queue = { kind = "xcp", limit = 100 } }]
flow     = [{ count = 2, from = "S", to = "D", congestion = "xcp", start-jitter = "100ms" }]

[[variant]]
name = "XCP"

[[variant]]
name = "TCP"
set  = { "queue.kind" = "drop-tail", "flow.congestion" = "reno" }
"#;

const GRID: &str = "s.toml --set duration=50ms,1s --set flow.count=1..3 --seeds 1..4";
const FILES: [&str; 4] = ["runs.parquet", "links.parquet", "flows.parquet", "groups.parquet"];

fn xcpnet(arguments: &str, dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xcpnet"));
    command.args(arguments.split_whitespace()).current_dir(dir).stdin(Stdio::null());
    command
}

fn run(status: i32, arguments: &str, dir: &Path) -> String {
    let Output { status: got, stdout, stderr } = xcpnet(arguments, dir).output().unwrap();
    let told = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    assert_eq!(got.code(), Some(status), "{arguments}\n{told}");
    told
}

fn home() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.toml"), SMALL).unwrap();
    dir
}

fn results(dir: &Path) -> [Vec<u8>; 4] {
    FILES.map(|name| fs::read(dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}")))
}

/// Files in all of a directory, by their paths.
fn listing(dir: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut places = vec![dir.to_owned()];
    while let Some(place) = places.pop() {
        for entry in fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                places.push(path);
            } else {
                all.push(path.strip_prefix(dir).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    all.sort();
    all
}

#[test]
fn any_shards_in_any_order_are_the_bytes_of_one_machine() {
    let home = home();
    let dir = home.path();
    run(0, &format!("sweep {GRID} --out whole"), dir);
    let expected = results(&dir.join("whole"));
    for (number, jobs) in [(1u64, 2), (5, 1), (48, 1)] {
        let out = format!("cut{number}");
        // Backwards, and every other one twice, which finds it done.
        for shard in (1..=number).rev() {
            let arguments =
                format!("sweep {GRID} --jobs {jobs} --out {out} --shard {shard}/{number}");
            let told = run(0, &arguments, dir);
            assert!(told.starts_with(&format!("shard {shard} of {number}: ")), "{told}");
            if shard % 2 == 0 {
                assert!(run(0, &arguments, dir).contains("is already done"));
            }
        }
        let told = run(0, &format!("sweep --merge {out}"), dir);
        assert!(told.starts_with(&format!("48 runs of {number} shards\n")), "{told}");
        assert!(results(&dir.join(&out)) == expected, "{number} shards");
        let files = listing(&dir.join(&out));
        assert_eq!(files.len() as u64, 4 + 1 + 5 * number, "{files:?}");
        // Merged again, and from any other directory, it is the same.
        run(0, &format!("sweep --merge {}", dir.join(&out).display()), Path::new("/"));
        assert!(results(&dir.join(&out)) == expected);
    }
}

/// Workers that are killed anywhere leave nothing that counts, and two that do the same shard at
/// once do no harm.
#[test]
fn killed_anywhere_and_done_twice_it_is_the_same() {
    let home = home();
    let dir = home.path();
    let grid = format!("{GRID} --jobs 1 --out cut");
    run(0, &format!("sweep {GRID} --out whole"), dir);
    for round in 0..6u64 {
        let shard = 1 + round % 3;
        let mut both: Vec<_> = (0..2)
            .map(|_| {
                let mut command = xcpnet(&format!("sweep {grid} --shard {shard}/3"), dir);
                command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
            })
            .collect();
        // Sooner or later in its work, or after it: each is right.
        std::thread::sleep(std::time::Duration::from_millis(17 * round * round));
        both.iter_mut().for_each(|child| {
            let _ = child.kill();
            child.wait().unwrap();
        });
    }
    let pair: Vec<_> = (0..2)
        .map(|_| {
            let all = format!("for i in 1 2 3; do \"$0\" sweep {grid} --shard $i/3 || exit; done");
            let mut command = Command::new("sh");
            command.args(["-c", &all, env!("CARGO_BIN_EXE_xcpnet")]).current_dir(dir);
            command.stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in pair {
        assert!(child.wait().unwrap().success());
    }
    run(0, "sweep --merge cut", dir);
    assert!(results(&dir.join("cut")) == results(&dir.join("whole")));
    assert_eq!(listing(&dir.join("cut")).len(), 4 + 1 + 5 * 3, "nothing is left of the killed");
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let home = home();
    let dir = home.path();
    run(0, &format!("sweep {GRID} --out cut --shard 2/4"), dir);
    let before = listing(&dir.join("cut"));
    let told = run(2, "sweep --merge cut", dir);
    assert!(told.contains("3 of 4 shards are not done: 1, 3, 4"), "{told}");
    for (arguments, word) in [
        (format!("{GRID} --out cut --shard 1/5"), "cut into different shards"),
        (format!("{GRID},9 --out cut --shard 1/4"), "other --seeds"),
        (format!("{GRID} --variant TCP --out cut --shard 1/4"), "other variants"),
        (format!("{GRID} --out cut"), "holds a sweep in shards"),
        (format!("{GRID} --out none --shard 5/4"), "write I/N"),
        (format!("{GRID} --out none --shard 0/4"), "write I/N"),
        (format!("{GRID} --out none --shard 1/49"), "a number from 1 to 48"),
        (
            "s.toml --variant TCP --out none --shard 1/2".to_owned(),
            "1 run cannot be cut into 2 shards; there can only be 1",
        ),
        (format!("{GRID} --merge cut"), "cannot be used with"),
        ("--merge none".to_owned(), "holds no sweep in shards"),
        (format!("{GRID} --set queue.tagret=1 --out none --shard 1/4"), "tagret"),
        (format!("{GRID} --out /proc/none --shard 1/4"), "cannot write /proc/none"),
    ] {
        let told = run(2, &format!("sweep {arguments}"), dir);
        assert!(told.contains(word), "{arguments}\n{told}");
    }
    assert!(!dir.join("none").exists());
    assert_eq!(listing(&dir.join("cut")), before);
    // A part that is not what its marker says.
    for shard in [1, 3, 4] {
        run(0, &format!("sweep {GRID} --out cut --shard {shard}/4"), dir);
    }
    let part = dir.join("cut/links/part-00002.parquet");
    let mut bytes = fs::read(&part).unwrap();
    bytes[100] ^= 1;
    fs::write(&part, bytes).unwrap();
    let told = run(2, "sweep --merge cut", dir);
    assert!(told.contains("links/part-00002.parquet does not match done/00002.json"), "{told}");
    assert!(!dir.join("cut/links.parquet").exists());
    fs::write(dir.join("cut/manifest.json"), "{}").unwrap();
    assert!(run(2, "sweep --merge cut", dir).contains("layout"));
}

/// On a full disk a shard is told as not done, and is done when there is room.
#[test]
fn a_full_disk_is_told_and_nothing_is_lost() {
    let home = home();
    let dir = home.path();
    let program = env!("CARGO_BIN_EXE_xcpnet");
    fs::create_dir(dir.join("small")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=24k tmpfs small || exit 77
        '{program}' sweep {GRID} --out small/cut --shard 1/2; echo status $?
        mount -o remount,size=1m small
        '{program}' sweep {GRID} --out small/cut --shard 1/2 && '{program}' sweep {GRID} --out small/cut --shard 2/2 &&
            '{program}' sweep --merge small/cut && cp -r small/cut mended"
    );
    let output =
        Command::new("unshare").args(["-m", "sh", "-c", &script]).current_dir(dir).output();
    let refused = |output: &Output| {
        output.status.code() == Some(77)
            || String::from_utf8_lossy(&output.stderr).contains("unshare failed")
    };
    let Some(output) = output.ok().filter(|output| !refused(output)) else {
        return xcp_skip::skipped!("root", "cannot mount a small file system; run as root");
    };
    let told = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
    assert!(told.contains("status 2") && told.contains("the disk is full"), "{told}");
    run(0, &format!("sweep {GRID} --out whole"), dir);
    assert!(results(&dir.join("mended")) == results(&dir.join("whole")), "{told}");
}
