//! Slow start and congestion avoidance (RFC 5681 §3.1).
//!
//! Where it differs:
//! 1. Growth counts segments acknowledged, not ACKs, as Linux does (and RFC 3465 in spirit, without
//!    its limit L = 2 in slow start): slow start doubles and congestion avoidance adds one packet
//!    per round trip with delayed ACKs too. RFC 5681 allows at most one SMSS per ACK.
//! 2. The window is in packets, and only grows while it is the window that limits the sender
//!    (Linux; RFC 7661's concern).
//! 3. The initial slow start threshold is without bound; §3.1 wants it "arbitrarily high".
//! 4. A window is halved from FlightSize or cwnd, whichever is less: limited transmit's segments
//!    and inflation do not count (§3.2 step 2).

use super::{Acked, Control, MAX_WINDOW};
use crate::tcp::SenderConfig;

/// Window in whole packets.
#[derive(Debug, Clone)]
pub(in crate::tcp) struct Reno {
    cwnd: u32,
    ssthresh: u32,
    /// Segments acknowledged since congestion avoidance last added one to the window.
    credit: u32,
}

impl Control for Reno {
    fn new(config: &SenderConfig) -> Self {
        Self::with_window(config.initial_window)
    }

    #[inline]
    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    #[inline]
    fn acked(&mut self, ack: &Acked) {
        if ack.limited && !ack.recovering {
            self.grow(ack.segments);
        }
    }

    fn lost(&mut self, flight: u32) {
        // RFC 5681 §3.1 (4).
        self.ssthresh = (flight / 2).max(2);
        self.cwnd = self.ssthresh;
        self.credit = 0;
    }

    fn limit(&mut self, most: u32) {
        self.cwnd = self.cwnd.min(most);
    }

    fn timed_out(&mut self, flight: u32, again: bool) {
        // RFC 5681 §3.1: the threshold is held when the same segment times out again.
        if !again {
            self.ssthresh = (flight / 2).max(2);
        }
        self.cwnd = 1;
        self.credit = 0;
    }
}

impl Reno {
    fn with_window(initial: u32) -> Self {
        Reno { cwnd: initial.min(MAX_WINDOW), ssthresh: u32::MAX, credit: 0 }
    }

    /// Whether the window is below the threshold of slow start.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Sets the window, two packets at least, and ends slow start.
    pub fn set(&mut self, cwnd: u32) {
        self.cwnd = cwnd.clamp(2, MAX_WINDOW);
        self.ssthresh = self.cwnd;
    }

    #[inline]
    fn grow(&mut self, mut segments: u32) {
        if self.cwnd < self.ssthresh {
            let step = segments.min(self.ssthresh - self.cwnd);
            self.cwnd += step;
            segments -= step;
        }
        if segments > 0 {
            self.credit += segments;
            while self.credit >= self.cwnd {
                self.credit -= self.cwnd;
                self.cwnd += 1;
            }
        }
        self.cwnd = self.cwnd.min(MAX_WINDOW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_per_window_then_adds_one_per_window() {
        let mut reno = Reno::with_window(2);
        for window in [2, 4, 8] {
            assert_eq!(reno.cwnd(), window);
            reno.grow(window);
        }
        reno.lost(16);
        for window in [8, 9, 10, 11] {
            assert_eq!(reno.cwnd(), window);
            (0..window).for_each(|_| reno.grow(1));
        }
    }

    #[test]
    fn a_second_timeout_for_the_same_segment_keeps_the_threshold() {
        let mut reno = Reno::with_window(40);
        reno.timed_out(40, false);
        reno.timed_out(1, true);
        assert_eq!((reno.cwnd(), reno.ssthresh), (1, 20));
        reno.grow(25);
        assert_eq!(
            (reno.cwnd(), reno.credit),
            (20, 6),
            "slow start ends at the threshold, the rest counts towards avoidance"
        );
    }
}
