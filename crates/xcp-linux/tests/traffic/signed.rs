//! Connections whose segments are signed (TCP-MD5, RFC 2385; TCP-AO, RFC 5925): they are left
//! alone, and open and carry data as ever.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, socket};
use xcp_linux::endpoint::Give;

use crate::site::{Site, endpoint};
use crate::{MEGABYTE, congestion, listen, payload, transfer};

/// How to sign.
#[derive(Clone, Copy)]
enum Signature {
    Md5,
    Ao,
}

/// `struct tcp_md5sig` (linux/tcp.h).
#[repr(C)]
struct Md5 {
    peer: libc::sockaddr_storage,
    flags: u8,
    prefix: u8,
    key_length: u16,
    device: i32,
    key: [u8; 80],
}

/// `struct tcp_ao_add` (linux/tcp.h).
#[repr(C, align(8))]
struct Ao {
    peer: libc::sockaddr_storage,
    algorithm: [u8; 64],
    device: i32,
    current: u32,
    reserved: u16,
    prefix: u8,
    send_id: u8,
    receive_id: u8,
    mac_length: u8,
    key_flags: u8,
    key_length: u8,
    key: [u8; 80],
}

const KEY: &[u8] = b"a key of these tests";

/// Gives a socket the key for all segments from and to an IPv4 address.
fn sign(socket: i32, signature: Signature, peer: IpAddr) -> io::Result<()> {
    let IpAddr::V4(peer) = peer else { panic!("IPv4 only") };
    let mut key = [0; 80];
    key[..KEY.len()].copy_from_slice(KEY);
    // SAFETY: All zeros is valid for plain numbers; a sockaddr_in fits in a sockaddr_storage; the
    // buffers live as long as the calls.
    let set = unsafe {
        let mut storage: libc::sockaddr_storage = std::mem::zeroed();
        let address = (&raw mut storage).cast::<libc::sockaddr_in>();
        (*address).sin_family = libc::AF_INET as u16;
        (*address).sin_addr.s_addr = u32::from_ne_bytes(peer.octets());
        match signature {
            Signature::Md5 => {
                let md5 = Md5 {
                    peer: storage,
                    flags: 0,
                    prefix: 0,
                    key_length: KEY.len() as u16,
                    device: 0,
                    key,
                };
                libc::setsockopt(
                    socket,
                    libc::IPPROTO_TCP,
                    14,
                    (&raw const md5).cast(),
                    size_of::<Md5>() as u32,
                )
            }
            Signature::Ao => {
                let mut algorithm = [0; 64];
                algorithm[..10].copy_from_slice(b"hmac(sha1)");
                let ao = Ao {
                    peer: storage,
                    algorithm,
                    device: 0,
                    current: 0,
                    reserved: 0,
                    prefix: 32,
                    send_id: 100,
                    receive_id: 100,
                    mac_length: 0,
                    key_flags: 0,
                    key_length: KEY.len() as u8,
                    key,
                };
                libc::setsockopt(
                    socket,
                    libc::IPPROTO_TCP,
                    38,
                    (&raw const ao).cast(),
                    size_of::<Ao>() as u32,
                )
            }
        }
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A socket with a key that gives up soon; `None`, said aloud, where the kernel cannot sign.
fn signing(site: &Site, signature: Signature, what: &str) -> Option<OwnedFd> {
    let socket: OwnedFd =
        site.s.run(|| socket(AddressFamily::INET, SocketType::STREAM, None).unwrap()).unwrap();
    match sign(socket.as_raw_fd(), signature, site.address(false)) {
        Ok(()) => {}
        Err(e) if e.raw_os_error() == Some(libc::ENOPROTOOPT) => {
            xcp_skip::skipped!(
                "kernel",
                "connections that are signed by {what}: this kernel does not have it"
            );
            return None;
        }
        Err(e) => panic!("{what}: {e}"),
    }
    let patience = 10_000i32; // ms, TCP_USER_TIMEOUT
    // SAFETY: as in `sign`.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_USER_TIMEOUT,
            (&raw const patience).cast(),
            4,
        )
    };
    Some(socket)
}

fn signed_connections(signature: Signature, what: &str) {
    let Some(site) = Site::new() else { return };
    let Some(socket) = signing(&site, signature, what) else { return };
    let endpoint = endpoint(&site, Give::All);
    let router = site.router(20_000_000, xcp_linux::router::Hook::Any);
    let listener = listen(&site, false);
    sign(listener.as_raw_fd(), signature, site.address_of_s().into()).unwrap();
    let to = listener.local_addr().unwrap();
    let accepting = thread::spawn(move || accept(&listener));
    rustix::net::connect(&socket, &to)
        .unwrap_or_else(|e| panic!("{what}: the connection does not open: {e}"));
    let mut socket = TcpStream::from(socket);
    socket.write_all(&payload(MEGABYTE)).unwrap();
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(
        accepting.join().unwrap() == payload(MEGABYTE),
        "{what}: the data are not what was sent"
    );
    assert_ne!(congestion(&socket), endpoint.name(), "{what}");
    assert_eq!(
        endpoint.counts().unwrap().agreed,
        0,
        "{what}: signed connections have agreed on XCP"
    );
    let counts = router.status().unwrap().counts;
    assert_eq!((counts.processed, counts.malformed), (0, 0), "{what}: {counts:?}");
    site.assert_checksums();
    // who listens with a key for somebody else speaks it with all others
    let listener = listen(&site, false);
    sign(listener.as_raw_fd(), signature, "192.0.2.77".parse().unwrap()).unwrap();
    let done =
        transfer(&site, crate::Plan { listener: Some(listener), ..crate::Plan::new(&endpoint) });
    assert_eq!(done.congestion, endpoint.name(), "{what}: not signed");
}

fn accept(listener: &TcpListener) -> Vec<u8> {
    let (mut socket, _): (_, SocketAddr) = listener.accept().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut data = Vec::new();
    socket.read_to_end(&mut data).unwrap();
    data
}

#[test]
fn md5_connections_are_left_alone() {
    signed_connections(Signature::Md5, "TCP-MD5");
}

#[test]
fn ao_connections_are_left_alone() {
    signed_connections(Signature::Ao, "TCP-AO");
}
