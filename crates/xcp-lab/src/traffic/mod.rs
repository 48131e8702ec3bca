//! The lab's own generator: real sockets that send and receive what the scenario's flows do. For
//! each namespace with ends one thread that drives its connections and reads ([`worker`]), and one
//! that sends datagrams on time ([`datagrams`]).

mod datagrams;
mod open;
pub(crate) mod socket;
mod state;
mod worker;

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use xcp_linux::namespace::Namespace;

pub(crate) use state::FlowState;

use crate::LabError;
use crate::clock::Clock;
use crate::plan::{FlowPlan, Kind, Plan, Way};
use crate::xcp::Endpoint;

/// What the threads share.
pub(crate) struct Shared {
    pub flows: Vec<FlowPlan>,
    pub ways: Vec<Way>,
    pub states: Vec<FlowState>,
    pub xcp: Option<Endpoint>,
    /// Seed of the datagrams' gaps.
    pub seed: u64,
}

/// The threads. Dropped, they end.
pub(crate) struct Traffic {
    shared: Arc<Shared>,
    stop: Arc<Stop>,
    starts: Vec<Sender<Clock>>,
    threads: Vec<JoinHandle<Result<(), LabError>>>,
}

/// How threads are told to end.
struct Stop {
    event: OwnedFd,
    asked: AtomicBool,
}

impl Traffic {
    /// Opens everything that waits to be spoken to; nothing is sent before [`Traffic::start`].
    ///
    /// # Errors
    /// Whatever cannot be opened.
    pub fn prepare(
        plan: &mut Plan,
        seed: u64,
        xcp: Option<Endpoint>,
        spaces: &[Arc<Namespace>],
    ) -> Result<Self, LabError> {
        let flows = std::mem::take(&mut plan.flows);
        let ways = std::mem::take(&mut plan.ways);
        let states = flows.iter().map(|_| FlowState::default()).collect();
        let shared = Arc::new(Shared { flows, ways, states, xcp, seed });
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|why| LabError::failed("start its generator", why))?;
        let stop = Arc::new(Stop { event, asked: AtomicBool::new(false) });
        let mut traffic = Self { shared, stop, starts: Vec::new(), threads: Vec::new() };
        let (ready, waiting) = channel();
        for (space, name) in plan.spaces.iter().map(|space| &space.name).enumerate() {
            let shared = &traffic.shared;
            let ends_here = |flow: &FlowPlan| {
                [shared.ways[flow.way].source.0, shared.ways[flow.way].destination.0]
                    .contains(&space)
            };
            if !shared.flows.iter().any(ends_here) {
                continue;
            }
            let sources = datagrams::Sources::of(shared, space);
            let (worker_shared, worker_stop) = (shared.clone(), traffic.stop.clone());
            traffic.spawn(name, ready.clone(), spaces[space].clone(), move || {
                let worker = worker::Worker::new(worker_shared, space, worker_stop.event.as_fd())?;
                Ok(move |clock| worker.run(clock))
            })?;
            if let Some(sources) = sources {
                let stop = traffic.stop.clone();
                traffic.spawn(name, ready.clone(), spaces[space].clone(), move || {
                    let sources = sources.open()?;
                    Ok(move |clock| {
                        sources.run(clock, &stop.asked);
                        Ok(())
                    })
                })?;
            }
        }
        drop(ready);
        // A thread that fails says so, one that panics says nothing: the channel is closed without
        // its word.
        for _ in 0..traffic.threads.len() {
            waiting.recv().map_err(|_| {
                LabError::failed("start its generator", "one of its threads failed")
            })??;
        }
        Ok(traffic)
    }

    /// A thread in a namespace: opens its sockets, says that it is ready, and runs when the clock
    /// is given.
    fn spawn<Run>(
        &mut self,
        name: &str,
        ready: Sender<Result<(), LabError>>,
        namespace: Arc<Namespace>,
        open: impl FnOnce() -> Result<Run, LabError> + Send + 'static,
    ) -> Result<(), LabError>
    where
        Run: FnOnce(Clock) -> Result<(), LabError>,
    {
        let (start, begun) = channel();
        let body = move || {
            let opened = namespace
                .enter()
                .map_err(|why| LabError::failed("enter a namespace", why))
                .and_then(|()| open());
            let run = match opened {
                Ok(run) => run,
                Err(why) => {
                    // If nobody waits any more, the lab is being taken down already.
                    let _ = ready.send(Err(why));
                    return Ok(());
                }
            };
            let _ = ready.send(Ok(()));
            drop(ready);
            // No clock: taken down before the run began.
            begun.recv().map_or(Ok(()), run)
        };
        let thread = std::thread::Builder::new().name(format!("xcp {name}")).spawn(body);
        self.threads.push(thread.map_err(|why| LabError::failed("start a thread", why))?);
        self.starts.push(start);
        Ok(())
    }

    /// The run begins.
    pub fn start(&mut self, clock: Clock) {
        for start in self.starts.drain(..) {
            // A thread that has broken down is found by `failure`.
            let _ = start.send(clock);
        }
    }

    /// The flows, as planned and as they stand.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Why a thread has ended before its time, if one has.
    pub fn failure(&mut self) -> Option<LabError> {
        let ended = self.threads.iter().position(JoinHandle::is_finished)?;
        if self.stop.asked.load(Ordering::Relaxed) {
            return None;
        }
        match self.threads.swap_remove(ended).join() {
            // A thread whose sources are through.
            Ok(Ok(())) => None,
            Ok(Err(why)) => Some(why),
            Err(_) => Some(LabError::failed("go on", "a thread of its generator failed")),
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.starts.clear();
        self.stop.asked.store(true, Ordering::Relaxed);
        // The event counts; it stays set for all that look at it.
        let _ = rustix::io::write(&self.stop.event, &1u64.to_ne_bytes());
        for thread in self.threads.drain(..) {
            // What it died of has been told, or the lab is coming down for another reason.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Flows of datagrams that begin in a namespace.
    fn sources(&self, space: usize) -> impl Iterator<Item = (usize, &FlowPlan)> {
        self.flows.iter().enumerate().filter(move |(_, flow)| {
            flow.start.is_some()
                && matches!(flow.kind, Kind::Udp { .. })
                && self.ways[flow.way].source.0 == space
        })
    }
}
