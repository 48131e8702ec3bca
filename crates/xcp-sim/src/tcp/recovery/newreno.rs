//! NewReno (RFC 6582): a partial acknowledgement names the next hole; one hole is repaired per
//! round trip.
//!
//! 1. Impatient and Slow-but-Steady differ in the retransmission timer alone (§4 of RFC 6582, after
//!    RFC 3782): restarted by the first partial acknowledgement only, or by every one.
//! 2. Leaving recovery the window is min(ssthresh, FlightSize + 1), option 1 of §3.2 step 3. An XCP
//!    window stays.
//! 3. When the cumulative acknowledgement stands exactly at `recover` duplicate ACKs are judged by
//!    the timestamp heuristic of §4.2.
//! 4. Inflation and deflation are kept apart from the window, as in `reno.rs`.

use super::{Recovery, Repair, Step};
use xcp_model::units::Nanos;

impl Recovery {
    /// Counts a duplicate ACK; returns whether it starts fast recovery.
    pub(super) fn newreno_duplicate(&mut self, una: u64, echo: Nanos) -> bool {
        self.reno_duplicate(una, echo)
    }

    /// §3.2 step 2.
    pub(super) fn newreno_enter(&mut self, recover: u64) {
        self.guard = recover;
        self.reno_enter();
    }
}

impl Repair {
    /// §3.2 step 3: `segments` were acknowledged during fast recovery.
    pub(super) fn newreno_advanced(
        &mut self,
        segments: u64,
        una: u64,
        cwnd: u32,
        steady: bool,
    ) -> Step {
        if una >= self.point {
            return Step::Leave { avoid_burst: true };
        }
        // Deflate by what was acknowledged, add back one; the whole window stays at least one
        // packet.
        self.credit = (self.credit - segments as i64 + 1).max(1 - i64::from(cwnd));
        self.partials += 1;
        Step::Partial { restart_timer: self.partials == 1 || steady }
    }
}
