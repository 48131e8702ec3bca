//! Runs scenarios on several threads and hands the results over in order, whatever finishes first.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use xcp_model::Scenario;
use xcp_model::run::{Observer, Run};
use xcp_model::units::Nanos;

use crate::cli::Backend;
use crate::failure::Failure;
use crate::interrupt;
use crate::progress::Progress;

/// Tells the progress bar and listens for Ctrl-C.
struct Watch<'a> {
    progress: &'a Progress,
    index: usize,
    stop: &'a AtomicBool,
}

impl Observer for Watch<'_> {
    fn progress(&mut self, now: Nanos) -> ControlFlow<()> {
        self.progress.update(self.index, now);
        if interrupt::asked() || self.stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// How many runs at a time: what was asked for, or one per processor.
pub fn jobs(asked: Option<std::num::NonZeroUsize>) -> usize {
    asked.or_else(|| thread::available_parallelism().ok()).map_or(1, usize::from)
}

/// Runs everything, at most `jobs` at a time, simulations on at most `threads` processors each.
/// `ready` gets each run in the order of `scenarios`, as soon as it and all before it are done.
/// After Ctrl-C the runs under way end early (`summary.interrupted`) and no more are begun.
///
/// # Errors
/// The first error of a backend in the order of `scenarios`, or of `ready`; runs still under way
/// are ended.
pub fn run(
    backend: Backend,
    scenarios: &[&Scenario],
    jobs: usize,
    threads: usize,
    mut ready: impl FnMut(usize, Run, &Progress) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let progress = Progress::new(
        scenarios.iter().map(|s| (s.duration, s.duration as f64)).collect(),
        backend.done(),
    );
    let order: Vec<usize> = (0..scenarios.len()).collect();
    let mut early = BTreeMap::new();
    let mut expected = 0;
    let work = |index: usize, observer: &mut dyn Observer| {
        backend.run(scenarios[index], threads, observer)
    };
    unordered(&order, jobs, &progress, work, |index, result| {
        early.insert(index, result);
        while let Some(result) = early.remove(&expected) {
            ready(expected, result?, &progress)?;
            expected += 1;
        }
        Ok(())
    })
}

/// Does pieces of work, at most `jobs` at a time, begun in the order given; `ready` gets what came
/// of each as soon as it is done. After Ctrl-C no more are begun, and those under way are asked to
/// end.
///
/// # Errors
/// The first of `ready`; work under way is ended.
pub fn unordered<T: Send>(
    order: &[usize],
    jobs: usize,
    progress: &Progress,
    work: impl Fn(usize, &mut dyn Observer) -> T + Sync,
    mut ready: impl FnMut(usize, T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let (sender, results) = mpsc::channel();
    let outcome = thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, order.len().max(1)) {
            let sender = sender.clone();
            let (next, stop, work) = (&next, &stop, &work);
            scope.spawn(move || {
                while !interrupt::asked() && !stop.load(Ordering::Relaxed) {
                    let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        return;
                    };
                    let result = work(index, &mut Watch { progress, index, stop });
                    progress.finish(index);
                    // Nobody listens any more after an error.
                    if sender.send((index, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (index, result) in &results {
            if let Err(failure) = ready(index, result) {
                stop.store(true, Ordering::Relaxed);
                return Err(failure);
            }
        }
        Ok(())
    });
    progress.clear();
    outcome
}
