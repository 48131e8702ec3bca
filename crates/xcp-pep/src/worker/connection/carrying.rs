//! A connection from where both legs are there to its end: bytes both ways, a side that breaks, and
//! last words that are still on their way.

use std::io;
use std::os::fd::AsFd as _;

use rustix::io::Errno;
use rustix::net::sockopt;

use super::{Bench, CLIENT, Connection, Next, Phase, SERVER};
use crate::listen::Reached;
use crate::relay::sealed::{Closing, Opening};
use crate::relay::way::{Broken, Wait};
use crate::relay::wire::Sockets;
use crate::settings::Kind;
use crate::socket;

/// Moved in one turn, so that others get theirs.
const TURN: usize = 1 << 20;

impl Connection {
    pub(super) fn watch_idleness(&mut self) {
        if !self.settings.idle_timeout.is_zero() {
            self.until(Some(self.moved + self.settings.idle_timeout));
        }
    }

    /// Whether nothing has moved for too long; else it is to be looked at again later.
    pub(super) fn is_idle(&mut self, bench: &Bench) -> bool {
        if self.settings.idle_timeout.is_zero()
            || bench.now < self.moved + self.settings.idle_timeout
        {
            self.watch_idleness();
            return false;
        }
        true
    }

    pub(super) fn relay(&mut self, bench: &mut Bench) -> Next {
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
            let (source, sink) = (sockets[from], sockets[to]);
            let (store, pool) = (&mut self.stores[from], &mut bench.pool);
            let (scratch, held) = (&mut bench.scratch[..], self.settings.held);
            let across = if self.kind == Kind::FromTrunk { CLIENT } else { SERVER };
            let result = match self.sealed.as_deref_mut() {
                Some(sealed) if to == across => way.pump(
                    &mut Closing { source, sink, sealed, store, pool, scratch },
                    held,
                    TURN,
                ),
                Some(sealed) => way.pump(
                    &mut Opening { source, sink, sealed, store, pool, scratch },
                    held,
                    TURN,
                ),
                None => {
                    let ending = self.heard[from].ending;
                    way.pump(
                        &mut Sockets { source, sink, store, pool, scratch, ending },
                        held,
                        TURN,
                    )
                }
            };
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
        // What was heard has been acted on; edges to come will be heard anew. A way that waits for
        // something that was heard has tried it.
        for heard in &mut self.heard {
            heard.readable = false;
            heard.writable = false;
        }
        if let Some((side, why)) = broken {
            return self.broken(bench, side, &why);
        }
        if self.waits[SERVER] == Wait::Sink
            && let Err(why) = self.watch_room(bench)
        {
            return self.broken(bench, CLIENT, &why);
        }
        if self.waits == [Wait::Done; 2] {
            self.phase = Phase::Ending;
            self.until(None);
            return self.end(bench);
        }
        if again { Next::Turn } else { Next::Wait }
    }

    /// Looks at errors of sockets that were heard of; `None`: go on.
    pub(super) fn look_for_breaks(&mut self, bench: &mut Bench) -> Option<Next> {
        let side = self.heard.iter().position(|heard| heard.broken)?;
        self.heard[side].broken = false;
        let socket = if side == CLIENT { &self.client } else { self.server.as_ref()? };
        let why = sockopt::socket_error(socket)
            .map_or_else(io::Error::from, |e| e.err().unwrap_or(Errno::CONNRESET).into());
        if side == SERVER && matches!(self.phase, Phase::Connecting(_)) {
            return Some(self.unreached(Reached::of(&why), bench, &why));
        }
        Some(self.broken(bench, side, &why))
    }

    /// A side is broken. If it had ended before, all that it said is here and is delivered still: a
    /// server that has closed answers nothing but resets soon after (tcp_fin_timeout), while its
    /// last words may be on the long link for minutes.
    pub(super) fn broken(&mut self, bench: &mut Bench, side: usize, why: &io::Error) -> Next {
        tracing::debug!(number = self.number, side = if side == CLIENT { "client" } else { "server" }, %why, "a side broke");
        // A reset after a FIN, be that one read or still in the socket's queue, is told as EPIPE
        // (tcp_reset).
        let had_ended = self.ways[side].ended() || why.raw_os_error() == Some(libc::EPIPE);
        match self.phase {
            Phase::Open if had_ended => {
                self.gone[side] = true;
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

    /// Lets go of it when both peers have what was sent. Until then it is this process's, so that
    /// it is seen, waited for by who drains, and broken rather than left half-way where the process
    /// is killed.
    pub(super) fn end(&mut self, bench: &mut Bench) -> Next {
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
        // Where both have ended by themselves nothing is left that could be reset.
        let over = self.gone == [false; 2];
        self.close(bench, over);
        Next::Closed
    }

    fn reset(&mut self, bench: &mut Bench) -> Next {
        bench.shared.metrics.reset.one();
        self.count_end(bench);
        self.close(bench, true);
        Next::Closed
    }

    pub(super) fn count_end(&self, bench: &Bench) {
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

    pub(super) fn drop_server(&mut self, bench: &mut Bench) {
        if let Some(leg) = self.leg.take() {
            bench.shared.closed(&leg);
        }
        if let Some(ends) = self.paired.take() {
            bench.shared.confirmed.over(&ends);
        }
        self.server = None;
    }

    /// Lets go of everything; the sockets close when the value is dropped.
    pub(in crate::worker) fn close(&mut self, bench: &mut Bench, reset: bool) {
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
}
