//! Pipes: where bytes wait between two sockets. A connection has one only while bytes wait, so a
//! pool serves many; it is of a fixed size, which bounds what all connections together may hold.
//! When it is empty, bytes go by another way that needs none (`wire.rs`), slower but without
//! waiting.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// A kernel pipe through which bytes are spliced.
#[derive(Debug)]
pub struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl Pipe {
    /// The end to read from.
    pub fn reader(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }

    /// The end to write to.
    pub fn writer(&self) -> BorrowedFd<'_> {
        self.write.as_fd()
    }
}

/// The pipes that a worker lends to its connections.
#[derive(Debug)]
pub struct Pool {
    free: Vec<Pipe>,
    /// Bytes each holds.
    size: usize,
    /// Pipes in use.
    lent: usize,
    most: usize,
}

impl Pool {
    /// Makes as many pipes as fit into `memory` bytes: before privileges are dropped, since users'
    /// pipes are limited (`fs.pipe-user-pages-soft`). Fewer and smaller ones if the kernel allows
    /// no more; none is no error.
    #[must_use]
    pub fn new(size: usize, memory: usize) -> Self {
        let most = (memory / size.max(1)).max(1);
        let mut pool = Self { free: Vec::with_capacity(most), size, lent: 0, most: 0 };
        for _ in 0..most {
            match pool.make() {
                Ok(pipe) => pool.free.push(pipe),
                Err(_) => break,
            }
        }
        pool.most = pool.free.len();
        pool
    }

    fn make(&mut self) -> io::Result<Pipe> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Past the soft limit a pipe has two pages, and cannot be made larger: then there are
        // enough of them.
        fcntl_setpipe_size(&write, self.size)?;
        Ok(Pipe { read, write })
    }

    /// Pipes there are, and how many are in use.
    #[must_use]
    pub fn use_of(&self) -> (usize, usize) {
        (self.most, self.lent)
    }

    /// Lends a pipe; `None` if none is free.
    pub fn lend(&mut self) -> Option<Pipe> {
        let pipe = self.free.pop()?;
        self.lent += 1;
        Some(pipe)
    }

    /// Takes one back, empty.
    pub fn give_back(&mut self, pipe: Pipe) {
        self.lent -= 1;
        self.free.push(pipe);
    }

    /// One that was lent holds bytes that nobody wants any more: another takes its place.
    pub fn discard(&mut self, pipe: Pipe) {
        drop(pipe);
        self.lent -= 1;
        match self.make() {
            Ok(fresh) => self.free.push(fresh),
            Err(_) => self.most -= 1,
        }
    }
}
