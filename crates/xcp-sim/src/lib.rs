//! Backend 1: a packet-level discrete-event simulator. Takes a resolved scenario, returns a run.
//! Knows nothing of files, reports or Linux.
//!
//! Where things are: `region` holds the loop and the events, `network` takes packets from link
//! to link, a [`link`] is queue, transmitter and cable in one, its packets in a [`fifo`], its
//! losses in `hazard`, its packets' waiting times in `waits`; where links share a `medium`, or
//! classes of packets a link, they wait for their turn in a `station`; [`queue`] has the
//! disciplines, [`tcp`] the endpoints, `datagrams` the UDP sources; what a lab of real packets
//! has in common with all that is in `xcp-elements`. [`view`] shows it to the recorder, and to
//! who [`watch`]es closely.
//! [`simulate`] builds all of it and keeps the regions in step, several of them where
//! [`partition`] divides a run among processors. The control law is in `xcp-engine`, and nowhere
//! here.
//!
//! ```
//! use std::path::Path;
//!
//! use xcp_scenario::{Overrides, load};
//! use xcp_sim::simulate;
//!
//! let text = r#"
//! duration = "5s"
//!
//! [[link]]
//! name = "bottleneck"
//! between = ["S", "D"]
//! rate = "10mbit"
//! delay = "10ms"
//! queue = { kind = "xcp", limit = "2bdp" }
//!
//! [[flow]]
//! count = 2
//! from = "S"
//! to = "D"
//! congestion = "xcp"
//! "#;
//! let scenarios = load(Path::new("two.toml"), text, &Overrides::none())?;
//! let run = simulate(&scenarios[0], &mut ())?;
//! assert!(run.summary.links["bottleneck"].utilisation > 0.9);
//! assert_eq!(run.summary.links["bottleneck"].drops, 0);
//!
//! // The same scenario, the same bytes.
//! let again = simulate(&scenarios[0], &mut ())?;
//! assert_eq!(format!("{run:?}"), format!("{again:?}"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// What it gives is the same on every platform (`clippy.toml`).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod cable;
mod crew;
mod datagrams;
mod detour;
pub mod events;
pub mod fifo;
mod flow;
mod hazard;
pub mod liar;
pub mod link;
mod medium;
mod network;
pub mod packet;
pub mod partition;
pub mod queue;
mod region;
pub mod routing;
mod simulate;
mod station;
pub mod tcp;
mod turns;
pub mod view;
mod waits;
pub mod watch;

pub use simulate::{SimError, simulate, simulate_on, simulate_partition, simulate_watched};
