//! Backend 2: a scenario in network namespaces, with real kernel TCP and xcpnet's kernel programs.

mod clock;
mod error;
mod measure;
mod plan;
mod site;
mod traffic;
mod trust;
mod xcp;

pub use error::LabError;
pub use plan::Family;
