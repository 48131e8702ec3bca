//! XCP in the unmodified Linux kernel: the kernel programs of `bpf/` loaded, attached and read, and
//! what of the network around them has to be set up. Scenarios are `xcp-lab`'s business.

pub mod cgroup;
pub mod doctor;
pub mod endpoint;
pub mod error;
pub mod kept;
mod link;
pub mod namespace;
pub mod netlink;
mod object;
pub mod offload;
pub mod police;
mod port;
mod programs;
pub mod qdisc;
pub mod rehearsal;
pub mod router;
mod shared;
pub mod subscribers;
pub mod sysctl;
pub mod urgent;

pub use error::{Error, Result};
