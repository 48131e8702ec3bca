//! A connection between the gateways before it is a client's: what was said on it so far
//! (`words.rs`), and what comes next.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::rand::{GetRandomFlags, getrandom};

use super::seal::{self, Kind, Seal, Shaking};
use super::words::{self, Nonce};
use super::{Plan, Pool, Warm};

const HANGS_UP: &str = "the other gateway closes the connection: is the secret the same, and is \
     --trunk-encrypt set on both or neither?";

/// The caller has said hello.
#[derive(Debug)]
pub(super) enum Asked {
    Open(Nonce),
    Sealed(Box<Shaking>),
}

/// The caller is to show that it has the secret.
#[derive(Debug)]
pub(super) enum Doubted {
    Open(Nonce, Nonce),
    Sealed(Box<Seal>),
}

/// How far a connection is.
#[derive(Debug)]
pub(super) enum Stage {
    /// Ours: the call is on its way.
    Calling,
    /// Ours: we have said hello.
    Asked(Asked),
    /// Theirs: hello is to come.
    Called,
    /// Theirs: they are to show that they have the secret.
    Doubted(Doubted),
    /// Theirs: it waits for a client.
    Waiting(Option<Box<Seal>>),
}

impl Stage {
    pub(super) fn is_ours(&self) -> bool {
        matches!(self, Self::Calling | Self::Asked(_))
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self, Self::Waiting(_))
    }

    /// Bytes of the message that is to come.
    fn expects(&self, encrypted: bool) -> usize {
        match (self, encrypted) {
            (Self::Calling, _) => 0,
            (Self::Asked(_), false) => words::CHALLENGE,
            (Self::Called, false) => words::HELLO,
            (Self::Doubted(_), false) => words::PROOF,
            (Self::Waiting(_), false) => words::GO,
            (Self::Asked(_), true) => seal::MESSAGE,
            (Self::Called, true) => words::SEALED_HELLO,
            (Self::Doubted(_), true) => seal::OVERHEAD,
            (Self::Waiting(_), true) => seal::OVERHEAD + words::GO,
        }
    }
}

/// A connection that is not a client's, nor ready to be one's.
#[derive(Debug)]
pub(super) struct Link {
    pub socket: OwnedFd,
    pub stage: Stage,
    heard: [u8; words::LONGEST],
    length: usize,
    pub since: Instant,
}

/// What becomes of a link that was heard.
pub(super) enum Next {
    Wait,
    Warm(Option<Box<Seal>>),
    Go([u8; words::GO], Option<Box<Seal>>),
    Over(&'static str),
}

impl Link {
    pub(super) fn new(socket: OwnedFd, stage: Stage, since: Instant) -> Self {
        Self { socket, stage, heard: [0; words::LONGEST], length: 0, since }
    }

    /// Does what can be done.
    pub(super) fn advance(
        &mut self,
        flags: EventFlags,
        plan: &Plan,
        pool: &Pool,
        number: u64,
    ) -> Next {
        if matches!(self.stage, Stage::Calling) {
            return self.called_through(flags, plan, pool, number);
        }
        let expected = self.stage.expects(plan.encrypt);
        while self.length < expected {
            let room = &mut self.heard[self.length..expected];
            match recv(&self.socket, room, RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Next::Over(HANGS_UP),
                Ok((read, _)) => self.length += read,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    // A shorter hello is all that comes of one that does not encrypt.
                    let other = matches!(self.stage, Stage::Called)
                        && words::is_otherwise(&self.heard[..self.length], plan.encrypt);
                    return if other {
                        Next::Over("--trunk-encrypt must be set on both gateways or on neither")
                    } else {
                        Next::Wait
                    };
                }
                Err(_) => return Next::Over(HANGS_UP),
            }
        }
        self.length = 0;
        let heard = self.heard;
        self.understand(&heard[..expected], plan)
    }

    /// Our call has been answered by the kernel of the other gateway, or was not.
    fn called_through(&mut self, flags: EventFlags, plan: &Plan, pool: &Pool, number: u64) -> Next {
        if let Ok(Err(why)) = rustix::net::sockopt::socket_error(&self.socket) {
            return Next::Over(match why {
                Errno::CONNREFUSED => "its other gateway has no trunk",
                Errno::TIMEDOUT => "nobody answers",
                _ => "there is no route to its other gateway",
            });
        }
        if !flags.contains(EventFlags::OUT) {
            return Next::Wait;
        }
        let (asked, said) = if plan.encrypt {
            let Ok((shaking, message)) = Shaking::call(&plan.secret, &words::SEALED) else {
                return Next::Over("no random numbers");
            };
            let hello = words::sealed_hello(&message);
            (Asked::Sealed(Box::new(shaking)), say(&self.socket, &hello))
        } else {
            let Some(nonce) = nonce() else { return Next::Over("no random numbers") };
            (Asked::Open(nonce), say(&self.socket, &words::hello(&nonce)))
        };
        let watched = EventData::new_u64(number);
        let flags = EventFlags::IN | EventFlags::RDHUP;
        if said.is_err() || epoll::modify(&pool.epoll, &self.socket, watched, flags).is_err() {
            return Next::Over("it broke");
        }
        self.stage = Stage::Asked(asked);
        Next::Wait
    }

    /// A message has come.
    fn understand(&mut self, heard: &[u8], plan: &Plan) -> Next {
        // What waits for another message is put back.
        match std::mem::replace(&mut self.stage, Stage::Calling) {
            Stage::Calling => Next::Wait,
            Stage::Asked(Asked::Open(nonce)) => {
                let proof = heard.try_into().ok().and_then(|h| plan.secret.proof(&nonce, h));
                match proof {
                    None => Next::Over("its other gateway has a different secret"),
                    Some(proof) if say(&self.socket, &proof).is_ok() => Next::Warm(None),
                    Some(_) => Next::Over("it broke"),
                }
            }
            Stage::Asked(Asked::Sealed(shaking)) => {
                let Ok(mut seal) = shaking.answered(heard) else {
                    return Next::Over("its other gateway has a different secret");
                };
                match say_sealed(&self.socket, &mut seal, Kind::Proof, &[], SendFlags::empty()) {
                    Ok(()) => Next::Warm(Some(Box::new(seal))),
                    Err(_) => Next::Over("it broke"),
                }
            }
            Stage::Called if plan.encrypt => {
                let Some(called) = words::read_sealed_hello(heard) else {
                    return Next::Over("it sends nothing that can be understood");
                };
                let Ok((seal, answer)) = Shaking::answer(&plan.secret, &words::SEALED, called)
                else {
                    return Next::Over("it has a different secret");
                };
                self.doubt(Doubted::Sealed(Box::new(seal)), &answer)
            }
            Stage::Called => {
                let (Some(theirs), Some(own)) = (words::read_hello(heard), nonce()) else {
                    return Next::Over("it sends nothing that can be understood");
                };
                let challenge = plan.secret.challenge(&theirs, &own);
                self.doubt(Doubted::Open(theirs, own), &challenge)
            }
            Stage::Doubted(Doubted::Open(theirs, own)) => {
                if !plan.secret.proves(heard, &theirs, &own) {
                    return Next::Over("it has a different secret");
                }
                self.stage = Stage::Waiting(None);
                Next::Wait
            }
            // Its first message may be an old one that was recorded; this one cannot be.
            Stage::Doubted(Doubted::Sealed(mut seal)) => {
                match seal.open(heard, &mut Vec::new()) {
                    Ok(Some((Kind::Proof, _))) => {}
                    _ => return Next::Over("it has a different secret"),
                }
                self.stage = Stage::Waiting(Some(seal));
                Next::Wait
            }
            Stage::Waiting(None) => {
                heard.try_into().map_or(Next::Over("it broke"), |word| Next::Go(word, None))
            }
            Stage::Waiting(Some(mut seal)) => {
                let mut word = Vec::new();
                match (seal.open(heard, &mut word), <[u8; words::GO]>::try_from(&word[..])) {
                    (Ok(Some((Kind::Word, _))), Ok(word)) => Next::Go(word, Some(seal)),
                    _ => Next::Over("it broke"),
                }
            }
        }
    }

    fn doubt(&mut self, doubted: Doubted, answer: &[u8]) -> Next {
        if say(&self.socket, answer).is_err() {
            return Next::Over("it broke");
        }
        self.stage = Stage::Doubted(doubted);
        Next::Wait
    }

    /// Says that this gateway is going, where it waits for a client.
    pub(super) fn say_leaving(&mut self) {
        if let Stage::Waiting(seal) = &mut self.stage {
            let leaving = &[words::LEAVING];
            let _ = say_word(&self.socket, seal.as_deref_mut(), leaving, SendFlags::empty());
        }
    }
}

fn nonce() -> Option<Nonce> {
    let mut nonce = [0; words::NONCE];
    (getrandom(&mut nonce, GetRandomFlags::empty()).ok()? == nonce.len()).then_some(nonce)
}

fn say_with(socket: &impl AsFd, message: &[u8], more: SendFlags) -> io::Result<()> {
    let sent = send(socket, message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT | more)?;
    // There is room for so little wherever nothing else was said.
    if sent == message.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

fn say(socket: &impl AsFd, message: &[u8]) -> io::Result<()> {
    say_with(socket, message, SendFlags::empty())
}

fn say_sealed(
    socket: &impl AsFd,
    seal: &mut Seal,
    kind: Kind,
    message: &[u8],
    more: SendFlags,
) -> io::Result<()> {
    let mut frame = Vec::new();
    seal.close(kind, message, &mut frame)?;
    say_with(socket, &frame, more)
}

/// One of the messages of `words.rs` that follow the handshake.
fn say_word(
    socket: &impl AsFd,
    seal: Option<&mut Seal>,
    word: &[u8],
    more: SendFlags,
) -> io::Result<()> {
    match seal {
        Some(seal) => say_sealed(socket, seal, Kind::Word, word, more),
        None => say_with(socket, word, more),
    }
}

impl Warm {
    /// Says it by itself.
    pub(crate) fn say(&mut self, word: &[u8]) -> io::Result<()> {
        say_word(&self.socket, self.seal.as_deref_mut(), word, SendFlags::empty())
    }

    /// Says it with what follows. The kernel keeps it back for that, up to a fifth of a second.
    pub(crate) fn say_later(&mut self, word: &[u8]) -> io::Result<()> {
        say_word(&self.socket, self.seal.as_deref_mut(), word, SendFlags::MORE)
    }
}
