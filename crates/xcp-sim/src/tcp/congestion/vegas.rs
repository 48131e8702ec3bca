//! Vegas (Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet",
//! IEEE JSAC 13(8), 1995): keeps a few packets of its own in the queue, by the round trip's length.
//!
//! Where it differs:
//! 1. Losses are repaired by the scenario's recovery and answered as Reno does; the paper's own
//!    early retransmission (section 3.1) is not here, and its reduction by a quarter is not,
//!    either.
//! 2. Slow start ends as in Linux: with the window that would have filled the path and no queue,
//!    and one packet. The paper does not say where the window goes.
//! 3. A round trip with fewer than three samples is Reno's (Linux): one delayed acknowledgement
//!    would pass for a queue. Otherwise it is the mean of its samples that counts, as in the
//!    authors' code; the least of them, Linux's choice, is that of a burst's first packet, which
//!    meets no queue: slow start went on to twice the path here.

use super::reno::Reno;
use super::{Acked, Control};
use crate::tcp::SenderConfig;
use xcp_model::units::Nanos;

/// Packets in the queue: fewer, and the window grows by one a round trip; section 3.2.
const ALPHA: u128 = 2;
/// More, and it shrinks by one.
const BETA: u128 = 4;
/// More, and slow start is over; section 3.3.
const GAMMA: u128 = 1;

/// The window is Reno's, moved by what the round trips say.
#[derive(Debug, Clone)]
pub(in crate::tcp) struct Vegas {
    reno: Reno,
    /// The shortest round trip there has been: the path without a queue.
    base: Nanos,
    /// Those of this round, summed.
    sum: Nanos,
    samples: u32,
    /// The round is over when this segment is acknowledged.
    round: u64,
    /// Slow start doubles the window in every other round only, and measures in between.
    doubling: bool,
}

impl Control for Vegas {
    fn new(config: &SenderConfig) -> Self {
        let reno = Reno::new(config);
        Vegas { reno, base: Nanos::MAX, sum: 0, samples: 0, round: 0, doubling: true }
    }

    fn cwnd(&self) -> u32 {
        self.reno.cwnd()
    }

    fn acked(&mut self, ack: &Acked) {
        if let Some(rtt) = ack.rtt {
            self.base = self.base.min(rtt);
            self.sum = self.sum.saturating_add(rtt);
            self.samples += 1;
        }
        if ack.recovering || ack.segments == 0 {
            return;
        }
        if self.reno.in_slow_start() && self.doubling {
            self.reno.acked(ack);
        }
        if ack.acknowledged > self.round {
            if self.samples > 2 {
                self.round_ends(ack.limited);
            } else if !self.reno.in_slow_start() {
                self.reno.acked(ack);
            }
            self.round = ack.sent;
            (self.sum, self.samples) = (0, 0);
            self.doubling = !self.doubling;
        }
    }

    fn lost(&mut self, flight: u32) {
        self.reno.lost(flight);
    }

    fn timed_out(&mut self, flight: u32, again: bool) {
        self.reno.timed_out(flight, again);
    }

    fn limit(&mut self, most: u32) {
        self.reno.limit(most);
    }
}

impl Vegas {
    /// Expected less actual rate, by the base round trip: packets that this flow has in the queue.
    fn round_ends(&mut self, limited: bool) {
        let window = self.reno.cwnd();
        let (base, rtt) = (u128::from(self.base), u128::from(self.sum / Nanos::from(self.samples)));
        // All of it multiplied by the round trip, so that nothing is rounded.
        let queued = u128::from(window) * (rtt - base);
        if self.reno.in_slow_start() {
            if queued > GAMMA * rtt {
                let path = (u128::from(window) * base / rtt) as u32;
                self.reno.set(window.min(path + 1));
            }
        } else if queued < ALPHA * rtt && limited {
            self.reno.set(window + 1);
        } else if queued > BETA * rtt {
            self.reno.set(window - 1);
        }
    }
}
