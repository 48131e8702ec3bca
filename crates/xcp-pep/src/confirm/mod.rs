//! Answering a diverted client only when the server has answered, and with what it has answered.
//!
//! 1. The packet filter's rules decide what is diverted, here as ever; a SYN that would be goes
//!    into a queue first (`gateway/rules.rs`). The kernel keeps it, and hands its headers to the
//!    [`Holder`], a thread.
//! 2. The holder opens the leg to the server. SYNs that the client sends meanwhile are dropped: the
//!    newest is held.
//! 3. The server answers: the leg waits in [`Legs`], the SYN goes on through the rules to the
//!    listener, and the worker that accepts the client takes the leg (`worker/connection.rs`).
//! 4. The server refuses, or cannot be reached: the SYN goes back to a rule by which the kernel
//!    answers it with a reset or with ICMP ([`answer`]). Nobody answers: nor do we.
//! 5. With two gateways the far one's SYN-ACK is held like any server's, so that the confirmation
//!    is the server's.
//!
//! That a neighbour of this gateway is silent the kernel tells by ICMP, to the address that the leg
//! has, which is the client's; so the holder looks at such messages, too, and takes those about its
//! legs.
//!
//! At most [`MOST`] are held, and as many legs wait; the oldest goes for a new one. Where there is
//! no holder (any more) the queue lets everything pass.

pub mod answer;
pub mod held;
pub mod leg;
pub mod packet;

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use rustix::net::sockopt;
use xcp_linux::netlink::nfqueue::{Packet, Queue, Verdict};

use crate::gateway::slot::Slot;
use crate::seldom::Seldom;
use crate::settings::Kind;
use crate::shared::{Ends, Shared};
use crate::urgent;
use answer::Answer;
use held::{Held, Met, Opening};
use packet::Said;

/// Openings held at the most, and legs that wait for their client. The queue takes more, so that it
/// is here that the oldest goes.
pub const MOST: u32 = 4096;
/// How long a leg waits: the kernel answers a client's SYN again after 1, 3, 7, 15 and 31 s.
const WAITS: Duration = Duration::from_secs(35);
/// Between looks at what is overdue.
const TICK: Duration = Duration::from_secs(1);
/// Packets read in a row.
const READS: usize = 64;

/// A leg to a server that has answered.
#[derive(Debug)]
pub struct Leg {
    /// Socket of the leg.
    pub socket: OwnedFd,
    /// When its opening began.
    pub since: Instant,
    until: Instant,
}

/// Legs that wait for their clients.
#[derive(Debug, Default)]
pub struct Legs {
    waiting: Mutex<HashMap<Ends, Leg>>,
    /// Clients that have theirs.
    paired: Mutex<HashSet<Ends>>,
    /// Openings that are held now.
    pub holding: AtomicUsize,
}

impl Legs {
    fn waiting(&self) -> MutexGuard<'_, HashMap<Ends, Leg>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn paired(&self) -> MutexGuard<'_, HashSet<Ends>> {
        self.paired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The leg of a client that was accepted.
    pub fn take(&self, ends: &Ends) -> Option<Leg> {
        let leg = self.waiting().remove(ends)?;
        self.paired().insert(*ends);
        Some(leg)
    }

    /// That client's connection is over.
    pub fn over(&self, ends: &Ends) {
        self.paired().remove(ends);
    }

    /// Whether the server has answered this client, and the connection is not over.
    fn is_confirmed(&self, ends: &Ends) -> bool {
        self.waiting().contains_key(ends) || self.paired().contains(ends)
    }

    /// So many wait at the most; returns whether the oldest had to go for this one.
    fn put(&self, ends: Ends, leg: Leg, most: usize) -> bool {
        let mut waiting = self.waiting();
        let full = waiting.len() >= most;
        if full
            && let Some(oldest) =
                waiting.iter().min_by_key(|(_, leg)| leg.until).map(|(ends, _)| *ends)
        {
            waiting.remove(&oldest);
        }
        waiting.insert(ends, leg);
        full
    }

    /// Resets those whose client never came.
    fn expire(&self, now: Instant) -> usize {
        let mut waiting = self.waiting();
        let before = waiting.len();
        waiting.retain(|_, leg| leg.until > now);
        before - waiting.len()
    }

    fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }
}

/// Holds openings, before it runs.
#[derive(Debug)]
pub struct Holder {
    shared: Arc<Shared>,
    queue: Queue,
    epoll: OwnedFd,
    wake: Arc<OwnedFd>,
    /// The proxy's numbers.
    slot: Slot,
    held: Held<OwnedFd>,
    /// Of a line about legs that cannot be opened: each client would have it.
    exhausted: Seldom,
}

/// A holder that runs.
#[derive(Debug)]
pub struct HolderThread {
    wake: Arc<OwnedFd>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl HolderThread {
    /// Ends it: what it holds passes untouched. Returns when that is done.
    pub fn end(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        match thread.map(std::thread::JoinHandle::join) {
            // What failed was logged when it did.
            None | Some(Ok(())) => {}
            Some(Err(_)) => tracing::error!("the thread that confirms clients panicked"),
        }
    }
}

/// Events of the queue and of the wake-up have these, those of legs the opening's number.
const QUEUE: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;

impl Holder {
    /// Holds what comes to a queue.
    ///
    /// # Errors
    /// No descriptors.
    pub fn new(shared: Arc<Shared>, queue: Queue, slot: Slot) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        epoll::add(&epoll, queue.as_fd(), EventData::new_u64(QUEUE), EventFlags::IN)?;
        let (held, exhausted) = (Held::new(MOST as usize), Seldom::default());
        Ok(Self { shared, queue, epoll, wake, slot, held, exhausted })
    }

    /// Starts it on a thread of its own.
    ///
    /// # Errors
    /// No thread.
    pub fn start(self) -> io::Result<HolderThread> {
        let wake = self.wake.clone();
        let thread = std::thread::Builder::new().name("pep hold".to_owned()).spawn(move || {
            if let Err(why) = self.run() {
                tracing::error!(%why, "clients are no longer confirmed: new connections pass \
                    through untouched");
            }
        })?;
        Ok(HolderThread { wake, thread: Mutex::new(Some(thread)) })
    }

    fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(256);
        let mut packets = Vec::new();
        let mut next = Instant::now() + TICK;
        loop {
            events.clear();
            let busy = !self.held.is_empty() || !self.shared.confirmed.is_empty();
            let wait = busy.then(|| next.saturating_duration_since(Instant::now()));
            let wait = wait.map(|wait| Timespec {
                tv_sec: wait.as_secs() as i64,
                tv_nsec: i64::from(wait.subsec_nanos()),
            });
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                wait.as_ref(),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            let now = Instant::now();
            for event in &events {
                match event.data.u64() {
                    WAKE => return self.release_all(),
                    QUEUE => {
                        for _ in 0..READS {
                            if !self.queue.read(&mut packets)? {
                                break;
                            }
                        }
                        for packet in packets.drain(..) {
                            self.packet(&packet, now)?;
                        }
                    }
                    number => self.heard(number, event.flags, now)?,
                }
            }
            if next <= now {
                next = now + TICK;
                self.overdue(now)?;
            }
            self.shared.confirmed.holding.store(self.held.len(), Ordering::Relaxed);
        }
    }

    fn packet(&mut self, packet: &Packet, now: Instant) -> io::Result<()> {
        match packet::read(&packet.bytes) {
            Some(Said::Open(ends)) if packet.device != 0 => self.syn(ends, packet, now),
            Some(Said::Unreachable(ends, code)) => {
                let failed = self.held.of_leg(&ends).zip(answer::error_of(code, ends.0.is_ipv4()));
                let Some((number, why)) = failed else {
                    return self.queue.decide(packet.id, Verdict::Accept);
                };
                self.queue.decide(packet.id, Verdict::Drop)?;
                self.failed(number, &why)
            }
            // Nothing that can be held; as if it had been.
            _ if packet.device != 0 => {
                self.queue.decide(packet.id, Verdict::Again(self.slot.confirmed()))
            }
            _ => self.queue.decide(packet.id, Verdict::Accept),
        }
    }

    fn syn(&mut self, ends: Ends, packet: &Packet, now: Instant) -> io::Result<()> {
        // Sent again after the one that was let go: the listener had no room, the answer was lost,
        // or they crossed.
        if self.shared.confirmed.is_confirmed(&ends) {
            return self.queue.decide(packet.id, Verdict::Again(self.slot.confirmed()));
        }
        let metrics = &self.shared.metrics;
        match self.held.meet(&ends, packet.id, now) {
            Met::Again(before) => return self.queue.decide(before, Verdict::Drop),
            Met::Loop => {
                metrics.loops.one();
                tracing::warn!(client = %ends.0, server = %ends.1, "a loop: the proxy was asked \
                    to connect to itself");
                return self.queue.decide(packet.id, Verdict::Again(self.slot.refused()));
            }
            Met::New => {}
        }
        metrics.held.one();
        let kind = if packet.device == self.shared.wan.load(Ordering::Relaxed) {
            Kind::FromWan
        } else {
            Kind::FromLan
        };
        let settings = self.shared.settings();
        let mark = urgent::mark(settings.urgent, packet::dscp(&packet.bytes));
        let leg = match leg::open(ends, kind, mark, &settings) {
            Ok(leg) => leg,
            Err(why) => {
                if matches!(
                    why.raw_os_error(),
                    Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)
                ) {
                    metrics.exhausted.one();
                    if self.exhausted.may(now) {
                        tracing::error!(%why, "no leg could be opened; the client has to try again");
                    }
                }
                return self.answer(ends, packet.id, &why);
            }
        };
        if leg.ends.0 != ends.0 {
            metrics.port_changed.one();
            tracing::debug!(client = %ends.0, "the client's port could not be kept");
        }
        let (number, gone) = self.held.hold((ends, kind, packet.id), leg.socket, leg.ends, now);
        if let Some(opening) = self.held.get(number) {
            let flags = EventFlags::OUT | EventFlags::ET;
            epoll::add(&self.epoll, &opening.leg, EventData::new_u64(number), flags)?;
        }
        gone.map_or(Ok(()), |gone| self.give_up(&gone))
    }

    /// An event of a leg.
    fn heard(&mut self, number: u64, flags: EventFlags, now: Instant) -> io::Result<()> {
        let Some(opening) = self.held.get(number) else { return Ok(()) };
        if flags.contains(EventFlags::ERR)
            && let Ok(Err(why)) = sockopt::socket_error(&opening.leg)
        {
            return self.failed(number, &why.into());
        }
        // Reset or closed at once after it was connected: its worker sees that for itself.
        if !flags.intersects(EventFlags::OUT | EventFlags::HUP) {
            return Ok(());
        }
        let Some(Opening { ends, packet, leg, since, .. }) = self.held.take(number) else {
            return Ok(());
        };
        epoll::delete(&self.epoll, &leg)?;
        self.shared.metrics.confirmed.one();
        // The worker may accept the client before this returns.
        if self.shared.confirmed.put(
            ends,
            Leg { socket: leg, since, until: now + WAITS },
            MOST as usize,
        ) {
            self.shared.metrics.given_up.one();
        }
        self.queue.decide(packet, Verdict::Again(self.slot.confirmed()))
    }

    /// The server cannot be reached.
    fn failed(&mut self, number: u64, why: &io::Error) -> io::Result<()> {
        let Some(opening) = self.held.take(number) else { return Ok(()) };
        self.answer(opening.ends, opening.packet, why)
    }

    /// Tells the client why not.
    fn answer(&mut self, ends: Ends, packet: u32, why: &io::Error) -> io::Result<()> {
        let metrics = &self.shared.metrics;
        metrics.unreached.one();
        tracing::debug!(client = %ends.0, server = %ends.1, %why, "a server could not be reached");
        let verdict = match answer::of(why, ends.0.is_ipv4()) {
            Answer::Reset => {
                metrics.refused.one();
                Verdict::Again(self.slot.refused())
            }
            Answer::Unreachable(code) => {
                metrics.unreachable.one();
                Verdict::Again(self.slot.unreachable(code))
            }
            Answer::Silence => {
                metrics.silent.one();
                Verdict::Drop
            }
        };
        self.queue.decide(packet, verdict)
    }

    /// Lets go of an opening without an answer: the client may try again.
    fn give_up(&mut self, opening: &Opening<OwnedFd>) -> io::Result<()> {
        self.shared.metrics.given_up.one();
        self.queue.decide(opening.packet, Verdict::Drop)
    }

    fn overdue(&mut self, now: Instant) -> io::Result<()> {
        let patience = self.shared.settings().connect_timeout;
        for opening in self.held.overdue(patience, now) {
            if now.saturating_duration_since(opening.since) >= patience {
                self.answer(
                    opening.ends,
                    opening.packet,
                    &io::Error::from_raw_os_error(libc::ETIMEDOUT),
                )?;
            } else {
                self.give_up(&opening)?;
            }
        }
        let gone = self.shared.confirmed.expire(now);
        self.shared.metrics.given_up.add(gone as u64);
        Ok(())
    }

    /// The proxy takes no more: what is held passes as if it were not here. Legs that wait have a
    /// client that is being answered.
    fn release_all(mut self) -> io::Result<()> {
        for opening in self.held.clear() {
            self.shared.metrics.given_up.one();
            drop(opening.leg);
            self.queue.decide(opening.packet, Verdict::Again(0))?;
        }
        self.shared.confirmed.holding.store(0, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};

    #[test]
    fn legs_wait_for_their_own_client_for_a_time_and_the_oldest_goes_first() {
        let start = Instant::now();
        let ends = |port| {
            (
                SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
                SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 80),
            )
        };
        let second = Duration::from_secs(1);
        let legs = Legs::default();
        for n in 0..5u16 {
            let (socket, since) =
                (eventfd(0, EventfdFlags::CLOEXEC).unwrap(), start + second * u32::from(n));
            assert_eq!(legs.put(ends(n), Leg { socket, since, until: since + WAITS }, 3), n >= 3);
        }
        assert!((0..2).all(|n| legs.take(&ends(n)).is_none()));
        assert_eq!(legs.take(&ends(3)).map(|leg| leg.since), Some(start + 3 * second));
        assert!(legs.take(&ends(3)).is_none() && legs.is_confirmed(&ends(3)));
        legs.over(&ends(3));
        assert!(!legs.is_confirmed(&ends(3)));
        assert_eq!(legs.expire(start + 2 * second + WAITS), 1);
        assert!(legs.is_confirmed(&ends(4)) && !legs.is_empty());
        assert_eq!(legs.expire(start + 4 * second + WAITS), 1);
        assert!(legs.is_empty());
    }
}
