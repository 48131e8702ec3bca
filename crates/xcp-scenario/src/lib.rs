//! The scenario file and the run: what goes into a backend and what comes out of it. Leaves simulating to `xcp-sim` and showing to `xcp-report`.

pub mod model;
pub mod run;
pub mod units;
