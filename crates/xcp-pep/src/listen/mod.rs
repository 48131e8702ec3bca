//! Where connections come from and where they want to go. [`socks`] and [`connect`] are the two
//! languages in which a client that knows of the proxy says it, told apart by the first byte
//! ([`Negotiation`]); connections that were diverted do not say it: their socket's own address is
//! where they want to go (`gateway/rules.rs`).
//!
//! Parsers see bytes and return what to do; they touch no socket. They are given all that has come
//! and not been used up, again and again.

pub mod access;
pub mod connect;
pub mod socks;

use std::io;
use std::net::SocketAddr;

/// Where a client wants to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An address.
    Address(SocketAddr),
    /// A name to look up, and a port.
    Name(String, u16),
}

/// What a parser makes of what has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// More is needed.
    More,
    /// So many bytes are used up; this is the answer; there is more to come.
    Answer(usize, Vec<u8>),
    /// So many bytes are used up; this is where to go. What follows is the connection's.
    Go(usize, Target),
    /// This is the answer, then the connection is closed.
    Refuse(Vec<u8>, &'static str),
}

/// How an attempt to reach the target ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// Connected.
    Yes,
    /// Refused.
    Refused,
    /// No way to the network.
    NoNetwork,
    /// No way to the host.
    NoHost,
    /// No answer.
    TimedOut,
    /// The name is unknown.
    NoName,
    /// Not allowed here: the proxy itself.
    NotAllowed,
    /// Not allowed here: this machine (`access.rs`).
    Forbidden,
    /// Something else.
    Failed,
}

impl Reached {
    /// What a socket's error means.
    #[must_use]
    pub fn of(why: &io::Error) -> Self {
        match why.raw_os_error() {
            Some(libc::ECONNREFUSED) => Self::Refused,
            Some(libc::ENETUNREACH | libc::ENETDOWN) => Self::NoNetwork,
            Some(libc::EHOSTUNREACH | libc::EHOSTDOWN) => Self::NoHost,
            Some(libc::ETIMEDOUT) => Self::TimedOut,
            _ => Self::Failed,
        }
    }
}

/// The conversation before a connection is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Negotiation {
    /// Nothing has come.
    Unknown,
    /// SOCKS 5.
    Socks(socks::Stage),
    /// HTTP.
    Connect,
}

impl Negotiation {
    /// Takes what has come and has not been used up.
    pub fn advance(&mut self, input: &[u8]) -> Step {
        if *self == Self::Unknown {
            *self = match input.first() {
                None => return Step::More,
                Some(&socks::VERSION) => Self::Socks(socks::Stage::Greeting),
                Some(b'A'..=b'Z') => Self::Connect,
                Some(4) => {
                    return Step::Refuse(
                        socks::REFUSE_4.to_vec(),
                        "it speaks SOCKS 4; use SOCKS 5",
                    );
                }
                Some(_) => return Step::Refuse(Vec::new(), "neither SOCKS 5 nor HTTP CONNECT"),
            };
        }
        match self {
            Self::Socks(stage) => socks::advance(stage, input),
            Self::Connect | Self::Unknown => connect::advance(input),
        }
    }

    /// What the client is told of the outcome.
    #[must_use]
    pub fn outcome(&self, reached: Reached, bound: Option<SocketAddr>) -> Vec<u8> {
        match self {
            Self::Unknown => Vec::new(),
            Self::Socks(_) => socks::outcome(reached, bound),
            Self::Connect => connect::outcome(reached),
        }
    }
}
