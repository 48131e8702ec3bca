//! The scenario file: reading it, its errors with place and remedy, settings beside it, its schema
//! and its documentation.
//!
//! [`load`] reads a file into [`xcp_model::Scenario`]s, from which a backend makes a run: what they
//! mean is `xcp-model`'s. The file is described in `docs/scenario.md` and by [`schema`].
//!
//! ```
//! use std::path::Path;
//!
//! use xcp_scenario::{Overrides, load};
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
//! let path = Path::new("two.toml");
//! let scenarios = load(path, text, &Overrides::none().with("link.bottleneck.rate", "20mbit"))?;
//! assert_eq!(scenarios[0].flows.len(), 2);
//! assert_eq!(scenarios[0].links[0].directions[0].rate_bps, 20_000_000);
//!
//! // All that is wrong with a file is said, each with its place and with what would be right.
//! let wrong = load(path, &text.replace("10mbit", "10Mbps"), &Overrides::none()).unwrap_err();
//! assert_eq!((wrong.problems().len(), wrong.problems()[0].line), (1, 7));
//! # Ok::<(), xcp_scenario::ScenarioError>(())
//! ```

mod claims;
mod error;
mod fields;
mod file;
mod flows;
mod footprint;
mod graph;
mod hazards;
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
pub use traces::{read_traces, with_traces};
