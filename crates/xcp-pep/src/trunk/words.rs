//! What two gateways say on a connection of the trunk before it is a client's. Every message has a
//! fixed length, so nobody reads beyond his own.
//!
//! ```text
//! caller                                    answerer
//!   HELLO: magic, version, nonce ─────────►
//!   ◄───────── CHALLENGE: nonce, tag over both nonces as the answerer
//!   PROOF: tag over both nonces as the caller ─────────►
//!            ... any time later, once ...
//!   GO: client's and server's address and port, the client's mark ──────►   then its bytes
//!   ◄───────────────── LEAVING, if it goes; or OPEN   then the server's bytes
//! ```
//!
//! Tags are HMAC-SHA-256 (RFC 2104) under the secret of both; each side's name is in its own, so
//! that none can be sent back as the other's. What follows is neither encrypted nor protected: who
//! can change packets on the link can take a connection over, as he can any TCP connection.
//!
//! Where the trunk is encrypted (`seal.rs`), this is said instead:
//!
//! ```text
//!   HELLO: magic, another version, Noise's first message ─────────►
//!   ◄───────── Noise's second message
//!   an empty frame: PROOF ─────────►
//!            ... any time later, once ...
//!   GO in a frame ───────►   then the client's bytes in frames, and END
//!   ◄─────── LEAVING in a frame, or OPEN   then the server's bytes in frames, and END
//! ```

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use super::seal;
use crate::shared::Ends;

const MAGIC: &[u8; 8] = b"xcptrunk";
const VERSION: u8 = 1;
const SEALED_VERSION: u8 = 2;
/// What a hello of an encrypted trunk begins with.
pub const SEALED: [u8; MAGIC.len() + 1] = beginning(SEALED_VERSION);
/// Bytes of a nonce.
pub const NONCE: usize = 32;
/// Of a tag.
const TAG: usize = 32;
/// Lengths of the messages.
pub const HELLO: usize = MAGIC.len() + 1 + NONCE;
/// Where the trunk is encrypted.
pub const SEALED_HELLO: usize = SEALED.len() + seal::MESSAGE;
/// Of the answer to it.
pub const CHALLENGE: usize = NONCE + TAG;
/// Of the answer to that.
pub const PROOF: usize = TAG;
/// Of the last.
pub const GO: usize = 2 * END + 1;
/// An address and a port in it.
const END: usize = 16 + 2;
/// The longest.
pub const LONGEST: usize = CHALLENGE;

/// The answerer has taken the connection; the server's bytes follow.
pub const OPEN: u8 = b'O';
/// The answerer is going: take no more of its connections. One that was taken already is still
/// good.
pub const LEAVING: u8 = b'L';

const fn beginning(version: u8) -> [u8; MAGIC.len() + 1] {
    let mut all = [version; MAGIC.len() + 1];
    let mut at = 0;
    while at < MAGIC.len() {
        all[at] = MAGIC[at];
        at += 1;
    }
    all
}

/// Random bytes that are used once.
pub type Nonce = [u8; NONCE];

/// What both gateways know and nobody else.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// Who says something.
#[derive(Clone, Copy)]
enum Side {
    Caller,
    Answerer,
}

impl Secret {
    /// Shorter ones can be guessed.
    pub const LEAST: usize = 16;

    /// These bytes, unless they are too few.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= Self::LEAST).then(|| Self(bytes.to_vec()))
    }

    /// A key made of it.
    pub(super) fn key(&self, purpose: &[u8]) -> [u8; seal::KEY] {
        seal::key(&self.0, purpose)
    }

    fn mac(&self, side: Side, caller: &Nonce, answerer: &Nonce) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        let name: &[u8] = match side {
            Side::Caller => b"caller",
            Side::Answerer => b"answerer",
        };
        for part in [&MAGIC[..], &[VERSION], name, caller, answerer] {
            mac.update(part);
        }
        Some(mac)
    }

    fn tag(&self, side: Side, caller: &Nonce, answerer: &Nonce) -> [u8; TAG] {
        // Keys of any length are taken.
        self.mac(side, caller, answerer).map_or([0; TAG], |mac| mac.finalize().into_bytes().into())
    }

    /// In constant time.
    fn is_tag(&self, tag: &[u8], side: Side, caller: &Nonce, answerer: &Nonce) -> bool {
        self.mac(side, caller, answerer).is_some_and(|mac| mac.verify_slice(tag).is_ok())
    }

    /// The answerer's answer to a caller's nonce.
    #[must_use]
    pub fn challenge(&self, caller: &Nonce, own: &Nonce) -> [u8; CHALLENGE] {
        let mut message = [0; CHALLENGE];
        message[..NONCE].copy_from_slice(own);
        message[NONCE..].copy_from_slice(&self.tag(Side::Answerer, caller, own));
        message
    }

    /// The caller's answer to a challenge; `None`: the answerer has another secret.
    #[must_use]
    pub fn proof(&self, own: &Nonce, challenge: &[u8; CHALLENGE]) -> Option<[u8; PROOF]> {
        let (answerer, tag) = challenge.split_first_chunk::<NONCE>()?;
        self.is_tag(tag, Side::Answerer, own, answerer)
            .then(|| self.tag(Side::Caller, own, answerer))
    }

    /// Whether the caller has the same secret.
    #[must_use]
    pub fn proves(&self, proof: &[u8], caller: &Nonce, own: &Nonce) -> bool {
        self.is_tag(proof, Side::Caller, caller, own)
    }
}

/// The caller's first word.
#[must_use]
pub fn hello(nonce: &Nonce) -> [u8; HELLO] {
    let mut message = [0; HELLO];
    message[..MAGIC.len()].copy_from_slice(MAGIC);
    message[MAGIC.len()] = VERSION;
    message[MAGIC.len() + 1..].copy_from_slice(nonce);
    message
}

/// Its nonce, if it is one that is understood.
#[must_use]
pub fn read_hello(message: &[u8]) -> Option<Nonce> {
    let rest = message.strip_prefix(MAGIC)?.strip_prefix(&[VERSION])?;
    rest.try_into().ok()
}

/// The caller's first word where the trunk is encrypted.
#[must_use]
pub fn sealed_hello(noise: &[u8; seal::MESSAGE]) -> [u8; SEALED_HELLO] {
    let mut message = [0; SEALED_HELLO];
    message[..SEALED.len()].copy_from_slice(&SEALED);
    message[SEALED.len()..].copy_from_slice(noise);
    message
}

/// Noise's message in it, if it is one that is understood.
#[must_use]
pub fn read_sealed_hello(message: &[u8]) -> Option<&[u8]> {
    message.strip_prefix(&SEALED)
}

/// Whether what has come of a hello is of one that encrypts where this one does not, or the other
/// way round.
#[must_use]
pub fn is_otherwise(message: &[u8], encrypted: bool) -> bool {
    let other = if encrypted { VERSION } else { SEALED_VERSION };
    message.strip_prefix(MAGIC).is_some_and(|rest| rest.first() == Some(&other))
}

/// From whom to whom a connection of the trunk goes from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Going {
    /// The client and the server.
    pub ends: Ends,
    /// The client's DSCP where it is urgent to the caller; else 0.
    pub mark: u8,
}

/// As it is said.
#[must_use]
pub fn go(going: Going) -> [u8; GO] {
    let mut message = [going.mark; GO];
    let (client, server) = going.ends;
    for (half, end) in message.chunks_exact_mut(END).zip([client, server]) {
        let address = match end.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        half[..16].copy_from_slice(&address.octets());
        half[16..].copy_from_slice(&end.port().to_be_bytes());
    }
    message
}

/// What it says; `None`: nothing that can be.
#[must_use]
pub fn read_go(message: &[u8; GO]) -> Option<Going> {
    let end = |half: &[u8]| -> Option<SocketAddr> {
        let (address, port) = half.split_first_chunk::<16>()?;
        let port = u16::from_be_bytes(port.try_into().ok()?);
        (port != 0).then(|| SocketAddr::new(Ipv6Addr::from(*address).to_canonical(), port))
    };
    let (both, mark) = (&message[..2 * END], message[2 * END]);
    let (client, server) = both.split_at(END);
    let ends = (end(client)?, end(server)?);
    (ends.0.is_ipv4() == ends.1.is_ipv4() && mark < 64).then_some(Going { ends, mark })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secret(text: &str) -> Secret {
        Secret::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn who_has_the_secret_is_known_and_nobody_else() {
        let (ours, theirs) = (secret("0123456789abcdef"), secret("0123456789abcdeg"));
        let (caller, answerer) = ([1; NONCE], [2; NONCE]);
        let challenge = ours.challenge(&caller, &answerer);
        let proof = ours.proof(&caller, &challenge).expect("the same secret");
        assert!(ours.proves(&proof, &caller, &answerer));
        assert!(theirs.proof(&caller, &challenge).is_none());
        assert!(!theirs.proves(&proof, &caller, &answerer));
        // Nothing that was said once is worth anything again, nor as the other's word.
        assert!(!ours.proves(&proof, &caller, &[3; NONCE]));
        assert!(!ours.proves(&challenge[NONCE..], &caller, &answerer));
        assert!(ours.proof(&[4; NONCE], &challenge).is_none());
        assert!(Secret::new(b"short").is_none());
    }

    #[test]
    fn a_hello_of_another_version_is_none() {
        let mut message = hello(&[7; NONCE]);
        assert_eq!(read_hello(&message), Some([7; NONCE]));
        message[MAGIC.len()] += 1;
        assert_eq!(read_hello(&message), None);
        assert_eq!(read_hello(b"GET / HTTP/1.1"), None);
    }

    proptest! {
        #[test]
        fn ends_arrive_as_they_were_said(
            v4 in any::<bool>(), hosts in any::<[[u8; 16]; 2]>(), ports in any::<[(u8, u16); 2]>(),
            mark in 0u8..64,
        ) {
            let end = |n: usize| {
                let port = ports[n].1.max(1);
                let address = if v4 {
                    IpAddr::from(*hosts[n].first_chunk::<4>().unwrap())
                } else {
                    // Not one that is IPv4's.
                    let mut host = hosts[n];
                    host[0] |= 1;
                    IpAddr::from(host)
                };
                SocketAddr::new(address, port)
            };
            let going = Going { ends: (end(0), end(1)), mark };
            prop_assert_eq!(read_go(&go(going)), Some(going));
        }

        #[test]
        fn garbage_is_understood_or_not_but_never_a_surprise(
            bytes in any::<[[u8; END]; 2]>(), mark: u8,
        ) {
            let message = [bytes.as_flattened(), &[mark]].concat();
            if let Some(going) = read_go(&message.try_into().unwrap()) {
                let (client, server) = going.ends;
                prop_assert!(client.port() != 0 && client.is_ipv4() == server.is_ipv4());
                prop_assert!(going.mark < 64);
                prop_assert_eq!(read_go(&go(going)), Some(going));
            }
        }
    }
}
