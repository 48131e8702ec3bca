//! What a run is told and what it tells: a [`Scenario`] with every name resolved and every quantity
//! in one unit, a [`run::Run`] with its summary and series, and the numbers of it that have names.
//!
//! `xcp-scenario` reads files into scenarios, the simulator and the lab make runs of them,
//! [`record`] keeps the books for both, [`evaluate`] holds a run against what was expected, and
//! `xcp-report` shows it. Nothing here knows of files or of any of those.
//!
//! A rate that changes, and how times are spread:
//!
//! ```
//! use xcp_model::spread::Spread;
//! use xcp_model::steps::Steps;
//!
//! // 8 Mbit/s, and from half a second on 4.
//! let rate = Steps::new(8_000_000, &[(500_000_000, 4_000_000)]);
//! assert_eq!(rate.at(700_000_000), 4_000_000);
//! assert_eq!(rate.capacity_bytes(0, 1_000_000_000), 750_000.0);
//!
//! let mut spread = Spread::default();
//! (1..=100).for_each(|time| spread.add(time));
//! assert_eq!(spread.percentiles().unwrap().p95, 95e-9);
//! ```

// What it gives is the same on every platform (`clippy.toml`).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod advice;
mod cost;
mod expect;
mod law;
mod metric;
mod model;
pub mod name;
pub mod record;
pub mod rng;
pub mod run;
pub mod sizes;
pub mod spread;
pub mod steps;
mod values;

pub use advice::advice;
pub use cost::packet_hops;
pub use expect::{Multiple, Verdict, evaluate, evaluate_variants, over_seeds};
pub use metric::check as check_metric;
pub use model::*;
pub use values::Values;
pub use xcp_law::units;
