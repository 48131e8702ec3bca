//! A set of segment numbers within a moving window, one bit each, in a ring that grows with the
//! window and is empty until first used.
//!
//! The sender's scoreboard and the receiver's reassembly queue are both one of these. A bitmap
//! beats a list of ranges here: with 10^5 packets in flight and thousands of holes every operation
//! touches at most window/64 words, and usually one.

/// Set of `u64` in a window that only moves forward. All members lie within one span of less than
/// `capacity`.
#[derive(Debug, Clone, Default)]
pub(super) struct Bits {
    /// Power-of-two number of words, or none.
    words: Vec<u64>,
}

/// Allocations up to this many words are kept when the set empties, larger ones are returned.
const KEEP_WORDS: usize = 16;

impl Bits {
    fn slot(&self, word: u64) -> usize {
        word as usize & (self.words.len() - 1)
    }

    /// Makes room for members in `from..to`, of which all present members are part.
    pub fn reserve(&mut self, from: u64, to: u64) {
        let need = ((to >> 6) - (from >> 6) + 1) as usize;
        if need <= self.words.len() {
            return;
        }
        let mut grown = vec![0; need.next_power_of_two().max(2)];
        let mask = grown.len() - 1;
        for i in 0..self.words.len() as u64 {
            let word = (from >> 6) + i;
            grown[word as usize & mask] = self.words[self.slot(word)];
        }
        self.words = grown;
    }

    /// Returns a large allocation; the set must be empty.
    pub fn shrink(&mut self) {
        debug_assert!(self.words.iter().all(|w| *w == 0));
        if self.words.len() > KEEP_WORDS {
            self.words = Vec::new();
        }
    }

    /// Whether `at` is a member. Only meaningful inside the window last reserved.
    #[cfg(test)]
    pub fn contains(&self, at: u64) -> bool {
        !self.words.is_empty() && self.words[self.slot(at >> 6)] >> (at & 63) & 1 == 1
    }

    /// Adds `from..to` (reserved) and returns how many were new.
    pub fn insert(&mut self, from: u64, to: u64) -> u64 {
        self.each_word(from, to, |word, mask| {
            let new = mask & !*word;
            *word |= mask;
            new
        })
    }

    /// Removes `from..to` and returns how many were members.
    pub fn remove(&mut self, from: u64, to: u64) -> u64 {
        self.each_word(from, to, |word, mask| {
            let old = mask & *word;
            *word &= !mask;
            old
        })
    }

    fn each_word(
        &mut self,
        from: u64,
        to: u64,
        mut change: impl FnMut(&mut u64, u64) -> u64,
    ) -> u64 {
        if from >= to || self.words.is_empty() {
            return 0;
        }
        debug_assert!(
            ((to - 1) >> 6) - (from >> 6) < self.words.len() as u64,
            "span exceeds the ring"
        );
        let (first, last) = (from >> 6, (to - 1) >> 6);
        let mut count = 0;
        for word in first..=last {
            let mut mask = !0;
            if word == first {
                mask &= !0 << (from & 63);
            }
            if word == last {
                mask &= !0 >> (63 - ((to - 1) & 63));
            }
            let slot = self.slot(word);
            count += u64::from(change(&mut self.words[slot], mask).count_ones());
        }
        count
    }

    /// Least member in `from..to`, else `to`.
    pub fn next_member(&self, from: u64, to: u64) -> u64 {
        self.scan(from, to, 0)
    }

    /// Least non-member in `from..to`, else `to`.
    pub fn next_gap(&self, from: u64, to: u64) -> u64 {
        self.scan(from, to, !0)
    }

    fn scan(&self, from: u64, to: u64, flip: u64) -> u64 {
        if from >= to {
            return to;
        }
        if self.words.is_empty() {
            return if flip == 0 { to } else { from };
        }
        let mut word = from >> 6;
        let mut bits = (self.words[self.slot(word)] ^ flip) & (!0 << (from & 63));
        let last = (to - 1) >> 6;
        while bits == 0 {
            if word == last {
                return to;
            }
            word += 1;
            bits = self.words[self.slot(word)] ^ flip;
        }
        ((word << 6) + u64::from(bits.trailing_zeros())).min(to)
    }

    /// Start of the run of members that ends just before `at`: the least `s >= floor` with all of
    /// `s..at` members.
    pub fn run_start(&self, floor: u64, at: u64) -> u64 {
        if at <= floor || self.words.is_empty() {
            return at;
        }
        let mut word = (at - 1) >> 6;
        let mut gaps = !self.words[self.slot(word)] & (!0 >> (63 - ((at - 1) & 63)));
        while gaps == 0 {
            if word == floor >> 6 {
                return floor;
            }
            word -= 1;
            gaps = !self.words[self.slot(word)];
        }
        ((word << 6) + 64 - u64::from(gaps.leading_zeros())).max(floor)
    }

    /// Greatest non-member in `from..to`.
    pub fn last_gap(&self, from: u64, to: u64) -> Option<u64> {
        let start = self.run_start(from, to);
        if start > from { Some(start - 1) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        /// Against a `BTreeSet`, under any sequence of operations with a window that moves and
        /// grows.
        #[test]
        fn behaves_as_a_set(operations in prop::collection::vec((0u8..4, 0u64..400, 1u64..150), 1..60), base in 0u64..1000) {
            let mut bits = Bits::default();
            let mut model = BTreeSet::new();
            let mut floor = base;
            for (kind, offset, length) in operations {
                let (from, to) = (floor + offset, floor + offset + length);
                match kind {
                    0 | 1 => {
                        let top = model.last().map_or(to, |last: &u64| to.max(last + 1));
                        bits.reserve(floor, top);
                        let new = (from..to).filter(|s| model.insert(*s)).count() as u64;
                        prop_assert_eq!(bits.insert(from, to), new);
                    }
                    2 => {
                        let top = model.last().map_or(floor, |last| last + 1);
                        let to = to.min(top);
                        let gone = (from..to).filter(|s| model.remove(s)).count() as u64;
                        prop_assert_eq!(bits.remove(from, to), gone);
                    }
                    _ => {
                        let top = model.last().map_or(floor, |last| last + 1);
                        let next = (floor + offset / 4).min(top);
                        bits.remove(floor, next);
                        model.retain(|s| *s >= next);
                        floor = next;
                    }
                }
                let top = model.last().map_or(floor, |last| last + 1);
                for at in (floor..top).step_by(7) {
                    prop_assert_eq!(bits.contains(at), model.contains(&at));
                    prop_assert_eq!(bits.next_member(at, top), (at..top).find(|s| model.contains(s)).unwrap_or(top));
                    prop_assert_eq!(bits.next_gap(at, top), (at..top).find(|s| !model.contains(s)).unwrap_or(top));
                    let run = (floor..at).rev().find(|s| !model.contains(s)).map_or(floor, |s| s + 1);
                    prop_assert_eq!(bits.run_start(floor, at), run);
                    prop_assert_eq!(bits.last_gap(floor, at), (floor..at).rev().find(|s| !model.contains(s)));
                }
            }
        }
    }
}
