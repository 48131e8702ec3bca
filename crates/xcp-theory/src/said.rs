//! Everything that theory says of a scenario at an instant, as one value that is printed as JSON:
//! what `xcpnet theory --json` writes and Python's `theory` gives.

use serde::Serialize;
use xcp_model::Scenario;
use xcp_model::units::Nanos;

use crate::bound::{MediumReach, Reach, media, reaches};
use crate::fluid::{self, Trajectory};
use crate::margins::{Margins, margins};
use crate::max_min::Bound;
use crate::network::{Network, Rate};
use crate::{equilibrium, max_min, timeline};

/// What is said of one scenario. Field names are a published contract.
#[derive(Debug, Serialize)]
pub struct Said {
    /// Title of the scenario.
    pub title: String,
    /// The variant's name; empty where the file has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// The instant looked at, seconds from the start of the run.
    pub at: f64,
    /// Flows, equal ones together.
    pub flows: Vec<FlowSaid>,
    /// The directions of all links.
    pub links: Vec<LinkSaid>,
    /// Why there is no equilibrium.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_equilibrium: Option<String>,
    /// How the fluid moves.
    pub fluid: Option<FluidSaid>,
    /// Why there is no fluid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_fluid: Option<String>,
    /// What could be reached at links where something changes that nobody controls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reach: Vec<Reach>,
    /// What shared media can carry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<MediumReach>,
    /// What one should know before believing it.
    pub notes: Vec<String>,
}

/// A class of equal flows.
#[derive(Debug, Serialize)]
pub struct FlowSaid {
    /// Name of the flow or group.
    pub name: String,
    /// Number of equal flows.
    pub count: usize,
    /// Round-trip time with empty queues, seconds.
    pub rtt: f64,
    /// The max-min fair share.
    pub max_min: Share,
    /// At the equilibrium of XCP's law, if there is one.
    pub equilibrium: Option<Share>,
}

/// A rate and what holds it there: a link's name, or `buffer`.
#[derive(Debug, Serialize)]
pub struct Share {
    /// The rate of each flow.
    #[serde(flatten)]
    pub rate: Rate,
    /// What holds it there.
    pub held_by: String,
}

/// One direction of a link.
#[derive(Debug, Serialize)]
pub struct LinkSaid {
    /// `NAME` or `NAME.reverse`.
    pub name: String,
    /// Rate of the link, bit/s.
    pub rate: f64,
    /// Load by datagrams, bit/s.
    pub datagrams: f64,
    /// Load of the max-min shares over the rate.
    pub max_min_utilisation: f64,
    /// At the equilibrium of XCP's law, if there is one.
    pub equilibrium: Option<LinkRest>,
    /// How far the router is from instability.
    pub margins: Option<Margins>,
}

/// A link at rest.
#[derive(Debug, Serialize)]
pub struct LinkRest {
    /// Load over the rate.
    pub utilisation: f64,
    /// z, the most any flow gets there, bit/s on the wire; null where the link stops nobody.
    pub cap: Option<f64>,
    /// Bytes that stand in the queue; null without a router.
    pub queue: Option<f64>,
}

/// How the fluid moved from the begin of the measured period on.
#[derive(Debug, Serialize)]
pub struct FluidSaid {
    /// Flows, equal ones together.
    pub flows: Vec<MotionSaid>,
    /// The directions of all links.
    pub links: Vec<FluidLink>,
}

/// How equal flows of the fluid moved.
#[derive(Debug, Serialize)]
pub struct MotionSaid {
    /// Name of the flow or group.
    pub name: String,
    /// Number of equal flows.
    pub count: usize,
    /// Mean rate over the measured period: what is sent, and the payload of what no full queue
    /// loses.
    pub mean: Rate,
    /// Standard deviation of averages over a round trip, over the mean.
    pub cov: f64,
    /// Seconds from the start of the run after which it keeps within 10 % of the equilibrium of the
    /// instant, until flows or datagrams change; null if it does not.
    pub settled: Option<f64>,
}

/// A link direction that the fluid ran through.
#[derive(Debug, Serialize)]
pub struct FluidLink {
    /// `NAME` or `NAME.reverse`.
    pub name: String,
    /// Load over the rate.
    pub utilisation: f64,
    /// Mean queue of the measured period, bytes; only of routers with a calendar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_mean: Option<f64>,
    /// Largest queue of the whole run, bytes.
    pub queue_max: f64,
}

/// Within this share of its equilibrium a flow counts as settled.
const SETTLED: f64 = 0.1;

/// And if it has kept there for this share of its time.
const LASTING: f64 = 0.1;

/// Says it, of an instant (the end of the measured period if none is given), with the fluid model
/// or without it.
#[must_use]
pub fn say(scenario: &Scenario, at: Option<Nanos>, with_fluid: bool) -> Said {
    let at = at.unwrap_or(scenario.measure.to);
    let network = Network::before(scenario, at);
    let fair = max_min(&network);
    let fair_loads = network.loads(&fair.rates);
    let rest = equilibrium(&network);
    let name = |bound: Bound| match bound {
        Bound::Link(l) => network.links[l].name.clone(),
        Bound::Buffer => "buffer".to_owned(),
    };
    let share = |class: usize, rates: &[f64], bounds: &[Bound]| Share {
        rate: network.rate(class, rates[class]),
        held_by: name(bounds[class]),
    };
    let flows = network.classes.iter().enumerate().map(|(i, class)| FlowSaid {
        name: class.name.clone(),
        count: class.count,
        rtt: class.rtt,
        max_min: share(i, &fair.rates, &fair.bounds),
        equilibrium: rest.as_ref().ok().map(|rest| share(i, &rest.rates, &rest.bounds)),
    });
    let links = network.links.iter().enumerate().map(|(l, link)| LinkSaid {
        name: link.name.clone(),
        rate: link.rate,
        datagrams: link.datagrams,
        max_min_utilisation: fair_loads[l] / link.rate,
        equilibrium: rest.as_ref().ok().map(|rest| LinkRest {
            utilisation: rest.loads[l] / link.rate,
            cap: rest.caps[l],
            queue: rest.queues[l].filter(|q| q.is_finite()),
        }),
        margins: rest.as_ref().ok().and_then(|rest| margins(&network, rest, l)),
    });
    let mut said = Said {
        title: scenario.title.clone(),
        variant: scenario.variant.clone(),
        at: at as f64 / 1e9,
        flows: flows.collect(),
        links: links.collect(),
        no_equilibrium: rest.as_ref().err().map(ToString::to_string),
        fluid: None,
        no_fluid: None,
        reach: reaches(scenario),
        media: media(scenario),
        notes: notes(&network),
    };
    if with_fluid {
        match fluid::fluid(scenario) {
            Ok(moved) => {
                said.fluid = Some(motion(
                    scenario,
                    &moved,
                    &network,
                    rest.as_ref().map(|r| &r.rates[..]).unwrap_or_default(),
                    at,
                ))
            }
            Err(why) => said.no_fluid = Some(why.to_string()),
        }
    }
    said
}

fn motion(
    scenario: &Scenario,
    moved: &Trajectory,
    network: &Network,
    rates: &[f64],
    at: u64,
) -> FluidSaid {
    let from = scenario.measure.from as f64 / 1e9;
    // The equilibrium is that of the instant's flows, and lasts until the next change.
    let stretches = timeline(scenario).unwrap_or_default();
    let until = stretches
        .iter()
        .find(|(period, _)| period.to >= at)
        .map_or(scenario.duration, |(period, _)| period.to) as f64
        / 1e9;
    let flows = moved.classes.iter().enumerate().filter_map(|(i, class)| {
        let motion = moved.motion(i, from)?;
        let rest =
            network.classes.iter().position(|c| c.name == class.group).and_then(|c| rates.get(c));
        // What is inside by chance at the end has not settled.
        let latest = until - LASTING * (until - class.from);
        let settled =
            rest.and_then(|&rate| moved.settled(i, rate, SETTLED, until)).filter(|t| *t <= latest);
        let mean =
            Rate { wire: motion.mean, goodput: (motion.mean - motion.lost) * class.payload_share };
        Some(MotionSaid {
            name: class.name.clone(),
            count: class.count,
            mean,
            cov: motion.deviation / motion.mean,
            settled,
        })
    });
    let links = moved.links.iter().enumerate().map(|(l, name)| FluidLink {
        name: name.clone(),
        utilisation: moved.mean_utilisation(l, from),
        queue_mean: moved.calendar.then(|| moved.mean_queue(l, from)),
        queue_max: moved.queues[l].iter().copied().fold(0.0, f64::max),
    });
    FluidSaid { flows: flows.collect(), links: links.collect() }
}

/// What one should know before believing it.
fn notes(network: &Network) -> Vec<String> {
    let mut notes = Vec::new();
    if network.left_out > 0 {
        let transfers = if network.left_out == 1 {
            "1 transfer".to_owned()
        } else {
            format!("{} transfers", network.left_out)
        };
        notes.push(format!(
            "{transfers} of finite size left out: the theory covers flows that last"
        ));
    }
    let heedless = network.links.iter().enumerate().filter(|(l, link)| {
        let mut crossing = network.classes.iter().filter(|c| c.explicit && c.route.contains(l));
        link.router.is_some_and(|r| r.calendar) && crossing.any(|c| !c.keeps_rate)
    });
    let heedless = heedless.map(|(_, link)| link.name.as_str()).collect::<Vec<_>>();
    if !heedless.is_empty() {
        notes.push(format!(
            "margins of {} are those of senders that keep the rate they are given (xcp-robust), \
             which some here do not",
            heedless.join(", ")
        ));
    }
    let over = network
        .links
        .iter()
        .filter(|l| l.left() <= 0.0)
        .map(|l| l.name.as_str())
        .collect::<Vec<_>>();
    if !over.is_empty() {
        notes.push(format!("datagrams alone fill {}", over.join(", ")));
    }
    notes
}
