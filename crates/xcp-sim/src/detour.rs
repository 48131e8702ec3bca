//! Packets that fall back: having reached the far end of their link they wait for their own time,
//! and those behind them pass. The link itself keeps first in, first out; it does not know of this.
//!
//!  1. Which fall back, and by how much, is decided in the order in which packets were sent, as on
//!     the emulated wire of `xcp-lab`: the same packets of a scenario in both.
//!  2. Whoever is told how many packets are on the way does not see those that wait here.

use std::collections::BTreeMap;

use xcp_elements::Reordering;
use xcp_model::units::Nanos;
use xcp_model::{DirectionId, Reorder, Scenario};

use crate::events::NEVER;
use crate::fifo::Transit;

/// The link directions of a scenario some of whose packets fall back.
pub fn reordered(scenario: &Scenario) -> impl Iterator<Item = (DirectionId, Reorder)> {
    let directions = scenario.links.iter().flat_map(|link| &link.directions);
    directions.enumerate().filter_map(|(number, direction)| Some((number, direction.reorder?)))
}

/// Those of one link direction that have fallen back.
#[derive(Debug)]
pub struct Detour {
    reordering: Reordering,
    /// By when they go on, and of two that do so at once the one that was sent first.
    waiting: BTreeMap<(Nanos, u64), Transit>,
    /// How many have come here.
    came: u64,
    /// The number of its events among those of the region's links.
    pub source: u32,
}

impl Detour {
    /// An empty one, whose events have this number.
    #[must_use]
    pub fn new(reordering: Reordering, source: u32) -> Self {
        Self { reordering, waiting: BTreeMap::new(), came: 0, source }
    }

    /// How much later than it would the next packet of the link goes on; 0 if it keeps its place.
    pub fn falls_back_by(&mut self) -> Nanos {
        self.reordering.falls_back_by()
    }

    /// A packet has reached the far end and goes on so much later.
    pub fn push(&mut self, extra: Nanos, transit: Transit) {
        self.waiting.insert((transit.arrives.saturating_add(extra), self.came), transit);
        self.came += 1;
    }

    /// When the first of those that wait goes on.
    #[must_use]
    pub fn next(&self) -> Nanos {
        self.waiting.first_key_value().map_or(NEVER, |(&(at, _), _)| at)
    }

    /// The first of those that wait goes on, if its time has come.
    pub fn pop(&mut self, now: Nanos) -> Option<Transit> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// All come out, at their own times, and those that are due at once in the order in which
        /// they went in.
        #[test]
        fn everybody_goes_on_when_it_is_time(extras in prop::collection::vec(1u64..20, 1..60)) {
            let reorder = Reorder { probability: 0.5, most: 1 };
            let mut detour = Detour::new(Reordering::new(reorder, 1, 0), 0);
            let mut wanted = Vec::new();
            for (n, &extra) in (0u64..).zip(&extras) {
                let transit = Transit { arrives: n, position: n as u32, ..Transit::default() };
                detour.push(extra, transit);
                wanted.push((n + extra, n as u32));
            }
            wanted.sort_unstable();
            let mut seen = Vec::new();
            for now in 0..100 {
                prop_assert!(detour.next() >= now);
                while let Some(transit) = detour.pop(now) {
                    seen.push((now, transit.position));
                }
            }
            prop_assert_eq!(seen, wanted);
            prop_assert_eq!(detour.next(), NEVER);
        }
    }
}
