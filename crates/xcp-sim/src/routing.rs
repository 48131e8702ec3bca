//! Where a packet goes next: every flow's routes, laid out flat and shared by the flows that have them in common.

use std::collections::BTreeMap;
use std::sync::Arc;

use xcp_scenario::model::{DirectionId, Scenario};

/// A place in the table of routes: the link that a packet takes next, or the end of its route.
pub type Position = u32;

/// Ends a route.
const END: u32 = u32::MAX;

/// All routes of a scenario.
#[derive(Debug)]
pub struct Routing {
    /// Routes one after another, each closed by `END`.
    hops: Vec<u32>,
    /// For each flow, where its route and its return route begin in `hops`.
    routes: Vec<[u32; 2]>,
    /// For each link, the one link that all its packets come from, `SEVERAL` if there is no such link.
    feeders: Vec<u32>,
}

/// In `Routing::feeders`: packets come from several links, or from an endpoint.
const SEVERAL: u32 = END;

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
        let mut routes = Vec::with_capacity(scenario.flows.len());
        for members in scenario.flows.chunk_by(|a, b| Arc::ptr_eq(&a.group, &b.group)) {
            let group = &members[0].group;
            let places = [place(group.route.as_slice()), place(group.return_route.as_slice())];
            routes.extend(members.iter().map(|_| places));
        }
        let mut feeders = vec![None; 2 * scenario.links.len()];
        for route in hops.split(|&hop| hop == END) {
            let mut from = SEVERAL;
            for &link in route {
                let feeder = &mut feeders[link as usize];
                *feeder = if feeder.is_none_or(|known| known == from) { Some(from) } else { Some(SEVERAL) };
                from = link;
            }
        }
        let feeders = feeders.into_iter().map(|feeder| feeder.unwrap_or(SEVERAL)).collect();
        Self { hops, routes, feeders }
    }

    /// Whether every packet of `link` comes from `feeder`.
    #[must_use]
    pub fn only_feeds(&self, feeder: usize, link: usize) -> bool {
        self.feeders[link] == feeder as u32
    }

    /// Where a flow's route (`returning` false) or return route begins.
    #[must_use]
    pub fn begin(&self, flow: u32, returning: bool) -> Position {
        self.routes[flow as usize][usize::from(returning)]
    }

    /// The link at a position, `None` at the end of a route. The position after it is the next higher.
    #[must_use]
    pub fn link(&self, position: Position) -> Option<usize> {
        let link = self.hops[position as usize];
        (link != END).then_some(link as usize)
    }
}
