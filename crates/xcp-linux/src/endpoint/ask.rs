//! What is asked of an endpoint: whose connections, and how they behave.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use crate::shared::{xcp_ask, xcp_ask_flags};

/// What a connection goes on with where XCP is not understood, unless another one is named.
pub const FALLBACK: &str = "cubic";

/// Settings of an endpoint.
#[derive(Debug, Clone)]
pub struct EndpointConfig {
    /// The congestion control's name, 1 to 15 characters. Names belong to the machine, not to a
    /// network namespace.
    pub name: String,
    /// What a connection goes on with where XCP is not understood.
    pub fallback: String,
    /// Who gets XCP without asking.
    pub give: Give,
    /// For sockets without a wish of their own.
    pub ask: Ask,
    /// First advertised window of every connection in the cgroup, segments; 0 leaves it to the
    /// kernel, which opens it over half a second.
    pub receive_window: u32,
    /// How many subscribers are told apart, those heard of last
    /// ([`Endpoint::subscribers`](super::Endpoint::subscribers)).
    pub subscribers: u32,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            name: "xcp".into(),
            fallback: FALLBACK.into(),
            give: Give::All,
            ask: Ask::default(),
            receive_window: 2000,
            subscribers: 1,
        }
    }
}

/// Who gets XCP without asking. An application that chose a congestion control keeps it;
/// connections to the host itself never get XCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Give {
    /// Nobody: only sockets that ask by `setsockopt(TCP_CONGESTION)`.
    Nobody,
    /// Every connection of the cgroup.
    All,
    /// Connections with one of these ports at either end, or to one of these prefixes.
    Listed {
        /// TCP ports.
        ports: Vec<u16>,
        /// Addresses with the length of their network part.
        prefixes: Vec<(IpAddr, u8)>,
    },
}

/// What a first window may be, in packets, 0 being the kernel's: that many of the largest packets
/// there are still fit the 32 bits in which the kernel counts their bytes.
pub const FIRST_WINDOW: RangeInclusive<u32> = 0..=65_535;

/// How a connection is to behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// The 2005 format instead of the extended one. It is not negotiated: both ends must be set to
    /// it.
    pub classic: bool,
    /// Whether packets are spread over the round trip.
    pub paced: bool,
    /// Whether the sender tells routers what it will really send; `false` is the 2005 study's.
    pub honest: bool,
    /// Whether three duplicate ACKs halve the window.
    pub halve_on_loss: bool,
    /// First window, packets, within [`FIRST_WINDOW`]; 0: the kernel's.
    pub initial_window: u32,
    /// Bottleneck ids, for routers that shuffle only the flows they limit, if the peer understands
    /// them; and then the id of the sender's own access link, or 0 for none. The 2005 format has no
    /// room for them.
    pub ids: Option<u32>,
    /// Begin with what this host's router lends ([`Endpoint::lend`](super::Endpoint::lend)) instead
    /// of `initial_window`: for hosts that are the bottleneck themselves.
    pub start: bool,
    /// Longest time between retransmissions, ms, as long as round trips are shorter than half of
    /// it; 0: the kernel's. Linux 6.15.
    pub rto_max_ms: u32,
    /// The sender whose state is its rate (engine/robust_sender.h), for routers of the law
    /// `robust`: it is always paced, and does not go with the 2005 format, `honest` and
    /// `halve_on_loss`.
    pub robust: bool,
}

impl Default for Ask {
    fn default() -> Self {
        Self {
            classic: false,
            paced: true,
            honest: true,
            halve_on_loss: false,
            initial_window: 0,
            ids: None,
            start: false,
            rto_max_ms: 0,
            robust: false,
        }
    }
}

impl From<Ask> for xcp_ask {
    fn from(ask: Ask) -> Self {
        let flag = |on: bool, flag: xcp_ask_flags| if on { flag.0 } else { 0 };
        let flags = flag(ask.classic, xcp_ask_flags::XCP_ASK_CLASSIC)
            | flag(!ask.paced, xcp_ask_flags::XCP_ASK_UNPACED)
            | flag(!ask.honest, xcp_ask_flags::XCP_ASK_UNBOUNDED)
            | flag(ask.halve_on_loss, xcp_ask_flags::XCP_ASK_HALVE)
            | flag(ask.ids.is_some(), xcp_ask_flags::XCP_ASK_IDS)
            | flag(ask.start, xcp_ask_flags::XCP_ASK_START)
            | flag(ask.robust, xcp_ask_flags::XCP_ASK_ROBUST);
        Self {
            flags: xcp_ask_flags(flags),
            initial_window: ask.initial_window,
            own_id: ask.ids.unwrap_or(0),
            rto_max_ms: ask.rto_max_ms,
        }
    }
}

impl xcp_ask {
    pub(super) fn has(&self, flag: xcp_ask_flags) -> bool {
        self.flags.0 & flag.0 != 0
    }
}
