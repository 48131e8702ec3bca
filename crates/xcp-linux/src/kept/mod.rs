//! What outlives the command that made it: routers and the endpoint, kept in a BPF file system. One
//! directory for each, named so that nobody has to write down elsewhere what there is. A router's
//! whose device is gone, or that was left half-made, is cleared away by the next command; an endpoint
//! that was left half-made, by `disable`.

mod endpoint;
pub(crate) mod file_system;
mod routers;

pub use endpoint::{Enabled, EndpointPlan, disable, enable, endpoint};
pub use routers::{KeptRouter, RouterPlan, Shaping, add, change, delete, full_frame, list, need};
