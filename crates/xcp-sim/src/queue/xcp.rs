//! A first-in-first-out queue run by an XCP router: hands each packet's header to `engine/` as it comes and goes. No arithmetic of its own.

use xcp_engine::{ConfigError, Router, RouterConfig, RouterState};
use xcp_scenario::model::{Input, Law};
use xcp_scenario::run::Quantity;
use xcp_scenario::units::Nanos;

use crate::packet::{Class, Packet};

/// The router of one link direction.
#[derive(Debug)]
pub struct XcpQueue {
    router: Router,
}

/// The engine's settings for a scenario's law on a link of `rate_bps`.
#[must_use]
pub fn router_config(law: &Law, rate_bps: u64) -> RouterConfig {
    RouterConfig {
        alpha: law.alpha,
        beta: law.beta,
        gamma: law.gamma,
        overhead_bytes: law.overhead_bytes,
        pools: law.pools,
        queue_target_bytes: law.target_bytes,
        count_other: law.input == Input::All,
        ..RouterConfig::xcp(law.capacity_bps.unwrap_or(rate_bps) / 8)
    }
}

/// What is recorded of a router.
#[must_use]
pub fn router_quantities(state: &RouterState) -> [(Quantity, f64); 6] {
    [
        (Quantity::ControlInterval, state.control_interval_s),
        (Quantity::FlowsEstimated, state.flows_estimated),
        (Quantity::Phi, state.phi_bps),
        (Quantity::Shuffled, state.shuffled_bps),
        (Quantity::PersistentQueue, state.persistent_queue_bytes),
        (Quantity::InputTraffic, state.input_traffic_bps),
    ]
}

impl XcpQueue {
    /// A router for a link of `rate_bps`; `rounding_seed` feeds the unbiased rounding of feedback.
    ///
    /// # Errors
    /// When the law's numbers are out of the engine's range.
    pub fn new(law: &Law, rate_bps: u64, rounding_seed: u64) -> Result<Self, ConfigError> {
        Ok(Self { router: Router::new(&router_config(law, rate_bps), 0, rounding_seed)? })
    }

    /// A packet arrives; `queue_bytes` wait before it.
    #[inline(always)]
    pub fn arrival(&mut self, now: Nanos, packet: &mut Packet, queue_bytes: u64) {
        let size = packet.size.into();
        match packet.class() {
            Class::XcpData(header) => self.router.arrival(now, size, header, queue_bytes),
            Class::XcpAck => self.router.other_arrival(now, size, true, queue_bytes),
            Class::Other => self.router.other_arrival(now, size, false, queue_bytes),
        }
    }

    /// A packet goes into service; `queue_bytes` remain behind it.
    #[inline(always)]
    pub fn departure(&mut self, now: Nanos, packet: &mut Packet, queue_bytes: u64) {
        let size = packet.size.into();
        match packet.class() {
            Class::XcpData(header) => self.router.departure(now, size, header, queue_bytes),
            Class::XcpAck | Class::Other => self.router.other_departure(now, queue_bytes),
        }
    }

    /// A packet arrives and goes into service at once; nothing waits.
    #[inline(always)]
    pub fn pass(&mut self, now: Nanos, packet: &mut Packet) {
        let size = packet.size.into();
        match packet.class() {
            Class::XcpData(header) => self.router.pass(now, size, header),
            Class::XcpAck => self.router.other_pass(now, size, true),
            Class::Other => self.router.other_pass(now, size, false),
        }
    }

    /// The router's own variables.
    #[must_use]
    pub fn state(&self) -> RouterState {
        self.router.state()
    }
}
