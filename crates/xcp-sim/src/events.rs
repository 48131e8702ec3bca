//! The event queue: for each source of events the time of its next one, and which source comes
//! first.
//!
//! Every link and every endpoint has at most one event pending: a link's packets arrive in order,
//! and of an endpoint's timers only the earliest matters. So the queue is a tournament with one
//! leaf a source. Setting a source's time replays its matches on the way to the root; a source that
//! takes its own event and sets the next pays once, where a heap pays for a removal and an
//! insertion; and a timer that moves leaves nothing stale behind. Eight meet in a match, one cache
//! line, and the least of them is found without a branch. Links have a tree of their own, because
//! most events are theirs and they are usually few.
//!
//! Events at the same time happen in the order of their sources' numbers, whatever else goes on in
//! the run.
//!
//! A key is one word, the time in its upper bits and the source in as many lower ones as are
//! needed: comparing and moving two words a match doubled the time spent here. The price is that
//! times and sources share 64 bits (`Events::new` says when they do not fit).

use xcp_model::units::Nanos;

/// A source of events: the simulator's own numbering.
pub type Source = u32;

/// The time of a source that has no event pending.
pub const NEVER: Nanos = Nanos::MAX;

/// Pending events.
#[derive(Debug)]
pub struct Events {
    links: Tournament,
    timers: Tournament,
    /// How many links there are: sources below are links, the others timers.
    link_count: Source,
    /// Bits of a key that hold the source.
    source_bits: u32,
    /// The greatest time that a key can hold; stands for `NEVER`.
    greatest: Nanos,
}

impl Events {
    /// A queue without events, for times up to `end`, with so many links, which have most of the
    /// events, and timers. `None` if a time and a source do not fit into 64 bits together: nine
    /// hours with 300,000 sources, 25 days with 4,000.
    #[must_use]
    pub fn new(end: Nanos, links: Source, timers: Source) -> Option<Self> {
        let (source_bits, greatest) = Self::layout(end, links, timers)?;
        let sources = links + timers;
        let never = |source: Source| (greatest << source_bits) | u64::from(source);
        Some(Self {
            links: Tournament::new((0..links).map(never)),
            timers: Tournament::new((links..sources).map(never)),
            link_count: links,
            source_bits,
            greatest,
        })
    }

    /// Whether so many links and timers can have events up to `end`.
    #[must_use]
    pub fn fit(end: Nanos, links: Source, timers: Source) -> bool {
        Self::layout(end, links, timers).is_some()
    }

    /// Bits of a key that hold the source, and the greatest time that the others can hold.
    fn layout(end: Nanos, links: Source, timers: Source) -> Option<(u32, Nanos)> {
        let sources = links.checked_add(timers)?;
        let source_bits = u64::from(sources).next_power_of_two().trailing_zeros();
        let greatest = Nanos::MAX >> source_bits;
        (end < greatest).then_some((source_bits, greatest))
    }

    /// The earliest event, which stays until its source sets another. Without any, some source's,
    /// at a time after the end.
    #[inline(always)]
    #[must_use]
    pub fn first(&self) -> (Nanos, Source) {
        let first = self.links.first().min(self.timers.first());
        (first >> self.source_bits, first as Source & !(Source::MAX << self.source_bits))
    }

    /// The source of a timer.
    #[inline(always)]
    #[must_use]
    pub fn timer(&self, source: Source) -> Option<u32> {
        source.checked_sub(self.link_count)
    }

    /// Sets when a link's next event happens, in place of what was set before; `NEVER` for not at
    /// all.
    #[inline(always)]
    pub fn set_link(&mut self, link: u32, time: Nanos) {
        let key = self.key(link, time);
        self.links.set(link, key);
    }

    /// Sets when a timer goes off, in place of what was set before; `NEVER` for not at all.
    #[inline]
    pub fn set_timer(&mut self, timer: u32, time: Nanos) {
        let key = self.key(self.link_count + timer, time);
        self.timers.set(timer, key);
    }

    /// Sets a timer unless it goes off before. One that has moved later is left where it is: it
    /// goes off too early, finds that out and is set anew, so that a retransmission timer restarted
    /// by every acknowledgement costs nothing.
    #[inline(always)]
    pub fn set_timer_earlier(&mut self, timer: u32, time: Nanos) {
        let key = self.key(self.link_count + timer, time);
        if key < self.timers.get(timer) {
            self.timers.set(timer, key);
        }
    }

    #[inline(always)]
    fn key(&self, source: Source, time: Nanos) -> u64 {
        (time.min(self.greatest) << self.source_bits) | u64::from(source)
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

/// Keys in groups of eight, the least of each group among the keys of the round above, up to a
/// round of one match.
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
            let round: Vec<Match> =
                keys.as_chunks::<MATCH>().0.iter().map(|&keys| Match(keys)).collect();
            keys = round.iter().map(Match::least).collect();
            matches.extend(round);
            if keys.len() == 1 {
                return Self { matches: matches.into(), rounds: rounds.into(), first: keys[0] };
            }
        }
    }

    #[inline(always)]
    fn first(&self) -> u64 {
        self.first
    }

    #[inline(always)]
    fn get(&self, leaf: u32) -> u64 {
        self.matches[leaf as usize / MATCH].0[leaf as usize % MATCH]
    }

    #[inline(always)]
    fn set(&mut self, leaf: u32, key: u64) {
        let (mut place, mut key) = (leaf as usize, key);
        for &round in &self.rounds {
            let group = &mut self.matches[round + place / MATCH];
            // The others' least need not wait for this key, nor one round for the one below.
            group.0[place % MATCH] = u64::MAX;
            let others = group.least();
            group.0[place % MATCH] = key;
            key = key.min(others);
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
        fn the_earliest_comes_first(links in 0u32..20, timers in 0u32..100, settings in prop::collection::vec((any::<u32>(), prop::option::of(0u64..50), any::<bool>()), 0..300)) {
            prop_assume!(links + timers > 0);
            let mut events = Events::new(49, links, timers).unwrap();
            let mut model = vec![NEVER; (links + timers) as usize];
            for (source, time, earlier) in settings {
                let (source, time) = (source % (links + timers), time.unwrap_or(NEVER));
                let old = &mut model[source as usize];
                match source.checked_sub(links) {
                    None => events.set_link(source, time),
                    Some(timer) if earlier => events.set_timer_earlier(timer, time),
                    Some(timer) => events.set_timer(timer, time),
                }
                *old = if earlier && source >= links { time.min(*old) } else { time };
                let expected = model.iter().zip(0u32..).map(|(&t, s)| (t, s)).min().unwrap();
                if expected.0 == NEVER {
                    prop_assert!(events.first().0 > 49);
                } else {
                    prop_assert_eq!(events.first(), expected);
                }
            }
        }
    }

    #[test]
    fn says_when_times_and_sources_do_not_fit() {
        assert!(Events::new(NEVER / 8, 1, 7).is_none());
        let mut events = Events::new(NEVER / 8 - 1, 1, 7).unwrap();
        events.set_timer(6, NEVER / 8 - 1);
        assert_eq!(events.first(), (NEVER / 8 - 1, 7));
        events.set_timer(6, NEVER / 8);
        assert_eq!(events.first(), (NEVER / 8, 0), "what cannot be told from never is never");
    }
}
