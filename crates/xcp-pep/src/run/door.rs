//! Those who come with a question: `pep show` and orders over a Unix socket, Prometheus over HTTP.
//! Many at a time, and none of them is waited for: who says nothing is shown out after a while, and
//! where there are too many, the first goes for the last.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;

/// How long one may take to ask, and to hear the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// At a time.
const MOST: usize = 64;
/// Bytes of a question.
const LONGEST: usize = 16 << 10;

/// By which door somebody came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    /// The Unix socket; whether it is root, or the proxy's own user, who may give orders.
    Own { trusted: bool },
    /// Prometheus's.
    Http,
}

impl Door {
    /// Whether the question is all there: a line, or a head.
    fn is_whole(self, question: &[u8]) -> bool {
        match self {
            Self::Own { .. } => question.contains(&b'\n'),
            Self::Http => question.windows(4).any(|four| four == b"\r\n\r\n"),
        }
    }
}

#[derive(Debug)]
struct Visitor {
    socket: OwnedFd,
    door: Door,
    question: Vec<u8>,
    /// What is left of the answer.
    answer: Option<Vec<u8>>,
    until: Instant,
}

/// Everybody who is here.
#[derive(Debug, Default)]
pub(super) struct Visitors(Vec<Visitor>);

impl Visitors {
    /// Somebody comes. The socket does not block.
    pub fn come(&mut self, socket: OwnedFd, door: Door, now: Instant) {
        if self.0.len() >= MOST {
            self.0.remove(0);
        }
        self.0.push(Visitor {
            socket,
            door,
            question: Vec::new(),
            answer: None,
            until: now + PATIENCE,
        });
    }

    /// What to wait for.
    pub fn waits(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        self.0.iter().map(|visitor| {
            let flags = if visitor.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
            (visitor.socket.as_fd(), flags)
        })
    }

    /// Whether there is anybody.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Everybody goes as far as they can.
    pub fn turn(&mut self, now: Instant, mut answer: impl FnMut(Door, &[u8]) -> Vec<u8>) {
        self.0.retain_mut(|visitor| visitor.until > now && visitor.advance(&mut answer));
    }
}

impl Visitor {
    /// Returns whether to keep it.
    fn advance(&mut self, answer: &mut impl FnMut(Door, &[u8]) -> Vec<u8>) -> bool {
        while self.answer.is_none() {
            let mut some = [0; 1024];
            match rustix::io::read(&self.socket, &mut some) {
                // Half a question is one, too.
                Ok(0) if self.question.is_empty() => return false,
                Ok(0) => self.answer = Some(answer(self.door, &self.question)),
                Ok(read) => {
                    self.question.extend_from_slice(&some[..read]);
                    if self.door.is_whole(&self.question) || self.question.len() >= LONGEST {
                        self.answer = Some(answer(self.door, &self.question));
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        let Some(left) = &mut self.answer else { return true };
        while !left.is_empty() {
            match rustix::io::write(&self.socket, left) {
                Ok(written) => drop(left.drain(..written)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    fn visitor(visitors: &mut Visitors, door: Door, now: Instant) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        visitors.come(ours.into(), door, now);
        theirs
    }

    fn heard(stream: &mut UnixStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// A question that comes a byte at a time is waited for to its end; nobody waits for a silent
    /// one.
    #[test]
    fn the_silent_keep_nobody_waiting() {
        let (mut visitors, now) = (Visitors::default(), Instant::now());
        let mut echo = |_: Door, question: &[u8]| [b"you said ", question].concat();
        let silent: Vec<UnixStream> =
            (0..MOST - 2).map(|_| visitor(&mut visitors, Door::Http, now)).collect();
        let mut slow = visitor(&mut visitors, Door::Own { trusted: true }, now);
        let mut quick = visitor(&mut visitors, Door::Http, now);
        quick.write_all(b"GET\r\n\r\n").unwrap();
        for byte in b"show" {
            slow.write_all(&[*byte]).unwrap();
            visitors.turn(now, &mut echo);
        }
        assert_eq!(heard(&mut quick), "you said GET\r\n\r\n");
        slow.write_all(b"\n").unwrap();
        visitors.turn(now, &mut echo);
        assert_eq!(heard(&mut slow), "you said show\n");
        assert_eq!(visitors.0.len(), silent.len());
        visitors.turn(now + PATIENCE, &mut echo);
        assert!(visitors.is_empty());
        for mut stream in silent {
            assert_eq!(heard(&mut stream), "");
        }
    }

    #[test]
    fn there_is_always_room_for_one_more_and_an_end_of_every_question() {
        let (mut visitors, now) = (Visitors::default(), Instant::now());
        let all: Vec<UnixStream> =
            (0..MOST + 5).map(|_| visitor(&mut visitors, Door::Http, now)).collect();
        assert_eq!(visitors.0.len(), MOST);
        let mut last = all.into_iter().next_back().unwrap();
        last.write_all(&[b'x'; LONGEST]).unwrap();
        visitors.turn(now, |_, question| question.len().to_string().into_bytes());
        assert_eq!(heard(&mut last), LONGEST.to_string());
    }
}
