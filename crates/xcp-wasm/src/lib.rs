//! Scenario reader and simulator for JavaScript: what a playground page runs in its workers,
//! compiled to WebAssembly by `make wasm`.
//!
//! [`request`] has the questions a page may ask, as JSON, and [`session`] answers them; [`trace`]
//! watches a run's packets; `abi` is the edge to JavaScript, and the only part that the native
//! build leaves out. Leaves drawing to the page and tables, CSV and figures to `xcp-report`.

#[cfg(target_arch = "wasm32")]
mod abi;
pub mod request;
pub mod session;
pub mod trace;

pub use session::{Page, Session};
