//! Reads `[[flow]]`: groups expanded, names resolved, routes found. Where packets go is
//! `graph.rs`'s, what a queue holds `links.rs`'s.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use crate::error::Span;
use crate::fields::Fields;
use crate::graph::Graph;
use crate::hazards::period;
use crate::lies::lies;
use crate::links::{DEFAULT_PACKET_BYTES, Nodes, reserved};
use crate::spec::{BUFFER_CHANGE, FLOW, TCP_ONLY, UDP};
use crate::workload::{Amounts, Sizes, Starts, amounts};
use xcp_law::quantity::{MAX_TIME, show_time};
use xcp_law::text::suggest;
use xcp_model::name::FlowName;
use xcp_model::units::Nanos;
use xcp_model::{
    BufferChange, Congestion, DirectionId, Flow, Group, LossResponse, NodeId, ReceiveWindow,
    Recovery, RtoPolicy, Tcp, Traffic, UdpPattern, Unclaimed, WireFormat, XcpSender,
};

/// More flows than this in all are refused: the engine is proven up to a million.
const MAX_FLOWS: u64 = 1_000_000;

/// Flows, and where the last of them was written.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    pub flows: Vec<Flow>,
    pub last: Span,
}

/// A `[[flow]]` as written, its members not yet made.
struct Written {
    group: Group,
    start: Nanos,
    sizes: Option<Sizes>,
}

/// Reads all flows of the file, except groups in `without`.
pub(crate) fn read(
    file: &Fields<'_>,
    nodes: &Nodes,
    graph: &mut Graph,
    run: Whole<'_>,
    without: &HashSet<String>,
) -> Flows {
    let mut result = Flows::default();
    let mut groups = HashSet::new();
    let mut names = Names::default();
    let mut total = 0;
    for fields in file.tables("flow", &FLOW) {
        let before = fields.faults.count();
        let (written, name) = read_one(&fields, nodes, graph, run);
        if !groups.insert(name.clone()) {
            let what = format!("two flows are named `{name}`");
            fields.faults.add(fields.span_of("name"), what, "give each [[flow]] a different name");
        } else if FLOW.key(&name).is_some() {
            reserved(&fields, &name);
        }
        if without.contains(&name) {
            continue;
        }
        let count = fields.integer("count");
        let arrivals = fields.time("arrivals");
        if arrivals.is_some() && fields.item("stagger").is_some() {
            let what = "`stagger` and `arrivals` both say when the members start";
            fields.faults.add(fields.span_of("stagger"), what, "leave out one of the two");
        }
        // How many arrive is known when they have been drawn.
        total += if arrivals.is_some() { 0 } else { count.unwrap_or(1) };
        if total > MAX_FLOWS {
            fields.faults.add(
                fields.span_of("count"),
                format!("{total} flows are too many"),
                format!("at most {MAX_FLOWS} in all"),
            );
            break;
        }
        if fields.faults.count() > before {
            continue;
        }
        let Some(Written { group, start, sizes }) = written else { continue };
        let grouped = count.is_some() || arrivals.is_some();
        let stop = group.stop;
        let starts = match arrivals {
            Some(mean) => Starts::poisson(
                run.seed,
                &name,
                start,
                mean,
                stop.map_or(run.duration, |stop| stop.min(run.duration)),
            ),
            None => Starts::Staggered { next: start, stagger: fields.time("stagger").unwrap_or(0) },
        };
        let most = if arrivals.is_some() {
            count.unwrap_or(u64::MAX).min(MAX_FLOWS - total + 1)
        } else {
            count.unwrap_or(1)
        };
        let mut sizes = sizes.map(|sizes| sizes.draw(run.seed, &name));
        let group = Arc::new(group);
        let first = result.flows.len();
        if arrivals.is_none() {
            result.flows.reserve_exact(most as usize);
        }
        for (start, member) in starts.zip(1..).take(most as usize) {
            if member > 1 && stop.is_some_and(|stop| stop <= start) {
                let what = format!(
                    "`{name}-{member}` starts at {}, when the group has already stopped",
                    show_time(start)
                );
                fields.faults.add(
                    fields.span_of("stop"),
                    what,
                    "write a later `stop`, or a smaller `stagger` or `count`",
                );
                break;
            }
            let number = NonZeroU32::new(member).filter(|_| grouped);
            let own_bytes = sizes.as_mut().and_then(Iterator::next);
            result.flows.push(Flow { group: group.clone(), number, start, own_bytes });
        }
        let members = result.flows.len() - first;
        if arrivals.is_some() {
            total += members as u64;
            let at = fields.span_of("arrivals");
            if total > MAX_FLOWS {
                fields.faults.add(
                    at,
                    "too many flows arrive",
                    format!("at most {MAX_FLOWS} in all: write a larger `arrivals`, or `count`"),
                );
                break;
            }
            if members == 0 {
                let (end, later) = if stop.is_some_and(|s| s < run.duration) {
                    ("`stop`", "`stop`")
                } else {
                    ("the run ends", "end of the run")
                };
                let what = format!("with this seed no member of `{name}` arrives before {end}");
                fields.faults.add(
                    at,
                    what,
                    format!("write a smaller `arrivals` or a later {later}"),
                );
            }
        } else if fields.faults.count() == before && (members as u64) < most {
            let what = "the last members of the group never start";
            fields.faults.add(
                fields.span_of("stagger"),
                what,
                "write a smaller `stagger` or `count`",
            );
        }
        if let Some(twice) = names.add(&name, grouped.then_some(members as u32)) {
            let what = format!("two flows are named `{twice}`, one of them as a member of a group");
            fields.faults.add(fields.span_of("name"), what, "give each [[flow]] a different name");
        }
        result.last = fields.span;
    }
    result.flows.shrink_to_fit();
    result
}

/// What of the whole run the flows depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole<'a> {
    pub duration: Nanos,
    pub seed: u64,
    /// The congestion controls of the kernel it will run on, if it will.
    pub kernel: Option<&'a [String]>,
    /// Of every direction of a link, whether its router wants to know which link limits a flow.
    pub wants_ids: &'a [bool],
}

/// Names taken so far. Groups' names differ from one another, but a single flow may be named like
/// another group's member.
#[derive(Debug, Default)]
struct Names {
    /// Single flows named `STEM-NUMBER`: by stem, the numbers.
    singles: HashMap<String, BTreeSet<NonZeroU32>>,
    /// Members of groups.
    groups: HashMap<String, u32>,
}

impl Names {
    /// Adds a group of `members`, or a single flow; returns a name that is taken already.
    fn add(&mut self, name: &str, members: Option<u32>) -> Option<FlowName> {
        let (stem, number) = match members {
            Some(members) => {
                self.groups.insert(name.into(), members);
                let first = self.singles.get(name).and_then(BTreeSet::first).copied();
                (name, first.filter(|first| first.get() <= members)?)
            }
            None => {
                let single = FlowName::from(name);
                let number = single.number()?;
                self.singles.entry(single.stem().into()).or_default().insert(number);
                return self
                    .groups
                    .get(single.stem())
                    .filter(|members| number.get() <= **members)
                    .map(|_| single);
            }
        };
        Some(FlowName::member(&stem.into(), Some(number)))
    }
}

/// A group, and its name even where the rest is wrong.
fn read_one<'a>(
    fields: &Fields<'a>,
    nodes: &Nodes,
    graph: &mut Graph,
    run: Whole<'a>,
) -> (Option<Written>, String) {
    let duration = run.duration;
    fields.require("from");
    fields.require("to");
    // One that cannot be a name is still no other flow's.
    let given = || fields.table.text("name").unwrap_or("flow").to_owned();
    let name = fields.name("name").unwrap_or_else(given);
    let from = node(fields, "from", nodes);
    let to = node(fields, "to", nodes);
    let via = via(fields, nodes);
    let start = fields.time("start").unwrap_or(0);
    let stop = fields.time("stop");
    if start >= duration && fields.item("start").is_some() {
        let what = format!("the flow starts at {}, when the run is already over", show_time(start));
        fields.faults.add(
            fields.span_of("start"),
            what,
            format!("start before {} or write a longer `duration`", show_time(duration)),
        );
    }
    if let Some(stop) = stop.filter(|stop| *stop <= start) {
        let what =
            format!("the flow stops at {} and starts at {}", show_time(stop), show_time(start));
        fields.faults.add(fields.span_of("stop"), what, "`stop` must be later than `start`");
    }
    let start_jitter = fields.time("start-jitter").unwrap_or(0);
    let packet_bytes = fields.size("packet").map_or(DEFAULT_PACKET_BYTES, |n| n as u32);
    let traffic = traffic(fields, run.kernel);
    let unclaimed = if fields.bool("access-id").unwrap_or(false) {
        Unclaimed::Access
    } else {
        Unclaimed::Unknown
    };
    let (Some(from), Some(to), Some(via), Some((mut traffic, sizes))) = (from, to, via, traffic)
    else {
        return (None, name);
    };
    let lies = lies(fields, &traffic, run.kernel.is_some());
    if from == to {
        let what = format!("the flow goes from `{0}` to `{0}`", nodes.names[from]);
        fields.faults.add(fields.span_of("to"), what, "name another node as its destination");
        return (None, name);
    }
    let mut back = via.clone();
    back.reverse();
    let route = route(fields, nodes, graph, from, &via, to);
    let return_route =
        route.as_ref().and_then(|_| self::route(fields, nodes, graph, to, &back, from));
    let (Some(route), Some(return_route)) = (route, return_route) else { return (None, name) };
    if let Traffic::Tcp(tcp) = &mut traffic
        && tcp.congestion == Congestion::Xcp
        && route.iter().any(|direction| run.wants_ids[*direction])
    {
        tcp.ids = Some(unclaimed);
    }
    if let Traffic::Tcp(tcp) = &traffic
        && packet_bytes <= tcp.header_bytes()
    {
        let headers = tcp.header_bytes();
        fields.faults.add(
            fields.span_of("packet"),
            format!("{packet_bytes} bytes have no room for data: headers take {headers}"),
            format!("write at least {}", headers + 1),
        );
    }
    let group = Group {
        name: name.as_str().into(),
        from,
        to,
        route,
        return_route,
        start_jitter,
        stop,
        packet_bytes,
        traffic,
        lies,
    };
    (Some(Written { group, start, sizes }), name)
}

fn node(fields: &Fields<'_>, key: &str, nodes: &Nodes) -> Option<NodeId> {
    let name = fields.name(key)?;
    known(fields, &name, fields.span_of(key), nodes)
}

fn known(fields: &Fields<'_>, name: &str, span: Span, nodes: &Nodes) -> Option<NodeId> {
    let found = nodes.find(name).filter(|_| nodes.complete);
    if found.is_none() && nodes.complete {
        let help = suggest(name, nodes.names.iter().map(String::as_str), "nodes");
        fields.faults.add(span, format!("no link leads to a node `{name}`"), help);
    }
    found
}

fn via(fields: &Fields<'_>, nodes: &Nodes) -> Option<Vec<NodeId>> {
    if fields.item("via").is_none() {
        return Some(Vec::new());
    }
    fields.names("via")?.iter().map(|(name, span)| known(fields, name, *span, nodes)).collect()
}

fn route(
    fields: &Fields<'_>,
    nodes: &Nodes,
    graph: &mut Graph,
    from: NodeId,
    via: &[NodeId],
    to: NodeId,
) -> Option<Vec<DirectionId>> {
    let mut route = Vec::new();
    let mut at = from;
    for &next in via.iter().chain([&to]) {
        let Some(part) = graph.path(at, next) else {
            let reachable: Vec<&str> = graph
                .reachable(at)
                .into_iter()
                .filter(|n| *n != at)
                .map(|n| nodes.names[n].as_str())
                .collect();
            let what =
                format!("there is no path from `{}` to `{}`", nodes.names[at], nodes.names[next]);
            let key = if next == to { "to" } else { "via" };
            let help = format!(
                "`{}` reaches {}; add a [[link]] that joins the two parts",
                nodes.names[at],
                xcp_law::text::listed(reachable)
            );
            fields.faults.add(fields.span_of(key), what, help);
            return None;
        };
        route.extend(part);
        at = next;
    }
    Some(route)
}

/// What the members send, and how to draw their sizes where those differ.
fn traffic<'a>(
    fields: &Fields<'a>,
    kernel: Option<&'a [String]>,
) -> Option<(Traffic, Option<Sizes>)> {
    if let Some(item) = fields.item("udp") {
        for entry in fields.table.entries.iter().filter(|e| TCP_ONLY.contains(&e.key.as_str())) {
            let what = format!(
                "`{}` is a setting of TCP, but `udp` makes the flow send datagrams",
                entry.key
            );
            fields.faults.add(entry.key_span, what, "leave out one of the two");
        }
        let udp = Fields::of(fields.faults, &UDP, item)?;
        return udp_pattern(&udp).map(|pattern| (Traffic::Udp(pattern), None));
    }
    fields.require("congestion");
    let (bytes, sizes) = match amounts(fields) {
        Some(Amounts::Fixed(bytes)) => (Some(bytes), None),
        Some(Amounts::Drawn(sizes)) => (None, Some(sizes)),
        Some(Amounts::Endless) | None => (None, None),
    };
    tcp(fields, bytes, kernel).map(|tcp| (Traffic::Tcp(tcp), sizes))
}

fn tcp<'a>(fields: &Fields<'a>, bytes: Option<u64>, kernel: Option<&'a [String]>) -> Option<Tcp> {
    let name = fields.congestion("congestion", kernel);
    let (congestion, recovery) = match name {
        Some("xcp" | "xcp-robust") => (Congestion::Xcp, Recovery::Sack),
        Some("cubic") => (Congestion::Cubic, Recovery::Sack),
        Some("newreno") => (Congestion::Reno, Recovery::NewRenoImpatient),
        Some("sack") => (Congestion::Reno, Recovery::Sack),
        Some(name) if name != "reno" => (Congestion::Named(name.into()), Recovery::Sack),
        _ => (Congestion::Reno, Recovery::Reno),
    };
    let recovery = match fields.choice("recovery") {
        Some("reno") => Recovery::Reno,
        Some("reno-ns2") => Recovery::RenoNs2,
        Some("newreno") => Recovery::NewRenoImpatient,
        Some("newreno-slow-but-steady") => Recovery::NewRenoSlowButSteady,
        Some("sack") => Recovery::Sack,
        Some("sack-linux") => Recovery::SackLinux,
        _ => recovery,
    };
    let paced = fields.bool("paced").unwrap_or(congestion == Congestion::Xcp);
    let tcp = Tcp {
        congestion,
        xcp_sender: if name == Some("xcp-robust") { XcpSender::Robust } else { XcpSender::Window },
        recovery,
        loss_response: if fields.choice("loss-response") == Some("halve") {
            LossResponse::Halve
        } else {
            LossResponse::None
        },
        paced,
        wire: match fields.choice("wire") {
            Some("classic") => WireFormat::Classic,
            Some("classic-integer") => WireFormat::ClassicInteger,
            _ => WireFormat::Extended,
        },
        bytes,
        receive_buffer: fields.buffer("receive-buffer"),
        receive_buffer_changes: buffer_changes(fields),
        receive_window: match fields.choice("receive-window") {
            Some("two-per-ack") => ReceiveWindow::TwoPerAck,
            Some("feedback") => ReceiveWindow::Feedback,
            _ => ReceiveWindow::Open,
        },
        send_buffer: fields.buffer("send-buffer"),
        window_scaling: fields.bool("window-scaling").unwrap_or(true),
        delayed_ack: fields.bool("delayed-ack").unwrap_or(true),
        handshake: fields.bool("handshake").unwrap_or(true),
        initial_window: fields.integer("initial-window").map_or(10, |n| n as u32),
        rto_min: fields.time("rto-min").unwrap_or(200_000_000),
        rto_policy: if fields.choice("rto") == Some("fixed") {
            RtoPolicy::Fixed
        } else {
            RtoPolicy::BackOff
        },
        honest_window: fields.bool("honest-window").unwrap_or(true),
        ids: None,
    };
    if tcp.xcp_sender == XcpSender::Robust && tcp.wire != WireFormat::Extended {
        fields.faults.add(
            fields.span_of("wire"),
            "the robust sender speaks the extended format only: routers that rely on it have to \
             know that it keeps its rate",
            "leave out `wire`, or write congestion = \"xcp\"",
        );
    }
    if tcp.receive_window == ReceiveWindow::Feedback && tcp.wire == WireFormat::Extended {
        fields.faults.add(
            fields.span_of("receive-window"),
            "a window that opens by feedback counts packets, but this header's feedback is a rate",
            "add wire = \"classic\"",
        );
    }
    name.map(|_| tcp)
}

fn buffer_changes(fields: &Fields<'_>) -> Vec<BufferChange> {
    let mut changes: Vec<BufferChange> = Vec::new();
    for change in fields.tables("receive-buffer-changes", &BUFFER_CHANGE) {
        change.require("at");
        change.require("size");
        let Some(at) = change.time("at") else { continue };
        if changes.last().is_some_and(|before| before.at >= at) {
            change.faults.add(
                change.span_of("at"),
                "a change of the receiver's buffer is not later than the one before it",
                "list changes in order of time",
            );
        }
        changes.push(BufferChange { at, bytes: change.buffer("size") });
    }
    changes
}

fn udp_pattern(udp: &Fields<'_>) -> Option<UdpPattern> {
    let pattern =
        udp.choice("pattern").or_else(|| udp.item("pattern").is_none().then_some("constant"))?;
    let belongs: &[&str] = match pattern {
        "on-off" => &["pattern", "rate", "on", "off", "random"],
        "schedule" => &["pattern", "steps"],
        _ => &["pattern", "rate"],
    };
    udp.only(belongs, &format!("the pattern \"{pattern}\""));
    if pattern == "schedule" {
        udp.require("steps");
        return Some(UdpPattern::Schedule { steps: udp.rate_steps("steps")? });
    }
    udp.require("rate");
    let rate_bps = udp.rate("rate");
    match pattern {
        "on-off" => {
            udp.require("on");
            udp.require("off");
            let (on, off, random) =
                (udp.time("on"), udp.time("off"), udp.bool("random").unwrap_or(false));
            Some(UdpPattern::OnOff { rate_bps: rate_bps?, on: on?, off: off?, random })
        }
        "poisson" => Some(UdpPattern::Poisson { rate_bps: rate_bps? }),
        _ => Some(UdpPattern::Constant { rate_bps: rate_bps? }),
    }
}

/// Base RTT of a group's flows: the delays of their route there and back, without queues and
/// transmission. Saturates at [`MAX_TIME`].
fn base_rtt(group: &Group, delays: &[Nanos]) -> Nanos {
    let sum: u128 =
        group.route.iter().chain(&group.return_route).map(|d| u128::from(delays[*d])).sum();
    sum.min(u128::from(MAX_TIME)) as Nanos
}

/// What crosses each link direction, and the largest base RTT.
pub(crate) fn crossings(flows: &[Flow], delays: &[Nanos]) -> (Vec<crate::links::Crossing>, Nanos) {
    let mut crossings = vec![crate::links::Crossing::default(); delays.len()];
    let mut seen = HashSet::new();
    let mut largest = 0;
    for members in flows.chunk_by(|a, b| Arc::ptr_eq(&a.group, &b.group)) {
        let group = &members[0].group;
        // Groups of the same two routes and packets need not be looked at twice.
        if !seen.insert((&group.route, &group.return_route, group.packet_bytes)) {
            continue;
        }
        let rtt = base_rtt(group, delays);
        largest = largest.max(rtt);
        for &d in &group.route {
            crossings[d].packet_bytes = crossings[d].packet_bytes.max(Some(group.packet_bytes));
        }
        for &d in group.route.iter().chain(&group.return_route) {
            crossings[d].rtt = crossings[d].rtt.max(Some(rtt));
        }
    }
    (crossings, largest)
}

/// The measured period of the file: within the run.
pub(crate) fn measure(file: &Fields<'_>, duration: Nanos) -> xcp_model::units::Period {
    let whole = xcp_model::units::Period { from: 0, to: duration };
    let Some(fields) = file.table("measure", &crate::spec::MEASURE) else { return whole };
    let Some(measure) = period(&fields, 0, duration) else { return whole };
    if measure.to > duration {
        let what = format!(
            "the measured period ends at {}, after the run's {}",
            show_time(measure.to),
            show_time(duration)
        );
        fields.faults.add(
            fields.span_of("to"),
            what,
            format!("write to = \"{}\" or a longer `duration`", show_time(duration)),
        );
    }
    measure
}
