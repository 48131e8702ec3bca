//! Lines of the log that would come as often as clients do.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two of them.
const PAUSE: Duration = Duration::from_secs(60);

/// When a line was last logged.
#[derive(Debug, Default)]
pub struct Seldom(Mutex<Option<Instant>>);

impl Seldom {
    /// Whether it may be logged now. Whoever asks does so then.
    pub fn may(&self, now: Instant) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let may = last.is_none_or(|last| now.saturating_duration_since(last) >= PAUSE);
        if may {
            *last = Some(now);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_and_again_after_a_pause_however_often_it_is_asked_for() {
        let (line, start) = (Seldom::default(), Instant::now());
        let told = (0..600).filter(|n| line.may(start + PAUSE / 300 * *n)).count();
        assert_eq!(told, 2);
        assert!(line.may(start + PAUSE * 3));
        // Threads read the clock before they come here.
        assert!(!line.may(start));
    }
}
