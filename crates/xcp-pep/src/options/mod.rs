//! What the user says: on the command line, in a file (TOML, the same names), or both; the command
//! line wins. SIGHUP reads the file again.
//!
//! Here is which options there are. What they amount to is in `meaning` and, for those of the trunk,
//! in `trunk`; how a single value is read and what bounds it is in `value`.

pub mod file;
mod meaning;
mod trunk;
mod value;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use xcp_linux::Result;

use self::file::Entry;
pub use meaning::{Exclude, Windows};

/// When a changed option takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// When the file is read again: for connections to come.
    Live,
    /// When the proxy is started anew.
    Start,
}

/// An option as it is given, or not.
trait Given: PartialEq + Sized {
    /// This where it says something, else the other.
    fn or(self, other: Self) -> Self;
    /// Whether both come to the same.
    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

macro_rules! given {
    ($($kind:ty),*) => {
        $(impl Given for Option<$kind> {
            fn or(self, other: Self) -> Self {
                self.or(other)
            }
        })*
    };
}
given!(String, usize, u32, SocketAddr, PathBuf);

impl Given for Option<bool> {
    fn or(self, other: Self) -> Self {
        self.or(other)
    }
    fn same(&self, other: &Self) -> bool {
        self.unwrap_or(false) == other.unwrap_or(false)
    }
}

impl<T: PartialEq> Given for Vec<T> {
    fn or(self, other: Self) -> Self {
        if self.is_empty() { other } else { self }
    }
}

/// The one table of options: what each is, and when a change of it takes effect.
macro_rules! options {
    ($($(#[$about:meta])* $name:ident: $kind:ty, $change:ident;)*) => {
        /// As read; what is absent has its default.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Options {
            $($(#[$about])* pub $name: $kind,)*
        }

        impl Options {
            /// The fields' names; in files and on the command line they have `-` for `_`.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// Takes what a file says of one of them.
            fn set(&mut self, entry: &Entry) -> Result<()> {
                $(if entry.key == stringify!($name).replace('_', "-") {
                    self.$name = entry.read()?;
                    return Ok(());
                })*
                let names: Vec<String> =
                    Self::NAMES.iter().map(|name| name.replace('_', "-")).collect();
                Err(entry.unknown(names.iter().map(String::as_str)))
            }

            /// These where they say something, else those.
            #[must_use]
            pub fn over(self, file: Self) -> Self {
                Self { $($name: Given::or(self.$name, file.$name),)* }
            }

            /// These, but what can be changed live as in others.
            #[must_use]
            pub fn with_live(self, other: Self) -> Self {
                Self { $($name: if matches!(Change::$change, Change::Live) { other.$name } else { self.$name },)* }
            }

            /// What differs from others, and when that takes effect.
            #[must_use]
            pub fn differences(&self, other: &Self) -> Vec<(String, Change)> {
                let mut found = Vec::new();
                $(if !self.$name.same(&other.$name) {
                    found.push((stringify!($name).replace('_', "-"), Change::$change));
                })*
                found
            }
        }
    };
}

options! {
    /// Device towards the long link; diverts connections that cross it.
    wan: Option<String>, Start;
    /// Devices towards clients and servers.
    lan: Vec<String>, Start;
    /// The long link's rate in this direction.
    rate: Option<String>, Live;
    /// The long link's rate in the other direction, for buffers.
    rate_in: Option<String>, Live;
    /// Its round-trip time, for buffers.
    rtt: Option<String>, Live;
    /// Bytes of a segment on the long link at the most.
    mss: Option<u32>, Live;
    /// The long link's law.
    law: Option<String>, Start;
    /// Who has a share of the long link.
    share: Option<String>, Live;
    /// What goes first on it, up to a bound: `ef:10%`.
    urgent: Option<String>, Live;
    /// Networks, addresses and ports to leave alone: `10.0.0.0/8`, `2001:db8::1`, `port 22`.
    exclude: Vec<String>, Live;
    /// Addresses for clients that speak SOCKS 5 or HTTP CONNECT.
    listen: Vec<SocketAddr>, Start;
    /// Networks and addresses whose clients these answer; all where there are none.
    allow: Vec<String>, Live;
    /// Networks and addresses of this machine that these clients may reach.
    allow_target: Vec<String>, Live;
    /// Where Prometheus finds `/metrics`.
    metrics: Option<SocketAddr>, Start;
    /// Do not send a client's first bytes with the SYN.
    no_early: Option<bool>, Live;
    /// Answer clients only when the server has answered.
    confirm: Option<bool>, Start;
    /// The gateway at the other end of the long link, to which connections are kept open.
    trunk: Option<String>, Start;
    /// Where that one calls this one.
    trunk_listen: Option<String>, Start;
    /// How many connections are kept open.
    trunk_warm: Option<usize>, Start;
    /// Encrypt what goes by them, on both gateways.
    trunk_encrypt: Option<bool>, Start;
    /// What both gateways know and nobody else.
    secret_file: Option<PathBuf>, Start;
    /// Threads.
    workers: Option<usize>, Start;
    /// Connections at the most.
    connections: Option<usize>, Live;
    /// Bytes waiting in the proxy at the most, all connections together.
    memory: Option<String>, Start;
    /// Bytes waiting in the proxy at the most, one way of one connection.
    held: Option<String>, Start;
    /// Reset connections on which nothing moved for so long; `0s`: never.
    idle: Option<String>, Live;
    /// Seconds of silence after which a peer is asked whether it is there.
    keepalive: Option<String>, Live;
    /// Longest time between retransmissions on the long link.
    rto_max: Option<String>, Start;
    /// Wait so long for connections to end when told to end.
    drain: Option<String>, Live;
    /// Congestion control towards peers that do not speak XCP.
    fallback: Option<String>, Start;
    /// First window on the long link, packets.
    initial_window: Option<u32>, Start;
    /// Who to be once set up.
    user: Option<String>, Start;
    /// Logs: `error`, `warn`, `info`, `debug`.
    log: Option<String>, Start;
    /// Logs as JSON, one object per line.
    log_json: Option<bool>, Start;
}

impl Options {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or says something that is not known.
    pub fn load(path: &Path) -> Result<Self> {
        let mut options = Self::default();
        for entry in file::entries(path)? {
            options.set(&entry)?;
        }
        Ok(options)
    }
}

/// Where a file of options is looked for if none is named.
#[must_use]
pub fn usual_file() -> PathBuf {
    PathBuf::from("/etc/xcpnet/pep.toml")
}
