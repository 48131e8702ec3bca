//! Reads `[[flow]]`: groups expanded, names resolved, routes found. Where packets go is `graph.rs`'s, what a queue holds `links.rs`'s.

use std::collections::{HashMap, HashSet};

use crate::error::{Span, suggest};
use crate::fields::Fields;
use crate::graph::Graph;
use crate::links::{DEFAULT_PACKET_BYTES, Nodes, period, reserved};
use crate::model::{Congestion, DirectionId, Flow, LossResponse, NodeId, Recovery, RtoPolicy, Tcp, Traffic, UdpPattern, WireFormat};
use crate::quantity::{MAX_TIME, show_time};
use crate::spec::{FLOW, TCP_ONLY, UDP};
use crate::tree::{Item, Value};
use crate::units::Nanos;

/// More flows than this in all are refused: the engine is proven up to a million.
const MAX_FLOWS: u64 = 1_000_000;

/// Flows, and where each was written.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    pub flows: Vec<Flow>,
    pub spans: Vec<Span>,
}

/// Reads all flows of the file, except groups in `without`.
pub(crate) fn read(file: &Fields<'_>, nodes: &Nodes, graph: &mut Graph, duration: Nanos, without: &HashSet<String>) -> Flows {
    let mut result = Flows::default();
    let mut groups = HashSet::new();
    let mut names: HashSet<String> = HashSet::new();
    let mut total = 0;
    for fields in file.tables("flow", &FLOW) {
        let before = fields.faults.count();
        let (flow, group) = read_one(&fields, nodes, graph, duration);
        if !groups.insert(group.clone()) {
            let what = format!("two flows are named `{group}`");
            fields.faults.add(fields.span_of("name"), what, "give each [[flow]] a name of its own");
        } else if FLOW.key(&group).is_some() {
            reserved(&fields, &group);
        }
        if without.contains(&group) {
            continue;
        }
        let count = fields.integer("count");
        total += count.unwrap_or(1);
        if total > MAX_FLOWS {
            fields.faults.add(fields.span_of("count"), format!("{total} flows are too many"), format!("at most {MAX_FLOWS} in all"));
            break;
        }
        if fields.faults.count() > before {
            continue;
        }
        let Some(flow) = flow else { continue };
        let stagger = fields.time("stagger").unwrap_or(0);
        for member in 0..count.unwrap_or(1) {
            let name = if count.is_some() { format!("{group}-{}", member + 1) } else { group.clone() };
            if !names.insert(name.clone()) {
                let what = format!("two flows are named `{name}`, one of them as a member of a group");
                fields.faults.add(fields.span_of("name"), what, "give each [[flow]] a name of its own");
                break;
            }
            let start = stagger.checked_mul(member).and_then(|s| s.checked_add(flow.start)).filter(|s| *s <= MAX_TIME);
            let Some(start) = start else {
                fields.faults.add(
                    fields.span_of("stagger"),
                    "the last members of the group never start",
                    "write a smaller `stagger` or `count`",
                );
                break;
            };
            if flow.stop.is_some_and(|stop| stop <= start) && member > 0 {
                let what = format!("`{name}` starts at {}, when the group has stopped", show_time(start));
                fields.faults.add(fields.span_of("stop"), what, "write a later `stop`, or a smaller `stagger` or `count`");
                break;
            }
            result.flows.push(Flow { name, start, ..flow.clone() });
            result.spans.push(fields.span);
        }
    }
    result
}

/// The first member of a group, and the group's name.
fn read_one(fields: &Fields<'_>, nodes: &Nodes, graph: &mut Graph, duration: Nanos) -> (Option<Flow>, String) {
    fields.require("from");
    fields.require("to");
    let group = fields.name("name").unwrap_or_else(|| "flow".into());
    let from = node(fields, "from", nodes);
    let to = node(fields, "to", nodes);
    let via = via(fields, nodes);
    let start = fields.time("start").unwrap_or(0);
    let stop = fields.time("stop");
    if start >= duration && fields.item("start").is_some() {
        let what = format!("the flow starts at {}, when the run is over", show_time(start));
        fields.faults.add(fields.span_of("start"), what, format!("start before {} or write a longer `duration`", show_time(duration)));
    }
    if let Some(stop) = stop.filter(|stop| *stop <= start) {
        let what = format!("the flow stops at {} and starts at {}", show_time(stop), show_time(start));
        fields.faults.add(fields.span_of("stop"), what, "`stop` must be later than `start`");
    }
    let start_jitter = fields.time("start-jitter").unwrap_or(0);
    let packet_bytes = fields.size("packet").map_or(DEFAULT_PACKET_BYTES, |n| n as u32);
    let traffic = traffic(fields);
    let (Some(from), Some(to), Some(via), Some(traffic)) = (from, to, via, traffic) else { return (None, group) };
    if from == to {
        let what = format!("the flow goes from `{0}` to `{0}`", nodes.names[from]);
        fields.faults.add(fields.span_of("to"), what, "name another node as its destination");
        return (None, group);
    }
    let mut back = via.clone();
    back.reverse();
    let route = route(fields, nodes, graph, from, &via, to);
    let return_route = route.as_ref().and_then(|_| self::route(fields, nodes, graph, to, &back, from));
    let (Some(route), Some(return_route)) = (route, return_route) else { return (None, group) };
    let flow =
        Flow { name: String::new(), group: group.clone(), from, to, route, return_route, start, start_jitter, stop, packet_bytes, traffic };
    (Some(flow), group)
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

fn route(fields: &Fields<'_>, nodes: &Nodes, graph: &mut Graph, from: NodeId, via: &[NodeId], to: NodeId) -> Option<Vec<DirectionId>> {
    let mut route = Vec::new();
    let mut at = from;
    for &next in via.iter().chain([&to]) {
        let Some(part) = graph.path(at, next) else {
            let reachable: Vec<&str> = graph.reachable(at).into_iter().filter(|n| *n != at).map(|n| nodes.names[n].as_str()).collect();
            let what = format!("there is no way from `{}` to `{}`", nodes.names[at], nodes.names[next]);
            let key = if next == to { "to" } else { "via" };
            let help =
                format!("`{}` reaches {}; add a [[link]] that joins the two parts", nodes.names[at], crate::error::listed(reachable));
            fields.faults.add(fields.span_of(key), what, help);
            return None;
        };
        route.extend(part);
        at = next;
    }
    Some(route)
}

fn traffic(fields: &Fields<'_>) -> Option<Traffic> {
    if let Some(item) = fields.item("udp") {
        for entry in fields.table.entries.iter().filter(|e| TCP_ONLY.contains(&e.key.as_str())) {
            let what = format!("`{}` is a setting of TCP, and `udp` makes the flow datagrams", entry.key);
            fields.faults.add(entry.key_span, what, "leave out one of the two");
        }
        let udp = Fields::of(fields.faults, &UDP, item)?;
        return udp_pattern(&udp).map(Traffic::Udp);
    }
    fields.require("congestion");
    tcp(fields).map(Traffic::Tcp)
}

fn tcp(fields: &Fields<'_>) -> Option<Tcp> {
    let name = fields.choice("congestion");
    let (congestion, recovery) = match name {
        Some("xcp") => (Congestion::Xcp, Recovery::Sack),
        Some("cubic") => (Congestion::Cubic, Recovery::Sack),
        Some("newreno") => (Congestion::Reno, Recovery::NewRenoImpatient),
        Some("sack") => (Congestion::Reno, Recovery::Sack),
        _ => (Congestion::Reno, Recovery::Reno),
    };
    let recovery = match fields.choice("recovery") {
        Some("reno") => Recovery::Reno,
        Some("newreno") => Recovery::NewRenoImpatient,
        Some("newreno-slow-but-steady") => Recovery::NewRenoSlowButSteady,
        Some("sack") => Recovery::Sack,
        _ => recovery,
    };
    let tcp = Tcp {
        congestion,
        recovery,
        loss_response: if fields.choice("loss-response") == Some("halve") { LossResponse::Halve } else { LossResponse::None },
        paced: fields.bool("paced").unwrap_or(congestion == Congestion::Xcp),
        wire: if fields.choice("wire") == Some("classic") { WireFormat::Classic } else { WireFormat::Extended },
        bytes: fields.size("bytes"),
        receive_buffer: fields.buffer("receive-buffer"),
        send_buffer: fields.buffer("send-buffer"),
        window_scaling: fields.bool("window-scaling").unwrap_or(true),
        delayed_ack: fields.bool("delayed-ack").unwrap_or(true),
        handshake: fields.bool("handshake").unwrap_or(true),
        initial_window: fields.integer("initial-window").map_or(10, |n| n as u32),
        rto_min: fields.time("rto-min").unwrap_or(200_000_000),
        rto_policy: if fields.choice("rto") == Some("fixed") { RtoPolicy::Fixed } else { RtoPolicy::BackOff },
        honest_window: fields.bool("honest-window").unwrap_or(true),
    };
    name.map(|_| tcp)
}

fn udp_pattern(udp: &Fields<'_>) -> Option<UdpPattern> {
    let pattern = udp.choice("pattern").or_else(|| udp.item("pattern").is_none().then_some("constant"))?;
    let belongs: &[&str] = match pattern {
        "on-off" => &["pattern", "rate", "on", "off", "random"],
        "schedule" => &["pattern", "steps"],
        _ => &["pattern", "rate"],
    };
    for entry in udp.table.entries.iter().filter(|e| UDP.key(&e.key).is_some() && !belongs.contains(&e.key.as_str())) {
        let what = format!("`{}` means nothing to the pattern \"{pattern}\"", entry.key);
        udp.faults.add(entry.key_span, what, format!("its keys are {}", crate::error::listed(belongs.iter().copied())));
    }
    if pattern == "schedule" {
        udp.require("steps");
        return Some(UdpPattern::Schedule { steps: steps(udp)? });
    }
    udp.require("rate");
    let rate_bps = udp.rate("rate");
    match pattern {
        "on-off" => {
            udp.require("on");
            udp.require("off");
            let (on, off, random) = (udp.time("on"), udp.time("off"), udp.bool("random").unwrap_or(false));
            Some(UdpPattern::OnOff { rate_bps: rate_bps?, on: on?, off: off?, random })
        }
        "poisson" => Some(UdpPattern::Poisson { rate_bps: rate_bps? }),
        _ => Some(UdpPattern::Constant { rate_bps: rate_bps? }),
    }
}

fn steps(udp: &Fields<'_>) -> Option<Vec<(Nanos, u64)>> {
    let item = udp.item("steps")?;
    let wrong = |item: &Item| {
        udp.faults.add(item.span, "`steps` takes a list of [time, rate]", "write steps = [[\"0s\", \"1mbit\"], [\"10s\", \"0bit\"]]")
    };
    let Value::Array(rows) = &item.value else {
        wrong(item);
        return None;
    };
    if rows.is_empty() {
        wrong(item);
    }
    let mut steps: Vec<(Nanos, u64)> = Vec::new();
    for row in rows {
        let Value::Array(cells) = &row.value else {
            wrong(row);
            continue;
        };
        let [from, rate] = cells.as_slice() else {
            wrong(row);
            continue;
        };
        let (Some(t), Some(rate)) = (udp.time_of(from, "steps", true), udp.rate_of(rate, "steps", true)) else { continue };
        if steps.last().is_some_and(|(before, _)| *before >= t) {
            udp.faults.add(from.span, "the steps are not in order of time", "each step must be later than the one before it");
        }
        steps.push((t, rate));
    }
    Some(steps)
}

/// Base RTT of a flow: the delays of its route there and back, without queues and transmission. Saturates at [`MAX_TIME`].
pub(crate) fn base_rtt(flow: &Flow, delays: &[Nanos]) -> Nanos {
    let sum: u128 = flow.route.iter().chain(&flow.return_route).map(|d| u128::from(delays[*d])).sum();
    sum.min(u128::from(MAX_TIME)) as Nanos
}

/// Largest base RTT over the flows; flows of the same two routes are looked at once.
pub(crate) fn crossings(flows: &[Flow], delays: &[Nanos]) -> (Vec<crate::links::Crossing>, Nanos) {
    let mut crossings = vec![crate::links::Crossing::default(); delays.len()];
    let mut seen: HashMap<(&[DirectionId], &[DirectionId], u32), ()> = HashMap::new();
    let mut largest = 0;
    let mut last: Option<&Flow> = None;
    for flow in flows {
        // Members of a group follow one another and share everything looked at here.
        if last.is_some_and(|l| l.group == flow.group) || seen.insert((&flow.route, &flow.return_route, flow.packet_bytes), ()).is_some() {
            continue;
        }
        last = Some(flow);
        let rtt = base_rtt(flow, delays);
        largest = largest.max(rtt);
        for &d in &flow.route {
            crossings[d].packet_bytes = crossings[d].packet_bytes.max(Some(flow.packet_bytes));
        }
        for &d in flow.route.iter().chain(&flow.return_route) {
            crossings[d].rtt = crossings[d].rtt.max(Some(rtt));
        }
    }
    (crossings, largest)
}

/// The measured period of the file: within the run.
pub(crate) fn measure(file: &Fields<'_>, duration: Nanos) -> crate::units::Period {
    let whole = crate::units::Period { from: 0, to: duration };
    let Some(fields) = file.table("measure", &crate::spec::MEASURE) else { return whole };
    let Some(measure) = period(&fields, 0, duration) else { return whole };
    if measure.to > duration {
        let what = format!("the measured period ends at {}, after the run's {}", show_time(measure.to), show_time(duration));
        fields.faults.add(fields.span_of("to"), what, format!("write to = \"{}\" or a longer `duration`", show_time(duration)));
    }
    measure
}
