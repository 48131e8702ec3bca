//! Makes the sockets of a flow, with the settings its plan says. To be called in the namespace
//! where the end is: a socket stays where it is made.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, listen, socket_with, sockopt,
};

use xcp_linux::sysctl;
use xcp_model::units::Nanos;

use super::socket::set;
use crate::LabError;
use crate::plan::TcpPlan;
use crate::xcp::Endpoint;

/// Sockets of datagrams hold this much: a source takes no notice of anything, and a receiver reads
/// all.
const DATAGRAM_BUFFER: usize = 32 << 20;
/// What the kernel needs to store a segment beside its payload, from above.
const STORED: u32 = 4096;
/// A pacing rate that never binds, but switches the kernel's own pacing on.
const PACED_BY_WINDOW: u32 = u32::MAX - 1;

/// A new socket that does not block.
fn socket(address: IpAddr, kind: SocketType) -> io::Result<OwnedFd> {
    let (family, protocol) = match address {
        IpAddr::V4(_) => (
            AddressFamily::INET,
            if kind == SocketType::STREAM { ipproto::TCP } else { ipproto::UDP },
        ),
        IpAddr::V6(_) => (
            AddressFamily::INET6,
            if kind == SocketType::STREAM { ipproto::TCP } else { ipproto::UDP },
        ),
    };
    Ok(socket_with(family, kind, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, Some(protocol))?)
}

/// An error with what was tried.
fn during(step: &str, address: SocketAddr) -> impl FnOnce(io::Error) -> LabError {
    move |why| LabError::failed(format_args!("{step} {address}"), why)
}

/// What both ends of a connection are told before they speak.
fn settle(socket: impl AsFd, plan: &TcpPlan, xcp: Option<&Endpoint>) -> io::Result<()> {
    let socket = socket.as_fd();
    // Whatever way the process ends, its sockets are gone at once: one that lingers would keep its
    // namespace.
    sockopt::set_socket_linger(socket, Some(Duration::ZERO))?;
    set(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, plan.mss)?;
    if let Some(bytes) = plan.window_clamp {
        // A buffer that is set does not grow, and so leaves the window alone; it is wide enough not
        // to bind itself.
        sockopt::set_socket_recv_buffer_size_force(
            socket,
            (bytes as usize).saturating_mul(4).clamp(1 << 16, 1 << 30),
        )?;
        clamp_window(socket, bytes)?;
    }
    match (&plan.congestion, xcp) {
        (Some(name), _) => sockopt::set_tcp_congestion(socket, name)?,
        (None, Some(xcp)) => xcp.ask(socket, &plan.settings)?,
        (None, None) => return Err(io::Error::other("XCP is not loaded")),
    }
    if plan.settings.paced && plan.congestion.is_some() {
        set(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, PACED_BY_WINDOW)?;
    }
    Ok(())
}

/// Bounds the window that a socket advertises. The kernel forgets that when it learns how large
/// segments are (tcp_measure_rcv_mss), so that it has to be said again.
pub(super) fn clamp_window(socket: impl AsFd, bytes: u32) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes)
}

/// The receiving end of a connection, waiting for it.
pub(super) fn listener(
    address: SocketAddr,
    plan: &TcpPlan,
    xcp: Option<&Endpoint>,
) -> Result<OwnedFd, LabError> {
    let open = || {
        let socket = socket(address.ip(), SocketType::STREAM)?;
        settle(&socket, plan, xcp)?;
        bind(&socket, &address)?;
        listen(&socket, 1)?;
        Ok(socket)
    };
    open().map_err(during("listen at", address))
}

/// Sets the least retransmission timeout of connections made from now on in this namespace.
fn set_rto_min(rto_min: Nanos) -> io::Result<()> {
    sysctl::write("net.ipv4.tcp_rto_min_us", &(rto_min / 1000).clamp(1, 2_000_000_000).to_string())
}

/// The sending end of a connection, on its way to the other.
pub(super) fn sender(
    from: SocketAddr,
    to: SocketAddr,
    plan: &TcpPlan,
    xcp: Option<&Endpoint>,
) -> Result<OwnedFd, LabError> {
    let open = || {
        if plan.sets_rto_min {
            set_rto_min(plan.settings.rto_min)?;
        }
        let socket = socket(from.ip(), SocketType::STREAM)?;
        settle(&socket, plan, xcp)?;
        if let Some(bytes) = plan.unsent_bytes {
            set(&socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes)?;
        }
        if let Some(segments) = plan.send_segments {
            // Room for them at first, however the kernel stores them; the worker makes it smaller
            // when it knows.
            let bytes = u64::from(segments) * u64::from(plan.payload + STORED);
            sockopt::set_socket_send_buffer_size_force(
                &socket,
                usize::try_from(bytes.min(1 << 30)).unwrap_or(1 << 30),
            )?;
        }
        sockopt::set_tcp_nodelay(&socket, true)?;
        bind(&socket, &from)?;
        match connect(&socket, &to) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
            Err(why) => Err(why.into()),
        }
    };
    open().map_err(during("connect to", to))
}

/// Either end of a flow of datagrams.
pub(super) fn datagrams(from: SocketAddr, to: SocketAddr) -> Result<OwnedFd, LabError> {
    let open = || {
        let socket = socket(from.ip(), SocketType::DGRAM)?;
        sockopt::set_socket_send_buffer_size_force(&socket, DATAGRAM_BUFFER)?;
        sockopt::set_socket_recv_buffer_size_force(&socket, DATAGRAM_BUFFER)?;
        bind(&socket, &from)?;
        connect(&socket, &to)?;
        Ok(socket)
    };
    open().map_err(during("send datagrams to", to))
}
