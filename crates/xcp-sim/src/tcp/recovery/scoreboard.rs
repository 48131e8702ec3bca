//! The scoreboard (RFC 6675 §3, §4): which outstanding segments have arrived, are lost, have been
//! retransmitted; and pipe, in O(1).
//!
//! Only "has arrived" is kept per segment, one bit, and only once something has been SACKed. The
//! rest is two edges, because both only move up: everything below `lost_edge` that has not arrived
//! is lost (IsLost: three segments above have arrived), and everything below `retransmitted` that
//! has not arrived is in the network a second time (HighRxt: NextSeg() goes through holes in
//! order). Counters of arrivals on either side of the edges then give pipe without looking at a
//! single segment:
//!
//! pipe = outstanding - arrived - lost + retransmitted and not arrived.

use super::DUP_THRESH;
use crate::tcp::bits::Bits;

/// Segments `una..nxt` are outstanding; both are the sender's.
#[derive(Debug, Clone, Default)]
pub(super) struct Scoreboard {
    arrived: Bits,
    /// End of the highest segment that has arrived.
    highest: u64,
    /// What has not arrived below is lost.
    lost_edge: u64,
    /// Found lost, so far, by what has arrived above.
    found: u64,
    /// What has not arrived below has been retransmitted (HighRxt + 1).
    retransmitted: u64,
    /// Arrived in all, at or above `lost_edge`, below `retransmitted`.
    count: u64,
    count_above_lost_edge: u64,
    count_below_retransmitted: u64,
    /// Rescue retransmissions are allowed once above this (RescueRxt).
    rescue: u64,
    /// Blocks known in full, so that a block that grows by one segment per ACK costs one bit per
    /// ACK.
    known: [(u64, u64); 4],
    /// Which of them is replaced next.
    oldest: u8,
}

impl Scoreboard {
    /// RFC 6675 §4, SetPipe().
    pub fn pipe(&self, una: u64, nxt: u64) -> u64 {
        let mut pipe = nxt - una;
        if self.lost_edge > una {
            // Arrived below the edge are neither lost nor in the network: outstanding - count -
            // (below edge - arrived below edge).
            pipe -= self.lost_edge - una;
            pipe -= self.count_above_lost_edge;
        } else {
            pipe -= self.count;
        }
        if self.retransmitted > una {
            pipe += self.retransmitted - una - self.count_below_retransmitted;
        }
        pipe
    }

    /// End of the highest segment that has arrived.
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Outstanding segments that have been SACKed.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Segments found lost by what arrived above them, so far.
    pub fn found(&self) -> u64 {
        self.found
    }

    /// Whether nothing outstanding has been SACKed.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The cumulative acknowledgement moved from `old` to `una`.
    pub fn advance(&mut self, old: u64, una: u64) {
        if self.count > 0 {
            self.forget(old, una);
        }
    }

    fn forget(&mut self, old: u64, una: u64) {
        let end = una.min(self.highest);
        let (lost, again) =
            (self.lost_edge.clamp(old, end.max(old)), self.retransmitted.clamp(old, end.max(old)));
        let (low, high) = (lost.min(again), lost.max(again));
        let parts = [
            self.arrived.remove(old, low),
            self.arrived.remove(low, high),
            self.arrived.remove(high, end),
        ];
        let below = |edge: u64| if edge == low { parts[0] } else { parts[0] + parts[1] };
        let gone: u64 = parts.iter().sum();
        self.count -= gone;
        // With low == high the middle part is empty and either reading holds.
        self.count_above_lost_edge -= gone - below(lost);
        self.count_below_retransmitted -= below(again);
        self.lost_edge = self.lost_edge.max(una);
        self.retransmitted = self.retransmitted.max(una);
        if self.count == 0 {
            self.arrived.shrink();
        }
    }

    /// Update(): `from..to` have arrived. Returns how many of them were news. Out-of-range reports
    /// must have been cut by the caller.
    pub fn update(&mut self, una: u64, from: u64, to: u64) -> u64 {
        let start = from;
        let mut from = from;
        let mut slot = None;
        for (i, known) in self.known.iter().enumerate() {
            if known.0 <= from && from < known.1 {
                from = known.1;
                slot = Some(i);
            }
        }
        if from >= to {
            return 0;
        }
        let slot = slot.unwrap_or_else(|| {
            self.oldest = (self.oldest + 1) % self.known.len() as u8;
            usize::from(self.oldest)
        });
        self.known[slot] = (start, to);

        self.lost_edge = self.lost_edge.max(una);
        self.retransmitted = self.retransmitted.max(una);
        self.highest = self.highest.max(to);
        self.arrived.reserve(una, self.highest);
        let (lost, again) = (self.lost_edge.clamp(from, to), self.retransmitted.clamp(from, to));
        let (low, high) = (lost.min(again), lost.max(again));
        let parts = [
            self.arrived.insert(from, low),
            self.arrived.insert(low, high),
            self.arrived.insert(high, to),
        ];
        let below = |edge: u64| if edge == low { parts[0] } else { parts[0] + parts[1] };
        let news: u64 = parts.iter().sum();
        self.count += news;
        self.count_above_lost_edge += news - below(lost);
        self.count_below_retransmitted += below(again);
        self.raise_lost_edge();
        news
    }

    /// IsLost(): the edge is the third-highest arrival.
    fn raise_lost_edge(&mut self) {
        while self.count_above_lost_edge >= u64::from(DUP_THRESH) {
            let next = self.arrived.next_member(self.lost_edge, self.highest);
            self.found += next - self.lost_edge;
            self.lost_edge = next;
            if self.count_above_lost_edge == u64::from(DUP_THRESH) {
                break;
            }
            self.lost_edge += 1;
            self.count_above_lost_edge -= 1;
        }
    }

    /// Whether the first outstanding segment is lost.
    pub fn first_is_lost(&self, una: u64) -> bool {
        self.lost_edge > una
    }

    /// Fast recovery begins.
    pub fn enter(&mut self, una: u64) {
        if self.lost_edge <= una {
            // Three duplicate ACKs mark the first segment whatever they have reported; it has not
            // arrived, so no counter changes.
            self.lost_edge = una + 1;
            self.found += 1;
        }
        self.retransmitted = una;
        self.count_below_retransmitted = 0;
        self.rescue = una + 1;
    }

    /// Fast recovery is over.
    pub fn leave(&mut self, una: u64) {
        self.retransmitted = una;
        self.count_below_retransmitted = 0;
    }

    /// Everything outstanding that has not arrived is lost, and so are its retransmissions.
    pub fn all_lost(&mut self, una: u64, nxt: u64) {
        self.lost_edge = nxt;
        self.count_above_lost_edge = 0;
        self.retransmitted = una;
        self.count_below_retransmitted = 0;
    }

    /// Arrivals in `una..retransmitted`.
    fn below_retransmitted(&self, una: u64) -> u64 {
        if self.retransmitted > una { self.count_below_retransmitted } else { 0 }
    }

    /// NextSeg() rule 1: the first lost segment not retransmitted yet.
    pub fn next_lost(&self, una: u64) -> Option<u64> {
        // Counting first spares looking through a window without holes.
        (self.lost_unrepaired(una) > 0).then(|| {
            let from = self.retransmitted.max(una);
            // After a timeout the edge lies above all that has arrived, and above what `arrived`
            // has room for: nothing is to be found there.
            self.arrived.next_gap(from, self.lost_edge.min(self.highest)).max(from)
        })
    }

    /// Lost segments not retransmitted yet: those that rule 1 will give one after the other.
    pub fn lost_unrepaired(&self, una: u64) -> u64 {
        let from = self.retransmitted.max(una);
        if from >= self.lost_edge {
            return 0;
        }
        let arrived_between =
            self.count - self.count_above_lost_edge - self.below_retransmitted(una);
        self.lost_edge - from - arrived_between
    }

    /// NextSeg() rule 3: a hole below the highest arrival, not taken for lost.
    pub fn next_hole(&self, una: u64) -> Option<u64> {
        let from = self.retransmitted.max(una);
        if self.count == 0
            || from >= self.highest
            || self.highest - from == self.count - self.below_retransmitted(una)
        {
            return None;
        }
        Some(self.arrived.next_gap(from, self.highest))
    }

    /// NextSeg() rule 4: once per recovery the highest segment that has not arrived, if more than
    /// the first retransmission has been acknowledged.
    pub fn rescue(&self, una: u64, nxt: u64) -> Option<u64> {
        if una <= self.rescue || nxt == una {
            return None;
        }
        if self.count == 0 || self.highest < nxt {
            Some(nxt - 1)
        } else {
            self.arrived.last_gap(una, nxt)
        }
    }

    /// The rescue retransmission was sent, in the recovery that ends at `point`.
    pub fn rescued(&mut self, point: u64) {
        self.rescue = point;
    }

    /// `segment`, the first hole at or above `retransmitted`, was sent again.
    pub fn sent_again(&mut self, una: u64, segment: u64) {
        let from = self.retransmitted.max(una);
        debug_assert!(segment >= from);
        if self.retransmitted < una {
            self.count_below_retransmitted = 0;
        }
        // All between are arrivals.
        self.count_below_retransmitted += segment - from;
        self.retransmitted = segment + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// RFC 6675 §4 word for word, segment by segment.
    #[derive(Default)]
    struct Model {
        una: u64,
        nxt: u64,
        arrived: BTreeSet<u64>,
        /// Lost because the timer or three duplicate ACKs said so.
        declared: BTreeSet<u64>,
        /// Segments below have been retransmitted unless they had arrived.
        again: u64,
        /// The timer said so.
        timed_out: BTreeSet<u64>,
        /// Lost at some time, whoever said so but the timer.
        found: BTreeSet<u64>,
    }

    impl Model {
        fn is_lost(&self, s: u64) -> bool {
            !self.arrived.contains(&s)
                && (self.declared.contains(&s) || self.arrived.range(s + 1..).count() >= 3)
        }

        fn pipe(&self) -> u64 {
            let missing = (self.una..self.nxt).filter(|s| !self.arrived.contains(s));
            missing.map(|s| u64::from(!self.is_lost(s)) + u64::from(s < self.again)).sum()
        }

        fn next_lost(&self) -> Option<u64> {
            (self.una.max(self.again)..self.nxt).find(|s| self.is_lost(*s))
        }

        fn next_hole(&self) -> Option<u64> {
            let top = *self.arrived.last()?;
            (self.una.max(self.again)..top).find(|s| !self.arrived.contains(s))
        }
    }

    /// A window much larger than what has been reported of it: after a timeout every segment that
    /// has not arrived is repaired, each once.
    #[test]
    fn a_timeout_repairs_what_lies_beyond_all_reports() {
        for arrived in [5..8, 60..70, 1..500] {
            let mut board = Scoreboard::default();
            board.update(0, arrived.start, arrived.end);
            board.all_lost(0, 3000);
            let mut repaired = Vec::new();
            while let Some(segment) = board.next_lost(0) {
                board.sent_again(0, segment);
                repaired.push(segment);
            }
            assert_eq!(repaired, (0..3000).filter(|s| !arrived.contains(s)).collect::<Vec<u64>>());
            assert_eq!(board.pipe(0, 3000), repaired.len() as u64);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

        /// Edges and counters give what looking at every segment gives.
        #[test]
        fn agrees_with_the_rfc_segment_by_segment(operations in prop::collection::vec((0u8..12, 0u64..200, 1u64..20), 1..120)) {
            let mut board = Scoreboard::default();
            let mut model = Model { nxt: 150, ..Model::default() };
            for (kind, at, length) in operations {
                let outstanding = model.nxt - model.una;
                match kind {
                    0..=5 if outstanding > 1 => {
                        let from = model.una + 1 + at % (outstanding - 1);
                        let to = (from + length).min(model.nxt);
                        let news = (from..to).filter(|s| model.arrived.insert(*s)).count() as u64;
                        prop_assert_eq!(board.update(model.una, from, to), news);
                    }
                    6 => model.nxt += length,
                    7 => {
                        let old = model.una;
                        let mut una = (old + at / 4).min(model.nxt);
                        // A cumulative acknowledgement covers everything that has arrived next to
                        // it.
                        while model.arrived.contains(&una) {
                            una += 1;
                        }
                        board.advance(old, una);
                        model.una = una;
                        model.arrived.retain(|s| *s >= una);
                    }
                    8 | 9 => {
                        let next = if kind == 8 { board.next_lost(model.una) } else { board.next_hole(model.una) };
                        if let Some(s) = next {
                            board.sent_again(model.una, s);
                            model.again = s + 1;
                        }
                    }
                    10 if outstanding > 0 => {
                        board.enter(model.una);
                        model.declared.insert(model.una);
                        model.again = model.una;
                    }
                    11 => {
                        board.all_lost(model.una, model.nxt);
                        model.declared.extend(model.una..model.nxt);
                        model.timed_out.extend(model.una..model.nxt);
                        model.again = model.una;
                    }
                    _ => {}
                }
                prop_assert_eq!(board.pipe(model.una, model.nxt), model.pipe());
                prop_assert_eq!(board.next_lost(model.una), model.next_lost());
                let unrepaired = (model.una.max(model.again)..model.nxt).filter(|s| model.is_lost(*s)).count() as u64;
                prop_assert_eq!(board.lost_unrepaired(model.una), unrepaired);
                prop_assert_eq!(board.next_hole(model.una), model.next_hole());
                let lost = (model.una..model.nxt).filter(|s| model.is_lost(*s) && !model.timed_out.contains(s));
                model.found = lost.chain(model.found.iter().copied()).collect();
                prop_assert_eq!(board.found(), model.found.len() as u64);
            }
        }
    }
}
