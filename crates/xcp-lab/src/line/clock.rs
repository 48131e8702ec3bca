//! Clocks: the one that lines live by, and the one by which the kernel stamps received frames.
//!
//! A packet socket stamps by the wall clock (`CLOCK_REALTIME`), which may be set at any time; lines
//! live by `CLOCK_MONOTONIC`. A stamp is turned from one into the other by their difference at the
//! present look at the ring. Were the clock set between stamp and look, the result would be wrong
//! by the step; but a frame found by this look was not there when the last one found the ring
//! empty, nor is it from the future, nor did it come before the one ahead of it in the ring. Held
//! to that, an arrival is wrong at most by the time between two looks, and only if the clock was
//! set in it.

use rustix::time::{ClockId, Timespec, clock_gettime};
use xcp_model::units::{NANOS_PER_SEC, Nanos};

/// `CLOCK_MONOTONIC`, nanoseconds: the time of [`LineConfig::zero`](super::LineConfig::zero).
#[must_use]
pub fn monotonic_now() -> Nanos {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// Both clocks at one time, `CLOCK_REALTIME` and `CLOCK_MONOTONIC`.
#[must_use]
pub fn both_now() -> (Nanos, Nanos) {
    for _ in 0..3 {
        let before = monotonic_now();
        let pair = (nanos(clock_gettime(ClockId::Realtime)), monotonic_now());
        // Unless the thread was interrupted between the two.
        if pair.1 - before < 1000 {
            return pair;
        }
    }
    // The monotonic clock read last: a stamp then never becomes a time before the true one, and no
    // frame is sent too early.
    (nanos(clock_gettime(ClockId::Realtime)), monotonic_now())
}

fn nanos(time: Timespec) -> Nanos {
    (time.tv_sec as u64).wrapping_mul(NANOS_PER_SEC).wrapping_add(time.tv_nsec as u64)
}

/// Turns receive stamps into times of arrival.
#[derive(Debug, Default)]
pub struct ArrivalClock {
    /// Wall clock minus monotonic clock, wrapping.
    difference: Nanos,
    /// When the present look at the ring began.
    look: Nanos,
    /// No frame still to be found came before.
    floor: Nanos,
}

impl ArrivalClock {
    /// A look at the ring begins; both clocks have just been read, the monotonic one last.
    pub fn begin_look(&mut self, realtime: Nanos, monotonic: Nanos) {
        self.difference = realtime.wrapping_sub(monotonic);
        self.look = monotonic;
    }

    /// The look ended at a slot that is still the kernel's: whatever is found later came after the
    /// look began.
    pub fn end_look_at_empty(&mut self) {
        self.floor = self.floor.max(self.look);
    }

    /// No frame still to be found came before this.
    #[must_use]
    pub fn floor(&self) -> Nanos {
        self.floor
    }

    /// When a frame with this stamp, found by the present look, arrived. `now` reads the monotonic
    /// clock.
    pub fn arrival(&mut self, stamp: Nanos, now: impl FnOnce() -> Nanos) -> Nanos {
        // Below zero, if the clock was set by more than the time since the machine was started.
        let converted = stamp.wrapping_sub(self.difference).cast_signed().max(0).cast_unsigned();
        // It may have come since the look began.
        let latest = if converted > self.look { now() } else { self.look };
        self.floor = self.floor.max(converted.min(latest));
        self.floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;
    const EPOCH: u64 = 1_700_000_000 * NANOS_PER_SEC;

    #[test]
    fn stamps_become_monotonic_times() {
        let mut clock = ArrivalClock::default();
        clock.begin_look(EPOCH + 100 * MS, 100 * MS);
        assert_eq!(clock.arrival(EPOCH + 90 * MS, || unreachable!()), 90 * MS);
        assert_eq!(clock.arrival(EPOCH + 95 * MS, || unreachable!()), 95 * MS);
        // Filled while we look.
        assert_eq!(clock.arrival(EPOCH + 101 * MS, || 102 * MS), 101 * MS);
    }

    #[test]
    fn a_step_of_the_wall_clock_costs_no_more_than_the_time_between_looks() {
        for step in [-3_600_000 * MS as i64, -5 * MS as i64, 5 * MS as i64, 3_600_000 * MS as i64] {
            let mut clock = ArrivalClock::default();
            clock.begin_look(EPOCH + 100 * MS, 100 * MS);
            clock.end_look_at_empty();
            // Stamped at 101 ms by the old time, the clock set, looked at at 102 ms.
            clock.begin_look((EPOCH + 102 * MS).wrapping_add_signed(step), 102 * MS);
            let arrival = clock.arrival(EPOCH + 101 * MS, || 102 * MS);
            assert!((100 * MS..=102 * MS).contains(&arrival), "step {step}: {arrival}");
            // And then all is well again.
            clock.end_look_at_empty();
            clock.begin_look((EPOCH + 104 * MS).wrapping_add_signed(step), 104 * MS);
            assert_eq!(
                clock.arrival((EPOCH + 103 * MS).wrapping_add_signed(step), || unreachable!()),
                103 * MS
            );
        }
    }

    proptest! {
        /// Whatever the stamps and the clocks say, arrivals go neither backwards nor into the
        /// future.
        #[test]
        fn arrivals_are_in_order_and_past(looks in prop::collection::vec((0u64..10 * MS, any::<u64>(), prop::collection::vec(any::<u64>(), 0..5), any::<bool>()), 1..50)) {
            let mut clock = ArrivalClock::default();
            let (mut now, mut last) = (0, 0);
            for (pause, realtime, stamps, empty) in looks {
                now += pause;
                clock.begin_look(realtime, now);
                for stamp in stamps {
                    let arrival = clock.arrival(stamp, || now);
                    prop_assert!(last <= arrival && arrival <= now);
                    last = arrival;
                }
                if empty {
                    clock.end_look_at_empty();
                }
            }
        }
    }
}
