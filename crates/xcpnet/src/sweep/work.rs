//! Does the runs of a sweep that are missing: one thread for each of `jobs`, each taking the next
//! run as soon as it is free; the calling thread writes the journal. Nothing else is shared, and no
//! more results are in memory than threads.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use xcp_scenario::model::Scenario;
use xcp_scenario::run::{Observer, Summary};
use xcp_scenario::units::Nanos;

use crate::failure::Failure;
use crate::interrupt;
use crate::sweep::bar::Bar;
use crate::sweep::grid::{Grid, Place};
use crate::sweep::journal::{Journal, record};
use crate::sweep::scenarios::Scenarios;

/// What is kept of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Done {
    /// How far it came.
    pub completed: Nanos,
    /// Its numbers.
    pub summary: Summary,
}

/// How far the threads are, for the progress bar.
pub struct Tally {
    /// Simulated so far, ns.
    pub simulated: AtomicU64,
    /// For each thread the share of its run that is done, in thousandths.
    pub shares: Vec<AtomicU64>,
}

/// Memory for runs: those that do not fit wait for others to finish. One alone always gets it; that
/// it fits was checked.
struct Memory {
    available: u128,
    taken: Mutex<u128>,
    freed: Condvar,
}

impl Memory {
    fn with<T>(&self, bytes: u128, run: impl FnOnce() -> T) -> T {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken > 0 && *taken + bytes > self.available {
            taken = self.freed.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += bytes;
        drop(taken);
        let result = run();
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) -= bytes;
        self.freed.notify_all();
        result
    }
}

/// Ends a run that nobody wants any more; counts what was simulated.
struct Watch<'a> {
    tally: &'a Tally,
    thread: usize,
    duration: Nanos,
    before: Nanos,
    stop: &'a AtomicBool,
}

impl Observer for Watch<'_> {
    fn progress(&mut self, now: Nanos) -> ControlFlow<()> {
        self.tally.simulated.fetch_add(now.saturating_sub(self.before), Ordering::Relaxed);
        self.before = now;
        let share = now.saturating_mul(1000) / self.duration.max(1);
        self.tally.shares[self.thread].store(share.min(999), Ordering::Relaxed);
        if interrupt::asked() || self.stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// What the threads share.
struct Work<'a> {
    grid: &'a Grid,
    scenarios: &'a Scenarios<'a>,
    done: Vec<bool>,
    /// The next run to look at.
    next: Mutex<usize>,
    memory: Memory,
    tally: Tally,
    stop: AtomicBool,
}

impl Work<'_> {
    /// One thread's work: run after run until there is none left, or somebody wants it to end.
    fn thread(&self, thread: usize, results: &SyncSender<(u64, Result<String, Failure>)>) {
        while !interrupt::asked() && !self.stop.load(Ordering::Relaxed) {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(run) = (*next..self.done.len()).find(|&run| !self.done[run]) else { return };
            *next = run + 1;
            drop(next);
            let place = self.grid.place(run as u64);
            let result = self.scenarios.read(place).and_then(|ready| {
                self.memory
                    .with(ready.bytes, || self.simulate(run as u64, place, &ready.scenario, thread))
            });
            let result = match result {
                Ok(Some(record)) => Ok(record),
                Ok(None) => return,
                Err(failure) => Err(failure),
            };
            if results.send((run as u64, result)).is_err() {
                return;
            }
        }
    }

    /// A run's line for the journal; `None` if the run was ended early.
    fn simulate(
        &self,
        run: u64,
        place: Place,
        scenario: &Scenario,
        thread: usize,
    ) -> Result<Option<String>, Failure> {
        let mut watch = Watch {
            tally: &self.tally,
            thread,
            duration: scenario.duration,
            before: 0,
            stop: &self.stop,
        };
        let blame = |e: &dyn std::fmt::Display| {
            Failure::new(self.scenarios.blame(place.combination, &format!("error: {e}")))
        };
        let result = xcp_sim::simulate(scenario, &mut watch).map_err(|e| blame(&e))?;
        self.tally.shares[thread].store(0, Ordering::Relaxed);
        self.tally
            .simulated
            .fetch_add(result.completed.saturating_sub(watch.before), Ordering::Relaxed);
        if result.summary.interrupted {
            return Ok(None);
        }
        // Curves are dropped here, before memory is given back.
        let done = Done { completed: result.completed, summary: result.summary };
        record(run, &done).map(Some).map_err(|e| blame(&e))
    }
}

/// Does what is missing. Returns with all runs done, or after Ctrl-C with less.
///
/// # Errors
/// The first run that cannot be done; what was done until then is in the journal.
pub fn work(
    grid: &Grid,
    scenarios: &Scenarios<'_>,
    journal: &mut Journal,
    jobs: usize,
) -> Result<(), Failure> {
    let missing = grid.runs() - journal.done();
    let jobs = jobs.clamp(1, usize::try_from(missing).unwrap_or(usize::MAX).max(1));
    let shares = (0..jobs).map(|_| AtomicU64::new(0)).collect();
    let shared = Work {
        grid,
        scenarios,
        done: journal.each_done(),
        next: Mutex::new(0),
        memory: Memory {
            available: scenarios.available().map_or(u128::MAX, u128::from),
            taken: Mutex::new(0),
            freed: Condvar::new(),
        },
        tally: Tally { simulated: AtomicU64::new(0), shares },
        stop: AtomicBool::new(false),
    };
    let bar = Bar::new(grid.runs(), journal.done());
    let (sender, results) = sync_channel(jobs);
    let outcome = thread::scope(|scope| {
        for thread in 0..jobs {
            let (shared, sender) = (&shared, sender.clone());
            scope.spawn(move || shared.thread(thread, &sender));
        }
        drop(sender);
        let outcome = loop {
            bar.show(journal.done(), &shared.tally);
            match results.recv_timeout(Duration::from_millis(200)) {
                Ok((run, record)) => {
                    if let Err(failure) = record.and_then(|record| journal.append(run, &record)) {
                        break Err(failure);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            }
        };
        shared.stop.store(true, Ordering::Relaxed);
        if outcome.is_err() {
            // Others that were finished meanwhile need not be done again; an error of writing comes
            // out by itself.
            while let Ok((run, record)) = results.recv() {
                if let Ok(record) = record
                    && journal.append(run, &record).is_err()
                {
                    break;
                }
            }
        }
        drop(results);
        outcome
    });
    bar.clear();
    journal.sync()?;
    outcome
}
