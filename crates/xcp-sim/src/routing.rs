//! Where a packet goes next: every flow's routes, laid out flat and shared by the flows that have
//! them in common.

use std::collections::BTreeMap;
use std::sync::Arc;

use xcp_model::{DirectionId, Scenario};

use crate::partition::Partition;
use crate::turns::needs_turns;

/// A place in the table of routes.
pub type Position = u32;

/// What is at a position: the link that a packet takes next, by its number in the region, or the
/// end of its route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop(u32);

impl Default for Hop {
    fn default() -> Self {
        Self::END
    }
}

impl Hop {
    /// The end of a route.
    pub const END: Hop = Hop(u32::MAX);

    fn new(link: u32, is_fed: bool) -> Self {
        Hop(link << 1 | u32::from(is_fed))
    }

    /// The link; `None` at the end of a route.
    #[inline(always)]
    #[must_use]
    pub fn link(self) -> Option<usize> {
        (self != Self::END).then_some((self.0 >> 1) as usize)
    }

    /// The link, if all packets that it ever gets come from the one at the position before.
    #[inline(always)]
    #[must_use]
    pub fn fed_link(self) -> Option<usize> {
        (self.0 & 1 == 1 && self != Self::END).then_some((self.0 >> 1) as usize)
    }
}

/// All routes of a scenario.
#[derive(Debug)]
pub struct Routing {
    /// Routes one after another, each closed by `END`.
    hops: Vec<Hop>,
    /// For each flow, where its route and its return route begin in `hops`.
    routes: Vec<[Position; 2]>,
    /// For each link direction, whether some link gets all its packets from it.
    feeding: Vec<bool>,
}

/// Which link all packets of a link come from, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Feeder {
    Nobody,
    One(usize),
    /// From several links, or from an endpoint.
    Several,
}

impl Routing {
    /// Takes the routes of a scenario that is divided like this.
    #[must_use]
    pub fn new(scenario: &Scenario, partition: &Partition) -> Self {
        let mut known: BTreeMap<&[DirectionId], Position> = BTreeMap::new();
        let mut distinct: Vec<&[DirectionId]> = Vec::new();
        let mut length = 0;
        let mut place = |route| {
            *known.entry(route).or_insert_with(|| {
                let begin = length;
                length += route.len() as Position + 1;
                distinct.push(route);
                begin
            })
        };
        let mut routes = Vec::with_capacity(scenario.flows.len());
        for members in scenario.flows.chunk_by(|a, b| Arc::ptr_eq(&a.group, &b.group)) {
            let group = &members[0].group;
            let places = [place(group.route.as_slice()), place(group.return_route.as_slice())];
            routes.extend(members.iter().map(|_| places));
        }

        let mut feeders = vec![Feeder::Nobody; 2 * scenario.links.len()];
        for route in &distinct {
            let mut from = Feeder::Several;
            for &link in *route {
                feeders[link] = if feeders[link] == Feeder::Nobody || feeders[link] == from {
                    from
                } else {
                    Feeder::Several
                };
                from = Feeder::One(link);
            }
        }
        // What happens on a link that waits for its turn depends on others: no packet may come
        // there before its time.
        for (link, feeder) in feeders.iter_mut().enumerate() {
            if needs_turns(scenario, link) {
                *feeder = Feeder::Several;
            }
        }
        let mut hops = Vec::with_capacity(length as usize);
        let mut feeding = vec![false; 2 * scenario.links.len()];
        for route in distinct {
            for &link in route {
                if let Feeder::One(feeder) = feeders[link] {
                    feeding[feeder] = true;
                }
                hops.push(Hop::new(
                    partition.near_end(link).index,
                    matches!(feeders[link], Feeder::One(_)),
                ));
            }
            hops.push(Hop::END);
        }
        Self { hops, routes, feeding }
    }

    /// Where a flow's route (`returning` false) or return route begins.
    #[inline(always)]
    #[must_use]
    pub fn begin(&self, flow: u32, returning: bool) -> Position {
        self.routes[flow as usize][usize::from(returning)]
    }

    /// Whether some link gets all its packets from this one.
    #[must_use]
    pub fn feeds(&self, link: DirectionId) -> bool {
        self.feeding[link]
    }

    /// What is at a position. The one after it on the same route is the next higher.
    #[inline(always)]
    #[must_use]
    pub fn hop(&self, position: Position) -> Hop {
        self.hops[position as usize]
    }
}
