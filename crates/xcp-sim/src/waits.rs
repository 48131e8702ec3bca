//! How long packets wait for a link's transmitter, while that is measured. When they come and when
//! they go into service is for the link to say.

use std::collections::VecDeque;

use xcp_model::spread::Spread;
use xcp_model::units::Nanos;

/// Waiting times of the packets that came in the measured period and have gone into service: what
/// still waits may do so for ever. Those of no length are not counted one by one: they are the
/// packets that are left.
#[derive(Debug)]
pub struct Waits {
    spread: Spread,
    since: Nanos,
    /// Packets sent before.
    sent_before: u64,
    /// Packets sent since that had come before.
    came_before: u64,
    /// How long the packets wait that have not gone into service, first come, first served; not
    /// where they wait for a turn, which nobody knows.
    waiting: VecDeque<Nanos>,
    /// How many wait before those that have come since.
    waiting_before: u64,
}

impl Waits {
    /// Counted from now on: so many packets have been sent, and so many wait, or none where they
    /// wait for a turn.
    #[must_use]
    pub fn new(now: Nanos, sent: u64, waiting: u64) -> Self {
        Self {
            spread: Spread::default(),
            since: now,
            sent_before: sent,
            came_before: 0,
            waiting: VecDeque::new(),
            waiting_before: waiting,
        }
    }

    /// A packet comes that will wait so long.
    pub fn push(&mut self, wait: Nanos) {
        self.waiting.push_back(wait);
    }

    /// The packet that has waited longest goes into service.
    pub fn serve(&mut self) {
        if self.waiting_before > 0 {
            self.waiting_before -= 1;
            self.came_before += 1;
        } else if let Some(wait) = self.waiting.pop_front() {
            self.spread.add(wait);
        }
    }

    /// A packet goes into service that came at this time.
    pub fn start(&mut self, came: Nanos, now: Nanos) {
        if came < self.since {
            self.came_before += 1;
        } else if came < now {
            self.spread.add(now - came);
        }
    }

    /// The waiting times, so many packets having been sent since the beginning of the run.
    #[must_use]
    pub fn spread(self, sent: u64) -> Spread {
        let packets = sent - self.sent_before - self.came_before;
        let mut spread = self.spread;
        spread.add_zeros(packets - spread.total());
        spread
    }
}
