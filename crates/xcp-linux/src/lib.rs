//! XCP in the unmodified Linux kernel: the kernel programs of `bpf/` loaded, attached and read, and what of the network around them has to be set
//! up. Scenarios are `xcp-lab`'s business.

pub mod namespace;
pub mod netlink;
pub mod offload;
pub mod qdisc;
pub mod sysctl;
