//! The one place where the lab meets our kernel programs: the endpoint that makes sockets speak XCP, the router at a queue.

use std::io;
use std::os::fd::BorrowedFd;

use xcp_scenario::model::Tcp;
use xcp_scenario::units::Nanos;

/// The endpoint's program, loaded for this lab.
#[derive(Debug)]
pub(crate) struct Endpoint {}

/// A connection as the endpoint's program sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub cwnd_packets: f64,
    pub srtt: Nanos,
    pub rtt_sum: u128,
    pub rtt_samples: u64,
}

impl Endpoint {
    /// Makes a socket that has not spoken yet speak XCP with these settings; what it accepts does, too.
    pub fn ask(&self, _: BorrowedFd<'_>, _: &Tcp) -> io::Result<()> {
        Err(io::Error::other("this version of the lab has no XCP endpoint"))
    }

    /// How a connection stands; `None` before it is one.
    pub fn flow(&self, _: BorrowedFd<'_>) -> Option<Reading> {
        None
    }
}
