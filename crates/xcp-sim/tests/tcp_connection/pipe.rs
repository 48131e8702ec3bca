//! A connection over a pipe with rate, delay and a script of what happens to each packet; checks
//! what must always hold after every event.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use xcp_model::units::Nanos;
use xcp_model::{
    Congestion, LossResponse, ReceiveWindow, Recovery, RtoPolicy, Tcp, WireFormat, XcpSender,
};
use xcp_sim::packet::{Body, Outbox, Packet, SackBlocks, SackId, Sacks};
use xcp_sim::tcp::{Receiver, ReceiverConfig, Sender, SenderConfig};

pub const MS: Nanos = 1_000_000;
pub const SEC: Nanos = 1000 * MS;

/// What the network does to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Pass,
    Lose,
    /// Delivered twice, the copy later by this much.
    Twice(Nanos),
    /// Delivered later by this much.
    Late(Nanos),
}

/// Decides; told whether it is the data direction, the packet, and how many went that way before.
pub type Script<'a> = Box<dyn FnMut(bool, &Packet, u64, Nanos) -> Fate + 'a>;

#[derive(Default)]
struct Queued {
    packets: Vec<Packet>,
    sacks: Sacks,
}

impl Outbox for Queued {
    fn send(&mut self, packet: &mut Packet) {
        self.packets.push(*packet);
    }
    fn sack(&mut self, blocks: SackBlocks) -> SackId {
        self.sacks.keep(blocks)
    }
}

enum Event {
    /// With its SACK blocks, if it is an acknowledgement: the packet only names them, and one that
    /// is doubled needs them twice.
    Arrives(Packet, SackBlocks),
    SenderTimer,
    ReceiverTimer,
}

/// An event at its time; those of one instant in the order they were made.
struct Due(Nanos, u64, Event);

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.0, other.1).cmp(&(self.0, self.1))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Due {}

/// A packet as it was sent.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub at: Nanos,
    pub packet: Packet,
    /// The sender's window and SRTT right after.
    pub cwnd: f64,
    pub srtt: Nanos,
}

impl Sent {
    pub fn is_data(&self) -> bool {
        matches!(self.packet.body, Body::Data { .. })
    }
}

/// The connection and its network.
pub struct Pipe<'a> {
    pub now: Nanos,
    pub sender: Sender,
    pub receiver: Receiver,
    pub delay: Nanos,
    /// Time a data packet takes on the wire; 0: as many at once as one likes.
    pub spacing: Nanos,
    /// Whether an XCP router is on the way, which marks every header and grants nothing.
    pub router: bool,
    /// Every packet sent, if wanted.
    pub log: Option<Vec<Sent>>,
    /// Segments that receive and send buffer allow to be outstanding.
    limit: u64,
    script: Script<'a>,
    free_at: Nanos,
    sent: [u64; 2],
    events: BinaryHeap<Due>,
    order: u64,
    /// The timers' pending events.
    alarms: [Nanos; 2],
    /// The sender's first unsent segment after the last event.
    nxt: u64,
    out: Queued,
}

pub fn settings(congestion: Congestion, recovery: Recovery) -> Tcp {
    Tcp {
        xcp_sender: XcpSender::Window,
        congestion,
        recovery,
        loss_response: LossResponse::None,
        paced: false,
        wire: WireFormat::Extended,
        bytes: None,
        receive_buffer: None,
        receive_buffer_changes: Vec::new(),
        receive_window: ReceiveWindow::Open,
        send_buffer: None,
        window_scaling: true,
        delayed_ack: false,
        handshake: false,
        initial_window: 2,
        rto_min: 200 * MS,
        rto_policy: RtoPolicy::BackOff,
        honest_window: true,
        ids: None,
    }
}

/// Bytes on the wire of the packets here.
pub const PACKET: u16 = 1500;

/// Bytes of `segments` full TCP segments.
pub fn bytes(tcp: &Tcp, segments: u64) -> u64 {
    segments * u64::from(SenderConfig::new(0, tcp, PACKET).payload)
}

impl<'a> Pipe<'a> {
    pub fn new(tcp: &Tcp, delay: Nanos, spacing: Nanos, script: Script<'a>) -> Self {
        Pipe {
            now: 0,
            sender: Sender::new(&SenderConfig::new(0, tcp, PACKET)),
            receiver: Receiver::new(&ReceiverConfig::new(0, tcp, PACKET)),
            delay,
            spacing,
            router: false,
            log: None,
            limit: u64::from(
                ReceiverConfig::new(0, tcp, PACKET)
                    .window
                    .min(SenderConfig::new(0, tcp, PACKET).send_buffer),
            ),
            script,
            free_at: 0,
            sent: [0; 2],
            events: BinaryHeap::new(),
            order: 0,
            alarms: [Nanos::MAX; 2],
            nxt: 0,
            out: Queued::default(),
        }
    }

    pub fn start(&mut self) {
        self.sender.start(self.now, &mut self.out);
        self.after();
    }

    fn push(&mut self, at: Nanos, event: Event) {
        self.events.push(Due(at, self.order, event));
        self.order += 1;
    }

    /// Moves what the endpoints sent into the network, sets their timers, checks invariants.
    fn after(&mut self) {
        for mut packet in std::mem::take(&mut self.out.packets) {
            let data = !matches!(packet.body, Body::Ack(_));
            let number = self.sent[usize::from(!data)];
            self.sent[usize::from(!data)] += 1;
            if let Some(log) = &mut self.log {
                log.push(Sent {
                    at: self.now,
                    packet,
                    cwnd: self.sender.cwnd_packets(),
                    srtt: self.sender.srtt(),
                });
            }
            let mut at = self.now + self.delay;
            if data && self.spacing > 0 {
                self.free_at = self.free_at.max(self.now) + self.spacing;
                at = self.free_at + self.delay;
            }
            if let (true, Body::Data { header, .. }) = (self.router, &mut packet.body) {
                header.flags |= xcp_engine::flags::MARK;
                header.feedback = 0;
            }
            let blocks = if let Body::Ack(ack) = &packet.body {
                self.out.sacks.take(ack.sack)
            } else {
                SackBlocks::default()
            };
            match (self.script)(data, &packet, number, self.now) {
                Fate::Pass => self.push(at, Event::Arrives(packet, blocks)),
                Fate::Lose => {}
                Fate::Late(by) => self.push(at + by, Event::Arrives(packet, blocks)),
                Fate::Twice(by) => {
                    self.push(at, Event::Arrives(packet, blocks));
                    self.push(at + by, Event::Arrives(packet, blocks));
                }
            }
        }
        // A timer that moves later leaves its event to go off early and be set anew.
        let (sender, receiver) = (self.sender.next_timer(), self.receiver.next_timer());
        if sender < self.alarms[0] {
            self.alarms[0] = sender;
            self.push(sender, Event::SenderTimer);
        }
        if receiver < self.alarms[1] {
            self.alarms[1] = receiver;
            self.push(receiver, Event::ReceiverTimer);
        }
        let (una, nxt) = self.sender.sequence();
        assert!(una <= nxt);
        assert!(self.sender.cwnd_packets() >= 1.0);
        assert!(nxt - una <= self.limit, "buffers allow {}, outstanding {}", self.limit, nxt - una);
        assert!(
            self.sender.outstanding() <= 2 * (nxt - una),
            "pipe counts a segment at most twice"
        );
        if nxt > self.nxt {
            let (pipe, cwnd) = (self.sender.outstanding(), self.sender.cwnd_packets());
            assert!(pipe as f64 <= cwnd, "{pipe} in the network, window {cwnd}");
        }
        self.nxt = nxt;
        if nxt > una {
            assert!(sender < Nanos::MAX, "data outstanding and no timer at {}", self.now);
        }
    }

    /// Runs until `until` or until nothing is left to happen. Returns whether something is.
    pub fn run(&mut self, until: Nanos) -> bool {
        while let Some(next) = self.events.peek() {
            if next.0 > until {
                self.now = until;
                return true;
            }
            let Due(at, _, event) = self.events.pop().expect("peeked");
            assert!(at >= self.now);
            self.now = at;
            match event {
                Event::Arrives(packet, blocks) => match &packet.body {
                    Body::Ack(ack) => self.sender.on_ack(at, &packet, ack, &blocks, &mut self.out),
                    _ => self.receiver.on_packet(at, &packet, &mut self.out),
                },
                Event::SenderTimer => {
                    if self.alarms[0] == at {
                        self.alarms[0] = Nanos::MAX;
                    }
                    self.sender.on_timer(at, &mut self.out);
                }
                Event::ReceiverTimer => {
                    if self.alarms[1] == at {
                        self.alarms[1] = Nanos::MAX;
                    }
                    self.receiver.on_timer(at, &mut self.out);
                }
            }
            self.after();
        }
        false
    }
}

/// Loses the first transmission of these segments.
pub fn lose_first(segments: &[u64]) -> Script<'static> {
    let segments = segments.to_vec();
    Box::new(move |_, packet, _, _| {
        let first = matches!(packet.body, Body::Data { retransmission: false, .. });
        if first && segments.contains(&packet.seq) { Fate::Lose } else { Fate::Pass }
    })
}
