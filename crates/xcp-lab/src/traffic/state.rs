//! What is known of a flow while it runs: written by the threads that drive its ends, read by those
//! that measure.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use xcp_model::units::Nanos;

/// No time, no count.
const NONE: u64 = u64::MAX;

/// A flow.
#[derive(Debug)]
pub(crate) struct FlowState {
    delivered: AtomicU64,
    delivered_when_stopped: AtomicU64,
    completed_at: AtomicU64,
    /// The sending end's socket. Kept until the run is over: its numbers are looked at even then.
    sender: OnceLock<OwnedFd>,
    trouble: Mutex<Option<String>>,
}

impl Default for FlowState {
    fn default() -> Self {
        Self {
            delivered: AtomicU64::new(0),
            delivered_when_stopped: AtomicU64::new(NONE),
            completed_at: AtomicU64::new(NONE),
            sender: OnceLock::new(),
            trouble: Mutex::new(None),
        }
    }
}

impl FlowState {
    /// So many bytes more have been read by the receiver.
    pub fn deliver(&self, bytes: u64) {
        self.delivered.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The flow has been told to stop.
    pub fn stop(&self) {
        let _ = self.delivered_when_stopped.compare_exchange(
            NONE,
            self.delivered(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// All it had to send is acknowledged.
    pub fn complete(&self, at: Nanos) {
        let _ = self.completed_at.compare_exchange(NONE, at, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Payload read by the receiver, bytes.
    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// The same without what was read after the flow had been told to stop.
    pub fn delivered_while_active(&self) -> u64 {
        Some(self.delivered_when_stopped.load(Ordering::Relaxed))
            .filter(|&bytes| bytes != NONE)
            .unwrap_or_else(|| self.delivered())
    }

    /// When all it had to send was acknowledged.
    pub fn completed_at(&self) -> Option<Nanos> {
        Some(self.completed_at.load(Ordering::Relaxed)).filter(|&at| at != NONE)
    }

    /// The sending end's socket, if there is one already.
    pub fn sender(&self) -> Option<BorrowedFd<'_>> {
        self.sender.get().map(AsFd::as_fd)
    }

    /// Gives it its sending end.
    pub fn set_sender(&self, socket: OwnedFd) {
        // A flow connects once.
        let _ = self.sender.set(socket);
    }

    /// Something went wrong with the flow, which the run goes on without.
    pub fn fail(&self, what: String) {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
    }

    /// What went wrong with it.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
