//! The trunk: connections between two gateways, on their own addresses, that are open before a
//! client wants one. Its bytes start across the long link with the first of them, and no handshake
//! goes before.
//!
//! 1. Each gateway calls the other and keeps so many connections open ([`keeper`]), which have
//!    shown that both have the same secret ([`words`]), and may be encrypted from there on
//!    ([`seal`]). A connection is used once: a client's, from its first byte to its end, so FIN,
//!    reset, urgent bytes and splicing are TCP's as everywhere, and no client waits for another
//!    one's lost packet. Another is opened meanwhile.
//! 2. A connection that a worker has accepted takes one from the [`Pool`], says where to (`GO`),
//!    and is open at once (`worker/connection/opening.rs`). Where there is none, everything is as
//!    without a trunk.
//! 3. The other gateway goes on from there as with a connection that was diverted: from the
//!    client's address to the server's. It says one byte before the server's.
//! 4. What is free on the link is known to the gateway that shapes it, and lent to whoever begins
//!    (`bpf/endpoint_start.h`); the round trip is known from the handshake. So a connection that
//!    was open for hours begins with what is free now, and not with a window of then.
//! 5. A gateway that goes, or is full, says so on those that wait, and still serves what was on its
//!    way to it.
//!
//! What was said on a connection that breaks is not said again on another one: the server may have
//! heard it. The client is reset, as by any gateway that dies.

pub mod keeper;
mod link;
pub mod seal;
pub mod words;

use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::epoll::{self, CreateFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use serde::Serialize;
use xcp_linux::{Error, Result};

use words::Secret;

/// Where the other gateway is, if no port is said: "XC".
pub const PORT: u16 = 0x5843;
/// Connections kept open, if no number is said.
pub const WARM: usize = 32;
/// The most of them.
pub const MOST_WARM: usize = 512;
/// Connections of the other gateway that wait here at the most: as many as it may keep, and those
/// that it opens meanwhile.
pub const MOST_ANSWERED: usize = 2 * MOST_WARM;

/// What a trunk is.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Address of the other gateway.
    pub peer: SocketAddr,
    /// Where it calls us, and from where we call.
    pub listen: SocketAddr,
    /// Connections to keep open.
    pub warm: usize,
    /// The secret that both gateways know.
    pub secret: Secret,
    /// Whether what goes by it is encrypted.
    pub encrypt: bool,
}

/// A connection that waits for a client.
#[derive(Debug)]
pub struct Warm {
    /// Socket of the connection.
    pub socket: OwnedFd,
    /// Its keys, where the trunk is encrypted.
    pub seal: Option<Box<seal::Seal>>,
}

/// An address with or without a port.
#[must_use]
pub fn address(text: &str) -> Option<SocketAddr> {
    let plain = || {
        let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        inner.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, PORT))
    };
    text.parse().ok().or_else(plain)
}

/// The address of ours that the peer sees.
///
/// # Errors
/// There is no way to it.
pub fn own_address(peer: SocketAddr) -> io::Result<IpAddr> {
    let any: SocketAddr =
        if peer.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    // Of UDP this sends nothing.
    socket.connect(peer)?;
    Ok(socket.local_addr()?.ip())
}

/// Reads the secret.
///
/// # Errors
/// There is none, it is short, or everybody may read it.
pub fn read_secret(path: &Path) -> Result<Secret> {
    use std::os::unix::fs::PermissionsExt as _;
    let wrong = |why: String, remedy: String| Error::new(why).remedy(remedy);
    let make = || {
        format!(
            "create one, and copy it to the other gateway: (umask 077; openssl rand -hex 32 > {})",
            path.display()
        )
    };
    let cannot = |e: io::Error| {
        Error::because(format_args!("secret-file: cannot read {}", path.display()), e)
            .remedy(make())
    };
    // Once: by its name another file could be judged than is read.
    let mut file = File::open(path).map_err(cannot)?;
    let mode = file.metadata().map_err(cannot)?.permissions().mode();
    if mode & 0o007 != 0 {
        return Err(wrong(
            format!("secret-file: everybody on this machine can read {}", path.display()),
            format!("chmod 600 {}", path.display()),
        ));
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(cannot)?;
    Secret::new(text.trim_ascii()).ok_or_else(|| {
        wrong(
            format!(
                "secret-file: the secret in {} is shorter than {} characters, and could be guessed",
                path.display(),
                Secret::LEAST
            ),
            make(),
        )
    })
}

/// Connections that are open and nobody's yet.
#[derive(Debug)]
pub struct Pool {
    warm: Mutex<Vec<(u64, Warm)>>,
    /// The keeper's, where they are watched.
    epoll: OwnedFd,
    wake: OwnedFd,
    /// The other gateway's connections that wait here.
    answered: AtomicUsize,
    /// The link has other rates, and buffers for them are another size.
    renew: AtomicBool,
    /// We are going: no more of them.
    leaving: AtomicBool,
    ended: AtomicBool,
    peer: SocketAddr,
    wanted: usize,
    encrypts: bool,
}

/// What `pep show` tells.
#[derive(Debug, Clone, Serialize)]
pub struct Shown {
    /// Address of the other gateway.
    pub peer: SocketAddr,
    /// Connections to it that wait for clients.
    pub warm: usize,
    /// How many there are to be.
    pub wanted: usize,
    /// Whether what goes by them is encrypted.
    pub encrypted: bool,
    /// Its connections that wait here.
    pub answered: usize,
    /// Connections that went through the trunk.
    pub used: u64,
    /// Connections that found nobody waiting, and went as without a trunk.
    pub missed: u64,
    /// Connections of the other gateway's clients that arrived through the trunk.
    pub carried: u64,
    /// Calls that failed, or were refused for the secret.
    pub failed: u64,
}

impl Pool {
    /// An empty one.
    ///
    /// # Errors
    /// No descriptors.
    pub fn new(plan: &Plan) -> io::Result<Self> {
        Ok(Self {
            warm: Mutex::default(),
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            wake: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
            answered: AtomicUsize::new(0),
            renew: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            peer: plan.peer,
            wanted: plan.warm,
            encrypts: plan.encrypt,
        })
    }

    fn warm(&self) -> MutexGuard<'_, Vec<(u64, Warm)>> {
        self.warm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.warm().len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.warm().is_empty()
    }

    /// The other gateway's that wait here.
    #[must_use]
    pub fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    fn put(&self, number: u64, link: Warm) {
        self.warm().push((number, link));
    }

    /// Whether what goes by it is encrypted.
    #[must_use]
    pub fn encrypts(&self) -> bool {
        self.encrypts
    }

    /// Whether a server is reached by it. The other gateway itself is not, which answers nobody for
    /// a client of the trunk's; without encryption there is the ordinary way to it.
    #[must_use]
    pub fn leads_to(&self, server: IpAddr) -> bool {
        self.encrypts || server != self.peer.ip()
    }

    /// Takes one out that has something to say, which is that it is over.
    fn remove(&self, number: u64) -> Option<Warm> {
        let mut warm = self.warm();
        let at = warm.iter().position(|(other, _)| *other == number)?;
        Some(warm.swap_remove(at).1)
    }

    /// One for a client: the newest, since of that it is known best that it works.
    #[must_use]
    pub fn take(&self) -> Option<Warm> {
        if self.leaving.load(Ordering::Relaxed) {
            return None;
        }
        loop {
            // Not in the condition: the lock would be held as long as what it gave.
            let last = self.warm().pop();
            let (_, link) = last?;
            let _ = epoll::delete(&self.epoll, &link.socket);
            self.wake();
            if is_silent(link.socket.as_fd()) {
                return Some(link);
            }
        }
    }

    /// What there is, beside what the metrics count.
    #[must_use]
    pub fn shown(&self, metrics: &crate::metrics::Metrics) -> Shown {
        Shown {
            peer: self.peer,
            warm: self.len(),
            wanted: self.wanted,
            encrypted: self.encrypts,
            answered: self.answered(),
            used: metrics.trunk_used.get(),
            missed: metrics.trunk_missed.get(),
            carried: metrics.trunk_carried.get(),
            failed: metrics.trunk_failed.get(),
        }
    }
}

/// Whether nothing was said, neither a word nor an end.
fn is_silent(socket: BorrowedFd<'_>) -> bool {
    let mut byte = [0; 1];
    let seen = recv(socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT);
    matches!(seen, Err(Errno::AGAIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_leave_out_the_port() {
        let is = |text: &str| address(text).map(|a| a.to_string());
        assert_eq!(is("192.0.2.1").as_deref(), Some("192.0.2.1:22595"));
        assert_eq!(is("192.0.2.1:7").as_deref(), Some("192.0.2.1:7"));
        assert_eq!(is("2001:db8::1").as_deref(), Some("[2001:db8::1]:22595"));
        assert_eq!(is("[2001:db8::1]").as_deref(), Some("[2001:db8::1]:22595"));
        assert_eq!(is("[2001:db8::1]:7").as_deref(), Some("[2001:db8::1]:7"));
        assert_eq!((is("far"), is("192.0.2.1:"), is("")), (None, None, None));
    }

    #[test]
    fn a_secret_that_everybody_knows_is_none() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        let read = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            read_secret(&path)
        };
        let said = |result: Result<Secret>| result.unwrap_err().to_string();
        assert!(
            read_secret(&directory.path().join("none"))
                .unwrap_err()
                .to_string()
                .contains("openssl")
        );
        assert!(said(read("0123456789abcdef0123\n", 0o644)).contains("chmod 600"));
        assert!(said(read("  short enough \n", 0o600)).contains("16"));
        assert!(read("0123456789abcdef\n", 0o640).is_ok());
    }

    /// Somebody puts a file that is nobody else's into its place while it is read.
    #[test]
    fn the_file_that_is_read_is_the_one_that_is_judged() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        use std::io::Write as _;
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let [path, other] = ["secret", "other"].map(|name| directory.path().join(name));
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        mode(&path, 0o644);
        std::fs::write(&other, "").unwrap();
        mode(&other, 0o600);
        let writer = std::thread::spawn({
            let (path, other) = (path.clone(), other.clone());
            move || {
                let mut pipe = File::options().write(true).open(&path).unwrap();
                std::fs::rename(other, path).unwrap();
                // Whoever refuses it does not read.
                let _ = pipe.write_all(b"0123456789abcdef");
            }
        });
        let refused = read_secret(&path).unwrap_err().to_string();
        assert!(refused.contains("everybody"), "{refused}");
        writer.join().unwrap();
    }
}
