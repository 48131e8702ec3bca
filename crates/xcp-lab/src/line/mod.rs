//! The delay line: one direction of an emulated wire between two network devices. What the first
//! receives leaves the second a given time later, unless it is lost on the way; a queue with a rate
//! may stand in front. It needs no netem and works on any kernel with packet sockets.
//!
//! The kernel's receive ring is the delay queue: a frame stays where it was received until it is
//! due, and is sent from there. Its receive time is the kernel's, so that it is due at the right
//! time however late the line's thread gets to see it. Nothing in a frame is touched.
//!
//! Frames keep their order unless [`Reorder`] says otherwise. A link does keep it, so does the
//! simulator's, and while it is kept the ring's order is that in which frames are due: nothing has
//! to be sorted, and a slot is free again when its turn comes. One that falls back keeps its slot,
//! and so all that come a whole ring later; the ring is that much larger.
//!
//! Where things are: [`config`] is what a line is told, [`handle`] starts and stops it, `forward`
//! is its thread, `ring` the kernel's side with all the `unsafe`; [`wire`] and [`queue`] decide,
//! without I/O, what becomes of a frame and when; [`clock`] knows when it came, [`report`] what a
//! line says of itself, with the [`histogram`] of how late it was.
//!
//! Left to others: making namespaces and devices; turning off tso, gso and gro on the devices that
//! feed a line (a wire carries frames, not super-packets); keeping the namespace's own stack from
//! answering (no addresses, no IPv6).
//!
//! Why not the crate rattan-core (0.1.1), an emulator with cells for delay, loss and bandwidth: it
//! stamps a frame when a task of its own gets round to reading it and hands it from task to task in
//! a buffer of its own; here it carried 150 to 470 Mbit/s of TCP over 25 ms where this carries
//! 2000. It tells neither how late it was nor what it did not receive, has no RED, builds its own
//! two-sided network with its own addresses, and brings 150 crates.

pub mod clock;
pub mod config;
mod forward;
pub mod handle;
pub mod histogram;
pub mod queue;
pub mod report;
mod ring;
pub mod wire;

pub use clock::monotonic_now;
pub use config::{LineConfig, QueueConfig};
pub use handle::Line;
pub use report::Report;
pub use xcp_model::Reorder;
