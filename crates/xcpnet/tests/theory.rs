//! What `xcpnet theory` prints of what could be reached.

use std::fs;
use std::process::Command;

/// A link that changes its rate.
const CHANGES: &str = r#"
title    = "A rate that changes"
duration = "20s"
measure  = { from = "2s" }

[[link]]
name    = "bottleneck"
between = ["S", "D"]
rate    = "12mbit"
delay   = "40ms"
rate-changes = [["3s", "18mbit"], ["5s", "6mbit"], ["7s", "12mbit"], ["10s", "6mbit"], ["12s", "18mbit"], ["14s", "12mbit"], ["17s", "18mbit"], ["19s", "6mbit"]]
queue   = { kind = "xcp", limit = "2bdp" }

[[flow]]
name       = "flow"
count      = 2
from       = "S"
to         = "D"
congestion = "xcp"
"#;

/// A link beside datagrams, and a hub.
const OTHERS: &str = r#"
title    = "Datagrams, then a hub"
duration = "20s"
measure  = { from = "2s" }

[[link]]
name    = "bottleneck"
between = ["S", "M"]
rate    = "10mbit"
delay   = "20ms"
queue   = { kind = "xcp", limit = "2bdp" }

[[link]]
name    = "hub"
between = ["M", "D"]
rate    = "10mbit"
delay   = "0s"
medium  = "hub"
framing = 38

[[flow]]
name       = "flow"
count      = 2
from       = "S"
to         = "D"
congestion = "xcp"

[[flow]]
name = "datagrams"
from = "S"
to   = "M"
udp  = { pattern = "on-off", rate = "6mbit", on = "500ms", off = "500ms", random = true }
"#;

#[test]
fn what_could_be_reached() {
    let home = tempfile::tempdir().unwrap();
    let said = [CHANGES, OTHERS].map(|text| {
        fs::write(home.path().join("s.toml"), text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_xcpnet"))
            .args(["theory", "s.toml", "--no-fluid"])
            .current_dir(home.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    });
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn no_instant_after_the_end() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("s.toml"), CHANGES).unwrap();
    let at = |time: &str, more: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_xcpnet"))
            .args(["theory", "s.toml", "--no-fluid", "--at", time])
            .args(more)
            .current_dir(home.path())
            .output()
            .unwrap()
    };
    let refused = at("21s", &[]);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0), "{text}");
    assert!(text.contains("ends at 20 s") && text.contains("--set duration=21s"), "{text}");
    assert!(
        at("20s", &[]).status.success() && at("21s", &["--set", "duration=21s"]).status.success()
    );
}
