//! A leg to a server, opened for a client that waits.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::io::Errno;
use rustix::net::{bind, connect, sockopt};

use crate::settings::{Kind, Settings};
use crate::shared::Ends;
use crate::socket;

/// A leg on its way.
#[derive(Debug)]
pub struct Started {
    /// Socket of the leg.
    pub socket: OwnedFd,
    /// Addresses and ports of client and server.
    pub ends: Ends,
}

fn start(
    client: SocketAddr,
    to: SocketAddr,
    kind: Kind,
    mark: u8,
    settings: &Settings,
) -> io::Result<Started> {
    let server = socket::for_leg(&to, settings.server_leg(kind), &settings.common)?;
    if mark != 0 {
        socket::tell_mark(server.as_fd(), mark)?;
    }
    socket::make_transparent(server.as_fd(), to.is_ipv4())?;
    sockopt::set_socket_reuseaddr(&server, client.port() != 0)?;
    bind(&server, &client)?;
    match connect(&server, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(why) => return Err(why.into()),
    }
    let ends = (socket::local(server.as_fd())?, to);
    Ok(Started { socket: server, ends })
}

/// Starts it from the client's address and, if that is free, its port; with its mark, if it is
/// urgent.
pub(super) fn open(
    (client, to): Ends,
    kind: Kind,
    mark: u8,
    settings: &Settings,
) -> io::Result<Started> {
    match start(client, to, kind, mark, settings) {
        // Somebody has the port, or an earlier connection between the same ends lingers here.
        Err(why) if matches!(why.raw_os_error(), Some(libc::EADDRINUSE | libc::EADDRNOTAVAIL)) => {
            start(SocketAddr::new(client.ip(), 0), to, kind, mark, settings)
        }
        other => other,
    }
}
