//! A [`Medium`] of two sockets. Little at a time is copied: one system call reads it, one writes
//! it, and both know when there is no more. Much is spliced through a pipe. Where the pool has no
//! pipe left, bytes are looked at where they lie in the source's queue, written, and only then
//! taken out of it. TCP's urgent byte, which splice(2) would stop at for ever, is sent on as one.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use rustix::pipe::{SpliceFlags, splice};

use super::pipe::{Pipe, Pool};
use super::way::{Broken, Filled, Medium};
use crate::trunk::words;

/// What is read by copying; more than this at once makes a way splice.
pub const COPY: usize = 16 * 1024;

/// What belongs to a way between its turns.
#[derive(Debug, Default)]
pub struct Store {
    pub(super) pipe: Option<Pipe>,
    bulk: bool,
    /// The source has told of an urgent byte.
    pub urgent: bool,
    /// What was read last may have ended at one that it has not told of yet.
    pub(super) unsure: bool,
    /// The other gateway's word goes before the source's bytes (`trunk/words.rs`).
    pub preface: bool,
}

impl Store {
    /// Returns the pipe, whatever is in it.
    pub fn clear(&mut self, pool: &mut Pool) {
        if let Some(pipe) = self.pipe.take() {
            pool.discard(pipe);
        }
    }
}

/// Two sockets, the store between them, and what the worker lends.
pub struct Sockets<'a> {
    /// Socket from which bytes are read.
    pub source: BorrowedFd<'a>,
    /// Socket to which bytes are written.
    pub sink: BorrowedFd<'a>,
    /// Bytes held between turns.
    pub store: &'a mut Store,
    /// Pool of the worker's pipes.
    pub pool: &'a mut Pool,
    /// [`COPY`] bytes to copy through.
    pub scratch: &'a mut [u8],
    /// Whether the source is known to have ended, so that a short read does not mean that nothing
    /// follows.
    pub ending: bool,
}

/// asm-generic/sockios.h.
const SIOCATMARK: libc::Ioctl = 0x8905;
pub(super) const SEND: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
const SPLICE: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);

pub(super) fn source(why: Errno) -> Broken {
    Broken { source: true, why: why.into() }
}

pub(super) fn sink(why: Errno) -> Broken {
    Broken { source: false, why: why.into() }
}

/// `None` where it would have to wait.
pub(super) fn ready<T>(result: rustix::io::Result<T>) -> rustix::io::Result<Option<T>> {
    match result {
        Ok(done) => Ok(Some(done)),
        Err(Errno::AGAIN) => Ok(None),
        Err(why) => Err(why),
    }
}

pub(super) fn again<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// Ends a sink.
pub(super) fn shut(socket: BorrowedFd<'_>) -> Result<(), Broken> {
    match shutdown(socket, Shutdown::Write) {
        // Reset meanwhile: the sink's own event tells.
        Ok(()) | Err(Errno::NOTCONN) => Ok(()),
        Err(why) => Err(sink(why)),
    }
}

/// Takes bytes that have been looked at out of a socket's queue.
pub(super) fn take(
    socket: BorrowedFd<'_>,
    scratch: &mut [u8],
    length: usize,
) -> Result<(), Broken> {
    let mut left = length;
    while left > 0 {
        let buffer = &mut scratch[..left];
        let (taken, _) =
            again(|| recv(socket, &mut *buffer, RecvFlags::DONTWAIT)).map_err(source)?;
        if taken == 0 {
            return Err(source(Errno::CONNRESET));
        }
        left -= taken;
    }
    Ok(())
}

/// Whether the next byte of a socket is its urgent one.
pub(super) fn at_mark(socket: BorrowedFd<'_>) -> bool {
    let mut at_mark: libc::c_int = 0;
    // SAFETY: an open socket; the argument is an int that outlives the call.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCATMARK, &raw mut at_mark) };
    done >= 0 && at_mark != 0
}

impl Sockets<'_> {
    fn copy(&mut self, room: usize) -> Result<Filled, Broken> {
        let length = room.min(self.scratch.len());
        let buffer = &mut self.scratch[..length];
        let Some((read, _)) = ready(again(|| recv(self.source, &mut *buffer, RecvFlags::DONTWAIT)))
            .map_err(source)?
        else {
            return Ok(Filled::Blocked);
        };
        if read == 0 {
            return Ok(Filled::End);
        }
        let short = read < length && !self.ending && !self.store.urgent;
        self.store.bulk = read == length;
        let bytes = &self.scratch[..read];
        // Where the end has come, too, it is read next, and goes in the segment of these bytes.
        let flags = if self.ending { SEND | SendFlags::MORE } else { SEND };
        let written = ready(again(|| send(self.sink, bytes, flags))).map_err(sink)?.unwrap_or(0);
        let rest = &bytes[written..];
        if !rest.is_empty() {
            let Some(pipe) = self.store.pipe.as_ref() else { return Err(sink(Errno::NOBUFS)) };
            // An empty pipe takes more than is copied at a time, whole.
            let kept = again(|| rustix::io::write(pipe.writer(), rest)).map_err(sink)?;
            if kept != rest.len() {
                return Err(sink(Errno::NOBUFS));
            }
        }
        Ok(Filled::Some { read, kept: read - written, dry: short })
    }

    /// Takes the other gateway's word that it has the connection. Who ends without one has not
    /// ended as a server does.
    fn preface(&mut self) -> Result<bool, Broken> {
        while self.store.preface {
            let byte = &mut self.scratch[..1];
            let got = ready(again(|| recv(self.source, &mut *byte, RecvFlags::DONTWAIT)));
            match got.map_err(source)? {
                None => return Ok(false),
                Some((1, _)) if self.scratch[0] == words::OPEN => self.store.preface = false,
                Some((1, _)) if self.scratch[0] == words::LEAVING => {}
                Some(_) => return Err(source(Errno::CONNRESET)),
            }
        }
        Ok(true)
    }

    /// Needs no store.
    fn look_and_take(&mut self) -> Result<Filled, Broken> {
        let buffer = &mut self.scratch[..];
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        let Some((seen, _)) =
            ready(again(|| recv(self.source, &mut *buffer, flags))).map_err(source)?
        else {
            return Ok(Filled::Blocked);
        };
        if seen == 0 {
            return Ok(Filled::End);
        }
        let Some(written) =
            ready(again(|| send(self.sink, &self.scratch[..seen], SEND))).map_err(sink)?
        else {
            return Ok(Filled::SinkBlocked);
        };
        take(self.source, self.scratch, written)?;
        Ok(Filled::Some { read: written, kept: 0, dry: false })
    }

    /// At the mark: one byte, sent on as urgent. What is before the mark is copied as usual;
    /// reading stops there by itself.
    fn urgent(&mut self) -> Result<Option<Filled>, Broken> {
        if !at_mark(self.source) {
            return Ok(None);
        }
        let byte = &mut self.scratch[..1];
        let Some((seen, _)) =
            ready(again(|| recv(self.source, &mut *byte, RecvFlags::DONTWAIT | RecvFlags::PEEK)))
                .map_err(source)?
        else {
            return Ok(Some(Filled::Blocked));
        };
        self.store.urgent = false;
        if seen == 0 {
            return Ok(Some(Filled::End));
        }
        let Some(_) = ready(again(|| send(self.sink, &self.scratch[..1], SEND | SendFlags::OOB)))
            .map_err(sink)?
        else {
            self.store.urgent = true;
            return Ok(Some(Filled::SinkBlocked));
        };
        take(self.source, self.scratch, 1)?;
        Ok(Some(Filled::Some { read: 1, kept: 0, dry: false }))
    }
}

impl Medium for Sockets<'_> {
    fn fill(&mut self, room: usize, empty: bool) -> Result<Filled, Broken> {
        if self.store.preface && !self.preface()? {
            return Ok(Filled::Blocked);
        }
        if self.store.pipe.is_none() {
            self.store.pipe = self.pool.lend();
        }
        let spliced = self.store.pipe.is_some() && self.store.bulk && !self.store.urgent;
        // splice(2) stops at the mark; recv(2) only if it has read something before.
        if empty && (self.store.urgent || self.store.unsure && !spliced) {
            if let Some(done) = self.urgent()? {
                return Ok(done);
            }
        } else if self.store.urgent {
            return Ok(Filled::Blocked);
        }
        self.store.unsure = true;
        let Some(pipe) = self.store.pipe.as_ref() else { return self.look_and_take() };
        if empty && (!self.store.bulk || self.store.urgent) {
            return self.copy(room);
        }
        match ready(again(|| splice(self.source, None, pipe.writer(), None, room, SPLICE)))
            .map_err(source)?
        {
            None => Ok(Filled::Blocked),
            // The end, or an urgent byte before the end, at which splice(2) stops, too: recv(2)
            // tells.
            Some(0) => {
                self.store.bulk = false;
                if !empty {
                    return Ok(Filled::Blocked);
                }
                match self.urgent()? {
                    Some(done) => Ok(done),
                    None => self.copy(room),
                }
            }
            Some(read) => {
                self.store.bulk = read >= COPY;
                Ok(Filled::Some { read, kept: read, dry: false })
            }
        }
    }

    fn drain(&mut self, held: usize) -> Result<Option<usize>, Broken> {
        let Some(pipe) = self.store.pipe.as_ref() else { return Err(sink(Errno::NOBUFS)) };
        ready(again(|| splice(pipe.reader(), None, self.sink, None, held, SPLICE))).map_err(sink)
    }

    fn end(&mut self) -> Result<bool, Broken> {
        shut(self.sink).map(|()| true)
    }

    fn idle(&mut self) {
        self.store.unsure = false;
        if let Some(pipe) = self.store.pipe.take() {
            self.pool.give_back(pipe);
        }
    }
}
