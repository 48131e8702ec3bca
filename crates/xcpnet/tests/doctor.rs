//! `xcpnet doctor` on machines that lack something: the kernel is told to refuse calls (seccomp),
//! mounts are taken away, rights are given up, each for that process only.
#![cfg(target_os = "linux")]

use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// BPF_LINK_CREATE of include/uapi/linux/bpf.h.
const LINK_CREATE: u32 = 28;

fn xcpnet(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xcpnet"));
    command
        .arg("doctor")
        .args(arguments)
        .stdin(Stdio::null())
        .current_dir("/")
        .env_remove("RUST_BACKTRACE");
    command
}

fn is_root() -> bool {
    // SAFETY: no arguments.
    unsafe { libc::geteuid() == 0 }
}

/// Root with all capabilities, as it says itself; a container's may not be.
fn may_do_anything() -> bool {
    told(&xcpnet(&["--json"]).output().unwrap())["user"] == "root"
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// What it found; the exit status must say the same. Nothing may have gone wrong on the way.
fn told(output: &Output) -> Value {
    let stderr = text(&output.stderr);
    assert!(!stderr.contains("panicked"), "{stderr}");
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}\n{stderr}", text(&output.stdout)));
    let ready = ["endpoint", "router"].iter().all(|group| report["ready"][group] == "yes");
    assert_eq!(output.status.code(), Some(if ready { 0 } else { 1 }), "{report:#}");
    assert_eq!(stderr.is_empty(), ready, "{stderr}");
    report
}

fn check<'r>(report: &'r Value, name: &str) -> &'r Value {
    let mut checks = report["checks"].as_array().unwrap().iter();
    checks.find(|check| check["name"] == name).unwrap_or_else(|| panic!("no check {name}"))
}

fn statuses(report: &Value, expected: &[(&str, &str)]) {
    for (name, status) in expected {
        assert_eq!(check(report, name)["status"], *status, "{:#}", check(report, name));
    }
}

/// Runs it after something was done to the new process.
fn after(prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static) -> Output {
    let mut command = xcpnet(&["--json"]);
    // SAFETY: what is given below only makes system calls.
    unsafe { command.pre_exec(prepare) }.output().unwrap()
}

fn done(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// From here on the process' mounts are its own.
fn own_mounts() -> io::Result<()> {
    // SAFETY: terminated strings and null pointers where mount(2) allows them.
    unsafe {
        done(libc::unshare(libc::CLONE_NEWNS))?;
        done(libc::mount(
            std::ptr::null(),
            c"/".as_ptr(),
            std::ptr::null(),
            libc::MS_REC | libc::MS_PRIVATE,
            std::ptr::null(),
        ))
    }
}

fn mount(source: &CStr, target: &CStr, kind: &CStr) -> io::Result<()> {
    // SAFETY: terminated strings.
    done(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, std::ptr::null())
    })
}

/// Has the kernel answer a system call (if `first` is given, only with that first argument) with
/// this errno.
fn refuse(call: libc::c_long, first: Option<u32>, errno: i32) -> io::Result<()> {
    let step =
        |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let jump = libc::BPF_JMP | libc::BPF_K;
    // struct seccomp_data: the call's number, 12 bytes of others, the arguments of 8 bytes each.
    let low_half = if cfg!(target_endian = "big") { 20 } else { 16 };
    let (compare, argument) = first.map_or((libc::BPF_JGE, 0), |first| (libc::BPF_JEQ, first));
    let mut program = [
        step(load, 0, 0, 0),
        step(jump | libc::BPF_JEQ, 0, 3, call as u32),
        step(load, 0, 0, low_half),
        step(jump | compare, 0, 1, argument),
        step(libc::BPF_RET, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        step(libc::BPF_RET, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program lives during the calls, and its length is told.
    unsafe {
        done(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        done(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program))
    }
}

#[test]
fn the_machine_at_hand() {
    let report = told(&xcpnet(&["--json"]).output().unwrap());
    let output = xcpnet(&[]).output().unwrap();
    let table = text(&output.stdout);
    for check in report["checks"].as_array().unwrap() {
        assert!(table.contains(check["title"].as_str().unwrap()), "{table}");
    }
    for group in ["endpoint", "router", "lab", "pep"] {
        assert!(table.lines().any(|line| line.starts_with(group)), "{table}");
    }
    assert!(is_root() || report["user"] != "root");
}

/// `--for` tells what one of them needs, and nothing but that decides on its status.
#[test]
fn for_one_of_them() {
    let all = told(&xcpnet(&["--json"]).output().unwrap());
    for group in ["endpoint", "router", "lab", "pep"] {
        let output = xcpnet(&["--json", "--for", group]).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let names = |report: &Value, mine: bool| -> Vec<String> {
            let of = |check: &&Value| {
                !mine || check["groups"].as_array().unwrap().iter().any(|g| g == group)
            };
            report["checks"]
                .as_array()
                .unwrap()
                .iter()
                .filter(of)
                .map(|check| check["name"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(names(&report, false), names(&all, true), "{group}");
        assert_eq!(
            output.status.code(),
            Some(if all["ready"][group] == "yes" { 0 } else { 1 }),
            "{group}: {report:#}"
        );
        let table = xcpnet(&["--for", group]).output().unwrap();
        let verdicts =
            text(&table.stdout).lines().rev().take_while(|line| !line.is_empty()).count();
        assert_eq!(verdicts, 1, "{}", text(&table.stdout));
    }
    let wrong = xcpnet(&["--for", "router2"]).output().unwrap();
    assert!(
        wrong.status.code() == Some(2)
            && text(&wrong.stderr).contains("endpoint, router, lab, pep"),
        "{wrong:?}"
    );
}

/// What only the endpoint lacks is nothing to the router.
#[test]
fn for_a_router_on_a_kernel_that_makes_no_links() {
    if !may_do_anything() {
        return xcp_skip::skipped!("capabilities", "needs root with all capabilities");
    }
    let run = |group: &str| {
        let mut command = xcpnet(&["--json", "--for", group]);
        // SAFETY: it only makes system calls.
        unsafe { command.pre_exec(|| refuse(libc::SYS_bpf, Some(LINK_CREATE), libc::EINVAL)) }
            .output()
            .unwrap()
            .status
            .code()
    };
    assert_eq!((run("endpoint"), run("router")), (Some(1), Some(0)));
}

#[test]
fn a_kernel_without_bpf() {
    let report = told(&after(|| refuse(libc::SYS_bpf, None, libc::ENOSYS)));
    statuses(&report, &[("bpf", "missing")]);
    assert!(
        check(&report, "bpf")["remedy"]["text"].as_str().unwrap().contains("CONFIG_BPF_SYSCALL")
    );
    assert_eq!(report["ready"]["endpoint"], "no");
    if report["user"] == "root" {
        let missing = ["sock_ops", "endpoint_programs", "router_program", "tcx"]
            .map(|name| (name, "missing"));
        statuses(&report, &missing);
    }
}

#[test]
fn root_that_is_refused_bpf() {
    if !may_do_anything() {
        return xcp_skip::skipped!("capabilities", "needs root with all capabilities");
    }
    let report = told(&after(|| refuse(libc::SYS_bpf, None, libc::EPERM)));
    statuses(&report, &[("bpf", "missing"), ("endpoint_programs", "missing")]);
    assert!(check(&report, "bpf")["remedy"]["text"].as_str().unwrap().contains("seccomp"));
}

#[test]
fn a_kernel_that_makes_no_links() {
    if !may_do_anything() {
        return xcp_skip::skipped!("capabilities", "needs root with all capabilities");
    }
    if told(&xcpnet(&["--json"]).output().unwrap())["ready"]["endpoint"] != "yes" {
        return xcp_skip::skipped!("kernel", "this machine lacks what is to be taken away");
    }
    let report = told(&after(|| refuse(libc::SYS_bpf, Some(LINK_CREATE), libc::EINVAL)));
    statuses(
        &report,
        &[
            ("bpf", "ok"),
            ("sock_ops", "missing"),
            ("endpoint_programs", "missing"),
            ("router_program", "ok"),
        ],
    );
    statuses(&report, &[("room_beside_sack", "unknown")]);
    let way_out = check(&report, "tcx");
    assert!(
        way_out["status"] == "degraded"
            && way_out["found"].as_str().unwrap().starts_with("clsact only"),
        "{way_out:#}"
    );
    assert_eq!(report["ready"]["router"], "yes");
}

#[test]
fn a_kernel_without_namespaces_and_packet_sockets() {
    let report = told(&after(|| {
        refuse(libc::SYS_unshare, None, libc::EINVAL)?;
        refuse(libc::SYS_socket, Some(libc::AF_PACKET as u32), libc::EAFNOSUPPORT)
    }));
    statuses(
        &report,
        &[
            ("netns", "missing"),
            ("packet_rings", "missing"),
            ("veth", "unknown"),
            ("htb", "unknown"),
            ("tcx", "unknown"),
        ],
    );
}

#[test]
fn nothing_is_mounted() {
    if !may_do_anything() {
        return xcp_skip::skipped!("capabilities", "needs root with all capabilities");
    }
    // The newest mount of a kind first: others may lie below it.
    let info = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut points: Vec<CString> = Vec::new();
    for line in info.lines().rev() {
        let (before, after) = line.split_once(" - ").unwrap();
        if after.starts_with("cgroup2 ") || after.starts_with("bpf ") {
            points.push(CString::new(before.split(' ').nth(4).unwrap()).unwrap());
        }
    }
    let report = told(&after(move || {
        own_mounts()?;
        for point in &points {
            // SAFETY: a terminated string.
            done(unsafe { libc::umount2(point.as_ptr(), libc::MNT_DETACH) })?;
        }
        // Over the BTF, with a place for a BPF file system left.
        mount(c"none", c"/sys/kernel", c"tmpfs")
    }));
    statuses(&report, &[("cgroup2", "missing"), ("sock_ops", "unknown"), ("btf", "missing")]);
    let kept = check(&report, "bpffs")["found"].as_str().unwrap();
    assert!(kept.starts_with("not mounted; xcpnet mounts it"), "{kept}");
    assert_eq!(report["ready"]["endpoint"], "no");
}

#[test]
fn under_ip_netns_exec() {
    if !may_do_anything() {
        return xcp_skip::skipped!("capabilities", "needs root with all capabilities");
    }
    // It mounts a /sys of its own, named after the network namespace (iproute2, lib/namespace.c).
    let output = after(|| {
        own_mounts()?;
        // SAFETY: no pointers.
        done(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
        mount(c"somewhere", c"/sys", c"sysfs")
    });
    let report = told(&output);
    statuses(&report, &[("bpffs", "missing"), ("sock_ops", "unknown")]);
    assert!(
        check(&report, "bpffs")["remedy"]["text"].as_str().unwrap().contains("--netns"),
        "{report:#}"
    );
}

#[test]
fn somebody_else_than_root() {
    const NOBODY: u32 = 65534;
    let mut command = xcpnet(&["--json"]);
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = match command.output() {
        Ok(output) => output,
        Err(e) => {
            return xcp_skip::skipped!(
                "nobody",
                "nobody may not run {}: {e}",
                env!("CARGO_BIN_EXE_xcpnet")
            );
        }
    };
    let report = told(&output);
    if report["user"] == "in a user namespace" {
        return xcp_skip::skipped!("nobody", "in a user namespace nobody is told to become root");
    }
    assert_eq!(report["user"], "not root");
    for name in ["bpf", "endpoint_programs", "router_program", "htb", "sock_ops"] {
        let check = check(&report, name);
        assert!(["unknown", "ok"].contains(&check["status"].as_str().unwrap()), "{check:#}");
        if check["status"] == "unknown" {
            assert_eq!(check["remedy"]["commands"][0], "sudo xcpnet doctor", "{check:#}");
        }
    }
}

/// `endpoint show --watch | head -1` ends once its reader has gone.
#[test]
fn nobody_is_shown_anything_for_ever() {
    use std::io::{BufRead as _, BufReader};
    if !is_root() {
        return xcp_skip::skipped!("root", "whether `--watch` ends with its reader");
    }
    let mut shown = Command::new(env!("CARGO_BIN_EXE_xcpnet"))
        .args(["endpoint", "show", "--watch"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(shown.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("endpoint"), "{first}");
    let begun = std::time::Instant::now();
    while shown.try_wait().unwrap().is_none() {
        if begun.elapsed() > std::time::Duration::from_secs(10) {
            shown.kill().unwrap();
            panic!("it goes on without a reader");
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// `ip netns exec` has a /sys of its own, in which a mount would go with the command that made it.
#[test]
fn under_ip_netns_exec_the_advice_is_to_run_it_outside() {
    if !may_do_anything() {
        return xcp_skip::skipped!("root", "the advice under `ip netns exec`: needs root");
    }
    for words in ["endpoint enable", "lab clean", "doctor --for endpoint"] {
        let output = Command::new("unshare")
            .args(["--mount", "--net", "sh", "-c"])
            .arg(format!("umount -l /sys && mount -t sysfs sat /sys && exec \"$0\" {words}"))
            .arg(env!("CARGO_BIN_EXE_xcpnet"))
            .output()
            .unwrap();
        let said = [text(&output.stdout), text(&output.stderr)].concat();
        assert!(
            !output.status.success()
                && said.contains("under `ip netns exec` there is no cgroup v2")
                && said.contains("xcpnet outside")
                && !said.contains("mount -t cgroup2"),
            "{words}: {said}"
        );
    }
}
