//! What the workers and those who look at them share: settings, counters, whom we are connected to.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

use rustix::event::{EventfdFlags, eventfd};
use xcp_linux::subscribers::Subscribers;

use crate::confirm::Legs;
use crate::metrics::Metrics;
use crate::seldom::Seldom;
use crate::settings::Settings;
use crate::trunk::Pool;

/// A connection's two addresses: who opened it, to whom.
pub type Ends = (SocketAddr, SocketAddr);

/// Shared by all threads.
#[derive(Debug)]
pub struct Shared {
    settings: RwLock<Arc<Settings>>,
    /// Counters and histograms of the proxy.
    pub metrics: Metrics,
    /// No new connections are taken.
    pub draining: AtomicBool,
    /// Number of connections carried at the moment.
    pub active: AtomicUsize,
    /// The number of the long link's device, where this is a gateway; another one when it has come
    /// anew.
    pub wan: AtomicU32,
    /// There are as many as may be. Until there is room again, no more are to come.
    pub full: AtomicBool,
    /// The long link swallows large packets.
    pub swallowing: AtomicBool,
    /// Wakes the thread that controls the proxy.
    pub bell: Option<OwnedFd>,
    /// Why the proxy cannot go on.
    failure: OnceLock<String>,
    /// Of a line about descriptors that are lacking, which is tried ten times a second.
    pub(crate) exhausted: Seldom,
    /// Legs to servers that were opened before their clients were answered.
    pub confirmed: Legs,
    /// Connections to the other gateway that wait for clients.
    pub trunk: OnceLock<Arc<Pool>>,
    /// Where it is said whose legs across the long link are, where there is XCP.
    pub subscribers: OnceLock<Subscribers>,
    numbers: AtomicU64,
    /// Legs we opened: one that is accepted is a loop.
    opened: Mutex<HashSet<Ends>>,
}

impl Shared {
    /// With its first settings.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings: RwLock::new(Arc::new(settings)),
            metrics: Metrics::default(),
            draining: AtomicBool::new(false),
            active: AtomicUsize::new(0),
            wan: AtomicU32::new(0),
            full: AtomicBool::new(false),
            swallowing: AtomicBool::new(false),
            failure: OnceLock::new(),
            bell: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).ok(),
            exhausted: Seldom::default(),
            confirmed: Legs::default(),
            trunk: OnceLock::new(),
            subscribers: OnceLock::new(),
            numbers: AtomicU64::new(0),
            opened: Mutex::default(),
        }
    }

    /// The settings of now.
    #[must_use]
    pub fn settings(&self) -> Arc<Settings> {
        self.settings.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Other settings for connections to come.
    pub fn set(&self, settings: Settings) {
        *self.settings.write().unwrap_or_else(std::sync::PoisonError::into_inner) =
            Arc::new(settings);
    }

    /// There are as many connections as may be. Told once, until there is room again.
    pub fn fill(&self, most: usize) {
        if !self.full.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                connections = most,
                "no room for more connections (--connections): new ones pass untouched, clients \
                    of --listen are refused"
            );
            self.ring();
        }
    }

    /// Retransmissions do not arrive where smaller packets do.
    pub fn swallows(&self) {
        if !self.swallowing.swap(true, Ordering::Relaxed) {
            self.ring();
        }
    }

    /// The proxy cannot go on. The first reason is kept: others follow from it.
    pub fn fail(&self, why: String) {
        if self.failure.set(why).is_ok() {
            self.ring();
        }
    }

    /// Why the proxy cannot go on, if that is so.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    fn ring(&self) {
        if let Some(bell) = &self.bell {
            let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
        }
    }

    /// A new connection's number.
    pub fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn legs(&self) -> std::sync::MutexGuard<'_, HashSet<Ends>> {
        self.opened.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// We opened a leg.
    pub fn opened(&self, ends: Ends) {
        self.legs().insert(ends);
    }

    /// Notes that a connection has been closed.
    pub fn closed(&self, ends: &Ends) {
        self.legs().remove(ends);
    }

    /// Whether it is a leg of ours that came back to us.
    #[must_use]
    pub fn is_ours(&self, ends: &Ends) -> bool {
        self.legs().contains(ends)
    }
}
