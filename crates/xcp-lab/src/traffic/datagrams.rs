//! Sends the datagrams of one namespace's flows, each at its time. Those times are the
//! simulator's: the same sources with the same seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::net::{SendFlags, send};
use xcp_elements::Datagrams;
use xcp_model::rng::{Purpose, Stream};
use xcp_model::units::Nanos;

use super::{Shared, open};
use crate::LabError;
use crate::clock::Clock;
use crate::plan::Kind;

/// Looks this often whether it is to end.
const PATIENCE: Nanos = 50_000_000;

/// All sources of a namespace.
pub(super) struct Sources {
    shared: Arc<Shared>,
    /// Numbers of their flows.
    flows: Vec<usize>,
}

/// The same with their sockets.
pub(super) struct Open {
    sources: Vec<Source>,
    /// When each of them sends next.
    next: BinaryHeap<Reverse<(Nanos, usize)>>,
}

struct Source {
    socket: OwnedFd,
    times: Datagrams,
    payload: Vec<u8>,
    stop: Nanos,
}

impl Sources {
    /// Of a namespace, if it has any.
    pub fn of(shared: &Arc<Shared>, space: usize) -> Option<Self> {
        let flows: Vec<usize> = shared.sources(space).map(|(number, _)| number).collect();
        (!flows.is_empty()).then(|| Self { shared: shared.clone(), flows })
    }

    /// Makes their sockets; to be called in the namespace.
    pub fn open(self) -> Result<Open, LabError> {
        let mut open = Open { sources: Vec::new(), next: BinaryHeap::new() };
        for number in self.flows {
            let flow = &self.shared.flows[number];
            let (Kind::Udp { pattern, packet_bytes, payload }, Some(start)) =
                (&flow.kind, flow.start)
            else {
                continue;
            };
            let way = &self.shared.ways[flow.way];
            let [from, to] =
                [way.source.1, way.destination.1].map(|ip| SocketAddr::new(ip, flow.port));
            let mut times = Datagrams::new(
                *packet_bytes,
                pattern,
                Stream::new(self.shared.seed, Purpose::Datagrams, number),
            );
            if let Some(first) = times.start(start) {
                open.next.push(Reverse((first, open.sources.len())));
            }
            let socket = open::datagrams(from, to)?;
            open.sources.push(Source {
                socket,
                times,
                payload: vec![0; *payload as usize],
                stop: flow.stop.unwrap_or(Nanos::MAX),
            });
        }
        Ok(open)
    }
}

impl Open {
    /// Sends until there is nothing more to send, or until it is to end.
    pub fn run(mut self, clock: Clock, stop: &AtomicBool) {
        // Sleeps end on time, not 50 us later; where that is refused they end later.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        while let Some(&Reverse((at, number))) = self.next.peek() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let now = clock.now();
            if at > now || clock.zero() > crate::clock::monotonic() {
                clock.sleep_until(at.min(now + PATIENCE));
                continue;
            }
            self.next.pop();
            let source = &mut self.sources[number];
            if at >= source.stop {
                continue;
            }
            // A full buffer loses a datagram, like any other queue.
            let _ = send(&source.socket, &source.payload, SendFlags::NOSIGNAL);
            self.next.extend(source.times.next(at).map(|next| Reverse((next, number))));
        }
    }
}
