//! `run` and `reproduce` interrupted: what they say was done, what they leave and what they keep.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::reproduce::experiment;
use crate::{SMALL, home, listing, text, xcpnet};

/// Whether a process handles SIGINT itself by now.
fn listens(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .map(|m| u64::from_str_radix(m.trim(), 16).unwrap());
    mask.is_some_and(|mask| mask & 1 << (2 - 1) != 0)
}

/// Whether a process has simulated for a while, by what it has computed: fields 14 and 15 of
/// proc_pid_stat(5), in hundredths of a second.
fn is_at_work(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ');
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() >= 20
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
    while !listens(child.id()) || !is_at_work(child.id()) {
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
