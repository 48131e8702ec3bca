//! What the data path is told, and may be told anew while it works: connections that are there keep
//! what they began with.

use std::time::Duration;

use xcp_linux::urgent::Urgent;

use crate::listen::access::Access;
use crate::share::Share;
use crate::socket::{Common, Leg};

/// Where a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Diverted on its way from the LAN across the long link.
    FromLan,
    /// Diverted as it came across the long link.
    FromWan,
    /// Of a client of the other gateway's, on a connection of the trunk.
    FromTrunk,
    /// Of a client that knows of the proxy.
    Explicit,
}

impl Kind {
    /// Whether the client is on the other side of the long link.
    #[must_use]
    pub fn comes_across(self) -> bool {
        matches!(self, Self::FromWan | Self::FromTrunk)
    }
}

/// Settings of the data path.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Settings of every socket.
    pub common: Common,
    /// Of sockets towards the LAN.
    pub lan: Leg,
    /// Of sockets towards the long link.
    pub wan: Leg,
    /// Whether the client's first bytes go with the SYN across the long link.
    pub early: bool,
    /// How long they are waited for: where the server speaks first, none come.
    pub early_wait: Duration,
    /// How long to try to reach a server before giving up, beside the kernel's own time.
    pub connect_timeout: Duration,
    /// How long a client may take to say where it wants to go.
    pub greeting_timeout: Duration,
    /// Connections on which nothing moved for so long are reset; zero: never, as TCP.
    pub idle_timeout: Duration,
    /// Connections at the most, of all workers; more are refused.
    pub connections: usize,
    /// Whom the explicit listener answers, and where it goes.
    pub access: Access,
    /// Who has a share of the long link.
    pub share: Share,
    /// What goes first on it.
    pub urgent: Option<Urgent>,
    /// Bytes that one way of a connection may hold.
    pub held: usize,
}

/// What holds where nothing was asked for (`options/meaning.rs`); what depends on the link is
/// nothing here.
impl Default for Settings {
    fn default() -> Self {
        Self {
            common: Common { mark: 0, keepalive: 60, give_up_ms: 900_000 },
            lan: Leg::default(),
            wan: Leg::default(),
            early: false,
            early_wait: Duration::from_millis(10),
            connect_timeout: Duration::from_secs(130),
            greeting_timeout: Duration::from_secs(10),
            idle_timeout: Duration::ZERO,
            connections: 20_000,
            access: Access::default(),
            share: Share::default(),
            urgent: None,
            held: 256 << 10,
        }
    }
}

impl Settings {
    /// Of the leg to the client.
    #[must_use]
    pub fn client_leg(&self, kind: Kind) -> &Leg {
        if kind.comes_across() { &self.wan } else { &self.lan }
    }

    /// Of the leg to the server.
    #[must_use]
    pub fn server_leg(&self, kind: Kind) -> &Leg {
        if kind.comes_across() { &self.lan } else { &self.wan }
    }
}
