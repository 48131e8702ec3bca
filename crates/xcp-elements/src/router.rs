//! What is recorded of a router.

use xcp_law::RouterState;
use xcp_model::run::Quantity;

/// What is recorded of a router, simulated or in the kernel.
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
