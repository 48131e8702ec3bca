//! What theory says of a scenario, without simulating a packet: max-min fair shares, the
//! equilibrium XCP's law comes to, how the loop moves (a fluid model with delay), how far it is
//! from instability. `docs/theory.md` has the equations, what they assume and where they fail.
//!
//! Knows the [`Scenario`](xcp_model::Scenario) and no backend; drawing and printing are
//! for others. **Rates are bits per second on the wire**, headers included, unless a name says
//! goodput ([`Class::goodput`](network::Class::goodput) converts).
//!
//! ```
//! use std::path::Path;
//!
//! use xcp_scenario::{Overrides, load};
//! use xcp_theory::{Network, max_min};
//!
//! let text = r#"
//! duration = "5s"
//!
//! [[link]]
//! name = "bottleneck"
//! between = ["S", "D"]
//! rate = "10mbit"
//! delay = "10ms"
//! queue = { kind = "xcp", limit = "2bdp" }
//!
//! [[flow]]
//! count = 2
//! from = "S"
//! to = "D"
//! congestion = "xcp"
//! "#;
//! let scenario = &load(Path::new("two.toml"), text, &Overrides::none())?[0];
//! // Both flows are of one class, and share the link.
//! let shares = max_min(&Network::before(scenario, scenario.duration));
//! assert_eq!(shares.rates, [5_000_000.0]);
//! # Ok::<(), xcp_scenario::ScenarioError>(())
//! ```

// What it gives is the same on every platform (`clippy.toml`).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod bound;
pub mod calendar;
pub mod equilibrium;
pub mod fluid;
pub mod margins;
pub mod max_min;
pub mod network;
pub mod predict;
pub mod said;
pub mod timeline;

pub use equilibrium::{Equilibrium, equilibrium};
pub use max_min::{Allocation, max_min};
pub use network::Network;
pub use predict::predict;
pub use timeline::timeline;
