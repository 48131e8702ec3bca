//! The command line as scripts meet it: exit statuses, messages, what is left on disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

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

/// One figure, of either format and the same bytes every time; with a clear word where there is
/// none.
#[test]
fn figures_are_drawn() {
    let home = home(&SMALL.replace("start-jitter", "bytes = \"3mb\"\nstart-jitter"));
    let dir = home.path();
    for (figure, words) in [
        ("series", &["Queue, packets", "Time (s)", ">XCP<", ">TCP<"][..]),
        (
            "series --quantity cwnd_packets",
            &["Congestion window, packets", "XCP: flow-1", "TCP: flow-2"],
        ),
        ("series --link bottleneck.reverse --quantity utilisation", &["Utilisation (%)"]),
        ("cdf", &["Completion time (", "Fraction of the flows (%)", ">TCP<"]),
        ("cdf --quantity goodput_bps --variant TCP", &["Goodput ("]),
        ("completion", &["Size (MB)", "Completion time ("]),
        ("delay", &["Mean round-trip time (ms)", "Goodput ("]),
    ] {
        let mut arguments = vec!["plot", "s.toml", "--figure"];
        arguments.extend(figure.split(' '));
        let output = run(0, &[&arguments[..], &["--out", "a.svg"]].concat(), dir);
        assert_eq!((text(&output.stderr), text(&output.stdout)), ("wrote a.svg\n", ""));
        let svg = fs::read_to_string(dir.join("a.svg")).unwrap();
        for word in words.iter().chain(&["<svg ", "<title>Two flows</title>", "</svg>\n"]) {
            assert!(svg.contains(word), "{figure}: no {word} in\n{svg}");
        }
        assert!(
            svg.matches("stroke-width=\"1\"").count() + svg.matches("<circle").count() > 0,
            "{figure}: {svg}"
        );
        run(0, &[&arguments[..], &["--out", "b.svg"]].concat(), dir);
        assert_eq!(fs::read_to_string(dir.join("b.svg")).unwrap(), svg, "the same every time");
        run(0, &[&arguments[..], &["--out", "sub/a.pdf"]].concat(), dir);
        let pdf = fs::read(dir.join("sub/a.pdf")).unwrap();
        assert!(pdf.starts_with(b"%PDF-") && pdf.trim_ascii_end().ends_with(b"%%EOF"));
        if let Ok(read) =
            Command::new("pdftotext").args(["sub/a.pdf", "-"]).current_dir(dir).output()
        {
            let read = text(&read.stdout).to_owned();
            for word in words.iter().map(|word| word.trim_matches(['<', '>'])) {
                assert!(read.contains(word), "{figure}: no {word} in {read}");
            }
        } else {
            xcp_skip::skipped!(
                "pdftotext",
                "whether others read the PDF: needs pdftotext (Debian: poppler-utils)"
            );
        }
    }
    fs::create_dir(dir.join("d.svg")).unwrap();
    for (arguments, told) in [
        ("--figure series --out a.png", "the name must end in .svg or .pdf"),
        ("--figure series --out sub.svg/a.svg --link nowhere", "there is no link \"nowhere\""),
        (
            "--figure series --out c.svg --quantity jain",
            "the quantities are queue_mean_packets, queue_max_packets",
        ),
        (
            "--figure cdf --out c.svg --quantity cwnd",
            "the quantities are completion_time_s, goodput_bps, rtt_mean_s",
        ),
        ("--figure series --out c.svg --set sample=off", "sample is \"off\""),
        ("--figure delay --out c.svg --link bottleneck", "only works with --figure series"),
        (
            "--figure delay --out c.svg --quantity goodput_bps",
            "only works with --figure series or cdf",
        ),
        ("--figure delay --out sub", "the name must end in .svg or .pdf"),
        ("--figure delay --out d.svg", "this is a directory"),
        ("--figure delay --out s.toml/x.svg", "a part of the path is a file"),
    ] {
        let words: Vec<&str> = arguments.split(' ').collect();
        let output = run(2, &[&["plot", "s.toml"], &words[..]].concat(), dir);
        assert!(text(&output.stderr).contains(told), "{arguments}: {}", text(&output.stderr));
    }
    assert_eq!(
        listing(dir),
        ["a.svg", "b.svg", "d.svg", "s.toml", "sub"],
        "nothing is left of what failed"
    );
}

#[test]
fn bad_input_is_refused_before_anything_runs() {
    let home = home(SMALL);
    let typo = SMALL.replace("delay ", "dealy ");
    fs::write(home.path().join("typo.toml"), typo).unwrap();
    for (arguments, words) in [
        (&["run", "missing.toml"][..], &["missing.toml"][..]),
        (&["run", "typo.toml", "--out", "out"], &["typo.toml", "dealy", "delay", "9"]),
        (&["run", "s.toml", "typo.toml"], &["dealy"]),
        (&["run", "s.toml", "--variant", "RED"], &["no variant \"RED\"", "\"XCP\", \"TCP\""]),
        (&["run", "s.toml", "--set", "link.bottleneck.rate=0mbit"], &["rate"]),
        (&["run", "s.toml", "--set", "nonsense"], &["PATH=VALUE"]),
        (&["run"], &["FILE"]),
        (&["run", "s.toml", "--seed=-1"], &["--seed"]),
        (&["run", "s.toml", "--seed", "-1"], &["--seed", "a whole number from 0 to"]),
        (&["run", "s.toml", "--seed", "9223372036854775808"], &["from 0 to 9223372036854775807"]),
        (&["reproduce", "fig99"], &["fig99"]),
        (&["reproduce", "--experiments", "nowhere"], &["nowhere"]),
    ] {
        let output = run(2, arguments, home.path());
        let told = text(&output.stderr);
        assert!(
            words.iter().all(|w| told.contains(w)),
            "{arguments:?} should speak of {words:?}:\n{told}"
        );
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }
    assert_eq!(listing(home.path()), ["s.toml", "typo.toml"]);
}

#[test]
fn an_unwritable_place_is_named_before_the_run() {
    let home = home(SMALL);
    for out in ["s.toml", "s.toml/below"] {
        let output = run(2, &["run", "s.toml", "--out", out], home.path());
        assert!(
            text(&output.stderr).contains(&format!("cannot write {out}")),
            "{}",
            text(&output.stderr)
        );
        assert_eq!(text(&output.stdout), "");
    }
}

#[test]
fn a_full_disk_on_stdout_is_told() {
    let home = home(SMALL);
    for arguments in [&["run", "s.toml"][..], &["run", "s.toml", "--json"], &["schema"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output =
            xcpnet().args(arguments).current_dir(home.path()).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output.stderr).contains("standard output: the disk is full"),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn a_full_disk_under_out_is_told_and_leaves_nothing() {
    let home = home(SMALL);
    fs::create_dir(home.path().join("small")).unwrap();
    let script = "mount -t tmpfs -o size=64k none small || exit 99; \"$0\" run s.toml --out \
        small/out; echo status $?; ls -A small";
    let output = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            script,
            env!("CARGO_BIN_EXE_xcpnet"),
        ])
        .current_dir(home.path())
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output)
            if output.status.code() != Some(99) && text(&output.stdout).contains("status") =>
        {
            assert!(
                text(&output.stdout).ends_with("status 2\n"),
                "nothing is left: {}",
                text(&output.stdout)
            );
            assert!(
                text(&output.stderr)
                    .contains("cannot write small/out/report.html: the disk is full"),
                "{}",
                text(&output.stderr)
            );
        }
        _ => xcp_skip::skipped!(
            "small-disk",
            "no small file system can be mounted here (needs unshare and user \
                namespaces); run as root or allow them"
        ),
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let home = home(SMALL);
    let mut child = xcpnet()
        .args(["run", "s.toml", "--out", "out"])
        .current_dir(home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "wrote out/report.html\n");
    assert!(home.path().join("out/report.html").exists());
}

/// Whether a process handles SIGINT itself by now.
fn listens(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .map(|m| u64::from_str_radix(m.trim(), 16).unwrap());
    mask.is_some_and(|mask| mask & 1 << (2 - 1) != 0)
}

/// Starts something long, interrupts it, and gives what came of it.
fn interrupted(arguments: &[&str], dir: &Path) -> Output {
    let mut child = xcpnet()
        .args(arguments)
        .current_dir(dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !listens(child.id()) {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    child.wait_with_output().unwrap()
}

#[test]
fn interrupted_it_says_what_was_done_and_leaves_no_file() {
    let home =
        home(&SMALL.replace("\"8s\"", "\"10000h\"").replace("title", "sample = \"off\"\ntitle"));
    let output = interrupted(&["run", "s.toml", "--out", "a/out", "--jobs", "1"], home.path());
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{told}");
    for word in [
        "interrupted",
        "XCP: ",
        "of 36000000 s",
        "TCP: not started",
        "nothing was written to a/out",
    ] {
        assert!(told.contains(word), "{word} in {told}");
    }
    assert_eq!(listing(home.path()), ["s.toml"]);
    // Whoever started it is gone, as its standard input says.
    let mut orphan = xcpnet();
    orphan.args(["run", "s.toml", "--end-with-input"]).current_dir(home.path());
    assert_eq!(orphan.output().unwrap().status.code(), Some(130));

    fs::create_dir_all(home.path().join("paper")).unwrap();
    fs::rename(home.path().join("s.toml"), home.path().join("paper/fig.toml")).unwrap();
    let output = interrupted(&["reproduce", "--experiments", ".", "--out", "out"], home.path());
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert_eq!(listing(home.path()), ["paper"]);
}

fn experiment(band: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let paper = dir.path().join("experiments/somebody-2026");
    fs::create_dir_all(&paper).unwrap();
    let claim = format!(
        "{SMALL}\n[[expect]]\nmetric = \"links.bottleneck.utilisation\"\n{band}\nclaim = \"The \
            link is used (somebody 2026)\"\n"
    );
    fs::write(paper.join("fig1.toml"), claim).unwrap();
    let experiments = dir.path().join("experiments");
    (dir, experiments)
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

#[test]
fn reproduce_tells_by_its_status_whether_the_claims_hold() {
    for (band, status, word) in [("min = 0.1", 0, "inside"), ("min = 0.1\nmax = 0.2", 1, "OUTSIDE")]
    {
        let (home, _) = experiment(band);
        let output = run(
            status,
            &["reproduce", "fig1", "--experiments", "experiments", "--out", "out"],
            home.path(),
        );
        assert!(text(&output.stdout).contains(word), "{}", text(&output.stdout));
        assert!(text(&output.stdout).contains("The link is used (somebody 2026)"));
        assert!(home.path().join("out/somebody-2026/fig1/report.html").exists());
        let read = |file: &str| fs::read_to_string(home.path().join("out").join(file)).unwrap();
        assert!(
            read("report.html").contains("somebody-2026.html#fig1"),
            "the overview leads to the paper's page"
        );
        assert!(read("somebody-2026.html").contains("The link is used (somebody 2026)"));
        let output =
            run(status, &["reproduce", "--experiments", "experiments", "--json"], home.path());
        for line in text(&output.stdout).lines() {
            let verdict: Value = serde_json::from_str(line).unwrap();
            assert_eq!(verdict["paper"], "somebody-2026");
            assert_eq!(verdict["inside"], status == 0);
            assert!(verdict["measured"].is_number());
        }
        assert_eq!(
            text(&output.stdout).lines().count(),
            2,
            "a claim without a variant is about each"
        );
        // With `run` a failed claim is told, but is no failure.
        let output = run(0, &["run", "experiments/somebody-2026/fig1.toml"], home.path());
        assert!(text(&output.stdout).contains(word));
    }
}

#[test]
fn what_was_run_is_kept_and_judged_anew() {
    let (home, file) = experiment("min = 0.1");
    let file = file.join("somebody-2026/fig1.toml");
    let scenario = fs::read_to_string(&file).unwrap();
    let cache = home.path().join("kept/runs");
    let judged = |status, more: &[&str]| {
        let arguments =
            [&["reproduce", "experiments/somebody-2026/fig1.toml", "--cache", "kept/runs"], more]
                .concat();
        text(&run(status, &arguments, home.path()).stdout).to_owned()
    };
    let made = |name: &str| fs::metadata(cache.join(name)).unwrap().len();
    let first = judged(0, &[]);
    let names = listing(&cache);
    assert_eq!(names.len(), 2, "a file for each variant");
    // A damaged one is made again; the other is not touched. What is printed is the same.
    let whole = made(&names[0]);
    fs::write(cache.join(&names[0]), "xcpnet run 2 nonsense").unwrap();
    assert_eq!(judged(0, &[]), first);
    assert_eq!((made(&names[0]), listing(&cache)), (whole, names.clone()));
    // Another band is judged on the same runs, another setting is another run.
    fs::write(&file, scenario.replace("min = 0.1", "min = 0.1\nmax = 0.2")).unwrap();
    assert!(judged(1, &[]).contains("OUTSIDE"));
    assert_eq!(listing(&cache), names);
    fs::write(&file, scenario.replace("20ms", "21ms")).unwrap();
    judged(0, &[]);
    assert_eq!(listing(&cache).len(), 4);
    assert!(judged(0, &["--list"]).contains("kept"));
    let output =
        run(0, &["reproduce", "experiments/somebody-2026/fig1.toml", "--no-cache"], home.path());
    assert!(text(&output.stdout).contains("2 of 2 claims"));
    run(2, &["reproduce", "--no-cache", "--cache", "kept/runs"], home.path());
    // Where nothing can be kept the runs are made all the same.
    let output = run(
        0,
        &[
            "reproduce",
            "experiments/somebody-2026/fig1.toml",
            "--cache",
            "experiments/somebody-2026/fig1.toml",
        ],
        home.path(),
    );
    assert!(
        text(&output.stderr).contains("note: runs cannot be kept in"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn interrupted_it_keeps_what_is_done() {
    let (home, file) = experiment("min = 0.1");
    let file = file.join("somebody-2026/fig1.toml");
    let endless = "duration = \"10000h\"\nsample   = \"off\"\nmeasure  = { from = \"4s\" }";
    let scenario = fs::read_to_string(&file).unwrap();
    fs::write(
        file.with_file_name("fig2.toml"),
        scenario.replace("duration = \"8s\"\nmeasure  = { from = \"4s\", to = \"8s\" }", endless),
    )
    .unwrap();
    let kept = home.path().join("kept");
    // The two endless runs are begun first; the third processor does the short ones meanwhile.
    let mut child = xcpnet()
        .args(["reproduce", "--experiments", "experiments", "--cache", "kept", "--jobs", "3"])
        .current_dir(home.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !kept.exists() || listing(&kept).iter().filter(|name| name.ends_with(".run")).count() < 2
    {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success()
    );
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(
        text(&output.stderr).contains("1 of 2 figures complete; completed runs are kept"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(listing(&kept).len(), 2);
}

#[test]
fn seeds_and_less_of_it() {
    let (home, file) = experiment("min = 0.1\nseeds = \"all\"");
    let file = file.join("somebody-2026/fig1.toml");
    let scenario = fs::read_to_string(&file).unwrap();
    let quick = "[quick]\nvariants = \"XCP\"\nseeds = 2\nset = \
        { duration = \"4s\", \"measure\" = { from = \"2s\" } }\n";
    fs::write(&file, format!("seeds = [1, 4, 6]\n{scenario}{quick}")).unwrap();
    let claims = |more: &[&str]| -> Vec<Value> {
        let arguments =
            [&["reproduce", "--experiments", "experiments", "--cache", "kept", "--json"], more]
                .concat();
        let output = run(0, &arguments, home.path());
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let whole = claims(&[]);
    assert_eq!(listing(&home.path().join("kept")).len(), 2 * 3);
    assert_eq!(
        (whole.len(), &whole[0]["seeds"], &whole[0]["seeds_inside"]),
        (2, &3.into(), &3.into())
    );
    // The first ones, which are kept already.
    let two = claims(&["--seeds", "2"]);
    assert_eq!((two.len(), &two[0]["seeds"]), (2, &2.into()));
    assert_eq!(claims(&["--seeds", "9"]), whole);
    assert_eq!(listing(&home.path().join("kept")).len(), 2 * 3);
    let less = claims(&["--quick"]);
    assert_eq!(listing(&home.path().join("kept")).len(), 2 * 3 + 2);
    assert_eq!((less.len(), &less[0]["variant"], &less[0]["seeds"]), (1, &"XCP".into(), &2.into()));

    // What says nothing of --quick is run if it costs little.
    fs::write(&file, &scenario).unwrap();
    assert_eq!(claims(&["--quick"]).len(), 2);
    fs::write(&file, scenario.replace("\"8s\"", "\"800h\"")).unwrap();
    assert_eq!(claims(&["--quick"]).len(), 0);
    let output = run(0, &["reproduce", "--experiments", "experiments", "--quick"], home.path());
    assert!(
        text(&output.stdout).contains("left out of --quick: somebody-2026/fig1"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn a_table_of_failures() {
    let (home, _) = experiment("min = 0.1");
    let dir = home.path().join("experiments/failures");
    fs::create_dir(&dir).unwrap();
    fs::write(
        dir.join("01-small.toml"),
        format!("description = \"\"\"\nSomebody warns.\n\nWe see it.\n\"\"\"\n{SMALL}"),
    )
    .unwrap();
    let told = |more: &[&str]| {
        let arguments = [&["reproduce", "--experiments", "experiments", "failures"], more].concat();
        text(&run(0, &arguments, home.path()).stdout).to_owned()
    };
    let table = told(&[]);
    assert!(
        table.contains("failures/01-small: Two flows")
            && table.contains("fairness")
            && !table.contains("claims"),
        "{table}"
    );
    let markdown = told(&["--markdown"]);
    for words in [
        "# ",
        "| XCP | TCP |",
        "Somebody warns.",
        "We see it.",
        "xcpnet reproduce failures/01-small",
    ] {
        assert!(markdown.contains(words), "{words} in\n{markdown}");
    }
    let cells: Vec<Value> = told(&["--json", "--out", "out"])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((cells.len(), &cells[0]["variant"]), (2, &"XCP".into()));
    for number in ["utilisation", "jain", "queue_mean", "queue_rtts", "drops", "grade"] {
        assert!(cells[1][number].is_number(), "{number}");
    }
    let report = fs::read_to_string(home.path().join("out/report.html")).unwrap();
    assert!(report.contains("We see it.") && !report.contains("somebody-2026"));
    // With everything else it comes last.
    let output = run(0, &["reproduce", "--experiments", "experiments"], home.path());
    assert!(
        text(&output.stdout).find("failures/01-small")
            > text(&output.stdout).find("somebody-2026/fig1")
    );
    // The second table follows the first, each with its own heading.
    let beyond = home.path().join("experiments/beyond");
    fs::create_dir(&beyond).unwrap();
    fs::write(beyond.join("01-far.toml"), SMALL).unwrap();
    let both = ["reproduce", "--experiments", "experiments", "failures", "beyond", "--markdown"];
    let pages = text(&run(0, &both, home.path()).stdout).to_owned();
    let at = |words: &str| pages.find(words).unwrap_or_else(|| panic!("{words} in\n{pages}"));
    assert!(at("reproduce failures --markdown") < at("failures/01-small"), "{pages}");
    assert!(at("failures/01-small") < at("reproduce beyond --markdown"), "{pages}");
    assert!(at("reproduce beyond --markdown") < at("beyond/01-far"), "{pages}");
    // So does that of the liars, which is another one.
    let liars = home.path().join("experiments/liars");
    fs::create_dir(&liars).unwrap();
    fs::write(liars.join("01-none.toml"), SMALL).unwrap();
    let all = ["reproduce", "--experiments", "experiments", "failures", "liars", "--markdown"];
    let pages = text(&run(0, &all, home.path()).stdout).to_owned();
    let at = |words: &str| pages.find(words).unwrap_or_else(|| panic!("{words} in\n{pages}"));
    assert!(at("failures/01-small") < at("reproduce liars --markdown"), "{pages}");
    // What is of no table has no page.
    let none = ["reproduce", "--experiments", "experiments", "fig1", "--markdown"];
    let output = run(2, &none, home.path());
    assert!(text(&output.stderr).contains("the tables are failures, beyond and liars"));
}

#[test]
fn the_built_in_experiments_are_listed() {
    let output = run(0, &["reproduce", "--list"], Path::new("/"));
    assert!(text(&output.stdout).contains("zhang-henderson-2005/fig05"));
    for all in ["zhang-henderson-2005", "fig05", "experiments/zhang-henderson-2005/fig05.toml"] {
        let output = run(0, &["reproduce", all, "--list"], Path::new("/"));
        assert!(text(&output.stdout).contains("zhang-henderson-2005/fig05"));
    }
}

#[test]
fn the_schema_is_json() {
    let output = run(0, &["schema"], Path::new("/"));
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(schema["$schema"].as_str().unwrap().contains("json-schema.org"));
}

#[test]
fn help_and_version() {
    let output = run(0, &["--help"], Path::new("/"));
    assert!(text(&output.stdout).contains("Exit status"));
    let output = run(0, &["run", "--help"], Path::new("/"));
    assert!(text(&output.stdout).contains("Examples:"));
    let output = run(0, &["--version"], Path::new("/"));
    assert_eq!(text(&output.stdout), format!("xcpnet {}\n", env!("CARGO_PKG_VERSION")));
    run(2, &["frobnicate"], Path::new("/"));
}

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

#[test]
fn a_report_has_theory_beside_the_packets() {
    let home = home(SMALL);
    run(0, &["run", "s.toml", "--out", "out"], home.path());
    let page = fs::read_to_string(home.path().join("out/report.html")).unwrap();
    // One link: both theories agree for XCP, and TCP has no equilibrium.
    assert!(page.contains(">by max-min and equilibrium</th>") && page.contains(">by max-min</th>"));
    assert!(page.contains("\"theory\":\"max-min and equilibrium\""));
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
