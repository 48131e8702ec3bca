//! Sources of datagrams: UDP traffic that takes no notice of the network, when
//! [`xcp_elements::Datagrams`] says.

use xcp_elements as elements;
use xcp_model::UdpPattern;
use xcp_model::rng::Stream;
use xcp_model::units::Nanos;

use crate::packet::{Body, Packet};

/// IPv4 and UDP.
const HEADER_BYTES: u16 = 28;

/// A source.
#[derive(Debug)]
pub struct Datagrams {
    flow: u32,
    size: u16,
    body: Body,
    sent: u64,
    stopped: bool,
    times: elements::Datagrams,
}

impl Datagrams {
    /// A source of datagrams of `size` bytes on the wire, all with the same body.
    #[must_use]
    pub fn new(flow: u32, size: u16, body: Body, pattern: &UdpPattern, random: Stream) -> Self {
        let times = elements::Datagrams::new(size, pattern, random);
        Self { flow, size, body, sent: 0, stopped: false, times }
    }

    /// When the first datagram goes out, started at `now`; `None` if never.
    pub fn start(&mut self, now: Nanos) -> Option<Nanos> {
        self.times.start(now)
    }

    /// The datagram that goes out now, and when the next one does; nothing if the source was
    /// stopped meanwhile.
    pub fn send(&mut self, now: Nanos) -> Option<(Packet, Option<Nanos>)> {
        if self.stopped {
            return None;
        }
        let packet = Packet {
            seq: self.sent,
            timestamp: now,
            flow: self.flow,
            size: self.size,
            body: self.body,
        };
        self.sent += 1;
        Some((packet, self.times.next(now)))
    }

    /// Nothing is sent any more.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Payload of one datagram, bytes.
    #[must_use]
    pub fn payload(size: u16) -> u64 {
        u64::from(size.saturating_sub(HEADER_BYTES))
    }
}
