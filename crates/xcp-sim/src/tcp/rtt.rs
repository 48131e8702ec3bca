//! Round-trip time and the retransmission timeout (RFC 6298), sampled from timestamps (RFC 7323).
//!
//! Where it differs from RFC 6298:
//! 1. The lower bound is on the variance term, as in Linux: RTO = SRTT + max(rto_min, 4 RTTVAR).
//!    RFC 6298 §2.4 bounds the sum, which on a path longer than `rto_min` whose delay does not vary
//!    (an XCP path) sets RTO = SRTT and times out on the first packet that waits in a queue. The
//!    RFC's bound holds all the same.
//! 2. The lower bound is the scenario's, not 1 s; Linux has 200 ms.
//! 3. Every ACK for new data gives a sample, with the gains 1/8 and 1/4 unchanged (RFC 7323
//!    appendix G would divide them by the samples per round trip; Linux does not for SRTT). Time is
//!    in nanoseconds, so the clock granularity G is 1 ns and never matters.
//! 4. Karn's rule is kept by timestamps: the echo names the transmission that is answered,
//!    retransmitted or not, so no sample is ambiguous and a timeout never enters SRTT.
//! 5. A congestion control that knows of an outage bounds the timeout: §5.5 would have it double, and
//!    §2.5 up to a minute at least.
//! 6. After a lost SYN the timeout is at least 3 s (§5.7) until the first sample from data, though
//!    the handshake gave one already.

use xcp_model::RtoPolicy;
use xcp_model::units::{NANOS_PER_SEC, Nanos};

/// RFC 6298 §2.1.
const INITIAL: Nanos = NANOS_PER_SEC;
/// RFC 6298 §2.5 allows an upper bound of no less than 60 s.
const MAXIMUM: Nanos = 60 * NANOS_PER_SEC;
/// RFC 6298 §5.7.
const AFTER_LOST_SYN: Nanos = 3 * NANOS_PER_SEC;

/// The estimator.
#[derive(Debug, Clone)]
pub(super) struct Rtt {
    /// Smoothed RTT times 8; 0: no sample yet.
    srtt_8: Nanos,
    /// Mean deviation times 4.
    rttvar_4: Nanos,
    /// Current timeout, back-off included.
    rto: Nanos,
    minimum: Nanos,
    policy: RtoPolicy,
}

impl Rtt {
    pub fn new(rto_min: Nanos, policy: RtoPolicy) -> Self {
        Rtt { srtt_8: 0, rttvar_4: 0, rto: INITIAL, minimum: rto_min, policy }
    }

    /// Takes the round trip of a segment that was acknowledged for the first time; ends the
    /// back-off.
    pub fn sample(&mut self, rtt: Nanos) {
        // A zero would read as "no sample"; no path is that short.
        let rtt = rtt.max(1);
        if self.srtt_8 == 0 {
            // RFC 6298 §2.2: SRTT = R, RTTVAR = R/2.
            self.srtt_8 = rtt * 8;
            self.rttvar_4 = rtt * 2;
        } else {
            // RFC 6298 §2.3: RTTVAR first, from the old SRTT.
            let deviation = (self.srtt_8 >> 3).abs_diff(rtt);
            self.rttvar_4 = self.rttvar_4 - (self.rttvar_4 >> 2) + deviation;
            self.srtt_8 = self.srtt_8 - (self.srtt_8 >> 3) + rtt;
        }
        self.rto = self.estimated();
    }

    /// The timeout without back-off.
    fn estimated(&self) -> Nanos {
        ((self.srtt_8 >> 3) + self.rttvar_4.max(self.minimum)).min(MAXIMUM)
    }

    /// Smoothed RTT; 0 before the first sample.
    pub fn srtt(&self) -> Nanos {
        self.srtt_8 >> 3
    }

    /// Retransmission timeout.
    pub fn rto(&self) -> Nanos {
        self.rto
    }

    /// The timer expired. `patience`: it need not wait longer than this, unless the round trip takes
    /// so long.
    pub fn expired(&mut self, patience: Option<Nanos>) {
        if self.policy == RtoPolicy::BackOff {
            let most = patience.map_or(MAXIMUM, |patience| patience.max(self.estimated()));
            self.rto = (self.rto * 2).min(most);
        }
    }

    /// Data begins after a SYN that had to be repeated.
    pub fn syn_was_lost(&mut self) {
        self.rto = self.rto.max(AFTER_LOST_SYN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Nanos = 1_000_000;

    /// RFC 6298 §2 by hand: first sample R: SRTT = R, RTO = R + 4 R/2; then 2R: RTTVAR = 3/4 R/2 +
    /// 1/4 R, SRTT = 7/8 R + 1/8 2R.
    #[test]
    fn follows_rfc_6298_by_hand() {
        let mut rtt = Rtt::new(MS, RtoPolicy::BackOff);
        assert_eq!((rtt.srtt(), rtt.rto()), (0, 1000 * MS));
        rtt.sample(80 * MS);
        assert_eq!((rtt.srtt(), rtt.rto()), (80 * MS, 240 * MS));
        rtt.sample(160 * MS);
        assert_eq!((rtt.srtt(), rtt.rto()), (90 * MS, 90 * MS + 200 * MS));
    }

    #[test]
    fn backs_off_to_a_minute_and_recovers_with_a_sample() {
        let mut rtt = Rtt::new(200 * MS, RtoPolicy::BackOff);
        let sequence: Vec<_> = (0..8)
            .map(|_| {
                rtt.expired(None);
                rtt.rto() / NANOS_PER_SEC
            })
            .collect();
        assert_eq!(sequence, [2, 4, 8, 16, 32, 60, 60, 60]);
        rtt.sample(100 * MS);
        assert_eq!(rtt.rto(), 300 * MS);
        let mut patient = rtt.clone();
        let sequence: Vec<_> = (0..4)
            .map(|_| {
                patient.expired(Some(NANOS_PER_SEC));
                patient.rto() / MS
            })
            .collect();
        assert_eq!(sequence, [600, 1000, 1000, 1000]);
        patient.sample(10_000 * MS);
        let longer = patient.rto();
        patient.expired(Some(NANOS_PER_SEC));
        assert_eq!(patient.rto(), longer, "no sooner than an answer can be here");
        let mut fixed = Rtt::new(200 * MS, RtoPolicy::Fixed);
        fixed.expired(None);
        assert_eq!(fixed.rto(), NANOS_PER_SEC);
    }

    proptest! {
        /// A constant RTT settles at SRTT = RTT and RTO = RTT + minimum, and no sample drives SRTT
        /// outside what was seen.
        #[test]
        fn stays_within_what_was_seen(samples in prop::collection::vec(1_000u64..10_000_000_000, 1..50), constant in 1_000u64..10_000_000_000) {
            let mut rtt = Rtt::new(200 * MS, RtoPolicy::BackOff);
            for s in &samples {
                rtt.sample(*s);
                prop_assert!(rtt.rto() >= rtt.srtt() + 200 * MS || rtt.rto() == MAXIMUM);
            }
            let (low, high) = (samples.iter().min().unwrap(), samples.iter().max().unwrap());
            prop_assert!(rtt.srtt() + 8 >= *low && rtt.srtt() <= *high);
            for _ in 0..400 {
                rtt.sample(constant);
            }
            prop_assert!(rtt.srtt().abs_diff(constant) <= 8);
            prop_assert!(rtt.rto().abs_diff(constant + 200 * MS) <= 16);
        }
    }
}
