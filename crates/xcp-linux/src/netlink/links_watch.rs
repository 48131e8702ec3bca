//! Being told when network devices come, go or change. What they are then is asked (`links.rs`).

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use super::{Error, Result};

/// `RTMGRP_LINK` (linux/rtnetlink.h).
const LINKS: u32 = 1;

/// A socket at which there is something to read when a device of the network namespace has changed.
#[derive(Debug)]
pub struct Links(Socket);

impl Links {
    /// In the calling thread's network namespace.
    ///
    /// # Errors
    /// No socket.
    pub fn open() -> Result<Self> {
        let opened = || -> io::Result<Socket> {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind(&SocketAddr::new(0, LINKS))?;
            Ok(socket)
        };
        opened().map(Self).map_err(|e| Error::new("listen for network devices that come and go", e))
    }

    /// Takes what there is to read, whatever it says; it may have been too much for the kernel to
    /// keep.
    pub fn forget(&mut self) {
        let mut buffer = [0; 1024];
        loop {
            match self.0.recv(&mut &mut buffer[..], libc::MSG_DONTWAIT | libc::MSG_TRUNC) {
                Ok(_) => {}
                Err(e)
                    if e.kind() == io::ErrorKind::Interrupted
                        || e.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(_) => return,
            }
        }
    }
}

impl AsFd for Links {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket is open as long as this value is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.0.as_raw_fd()) }
    }
}
