//! Watches the kernel's queues while a run goes on: how many packets wait, looked at a thousand
//! times a second by a thread of its own. The kernel itself remembers neither a queue's mean nor
//! its maximum.

use std::sync::{Mutex, PoisonError};

use xcp_model::units::Nanos;

/// What has been seen of one queue.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    state: Mutex<State>,
}

#[derive(Debug, Default, Clone, Copy)]
struct State {
    /// When it was last looked at.
    at: Nanos,
    /// Packets that waited then.
    packets: u64,
    /// Waiting packets integrated over time, packet nanoseconds.
    integral: u128,
    /// Most that were seen waiting since somebody last took it.
    max: u64,
}

impl Seen {
    /// So many packets wait at this time.
    pub fn look(&self, now: Nanos, packets: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let since = now.saturating_sub(state.at);
        // Between two looks the queue went from the one to the other.
        state.integral += u128::from(state.packets + packets) * u128::from(since) / 2;
        state.at = state.at.max(now);
        state.packets = packets;
        state.max = state.max.max(packets);
    }

    /// Waiting packets integrated until the last look, packet nanoseconds.
    pub fn integral(&self) -> u128 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).integral
    }

    /// Most that were seen waiting since this was last asked; those of the last look at least.
    pub fn take_max(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = state.packets;
        std::mem::replace(&mut state.max, now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_triangle_has_half_its_box() {
        let seen = Seen::default();
        for (now, packets) in [(0, 0), (10, 10), (20, 0), (30, 0)] {
            seen.look(now, packets);
        }
        assert_eq!((seen.integral(), seen.take_max(), seen.take_max()), (100, 10, 0));
    }

    proptest! {
        /// The mean lies between the least and the greatest that was seen.
        #[test]
        fn the_mean_is_among_what_was_seen(looks in prop::collection::vec((1u64..1000, 0u64..1000), 2..50)) {
            let seen = Seen::default();
            let mut now = 0;
            seen.look(now, looks[0].1);
            for &(step, packets) in &looks {
                now += step;
                seen.look(now, packets);
            }
            let (least, most) = (looks.iter().map(|l| l.1).min().unwrap(), looks.iter().map(|l| l.1).max().unwrap());
            let mean = seen.integral() as f64 / now as f64;
            // Each look's half packet nanosecond is cut off.
            prop_assert!(mean >= least as f64 - 1.0 && mean <= most as f64, "{mean}");
            prop_assert_eq!(seen.take_max(), most);
        }
    }
}
