//! What is to be built for a scenario: namespaces, cables, queues, delay lines, addresses, routes,
//! sockets' settings. Worked out beforehand and without touching the system, so that what cannot be
//! built is refused before anything is, and the whole can be looked at as a text.
//!
//! ```text
//!   node's namespace                    the wire's namespace                node's namespace
//!   ┌──────┐ veth  htb + pfifo  veth ┌───────────────────────┐ veth     veth ┌──────┐
//!   │  S   ├─l0───────────────────l0a┤ line there and back:  ├l0b──────────l0┤  D   │
//!   └──┬───┘                         │ delay, loss, blackout │               └──────┘
//!     hub                            └───────────────────────┘
//!      │ veth
//!   ┌─host─┐ sockets of flows that begin at S
//!   └──────┘
//! ```
//!
//! 1. A link without delay and loss is one cable, node to node.
//! 2. What sends data has a namespace of its own before its node's (`hub`): a sending socket is
//!    charged for packets that wait in a queue of its own namespace, and holds back before that
//!    queue is full ("TCP small queues"). Behind a cable the packets are the node's.
//! 3. Losses before a queue strike on the way to a gate: a namespace with nothing but the link's
//!    queue, between the node and the link.

mod flows;
mod show;
#[cfg(test)]
mod tests;
mod topology;
mod ways;

use std::net::IpAddr;

use xcp_linux::qdisc;
use xcp_model::steps::Steps;
use xcp_model::units::{Nanos, Period};
use xcp_model::{Direction, DirectionId, Limit, Loss, NodeId, Reorder, Scenario, Tcp, UdpPattern};

use crate::LabError;

/// Index into [`Plan::spaces`].
pub(crate) type SpaceId = usize;
/// Index into [`Plan::devices`].
pub(crate) type DeviceId = usize;
/// Index into [`Plan::ways`].
pub(crate) type WayId = usize;

/// Links faster than this are not shaped: this is beyond what a queue of the kernel's, a line or a
/// processor keep up with.
pub(crate) const FASTEST_SHAPED_BPS: u64 = 40_000_000_000;
/// Namespaces beyond this take longer to make than anybody waits.
const MOST_NODES: usize = 250;
/// Every flow has a port of its own.
const MOST_FLOWS: usize = 20_000;
/// What a line carries: its MTU is at most 65000.
const LARGEST_PACKET: u32 = 65_014;
/// Port of the first flow, at both ends.
const FIRST_PORT: u16 = 20_000;
/// Name of the cables between a node and its host.
const HUB: &str = "hub";

/// Internet protocol of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Family {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Bytes of Ethernet's and IP's headers.
    pub(crate) fn frame_bytes(self) -> u32 {
        14 + match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}

/// What the machine has, as far as plans depend on it.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    /// Congestion controls of the kernel.
    pub congestions: Vec<String>,
    /// Whether the least retransmission timeout can be set (Linux 6.11).
    pub rto_min: bool,
    /// Internet protocol to use.
    pub family: Family,
    /// Whether packets of several segments are wanted: [`crate::Options::offload`].
    pub offload: bool,
}

/// A host may send this long at the slowest link's rate in one piece: segment by segment, a gigabit
/// is more than two processors' work.
const BURST: Nanos = 100_000;
/// At the most this many segments.
const MOST_SEGMENTS: u32 = 16;

/// All of it.
#[derive(Debug)]
pub(crate) struct Plan {
    pub family: Family,
    /// Of every device, bytes.
    pub mtu: u32,
    /// Segments that sockets may hand down in one packet; `None`: as many as the kernel likes,
    /// where no queue counts them and no line carries them.
    pub segments: Option<u32>,
    /// Whether queues' devices cut them up (and nothing is put together), instead of leaving that
    /// to a line, if one follows.
    pub cut: bool,
    pub spaces: Vec<Space>,
    pub devices: Vec<Device>,
    /// Pairs of devices.
    pub cables: Vec<[DeviceId; 2]>,
    /// (a device, what is at the other end of its link: the device whose address frames sent there
    /// bear)
    pub neighbours: Vec<(DeviceId, DeviceId)>,
    pub shapers: Vec<Shaper>,
    pub lines: Vec<Line>,
    /// How each link direction is measured.
    pub meters: Vec<Meter>,
    pub ways: Vec<Way>,
    pub routes: Vec<Route>,
    pub flows: Vec<FlowPlan>,
    /// What Linux does differently from what the scenario asks for.
    pub notes: Vec<String>,
}

/// A network namespace.
#[derive(Debug)]
pub(crate) struct Space {
    pub role: Role,
    /// For messages and thread names.
    pub name: String,
    /// Whether its TCP uses SACK; `None` where it has no TCP.
    pub sack: Option<bool>,
    /// Most that its connections can have on the way, bytes: what their paths and queues hold.
    pub in_flight: u64,
}

/// What a namespace is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A node of the scenario.
    Node,
    /// Where the sockets of a node are that sends data.
    Host,
    /// Where a link's queue is, when packets are lost before it.
    Gate,
    /// Where the lines are.
    Wire,
}

/// One end of a cable.
#[derive(Debug)]
pub(crate) struct Device {
    pub space: SpaceId,
    pub name: String,
}

/// A queue of the kernel's, at a device.
#[derive(Debug)]
pub(crate) struct Shaper {
    pub direction: DirectionId,
    pub device: DeviceId,
    /// Bit/s, by the scenario's time.
    pub rates: Steps,
    pub limit: Limit,
    /// Whether an XCP router sits before it.
    pub router: bool,
    /// Whether XCP's packets and all others wait apart, and whose turn it is.
    pub others: Option<qdisc::Others>,
}

/// A line in the wire's namespace, one way.
#[derive(Debug)]
pub(crate) struct Line {
    pub direction: DirectionId,
    pub input: DeviceId,
    pub output: DeviceId,
    /// By when a frame is sent, in the scenario's time.
    pub delays: Steps,
    pub losses: Vec<Loss>,
    /// Whether it leads to the queue, and has the losses before it; else it leads away from it.
    pub before_queue: bool,
    pub blackouts: Vec<Period>,
    /// Not of a line before the queue.
    pub reorder: Option<Reorder>,
    /// Whether the line is queue and transmitter, too (RED, which the kernel may lack).
    pub queue: bool,
}

/// Where a link direction's packets are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meter {
    /// Number of the shaper.
    Shaper(usize),
    /// Number of the line whose queue it is.
    Line(usize),
    /// The device; there is no queue.
    Device(DeviceId),
}

/// A pair of addresses between which data and acknowledgements take one path each. Flows share it
/// when they share paths, and what Linux knows only of destinations.
#[derive(Debug)]
pub(crate) struct Way {
    /// Namespace and address of what sends data.
    pub source: (SpaceId, IpAddr),
    /// Namespace and address of what receives it.
    pub destination: (SpaceId, IpAddr),
    key: ways::Key,
}

/// A route: in a namespace, what is for this address leaves by that device.
#[derive(Debug)]
pub(crate) struct Route {
    pub space: SpaceId,
    pub to: IpAddr,
    pub device: DeviceId,
    /// First window of connections to there, where it is not the kernel's own.
    pub initial_window: Option<u32>,
    /// Whether every segment from there is acknowledged at once.
    pub quick_ack: bool,
}

/// A flow's sockets.
#[derive(Debug)]
pub(crate) struct FlowPlan {
    pub way: WayId,
    /// At both ends.
    pub port: u16,
    /// When it really starts, jitter included; `None` if jitter moved that beyond its stop.
    pub start: Option<Nanos>,
    pub stop: Option<Nanos>,
    pub kind: Kind,
}

/// What a flow sends.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A connection.
    Tcp(TcpPlan),
    /// Datagrams with this payload.
    Udp { pattern: UdpPattern, packet_bytes: u16, payload: u32 },
}

/// Settings of a connection's sockets.
#[derive(Debug)]
pub(crate) struct TcpPlan {
    /// Of the kernel; `None` is our XCP.
    pub congestion: Option<String>,
    /// As the scenario has them; XCP's settings are taken from here.
    pub settings: Tcp,
    /// TCP_MAXSEG: makes a full frame as large as the scenario says.
    pub mss: u32,
    /// Payload of a full segment: the MSS less options, those of XCP included.
    pub payload: u32,
    /// Largest window the receiver may advertise, bytes.
    pub window_clamp: Option<u32>,
    /// Segments the send buffer is to hold.
    pub send_segments: Option<u32>,
    /// Unsent data beyond which the sender waits before it writes more: where what is unsent at the
    /// flow's stop would matter.
    pub unsent_bytes: Option<u32>,
    /// Whether the least retransmission timeout has to be told to the kernel.
    pub sets_rto_min: bool,
    /// How long before its start it connects: only where the scenario has no handshake.
    pub connects_early: Nanos,
}

impl Plan {
    /// What is to be built for a scenario.
    ///
    /// # Errors
    /// [`LabError::Refused`] where that cannot be done, [`LabError::Missing`] where this kernel
    /// cannot do it.
    pub fn new(scenario: &Scenario, machine: &Machine) -> Result<Self, LabError> {
        if scenario.nodes.len() > MOST_NODES {
            return Err(LabError::Refused(format!(
                "{} nodes are too many for the lab, which makes a network namespace for each: at \
                    most {MOST_NODES}",
                scenario.nodes.len()
            )));
        }
        if scenario.flows.len() > MOST_FLOWS {
            return Err(LabError::Refused(format!(
                "{} flows are too many for the lab, which has real sockets for each: at most \
                    {MOST_FLOWS}",
                scenario.flows.len()
            )));
        }
        if let Some(flow) =
            scenario.flows.iter().find(|flow| flow.group.packet_bytes > LARGEST_PACKET)
        {
            return Err(LabError::Refused(format!(
                "flow \"{}\": packets of {} bytes are too large for the lab: at most \
                    {LARGEST_PACKET}",
                flow.group.name, flow.group.packet_bytes
            )));
        }
        let largest = scenario.flows.iter().map(|flow| flow.group.packet_bytes).max().unwrap_or(0);
        let mut plan = Self {
            family: machine.family,
            // IPv6's least, and a frame's Ethernet header is not part of it.
            mtu: largest.saturating_sub(14).max(1280),
            segments: None,
            cut: false,
            spaces: Vec::new(),
            devices: Vec::new(),
            cables: Vec::new(),
            neighbours: Vec::new(),
            shapers: Vec::new(),
            lines: Vec::new(),
            meters: Vec::new(),
            ways: Vec::new(),
            routes: Vec::new(),
            flows: Vec::new(),
            notes: Vec::new(),
        };
        let places = topology::build(&mut plan, scenario)?;
        if !(plan.shapers.is_empty() && plan.lines.is_empty()) {
            let slowest =
                plan.shapers.iter().map(|shaper| shaper.rates.range().0).min().unwrap_or(0);
            let frames = u128::from(slowest) * u128::from(BURST)
                / (8_000_000_000 * u128::from(plan.frame_bytes()));
            plan.segments = Some(if machine.offload {
                MOST_SEGMENTS
            } else {
                (frames as u32).clamp(1, MOST_SEGMENTS)
            });
            plan.cut = machine.offload;
        }
        ways::build(&mut plan, scenario, &places)?;
        flows::build(&mut plan, scenario, machine)?;
        if plan.cut {
            plan.note(format!(
                "hosts hand down packets of up to {MOST_SEGMENTS} segments, queues cut them up, \
                    nobody puts them together again"
            ));
        }
        Ok(plan)
    }

    /// Bytes of a full frame, as queues count it.
    pub fn frame_bytes(&self) -> u32 {
        self.mtu + 14
    }

    fn space(&mut self, role: Role, name: String) -> SpaceId {
        self.spaces.push(Space { role, name, sack: None, in_flight: 0 });
        self.spaces.len() - 1
    }

    fn device(&mut self, space: SpaceId, name: impl Into<String>) -> DeviceId {
        self.devices.push(Device { space, name: name.into() });
        self.devices.len() - 1
    }

    /// A cable between two namespaces.
    fn cable(&mut self, one: (SpaceId, &str), other: (SpaceId, &str)) -> [DeviceId; 2] {
        let ends = [self.device(one.0, one.1), self.device(other.0, other.1)];
        self.cables.push(ends);
        ends
    }

    /// Notes something about the run, once.
    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

/// Where the scenario's nodes and links came to be.
struct Places {
    /// By node, its own namespace.
    nodes: Vec<SpaceId>,
    /// By node, where its sockets are.
    ends: Vec<SpaceId>,
    /// By node with a host: the device that leads there, and the host's.
    hubs: Vec<Option<[DeviceId; 2]>>,
    /// By link direction, the device by which it leaves its node.
    exits: Vec<DeviceId>,
    /// Gates: namespace, the device that leads on.
    gates: Vec<(DirectionId, SpaceId, DeviceId)>,
}

/// A link direction of the scenario, and its node.
fn direction(scenario: &Scenario, number: DirectionId) -> (&Direction, NodeId) {
    let link = &scenario.links[number / 2];
    (&link.directions[number % 2], link.ends[number % 2])
}

/// As in the summary: `NAME` or `NAME.reverse`.
pub(crate) fn direction_name(scenario: &Scenario, number: DirectionId) -> String {
    let name = &scenario.links[number / 2].name;
    if number.is_multiple_of(2) { name.clone() } else { format!("{name}.reverse") }
}
