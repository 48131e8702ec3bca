//! Threads that work in step: all start at a word, and whoever gave it waits until all are done.
//!
//! Steps are short, some hundred microseconds, and to be woken from sleep takes as long, on a
//! virtual machine at least. So whoever waits looks for what it waits for much longer than a step
//! takes, and only then sleeps. Where there are fewer free processors than threads that would take
//! them from those who work: who had to sleep looks for a shorter time next time, and for a longer
//! one again as soon as that was enough.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::thread::{self, Thread};

use xcp_model::units::Nanos;

/// The threads' agreement.
#[derive(Debug)]
pub struct Crew {
    /// The thread that gives the word.
    leader: Thread,
    /// The others.
    workers: Vec<OnceLock<Thread>>,
    step: AtomicU64,
    until: AtomicU64,
    working: AtomicUsize,
    dismissed: AtomicBool,
}

/// How often a thread looks before it sleeps.
#[derive(Debug)]
struct Patience(u32);

impl Patience {
    /// Some ten microseconds, half a millisecond.
    const LEAST: u32 = 500;
    const MOST: u32 = 50_000;

    fn wait_until(&mut self, mut done: impl FnMut() -> bool) {
        for _ in 0..self.0 {
            if done() {
                self.0 = (2 * self.0).min(Self::MOST);
                return;
            }
            std::hint::spin_loop();
        }
        self.0 = (self.0 / 4).max(Self::LEAST);
        while !done() {
            thread::park();
        }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self(Self::MOST)
    }
}

/// The one that gives the word. The others are sent home when it is dropped, and so also when its
/// thread fails.
#[derive(Debug)]
pub struct Leader<'a> {
    crew: &'a Crew,
    patience: Patience,
}

impl Leader<'_> {
    /// Has everybody work until then: the others what they are serving with, this thread `own`.
    /// Returns when all are done.
    ///
    /// # Panics
    /// If one of the others has failed; its own message came before.
    pub fn step(&mut self, until: Nanos, own: impl FnOnce()) {
        let crew = self.crew;
        crew.until.store(until, Ordering::Relaxed);
        crew.working.store(crew.workers.len(), Ordering::Relaxed);
        crew.step.fetch_add(1, Ordering::SeqCst);
        crew.wake();
        own();
        // Who has been sent home before it saw the step does not count it as done.
        self.patience
            .wait_until(|| crew.working.load(Ordering::Acquire) == 0 || crew.is_dismissed());
        assert!(!crew.is_dismissed(), "a region's thread has failed");
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        self.crew.dismiss();
    }
}

/// Counts a worker's step as done when dropped, and so also when it fails.
struct Working<'a>(&'a Crew);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.dismiss();
            self.0.leader.unpark();
        }
        if self.0.working.fetch_sub(1, Ordering::Release) == 1 {
            self.0.leader.unpark();
        }
    }
}

impl Crew {
    /// A crew of so many threads, the one that calls, and that will give the word, included.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self {
            leader: thread::current(),
            workers: (1..threads).map(|_| OnceLock::new()).collect(),
            step: AtomicU64::new(0),
            until: AtomicU64::new(0),
            working: AtomicUsize::new(0),
            dismissed: AtomicBool::new(false),
        }
    }

    /// Leads it, from the thread that made it.
    #[must_use]
    pub fn leader(&self) -> Leader<'_> {
        Leader { crew: self, patience: Patience::default() }
    }

    fn dismiss(&self) {
        self.dismissed.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        // Between the step and the look at who is there; see `serve`.
        fence(Ordering::SeqCst);
        self.workers.iter().filter_map(OnceLock::get).for_each(Thread::unpark);
    }

    fn is_dismissed(&self) -> bool {
        self.dismissed.load(Ordering::SeqCst)
    }

    /// What one of the others does, by its number from 0: a step at every word, until they are sent
    /// home.
    pub fn serve(&self, number: usize, mut step: impl FnMut(Nanos)) {
        // Known before it looks for a word: whoever gives one later wakes it.
        self.workers[number].get_or_init(thread::current);
        fence(Ordering::SeqCst);
        let (mut seen, mut patience) = (0, Patience::default());
        loop {
            patience.wait_until(|| self.step.load(Ordering::SeqCst) != seen || self.is_dismissed());
            if self.is_dismissed() {
                return;
            }
            seen = self.step.load(Ordering::SeqCst);
            let _working = Working(self);
            step(self.until.load(Ordering::Relaxed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn every_step_is_done_by_all_before_the_next() {
        for threads in 1..4 {
            let crew = Crew::new(threads);
            let done = Mutex::new(Vec::new());
            thread::scope(|scope| {
                let mut leader = crew.leader();
                for number in 1..threads {
                    let (crew, done) = (&crew, &done);
                    scope.spawn(move || {
                        crew.serve(number - 1, |until| done.lock().unwrap().push((until, number)))
                    });
                }
                for until in 0..200 {
                    leader.step(until, || done.lock().unwrap().push((until, 0)));
                }
            });
            let mut done = done.into_inner().unwrap();
            assert!(done.is_sorted_by_key(|&(until, _)| until));
            done.sort_unstable();
            let expected: Vec<_> = (0..200)
                .flat_map(|until| (0..threads).map(move |number| (until, number)))
                .collect();
            assert_eq!(done, expected);
        }
    }

    #[test]
    #[should_panic(expected = "a region's thread has failed")]
    fn a_failure_does_not_leave_the_others_waiting() {
        let crew = Crew::new(2);
        let leading = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            thread::scope(|scope| {
                let mut leader = crew.leader();
                let worker =
                    scope.spawn(|| crew.serve(0, |until| assert!(until < 3, "as it should")));
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    (0..10).for_each(|until| leader.step(until, || ()))
                }));
                assert!(worker.join().is_err());
                if let Err(message) = result {
                    std::panic::resume_unwind(message);
                }
            });
        }));
        if let Err(message) = leading {
            std::panic::resume_unwind(message);
        }
    }

    /// One that fails before another has looked: the other goes home without having seen the step.
    #[test]
    fn a_failure_before_another_has_looked_is_told() {
        let crew = Crew::new(3);
        let told = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            thread::scope(|scope| {
                let mut leader = crew.leader();
                let failing = scope.spawn(|| crew.serve(0, |_| panic!("as it should")));
                scope.spawn(|| {
                    thread::sleep(std::time::Duration::from_millis(100));
                    crew.serve(1, |_| ());
                });
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    leader.step(1, || ())
                }));
                assert!(failing.join().is_err());
                assert!(result.is_err(), "the leader must not go on");
            });
        }));
        assert!(told.is_ok());
    }
}
