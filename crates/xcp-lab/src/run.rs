//! A run: builds the lab, lets the traffic flow for the scenario's time, and has the recorder look
//! whenever it wants to.

use std::sync::{Arc, Mutex, PoisonError};

use xcp_elements::router_seed;
use xcp_linux::netlink::Netlink;
use xcp_model::record::{LinkCounts, Recorder};
use xcp_model::run::{Observer, Run};
use xcp_model::units::Nanos;
use xcp_model::{Law, Router as RouterSettings, Scenario};

use crate::changes::Changes;
use crate::clock::{Clock, monotonic};
use crate::home::Home;
use crate::line::Line;
use crate::measure::{Direction, Flows, Gauges, Look, Seen, Source, Watch, packets};
use crate::plan::{FlowPlan, Kind, Machine, Meter, Plan, Role, direction_name};
use crate::site::Site;
use crate::traffic::Traffic;
use crate::trust::{Processors, doubts};
use crate::xcp::{Endpoint, Router};
use crate::{LabError, machine, wires};

/// From the start of the lines to the beginning of the run.
const LEAD: Nanos = 100_000_000;
/// A machine that needs longer to start the lines will not keep up with them either.
const LONGEST_LEAD: Nanos = 10_000_000_000;
/// The observer is asked at least this often.
const PATIENCE: Nanos = 50_000_000;

/// Segments that receivers of XCP flows offer at once: what the endpoint has for everybody, and
/// what a window can express.
const LEAST_WINDOW: u32 = 2000;
const MOST_WINDOW: u32 = 100_000;
/// A process has one control group and one lab at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs a scenario on this machine.
pub(crate) fn run(
    scenario: &Scenario,
    machine: &Machine,
    observer: &mut dyn Observer,
) -> Result<Run, LabError> {
    let mut plan = Plan::new(scenario, machine)?;
    let laws = laws(scenario, &plan)?;
    machine::check()?;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // What cannot be removed is in nobody's way; `xcpnet lab clean` says why.
    let _ = crate::home::clean();
    machine::raise_descriptor_limit();
    // Taken down in the reverse order, whatever happens.
    let home = Home::enter()?;
    let site = Site::build(&plan)?;
    let routers = laws
        .iter()
        .map(|&(shaper, law, rate_bps)| {
            let direction = plan.shapers[shaper].direction;
            let seed = router_seed(scenario.seed, direction);
            let queue = &scenario.links[direction / 2].directions[direction % 2].queue;
            let police = queue.router().and_then(|router| router.police.as_ref());
            Router::attach(
                &site,
                &plan,
                plan.shapers[shaper].device,
                law.at(rate_bps),
                police,
                seed,
            )
        })
        .collect::<Result<Vec<_>, _>>()?;
    let endpoint = endpoint(&home, &site, &plan)?;
    let changes = Changes::new(scenario, &plan, &site)?;
    let (mut directions, looks) = directions(&plan, &site, &laws, routers)?;
    let mut traffic = Traffic::prepare(&mut plan, scenario.seed, endpoint, &site.spaces)?;
    let early = traffic.shared().flows.iter().map(|flow| match &flow.kind {
        Kind::Tcp(tcp) => tcp.connects_early.saturating_sub(flow.start.unwrap_or(Nanos::MAX)),
        Kind::Udp { .. } => 0,
    });
    let (clock, lines) = start_lines(&plan, scenario, &site, early.max().unwrap_or(0))?;
    traffic.start(clock);
    let flows = Arc::new(Flows::new(traffic.shared()));
    let watch = Watch::start(clock, looks, flows.clone())?;
    let processors = Processors::now();
    let recorder = Recorder::new(scenario, "linux");
    let gauges = Gauges { directions: &mut directions, lines: &lines, flows: &flows };
    let (mut run, behind) =
        record(scenario, recorder, gauges, clock, changes, &mut traffic, observer)?;

    let notes = &mut run.summary.notes;
    notes.append(&mut plan.notes);
    for (flow, state) in scenario.flows.iter().zip(&traffic.shared().states) {
        notes.extend(state.trouble().map(|what| format!("flow \"{}\": {what}", flow.name())));
    }
    notes.extend(
        flows
            .fallen()
            .map(|(number, why)| format!("flow \"{}\": {why}", scenario.flows[number].name())),
    );
    let lines: Vec<(String, Line)> =
        plan.lines.iter().map(|line| direction_name(scenario, line.direction)).zip(lines).collect();
    let reports: Vec<_> = lines.iter().map(|(name, line)| (name.clone(), line.report())).collect();
    notes.extend(doubts(&reports, watch.sampling(), behind, processors.zip(Processors::now())));
    Ok(run)
}

/// Starts the lines and says when the run begins, which they have to know: soon, but not before
/// they are all there, and so much before it that connections can be made `early`.
fn start_lines(
    plan: &Plan,
    scenario: &Scenario,
    site: &Site,
    early: Nanos,
) -> Result<(Clock, Vec<Line>), LabError> {
    let mut lead = LEAD;
    loop {
        let clock = Clock::starting_in(lead + early);
        let lines = wires::start(plan, scenario, site, clock)?;
        if clock.zero() - early > monotonic() || lead > LONGEST_LEAD {
            return Ok((clock, lines));
        }
        lead *= 2;
    }
}

/// Looks, and changes the network, when it is time to, until the end or until the observer has had
/// enough. Returns also how late the latest look or change was.
fn record(
    scenario: &Scenario,
    mut recorder: Recorder<'_>,
    mut gauges: Gauges<'_>,
    clock: Clock,
    mut changes: Changes,
    traffic: &mut Traffic,
    observer: &mut dyn Observer,
) -> Result<(Run, Nanos), LabError> {
    let mut behind = 0;
    loop {
        let look = recorder.next_look();
        let until = look.min(scenario.duration);
        loop {
            let now = clock.now();
            if let Some(why) = traffic.failure() {
                return Err(why);
            }
            if observer.progress(now.min(scenario.duration)).is_break() {
                return Ok((recorder.finish(now.min(until), true, &mut gauges), behind));
            }
            behind = behind.max(changes.make(now, gauges.directions)?);
            if now >= until {
                break;
            }
            clock.sleep_until(until.min(now + PATIENCE).min(changes.next()));
        }
        if look > scenario.duration {
            return Ok((recorder.finish(scenario.duration, false, &mut gauges), behind));
        }
        // The times are those that were wanted; what is counted late here is missing in the next
        // interval.
        behind = behind.max(clock.now() - look);
        recorder.look(look, &mut gauges);
    }
}

/// Refuses the laws that routers in the kernel cannot have.
pub fn check(scenario: &Scenario, plan: &Plan) -> Result<(), LabError> {
    laws(scenario, plan).map(drop)
}

/// The XCP routers to be: number of the queue, law, the link's rate. What the engine does not take
/// is refused.
fn laws<'s>(scenario: &'s Scenario, plan: &Plan) -> Result<Vec<(usize, &'s Law, u64)>, LabError> {
    let mut laws = Vec::new();
    for (number, shaper) in plan.shapers.iter().enumerate() {
        let direction = &scenario.links[shaper.direction / 2].directions[shaper.direction % 2];
        let Some(RouterSettings { law, changes, police, .. }) = direction.queue.router() else {
            continue;
        };
        if !changes.is_empty() {
            let name = direction_name(scenario, shaper.direction);
            return Err(LabError::Refused(format!(
                "link direction \"{name}\": a router in the kernel cannot change its law; remove \
                 `law-changes`, or run it without --on linux"
            )));
        }
        let config = law.at(direction.rate_bps);
        let refused = |why: &dyn std::fmt::Display| {
            let name = direction_name(scenario, shaper.direction);
            LabError::Refused(format!(
                "link direction \"{name}\": the router's law cannot be used: {why}"
            ))
        };
        config.check().map_err(|why| refused(&why))?;
        xcp_linux::router::check(&config, police.is_some(), shaper.others.is_some())
            .map_err(|why| refused(&why))?;
        laws.push((number, law, direction.rate_bps));
    }
    Ok(laws)
}

/// The endpoint's program, if any flow needs it.
fn endpoint(home: &Home, site: &Site, plan: &Plan) -> Result<Option<Endpoint>, LabError> {
    let speaks = |kind: &Kind| matches!(kind, Kind::Tcp(tcp) if tcp.congestion.is_none());
    let ways = plan.flows.iter().filter(|flow| speaks(&flow.kind)).map(|flow| &plan.ways[flow.way]);
    let ends: Vec<usize> = ways.flat_map(|way| [way.source.0, way.destination.0]).collect();
    if ends.is_empty() {
        return Ok(None);
    }
    let devices: Vec<_> = (0..plan.devices.len())
        .filter(|&device| ends.contains(&plan.devices[device].space))
        .collect();
    // As many segments as the path and its queues hold: the window never binds, unless the scenario
    // says so.
    let window = |flow: &FlowPlan| match &flow.kind {
        Kind::Tcp(tcp) => {
            plan.spaces[plan.ways[flow.way].destination.0].in_flight / u64::from(tcp.payload)
        }
        Kind::Udp { .. } => 0,
    };
    let window = plan.flows.iter().filter(|flow| speaks(&flow.kind)).map(window).max().unwrap_or(0);
    let window = u32::try_from(window).unwrap_or(u32::MAX).clamp(LEAST_WINDOW, MOST_WINDOW);
    Endpoint::load(home, site, plan, &devices, window).map(Some)
}

/// Where each link direction is looked at, and the looks at the queues that the watch is to take.
#[expect(clippy::type_complexity, reason = "two lists that are made together")]
fn directions(
    plan: &Plan,
    site: &Site,
    laws: &[(usize, &Law, u64)],
    routers: Vec<Router>,
) -> Result<(Vec<Direction>, Vec<(Arc<Seen>, Look)>), LabError> {
    let mut looks: Vec<(Arc<Seen>, Look)> = Vec::new();
    let mut routers: Vec<_> = laws.iter().map(|(shaper, ..)| *shaper).zip(routers).collect();
    let open = |device| {
        let (space, index) = site.device(plan, device);
        debug_assert!(plan.spaces[space].role != Role::Wire);
        let netlink = || {
            Netlink::open_in(&site.spaces[space])
                .map_err(|why| LabError::failed("look at its queues", why))
        };
        Ok((netlink()?, netlink()?, index))
    };
    let mut directions = Vec::new();
    for (number, meter) in plan.meters.iter().enumerate() {
        let mut router = None;
        let source = match *meter {
            Meter::Shaper(shaper) => {
                let (netlink, mut watched, index) = open(plan.shapers[shaper].device)?;
                let seen = Arc::new(Seen::default());
                let frame_bytes = (plan.segments != Some(1)).then(|| plan.frame_bytes());
                let look = move || {
                    xcp_linux::qdisc::stats(&mut watched, index)
                        .ok()
                        .map(|stats| packets(&stats, frame_bytes))
                };
                looks.push((seen.clone(), Box::new(look)));
                router = routers
                    .iter()
                    .position(|(of, _)| *of == shaper)
                    .map(|at| routers.swap_remove(at).1);
                Source::Queue { netlink, index, seen, frame_bytes }
            }
            Meter::Line(line) => Source::Line(line),
            Meter::Device(device) => {
                let (netlink, _, index) = open(device)?;
                Source::Device { netlink, index }
            }
        };
        let lines =
            (0..plan.lines.len()).filter(|&line| plan.lines[line].direction == number).collect();
        directions.push(Direction { source, lines, router, last: LinkCounts::default() });
    }
    Ok((directions, looks))
}
