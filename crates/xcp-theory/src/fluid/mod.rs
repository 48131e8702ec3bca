//! XCP as a fluid with delay: equations (1a) to (2e) of L. Andrew, B. Wydrowski, S. Low, An Example
//! of Instability in XCP, with the delays the paper leaves out and a router that, as real ones do,
//! computes once an interval.
//!
//! Where this differs from the paper's model:
//! 1. Data reach a queue, and feedback the sender, as late as distance and queues make them; the
//!    paper neglects that.
//! 2. The router sums over an interval of length d and holds its factors for the next; the paper's
//!    is continuous.
//! 3. What a router knows of a flow is what headers say, w and T when the data were sent, not the
//!    instantaneous x of (2a). Taken literally, (2a) behaves worse still; no router sees x.
//! 4. Feedback is charged to residue pools as in draft-falk-xcp-spec-03, lines 25 to 31, unless the
//!    law has none.
//! 5. The persistent queue is the least of the last max(2 ms, (d − b/c)/2), as in the draft.
//! 6. Senders follow (2d), x = w/T, if paced, else (3), x(t) = x(t − T) + dw/dt, kept whole: they
//!    send what the window lets them while it is larger than what is on the way, nothing else. The
//!    first window of those is spread over one round trip.
//! 7. What finds a queue full is lost, of all that arrives in the same proportion. Senders hear
//!    nothing of it.
//!
//! A router with a calendar (`law = "robust"`) and its senders (`xcp-robust`) are in `calendar` and
//! `rate`, with what they leave out; 1 and 3 hold for them, and 2 with parts of an interval.
//!
//! Equal flows that start together move together, so one variable stands for a class. Nothing is
//! random.

mod calendar;
mod rate;
mod router;
mod sender;

use xcp_model::Scenario;
use xcp_model::units::{NANOS_PER_SEC, Nanos, Period};

use crate::max_min::{Bound, max_min};
use crate::network::{Class, Link, Network, Router, Sharing, seconds};
use crate::timeline::timeline;

use rate::RateSender;
use sender::Sender;

/// A link's queue with its router.
trait Queue {
    /// `place` is the link's among those that data cross; `dt` the step of time.
    fn new(link: &Link, place: usize, dt: f64) -> Self;
    /// Another law, or the same, from the next computation on.
    fn change(&mut self, law: Option<Router>);
    /// Seconds that what arrives now will wait.
    fn wait(&self) -> f64;
    /// Bytes that wait.
    fn queue(&self) -> f64;
    /// The share of what arrived in the last step that found the queue full.
    fn lost(&self) -> f64;
    /// A step of time. Returns the bytes that were sent.
    fn advance(&mut self, now: f64, dt: f64, datagrams: f64) -> f64;
}

/// A class of equal senders.
trait Source {
    /// The routers that it knows how to cross.
    type At: Queue;
    fn new(class: &Class, start: f64, stop: f64) -> Self;
    /// Acknowledgements of what was sent a round trip ago.
    fn hear(&mut self, now: f64, dt: f64, waits: &[f64]);
    /// Sends for a step; returns one flow's bytes.
    fn send(&mut self, now: f64, dt: f64) -> f64;
    /// What is on the way reaches queues, and leaves them with what the routers grant.
    fn cross(&mut self, now: f64, dt: f64, waits: &[f64], routers: &mut [Self::At]);
    /// Routers on the way.
    fn hops(&self) -> usize;
    /// One of them, and what has arrived there in this step.
    fn came(&mut self, hop: usize) -> (usize, impl Iterator<Item = &mut Load>);
    /// Of what has arrived in this step, full queues lose their share. Returns one flow's bytes.
    fn lose(&mut self, routers: &[Self::At]) -> f64 {
        let mut bytes = 0.0;
        for hop in 0..self.hops() {
            let (router, came) = self.came(hop);
            let share = routers[router].lost();
            if share > 0.0 {
                bytes += came.map(|load| load.lose(share)).sum::<f64>();
            }
        }
        bytes
    }
}

/// What one flow sends in a step.
#[derive(Debug)]
struct Load {
    sent: f64,
    /// The share of it that no full queue has lost.
    kept: f64,
}

impl Load {
    fn new(bytes: f64) -> Self {
        Self { sent: bytes, kept: 1.0 }
    }

    /// Bytes that are left.
    fn bytes(&self) -> f64 {
        self.sent * self.kept
    }

    /// Loses a share of that. Returns the bytes.
    fn lose(&mut self, share: f64) -> f64 {
        let lost = self.bytes() * share;
        self.kept *= 1.0 - share;
        lost
    }
}

/// What a queue of this limit keeps, and the share of what arrived that it loses.
fn kept(queue: f64, arrived: f64, limit: f64) -> (f64, f64) {
    let over = queue - limit;
    if over > 0.0 && arrived > 0.0 { (limit, (over / arrived).min(1.0)) } else { (queue, 0.0) }
}

/// How the fluid moved over the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory {
    /// Seconds between samples.
    pub step: f64,
    /// Whether its routers have a calendar.
    pub calendar: bool,
    /// The classes of equal flows.
    pub classes: Vec<Moving>,
    /// By class: rate of one flow over each sample, bit/s on the wire.
    pub rates: Vec<Vec<f64>>,
    /// By class: the part of it that full queues lost.
    pub lost: Vec<Vec<f64>>,
    /// By link: its name.
    pub links: Vec<String>,
    /// By link: share of the rate that is used.
    pub utilisation: Vec<Vec<f64>>,
    /// By link: queue at the end of each sample, bytes.
    pub queues: Vec<Vec<f64>>,
    /// By link: mean queue of each sample, bytes.
    pub mean_queues: Vec<Vec<f64>>,
}

/// A class of equal flows that start together.
#[derive(Debug, Clone, PartialEq)]
pub struct Moving {
    /// The group's name; with the number of the start after it where members start apart.
    pub name: String,
    /// Name of the group.
    pub group: String,
    /// Number of equal flows.
    pub count: usize,
    /// Round trip, queues empty, seconds.
    pub rtt: f64,
    /// Payload of a packet over its size.
    pub payload_share: f64,
    /// When they are there, seconds.
    pub from: f64,
    /// Until when; infinite if to the end.
    pub to: f64,
}

/// Why the model was not computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoFluid {
    /// No XCP flow that lasts.
    NoXcp,
    /// TCP without feedback is not modelled.
    OtherTcp,
    /// A law that tells flows limited here from others.
    OtherLaw,
    /// Links share a medium.
    Medium,
    /// A router with a calendar and senders that keep no rate, or the other way round.
    Mixed,
    /// A queue without a router limits senders that then go by delay.
    ForeignQueue,
    /// Links change, or fail for a time.
    Changes,
    /// More changes than theory follows.
    Restless,
    /// It would take long.
    TooLarge,
}

impl std::fmt::Display for NoFluid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NoXcp => "there is no XCP flow that lasts",
            Self::OtherTcp => {
                "the fluid model covers XCP flows and datagrams, but not TCP without feedback"
            }
            Self::OtherLaw => {
                "the fluid model does not cover laws that distinguish flows limited here from \
                 others"
            }
            Self::Medium => {
                "the fluid model covers separate lines, but not links that share a medium"
            }
            Self::Mixed => {
                "the fluid model covers routers with a calendar and senders that keep a rate \
                 (xcp-robust), but only together"
            }
            Self::ForeignQueue => {
                "a queue without a router limits flows, and the fluid model does not cover what \
                 they do then"
            }
            Self::Changes => "the fluid model does not cover links that change or fail for a time",
            Self::Restless => "the scenario changes more often than theory follows",
            Self::TooLarge => {
                "there are too many different flows for this duration and these \
                round trips"
            }
        })
    }
}

/// Time steps to the shortest round trip.
const STEPS_PER_RTT: f64 = 40.0;
/// The same where a router computes ten times in it.
const STEPS_WITH_CALENDAR: f64 = 80.0;
/// Most steps times variables.
const WORK: f64 = 3e8;
/// Longest stretch of a sample, seconds.
const SAMPLE: f64 = 0.05;

/// A class with its time.
struct Part {
    class: Class,
    group: String,
    stop: f64,
}

/// The classes of a whole run, those of equal start and stop together, and the links they cross.
struct Plan {
    parts: Vec<Part>,
    links: Vec<Link>,
    stretches: Vec<Stretch>,
    /// Whether routers have a calendar, and senders keep a rate.
    calendar: bool,
}

/// A stretch of time in which datagrams and laws stay as they are.
struct Stretch {
    from: f64,
    /// Bit/s of datagrams on each link.
    datagrams: Vec<f64>,
    /// Each link's law.
    laws: Vec<Option<Router>>,
}

/// Moves a scenario from rest to its end.
///
/// # Errors
/// Where the model does not apply or is too large.
pub fn fluid(scenario: &Scenario) -> Result<Trajectory, NoFluid> {
    with(scenario, |_| ())
}

/// The same with its routers changed, for laws that no scenario can ask for.
///
/// # Errors
/// As [`fluid()`].
pub fn with(scenario: &Scenario, change: impl Fn(&mut Router)) -> Result<Trajectory, NoFluid> {
    let mut plan = plan(scenario)?;
    let stretches = plan.stretches.iter_mut().flat_map(|s| &mut s.laws);
    plan.links
        .iter_mut()
        .map(|l| &mut l.router)
        .chain(stretches)
        .filter_map(Option::as_mut)
        .for_each(change);
    let rtt = plan.parts.iter().map(|p| p.class.rtt).fold(f64::INFINITY, f64::min);
    let steps = if plan.calendar { STEPS_WITH_CALENDAR } else { STEPS_PER_RTT };
    let dt = (rtt / steps).clamp(2e-6, 2e-3);
    let duration = seconds(scenario.duration);
    let variables: usize = plan.parts.iter().map(|p| 1 + p.class.route.len()).sum();
    if duration / dt * variables as f64 > WORK {
        return Err(NoFluid::TooLarge);
    }
    Ok(if plan.calendar {
        run::<RateSender>(plan, dt, duration)
    } else {
        run::<Sender>(plan, dt, duration)
    })
}

fn plan(scenario: &Scenario) -> Result<Plan, NoFluid> {
    let stretches = timeline(scenario).ok_or(NoFluid::Restless)?;
    let everything = whole(scenario);
    if everything.classes.iter().all(|c| !c.explicit) {
        return Err(NoFluid::NoXcp);
    }
    if everything.classes.iter().any(|c| !c.explicit) {
        return Err(NoFluid::OtherTcp);
    }
    if everything.media {
        return Err(NoFluid::Medium);
    }
    let place = |name: &str| everything.links.iter().position(|l| l.name == name);
    let calendar = has_calendar(&everything, &stretches)?;
    let mut directions = scenario.links.iter().flat_map(|link| &link.directions);
    if directions.any(|d| {
        !(d.rate_changes.is_empty() && d.delay_changes.is_empty() && d.blackouts.is_empty())
    }) {
        return Err(NoFluid::Changes);
    }
    let unknown = |l: &Link| l.router.is_some_and(|r| r.sharing != Sharing::Low && !r.calendar);
    if everything.links.iter().chain(stretches.iter().flat_map(|(_, n)| &n.links)).any(unknown) {
        return Err(NoFluid::OtherLaw);
    }
    let stretches = stretches.iter().map(|(period, network)| {
        let mut stretch = Stretch {
            from: seconds(period.from),
            datagrams: vec![0.0; everything.links.len()],
            laws: everything.links.iter().map(|l| l.router).collect(),
        };
        for link in &network.links {
            if let Some(l) = place(&link.name) {
                stretch.datagrams[l] = link.datagrams;
                stretch.laws[l] = link.router;
            }
        }
        stretch
    });
    let stretches = stretches.collect();
    // A class of the whole run, split by the starts of its members.
    let mut parts: Vec<Part> = Vec::new();
    for class in &everything.classes {
        let members = scenario
            .flows
            .iter()
            .filter(|f| f.is_tcp() && f.bytes().is_none() && *f.group.name == *class.name);
        let mut starts: Vec<(Nanos, usize)> = Vec::new();
        for flow in members.clone() {
            match starts.last_mut() {
                Some((start, count)) if *start == flow.start => *count += 1,
                _ => starts.push((flow.start, 1)),
            }
        }
        let stop = members.clone().next().and_then(|f| f.group.stop).map_or(f64::INFINITY, seconds);
        let split = starts.len() > 1;
        parts.extend(starts.iter().enumerate().map(|(i, &(start, count))| {
            let name = if split { format!("{}-{}", class.name, i + 1) } else { class.name.clone() };
            Part {
                class: Class { name, count, start: seconds(start), ..class.clone() },
                group: class.name.clone(),
                stop,
            }
        }));
    }
    Ok(Plan { parts, links: everything.links, stretches, calendar })
}

/// Whether routers have a calendar and senders keep their rate, all of them.
fn has_calendar(everything: &Network, stretches: &[(Period, Network)]) -> Result<bool, NoFluid> {
    let networks = || stretches.iter().map(|(_, n)| n).chain([everything]);
    let mut laws = networks().flat_map(|n| &n.links).filter_map(|l| l.router.as_ref());
    let mut classes = everything.classes.iter();
    if laws.clone().all(|r| !r.calendar) && classes.clone().all(|c| !c.keeps_rate) {
        return Ok(false);
    }
    if !laws.all(|r| r.calendar) || !classes.all(|c| c.keeps_rate) {
        return Err(NoFluid::Mixed);
    }
    let bare = |n: &Network, l: usize| n.links[l].router.is_none();
    let limits = |n: &Network| {
        let mut bounds = max_min(n).bounds.into_iter();
        bounds.any(|b| matches!(b, Bound::Link(l) if bare(n, l)))
            || n.classes.iter().any(|c| c.route.iter().all(|&l| bare(n, l)))
    };
    if networks().any(limits) { Err(NoFluid::ForeignQueue) } else { Ok(true) }
}

/// The network with every flow that ever is there, for its classes and links.
fn whole(scenario: &Scenario) -> Network {
    let mut everything = scenario.clone();
    for flow in &mut everything.flows {
        flow.start = 0;
        let group = std::sync::Arc::make_mut(&mut flow.group);
        group.stop = None;
    }
    // `make_mut` gave each flow a group of its own; equal names are one group again.
    let mut last: Option<std::sync::Arc<xcp_model::Group>> = None;
    for flow in &mut everything.flows {
        match &last {
            Some(group) if group.name == flow.group.name => flow.group = group.clone(),
            _ => last = Some(flow.group.clone()),
        }
    }
    Network::before(&everything, NANOS_PER_SEC)
}

fn run<S: Source>(plan: Plan, dt: f64, duration: f64) -> Trajectory {
    let Plan { parts, links, stretches, calendar } = plan;
    let mut senders: Vec<S> =
        parts.iter().map(|p| S::new(&p.class, p.class.start, p.stop)).collect();
    let mut routers: Vec<S::At> =
        links.iter().enumerate().map(|(l, link)| S::At::new(link, l, dt)).collect();
    let per_sample = (SAMPLE / dt).round().max(1.0) as usize;
    let steps = (duration / dt) as usize;
    let samples = steps.div_ceil(per_sample);
    let mut out = Trajectory {
        step: per_sample as f64 * dt,
        calendar,
        classes: parts.iter().map(moving).collect(),
        rates: vec![Vec::with_capacity(samples); parts.len()],
        lost: vec![Vec::with_capacity(samples); parts.len()],
        links: links.iter().map(|l| l.name.clone()).collect(),
        utilisation: vec![Vec::with_capacity(samples); links.len()],
        queues: vec![Vec::with_capacity(samples); links.len()],
        mean_queues: vec![Vec::with_capacity(samples); links.len()],
    };
    let mut sent = vec![0.0; parts.len()];
    let mut lost = vec![0.0; parts.len()];
    let mut carried = vec![0.0; links.len()];
    let mut waited = vec![0.0; links.len()];
    let mut stretch = 0;
    for step in 0..steps {
        let now = step as f64 * dt;
        while stretch + 1 < stretches.len() && stretches[stretch + 1].from <= now {
            stretch += 1;
            routers
                .iter_mut()
                .zip(&stretches[stretch].laws)
                .for_each(|(router, law)| router.change(*law));
        }
        let waits: Vec<f64> = routers.iter().map(Queue::wait).collect();
        for (i, sender) in senders.iter_mut().enumerate() {
            sender.hear(now, dt, &waits);
            sent[i] += sender.send(now, dt);
            sender.cross(now, dt, &waits, &mut routers);
        }
        for (l, router) in routers.iter_mut().enumerate() {
            carried[l] += router.advance(now, dt, stretches[stretch].datagrams[l] / 8.0);
            waited[l] += router.queue();
        }
        for (sender, lost) in senders.iter_mut().zip(&mut lost) {
            *lost += sender.lose(&routers);
        }
        if (step + 1) % per_sample == 0 {
            let rates = out.rates.iter_mut().chain(&mut out.lost);
            for (rates, bytes) in rates.zip(sent.iter_mut().chain(&mut lost)) {
                rates.push(std::mem::take(bytes) * 8.0 / out.step);
            }
            for (l, router) in routers.iter().enumerate() {
                out.utilisation[l]
                    .push(std::mem::take(&mut carried[l]) * 8.0 / out.step / links[l].rate);
                out.queues[l].push(router.queue());
                out.mean_queues[l].push(std::mem::take(&mut waited[l]) / per_sample as f64);
            }
        }
    }
    out
}

fn moving(part: &Part) -> Moving {
    let Part { class, group, stop } = part;
    Moving {
        name: class.name.clone(),
        group: group.clone(),
        count: class.count,
        rtt: class.rtt,
        payload_share: class.payload / class.packet,
        from: class.start,
        to: *stop,
    }
}

/// How a class moved in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Motion {
    /// Mean of what is sent, bit/s on the wire.
    pub mean: f64,
    /// Mean of what full queues lose of it, bit/s on the wire.
    pub lost: f64,
    /// Standard deviation of averages over a round trip, bit/s.
    pub deviation: f64,
}

impl Trajectory {
    /// Mean and standard deviation of a class's rate from a time on, while it is there; `None` if
    /// it is not.
    #[must_use]
    pub fn motion(&self, class: usize, from: f64) -> Option<Motion> {
        let late: Vec<f64> = self
            .per_round_trip(&self.rates, class, from, f64::INFINITY)
            .map(|(_, rate)| rate)
            .collect();
        let lost: Vec<f64> = self
            .per_round_trip(&self.lost, class, from, f64::INFINITY)
            .map(|(_, rate)| rate)
            .collect();
        if late.is_empty() {
            return None;
        }
        let mean = average(&late);
        let square = late.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / late.len() as f64;
        Some(Motion { mean, lost: average(&lost), deviation: square.sqrt() })
    }

    /// Mean queue of a link from a time to the end, bytes.
    #[must_use]
    pub fn mean_queue(&self, link: usize, from: f64) -> f64 {
        average(after(&self.mean_queues[link], from / self.step))
    }

    /// Mean utilisation of a link from a time to the end.
    #[must_use]
    pub fn mean_utilisation(&self, link: usize, from: f64) -> f64 {
        average(after(&self.utilisation[link], from / self.step))
    }

    /// Since when a class's rate, averaged over round trips, has been within a share (.2 is ±20 %)
    /// of a rate, up to a time; `None` if it is not then.
    #[must_use]
    pub fn settled(&self, class: usize, rate: f64, share: f64, until: f64) -> Option<f64> {
        let mut since = Some(self.classes[class].from);
        for (end, r) in self.per_round_trip(&self.rates, class, 0.0, until) {
            if (r - rate).abs() > share * rate {
                since = None;
            } else {
                since = since.or(Some(end));
            }
        }
        since
    }

    /// A class's rates in a stretch of time in which it is there, averaged over whole samples that
    /// make up at least a round trip, since (2d) speaks of nothing shorter; each with its end.
    fn per_round_trip(
        &self,
        rates: &[Vec<f64>],
        class: usize,
        from: f64,
        to: f64,
    ) -> impl Iterator<Item = (f64, f64)> {
        let c = &self.classes[class];
        let samples = (c.rtt / self.step).ceil().max(1.0) as usize;
        let block = samples as f64 * self.step;
        let (from, to) = (from.max(c.from), to.min(c.to));
        let blocks = rates[class]
            .chunks_exact(samples)
            .enumerate()
            .map(move |(i, b)| ((i + 1) as f64 * block, average(b)));
        blocks.filter(move |(end, _)| end - block >= from - 1e-9 && *end <= to + 1e-9)
    }
}

fn after(values: &[f64], skip: f64) -> &[f64] {
    &values[(skip.round() as usize).min(values.len())..]
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
