//! Sockets: how they are made and what they are told. Everything here is a thin layer over system
//! calls; when they are called, the worker decides.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use serde::Serialize;

/// linux/in.h, in6.h, tcp.h, asm/socket.h: what libc does not name for every target.
const IP_TRANSPARENT: i32 = 19;
const IPV6_TRANSPARENT: i32 = 75;
const TCP_FASTOPEN: i32 = 23;
const TCP_FASTOPEN_NO_COOKIE: i32 = 34;
/// `enum tcp_ca_state` of linux/tcp.h.
const CA_LOSS: u8 = 4;
const TCP_NOTSENT_LOWAT: i32 = 25;

/// Connections with data in their SYN whose handshake is not over, at the most.
const EARLY_QUEUE: u32 = 1024;

/// Which leg a socket is of.
#[derive(Debug, Clone, Default)]
pub struct Leg {
    /// Congestion control by name; the system's if absent.
    pub congestion: Option<String>,
    /// Bytes of the send buffer, from the beginning; 0 leaves it to the kernel.
    pub send: usize,
    /// Bytes that may be on the way to here, from the beginning, and so what a reader that stalls
    /// can fill; 0 leaves them to the kernel. The kernel doubles it (socket(7)): the rest is for
    /// its own accounts of small packets.
    pub receive: usize,
    /// Bytes of a segment at the most, either way; 0: what the device takes.
    pub mss: u32,
    /// What is written and not yet sent, at the most; 0: what the send buffer takes.
    pub unsent: usize,
}

/// A peer with room for nothing that was heard within this time answers what it is asked: twice what
/// lies between two probes at most (TCP_RTO_MAX).
const ANSWERS_MS: u32 = 240_000;

/// What every socket is told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Common {
    /// Mark of what it sends; 0 for none.
    pub mark: u32,
    /// Seconds of silence after which the peer is asked whether it is there; 0 never.
    pub keepalive: u32,
    /// Milliseconds without acknowledgement after which the peer is given up.
    pub give_up_ms: u32,
}

fn set(fd: BorrowedFd<'_>, level: i32, name: i32, value: u32) -> io::Result<()> {
    // SAFETY: an open socket and an int that outlives the call.
    let done = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A TCP socket that does not block.
pub fn tcp(family: &SocketAddr) -> io::Result<OwnedFd> {
    let family = if family.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket_with(
        family,
        SocketType::STREAM,
        SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
        None,
    )?;
    Ok(socket)
}

/// An address and a port of this machine's that nobody else gets while this is open.
pub fn reserve(address: std::net::IpAddr) -> io::Result<OwnedFd> {
    let any = SocketAddr::new(address, 0);
    let socket = tcp(&any)?;
    rustix::net::bind(&socket, &any)?;
    Ok(socket)
}

/// It may have addresses that are not this machine's.
pub fn make_transparent(fd: BorrowedFd<'_>, is_v4: bool) -> io::Result<()> {
    if is_v4 {
        set(fd, libc::SOL_IP, IP_TRANSPARENT, 1)
    } else {
        set(fd, libc::SOL_IPV6, IPV6_TRANSPARENT, 1)
    }
}

/// What holds for both ends of both legs from their beginning.
pub fn tell_common(fd: BorrowedFd<'_>, common: &Common) -> io::Result<()> {
    sockopt::set_tcp_nodelay(fd, true)?;
    // The urgent byte stays in its place, so that it can be passed on (relay/wire.rs).
    sockopt::set_socket_oobinline(fd, true)?;
    if common.mark != 0 {
        set(fd, libc::SOL_SOCKET, libc::SO_MARK, common.mark)?;
    }
    Ok(())
}

/// How long a silent peer is waited for.
pub fn tell_patience(fd: BorrowedFd<'_>, common: &Common) -> io::Result<()> {
    if common.keepalive != 0 {
        sockopt::set_socket_keepalive(fd, true)?;
        set(fd, libc::SOL_TCP, libc::TCP_KEEPIDLE, common.keepalive)?;
    }
    if common.give_up_ms != 0 {
        tell_give_up(fd, common.give_up_ms)?;
    }
    Ok(())
}

/// After how many milliseconds without acknowledgement the peer is given up; 0: as the kernel likes.
pub fn tell_give_up(fd: BorrowedFd<'_>, give_up_ms: u32) -> io::Result<()> {
    set(fd, libc::SOL_TCP, libc::TCP_USER_TIMEOUT, give_up_ms)
}

/// Whether the peer has room for nothing, and says so whenever it is asked, which is each two
/// minutes at least. With [`tell_give_up`] the kernel counts this as silence (tcp_probe_timer), and
/// ends the connection of a reader that pauses, which hears nothing of it.
pub fn is_held_back(fd: BorrowedFd<'_>) -> bool {
    tcp_info(fd).is_ok_and(|raw| raw.tcpi_snd_wnd == 0 && raw.tcpi_last_ack_recv < ANSWERS_MS)
}

/// Before it connects or listens (what is accepted inherits it): the window is agreed on in the
/// handshake. Returns whether the congestion control was taken.
pub fn tell_leg(fd: BorrowedFd<'_>, leg: &Leg) -> io::Result<bool> {
    let mut taken = true;
    if let Some(name) = &leg.congestion {
        taken = sockopt::set_tcp_congestion(fd, name).is_ok();
    }
    tell_buffers(fd, leg)?;
    if leg.mss > 0 {
        set(fd, libc::SOL_TCP, libc::TCP_MAXSEG, leg.mss)?;
    }
    if leg.unsent > 0 {
        set(
            fd,
            libc::SOL_TCP,
            TCP_NOTSENT_LOWAT,
            u32::try_from(leg.unsent).unwrap_or(u32::MAX / 4),
        )?;
    }
    Ok(taken)
}

/// A leg's two buffers.
fn tell_buffers(fd: BorrowedFd<'_>, leg: &Leg) -> io::Result<()> {
    for (size, force, plain) in [
        (leg.receive, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        (leg.send, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    ] {
        if size > 0 {
            let bytes = u32::try_from(size).unwrap_or(u32::MAX / 4).min(u32::MAX / 4);
            // Above the system's limit needs CAP_NET_ADMIN; without, as much as the limit allows.
            set(fd, libc::SOL_SOCKET, force, bytes)
                .or_else(|_| set(fd, libc::SOL_SOCKET, plain, bytes))?;
        }
    }
    Ok(())
}

/// The same for one that is connected already. What the peer may send follows with what it sends,
/// twice as much each round trip; no further than the handshake has left room for in a header's
/// window, which is up to twice of what it was (RFC 7323 §2.2).
pub fn resize(fd: BorrowedFd<'_>, leg: &Leg) -> io::Result<()> {
    tell_buffers(fd, leg)?;
    set(
        fd,
        libc::SOL_TCP,
        libc::TCP_WINDOW_CLAMP,
        u32::try_from(leg.receive).unwrap_or(u32::MAX / 4),
    )
}

/// A socket for a leg that we open.
pub fn for_leg(to: &SocketAddr, leg: &Leg, common: &Common) -> io::Result<OwnedFd> {
    let socket = tcp(to)?;
    tell_common(socket.as_fd(), common)?;
    reset_on_close(socket.as_fd(), true)?;
    tell_leg(socket.as_fd(), leg)?;
    Ok(socket)
}

/// Its data may go with the SYN, to a peer that takes them; without asking for a cookie first.
pub fn allow_early(fd: BorrowedFd<'_>) -> io::Result<()> {
    set(fd, libc::SOL_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
}

/// It takes data with the SYN from anybody, or from nobody.
pub fn take_early(fd: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    set(fd, libc::SOL_TCP, TCP_FASTOPEN, if on { EARLY_QUEUE } else { 0 })?;
    set(fd, libc::SOL_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
}

/// Closing it resets the connection (`true`), or ends it when all is sent. Sockets are so from
/// their beginning until both sides have ended: if this process is killed, peers learn that the
/// connection broke rather than that it is complete. What a listener accepts inherits it.
pub fn reset_on_close(fd: BorrowedFd<'_>, reset: bool) -> io::Result<()> {
    Ok(sockopt::set_socket_linger(fd, reset.then_some(std::time::Duration::ZERO))?)
}

/// What it sends has this DSCP, whichever the version of IP.
pub fn tell_mark(fd: BorrowedFd<'_>, dscp: u8) -> io::Result<()> {
    let class = u32::from(dscp) << 2;
    // A socket of IPv6 takes the first as well, for addresses of IPv4 in IPv6's.
    let v4 = set(fd, libc::SOL_IP, libc::IP_TOS, class);
    set(fd, libc::SOL_IPV6, libc::IPV6_TCLASS, class).or(v4)
}

/// The DSCP that the opening of an accepted connection had; 0 where it is not known.
pub fn mark_of(fd: BorrowedFd<'_>) -> u8 {
    let version_6 = matches!(
        sockopt::socket_domain(fd),
        Ok(domain) if domain == AddressFamily::INET6
    );
    let (level, ask, options) = if version_6 {
        (libc::SOL_IPV6, libc::IPV6_RECVTCLASS, libc::IPV6_2292PKTOPTIONS)
    } else {
        (libc::SOL_IP, libc::IP_RECVTOS, libc::IP_PKTOPTIONS)
    };
    if set(fd, level, ask, 1).is_err() {
        return 0;
    }
    let class = class_among(fd, level, options);
    // Else the kernel would keep the options of each packet that comes.
    let _ = set(fd, level, ask, 0);
    u8::try_from(class.unwrap_or(0) >> 2 & 63).unwrap_or(0)
}

/// The class among what the kernel has kept of a connection's packets: one control message.
fn class_among(fd: BorrowedFd<'_>, level: i32, options: i32) -> Option<u32> {
    // A header of a message is as large as this, aligned as this.
    let mut words = [0u64; 16];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the buffer is as long as it says and outlives the call.
    let done = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, options, words.as_mut_ptr().cast(), &raw mut length)
    };
    let header = size_of::<libc::cmsghdr>();
    let at = words.as_ptr().cast::<u8>();
    if done < 0 || (length as usize) < header + size_of::<u32>() {
        return None;
    }
    // SAFETY: as many bytes of the buffer were written, all of which are values of these integers.
    unsafe { Some(at.add(header).cast::<u32>().read_unaligned()) }
}

/// Bytes are there that go as soon as the connection is open: the segment that ends the handshake
/// waits for them (`tcp_rcv_synsent_state_process`). Afterwards acknowledgements are as ever.
pub fn answer_with_data(fd: BorrowedFd<'_>) -> io::Result<()> {
    set(fd, libc::SOL_TCP, libc::TCP_QUICKACK, 0)
}

/// Whether there are bytes to read.
pub fn has_input(fd: BorrowedFd<'_>) -> bool {
    rustix::io::ioctl_fionread(fd).is_ok_and(|bytes| bytes > 0)
}

/// This end. Of a diverted connection: where the client wanted to go.
pub fn local(fd: BorrowedFd<'_>) -> io::Result<SocketAddr> {
    canonical(rustix::net::getsockname(fd)?)
}

/// An address as std's.
pub fn canonical(any: rustix::net::SocketAddrAny) -> io::Result<SocketAddr> {
    let address = SocketAddr::try_from(any)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not an internet address"))?;
    Ok(SocketAddr::new(address.ip().to_canonical(), address.port()))
}

/// After a connection was not accepted: without descriptors or memory it waits where it is, and
/// whoever polls would hear of it again at once. By now somebody may have given one back.
pub fn pause_if_exhausted(why: &io::Error) {
    let why = why.raw_os_error();
    if [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM].map(Some).contains(&why) {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

/// Bytes, and the FIN, that the peer has not acknowledged.
pub fn unacknowledged(fd: BorrowedFd<'_>) -> u32 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: an open socket; the argument is an int that outlives the call. (SIOCOUTQ has the
    // terminals' number.)
    let done = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if done < 0 { 0 } else { u32::try_from(bytes).unwrap_or(0) }
}

/// What the kernel knows of a connection.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Tcp {
    /// Smoothed round-trip time, ns.
    pub srtt_ns: u64,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Bytes of a segment.
    pub mss: u32,
    /// Segments retransmitted so far.
    pub retransmits: u32,
    /// Segments on the way.
    pub unacked: u32,
    /// Bytes that the peer may send before it hears of us again.
    pub receive_window: u32,
}

fn tcp_info(fd: BorrowedFd<'_>) -> io::Result<libc::tcp_info> {
    // SAFETY: a structure of integers, for all of which zero is a value.
    let mut raw: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the buffer is as long as it says and outlives the call.
    let done = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_TCP,
            libc::TCP_INFO,
            (&raw mut raw).cast(),
            &raw mut length,
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(raw) }
}

/// Reads TCP_INFO of a socket from the kernel.
pub fn info(fd: BorrowedFd<'_>) -> io::Result<Tcp> {
    let raw = tcp_info(fd)?;
    Ok(Tcp {
        srtt_ns: u64::from(raw.tcpi_rtt) * 1000,
        cwnd: raw.tcpi_snd_cwnd,
        mss: raw.tcpi_snd_mss,
        retransmits: raw.tcpi_total_retrans,
        unacked: raw.tcpi_unacked,
        receive_window: raw.tcpi_rcv_ssthresh,
    })
}

/// Of a connection whose retransmissions after a timeout have not been answered yet.
#[derive(Debug, Clone, Copy)]
pub struct Vain {
    /// How many there were.
    pub retransmits: u8,
    /// Milliseconds since the peer was heard at all.
    pub heard_ms: u32,
}

/// Whether it is one.
pub fn waits_in_vain(fd: BorrowedFd<'_>) -> Option<Vain> {
    let raw = tcp_info(fd).ok()?;
    let vain = raw.tcpi_ca_state == CA_LOSS && raw.tcpi_retransmits > 0;
    vain.then_some(Vain { retransmits: raw.tcpi_retransmits, heard_ms: raw.tcpi_last_ack_recv })
}

/// Has the kernel send a segment without data that the peer answers (RFC 9293 §3.8.6.1): leaving
/// repair mode does (tcp_send_window_probe). Needs CAP_NET_ADMIN.
pub fn probe(fd: BorrowedFd<'_>) -> io::Result<()> {
    set(fd, libc::SOL_TCP, libc::TCP_REPAIR, 1)?;
    set(fd, libc::SOL_TCP, libc::TCP_REPAIR, 0)?;
    // Which it leaves off.
    Ok(sockopt::set_socket_reuseaddr(fd, true)?)
}
