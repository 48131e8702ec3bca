//! The robust sender's first window, where nobody asked for it before connecting.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};
use xcp_engine::{ExtendedOption, Preset, RouterConfig, find_options, flags, read_extended};
use xcp_linux::endpoint::{Agreement, Ask, Give};
use xcp_linux::router::Hook;
use xcp_linux::sysctl;

use crate::site::{Site, endpoint_asking};
use crate::{listen, payload};

const RATE: u64 = 20_000_000;

/// `tcpi_options` and `tcpi_snd_cwnd` (include/uapi/linux/tcp.h).
const OPTIONS: usize = 5;
const SND_CWND: usize = 80;
/// Of the former: data went with the SYN, and were acknowledged with it.
const SYN_DATA: u8 = 32;

fn cwnd(socket: &TcpStream) -> u32 {
    u32::from_ne_bytes(info(socket)[SND_CWND..SND_CWND + 4].try_into().unwrap())
}

fn info(socket: &TcpStream) -> [u8; 104] {
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
    info
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

/// The first windows, before anything is sent, of those who connect and of those who accept.
fn first(site: &Site, connections: usize) -> [Vec<u32>; 2] {
    let listener = listen(site, false);
    let to = listener.local_addr().unwrap();
    let (mut connecting, mut accepting) = (Vec::new(), Vec::new());
    for _ in 0..connections {
        let socket = site.s.run(|| TcpStream::connect(to).unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        connecting.push(cwnd(&socket));
        accepting.push(cwnd(&other));
        // Both ends can be read from.
        let (mut data, mut sent) = ([0; 3000], &payload(3000)[..]);
        (&socket).write_all(sent).unwrap();
        (&other).read_exact(&mut data).unwrap();
        assert_eq!(data[..], *sent);
        sent = &data;
        (&other).write_all(sent).unwrap();
        (&socket).read_exact(&mut [0; 3000]).unwrap();
    }
    [connecting, accepting]
}

/// A link of 20 Mbit/s holds less than two packets in the millisecond that a round trip lasts here:
/// routers of the law `robust` say so in the answer to the SYN, and in that to the SYN-ACK. Where
/// there is none, or of another law, or the other sender, ten packets are the first window.
#[test]
fn routers_say_how_large_a_first_window_may_be() {
    let Some(site) = Site::new() else { return };
    let robust = Ask { robust: true, ..Ask::default() };
    {
        let _endpoint = endpoint_asking(&site, Give::All, robust);
        assert_eq!(first(&site, 3), [vec![10; 3], vec![10; 3]]);
        let law = RouterConfig::preset(Preset::Robust, RATE / 8);
        let router = site.router_of(RATE, Hook::Any, law.clone());
        let [connecting, accepting] = first(&site, 3);
        assert!(connecting.iter().all(|w| *w < 10), "{connecting:?}");
        assert_eq!(accepting, [10; 3], "there is no router on the way back");
        let back = site.router_back_of(RATE, law);
        for windows in first(&site, 3) {
            assert!(windows.iter().all(|w| *w < 10), "{windows:?}");
        }
        site.r.run(|| drop((router, back))).unwrap();
        let _router = site.router(RATE, Hook::Any);
        let _back = site.router_back(RATE);
        assert_eq!(first(&site, 3), [vec![10; 3], vec![10; 3]], "`xcp` has no answer");
        site.assert_checksums();
    }
    let _endpoint = endpoint_asking(&site, Give::All, Ask::default());
    let _router = site.router_of(RATE, Hook::Any, RouterConfig::preset(Preset::Robust, RATE / 8));
    assert_eq!(first(&site, 3), [vec![10; 3], vec![10; 3]], "it does not ask");
}

/// A socket that gets a copy of every packet of TCP that comes.
fn raw_tcp() -> OwnedFd {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let tcp = Some(rustix::net::ipproto::TCP);
    rustix::net::socket_with(AddressFamily::INET, SocketType::RAW, flags, tcp).unwrap()
}

/// The options of what has come to it with data from this port, in order.
fn came_with_data(raw: &OwnedFd, port: u16) -> Vec<ExtendedOption> {
    const IP: usize = 20;
    const TCP: usize = 20;
    let mut packet = [0; 2000];
    let mut options = Vec::new();
    while let Ok((_, length)) = rustix::net::recv(raw, &mut packet, rustix::net::RecvFlags::empty())
    {
        let tcp = &packet[IP..length];
        let data = usize::from(tcp[12] >> 4) * 4;
        if tcp[..2] != port.to_be_bytes() || tcp.len() == data {
            continue;
        }
        let block = &tcp[TCP..data];
        assert!(find_options(block).extended.is_some(), "a header with all data");
        options.extend(read_extended(block));
    }
    options
}

/// TCP does not pace its first ten segments, and their headers say so, also where they answer a
/// request. Only single segments do, and where there is something to say.
#[test]
fn what_is_sent_at_once_says_so() {
    const SEGMENTS: usize = 30;
    let Some(site) = Site::new() else { return };
    let _endpoint = endpoint_asking(&site, Give::All, Ask { robust: true, ..Ask::default() });
    site.join_nothing();
    let raw = site.d.run(raw_tcp).unwrap();
    let listener = listen(&site, false);
    let to = listener.local_addr().unwrap();
    for (request, offloads) in [(false, true), (true, true), (true, false)] {
        if !offloads {
            site.cut_up_at_hosts();
        }
        let mut socket = site.s.run(|| TcpStream::connect(to).unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        if request {
            other.write_all(&payload(1000)).unwrap();
            socket.read_exact(&mut [0; 1000]).unwrap();
        }
        let mut data = payload(SEGMENTS * 1400);
        socket.write_all(&data).unwrap();
        other.read_exact(&mut data).unwrap();
        let came = came_with_data(&raw, socket.local_addr().unwrap().port());
        assert!(came.len() >= SEGMENTS, "{} segments", came.len());
        let at_once = |o: &ExtendedOption| o.forward.flags & flags::OPENS != 0;
        let answers = |o: &ExtendedOption| o.returned.flags & flags::PRESENT != 0;
        for (n, option) in came.iter().enumerate() {
            let told = format!("request {request}, offloads {offloads}, segment {n}: {option:?}");
            assert_eq!(at_once(option), n < 10 && !answers(option), "{told}");
            match n {
                0..2 if !offloads => {} // it may, the second one with what the first had no room for
                0..10 => assert!(!answers(option), "{told}"),
                _ => assert!(answers(option), "{told}"),
            }
        }
    }
}

/// What a router answered the server's SYN-ACK goes back with what completes the handshake, or not at
/// all: later it would be an increase, by all that the link carries. Who keeps that acknowledgement
/// back and sends a request of several segments has no room for it there.
#[test]
fn an_answer_that_comes_late_is_none() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint_asking(&site, Give::All, Ask { robust: true, ..Ask::default() });
    let law = RouterConfig::preset(Preset::Robust, RATE / 8);
    let _back = site.router_back_of(RATE, law);
    let listener = listen(&site, false);
    let to = listener.local_addr().unwrap();
    let socket = site.s.run(|| unconnected(to)).unwrap();
    set_option(&socket, libc::TCP_QUICKACK, 0);
    site.s.run(|| rustix::net::connect(&socket, &to).unwrap()).unwrap();
    let mut socket = TcpStream::from(socket);
    socket.write_all(&payload(4200)).unwrap();
    let (mut other, _) = listener.accept().unwrap();
    other.read_exact(&mut [0; 4200]).unwrap();
    other.write_all(&payload(10)).unwrap();
    socket.read_exact(&mut [0; 10]).unwrap();
    let begun = Instant::now();
    let heard = loop {
        let server = endpoint.connection(other.as_fd()).unwrap().unwrap();
        if server.returns > 0 {
            break server;
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "it is not answered: {server:?}");
        thread::sleep(Duration::from_millis(5));
    };
    assert!(heard.feedback_sum.abs() < RATE as f64 / 10.0, "{heard:?}");
}

/// Where a SYN has no room for that, beside the cookie of TCP Fast Open, the offer goes alone, and
/// data that come with the SYN arrive.
#[test]
fn fast_open_leaves_room_for_the_offer() {
    const CLIENT_AND_SERVER: &str = "3";
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint_asking(&site, Give::All, Ask { robust: true, ..Ask::default() });
    for end in [&site.s, &site.d] {
        end.run(|| sysctl::write("net.ipv4.tcp_fastopen", CLIENT_AND_SERVER).unwrap()).unwrap();
    }
    let listener = listen(&site, false);
    set_option(&listener, libc::TCP_FASTOPEN, 8);
    let to = listener.local_addr().unwrap();
    // The first connection gets the cookie, the second sends it.
    for n in 1..=2 {
        let socket = site.s.run(|| unconnected(to)).unwrap();
        set_option(&socket, libc::TCP_FASTOPEN_CONNECT, 1);
        site.s.run(|| rustix::net::connect(&socket, &to).unwrap()).unwrap();
        let mut socket = TcpStream::from(socket);
        let sent = payload(30_000);
        socket.write_all(&sent).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        let mut data = vec![0; sent.len()];
        other.read_exact(&mut data).unwrap();
        assert_eq!(data, sent);
        assert_eq!(info(&socket)[OPTIONS] & SYN_DATA != 0, n == 2, "data went with the SYN");
        let connection = endpoint.connection(socket.as_fd()).unwrap().unwrap();
        assert_eq!(connection.agreement, Agreement::Agreed, "connection {n}: {connection:?}");
    }
}

/// Nor is there beside MPTCP's options, in the SYN-ACK.
#[test]
fn mptcp_leaves_room_for_the_offer() {
    /// `IPPROTO_MPTCP`.
    const MPTCP: u32 = 262;
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint_asking(&site, Give::All, Ask { robust: true, ..Ask::default() });
    let multipath = || {
        let protocol = Protocol::from_raw(MPTCP.try_into().unwrap());
        rustix::net::socket(AddressFamily::INET, SocketType::STREAM, Some(protocol))
    };
    let Ok(listener) = site.d.run(multipath).unwrap() else {
        return xcp_skip::skipped!("kernel", "MPTCP's options: this kernel has no MPTCP");
    };
    let own = SocketAddr::new(site.address(false), 0);
    site.d.run(|| rustix::net::bind(&listener, &own).unwrap()).unwrap();
    rustix::net::listen(&listener, 8).unwrap();
    let listener = TcpListener::from(listener);
    let socket = site.s.run(|| multipath().unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    rustix::net::connect(&socket, &to).unwrap();
    let mut socket = TcpStream::from(socket);
    let (mut other, _) = listener.accept().unwrap();
    let sent = payload(30_000);
    socket.write_all(&sent).unwrap();
    let mut data = vec![0; sent.len()];
    other.read_exact(&mut data).unwrap();
    assert_eq!(data, sent);
    assert_eq!(endpoint.counts().unwrap().agreed, 2, "both ends");
}

fn unconnected(to: SocketAddr) -> OwnedFd {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    rustix::net::socket(family, SocketType::STREAM, None).unwrap()
}

fn set_option(socket: &impl AsFd, option: i32, value: i32) {
    // SAFETY: the value is as long as is said, and lives as long as the call.
    let set = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            (&raw const value).cast(),
            4,
        )
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}
