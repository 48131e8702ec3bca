//! What the seed of a scenario decides, wherever it runs.

use xcp_model::rng::{Purpose, Stream};
use xcp_model::units::Nanos;
use xcp_model::{Flow, Loss, LossPlace};

/// When flow number `index` of a scenario starts, jitter included.
#[must_use]
pub fn start(flow: &Flow, seed: u64, index: usize) -> Nanos {
    flow.start + Stream::new(seed, Purpose::Start, index).below(flow.group.start_jitter)
}

/// What the router of direction number `index` is seeded with: the rounding of feedback and the
/// link's bottleneck id follow from it.
#[must_use]
pub fn router_seed(seed: u64, index: usize) -> u64 {
    Stream::new(seed, Purpose::Router, index).bits()
}

/// Those of the losses of direction number `index` that strike at one place, and the random numbers
/// that they draw from. Each place has its own: which of two comes first depends on when a link is
/// looked at.
#[must_use]
pub fn losses(all: &[Loss], place: LossPlace, seed: u64, index: usize) -> (Vec<Loss>, Stream) {
    let (here, elsewhere): (Vec<Loss>, Vec<Loss>) =
        all.iter().cloned().partition(|loss| loss.place == place);
    let second = place == LossPlace::AfterQueue && !elsewhere.is_empty();
    (here, loss_numbers(second, seed, index))
}

/// The random numbers of direction number `index` for the losses at its only place, or for those at
/// the second one of two, which are those on the way: for whoever has only these before him.
#[must_use]
pub fn loss_numbers(second: bool, seed: u64, index: usize) -> Stream {
    let purpose = if second { Purpose::LossOnTheWay } else { Purpose::Loss };
    Stream::new(seed, purpose, index)
}
