//! A cable whose length changes at known times, and what is on it. Links whose delay is constant,
//! which nearly all are, have no use for it: they add.

use std::collections::VecDeque;

use xcp_elements::Way;
use xcp_model::steps::Steps;
use xcp_model::units::Nanos;

/// A way of changing length, and when each packet that is not at its far end yet was sent.
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
        /// Packets are served and arrive in the order in which they were sent, each with its time.
        #[test]
        fn packets_keep_their_times(gaps in prop::collection::vec(1u64..100_000, 1..100)) {
            let mut cable = Cable::new(Steps::new(100_000, &[(50_000, 10)]));
            let sent: Vec<Nanos> = gaps
                .iter()
                .scan(0, |now, gap| { *now += gap; Some(*now) })
                .collect();
            for at in &sent {
                cable.send(*at);
            }
            for (n, at) in sent.iter().enumerate() {
                prop_assert_eq!(cable.serve(), *at);
                prop_assert_eq!(cable.on_the_way().count(), n + 1);
            }
            for at in &sent {
                prop_assert_eq!(cable.arrive(), *at);
            }
            prop_assert_eq!(cable.on_the_way().count(), 0);
        }
    }
}
