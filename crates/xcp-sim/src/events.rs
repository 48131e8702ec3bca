//! The event queue: a monotone priority queue of (time, target), first in, first out among equal times.
//!
//! A 4-ary heap of 16-byte keys. It stays small, because only the first packet of each link and one timer of each endpoint wait in it: a
//! dumbbell with 10,000 packets in flight has about ten entries. Four children share a cache line, which halves the levels of a binary heap.

use xcp_scenario::units::Nanos;

/// What an event is for: the simulator's own numbering, below 2^24.
pub type Target = u32;

const TARGET_BITS: u32 = 24;
const ARITY: usize = 4;

/// Most targets a queue can tell apart.
pub const MAX_TARGETS: usize = 1 << TARGET_BITS;

/// Pending events.
#[derive(Debug, Default)]
pub struct Events {
    /// time in the upper half, order of insertion (40 bits) and target (24 bits) in the lower.
    heap: Vec<u128>,
    inserted: u64,
}

impl Events {
    /// Adds an event.
    ///
    /// # Panics
    /// After 2^40 insertions, when first-in-first-out among equal times could no longer be kept.
    pub fn push(&mut self, time: Nanos, target: Target) {
        debug_assert!((target as usize) < MAX_TARGETS);
        assert!(self.inserted < 1 << (64 - TARGET_BITS), "more than 10^12 events in one run");
        let key = (u128::from(time) << 64) | u128::from((self.inserted << TARGET_BITS) | u64::from(target));
        self.inserted += 1;
        self.heap.push(key);
        self.sift_up(self.heap.len() - 1);
    }

    /// Time of the earliest event; `Nanos::MAX` when there is none.
    #[must_use]
    pub fn next_time(&self) -> Nanos {
        self.heap.first().map_or(Nanos::MAX, |&key| (key >> 64) as Nanos)
    }

    /// Takes the earliest event.
    pub fn pop(&mut self) -> Option<(Nanos, Target)> {
        let last = self.heap.pop()?;
        let Some(top) = self.heap.first_mut() else { return Some(split(last)) };
        let first = std::mem::replace(top, last);
        self.sift_down();
        Some(split(first))
    }

    /// How many events were ever inserted.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    fn sift_up(&mut self, mut at: usize) {
        let key = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = key;
    }

    fn sift_down(&mut self) {
        let heap = &mut self.heap[..];
        let key = heap[0];
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            let Some(children) = heap.get(first..heap.len().min(first + ARITY)) else { break };
            let Some((offset, &least)) = children.iter().enumerate().min_by_key(|&(_, &k)| k) else { break };
            if key <= least {
                break;
            }
            heap[at] = least;
            at = first + offset;
        }
        heap[at] = key;
    }
}

fn split(key: u128) -> (Nanos, Target) {
    ((key >> 64) as Nanos, (key as u32) & ((1 << TARGET_BITS) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Any mixture of insertions and removals comes out as from a stable sort by time.
        #[test]
        fn behaves_as_a_stable_sorted_list(operations in prop::collection::vec(prop::option::of((0u64..50, 0u32..9)), 0..400)) {
            let mut queue = Events::default();
            let mut model: Vec<(Nanos, u64, Target)> = Vec::new();
            for (serial, operation) in (0u64..).zip(operations) {
                if let Some((time, target)) = operation {
                    queue.push(time, target);
                    model.push((time, serial, target));
                } else {
                    model.sort_unstable();
                    let expected = (!model.is_empty()).then(|| model.remove(0));
                    prop_assert_eq!(queue.pop(), expected.map(|(time, _, target)| (time, target)));
                }
                prop_assert_eq!(queue.next_time(), model.iter().map(|e| e.0).min().unwrap_or(Nanos::MAX));
            }
        }
    }
}
