//! Backend 1: a packet-level discrete-event simulator. Takes a resolved scenario, returns a run.
//! Knows nothing of files, reports or Linux.
//!
//! Where things are: [`region`] holds the loop and the events, [`network`] takes packets from link
//! to link, a [`link`] is queue, transmitter and cable in one, its packets in a [`fifo`]; where
//! links share a [`medium`], or classes of packets a link, they wait for their turn in a
//! [`station`]; [`queue`] has the disciplines, [`tcp`] the endpoints, [`datagrams`] the UDP
//! sources; what a lab of real packets has in common with all that is in `xcp-elements`. [`view`]
//! shows it to the recorder, and to who [`watch`]es closely.
//! [`simulate`](mod@simulate) builds all of it and keeps the regions in step, several of them where
//! [`partition`] divides a run among processors. The control law is in `xcp-engine`, and nowhere
//! here.

pub mod cable;
pub mod crew;
pub mod datagrams;
pub mod events;
pub mod fifo;
pub mod flow;
pub mod liar;
pub mod link;
pub mod medium;
pub mod network;
pub mod packet;
pub mod partition;
pub mod queue;
pub mod region;
pub mod routing;
pub mod simulate;
pub mod station;
pub mod tcp;
pub mod turns;
pub mod view;
pub mod watch;

pub use simulate::{SimError, simulate, simulate_on, simulate_partition, simulate_watched};
