//! Where packets are while a run goes on, for a picture that moves.
//!
//! 1. The network is looked at `FRAMES` times in a run. A packet on a cable is known by then with
//!    the times when it left and when it will arrive, so that where it is in between follows. One
//!    that crosses a cable from one look to the next is not seen: on such a cable a packet would be
//!    there for one picture at most.
//! 2. Of very many packets only some are kept, the same at every link, by when their data was sent:
//!    about `MOST` crossings, by the estimate of the work.

use std::ops::ControlFlow;

use xcp_model::Scenario;
use xcp_model::packet_hops;
use xcp_model::record::Recorder;
use xcp_model::run::Observer;
use xcp_model::units::{NANOS_PER_SEC, Nanos};
use xcp_sim::packet::{Body, Packet};
use xcp_sim::view::View;
use xcp_sim::watch::Watcher;

use crate::session::Page;

/// Looks in a run.
const FRAMES: u64 = 2000;
/// Crossings kept, about.
const MOST: f64 = 150_000.0;
/// No more in any case.
const CEILING: usize = 600_000;
/// Number of link directions that are shown.
pub const DIRECTIONS: usize = 24;

/// What a packet is to an onlooker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Look {
    /// Data or a datagram, without XCP's header.
    Plain = 0,
    /// An acknowledgement without one.
    PlainAck = 1,
    /// Data that grants its sender nothing, or is at rest.
    Rest = 2,
    /// Data that grants more.
    More = 3,
    /// Data that takes away.
    Less = 4,
    /// Acknowledgements that bring this home.
    RestAck = 5,
    /// More.
    MoreAck = 6,
    /// Less.
    LessAck = 7,
}

/// All that was seen, crossing by crossing, in the order in which it was seen.
#[derive(Debug, Default)]
pub struct Trace {
    /// One in so many packets is shown.
    pub one_in: u32,
    /// When each look was, seconds.
    pub frames: Vec<f32>,
    /// Packets waiting: for each look so many numbers as directions are shown.
    pub waiting: Vec<u32>,
    /// When each packet left the transmitter, seconds.
    pub left: Vec<f32>,
    /// When it arrives, seconds.
    pub arrives: Vec<f32>,
    /// On which link direction.
    pub direction: Vec<u8>,
    /// Of which flow; all beyond are one.
    pub flow: Vec<u8>,
    /// [`Look`].
    pub look: Vec<u8>,
}

/// The watcher of one run.
pub struct Tracer<'p> {
    scenario: &'p Scenario,
    page: &'p mut dyn Page,
    interval: Nanos,
    next: Nanos,
    directions: usize,
    /// Last arrival seen, by direction: those on a link arrive in order.
    seen: [Nanos; DIRECTIONS],
    /// What it has seen.
    pub trace: Trace,
}

impl<'p> Tracer<'p> {
    /// One for a scenario, that tells a page how far it has come.
    pub fn new(scenario: &'p Scenario, page: &'p mut dyn Page, packets: bool) -> Self {
        let interval = (scenario.duration / FRAMES).max(1);
        Self {
            scenario,
            page,
            interval,
            next: if packets { interval } else { Nanos::MAX },
            directions: (2 * scenario.links.len()).min(DIRECTIONS),
            seen: [0; DIRECTIONS],
            trace: Trace {
                one_in: (packet_hops(scenario) / MOST).ceil().clamp(1.0, 1e9) as u32,
                ..Trace::default()
            },
        }
    }
}

fn seconds(t: Nanos) -> f32 {
    (t as f64 / NANOS_PER_SEC as f64) as f32
}

fn look(packet: &Packet) -> Look {
    let sign = |feedback: f64, at_rest: Look, more: Look, less: Look| {
        if feedback > 0.0 {
            more
        } else if feedback < 0.0 {
            less
        } else {
            at_rest
        }
    };
    match &packet.body {
        Body::Syn { header } | Body::Data { header, .. } | Body::Claim { header, .. } => {
            if header.is_present() {
                sign(header.feedback_value(), Look::Rest, Look::More, Look::Less)
            } else {
                Look::Plain
            }
        }
        Body::Ack(ack) if ack.returned.is_present() => {
            sign(ack.returned.feedback_value(), Look::RestAck, Look::MoreAck, Look::LessAck)
        }
        Body::Ack(_) => Look::PlainAck,
        Body::Datagram => Look::Plain,
    }
}

/// The same for a segment and what acknowledges it: both bear the time when it was sent.
fn is_shown(packet: &Packet, one_in: u32) -> bool {
    let key = (packet.timestamp ^ u64::from(packet.flow) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    one_in == 1 || ((key >> 32) as u32).is_multiple_of(one_in)
}

impl Observer for Tracer<'_> {
    fn progress(&mut self, _: Nanos) -> ControlFlow<()> {
        if self.page.wants_to_go_on() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

impl Watcher for Tracer<'_> {
    fn next_look(&self) -> Nanos {
        self.next
    }

    fn look(&mut self, now: Nanos, network: &mut View<'_, '_>) {
        self.next = now + self.interval;
        let trace = &mut self.trace;
        trace.frames.push(seconds(now));
        for number in 0..self.directions {
            trace.waiting.push(u32::try_from(network.waiting(number, now)).unwrap_or(u32::MAX));
            let seen = &mut self.seen[number];
            for (left, transit) in network.on_the_way(number, now, *seen + 1) {
                *seen = transit.arrives;
                if trace.left.len() < CEILING && is_shown(&transit.packet, trace.one_in) {
                    trace.left.push(seconds(left));
                    trace.arrives.push(seconds(transit.arrives));
                    trace.direction.push(number as u8);
                    trace.flow.push(transit.packet.flow.min(255) as u8);
                    trace.look.push(look(&transit.packet) as u8);
                }
            }
        }
    }

    fn sampled(&mut self, now: Nanos, recorder: &Recorder<'_>) {
        self.page.partial(now, self.scenario, recorder);
    }
}
