//! A scenario as theory sees it at one instant: links with capacities, classes of equal flows, load
//! that heeds nobody. What follows from it is for the other modules.
//!
//! 1. Flows are those that last: started and not stopped at the instant, without an end of their
//!    own. Finite transfers are left out, and counted.
//! 2. Members of a group are equal, so they are one [`Class`] with a count.
//! 3. Acknowledgements take nothing from the links.
//! 4. Round trips are those of empty queues: delays both ways and the time each link takes to send
//!    a data packet.
//! 5. A link carries what its framing leaves; its router need not know that.
//! 6. A shared medium is a link more, behind those that are on it: a class crosses it once for each
//!    of them. Nothing collides and acknowledgements take nothing, so that max-min shares are those
//!    of a medium at its best; of a law's equilibrium there nothing is known.

use std::sync::Arc;

use serde::Serialize;
use xcp_model::units::{NANOS_PER_SEC, Nanos};
use xcp_model::{
    CapacityForXcp, Congestion, Control, DirectionId, Flow, Group, Input, Law, Limit, Scenario,
    Shuffle, Spare, Tcp, Traffic, UdpPattern, XcpSender,
};

use crate::calendar;

pub use xcp_model::Interval;

/// The network at an instant.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    /// Link directions that data cross, in the scenario's order.
    pub links: Vec<Link>,
    /// Flows, equal ones together, in the scenario's order.
    pub classes: Vec<Class>,
    /// Transfers of finite size, left out.
    pub left_out: usize,
    /// Whether data cross links that share a medium; the media are the last of `links`.
    pub media: bool,
}

/// One direction of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// `NAME` or `NAME.reverse`, as in a run's summary.
    pub name: String,
    /// Rate of the link, bit/s.
    pub rate: f64,
    /// Bit/s of datagrams, which heed nobody; at most the rate.
    pub datagrams: f64,
    /// How much the queue holds, bytes.
    pub limit: f64,
    /// The XCP router, if there is one.
    pub router: Option<Router>,
}

impl Link {
    /// Bit/s that datagrams leave to flows: of what has a queue of its own, no more gets through
    /// than what XCP's share leaves.
    #[must_use]
    pub fn left(&self) -> f64 {
        let sure = self.router.and_then(|r| r.own_queue).unwrap_or(0.0);
        (self.rate - self.datagrams).max(sure * self.rate)
    }

    /// Bit/s at which the queue that flows wait in is emptied.
    #[must_use]
    pub fn drain(&self) -> f64 {
        match self.router.and_then(|r| r.own_queue) {
            Some(_) => self.left().max(1.0),
            None => self.rate,
        }
    }
}

/// An XCP router's law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Router {
    /// What it may fill with bits on the wire: the capacity it believes in, less the framing it
    /// adds to each packet; bit/s.
    pub capacity: f64,
    /// Gain on spare bandwidth.
    pub alpha: f64,
    /// Gain on the persistent queue.
    pub beta: f64,
    /// Share of the traffic that is shuffled in each interval (γ).
    pub gamma: f64,
    /// Queue target Q_T, bytes.
    pub target: f64,
    /// What it does about datagrams.
    pub others: Others,
    /// How d comes from the round trips.
    pub interval: Interval,
    /// The shortest control interval, seconds; d itself may be shorter.
    pub shortest: f64,
    /// The longest RTT that is believed, and so the longest d, seconds.
    pub longest: f64,
    /// How feedback is scaled.
    pub gain: Gain,
    /// Whose rates it comes to.
    pub sharing: Sharing,
    /// Whether feedback is charged to pools.
    pub pools: bool,
    /// Whether it remembers what it has promised (`law = "robust"`).
    pub calendar: bool,
    /// The share of the rate that XCP is sure of, where other packets have a queue of their own.
    pub own_queue: Option<f64>,
}

/// What the law's shares are where a link limits some of its flows only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// XCP's: Low, Andrew and Wydrowski's caps.
    Low,
    /// iXCP's, which shuffles among the flows limited here only: max-min, as its authors prove.
    MaxMin,
    /// P-XCP's: XCP's where the router learns nothing from upstream of flows limited elsewhere, as
    /// downstream of it; else it comes nearer to max-min, and this theory does not know how near.
    Scaled,
}

/// What a router knows of traffic that is not XCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// It is part of the input traffic.
    Input,
    /// Nothing, as in ns-2, whose XCP queue counts XCP only.
    Unseen,
    /// XCP's capacity is what it leaves (XCP-IR).
    Subtracted,
}

/// How a router scales the feedback of a flow by its RTT T.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gain {
    /// Not at all.
    Uniform,
    /// By min(1, d/T).
    OwnRtt,
    /// By d/T; no router here does it, it is here to compare with.
    OwnRttUnclipped,
}

impl Gain {
    /// The factor for a flow of round trip `rtt`.
    #[must_use]
    pub fn factor(self, d: f64, rtt: f64) -> f64 {
        match self {
            Gain::Uniform => 1.0,
            Gain::OwnRtt => (d / rtt).min(1.0),
            Gain::OwnRttUnclipped => d / rtt,
        }
    }
}

impl From<xcp_model::Gain> for Gain {
    fn from(gain: xcp_model::Gain) -> Self {
        match gain {
            xcp_model::Gain::Uniform => Gain::Uniform,
            xcp_model::Gain::OwnRtt => Gain::OwnRtt,
        }
    }
}

/// A class of equal flows.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// The group's name, or the single flow's.
    pub name: String,
    /// Number of equal flows.
    pub count: usize,
    /// Places in [`Network::links`], in the order in which data cross them.
    pub route: Vec<usize>,
    /// Seconds from the sender to each queue of the route, queues empty.
    pub reach: Vec<f64>,
    /// Round trip with empty queues, seconds.
    pub rtt: f64,
    /// Full packet on the wire, bytes.
    pub packet: f64,
    /// Payload of a full packet, bytes.
    pub payload: f64,
    /// Bit/s that buffers allow: window / RTT.
    pub limit: Option<f64>,
    /// Whether routers' feedback sets its rate.
    pub explicit: bool,
    /// Whether it spreads packets over the round trip.
    pub paced: bool,
    /// Whether its state is its rate, which no queue changes (`xcp-robust`).
    pub keeps_rate: bool,
    /// First congestion window, packets.
    pub initial_window: f64,
    /// Of its first member that is there, seconds.
    pub start: f64,
}

impl Class {
    /// Payload per second of a rate on the wire.
    #[must_use]
    pub fn goodput(&self, wire: f64) -> f64 {
        wire * self.payload / self.packet
    }
}

/// A rate as it is shown and written.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    /// Rate on the wire, headers included, bit/s.
    pub wire: f64,
    /// Rate of payload, bit/s.
    pub goodput: f64,
}

impl Network {
    /// The network just before an instant, so that the end of a run shows its last flows.
    #[must_use]
    pub fn before(scenario: &Scenario, at: Nanos) -> Self {
        let at = at.max(1);
        let there = |f: &Flow| f.start < at && f.group.stop.is_none_or(|stop| stop >= at);
        let mut groups: Vec<(&Arc<Group>, usize, Nanos)> = Vec::new();
        let mut left_out = 0;
        let mut load = vec![0.0; 2 * scenario.links.len()];
        for flow in scenario.flows.iter().filter(|f| there(f)) {
            if let Traffic::Udp(pattern) = &flow.group.traffic {
                let rate = mean_rate(pattern, at - 1);
                flow.group.route.iter().for_each(|&d| load[d] += rate);
            } else if flow.bytes().is_some() {
                left_out += 1;
            } else {
                match groups.last_mut() {
                    Some((group, count, _)) if Arc::ptr_eq(group, &flow.group) => *count += 1,
                    _ => groups.push((&flow.group, 1, flow.start)),
                }
            }
        }
        let mut crossed: Vec<DirectionId> =
            groups.iter().flat_map(|(g, ..)| g.route.iter().copied()).collect();
        crossed.extend((0..load.len()).filter(|&d| load[d] > 0.0));
        crossed.sort_unstable();
        crossed.dedup();
        let mut classes: Vec<Class> = groups
            .iter()
            .filter_map(|&(group, count, start)| class(scenario, group, count, start, &crossed, at))
            .collect();
        let packet = |d: DirectionId| {
            let crossing =
                groups.iter().filter(|(g, ..)| g.route.contains(&d)).map(|(g, ..)| g.packet_bytes);
            f64::from(crossing.max().unwrap_or(1500))
        };
        let mut links: Vec<Link> =
            crossed.iter().map(|&d| link(scenario, d, at, load[d], packet(d))).collect();
        let media = add_media(scenario, &crossed, &mut links, &mut classes);
        Self { links, classes, left_out, media }
    }

    /// Bit/s that each link carries when the classes have these rates per flow.
    #[must_use]
    pub fn loads(&self, rates: &[f64]) -> Vec<f64> {
        let with_datagrams =
            |(link, flows): (&Link, f64)| flows + link.datagrams.min((link.rate - flows).max(0.0));
        self.links.iter().zip(self.flow_loads(rates)).map(with_datagrams).collect()
    }

    /// The same without datagrams.
    pub(crate) fn flow_loads(&self, rates: &[f64]) -> Vec<f64> {
        let mut loads = vec![0.0; self.links.len()];
        for (class, rate) in self.classes.iter().zip(rates) {
            class.route.iter().for_each(|&l| loads[l] += rate * class.count as f64);
        }
        loads
    }

    /// The rates of a class's flow, as shown.
    #[must_use]
    pub fn rate(&self, class: usize, wire: f64) -> Rate {
        Rate { wire, goodput: self.classes[class].goodput(wire) }
    }
}

/// Adds the media that links share; returns whether there are any.
fn add_media(
    scenario: &Scenario,
    crossed: &[DirectionId],
    links: &mut Vec<Link>,
    classes: &mut [Class],
) -> bool {
    let directions = links.len();
    let medium_of = |place: &usize| scenario.links[crossed[*place] / 2].medium;
    for (medium, name) in scenario.media.iter().enumerate() {
        let mut members = (0..directions).filter(|place| medium_of(place) == Some(medium));
        let Some(first) = members.next() else { continue };
        let datagrams =
            members.map(|place| links[place].datagrams).sum::<f64>() + links[first].datagrams;
        let place = links.len();
        // All links of a medium have its rate.
        let rate = links[first].rate;
        links.push(Link {
            name: name.clone(),
            rate,
            datagrams: datagrams.min(rate),
            limit: 0.0,
            router: None,
        });
        for class in &mut *classes {
            let crossings =
                class.route.iter().zip(&class.reach).filter(|(link, _)| **link < directions);
            let own: Vec<f64> = crossings
                .filter(|(link, _)| medium_of(link) == Some(medium))
                .map(|(_, reach)| *reach)
                .collect();
            class.route.extend(own.iter().map(|_| place));
            class.reach.extend(own);
        }
    }
    links.len() > directions
}

/// `NAME` or `NAME.reverse`.
pub(crate) fn direction_name(scenario: &Scenario, direction: DirectionId) -> String {
    let name = &scenario.links[direction / 2].name;
    if direction.is_multiple_of(2) { name.clone() } else { format!("{name}.reverse") }
}

fn link(scenario: &Scenario, id: DirectionId, at: Nanos, datagrams: f64, packet: f64) -> Link {
    let direction = &scenario.links[id / 2].directions[id % 2];
    let line = direction.rates().at(at.saturating_sub(1)) as f64;
    let rate = line * (packet / (packet + f64::from(direction.framing_bytes)));
    let limit = match direction.queue.limit {
        Limit::Packets(n) => n as f64 * packet,
        Limit::Bytes(n) => n as f64,
    };
    let router = direction.queue.router().map(|settings| {
        let changed = settings.changes.iter().rev().find(|change| change.at < at);
        let law = changed.map_or(&settings.law, |change| &change.law);
        Router { own_queue: own_queue(settings.others), ..router(law, line, packet) }
    });
    Link { name: direction_name(scenario, id), rate, datagrams: datagrams.min(rate), limit, router }
}

/// XCP's sure share of the rate, if its packets wait apart from the others.
fn own_queue(others: xcp_model::Others) -> Option<f64> {
    match others {
        xcp_model::Others::Shared => None,
        xcp_model::Others::First => Some(0.0),
        xcp_model::Others::Last => Some(1.0),
        xcp_model::Others::Fair { share } | xcp_model::Others::Split { share } => Some(share),
    }
}

fn router(law: &Law, rate: f64, packet: f64) -> Router {
    let told = law.capacity_bps.map_or(rate, |c| c as f64);
    let law = &law.config;
    let calendar = law.control == Control::Calendar;
    Router {
        capacity: told * packet / (packet + f64::from(law.overhead_bytes)),
        alpha: law.alpha,
        beta: law.beta,
        gamma: law.gamma,
        target: law.queue_target_bytes as f64 + if calendar { calendar::target(told) } else { 0.0 },
        others: match (law.capacity_for_xcp, law.input) {
            (CapacityForXcp::MinusOther, _) => Others::Subtracted,
            (CapacityForXcp::Configured, Input::All) => Others::Input,
            (CapacityForXcp::Configured, Input::Xcp) => Others::Unseen,
        },
        interval: law.interval,
        shortest: seconds(law.min_interval_ns),
        longest: seconds(law.max_interval_ns),
        gain: law.gain.into(),
        sharing: match (law.shuffle, law.spare) {
            (Shuffle::Matching, _) => Sharing::MaxMin,
            (Shuffle::All, Spare::Scaled) => Sharing::Scaled,
            (Shuffle::All, _) => Sharing::Low,
        },
        pools: law.pools,
        calendar,
        own_queue: None,
    }
}

fn class(
    scenario: &Scenario,
    group: &Group,
    count: usize,
    start: Nanos,
    crossed: &[DirectionId],
    at: Nanos,
) -> Option<Class> {
    let Traffic::Tcp(tcp) = &group.traffic else { return None };
    let packet = f64::from(group.packet_bytes);
    let payload = f64::from(tcp.payload_bytes(group.packet_bytes));
    let direction = |d: DirectionId| &scenario.links[d / 2].directions[d % 2];
    let just_before = at.saturating_sub(1);
    let delay = |d: DirectionId| seconds(direction(d).delays().at(just_before));
    let mut reach = Vec::with_capacity(group.route.len());
    let mut way = 0.0;
    for &d in &group.route {
        reach.push(way);
        way += delay(d) + packet * 8.0 / direction(d).rates().at(just_before) as f64;
    }
    let back: f64 = group.return_route.iter().map(|&d| delay(d)).sum();
    let rtt = way + back;
    Some(Class {
        name: group.name.to_string(),
        count,
        route: group.route.iter().filter_map(|d| crossed.binary_search(d).ok()).collect(),
        reach,
        rtt,
        packet,
        payload,
        limit: window(tcp, packet, payload).map(|packets| packets * packet * 8.0 / rtt),
        explicit: tcp.congestion == Congestion::Xcp,
        paced: tcp.paced,
        keeps_rate: tcp.congestion == Congestion::Xcp && tcp.xcp_sender == XcpSender::Robust,
        initial_window: f64::from(tcp.initial_window),
        start: seconds(start),
    })
}

/// Packets that buffers let be on the way: each holds whole packets; without window scaling the
/// advertised window ends at 65535 bytes of payload.
fn window(tcp: &Tcp, packet: f64, payload: f64) -> Option<f64> {
    let whole = |bytes: f64, size: f64| (bytes / size).floor().max(1.0);
    // The equilibrium is that of the buffer that stays.
    let received = match tcp.receive_buffer_changes.last() {
        Some(change) => change.bytes,
        None => tcp.receive_buffer,
    };
    let buffers =
        [received, tcp.send_buffer].into_iter().flatten().map(|bytes| whole(bytes as f64, packet));
    let advertised = (!tcp.window_scaling).then(|| whole(65535.0, payload));
    buffers.chain(advertised).reduce(f64::min)
}

/// Mean rate of datagrams at an instant, bit/s.
fn mean_rate(pattern: &UdpPattern, at: Nanos) -> f64 {
    match pattern {
        UdpPattern::Constant { rate_bps } | UdpPattern::Poisson { rate_bps } => *rate_bps as f64,
        UdpPattern::OnOff { rate_bps, on, off, .. } => {
            *rate_bps as f64 * *on as f64 / (*on + *off) as f64
        }
        UdpPattern::Schedule { steps } => {
            steps.iter().rev().find(|(from, _)| *from <= at).map_or(0.0, |(_, rate)| *rate as f64)
        }
    }
}

pub(crate) fn seconds(t: Nanos) -> f64 {
    t as f64 / NANOS_PER_SEC as f64
}
