//! A medium that several transmitters share, one at a time: Ethernet's hub and coaxial cable, a
//! half-duplex link.
//!
//! Carrier sense, collision detection and binary exponential back-off as IEEE 802.3 has them,
//! clause 4. Where this differs, and why:
//!
//!  1. Signals take no time across the medium: all stations hear at once when it falls free. So
//!     only stations that begin in the same instant collide: those that had been waiting for it to
//!     fall free, or whose back-offs end together. On a real cable those that begin within its
//!     length of each other collide, too; a hub's is short beside a packet.
//!  2. A collision takes one slot, 512 bit times, whatever was heard of it and jammed.
//!  3. Each direction of a link is a station. A host with two links on the medium is two stations.
//!  4. The gap between frames and their preamble are part of the link's `framing`.
//!  5. A queue may yield (`yields` in a scenario): after each packet its station leaves a slot to
//!     whoever has been waiting. The standard's stations do not, and whoever has just sent has no
//!     collisions behind it and the shortest back-off before it: it tends to win again (the capture
//!     effect; Ramakrishnan & Yang, LCN 1994), and others wait until it has nothing to send.
//!  6. A packet that has collided 16 times is lost on the link; the standard lets the adapter
//!     report it, and IP stacks do nothing about it.
//!  7. The propagation delay of a link comes after the medium: stations hear each other at once
//!     however long it is.
//!
//! A link of its own with queues for two classes (`station.rs`) is the only station of its medium:
//! nothing collides there.

use xcp_model::rng::Stream;
use xcp_model::units::{NANOS_PER_SEC, Nanos};

use crate::events::NEVER;
use crate::fifo::Packets;
use crate::link::Link;

/// Slot time, bits.
const SLOT_BITS: u64 = 512;
/// Collisions after which a packet is given up.
const ATTEMPTS: u32 = 16;
/// Collisions up to which the range of the back-off doubles.
const DOUBLINGS: u32 = 10;

/// A medium.
#[derive(Debug)]
pub struct Medium {
    /// The links that transmit on it, by their numbers in the region.
    members: Vec<usize>,
    /// When it falls free.
    free_at: Nanos,
    slot: Nanos,
    random: Stream,
}

/// What came of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Nobody wanted it.
    Idle,
    /// This link has begun to transmit.
    Sends(usize),
    /// Several began.
    Collision,
}

impl Medium {
    /// A free medium of this rate; `members` are the links that transmit on it, by their numbers in
    /// the region.
    #[must_use]
    pub fn new(rate_bps: u64, members: Vec<usize>, random: Stream) -> Self {
        Self { members, free_at: 0, slot: (SLOT_BITS * NANOS_PER_SEC).div_ceil(rate_bps), random }
    }

    /// When somebody will want to begin to transmit, not before `now`; never if nobody does.
    #[must_use]
    pub fn next_turn(&self, now: Nanos, links: &[Link]) -> Nanos {
        let tries = self.members.iter().filter_map(|&link| links[link].tries_at()).min();
        tries.map_or(NEVER, |at| at.max(self.free_at).max(now))
    }

    /// Whoever may and wants to begins to transmit.
    pub fn turn(&mut self, now: Nanos, links: &mut [Link], packets: &mut Packets) -> Turn {
        let wants = |link: &Link| link.tries_at().is_some_and(|at| at <= now);
        let first = self.members.iter().copied().find(|&link| wants(&links[link]));
        let Some(first) = first.filter(|_| self.free_at <= now) else { return Turn::Idle };
        if self.members.iter().filter(|&&link| wants(&links[link])).nth(1).is_none() {
            self.free_at = links[first].start(now, packets);
            links[first].leave_a_slot(self.free_at.saturating_add(self.slot));
            return Turn::Sends(first);
        }
        self.free_at = now + self.slot;
        for &link in &self.members {
            if !wants(&links[link]) {
                continue;
            }
            let Some(collisions) = links[link].collide() else { continue };
            if collisions < ATTEMPTS {
                let slots = self.random.below(1 << collisions.min(DOUBLINGS));
                links[link].back_off(self.free_at.saturating_add(slots * self.slot));
            } else {
                links[link].give_up(now, packets);
            }
        }
        Turn::Collision
    }
}
