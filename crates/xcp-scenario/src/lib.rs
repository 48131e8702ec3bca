//! The scenario file and the run: what goes into a backend and what comes out of it. Leaves
//! simulating to `xcp-sim` and showing to `xcp-report`.
//!
//! [`load`] reads a file into [`model::Scenario`]s; a backend returns a [`run::Run`]; [`evaluate`]
//! holds that against the file's expectations. The file is described in `docs/scenario.md` and by
//! [`schema`].

mod advice;
mod claims;
mod cost;
mod error;
mod expect;
mod fields;
mod file;
mod flows;
mod footprint;
mod graph;
mod law;
mod lies;
mod links;
mod metric;
pub mod model;
pub mod name;
mod plan;
mod quantity;
pub mod record;
pub mod rewrite;
pub mod rng;
pub mod run;
mod schema;
mod set;
pub mod sizes;
mod spec;
pub mod spread;
pub mod steps;
mod trace;
mod traces;
mod tree;
pub mod typed;
pub mod units;
mod workload;

pub use cost::packet_hops;
pub use error::{Problem, ScenarioError};
pub use expect::{Multiple, Verdict, evaluate, evaluate_variants, over_seeds};
pub use file::{
    Loaded, Overrides, keep_series, load, load_file, load_with_origins, read_text, variant_names,
};
pub use footprint::{Footprint, Origins, check, footprint};
pub use links::DEFAULT_LIMIT_PACKETS;
pub use plan::{Plan, QuickPlan, plan};
pub use quantity::in_base_units;
pub use schema::{reference_tables, schema};
pub use spec::{CONGESTIONS, QUEUES};
