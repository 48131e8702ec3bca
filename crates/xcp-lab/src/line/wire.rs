//! What happens to a frame on the emulated wire, and when it comes out: losses, blackouts, the
//! queue, the delay, and who overtakes whom. No I/O: the caller says what arrives when, in
//! nanoseconds of `CLOCK_MONOTONIC`.
//!
//! The order is the simulator's (`xcp-sim`, `link.rs`): loss before the queue, the queue, loss and
//! blackouts on the way, struck by the time at which the frame left the transmitter. One
//! difference: every configured loss draws for every packet, in its period or not and in a blackout
//! too, so that what happens to the n-th packet does not depend on when exactly those before it
//! came; a wire has jitter where a simulation has none.

use xcp_elements::{Reordering, Way, loss_numbers, losses};
use xcp_model::rng::Stream;
use xcp_model::units::{Nanos, Period};
use xcp_model::{Loss, LossPlace};

use super::config::LineConfig;
use super::queue::Queue;

/// The state of a wire.
#[derive(Debug)]
pub struct Wire {
    before: Losses,
    queue: Option<Queue>,
    after: Losses,
    blackouts: Vec<Period>,
    delay: Nanos,
    least_delay: Nanos,
    /// What takes the delay's place where that changes.
    way: Option<Way>,
    reordering: Option<Reordering>,
    /// The latest arrival; time does not go back.
    now: Nanos,
    counters: Counters,
}

/// What a wire did not let through, or not in its turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Dropped by the queue.
    pub queue_drops: u64,
    /// Lost by chance, before the queue or on the way.
    pub lost_at_random: u64,
    /// Lost in a blackout.
    pub lost_in_blackouts: u64,
    /// Let through later than the delay, so that others may overtake them.
    pub fell_back: u64,
}

impl Wire {
    /// An unused wire.
    #[must_use]
    pub fn new(config: &LineConfig) -> Self {
        Self {
            before: Losses::new(config, LossPlace::BeforeQueue),
            queue: config
                .queue
                .as_ref()
                .map(|queue| Queue::new(queue, config.zero, config.seed, config.index)),
            after: Losses::new(config, LossPlace::AfterQueue),
            blackouts: config.blackouts.iter().map(|period| shift(period, config.zero)).collect(),
            delay: config.delays.at(0),
            least_delay: config.delays.range().0,
            way: (config.delays.steps().len() > 1)
                .then(|| Way::new(config.delays.later(config.zero))),
            reordering: config
                .reorder
                .map(|reorder| Reordering::new(reorder, config.seed, config.index)),
            now: 0,
            counters: Counters::default(),
        }
    }

    /// A frame arrives. Returns when it is due at the other end; `None` if it does not get there.
    /// Without reordering it is never due earlier than the one before.
    pub fn arrival(&mut self, now: Nanos, frame_bytes: u32) -> Option<Nanos> {
        self.now = self.now.max(now);
        if self.before.strike(self.now) {
            self.counters.lost_at_random += 1;
            return None;
        }
        let leaves = match &mut self.queue {
            None => self.now,
            Some(queue) => {
                let leaves = queue.arrival(self.now, frame_bytes);
                self.counters.queue_drops += u64::from(leaves.is_none());
                leaves?
            }
        };
        let due = match &mut self.way {
            None => leaves.saturating_add(self.delay),
            Some(way) => way.arrives(leaves),
        };
        let lost = self.after.strike(leaves);
        let extra = self.reordering.as_mut().map_or(0, Reordering::falls_back_by);
        if self.blackouts.iter().any(|period| period.contains(leaves)) {
            self.counters.lost_in_blackouts += 1;
            None
        } else if lost {
            self.counters.lost_at_random += 1;
            None
        } else {
            self.counters.fell_back += u64::from(extra > 0);
            Some(due.saturating_add(extra))
        }
    }

    /// The least time in which what comes from now on can be due where it may overtake others;
    /// `None` where all keep their order.
    #[must_use]
    pub fn overtakes_in(&self) -> Option<Nanos> {
        self.reordering.as_ref().map(|_| self.least_delay)
    }

    /// The queue, if the wire has one.
    pub fn queue(&mut self) -> Option<&mut Queue> {
        self.queue.as_mut()
    }

    /// What has not been let through.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

/// Random losses at one place.
#[derive(Debug)]
struct Losses {
    losses: Vec<Loss>,
    random: Stream,
}

impl Losses {
    fn new(config: &LineConfig, place: LossPlace) -> Self {
        // As in a simulation, so that a wire loses the packets that it loses.
        let (mut losses, mut random) = losses(&config.losses, place, config.seed, config.index);
        if config.losses_elsewhere && place == LossPlace::AfterQueue {
            random = loss_numbers(true, config.seed, config.index);
        }
        for loss in &mut losses {
            loss.period = shift(&loss.period, config.zero);
        }
        Self { losses, random }
    }

    /// Whether the next packet, which passes at this time, is lost.
    fn strike(&mut self, at: Nanos) -> bool {
        let random = &mut self.random;
        self.losses.iter().fold(false, |lost, loss| {
            (random.unit() < loss.probability && loss.period.contains(at)) | lost
        })
    }
}

/// A period of the scenario on the monotonic clock.
fn shift(period: &Period, zero: Nanos) -> Period {
    Period { from: zero.saturating_add(period.from), to: zero.saturating_add(period.to) }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
