//! What somebody who wrote a scenario may not have meant, though it is allowed: said with the
//! results.

use crate::model::{Congestion, Scenario, Traffic};

/// Notes on a scenario, each a sentence without its full stop.
#[must_use]
pub fn advice(scenario: &Scenario) -> Vec<String> {
    let mut notes = Vec::new();
    let queue = |direction: &usize| &scenario.links[direction / 2].directions[direction % 2].queue;
    let routed = |direction: &usize| queue(direction).router().is_some();
    for flows in scenario.groups() {
        let group = &flows[0].group;
        let explicit =
            matches!(&group.traffic, Traffic::Tcp(tcp) if tcp.congestion == Congestion::Xcp);
        if explicit && !group.route.iter().any(routed) {
            notes.push(format!(
                "flow \"{}\" speaks XCP but crosses no XCP queue: it behaves like an ordinary TCP",
                group.name
            ));
        }
    }
    for link in scenario.links.iter().filter(|link| link.medium.is_some()) {
        let believes = |direction: &crate::model::Direction| {
            direction.queue.router().is_some_and(|router| router.law.capacity_bps.is_none())
        };
        if link.directions.iter().any(believes) {
            notes.push(format!(
                "link \"{}\": its XCP queue assumes that it has the whole rate of a medium that \
                 it shares; set a `capacity` in its law",
                link.name
            ));
        }
    }
    notes
}
