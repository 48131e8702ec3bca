//! A bar on stderr while scenarios run: their time, share, estimate. On a terminal only; in a pipe
//! nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use xcp_model::units::Nanos;
use xcp_report::human;

/// Steps of the bar.
const STEPS: u64 = 10_000;

/// Progress of a batch of runs.
pub struct Progress {
    bar: ProgressBar,
    /// What is done with the time, in a word.
    done: &'static str,
    runs: Vec<Part>,
}

/// One run.
struct Part {
    duration: Nanos,
    /// Its share of the work, in any unit.
    weight: f64,
    now: AtomicU64,
}

impl Progress {
    /// For runs of these durations and shares of the work, nothing done yet.
    pub fn new(runs: Vec<(Nanos, f64)>, done: &'static str) -> Self {
        // Draws to stderr, and not at all if that is no terminal.
        let bar = ProgressBar::new(STEPS);
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  about {eta} left")
        {
            bar.set_style(style);
        }
        Self {
            bar,
            done,
            runs: runs
                .into_iter()
                .map(|(duration, weight)| Part { duration, weight, now: AtomicU64::new(0) })
                .collect(),
        }
    }

    /// Whether there is no terminal to draw to.
    pub fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// A run is over.
    pub fn finish(&self, run: usize) {
        self.update(run, self.runs[run].duration);
    }

    /// A run has come to `now`.
    pub fn update(&self, run: usize, now: Nanos) {
        self.runs[run].now.store(now.min(self.runs[run].duration), Ordering::Relaxed);
        if self.bar.is_hidden() {
            return;
        }
        let word = self.done;
        let (mut simulated, mut asked, mut worked, mut work, mut finished) = (0, 0, 0.0, 0.0, 0);
        for part in &self.runs {
            let now = part.now.load(Ordering::Relaxed);
            simulated = now.saturating_add(simulated);
            asked = part.duration.saturating_add(asked);
            worked += part.weight * now as f64 / part.duration.max(1) as f64;
            work += part.weight;
            finished += usize::from(now == part.duration);
        }
        let of_runs = if self.runs.len() > 1 {
            format!(", {finished} of {} runs done", self.runs.len())
        } else {
            String::new()
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of the steps"
        )]
        self.bar.set_position((worked / work.max(f64::MIN_POSITIVE) * STEPS as f64) as u64);
        self.bar.set_message(format!(
            "{:.1} s of {} {word}{of_runs}",
            simulated as f64 / 1e9,
            human::nanos(asked)
        ));
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
