//! A connection from its acceptance to its end: find out where it wants to go and open the other
//! leg (`opening.rs`), carry bytes both ways and end as its ends do (`carrying.rs`). Here is what
//! it knows, and which phase it is in.
//!
//! What one side does the other side sees: FIN as FIN after the last byte, a reset (or an end of
//! the kernel's patience with a silent peer) as a reset, an unreachable server as what the client's
//! language has for it, a reset where it has none.

mod carrying;
mod opening;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::view::View;
use super::{Bench, INPUT};
use crate::listen::{Negotiation, Reached};
use crate::relay::sealed::Sealed;
use crate::relay::way::{Wait, Way};
use crate::relay::wire::Store;
use crate::settings::{Kind, Settings};
use crate::shared::{Ends, Shared};
use crate::socket;
use crate::trunk::Warm;
use crate::trunk::seal::Seal;
use crate::urgent;

/// Sent with a SYN at the most: what fits into a segment anywhere.
const EARLY: usize = 1220;
/// Who waits for a connection of the trunk looks again after so long.
const AGAIN: Duration = Duration::from_millis(20);
/// Probes go ten times a second: a peer that was heard within so many milliseconds answers them.
const HEARD_MS: u32 = 500;
/// So many retransmissions in a row that do not arrive where probes do are too large for the link.
const SWALLOWED: u8 = 2;

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

/// Where a connection comes from.
#[derive(Debug)]
pub(super) enum Origin {
    /// It was accepted, by the listener at this address.
    Listener(Kind, SocketAddr),
    /// The other gateway has said where its client wants to go, and its mark, on a connection of
    /// the trunk.
    Trunk(Option<Box<Seal>>, SocketAddr, u8),
}

impl Origin {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Listener(kind, _) => *kind,
            Self::Trunk(..) => Kind::FromTrunk,
        }
    }
}

#[derive(Debug)]
enum Phase {
    /// The client says where it wants to go.
    Negotiating,
    /// The name is being looked up.
    LookingUp,
    /// No connection of the trunk was left, and nothing is to go without.
    Queueing,
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
    /// A connection of the trunk that this one is to go by.
    link: Option<Warm>,
    by_trunk: bool,
    /// An explicit client's connection goes through the trunk as from this machine: from the
    /// address and port of this socket, which keeps them from others.
    own: Option<OwnedFd>,
    /// The client's DSCP where it is urgent, which both legs have; else 0.
    mark: u8,
    /// Keys of that connection, where the trunk is encrypted.
    sealed: Option<Box<Sealed>>,
    negotiation: Negotiation,
    /// There as long as the address of a name is waited for.
    asks: Option<Arc<()>>,
    phase: Phase,
    found: Option<Result<SocketAddr, Reached>>,
    /// Of the client and the server.
    heard: [Heard; 2],
    /// From the client to the server and back.
    ways: [Way; 2],
    stores: [Store; 2],
    waits: [Wait; 2],
    /// How often the long leg had retransmitted when a probe was first answered that goes without
    /// data (`outage.rs`).
    answered: Option<u8>,
    /// Whether the client and the server have no room, and may take as long as they like.
    held_back: [bool; 2],
    /// Sides that broke after their end: they acknowledge nothing any more.
    gone: [bool; 2],
    /// It is heard when the client's socket has room again.
    hears_room: bool,
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
        origin: Origin,
        settings: Arc<Settings>,
        token: u64,
        bench: &Bench,
    ) -> io::Result<Self> {
        let kind = origin.kind();
        let urgent = settings.urgent;
        let marked = || if urgent.is_some() { socket::mark_of(client.as_fd()) } else { 0 };
        let (diverted, seal, mark) = match origin {
            Origin::Trunk(seal, server, mark) => (Some(server), seal, mark),
            Origin::Listener(Kind::Explicit, _) => (None, None, marked()),
            Origin::Listener(_, listener) => {
                let to = socket::local(client.as_fd())?;
                // Nobody diverted it: somebody on this machine has found the listener, and each leg
                // to where it goes would be the next connection here.
                if to == listener {
                    bench.shared.metrics.loops.one();
                    return Err(io::Error::other("it is for the proxy itself"));
                }
                (Some(to), None, marked())
            }
        };
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
            link: None,
            by_trunk: kind == Kind::FromTrunk,
            own: None,
            mark: urgent::mark(urgent, mark),
            sealed: seal.map(|seal| Box::new(Sealed::new(seal, false))),
            negotiation: Negotiation::Unknown,
            asks: None,
            phase: Phase::Negotiating,
            found: None,
            heard: [Heard { readable: true, ..Heard::default() }, Heard::default()],
            ways: <[Way; 2]>::default(),
            stores: <[Store; 2]>::default(),
            waits: [Wait::Source; 2],
            answered: None,
            held_back: [false; 2],
            gone: [false; 2],
            hears_room: false,
            born: bench.now,
            moved: bench.now,
            deadline: None,
            unset: false,
            rung: false,
            settings,
        };
        connection.mark(connection.client.as_fd());
        if kind.comes_across() {
            connection.share(connection.client.as_fd(), bench);
        }
        match diverted {
            None => connection.until(Some(bench.now + connection.settings.greeting_timeout)),
            Some(to) if connection.pair(to, bench)? => {}
            Some(to) if kind == Kind::FromLan && connection.finds_link(to, bench) => {
                connection.phase = Phase::LookingUp;
                connection.found = Some(Ok(to));
            }
            Some(_) if kind == Kind::FromLan && connection.needs_link(bench) => {
                connection.wait_for_link(bench);
            }
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

    /// Hears of the client, what has come meanwhile included. Not before the connection has gone as
    /// far as it can, nor of room to write before it is missing: most need neither.
    pub(super) fn watch_client(&self, bench: &Bench) -> io::Result<()> {
        let data = EventData::new_u64(self.token);
        Ok(epoll::add(&bench.epoll, &self.client, data, INPUT)?)
    }

    fn watch_room(&mut self, bench: &Bench) -> io::Result<()> {
        if !std::mem::replace(&mut self.hears_room, true) {
            let data = EventData::new_u64(self.token);
            epoll::modify(&bench.epoll, &self.client, data, INPUT | EventFlags::OUT)?;
        }
        Ok(())
    }

    /// A connection that lasts has the kernel ask after silent peers, and wait for them as long as
    /// was asked for. Most are over before, and need no timer. `false`: it is not open yet.
    pub(super) fn last(&mut self) -> bool {
        if !matches!(self.phase, Phase::Open | Phase::Ending) {
            return false;
        }
        for socket in std::iter::once(&self.client).chain(&self.server) {
            if let Err(why) = socket::tell_patience(socket.as_fd(), &self.settings.common) {
                tracing::debug!(number = self.number, %why, "a leg uses the kernel's timeouts");
            }
        }
        self.held_back = [false; 2];
        true
    }

    fn until(&mut self, deadline: Option<Instant>) {
        // Said twice before the timers hear of it, it is still news to them.
        self.unset = deadline.is_some() && (self.unset || deadline != self.deadline);
        self.deadline = deadline;
    }

    /// When it wants to be called, if that is news.
    pub(super) fn alarm(&mut self) -> Option<Instant> {
        std::mem::take(&mut self.unset).then_some(self.deadline).flatten()
    }

    /// An event of one of its sockets.
    pub(super) fn hear(&mut self, of_server: bool, flags: EventFlags) {
        let heard = &mut self.heard[usize::from(of_server)];
        heard.readable |= flags
            .intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::PRI);
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
                    tracing::debug!(client = %self.client_address, "a client did not send its \
                        request in time");
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
                    None if late => {
                        self.asks = None;
                        self.unreached(
                            Reached::TimedOut,
                            bench,
                            &"its name was not resolved in time",
                        )
                    }
                    // A client that has nothing to send any more has gone.
                    None if self.heard[0].ending && !socket::has_input(self.client.as_fd()) => {
                        self.close(bench, false);
                        Next::Closed
                    }
                    None => Next::Wait,
                    Some(Ok(to)) => match self.open(to, bench, 0) {
                        Ok(()) => continue,
                        Err(why) => self.unreached(Reached::of(&why), bench, &why),
                    },
                    Some(Err(reached)) => {
                        self.unreached(reached, bench, &"its name cannot be resolved")
                    }
                },
                Phase::Queueing => {
                    if !late {
                        return Next::Wait;
                    }
                    late = false;
                    match self.queue(bench) {
                        Some(next) => next,
                        None => continue,
                    }
                }
                Phase::Early => {
                    if !late && !self.heard[0].readable {
                        return Next::Wait;
                    }
                    let Some(to) = self.server_address else { return Next::Closed };
                    let seen = match recv(
                        &self.client,
                        &mut bench.scratch[..EARLY],
                        RecvFlags::PEEK | RecvFlags::DONTWAIT,
                    ) {
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
                    if late && let Some((reached, why)) = self.give_up(since, bench) {
                        return self.unreached(reached, bench, &why);
                    }
                    late = false;
                    if !self.heard[1].writable {
                        return Next::Wait;
                    }
                    let took = bench.now.saturating_duration_since(since);
                    bench
                        .shared
                        .metrics
                        .connect_us
                        .note(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
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
                        tracing::debug!(number = self.number, "it was idle for too long");
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

    /// The socket across the long link, where this is a gateway.
    fn long_leg(&self) -> Option<BorrowedFd<'_>> {
        match self.kind {
            Kind::FromLan => self.server.as_ref().map(OwnedFd::as_fd),
            Kind::FromWan | Kind::FromTrunk => Some(self.client.as_fd()),
            Kind::Explicit => self.server.as_ref().filter(|_| self.by_trunk).map(OwnedFd::as_fd),
        }
    }

    /// A leg across the long link is the client's, among whom the link is shared.
    fn share(&self, leg: BorrowedFd<'_>, bench: &Bench) {
        if let Some(subscribers) = bench.shared.subscribers.get()
            && let Some(whose) = self.settings.share.whose(self.client_address.ip())
            && let Err(why) = subscribers.add(leg, whose)
        {
            tracing::debug!(number = self.number, %why, "a connection gets a share of its own");
        }
    }

    /// A leg of an urgent client's is urgent.
    fn mark(&self, leg: BorrowedFd<'_>) {
        if self.mark != 0
            && let Err(why) = socket::tell_mark(leg, self.mark)
        {
            tracing::debug!(number = self.number, %why, "a leg does not carry its client's mark");
        }
    }

    /// The long link has other rates.
    pub(super) fn resize(&self, settings: &Settings) {
        if let Some(leg) = self.long_leg()
            && let Err(why) = socket::resize(leg, &settings.wan)
        {
            tracing::debug!(number = self.number, %why, "a leg keeps its buffers");
        }
    }

    /// Readers may pause for as long as they like: they are not given up while they answer. But
    /// where both sides have ended, nobody is left who would wait for them without a proxy, either.
    pub(super) fn wait_for_readers(&mut self) {
        let open = matches!(self.phase, Phase::Open);
        let legs = [Some(self.client.as_fd()), self.server.as_ref().map(OwnedFd::as_fd)];
        for (leg, held_back) in legs.into_iter().zip(&mut self.held_back) {
            let Some(leg) = leg else { continue };
            let now = open && socket::is_held_back(leg);
            if now != *held_back {
                let give_up_ms = if now { 0 } else { self.settings.common.give_up_ms };
                if socket::tell_give_up(leg, give_up_ms).is_ok() {
                    *held_back = now;
                }
            }
        }
    }

    /// If the long link's peer has not answered for longer than a timeout, asks whether it is
    /// there. Returns whether that was so.
    pub(super) fn ask_after_outage(&mut self, shared: &Shared) -> bool {
        let leg = self.long_leg().filter(|_| matches!(self.phase, Phase::Open));
        let found = leg.and_then(|leg| socket::waits_in_vain(leg).map(|vain| (leg, vain)));
        let Some((leg, vain)) = found else {
            self.answered = None;
            return false;
        };
        let probed = socket::probe(leg).is_ok();
        if vain.heard_ms < HEARD_MS {
            let first = *self.answered.get_or_insert(vain.retransmits);
            if vain.retransmits >= first.saturating_add(SWALLOWED) {
                shared.swallows();
            }
        } else {
            self.answered = None;
        }
        probed
    }

    pub(super) fn view(&self, now: Instant) -> View {
        let age = now.saturating_duration_since(self.born);
        View {
            number: self.number,
            kind: self.kind,
            by_trunk: self.by_trunk,
            urgent: self.mark != 0,
            state: match self.phase {
                Phase::Negotiating => "negotiating",
                Phase::LookingUp | Phase::Queueing | Phase::Early | Phase::Connecting(_) => {
                    "connecting"
                }
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
