//! What a line says of itself, to be read by any thread at any time.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use xcp_model::units::Nanos;

use super::histogram::Histogram;
use super::queue::QueueState;
use super::wire::Counters;

/// Later than this at the 99th percentile, and a run is not to be trusted.
const LATENESS_BOUND: Nanos = 1_000_000;

/// What a line has done since it was started. Bytes are those of frames, Ethernet header included.
///
/// Every frame that came in is in one of `packets_out`, `wire`, `oversize`, `tagged`,
/// `send_failures` and `held`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Up to when this is true, `CLOCK_MONOTONIC`. While frames are on the way it is a few
    /// milliseconds old at most; an idle line's is as old as its last doing.
    pub as_of: Nanos,
    /// Frames taken from the ring.
    pub packets_in: u64,
    /// Their bytes.
    pub bytes_in: u64,
    /// Frames sent on.
    pub packets_out: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Dropped by the queue, or lost, as the configuration wants it.
    pub wire: Counters,
    /// On the way.
    pub held: u64,
    /// The line's own queue, if it has one; its maximum is since the last
    /// [`Line::report`](super::Line::report).
    pub queue: Option<QueueState>,
    /// How much later frames were sent than they were due: until the kernel had taken all frames of
    /// the same call.
    pub lateness: Histogram,
    /// What should not have happened.
    pub trouble: Trouble,
}

/// What should not happen to a line. Empty in a good run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trouble {
    /// Frames that found the ring full.
    pub ring_drops: u64,
    /// Frames not sent on because they exceed the MTU or are GSO super-packets, which no wire
    /// carries.
    pub oversize: u64,
    /// Frames not sent on because they have a VLAN tag, which the kernel keeps apart from the
    /// frame.
    pub tagged: u64,
    /// Frames that the kernel refused to send.
    pub send_failures: u64,
    /// Why it did so last.
    pub last_send_failure: Option<String>,
    /// Why the thread is not a real-time one.
    pub not_real_time: Option<String>,
    /// Why the line has ended by itself.
    pub ended: Option<String>,
}

impl Report {
    /// What makes a run with this line a bad one, in words; nothing if it is good.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let trouble = &self.trouble;
        let mut faults = Vec::new();
        if let Some(why) = &trouble.ended {
            faults.push(format!("it ended: {why}"));
        }
        if trouble.ring_drops > 0 {
            faults.push(format!(
                "{} frames found its ring full: too much arrived for its configured rate, or the \
                 machine is too busy",
                trouble.ring_drops
            ));
        }
        if trouble.oversize > 0 {
            faults.push(format!(
                "{} frames were larger than the MTU: turn off tso, gso and gro on the device that \
                    feeds it",
                trouble.oversize
            ));
        }
        if trouble.tagged > 0 {
            faults.push(format!("{} frames had a VLAN tag, which it cannot carry", trouble.tagged));
        }
        if let Some(why) = &trouble.last_send_failure {
            faults.push(format!("{} frames could not be sent: {why}", trouble.send_failures));
        }
        let lateness = self.lateness.quantile(0.99);
        if lateness > LATENESS_BOUND {
            let why =
                trouble.not_real_time.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            let ms = |time: Nanos| (time as f64 / 1e5).round() / 10.0;
            faults.push(format!(
                "it was up to {} ms late (p99 {} ms): the machine is too busy{why}",
                ms(self.lateness.max()),
                ms(lateness)
            ));
        }
        faults
    }
}

/// A report in the making, between the line's thread and those who ask.
#[derive(Debug, Default)]
pub(super) struct Board {
    report: Mutex<Report>,
}

impl Board {
    /// The newest report; its queue's maximum begins anew.
    pub fn read(&self) -> Report {
        let mut board = self.lock();
        let report = board.clone();
        if let Some(queue) = &mut board.queue {
            queue.max_packets = queue.packets;
        }
        report
    }

    /// Puts up a new report. Its queue's maximum is since the last one put up.
    pub fn post(&self, report: &Report) {
        replace(&mut self.lock(), report);
    }

    /// Puts up a new report unless somebody is reading: a real-time thread must not wait for one
    /// that is not. Returns whether it did.
    pub fn try_post(&self, report: &Report) -> bool {
        match self.report.try_lock() {
            Ok(mut board) => {
                replace(&mut board, report);
                true
            }
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Poisoned(board)) => {
                replace(&mut board.into_inner(), report);
                true
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Report> {
        // Whoever panicked, a report is complete at any time.
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn replace(board: &mut Report, report: &Report) {
    let unseen_max = board.queue.map_or(0, |queue| queue.max_packets);
    board.clone_from(report);
    if let Some(queue) = &mut board.queue {
        queue.max_packets = queue.max_packets.max(unseen_max);
    }
}
