//! What outlives the command that made it: routers and the endpoint, kept in a BPF file system. One
//! directory for each, named so that nobody has to write down elsewhere what there is; a directory
//! whose device is gone, or that was left half-made, is cleared away by the next command.

mod endpoint;
pub(crate) mod file_system;
mod routers;

pub use endpoint::{Enabled, EndpointPlan, disable, enable, endpoint};
pub use routers::{KeptRouter, RouterPlan, Shaping, add, change, delete, list, need};
