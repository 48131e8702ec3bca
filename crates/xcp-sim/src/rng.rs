//! Random numbers: the scenario's own streams, from which its workload is drawn too.

pub use xcp_model::rng::{Purpose, Stream};
