//! A lab leaves nothing behind, however it ends.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use xcp_lab::Options;
use xcp_scenario::run::Observer;
use xcp_scenario::units::Nanos;

use crate::{MS, Until, lab_with, scenario};

const TEXT: &str = "duration = \"10s\"\n[[link]]\nname = \"l\"\nbetween = [\"S\", \"D\"]\nrate = \"10mbit\"\ndelay = \"10ms\"\n\
    [[flow]]\nfrom = \"S\"\nto = \"D\"\ncongestion = \"cubic\"\n[[flow]]\nname = \"u\"\nfrom = \"S\"\nto = \"D\"\nudp = { rate = \"1mbit\" }\n";

/// Tests that look at what the whole process has must not meet other runs.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Network namespaces that this process has threads in or descriptors of, its descriptors of all kinds, and the control group it is in.
fn own() -> (BTreeSet<PathBuf>, usize, String) {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path().join("ns/net"));
    let descriptors: Vec<PathBuf> = fs::read_dir("/proc/self/fd").unwrap().flatten().map(|fd| fd.path()).collect();
    let count = descriptors.len();
    let links = tasks.chain(descriptors).filter_map(|path| fs::read_link(path).ok());
    let namespaces = links.filter(|link| link.to_string_lossy().starts_with("net:")).collect();
    (namespaces, count, fs::read_to_string("/proc/self/cgroup").unwrap())
}

/// Panics at a time.
struct Stumble(Nanos);

impl Observer for Stumble {
    fn progress(&mut self, now: Nanos) -> ControlFlow<()> {
        assert!(now < self.0, "stumbled");
        ControlFlow::Continue(())
    }
}

#[test]
fn nothing_is_left_after_the_end_an_interruption_and_a_panic() {
    let _alone = alone();
    let before = own();
    let mut short = scenario(TEXT);
    short.duration = 300 * MS;
    short.measure.to = short.duration;
    let Some(run) = lab_with("leaving", &short, Options::default(), &mut ()) else { return };
    assert!(!run.summary.interrupted);
    assert_eq!(own(), before, "after the end");

    let run = lab_with("leaving", &scenario(TEXT), Options::default(), &mut Until(300 * MS)).unwrap();
    assert!(run.summary.interrupted && run.completed >= 300 * MS && run.completed < 10_000 * MS, "{}", run.completed);
    assert!(run.summary.links["l"].packets > 0);
    assert_eq!(own(), before, "after an interruption");

    let panicked = catch_unwind(AssertUnwindSafe(|| xcp_lab::run(&scenario(TEXT), &mut Stumble(300 * MS))));
    assert!(panicked.is_err());
    assert_eq!(own(), before, "after a panic");
}
