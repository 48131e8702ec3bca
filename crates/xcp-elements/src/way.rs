//! A way whose length changes at known times: when what is sent reaches its far end. Links whose
//! delay is constant, which nearly all are, have no use for it: they add.
//!
//! Packets keep their order, and no two of a link arrive in the same instant. Where the way becomes
//! shorter what is sent afterwards therefore arrives behind what was on it, a nanosecond apart,
//! until the difference has passed.

use xcp_model::steps::Steps;
use xcp_model::units::Nanos;

/// A way whose length changes: packets keep their order, and where it becomes shorter they arrive
/// a nanosecond apart until the difference has passed.
#[derive(Debug, Clone)]
pub struct Way {
    delays: Steps,
    /// When the latest packet arrives, if there was one.
    latest: Option<Nanos>,
}

impl Way {
    /// An unused one; its length by when a packet is sent.
    #[must_use]
    pub fn new(delays: Steps) -> Self {
        Self { delays, latest: None }
    }

    /// When a packet arrives that is sent at this time, which is not before the last one's.
    pub fn arrives(&mut self, sent: Nanos) -> Nanos {
        let arrives = sent.saturating_add(self.delays.at(sent));
        let arrives = self.latest.map_or(arrives, |latest| arrives.max(latest.saturating_add(1)));
        self.latest = Some(arrives);
        arrives
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Nothing is early, nothing overtakes, and nothing is later than order asks for.
        #[test]
        fn packets_keep_their_order_and_lose_no_time(
            first in 0u64..1_000_000,
            changes in prop::collection::vec((1u64..1_000_000, 0u64..1_000_000), 0..8),
            gaps in prop::collection::vec(1u64..100_000, 1..100),
        ) {
            let mut at = 0;
            let changes: Vec<_> = changes.into_iter().map(|(gap, delay)| { at += gap; (at, delay) }).collect();
            let delays = Steps::new(first, &changes);
            let mut way = Way::new(delays.clone());
            let (mut now, mut before) = (0, None);
            for gap in gaps {
                now += gap;
                let arrives = way.arrives(now);
                let least = now + delays.at(now);
                prop_assert!(arrives == before.map_or(least, |before: u64| least.max(before + 1)));
                before = Some(arrives);
            }
        }
    }

    #[test]
    fn a_shorter_way_waits_for_the_longer_one_to_empty() {
        let mut way = Way::new(Steps::new(100, &[(50, 10)]));
        assert_eq!(
            [20, 49, 50, 60, 139, 140, 200].map(|at| way.arrives(at)),
            [120, 149, 150, 151, 152, 153, 210]
        );
    }
}
