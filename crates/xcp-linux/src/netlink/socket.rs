//! A netlink socket: send a request, hear the answer, turn the kernel's refusal into an error that
//! says what was refused and why.

use std::fmt;
use std::io;
use std::os::fd::AsRawFd as _;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use super::message::{self, HEADER, Message, Request};
use crate::namespace::Namespace;

/// What the kernel fills a datagram of a dump up to (`NLMSG_GOODSIZE` at the least, 32 KB at most).
const BUFFER: usize = 32 * 1024;
/// How often a dump is asked for again if the tables changed while it was made.
const DUMP_ATTEMPTS: u32 = 8;
/// `NLMSGERR_ATTR_MSG` (linux/netlink.h): the kernel's own words on what was wrong.
const ERROR_TEXT: u16 = 1;

/// What comes of a request.
pub type Result<T> = std::result::Result<T, Error>;

/// A request that failed.
#[derive(Debug)]
pub struct Error {
    doing: String,
    cause: io::Error,
    kernel: Option<String>,
    remedy: Option<String>,
}

impl Error {
    /// A failure of this side's, without an errno.
    pub(crate) fn refused(doing: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            doing: doing.into(),
            cause: io::Error::new(io::ErrorKind::InvalidInput, why.into()),
            kernel: None,
            remedy: None,
        }
    }

    pub(crate) fn new(doing: impl Into<String>, cause: io::Error) -> Self {
        Self { doing: doing.into(), cause, kernel: None, remedy: None }
    }

    /// The kernel's errno, e.g. `libc::EEXIST`.
    pub fn errno(&self) -> Option<i32> {
        self.cause.raw_os_error()
    }

    /// The same error with what the user can do about it.
    pub(crate) fn or(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.doing, self.cause)?;
        if let Some(text) = &self.kernel {
            write!(f, "; the kernel says: {}", text.trim_end_matches('.'))?;
        }
        match (&self.remedy, self.errno()) {
            (Some(remedy), _) => write!(f, "; {remedy}"),
            (None, Some(libc::EPERM | libc::EACCES)) => {
                write!(f, "; this needs root (CAP_NET_ADMIN)")
            }
            (None, Some(libc::EEXIST)) => {
                write!(f, "; remove what is there, or choose another name")
            }
            (None, Some(libc::ENODEV)) => write!(f, "; `ip link` lists the devices"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.cause.kind(), error)
    }
}

/// A connection to the kernel's routing and traffic control. It belongs to the namespace it was
/// opened in, whichever thread uses it.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Netlink {
    /// In the calling thread's namespace.
    pub fn open() -> Result<Self> {
        let opened = || -> io::Result<Socket> {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            // An error with the kernel's words and without a copy of the request, so that the words
            // are always at one place.
            socket.set_ext_ack(true)?;
            socket.set_cap_ack(true)?;
            Ok(socket)
        };
        let socket = opened().map_err(|e| Error::new("open a netlink socket", e))?;
        Ok(Self { socket, sequence: 0, buffer: vec![0; BUFFER] })
    }

    /// Opens a socket in another network namespace.
    pub fn open_in(namespace: &Namespace) -> Result<Self> {
        namespace.run(Self::open).map_err(|e| Error::new("open a netlink socket", e))?
    }

    /// Asks for a change and waits until it is made. `doing` completes "cannot ..." in the error.
    pub(crate) fn change(
        &mut self,
        doing: impl FnOnce() -> String,
        request: Request,
    ) -> Result<()> {
        self.exchange(request, |_| ()).map_err(|e| e.told(doing))
    }

    /// Asks for one thing; hands the answer's payload on. `None` if the kernel has nothing to say,
    /// which is no error: so it answers for a queueing discipline that is built in.
    pub(crate) fn get<T>(
        &mut self,
        doing: impl FnOnce() -> String,
        request: Request,
        read: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Option<T>> {
        let mut read = read;
        let mut found = None;
        self.exchange(request, |message| found = read(message.payload))
            .map_err(|e| e.told(doing))?;
        Ok(found)
    }

    /// Asks for all there is; each answer's payload goes to `read`, and what this makes of it is
    /// returned.
    pub(crate) fn dump<T>(
        &mut self,
        doing: impl FnOnce() -> String,
        request: impl Fn() -> Request,
        mut read: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<Vec<T>> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let mut all = Vec::new();
            let mut interrupted = false;
            let done = self.exchange(request(), |message| {
                interrupted |= message.flags & libc::NLM_F_DUMP_INTR as u16 != 0;
                all.extend(read(message.payload));
            });
            match done {
                Ok(()) if interrupted && attempt < DUMP_ATTEMPTS => continue,
                Ok(()) => return Ok(all),
                Err(e) => return Err(e.told(doing)),
            }
        }
    }

    /// Sends a request and passes on what answers it, up to the acknowledgement, the end of the
    /// dump, or the one answer if neither was asked for.
    ///
    /// The kernel works on a request while it is being sent, and what it answers waits here when
    /// send returns (rtnetlink_rcv runs in the sender's context). So there is no waiting: nothing
    /// there means that nothing was answered.
    fn exchange(
        &mut self,
        request: Request,
        mut answer: impl FnMut(&Message<'_>),
    ) -> std::result::Result<(), Refusal> {
        self.sequence = self.sequence.wrapping_add(1);
        let bytes = request.finish(self.sequence);
        let flags = message::short(&bytes, 6).unwrap_or_default();
        let is_dump = flags & libc::NLM_F_DUMP as u16 == libc::NLM_F_DUMP as u16;
        let one_answer = !is_dump && flags & libc::NLM_F_ACK as u16 == 0;
        again_if_interrupted(|| self.socket.send(&bytes, 0))?;
        loop {
            let mut window = &mut self.buffer[..];
            let length = match again_if_interrupted(|| {
                self.socket.recv(&mut window, libc::MSG_TRUNC | libc::MSG_DONTWAIT)
            }) {
                Ok(length) => length,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && one_answer => return Ok(()),
                Err(e) => return Err(e.into()),
            };
            let Some(datagram) = self.buffer.get(..length) else {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("an answer of {length} bytes is too long"),
                )
                .into());
            };
            for message in message::messages(datagram).filter(|m| m.sequence == self.sequence) {
                match i32::from(message.kind) {
                    libc::NLMSG_ERROR => return outcome(&message),
                    libc::NLMSG_DONE => return outcome(&message),
                    libc::NLMSG_NOOP => {}
                    _ => {
                        answer(&message);
                        if one_answer {
                            return Ok(());
                        }
                    }
                }
            }
        }
    }
}

fn again_if_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Gives a socket more room than the system's limits allow: `SO_RCVBUFFORCE`, `SO_SNDBUFFORCE`.
/// Where that fails it keeps what it has.
pub(super) fn enlarge(socket: &Socket, option: libc::c_int, bytes: usize) {
    let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    // SAFETY: an open socket and an int that outlives the call.
    unsafe {
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        let value = (&raw const bytes).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, length);
    }
}

/// An [`Error`] that does not know yet what was being done.
struct Refusal {
    cause: io::Error,
    kernel: Option<String>,
}

impl Refusal {
    fn told(self, doing: impl FnOnce() -> String) -> Error {
        Error { doing: doing(), cause: self.cause, kernel: self.kernel, remedy: None }
    }
}

impl From<io::Error> for Refusal {
    fn from(cause: io::Error) -> Self {
        Self { cause, kernel: None }
    }
}

/// An acknowledgement or refusal (`struct nlmsgerr`: the errno, negative, and the header of the
/// request), or the end of a dump (the errno alone), each followed by the kernel's words, if it has
/// any.
fn outcome(message: &Message<'_>) -> std::result::Result<(), Refusal> {
    let code = message::number(message.payload, 0).unwrap_or_default() as i32;
    if code == 0 {
        return Ok(());
    }
    let fixed = if i32::from(message.kind) == libc::NLMSG_ERROR { 4 + HEADER } else { 4 };
    let has_words = message.flags & libc::NLM_F_ACK_TLVS as u16 != 0;
    let words = message
        .payload
        .get(fixed..)
        .filter(|_| has_words)
        .and_then(|rest| message::attribute(rest, ERROR_TEXT));
    Err(Refusal {
        cause: io::Error::from_raw_os_error(code.saturating_neg()),
        kernel: words.map(message::text),
    })
}
