//! A thread that looks at queues and connections all the time: what the kernel tells only of the
//! present moment has to be seen when it is present.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use xcp_model::units::Nanos;

use super::flows::Flows;
use super::queues::Seen;
use crate::LabError;
use crate::clock::{Clock, monotonic};
use crate::trust::{SAMPLING_LATE, Sampling};

/// Between two looks at the queues.
const QUEUES: Nanos = 1_000_000;
/// Between two looks at the connections.
const FLOWS: Nanos = 10_000_000;
/// Looking takes no more than one part in so many of a processor, each.
const SHARE: Nanos = 20;

/// Tells how many packets wait in a queue now; `None` if that cannot be told.
pub(crate) type Look = Box<dyn FnMut() -> Option<u64> + Send>;

/// The thread. Dropped, it ends.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    sampling: Arc<Mutex<Sampling>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Looks at these queues and flows from the beginning of the run on.
    pub fn start(
        clock: Clock,
        mut queues: Vec<(Arc<Seen>, Look)>,
        flows: Arc<Flows>,
    ) -> Result<Self, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let sampling = Arc::new(Mutex::new(Sampling::default()));
        let (told, counted) = (stop.clone(), sampling.clone());
        let body = move || {
            // Sleeps end on time, not 50 us later; where that is refused they end later.
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
            let (mut next_queues, mut next_flows) = (0, 0);
            while !told.load(Ordering::Relaxed) {
                clock.sleep_until(next_queues.min(next_flows));
                let began = monotonic();
                let Some(now) = began.checked_sub(clock.zero()) else { continue };
                if now >= next_queues {
                    count(&counted, now - next_queues);
                    for (seen, look) in &mut queues {
                        if let Some(packets) = look() {
                            seen.look(clock.now(), packets);
                        }
                    }
                    next_queues = if queues.is_empty() {
                        Nanos::MAX
                    } else {
                        next(now, QUEUES, monotonic() - began)
                    };
                }
                if now >= next_flows {
                    let began = monotonic();
                    flows.sample();
                    next_flows = next(now, FLOWS, monotonic() - began);
                }
            }
        };
        let thread = std::thread::Builder::new().name("xcp watch".into()).spawn(body);
        let thread = Some(thread.map_err(|why| LabError::failed("start a thread", why))?);
        Ok(Self { stop, sampling, thread })
    }

    /// How it did so far.
    pub fn sampling(&self) -> Sampling {
        *self.sampling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When to look again: at the next multiple of the interval, later if looking takes long.
fn next(now: Nanos, interval: Nanos, took: Nanos) -> Nanos {
    let interval = interval.max(took * SHARE);
    (now / interval + 1) * interval
}

fn count(sampling: &Mutex<Sampling>, late: Nanos) {
    let mut sampling = sampling.lock().unwrap_or_else(PoisonError::into_inner);
    sampling.looks += 1;
    sampling.late += u64::from(late > SAMPLING_LATE);
    sampling.latest = sampling.latest.max(late);
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to say that would be worth a panic here.
            let _ = thread.join();
        }
    }
}
