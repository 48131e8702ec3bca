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

pub mod compute;
pub mod directory;
mod error;
/// Hashes that tell contents apart.
pub mod fingerprint;
pub mod grid;
pub mod journal;
pub mod lists;
pub mod manifest;
pub mod memory;
pub mod merge;
mod scenarios;
mod sweep;
pub mod tables;
pub mod work;

pub use error::Error;
pub use scenarios::{Ready, Scenarios};
pub use sweep::{Description, Sweep, chosen_variants};

/// Tells apart simulators that may give other results.
pub const SIMULATOR: &str = env!("XCPNET_SIMULATOR");

/// Tells apart builds that may write other tables.
pub const BUILD: &str = env!("XCPNET_SWEEP");
