//! A worker: one thread, one epoll, any number of connections. It accepts, waits for events, and
//! lets each connection go as far as it can (`connection.rs`); names are looked up by threads of
//! their own ([`names`]), which it hears from like from everybody else: by [`Order`]s.

mod connection;
mod crew;
pub mod names;
mod outage;
mod timers;
pub mod view;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use rustix::net::{SocketAddrAny, SocketFlags, acceptfrom_with};

use xcp_linux::netlink::Netlink;

use crate::listen::Reached;
use crate::listen::access::Access;
use crate::relay::pipe::Pool;
use crate::relay::wire::COPY;
use crate::settings::{Kind, Settings};
use crate::shared::Shared;
use crate::socket;
use crate::trunk::Warm;
use crate::trunk::words::Going;
pub use crew::Crew;

use connection::{Connection, Next, Origin};
use outage::Outage;
use timers::Timers;
use view::View;

/// What a worker is told by others.
#[derive(Debug)]
pub enum Order {
    /// A name was looked up for a connection.
    Found(u64, Result<SocketAddr, Reached>),
    /// Carry a client of the other gateway's, who came through the trunk.
    Carry(Warm, Going),
    /// Tell what there is.
    Show(Sender<Vec<View>>),
    /// Take no more connections.
    Drain,
    /// The long link has other rates: its legs may have more, or less, on the way.
    Resize,
    /// Data may come with a SYN across the long link, or may not any more.
    Early,
    /// Reset what there is, and end.
    Stop,
}

/// How others reach a worker.
#[derive(Debug, Clone)]
pub struct Handle {
    orders: Sender<Order>,
    wake: Arc<OwnedFd>,
}

impl Handle {
    /// Sends an order to the worker.
    pub fn tell(&self, order: Order) {
        if self.orders.send(order).is_ok() {
            let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        }
    }
}

/// A listening socket and what it accepts.
#[derive(Debug, Clone)]
pub struct Listener {
    /// The socket; workers share it.
    pub socket: Arc<OwnedFd>,
    /// What it takes.
    pub kind: Kind,
    /// Its own address.
    pub address: SocketAddr,
}

/// A worker before it runs.
#[derive(Debug)]
pub struct Worker {
    shared: Arc<Shared>,
    epoll: OwnedFd,
    orders: Receiver<Order>,
    handle: Handle,
    listeners: Vec<Listener>,
    names: names::Asker,
    pool: Pool,
}

/// Connections by their place; a place's number changes with each connection in it, so that events
/// of an earlier one are known.
#[derive(Debug, Default)]
struct Places {
    connections: Vec<Option<Box<Connection>>>,
    generations: Vec<u32>,
    free: Vec<usize>,
    used: usize,
}

/// Events of the wake-up and of listeners have these, those of connections a place.
const WAKE: u64 = u64::MAX;
const LISTENER: u64 = u64::MAX - 0xffff;

impl Places {
    fn take(&mut self) -> usize {
        self.used += 1;
        self.free.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.generations.push(0);
            self.connections.len() - 1
        })
    }

    fn token(&self, place: usize) -> u64 {
        u64::from(self.generations[place] & 0x3fff_ffff) << 33 | (place as u64) << 1
    }

    /// The place of a token, if it still is that connection's.
    fn find(&self, token: u64) -> Option<usize> {
        let place = (token >> 1 & u64::from(u32::MAX)) as usize;
        (place < self.connections.len()
            && self.token(place) == token & !1
            && self.connections[place].is_some())
        .then_some(place)
    }

    fn release(&mut self, place: usize) {
        self.used -= 1;
        self.generations[place] = self.generations[place].wrapping_add(1);
        self.free.push(place);
    }
}

/// What a worker has at hand for a connection.
struct Bench {
    shared: Arc<Shared>,
    epoll: OwnedFd,
    pool: Pool,
    scratch: Box<[u8]>,
    names: names::Asker,
    handle: Handle,
    /// Who tells which addresses are this machine's; made when it is asked.
    routes: Option<Netlink>,
    now: Instant,
}

impl Bench {
    fn routes(&mut self) -> Option<&mut Netlink> {
        if self.routes.is_none() {
            self.routes = Netlink::open().ok();
        }
        self.routes.as_mut()
    }

    /// Whether the kernel has asked in vain for the neighbour by which packets to an address leave.
    fn is_missing(&mut self, address: IpAddr) -> bool {
        self.routes().is_some_and(|routes| routes.is_missing(address).unwrap_or(false))
    }

    /// Whether an explicit client may reach an address. Where nobody tells, it may not.
    fn may_reach(&mut self, access: &Access, target: IpAddr) -> bool {
        access.may_reach(target, |address| {
            self.routes().is_none_or(|routes| routes.is_local(address).unwrap_or(true))
        })
    }

    /// This machine's address towards another one, where the way there is the long link.
    fn source_across(&mut self, target: IpAddr) -> Option<IpAddr> {
        let wan = self.shared.wan.load(Ordering::Relaxed);
        let (device, source) = self.routes()?.way_to(target).ok()??;
        (device == wan).then_some(source)
    }
}

/// Connections that a listener holds until they are accepted, as far as the system allows
/// (net.core.somaxconn).
pub(crate) const BACKLOG: u16 = 65_535;
/// Accepted in a row before others get their turn.
const ACCEPTS: usize = 64;
/// The same of a listener that is to be closed: all that it can hold, which is one more than it was
/// told, and no more, since clients may come faster than they are taken.
const LAST_ACCEPTS: usize = BACKLOG as usize + 1;
/// How long to wait before accepting again when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

impl Worker {
    /// Makes one, with pipes for `memory` bytes.
    ///
    /// # Errors
    /// No descriptors.
    pub fn new(
        shared: Arc<Shared>,
        listeners: Vec<Listener>,
        names: names::Asker,
        memory: usize,
    ) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let (sender, orders) = channel();
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        let pool = Pool::new(shared.settings().held, memory);
        let handle = Handle { orders: sender, wake };
        Ok(Self { shared, epoll, orders, handle, listeners, names, pool })
    }

    /// How to reach it.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Names are looked up by these threads.
    pub fn look_names_up_with(&mut self, names: names::Asker) {
        self.names = names;
    }

    /// Its pipes: how many there are.
    #[must_use]
    pub fn pipes(&self) -> usize {
        self.pool.use_of().0
    }

    /// Works until it is told to stop.
    ///
    /// # Errors
    /// epoll itself fails.
    pub fn run(self) -> io::Result<()> {
        let Self { shared, epoll, orders, handle, listeners, names, pool } = self;
        let bench = Bench {
            shared,
            epoll,
            pool,
            scratch: vec![0; COPY].into(),
            names,
            handle,
            routes: None,
            now: Instant::now(),
        };
        Running {
            bench,
            listeners,
            orders,
            places: Places::default(),
            timers: Timers::default(),
            outage: Outage::default(),
            turns: Vec::new(),
            listening: false,
            resume: None,
        }
        .run()
    }
}

struct Running {
    bench: Bench,
    listeners: Vec<Listener>,
    orders: Receiver<Order>,
    places: Places,
    timers: Timers,
    outage: Outage,
    /// Those that had their turn and have more to do.
    turns: Vec<u64>,
    listening: bool,
    /// When to try accepting again.
    resume: Option<Instant>,
}

impl Running {
    fn run(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(256);
        self.listen(true)?;
        loop {
            events.clear();
            let wait = self.wait();
            match epoll::wait(
                &self.bench.epoll,
                rustix::buffer::spare_capacity(&mut events),
                wait.as_ref(),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            self.bench.now = Instant::now();
            for event in &events {
                let (token, flags) = (event.data.u64(), event.flags);
                if token == WAKE {
                    let _ = rustix::io::read(&self.bench.handle.wake, &mut [0u8; 8]);
                    if self.obey()? {
                        return Ok(());
                    }
                } else if token >= LISTENER {
                    self.accept((token - LISTENER) as usize, ACCEPTS)?;
                } else if let Some(place) = self.places.find(token) {
                    if let Some(connection) = &mut self.places.connections[place] {
                        connection.hear(token & 1 == 1, flags);
                    }
                    self.advance(place);
                }
            }
            for token in std::mem::take(&mut self.turns) {
                if let Some(place) = self.places.find(token) {
                    self.advance(place);
                }
            }
            while let Some(token) = self.timers.due(self.bench.now) {
                if let Some(place) = self.places.find(token) {
                    if let Some(connection) = &mut self.places.connections[place] {
                        connection.ring();
                    }
                    self.advance(place);
                }
            }
            self.ask_after_outage();
            if self.resume.is_some_and(|at| at <= self.bench.now) {
                self.resume = None;
                self.listen(true)?;
            }
        }
    }

    /// How long to wait for events.
    fn wait(&self) -> Option<Timespec> {
        let next =
            [self.timers.next(), self.outage.next(), self.resume].into_iter().flatten().min();
        let wait = if self.turns.is_empty() {
            next.map(|at| at.saturating_duration_since(Instant::now()))
        } else {
            Some(Duration::ZERO)
        };
        // Rounded up: waking just before the time would be in vain.
        wait.map(|wait| Timespec {
            tv_sec: wait.as_secs() as i64,
            tv_nsec: i64::from(wait.subsec_nanos()),
        })
    }

    /// Looks at connections that last, and asks peers across the long link of whom nothing was
    /// heard for too long.
    fn ask_after_outage(&mut self) {
        let now = self.bench.now;
        let Some(places) = self.outage.due(now, self.places.connections.len()) else { return };
        while let Some(token) = self.outage.grown(now) {
            if let Some(place) = self.places.find(token)
                && let Some(connection) = &mut self.places.connections[place]
                && !connection.last()
            {
                self.outage.arm(now, token);
            }
        }
        let shared = &self.bench.shared;
        let waiting = places
            .filter(|place| {
                let connection = self.places.connections[*place].as_mut();
                connection.is_some_and(|connection| {
                    connection.wait_for_readers();
                    connection.ask_after_outage(shared)
                })
            })
            .count();
        self.outage.found(now, self.places.used, waiting);
        self.bench.shared.metrics.probes.add(waiting as u64);
    }

    /// Starts to take connections, or stops.
    fn listen(&mut self, on: bool) -> io::Result<()> {
        if on == self.listening {
            return Ok(());
        }
        self.listening = on;
        for (number, listener) in self.listeners.iter().enumerate() {
            if on {
                let data = EventData::new_u64(LISTENER + number as u64);
                epoll::add(
                    &self.bench.epoll,
                    &listener.socket,
                    data,
                    EventFlags::IN | EventFlags::EXCLUSIVE,
                )?;
            } else {
                epoll::delete(&self.bench.epoll, &listener.socket)?;
            }
        }
        Ok(())
    }

    /// Those for what comes across the long link.
    fn across(&self) -> impl Iterator<Item = &Listener> {
        self.listeners.iter().filter(|listener| listener.kind == Kind::FromWan)
    }

    /// Returns whether to end.
    fn obey(&mut self) -> io::Result<bool> {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Found(token, found) => {
                    if let Some(place) = self.places.find(token) {
                        if let Some(connection) = &mut self.places.connections[place] {
                            connection.found(found);
                        }
                        self.advance(place);
                    }
                }
                Order::Carry(link, Going { ends: (client, server), mark }) => {
                    let settings = self.bench.shared.settings();
                    if self.has_room(&settings) {
                        let from = Origin::Trunk(link.seal, server, mark);
                        self.begin(link.socket, Ok(client), from, &settings);
                    }
                }
                Order::Show(answer) => {
                    let now = self.bench.now;
                    let _ = answer.send(
                        self.places.connections.iter().flatten().map(|c| c.view(now)).collect(),
                    );
                }
                Order::Resize => {
                    let settings = self.bench.shared.settings();
                    for listener in self.across() {
                        let _ = socket::resize(listener.socket.as_fd(), &settings.wan);
                    }
                    self.places
                        .connections
                        .iter()
                        .flatten()
                        .for_each(|connection| connection.resize(&settings));
                }
                Order::Early => {
                    let early = self.bench.shared.settings().early;
                    for listener in self.across() {
                        let _ = socket::take_early(listener.socket.as_fd(), early);
                    }
                }
                Order::Drain => {
                    // What the kernel has accepted already is taken: it would be reset.
                    for number in 0..self.listeners.len() {
                        self.accept(number, LAST_ACCEPTS)?;
                    }
                    self.listen(false)?;
                    self.listeners.clear();
                }
                Order::Stop => {
                    for place in 0..self.places.connections.len() {
                        if let Some(mut connection) = self.places.connections[place].take() {
                            connection.close(&mut self.bench, true);
                            self.places.release(place);
                        }
                    }
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Takes connections that wait at a listener, so many at the most.
    fn accept(&mut self, number: usize, most: usize) -> io::Result<()> {
        let Some(listener) = self.listeners.get(number) else { return Ok(()) };
        let Listener { socket, kind, address } = listener.clone();
        let settings = self.bench.shared.settings();
        for _ in 0..most {
            match acceptfrom_with(&socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((client, Some(from))) if self.admits(&from, kind, &settings) => {
                    let from = socket::canonical(from);
                    self.begin(client, from, Origin::Listener(kind, address), &settings)
                }
                // Closing it resets it.
                Ok(_) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    let shared = &self.bench.shared;
                    shared.metrics.exhausted.one();
                    if shared.exhausted.may(self.bench.now) {
                        tracing::error!(
                            connections = self.places.used,
                            "no descriptors left: new connections wait; raise the limit (ulimit \
                                -n, LimitNOFILE=)"
                        );
                    }
                    self.listen(false)?;
                    self.resume = Some(self.bench.now + PAUSE);
                    return Ok(());
                }
                // The connection that was waiting broke (accept(2)).
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Whether a client is taken: it may ask, and there is room.
    fn admits(&self, from: &SocketAddrAny, kind: Kind, settings: &Settings) -> bool {
        let shared = &self.bench.shared;
        if kind == Kind::Explicit
            && let Ok(from) = socket::canonical(from.clone())
            && !settings.access.may_ask(from.ip())
        {
            shared.metrics.strangers.one();
            tracing::debug!(client = %from, "a client is not allowed to ask (--allow)");
            return false;
        }
        self.has_room(settings)
    }

    fn has_room(&self, settings: &Settings) -> bool {
        let shared = &self.bench.shared;
        // Workers that look at the same time may let one more in each: limits::raise has
        // descriptors for more than that.
        if shared.active.load(Ordering::Relaxed) >= settings.connections {
            shared.metrics.full.one();
            shared.fill(settings.connections);
            return false;
        }
        true
    }

    fn begin(
        &mut self,
        client: OwnedFd,
        from: io::Result<SocketAddr>,
        origin: Origin,
        settings: &Arc<Settings>,
    ) {
        let place = self.places.take();
        let token = self.places.token(place);
        self.bench.shared.metrics.accepted.one();
        let begun = from.and_then(|from| {
            Connection::begin(client, from, origin, settings.clone(), token, &self.bench)
        });
        match begun {
            Ok(connection) => {
                self.outage.arm(self.bench.now, token);
                let before = self.bench.shared.active.fetch_add(1, Ordering::Relaxed);
                if before + 1 >= settings.connections {
                    self.bench.shared.fill(settings.connections);
                }
                self.places.connections[place] = Some(Box::new(connection));
                self.advance(place);
                if let Some(connection) = &mut self.places.connections[place]
                    && let Err(why) = connection.watch_client(&self.bench)
                {
                    tracing::error!(%why, "a connection cannot be monitored");
                    connection.close(&mut self.bench, true);
                    self.remove(place);
                }
            }
            Err(why) => {
                tracing::debug!(%why, "a connection failed before it began");
                self.places.release(place);
            }
        }
    }

    fn remove(&mut self, place: usize) {
        self.places.connections[place] = None;
        self.places.release(place);
        self.bench.shared.active.fetch_sub(1, Ordering::Relaxed);
    }

    fn advance(&mut self, place: usize) {
        let Some(connection) = &mut self.places.connections[place] else { return };
        let token = self.places.generations[place];
        match connection.advance(&mut self.bench) {
            Next::Wait => {}
            Next::Turn => self.turns.push(self.places.token(place)),
            Next::Closed => {
                debug_assert_eq!(token, self.places.generations[place]);
                self.remove(place);
                return;
            }
        }
        if let Some(connection) = &mut self.places.connections[place]
            && let Some(at) = connection.alarm()
        {
            self.timers.set(at, self.places.token(place));
        }
    }
}

/// What a socket can have to say, each time it has something new.
const INPUT: EventFlags =
    EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::PRI).union(EventFlags::ET);

/// Registers a leg to a server for everything, once and for all.
fn watch(epoll: BorrowedFd<'_>, socket: &OwnedFd, token: u64) -> io::Result<()> {
    let data = EventData::new_u64(token);
    Ok(epoll::add(epoll, socket.as_fd(), data, INPUT | EventFlags::OUT)?)
}

/// A listening socket at an address.
///
/// # Errors
/// The port is in use, not permitted, not an address of this machine.
pub fn listener(
    address: SocketAddr,
    kind: Kind,
    settings: &crate::settings::Settings,
    transparent: bool,
    early: bool,
) -> io::Result<Listener> {
    let socket = socket::tcp(&address)?;
    let fd = socket.as_fd();
    rustix::net::sockopt::set_socket_reuseaddr(fd, true)?;
    if transparent {
        socket::make_transparent(fd, address.is_ipv4())?;
    }
    if address.is_ipv6() {
        rustix::net::sockopt::set_ipv6_v6only(fd, true)?;
    }
    socket::tell_common(fd, &settings.common)?;
    socket::reset_on_close(fd, true)?;
    socket::tell_leg(fd, settings.client_leg(kind))?;
    rustix::net::bind(fd, &address)?;
    if early && let Err(why) = socket::take_early(fd, true) {
        tracing::info!(%why, "the kernel does not accept data with a SYN");
    }
    rustix::net::listen(fd, BACKLOG.into())?;
    let address = socket::local(fd)?;
    Ok(Listener { socket: Arc::new(socket), kind, address })
}
