//! The two ends of a flow, TCP or UDP, and what is counted of it. The ends know nothing of each
//! other; in a run divided among processors they may be far apart.

use xcp_elements::{router_seed, start};
use xcp_model::record::{FlowGauge, Totals};
use xcp_model::rng::{Purpose, Stream};
use xcp_model::units::{NANOS_PER_SEC, Nanos};
use xcp_model::{self as model, Traffic, Unclaimed};

use crate::datagrams::Datagrams;
use crate::liar::{self, LyingReceiver, LyingSender};
use crate::packet::Body;
use crate::routing::Position;
use crate::tcp::{Receiver, ReceiverConfig, Sender, SenderConfig};

/// The end that sends.
#[derive(Debug)]
pub struct Sending {
    /// When it really starts, jitter included.
    pub start: Nanos,
    /// Where its packets' route begins.
    pub route: Position,
    /// Whether it has started.
    pub started: bool,
    /// Its group, by number.
    pub group: u32,
    /// What it is.
    pub source: Source,
}

/// What sends.
#[derive(Debug)]
pub enum Source {
    /// TCP.
    Tcp(Sender),
    /// TCP that lies, or believes what it should not.
    Liar(Box<LyingSender>),
    /// UDP.
    Udp(Datagrams),
}

/// The end that receives.
#[derive(Debug)]
pub struct Receiving {
    /// Where its acknowledgements' route begins.
    pub route: Position,
    /// Payload that had been delivered when the flow was told to stop, bytes.
    pub delivered_when_stopped: Option<u64>,
    /// What it is.
    pub sink: Sink,
}

/// What receives.
#[derive(Debug)]
pub enum Sink {
    /// TCP.
    Tcp(Receiver),
    /// TCP that returns what no router said.
    Liar(Box<LyingReceiver>),
    /// UDP.
    Udp {
        /// Payload that came through, bytes.
        delivered_bytes: u64,
        /// Payload of one datagram, bytes.
        payload: u64,
    },
}

impl Sending {
    /// Builds the sending end of flow number `index`.
    #[must_use]
    pub fn new(spec: &model::Flow, index: usize, group: u32, seed: u64, route: Position) -> Self {
        let (size, lies) = (spec.group.packet_bytes as u16, &spec.group.lies);
        let source = match &spec.traffic() {
            Traffic::Tcp(tcp) => {
                let mut config = SenderConfig::new(index as u32, tcp, size);
                if tcp.ids == Some(Unclaimed::Access) {
                    config.ids =
                        Some(xcp_engine::bottleneck_id(router_seed(seed, spec.group.route[0])));
                }
                match lies {
                    None => Source::Tcp(Sender::new(&config)),
                    Some(lies) => Source::Liar(Box::new(LyingSender::new(config, lies))),
                }
            }
            Traffic::Udp(pattern) => {
                let body = lies.as_ref().map_or(Body::Datagram, liar::datagram);
                let random = Stream::new(seed, Purpose::Datagrams, index);
                Source::Udp(Datagrams::new(index as u32, size, body, pattern, random))
            }
        };
        Self { start: start(spec, seed, index), route, started: false, group, source }
    }

    /// RTT samples taken so far.
    #[inline(always)]
    #[must_use]
    pub fn rtt_samples(&self) -> u64 {
        match &self.source {
            Source::Tcp(sender) => sender.rtt_samples(),
            Source::Liar(liar) => liar.honest().rtt_samples(),
            Source::Udp(_) => 0,
        }
    }
}

impl Receiving {
    /// Builds the receiving end of flow number `index`.
    #[must_use]
    pub fn new(spec: &model::Flow, index: usize, route: Position) -> Self {
        let size = spec.group.packet_bytes as u16;
        let sink = match &spec.traffic() {
            Traffic::Tcp(tcp) => {
                let receiver = Receiver::new(&ReceiverConfig::new(index as u32, tcp, size));
                match &spec.group.lies {
                    Some(lies) if lies.returns_bps.is_some() || lies.hides || lies.blames => {
                        Sink::Liar(Box::new(LyingReceiver::new(receiver, lies)))
                    }
                    _ => Sink::Tcp(receiver),
                }
            }
            Traffic::Udp(_) => Sink::Udp { delivered_bytes: 0, payload: Datagrams::payload(size) },
        };
        Self { route, delivered_when_stopped: None, sink }
    }

    /// Payload delivered in order, bytes.
    #[must_use]
    pub fn delivered_bytes(&self) -> u64 {
        match &self.sink {
            Sink::Tcp(receiver) => receiver.delivered_bytes(),
            Sink::Liar(liar) => liar.honest().delivered_bytes(),
            Sink::Udp { delivered_bytes, .. } => *delivered_bytes,
        }
    }
}

/// A flow, to look at.
#[derive(Debug, Clone, Copy)]
pub struct Flow<'a> {
    /// The end that sends.
    pub sending: &'a Sending,
    /// The end that receives.
    pub receiving: &'a Receiving,
}

impl Flow<'_> {
    fn sender(&self) -> Option<&Sender> {
        match &self.sending.source {
            Source::Tcp(sender) => Some(sender),
            Source::Liar(liar) => Some(liar.honest()),
            Source::Udp(_) => None,
        }
    }
}

impl FlowGauge for Flow<'_> {
    fn start(&self) -> Nanos {
        self.sending.start
    }

    fn totals(&self) -> Totals {
        let delivered_bytes = self.receiving.delivered_bytes();
        let delivered = Totals {
            delivered_bytes,
            delivered_while_active: self
                .receiving
                .delivered_when_stopped
                .unwrap_or(delivered_bytes),
            ..Totals::default()
        };
        self.sender().map_or(delivered, |sender| Totals {
            retransmits: sender.retransmits(),
            timeouts: sender.timeouts(),
            rtt_sum: sender.rtt_sum(),
            rtt_samples: sender.rtt_samples(),
            ..delivered
        })
    }

    fn cwnd_packets(&self) -> Option<f64> {
        self.sender().map(Sender::cwnd_packets)
    }

    fn srtt_seconds(&self) -> Option<f64> {
        self.sender()
            .map(Sender::srtt)
            .filter(|&srtt| srtt > 0)
            .map(|srtt| srtt as f64 / NANOS_PER_SEC as f64)
    }

    fn completed_at(&self) -> Option<Nanos> {
        self.sender().and_then(Sender::completed_at)
    }
}
