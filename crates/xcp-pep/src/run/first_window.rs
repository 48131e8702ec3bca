//! The first window of what this gateway sends across the long link. It is the router there and knows how many connections share the link: all that begin
//! in the same round trip get a quarter of what the link carries in one. So a page needs no slow start where nobody else is, and a thousand connections
//! at once have the window that TCP would have (RFC 6928).

use std::os::fd::AsFd as _;

use xcp_linux::endpoint::{Ask, Endpoint};

use crate::worker::Listener;

/// RFC 6928.
const LEAST: u32 = 10;
/// What a client's first receive buffer takes.
const MOST: u32 = 64;
const PACKET_BITS: u128 = 1514 * 8;

/// Chooses them.
#[derive(Debug)]
pub(super) struct FirstWindow {
    /// A quarter of what the link carries in a round trip, packets.
    share: u32,
    listeners: Vec<Listener>,
    now: u32,
}

impl FirstWindow {
    /// Of the listeners for what comes across the link: there, this gateway is the sender of answers.
    pub fn new(rate_bps: u64, rtt_ns: u64, listeners: Vec<Listener>) -> Self {
        let packets = u128::from(rate_bps) * u128::from(rtt_ns) / 1_000_000_000 / PACKET_BITS;
        Self { share: u32::try_from(packets / 4).unwrap_or(u32::MAX), listeners, now: LEAST }
    }

    /// What a connection gets where there are so many.
    fn among(&self, active: usize) -> u32 {
        (self.share / u32::try_from(active.max(1)).unwrap_or(u32::MAX)).clamp(LEAST, MOST)
    }

    /// Tells the listeners, if it has changed by much.
    pub fn tell(&mut self, endpoint: &Endpoint, active: usize) {
        let window = self.among(active);
        if window.abs_diff(self.now) * 4 <= self.now {
            return;
        }
        self.now = window;
        for listener in &self.listeners {
            if let Err(why) = endpoint.ask(listener.socket.as_fd(), &Ask { initial_window: window, ..Ask::default() }) {
                tracing::debug!(%why, "first windows stay as they are");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_together_get_a_quarter_of_a_round_trip_and_nobody_less_than_tcp() {
        let windows = FirstWindow::new(20_000_000, 600_000_000, Vec::new());
        assert_eq!(windows.share, 247);
        assert_eq!([0, 1, 4, 10, 1000].map(|active| windows.among(active)), [64, 64, 61, 24, 10]);
        assert_eq!(FirstWindow::new(1_000_000, 10_000_000, Vec::new()).among(1), 10);
    }
}
