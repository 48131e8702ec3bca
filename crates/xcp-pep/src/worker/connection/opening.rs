//! A connection before bytes go both ways: what the client says of where it wants to go, the other
//! leg, and what it is told if there is none.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, bind, connect, recv, send, sendto, sockopt};

use super::{AGAIN, Bench, CLIENT, Connection, EARLY, Heard, Next, Phase};
use crate::listen::{Reached, Step, Target};
use crate::relay::sealed::Sealed;
use crate::settings::Kind;
use crate::socket;
use crate::trunk::{Warm, words};
use crate::worker::watch;

/// How long a client that is refused may take to close.
const FAREWELL: Duration = Duration::from_secs(2);
/// How often it is looked whether a server that does not answer is there at all.
const LOOK: Duration = Duration::from_millis(500);

impl Connection {
    /// Looks at what the client says; `None`: go on in another phase.
    pub(super) fn negotiate(&mut self, bench: &mut Bench) -> Option<Next> {
        loop {
            let said = match recv(
                &self.client,
                &mut *bench.scratch,
                RecvFlags::PEEK | RecvFlags::DONTWAIT,
            ) {
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
                    if self.use_up(used, bench).is_err()
                        || send(&self.client, &answer, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
                            .is_err()
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
                        Target::Name(name, port) => {
                            let asker = self.asks.insert(Arc::default());
                            bench.names.ask(name, port, self.token, &bench.handle, asker);
                        }
                    }
                    self.until(Some(bench.now + self.settings.connect_timeout));
                    return None;
                }
                Step::Refuse(answer, why) => {
                    bench.shared.metrics.garbage.one();
                    tracing::debug!(client = %self.client_address, why, "a client was refused");
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
        // What the client has sent beyond would turn the close into a reset, which takes the answer
        // with it.
        while matches!(recv(&self.client, &mut *bench.scratch, RecvFlags::DONTWAIT), Ok((1.., _))) {
        }
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
    pub(super) fn unreached(
        &mut self,
        reached: Reached,
        bench: &mut Bench,
        why: &dyn std::fmt::Display,
    ) -> Next {
        // Clients decide how often this is said: at a level at which nobody is told unasked.
        if reached == Reached::Forbidden {
            bench.shared.metrics.forbidden.one();
            tracing::debug!(client = %self.client_address, server = ?self.server_address, "a client asked for an address of this machine (--allow-target)");
        } else if reached == Reached::NotAllowed {
            bench.shared.metrics.loops.one();
            tracing::debug!(client = %self.client_address, server = ?self.server_address, "a loop: \
                the proxy was asked to connect to itself");
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

    /// Takes the leg that was opened before the client was answered, if there is one (`confirm`).
    pub(super) fn pair(&mut self, to: SocketAddr, bench: &Bench) -> io::Result<bool> {
        let ends = (self.client_address, to);
        let Some(leg) = bench.shared.confirmed.take(&ends) else { return Ok(false) };
        watch(bench.epoll.as_fd(), &leg.socket, self.token | 1)
            .inspect_err(|_| bench.shared.confirmed.over(&ends))?;
        self.tell_server_leg(&leg.socket, bench);
        self.server = Some(leg.socket);
        self.paired = Some(ends);
        self.phase = Phase::Connecting(leg.since);
        self.until(Some(bench.now + self.settings.connect_timeout));
        Ok(true)
    }

    /// Opens the other leg; so many of the client's first bytes, which lie in the scratch, go with
    /// its SYN.
    pub(super) fn open(
        &mut self,
        to: SocketAddr,
        bench: &mut Bench,
        early: usize,
    ) -> io::Result<()> {
        self.server_address = Some(to);
        // A diverted leg of ours that came back would find its socket here and not be accepted at
        // all.
        if self.kind == Kind::Explicit
            && bench.shared.is_ours(&(self.client_address, socket::local(self.client.as_fd())?))
        {
            self.phase = Phase::LookingUp;
            self.found = Some(Err(Reached::NotAllowed));
            return Ok(());
        }
        if self.kind == Kind::Explicit && !bench.may_reach(&self.settings.access, to.ip()) {
            self.phase = Phase::LookingUp;
            self.found = Some(Err(Reached::Forbidden));
            return Ok(());
        }
        if self.kind == Kind::Explicit && self.link.is_none() && self.seek_link(to, bench)? {
            self.wait_for_link(bench);
            return Ok(());
        }
        if let Some(link) = self.link.take() {
            return self.go(link, to, bench);
        }
        let server =
            socket::for_leg(&to, self.settings.server_leg(self.kind), &self.settings.common)?;
        if self.kind != Kind::Explicit {
            socket::make_transparent(server.as_fd(), to.is_ipv4())?;
            sockopt::set_socket_reuseaddr(&server, true)?;
            if let Err(why) = bind(&server, &self.client_address) {
                tracing::debug!(client = %self.client_address, %why, "the client's port could not \
                    be kept");
                bench.shared.metrics.port_changed.one();
                bind(&server, &SocketAddr::new(self.client_address.ip(), 0))?;
            }
        }
        self.tell_server_leg(&server, bench);
        self.phase = Phase::Connecting(bench.now);
        self.wait_for_server(bench.now, bench.now);
        let result = if early > 0 {
            self.connect_early(&server, to, bench, early)
        } else {
            if self.kind != Kind::Explicit && socket::has_input(self.client.as_fd()) {
                socket::answer_with_data(server.as_fd())?;
            }
            connect(&server, &to)
        };
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

    /// How long a server is waited for that has been called at a time.
    fn wait_for_server(&mut self, since: Instant, now: Instant) {
        let last = since + self.settings.connect_timeout;
        let next = if self.kind.comes_across() { last.min(now + LOOK) } else { last };
        self.until(Some(next));
    }

    /// Why a server is waited for no longer; `None`: it is. A host of this gateway's LAN may not be
    /// there. The kernel tells that by ICMP, to the address that the leg has, which is the
    /// client's; so its neighbours are looked at.
    pub(super) fn give_up(
        &mut self,
        since: Instant,
        bench: &mut Bench,
    ) -> Option<(Reached, &'static str)> {
        if bench.now >= since + self.settings.connect_timeout {
            return Some((Reached::TimedOut, "no answer in time"));
        }
        let server = self.server_address?;
        if self.kind.comes_across() && bench.is_missing(server.ip()) {
            return Some((Reached::NoHost, "no device here has its address"));
        }
        self.wait_for_server(since, bench.now);
        None
    }

    /// Whether the trunk has a connection for this one, which is taken then.
    pub(super) fn finds_link(&mut self, to: SocketAddr, bench: &Bench) -> bool {
        let Some(trunk) = bench.shared.trunk.get().filter(|trunk| trunk.leads_to(to.ip())) else {
            return false;
        };
        self.link = trunk.take();
        let metrics = &bench.shared.metrics;
        match self.link {
            Some(_) => metrics.trunk_used.one(),
            // Who waits is counted when he has come.
            None if matches!(self.phase, Phase::Queueing) => {}
            None => metrics.trunk_missed.one(),
        }
        self.link.is_some()
    }

    /// Whether it goes through the trunk or not at all.
    pub(super) fn needs_link(&self, bench: &Bench) -> bool {
        bench.shared.trunk.get().is_some_and(|trunk| trunk.encrypts())
    }

    /// The trunk for an explicit client's connection, if that leads across the long link at all.
    /// Returns whether one of the trunk is still to be waited for.
    fn seek_link(&mut self, to: SocketAddr, bench: &mut Bench) -> io::Result<bool> {
        if bench.shared.trunk.get().is_none() {
            return Ok(false);
        }
        let Some(source) = bench.source_across(to.ip()) else { return Ok(false) };
        let found = self.finds_link(to, bench);
        if found || self.needs_link(bench) {
            self.own = Some(socket::reserve(source)?);
        }
        Ok(!found && self.own.is_some())
    }

    /// It looks again and again whether there is a connection of the trunk.
    pub(super) fn wait_for_link(&mut self, bench: &Bench) {
        self.phase = Phase::Queueing;
        self.until(Some(bench.now + AGAIN));
    }

    /// Looks whether there is a connection of the trunk now; `None`: there is.
    pub(super) fn queue(&mut self, bench: &mut Bench) -> Option<Next> {
        let Some(to) = self.server_address else { return Some(Next::Closed) };
        if self.finds_link(to, bench) {
            self.found = Some(Ok(to));
            self.phase = Phase::LookingUp;
            return None;
        }
        if bench.now > self.born + self.settings.connect_timeout {
            return Some(self.unreached(
                Reached::TimedOut,
                bench,
                &"the trunk is down, and without it nothing would be encrypted",
            ));
        }
        self.wait_for_link(bench);
        Some(Next::Wait)
    }

    /// By a connection of the trunk: it is open, so bytes follow at once.
    fn go(&mut self, mut link: Warm, to: SocketAddr, bench: &mut Bench) -> io::Result<()> {
        self.tell_server_leg(&link.socket, bench);
        let speaker = match &self.own {
            Some(own) => socket::local(own.as_fd())?,
            None => self.client_address,
        };
        let going = words::go(words::Going { ends: (speaker, to), mark: self.mark });
        // A server that speaks first is not to wait for a client that waits for it.
        if socket::has_input(self.client.as_fd()) {
            link.say_later(&going)?;
        } else {
            link.say(&going)?;
        }
        self.by_trunk = true;
        match link.seal {
            Some(seal) => self.sealed = Some(Box::new(Sealed::new(seal, true))),
            None => self.stores[1].preface = true,
        }
        self.adopt(link.socket, to, bench)?;
        self.start(bench)
    }

    /// From the client's address, but another port.
    fn open_elsewhere(&mut self, to: SocketAddr, bench: &mut Bench) -> io::Result<()> {
        let server =
            socket::for_leg(&to, self.settings.server_leg(self.kind), &self.settings.common)?;
        socket::make_transparent(server.as_fd(), to.is_ipv4())?;
        bind(&server, &SocketAddr::new(self.client_address.ip(), 0))?;
        self.tell_server_leg(&server, bench);
        match connect(&server, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => self.adopt(server, to, bench),
            Err(why) => Err(why.into()),
        }
    }

    /// Before it sends anything: whose it is, and whether it is urgent.
    fn tell_server_leg(&self, server: &OwnedFd, bench: &Bench) {
        self.mark(server.as_fd());
        if !self.kind.comes_across() {
            self.share(server.as_fd(), bench);
        }
    }

    fn adopt(&mut self, server: OwnedFd, to: SocketAddr, bench: &mut Bench) -> io::Result<()> {
        if self.kind == Kind::Explicit && !self.by_trunk {
            let leg = (socket::local(server.as_fd())?, to);
            bench.shared.opened(leg);
            self.leg = Some(leg);
        }
        self.heard[1] = Heard::default();
        watch(bench.epoll.as_fd(), &server, self.token | 1)?;
        self.server = Some(server);
        Ok(())
    }

    fn connect_early(
        &mut self,
        server: &OwnedFd,
        to: SocketAddr,
        bench: &mut Bench,
        seen: usize,
    ) -> Result<(), Errno> {
        if socket::allow_early(server.as_fd()).is_err() {
            return connect(server, &to);
        }
        let flags = SendFlags::NOSIGNAL
            | SendFlags::DONTWAIT
            | SendFlags::from_bits_retain(libc::MSG_FASTOPEN as u32);
        match sendto(server, &bench.scratch[..seen], flags, &to) {
            Ok(sent) => {
                self.ways[0].count(sent);
                bench.shared.metrics.early.one();
                bench.shared.metrics.to_server.add(sent as u64);
                // Whatever comes after these will be heard of; what is there already is not. A SYN
                // has room for fewer than were offered where packets are small.
                self.heard[0].readable = sent < seen || sent == EARLY || self.heard[0].ending;
                self.use_up(sent, bench).map_err(|_| Errno::CONNRESET)
            }
            // The kernel does not do it: net.ipv4.tcp_fastopen.
            Err(Errno::OPNOTSUPP) => connect(server, &to),
            Err(why) => Err(why),
        }
    }

    /// Both legs are there.
    pub(super) fn start(&mut self, bench: &mut Bench) -> io::Result<()> {
        let Some(server) = &self.server else { return Err(io::ErrorKind::NotConnected.into()) };
        if self.kind == Kind::Explicit {
            let seen_as = socket::local(self.own.as_ref().unwrap_or(server).as_fd()).ok();
            let answer = self.negotiation.outcome(Reached::Yes, seen_as);
            let sent = send(&self.client, &answer, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
            if sent != answer.len() {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        self.phase = Phase::Open;
        self.moved = bench.now;
        self.until(None);
        self.watch_idleness();
        // What the client sent after its request was looked at with it.
        self.heard[0].readable |= self.kind == Kind::Explicit;
        Ok(())
    }
}
