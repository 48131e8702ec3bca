//! Addresses and routes. Linux routes by destination, and a scenario's flows between the same nodes
//! may take different paths: so there is a pair of addresses for every pair of paths. What Linux
//! keeps with a route (the first window, whether to acknowledge at once) tells pairs apart, too.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use xcp_model::{Congestion, DirectionId, Flow, NodeId, Scenario, Tcp, Traffic};

use super::{DeviceId, Family, Places, Plan, Route, SpaceId, Way, WayId, direction};
use crate::LabError;

/// The kernel's own first window, packets: TCP_INIT_CWND.
const LINUX_INITIAL_WINDOW: u32 = 10;

/// What flows of one way have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub from: NodeId,
    pub to: NodeId,
    pub route: Vec<DirectionId>,
    pub return_route: Vec<DirectionId>,
    pub initial_window: Option<u32>,
    pub quick_ack: bool,
}

impl Key {
    fn of(flow: &Flow) -> Self {
        let group = &flow.group;
        let (initial_window, quick_ack) = match &group.traffic {
            Traffic::Tcp(tcp) => (initial_window(tcp), !tcp.delayed_ack),
            Traffic::Udp(_) => (None, false),
        };
        let (route, return_route) = (group.route.clone(), group.return_route.clone());
        Self { from: group.from, to: group.to, route, return_route, initial_window, quick_ack }
    }
}

/// The first window that has to be told to the kernel. XCP's endpoint has its own.
fn initial_window(tcp: &Tcp) -> Option<u32> {
    Some(tcp.initial_window)
        .filter(|&n| n != LINUX_INITIAL_WINDOW && tcp.congestion != Congestion::Xcp)
}

/// The two addresses of a way.
fn addresses(family: Family, way: WayId) -> [IpAddr; 2] {
    let number = way as u16 + 1;
    let [high, low] = number.to_be_bytes();
    match family {
        Family::V4 => [1, 2].map(|side| Ipv4Addr::new(10, side, high, low).into()),
        Family::V6 => [1, 2].map(|side| Ipv6Addr::new(0xfd00, side, 0, 0, 0, 0, 0, number).into()),
    }
}

/// Makes the ways of all flows, and the routes along them.
pub(super) fn build(plan: &mut Plan, scenario: &Scenario, places: &Places) -> Result<(), LabError> {
    let mut known = HashSet::new();
    for members in scenario.flows.chunk_by(|a, b| std::sync::Arc::ptr_eq(&a.group, &b.group)) {
        let flow = &members[0];
        let key = Key::of(flow);
        if !known.insert(key.clone()) {
            continue;
        }
        let number = plan.ways.len();
        let [source, destination] = addresses(plan.family, number);
        let (source, destination) =
            ((places.ends[key.from], source), (places.ends[key.to], destination));
        let there = path(scenario, places, &key.route, key.to);
        let back = path(scenario, places, &key.return_route, key.from);
        plan.ways.push(Way { source, destination, key });
        let way = &plan.ways[number].key;
        let (first_window, quick_ack) = (way.initial_window, way.quick_ack);
        let first = [(source.0, first_window, false), (destination.0, None, quick_ack)];
        for ((steps, to), (begins, initial_window, quick_ack)) in
            [(there, destination.1), (back, source.1)].into_iter().zip(first)
        {
            let from_host = plan.spaces[begins].role == super::Role::Host;
            let hub = from_host.then(|| host_device(plan, begins)).flatten();
            let steps = hub.into_iter().map(|device| (begins, device)).chain(steps);
            let mut seen: HashMap<SpaceId, DeviceId> = HashMap::new();
            for (space, device) in steps {
                if seen.insert(space, device).is_some_and(|before| before != device) {
                    return Err(LabError::Refused(format!(
                        "flow \"{}\" passes {} twice and leaves it by two links: Linux routes by \
                         destination and would always take one of them; give it a `via` that \
                         visits every node once",
                        flow.group.name, plan.spaces[space].name
                    )));
                }
                let end = space == begins;
                plan.routes.push(Route {
                    space,
                    to,
                    device,
                    initial_window: initial_window.filter(|_| end),
                    quick_ack: quick_ack && end,
                });
            }
        }
    }
    Ok(())
}

/// The way of a flow.
pub(super) fn of(plan: &Plan, flow: &Flow) -> WayId {
    let key = Key::of(flow);
    // Made for every group before anybody asks.
    plan.ways.iter().position(|way| way.key == key).unwrap_or(0)
}

/// Along a path, which namespaces send what they get by which device.
fn path(
    scenario: &Scenario,
    places: &Places,
    route: &[DirectionId],
    to: NodeId,
) -> Vec<(SpaceId, DeviceId)> {
    let mut steps = Vec::new();
    for &number in route {
        let (_, node) = direction(scenario, number);
        steps.push((places.nodes[node], places.exits[number]));
        if let Some((_, gate, device)) = places.gates.iter().find(|(d, ..)| *d == number) {
            steps.push((*gate, *device));
        }
    }
    if let Some([device, _]) = places.hubs[to] {
        steps.push((places.nodes[to], device));
    }
    steps
}

/// A host's only device.
fn host_device(plan: &Plan, space: SpaceId) -> Option<DeviceId> {
    plan.devices.iter().position(|device| device.space == space)
}
