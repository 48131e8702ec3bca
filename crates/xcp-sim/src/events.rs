//! The event queue: for each source of events the time of its next one, and which source comes first.
//!
//! Every link and every endpoint has at most one event pending: a link's packets arrive in order, and of an endpoint's timers only the earliest
//! matters. So the queue is a tournament with one leaf a source. Setting a source's time replays its matches on the way to the root; a source
//! that takes its own event and sets the next pays once, where a heap pays for a removal and an insertion; and a timer that moves leaves nothing
//! stale behind. Eight meet in a match, one cache line, and the least of them is found without a branch. Links have a tree of their own,
//! because most events are theirs and they are usually few.
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
    /// The greatest time that a key can hold; stands for `NEVER`.
    greatest: Nanos,
}

impl Events {
    /// A queue without events, for times up to `end` and the sources `0..sources`, of which `busy_sources` have most of the events. `None` if
    /// a time and a source do not fit into 64 bits together: nine hours with 300,000 sources, 25 days with 4,000.
    #[must_use]
    pub fn new(end: Nanos, sources: Source, busy_sources: Range<Source>) -> Option<Self> {
        let source_bits = sources.next_power_of_two().trailing_zeros();
        let greatest = Nanos::MAX >> source_bits;
        if end >= greatest {
            return None;
        }
        let never = |source: Source| (greatest << source_bits) | u64::from(source);
        let others = (0..busy_sources.start).chain(busy_sources.end..sources);
        Some(Self {
            busy: Tournament::new(busy_sources.clone().map(never)),
            others: Tournament::new(others.map(never)),
            busy_sources,
            source_bits,
            greatest,
        })
    }

    /// The earliest event, which stays until its source sets another. Without any, some source's `NEVER`, or a time after the end.
    #[must_use]
    pub fn first(&self) -> (Nanos, Source) {
        let first = self.busy.first().min(self.others.first());
        (self.time_of(first), first as Source & !(Source::MAX << self.source_bits))
    }

    /// When a source's event happens.
    #[must_use]
    pub fn time(&self, source: Source) -> Nanos {
        self.time_of(match self.busy_leaf(source) {
            Some(leaf) => self.busy.get(leaf),
            None => self.others.get(self.other_leaf(source)),
        })
    }

    /// Sets when a source's next event happens, in place of what was set before; `NEVER` for not at all.
    #[inline]
    pub fn set(&mut self, source: Source, time: Nanos) {
        let key = (time.min(self.greatest) << self.source_bits) | u64::from(source);
        match self.busy_leaf(source) {
            Some(leaf) => self.busy.set(leaf, key),
            None => self.others.set(self.other_leaf(source), key),
        }
    }

    /// `set` for a busy source, by its place among them: most of all events, so there is a short way for them.
    #[inline]
    pub fn set_busy(&mut self, place: u32, time: Nanos) {
        let source = self.busy_sources.start + place;
        self.busy.set(place, (time.min(self.greatest) << self.source_bits) | u64::from(source));
    }

    fn time_of(&self, key: u64) -> Nanos {
        let time = key >> self.source_bits;
        if time == self.greatest { NEVER } else { time }
    }

    fn busy_leaf(&self, source: Source) -> Option<u32> {
        let leaf = source.wrapping_sub(self.busy_sources.start);
        (leaf < self.busy_sources.end - self.busy_sources.start).then_some(leaf)
    }

    fn other_leaf(&self, source: Source) -> u32 {
        if source < self.busy_sources.start { source } else { source - (self.busy_sources.end - self.busy_sources.start) }
    }
}

/// Keys that meet in a match.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Match([u64; MATCH]);

const MATCH: usize = 8;

impl Match {
    /// The least key, as a tree of pairs that the compiler turns into conditional moves.
    fn least(&self) -> u64 {
        let [a, b, c, d, e, f, g, h] = self.0;
        a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)))
    }
}

/// Keys in groups of eight, the least of each group among the keys of the round above, up to a round of one match.
#[derive(Debug)]
struct Tournament {
    /// All rounds, the leaves first.
    matches: Box<[Match]>,
    /// Where each round begins in `matches`.
    rounds: Box<[usize]>,
    first: u64,
}

impl Tournament {
    /// A tournament with these leaves.
    fn new(keys: impl Iterator<Item = u64>) -> Self {
        let mut matches = Vec::new();
        let mut rounds = Vec::new();
        let mut keys: Vec<u64> = keys.collect();
        loop {
            rounds.push(matches.len());
            // At least one match, even of nobody.
            keys.resize(keys.len().next_multiple_of(MATCH).max(MATCH), u64::MAX);
            let round: Vec<Match> = keys.as_chunks::<MATCH>().0.iter().map(|&keys| Match(keys)).collect();
            keys = round.iter().map(Match::least).collect();
            matches.extend(round);
            if keys.len() == 1 {
                return Self { matches: matches.into(), rounds: rounds.into(), first: keys[0] };
            }
        }
    }

    fn first(&self) -> u64 {
        self.first
    }

    fn get(&self, leaf: u32) -> u64 {
        self.matches[leaf as usize / MATCH].0[leaf as usize % MATCH]
    }

    #[inline]
    fn set(&mut self, leaf: u32, key: u64) {
        let (mut place, mut key) = (leaf as usize, key);
        for &round in &self.rounds {
            let group = &mut self.matches[round + place / MATCH];
            group.0[place % MATCH] = key;
            key = group.least();
            place /= MATCH;
        }
        self.first = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain list: the least (time, source) comes first after any settings.
        #[test]
        fn the_earliest_comes_first(before in 0u32..5, busy in 1u32..20, after in 1u32..100, settings in prop::collection::vec((any::<u32>(), prop::option::of(0u64..50)), 0..300)) {
            let sources = before + busy + after;
            let mut events = Events::new(49, sources, before..before + busy).unwrap();
            let mut model = vec![NEVER; sources as usize];
            for (source, time) in settings {
                let (source, time) = (source % sources, time.unwrap_or(NEVER));
                match source.checked_sub(before) {
                    Some(place) if place < busy => events.set_busy(place, time),
                    _ => events.set(source, time),
                }
                model[source as usize] = time;
                let expected = model.iter().zip(0u32..).map(|(&t, s)| (t, s)).min().unwrap();
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
        assert_eq!(events.first(), (NEVER / 8 - 1, 7));
        events.set(7, NEVER / 8);
        assert_eq!((events.first(), events.time(7)), ((NEVER, 0), NEVER), "what cannot be told from never is never");
    }
}
