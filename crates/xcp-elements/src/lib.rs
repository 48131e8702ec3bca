//! The elements that a network is made of whether it is simulated or built of real packets: what
//! `xcp-sim` and `xcp-lab` have in common on purpose, so that a link of one is a link of the other.
//!
//! * **Lines.** [`Serializer`] says how long a packet takes at a constant rate, [`Varying`] where
//!   the rate changes, both exactly; [`Way`] when it arrives where the delay changes.
//! * **Queues.** [`Backlog`] knows when one is full, [`Red`] decides who may enter.
//! * **Traffic.** [`Datagrams`] says when a source of UDP sends.
//! * **Chance.** [`start`], [`router_seed`], [`losses`] and [`loss_numbers`] are what a scenario's
//!   seed decides: the same start times, feedback and lost packets wherever the scenario runs;
//!   [`Reordering`] says which packets others overtake.
//! * **Routers.** [`router_quantities`] is what is recorded of one.
//!
//! Each of these is told the time and answers; none has a clock, a socket or a packet. What a
//! packet is, which queue it waits in, when the next event is due and what happens to it on the
//! wire is for those who use them; the control law is `xcp-engine`'s.
//!
//! A packet of 1500 bytes takes 1.2 ms at 10 Mbit/s, then 20 ms to the other end:
//!
//! ```
//! use xcp_elements::{Backlog, Serializer};
//! use xcp_model::Limit;
//!
//! let mut line = Serializer::new(10_000_000);
//! let sent = line.transmit_first(1500);
//! assert_eq!((sent, sent + 20_000_000), (1_200_000, 21_200_000));
//!
//! // Two more wait behind it, and a queue of two takes no third.
//! let backlog = Backlog { packets: 2, bytes: 3000 };
//! assert!(backlog.is_full(Limit::Packets(2), 1500));
//! assert!(!backlog.is_full(Limit::Bytes(4500), 1500));
//! ```

// What it gives is the same on every platform (`clippy.toml`).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod backlog;
mod chance;
mod datagrams;
mod red;
mod reordering;
mod router;
mod serializer;
mod varying;
mod way;

pub use backlog::Backlog;
pub use chance::{loss_numbers, losses, router_seed, start};
pub use datagrams::Datagrams;
pub use red::Red;
pub use reordering::Reordering;
pub use router::router_quantities;
pub use serializer::Serializer;
pub use varying::Varying;
pub use way::Way;
