//! What runs look like to a person or a script: a terminal table, JSON, CSV, Parquet and one
//! offline HTML report.
//!
//! Theory's curves beside them are `xcp-theory`'s.
//!
//! Knows the [`Run`](xcp_model::run::Run) that every backend returns and, where given, the
//! [`Scenario`](xcp_model::Scenario) it came from. Leaves reading scenario files to
//! `xcp-scenario`, running them to the backends and deciding what to write where to the command
//! line.
//!
//! Everything is a pure function of its arguments: no clock, no environment, so the same runs give
//! the same bytes.
//!
//! Numbers are written as a person reads them, with their units:
//!
//! ```
//! use xcp_report::human;
//!
//! assert_eq!(human::rate(2_380_000.0), "2.38 Mbit/s");
//! assert_eq!(human::seconds(0.501), "501 ms");
//! assert_eq!(human::percent(0.985), "98.5 %");
//! ```

// What it gives is the same on every platform (`clippy.toml`).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod axis;
#[cfg(feature = "files")]
pub mod columns;
pub mod csv;
#[cfg(feature = "files")]
pub mod files;
pub mod grid;
pub mod html;
pub mod human;
pub mod json;
mod links;
pub mod papers;
#[cfg(feature = "files")]
pub mod parquet;
pub mod playground;
pub mod plot;
#[cfg(feature = "files")]
pub mod read_back;
mod reference;
mod references;
pub mod strict;
#[cfg(feature = "files")]
pub mod sweep;
mod sweep_table;
pub mod table;

pub use html::{Report, Source, escape, html};
pub use playground::{Playground, playground};
pub use reference::{Curve, Reference};
pub use references::references;
pub use sweep_table::SweepTable;
pub use table::{table, verdict_table};
