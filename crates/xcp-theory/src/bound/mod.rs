//! What could be reached where something changes that nobody controls: a link's rate, datagrams in
//! its queue, or who has a shared medium. For each such link, how full a perfect predictor has it
//! and how long its queue is, and what no controller can do better.
//!
//! 1. The dead time is the shortest round trip of the flows that cross the link, queues empty, at
//!    the rates and delays with which the run begins: what a controller decides arrives so much
//!    later. With longer round trips beside it, it is an optimistic choice.
//! 2. Flows always have something to send, and what they send can be any fluid.
//! 3. A queue has the packet in it that is being sent, which a run's mean queue has not: that may
//!    be shorter by one packet at most.
//! 4. A router that is not told the rate knows no more than one that is, so bounds hold for it,
//!    too. It sees the rate while something waits, and so does the predictor that is not told; what
//!    a better one could find out by trying is not known.

pub mod forced;
pub mod least;
pub mod medium;
pub mod predictor;
pub mod process;

use serde::Serialize;
use xcp_model::units::{NANOS_PER_SEC, Nanos, Period};
use xcp_model::{DirectionId, Flow, Scenario};

use self::forced::Forced;
use self::least::Least;
use self::medium::{saturated, without_collisions};
use self::predictor::{Aim, Outcome, follow};
use self::process::jumps;
use crate::network::{direction_name, seconds};

/// What could be reached at a link. Field names are a published contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reach {
    /// `NAME` or `NAME.reverse`.
    pub link: String,
    /// From a decision to what arrives because of it, seconds.
    pub dead_time: f64,
    /// Mean rate of the link over the measured period, framing taken off, bit/s.
    pub capacity: f64,
    /// What is good enough for a good cell of the table of failures.
    pub wanted: Wanted,
    /// The perfect predictor that commits neither more nor less than what will be left as far as it
    /// can know, and wants no queue.
    pub exact: Reached,
    /// The same, but nobody tells it the link's rate: it keeps two packets standing, and sees the
    /// rate while something waits.
    pub untold: Reached,
    /// The same as `exact`, but it expects of random on-off sources their conditional mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditional_mean: Option<Reached>,
    /// The predictor that commits just so much less that it still uses 95 %; null if it cannot.
    pub at_95: Option<Reached>,
    /// The predictor that keeps so much standing that its mean queue is a tenth of the dead time.
    pub at_tenth: Option<Reached>,
    /// What no controller can do better.
    pub bound: Option<Bound>,
    /// Why there is no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_bound: Option<String>,
}

/// A mark that a controller may miss or not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Wanted {
    /// Utilisation.
    pub utilisation: f64,
    /// A tenth of the dead time, in packets.
    pub queue: f64,
}

/// What a controller reaches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reached {
    /// What it sends over what packets can use of the link.
    pub utilisation: f64,
    /// Mean queue, packets, with the one that is being sent.
    pub queue: f64,
    /// The time that this takes to drain at the link's first rate, over the dead time.
    pub queue_rtts: f64,
}

/// What no causal controller can do better, in expectation over the process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bound {
    /// The process that the expectation is over.
    pub process: String,
    /// The least mean queue at a utilisation of 95 %, packets.
    pub queue_at_95: f64,
    /// What `exact` has over the same process.
    pub exact: Reached,
    /// The least mean queue at what it uses there, packets.
    pub queue_at_exact: f64,
    /// The highest utilisation with a mean queue of a tenth of the dead time.
    pub utilisation_at_tenth: f64,
    /// The least mean queues at other utilisations.
    pub frontier: Vec<Point>,
}

/// A point of the bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Utilisation.
    pub utilisation: f64,
    /// The least mean queue at it, packets.
    pub queue: f64,
}

/// What a medium can carry of data that go one way. Field names are a published contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MediumReach {
    /// The medium.
    pub medium: String,
    /// Bytes of data packets over what its rate allows, if nothing collides and every second packet
    /// is acknowledged over it.
    pub without_collisions: f64,
    /// The same when data always wait; none of this and what follows where more acknowledgements
    /// come than go then.
    pub saturated: Option<f64>,
    /// Collisions for each packet of data then.
    pub collisions: Option<f64>,
    /// The share of acknowledgements that are given up then.
    pub acknowledgements_lost: Option<f64>,
}

/// What a cell of the table of failures needs to be good: utilisation, and queue in round trips.
const GOOD: (f64, f64) = (0.95, 0.1);
/// What a router of the robust law leaves standing, packets.
const STANDING: f64 = 2.0;
/// Halvings of an interval in which a parameter is sought.
const HALVINGS: u32 = 12;

/// What could be reached at the links where something changes that nobody controls.
#[must_use]
pub fn reaches(scenario: &Scenario) -> Vec<Reach> {
    (0..2 * scenario.links.len()).filter_map(|id| reach(scenario, id)).collect()
}

fn reach(scenario: &Scenario, id: DirectionId) -> Option<Reach> {
    let link = &scenario.links[id / 2];
    let direction = &link.directions[id % 2];
    let crossing = || scenario.flows.iter().filter(|f| f.group.route.contains(&id));
    let changes = direction.rates().range();
    let forced = changes.0 != changes.1 || crossing().any(|f| !f.is_tcp());
    // Where stations share a medium, what is left depends on the flows themselves.
    if !forced || link.medium.is_some() {
        return None;
    }
    let dead = dead_time(scenario, id)?;
    let packet = crossing().filter(|f| f.is_tcp()).map(|f| f.group.packet_bytes).max()?;
    let packet = f64::from(packet);
    let forced = Forced::new(scenario, id, dead, packet)?;
    let trip = direction.rate_bps as f64 / 8.0 * seconds(dead) / packet;
    let packets = |bytes: f64| bytes / packet;
    let reached = |Outcome { utilisation, queue }| Reached {
        utilisation,
        queue: packets(queue),
        queue_rtts: packets(queue) / trip,
    };
    let exact = reached(follow(&forced, Aim::EXACT));
    let standing = |packets: f64| Aim { standing: packets * packet, ..Aim::EXACT };
    let committing = |theta: f64| Aim { theta, ..Aim::EXACT };
    let full = |r: &Reached| r.utilisation >= GOOD.0;
    let short = |r: &Reached| r.queue_rtts <= GOOD.1;
    let at_95 = full(&exact).then(|| {
        let least = seek(0.5, 1.0, |theta| full(&reached(follow(&forced, committing(theta)))));
        reached(follow(&forced, committing(least.1)))
    });
    let at_tenth = if short(&exact) {
        let most = seek(0.0, trip, |s| !short(&reached(follow(&forced, standing(s)))));
        Some(reached(follow(&forced, standing(most.0))))
    } else {
        let most = seek(0.0, 1.0, |theta| !short(&reached(follow(&forced, committing(theta)))));
        Some(reached(follow(&forced, committing(most.0)))).filter(short)
    };
    let (bound, no_bound) = match jumps(scenario, id, dead, packet) {
        Ok((process, jumps)) => {
            let least = Least::new(&jumps);
            let queue_at = |utilisation| packets(least.queue_at(utilisation));
            let point = |percent: u32| {
                let utilisation = f64::from(percent) / 100.0;
                Point { utilisation, queue: queue_at(utilisation) }
            };
            let exact = reached(follow(&jumps.path(), Aim::EXACT));
            let bound = Bound {
                process,
                exact,
                queue_at_95: queue_at(GOOD.0),
                queue_at_exact: queue_at(exact.utilisation),
                utilisation_at_tenth: least.utilisation_at(GOOD.1 * trip * packet),
                frontier: (80..100).map(point).collect(),
            };
            (Some(bound), None)
        }
        Err(why) => (None, Some(why.to_owned())),
    };
    Some(Reach {
        link: direction_name(scenario, id),
        dead_time: seconds(dead),
        capacity: forced.mean_capacity(),
        wanted: Wanted { utilisation: GOOD.0, queue: GOOD.1 * trip },
        exact,
        untold: reached(follow(&forced, Aim { untold: true, ..standing(STANDING) })),
        conditional_mean: forced
            .wandering
            .is_some()
            .then(|| reached(follow(&forced, Aim { mean: true, ..Aim::EXACT }))),
        at_95,
        at_tenth,
        bound,
        no_bound,
    })
}

/// Where a condition that holds from some value on begins to: the greatest value found at which it
/// does not, and the least at which it does.
fn seek(from: f64, to: f64, holds: impl Fn(f64) -> bool) -> (f64, f64) {
    let (mut not, mut does) = (from, to);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(not, does);
        if holds(middle) { does = middle } else { not = middle }
    }
    (not, does)
}

/// Whether a flow is there throughout the measured period.
fn is_there(scenario: &Scenario, flow: &Flow) -> bool {
    let Period { from, to } = scenario.measure;
    flow.start.saturating_add(flow.group.start_jitter) <= from
        && flow.group.stop.is_none_or(|stop| stop >= to)
}

/// The shortest round trip of the flows that cross a link and heed anybody, queues empty: of all that
/// there are in the measured period, where the path changes.
fn dead_time(scenario: &Scenario, id: DirectionId) -> Option<Nanos> {
    let direction = |d: DirectionId| &scenario.links[d / 2].directions[d % 2];
    let crossing = scenario.flows.iter().filter(|f| f.is_tcp() && f.group.route.contains(&id));
    let Period { from, to } = scenario.measure;
    let delay = |d: DirectionId| {
        let delays = direction(d).delays();
        let later = delays.steps().iter().filter(|(at, _)| (from..to).contains(at));
        later.map(|(_, delay)| *delay).fold(delays.at(from), Nanos::min)
    };
    let trip = |flow: &Flow| -> Nanos {
        let bits = 8 * u64::from(flow.group.packet_bytes) * NANOS_PER_SEC;
        let there =
            flow.group.route.iter().map(|&d| delay(d) + bits / direction(d).rate_bps.max(1));
        let back = flow.group.return_route.iter().map(|&d| delay(d));
        there.chain(back).sum()
    };
    crossing.map(trip).min().filter(|&trip| trip > 0)
}

/// What the media can carry on which one link is, with data that go one way.
#[must_use]
pub fn media(scenario: &Scenario) -> Vec<MediumReach> {
    let of = |(medium, name): (usize, &String)| {
        let mut members =
            (0..scenario.links.len()).filter(|&link| scenario.links[link].medium == Some(medium));
        let link = members.next().filter(|_| members.next().is_none())?;
        let crosses = |ids: &[DirectionId]| ids.iter().copied().find(|d| d / 2 == link);
        let flows = || scenario.flows.iter().filter(|f| crosses(&f.group.route).is_some());
        let first = flows().next()?;
        let way = crosses(&first.group.route)?;
        let one_way = flows().all(|f| f.is_tcp() && crosses(&f.group.route) == Some(way));
        let back = flows().all(|f| crosses(&f.group.return_route) == Some(way ^ 1));
        if !one_way || !back {
            return None;
        }
        let directions = &scenario.links[link].directions;
        // Both directions are taken to have the framing of the data's.
        let direction = &directions[way % 2];
        let (packet, framing) = (first.group.packet_bytes, direction.framing_bytes);
        let delay = seconds(dead_time(scenario, way)?) * direction.rate_bps as f64 / 8.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "byte times")]
        let full = saturated(
            u64::from(packet),
            u64::from(framing),
            delay as u64,
            [way, way ^ 1].map(|way| directions[way % 2].queue.yields),
        );
        Some(MediumReach {
            medium: name.clone(),
            without_collisions: without_collisions(f64::from(packet), f64::from(framing)),
            saturated: full.map(|full| full.utilisation),
            collisions: full.map(|full| full.collisions),
            acknowledgements_lost: full.map(|full| full.lost),
        })
    };
    scenario.media.iter().enumerate().filter_map(of).collect()
}
