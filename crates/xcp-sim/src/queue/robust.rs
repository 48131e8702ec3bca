//! A first-in-first-out queue run by a router that remembers its promises: hands each packet to
//! `engine/` as it comes and goes. No arithmetic of its own.

use xcp_engine::{ConfigError, Other, RobustRouter, RouterState};
use xcp_model::steps::Steps;
use xcp_model::units::Nanos;
use xcp_model::{CapacityKnown, Law};

use crate::packet::{Body, Class, Packet};

/// The router of one link direction.
#[derive(Debug)]
pub struct RobustQueue {
    router: RobustRouter,
    /// The capacities that it is told of later, bytes/s, the next one last.
    capacities: Vec<(Nanos, u64)>,
}

/// What a packet that has nothing of XCP is.
#[inline(always)]
fn other(packet: &Packet) -> Other {
    match packet.body {
        Body::Data { .. } => Other::Tcp(packet.flow.into()),
        _ => Other::Unknown,
    }
}

impl RobustQueue {
    /// A router for a link of these rates; `seed` feeds all that is random. One that measures its
    /// capacity is told the greatest, which is the most that it believes.
    ///
    /// # Errors
    /// When the law's numbers are out of the engine's range.
    pub fn new(law: &Law, rates: &Steps, seed: u64) -> Result<Self, ConfigError> {
        let told = law.config.capacity_known == CapacityKnown::Given;
        let greatest = rates.steps().iter().map(|(_, rate)| *rate).max().unwrap_or_default();
        let first = if told { rates.at(0) } else { greatest };
        let capacity = |rate| law.at(rate).capacity_bytes_per_sec;
        let later = rates.steps().iter().skip(1).rev().filter(|_| told);
        Ok(Self {
            router: RobustRouter::new(&law.at(first), 0, seed)?,
            capacities: later.map(|&(at, rate)| (at, capacity(rate))).collect(),
        })
    }

    /// What it is to be told by now.
    #[inline(always)]
    fn tell(&mut self, now: Nanos) {
        while let Some((_, capacity)) = self.capacities.pop_if(|(at, _)| *at <= now) {
            self.router.set_capacity(capacity);
        }
    }

    /// A packet arrives; `queue_bytes` wait before it. `false`: the law has it dropped.
    #[inline(always)]
    pub fn arrival(&mut self, now: Nanos, packet: &mut Packet, queue_bytes: u64) -> bool {
        self.tell(now);
        let size = packet.size.into();
        let other = other(packet);
        match packet.class() {
            Class::XcpData(header) => {
                self.router.arrival(now, size, header, queue_bytes);
                true
            }
            Class::XcpAck => self.router.other_arrival(now, size, Other::Ack, queue_bytes),
            Class::Other => self.router.other_arrival(now, size, other, queue_bytes),
        }
    }

    /// A packet goes into service; `queue_bytes` remain behind it.
    #[inline(always)]
    pub fn departure(&mut self, now: Nanos, packet: &mut Packet, queue_bytes: u64) {
        let size = packet.size.into();
        match packet.class() {
            Class::XcpData(header) => self.router.departure(now, size, header, queue_bytes),
            Class::XcpAck | Class::Other => self.router.other_departure(now, size, queue_bytes),
        }
    }

    /// A packet arrives and goes into service at once; nothing waits.
    #[inline(always)]
    pub fn pass(&mut self, now: Nanos, packet: &mut Packet) -> bool {
        self.tell(now);
        let size = packet.size.into();
        let other = other(packet);
        match packet.class() {
            Class::XcpData(header) => {
                self.router.pass(now, size, header);
                true
            }
            Class::XcpAck => self.router.other_pass(now, size, Other::Ack),
            Class::Other => self.router.other_pass(now, size, other),
        }
    }

    /// The router's own variables.
    #[must_use]
    pub fn state(&self) -> RouterState {
        self.router.state()
    }
}
