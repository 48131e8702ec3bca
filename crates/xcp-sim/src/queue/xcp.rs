//! A first-in-first-out queue run by an XCP router: hands each packet's header to `engine/` as it
//! comes and goes. No arithmetic of its own.

use std::collections::BTreeSet;

use xcp_engine::{ConfigError, Passage, Policer, PolicerConfig, Router, RouterConfig, RouterState};
use xcp_model::steps::Steps;
use xcp_model::units::Nanos;
use xcp_model::{Law, LawChange, Police};

use crate::packet::{Class, Packet};

/// The router of one link direction.
#[derive(Debug)]
pub struct XcpQueue {
    router: Router,
    policer: Option<Box<Policer>>,
}

impl XcpQueue {
    /// A router for a link of `rate_bps`, and the policer before it; `seed` feeds the unbiased
    /// rounding of feedback, and the hashes of the policer's table.
    ///
    /// # Errors
    /// When the law's numbers are out of the engine's range.
    pub fn new(
        law: &Law,
        police: Option<&Police>,
        rate_bps: u64,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        let mut router = Router::new(&law.at(rate_bps), 0, seed)?;
        let policer = police.map(|police| {
            let config =
                PolicerConfig { flows: police.flows, longest_rtt_ns: police.longest_rtt, seed };
            Box::new(Policer::new(&config, &mut router))
        });
        Ok(Self { router, policer })
    }

    /// Whether the policer lets a packet through, before which `queue_bytes` wait; the law must not
    /// see it otherwise. It polices what has a forward header.
    #[cold]
    #[inline(never)]
    fn admits(&mut self, now: Nanos, packet: &mut Packet, queue_bytes: u64) -> bool {
        let Some(policer) = &mut self.policer else { return true };
        let passage = Passage {
            now_ns: now,
            key: packet.policing_key(),
            bytes: packet.size.into(),
            segments: 1,
            queue_bytes,
        };
        match packet.class() {
            Class::XcpData(header) => policer.admits(&mut self.router, &passage, header),
            Class::XcpAck | Class::Other => true,
        }
    }

    /// Packets that the policer has refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.policer.as_ref().map_or(0, |policer| policer.state().refused)
    }

    /// A packet arrives; `queue_bytes` wait before it. `false`: the policer refuses it.
    #[inline(always)]
    pub fn arrival(&mut self, now: Nanos, packet: &mut Packet, queue_bytes: u64) -> bool {
        if self.policer.is_some() && !self.admits(now, packet, queue_bytes) {
            return false;
        }
        let size = packet.size.into();
        match packet.class() {
            Class::XcpData(header) => self.router.arrival(now, size, header, queue_bytes),
            Class::XcpAck => self.router.other_arrival(now, size, true, queue_bytes),
            Class::Other => self.router.other_arrival(now, size, false, queue_bytes),
        }
        true
    }

    /// A packet goes into service; `queue_bytes` remain behind it.
    #[inline(always)]
    pub fn departure(&mut self, now: Nanos, packet: &mut Packet, queue_bytes: u64) {
        let size = packet.size.into();
        match packet.class() {
            Class::XcpData(header) => self.router.departure(now, size, header, queue_bytes),
            Class::XcpAck => self.router.other_departure(now, size, true, queue_bytes),
            Class::Other => self.router.other_departure(now, size, false, queue_bytes),
        }
    }

    /// A packet arrives and goes into service at once; nothing waits. `false`: the policer refuses
    /// it.
    #[inline(always)]
    pub fn pass(&mut self, now: Nanos, packet: &mut Packet) -> bool {
        if self.policer.is_some() && !self.admits(now, packet, 0) {
            return false;
        }
        let size = packet.size.into();
        match packet.class() {
            Class::XcpData(header) => self.router.pass(now, size, header),
            Class::XcpAck => self.router.other_pass(now, size, true),
            Class::Other => self.router.other_pass(now, size, false),
        }
        true
    }

    /// The router's own variables.
    #[must_use]
    pub fn state(&self) -> RouterState {
        self.router.state()
    }
}

/// A router whose law is replaced, or its capacity, at given times. Kept apart: a router that keeps
/// them need not look at the time for it.
#[derive(Debug)]
pub struct ChangingXcp {
    queue: XcpQueue,
    /// The changes still to come, the next one last.
    changes: Vec<(Nanos, RouterConfig)>,
}

impl ChangingXcp {
    /// A router that starts with `law`, and is told when its link's rate changes.
    ///
    /// # Errors
    /// When the numbers of one of the laws are out of the engine's range.
    pub fn new(
        queue: XcpQueue,
        law: &Law,
        changes: &[LawChange],
        rates: &Steps,
    ) -> Result<Self, ConfigError> {
        let of_rate = rates.steps().iter().skip(1).map(|(at, _)| *at);
        let times: BTreeSet<Nanos> =
            changes.iter().map(|change| change.at).chain(of_rate).collect();
        let settings = |at: Nanos| {
            let changed = changes.iter().rev().find(|change| change.at <= at);
            (at, changed.map_or(law, |change| &change.law).at(rates.at(at)))
        };
        let changes: Vec<_> = times.into_iter().rev().map(settings).collect();
        // Each is tried now, so that none is refused during the run.
        for (_, config) in &changes {
            Router::new(config, 0, 0)?;
        }
        Ok(Self { queue, changes })
    }

    /// The router with the law of this time.
    pub fn at(&mut self, now: Nanos) -> &mut XcpQueue {
        while let Some((_, config)) = self.changes.pop_if(|(at, _)| *at <= now) {
            let taken = self.queue.router.set_law(&config);
            debug_assert_eq!(taken, Ok(()), "it was tried before the run");
        }
        &mut self.queue
    }

    /// The router as it was left.
    #[must_use]
    pub fn queue(&self) -> &XcpQueue {
        &self.queue
    }
}
