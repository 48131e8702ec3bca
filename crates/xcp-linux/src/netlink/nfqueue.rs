//! nfnetlink_queue: packets that a rule ([`Term::Queue`](super::nftables::Term::Queue)) hands to
//! this process, which decides what becomes of each. The kernel keeps them meanwhile; when the
//! socket closes, however its process ends, it drops those it has and queues no more.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};

use super::message::{self, Request, attributes, messages};
use super::socket::enlarge;
use super::{Error, Result};

/// linux/netfilter/nfnetlink_queue.h.
const SUBSYSTEM: u16 = 3;
const PACKET: u16 = SUBSYSTEM << 8;
const VERDICT: u16 = SUBSYSTEM << 8 | 1;
const CONFIG: u16 = SUBSYSTEM << 8 | 2;
const BIND: u8 = 1;
const COPY_PACKET: u8 = 2;
/// linux/netfilter.h.
const DROP: u32 = 0;
const ACCEPT: u32 = 1;
const REPEAT: u32 = 4;
/// `struct nfgenmsg`.
const FIXED: usize = 4;
/// Of each packet: the headers, and the headers that an ICMP message quotes.
const COPIED: u32 = 192;
/// For packets that wait to be read, beside what the kernel keeps of them.
const BUFFER: usize = 4 << 20;

/// A packet that waits for a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Id of the packet in its queue.
    pub id: u32,
    /// The device by which it came; 0 for one of this machine's own.
    pub device: u32,
    /// Its beginning, from the network's header on.
    pub bytes: Vec<u8>,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is lost.
    Drop,
    /// It goes on behind the chain that queued it.
    Accept,
    /// It goes through that chain again, with this mark.
    Again(u32),
}

/// A queue that this process has bound.
#[derive(Debug)]
pub struct Queue {
    socket: Socket,
    number: u16,
    sequence: u32,
    buffer: Vec<u8>,
}

fn request(kind: u16, flags: i32, number: u16) -> Request {
    let [high, low] = number.to_be_bytes();
    Request::new(kind, flags as u16, &[0, 0, high, low])
}

impl Queue {
    /// Takes a queue of the calling thread's network namespace, for at most `longest` packets; more
    /// are dropped.
    ///
    /// # Errors
    /// Somebody has it; a kernel that has none; not permitted.
    pub fn bind(number: u16, longest: u32) -> Result<Self> {
        let opened = || -> io::Result<Socket> {
            let mut socket = Socket::new(NETLINK_NETFILTER)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            // What finds no room is dropped, as in any queue: its sender sends it again.
            socket.set_no_enobufs(true)?;
            enlarge(&socket, libc::SO_RCVBUFFORCE, BUFFER);
            Ok(socket)
        };
        let doing = || format!("hold packets in queue {number} of the packet filter");
        let socket =
            opened().map_err(|e| Error::new("open a netlink socket for the packet filter", e))?;
        let mut queue = Self { socket, number, sequence: 0, buffer: vec![0; 64 << 10] };
        let mut bind = request(CONFIG, libc::NLM_F_ACK, number);
        bind.attribute(1, &[BIND, 0, 0, 0]);
        let mut copy = request(CONFIG, libc::NLM_F_ACK, number);
        copy.attribute(2, &[&COPIED.to_be_bytes()[..], &[COPY_PACKET]].concat())
            .attribute(3, &longest.to_be_bytes());
        for each in [bind, copy] {
            queue.ask(each).map_err(|e| {
                let error = Error::new(doing(), e);
                match error.errno() {
                    // EPERM without the right for it, too.
                    Some(libc::EBUSY | libc::EPERM) => error.or(
                        "another program has it (/proc/net/netfilter/nfnetlink_queue names its \
                            port), or this is not root (CAP_NET_ADMIN)",
                    ),
                    Some(libc::EINVAL | libc::EOPNOTSUPP) => error
                        .or("the kernel lacks CONFIG_NETFILTER_NETLINK_QUEUE (as a module: \
                            modprobe nfnetlink_queue)"),
                    _ => error,
                }
            })?;
        }
        Ok(queue)
    }

    /// Sends a request and reads its acknowledgement, which the kernel has written when send
    /// returns.
    fn ask(&mut self, request: Request) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&request.finish(self.sequence), 0)?;
        loop {
            let length = self.socket.recv(&mut &mut self.buffer[..], libc::MSG_DONTWAIT)?;
            for answer in messages(self.buffer.get(..length).unwrap_or_default()) {
                if i32::from(answer.kind) == libc::NLMSG_ERROR && answer.sequence == self.sequence {
                    return match message::number(answer.payload, 0).unwrap_or_default() as i32 {
                        0 => Ok(()),
                        code => Err(io::Error::from_raw_os_error(code.saturating_neg())),
                    };
                }
            }
        }
    }

    /// Adds the packets that have come to a list; `false` if there was nothing to read.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn read(&mut self, packets: &mut Vec<Packet>) -> io::Result<bool> {
        let length = match self.socket.recv(&mut &mut self.buffer[..], libc::MSG_DONTWAIT) {
            Ok(length) => length,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(e),
        };
        packets.extend(
            messages(self.buffer.get(..length).unwrap_or_default())
                .filter(|m| m.kind == PACKET)
                .filter_map(|m| packet(m.payload)),
        );
        Ok(true)
    }

    /// Decides about a packet. One that is no more (its device went down, the rules changed) is no
    /// error.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn decide(&mut self, id: u32, verdict: Verdict) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut decided = request(VERDICT, 0, self.number);
        let (code, mark) = match verdict {
            Verdict::Drop => (DROP, None),
            Verdict::Accept => (ACCEPT, None),
            Verdict::Again(mark) => (REPEAT, Some(mark)),
        };
        decided.attribute(2, &[code.to_be_bytes(), id.to_be_bytes()].concat());
        if let Some(mark) = mark {
            decided.attribute(3, &mark.to_be_bytes());
        }
        self.socket.send(&decided.finish(self.sequence), 0).map(|_| ())
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket is open as long as this value lives, and so does the borrow.
        unsafe { BorrowedFd::borrow_raw(self.socket.as_raw_fd()) }
    }
}

/// What a message says of a packet.
fn packet(payload: &[u8]) -> Option<Packet> {
    let (mut id, mut device, mut bytes) = (None, 0, Vec::new());
    let number = |value: &[u8]| Some(u32::from_be_bytes(value.get(..4)?.try_into().ok()?));
    for (kind, value) in attributes(payload.get(FIXED..)?) {
        match kind {
            1 => id = number(value),
            5 => device = number(value)?,
            10 => bytes = value.to_vec(),
            _ => {}
        }
    }
    Some(Packet { id: id?, device, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = packet(&bytes);
        }

        #[test]
        fn a_packet_is_what_its_attributes_say(id: u32, device: u32, bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut message = request(PACKET, 0, 7);
            message.attribute(1, &[&id.to_be_bytes()[..], &[8, 0, 0]].concat()).attribute(5, &device.to_be_bytes()).attribute(10, &bytes);
            let whole = message.finish(0);
            let read = messages(&whole).next().and_then(|m| packet(m.payload));
            prop_assert_eq!(read, Some(Packet { id, device, bytes }));
        }
    }
}
