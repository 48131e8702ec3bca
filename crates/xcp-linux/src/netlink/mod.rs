//! rtnetlink: devices, addresses, routes, rules, neighbours and queueing disciplines, asked of the
//! kernel directly; and the packet filter's rules and queues.
//!
//! Messages are written and read here rather than by a library because the shapers' options are in
//! none, and because of a device's description only the few attributes that are wanted may be
//! looked at: a reader of everything fails on the first thing that a newer kernel says differently.

mod addresses;
mod links;
mod links_watch;
pub(crate) mod message;
pub mod nfqueue;
pub mod nftables;
pub(crate) mod qdiscs;
mod routes;
mod rules;
mod socket;
pub mod sockets;
pub mod tables;

pub use links::{Device, Sent, VethOptions};
pub use links_watch::Links;
pub use routes::RouteOptions;
pub use rules::Diversion;
pub use socket::{Error, Netlink, Result};
