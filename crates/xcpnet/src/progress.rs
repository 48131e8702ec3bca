//! A bar on stderr while scenarios run: their time, share, estimate. On a terminal only; in a pipe nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use xcp_report::human;
use xcp_scenario::model::Scenario;
use xcp_scenario::units::Nanos;

/// Progress of a batch of runs.
pub struct Progress {
    bar: ProgressBar,
    /// What is done with the time, in a word.
    done: &'static str,
    runs: Vec<(Nanos, AtomicU64)>,
}

impl Progress {
    /// For these scenarios, nothing done yet.
    pub fn new(scenarios: &[&Scenario], done: &'static str) -> Self {
        let total: Nanos = scenarios.iter().map(|s| s.duration).fold(0, Nanos::saturating_add);
        // Draws to stderr, and not at all if that is no terminal.
        let bar = ProgressBar::new(total / 1_000_000);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  about {eta} left") {
            bar.set_style(style);
        }
        Self { bar, done, runs: scenarios.iter().map(|s| (s.duration, AtomicU64::new(0))).collect() }
    }

    /// A run has come to `now`.
    pub fn update(&self, run: usize, now: Nanos) {
        self.runs[run].1.store(now.min(self.runs[run].0), Ordering::Relaxed);
        if self.bar.is_hidden() {
            return;
        }
        let word = self.done;
        let at = |(_, done): &(Nanos, AtomicU64)| done.load(Ordering::Relaxed);
        let done: Nanos = self.runs.iter().map(at).fold(0, Nanos::saturating_add);
        let all: Nanos = self.runs.iter().map(|r| r.0).fold(0, Nanos::saturating_add);
        let finished = self.runs.iter().filter(|r| at(r) == r.0).count();
        let of_runs = if self.runs.len() > 1 { format!(", {finished} of {} runs done", self.runs.len()) } else { String::new() };
        self.bar.set_position(done / 1_000_000);
        self.bar.set_message(format!("{:.1} s of {} {word}{of_runs}", done as f64 / 1e9, human::nanos(all)));
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints without disturbing the bar.
    pub fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}
