//! `--on linux` as scripts meet it: what it refuses, Ctrl-C, being killed, two at a time. Needs
//! root; says so where it is not there.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

const SCENARIO: &str = r#"
duration = "1s"
link = [{ name = "l", between = ["S", "D"], rate = "10mbit", delay = "10ms", queue = "xcp" }]
flow = [{ from = "S", to = "D", congestion = "xcp" }]
"#;

/// Each lab removes what others have left: these tests look at that one after the other.
static ONE: Mutex<()> = Mutex::new(());

fn one() -> MutexGuard<'static, ()> {
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn xcpnet(arguments: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xcpnet"));
    command.args(arguments).current_dir(dir).stdin(Stdio::null());
    command
}

fn home(scenario: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.toml"), scenario).unwrap();
    dir
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// What came of a run, if this machine and user can have one at all: else the reason is printed.
fn able(test: &str, output: Output) -> Option<Output> {
    if output.status.code() == Some(2) {
        xcp_skip::skipped!("root", "{test}: {}", text(&output.stderr));
        return None;
    }
    Some(output)
}

/// A lab at work; `None`, and the reason printed, where it does not come to that.
fn at_work(test: &str, dir: &Path) -> Option<Child> {
    let command = &mut xcpnet(&["run", "s.toml", "--on", "linux", "--set", "duration=60s"], dir);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    // The endpoint is loaded when the network is built.
    while !congestions().contains(&congestion(child.id())) {
        if child.try_wait().unwrap().is_some() || start.elapsed() > Duration::from_secs(30) {
            let _ = child.kill();
            able(test, child.wait_with_output().unwrap());
            return None;
        }
        sleep(Duration::from_millis(20));
    }
    // Some of the run, too.
    sleep(Duration::from_millis(1000));
    Some(child)
}

/// Network namespaces that a process has threads in or descriptors of.
fn namespaces(pid: u32) -> BTreeSet<PathBuf> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let list = |name: &str| {
        fs::read_dir(process.join(name)).into_iter().flatten().flatten().map(|entry| entry.path())
    };
    let links = list("task")
        .map(|task| task.join("ns/net"))
        .chain(list("fd"))
        .filter_map(|path| fs::read_link(path).ok());
    links.filter(|link| link.to_string_lossy().starts_with("net:")).collect()
}

/// Control groups of labs that this process was.
fn groups(pid: u32) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount = mounts
        .lines()
        .find(|line| line.contains(" - cgroup2 "))
        .and_then(|line| line.split(' ').nth(4))
        .unwrap();
    let entries = fs::read_dir(mount).unwrap().flatten().map(|entry| entry.path());
    entries.filter(|path| path.to_string_lossy().contains(&format!("xcpnet-lab-{pid}-"))).collect()
}

/// The name of a lab's congestion control.
fn congestion(pid: u32) -> String {
    format!("xcp_lab{pid}")
}

fn congestions() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap()
}

#[test]
fn only_root_may() {
    let home = home(SCENARIO);
    let mut command = xcpnet(&["run", "s.toml", "--on", "linux"], home.path());
    if is_root() {
        command.uid(65_534);
    }
    let Ok(output) = command.output() else {
        return xcp_skip::skipped!(
            "readable",
            "only root may: the program is not to be read by others"
        );
    };
    if output.status.code() == Some(2) && text(&output.stderr).contains("cannot be read") {
        return xcp_skip::skipped!(
            "readable",
            "only root may: the file is not to be read by others"
        );
    }
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("sudo"), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn a_kernels_congestion_control_is_known_or_refused_with_the_line() {
    let home = home(&SCENARIO.replace("\"xcp\" }]\n", "\"qubic\" }]\n").replacen(
        "queue = \"qubic\"",
        "queue = \"xcp\"",
        1,
    ));
    let output = xcpnet(&["run", "s.toml", "--on", "linux"], home.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    assert!(
        told.contains("this kernel has no congestion control \"qubic\"")
            && told.contains("s.toml:4")
            && told.contains("`cubic`"),
        "{told}"
    );
}

#[test]
fn a_run_gives_what_a_simulation_gives() {
    let _one = one();
    let home = home(SCENARIO);
    let output = xcpnet(&["run", "s.toml", "--on", "linux", "--json", "--out", "out"], home.path())
        .output()
        .unwrap();
    let Some(output) = able("a run on Linux", output) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let run: Value = serde_json::from_str(text(&output.stdout)).unwrap();
    assert_eq!((&run["backend"], &run["seed"]), (&"linux".into(), &1.into()));
    assert!(
        run["links"]["l"]["packets"].as_u64().unwrap() > 0
            && run["flows"][0]["goodput"].as_f64().unwrap() > 0.0,
        "{run}"
    );
    let simulated =
        xcpnet(&["run", "s.toml", "--json", "--out", "simulated"], home.path()).output().unwrap();
    assert_eq!(simulated.status.code(), Some(0));
    let header = |dir: &str| {
        fs::read_to_string(home.path().join(dir).join("s.links.csv"))
            .unwrap()
            .lines()
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(header("out"), header("simulated"));
}

#[test]
fn ctrl_c_ends_a_run_early_and_takes_everything_down() {
    let _one = one();
    let home = home(SCENARIO);
    let Some(child) = at_work("Ctrl-C", home.path()) else { return };
    let pid = child.id();
    assert!(Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("run on Linux so far"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("interrupted at"), "{}", text(&output.stdout));
    assert_eq!(groups(pid), Vec::<PathBuf>::new());
}

/// The second one ends the program where it is, without destructors. (SIGTERM counts as one, and two
/// signals of a kind may come as one.)
#[test]
fn a_second_ctrl_c_leaves_no_group_either() {
    let _one = one();
    let home = home(SCENARIO);
    let Some(child) = at_work("Ctrl-C, twice", home.path()) else { return };
    let pid = child.id();
    let script = format!("kill -INT {pid}; kill -TERM {pid}");
    assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(!text(&output.stdout).contains("interrupted at"), "the first one ended it");
    assert_eq!(groups(pid), Vec::<PathBuf>::new());
}

#[test]
fn a_killed_lab_leaves_an_empty_group_that_clean_removes() {
    let _one = one();
    let home = home(SCENARIO);
    let Some(mut child) = at_work("a killed lab", home.path()) else { return };
    let pid = child.id();
    let were = namespaces(pid);
    assert!(were.len() > 4, "{were:?}");
    child.kill().unwrap();
    // At once, while the process is dying, and for as long as nobody has asked how it ended.
    let output = xcpnet(&["lab", "clean"], home.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let at_once = text(&output.stdout).contains(&pid.to_string());
    child.wait().unwrap();
    assert!(!congestions().contains(&congestion(pid)), "the endpoint is gone");
    let own = namespaces(std::process::id());
    let held = |pid: &str| pid.parse().map(namespaces).unwrap_or_default();
    let all = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .flat_map(|entry| held(&entry.file_name().to_string_lossy()));
    let left: BTreeSet<_> =
        all.filter(|namespace| were.contains(namespace) && !own.contains(namespace)).collect();
    // Its own namespace is the machine's, in which others are, too.
    assert!(left.len() <= 1, "{left:?}");
    assert_eq!(groups(pid).len(), usize::from(!at_once));
    let output = xcpnet(&["lab", "clean"], home.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let told = text(&output.stdout).contains("removed the control group ")
        && text(&output.stdout).contains(&pid.to_string());
    assert!(told != at_once, "{}", text(&output.stdout));
    assert_eq!(groups(pid), Vec::<PathBuf>::new());
}

#[test]
fn two_labs_do_not_meet() {
    let _one = one();
    let home = home(SCENARIO);
    let start = || {
        xcpnet(&["run", "s.toml", "--on", "linux", "--json"], home.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    };
    let both = [start().unwrap(), start().unwrap()];
    for output in both.map(|child| child.wait_with_output().unwrap()) {
        let Some(output) = able("two labs", output) else { return };
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let run: Value = serde_json::from_str(text(&output.stdout)).unwrap();
        assert!(run["links"]["l"]["packets"].as_u64().unwrap() > 0, "{run}");
    }
}
