//! The event queue: for each source of events the time of its next one, and which source comes first.
//!
//! Every link and every endpoint has at most one event pending: a link's packets arrive in order, and of an endpoint's timers only the earliest
//! matters. So the queue is a tournament tree with one leaf a source. Setting a source's time replays the matches on the way to the root,
//! log2(sources) comparisons without an unpredictable branch; a source that takes its own event and sets the next pays once, where a heap
//! pays for a removal and an insertion; and a timer that moves leaves nothing stale behind.
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
    /// Node 1 is the root, node i has the children 2i and 2i + 1, the leaves are the upper half; a node holds the least key below it.
    tree: Vec<u128>,
}

impl Events {
    /// A queue for the sources `0..sources`, none of which has an event.
    #[must_use]
    pub fn new(sources: usize) -> Self {
        let leaves = sources.next_power_of_two().max(2);
        let mut tree = vec![u128::MAX; 2 * leaves];
        for source in 0..sources {
            tree[leaves + source] = key(NEVER, source as Source);
        }
        for node in (1..leaves).rev() {
            tree[node] = tree[2 * node].min(tree[2 * node + 1]);
        }
        Self { tree }
    }

    /// The earliest event, which stays until its source sets another.
    #[must_use]
    pub fn first(&self) -> (Nanos, Source) {
        let first = self.tree[1];
        ((first >> 64) as Nanos, first as Source)
    }

    /// When a source's event happens.
    #[must_use]
    pub fn time(&self, source: Source) -> Nanos {
        (self.tree[self.tree.len() / 2 + source as usize] >> 64) as Nanos
    }

    /// Sets when a source's next event happens, in place of what was set before; `NEVER` for not at all.
    pub fn set(&mut self, source: Source, time: Nanos) {
        let tree = &mut self.tree[..];
        let mut node = tree.len() / 2 + source as usize;
        let mut least = key(time, source);
        tree[node] = least;
        while node > 1 {
            least = least.min(tree[node ^ 1]);
            node /= 2;
            tree[node] = least;
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
        fn the_earliest_comes_first(sources in 1usize..40, settings in prop::collection::vec((any::<u32>(), prop::option::of(0u64..50)), 0..300)) {
            let mut events = Events::new(sources);
            let mut model = vec![NEVER; sources];
            for (source, time) in settings {
                let (source, time) = (source % sources as u32, time.unwrap_or(NEVER));
                events.set(source, time);
                model[source as usize] = time;
                let expected = model.iter().zip(0u32..).map(|(&t, s)| (t, s)).min().unwrap();
                prop_assert_eq!(events.first(), expected);
                prop_assert_eq!(events.time(source), time);
            }
        }
    }
}
