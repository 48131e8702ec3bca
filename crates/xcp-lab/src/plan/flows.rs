//! What a flow's settings become as settings of sockets, and what of them Linux does in its own
//! way: that is noted, or refused where it would make the result another one.

use xcp_linux::MSS;
use xcp_model::sizes::TIMESTAMPS;
use xcp_model::units::Nanos;
use xcp_model::{
    Congestion, Flow, Limit, ReceiveWindow, Recovery, RtoPolicy, Scenario, Tcp, Traffic, WireFormat,
};

use super::{FIRST_PORT, FlowPlan, Kind, Machine, Plan, TcpPlan, ways};
use crate::LabError;

/// TCP's header.
const TCP_HEADER: u32 = 20;
/// UDP's header.
const UDP_HEADER: u32 = 8;
/// Widest window without window scaling.
const UNSCALED_WINDOW: u32 = 65_535;
/// The kernel's least retransmission timeout, TCP_RTO_MIN.
const LINUX_RTO_MIN: Nanos = 200_000_000;
/// A flow without a handshake connects this much before its start, beside two round trips.
const EARLY: Nanos = 100_000_000;
/// A sender that will be stopped keeps no more unsent than its path carries in this time.
const UNSENT: Nanos = 10_000_000;

/// Works out the sockets of all flows.
pub(super) fn build(
    plan: &mut Plan,
    scenario: &Scenario,
    machine: &Machine,
) -> Result<(), LabError> {
    let mut sack: Vec<Option<(bool, String)>> = vec![None; plan.spaces.len()];
    for members in scenario.flows.chunk_by(|a, b| std::sync::Arc::ptr_eq(&a.group, &b.group)) {
        let way = ways::of(plan, &members[0]);
        if let Traffic::Tcp(tcp) = &members[0].group.traffic {
            check(plan, &members[0], tcp, machine)?;
            let (group, ends) = (&members[0].group, &plan.ways[way]);
            for ((space, _), node) in [(ends.source, group.from), (ends.destination, group.to)] {
                agree(&mut sack[space], &scenario.nodes[node], &members[0], tcp)?;
                plan.spaces[space].in_flight =
                    plan.spaces[space].in_flight.max(in_flight(scenario, &members[0]));
            }
        }
        for flow in members {
            let number = plan.flows.len();
            let start = xcp_elements::start(flow, scenario.seed, number);
            let stop = flow.group.stop;
            let kind = match flow.traffic() {
                Traffic::Tcp(tcp) => Kind::Tcp(connection(plan, scenario, flow, tcp, machine)),
                Traffic::Udp(pattern) => {
                    let packet_bytes = flow.group.packet_bytes as u16;
                    Kind::Udp { pattern, packet_bytes, payload: datagram(plan, flow)? }
                }
            };
            plan.flows.push(FlowPlan {
                way,
                port: FIRST_PORT + number as u16,
                start: Some(start).filter(|start| stop.is_none_or(|stop| *start < stop)),
                stop,
                kind,
            });
        }
    }
    for (space, sack) in plan.spaces.iter_mut().zip(sack) {
        space.sack = sack.map(|(on, _)| on);
    }
    Ok(())
}

/// Bytes of a datagram's payload.
fn datagram(plan: &Plan, flow: &Flow) -> Result<u32, LabError> {
    let (packet, headers) = (flow.group.packet_bytes, plan.family.frame_bytes() + UDP_HEADER);
    packet.checked_sub(headers).ok_or_else(|| {
        LabError::Refused(format!(
            "flow \"{}\": packets of {packet} bytes cannot hold the headers of Ethernet, IP and \
             UDP: write at least {headers}",
            flow.group.name
        ))
    })
}

/// TCP_MAXSEG: what of a packet, Ethernet's header included, is neither IP's nor TCP's fixed
/// header.
fn mss(plan: &Plan, flow: &Flow) -> u32 {
    flow.group.packet_bytes.saturating_sub(plan.family.frame_bytes() + TCP_HEADER)
}

/// Refuses what Linux cannot do, notes what it does in its own way.
fn check(plan: &mut Plan, flow: &Flow, tcp: &Tcp, machine: &Machine) -> Result<(), LabError> {
    let name = &flow.group.name;
    let headers = plan.family.frame_bytes() + TCP_HEADER;
    if !MSS.contains(&mss(plan, flow)) {
        return Err(LabError::Refused(format!(
            "flow \"{name}\": Linux's TCP cannot send packets of {} bytes on the wire: write \
             `packet` from {} to {}",
            flow.group.packet_bytes,
            MSS.start() + headers,
            MSS.end() + headers
        )));
    }
    if tcp.receive_window != ReceiveWindow::Open || !tcp.receive_buffer_changes.is_empty() {
        return Err(LabError::Refused(format!(
            "flow \"{name}\": the kernel's receiver decides itself how to open its window: remove \
             `receive-window` and `receive-buffer-changes`, or simulate it (without --on)"
        )));
    }
    if tcp.congestion == Congestion::Xcp && tcp.wire == WireFormat::ClassicInteger {
        return Err(LabError::Refused(format!(
            "flow \"{name}\": the kernel programs do not support feedback in whole packets: write \
             wire = \"classic\", or simulate it (without --on)"
        )));
    }
    if tcp.ids.is_some() && tcp.wire == WireFormat::Classic {
        return Err(LabError::Refused(format!(
            "flow \"{name}\": a router on its path shuffles only the flows that it limits, and \
             the 2005 format has no room for the ids that identify them: write wire = \
             \"extended\", or run it without --on linux"
        )));
    }
    let congestion = congestion(tcp);
    if let Some(congestion) =
        congestion.filter(|name| !machine.congestions.iter().any(|c| c == name))
    {
        return Err(LabError::missing(format!(
            "flow \"{name}\": this kernel has no congestion control \"{congestion}\"; it has {}: \
             try `modprobe tcp_{congestion}`",
            machine.congestions.join(", ")
        )));
    }
    if tcp.rto_min != LINUX_RTO_MIN && !machine.rto_min {
        return Err(LabError::missing(format!(
            "flow \"{name}\": an rto-min other than 200ms needs the setting \
             net.ipv4.tcp_rto_min_us, which Linux has had since 6.11"
        )));
    }
    let mut note = |what: &str| plan.note(format!("flow \"{name}\": {what}"));
    match tcp.recovery {
        Recovery::Sack | Recovery::SackLinux | Recovery::NewRenoSlowButSteady => {}
        Recovery::Reno | Recovery::RenoNs2 => {
            note("recovery = \"reno\": Linux without SACK recovers as NewReno does")
        }
        Recovery::NewRenoImpatient => {
            note(
                "recovery = \"newreno\": Linux restarts the retransmission timer at every partial \
                    acknowledgement (slow but steady)",
            );
        }
    }
    if tcp.rto_policy == RtoPolicy::Fixed {
        note("rto = \"fixed\": Linux doubles the timeout when it expires again");
    }
    if !tcp.handshake {
        note("handshake = false: the connection is made before the flow starts");
    }
    if tcp.paced && tcp.congestion != Congestion::Xcp {
        note("paced = true: Linux paces at 120 % of cwnd/srtt, in slow start at 200 %");
    }
    Ok(())
}

/// The kernel's name of a congestion control; `None` is our XCP.
fn congestion(tcp: &Tcp) -> Option<&str> {
    (tcp.congestion != Congestion::Xcp).then(|| tcp.congestion.name())
}

/// What a flow's path and its queues hold, bytes.
fn in_flight(scenario: &Scenario, flow: &Flow) -> u64 {
    let group = &flow.group;
    let direction = |d: &usize| &scenario.links[d / 2].directions[d % 2];
    let slowest = group.route.iter().map(|d| direction(d).fastest_bps()).min().unwrap_or(0);
    let way = group.route.iter().chain(&group.return_route);
    let round_trip: u128 = way.map(|d| u128::from(direction(d).longest_delay())).sum();
    let queues = group.route.iter().map(|d| match direction(d).queue.limit {
        Limit::Packets(n) => n.saturating_mul(group.packet_bytes.into()),
        Limit::Bytes(n) => n,
    });
    let path = u128::from(slowest) * round_trip / 8_000_000_000;
    u64::try_from(path).unwrap_or(u64::MAX).saturating_add(queues.fold(0, u64::saturating_add))
}

/// Whether connections use SACK is a setting of the namespace: all that have an end there must
/// agree.
fn agree(
    sack: &mut Option<(bool, String)>,
    node: &str,
    flow: &Flow,
    tcp: &Tcp,
) -> Result<(), LabError> {
    let wanted = matches!(tcp.recovery, Recovery::Sack | Recovery::SackLinux);
    match sack {
        Some((on, other)) if *on != wanted => {
            let (with, without) = if wanted {
                (&*flow.group.name, other.as_str())
            } else {
                (other.as_str(), &*flow.group.name)
            };
            Err(LabError::Refused(format!(
                "flow \"{with}\" recovers with SACK, flow \"{without}\" without it, and both have \
                 an end at {node}, where Linux has one setting for all: let them start and end at \
                 different nodes, or give them the same `recovery`",
            )))
        }
        Some(_) => Ok(()),
        None => {
            *sack = Some((wanted, flow.group.name.to_string()));
            Ok(())
        }
    }
}

/// The settings of one connection.
fn connection(
    plan: &Plan,
    scenario: &Scenario,
    flow: &Flow,
    tcp: Tcp,
    machine: &Machine,
) -> TcpPlan {
    let packet = u64::from(flow.group.packet_bytes);
    let mss = mss(plan, flow);
    let payload = mss - TIMESTAMPS - tcp.option_bytes();
    // As in the simulator a buffer holds whole packets, headers included, and at least one.
    let segments = |buffer: Option<u64>| buffer.map(|bytes| (bytes / packet).max(1));
    let window = segments(tcp.receive_buffer).map(|n| n.saturating_mul(payload.into()));
    let unscaled = (!tcp.window_scaling).then_some(u64::from(UNSCALED_WINDOW));
    let window_clamp =
        window.into_iter().chain(unscaled).min().and_then(|bytes| u32::try_from(bytes).ok());
    let directions = || flow.group.route.iter().map(|d| &scenario.links[d / 2].directions[d % 2]);
    let slowest = directions().map(|d| d.fastest_bps()).min().unwrap_or(u64::MAX);
    let unsent = u128::from(slowest) * u128::from(UNSENT) / 8_000_000_000;
    let unsent = (unsent as u64).clamp(4 * packet, 1 << 30) as u32;
    let round_trip: Nanos = flow
        .group
        .route
        .iter()
        .chain(&flow.group.return_route)
        .map(|d| scenario.links[d / 2].directions[d % 2].delay)
        .sum();
    TcpPlan {
        congestion: congestion(&tcp).map(str::to_owned),
        mss,
        payload,
        window_clamp,
        send_segments: segments(tcp.send_buffer).and_then(|n| u32::try_from(n).ok()),
        unsent_bytes: flow.group.stop.map(|_| unsent),
        // Whatever the namespace's last connection asked for, this one gets its own.
        sets_rto_min: machine.rto_min,
        connects_early: if tcp.handshake {
            0
        } else {
            round_trip.saturating_mul(2).saturating_add(EARLY)
        },
        settings: tcp,
    }
}
