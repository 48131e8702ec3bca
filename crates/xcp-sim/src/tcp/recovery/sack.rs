//! SACK-based recovery (RFC 6675). The scoreboard does Update(), IsLost(), SetPipe() and NextSeg();
//! here is when recovery begins and ends.
//!
//! 1. Sequence numbers are segments: IsLost() counts three SACKed segments above; the RFC's second
//!    test (more than two segments' worth of bytes) is the same but for a short last segment.
//! 2. Retransmissions that are lost again are found by timeout only, as the RFC has it; `again.rs`
//!    finds them as Linux did.
//! 3. The window falls to ssthresh at once (§5 step 4.2); Linux spreads that over a round trip (RFC
//!    6937).
//! 4. The rescue retransmission (NextSeg rule 4) is not counted in pipe, as after the RFC's next
//!    SetPipe().
//! 5. After a timeout: see `mod.rs`. NextSeg() rule 1 then repairs from the front, as §5.1
//!    suggests.

use super::{DUP_THRESH, Phase, Recovery, Repair, Step};

impl Recovery {
    /// §5 on a duplicate ACK, the scoreboard already updated; returns whether recovery starts.
    pub(super) fn sack_duplicate(&mut self, una: u64, news: bool) -> bool {
        let (phase, guard) = (self.phase, self.guard);
        let repair = self.repair();
        // §2: for SACK a duplicate ACK is one that says something new.
        repair.duplicates += u32::from(news);
        match phase {
            Phase::Fast | Phase::Loss => false,
            // Steps 1 and 2. Limited transmit (step 3) comes of pipe falling with every SACKed
            // segment.
            Phase::Open | Phase::Disorder => {
                (repair.duplicates >= DUP_THRESH || repair.board.first_is_lost(una)) && una >= guard
            }
        }
    }

    /// §5 steps 4.1 and 4.3.
    pub(super) fn sack_enter(&mut self, una: u64) {
        self.repair().board.enter(una);
    }
}

impl Repair {
    /// §5 step A.
    pub(super) fn sack_advanced(&mut self, una: u64) -> Step {
        if una < self.point {
            return Step::Go;
        }
        self.board.leave(una);
        Step::Leave { avoid_burst: false }
    }
}
