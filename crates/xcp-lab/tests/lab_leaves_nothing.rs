//! A lab leaves nothing behind, however it ends. Alone in its process, where that can be counted.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use xcp_lab::LabError;
use xcp_model::Scenario;
use xcp_model::run::Observer;
use xcp_model::units::Nanos;
use xcp_scenario::{Overrides, load};

const MS: Nanos = 1_000_000;

const TEXT: &str = "duration = \"10s\"\n[[link]]\nname = \"l\"\nbetween = [\"S\", \"D\"]\nrate \
    = \"10mbit\"\ndelay = \"10ms\"\nqueue = \"xcp\"\n\
    [[flow]]\nfrom = \"S\"\nto = \"D\"\ncongestion = \"xcp\"\n[[flow]]\nname = \"u\"\nfrom \
    = \"S\"\nto = \"D\"\nudp = { rate = \"1mbit\" }\n";

fn scenario() -> Scenario {
    load(Path::new("x.toml"), TEXT, &Overrides::none()).unwrap_or_else(|e| panic!("{e}")).remove(0)
}

/// Network namespaces that this process has threads in or descriptors of, its descriptors of all
/// kinds, and the control group it is in.
fn own() -> (BTreeSet<PathBuf>, usize, String) {
    let tasks =
        fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path().join("ns/net"));
    let descriptors: Vec<PathBuf> =
        fs::read_dir("/proc/self/fd").unwrap().flatten().map(|fd| fd.path()).collect();
    let count = descriptors.len();
    let links = tasks.chain(descriptors).filter_map(|path| fs::read_link(path).ok());
    let namespaces = links.filter(|link| link.to_string_lossy().starts_with("net:")).collect();
    (namespaces, count, fs::read_to_string("/proc/self/cgroup").unwrap())
}

/// Ends a run at a time.
struct Until(Nanos);

impl Observer for Until {
    fn progress(&mut self, now: Nanos) -> ControlFlow<()> {
        if now >= self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
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
    let before = own();
    let mut short = scenario();
    short.duration = 300 * MS;
    short.measure.to = short.duration;
    let run = match xcp_lab::check().and_then(|()| xcp_lab::run(&short, &mut ())) {
        Err(LabError::Missing(why)) => {
            return xcp_skip::skipped!("root", "what a lab leaves: {why}");
        }
        run => run.unwrap(),
    };
    assert!(!run.summary.interrupted);
    assert_eq!(own(), before, "after the end");

    let run = xcp_lab::run(&scenario(), &mut Until(300 * MS)).unwrap();
    assert!(
        run.summary.interrupted && run.completed >= 300 * MS && run.completed < 10_000 * MS,
        "{}",
        run.completed
    );
    assert!(run.summary.links["l"].packets > 0);
    assert_eq!(own(), before, "after an interruption");

    let panicked =
        catch_unwind(AssertUnwindSafe(|| xcp_lab::run(&scenario(), &mut Stumble(300 * MS))));
    assert!(panicked.is_err());
    assert_eq!(own(), before, "after a panic");
}
