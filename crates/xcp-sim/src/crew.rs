//! Threads that work in step: all start at a word, and whoever gave it waits until all are done. Steps are short, a few hundred microseconds, so
//! waiting begins with looking again and again, and goes on with giving up the processor.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use xcp_scenario::units::Nanos;

/// The threads' agreement.
#[derive(Debug)]
pub struct Crew {
    /// Threads beside the one that gives the word.
    workers: usize,
    step: AtomicU64,
    until: AtomicU64,
    working: AtomicUsize,
    dismissed: AtomicBool,
}

/// Looks before giving up the processor.
const LOOKS: u32 = 20_000;

fn wait_until(mut done: impl FnMut() -> bool) {
    let mut looks = 0;
    while !done() {
        if looks < LOOKS {
            looks += 1;
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// Dismisses the crew when dropped, and so also when the thread that gives the word fails.
pub struct Dismissal<'a>(&'a Crew);

impl Drop for Dismissal<'_> {
    fn drop(&mut self) {
        self.0.dismiss();
    }
}

/// Counts a worker's step as done when dropped, and so also when it fails.
struct Working<'a>(&'a Crew);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.dismiss();
        }
        self.0.working.fetch_sub(1, Ordering::Release);
    }
}

impl Crew {
    /// A crew of so many threads, the one that gives the word included.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self {
            workers: threads - 1,
            step: AtomicU64::new(0),
            until: AtomicU64::new(0),
            working: AtomicUsize::new(0),
            dismissed: AtomicBool::new(false),
        }
    }

    /// Sends the others home when what it returns is dropped.
    #[must_use]
    pub fn dismissal(&self) -> Dismissal<'_> {
        Dismissal(self)
    }

    /// Sends the others home.
    pub fn dismiss(&self) {
        self.dismissed.store(true, Ordering::Release);
    }

    /// Whether they have been sent home, or one of them has failed.
    #[must_use]
    pub fn is_dismissed(&self) -> bool {
        self.dismissed.load(Ordering::Acquire)
    }

    /// Gives the word for a step that goes until then.
    pub fn start(&self, until: Nanos) {
        self.until.store(until, Ordering::Relaxed);
        self.working.store(self.workers, Ordering::Relaxed);
        self.step.fetch_add(1, Ordering::Release);
    }

    /// Waits until all others are done.
    ///
    /// # Panics
    /// If one of them has failed; its own message came before.
    pub fn wait(&self) {
        wait_until(|| self.working.load(Ordering::Acquire) == 0);
        assert!(!self.is_dismissed(), "a region's thread has failed");
    }

    /// What one of the others does: a step at every word, until they are sent home.
    pub fn serve(&self, mut step: impl FnMut(Nanos)) {
        let mut seen = 0;
        loop {
            wait_until(|| self.step.load(Ordering::Acquire) != seen || self.is_dismissed());
            if self.is_dismissed() {
                return;
            }
            seen = self.step.load(Ordering::Acquire);
            let _working = Working(self);
            step(self.until.load(Ordering::Relaxed));
        }
    }
}
