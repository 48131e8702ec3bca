//! What somebody who wrote a scenario may not have meant, though it is allowed: said with the
//! results.

use xcp_law::quantity::show_time;

use crate::model::{Congestion, Control, Law, Scenario, Tcp, Traffic, XcpSender};

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
            // One with a calendar goes by what leaves while packets wait.
            let notices = |law: &Law| law.config.control == Control::Calendar;
            direction.queue.router().is_some_and(|router| {
                router.law.capacity_bps.is_none()
                    && !(direction.queue.yields && notices(&router.law))
            })
        };
        if link.directions.iter().any(believes) {
            notes.push(format!(
                "link \"{}\": its XCP queue assumes that it has the whole rate of a medium that \
                 it shares; set a `capacity` in its law, and let its queue yield (`yields`)",
                link.name
            ));
        }
    }
    notes.extend(never(scenario));
    notes
}

/// What is asked for at a time when the run is over.
fn never(scenario: &Scenario) -> Vec<String> {
    let mut notes = Vec::new();
    let over = |at: &u64| *at >= scenario.duration;
    for flows in scenario.groups() {
        let late = flows.iter().filter(|flow| over(&flow.start)).count();
        if late > 0 {
            notes.push(format!(
                "flow \"{}\": the run ends before {late} of its {} members have started",
                flows[0].group.name,
                flows.len()
            ));
        }
    }
    for link in &scenario.links {
        for (what, first) in [
            ("rate", link.directions.each_ref().map(|d| d.rate_changes.first().map(|c| c.0))),
            ("delay", link.directions.each_ref().map(|d| d.delay_changes.first().map(|c| c.0))),
        ] {
            let times = || first.iter().flatten();
            if times().any(over) && times().all(over) {
                notes.push(format!(
                    "link \"{}\": its {what} does not change before the run ends",
                    link.name
                ));
            }
        }
        let mut blackouts = link.directions.iter().flat_map(|direction| &direction.blackouts);
        if let Some(late) = blackouts.find(|blackout| over(&blackout.from)) {
            notes.push(format!(
                "link \"{}\": the run ends before its blackout at {}",
                link.name,
                show_time(late.from)
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
