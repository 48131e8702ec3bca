//! Pacing: one packet per SRTT/cwnd, the window taken with its fraction.
//!
//! 1. Burst allowance: none. Time in which nothing was sent (the window was full, a buffer was
//!    empty) earns no credit: after it one packet goes at once and the next a whole gap later.
//!    Linux allows a few packets or a millisecond's worth, for its timers' sake.
//! 2. The gap is worked out anew whenever an ACK has changed window or SRTT, from the time of the
//!    last packet: a packet already waiting moves.
//! 3. While no RTT is known (a connection without handshake, until its first ACK) there is nothing
//!    to pace by, and the first window is a burst.
//! 4. The gain is 1 always, as XCP wants it. Linux paces TCP at 2 in slow start and 1.2 after; here
//!    paced slow start therefore grows by 1.76 per round trip instead of 2: the root of x =
//!    exp(1/x).
//! 5. A congestion control that has a rate of its own sends at that, whatever the scenario says of
//!    pacing.
//! 6. The first retransmission after a timeout or three duplicate ACKs does not wait, but the next
//!    packet keeps its distance from it.

use super::congestion::{Congestion, Control};
use xcp_model::units::{NANOS_PER_SEC, Nanos};

/// When the next packet may go.
#[derive(Debug, Clone)]
pub(super) struct Pacer {
    /// Whether the scenario wants it.
    wanted: bool,
    enabled: bool,
    /// When the last packet went.
    last: Nanos,
    /// Current gap; 0 while no RTT is known.
    gap: Nanos,
}

impl Pacer {
    pub fn new(enabled: bool) -> Self {
        Pacer { wanted: enabled, enabled, last: 0, gap: 0 }
    }

    pub fn enabled(&self) -> bool {
        self.enabled
    }

    /// Window (packets), rate or SRTT have changed.
    pub fn plan(&mut self, srtt: Nanos, congestion: &Congestion) {
        let rate = congestion.pacing_rate();
        self.enabled = self.wanted || rate.is_some();
        if let Some(rate) = rate {
            self.gap = (NANOS_PER_SEC as f64 / rate) as Nanos;
        } else if self.wanted {
            // `as` saturates; a window is never below one packet, so the gap is at most one SRTT.
            self.gap = (srtt as f64 / congestion.window().max(1.0)) as Nanos;
        }
    }

    /// The earliest time for the next packet.
    pub fn next(&self) -> Nanos {
        self.last.saturating_add(self.gap)
    }

    /// A packet goes now.
    pub fn sent(&mut self, now: Nanos) {
        self.last = now;
    }
}
