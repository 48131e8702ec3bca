//! The one place where the lab meets our kernel programs: the endpoint that makes sockets speak XCP, the router at a queue.

use std::io;
use std::os::fd::BorrowedFd;

use xcp_engine::{RouterConfig, RouterState};
use xcp_scenario::model::Tcp;
use xcp_scenario::units::Nanos;

use crate::LabError;
use crate::home::Home;
use crate::plan::{DeviceId, Plan};
use crate::site::Site;

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

/// Why there is no XCP.
const ABSENT: &str = "this version of the lab has no XCP on Linux yet";

impl Endpoint {
    /// Loads it for sockets made in this lab's control group; `devices` are those by which its hosts send.
    pub fn load(_: &Home, _: &Site, _: &Plan, _: &[DeviceId]) -> Result<Self, LabError> {
        Err(LabError::Missing(ABSENT.into()))
    }

    /// Makes a socket that has not spoken yet speak XCP with these settings; what it accepts does, too.
    pub fn ask(&self, _: BorrowedFd<'_>, _: &Tcp) -> io::Result<()> {
        Err(io::Error::other(ABSENT))
    }

    /// How a connection stands; `None` before it is one.
    pub fn flow(&self, _: BorrowedFd<'_>) -> Option<Reading> {
        None
    }
}

/// The router's program at a device.
#[derive(Debug)]
pub(crate) struct Router {}

impl Router {
    /// Attaches it to the queue at a device.
    pub fn attach(_: &Site, _: &Plan, _: DeviceId, _: &RouterConfig, _: u64) -> Result<Self, LabError> {
        Err(LabError::Missing(ABSENT.into()))
    }

    /// The router's own variables; `None` if they cannot be read.
    pub fn state(&mut self) -> Option<RouterState> {
        None
    }
}
