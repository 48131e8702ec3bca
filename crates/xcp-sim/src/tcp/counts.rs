//! What a sender counts, in as little room as keeps it exact.

use xcp_model::units::Nanos;

/// What a sender has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Data segments sent again.
    pub retransmits: u64,
    /// Expiries of the retransmission timer with data outstanding.
    pub timeouts: u64,
    /// Times fast recovery was entered.
    pub fast_recoveries: u64,
    /// Repeated SYNs.
    pub syn_retransmits: u64,
    /// RTT samples taken from data.
    pub rtt_samples: u64,
    /// Their sum, nanoseconds.
    pub rtt_sum: u128,
}

/// The counters.
#[derive(Debug, Clone, Default)]
#[repr(C)]
pub(super) struct Counts {
    rtt_samples: u64,
    /// The samples' sum in 96 bits: 64 are 10^9 samples of 18 s, which a long run may have, 96 are
    /// more than 10^9 times that.
    rtt_sum_low: u64,
    rtt_sum_high: u32,
    /// At most one per RTO, or per round trip, each of which takes many packets: 32 bits are more
    /// than any run has.
    pub timeouts: u32,
    pub retransmits: u64,
    pub fast_recoveries: u32,
    pub syn_retransmits: u32,
}

impl Counts {
    #[inline(always)]
    pub fn rtt_sample(&mut self, sample: Nanos) {
        self.rtt_samples += 1;
        let (low, carry) = self.rtt_sum_low.overflowing_add(sample);
        self.rtt_sum_low = low;
        self.rtt_sum_high += u32::from(carry);
    }

    #[inline(always)]
    pub fn rtt_samples(&self) -> u64 {
        self.rtt_samples
    }

    /// With `nxt` segments sent for the first time.
    pub fn stats(&self, nxt: u64) -> SenderStats {
        SenderStats {
            segments_sent: nxt + self.retransmits,
            retransmits: self.retransmits,
            timeouts: u64::from(self.timeouts),
            fast_recoveries: u64::from(self.fast_recoveries),
            syn_retransmits: u64::from(self.syn_retransmits),
            rtt_samples: self.rtt_samples,
            rtt_sum: u128::from(self.rtt_sum_high) << 64 | u128::from(self.rtt_sum_low),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_carries() {
        let mut counts = Counts::default();
        for _ in 0..5 {
            counts.rtt_sample(Nanos::MAX);
        }
        assert_eq!(
            (counts.stats(0).rtt_sum, counts.stats(0).rtt_samples),
            (5 * u128::from(Nanos::MAX), 5)
        );
    }
}
