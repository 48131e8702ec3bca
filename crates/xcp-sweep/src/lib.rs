//! A scenario over a grid of settings, variants and seeds: what the command line's `sweep` and the
//! Python package share. Leaves words on a terminal, Ctrl-C and object stores to those two.
//!
//! On one machine: [`Sweep`] → [`work`] → [`journal`] → [`tables`]. Threads simulate and append to
//! the journal; when nothing is missing the tables are made from it, in the order of the grid.
//!
//! On many: [`Sweep`] → [`manifest`] → [`compute`] → [`directory`] → [`merge`]. The manifest cuts
//! the runs into shards of about equal work. Whoever does a shard writes its part of every table
//! and then, last of all, its marker; nothing else is shared, and a shard done twice is the same
//! bytes twice. The tables put together from the parts are those that one machine would have
//! written.
//!
//! ```
//! use std::path::Path;
//!
//! use xcp_sweep::Sweep;
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
//! let rates = ("link.bottleneck.rate".to_owned(), "5mbit,10mbit,20mbit".to_owned());
//! let sweep = Sweep::typed(Path::new("two.toml"), text, &[rates], Some("1..4"), &[])?;
//! assert_eq!((sweep.grid.combinations(), sweep.grid.seeds(), sweep.grid.runs()), (3, 4, 12));
//! # Ok::<(), xcp_sweep::Error>(())
//! ```

pub mod compute;
pub mod directory;
mod error;
/// Hashes that tell contents apart.
pub mod fingerprint;
pub mod grid;
pub mod journal;
pub mod manifest;
pub mod memory;
pub mod merge;
mod scenarios;
mod seeds;
mod sweep;
pub mod tables;
pub mod work;

pub use error::Error;
pub use scenarios::{Ready, Scenarios};
pub use seeds::MAX_SEED;
pub use sweep::{Description, Sweep, chosen_variants};

/// Tells apart simulators that may give other results.
pub const SIMULATOR: &str = env!("XCPNET_SIMULATOR");

/// Tells apart builds that may write other tables.
pub const BUILD: &str = env!("XCPNET_SWEEP");
