//! Whose connections are, where a link is shared among those for whom a host sends rather than
//! among connections (`bpf/endpoint_share.h`).

use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};

use crate::error::{Error, Result};

/// Where it is said.
#[derive(Debug)]
pub struct Subscribers(MapHandle);

impl Subscribers {
    pub(crate) fn new(whose: MapHandle) -> Self {
        Self(whose)
    }

    /// A socket is this one's from now on: an address, or the first one of a network. What it sends
    /// counts together with what all of this one's send.
    ///
    /// # Errors
    /// Not a socket.
    pub fn add(&self, socket: BorrowedFd<'_>, whose: IpAddr) -> Result<()> {
        let address = match whose {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        self.0
            .update(&socket.as_raw_fd().to_ne_bytes(), &address.octets(), MapFlags::ANY)
            .map_err(|e| Error::because("cannot note whose a connection is", e))
    }
}
