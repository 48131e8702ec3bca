//! Times at which connections want to be called. One that does not want to any more is called in
//! vain, which costs less than to search for it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// The timers of one worker.
#[derive(Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Instant, u64)>>,
}

impl Timers {
    /// Call this connection then.
    pub fn set(&mut self, at: Instant, token: u64) {
        self.heap.push(Reverse((at, token)));
    }

    /// When the next one is due.
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// One that is due.
    pub fn due(&mut self, now: Instant) -> Option<u64> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, token))| token)
    }
}
