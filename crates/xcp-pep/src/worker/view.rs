//! A connection as `pep show` sees it.

use std::net::SocketAddr;

use serde::Serialize;

use crate::settings::Kind;
use crate::socket::Tcp;

/// What is shown of one connection.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    /// Its number since the proxy started.
    pub number: u64,
    /// Where it came from.
    pub kind: Kind,
    /// Whether its long leg is a connection of the trunk.
    pub by_trunk: bool,
    /// Whether its client has marked it as urgent.
    pub urgent: bool,
    /// `negotiating`, `connecting`, `open`, `closing`.
    pub state: &'static str,
    /// Address and port of the client.
    pub client: SocketAddr,
    /// The server, once it is known.
    pub server: Option<SocketAddr>,
    /// Age of the connection, ns.
    pub age_ns: u64,
    /// Bytes delivered to the server.
    pub to_server: u64,
    /// Bytes delivered to the client.
    pub to_client: u64,
    /// Bytes waiting here, both ways.
    pub held: usize,
    /// The leg to the client.
    pub client_leg: Option<Tcp>,
    /// The leg to the server.
    pub server_leg: Option<Tcp>,
}
