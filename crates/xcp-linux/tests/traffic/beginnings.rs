//! The robust sender's first window, where nobody asked for it before connecting.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;

use xcp_linux::endpoint::{Ask, Give};

use crate::site::{Site, endpoint_asking};
use crate::{listen, payload};

/// `tcpi_snd_cwnd` (include/uapi/linux/tcp.h).
const SND_CWND: usize = 80;

fn cwnd(socket: &TcpStream) -> u32 {
    let (mut info, mut length) = ([0u8; 104], 104u32);
    // SAFETY: the kernel writes at most `length` bytes into `info`.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        )
    };
    assert_eq!(got, 0);
    u32::from_ne_bytes(info[SND_CWND..SND_CWND + 4].try_into().unwrap())
}

/// Sequence numbers begin anywhere: a sender that compares with one from before had a million
/// packets here in half of the connections, and did not count their losses.
#[test]
fn first_windows_are_first_windows() {
    let Some(site) = Site::new() else { return };
    let _endpoint = endpoint_asking(&site, Give::All, Ask { robust: true, ..Ask::default() });
    let listener = listen(&site, false);
    let to = listener.local_addr().unwrap();
    for _ in 0..20 {
        let mut socket = site.s.run(|| TcpStream::connect(to).unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        let mut data = payload(30_000);
        socket.write_all(&data).unwrap();
        other.read_exact(&mut data).unwrap();
        assert!(cwnd(&socket) <= 1000, "{} packets", cwnd(&socket));
    }
}
