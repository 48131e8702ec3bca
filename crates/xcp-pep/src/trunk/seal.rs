//! The trunk encrypted: the handshake of a connection and the frames that follow it. What the
//! cryptography is, is the Noise Protocol Framework's (revision 34), by the crate `snow`.
//!
//! * `NNpsk0`: keys are new for each connection (Diffie and Hellman's exchange on Curve25519), and
//!   the secret that both gateways know goes into them (§9). Who learns the secret later cannot
//!   read what was recorded; who does not know it cannot be in between.
//! * After it everything is a frame: its length, then a type and bytes, sealed by ChaCha20-Poly1305
//!   (it needs no instructions of the processor's to be fast and constant in time, as small
//!   gateways lack them). Frames are numbered, so none is left out, repeated or moved unnoticed.
//! * The end of a direction is a frame, too: a FIN without it is no end, but a connection that
//!   broke.

use std::io;

use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use snow::{Builder, HandshakeState, TransportState};

use super::words::Secret;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
/// What the secret is turned into a key for.
const PURPOSE: &[u8] = b"xcptrunk Noise pre-shared key";
/// Bytes of a key in the clear, and of a tag (Noise §7.3, §4.2).
pub(super) const KEY: usize = 32;
const TAG: usize = 16;
/// Bytes of a frame's length.
const LENGTH: usize = 2;

/// Bytes of each of the handshake's two messages.
pub const MESSAGE: usize = KEY + TAG;
/// Bytes in a frame at the most. The last of them has to be there before the first can be read, so
/// this is time on a slow link: 33 ms at 1 Mbit/s.
pub const MOST: usize = 4096;
/// Bytes by which a frame is longer than what is in it.
pub const OVERHEAD: usize = LENGTH + 1 + TAG;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Bytes of a client or server.
    Data = 0,
    /// TCP's urgent byte.
    Urgent = 1,
    /// Nothing more comes.
    End = 2,
    /// The caller's last word of the handshake.
    Proof = 3,
    /// The messages of `words.rs`.
    Word = 4,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Data, Self::Urgent, Self::End, Self::Proof, Self::Word];
}

/// A handshake that is not over.
#[derive(Debug)]
pub struct Shaking(Box<HandshakeState>);

fn broken(why: snow::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{why:?}"))
}

impl Shaking {
    fn new(secret: &Secret, prologue: &[u8], calls: bool) -> io::Result<Self> {
        let key = secret.key(PURPOSE);
        let pattern = PATTERN.parse().map_err(broken)?;
        let builder = Builder::new(pattern).prologue(prologue).map_err(broken)?;
        let builder = builder.psk(0, &key).map_err(broken)?;
        let state = if calls { builder.build_initiator() } else { builder.build_responder() };
        Ok(Self(Box::new(state.map_err(broken)?)))
    }

    /// The caller's, with its first message; `prologue`: what was said before, which both have to
    /// have understood alike.
    ///
    /// # Errors
    /// No random numbers.
    pub fn call(secret: &Secret, prologue: &[u8]) -> io::Result<(Self, [u8; MESSAGE])> {
        let mut shaking = Self::new(secret, prologue, true)?;
        let mut message = [0; MESSAGE];
        shaking.0.write_message(&[], &mut message).map_err(broken)?;
        Ok((shaking, message))
    }

    /// The answerer's answer to it.
    ///
    /// # Errors
    /// The caller has another secret.
    pub fn answer(
        secret: &Secret,
        prologue: &[u8],
        called: &[u8],
    ) -> io::Result<(Seal, [u8; MESSAGE])> {
        let mut shaking = Self::new(secret, prologue, false)?;
        shaking.0.read_message(called, &mut []).map_err(broken)?;
        let mut message = [0; MESSAGE];
        shaking.0.write_message(&[], &mut message).map_err(broken)?;
        Ok((shaking.over()?, message))
    }

    /// The caller has the answer.
    ///
    /// # Errors
    /// The answerer has another secret.
    pub fn answered(mut self, answer: &[u8]) -> io::Result<Seal> {
        self.0.read_message(answer, &mut []).map_err(broken)?;
        self.over()
    }

    fn over(self) -> io::Result<Seal> {
        Ok(Seal(Box::new(self.0.into_transport_mode().map_err(broken)?)))
    }
}

/// A connection's keys, both ways.
#[derive(Debug)]
pub struct Seal(Box<TransportState>);

impl Seal {
    /// Appends a frame; at most [`MOST`] bytes are in it.
    ///
    /// # Errors
    /// Too many bytes; more frames than there are numbers.
    pub fn close(&mut self, kind: Kind, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        if bytes.len() > MOST {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut inner = [0; 1 + MOST];
        inner[0] = kind as u8;
        inner[1..=bytes.len()].copy_from_slice(bytes);
        let begin = out.len();
        let sealed = 1 + bytes.len() + TAG;
        out.extend_from_slice(&(sealed as u16).to_be_bytes());
        out.resize(begin + LENGTH + sealed, 0);
        self.0.write_message(&inner[..=bytes.len()], &mut out[begin + LENGTH..]).map_err(broken)?;
        Ok(())
    }

    /// Opens the first frame, and appends what is in it. Returns what it is and how many bytes it
    /// took; `None`: it is not all there.
    ///
    /// # Errors
    /// It is none, or was changed on its way.
    pub fn open(&mut self, frames: &[u8], out: &mut Vec<u8>) -> io::Result<Option<(Kind, usize)>> {
        let wrong = || io::Error::from(io::ErrorKind::InvalidData);
        let Some((length, rest)) = frames.split_first_chunk::<LENGTH>() else { return Ok(None) };
        let sealed = usize::from(u16::from_be_bytes(*length));
        if !(1 + TAG..=1 + MOST + TAG).contains(&sealed) {
            return Err(wrong());
        }
        let Some(frame) = rest.get(..sealed) else { return Ok(None) };
        let mut inner = [0; 1 + MOST];
        let length = self.0.read_message(frame, &mut inner).map_err(broken)?;
        let (kind, bytes) = inner[..length].split_first().ok_or_else(wrong)?;
        let kind = Kind::ALL.into_iter().find(|one| *one as u8 == *kind).ok_or_else(wrong)?;
        out.extend_from_slice(bytes);
        Ok(Some((kind, LENGTH + sealed)))
    }
}

/// HMAC as a function that makes keys of keys (RFC 2104).
pub(super) fn key(secret: &[u8], purpose: &[u8]) -> [u8; KEY] {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret) else { return [0; KEY] };
    mac.update(purpose);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROLOGUE: &[u8] = b"what was said before";

    fn secret(text: &str) -> Secret {
        Secret::new(text.as_bytes()).unwrap()
    }

    fn pair() -> [Seal; 2] {
        let secret = secret("0123456789abcdef");
        let (shaking, call) = Shaking::call(&secret, PROLOGUE).unwrap();
        let (theirs, answer) = Shaking::answer(&secret, PROLOGUE, &call).unwrap();
        [shaking.answered(&answer).unwrap(), theirs]
    }

    fn frame(seal: &mut Seal, kind: Kind, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        seal.close(kind, bytes, &mut out).unwrap();
        assert_eq!(out.len(), bytes.len() + OVERHEAD);
        out
    }

    #[test]
    fn what_is_closed_can_be_opened_by_the_other_and_by_nobody_else() {
        let [mut ours, mut theirs] = pair();
        for (kind, size) in [(Kind::Word, 1), (Kind::Data, MOST), (Kind::Urgent, 1), (Kind::End, 0)]
        {
            let bytes = vec![7; size];
            let sealed = frame(&mut ours, kind, &bytes);
            assert!(size < 100 || !sealed.windows(9).any(|part| part == &bytes[..9]));
            let mut out = Vec::new();
            assert!(theirs.open(&sealed[..sealed.len() - 1], &mut out).unwrap().is_none());
            assert_eq!(theirs.open(&sealed, &mut out).unwrap(), Some((kind, sealed.len())));
            assert_eq!(out, bytes);
        }
        let back = frame(&mut theirs, Kind::Data, b"and back");
        assert!(ours.open(&back, &mut Vec::new()).is_ok());
        assert!(ours.close(Kind::Data, &[0; MOST + 1], &mut Vec::new()).is_err());
    }

    #[test]
    fn nothing_is_changed_repeated_left_out_or_sent_back_unnoticed() {
        let refuses = |seal: &mut Seal, frame: &[u8]| seal.open(frame, &mut Vec::new()).is_err();
        for byte in [2, 3, 20] {
            let [mut ours, mut theirs] = pair();
            let mut sealed = frame(&mut ours, Kind::Data, b"a hundred euros");
            sealed[byte] ^= 1;
            assert!(refuses(&mut theirs, &sealed), "byte {byte}");
        }
        let [mut ours, mut theirs] = pair();
        let (first, second) =
            (frame(&mut ours, Kind::Data, b"one"), frame(&mut ours, Kind::Data, b"two"));
        assert!(refuses(&mut theirs, &second), "left out");
        let [mut ours, mut theirs] = pair();
        let sealed = frame(&mut ours, Kind::Data, b"one");
        assert!(!refuses(&mut theirs, &sealed) && refuses(&mut theirs, &sealed), "repeated");
        assert!(refuses(&mut ours, &sealed), "sent back");
        assert!(refuses(&mut theirs, &first), "another connection's");
        for length in [0u16, 16, (2 + MOST + TAG) as u16, u16::MAX] {
            assert!(refuses(&mut theirs, &length.to_be_bytes()), "a length of {length}");
        }
    }

    #[test]
    fn who_lacks_the_secret_or_was_told_something_else_gets_nowhere() {
        let (ours, theirs) = (secret("0123456789abcdef"), secret("0123456789abcdeg"));
        let (_, call) = Shaking::call(&ours, PROLOGUE).unwrap();
        assert!(Shaking::answer(&theirs, PROLOGUE, &call).is_err());
        assert!(Shaking::answer(&ours, b"something else", &call).is_err());
        // Nobody in between can answer.
        let (shaking, _) = Shaking::call(&ours, PROLOGUE).unwrap();
        let (_, other) = Shaking::call(&theirs, PROLOGUE).unwrap();
        let (_, answer) = Shaking::answer(&theirs, PROLOGUE, &other).unwrap();
        assert!(shaking.answered(&answer).is_err());
    }
}
