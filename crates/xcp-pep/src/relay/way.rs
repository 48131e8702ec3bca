//! One way of a connection as a state machine: what to do next, without any socket. What does the
//! reading and writing is a [`Medium`], so that the tests can put a model in its place.
//!
//! Bytes leave in the order in which they came, none twice, none left out: what is held is written
//! before anything more is read past the store's room. The end (FIN) goes after the last byte. An
//! error ends the way at once: what was delivered is a prefix of what was sent.

use std::io;

/// What came of an attempt to read.
#[derive(Debug)]
pub enum Filled {
    /// Bytes were read; `kept` of them are in the store, the others have been written on already.
    /// `dry`: there is no more for now.
    Some {
        /// Bytes read.
        read: usize,
        /// Of them, still held.
        kept: usize,
        /// Whether the source is known to be empty.
        dry: bool,
    },
    /// Nothing to read now, or no room in the store.
    Blocked,
    /// Nothing could be read because the sink takes nothing.
    SinkBlocked,
    /// The source has ended.
    End,
}

/// What reads, holds and writes.
pub trait Medium {
    /// Reads from the source into the store, at most `room` bytes. With an empty store it may write
    /// on directly.
    ///
    /// # Errors
    /// The source is broken, or the sink.
    fn fill(&mut self, room: usize, empty: bool) -> Result<Filled, Broken>;
    /// Writes from the store to the sink; `None` if the sink takes nothing now.
    ///
    /// # Errors
    /// The sink is broken.
    fn drain(&mut self, held: usize) -> Result<Option<usize>, Broken>;
    /// Tells the sink that nothing more comes. `false`: it takes nothing now, and is to be told
    /// later.
    ///
    /// # Errors
    /// The sink is broken.
    fn end(&mut self) -> Result<bool, Broken>;
    /// The store is empty and not needed for now.
    fn idle(&mut self);
}

/// Which side broke, and how.
#[derive(Debug)]
pub struct Broken {
    /// Whether it was the source.
    pub source: bool,
    /// The error with which it broke.
    pub why: io::Error,
}

/// What a way waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Bytes, or the end, at the source.
    Source,
    /// Room at the sink.
    Sink,
    /// Nothing: it has moved as much as it may at a time.
    Turn,
    /// Nothing: the end has been passed on.
    Done,
}

/// One way of a connection.
#[derive(Debug, Default)]
pub struct Way {
    /// Bytes in the store.
    held: usize,
    ended: bool,
    done: bool,
    /// Bytes written to the sink.
    passed: u64,
}

impl Way {
    /// Bytes that have been written to the sink.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Bytes that have been read and not written.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// Whether the source has ended.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Whether the end has been passed on.
    #[must_use]
    pub fn done(&self) -> bool {
        self.done
    }

    /// Counts bytes that went another way: those sent with the SYN.
    pub fn count(&mut self, bytes: usize) {
        self.passed += bytes as u64;
    }

    /// The sink is gone: nothing more goes this way.
    pub fn abandon(&mut self) {
        self.done = true;
        self.held = 0;
    }

    /// Moves what can be moved, at most about `turn` bytes, with at most `capacity` in the store.
    ///
    /// # Errors
    /// A side is broken.
    pub fn pump(
        &mut self,
        medium: &mut impl Medium,
        capacity: usize,
        turn: usize,
    ) -> Result<Wait, Broken> {
        if self.done {
            return Ok(Wait::Done);
        }
        let mut left = turn;
        let mut dry = false;
        loop {
            if self.held > 0 {
                let Some(written) = medium.drain(self.held)? else { return Ok(Wait::Sink) };
                self.held -= written.min(self.held);
                self.passed += written as u64;
                left = left.saturating_sub(written);
            }
            if self.held == 0 {
                if self.ended {
                    medium.idle();
                    if !medium.end()? {
                        return Ok(Wait::Sink);
                    }
                    self.done = true;
                    return Ok(Wait::Done);
                }
                if dry {
                    medium.idle();
                    return Ok(Wait::Source);
                }
            }
            if left == 0 {
                return Ok(Wait::Turn);
            }
            if self.ended || self.held >= capacity || dry {
                continue;
            }
            match medium.fill(capacity - self.held, self.held == 0)? {
                Filled::Some { read, kept, dry: empty } => {
                    self.held += kept;
                    let written = read - kept.min(read);
                    self.passed += written as u64;
                    left = left.saturating_sub(written);
                    dry = empty;
                }
                Filled::Blocked if self.held == 0 => {
                    medium.idle();
                    return Ok(Wait::Source);
                }
                // Either the source is empty or the store's slots are full of small pieces: both
                // are known when it has been drained.
                Filled::Blocked => {}
                Filled::SinkBlocked => return Ok(Wait::Sink),
                Filled::End => self.ended = true,
            }
        }
    }
}
