//! A worker that fails by itself: the proxy ends, and says why.

use std::process::{Command, Stdio};

use super::site::{Proxy, Site, pep, skipped};
use super::{DELAY, RATE, leftovers, one, settles, until};

/// The number of a process's thread of this name.
fn thread(process: u32, name: &str) -> Option<String> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten();
    let named = |path: &std::path::PathBuf| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == name)
    };
    let path = threads.map(|thread| thread.path()).find(named)?;
    Some(path.file_name()?.to_string_lossy().into_owned())
}

#[test]
fn a_proxy_without_one_of_its_workers_ends_with_an_error_and_leaves_nothing() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let before = leftovers(&site.near);
    let path = Site::path(&site.near);
    let mut proxy = Command::new(env!("CARGO_BIN_EXE_xcpnet"))
        .args(["pep", "run", "--netns", &path, "--wan", "wan", "--lan", "lan", "--workers", "2"])
        .args(RATE)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let shows = || pep(&site.near, "show", &["--json"]).status.success();
    until("it is up or has ended", || shows() || proxy.try_wait().unwrap().is_some());
    if proxy.try_wait().unwrap().is_some() {
        let output = proxy.wait_with_output().unwrap();
        return skipped(String::from_utf8_lossy(&output.stderr));
    }
    // Ends what is there when this fails.
    let _guard = Proxy { namespace: &site.near, name: "main", pid: proxy.id() };
    // The next time that it waits for events the kernel refuses.
    let worker = thread(proxy.id(), "pep 1").expect("a worker");
    let calls = "epoll_pwait2,epoll_pwait,epoll_wait";
    let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:error=EINVAL"));
    let strace = Command::new("strace")
        .args(["-qq", "-o", "/dev/null", "-p", &worker, "-e", &trace, "-e", &inject])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut strace) = strace else {
        return xcp_skip::skipped!("strace", "a worker whose system calls fail");
    };
    // Whoever asks wakes it. It is traced to its end, or could not be.
    until("the worker has ended", || {
        shows();
        strace.try_wait().unwrap().is_some()
    });
    if !strace.wait().unwrap().success() {
        return xcp_skip::skipped!("strace", "a worker whose system calls fail");
    }
    until("the proxy has ended", || proxy.try_wait().unwrap().is_some());
    let output = proxy.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{output:?}");
    assert!(said.contains("error: worker 1 has failed: Invalid argument"), "{said}");
    settles(&site.near, &before);
}
