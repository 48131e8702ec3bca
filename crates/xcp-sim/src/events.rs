//! The event queue: for each source of events the time of its next one, and which source comes first.
//!
//! Every link and every endpoint has at most one event pending: a link's packets arrive in order, and of an endpoint's timers only the earliest
//! matters. So the queue is a tournament tree with one leaf a source. Setting a source's time replays the matches on the way to the root,
//! log2(sources) comparisons without an unpredictable branch; a source that takes its own event and sets the next pays once, where a heap
//! pays for a removal and an insertion; and a timer that moves leaves nothing stale behind. Links have a tree of their own, because most
//! events are theirs and they are usually few.
//!
//! Events at the same time happen in the order of their sources' numbers, whatever else goes on in the run.

use xcp_scenario::units::Nanos;

/// A source of events: the simulator's own numbering.
pub type Source = u32;

/// The time of a source that has no event pending.
pub const NEVER: Nanos = Nanos::MAX;

/// Pending events.
#[derive(Debug)]
pub struct Events {
    busy: Tournament,
    others: Tournament,
    first_other: Source,
}

impl Events {
    /// A queue without events, for the sources `0..busy`, which have most of the events, and `others` more after them.
    #[must_use]
    pub fn new(busy: Source, others: Source) -> Self {
        Self { busy: Tournament::new(0, busy), others: Tournament::new(busy, others), first_other: busy }
    }

    /// The earliest event, which stays until its source sets another.
    #[must_use]
    pub fn first(&self) -> (Nanos, Source) {
        let first = self.busy.first().min(self.others.first());
        ((first >> 64) as Nanos, first as Source)
    }

    /// When a source's event happens.
    #[must_use]
    pub fn time(&self, source: Source) -> Nanos {
        let key = if source < self.first_other { self.busy.get(source) } else { self.others.get(source - self.first_other) };
        (key >> 64) as Nanos
    }

    /// Sets when a source's next event happens, in place of what was set before; `NEVER` for not at all.
    pub fn set(&mut self, source: Source, time: Nanos) {
        if source < self.first_other {
            self.busy.set(source, key(time, source));
        } else {
            self.others.set(source - self.first_other, key(time, source));
        }
    }
}

/// Node 1 is the root, node i has the children 2i and 2i + 1, the leaves are the upper half; a node holds the least key below it.
#[derive(Debug)]
struct Tournament {
    tree: Box<[u128]>,
}

impl Tournament {
    fn new(first: Source, count: Source) -> Self {
        let leaves = (count as usize).next_power_of_two().max(2);
        let mut tree = vec![u128::MAX; 2 * leaves].into_boxed_slice();
        for (leaf, source) in tree[leaves..].iter_mut().zip(first..first + count) {
            *leaf = key(NEVER, source);
        }
        for node in (1..leaves).rev() {
            tree[node] = tree[2 * node].min(tree[2 * node + 1]);
        }
        Self { tree }
    }

    fn first(&self) -> u128 {
        self.tree[1]
    }

    fn get(&self, leaf: u32) -> u128 {
        self.tree[self.tree.len() / 2 + leaf as usize]
    }

    fn set(&mut self, leaf: u32, key: u128) {
        let tree = &mut self.tree[..];
        let mut node = tree.len() / 2 + leaf as usize;
        tree[node] = key;
        while node > 1 {
            // Who wins cannot be predicted: the winner is found by its index, not by a branch (which compilers also make of a minimum here).
            let winner = node ^ usize::from(tree[node ^ 1] < tree[node]);
            node /= 2;
            tree[node] = tree[winner];
        }
    }
}

fn key(time: Nanos, source: Source) -> u128 {
    (u128::from(time) << 64) | u128::from(source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain list: the least (time, source) comes first after any settings.
        #[test]
        fn the_earliest_comes_first(busy in 1u32..20, others in 1u32..20, settings in prop::collection::vec((any::<u32>(), prop::option::of(0u64..50)), 0..300)) {
            let sources = busy + others;
            let mut events = Events::new(busy, others);
            let mut model = vec![NEVER; sources as usize];
            for (source, time) in settings {
                let (source, time) = (source % sources, time.unwrap_or(NEVER));
                events.set(source, time);
                model[source as usize] = time;
                let expected = model.iter().zip(0u32..).map(|(&t, s)| (t, s)).min().unwrap();
                prop_assert_eq!(events.first(), expected);
                prop_assert_eq!(events.time(source), time);
            }
        }
    }
}
