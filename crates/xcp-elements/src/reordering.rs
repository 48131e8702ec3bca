//! Which packets of a link direction fall back, and by how much. Where they wait, and what overtakes
//! them meanwhile, is for whoever moves the packets.

use xcp_model::Reorder;
use xcp_model::rng::{Purpose, Stream};
use xcp_model::units::Nanos;

/// The random numbers of one direction, and what they are drawn for.
#[derive(Debug, Clone)]
pub struct Reordering {
    reorder: Reorder,
    random: Stream,
}

impl Reordering {
    /// That of direction number `index` under the run's seed.
    #[must_use]
    pub fn new(reorder: Reorder, seed: u64, index: usize) -> Self {
        Self { reorder, random: Stream::new(seed, Purpose::Reordering, index) }
    }

    /// How much longer than the delay the next packet takes; 0 if it keeps its place.
    ///
    /// To be asked once for every packet that has been transmitted, whether it is lost or not: what
    /// happens to the n-th then depends on nothing else.
    pub fn falls_back_by(&mut self) -> Nanos {
        let falls_back = self.random.unit() < self.reorder.probability;
        let extra = self.random.below(self.reorder.most.saturating_add(1));
        if falls_back { extra } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extras(probability: f64, most: Nanos) -> Vec<Nanos> {
        let mut reordering = Reordering::new(Reorder { probability, most }, 7, 3);
        (0..10_000).map(|_| reordering.falls_back_by()).collect()
    }

    /// As many fall back as are to, by anything up to the bound; and who does at a low probability
    /// does so by as much at a higher one.
    #[test]
    fn those_that_fall_back_are_as_many_as_they_should_be() {
        let (few, many) = (extras(0.01, 999), extras(0.3, 999));
        for (extras, wanted) in [(&few, 100.0), (&many, 3000.0)] {
            let fell = extras.iter().filter(|&&extra| extra > 0).count() as f64;
            assert!((fell - wanted).abs() < 4.0 * f64::sqrt(wanted), "{fell} of {wanted}");
            let mean = extras.iter().sum::<u64>() as f64 / fell;
            assert!((mean - 500.0).abs() < 4.0 * 289.0 / f64::sqrt(fell), "{mean}");
            assert!(extras.iter().all(|&extra| extra <= 999));
        }
        assert!(few.iter().zip(&many).all(|(few, many)| *few == 0 || few == many));
    }

    #[test]
    fn all_or_none_may_fall_back() {
        assert!(extras(0.0, 999).iter().all(|&extra| extra == 0));
        assert!(extras(1.0, 0).iter().all(|&extra| extra == 0));
        assert!(extras(1.0, Nanos::MAX - 1).iter().all(|&extra| extra > 0));
    }
}
