//! The scenario as a backend takes it: every name resolved to an index, every default filled in,
//! every quantity in one unit, every route found.
//!
//! Nothing here knows TOML (`file.rs` and its neighbours read that) or any backend. A value of
//! these types has been checked: indices are in range, rates are not zero, every flow has a route
//! there and back.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

pub use crate::law::Law;
use crate::name::FlowName;
use crate::steps::Steps;
use crate::units::{Nanos, Period};
pub use xcp_law::quantity::{Claim, Limit};
pub use xcp_law::{
    CapacityForXcp, CapacityKnown, Control, Gain, Input, Interval, Preset, Shuffle, Spare,
};

/// Number of a node: an index into [`Scenario::nodes`].
pub type NodeId = usize;
/// Index of one direction of a link: `2 * link + 0` as `between` is written, `2 * link + 1` the
/// other way.
pub type DirectionId = usize;

/// One run's worth of instructions.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// One line for tables and charts.
    pub title: String,
    /// Name of the variant of the file this is; empty where the file has none.
    pub variant: String,
    /// Description from the file; free text.
    pub description: String,
    /// How long the run lasts.
    pub duration: Nanos,
    /// Seed of everything random.
    pub seed: u64,
    /// What the summary covers.
    pub measure: Period,
    /// How often series are sampled.
    pub sample: Sampling,
    /// Whether they are kept. Who needs the summary only says no, and saves half of the time of a
    /// run of a thousand flows; the summary is the same.
    pub series: bool,
    /// Names of the nodes, in order of appearance.
    pub nodes: Vec<String>,
    /// Links, in the file's order.
    pub links: Vec<Link>,
    /// Names of the media that links share, in order of appearance.
    pub media: Vec<String>,
    /// Flows, in the file's order, groups (`count = n`) expanded.
    pub flows: Vec<Flow>,
    /// What the run is expected to show.
    pub expectations: Vec<Expectation>,
}

impl Scenario {
    /// The flows of each group, in order.
    pub fn groups(&self) -> impl Iterator<Item = &[Flow]> {
        self.flows.chunk_by(|a, b| Arc::ptr_eq(&a.group, &b.group))
    }
}

/// When series are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// No series, only the summary.
    Off,
    /// At fixed intervals.
    Every(Nanos),
    /// Once per round-trip time: at the largest base RTT of the flows, as the 2005 Linux study
    /// measured.
    PerRtt(Nanos),
}

/// Number of a medium: an index into [`Scenario::media`].
pub type MediumId = usize;

/// A link; each direction has its own rate, delay, queue and losses.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// Name, unique among links.
    pub name: String,
    /// The two ends, as `between` is written.
    pub ends: [NodeId; 2],
    /// `[0]` from `ends[0]` to `ends[1]`, `[1]` back.
    pub directions: [Direction; 2],
    /// What both directions transmit on, one packet at a time, perhaps with other links; `None`:
    /// each has a line of its own.
    pub medium: Option<MediumId>,
}

/// One direction of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct Direction {
    /// Bits per second, from the start; never zero.
    pub rate_bps: u64,
    /// Rates that take its place during the run, in order of time.
    pub rate_changes: Vec<(Nanos, u64)>,
    /// Propagation delay, one way, from the start.
    pub delay: Nanos,
    /// Delays that take its place during the run, in order of time, for what is sent from then on.
    /// Packets keep their order all the same.
    pub delay_changes: Vec<(Nanos, Nanos)>,
    /// Bytes that framing adds to each packet on the line, and that nothing but the transmitter
    /// knows of.
    pub framing_bytes: u32,
    /// The queue in front of the transmitter.
    pub queue: Queue,
    /// Random losses on this direction.
    pub losses: Vec<Loss>,
    /// Periods in which everything sent is lost (the link keeps taking packets, nothing arrives).
    pub blackouts: Vec<Period>,
    /// Packets that others overtake on the way; without, all keep their order.
    pub reorder: Option<Reorder>,
}

impl Direction {
    /// The rate over time.
    #[must_use]
    pub fn rates(&self) -> Steps {
        Steps::new(self.rate_bps, &self.rate_changes)
    }

    /// The greatest rate that it has, bit/s.
    #[must_use]
    pub fn fastest_bps(&self) -> u64 {
        self.rates().range().1
    }

    /// The delay over time, by when a packet is sent.
    #[must_use]
    pub fn delays(&self) -> Steps {
        Steps::new(self.delay, &self.delay_changes)
    }

    /// The greatest delay that it has.
    #[must_use]
    pub fn longest_delay(&self) -> Nanos {
        self.delays().range().1
    }
}

/// Random losses with a given probability.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// Chance for each packet, 0..=1.
    pub probability: f64,
    /// Where on the link.
    pub place: LossPlace,
    /// When they occur.
    pub period: Period,
}

/// Where on a link packets are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossPlace {
    /// Before the queue: an XCP router there never sees the packet ("pre" in the 2005 study).
    BeforeQueue,
    /// After transmission ("post").
    AfterQueue,
}

/// Some packets fall back: on the way they take longer than the others, which overtake them. None is
/// ever early.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reorder {
    /// Chance for each packet, 0..=1.
    pub probability: f64,
    /// How much longer those take at most; each draws its own time, anything up to this being as
    /// likely.
    pub most: Nanos,
}

/// A queue: what it holds, and who may enter it.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// How much the queue holds.
    pub limit: Limit,
    /// Who may enter, and what happens to packets on their way in and out.
    pub discipline: Discipline,
    /// On a shared medium: after each packet it leaves a slot time to others.
    pub yields: bool,
}

impl Queue {
    /// One that drops what finds it full, and does not yield.
    #[must_use]
    pub const fn drop_tail(limit: Limit) -> Self {
        Self { limit, discipline: Discipline::DropTail, yields: false }
    }

    /// The XCP router that the queue is.
    #[must_use]
    pub fn router(&self) -> Option<&Router> {
        match &self.discipline {
            Discipline::Xcp(router) => Some(router),
            Discipline::DropTail | Discipline::Red(_) => None,
        }
    }
}

/// A queue discipline and its settings.
#[derive(Debug, Clone, PartialEq)]
pub enum Discipline {
    /// First in, first out; arrivals to a full queue are dropped.
    DropTail,
    /// Random early detection.
    Red(Red),
    /// An XCP router: a first-in-first-out queue, or one for XCP's packets and one for the others.
    Xcp(Router),
}

impl Discipline {
    /// What the scenario file calls it; one of `xcp-scenario`'s `QUEUES`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::DropTail => "drop-tail",
            Self::Red(_) => "red",
            Self::Xcp(_) => "xcp",
        }
    }
}

/// Random early detection (Floyd & Jacobson 1993), in packets.
#[derive(Debug, Clone, PartialEq)]
pub struct Red {
    /// Lower threshold of the average queue: below it nothing is dropped.
    pub min_packets: f64,
    /// Upper threshold of the average queue, at which the drop probability is `max_probability`.
    pub max_packets: f64,
    /// Drop probability at the upper threshold.
    pub max_probability: f64,
    /// Weight of the newest sample in the average; `None` derives it from the link's rate as ns-2
    /// does.
    pub weight: Option<f64>,
    /// Whether the probability rises on to 1 between one and two times the upper threshold instead
    /// of jumping to 1.
    pub gentle: bool,
}

/// An XCP router's settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Router {
    /// The router's law.
    pub law: Law,
    /// Laws that take its place during the run, in order of time; all different times.
    pub changes: Vec<LawChange>,
    /// Where packets that are not XCP's wait.
    pub others: Others,
    /// The policer before the law, if there is one.
    pub police: Option<Police>,
}

/// A policer before an XCP router's law (engine/policer.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Police {
    /// Flows that its table is good for.
    pub flows: u32,
    /// The longest round-trip time that is believed.
    pub longest_rtt: Nanos,
}

/// What an XCP router does with traffic that is not XCP's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Others {
    /// One queue for all.
    Shared,
    /// A queue of its own that goes first.
    First,
    /// A queue of its own that goes last.
    Last,
    /// A queue of its own; each class has its share while both have packets.
    Fair {
        /// XCP's share.
        share: f64,
    },
    /// As `Fair`, and XCP takes no more than its share even if it could: the law's capacity, unless
    /// set, is that share of the rate.
    Split {
        /// XCP's share.
        share: f64,
    },
}

/// A law that takes another's place.
#[derive(Debug, Clone, PartialEq)]
pub struct LawChange {
    /// When the change happens, from the start of the run.
    pub at: Nanos,
    /// The law from then on.
    pub law: Law,
}

/// A transfer of data, or a source of datagrams. There may be a million: what a `[[flow]]`'s
/// members have in common they share.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// What it shares with the other members of its group.
    pub group: Arc<Group>,
    /// Its number in the group, from 1; `None` where the file asks for a single flow, which bears
    /// the group's name.
    pub number: Option<NonZeroU32>,
    /// When it starts, jitter not yet added.
    pub start: Nanos,
    /// Bytes it transfers, where the members' sizes differ; else the group's settings say.
    pub own_bytes: Option<NonZeroU64>,
}

/// A `[[flow]]` of the file: what its members have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// Name as the file gives it, unique.
    pub name: Arc<str>,
    /// Node that sends.
    pub from: NodeId,
    /// Node that receives.
    pub to: NodeId,
    /// Directions crossed by data, in order; never empty.
    pub route: Vec<DirectionId>,
    /// Directions crossed by acknowledgements, in order.
    pub return_route: Vec<DirectionId>,
    /// The start is moved later by a random time below this, drawn from the run's seed.
    pub start_jitter: Nanos,
    /// When the senders stop sending new data.
    pub stop: Option<Nanos>,
    /// Size of a full packet on the wire, bytes, headers included.
    pub packet_bytes: u32,
    /// What they send. Where members have sizes of their own, [`Flow::traffic`] tells one member's.
    pub traffic: Traffic,
    /// How they cheat routers and one another; `None` for honest flows.
    pub lies: Option<Lies>,
}

/// How a flow lies. All else it does as its protocol has it. Only XCP flows with headers of the
/// [`Extended`](WireFormat::Extended) format lie, and datagrams, which then carry such a header:
/// theirs claims an RTT and a window that [`Is`](Claim::Is) so much, and nothing else here but
/// `forged` means anything to them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lies {
    /// What its headers say of its RTT; `Is(0)`: that it is unknown.
    pub rtt: Option<Claim<Nanos>>,
    /// What its headers say of its window, packets.
    pub window: Option<Claim<f64>>,
    /// What its headers ask for, bit/s; below 0 they give up as much.
    pub asks_bps: Option<f64>,
    /// The link that its headers name as the one that limits the flow.
    pub link: Option<u32>,
    /// The window, packets, that it keeps whatever routers and losses tell it; all its packets ask
    /// for the most then.
    pub cwnd: Option<u32>,
    /// What it makes of positive feedback: it is multiplied by this.
    pub increases: f64,
    /// What it makes of negative feedback.
    pub decreases: f64,
    /// What its receiver returns in every acknowledgement, whatever the routers said, bit/s.
    pub returns_bps: Option<u64>,
    /// Whether the time on its receiver's acknowledgements hides queues on the way there: they seem
    /// to have been sent as soon as if there were none, and to have waited on the way back.
    pub hides: bool,
    /// Whether its receiver's acknowledgements say that all data wait for long behind TCP, in a
    /// queue where a router steers it.
    pub blames: bool,
    /// Whether each datagram is one of a flow of its own, as where addresses are forged.
    pub forged: bool,
}

impl Flow {
    /// Its name, unique: `NAME-1`, `NAME-2`, ... for the members of a group.
    #[must_use]
    pub fn name(&self) -> FlowName {
        FlowName::member(&self.group.name, self.number)
    }

    /// What kind of traffic it sends.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        match &self.group.traffic {
            Traffic::Tcp(tcp) => Traffic::Tcp(Tcp { bytes: self.bytes(), ..tcp.clone() }),
            udp @ Traffic::Udp(_) => udp.clone(),
        }
    }

    /// Bytes it transfers; `None` is without end.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        match &self.group.traffic {
            Traffic::Tcp(tcp) => self.own_bytes.map(NonZeroU64::get).or(tcp.bytes),
            Traffic::Udp(_) => None,
        }
    }

    /// Whether it is a TCP connection.
    #[must_use]
    pub fn is_tcp(&self) -> bool {
        matches!(self.group.traffic, Traffic::Tcp(_))
    }
}

/// The kinds of traffic a flow can send.
#[derive(Debug, Clone, PartialEq)]
pub enum Traffic {
    /// A TCP connection.
    Tcp(Tcp),
    /// Datagrams, heedless of the network.
    Udp(UdpPattern),
}

/// A TCP connection's settings, sender and receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Tcp {
    /// What sets the window.
    pub congestion: Congestion,
    /// Which sender, where `congestion` is XCP.
    pub xcp_sender: XcpSender,
    /// How losses are repaired.
    pub recovery: Recovery,
    /// What an XCP sender does to its window on three duplicate ACKs; TCP's own congestion controls
    /// have their own rule.
    pub loss_response: LossResponse,
    /// Whether packets are spread over the round trip at cwnd/srtt instead of sent as ACKs come in.
    pub paced: bool,
    /// The header format of an XCP flow.
    pub wire: WireFormat,
    /// Bytes to transfer; `None` is without end.
    pub bytes: Option<u64>,
    /// Receiver's buffer, bytes: bounds the advertised window. `None` is never a limit.
    pub receive_buffer: Option<u64>,
    /// Sizes that the buffer takes later, in order of time.
    pub receive_buffer_changes: Vec<BufferChange>,
    /// How the advertised window comes to be that buffer.
    pub receive_window: ReceiveWindow,
    /// Sender's buffer, bytes: bounds the data in flight. `None` is never a limit.
    pub send_buffer: Option<u64>,
    /// Without it the advertised window ends at 65535 bytes.
    pub window_scaling: bool,
    /// Whether every second segment (or a timer) is acknowledged instead of every one.
    pub delayed_ack: bool,
    /// Whether the connection opens with SYN and SYN-ACK.
    pub handshake: bool,
    /// First congestion window, packets.
    pub initial_window: u32,
    /// Lower bound of the retransmission timeout.
    pub rto_min: Nanos,
    /// What happens to the timeout when it expires again.
    pub rto_policy: RtoPolicy,
    /// Whether an XCP sender tells the routers the least of cwnd and what buffers let it send, ages
    /// unused allowance and bounds its request; `false` is the 2005 study's sender, whose window
    /// runs away when a buffer limits it.
    pub honest_window: bool,
    /// Whether an XCP flow's packets say which link limits it, because a router on the way wants to
    /// know; and what they say as long as no link has claimed the flow.
    pub ids: Option<Unclaimed>,
}

/// What a flow that no link has claimed says of the link that limits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unclaimed {
    /// Nothing.
    Unknown,
    /// That it is the first one on its way.
    Access,
}

/// The congestion control of a TCP flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Congestion {
    /// Explicit: the routers' feedback.
    Xcp,
    /// Slow start and additive increase, multiplicative decrease (RFC 5681).
    Reno,
    /// RFC 9438.
    Cubic,
    /// Another, by its name: what this is the backend knows, the simulator or a kernel.
    Named(Arc<str>),
}

impl Congestion {
    /// How the names of labs' own begin: they are global to the machine, and a lab may not be the
    /// only one on it.
    pub const OF_LABS: &'static str = "xcp_lab";
    /// How those begin that belong to one process, a lab or a proxy.
    const PRIVATE: &'static str = "xcp_";

    /// Names of a kernel's congestion controls that a scenario may name, of its list
    /// (/proc/sys/net/ipv4/tcp_available_congestion_control): all but those of labs and proxies.
    ///
    /// ```
    /// use xcp_model::Congestion;
    ///
    /// assert_eq!(Congestion::of_kernel("reno cubic xcp_lab4711 xcp_pep7\n"), ["reno", "cubic"]);
    /// ```
    #[must_use]
    pub fn of_kernel(list: &str) -> Vec<String> {
        let names = list.split_whitespace().filter(|name| !name.starts_with(Self::PRIVATE));
        names.map(str::to_owned).collect()
    }

    /// What it is called, by scenarios and by Linux.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Congestion::Xcp => "xcp",
            Congestion::Reno => "reno",
            Congestion::Cubic => "cubic",
            Congestion::Named(name) => name,
        }
    }
}

/// Which of XCP's senders a flow has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum XcpSender {
    /// A window that acknowledgements clock (engine/sender.h).
    #[default]
    Window,
    /// A rate, bounded by delay where no router governs (engine/robust_sender.h).
    Robust,
}

/// The loss recovery of a TCP flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// RFC 5681 §3.2.
    Reno,
    /// The same, and no second fast retransmit within what was outstanding at the last one: ns-2's
    /// (`bugFix_`, its default).
    RenoNs2,
    /// RFC 6582, the retransmission timer restarted by the first partial ACK only.
    NewRenoImpatient,
    /// RFC 6582, the retransmission timer restarted by every partial ACK.
    NewRenoSlowButSteady,
    /// RFC 6675.
    Sack,
    /// RFC 6675, and retransmissions that are lost, too, are found as Linux did in the days of the
    /// 2005 study.
    SackLinux,
}

/// An XCP sender's answer to three duplicate ACKs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossResponse {
    /// Retransmit, leave the window alone.
    None,
    /// Retransmit and halve the window.
    Halve,
}

/// Another size of a receiver's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferChange {
    /// When the change happens, from the start of the run.
    pub at: Nanos,
    /// Bytes from then on; `None` is never a limit.
    pub bytes: Option<u64>,
}

/// How a receiver comes to advertise its whole buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveWindow {
    /// At once.
    Open,
    /// By two packets with each acknowledgement, as Linux's receiver did in 2005.
    TwoPerAck,
    /// By the feedback that an acknowledgement returns, in whole packets: the 2005 study's remedy.
    Feedback,
}

/// XCP's header on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    /// The 2005 Linux study's options.
    Classic,
    /// The same with feedback in whole packets, the study's alternative.
    ClassicInteger,
    /// Ours.
    Extended,
}

/// Retransmission timeout after an expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RtoPolicy {
    /// Doubles (RFC 6298 §5.5), up to 60 s.
    BackOff,
    /// Stays.
    Fixed,
}

/// When datagrams are sent.
#[derive(Debug, Clone, PartialEq)]
pub enum UdpPattern {
    /// Evenly spaced.
    Constant {
        /// Bits per second on the wire.
        rate_bps: u64,
    },
    /// Exponential gaps.
    Poisson {
        /// Mean, bits per second on the wire.
        rate_bps: u64,
    },
    /// Constant while on, silent while off, starting on.
    OnOff {
        /// Bits per second on the wire while on.
        rate_bps: u64,
        /// Length of a burst.
        on: Nanos,
        /// Length of a silence.
        off: Nanos,
        /// Whether both lengths are exponentially distributed with these means instead of fixed.
        random: bool,
    },
    /// Constant between given times; zero is silence.
    Schedule {
        /// (from, bits per second on the wire), in order of time, times from the start of the run.
        steps: Vec<(Nanos, u64)>,
    },
}

/// A claim about the result: a band for one number.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// Which number, e.g. `links.bottleneck.utilisation`, `flows.flow-1.cwnd_mean`, `jain`.
    pub metric: String,
    /// Over what part of the run; the measured period if absent.
    pub period: Option<Period>,
    /// Least value inside the band; with `than` a multiple of that number.
    pub min: Option<f64>,
    /// Greatest value inside the band; with `than` a multiple of that number.
    pub max: Option<f64>,
    /// The number that it is held against.
    pub than: Option<Than>,
    /// The claim in words, and whose it is.
    pub claim: String,
    /// What must hold of several seeds.
    pub over_seeds: OverSeeds,
}

/// When a claim holds of a run with several seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OverSeeds {
    /// The median is inside the band.
    Median,
    /// Every seed's number is.
    All,
    /// At least this share of the seeds' numbers is.
    Share(f64),
}

/// A number that another is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Than {
    /// The variant whose run it is from; empty where the file has none.
    pub variant: String,
    /// Metric with which it is compared.
    pub metric: String,
    /// Over what part of that run; the measured period if absent.
    pub period: Option<Period>,
}
