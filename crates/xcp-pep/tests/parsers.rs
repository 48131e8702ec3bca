//! What clients say to an explicit proxy: well-formed requests are understood however they are cut
//! up, and nothing makes the parsers panic, wait for ever or use up what they have not been given.

use std::net::SocketAddr;

use proptest::prelude::*;
use xcp_pep::listen::{Negotiation, Reached, Step, Target};

/// How a conversation ends.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Go(Target),
    Refused(Vec<u8>),
    /// It waits for more.
    More,
}

/// Gives bytes in pieces, as a socket would; returns how it ended, what was answered, and what was
/// left unused.
fn talk(pieces: &[&[u8]]) -> (End, Vec<u8>, Vec<u8>) {
    let (mut negotiation, mut buffer, mut answered) =
        (Negotiation::Unknown, Vec::new(), Vec::new());
    let mut rest = pieces.iter();
    loop {
        match negotiation.advance(&buffer) {
            Step::More => match rest.next() {
                Some(piece) => buffer.extend_from_slice(piece),
                None => return (End::More, answered, buffer),
            },
            Step::Answer(used, answer) => {
                assert!(
                    used > 0 && used <= buffer.len(),
                    "each answer uses something up, or there would be no end"
                );
                buffer.drain(..used);
                answered.extend(answer);
            }
            Step::Go(used, target) => {
                assert!(used <= buffer.len());
                buffer.drain(..used);
                rest.for_each(|piece| buffer.extend_from_slice(piece));
                return (End::Go(target), answered, buffer);
            }
            Step::Refuse(answer, why) => {
                assert!(!why.is_empty());
                return (End::Refused(answer), answered, buffer);
            }
        }
    }
}

fn socks(target: &Target) -> Vec<u8> {
    let mut bytes = vec![5, 2, 2, 0, 5, 1, 0];
    let port = match target {
        Target::Address(SocketAddr::V4(v4)) => {
            bytes.push(1);
            bytes.extend(v4.ip().octets());
            v4.port()
        }
        Target::Address(SocketAddr::V6(v6)) => {
            bytes.push(4);
            bytes.extend(v6.ip().octets());
            v6.port()
        }
        Target::Name(name, port) => {
            bytes.extend([3, name.len() as u8]);
            bytes.extend(name.bytes());
            *port
        }
    };
    bytes.extend(port.to_be_bytes());
    bytes
}

fn connect(target: &Target, headers: &str) -> Vec<u8> {
    let authority = match target {
        Target::Address(address) => address.to_string(),
        Target::Name(name, port) => format!("{name}:{port}"),
    };
    format!("CONNECT {authority} HTTP/1.1\r\n{headers}\r\n").into_bytes()
}

fn target() -> impl Strategy<Value = Target> {
    let port = 1..=u16::MAX;
    prop_oneof![
        (any::<[u8; 4]>(), port.clone())
            .prop_map(|(ip, port)| Target::Address(SocketAddr::from((ip, port)))),
        // Those that are IPv4 in disguise are taken for what they are.
        (any::<[u8; 16]>(), port.clone()).prop_map(|(ip, port)| Target::Address(SocketAddr::new(
            std::net::IpAddr::from(ip).to_canonical(),
            port
        ))),
        ("[a-z][a-z0-9-]{0,30}(\\.[a-z][a-z0-9-]{0,30}){0,3}", port)
            .prop_map(|(name, port)| Target::Name(name, port)),
    ]
}

fn cut<'a>(bytes: &'a [u8], at: &[usize]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = at.iter().map(|at| at % (bytes.len() + 1)).collect();
    at.push(0);
    at.push(bytes.len());
    at.sort_unstable();
    at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn socks_is_understood_however_it_is_cut(target in target(), at in proptest::collection::vec(any::<usize>(), 0..6), more in ".{0,40}") {
        let mut bytes = socks(&target);
        bytes.extend(more.bytes());
        let (end, answered, left) = talk(&cut(&bytes, &at));
        prop_assert_eq!(end, End::Go(target));
        prop_assert_eq!(answered, vec![5, 0]);
        prop_assert_eq!(left, more.into_bytes(), "what follows is the connection's");
    }

    #[test]
    fn http_is_understood_however_it_is_cut(target in target(), at in proptest::collection::vec(any::<usize>(), 0..6), more in ".{0,40}") {
        let mut bytes = connect(&target, "Host: x\r\nProxy-Connection: keep-alive\r\n");
        bytes.extend(more.bytes());
        let (end, answered, left) = talk(&cut(&bytes, &at));
        prop_assert_eq!(end, End::Go(target));
        prop_assert!(answered.is_empty());
        prop_assert_eq!(left, more.into_bytes());
    }

    #[test]
    fn garbage_is_refused_or_waits_but_never_without_end(first in any::<u8>(), bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let mut all = vec![first];
        all.extend(&bytes);
        let (end, ..) = talk(&[&all]);
        if end == End::More {
            // Enough of anything ends it.
            let filler = vec![b'a'; 9000];
            let (end, ..) = talk(&[&all, &filler]);
            prop_assert_ne!(end, End::More);
        }
    }

    #[test]
    fn almost_right_is_no_reason_to_panic(target in target(), at in any::<usize>(), byte in any::<u8>(), http in any::<bool>()) {
        let mut bytes = if http { connect(&target, "") } else { socks(&target) };
        let at = at % bytes.len();
        bytes[at] = byte;
        let _ = talk(&[&bytes]);
        bytes.truncate(at);
        prop_assert_eq!(talk(&[&bytes]).0, End::More, "a beginning waits for its end");
    }
}

#[test]
fn refusals_are_in_the_clients_language() {
    let refused = |bytes: &[u8]| match talk(&[bytes]).0 {
        End::Refused(answer) => answer,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&[4, 1, 0, 80, 1, 2, 3, 4, 0])[..2], [0, 0x5b]);
    assert_eq!(refused(&[5, 1, 2]), [5, 0xff], "only authentication is offered");
    assert_eq!(refused(&[5, 1, 0, 5, 2, 0, 1, 1, 2, 3, 4, 0, 80])[..2], [5, 7], "BIND");
    assert_eq!(
        refused(&[5, 1, 0, 5, 1, 0, 9, 1, 2, 3, 4, 0, 80])[..2],
        [5, 8],
        "an unknown kind of address"
    );
    assert!(refused(b"GET / HTTP/1.1\r\n").starts_with(b"HTTP/1.1 405"));
    assert!(refused(b"CONNECT nonsense HTTP/1.1\r\n\r\n").starts_with(b"HTTP/1.1 400"));
    assert!(refused(b"CONNECT a:0 HTTP/1.1\r\n\r\n").starts_with(b"HTTP/1.1 400"));
    assert!(refused(b"CONNECT a:80 HTTP/2\r\n\r\n").starts_with(b"HTTP/1.1 505"));
    assert!(refused(b"\x16\x03\x01").is_empty(), "TLS to the wrong port");
}

#[test]
fn outcomes_say_what_tcp_would() {
    let socks = Negotiation::Socks(xcp_pep::listen::socks::Stage::Request);
    let bound = "[2001:db8::1]:99".parse().unwrap();
    for (reached, code, http) in [
        (Reached::Yes, 0, "200"),
        (Reached::NotAllowed, 2, "403"),
        (Reached::Forbidden, 2, "403"),
        (Reached::NoNetwork, 3, "502"),
        (Reached::NoHost, 4, "502"),
        (Reached::Refused, 5, "502"),
        (Reached::TimedOut, 6, "504"),
    ] {
        assert_eq!(socks.outcome(reached, None)[..4], [5, code, 0, 1]);
        assert_eq!(socks.outcome(reached, None).len(), 10);
        assert_eq!(socks.outcome(reached, Some(bound)).len(), 22);
        assert_eq!(&Negotiation::Connect.outcome(reached, None)[9..12], http.as_bytes());
    }
}
