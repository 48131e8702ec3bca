//! What `pep up` says and leaves, whether the proxy comes up or not.

use std::fs::File;
use std::process::{Command, Stdio};

use xcp_linux::sysctl;
use xcp_pep::gateway::state::Place;

use super::look::text;
use super::site::{Site, pep, skipped};
use super::{DELAY, leftovers, one, settles};

const DEVICES: [&str; 4] = ["--wan", "wan", "--lan", "lan"];

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn warnings_are_told_as_such_whether_it_comes_up_or_not() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let before = leftovers(&site.near);
    site.near.run(|| sysctl::write("net.ipv6.conf.all.forwarding", "0").unwrap()).unwrap();
    let warns = |line: &str| line.starts_with("warning: IPv4 is forwarded but IPv6 is not");
    // Whatever is logged, and how.
    for more in [&[][..], &["--log", "error"], &["--log-json"]] {
        let up = pep(&site.near, "up", &[&DEVICES[..], more].concat());
        let said = stderr(&up);
        if !up.status.success() && said.contains("doctor") {
            return skipped(said);
        }
        let down = pep(&site.near, "down", &["--now"]);
        assert!(up.status.success() && down.status.success(), "{said}");
        assert!(said.lines().count() == 1 && warns(&said), "{said}");
    }
    let failed = pep(&site.near, "up", &[&DEVICES[..], &["--metrics", "10.71.99.99:1"]].concat());
    let said = stderr(&failed);
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        !failed.status.success()
            && lines.len() == 2
            && warns(lines[0])
            && lines[1].starts_with("error: --metrics: cannot listen"),
        "{said}"
    );
    site.near.run(|| sysctl::write("net.ipv6.conf.all.forwarding", "1").unwrap()).unwrap();
    settles(&site.near, &before);
}

#[test]
fn where_nothing_can_be_written_it_is_told_what_and_why() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let before = leftovers(&site.near);
    let up = format!("{} pep up --netns {}", env!("CARGO_BIN_EXE_xcpnet"), Site::path(&site.near));
    // Nobody else sees the full directory.
    let script = format!(
        "mkdir -p /run/xcpnet && mount -t tmpfs -o size=4k none /run/xcpnet || exit 77
         head -c 4096 /dev/zero > /run/xcpnet/all; {up} {}",
        DEVICES.join(" ")
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output();
    let output = match output {
        Ok(output) if output.status.code() != Some(77) => output,
        other => return skipped(format!("a full directory: {other:?}")),
    };
    let said = text(&output);
    assert!(
        !output.status.success()
            && said.starts_with("error: cannot write /run/xcpnet/pep-")
            && said.contains("No space left")
            && said.contains("`df /run/xcpnet`"),
        "{said}"
    );
    settles(&site.near, &before);
}

#[test]
fn one_that_is_refused_leaves_no_directory() {
    if !xcp_linux::error::is_root() {
        return skipped("what a refused proxy leaves");
    }
    // Nobody else's is there.
    let script = format!(
        "mount -t tmpfs none /run || exit 77; {} pep up --wan none --lan none; ls /run",
        env!("CARGO_BIN_EXE_xcpnet")
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output();
    let output = match output {
        Ok(output) if output.status.code() != Some(77) => output,
        other => return skipped(format!("a directory of its own: {other:?}")),
    };
    assert!(stderr(&output).contains("no device \"none\""), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

#[test]
fn logs_of_attempts_that_were_killed_are_removed() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let log = |pid: u32| {
        let mut path = Place::of(&site.near, "main").log().into_os_string();
        path.push(format!(".{pid}"));
        std::path::PathBuf::from(path)
    };
    let gone = || {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    };
    // Of one that was killed; of one that is starting; of one whose proxy is still there.
    let [killed, starting, left] = [log(gone()), log(std::process::id()), log(gone())];
    if killed == left {
        return skipped("process numbers are used again at once");
    }
    std::fs::create_dir_all(killed.parent().unwrap()).unwrap();
    let files = [&killed, &starting, &left].map(|path| File::create(path).unwrap());
    files[2].lock().unwrap();
    let failed = pep(&site.near, "up", &["--wan", "wan", "--lan", "wan"]);
    assert!(!failed.status.success(), "{failed:?}");
    assert_eq!([&killed, &starting, &left].map(|path| path.exists()), [false, true, true]);
    for path in [starting, left] {
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn one_whose_starter_was_killed_does_not_stay() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let before = leftovers(&site.near);
    let mut run = Command::new(env!("CARGO_BIN_EXE_xcpnet"))
        .args(["pep", "run", "--netns", &Site::path(&site.near), "--in-background", "/dev/null"])
        .args(DEVICES)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(run.stdout.take());
    let output = run.wait_with_output().unwrap();
    let said = stderr(&output);
    if said.contains("doctor") {
        return skipped(said);
    }
    assert!(
        !output.status.success() && said.contains("error: cannot tell whoever started"),
        "{:?} {said}",
        output.status
    );
    settles(&site.near, &before);
}

#[test]
fn a_namespace_that_is_none_is_told_once() {
    for (name, words) in [
        ("nope", "no network namespace \"nope\""),
        ("/proc/1/ns/nope", "cannot open the network namespace"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_xcpnet"))
            .args(["pep", "show", "--netns", name])
            .output()
            .unwrap();
        let said = stderr(&output);
        assert!(!output.status.success() && said.matches(words).count() == 1, "{said}");
        assert!(said.matches("ip netns").count() < 2, "{said}");
    }
}
