//! A bar on stderr while a sweep runs: runs done, how fast time is simulated, an estimate. On a
//! terminal only; in a pipe nothing.

use std::sync::atomic::Ordering;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use xcp_sweep::work::Tally;

/// The bar, in thousandths of runs so that it moves where runs are long.
pub struct Bar {
    bar: ProgressBar,
    runs: u64,
    begun: Instant,
}

impl Bar {
    /// For so many runs, of which some are done from before.
    pub fn new(runs: u64, done: u64) -> Self {
        // Draws to stderr, and not at all if that is no terminal.
        let bar = ProgressBar::new(runs * 1000).with_position(done * 1000);
        // The estimate is made from what is done from now on.
        bar.reset_eta();
        if let Ok(style) =
            ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}  about {eta} left")
        {
            bar.set_style(style);
        }
        Self { bar, runs, begun: Instant::now() }
    }

    /// Draws it anew.
    pub fn show(&self, done: u64, tally: &Tally) {
        if self.bar.is_hidden() {
            return;
        }
        let under_way: u64 = tally.shares.iter().map(|share| share.load(Ordering::Relaxed)).sum();
        let simulated = tally.simulated.load(Ordering::Relaxed) as f64 / 1e9;
        let speed = simulated / self.begun.elapsed().as_secs_f64().max(1e-3);
        self.bar.set_position((done * 1000 + under_way).min(self.runs * 1000));
        self.bar.set_message(format!(
            "{done} of {} runs done, {speed:.0} s simulated per second",
            self.runs
        ));
    }

    /// Takes it away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
