//! Fast retransmit and fast recovery (RFC 5681 §3.2): the first ACK for new data ends recovery,
//! whatever else is missing.
//!
//! 1. The window's inflation is kept apart from the window (`Repair::credit`), so that cwnd is what
//!    it will be after recovery.
//! 2. A fast retransmit is refused for what a timeout has repaired, see `mod.rs`; not for what a
//!    fast recovery has: several losses in one window halve the window several times, or end in a
//!    timeout when duplicate ACKs run out. That is Reno.
//! 3. ns-2's Reno, which most of the papers ran on, refuses that, too (`bugFix_`, its default): no
//!    fast retransmit until everything outstanding at the last one is acknowledged (`once`).
//!    Several losses in one window then wait for the timeout.

use super::{DUP_THRESH, Phase, Recovery};
use xcp_model::units::Nanos;

/// RFC 3042: one new segment for each of the first two duplicate ACKs.
pub(super) const LIMITED_TRANSMIT: i64 = 2;

impl Recovery {
    /// Counts a duplicate ACK; returns whether it starts fast recovery.
    pub(super) fn reno_duplicate(&mut self, una: u64, echo: Nanos) -> bool {
        let proof = self.past_guard(una, echo);
        let phase = self.phase;
        let repair = self.repair();
        repair.duplicates += 1;
        match phase {
            Phase::Fast => {
                // §3.2 step 4: another packet has left the network.
                repair.credit += 1;
                false
            }
            Phase::Loss => false,
            Phase::Open | Phase::Disorder => {
                if repair.duplicates >= DUP_THRESH && proof {
                    return true;
                }
                repair.credit = i64::from(repair.duplicates).min(LIMITED_TRANSMIT);
                false
            }
        }
    }

    /// §3.2 step 3: three packets have left the network.
    pub(super) fn reno_enter(&mut self) {
        self.repair().credit = i64::from(DUP_THRESH);
    }
}
