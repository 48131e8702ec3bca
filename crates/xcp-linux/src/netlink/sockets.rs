//! sock_diag: connections that are over and linger in the kernel (TIME_WAIT), found by the mark
//! that their sockets had, and ended.
//!
//! A gateway that has ended a connection between two others keeps it like any host for a minute.
//! While it does, packets between the same addresses and ports that it is to forward are taken for
//! that connection's and lost (the kernel looks for a socket before it looks for a route, and does
//! not forward what has one).

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_SOCK_DIAG};

use super::message::{self, Request, messages};
use super::{Error, Result};

/// linux/sock_diag.h, inet_diag.h.
const BY_FAMILY: u16 = 20;
const DESTROY: u16 = 21;
const BYTECODE: u16 = 1;
const MARKED: u8 = 10;
/// `struct inet_diag_sockid`.
const ID: usize = 48;
/// net/tcp_states.h.
const TIME_WAIT: u32 = 6;

/// `struct inet_diag_req_v2`.
fn request(kind: u16, flags: i32, family: u8, id: &[u8]) -> Request {
    let mut fixed = vec![family, libc::IPPROTO_TCP as u8, 0, 0];
    fixed.extend((1u32 << TIME_WAIT).to_ne_bytes());
    fixed.extend(id);
    Request::new(kind, flags as u16, &fixed)
}

/// Those of a mark: their numbers as the kernel has them.
fn lingering(
    socket: &Socket,
    family: u8,
    mark: u32,
    buffer: &mut [u8],
) -> io::Result<Vec<[u8; ID]>> {
    let mut dump = request(BY_FAMILY, libc::NLM_F_DUMP, family, &[0; ID]);
    // struct inet_diag_bc_op (go on behind it if so, else beyond the end: no), struct
    // inet_diag_markcond.
    let mut code = vec![MARKED, 12];
    code.extend(16u16.to_ne_bytes());
    code.extend([mark, u32::MAX].map(u32::to_ne_bytes).concat());
    dump.attribute(BYTECODE, &code);
    socket.send(&dump.finish(1), 0)?;
    let mut found = Vec::new();
    loop {
        let length = socket.recv(&mut &mut *buffer, 0)?;
        for message in messages(buffer.get(..length).unwrap_or_default()) {
            match i32::from(message.kind) {
                libc::NLMSG_DONE => return Ok(found),
                libc::NLMSG_ERROR => {
                    let code = message::number(message.payload, 0).unwrap_or_default() as i32;
                    return Err(io::Error::from_raw_os_error(code.saturating_neg()));
                }
                // struct inet_diag_msg: four bytes, then the number.
                _ => found.extend(
                    message.payload.get(4..4 + ID).and_then(|id| <[u8; ID]>::try_from(id).ok()),
                ),
            }
        }
    }
}

/// Whether the kernel ends sockets for those who ask, found out by asking for one that cannot be.
pub(crate) fn can_end() -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    socket.send(&request(DESTROY, libc::NLM_F_ACK, libc::AF_INET as u8, &[0; ID]).finish(1), 0)?;
    let mut buffer = vec![0; 4 << 10];
    let length = socket.recv(&mut &mut buffer[..], 0)?;
    let answer = messages(buffer.get(..length).unwrap_or_default()).next();
    match answer.and_then(|answer| message::number(answer.payload, 0)).unwrap_or_default() as i32 {
        code if code == 0 || code == -libc::ENOENT => Ok(()),
        code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
    }
}

/// Ends all TCP connections that linger in the calling thread's network namespace and whose sockets
/// had this mark; returns how many there were.
///
/// # Errors
/// Not permitted; a kernel without CONFIG_INET_DIAG_DESTROY, in which they are gone after a minute.
pub fn end_lingering(mark: u32) -> Result<usize> {
    let ended = || -> io::Result<usize> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        let mut buffer = vec![0; 64 << 10];
        let mut count = 0;
        for family in [libc::AF_INET, libc::AF_INET6] {
            let family = family as u8;
            for id in lingering(&socket, family, mark, &mut buffer)? {
                socket.send(&request(DESTROY, libc::NLM_F_ACK, family, &id).finish(2), 0)?;
                let length = socket.recv(&mut &mut buffer[..], 0)?;
                let answer = messages(buffer.get(..length).unwrap_or_default()).next();
                match answer
                    .and_then(|answer| message::number(answer.payload, 0))
                    .unwrap_or_default() as i32
                {
                    0 => count += 1,
                    // Gone by itself meanwhile.
                    code if code == -libc::ENOENT => {}
                    code => return Err(io::Error::from_raw_os_error(code.saturating_neg())),
                }
            }
        }
        Ok(count)
    };
    ended().map_err(|e| Error::new("end connections that linger", e))
}
