//! What the packets say that the kernel hands over: a SYN, whose connection it opens; ICMP's
//! "destination unreachable", of which connection and why. Anything else is nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::shared::Ends;

/// Headers that may stand between IPv6's and TCP's: hop-by-hop options, routing, destination
/// options.
const BETWEEN: [u8; 3] = [0, 43, 60];
/// As many of them as are walked past.
const MOST_BETWEEN: usize = 8;
const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;
const FLAGS: u8 = 0x17;
const SYN: u8 = 0x02;

/// A packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// It opens a connection.
    Open(Ends),
    /// The connection's destination cannot be reached, with ICMP's code.
    Unreachable(Ends, u8),
}

/// Source, destination, the protocol and where its header begins.
struct Internet {
    from: IpAddr,
    to: IpAddr,
    protocol: u8,
    header: usize,
}

fn version_4(bytes: &[u8]) -> Option<Internet> {
    let header = usize::from(bytes.first()? & 15) * 4;
    let fragment = u16::from_be_bytes(word(bytes, 6)?) & 0x1fff;
    if header < 20 || fragment != 0 {
        return None;
    }
    let address = |at: usize| Some(IpAddr::from(Ipv4Addr::from(word::<4>(bytes, at)?)));
    Some(Internet { from: address(12)?, to: address(16)?, protocol: *bytes.get(9)?, header })
}

fn version_6(bytes: &[u8]) -> Option<Internet> {
    let address = |at: usize| Some(IpAddr::from(Ipv6Addr::from(word::<16>(bytes, at)?)));
    let (from, to) = (address(8)?, address(24)?);
    let (mut protocol, mut header) = (*bytes.get(6)?, 40);
    for _ in 0..MOST_BETWEEN {
        if !BETWEEN.contains(&protocol) {
            break;
        }
        protocol = *bytes.get(header)?;
        header += (usize::from(*bytes.get(header + 1)?) + 1) * 8;
    }
    Some(Internet { from, to, protocol, header })
}

fn internet(bytes: &[u8]) -> Option<Internet> {
    match bytes.first()? >> 4 {
        4 => version_4(bytes),
        6 => version_6(bytes),
        _ => None,
    }
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Of a TCP segment, of which the ports are there.
fn ends(bytes: &[u8]) -> Option<Ends> {
    let packet = internet(bytes)?;
    let port = |at: usize| word(bytes, packet.header + at).map(u16::from_be_bytes);
    let ends = (SocketAddr::new(packet.from, port(0)?), SocketAddr::new(packet.to, port(2)?));
    (packet.protocol == TCP).then_some(ends)
}

/// Its DSCP; 0 where there is none.
#[must_use]
pub fn dscp(bytes: &[u8]) -> u8 {
    match bytes {
        [first, class, ..] if first >> 4 == 4 => class >> 2,
        [first, second, ..] if first >> 4 == 6 => (first & 15) << 2 | second >> 6,
        _ => 0,
    }
}

/// Reads a packet from the network's header on.
#[must_use]
pub fn read(bytes: &[u8]) -> Option<Said> {
    let packet = internet(bytes)?;
    let after = bytes.get(packet.header..)?;
    match (packet.protocol, packet.from.is_ipv4()) {
        (TCP, _) => {
            let ends = ends(bytes)?;
            (after.get(13)? & FLAGS == SYN).then_some(Said::Open(ends))
        }
        (ICMP, true) | (ICMP6, false) => {
            let unreachable = if packet.protocol == ICMP { 3 } else { 1 };
            let code = *after.get(1)?;
            let ends = ends(after.get(8..)?)?;
            (after[0] == unreachable && ends.0.is_ipv4() == packet.from.is_ipv4())
                .then_some(Said::Unreachable(ends, code))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(v4: bool, seed: [u8; 16]) -> IpAddr {
        if v4 {
            Ipv4Addr::new(seed[0], seed[1], seed[2], seed[3]).into()
        } else {
            Ipv6Addr::from(seed).into()
        }
    }

    /// As RFC 791 and 8200 draw it, with `more` words of IPv4 options or of an IPv6 header of
    /// destination options.
    fn packet(from: IpAddr, to: IpAddr, protocol: u8, more: usize, body: &[u8]) -> Vec<u8> {
        let mut bytes = match (from, to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let more = more % 11;
                let mut bytes =
                    vec![0x40 | (5 + more) as u8, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
                bytes.extend(from.octets().into_iter().chain(to.octets()));
                bytes.extend(vec![1; 4 * more]);
                bytes
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let mut bytes = vec![0x60, 0, 0, 0, 0, 0, if more > 0 { 60 } else { protocol }, 64];
                bytes.extend(from.octets().into_iter().chain(to.octets()));
                if more > 0 {
                    bytes.extend([protocol, more as u8 - 1]);
                    bytes.extend(vec![0; 8 * more - 2]);
                }
                bytes
            }
            _ => unreachable!(),
        };
        bytes.extend(body);
        bytes
    }

    fn tcp(from: u16, to: u16, flags: u8) -> Vec<u8> {
        let mut bytes = [from.to_be_bytes(), to.to_be_bytes()].concat();
        bytes.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags, 1, 0, 0, 0, 0, 0]);
        bytes
    }

    proptest! {
        #[test]
        fn a_syn_says_its_ends_and_nothing_else_opens(
            v4: bool, a: [u8; 16], b: [u8; 16], ports: (u16, u16), flags: u8, more in 0usize..6
        ) {
            let (from, to) = (address(v4, a), address(v4, b));
            let bytes = packet(from, to, TCP, more, &tcp(ports.0, ports.1, flags));
            let ends = (SocketAddr::new(from, ports.0), SocketAddr::new(to, ports.1));
            // SYN alone among SYN, ACK, RST and FIN; ECN's and others' bits do not matter.
            let opens = flags & 2 != 0 && flags & (1 | 4 | 16) == 0;
            prop_assert_eq!(read(&bytes), opens.then_some(Said::Open(ends)));
            // Without its end there is no knowing.
            prop_assert_eq!(read(&bytes[..bytes.len() - 7]), None);
        }

        #[test]
        fn icmp_says_whose_segment_could_not_be_delivered(
            v4: bool, a: [u8; 16], b: [u8; 16], router: [u8; 16], ports: (u16, u16), kind: u8, code: u8, more in 0usize..6
        ) {
            let (from, to) = (address(v4, a), address(v4, b));
            // RFC 792 promises eight bytes of the segment.
            let quoted = packet(from, to, TCP, more, &tcp(ports.0, ports.1, SYN)[..8]);
            let mut message = vec![kind, code, 0, 0, 0, 0, 0, 0];
            message.extend(quoted);
            let bytes = packet(address(v4, router), from, if v4 { ICMP } else { ICMP6 }, 0, &message);
            let ends = (SocketAddr::new(from, ports.0), SocketAddr::new(to, ports.1));
            let is = kind == if v4 { 3 } else { 1 };
            prop_assert_eq!(read(&bytes), is.then_some(Said::Unreachable(ends, code)));
        }

        #[test]
        fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), version in 4u8..7) {
            let _ = read(&bytes);
            if let Some(first) = bytes.first_mut() {
                *first = version << 4 | *first & 15;
            }
            let _ = read(&bytes);
        }
    }

    #[test]
    fn a_mark_is_where_either_version_of_ip_has_it() {
        // The two bits of congestion notification are none of it (RFC 3168, section 5).
        assert_eq!([dscp(&[0x45, 46 << 2 | 3]), dscp(&[0x6b, 0x9f])], [46, 46]);
        assert_eq!([dscp(&[0x45]), dscp(&[]), dscp(&[0x25, 0xff])], [0; 3]);
    }

    #[test]
    fn a_later_fragment_says_nothing() {
        let mut bytes =
            packet(Ipv4Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into(), TCP, 0, &tcp(1, 2, SYN));
        assert!(read(&bytes).is_some());
        bytes[7] = 1;
        assert_eq!(read(&bytes), None);
    }
}
