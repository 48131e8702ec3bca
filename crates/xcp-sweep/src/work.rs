//! Does the runs of a sweep that are missing: one thread for each of `jobs`, each taking the next
//! run as soon as it is free; the calling thread keeps what comes of them ([`Sink`]). Nothing else
//! is shared, and no more results are in memory than threads.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use xcp_model::Scenario;
use xcp_model::run::{Observer, Summary};
use xcp_model::units::Nanos;

use crate::error::Error;
use crate::grid::{Grid, Place};
use crate::scenarios::Scenarios;

/// Where results go, in the thread that asked for them.
pub trait Sink {
    /// What is kept of a run.
    type Record: Send;

    /// Makes it, in the thread that did the run: what is serial should be short.
    ///
    /// # Errors
    /// What cannot be kept.
    fn record(run: u64, done: Done) -> Result<Self::Record, Error>;

    /// Keeps it.
    ///
    /// # Errors
    /// Those of where it is kept; they end the work.
    fn keep(&mut self, run: u64, record: Self::Record) -> Result<(), Error>;

    /// Hears of a run that cannot be done.
    ///
    /// # Errors
    /// What ends the work: by default the run's own.
    fn failed(&mut self, _run: u64, error: Error) -> Result<(), Error> {
        Err(error)
    }

    /// Called several times a second.
    ///
    /// # Errors
    /// What ends the work.
    fn tick(&mut self, tally: &Tally) -> Result<(), Error>;
}

/// Whether somebody asked to end.
pub type Asked<'a> = &'a (dyn Fn() -> bool + Sync);

/// What is kept of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Done {
    /// How far it came.
    pub completed: Nanos,
    /// Summary of the run.
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
    asked: Asked<'a>,
}

impl Observer for Watch<'_> {
    fn progress(&mut self, now: Nanos) -> ControlFlow<()> {
        self.tally.simulated.fetch_add(now.saturating_sub(self.before), Ordering::Relaxed);
        self.before = now;
        let share = now.saturating_mul(1000) / self.duration.max(1);
        self.tally.shares[self.thread].store(share.min(999), Ordering::Relaxed);
        if (self.asked)() || self.stop.load(Ordering::Relaxed) {
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
    /// The runs that are looked at.
    runs: Range<u64>,
    /// Which of them are done.
    done: Vec<bool>,
    asked: Asked<'a>,
    /// The next run to look at, counted from the first of them.
    next: Mutex<usize>,
    memory: Memory,
    tally: Tally,
    stop: AtomicBool,
}

impl Work<'_> {
    /// One thread's work: run after run until there is none left, or somebody wants it to end.
    fn thread<S: Sink>(&self, thread: usize, results: &SyncSender<Outcome<S::Record>>) {
        while !(self.asked)() && !self.stop.load(Ordering::Relaxed) {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(at) = (*next..self.done.len()).find(|&at| !self.done[at]) else { return };
            *next = at + 1;
            drop(next);
            let run = self.runs.start + at as u64;
            let place = self.grid.place(run);
            let result = self.scenarios.read(place).and_then(|ready| {
                self.memory
                    .with(ready.bytes, || self.simulate::<S>(run, place, &ready.scenario, thread))
            });
            let result = match result {
                Ok(Some(record)) => Ok(record),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            if results.send((run, result)).is_err() {
                return;
            }
        }
    }

    /// What is kept of a run; `None` if the run was ended early.
    fn simulate<S: Sink>(
        &self,
        run: u64,
        place: Place,
        scenario: &Scenario,
        thread: usize,
    ) -> Result<Option<S::Record>, Error> {
        let mut watch = Watch {
            tally: &self.tally,
            thread,
            duration: scenario.duration,
            before: 0,
            stop: &self.stop,
            asked: self.asked,
        };
        let blame = |e: &dyn std::fmt::Display| {
            Error::refused(self.scenarios.blame(place.combination, &format!("error: {e}")))
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
        S::record(run, done).map(Some)
    }
}

/// A run and what came of it.
type Outcome<R> = (u64, Result<R, Error>);

/// Does those of the runs that are not done. Returns with all of them done, or with less when
/// somebody asked to end.
///
/// # Errors
/// The first of the sink's; what was done until then it has.
pub fn work<S: Sink>(
    grid: &Grid,
    scenarios: &Scenarios<'_>,
    runs: Range<u64>,
    done: Vec<bool>,
    jobs: usize,
    asked: Asked<'_>,
    sink: &mut S,
) -> Result<(), Error> {
    let missing = done.iter().filter(|done| !**done).count();
    let jobs = jobs.clamp(1, missing.max(1));
    let shares = (0..jobs).map(|_| AtomicU64::new(0)).collect();
    let shared = Work {
        grid,
        scenarios,
        runs,
        done,
        asked,
        next: Mutex::new(0),
        memory: Memory {
            available: scenarios.available().map_or(u128::MAX, u128::from),
            taken: Mutex::new(0),
            freed: Condvar::new(),
        },
        tally: Tally { simulated: AtomicU64::new(0), shares },
        stop: AtomicBool::new(false),
    };
    let (sender, results) = sync_channel::<Outcome<S::Record>>(jobs);
    thread::scope(|scope| {
        for thread in 0..jobs {
            let (shared, sender) = (&shared, sender.clone());
            scope.spawn(move || shared.thread::<S>(thread, &sender));
        }
        drop(sender);
        let outcome = loop {
            if let Err(error) = sink.tick(&shared.tally) {
                break Err(error);
            }
            let kept = match results.recv_timeout(Duration::from_millis(200)) {
                Ok((run, Ok(record))) => sink.keep(run, record),
                Ok((run, Err(error))) => sink.failed(run, error),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            };
            if let Err(error) = kept {
                break Err(error);
            }
        };
        shared.stop.store(true, Ordering::Relaxed);
        if outcome.is_err() {
            // Others that were finished meanwhile need not be done again; an error of writing comes
            // out by itself.
            while let Ok((run, record)) = results.recv() {
                if let Ok(record) = record
                    && sink.keep(run, record).is_err()
                {
                    break;
                }
            }
        }
        drop(results);
        outcome
    })
}
