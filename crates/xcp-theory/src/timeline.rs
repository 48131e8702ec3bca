//! How the theory's network changes while a scenario runs: flows come and go, datagrams change
//! their rate, routers their law. Theory settles at once; how long packets take is for `fluid` and
//! the simulator.

use std::collections::BTreeSet;

use xcp_model::units::{Nanos, Period};
use xcp_model::{Scenario, Traffic, UdpPattern};

use crate::network::Network;

/// Most changes followed.
pub const CHANGES: usize = 10_000;
/// Bounds the work, flows times changes.
const WORK: usize = 40_000_000;

/// The networks one after the other, each with its stretch of time. Starts are taken without
/// jitter, on-off and Poisson sources by their mean. `None` if there are too many to follow.
#[must_use]
pub fn timeline(scenario: &Scenario) -> Option<Vec<(Period, Network)>> {
    let times = changes(scenario)?;
    let ends = times.iter().skip(1).copied().chain([scenario.duration]);
    let networks = times
        .iter()
        .zip(ends)
        .map(|(&from, to)| (Period { from, to }, Network::before(scenario, to)));
    Some(networks.collect())
}

/// Whether [`timeline`] follows it.
#[must_use]
pub fn is_followed(scenario: &Scenario) -> bool {
    changes(scenario).is_some()
}

/// When something changes, 0 included; `None` if too often to follow.
fn changes(scenario: &Scenario) -> Option<Vec<Nanos>> {
    let mut times = BTreeSet::from([0]);
    let directions = || scenario.links.iter().flat_map(|link| &link.directions);
    for direction in directions() {
        let steps = direction.rate_changes.iter().chain(&direction.delay_changes);
        times.extend(steps.map(|(at, _)| *at));
    }
    for router in directions().filter_map(|direction| direction.queue.router()) {
        times.extend(router.changes.iter().map(|change| change.at));
    }
    for flow in &scenario.flows {
        match &flow.group.traffic {
            Traffic::Tcp(_) if flow.bytes().is_some() => continue,
            Traffic::Udp(UdpPattern::Schedule { steps }) => {
                times.extend(steps.iter().map(|(from, _)| *from))
            }
            _ => {}
        }
        times.insert(flow.start);
        times.extend(flow.group.stop);
    }
    times.retain(|&t| t < scenario.duration);
    let followed = times.len() <= CHANGES && times.len() * scenario.flows.len() <= WORK;
    followed.then(|| times.into_iter().collect())
}
