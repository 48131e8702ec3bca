//! What somebody who wrote a scenario may not have meant, though it is allowed: said with the
//! results.

use crate::model::{Congestion, Scenario, Tcp, Traffic, XcpSender};

/// Notes on a scenario, each a sentence without its full stop.
#[must_use]
pub fn advice(scenario: &Scenario) -> Vec<String> {
    let mut notes = Vec::new();
    let queue = |direction: &usize| &scenario.links[direction / 2].directions[direction % 2].queue;
    let routed = |direction: &usize| queue(direction).router().is_some();
    for flows in scenario.groups() {
        let group = &flows[0].group;
        if let Traffic::Tcp(tcp) = &group.traffic
            && tcp.congestion == Congestion::Xcp
            && !group.route.iter().any(routed)
        {
            notes.push(format!(
                "flow \"{}\" speaks XCP but crosses no XCP queue: {}",
                group.name,
                alone(tcp)
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

/// What an XCP sender does that no router answers.
fn alone(tcp: &Tcp) -> &'static str {
    match tcp.xcp_sender {
        XcpSender::Window => "it behaves like an ordinary TCP",
        XcpSender::Robust => "it limits itself by delay",
    }
}
