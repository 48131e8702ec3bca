//! The thread that keeps the trunk: calls the other gateway until there are as many connections as
//! are to be, answers its calls, and gives workers what it asks for. It moves no client's byte.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with, bind, connect};
use xcp_linux::netlink::Netlink;

use super::link::{Link, Next, Stage};
use super::words;
use super::{MOST_ANSWERED, Plan, Pool, Warm};
use crate::settings::{Kind, Settings};
use crate::shared::Shared;
use crate::socket::{self, Common};
use crate::worker::{self, Handle, Order};

/// Seconds of silence after which the other gateway is asked whether it is there, and milliseconds
/// after which it is not, while no client waits for it.
const KEEPALIVE: u32 = 20;
const GIVE_UP_MS: u32 = 45_000;
/// How long it may take to say who it is: several round trips, with losses.
const PATIENCE: Duration = Duration::from_secs(20);
/// After a call that failed the next waits so long, and twice as long after each other one.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// Between looks at what is overdue.
const TICK: Duration = Duration::from_millis(500);
/// Accepted in a row.
const ACCEPTS: usize = 64;

/// Events of the wake-up and of the listener have these, those of connections their number.
const WAKE: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 1;

/// Keeps the trunk, before it runs.
#[derive(Debug)]
pub struct Keeper {
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    plan: Plan,
    listener: OwnedFd,
}

/// A keeper that runs.
#[derive(Debug)]
pub struct KeeperThread {
    pool: Arc<Pool>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl KeeperThread {
    /// No connection is taken any more, and the other gateway is told; those that it has begun come
    /// still.
    pub fn leave(&self) {
        self.pool.leaving.store(true, Ordering::Relaxed);
        self.pool.wake();
    }

    /// The link has other rates: connections that wait are made anew.
    pub fn renew(&self) {
        self.pool.renew.store(true, Ordering::Relaxed);
        self.pool.wake();
    }

    /// Ends the trunk and its thread.
    pub fn end(&self) {
        self.pool.ended.store(true, Ordering::Relaxed);
        self.leave();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        match thread.map(std::thread::JoinHandle::join) {
            // What failed was logged when it did.
            None | Some(Ok(())) => {}
            Some(Err(_)) => tracing::error!("the thread that keeps the trunk panicked"),
        }
    }
}

/// The trunk's own: it belongs to no flow that is diverted, so it has no mark.
fn common() -> Common {
    Common { mark: 0, keepalive: KEEPALIVE, give_up_ms: GIVE_UP_MS }
}

impl Keeper {
    /// Listens.
    ///
    /// # Errors
    /// The address is in use, or is none of this machine's.
    pub fn new(shared: Arc<Shared>, pool: Arc<Pool>, plan: Plan) -> io::Result<Self> {
        let settings = Settings { common: common(), ..(*shared.settings()).clone() };
        let listener = worker::listener(plan.listen, Kind::FromTrunk, &settings, false, false)?;
        socket::tell_patience(listener.socket.as_fd(), &settings.common)?;
        let listener = Arc::try_unwrap(listener.socket)
            .map_err(|_| io::Error::other("the listener already belongs to somebody else"))?;
        let watch = |socket: &OwnedFd, number: u64| {
            epoll::add(&pool.epoll, socket, EventData::new_u64(number), EventFlags::IN)
        };
        watch(&listener, LISTENER)?;
        watch(&pool.wake, WAKE)?;
        Ok(Self { shared, pool, plan, listener })
    }

    /// Starts it on a thread of its own; workers carry what comes.
    ///
    /// # Errors
    /// No thread.
    pub fn start(self, workers: Vec<Handle>) -> io::Result<KeeperThread> {
        let pool = self.pool.clone();
        let running = Running {
            shared: self.shared,
            pool: self.pool,
            plan: self.plan,
            listener: Some(self.listener),
            workers,
            links: HashMap::new(),
            last: 0,
            routes: None,
            call_at: Instant::now(),
            pause: PAUSES[0],
            is_up: None,
            refuses: false,
            said: false,
        };
        let without = running.without();
        let thread = std::thread::Builder::new().name("pep trunk".to_owned()).spawn(move || {
            if let Err(why) = running.run() {
                tracing::error!(%why, "the trunk has failed: {without}");
            }
        })?;
        Ok(KeeperThread { pool, thread: Mutex::new(Some(thread)) })
    }
}

struct Running {
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    plan: Plan,
    listener: Option<OwnedFd>,
    workers: Vec<Handle>,
    links: HashMap<u64, Link>,
    last: u64,
    /// Who tells which addresses are this machine's.
    routes: Option<Netlink>,
    /// When to call again, and how long to wait when that fails.
    call_at: Instant,
    pause: Duration,
    /// Whether the last call was answered.
    is_up: Option<bool>,
    /// Whether the other gateway's last call came to nothing.
    refuses: bool,
    /// Whether those that wait here were told that we leave.
    said: bool,
}

impl Running {
    fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(256);
        let pool = self.pool.clone();
        loop {
            let now = Instant::now();
            if pool.ended.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.leave_or_stay()?;
            self.expire(now);
            self.call(now);
            let waiting = self.links.values().filter(|l| l.stage.is_waiting()).count();
            pool.answered.store(waiting, Ordering::Relaxed);
            let busy = waiting < self.links.len() || pool.len() < self.plan.warm;
            let tick = Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as i64 };
            // Whether there is room again is told by nobody.
            let wait = (busy || self.said).then_some(&tick);
            events.clear();
            match epoll::wait(&pool.epoll, rustix::buffer::spare_capacity(&mut events), wait) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            let now = Instant::now();
            for event in &events {
                match event.data.u64() {
                    WAKE => drop(rustix::io::read(&pool.wake, &mut [0u8; 8])),
                    LISTENER => self.accept(now),
                    number => self.heard(number, event.flags, now),
                }
            }
        }
    }

    /// While no more connections are taken, the other gateway is to know.
    fn leave_or_stay(&mut self) -> io::Result<()> {
        let going = self.pool.leaving.load(Ordering::Relaxed);
        let leaving = going || self.shared.full.load(Ordering::Relaxed);
        let renew = self.pool.renew.swap(false, Ordering::Relaxed);
        if renew && let Some(listener) = &self.listener {
            socket::resize(listener.as_fd(), &self.shared.settings().wan)?;
            self.pool.warm().clear();
        }
        if leaving && !self.said || renew {
            self.links.values_mut().for_each(Link::say_leaving);
        }
        self.said = leaving;
        if going {
            // Nobody has these, and there is nothing on its way to them.
            self.pool.warm().clear();
            self.links.retain(|_, link| !link.stage.is_ours());
            if let Some(listener) = self.listener.take() {
                epoll::delete(&self.pool.epoll, &listener)?;
            }
        }
        Ok(())
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Calls as often as connections are missing.
    fn call(&mut self, now: Instant) {
        if self.pool.leaving.load(Ordering::Relaxed) || now < self.call_at {
            return;
        }
        let calls = self.links.values().filter(|link| link.stage.is_ours()).count();
        // Who did not answer is called once at a time.
        let most = if self.is_up == Some(true) { self.plan.warm } else { 1 };
        let missing = most.min(self.plan.warm.saturating_sub(self.pool.len()));
        for _ in calls..missing {
            if let Err(why) = self.call_once(now) {
                self.failed(now, now, &why.to_string());
                return;
            }
        }
    }

    fn call_once(&mut self, now: Instant) -> io::Result<()> {
        let settings = self.shared.settings();
        let socket = socket::for_leg(&self.plan.peer, &settings.wan, &common())?;
        socket::tell_patience(socket.as_fd(), &common())?;
        bind(&socket, &SocketAddr::new(self.plan.listen.ip(), 0))?;
        match connect(&socket, &self.plan.peer) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(why) => return Err(why.into()),
        }
        self.add(socket, Stage::Calling, EventFlags::OUT, now)
    }

    fn add(
        &mut self,
        socket: OwnedFd,
        stage: Stage,
        flags: EventFlags,
        now: Instant,
    ) -> io::Result<()> {
        let number = self.number();
        epoll::add(&self.pool.epoll, &socket, EventData::new_u64(number), flags)?;
        self.links.insert(number, Link::new(socket, stage, now));
        Ok(())
    }

    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPTS {
            let Some(listener) = &self.listener else { return };
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match acceptfrom_with(listener, flags) {
                Ok((socket, Some(from))) => {
                    let peer = socket::canonical(from).map(|from| from.ip());
                    let is_peer = peer.as_ref().is_ok_and(|ip| *ip == self.plan.peer.ip());
                    let theirs = self.links.values().filter(|link| !link.stage.is_ours()).count();
                    // Closing it resets it.
                    if !is_peer {
                        self.shared.metrics.strangers.one();
                        tracing::debug!(?peer, "the caller is not the trunk's other gateway");
                    } else if !self.said
                        && theirs < MOST_ANSWERED
                        && let Err(why) = self.add(socket, Stage::Called, EventFlags::IN, now)
                    {
                        tracing::debug!(%why, "a connection attempt failed before it began");
                    }
                }
                Ok((_, None)) | Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => return,
                Err(why) => {
                    tracing::debug!(%why, "a connection attempt of the other gateway was not \
                        accepted");
                    socket::pause_if_exhausted(&why.into());
                    return;
                }
            }
        }
    }

    fn heard(&mut self, number: u64, flags: EventFlags, now: Instant) {
        let Some(link) = self.links.get_mut(&number) else {
            // One that waits has nothing to say but that it is over.
            if self.pool.remove(number).is_some() {
                tracing::debug!("a connection of the trunk has ended");
            }
            return;
        };
        let next = link.advance(flags, &self.plan, &self.pool, number);
        match next {
            Next::Wait => self.refuses &= !link.stage.is_waiting(),
            Next::Warm(seal) => {
                if let Some(link) = self.links.remove(&number) {
                    self.answered_us();
                    self.pool.put(number, Warm { socket: link.socket, seal });
                }
            }
            Next::Go(message, seal) => {
                if let Some(link) = self.links.remove(&number) {
                    let _ = epoll::delete(&self.pool.epoll, &link.socket);
                    self.go(Warm { socket: link.socket, seal }, &message);
                }
            }
            Next::Over(why) => {
                if let Some(link) = self.links.remove(&number) {
                    if link.stage.is_ours() {
                        self.failed(link.since, now, why);
                    } else if !link.stage.is_waiting() {
                        self.refused(why);
                    }
                }
            }
        }
    }

    /// The other gateway is there, and has the secret.
    fn answered_us(&mut self) {
        self.pause = PAUSES[0];
        if self.is_up != Some(true) {
            tracing::info!(peer = %self.plan.peer, "the trunk is up");
        }
        self.is_up = Some(true);
    }

    /// A call of the other gateway's has come to nothing. Told once, until one gets through: it
    /// calls again and again.
    fn refused(&mut self, why: &str) {
        self.shared.metrics.trunk_failed.one();
        if !std::mem::replace(&mut self.refuses, true) {
            tracing::warn!("a connection attempt of the trunk's other gateway failed: {why}");
        }
    }

    /// What becomes of clients for whom there is no trunk.
    fn without(&self) -> &'static str {
        if self.plan.encrypt {
            "connections wait for it, because without it nothing would be encrypted"
        } else {
            "connections proceed as without one"
        }
    }

    /// `called`: when the call was made that has failed.
    fn failed(&mut self, called: Instant, now: Instant, why: &str) {
        self.shared.metrics.trunk_failed.one();
        // As many calls as are missing are made at once, and fail together: that is one failure.
        if called < self.call_at {
            return;
        }
        if self.is_up != Some(false) {
            let without = self.without();
            tracing::warn!(peer = %self.plan.peer, "no trunk: {why}; {without}, and it will be \
                tried again");
        }
        self.is_up = Some(false);
        self.call_at = now + self.pause;
        self.pause = (self.pause * 2).min(PAUSES[1]);
    }

    /// Calls, and callers, that have not come to anything.
    fn expire(&mut self, now: Instant) {
        let late =
            |link: &Link| !link.stage.is_waiting() && now.duration_since(link.since) > PATIENCE;
        let ours = self.links.values().filter(|link| late(link) && link.stage.is_ours());
        let called = ours.map(|link| link.since).max();
        self.links.retain(|_, link| !late(link));
        if let Some(called) = called {
            self.failed(called, now, "nobody answers");
        }
    }

    /// Whether an address is neither this machine's nor a special one.
    fn is_elsewhere(&mut self, address: IpAddr) -> bool {
        let access = self.shared.settings().access.clone();
        access.may_reach(address, |address| {
            if self.routes.is_none() {
                self.routes = Netlink::open().ok();
            }
            self.routes.as_mut().is_none_or(|routes| routes.is_local(address).unwrap_or(true))
        })
    }

    /// A client of the other gateway's: a worker carries it on.
    fn go(&mut self, mut link: Warm, message: &[u8; words::GO]) {
        let Some(going) = words::read_go(message) else {
            self.shared.metrics.garbage.one();
            return;
        };
        let (client, server) = going.ends;
        // From an address of this machine's it would speak in its name.
        if !self.is_elsewhere(server.ip()) || !self.is_elsewhere(client.ip()) {
            self.shared.metrics.forbidden.one();
            tracing::debug!(%client, %server, "the other gateway asked for an address of this \
                machine (--allow-target)");
            return;
        }
        if link.say_later(&[words::OPEN]).is_err() || self.workers.is_empty() {
            return;
        }
        self.shared.metrics.trunk_carried.one();
        let turn = self.shared.metrics.trunk_carried.get() as usize % self.workers.len();
        self.workers[turn].tell(Order::Carry(link, going));
    }
}
