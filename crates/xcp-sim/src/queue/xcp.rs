//! A first-in-first-out queue run by an XCP router: hands each packet's header to `engine/` as it comes and goes. No arithmetic of its own.

use xcp_engine::{ConfigError, ForwardHeader, Router, RouterConfig, RouterState};
use xcp_scenario::model::{Input, Law};
use xcp_scenario::units::Nanos;

use crate::packet::{Class, Packets, Token};

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
            queue_target_bytes: law.target_bytes,
            count_other: law.input == Input::All,
            ..RouterConfig::xcp(law.capacity_bps.unwrap_or(rate_bps) / 8)
        };
        Ok(Self { router: Router::new(&config, 0, rounding_seed)? })
    }

    /// A packet arrives; `queue_bytes` wait before it.
    pub fn arrival(&mut self, now: Nanos, token: Token, packets: &mut Packets, queue_bytes: u64) {
        match header(token, packets) {
            Some(header) => self.router.arrival(now, token.size.into(), header, queue_bytes),
            None => self.router.other_arrival(now, token.size.into(), token.class == Class::XcpAck, queue_bytes),
        }
    }

    /// A packet goes into service; `queue_bytes` remain behind it.
    pub fn departure(&mut self, now: Nanos, token: Token, packets: &mut Packets, queue_bytes: u64) {
        match header(token, packets) {
            Some(header) => self.router.departure(now, token.size.into(), header, queue_bytes),
            None => self.router.other_departure(now, queue_bytes),
        }
    }

    /// A packet arrives and goes into service at once; nothing waits.
    #[inline(always)]
    pub fn pass(&mut self, now: Nanos, token: Token, packets: &mut Packets) {
        match header(token, packets) {
            Some(header) => self.router.pass(now, token.size.into(), header),
            None => {
                self.router.other_arrival(now, token.size.into(), token.class == Class::XcpAck, 0);
                self.router.other_departure(now, 0);
            }
        }
    }

    /// The router's own variables.
    #[must_use]
    pub fn state(&self) -> RouterState {
        self.router.state()
    }
}

/// The forward header, if the packet has one; else the packet itself need not be touched.
fn header(token: Token, packets: &mut Packets) -> Option<&mut ForwardHeader> {
    if token.class == Class::XcpData { packets[token.packet].header_mut() } else { None }
}
