//! Where a packet goes next: every flow's routes, laid out flat and shared by the flows that have them in common.

use std::collections::BTreeMap;

use xcp_scenario::model::{DirectionId, Scenario};

use crate::packet::{Body, Packet};

/// Ends a route.
const END: u32 = u32::MAX;

/// All routes of a scenario.
#[derive(Debug)]
pub struct Routing {
    /// Routes one after another, each closed by `END`.
    hops: Vec<u32>,
    /// For each flow, where its route and its return route begin in `hops`.
    routes: Vec<[u32; 2]>,
}

impl Routing {
    /// Takes the routes of a scenario.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let mut hops = Vec::new();
        let mut known: BTreeMap<&[DirectionId], u32> = BTreeMap::new();
        let mut place = |route| {
            *known.entry(route).or_insert_with(|| {
                let begin = hops.len() as u32;
                hops.extend(route.iter().map(|&direction| direction as u32));
                hops.push(END);
                begin
            })
        };
        let routes = scenario.flows.iter().map(|f| [place(f.route.as_slice()), place(f.return_route.as_slice())]).collect();
        Self { hops, routes }
    }

    /// The first link of a flow's route (`returning` false) or return route.
    #[must_use]
    pub fn first(&self, flow: u32, returning: bool) -> usize {
        self.hops[self.routes[flow as usize][usize::from(returning)] as usize] as usize
    }

    /// The link a packet takes next, `None` if it has arrived; moves the packet's position on.
    pub fn next(&self, packet: &mut Packet) -> Option<usize> {
        let returning = matches!(packet.body, Body::Ack(_));
        let begin = self.routes[packet.flow as usize][usize::from(returning)];
        let link = self.hops[begin as usize + usize::from(packet.hop)];
        packet.hop += 1;
        (link != END).then_some(link as usize)
    }
}
