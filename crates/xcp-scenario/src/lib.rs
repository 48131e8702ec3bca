//! The scenario file: reading it, its errors with place and remedy, settings beside it, its schema
//! and its documentation.
//!
//! [`load`] reads a file into [`xcp_model::Scenario`]s, from which a backend makes a run: what they
//! mean is `xcp-model`'s. The file is described in `docs/scenario.md` and by [`schema`].

mod claims;
mod error;
mod fields;
mod file;
mod flows;
mod footprint;
mod graph;
mod law;
mod lies;
mod links;
mod plan;
pub mod rewrite;
mod schema;
mod set;
mod spec;
mod trace;
mod traces;
mod tree;
mod workload;

pub use error::{Problem, ScenarioError};
pub use file::{
    Loaded, Overrides, keep_series, load, load_file, load_with_origins, read_text, variant_names,
};
pub use footprint::{Footprint, Origins, check, footprint};
pub use links::DEFAULT_LIMIT_PACKETS;
pub use plan::{Plan, QuickPlan, plan};
pub use schema::{reference_tables, schema};
pub use spec::{CONGESTIONS, QUEUES};
