//! What goes wrong is told and leaves nothing behind: bad input, places that cannot be written,
//! full disks. A reader that has seen enough is no error.

use std::fs;
use std::process::{Command, Stdio};

use crate::{SMALL, home, listing, run, text, xcpnet};

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
        (
            &["reproduce", "--experiments", "nowhere"],
            &["the directory nowhere: there is no such file or directory; give a directory"],
        ),
        (&["sweep", "--merge", "s.toml"], &["a part of the path is a file, not a directory"]),
        (&["sweep", "s.toml", "--out", "o", "--shard", "5/4"], &["I is from 1 to N, which is 4"]),
        (&["sweep", "s.toml", "--out", "o", "--shard", "0/0"], &["e.g. 3/100"]),
        (&["theory", "s.toml", "--at", "-5s"], &["a time cannot be negative"]),
        (&["man", "s.toml"], &["man", "not a directory; give a directory that you may write to"]),
        #[cfg(target_os = "linux")]
        (
            &["pep", "check", "--wan", "a", "--lan", "b", "--rate", "-1mbit"],
            &["a rate cannot be negative"],
        ),
        #[cfg(target_os = "linux")]
        (&["pep", "rate", "-1mbit", "--name", "two"], &["a rate cannot be negative"]),
        #[cfg(target_os = "linux")]
        (&["pep", "check", "--mss", "abc"], &["'abc' for '--mss <BYTES>': write a whole number"]),
        #[cfg(target_os = "linux")]
        (&["pep", "check", "--mss", "99999999999"], &["this is too large"]),
        #[cfg(target_os = "linux")]
        (&["endpoint", "enable", "--port", "0"], &["the number of a port, from 1 to 65535"]),
        #[cfg(target_os = "linux")]
        (&["endpoint", "enable", "--port", "abc"], &["the number of a port, from 1 to 65535"]),
        #[cfg(target_os = "linux")]
        (&["endpoint", "enable", "--initial-window", "-1"], &["write a whole number from 0 to"]),
        #[cfg(target_os = "linux")]
        (
            &["router", "change", "dev", "x", "police", "on"],
            &["police: this is set when the router is added; remove"],
        ),
        #[cfg(target_os = "linux")]
        (
            &["router", "add", "dev", "x", "config", "none.toml", "netns", "y"],
            &["error: none.toml: there is no such file; check the path"],
        ),
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

/// What a file of options has wrong is told of the file, whoever finds it.
#[test]
#[cfg(target_os = "linux")]
fn what_a_file_of_options_has_wrong_is_told_of_the_file() {
    let home = home(SMALL);
    for (command, content, told) in [
        (
            "router add --dev x",
            "\ncapacity = 10\n",
            "o.toml:2: capacity: the rate \"10\" has no unit",
        ),
        (
            "router add --dev x",
            "capacity = \"1mbit\"\npolice = true",
            "o.toml:2: `police`: write \"on\" or",
        ),
        (
            "router add --dev x --capacity 10",
            "alpha = 0.3",
            "capacity: the rate \"10\" has no unit",
        ),
        (
            "endpoint enable",
            "port = 99999",
            "o.toml:1: port: \"99999\" is not possible here; write",
        ),
        ("pep check --wan a --lan b", "rate = \"10\"", "o.toml: rate: the rate \"10\" has no unit"),
        (
            "pep check --wan a --lan b --rate 11",
            "rate = \"10\"",
            "rate: the rate \"11\" has no unit",
        ),
        (
            "pep check --wan a --lan b",
            "\n\nworkers = -3",
            "o.toml:3: `workers`: write a whole number, 0 or more",
        ),
    ] {
        fs::write(home.path().join("o.toml"), content).unwrap();
        let words: Vec<&str> = command.split(' ').chain(["--config", "o.toml"]).collect();
        let output = run(2, &words, home.path());
        // The proxy goes to another directory, and has the file's whole path.
        let place = format!("{}/", home.path().display());
        let shown = text(&output.stderr).replace(&place, "");
        assert!(shown.starts_with(&format!("error: {told}")), "{command}: {shown}");
    }
}

/// There is no file that could be made below /proc.
#[test]
#[cfg(target_os = "linux")]
fn where_nothing_can_be_made_is_named_as_it_was_given() {
    let home = home(SMALL);
    let output = run(2, &["run", "s.toml", "--out", "/proc/x"], home.path());
    let told = "error: cannot write /proc/x: no files can be created there\n";
    assert_eq!(text(&output.stderr), told);
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
    for arguments in [
        &["run", "s.toml"][..],
        &["run", "s.toml", "--json"],
        &["schema"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output =
            xcpnet().args(arguments).current_dir(home.path()).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
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
    let mut child =
        xcpnet().arg("--help").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}
