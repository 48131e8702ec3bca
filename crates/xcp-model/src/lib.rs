//! What a run is told and what it tells: a [`Scenario`] with every name resolved and every quantity
//! in one unit, a [`run::Run`] with its summary and series, and the numbers of it that have names.
//!
//! `xcp-scenario` reads files into scenarios, the simulator and the lab make runs of them,
//! [`record`] keeps the books for both, [`evaluate`] holds a run against what was expected, and
//! `xcp-report` shows it. Nothing here knows of files or of any of those.

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

pub use advice::advice;
pub use cost::packet_hops;
pub use expect::{Multiple, Verdict, evaluate, evaluate_variants, over_seeds};
pub use metric::check as check_metric;
pub use model::*;
pub use xcp_law::units;
