//! The simulation itself: links, flows and the loop that takes the earliest event and lets it happen.

use std::fmt;
use std::ops::ControlFlow;

use xcp_scenario::model::{LossPlace, Scenario};
use xcp_scenario::run::Run;
use xcp_scenario::units::Nanos;

use crate::events::{Events, NEVER, Source};
use crate::fifo::Packets;
use crate::flow::{Ends, Flow};
use crate::link::Link;
use crate::measure::Recorder;
use crate::packet::{Body, Outbox, Packet, SackBlocks, SackId};
use crate::routing::{Position, Routing};

/// Watches a run and may end it.
pub trait Observer {
    /// Called a few hundred times in a run, and more often in a long one, with the simulated time; `Break` ends the run there.
    fn progress(&mut self, now: Nanos) -> ControlFlow<()>;
}

/// Observes nothing.
impl Observer for () {
    fn progress(&mut self, _: Nanos) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Why a scenario cannot be simulated.
#[derive(Debug)]
pub enum SimError {
    /// A router's law is out of the engine's range.
    Law {
        /// The link.
        link: String,
        /// What the engine says.
        reason: xcp_engine::ConfigError,
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
            Self::Law { link, reason } => write!(f, "link \"{link}\": the router's law cannot be used: {reason}"),
            Self::TooLarge { links, flows } => {
                write!(f, "{links} links and {flows} flows are too many for a run of this length: shorten the run or split the scenario")
            }
        }
    }
}

impl std::error::Error for SimError {}

/// Simulates a scenario. The same scenario gives the same run, to the bit.
///
/// # Errors
/// When the scenario cannot be simulated; nothing has been run then.
pub fn simulate(scenario: &Scenario, observer: &mut dyn Observer) -> Result<Run, SimError> {
    let mut simulation = Simulation::new(scenario)?;
    let end = simulation.run(observer);
    let Simulation { mut links, mut packets, flows, recorder, .. } = simulation;
    Ok(recorder.finish(end, end < scenario.duration, scenario, &mut links, &mut packets, &flows))
}

/// The observer is called at least this often, in events: every few hundredths of a second. A power of two, so that the test for it is a mask.
const OBSERVED_STEPS: u32 = 1 << 18;

/// Numbers of the sources of events: the recorder first (at equal times it sees the state before anything happens), then links, then each
/// flow's sender and receiver, then the flows' stops.
#[derive(Debug, Clone, Copy)]
struct Sources {
    links: u32,
    flows: u32,
}

const TICK: Source = 0;
const MEASURE_FROM: Source = 1;
const MEASURE_TO: Source = 2;
const LINKS: Source = 3;

impl Sources {
    fn senders(self) -> Source {
        LINKS + self.links
    }
    fn receivers(self) -> Source {
        self.senders() + self.flows
    }
    fn stops(self) -> Source {
        self.receivers() + self.flows
    }
    fn count(self) -> Source {
        self.stops() + self.flows
    }
}

struct Simulation {
    now: Nanos,
    end: Nanos,
    /// When the recorder next looks at the links, or the run ends: before that, nobody can tell whether they are ahead.
    horizon: Nanos,
    events: Events,
    packets: Packets,
    links: Vec<Link>,
    flows: Vec<Flow>,
    routing: Routing,
    sources: Sources,
    recorder: Recorder,
}

/// Where an endpoint's packets go: onto the first link of its route, which has one at least.
struct Port<'a> {
    now: Nanos,
    route: Position,
    network: Network<'a>,
}

/// What a packet needs to get onto a link.
struct Network<'a> {
    routing: &'a Routing,
    packets: &'a mut Packets,
    links: &'a mut [Link],
    events: &'a mut Events,
    horizon: Nanos,
}

impl Network<'_> {
    /// Puts a packet onto the link at `position` of its route, and at once onto those after it as far as it may go ahead. The link where it stays
    /// gets an event, if it was empty.
    #[inline(never)]
    fn forward(&mut self, mut now: Nanos, mut number: usize, mut position: Position, packet: &mut Packet) {
        loop {
            let link = &mut self.links[number];
            link.advance(now, self.packets);
            let was_empty = link.is_empty();
            position += 1;
            let arrives = if link.is_idle(now) {
                let Some(arrives) = link.pass(now, packet, self.packets) else { return };
                if was_empty
                    && arrives < self.horizon
                    && let Some(next) = self.routing.hop(position).fed_link()
                {
                    if link.is_lost(LossPlace::AfterQueue, arrives, packet, self.packets) {
                        return;
                    }
                    (now, number) = (arrives, next);
                    continue;
                }
                link.hold(arrives, packet, position, self.packets);
                arrives
            } else {
                let Some(arrives) = link.wait(now, packet, position, self.packets) else { return };
                arrives
            };
            if was_empty {
                self.events.set_busy(number as u32, arrives);
            }
            return;
        }
    }

    /// Lets a link's packets go on to the next link before their time, as far as nobody can tell; then sets the link's event, for the first that
    /// could not.
    ///
    /// A link that gets all its packets from one other gets them in that one's order: nothing comes between two of them, and what they do to
    /// it can be worked out as soon as they are under way. They keep the times they would have had. Only the recorder looks at links from
    /// outside, so none goes ahead of its next look. A chain of links then costs one event a packet, not one a link.
    #[inline]
    fn go_ahead(&mut self, number: usize) {
        while let Some(transit) = self.links[number].next_on_the_way(self.packets)
            && transit.arrives < self.horizon
            && let Some(next) = self.routing.hop(transit.position).fed_link()
        {
            let mut transit = *transit;
            if self.links[number].deliver(&transit, self.packets) {
                self.forward(transit.arrives, next, transit.position, &mut transit.packet);
            }
        }
        self.events.set_busy(number as u32, self.links[number].next_arrival(self.packets));
    }
}

impl Outbox for Port<'_> {
    #[inline(always)]
    fn send(&mut self, packet: &mut Packet) {
        if let Some(link) = self.network.routing.hop(self.route).link() {
            self.network.forward(self.now, link, self.route, packet);
        }
    }

    fn sack(&mut self, blocks: SackBlocks) -> SackId {
        self.network.packets.sacks.keep(blocks)
    }
}

/// Borrows what packets need of a simulation, and leaves its flows to be borrowed beside.
macro_rules! network {
    ($simulation:ident) => {
        Network {
            routing: &$simulation.routing,
            packets: &mut $simulation.packets,
            links: &mut $simulation.links,
            events: &mut $simulation.events,
            horizon: $simulation.horizon,
        }
    };
}

impl Simulation {
    fn new(scenario: &Scenario) -> Result<Self, SimError> {
        let too_large = |_| SimError::TooLarge { links: scenario.links.len(), flows: scenario.flows.len() };
        let sources = Sources {
            links: u32::try_from(2 * scenario.links.len()).map_err(too_large)?,
            flows: u32::try_from(3 * scenario.flows.len()).map_err(too_large)? / 3,
        };
        let mut links = Vec::with_capacity(2 * scenario.links.len());
        for link in &scenario.links {
            for direction in &link.directions {
                let built = Link::new(direction, links.len(), scenario.seed);
                links.push(built.map_err(|reason| SimError::Law { link: link.name.clone(), reason })?);
            }
        }
        let flows: Vec<Flow> = scenario.flows.iter().enumerate().map(|(i, spec)| Flow::new(spec, i, scenario.seed)).collect();
        let recorder = Recorder::new(scenario);
        let mut events = Events::new(scenario.duration, sources.count(), LINKS..sources.senders())
            .ok_or(SimError::TooLarge { links: scenario.links.len(), flows: scenario.flows.len() })?;
        events.set(TICK, recorder.interval());
        events.set(MEASURE_FROM, scenario.measure.from);
        events.set(MEASURE_TO, scenario.measure.to);
        for ((number, flow), spec) in (0u32..).zip(&flows).zip(&scenario.flows) {
            // Jitter may have moved a start beyond the flow's stop: then there is nothing to send.
            if spec.stop.is_none_or(|stop| flow.start < stop) {
                events.set(sources.senders() + number, flow.start);
                events.set(sources.stops() + number, spec.stop.unwrap_or(NEVER));
            }
        }
        let horizon = horizon(&events, scenario.duration);
        Ok(Self {
            now: 0,
            end: scenario.duration,
            horizon,
            events,
            packets: Packets::default(),
            links,
            flows,
            routing: Routing::new(scenario),
            sources,
            recorder,
        })
    }

    /// Runs to the end or until the observer has had enough; returns how far it came.
    fn run(&mut self, observer: &mut dyn Observer) -> Nanos {
        let (senders, receivers, stops) = (self.sources.senders(), self.sources.receivers(), self.sources.stops());
        let mut unobserved = OBSERVED_STEPS;
        loop {
            let (now, source) = self.events.first();
            if now > self.end {
                return self.end;
            }
            self.now = now;
            // Ticks can be hours of work apart; somebody who wants to stop should not have to wait for one.
            unobserved -= 1;
            if unobserved == 0 {
                unobserved = OBSERVED_STEPS;
                if observer.progress(now).is_break() {
                    return now;
                }
            }
            let link = source.wrapping_sub(LINKS);
            if link < self.sources.links {
                self.link_event(link as usize);
            } else if source < LINKS {
                self.record(source);
                if source == TICK && observer.progress(now).is_break() {
                    return now;
                }
            } else if source < receivers {
                self.sender_event(source - senders);
            } else if source < stops {
                self.receiver_event(source - receivers);
            } else {
                self.stop(source - stops);
            }
        }
    }

    /// A packet reaches a link's far end.
    #[inline]
    fn link_event(&mut self, link: usize) {
        self.links[link].advance(self.now, &mut self.packets);
        if let Some(transit) = self.links[link].next_on_the_way(&self.packets) {
            let mut transit = *transit;
            if self.links[link].deliver(&transit, &mut self.packets) {
                match self.routing.hop(transit.position).link() {
                    Some(next) => network!(self).forward(self.now, next, transit.position, &mut transit.packet),
                    None => self.receive(&transit.packet),
                }
            }
        }
        network!(self).go_ahead(link);
    }

    /// A packet has come to the end of its route.
    #[inline(never)]
    fn receive(&mut self, packet: &Packet) {
        let number = packet.flow;
        match (&mut self.flows[number as usize].ends, &packet.body) {
            (Ends::Tcp { sender, .. }, Body::Ack(ack)) => {
                let blocks = self.packets.sacks.take(ack.sack);
                let mut port = Port { now: self.now, route: self.routing.begin(number, false), network: network!(self) };
                sender.on_ack(self.now, packet, ack, &blocks, &mut port);
                set_earlier(&mut self.events, self.sources.senders() + number, sender.next_timer());
            }
            (Ends::Tcp { receiver, .. }, _) => {
                let mut port = Port { now: self.now, route: self.routing.begin(number, true), network: network!(self) };
                receiver.on_packet(self.now, packet, &mut port);
                set_earlier(&mut self.events, self.sources.receivers() + number, receiver.next_timer());
            }
            (Ends::Udp { delivered_bytes, payload, .. }, _) => *delivered_bytes += *payload,
        }
    }

    /// A sender starts, or one of its timers has run out.
    fn sender_event(&mut self, number: u32) {
        let route = self.routing.begin(number, false);
        let mut port = Port { now: self.now, route, network: network!(self) };
        let flow = &mut self.flows[number as usize];
        let starting = !std::mem::replace(&mut flow.started, true);
        let next = match &mut flow.ends {
            Ends::Tcp { sender, .. } => {
                if starting {
                    sender.start(self.now, &mut port);
                } else if sender.next_timer() <= self.now {
                    sender.on_timer(self.now, &mut port);
                }
                sender.next_timer()
            }
            Ends::Udp { source, .. } if starting => source.start(self.now).unwrap_or(NEVER),
            Ends::Udp { source, .. } => match source.send(self.now) {
                Some((mut packet, next)) => {
                    port.send(&mut packet);
                    next.unwrap_or(NEVER)
                }
                None => NEVER,
            },
        };
        self.events.set(self.sources.senders() + number, next);
    }

    fn receiver_event(&mut self, number: u32) {
        let Ends::Tcp { receiver, .. } = &mut self.flows[number as usize].ends else { return };
        let route = self.routing.begin(number, true);
        let mut port = Port { now: self.now, route, network: network!(self) };
        if receiver.next_timer() <= self.now {
            receiver.on_timer(self.now, &mut port);
        }
        self.events.set(self.sources.receivers() + number, receiver.next_timer());
    }

    fn stop(&mut self, number: u32) {
        self.events.set(self.sources.stops() + number, NEVER);
        let flow = &mut self.flows[number as usize];
        flow.delivered_when_stopped = Some(flow.totals().delivered_bytes);
        match &mut flow.ends {
            Ends::Tcp { sender, .. } => sender.stop(self.now),
            Ends::Udp { source, .. } => source.stop(),
        }
    }

    fn record(&mut self, what: Source) {
        let now = self.now;
        let next = match what {
            TICK => {
                self.recorder.tick(now, &mut self.links, &mut self.packets, &self.flows);
                now + self.recorder.interval()
            }
            MEASURE_FROM => {
                self.recorder.measure_from(now, &mut self.links, &mut self.packets, &self.flows);
                NEVER
            }
            _ => {
                self.recorder.measure_to(now, &mut self.links, &mut self.packets, &self.flows);
                NEVER
            }
        };
        self.events.set(what, next);
        self.horizon = horizon(&self.events, self.end);
    }
}

/// When the recorder next looks, or the first instant after the end.
fn horizon(events: &Events, end: Nanos) -> Nanos {
    [TICK, MEASURE_FROM, MEASURE_TO].map(|source| events.time(source)).into_iter().fold(end + 1, Nanos::min)
}

/// Tells the queue of an endpoint's timer. One that has moved later is left where it is: its event comes too early, finds that out and is set
/// anew, so that a retransmission timer restarted by every acknowledgement costs nothing.
fn set_earlier(events: &mut Events, source: Source, timer: Nanos) {
    if timer < events.time(source) {
        events.set(source, timer);
    }
}
