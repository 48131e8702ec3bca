//! The event queue: for each source of events the time of its next one, and which source comes first.
//!
//! Every link and every endpoint has at most one event pending: a link's packets arrive in order, and of an endpoint's timers only the earliest
//! matters. So the queue is a tournament tree with one leaf a source. Setting a source's time replays the matches on the way to the root,
//! log2(sources) comparisons without an unpredictable branch; a source that takes its own event and sets the next pays once, where a heap
//! pays for a removal and an insertion; and a timer that moves leaves nothing stale behind. Links have a tree of their own, because most
//! events are theirs and they are usually few.
//!
//! Events at the same time happen in the order of their sources' numbers, whatever else goes on in the run.
//!
//! A key is one word, the time in its upper bits and the source in as many lower ones as are needed: comparing and moving two words a match
//! doubled the time spent here. The price is that times and sources share 64 bits (`Events::new` says when they do not fit).

use std::ops::Range;

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
    /// Sources that are busy; those before and after share the other tree.
    busy_sources: Range<Source>,
    /// Bits of a key that hold the source.
    source_bits: u32,
    /// Events after this are not kept: the run is over by then.
    end: Nanos,
}

impl Events {
    /// A queue without events, for times up to `end` and the sources `0..sources`, of which `busy_sources` have most of the events. `None` if
    /// a time and a source do not fit into 64 bits together: nine hours with 300,000 sources, 25 days with 4,000.
    #[must_use]
    pub fn new(end: Nanos, sources: Source, busy_sources: Range<Source>) -> Option<Self> {
        let source_bits = sources.next_power_of_two().trailing_zeros();
        // Strictly below the greatest time, which stands for never.
        if end >= (Nanos::MAX >> source_bits) {
            return None;
        }
        let never = |source: Source| key(NEVER, source, source_bits);
        let others = (0..busy_sources.start).chain(busy_sources.end..sources);
        Some(Self {
            busy: Tournament::new(busy_sources.clone().map(never)),
            others: Tournament::new(others.map(never)),
            busy_sources,
            source_bits,
            end,
        })
    }

    /// The earliest event, which stays until its source sets another; `None` if nothing happens until the end.
    #[must_use]
    pub fn first(&self) -> Option<(Nanos, Source)> {
        let first = self.busy.first().min(self.others.first());
        let (time, source) = (first >> self.source_bits, first as Source & !(Source::MAX << self.source_bits));
        (time <= self.end).then_some((time, source))
    }

    /// When a source's event happens; `NEVER` if not before the end.
    #[must_use]
    pub fn time(&self, source: Source) -> Nanos {
        let key = match self.busy_leaf(source) {
            Some(leaf) => self.busy.get(leaf),
            None => self.others.get(self.other_leaf(source)),
        };
        let time = key >> self.source_bits;
        if time <= self.end { time } else { NEVER }
    }

    /// Sets when a source's next event happens, in place of what was set before; `NEVER` for not at all.
    pub fn set(&mut self, source: Source, time: Nanos) {
        let time = if time <= self.end { time } else { NEVER };
        let key = key(time, source, self.source_bits);
        match self.busy_leaf(source) {
            Some(leaf) => self.busy.set(leaf, key),
            None => self.others.set(self.other_leaf(source), key),
        }
    }

    fn busy_leaf(&self, source: Source) -> Option<u32> {
        self.busy_sources.contains(&source).then(|| source - self.busy_sources.start)
    }

    fn other_leaf(&self, source: Source) -> u32 {
        if source < self.busy_sources.start { source } else { source - self.busy_sources.len() as u32 }
    }
}

/// A time that does not fit, as `NEVER` does not, becomes the greatest that does.
fn key(time: Nanos, source: Source, source_bits: u32) -> u64 {
    let source = u64::from(source);
    if time == NEVER { (u64::MAX << source_bits) | source } else { (time << source_bits) | source }
}

/// Node 1 is the root, node i has the children 2i and 2i + 1, the leaves are the upper half; a node holds the least key below it.
#[derive(Debug)]
struct Tournament {
    tree: Box<[u64]>,
}

impl Tournament {
    /// A tree with these leaves.
    fn new(keys: impl Iterator<Item = u64> + Clone) -> Self {
        let leaves = keys.clone().count().next_power_of_two().max(2);
        let mut tree = vec![u64::MAX; 2 * leaves].into_boxed_slice();
        for (leaf, key) in tree[leaves..].iter_mut().zip(keys) {
            *leaf = key;
        }
        for node in (1..leaves).rev() {
            tree[node] = tree[2 * node].min(tree[2 * node + 1]);
        }
        Self { tree }
    }

    fn first(&self) -> u64 {
        self.tree[1]
    }

    fn get(&self, leaf: u32) -> u64 {
        self.tree[self.tree.len() / 2 + leaf as usize]
    }

    fn set(&mut self, leaf: u32, key: u64) {
        let tree = &mut self.tree[..];
        let mut node = tree.len() / 2 + leaf as usize;
        let mut least = key;
        tree[node] = least;
        while node > 1 {
            least = least.min(tree[node ^ 1]);
            node /= 2;
            tree[node] = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain list: the least (time, source) comes first after any settings.
        #[test]
        fn the_earliest_comes_first(before in 0u32..5, busy in 1u32..20, after in 1u32..20, settings in prop::collection::vec((any::<u32>(), prop::option::of(0u64..50)), 0..300)) {
            let sources = before + busy + after;
            let mut events = Events::new(49, sources, before..before + busy).unwrap();
            let mut model = vec![NEVER; sources as usize];
            for (source, time) in settings {
                let (source, time) = (source % sources, time.unwrap_or(NEVER));
                events.set(source, time);
                model[source as usize] = time;
                let expected = model.iter().zip(0u32..).filter(|&(&t, _)| t != NEVER).map(|(&t, s)| (t, s)).min();
                prop_assert_eq!(events.first(), expected);
                prop_assert_eq!(events.time(source), time);
            }
        }
    }

    #[test]
    fn says_when_times_and_sources_do_not_fit() {
        assert!(Events::new(NEVER / 8, 8, 0..1).is_none());
        let mut events = Events::new(NEVER / 8 - 1, 8, 0..1).unwrap();
        events.set(7, NEVER / 8 - 1);
        assert_eq!(events.first(), Some((NEVER / 8 - 1, 7)));
        events.set(7, NEVER / 8);
        assert_eq!((events.first(), events.time(7)), (None, NEVER), "after the end");
    }
}
