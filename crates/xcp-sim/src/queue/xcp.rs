//! A first-in-first-out queue run by an XCP router: hands each packet's header to `engine/` as it comes and goes. No arithmetic of its own.

use xcp_engine::{ConfigError, Router, RouterConfig, RouterState};
use xcp_scenario::model::{Input, Law};
use xcp_scenario::units::Nanos;

use crate::packet::{Body, Packet};

/// The router of one link direction.
#[derive(Debug)]
pub struct XcpQueue {
    router: Router,
}

impl XcpQueue {
    /// A router for a link of `rate_bps`; `rounding_seed` feeds the unbiased rounding of feedback.
    ///
    /// # Errors
    /// When the law's numbers are out of the engine's range.
    pub fn new(law: &Law, rate_bps: u64, rounding_seed: u64) -> Result<Self, ConfigError> {
        let config = RouterConfig {
            alpha: law.alpha,
            beta: law.beta,
            gamma: law.gamma,
            overhead_bytes: law.overhead_bytes,
            pools: law.pools,
            count_other: law.input == Input::All,
            ..RouterConfig::xcp(law.capacity_bps.unwrap_or(rate_bps) / 8)
        };
        Ok(Self { router: Router::new(&config, 0, rounding_seed)? })
    }

    /// A packet arrives; `queue_bytes` wait before it.
    pub fn arrival(&mut self, now: Nanos, packet: &Packet, queue_bytes: u64) {
        let size = u32::from(packet.size);
        match &packet.body {
            Body::Data { header, .. } | Body::Syn { header } if header.is_present() => self.router.arrival(now, size, header, queue_bytes),
            body => self.router.other_arrival(now, size, is_xcp_ack(body), queue_bytes),
        }
    }

    /// A packet goes into service; `queue_bytes` remain behind it.
    pub fn departure(&mut self, now: Nanos, packet: &mut Packet, queue_bytes: u64) {
        let size = u32::from(packet.size);
        match &mut packet.body {
            Body::Data { header, .. } | Body::Syn { header } if header.is_present() => {
                self.router.departure(now, size, header, queue_bytes);
            }
            _ => self.router.other_departure(now, queue_bytes),
        }
    }

    /// The router's own variables.
    #[must_use]
    pub fn state(&self) -> RouterState {
        self.router.state()
    }
}

fn is_xcp_ack(body: &Body) -> bool {
    matches!(body, Body::Ack(ack) if ack.returned.is_present())
}
