//! A transmitter that has to be given its turn: what waits there, and which packet is next.
//!
//! A line of constant rate with one first-in-first-out queue knows every departure at the arrival
//! (`link.rs`). Where stations share a medium, or a link has a queue for each of two classes, when
//! a packet leaves depends on what comes after it. Such a link's packets wait here instead, until
//! `medium.rs` says that it is the station's turn.
//!
//! Two classes, XCP's packets (data with a header, acknowledgements with one) and all others, each
//! have a line that is first in, first out and may grow to the queue's limit. One class goes before
//! the other, or both have their shares: start-time fair queueing (Goyal, Vin & Cheng 1996) with
//! weights, by bytes; a class leaves to the other what it does not use.

use std::collections::VecDeque;

use xcp_elements::Backlog;
use xcp_model::Others;
use xcp_model::units::Nanos;

use crate::fifo::Transit;
use crate::packet::{Class, Packet};

/// A link's transmitter, and what waits for it.
#[derive(Debug)]
pub struct Station {
    /// Its medium, by its number in the region.
    pub medium: usize,
    /// Until when it sends.
    pub sending_until: Nanos,
    /// It does not try before this: it backs off from a collision, or yields.
    pub ready_at: Nanos,
    /// Whether it leaves a slot to others after each packet.
    pub yields: bool,
    /// How often its next packet has collided.
    pub collisions: u32,
    /// XCP's and the others', or all in the first.
    lines: [Line; 2],
    order: Order,
    /// Start tag of the packet that was sent last.
    virtual_time: u64,
}

/// Packets of a class.
#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Transit>,
    bytes: u64,
    /// Finish tag of the packet that was sent last.
    finish: u64,
    /// What a byte takes of virtual time.
    pace: u64,
}

/// Which line is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// There is one line.
    One,
    /// This one, while it has packets.
    First(usize),
    /// The one whose next packet has the smaller start tag.
    Fair,
}

/// Virtual time that a byte takes of a class that has all of the link.
const PACE: f64 = 65_536.0;

impl Station {
    /// A station of a medium, with these classes; `yields`: it leaves a slot after each packet.
    #[must_use]
    pub fn new(medium: usize, others: Others, yields: bool) -> Self {
        let (order, share) = match others {
            Others::Shared => (Order::One, 0.5),
            Others::Last => (Order::First(0), 0.5),
            Others::First => (Order::First(1), 0.5),
            Others::Fair { share } | Others::Split { share } => (Order::Fair, share),
        };
        let line = |share: f64| Line { pace: (PACE / share) as u64, ..Line::default() };
        Self {
            medium,
            sending_until: 0,
            ready_at: 0,
            yields,
            collisions: 0,
            lines: [line(share), line(1.0 - share)],
            order,
            virtual_time: 0,
        }
    }

    /// The line of a packet.
    #[must_use]
    pub fn line(&self, packet: &mut Packet) -> usize {
        usize::from(self.order != Order::One && matches!(packet.class(), Class::Other))
    }

    /// What waits in a line.
    #[must_use]
    pub fn backlog(&self, line: usize) -> Backlog {
        let Line { waiting, bytes, .. } = &self.lines[line];
        Backlog { packets: waiting.len() as u64, bytes: *bytes }
    }

    /// What waits in all lines.
    #[must_use]
    pub fn waiting(&self) -> Backlog {
        let [a, b] = [self.backlog(0), self.backlog(1)];
        Backlog { packets: a.packets + b.packets, bytes: a.bytes + b.bytes }
    }

    /// A packet joins a line.
    pub fn push(&mut self, line: usize, transit: Transit) {
        let line = &mut self.lines[line];
        line.bytes += u64::from(transit.packet.size);
        line.waiting.push_back(transit);
    }

    /// When it may try next; `None` where nothing waits.
    #[must_use]
    pub fn tries_at(&self) -> Option<Nanos> {
        (self.waiting().packets > 0).then_some(self.ready_at)
    }

    /// The next packet, if there is one.
    pub fn take(&mut self) -> Option<Transit> {
        let next = match self.order {
            Order::One => 0,
            Order::First(line) if self.lines[line].waiting.is_empty() => 1 - line,
            Order::First(line) => line,
            Order::Fair => self.fair(),
        };
        let line = &mut self.lines[next];
        let transit = line.waiting.pop_front()?;
        line.bytes -= u64::from(transit.packet.size);
        // A line that had run dry does not save up.
        let start = line.finish.max(self.virtual_time);
        line.finish = start + u64::from(transit.packet.size) * line.pace;
        self.virtual_time = start;
        Some(transit)
    }

    fn fair(&self) -> usize {
        let tag = |line: usize| {
            let line = &self.lines[line];
            if line.waiting.is_empty() { u64::MAX } else { line.finish.max(self.virtual_time) }
        };
        usize::from(tag(1) < tag(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ack, Body};
    use proptest::prelude::*;
    use xcp_engine::{ForwardHeader, ReturnHeader, WireFormat};

    fn packet(xcp: bool, size: u16) -> Packet {
        let header = if xcp {
            ForwardHeader::encode(WireFormat::Extended, 1, 1.0, 0.0)
        } else {
            ForwardHeader::default()
        };
        Packet { size, body: Body::Data { header, retransmission: false }, ..Packet::default() }
    }

    fn join(station: &mut Station, mut packet: Packet) {
        let line = station.line(&mut packet);
        station.push(line, Transit { packet, ..Transit::default() });
    }

    fn is_xcp(transit: &mut Transit) -> bool {
        !matches!(transit.packet.class(), Class::Other)
    }

    #[test]
    fn acknowledgements_with_a_header_are_xcps() {
        let station = Station::new(0, Others::First, false);
        let ack = |returned| Packet {
            body: Body::Ack(Ack { returned, ..Ack::default() }),
            ..Packet::default()
        };
        assert_eq!(
            station.line(&mut ack(ReturnHeader::encode(WireFormat::Classic, 0.0, false))),
            0
        );
        assert_eq!(station.line(&mut ack(ReturnHeader::default())), 1);
        assert_eq!(station.line(&mut Packet::default()), 1);
        assert_eq!(Station::new(0, Others::Shared, false).line(&mut Packet::default()), 0);
    }

    proptest! {
        /// Nothing is lost or made, and each class keeps its order.
        #[test]
        fn a_class_is_first_in_first_out(
            others in prop::sample::select(vec![Others::Shared, Others::First, Others::Last, Others::Fair { share: 0.3 }]),
            steps in prop::collection::vec((any::<bool>(), any::<bool>(), 64u16..1500), 1..200),
        ) {
            let mut station = Station::new(0, others, false);
            let (mut came, mut went) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
            let mut bytes = 0u64;
            for (serial, (comes, xcp, size)) in steps.into_iter().enumerate() {
                if comes {
                    join(&mut station, Packet { seq: serial as u64, ..packet(xcp, size) });
                    came[usize::from(xcp)].push(serial as u64);
                    bytes += u64::from(size);
                } else if let Some(mut transit) = station.take() {
                    bytes -= u64::from(transit.packet.size);
                    went[usize::from(is_xcp(&mut transit))].push(transit.packet.seq);
                }
                prop_assert_eq!(station.waiting().bytes, bytes);
            }
            while let Some(mut transit) = station.take() {
                went[usize::from(is_xcp(&mut transit))].push(transit.packet.seq);
            }
            prop_assert_eq!(came, went);
            prop_assert_eq!((station.waiting(), station.tries_at()), (Backlog::default(), None));
        }

        /// While both have packets each gets its share of the bytes, to within the two largest
        /// packets; whoever was idle before has saved up nothing.
        #[test]
        fn fair_shares_are_of_bytes(
            share in 0.05f64..0.95,
            sizes in prop::array::uniform2(64u16..=1500),
            idle in 0usize..50,
            served in 100usize..400,
        ) {
            let mut station = Station::new(0, Others::Fair { share }, false);
            (0..500 + idle).for_each(|_| join(&mut station, packet(true, sizes[0])));
            for _ in 0..idle {
                station.take();
            }
            (0..500).for_each(|_| join(&mut station, packet(false, sizes[1])));
            let mut sent = [0.0f64; 2];
            for _ in 0..served {
                let mut transit = station.take().unwrap();
                sent[usize::from(!is_xcp(&mut transit))] += f64::from(transit.packet.size);
            }
            let behind = (sent[0] / share - sent[1] / (1.0 - share)).abs();
            let largest = f64::from(sizes[0]) / share + f64::from(sizes[1]) / (1.0 - share);
            // A pace is a whole number, less than one below what it should be for each byte.
            let rounding = sent[0].max(sent[1]) / PACE;
            prop_assert!(behind <= largest + rounding + 1.0, "{sent:?}");
        }
    }

    #[test]
    fn the_first_class_goes_first() {
        for (others, xcp_first) in [(Others::Last, true), (Others::First, false)] {
            let mut station = Station::new(0, others, false);
            for xcp in [false, true, false, true] {
                join(&mut station, packet(xcp, 100));
            }
            let order: Vec<bool> =
                std::iter::from_fn(|| station.take()).map(|mut t| is_xcp(&mut t)).collect();
            assert_eq!(order, [xcp_first, xcp_first, !xcp_first, !xcp_first]);
        }
    }
}
