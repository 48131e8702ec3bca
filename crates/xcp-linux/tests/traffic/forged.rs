//! Segments that no TCP sent: as anybody may who can send packets. Which of the headers that they
//! carry are believed.

use std::io::{Read as _, Write as _};
use std::mem::size_of_val;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::thread;
use std::time::Duration;

use xcp_engine::{
    EXTENDED_LENGTH_MAX, ExtendedOption, ForwardHeader, ReturnHeader, WireFormat, flags,
    write_extended,
};
use xcp_linux::endpoint::{Ask, Connection, Endpoint, Give};
use xcp_linux::router::Hook;
use xcp_linux::sysctl;

use crate::site::{Site, endpoint_asking};
use crate::{MEGABYTE, listen, payload};

/// A segment over IPv4.
#[derive(Clone)]
pub struct Segment {
    pub from: (Ipv4Addr, u16),
    pub to: (Ipv4Addr, u16),
    pub sequence: u32,
    pub acknowledgement: u32,
    /// Filled up with NOPs.
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Default for Segment {
    fn default() -> Self {
        let nobody = (Ipv4Addr::new(192, 0, 2, 1), 9);
        Segment {
            from: nobody,
            to: nobody,
            sequence: 0,
            acknowledgement: 0,
            options: Vec::new(),
            payload: Vec::new(),
        }
    }
}

fn sum(bytes: &[u8]) -> u32 {
    let sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b)))
        .sum();
    (sum & 0xffff) + (sum >> 16)
}

fn folded(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

/// `option` as an option block has it.
fn written(option: &ExtendedOption) -> Vec<u8> {
    let mut buffer = [0; EXTENDED_LENGTH_MAX];
    let length = write_extended(&mut buffer, option);
    buffer[..length].to_vec()
}

/// A forward header that routers have seen.
pub fn forward(rtt_ns: u64, window: f64, feedback: f64) -> Vec<u8> {
    let h = ForwardHeader::encode(WireFormat::Extended, rtt_ns, window, feedback);
    let forward = ForwardHeader { flags: h.flags | flags::MARK, ..h };
    written(&ExtendedOption { forward, returned: ReturnHeader::default(), ids: false })
}

/// A return header with a router's mark; bytes/s.
fn returned(feedback: f64) -> Vec<u8> {
    let returned = ReturnHeader::encode(WireFormat::Extended, feedback, true);
    written(&ExtendedOption { forward: ForwardHeader::default(), returned, ids: false })
}

fn timestamps(value: u32, echo: u32) -> Vec<u8> {
    [&[1, 1, 8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat()
}

impl Segment {
    /// The packet; its checksum is complete, or (`partial`) what a device would go on from.
    fn packet(&self, partial: bool) -> Vec<u8> {
        let mut options = self.options.clone();
        options.resize(options.len().next_multiple_of(4), 1);
        let length = 20 + options.len() + self.payload.len();
        let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0];
        ip[2..4].copy_from_slice(&(20 + length as u16).to_be_bytes());
        ip.extend(self.from.0.octets());
        ip.extend(self.to.0.octets());
        let check = !folded(sum(&ip));
        ip[10..12].copy_from_slice(&check.to_be_bytes());
        let mut tcp = [self.from.1.to_be_bytes(), self.to.1.to_be_bytes()].concat();
        tcp.extend(self.sequence.to_be_bytes());
        tcp.extend(self.acknowledgement.to_be_bytes());
        tcp.extend([((20 + options.len()) as u8 / 4) << 4, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend(options);
        let pseudo = sum(&ip[12..20]) + 6 + length as u32;
        if partial {
            tcp[16..18].copy_from_slice(&folded(pseudo).to_be_bytes());
            tcp.extend(&self.payload);
        } else {
            tcp.extend(&self.payload);
            let check = !folded(pseudo + sum(&tcp));
            tcp[16..18].copy_from_slice(&check.to_be_bytes());
        }
        ip.extend(tcp);
        ip
    }

    /// Sends it, in the calling thread's network namespace.
    fn send(&self) {
        let packet = self.packet(false);
        // SAFETY: plain calls; the descriptor is new and owned from here on; the address is all
        // there and lives as long as the call.
        unsafe {
            let fd =
                libc::socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_RAW);
            assert!(fd >= 0, "{}", std::io::Error::last_os_error());
            let socket = OwnedFd::from_raw_fd(fd);
            let mut to: libc::sockaddr_in = std::mem::zeroed();
            to.sin_family = libc::AF_INET as u16;
            to.sin_addr.s_addr = u32::from_ne_bytes(self.to.0.octets());
            let length = size_of_val(&to) as u32;
            let sent = libc::sendto(
                socket.as_raw_fd(),
                packet.as_ptr().cast(),
                packet.len(),
                0,
                (&raw const to).cast(),
                length,
            );
            assert_eq!(sent, packet.len() as isize, "{}", std::io::Error::last_os_error());
        }
    }

    /// Sends it by a device of the calling thread's namespace as a virtual machine's network card
    /// hands it over: with the size of the segments that it is to be cut into (PACKET_VNET_HDR,
    /// struct virtio_net_hdr).
    pub fn send_large(&self, device: &str, size: u16) {
        const PACKET_VNET_HDR: i32 = 15;
        let packet = self.packet(true);
        let headers = 14 + 20 + 20 + self.options.len().next_multiple_of(4);
        let mut frame = vec![1, 1]; // the checksum is to be made; TCP over IPv4
        for word in [headers as u16, size, 14 + 20, 16] {
            frame.extend(word.to_ne_bytes());
        }
        frame.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        frame.extend(packet);
        let name = std::ffi::CString::new(device).unwrap();
        // SAFETY: as in `send`.
        unsafe {
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            assert!(fd >= 0, "{}", std::io::Error::last_os_error());
            let socket = OwnedFd::from_raw_fd(fd);
            let one = 1i32;
            let set =
                libc::setsockopt(fd, libc::SOL_PACKET, PACKET_VNET_HDR, (&raw const one).cast(), 4);
            assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
            let mut to: libc::sockaddr_ll = std::mem::zeroed();
            to.sll_family = libc::AF_PACKET as u16;
            to.sll_protocol = 0x0800u16.to_be();
            to.sll_ifindex = libc::if_nametoindex(name.as_ptr()) as i32;
            let length = size_of_val(&to) as u32;
            let sent = libc::sendto(
                socket.as_raw_fd(),
                frame.as_ptr().cast(),
                frame.len(),
                0,
                (&raw const to).cast(),
                length,
            );
            assert_eq!(sent, frame.len() as isize, "{}", std::io::Error::last_os_error());
        }
    }
}

/// An option of a socket's TCP.
fn option(socket: &TcpStream, name: i32) -> u32 {
    let (mut value, mut length) = (0u32, 4u32);
    // SAFETY: the buffer is as long as is said.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            name,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    assert_eq!(got, 0, "{}", std::io::Error::last_os_error());
    value
}

fn set_option(socket: &TcpStream, name: i32, value: i32) {
    // SAFETY: as in `option`.
    let set = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, name, (&raw const value).cast(), 4)
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// Next sequence number to send and to receive, of a connection at rest.
fn numbers(socket: &TcpStream) -> (u32, u32) {
    const TCP_REPAIR: i32 = 19;
    const TCP_REPAIR_QUEUE: i32 = 20;
    const TCP_QUEUE_SEQ: i32 = 21;
    set_option(socket, TCP_REPAIR, 1);
    let [send, receive] = [2, 1].map(|queue| {
        set_option(socket, TCP_REPAIR_QUEUE, queue);
        option(socket, TCP_QUEUE_SEQ)
    });
    set_option(socket, TCP_REPAIR, -1); // off, without asking the peer for anything
    (send, receive)
}

/// A connection at rest between S and D, both of which have sent and heard by XCP.
fn at_rest(site: &Site, endpoint: &Endpoint) -> (TcpStream, TcpStream) {
    let listener = listen(site, false);
    let mut s = site.s.run(|| TcpStream::connect(listener.local_addr().unwrap()).unwrap()).unwrap();
    let (mut d, _) = listener.accept().unwrap();
    // little enough to lie in a receive buffer until it is read
    for _ in 0..10 {
        let mut data = vec![0; MEGABYTE / 64];
        s.write_all(&payload(data.len())).unwrap();
        d.read_exact(&mut data).unwrap();
        d.write_all(&payload(data.len())).unwrap();
        s.read_exact(&mut data).unwrap();
    }
    let before = settled(endpoint, &s);
    assert!(
        before.sending && before.receiving && before.marked && before.returns > 0,
        "{before:?}"
    );
    (s, d)
}

/// The connection when nothing changes any more.
fn settled(endpoint: &Endpoint, socket: &TcpStream) -> Connection {
    let mut last = endpoint.connection(socket.as_fd()).unwrap().unwrap();
    loop {
        thread::sleep(Duration::from_millis(150));
        let now = endpoint.connection(socket.as_fd()).unwrap().unwrap();
        if now == last {
            return now;
        }
        last = now;
    }
}

#[test]
fn what_the_peer_did_not_send_is_not_believed() {
    for robust in [false, true] {
        let Some(site) = Site::new() else { return };
        not_believed(&site, robust);
    }
}

fn not_believed(site: &Site, robust: bool) {
    const TCP_TIMESTAMP: i32 = 24;
    let endpoint = endpoint_asking(site, Give::All, Ask { robust, ..Ask::default() });
    let router = site.router(20_000_000, Hook::Any);
    let (s, d) = at_rest(site, &endpoint);
    let (SocketAddr::V4(local), SocketAddr::V4(peer)) =
        (s.local_addr().unwrap(), s.peer_addr().unwrap())
    else {
        panic!("IPv4")
    };
    let (sent, heard) = numbers(&s);
    let genuine = Segment {
        from: (*peer.ip(), peer.port()),
        to: (*local.ip(), local.port()),
        sequence: heard,
        acknowledgement: sent,
        ..Segment::default()
    };
    let timed = |rest: Vec<u8>| {
        [timestamps(option(&d, TCP_TIMESTAMP), option(&s, TCP_TIMESTAMP)), rest].concat()
    };
    let long_ago = option(&d, TCP_TIMESTAMP).wrapping_sub(1_000_000);
    let gift = || returned(1e9);
    let mut before = settled(&endpoint, &s);
    for (what, segment) in [
        ("no timestamp", Segment { options: gift(), ..genuine.clone() }),
        (
            "an old acknowledgement",
            Segment {
                options: timed(gift()),
                acknowledgement: sent.wrapping_sub(1000),
                ..genuine.clone()
            },
        ),
        (
            "neither",
            Segment {
                options: gift(),
                acknowledgement: sent.wrapping_sub(1000),
                ..genuine.clone()
            },
        ),
        (
            "what was never sent",
            Segment {
                options: timed(gift()),
                acknowledgement: sent.wrapping_add(1000),
                ..genuine.clone()
            },
        ),
        (
            "a timestamp of long ago",
            Segment {
                options: [timestamps(long_ago, option(&s, TCP_TIMESTAMP)), gift()].concat(),
                ..genuine.clone()
            },
        ),
        (
            "beyond the window",
            Segment {
                options: timed(gift()),
                sequence: heard.wrapping_add(1 << 30),
                ..genuine.clone()
            },
        ),
    ] {
        site.r.run(|| segment.send()).unwrap();
        let after = settled(&endpoint, &s);
        assert_eq!(
            (after.returns, after.feedback_sum, after.cwnd_packets),
            (before.returns, before.feedback_sum, before.cwnd_packets),
            "{what}"
        );
    }
    // nor what data says of the way here
    for (what, segment) in [
        (
            "no timestamp",
            Segment { options: forward(MEGABYTE as u64, 1.0, 1e9), ..genuine.clone() },
        ),
        (
            "what was never sent",
            Segment {
                options: timed(forward(1, 1.0, 1e9)),
                acknowledgement: sent.wrapping_add(1000),
                ..genuine.clone()
            },
        ),
    ] {
        // far enough from what comes next to be out of the way
        let segment =
            Segment { payload: vec![0; 100], sequence: heard.wrapping_add(100_000), ..segment };
        site.r.run(|| segment.send()).unwrap();
        assert_eq!(settled(&endpoint, &s).received, before.received, "{what}");
    }
    // what the peer might have sent counts
    site.r.run(|| Segment { options: timed(returned(-1000.0)), ..genuine.clone() }.send()).unwrap();
    let after = settled(&endpoint, &s);
    assert_eq!(after.returns, before.returns + 1);
    assert!(
        (after.feedback_sum - before.feedback_sum + 8000.0).abs() < 100.0
            && after.cwnd_packets < before.cwnd_packets,
        "{before:?} {after:?}"
    );
    before = after;
    // yet gives no more than the peer can take
    let mut data = vec![0; MEGABYTE / 8];
    let forward = |on| site.r.run(|| sysctl::write("net.ipv4.ip_forward", on).unwrap()).unwrap();
    let raised = thread::scope(|scope| {
        // so that nobody else answers, and the window is the limit
        forward("0");
        scope.spawn(|| (&s).write_all(&payload(MEGABYTE / 8)).unwrap());
        thread::sleep(Duration::from_millis(20));
        site.r
            .run(|| {
                (0..50).for_each(|_| {
                    Segment { options: timed(returned(1e15)), ..genuine.clone() }.send()
                })
            })
            .unwrap();
        let raised = endpoint.connection(s.as_fd()).unwrap().unwrap().cwnd_packets;
        forward("1");
        (&d).read_exact(&mut data).unwrap();
        raised
    });
    assert!(data == payload(MEGABYTE / 8), "the connection does not go on");
    // Twice net.ipv4.tcp_rmem's last value, which is not more than 64 MB; or eight times what was
    // acknowledged in a round trip, which is what may be in flight at the most, and four.
    let acknowledged = 2.0 * before.cwnd_packets + 2.0;
    let (least, most) = if robust {
        (4.0, 8.0 * acknowledged + 4.0)
    } else {
        (100.0, f64::from(2 * (64 << 20) / 1400))
    };
    assert!((least..=most).contains(&raised), "{before:?} {raised}");
    drop(router);
}
