//! A run: builds the regions of a scenario, lets them go forward in step, and has the recorder look
//! whenever it wants to.
//!
//! The regions go from one meeting to the next. Nothing that leaves a region after a meeting comes
//! into another before the next one, because that is no further away than the lookahead; so between
//! meetings each may have a processor of its own. An undivided run is one region that meets nobody
//! but the recorder.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard};

use xcp_elements::Reordering;
use xcp_model::record::Recorder;
use xcp_model::rng::{Purpose, Stream};
use xcp_model::run::{Observer, Run};
use xcp_model::units::Nanos;
use xcp_model::{Scenario, Tcp, Traffic};

use crate::crew::Crew;
use crate::detour::{self, Detour};
use crate::events::{Events, NEVER};
use crate::fifo::Packets;
use crate::flow::{Receiving, Sending};
use crate::link::Link;
use crate::medium::Medium;
use crate::network::Network;
use crate::partition::{Ends, Partition, Place};
use crate::region::{Crossing, Region};
use crate::routing::Routing;
use crate::tcp::CONGESTIONS;
use crate::turns;
use crate::view::View;
use crate::watch::{Unwatched, Watcher};

/// Why a scenario cannot be simulated.
#[derive(Debug)]
#[non_exhaustive]
pub enum SimError {
    /// A router's law is out of the engine's range.
    Law {
        /// The link.
        link: String,
        /// What the engine says.
        reason: xcp_engine::ConfigError,
    },
    /// A congestion control that only a kernel has.
    Congestion {
        /// The flow.
        flow: String,
        /// The congestion control.
        name: String,
    },
    /// More links and flows than can be numbered in a run of this length.
    TooLarge {
        /// Links.
        links: usize,
        /// Flows.
        flows: usize,
    },
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Law { link, reason } => {
                write!(f, "link \"{link}\": the router's law cannot be used: {reason}")
            }
            Self::Congestion { flow, name } => {
                write!(
                    f,
                    "flow \"{flow}\": the simulator has no congestion control \"{name}\": run the \
                        scenario on Linux's own TCP"
                )
            }
            Self::TooLarge { links, flows } => {
                write!(
                    f,
                    "{links} links and {flows} flows are too many for a run of this length: \
                        shorten the run or split the scenario"
                )
            }
        }
    }
}

impl std::error::Error for SimError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Law { reason, .. } => Some(reason),
            Self::Congestion { .. } | Self::TooLarge { .. } => None,
        }
    }
}

/// Simulates a scenario. The same scenario gives the same run, to the bit.
///
/// # Errors
/// When the scenario cannot be simulated; nothing has been run then.
pub fn simulate(scenario: &Scenario, observer: &mut dyn Observer) -> Result<Run, SimError> {
    simulate_partition(scenario, &Partition::whole(scenario), observer)
}

/// Simulates a scenario on at most so many processors, on fewer where more would not be faster. The
/// run is the same, to the bit.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_on(
    scenario: &Scenario,
    processors: usize,
    observer: &mut dyn Observer,
) -> Result<Run, SimError> {
    simulate_partition(scenario, &Partition::for_processors(scenario, processors), observer)
}

/// Simulates a scenario divided like this, each region on a processor of its own. The run is the
/// same, to the bit.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_partition(
    scenario: &Scenario,
    partition: &Partition,
    observer: &mut dyn Observer,
) -> Result<Run, SimError> {
    run_partition(scenario, partition, &mut Unwatched(observer))
}

/// Simulates a scenario, undivided, while somebody watches. The run is the same, to the bit.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_watched(scenario: &Scenario, watcher: &mut dyn Watcher) -> Result<Run, SimError> {
    run_partition(scenario, &Partition::whole(scenario), watcher)
}

fn run_partition(
    scenario: &Scenario,
    partition: &Partition,
    watcher: &mut dyn Watcher,
) -> Result<Run, SimError> {
    for group in scenario.groups().map(|members| &members[0].group) {
        if let Traffic::Tcp(Tcp { congestion, .. }) = &group.traffic
            && !CONGESTIONS.contains(&congestion.name())
        {
            return Err(SimError::Congestion {
                flow: group.name.to_string(),
                name: congestion.name().to_string(),
            });
        }
    }
    let (routing, ends) = (Routing::new(scenario, partition), Ends::new(scenario, partition));
    let mut simulation = Simulation::new(scenario, partition, &routing, &ends)?;
    let (end, interrupted) = simulation.run(watcher);
    let Simulation { mut parts, recorder, .. } = simulation;
    let regions = parts
        .regions
        .iter_mut()
        .map(|region| region.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner))
        .collect();
    Ok(recorder.finish(end, interrupted, &mut View::new(regions, partition, &ends)))
}

/// Regions let the observer know at least this often, in events: every few hundredths of a second.
const OBSERVED_STEPS: u32 = 1 << 18;

/// The observer is called after so many meetings of the regions, too.
const OBSERVED_MEETINGS: u32 = 256;

struct Simulation<'s> {
    end: Nanos,
    partition: &'s Partition,
    parts: Parts<'s>,
    ends: &'s Ends,
    recorder: Recorder<'s>,
}

/// The regions and what is on its way between them.
struct Parts<'s> {
    regions: Vec<Mutex<Region<'s>>>,
    /// Link directions between regions: what is crossing, from which region and exit there, to
    /// which region and entry there.
    crossings: Vec<(Mutex<Crossing>, Place, Place)>,
}

impl Parts<'_> {
    /// Nothing happens in any region before this.
    fn first(&self) -> Nanos {
        let regions = self.regions.iter().map(|region| lock(region).next());
        regions
            .chain(self.crossings.iter().map(|(crossing, ..)| lock(crossing).first_arrival()))
            .fold(NEVER, Nanos::min)
    }

    /// The recorder will not look before this.
    fn set_horizon(&self, horizon: Nanos) {
        self.regions.iter().for_each(|region| lock(region).network.horizon = horizon);
    }

    /// Lets a region do what is to be done there before `until`, and now and then says how far it
    /// has come.
    fn advance(
        &self,
        number: usize,
        until: Nanos,
        observe: &mut dyn FnMut(Nanos) -> ControlFlow<()>,
    ) {
        let mut region = lock(&self.regions[number]);
        for (crossing, _, to) in
            self.crossings.iter().filter(|(_, _, to)| to.region as usize == number)
        {
            region.enter(to.index as usize, &mut lock(crossing));
        }
        while !region.run(until, OBSERVED_STEPS) {
            if observe(region.now).is_break() {
                return;
            }
        }
        for (crossing, from, _) in
            self.crossings.iter().filter(|(_, from, _)| from.region as usize == number)
        {
            region.leave(from.index as usize, until, &mut lock(crossing));
        }
    }

    /// Shows somebody all of it at this time.
    fn show<T>(
        &self,
        now: Nanos,
        partition: &Partition,
        ends: &Ends,
        to: impl FnOnce(&mut View<'_, '_>) -> T,
    ) -> T {
        let mut all: Vec<_> = self.regions.iter().map(lock).collect();
        let seen = to(&mut View::new(
            all.iter_mut().map(|region| &mut **region).collect(),
            partition,
            ends,
        ));
        // Looking makes up for departures, which may have sent packets on their way to other
        // regions.
        for (crossing, from, _) in &self.crossings {
            all[from.region as usize].leave(from.index as usize, now + 1, &mut lock(crossing));
        }
        seen
    }
}

/// Held by one thread at a time by construction; what a thread that failed leaves behind is never
/// looked at.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl<'s> Simulation<'s> {
    fn new(
        scenario: &'s Scenario,
        partition: &'s Partition,
        routing: &'s Routing,
        ends: &'s Ends,
    ) -> Result<Self, SimError> {
        let mut regions = Self::empty_regions(scenario, partition, routing, ends)?;
        let mut crossings = Vec::new();
        for (number, direction) in scenario
            .links
            .iter()
            .flat_map(|link| link.directions.iter().map(move |d| (link, d)))
            .enumerate()
        {
            let (link, direction) = direction;
            let built = Link::new(direction, number, scenario.seed);
            let mut built =
                built.map_err(|reason| SimError::Law { link: link.name.clone(), reason })?;
            // What keeps no order feeds nothing: see `Network::go_ahead`.
            built.feeds = routing.feeds(number) && direction.reorder.is_none();
            let near = partition.near_end(number).region as usize;
            match partition.far_end(number) {
                None => regions[near].network.links.push(built),
                Some(Place { region, index }) => {
                    let (near_end, far_end) = built.divide();
                    let (from, to) = (&mut regions[near].exits, region as usize);
                    let exit = Place { region: near as u32, index: from.len() as u32 };
                    from.push(partition.near_end(number).index as usize);
                    regions[near].network.links.push(near_end);
                    let entry = Place { region, index: regions[to].entries.len() as u32 };
                    regions[to].entries.push(index as usize);
                    regions[to].network.links.push(far_end);
                    crossings.push((Mutex::default(), exit, entry));
                }
            }
        }
        for (medium, members) in turns::media(scenario) {
            // A medium's links are all in one region.
            let network = &mut regions[partition.near_end(members[0]).region as usize].network;
            let indices = members.iter().map(|&number| partition.near_end(number).index as usize);
            let number = network.media.len();
            for (index, &member) in indices.clone().zip(&members) {
                let others = turns::others(scenario, member);
                let yields = turns::direction(scenario, member).queue.yields;
                network.links[index].wait_for_turns(number, others, yields);
            }
            let name = medium.map_or("", |medium| scenario.media[medium].as_str());
            let random = Stream::named(scenario.seed, Purpose::Medium, name);
            network.media.push(Medium::new(
                turns::direction(scenario, members[0]).rate_bps,
                indices.collect(),
                random,
            ));
        }
        for (number, reorder) in detour::reordered(scenario) {
            let place = partition.arrives_at(number);
            let network = &mut regions[place.region as usize].network;
            let source = network.links.len() + network.media.len() + network.detours.len();
            let reordering = Reordering::new(reorder, scenario.seed, number);
            network.links[place.index as usize].detour =
                Some(Box::new(Detour::new(reordering, source as u32)));
            network.detours.push(place.index as usize);
        }
        let groups = scenario
            .groups()
            .zip(0..)
            .flat_map(|(flows, group)| flows.iter().map(move |flow| (flow, group)));
        for (i, (flow, group)) in groups.enumerate() {
            let (from, to) = (ends.sending(i), ends.receiving(i));
            let sending =
                Sending::new(flow, i, group, scenario.seed, routing.begin(i as u32, false));
            // Jitter may have moved a start beyond the flow's stop: then there is nothing to send.
            let stop = flow.group.stop;
            let starts = stop.is_none_or(|stop| sending.start < stop);
            let region = &mut regions[from.region as usize];
            region.senders.push(sending);
            regions[to.region as usize].receivers.push(Receiving::new(
                flow,
                i,
                routing.begin(i as u32, true),
            ));
            if starts {
                regions[from.region as usize].start(from.index as usize);
                if let Some(stop) = stop {
                    regions[from.region as usize].stop_sending(from.index as usize, stop);
                    regions[to.region as usize].stop_receiving(to.index as usize, stop);
                }
            }
        }
        let recorder = Recorder::new(scenario, "sim");
        Ok(Self {
            end: scenario.duration,
            partition,
            parts: Parts { regions: regions.into_iter().map(Mutex::new).collect(), crossings },
            ends,
            recorder,
        })
    }

    /// Regions without links and endpoints, but with room in their event queues for those to come.
    fn empty_regions(
        scenario: &Scenario,
        partition: &Partition,
        routing: &'s Routing,
        ends: &'s Ends,
    ) -> Result<Vec<Region<'s>>, SimError> {
        let mut counts = vec![[0usize; 2]; partition.regions];
        for flow in &scenario.flows {
            counts[partition.region(flow.group.from) as usize][0] += 1;
            counts[partition.region(flow.group.to) as usize][1] += 1;
        }
        let stops = scenario.flows.iter().any(|flow| flow.group.stop.is_some());
        let too_large =
            || SimError::TooLarge { links: scenario.links.len(), flows: scenario.flows.len() };
        // What an undivided run could not number, a divided one refuses, too.
        let all =
            u32::try_from(Region::timers(scenario.flows.len(), scenario.flows.len(), stops)).ok();
        // Media and detours have events as links have.
        let mut others = vec![0u32; partition.regions];
        turns::media(scenario)
            .iter()
            .for_each(|(_, members)| others[partition.near_end(members[0]).region as usize] += 1);
        detour::reordered(scenario)
            .for_each(|(number, _)| others[partition.arrives_at(number).region as usize] += 1);
        let links =
            u32::try_from(2 * scenario.links.len() + others.iter().sum::<u32>() as usize).ok();
        all.zip(links)
            .filter(|&(timers, links)| Events::fit(scenario.duration, links, timers))
            .ok_or_else(too_large)?;
        let regions = counts.into_iter().enumerate().map(|(number, [senders, receivers])| {
            let timers = u32::try_from(Region::timers(senders, receivers, stops))
                .map_err(|_| too_large())?;
            let events =
                Events::new(scenario.duration, partition.links(number) + others[number], timers)
                    .ok_or_else(too_large)?;
            Ok(Region {
                now: 0,
                network: Network {
                    routing,
                    packets: Packets::default(),
                    links: Vec::new(),
                    media: Vec::new(),
                    detours: Vec::new(),
                    events,
                    horizon: 0,
                },
                ends,
                senders: Vec::with_capacity(senders),
                receivers: Vec::with_capacity(receivers),
                places: [senders, receivers],
                exits: Vec::new(),
                entries: Vec::new(),
                round_trips: Vec::new(),
            })
        });
        regions.collect()
    }

    /// Runs to the end or until the watcher has had enough; returns how far it came and whether it
    /// was broken off.
    fn run(&mut self, watcher: &mut dyn Watcher) -> (Nanos, bool) {
        let Self { end, partition, parts, ends, recorder } = self;
        let (end, parts) = (*end, &*parts);
        let crew = Crew::new(parts.regions.len());
        std::thread::scope(|scope| {
            let mut leader = crew.leader();
            for number in 1..parts.regions.len() {
                let crew = &crew;
                scope.spawn(move || {
                    crew.serve(number - 1, |until| {
                        parts.advance(number, until, &mut |_| ControlFlow::Continue(()))
                    })
                });
            }
            let (mut now, mut meetings) = (0, 0u32);
            loop {
                let horizon = recorder.next_look().min(watcher.next_look()).min(end + 1);
                parts.set_horizon(horizon);
                while now < horizon {
                    now = horizon.min(parts.first().max(now).saturating_add(partition.lookahead));
                    let mut broken = None;
                    leader.step(now, || {
                        parts.advance(0, now, &mut |at| {
                            let answer = watcher.progress(at);
                            broken = answer.is_break().then_some(at);
                            answer
                        });
                    });
                    meetings += 1;
                    if broken.is_none()
                        && now <= end
                        && meetings.is_multiple_of(OBSERVED_MEETINGS)
                        && watcher.progress(now).is_break()
                    {
                        broken = Some(now);
                    }
                    if let Some(at) = broken {
                        return (at, true);
                    }
                }
                if now > end {
                    return (end, false);
                }
                let ticked = parts.show(now, partition, ends, |view| {
                    if watcher.next_look() == now {
                        watcher.look(now, view);
                    }
                    recorder.look(now, view)
                });
                if ticked {
                    watcher.sampled(now, recorder);
                }
                if ticked && watcher.progress(now).is_break() {
                    return (now, true);
                }
            }
        })
    }
}
