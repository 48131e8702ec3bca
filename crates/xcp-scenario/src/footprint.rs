//! How much memory a run will need, and which line of the file is to blame for most of it, so that
//! a run that cannot fit is refused before it starts. An estimate from above by simple bounds; how
//! a backend really stores things is its own affair.

use std::sync::Arc;

use crate::error::{Issue, ScenarioError, Source, Span};
use xcp_law::quantity::show_bytes;
use xcp_model::units::{NANOS_PER_SEC, Nanos};
use xcp_model::{Congestion, Flow, Limit, Sampling, Scenario, Traffic, UdpPattern};

/// Where the parts of a scenario stand in its file.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    /// Shared by all variants of the file: each would else hold the whole text, in which all the
    /// others stand.
    sources: Arc<[Source]>,
    limits: Vec<[Span; 2]>,
    links: Vec<Span>,
    last_flow: Span,
    sample: Span,
    duration: Span,
}

impl Origins {
    pub(crate) fn new(
        sources: &Arc<[Source]>,
        limits: Vec<[Span; 2]>,
        links: Vec<Span>,
        last_flow: Span,
        sample: Span,
        duration: Span,
    ) -> Self {
        Self { sources: Arc::clone(sources), limits, links, last_flow, sample, duration }
    }
}

/// A packet in a queue or on a link, with what sender and receiver remember of it.
const BYTES_PER_PACKET: u128 = 160;
/// A flow without its packets: sender, receiver, timers, results.
const BYTES_PER_FLOW: u128 = 1280;
/// One value of one series.
const BYTES_PER_SAMPLE: u128 = 8;
/// A series without its values: where it is recorded, whose it is.
const BYTES_PER_SERIES: u128 = 256;
/// Series of a link direction: utilisation, queue (mean, max), drops, lost; and of an XCP router
/// six more.
const LINK_SERIES: u128 = 5;
const ROUTER_SERIES: u128 = 6;
/// Series of a flow: goodput, cwnd, srtt, retransmits.
const FLOW_SERIES: u128 = 4;
/// Least packet, bytes on the wire.
const LEAST_PACKET: u64 = 64;

/// What takes memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Flows,
    Samples,
    Queue(usize),
    Flight(usize),
}

/// Estimated memory of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// Upper bound of the memory, bytes.
    pub bytes: u128,
    /// Packets in queues and on links at once, from above.
    pub packets: u128,
    /// What of the memory its results keep when the run is over, bytes.
    pub kept: u128,
    /// Largest part.
    part: Part,
    part_bytes: u128,
}

/// Packets of a size that a rate carries in a time, from above.
fn packets(rate_bps: u64, time: Nanos, packet_bytes: u64) -> u128 {
    u128::from(rate_bps) * u128::from(time)
        / u128::from(NANOS_PER_SEC)
        / 8
        / u128::from(packet_bytes.max(1))
        + 1
}

/// Packets that a flow can send in the whole run or have on the way at once, from above.
///
/// 1. Datagrams: as many as their rate gives.
/// 2. Without XCP a TCP sends at most two packets for each that arrived (slow start), and no more
///    arrive than the slowest link carries.
/// 3. An XCP sender may be told any window by the routers: at most what its first link carries.
fn sendable(flow: &Flow, active: Nanos, first: u64, slowest: u64) -> u128 {
    let size = u64::from(flow.group.packet_bytes);
    match &flow.group.traffic {
        Traffic::Tcp(tcp) => {
            let payload = u128::from(size.saturating_sub(40).max(1));
            let mut received = tcp.receive_buffer;
            for change in &tcp.receive_buffer_changes {
                received = received.zip(change.bytes).map(|(one, other)| one.max(other));
            }
            let window = [flow.bytes(), received, tcp.send_buffer].into_iter().flatten().min();
            let free = match &tcp.congestion {
                Congestion::Xcp => packets(first, active, size),
                Congestion::Reno | Congestion::Cubic | Congestion::Named(_) => {
                    2 * packets(slowest, active, size) + u128::from(tcp.initial_window)
                }
            };
            window.map_or(free, |bytes| free.min(u128::from(bytes) / payload + 1))
        }
        Traffic::Udp(pattern) => {
            let rate = match pattern {
                UdpPattern::Constant { rate_bps }
                | UdpPattern::Poisson { rate_bps }
                | UdpPattern::OnOff { rate_bps, .. } => *rate_bps,
                UdpPattern::Schedule { steps } => {
                    steps.iter().map(|(_, rate)| *rate).max().unwrap_or(0)
                }
            };
            packets(rate, active, size)
        }
    }
}

/// What the flows can bring to one direction.
#[derive(Debug, Clone, Copy)]
struct Load {
    /// Packets that can arrive at its queue in the whole run.
    arrivals: u128,
    /// Packets that can be on the link at once.
    flight: u128,
    /// Least size of a packet.
    packet: u64,
}

fn loads(scenario: &Scenario) -> Vec<Load> {
    let direction = |d: usize| &scenario.links[d / 2].directions[d % 2];
    let mut loads =
        vec![Load { arrivals: 0, flight: 0, packet: u64::MAX }; 2 * scenario.links.len()];
    for flow in &scenario.flows {
        let active = scenario.duration.saturating_sub(flow.start);
        let group = &flow.group;
        let size = u64::from(group.packet_bytes);
        let Some(first) = group.route.first().map(|d| direction(*d).fastest_bps()) else {
            continue;
        };
        let slowest =
            group.route.iter().map(|d| direction(*d).fastest_bps()).min().unwrap_or(first);
        let total = sendable(flow, active, first, slowest);
        let mut upstream = None;
        for &d in &group.route {
            let load = &mut loads[d];
            let rate = upstream
                .map_or(direction(d).fastest_bps(), |u: u64| u.min(direction(d).fastest_bps()));
            load.arrivals += upstream.map_or(total, |u| total.min(packets(u, active, size)));
            load.flight += total.min(packets(rate, direction(d).longest_delay().min(active), size));
            load.packet = load.packet.min(size);
            upstream = Some(rate);
        }
        if flow.is_tcp() {
            // At most one acknowledgement for each packet that arrived.
            for &d in &group.return_route {
                let load = &mut loads[d];
                load.arrivals += total.min(packets(slowest, active, size));
                load.flight +=
                    total.min(packets(slowest, direction(d).longest_delay().min(active), size));
                load.packet = LEAST_PACKET;
            }
        }
    }
    loads
}

/// Estimates the memory of a run.
#[must_use]
pub fn footprint(scenario: &Scenario) -> Footprint {
    let directions = 2 * scenario.links.len();
    let mut parts = vec![(Part::Flows, scenario.flows.len() as u128 * BYTES_PER_FLOW)];
    let mut packets_in_all = 0u128;
    let mut routers = 0;
    for (d, load) in loads(scenario).into_iter().enumerate() {
        let direction = &scenario.links[d / 2].directions[d % 2];
        routers += u128::from(direction.queue.router().is_some());
        let room = match direction.queue.limit {
            Limit::Packets(n) => u128::from(n),
            Limit::Bytes(n) => u128::from(n / load.packet) + 1,
        };
        let flight = load.flight.min(packets(
            direction.fastest_bps(),
            direction.longest_delay().min(scenario.duration),
            load.packet,
        ));
        let queued = load.arrivals.min(room);
        packets_in_all += flight + queued;
        parts.push((Part::Flight(d), flight * BYTES_PER_PACKET));
        parts.push((Part::Queue(d), queued * BYTES_PER_PACKET));
    }
    let bytes_per_series = match scenario.sample {
        Sampling::Off => 0,
        _ if !scenario.series => 0,
        Sampling::Every(t) | Sampling::PerRtt(t) => {
            u128::from(scenario.duration / t.max(1) + 1) * BYTES_PER_SAMPLE + BYTES_PER_SERIES
        }
    };
    let series = directions as u128 * LINK_SERIES
        + routers * ROUTER_SERIES
        + scenario.flows.len() as u128 * FLOW_SERIES;
    parts.push((Part::Samples, series * bytes_per_series));
    let bytes = parts.iter().map(|(_, b)| *b).sum();
    let results = parts.iter().filter(|(p, _)| matches!(p, Part::Flows | Part::Samples));
    let kept = results.map(|(_, b)| *b).sum();
    let (part, part_bytes) =
        parts.into_iter().rev().max_by_key(|(_, b)| *b).unwrap_or((Part::Flows, 0));
    Footprint { bytes, packets: packets_in_all, kept, part, part_bytes }
}

/// Estimates the memory of a run, and refuses a scenario that needs more than there is, naming the
/// line that needs most of it.
///
/// # Errors
/// That the run does not fit, and what would.
pub fn check(
    scenario: &Scenario,
    origins: &Origins,
    available_bytes: u64,
) -> Result<Footprint, ScenarioError> {
    let needed = footprint(scenario);
    if needed.bytes <= u128::from(available_bytes) {
        return Ok(needed);
    }
    let place = |d: usize| {
        let link = &scenario.links[d / 2].name;
        if d.is_multiple_of(2) { format!("`{link}`") } else { format!("`{link}.reverse`") }
    };
    let (span, why, help) = match needed.part {
        Part::Flows => (
            origins.last_flow,
            format!("{} flows", scenario.flows.len()),
            "write a smaller `count`".to_string(),
        ),
        Part::Samples => (
            if origins.sample == Span::default() { origins.duration } else { origins.sample },
            "the samples of its series".to_string(),
            "sample less often, or write sample = \"off\"".to_string(),
        ),
        Part::Queue(d) => (
            origins.limits.get(d / 2).map_or(Span::default(), |l| l[d % 2]),
            format!(
                "{} packets in the queue of {}",
                needed.part_bytes / BYTES_PER_PACKET,
                place(d)
            ),
            "write a smaller `limit`, a lower rate, or bound what the flows send (`bytes`, \
                `receive-buffer`)"
                .to_string(),
        ),
        Part::Flight(d) => (
            origins.links.get(d / 2).copied().unwrap_or_default(),
            format!(
                "{} packets on their way over {}",
                needed.part_bytes / BYTES_PER_PACKET,
                place(d)
            ),
            "write a lower `rate`, a shorter `delay`, larger packets, or bound what the flows \
                send (`bytes`, `receive-buffer`)"
                .to_string(),
        ),
    };
    let what = format!(
        "the run needs about {} of memory, but only {} is free; {} of it is for {why}",
        show_bytes(needed.bytes),
        show_bytes(u128::from(available_bytes)),
        show_bytes(needed.part_bytes),
    );
    Err(ScenarioError::from_issues(
        vec![Issue { span: Some(span), what, help: Some(help) }],
        &origins.sources,
    ))
}
