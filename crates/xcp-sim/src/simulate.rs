//! The simulation itself: links, flows and the loop that takes the earliest event and lets it happen.

use std::fmt;
use std::ops::ControlFlow;

use xcp_scenario::model::Scenario;
use xcp_scenario::run::Run;
use xcp_scenario::units::Nanos;

use crate::events::{Events, MAX_TARGETS, Target};
use crate::flow::{Ends, Flow};
use crate::link::Link;
use crate::measure::Recorder;
use crate::packet::{Body, Outbox, Packet};
use crate::routing::Routing;

/// Watches a run and may end it.
pub trait Observer {
    /// Called a few hundred times in a run with the simulated time; `Break` ends the run there.
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
    /// More links and flows than the event queue can tell apart.
    TooLarge {
        /// What the scenario has: two for each link, two for each flow.
        targets: usize,
    },
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Law { link, reason } => write!(f, "link \"{link}\": the router's law cannot be used: {reason}"),
            Self::TooLarge { targets } => {
                write!(f, "{targets} link directions and endpoints; the simulator can tell {MAX_TARGETS} apart: split the scenario")
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
    let end = simulation.run(scenario.duration, observer);
    let Simulation { mut links, flows, recorder, .. } = simulation;
    Ok(recorder.finish(end, end < scenario.duration, scenario, &mut links, &flows))
}

/// What an event is for. Targets number the links first, then each flow's sender and receiver, then the recorder.
#[derive(Debug, Clone, Copy)]
struct Targets {
    links: u32,
    flows: u32,
}

impl Targets {
    fn sender(self, flow: u32) -> Target {
        self.links + flow
    }
    fn receiver(self, flow: u32) -> Target {
        self.links + self.flows + flow
    }
    fn start(self, flow: u32) -> Target {
        self.links + 2 * self.flows + flow
    }
    fn stop(self, flow: u32) -> Target {
        self.links + 3 * self.flows + flow
    }
    fn recorder(self) -> Target {
        self.links + 4 * self.flows
    }
}

/// The recorder's events, added to its target.
const TICK: u32 = 0;
const MEASURE_FROM: u32 = 1;
const MEASURE_TO: u32 = 2;
const RECORDER_EVENTS: usize = 3;

struct Simulation {
    now: Nanos,
    events: Events,
    links: Vec<Link>,
    flows: Vec<Flow>,
    routing: Routing,
    targets: Targets,
    recorder: Recorder,
}

/// Where an endpoint's packets go: onto the first link of its route.
struct Port<'a> {
    now: Nanos,
    first: usize,
    links: &'a mut [Link],
    events: &'a mut Events,
}

impl Outbox for Port<'_> {
    fn send(&mut self, mut packet: Packet) {
        packet.hop = 1;
        if let Some(arrives) = self.links[self.first].enqueue(self.now, packet) {
            self.events.push(arrives, self.first as Target);
        }
    }
}

impl Simulation {
    fn new(scenario: &Scenario) -> Result<Self, SimError> {
        let count = 2 * scenario.links.len() + 4 * scenario.flows.len() + RECORDER_EVENTS;
        if count > MAX_TARGETS {
            return Err(SimError::TooLarge { targets: count });
        }
        let mut links = Vec::with_capacity(2 * scenario.links.len());
        for link in &scenario.links {
            for direction in &link.directions {
                let built = Link::new(direction, links.len(), scenario.seed);
                links.push(built.map_err(|reason| SimError::Law { link: link.name.clone(), reason })?);
            }
        }
        let flows: Vec<Flow> = scenario.flows.iter().enumerate().map(|(i, spec)| Flow::new(spec, i, scenario.seed)).collect();
        let targets = Targets { links: links.len() as u32, flows: flows.len() as u32 };
        let mut events = Events::default();
        let recorder = Recorder::new(scenario);
        // The recorder comes first among equal times: a tick sees the state before what happens at its time.
        events.push(scenario.measure.from, targets.recorder() + MEASURE_FROM);
        events.push(scenario.measure.to, targets.recorder() + MEASURE_TO);
        events.push(recorder.interval(), targets.recorder() + TICK);
        for ((number, flow), spec) in (0u32..).zip(&flows).zip(&scenario.flows) {
            events.push(flow.start, targets.start(number));
            if let Some(stop) = spec.stop {
                events.push(stop.max(flow.start), targets.stop(number));
            }
        }
        Ok(Self { now: 0, events, links, flows, routing: Routing::new(scenario), targets, recorder })
    }

    /// Runs until `end` or until the observer has had enough; returns how far it came.
    fn run(&mut self, end: Nanos, observer: &mut dyn Observer) -> Nanos {
        let recorder = self.targets.recorder();
        while self.events.next_time() <= end {
            let Some((now, target)) = self.events.pop() else { break };
            self.now = now;
            if target < self.targets.links {
                self.link_event(target as usize, end);
            } else if target >= recorder {
                self.record(target - recorder);
                if target == recorder + TICK && observer.progress(now).is_break() {
                    return now;
                }
            } else {
                let flow = (target - self.targets.links) % self.targets.flows;
                match (target - self.targets.links) / self.targets.flows {
                    0 => self.sender_event(flow),
                    1 => self.receiver_event(flow),
                    2 => self.start(flow),
                    _ => self.stop(flow),
                }
            }
        }
        self.now = end;
        end
    }

    /// Packets reach a link's far end. While nothing else happens in between, the next one is taken without going through the queue.
    fn link_event(&mut self, link: usize, end: Nanos) {
        loop {
            let packet = self.links[link].deliver(self.now);
            let next = self.links[link].next_arrival();
            if let Some(packet) = packet {
                self.forward(packet);
            }
            // If the link was empty, whatever has been put onto it since has set its own event.
            let Some(next) = next else { return };
            if next >= self.events.next_time() || next > end {
                self.events.push(next, link as Target);
                return;
            }
            self.now = next;
        }
    }

    fn forward(&mut self, mut packet: Packet) {
        if let Some(link) = self.routing.next(&mut packet) {
            if let Some(arrives) = self.links[link].enqueue(self.now, packet) {
                self.events.push(arrives, link as Target);
            }
        } else {
            self.receive(&packet);
        }
    }

    fn receive(&mut self, packet: &Packet) {
        let number = packet.flow;
        match (&mut self.flows[number as usize].ends, &packet.body) {
            (Ends::Tcp { sender, sender_alarm, .. }, Body::Ack(_)) => {
                let mut port = port(self.now, self.routing.first(number, false), &mut self.links, &mut self.events);
                sender.on_ack(self.now, packet, &mut port);
                if let Some(at) = sender_alarm.set(sender.next_timer()) {
                    self.events.push(at, self.targets.sender(number));
                }
            }
            (Ends::Tcp { receiver, receiver_alarm, .. }, _) => {
                let mut port = port(self.now, self.routing.first(number, true), &mut self.links, &mut self.events);
                receiver.on_packet(self.now, packet, &mut port);
                if let Some(at) = receiver_alarm.set(receiver.next_timer()) {
                    self.events.push(at, self.targets.receiver(number));
                }
            }
            (Ends::Udp { delivered_bytes, payload, .. }, _) => *delivered_bytes += *payload,
        }
    }

    fn sender_event(&mut self, number: u32) {
        let first = self.routing.first(number, false);
        let mut port = port(self.now, first, &mut self.links, &mut self.events);
        match &mut self.flows[number as usize].ends {
            Ends::Tcp { sender, sender_alarm, .. } => {
                if !sender_alarm.ring(self.now) {
                    return;
                }
                if sender.next_timer() <= self.now {
                    sender.on_timer(self.now, &mut port);
                }
                if let Some(at) = sender_alarm.set(sender.next_timer()) {
                    self.events.push(at, self.targets.sender(number));
                }
            }
            Ends::Udp { source, .. } => {
                if let Some((packet, next)) = source.send(self.now) {
                    port.send(packet);
                    if let Some(at) = next {
                        self.events.push(at, self.targets.sender(number));
                    }
                }
            }
        }
    }

    fn receiver_event(&mut self, number: u32) {
        let Ends::Tcp { receiver, receiver_alarm, .. } = &mut self.flows[number as usize].ends else { return };
        if !receiver_alarm.ring(self.now) {
            return;
        }
        if receiver.next_timer() <= self.now {
            let mut port = port(self.now, self.routing.first(number, true), &mut self.links, &mut self.events);
            receiver.on_timer(self.now, &mut port);
        }
        if let Some(at) = receiver_alarm.set(receiver.next_timer()) {
            self.events.push(at, self.targets.receiver(number));
        }
    }

    fn start(&mut self, number: u32) {
        match &mut self.flows[number as usize].ends {
            Ends::Tcp { sender, sender_alarm, .. } => {
                let mut port = port(self.now, self.routing.first(number, false), &mut self.links, &mut self.events);
                sender.start(self.now, &mut port);
                if let Some(at) = sender_alarm.set(sender.next_timer()) {
                    self.events.push(at, self.targets.sender(number));
                }
            }
            Ends::Udp { source, .. } => {
                if let Some(at) = source.start(self.now) {
                    self.events.push(at, self.targets.sender(number));
                }
            }
        }
    }

    fn stop(&mut self, number: u32) {
        match &mut self.flows[number as usize].ends {
            Ends::Tcp { sender, .. } => sender.stop(self.now),
            Ends::Udp { source, .. } => source.stop(),
        }
    }

    fn record(&mut self, what: u32) {
        let now = self.now;
        match what {
            TICK => {
                self.recorder.tick(now, &mut self.links, &self.flows);
                self.events.push(now + self.recorder.interval(), self.targets.recorder() + TICK);
            }
            MEASURE_FROM => self.recorder.measure_from(now, &mut self.links, &self.flows),
            _ => self.recorder.measure_to(now, &mut self.links, &self.flows),
        }
    }
}

/// A free function, so that the flow and the network can be borrowed side by side.
fn port<'a>(now: Nanos, first: usize, links: &'a mut [Link], events: &'a mut Events) -> Port<'a> {
    Port { now, first, links, events }
}
