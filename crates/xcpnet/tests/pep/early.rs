//! Data in a SYN across the long link: who is believed.

use std::io::Read as _;
use std::net::Ipv4Addr;
use std::time::Duration;

use xcp_linux::namespace::Namespace;

use super::site::{OptionsFile, Proxy, SERVER, Site, pep};
use super::traffic::listen;
use super::{DELAY, one, until};

const PORT: u16 = 5071;
/// Nobody has it, so nobody answers to what is sent to it.
const FORGED: Ipv4Addr = Ipv4Addr::new(10, 71, 1, 77);
const WORDS: &[u8] = b"do as I say";

/// The sum of RFC 1071.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0)));
    let sum = words.sum::<u32>();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// A SYN with data, from an address that is not the sender's.
fn forge(from: &Namespace, port: u16) {
    let to: Ipv4Addr = SERVER[0].parse().unwrap();
    let mut tcp = [&port.to_be_bytes()[..], &PORT.to_be_bytes(), &[0; 8]].concat();
    // Five words, SYN, a window; sum and urgent pointer are to come.
    tcp.extend([5 << 4, 2, 0xff, 0xff, 0, 0, 0, 0]);
    tcp.extend(WORDS);
    let length = [0, 6, 0, tcp.len() as u8];
    let whole = sum(&[&FORGED.octets()[..], &to.octets(), &length, &tcp].concat());
    tcp[16..18].copy_from_slice(&whole.to_be_bytes());
    // The kernel fills in length, number and sum.
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0];
    packet.extend([FORGED.octets(), to.octets()].concat());
    packet.extend(tcp);
    // SAFETY: a structure of integers, for all of which zero is a value.
    let mut name: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    name.sin_family = libc::AF_INET as u16;
    name.sin_addr.s_addr = u32::from_ne_bytes(to.octets());
    // SAFETY: a socket of ours; a packet and an address that outlive the call.
    let sent = from.run(|| unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW);
        let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        let at = (&raw const name).cast();
        let sent = libc::sendto(socket, packet.as_ptr().cast(), packet.len(), 0, at, length);
        libc::close(socket);
        sent
    });
    assert_eq!(sent.unwrap(), packet.len() as isize, "{}", std::io::Error::last_os_error());
}

#[test]
fn a_forged_syn_reaches_the_server_only_where_data_in_it_is_accepted() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let file = OptionsFile::new("wan = \"wan\"\nlan = \"lan\"\n");
    let Some(far) = Proxy::up_as(&site.far, "main", &["--config", &file.path()]) else { return };
    let listener = listen(&site.server, SERVER[0], PORT);
    let mut said = vec![0; WORDS.len()];
    forge(&site.near, 4000);
    let (mut stream, peer) = listener.accept().unwrap();
    assert_eq!(peer.to_string(), "10.71.1.77:4000", "as docs/security.md says");
    stream.read_exact(&mut said).unwrap();
    assert_eq!(said, WORDS);
    // The option takes effect at once, and from the beginning.
    listener.set_nonblocking(true).unwrap();
    file.write("no-early = true\n");
    assert!(pep(&site.far, "reload", &[]).status.success());
    let comes_to_nothing = |port| {
        forge(&site.near, port);
        std::thread::sleep(Duration::from_secs(1));
        assert!(listener.accept().is_err(), "{port}");
    };
    comes_to_nothing(4001);
    far.down(true);
    let Some(far) = Proxy::up_as(&site.far, "main", &["--config", &file.path()]) else { return };
    comes_to_nothing(4002);
    // And back.
    file.write("");
    assert!(pep(&site.far, "reload", &[]).status.success());
    until("data in a SYN is accepted again", || {
        forge(&site.near, 4003);
        listener.accept().is_ok()
    });
    far.down(true);
    // Who confirms connects before the handshake is over, and says nothing.
    let confirming = ["--config", &file.path(), "--confirm"];
    let Some(far) = Proxy::up_as(&site.far, "main", &confirming) else { return };
    forge(&site.near, 4004);
    let mut silent = None;
    until("the server is called", || {
        silent = listener.accept().ok().filter(|(_, peer)| peer.port() == 4004);
        silent.is_some()
    });
    std::thread::sleep(Duration::from_secs(1));
    let (mut silent, _) = silent.unwrap();
    silent.set_nonblocking(true).unwrap();
    assert_eq!(silent.read(&mut said).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    far.down(true);
}
