//! Queue disciplines: who may enter, and what happens to a packet on its way in and out. When
//! packets leave is the link's business: a first-in-first-out queue before a transmitter of
//! constant rate knows every departure at the arrival.

mod robust;
mod xcp;

pub use robust::RobustQueue;
pub use xcp::{ChangingXcp, XcpQueue};

use xcp_elements::{Backlog, Red, router_seed};
use xcp_model::rng::{Purpose, Stream};
use xcp_model::units::Nanos;
use xcp_model::{self as model, Discipline};

use crate::packet::Packet;

/// A queue discipline.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a router beside its link's other state spares a miss a packet, and links are few"
)]
pub enum Queue {
    /// Drops what finds it full.
    DropTail,
    /// Random early detection.
    Red(Box<Red>),
    /// An XCP router.
    Xcp(XcpQueue),
    /// An XCP router whose law changes.
    Changing(Box<ChangingXcp>),
    /// An XCP router that remembers its promises.
    Robust(Box<RobustQueue>),
}

impl Queue {
    /// Builds the discipline of a link direction; `index` is the direction's, for its random
    /// numbers.
    ///
    /// # Errors
    /// When the law's numbers are out of the engine's range.
    pub fn new(
        direction: &model::Direction,
        index: usize,
        seed: u64,
    ) -> Result<Self, xcp_engine::ConfigError> {
        Ok(match &direction.queue.discipline {
            Discipline::DropTail => Self::DropTail,
            Discipline::Red(red) => {
                let random = Stream::new(seed, Purpose::Red, index);
                Self::Red(Box::new(Red::new(red, direction.rate_bps, random)))
            }
            Discipline::Xcp(model::Router { law, changes, police, .. }) => {
                let own = router_seed(seed, index);
                if law.config.control == model::Control::Calendar {
                    let queue = RobustQueue::new(law, &direction.rates(), own)?;
                    return Ok(Self::Robust(Box::new(queue)));
                }
                let queue = XcpQueue::new(law, police.as_ref(), direction.rate_bps, own)?;
                if changes.is_empty() && direction.rate_changes.is_empty() {
                    Self::Xcp(queue)
                } else {
                    let changing = ChangingXcp::new(queue, law, changes, &direction.rates())?;
                    Self::Changing(Box::new(changing))
                }
            }
        })
    }

    /// A packet arrives while the transmitter is busy, or may not begin at once; `false` if the
    /// discipline drops it. `full` says that it would not fit, `idle_since` that the transmitter is
    /// idle.
    #[inline(always)]
    pub fn arrival(
        &mut self,
        now: Nanos,
        packet: &mut Packet,
        backlog: Backlog,
        full: bool,
        idle_since: Option<Nanos>,
    ) -> bool {
        match self {
            Self::DropTail => !full,
            Self::Red(red) => red.arrival(now, backlog.packets, idle_since, full),
            Self::Xcp(xcp) => {
                // Katabi et al. 2002 §3.5: arrivals are input traffic whether or not the queue can
                // hold them.
                xcp.arrival(now, packet, backlog.bytes) && !full
            }
            Self::Changing(xcp) => xcp.at(now).arrival(now, packet, backlog.bytes) && !full,
            Self::Robust(xcp) => xcp.arrival(now, packet, backlog.bytes) && !full,
        }
    }

    /// A packet that waited goes into service; `backlog_bytes` remain behind it.
    #[inline(always)]
    pub fn departure(&mut self, now: Nanos, packet: &mut Packet, backlog_bytes: u64) {
        match self {
            Self::Xcp(xcp) => xcp.departure(now, packet, backlog_bytes),
            Self::Changing(xcp) => xcp.at(now).departure(now, packet, backlog_bytes),
            Self::Robust(xcp) => xcp.departure(now, packet, backlog_bytes),
            Self::DropTail | Self::Red(_) => {}
        }
    }

    /// A packet arrives while the transmitter is idle, since `idle_since`, and goes into service at
    /// once; `false` if the discipline drops it.
    #[inline(always)]
    pub fn pass(&mut self, now: Nanos, packet: &mut Packet, idle_since: Nanos) -> bool {
        match self {
            Self::DropTail => true,
            Self::Red(red) => red.arrival(now, 0, Some(idle_since), false),
            Self::Xcp(xcp) => xcp.pass(now, packet),
            Self::Changing(xcp) => xcp.at(now).pass(now, packet),
            Self::Robust(xcp) => xcp.pass(now, packet),
        }
    }

    /// Packets that its policer has refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        match self {
            Self::Xcp(xcp) => xcp.refused(),
            Self::Changing(xcp) => xcp.queue().refused(),
            Self::DropTail | Self::Red(_) | Self::Robust(_) => 0,
        }
    }
}
