//! How much work a run is, by what its flows can send: an estimate for ordering runs and telling
//! how long they take, not a bound.

use crate::model::{Flow, Scenario, Traffic, UdpPattern};
use crate::units::{NANOS_PER_SEC, Nanos};

/// Packets times links they cross, acknowledgements included, if every flow sends all that is given
/// to it, or an equal share of the narrowest link on its way while it lasts.
#[must_use]
pub fn packet_hops(scenario: &Scenario) -> f64 {
    let directions: Vec<f64> =
        scenario.links.iter().flat_map(|l| &l.directions).map(|d| d.fastest_bps() as f64).collect();
    let seconds = |t: Nanos| t as f64 / NANOS_PER_SEC as f64;
    // What each flow would send on its own, bits; what it adds up to on each link; how far that is
    // beyond the link.
    let wanted = |flow: &Flow| {
        let active = seconds(
            flow.group.stop.unwrap_or(Nanos::MAX).min(scenario.duration).saturating_sub(flow.start),
        );
        let narrowest =
            flow.group.route.iter().map(|&d| directions[d]).fold(f64::INFINITY, f64::min) * active;
        match &flow.group.traffic {
            Traffic::Tcp(_) => {
                flow.bytes().map_or(narrowest, |bytes| narrowest.min(bytes as f64 * 8.0))
            }
            Traffic::Udp(pattern) => active * mean_rate(pattern, seconds(scenario.duration)),
        }
    };
    let wishes: Vec<f64> = scenario.flows.iter().map(wanted).collect();
    let mut load = vec![0.0; directions.len()];
    for (flow, bits) in scenario.flows.iter().zip(&wishes) {
        flow.group.route.iter().for_each(|&d| load[d] += bits);
    }
    let room = seconds(scenario.duration);
    scenario
        .flows
        .iter()
        .zip(&wishes)
        .map(|(flow, bits)| {
            let group = &flow.group;
            let share = group
                .route
                .iter()
                .map(|&d| (directions[d] * room / load[d].max(1.0)).min(1.0))
                .fold(1.0, f64::min);
            let acknowledged = match &group.traffic {
                Traffic::Tcp(tcp) => {
                    group.return_route.len() as f64 / if tcp.delayed_ack { 2.0 } else { 1.0 }
                }
                Traffic::Udp(_) => 0.0,
            };
            bits * share / 8.0 / f64::from(group.packet_bytes)
                * (group.route.len() as f64 + acknowledged)
        })
        .sum()
}

fn mean_rate(pattern: &UdpPattern, duration: f64) -> f64 {
    match pattern {
        UdpPattern::Constant { rate_bps } | UdpPattern::Poisson { rate_bps } => *rate_bps as f64,
        UdpPattern::OnOff { rate_bps, on, off, .. } => {
            *rate_bps as f64 * *on as f64 / (*on as f64 + *off as f64)
        }
        UdpPattern::Schedule { steps } => {
            let ends = steps
                .iter()
                .skip(1)
                .map(|s| s.0 as f64 / NANOS_PER_SEC as f64)
                .chain(std::iter::once(duration));
            let bits = |((from, rate), end): (&(Nanos, u64), f64)| {
                *rate as f64 * (end.min(duration) - *from as f64 / NANOS_PER_SEC as f64).max(0.0)
            };
            steps.iter().zip(ends).map(bits).sum::<f64>() / duration
        }
    }
}
