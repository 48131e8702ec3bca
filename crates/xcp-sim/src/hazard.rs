//! What makes packets disappear at one place of a link: losses and blackouts. When a packet passes
//! there, and what becomes of one that is lost, is for the link to say.

use xcp_elements::losses;
use xcp_model::rng::Stream;
use xcp_model::units::{Nanos, Period};
use xcp_model::{self as model, LossPlace};

/// Losses and blackouts at one place, kept apart because most links have nothing of the kind.
#[derive(Debug)]
pub struct Hazard {
    losses: Vec<model::Loss>,
    blackouts: Vec<Period>,
    random: Stream,
}

impl Hazard {
    /// What is to be feared at a place of a link direction.
    #[must_use]
    pub fn new(
        direction: &model::Direction,
        place: LossPlace,
        index: usize,
        seed: u64,
    ) -> Option<Box<Self>> {
        let (losses, random) = losses(&direction.losses, place, seed, index);
        let blackouts =
            if place == LossPlace::AfterQueue { direction.blackouts.clone() } else { Vec::new() };
        if losses.is_empty() && blackouts.is_empty() {
            return None;
        }
        Some(Box::new(Self { losses, blackouts, random }))
    }

    /// Whether the packet that passes at this time is lost.
    pub fn strikes(&mut self, at: Nanos) -> bool {
        if self.blackouts.iter().any(|period| period.contains(at)) {
            return true;
        }
        // One draw for each loss that applies, so that losses are independent.
        let random = &mut self.random;
        self.losses
            .iter()
            .filter(|loss| loss.period.contains(at))
            .fold(false, |hit, loss| (random.unit() < loss.probability) | hit)
    }
}
