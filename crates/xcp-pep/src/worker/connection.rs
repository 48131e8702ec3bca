//! A connection from its acceptance to its end: find out where it wants to go, open the other leg, carry bytes both ways, end as its ends do.
//!
//! What one side does the other side sees: FIN as FIN after the last byte, a reset (or an end of the kernel's patience with a silent peer) as a
//! reset, an unreachable server as what the client's language has for it, a reset where it has none.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, bind, connect, recv, send, sendto, sockopt};

use super::view::View;
use super::{Bench, watch};
use crate::listen::{Negotiation, Reached, Step, Target};
use crate::relay::way::{Broken, Wait, Way};
use crate::relay::wire::{Sockets, Store};
use crate::settings::{Kind, Settings};
use crate::shared::Ends;
use crate::socket;

/// Moved in one turn, so that others get theirs.
const TURN: usize = 1 << 20;
/// Sent with a SYN at the most: what fits into a segment anywhere.
const EARLY: usize = 1220;
/// How long a client that is refused may take to close.
const FAREWELL: Duration = Duration::from_secs(2);

/// The two sides: of what comes from them, and where it goes.
const CLIENT: usize = 0;
const SERVER: usize = 1;

/// What a connection needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// To wait for an event.
    Wait,
    /// Another turn.
    Turn,
    /// Nothing more.
    Closed,
}

#[derive(Debug)]
enum Phase {
    /// The client says where it wants to go.
    Negotiating,
    /// The name is being looked up.
    LookingUp,
    /// The client's first bytes are waited for.
    Early,
    /// The other leg is on its way; since when.
    Connecting(Instant),
    Open,
    /// Both ends have been passed on; what the kernel still holds is on its way.
    Ending,
    /// The client has been told why not; it has to close.
    Refusing,
}

/// What has been heard of a socket since the last advance.
#[derive(Debug, Default, Clone, Copy)]
struct Heard {
    readable: bool,
    writable: bool,
    broken: bool,
    /// FIN came.
    ending: bool,
}

#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    token: u64,
    kind: Kind,
    settings: Arc<Settings>,
    client: OwnedFd,
    server: Option<OwnedFd>,
    client_address: SocketAddr,
    server_address: Option<SocketAddr>,
    /// The leg we opened, as the other end sees it.
    leg: Option<Ends>,
    /// The client and where it wanted to go, if the leg was opened before it was answered.
    paired: Option<Ends>,
    negotiation: Negotiation,
    phase: Phase,
    found: Option<Result<SocketAddr, Reached>>,
    /// Of the client and the server.
    heard: [Heard; 2],
    /// From the client to the server and back.
    ways: [Way; 2],
    stores: [Store; 2],
    waits: [Wait; 2],
    /// Sides that are broken, once both have ended.
    gone: [bool; 2],
    born: Instant,
    moved: Instant,
    deadline: Option<Instant>,
    /// The deadline is new to the timers.
    unset: bool,
    rung: bool,
}

impl Connection {
    pub(super) fn begin(
        client: OwnedFd,
        client_address: SocketAddr,
        kind: Kind,
        settings: Arc<Settings>,
        token: u64,
        bench: &Bench,
    ) -> io::Result<Self> {
        let diverted = if kind == Kind::Explicit { None } else { Some(socket::local(client.as_fd())?) };
        watch(bench.epoll.as_fd(), &client, token)?;
        let mut connection = Self {
            number: bench.shared.number(),
            token,
            kind,
            client,
            server: None,
            client_address,
            server_address: diverted,
            leg: None,
            paired: None,
            negotiation: Negotiation::Unknown,
            phase: Phase::Negotiating,
            found: None,
            heard: [Heard { readable: true, ..Heard::default() }, Heard::default()],
            ways: <[Way; 2]>::default(),
            stores: <[Store; 2]>::default(),
            waits: [Wait::Source; 2],
            gone: [false; 2],
            born: bench.now,
            moved: bench.now,
            deadline: None,
            unset: false,
            rung: false,
            settings,
        };
        match diverted {
            None => connection.until(Some(bench.now + connection.settings.greeting_timeout)),
            Some(to) if connection.pair(to, bench)? => {}
            Some(_) if kind == Kind::FromLan && connection.settings.early => {
                connection.phase = Phase::Early;
                connection.until(Some(bench.now + connection.settings.early_wait));
            }
            Some(to) => {
                connection.phase = Phase::LookingUp;
                connection.found = Some(Ok(to));
            }
        }
        Ok(connection)
    }

    /// Takes the leg that was opened before the client was answered, if there is one (`confirm`).
    fn pair(&mut self, to: SocketAddr, bench: &Bench) -> io::Result<bool> {
        let ends = (self.client_address, to);
        let Some(leg) = bench.shared.confirmed.take(&ends) else { return Ok(false) };
        watch(bench.epoll.as_fd(), &leg.socket, self.token | 1).inspect_err(|_| bench.shared.confirmed.over(&ends))?;
        self.server = Some(leg.socket);
        self.paired = Some(ends);
        self.phase = Phase::Connecting(leg.since);
        self.until(Some(bench.now + self.settings.connect_timeout));
        Ok(true)
    }

    fn until(&mut self, deadline: Option<Instant>) {
        self.unset = deadline.is_some() && deadline != self.deadline;
        self.deadline = deadline;
    }

    /// When it wants to be called, if that is news.
    pub(super) fn alarm(&mut self) -> Option<Instant> {
        std::mem::take(&mut self.unset).then_some(self.deadline).flatten()
    }

    /// An event of one of its sockets.
    pub(super) fn hear(&mut self, of_server: bool, flags: EventFlags) {
        let heard = &mut self.heard[usize::from(of_server)];
        heard.readable |= flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::PRI);
        heard.writable |= flags.intersects(EventFlags::OUT | EventFlags::HUP);
        heard.ending |= flags.intersects(EventFlags::RDHUP | EventFlags::HUP);
        heard.broken |= flags.contains(EventFlags::ERR);
        if flags.contains(EventFlags::PRI) {
            self.stores[usize::from(of_server)].urgent = true;
        }
    }

    /// A time it asked for may have come.
    pub(super) fn ring(&mut self) {
        self.rung = true;
    }

    /// Its name was looked up.
    pub(super) fn found(&mut self, found: Result<SocketAddr, Reached>) {
        self.found = Some(found);
    }

    /// Goes as far as it can.
    pub(super) fn advance(&mut self, bench: &mut Bench) -> Next {
        let rung = std::mem::take(&mut self.rung);
        let mut late = rung && self.deadline.is_some_and(|at| at <= bench.now);
        if rung && !late {
            // An earlier deadline's call; the one of now is still to be set.
            self.unset = self.deadline.is_some();
        }
        if late {
            self.deadline = None;
        }
        loop {
            if let Some(next) = self.look_for_breaks(bench) {
                return next;
            }
            let next = match self.phase {
                Phase::Negotiating if late => {
                    bench.shared.metrics.garbage.one();
                    tracing::info!(client = %self.client_address, "a client did not say in time where it wants to go");
                    self.close(bench, false);
                    Next::Closed
                }
                Phase::Negotiating => {
                    if !self.heard[0].readable {
                        return Next::Wait;
                    }
                    match self.negotiate(bench) {
                        Some(next) => next,
                        None => continue,
                    }
                }
                Phase::LookingUp => match self.found.take() {
                    None => Next::Wait,
                    Some(Ok(to)) => match self.open(to, bench, 0) {
                        Ok(()) => continue,
                        Err(why) => self.unreached(Reached::of(&why), bench, &why),
                    },
                    Some(Err(reached)) => self.unreached(reached, bench, &"its name is not known"),
                },
                Phase::Early => {
                    if !late && !self.heard[0].readable {
                        return Next::Wait;
                    }
                    let Some(to) = self.server_address else { return Next::Closed };
                    let seen = match recv(&self.client, &mut bench.scratch[..EARLY], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
                        Ok((seen, _)) => seen,
                        Err(Errno::AGAIN) => {
                            self.heard[0].readable = false;
                            if !late {
                                return Next::Wait;
                            }
                            0
                        }
                        Err(_) => return self.broken(bench, CLIENT, &Errno::CONNRESET.into()),
                    };
                    late = false;
                    match self.open(to, bench, seen) {
                        Ok(()) => continue,
                        Err(why) => self.unreached(Reached::of(&why), bench, &why),
                    }
                }
                Phase::Connecting(since) => {
                    if late {
                        return self.unreached(Reached::TimedOut, bench, &"no answer in time");
                    }
                    if !self.heard[1].writable {
                        return Next::Wait;
                    }
                    let took = bench.now.saturating_duration_since(since);
                    bench.shared.metrics.connect_us.note(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
                    if self.start(bench).is_err() {
                        return self.broken(bench, CLIENT, &Errno::CONNRESET.into());
                    }
                    continue;
                }
                Phase::Ending => self.end(bench),
                Phase::Open => {
                    if late && !self.is_idle(bench) {
                        return self.relay(bench);
                    }
                    if late {
                        tracing::info!(number = self.number, "nothing moved for too long");
                        self.count_end(bench);
                        self.close(bench, true);
                        return Next::Closed;
                    }
                    return self.relay(bench);
                }
                Phase::Refusing => {
                    if late || self.heard[0].ending {
                        self.close(bench, false);
                        Next::Closed
                    } else {
                        Next::Wait
                    }
                }
            };
            return next;
        }
    }

    /// Looks at what the client says; `None`: go on in another phase.
    fn negotiate(&mut self, bench: &mut Bench) -> Option<Next> {
        loop {
            let said = match recv(&self.client, &mut *bench.scratch, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
                Ok((0, _)) => {
                    self.close(bench, false);
                    return Some(Next::Closed);
                }
                Ok((length, _)) => length,
                Err(Errno::AGAIN) => {
                    self.heard[0].readable = false;
                    return Some(Next::Wait);
                }
                Err(_) => return Some(self.broken(bench, CLIENT, &Errno::CONNRESET.into())),
            };
            let step = self.negotiation.advance(&bench.scratch[..said]);
            match step {
                Step::More => {
                    self.heard[0].readable = false;
                    if self.heard[0].ending {
                        self.close(bench, false);
                        return Some(Next::Closed);
                    }
                    return Some(Next::Wait);
                }
                Step::Answer(used, answer) => {
                    if self.use_up(used, bench).is_err() || send(&self.client, &answer, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_err()
                    {
                        return Some(self.broken(bench, CLIENT, &Errno::CONNRESET.into()));
                    }
                }
                Step::Go(used, target) => {
                    if self.use_up(used, bench).is_err() {
                        return Some(self.broken(bench, CLIENT, &Errno::CONNRESET.into()));
                    }
                    self.phase = Phase::LookingUp;
                    match target {
                        Target::Address(to) => self.found = Some(Ok(to)),
                        Target::Name(name, port) => bench.names.ask(name, port, self.token, &bench.handle),
                    }
                    self.until(Some(bench.now + self.settings.connect_timeout));
                    return None;
                }
                Step::Refuse(answer, why) => {
                    bench.shared.metrics.garbage.one();
                    tracing::info!(client = %self.client_address, why, "a client was refused");
                    return Some(self.refuse(&answer, bench));
                }
            }
        }
    }

    fn use_up(&self, bytes: usize, bench: &mut Bench) -> io::Result<()> {
        let mut left = bytes;
        while left > 0 {
            let buffer = &mut bench.scratch[..left];
            let (taken, _) = recv(&self.client, &mut *buffer, RecvFlags::DONTWAIT)?;
            if taken == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            left -= taken;
        }
        Ok(())
    }

    /// Says why not, and lets the client read it.
    fn refuse(&mut self, answer: &[u8], bench: &mut Bench) -> Next {
        let _ = send(&self.client, answer, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        // What the client has sent beyond would turn the close into a reset, which takes the answer with it.
        while matches!(recv(&self.client, &mut *bench.scratch, RecvFlags::DONTWAIT), Ok((1.., _))) {}
        let _ = rustix::net::shutdown(&self.client, rustix::net::Shutdown::Write);
        self.phase = Phase::Refusing;
        self.until(Some(bench.now + FAREWELL));
        if self.heard[0].ending {
            self.close(bench, false);
            return Next::Closed;
        }
        Next::Wait
    }

    /// The server cannot be reached.
    fn unreached(&mut self, reached: Reached, bench: &mut Bench, why: &dyn std::fmt::Display) -> Next {
        if reached == Reached::NotAllowed {
            bench.shared.metrics.loops.one();
            tracing::warn!(client = %self.client_address, server = ?self.server_address, "a loop: the proxy was to connect to itself");
        } else {
            bench.shared.metrics.unreached.one();
            tracing::debug!(client = %self.client_address, server = ?self.server_address, %why, "a server could not be reached");
        }
        self.drop_server(bench);
        if self.kind == Kind::Explicit {
            let answer = self.negotiation.outcome(reached, None);
            return self.refuse(&answer, bench);
        }
        self.close(bench, true);
        Next::Closed
    }

    /// Opens the other leg; so many of the client's first bytes, which lie in the scratch, go with its SYN.
    fn open(&mut self, to: SocketAddr, bench: &mut Bench, early: usize) -> io::Result<()> {
        self.server_address = Some(to);
        // A diverted leg of ours that came back would find its socket here and not be accepted at all.
        if self.kind == Kind::Explicit && bench.shared.is_ours(&(self.client_address, socket::local(self.client.as_fd())?)) {
            self.phase = Phase::LookingUp;
            self.found = Some(Err(Reached::NotAllowed));
            return Ok(());
        }
        let server = self.socket(&to)?;
        if self.kind != Kind::Explicit {
            socket::make_transparent(server.as_fd(), to.is_ipv4())?;
            sockopt::set_socket_reuseaddr(&server, true)?;
            if let Err(why) = bind(&server, &self.client_address) {
                tracing::debug!(client = %self.client_address, %why, "the client's port could not be kept");
                bench.shared.metrics.port_changed.one();
                bind(&server, &SocketAddr::new(self.client_address.ip(), 0))?;
            }
        }
        self.phase = Phase::Connecting(bench.now);
        self.until(Some(bench.now + self.settings.connect_timeout));
        let result = if early > 0 { self.connect_early(&server, to, bench, early) } else { connect(&server, &to) };
        match result {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            // An earlier connection between the same ends lingers here (TIME_WAIT).
            Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) if self.kind != Kind::Explicit => {
                bench.shared.metrics.port_changed.one();
                return self.open_elsewhere(to, bench);
            }
            Err(why) => return Err(why.into()),
        }
        self.adopt(server, to, bench)
    }

    /// For the other leg.
    fn socket(&self, to: &SocketAddr) -> io::Result<OwnedFd> {
        let server = socket::tcp(to)?;
        socket::tell_common(server.as_fd(), &self.settings.common)?;
        socket::reset_on_close(server.as_fd(), true)?;
        socket::tell_leg(server.as_fd(), self.settings.server_leg(self.kind), &self.settings.common)?;
        Ok(server)
    }

    /// From the client's address, but another port.
    fn open_elsewhere(&mut self, to: SocketAddr, bench: &mut Bench) -> io::Result<()> {
        let server = self.socket(&to)?;
        socket::make_transparent(server.as_fd(), to.is_ipv4())?;
        bind(&server, &SocketAddr::new(self.client_address.ip(), 0))?;
        match connect(&server, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => self.adopt(server, to, bench),
            Err(why) => Err(why.into()),
        }
    }

    fn adopt(&mut self, server: OwnedFd, to: SocketAddr, bench: &mut Bench) -> io::Result<()> {
        if self.kind == Kind::Explicit {
            let leg = (socket::local(server.as_fd())?, to);
            bench.shared.opened(leg);
            self.leg = Some(leg);
        }
        self.heard[1] = Heard::default();
        watch(bench.epoll.as_fd(), &server, self.token | 1)?;
        self.server = Some(server);
        Ok(())
    }

    fn connect_early(&mut self, server: &OwnedFd, to: SocketAddr, bench: &mut Bench, seen: usize) -> Result<(), Errno> {
        if socket::allow_early(server.as_fd()).is_err() {
            return connect(server, &to);
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT | SendFlags::from_bits_retain(libc::MSG_FASTOPEN as u32);
        match sendto(server, &bench.scratch[..seen], flags, &to) {
            Ok(sent) => {
                self.ways[0].count(sent);
                bench.shared.metrics.early.one();
                bench.shared.metrics.to_server.add(sent as u64);
                // Whatever comes after these will be heard of.
                self.heard[0].readable = sent == EARLY || self.heard[0].ending;
                self.use_up(sent, bench).map_err(|_| Errno::CONNRESET)
            }
            // The kernel does not do it: net.ipv4.tcp_fastopen.
            Err(Errno::OPNOTSUPP) => connect(server, &to),
            Err(why) => Err(why),
        }
    }

    /// Both legs are there.
    fn start(&mut self, bench: &mut Bench) -> io::Result<()> {
        let Some(server) = &self.server else { return Err(io::ErrorKind::NotConnected.into()) };
        if self.kind == Kind::Explicit {
            let answer = self.negotiation.outcome(Reached::Yes, socket::local(server.as_fd()).ok());
            let sent = send(&self.client, &answer, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
            if sent != answer.len() {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        self.phase = Phase::Open;
        self.moved = bench.now;
        self.until(None);
        self.watch_idleness(bench);
        // What the client sent after its request was looked at with it.
        self.heard[0].readable |= self.kind == Kind::Explicit;
        Ok(())
    }

    fn watch_idleness(&mut self, _bench: &Bench) {
        if !self.settings.idle_timeout.is_zero() {
            self.until(Some(self.moved + self.settings.idle_timeout));
        }
    }

    /// Whether nothing has moved for too long; else it is to be looked at again later.
    fn is_idle(&mut self, bench: &Bench) -> bool {
        if self.settings.idle_timeout.is_zero() || bench.now < self.moved + self.settings.idle_timeout {
            self.watch_idleness(bench);
            return false;
        }
        true
    }

    fn relay(&mut self, bench: &mut Bench) -> Next {
        let Some(server) = &self.server else { return Next::Closed };
        let sockets = [self.client.as_fd(), server.as_fd()];
        let mut again = false;
        let mut broken = None;
        for from in 0..2 {
            let to = 1 - from;
            let wanted = match self.waits[from] {
                Wait::Source => self.heard[from].readable,
                Wait::Sink => self.heard[to].writable,
                Wait::Turn => true,
                Wait::Done => false,
            };
            if !wanted {
                continue;
            }
            let way = &mut self.ways[from];
            let before = way.passed();
            let mut medium = Sockets {
                source: sockets[from],
                sink: sockets[to],
                store: &mut self.stores[from],
                pool: &mut bench.pool,
                scratch: &mut bench.scratch,
                ending: self.heard[from].ending,
            };
            let result = way.pump(&mut medium, self.settings.held, TURN);
            let moved = way.passed() - before;
            if moved > 0 {
                self.moved = bench.now;
                let metrics = &bench.shared.metrics;
                if from == 0 { &metrics.to_server } else { &metrics.to_client }.add(moved);
            }
            match result {
                Ok(wait) => {
                    self.waits[from] = wait;
                    again |= wait == Wait::Turn;
                }
                Err(Broken { source, why }) => {
                    broken = Some((if source { from } else { to }, why));
                    break;
                }
            }
        }
        // What was heard has been acted on; edges to come will be heard anew. A way that waits for something that was heard has tried it.
        for heard in &mut self.heard {
            heard.readable = false;
            heard.writable = false;
        }
        if let Some((side, why)) = broken {
            return self.broken(bench, side, &why);
        }
        if self.waits == [Wait::Done; 2] {
            self.phase = Phase::Ending;
            self.until(None);
            return self.end(bench);
        }
        if again { Next::Turn } else { Next::Wait }
    }

    /// Looks at errors of sockets that were heard of; `None`: go on.
    fn look_for_breaks(&mut self, bench: &mut Bench) -> Option<Next> {
        let side = self.heard.iter().position(|heard| heard.broken)?;
        self.heard[side].broken = false;
        let socket = if side == CLIENT { &self.client } else { self.server.as_ref()? };
        let why = sockopt::socket_error(socket).map_or_else(io::Error::from, |e| e.err().unwrap_or(Errno::CONNRESET).into());
        if side == SERVER && matches!(self.phase, Phase::Connecting(_)) {
            return Some(self.unreached(Reached::of(&why), bench, &why));
        }
        Some(self.broken(bench, side, &why))
    }

    /// A side is broken. If it had ended before, all that it said is here and is delivered still: a server that has closed answers nothing but resets
    /// soon after (tcp_fin_timeout), while its last words may be on the long link for minutes.
    fn broken(&mut self, bench: &mut Bench, side: usize, why: &io::Error) -> Next {
        tracing::debug!(number = self.number, side = if side == CLIENT { "client" } else { "server" }, %why, "a side broke");
        // A reset after a FIN, be that one read or still in the socket's queue, is told as EPIPE (tcp_reset).
        let had_ended = self.ways[side].ended() || why.raw_os_error() == Some(libc::EPIPE);
        match self.phase {
            Phase::Open if had_ended => {
                self.heard[side].readable = true;
                if !self.ways[1 - side].done() {
                    self.ways[1 - side].abandon();
                    self.stores[1 - side].clear(&mut bench.pool);
                    self.waits[1 - side] = Wait::Done;
                }
                self.relay(bench)
            }
            // The other side's last words are with the kernel.
            Phase::Ending => {
                self.gone[side] = true;
                self.end(bench)
            }
            Phase::Open | Phase::Connecting(_) => self.reset(bench),
            _ => {
                self.close(bench, true);
                Next::Closed
            }
        }
    }

    /// Lets go of it when both peers have what was sent. Until then it is this process's, so that it is seen, waited for by who drains, and broken
    /// rather than left half-way where the process is killed.
    fn end(&mut self, bench: &mut Bench) -> Next {
        let sockets = std::iter::once(&self.client).chain(&self.server);
        let mut waits = false;
        for (socket, gone) in sockets.zip(self.gone) {
            waits |= !gone && socket::unacknowledged(socket.as_fd()) > 0;
        }
        if waits {
            return Next::Wait;
        }
        bench.shared.metrics.finished.one();
        self.count_end(bench);
        self.close(bench, false);
        Next::Closed
    }

    fn reset(&mut self, bench: &mut Bench) -> Next {
        bench.shared.metrics.reset.one();
        self.count_end(bench);
        self.close(bench, true);
        Next::Closed
    }

    fn count_end(&self, bench: &Bench) {
        let age = bench.now.saturating_duration_since(self.born);
        bench.shared.metrics.ended(age, [self.ways[0].passed(), self.ways[1].passed()]);
        tracing::debug!(
            number = self.number,
            client = %self.client_address,
            server = ?self.server_address,
            to_server = self.ways[0].passed(),
            to_client = self.ways[1].passed(),
            "a connection ended"
        );
    }

    fn drop_server(&mut self, bench: &mut Bench) {
        if let Some(leg) = self.leg.take() {
            bench.shared.closed(&leg);
        }
        if let Some(ends) = self.paired.take() {
            bench.shared.confirmed.over(&ends);
        }
        self.server = None;
    }

    /// Lets go of everything; the sockets close when the value is dropped.
    pub(super) fn close(&mut self, bench: &mut Bench, reset: bool) {
        for store in &mut self.stores {
            store.clear(&mut bench.pool);
        }
        if !reset {
            for socket in std::iter::once(&self.client).chain(&self.server) {
                let _ = socket::reset_on_close(socket.as_fd(), false);
            }
        }
        self.drop_server(bench);
    }

    /// The socket across the long link, where this is a gateway.
    fn long_leg(&self) -> Option<BorrowedFd<'_>> {
        match self.kind {
            Kind::FromLan => self.server.as_ref().map(OwnedFd::as_fd),
            Kind::FromWan => Some(self.client.as_fd()),
            Kind::Explicit => None,
        }
    }

    /// If the long link's peer has not answered for longer than a timeout, asks whether it is there. Returns whether that was so.
    pub(super) fn ask_after_outage(&self) -> bool {
        let waits = |leg: &BorrowedFd<'_>| matches!(self.phase, Phase::Open) && socket::waits_in_vain(*leg);
        self.long_leg().filter(waits).is_some_and(|leg| socket::probe(leg).is_ok())
    }

    pub(super) fn view(&self, now: Instant) -> View {
        let age = now.saturating_duration_since(self.born);
        View {
            number: self.number,
            kind: self.kind,
            state: match self.phase {
                Phase::Negotiating => "negotiating",
                Phase::LookingUp | Phase::Early | Phase::Connecting(_) => "connecting",
                Phase::Open if self.ways.iter().any(Way::ended) => "closing",
                Phase::Ending => "closing",
                Phase::Open => "open",
                Phase::Refusing => "refusing",
            },
            client: self.client_address,
            server: self.server_address,
            age_ns: u64::try_from(age.as_nanos()).unwrap_or(u64::MAX),
            to_server: self.ways[0].passed(),
            to_client: self.ways[1].passed(),
            held: self.ways.iter().map(Way::held).sum(),
            client_leg: socket::info(self.client.as_fd()).ok(),
            server_leg: self.server.as_ref().and_then(|server| socket::info(server.as_fd()).ok()),
        }
    }
}
