//! The run's time: nanoseconds of the kernel's monotonic clock since the run began.

use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::{Timespec, clock_gettime};
use xcp_model::units::{NANOS_PER_SEC, Nanos};

/// When a run begins, on the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clock {
    zero: Nanos,
}

/// The monotonic clock now.
pub(crate) fn monotonic() -> Nanos {
    let now = clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * NANOS_PER_SEC + now.tv_nsec.cast_unsigned()
}

impl Clock {
    /// A run that begins in so many nanoseconds.
    pub fn starting_in(lead: Nanos) -> Self {
        Self { zero: monotonic() + lead }
    }

    /// The monotonic clock when the run is at zero.
    pub fn zero(self) -> Nanos {
        self.zero
    }

    /// The run's time; zero until it has begun.
    pub fn now(self) -> Nanos {
        monotonic().saturating_sub(self.zero)
    }

    /// Waits until the run has come to a time. A signal may end the wait early.
    pub fn sleep_until(self, time: Nanos) {
        let at = self.zero.saturating_add(time);
        let (seconds, nanos) = (at / NANOS_PER_SEC, at % NANOS_PER_SEC);
        let at = Timespec {
            tv_sec: i64::try_from(seconds).unwrap_or(i64::MAX),
            tv_nsec: nanos.cast_signed(),
        };
        // Interrupted or not, the caller looks at the clock again.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_until_then_and_not_less() {
        let clock = Clock::starting_in(1_000_000);
        assert_eq!(clock.now(), 0);
        clock.sleep_until(2_000_000);
        assert!(clock.now() >= 2_000_000);
        clock.sleep_until(1_000_000);
    }
}
