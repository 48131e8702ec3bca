//! Where a packet goes next: every flow's routes, laid out flat and shared by the flows that have them in common.

use std::collections::BTreeMap;

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
