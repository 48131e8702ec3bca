//! Backend 2: a scenario in network namespaces, with real kernel TCP and xcpnet's kernel programs.

mod error;
mod plan;

pub use error::LabError;
pub use plan::Family;
