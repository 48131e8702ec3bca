//! Exact transmission times: a packet of n bytes occupies a line of r bit/s for 8n/r seconds, and
//! the fraction of a nanosecond that does not fit is carried to the next packet, so that a busy
//! line sends exactly r bits in a second however long it runs.

use xcp_model::units::{NANOS_PER_SEC, Nanos};

/// Sizes whose quotients are remembered; a division costs as much as all else that a hop does.
const REMEMBERED: usize = 4;

/// Converts sizes to times at a constant rate.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct Serializer {
    /// Carried fraction, in units of 1 / rate nanoseconds.
    carry: u64,
    remembered: [Quotient; REMEMBERED],
    rate_bps: u64,
    framing: u32,
}

/// 8 * (size + framing) * 10^9 / rate; the size without framing.
#[derive(Debug, Clone, Copy, Default)]
struct Quotient {
    size: u16,
    whole: Nanos,
    remainder: u64,
}

impl Serializer {
    /// For a line of `rate_bps`, which must not be zero, without framing.
    #[must_use]
    pub fn new(rate_bps: u64) -> Self {
        Self::with_framing(rate_bps, 0)
    }

    /// For a line of `rate_bps`, which must not be zero, that sends so many bytes with each packet.
    #[must_use]
    pub fn with_framing(rate_bps: u64, framing: u32) -> Self {
        assert!(rate_bps > 0, "a line without a rate never sends");
        let mut line =
            Self { rate_bps, carry: 0, remembered: [Quotient::default(); REMEMBERED], framing };
        // Size 0 stands in all slots, of which it has one.
        line.divide(0, 0);
        line
    }

    /// Time on the line, fractions carried from the packet before.
    #[inline(always)]
    pub fn transmit(&mut self, size: u16) -> Nanos {
        let Quotient { whole, remainder, .. } = *self.quotient(size);
        let carry = self.carry + remainder;
        let over = carry >= self.rate_bps;
        self.carry = if over { carry - self.rate_bps } else { carry };
        whole + u64::from(over)
    }

    /// Time on a line that fell idle: the packet starts on a whole nanosecond, and nothing is
    /// carried from the one before.
    #[inline(always)]
    pub fn transmit_first(&mut self, size: u16) -> Nanos {
        let Quotient { whole, remainder, .. } = *self.quotient(size);
        self.carry = remainder;
        whole
    }

    #[inline(always)]
    fn quotient(&mut self, size: u16) -> &Quotient {
        // Sizes in use (a full segment, ACKs with and without SACK blocks) differ by multiples of
        // four.
        let slot = usize::from(size >> 2) % REMEMBERED;
        if self.remembered[slot].size != size {
            self.divide(size, slot);
        }
        &self.remembered[slot]
    }

    #[cold]
    #[inline(never)]
    fn divide(&mut self, size: u16, slot: usize) {
        let bit_nanos = 8 * (u64::from(size) + u64::from(self.framing)) * NANOS_PER_SEC;
        self.remembered[slot] = Quotient {
            size,
            whole: bit_nanos / self.rate_bps,
            remainder: bit_nanos % self.rate_bps,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// After any packets back to back the line is exactly floor(bits / rate) along.
        #[test]
        fn never_drifts(rate_bps in 1u64..=1_000_000_000_000, framing in 0u32..200, sizes in prop::collection::vec(any::<u16>(), 1..200)) {
            let mut line = Serializer::with_framing(rate_bps, framing);
            let (mut time, mut bits) = (0u128, 0u128);
            for size in sizes {
                time += u128::from(line.transmit(size));
                bits += 8 * (u128::from(size) + u128::from(framing));
                prop_assert_eq!(time, bits * 1_000_000_000 / u128::from(rate_bps));
            }
        }
    }
}
