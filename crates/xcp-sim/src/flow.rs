//! A flow at both its ends, TCP or UDP, and what is counted of it.

use xcp_scenario::model::{self, Traffic};
use xcp_scenario::units::{NANOS_PER_SEC, Nanos};

use crate::datagrams::Datagrams;
use crate::rng::{Purpose, Stream};
use crate::tcp::{Receiver, ReceiverConfig, Sender, SenderConfig};

/// A flow.
#[derive(Debug)]
pub struct Flow {
    /// When it really starts, jitter included.
    pub start: Nanos,
    /// Whether it has started.
    pub started: bool,
    /// Payload that had been delivered when it was told to stop, bytes.
    pub delivered_when_stopped: Option<u64>,
    /// Its endpoints.
    pub ends: Ends,
}

/// The two endpoints.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all flows are TCP, and a box would cost a cache miss a packet")]
pub enum Ends {
    /// A TCP connection.
    Tcp {
        /// Sends data.
        sender: Sender,
        /// Acknowledges it.
        receiver: Receiver,
    },
    /// UDP.
    Udp {
        /// Sends datagrams.
        source: Datagrams,
        /// Payload that came through, bytes.
        delivered_bytes: u64,
        /// Payload of one datagram, bytes.
        payload: u64,
    },
}

/// What a flow has counted since the beginning of the run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Payload delivered in order, bytes.
    pub delivered_bytes: u64,
    /// The same without what came after the flow had been told to stop.
    pub delivered_while_active: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Sum of the RTT samples, nanoseconds.
    pub rtt_sum: u128,
    /// Number of RTT samples.
    pub rtt_samples: u64,
}

impl Flow {
    /// Builds flow number `index` of a scenario.
    #[must_use]
    pub fn new(spec: &model::Flow, index: usize, seed: u64) -> Self {
        let number = index as u32;
        let size = spec.group.packet_bytes as u16;
        let start = spec.start + Stream::new(seed, Purpose::Start, index).below(spec.group.start_jitter);
        let ends = match &spec.traffic() {
            Traffic::Tcp(tcp) => Ends::Tcp {
                sender: Sender::new(&SenderConfig::new(number, tcp, size)),
                receiver: Receiver::new(&ReceiverConfig::new(number, tcp, size)),
            },
            Traffic::Udp(pattern) => Ends::Udp {
                source: Datagrams::new(number, size, pattern, Stream::new(seed, Purpose::Datagrams, index)),
                delivered_bytes: 0,
                payload: Datagrams::payload(size),
            },
        };
        Self { start, started: false, delivered_when_stopped: None, ends }
    }

    /// Counters so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let totals = match &self.ends {
            Ends::Tcp { sender, receiver, .. } => Totals {
                delivered_bytes: receiver.delivered_bytes(),
                delivered_while_active: 0,
                retransmits: sender.retransmits(),
                timeouts: sender.timeouts(),
                rtt_sum: sender.rtt_sum(),
                rtt_samples: sender.rtt_samples(),
            },
            Ends::Udp { delivered_bytes, .. } => Totals { delivered_bytes: *delivered_bytes, ..Totals::default() },
        };
        Totals { delivered_while_active: self.delivered_when_stopped.unwrap_or(totals.delivered_bytes), ..totals }
    }

    /// Congestion window now, packets; `None` for a flow without one.
    #[must_use]
    pub fn cwnd_packets(&self) -> Option<f64> {
        match &self.ends {
            Ends::Tcp { sender, .. } => Some(sender.cwnd_packets()),
            Ends::Udp { .. } => None,
        }
    }

    /// Smoothed RTT now, seconds; `None` before the first sample.
    #[must_use]
    pub fn srtt_seconds(&self) -> Option<f64> {
        match &self.ends {
            Ends::Tcp { sender, .. } if sender.srtt() > 0 => Some(sender.srtt() as f64 / NANOS_PER_SEC as f64),
            _ => None,
        }
    }

    /// When a finite transfer was completely acknowledged.
    #[must_use]
    pub fn completed_at(&self) -> Option<Nanos> {
        match &self.ends {
            Ends::Tcp { sender, .. } => sender.completed_at(),
            Ends::Udp { .. } => None,
        }
    }
}
