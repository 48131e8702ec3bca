//! What the kernel's sockets are asked that has no safe wrapper elsewhere: options by number,
//! TCP_INFO.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};

use rustix::net::{RecvFlags, recv, sockopt};
use xcp_model::units::Nanos;

/// Sets a socket option that takes an integer.
pub(crate) fn set(socket: impl AsFd, level: i32, option: i32, value: u32) -> io::Result<()> {
    let fd = socket.as_fd().as_raw_fd();
    let size = size_of::<u32>() as libc::socklen_t;
    // SAFETY: the descriptor is open for the call, and value and size describe four readable bytes.
    let result = unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// struct tcp_info of include/uapi/linux/tcp.h, as far as it is looked at. The kernel fills in what
/// it knows, newer fields come at the end.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct RawInfo {
    bytes: [u8; 8],
    /// tcpi_rto to tcpi_total_retrans.
    words: [u32; 24],
    /// tcpi_pacing_rate, tcpi_max_pacing_rate, tcpi_bytes_acked, tcpi_bytes_received.
    totals: [u64; 4],
    /// tcpi_segs_out to tcpi_data_segs_out.
    segments: [u32; 6],
    /// tcpi_delivery_rate to tcpi_sndbuf_limited.
    times: [u64; 4],
    /// tcpi_delivered, tcpi_delivered_ce.
    delivered: [u32; 2],
    /// tcpi_bytes_sent, tcpi_bytes_retrans.
    sent: [u64; 2],
    /// tcpi_dsack_dups to tcpi_rehash.
    counts: [u32; 6],
    /// tcpi_total_rto, tcpi_total_rto_recoveries (since 6.7).
    timeouts: [u16; 2],
    /// tcpi_total_rto_time.
    timeout_ms: u32,
}

/// A connection, as the kernel sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct TcpInfo {
    /// Smoothed RTT; 0 before the first sample.
    pub srtt: Nanos,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts; `None` where the kernel does not count them (before 6.7).
    pub timeouts: Option<u64>,
    /// Payload acknowledged, bytes; a SYN counts one.
    pub acked_bytes: u64,
    /// Segments received.
    pub segments_in: u32,
    /// Payload in the send queue that was never sent, bytes.
    pub unsent_bytes: u32,
}

impl TcpInfo {
    /// Of a socket.
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let fd = socket.as_fd().as_raw_fd();
        let mut raw = MaybeUninit::<RawInfo>::zeroed();
        let mut size = size_of::<RawInfo>() as libc::socklen_t;
        // SAFETY: the descriptor is open for the call; the kernel writes at most `size` bytes to
        // `raw`, which has them.
        let result = unsafe {
            libc::getsockopt(
                fd,
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                raw.as_mut_ptr().cast(),
                &raw mut size,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: zeroed before, partly overwritten by the kernel; integers may have any value.
        let raw = unsafe { raw.assume_init() };
        Ok(Self {
            srtt: Nanos::from(raw.words[15]) * 1000,
            cwnd: raw.words[18],
            retransmits: raw.words[23].into(),
            timeouts: (size as usize > std::mem::offset_of!(RawInfo, timeouts))
                .then_some(raw.timeouts[0].into()),
            acked_bytes: raw.totals[2],
            segments_in: raw.segments[1],
            unsent_bytes: raw.segments[2],
        })
    }
}

/// Has the kernel tell, by an error of the socket, when what is sent next is acknowledged
/// (Documentation/networking/timestamping.rst).
pub(super) fn tell_acknowledged(socket: impl AsFd) -> io::Result<()> {
    set(
        socket,
        libc::SOL_SOCKET,
        libc::SO_TIMESTAMPING,
        libc::SOF_TIMESTAMPING_TX_ACK | libc::SOF_TIMESTAMPING_OPT_TSONLY,
    )
}

/// Takes what the kernel has told.
pub(super) fn drain_errors(socket: impl AsFd) {
    let mut nothing = [0; 1];
    while recv(&socket, &mut nothing, RecvFlags::ERRQUEUE | RecvFlags::DONTWAIT).is_ok() {}
}

/// Lets the send buffer hold no more than it holds now.
pub(super) fn keep_send_buffer(socket: impl AsFd) -> io::Result<()> {
    /// Index in what SO_MEMINFO gives, include/uapi/linux/sock_diag.h.
    const SK_MEMINFO_WMEM_QUEUED: usize = 5;
    let fd = socket.as_fd().as_raw_fd();
    let mut memory = [0u32; 9];
    let mut size = size_of_val(&memory) as libc::socklen_t;
    // SAFETY: the descriptor is open for the call; the kernel writes at most `size` bytes to
    // `memory`, which has them.
    let result = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            memory.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // The kernel doubles what it is told.
    Ok(sockopt::set_socket_send_buffer_size_force(
        socket,
        memory[SK_MEMINFO_WMEM_QUEUED] as usize / 2,
    )?)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Fields are where the kernel has them.
    #[test]
    fn tcp_info_is_understood() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        sender.write_all(&[0; 1000]).unwrap();
        receiver.read_exact(&mut [0; 1000]).unwrap();
        receiver.write_all(&[0]).unwrap();
        sender.read_exact(&mut [0]).unwrap();
        let info = TcpInfo::of(&sender).unwrap();
        assert_eq!((info.acked_bytes, info.retransmits, info.unsent_bytes), (1001, 0, 0));
        assert!(
            (2..=100).contains(&info.cwnd) && (1..1_000_000_000).contains(&info.srtt),
            "{info:?}"
        );
        assert!(info.segments_in >= 2 && info.timeouts.is_none_or(|n| n == 0), "{info:?}");
        assert!(TcpInfo::of(std::io::stdin()).is_err());
    }
}
