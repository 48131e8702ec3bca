//! Progress, where there is a terminal to see it.

use std::process::{Command, Stdio};

use crate::{SMALL, home, text};

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
