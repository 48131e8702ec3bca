//! A [`Medium`] of two sockets of which one is encrypted: a connection of the trunk's
//! (`trunk/seal.rs`). Bytes are copied, and wait in buffers of the connection's own. A pipe of the
//! pool is lent for them all the same, so that all connections together hold what they may;
//! without one, little is held.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::pipe::Pool;
use super::way::{Broken, Filled, Medium};
use super::wire::{COPY, SEND, Store, again, at_mark, ready, shut, sink, source};
use crate::trunk::seal::{Kind, MOST, Seal};
use crate::trunk::words;

/// A buffer that has grown beyond this is given back when it is empty.
const KEPT: usize = 2 * COPY;

/// Keys and buffers of a connection of the trunk's, both ways.
#[derive(Debug)]
pub struct Sealed {
    seal: Box<Seal>,
    /// Frames on their way to the other gateway: bytes, how many of them are sent, and what each
    /// frame takes and what of a client's or server's is in it.
    frames: Vec<u8>,
    sent: usize,
    lengths: VecDeque<(usize, usize)>,
    /// The end is among them.
    closing: bool,
    /// What came from the other gateway: what is no whole frame yet, and what was in those that
    /// were.
    raw: Vec<u8>,
    opened: Vec<u8>,
    given: usize,
    urgent: Option<u8>,
    ended: bool,
    /// The other gateway's word goes before the server's bytes.
    preface: bool,
}

impl Sealed {
    /// `preface`: the other gateway is to say that it has the connection.
    #[must_use]
    pub fn new(seal: Box<Seal>, preface: bool) -> Self {
        Self {
            seal,
            frames: Vec::new(),
            sent: 0,
            lengths: VecDeque::new(),
            closing: false,
            raw: Vec::new(),
            opened: Vec::new(),
            given: 0,
            urgent: None,
            ended: false,
            preface,
        }
    }

    fn close(&mut self, kind: Kind, bytes: &[u8]) -> io::Result<()> {
        let before = self.frames.len();
        self.seal.close(kind, bytes, &mut self.frames)?;
        self.lengths.push_back((self.frames.len() - before, bytes.len()));
        Ok(())
    }

    /// Sends frames; returns how many bytes of the client's or server's went with those that are
    /// gone.
    fn flush(&mut self, to: BorrowedFd<'_>) -> rustix::io::Result<usize> {
        let mut gone = 0;
        while self.sent < self.frames.len() {
            let Some(mut wrote) = ready(again(|| send(to, &self.frames[self.sent..], SEND)))?
            else {
                break;
            };
            self.sent += wrote;
            while let Some((left, inner)) = self.lengths.front_mut() {
                if *left > wrote {
                    *left -= wrote;
                    break;
                }
                wrote -= *left;
                gone += *inner;
                self.lengths.pop_front();
            }
        }
        if self.sent == self.frames.len() {
            empty(&mut self.frames);
            self.sent = 0;
        }
        Ok(gone)
    }

    /// Whether everything was sent.
    fn is_flushed(&self) -> bool {
        self.frames.is_empty()
    }
}

/// Empties a buffer, and gives back what it has grown by.
fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.shrink_to(KEPT);
}

fn forged(why: &io::Error) -> Broken {
    tracing::warn!(%why, "data that arrived through the trunk were changed on the way");
    source(Errno::CONNRESET)
}

/// From a client or server to the other gateway.
pub struct Closing<'a> {
    /// Socket from which bytes are read.
    pub source: BorrowedFd<'a>,
    /// Write to it, in frames.
    pub sink: BorrowedFd<'a>,
    /// Keys and buffers of the encrypted leg.
    pub sealed: &'a mut Sealed,
    /// Bytes held between turns.
    pub store: &'a mut Store,
    /// Pool of the worker's pipes.
    pub pool: &'a mut Pool,
    /// [`COPY`] bytes to copy through.
    pub scratch: &'a mut [u8],
}

/// Room for what is held: as much as may be where there is a pipe left, else a little.
fn room_with(store: &mut Store, pool: &mut Pool, room: usize) -> usize {
    if store.pipe.is_none() {
        store.pipe = pool.lend();
    }
    if store.pipe.is_some() { room } else { room.min(MOST) }
}

fn give_back(store: &mut Store, pool: &mut Pool) {
    if let Some(pipe) = store.pipe.take() {
        pool.give_back(pipe);
    }
}

impl Medium for Closing<'_> {
    fn fill(&mut self, room: usize, empty: bool) -> Result<Filled, Broken> {
        if !empty && self.store.pipe.is_none() {
            return Ok(Filled::Blocked);
        }
        let room = room_with(self.store, self.pool, room).min(self.scratch.len());
        // recv(2) stops before an urgent byte if it has read something, and after it if not.
        let urgent = (self.store.urgent || self.store.unsure) && at_mark(self.source);
        self.store.unsure = true;
        let length = if urgent { 1 } else { room };
        let buffer = &mut self.scratch[..length];
        let Some((read, _)) = ready(again(|| recv(self.source, &mut *buffer, RecvFlags::DONTWAIT)))
            .map_err(source)?
        else {
            return Ok(Filled::Blocked);
        };
        if read == 0 {
            return Ok(Filled::End);
        }
        let kind = if urgent { Kind::Urgent } else { Kind::Data };
        self.store.urgent &= !urgent;
        for part in self.scratch[..read].chunks(MOST) {
            self.sealed.close(kind, part).map_err(|_| sink(Errno::PROTO))?;
        }
        // Whether there is more is known from an attempt to read it.
        Ok(Filled::Some { read, kept: read, dry: false })
    }

    fn drain(&mut self, _held: usize) -> Result<Option<usize>, Broken> {
        let gone = self.sealed.flush(self.sink).map_err(sink)?;
        Ok((gone > 0 || self.sealed.is_flushed()).then_some(gone))
    }

    fn end(&mut self) -> Result<bool, Broken> {
        if !self.sealed.closing {
            self.sealed.closing = true;
            self.sealed.close(Kind::End, &[]).map_err(|_| sink(Errno::PROTO))?;
        }
        self.sealed.flush(self.sink).map_err(sink)?;
        if self.sealed.is_flushed() { shut(self.sink).map(|()| true) } else { Ok(false) }
    }

    fn idle(&mut self) {
        self.store.unsure = false;
        give_back(self.store, self.pool);
    }
}

/// From the other gateway to a client or server.
pub struct Opening<'a> {
    /// Read frames from it.
    pub source: BorrowedFd<'a>,
    /// Socket to which bytes are written.
    pub sink: BorrowedFd<'a>,
    /// Keys and buffers of the encrypted leg.
    pub sealed: &'a mut Sealed,
    /// Bytes held between turns.
    pub store: &'a mut Store,
    /// Pool of the worker's pipes.
    pub pool: &'a mut Pool,
    /// [`COPY`] bytes to copy through.
    pub scratch: &'a mut [u8],
}

impl Opening<'_> {
    /// Opens the frames that are there, until there is as much as may be, or something that is no
    /// bytes. Returns how many bytes were in them.
    fn open(&mut self, room: usize) -> Result<usize, Broken> {
        let Sealed { seal, raw, opened, urgent, ended, preface, .. } = &mut *self.sealed;
        let (mut used, mut got) = (0, 0);
        while got < room {
            let before = opened.len();
            let Some((kind, length)) =
                seal.open(&raw[used..], opened).map_err(|why| forged(&why))?
            else {
                break;
            };
            used += length;
            let inner = opened.len() - before;
            match kind {
                Kind::Data if !*preface => got += inner,
                Kind::Urgent if inner == 1 && !*preface => {
                    *urgent = opened.pop();
                    break;
                }
                Kind::End if !*preface => {
                    *ended = true;
                    break;
                }
                Kind::Word if *preface => match opened.pop() {
                    Some(words::OPEN) => *preface = false,
                    Some(words::LEAVING) => {}
                    _ => return Err(source(Errno::CONNRESET)),
                },
                // Who ends without having said that it has the connection has not ended as a
                // server does.
                _ => return Err(source(Errno::CONNRESET)),
            }
        }
        raw.drain(..used);
        if raw.is_empty() {
            empty(raw);
        }
        Ok(got)
    }

    /// The other gateway has said the end, which TCP's follows.
    fn end_of_source(&mut self) -> Result<Filled, Broken> {
        let byte = &mut self.scratch[..1];
        match ready(again(|| recv(self.source, &mut *byte, RecvFlags::DONTWAIT))).map_err(source)? {
            None => Ok(Filled::Blocked),
            Some((0, _)) => Ok(Filled::End),
            Some(_) => Err(source(Errno::CONNRESET)),
        }
    }
}

impl Medium for Opening<'_> {
    fn fill(&mut self, room: usize, empty: bool) -> Result<Filled, Broken> {
        if !empty && self.store.pipe.is_none() {
            return Ok(Filled::Blocked);
        }
        let room = room_with(self.store, self.pool, room);
        loop {
            if let Some(byte) = self.sealed.urgent {
                if !empty {
                    return Ok(Filled::Blocked);
                }
                let sent = ready(again(|| send(self.sink, &[byte], SEND | SendFlags::OOB)));
                if sent.map_err(sink)?.is_none() {
                    return Ok(Filled::SinkBlocked);
                }
                self.sealed.urgent = None;
                return Ok(Filled::Some { read: 1, kept: 0, dry: false });
            }
            if self.sealed.ended {
                return self.end_of_source();
            }
            let got = self.open(room)?;
            if got > 0 {
                return Ok(Filled::Some { read: got, kept: got, dry: false });
            }
            if self.sealed.urgent.is_some() || self.sealed.ended {
                continue;
            }
            let buffer = &mut *self.scratch;
            match ready(again(|| recv(self.source, &mut *buffer, RecvFlags::DONTWAIT)))
                .map_err(source)?
            {
                None => return Ok(Filled::Blocked),
                // An end that the other gateway has not said is somebody else's.
                Some((0, _)) => return Err(source(Errno::CONNRESET)),
                Some((read, _)) => self.sealed.raw.extend_from_slice(&self.scratch[..read]),
            }
        }
    }

    fn drain(&mut self, _held: usize) -> Result<Option<usize>, Broken> {
        let Sealed { opened, given, .. } = &mut *self.sealed;
        let wrote = ready(again(|| send(self.sink, &opened[*given..], SEND))).map_err(sink)?;
        *given += wrote.unwrap_or(0);
        if *given == opened.len() {
            empty(opened);
            *given = 0;
        }
        Ok(wrote)
    }

    fn end(&mut self) -> Result<bool, Broken> {
        shut(self.sink).map(|()| true)
    }

    fn idle(&mut self) {
        give_back(self.store, self.pool);
    }
}
