//! What a receiver advertises where that is not its whole buffer from the start: a window that
//! opens with the acknowledgements, and a buffer whose size changes.
//!
//! 1. Linux's receiver of 2005 begins with four packets and adds two with each acknowledgement
//!    ("An implementation and experimental study of the eXplicit Control Protocol", "Increasing the
//!    advertised window"). That it adds less while memory is short is not modelled.
//! 2. The study's own receiver adds the integer part of the feedback that it returns. What is left
//!    of a packet is kept for the next acknowledgement here: dropped each time, the window would
//!    stay behind the sender's wherever feedback comes in parts of a packet.
//! 3. The right edge never moves back (RFC 7323 §2.4): where the buffer shrinks, the window does as
//!    data arrive.

use xcp_engine::ReturnHeader;
use xcp_model::ReceiveWindow;
use xcp_model::units::Nanos;

/// The first window of one that opens, segments.
pub const FIRST: u32 = 4;

/// The window of a receiver that does not simply advertise its buffer.
#[derive(Debug, Clone)]
pub struct Opening {
    growth: ReceiveWindow,
    /// Segments that the buffer holds.
    buffer: u32,
    /// Segments that the window has opened to.
    opened: u32,
    /// Part of a segment that feedback has granted beyond `opened`.
    part: f64,
    /// End of what has been advertised.
    edge: u64,
    /// Sizes that the buffer takes later, the next one last.
    changes: Vec<(Nanos, u32)>,
}

impl Opening {
    /// The window of a buffer of that many segments; `None` where it is the buffer, always.
    #[must_use]
    pub fn new(growth: ReceiveWindow, buffer: u32, changes: &[(Nanos, u32)]) -> Option<Self> {
        let opened = match growth {
            ReceiveWindow::Open if changes.is_empty() => return None,
            ReceiveWindow::Open => u32::MAX,
            ReceiveWindow::TwoPerAck | ReceiveWindow::Feedback => FIRST,
        };
        let changes = changes.iter().rev().copied().collect();
        Some(Self { growth, buffer, opened, part: 0.0, edge: 0, changes })
    }

    /// The window of an acknowledgement of all before segment `nxt` that returns this feedback.
    pub fn advertise(&mut self, now: Nanos, nxt: u64, returned: &ReturnHeader) -> u32 {
        while let Some((_, buffer)) = self.changes.pop_if(|(at, _)| *at <= now) {
            self.buffer = buffer;
        }
        let growth = match self.growth {
            ReceiveWindow::Open => 0,
            ReceiveWindow::TwoPerAck => 2,
            ReceiveWindow::Feedback => {
                self.part += returned.feedback_value().max(0.0);
                let whole = self.part.floor();
                self.part -= whole;
                // A code of the format is below 2^28 packets.
                whole as u32
            }
        };
        if self.opened < self.buffer {
            self.opened = self.opened.saturating_add(growth).min(self.buffer);
        }
        let promised = self.edge.saturating_sub(nxt).min(u64::from(u32::MAX)) as u32;
        let window = self.opened.min(self.buffer).max(promised);
        self.edge = nxt.saturating_add(u64::from(window));
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xcp_engine::WireFormat;

    const NONE: ReturnHeader =
        ReturnHeader { feedback: 0, flags: 0, wait: 0, next_bottleneck_id: 0 };

    #[test]
    fn a_buffer_that_stays_needs_nothing() {
        assert!(Opening::new(ReceiveWindow::Open, 40, &[]).is_none());
    }

    #[test]
    fn a_window_opens_to_its_buffer_and_no_further() {
        let mut two = Opening::new(ReceiveWindow::TwoPerAck, 9, &[]).unwrap();
        let windows: Vec<u32> = (0..4).map(|nxt| two.advertise(0, nxt, &NONE)).collect();
        assert_eq!(windows, [6, 8, 9, 9]);
    }

    /// Three eighths of a packet, ten times, are three packets.
    #[test]
    fn parts_of_a_packet_add_up() {
        let mut window = Opening::new(ReceiveWindow::Feedback, 40, &[]).unwrap();
        let some = ReturnHeader::encode(WireFormat::Classic, 0.375, true);
        let less = ReturnHeader::encode(WireFormat::Classic, -2.0, true);
        let last = (0..10).map(|_| window.advertise(0, 0, &some)).last();
        assert_eq!((last, window.advertise(0, 0, &less)), (Some(7), 7));
    }

    /// What has been advertised stays so; a smaller buffer shows as data arrive.
    #[test]
    fn the_right_edge_never_moves_back() {
        let mut window = Opening::new(ReceiveWindow::Open, 40, &[(5, 10), (9, 100)]).unwrap();
        let seen: Vec<u32> = [(4, 0), (5, 1), (6, 20), (7, 38), (9, 38)]
            .map(|(now, nxt)| window.advertise(now, nxt, &NONE))
            .to_vec();
        assert_eq!(seen, [40, 39, 20, 10, 100]);
    }
}
