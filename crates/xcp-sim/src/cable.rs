//! A cable whose length changes at known times: when what is sent reaches its far end. Links whose
//! delay is constant, which nearly all are, have no use for it: they add.
//!
//! Packets keep their order, and no two of a link arrive in the same instant. Where the way becomes
//! shorter what is sent afterwards therefore arrives behind what was on it, a nanosecond apart,
//! until the difference has passed.

use std::collections::VecDeque;

use xcp_model::steps::Steps;
use xcp_model::units::Nanos;

/// A way whose length changes.
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

/// Such a way, and when each packet that is not at its far end yet was sent.
#[derive(Debug, Clone)]
pub struct Cable {
    way: Way,
    /// When those that have not arrived leave the transmitter, the waiting ones last.
    sent: VecDeque<Nanos>,
    /// How many of these do not wait for the transmitter any more.
    served: usize,
}

impl Cable {
    /// An unused cable; its length by when a packet is sent.
    #[must_use]
    pub fn new(delays: Steps) -> Self {
        Self { way: Way::new(delays), sent: VecDeque::new(), served: 0 }
    }

    /// A packet has been sent, or will have been, at this time, which is not before the last
    /// one's. Returns when it arrives.
    pub fn send(&mut self, sent: Nanos) -> Nanos {
        self.sent.push_back(sent);
        self.way.arrives(sent)
    }

    /// The first of the packets that wait goes into service. Returns when it will have been sent.
    pub fn serve(&mut self) -> Nanos {
        let sent = self.sent[self.served];
        self.served += 1;
        sent
    }

    /// The first of all arrives. Returns when it was sent.
    pub fn arrive(&mut self) -> Nanos {
        self.served -= 1;
        self.sent.pop_front().expect("what arrives has been sent")
    }

    /// When each packet that does not wait any more was sent, or will have been.
    pub fn on_the_way(&self) -> impl Iterator<Item = Nanos> {
        self.sent.iter().take(self.served).copied()
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
            let mut cable = Cable::new(delays.clone());
            let (mut now, mut before) = (0, None);
            for gap in gaps {
                now += gap;
                let arrives = cable.send(now);
                let least = now + delays.at(now);
                prop_assert!(arrives == before.map_or(least, |before: u64| least.max(before + 1)));
                prop_assert_eq!(cable.serve(), now);
                before = Some(arrives);
            }
        }
    }

    #[test]
    fn a_shorter_way_waits_for_the_longer_one_to_empty() {
        let mut cable = Cable::new(Steps::new(100, &[(50, 10)]));
        assert_eq!(
            [20, 49, 50, 60, 139, 140, 200].map(|at| cable.send(at)),
            [120, 149, 150, 151, 152, 153, 210]
        );
    }
}
