//! nf_tables: a table of packet-filter rules that belongs to this process. The kernel removes a
//! table with the flag `owner` when the socket that made it closes, however its process ends, and
//! lets nobody else change it (Linux 5.12). So rules that divert traffic to a process cannot
//! outlive it.
//!
//! Only what a transparent proxy needs is here. Rules are written as the kernel evaluates them:
//! expressions from left to right that load a register, compare it (a rule ends where a comparison
//! fails) or do something. Numbers are in network order, but for what is compared with a register,
//! which is as the kernel keeps it.

use std::io;
use std::net::{IpAddr, SocketAddr};

use netlink_sys::{Socket, SocketAddr as Address, protocols::NETLINK_NETFILTER};

use super::addresses::octets;
use super::message::{self, Request, messages};
use super::socket::enlarge;
use super::{Error, Result};
use crate::namespace::Called;

/// linux/netfilter/nfnetlink.h and nf_tables.h.
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
pub(super) const SUBSYSTEM: u16 = 10;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
const DELETE_RULE: u16 = SUBSYSTEM << 8 | 8;
const FAMILY_ANY: u8 = 0;
/// IPv4 and IPv6 in one table.
pub(super) const FAMILY_INET: u8 = 1;
const TABLE_OWNER: u32 = 2;
const NESTED: u16 = libc::NLA_F_NESTED as u16;
/// The register of verdicts, and one for everything else.
const VERDICT: u32 = 0;
const REGISTER: u32 = 1;
const REGISTER_2: u32 = 2;
const ACCEPT: u32 = 1;

/// Where nobody has bound the queue, packets go on as if the rule were not there.
const QUEUE_BYPASS: u16 = 1;
const REJECT_ICMP: u32 = 0;
const REJECT_RESET: u32 = 1;

/// Where in the kernel a chain is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// For what comes, before the route is chosen.
    Prerouting,
    /// For what this machine sends.
    Output,
}

/// What a packet must be, or what happens to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Term {
    /// It is TCP.
    Tcp,
    /// It is a TCP segment that opens a connection: SYN without ACK, RST or FIN.
    Opens,
    /// It is a TCP segment that does not.
    Continues,
    /// It is ICMP of the version.
    Icmp(Version),
    /// It is ICMP of the version and says that a destination cannot be reached.
    Unreachable(Version),
    /// It came by this device.
    CameBy(String),
    /// It is IPv4, or IPv6.
    Version(Version),
    /// The route to its destination goes by this device (`true`), or by another one, but somewhere
    /// (`false`).
    GoesBy(String, bool),
    /// Its destination is not one of this machine's addresses.
    NotLocal,
    /// It belongs to a connection of a transparent socket of this machine.
    TransparentSocket,
    /// Its destination is in a network.
    To(IpAddr, u8),
    /// Its source is in a network.
    From(IpAddr, u8),
    /// Its destination port.
    ToPort(u16),
    /// It has this mark.
    Marked(u32),
    /// It has another mark than this, or none.
    NotMarked(u32),
    /// Connection tracking leaves it alone.
    NoTrack,
    /// It gets a mark.
    Mark(u32),
    /// It goes to the socket that listens at this address.
    ToListener(SocketAddr),
    /// The chain's other rules do not see it.
    Accept,
    /// The chain's other rules do not see it until the program at this queue has decided
    /// (`nfqueue.rs`); nor then, if there is none.
    Queue(u16, Spelling),
    /// Its sender gets a reset, as from its destination.
    Reset,
    /// Its sender gets ICMP's message that the destination cannot be reached, with this code.
    Refuse(u8),
}

/// How the kernel is told to queue a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// By nf_tables' own expression.
    Expression,
    /// By iptables' target, where a kernel was built without the expression.
    Target,
}

/// A version of the internet protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Version 4.
    V4,
    /// Version 6.
    V6,
}

impl Version {
    /// That of an address.
    #[must_use]
    pub fn of(address: &IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    fn number(self) -> u8 {
        match self {
            Self::V4 => libc::NFPROTO_IPV4 as u8,
            Self::V6 => libc::NFPROTO_IPV6 as u8,
        }
    }

    fn icmp(self) -> u8 {
        match self {
            Self::V4 => libc::IPPROTO_ICMP as u8,
            Self::V6 => libc::IPPROTO_ICMPV6 as u8,
        }
    }

    /// The type of message that says so.
    fn icmp_unreachable(self) -> u8 {
        match self {
            Self::V4 => 3,
            Self::V6 => 1,
        }
    }
}

/// A chain with its rules.
#[derive(Debug, Clone)]
pub struct Chain {
    /// Name of the chain.
    pub name: &'static str,
    /// When it is called.
    pub place: Place,
    /// In which order among those of other tables; -300 is before connection tracking.
    pub priority: i32,
    /// Rules of the chain, in order.
    pub rules: Vec<Vec<Term>>,
}

/// A table that this process owns. Dropped, it is gone.
#[derive(Debug)]
pub struct OwnedTable {
    socket: Socket,
    name: String,
    sequence: u32,
}

impl OwnedTable {
    /// Makes a table with its chains in the calling thread's network namespace, all at once or not
    /// at all.
    ///
    /// # Errors
    /// One of that name is there; a kernel that lacks something; not permitted.
    pub fn new(name: &str, chains: &[Chain]) -> Result<Self> {
        Self::with_comment(name, None, chains)
    }

    /// The same with a comment, which `nft list tables` and [`super::tables::list`] show.
    ///
    /// # Errors
    /// As of [`OwnedTable::new`].
    pub fn with_comment(name: &str, comment: Option<&str>, chains: &[Chain]) -> Result<Self> {
        let doing = || format!("set up the packet-filter table \"{name}\"");
        let opened = || -> io::Result<Socket> {
            let mut socket = Socket::new(NETLINK_NETFILTER)?;
            socket.bind_auto()?;
            socket.connect(&Address::new(0, 0))?;
            // Without a copy of what is refused: a rule may be longer than the buffer.
            socket.set_cap_ack(true)?;
            Ok(socket)
        };
        let socket =
            opened().map_err(|e| Error::new("open a netlink socket for the packet filter", e))?;
        let mut table = Self { socket, name: name.to_owned(), sequence: 0 };
        let mut batch = Batch::default();
        let mut new = request(NEW_TABLE, libc::NLM_F_CREATE | libc::NLM_F_EXCL, FAMILY_INET, 0);
        new.text(1, name).attribute(2, &TABLE_OWNER.to_be_bytes());
        if let Some(comment) = comment {
            new.attribute(super::tables::USER_DATA, &super::tables::comment_data(comment));
        }
        batch.add(new);
        for chain in chains {
            batch.add(new_chain(name, chain));
            chain.rules.iter().for_each(|rule| batch.add(new_rule(name, chain.name, rule)));
        }
        table.send(batch).map_err(|e| {
            let error = Error::new(doing(), e);
            match error.errno() {
                Some(libc::EEXIST) => error.or(format!(
                    "a process already has one with that name; end it (xcpnet's are ended by \
                     `xcpnet pep down{}`, with the proxy's `--name`)",
                    Called::entered().option()
                )),
                Some(libc::EPERM) => error
                    .or("a process already has one with that name, or this is not root \
                        (CAP_NET_ADMIN)"),
                Some(libc::EOPNOTSUPP | libc::EINVAL) => error
                    .or("the kernel is older than 5.12, or was built without \
                        CONFIG_NF_TABLES_INET"),
                Some(libc::ENOENT) => {
                    error.or("the kernel lacks an expression of nf_tables: CONFIG_NFT_TPROXY, \
                        CONFIG_NFT_SOCKET, CONFIG_NFT_FIB_INET, CONFIG_NFT_CT (and, if clients \
                        are to be confirmed, CONFIG_NFT_QUEUE, CONFIG_NFT_REJECT_INET)")
                }
                _ => error,
            }
        })?;
        Ok(table)
    }

    /// Puts other rules into a chain, all at once.
    ///
    /// # Errors
    /// What the kernel refuses; then the old ones stay. That it says nothing; then it is not known
    /// which ones are there.
    pub fn replace(&mut self, chain: &Chain) -> Result<()> {
        let mut batch = Batch::default();
        // Without a handle: all of the chain's rules.
        let mut delete = request(DELETE_RULE, 0, FAMILY_INET, 0);
        delete.text(1, &self.name).text(2, chain.name);
        batch.add(delete);
        chain.rules.iter().for_each(|rule| batch.add(new_rule(&self.name, chain.name, rule)));
        self.send(batch)
            .map_err(|e| Error::new(format!("change the packet-filter table \"{}\"", self.name), e))
    }

    /// Sends a batch. The kernel tells of whatever it refuses, and says that it has done the last
    /// message. It could say so of each, but a few hundred answers are more than a socket holds.
    fn send(&mut self, batch: Batch) -> io::Result<()> {
        let first = self.sequence.wrapping_add(1);
        let mut bytes = Vec::new();
        let last = batch.messages.len();
        let begin = request(BATCH_BEGIN, 0, FAMILY_ANY, SUBSYSTEM);
        let end = request(BATCH_END, 0, FAMILY_ANY, SUBSYSTEM);
        let all = std::iter::once(begin).chain(batch.messages).chain(std::iter::once(end));
        for (at, mut each) in all.enumerate() {
            if at == last {
                each.ask_for_answer();
            }
            self.sequence = first.wrapping_add(at as u32);
            bytes.extend(each.finish(self.sequence));
        }
        let last = first.wrapping_add(last as u32);
        // A batch is one datagram, which the usual room ends at some 400 rules.
        enlarge(&self.socket, libc::SO_SNDBUFFORCE, bytes.len());
        self.socket.send(&bytes, 0)?;
        let mut buffer = vec![0u8; 32 * 1024];
        let mut answered = false;
        let mut refusal = None;
        // The kernel has done it all when send returns: what it has to say is there.
        loop {
            let length = match self.socket.recv(&mut &mut buffer[..], libc::MSG_DONTWAIT) {
                Ok(length) => length,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                // More was refused than there is room to tell. The first ones are there.
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => continue,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => return Err(e),
            };
            for answer in messages(buffer.get(..length).unwrap_or_default()) {
                if i32::from(answer.kind) == libc::NLMSG_ERROR {
                    answered |= answer.sequence == last;
                    let code = message::number(answer.payload, 0).unwrap_or_default() as i32;
                    if code != 0 && refusal.is_none() {
                        refusal = Some(io::Error::from_raw_os_error(code.saturating_neg()));
                    }
                }
            }
        }
        match refusal {
            Some(refusal) => Err(refusal),
            None if answered => Ok(()),
            None => Err(io::Error::other("the kernel does not say whether it has done it")),
        }
    }
}

/// What is done all at once or not at all.
#[derive(Default)]
struct Batch {
    messages: Vec<Request>,
}

impl Batch {
    fn add(&mut self, message: Request) {
        self.messages.push(message);
    }
}

/// A message with its `struct nfgenmsg`.
fn request(kind: u16, flags: i32, family: u8, resource: u16) -> Request {
    let [high, low] = resource.to_be_bytes();
    Request::new(kind, flags as u16, &[family, 0, high, low])
}

fn new_chain(table: &str, chain: &Chain) -> Request {
    let mut new = request(NEW_CHAIN, libc::NLM_F_CREATE, FAMILY_INET, 0);
    let hook: u32 = match chain.place {
        Place::Prerouting => 0,
        Place::Output => 3,
    };
    new.text(1, table).text(3, chain.name).text(7, "filter").attribute(5, &ACCEPT.to_be_bytes());
    new.nested(4 | NESTED, |inner| {
        inner.attribute(1, &hook.to_be_bytes()).attribute(2, &chain.priority.to_be_bytes());
    });
    new
}

fn new_rule(table: &str, chain: &str, terms: &[Term]) -> Request {
    let mut new = request(NEW_RULE, libc::NLM_F_CREATE | libc::NLM_F_APPEND, FAMILY_INET, 0);
    new.text(1, table).text(2, chain);
    new.nested(4 | NESTED, |list| terms.iter().for_each(|term| write(list, term)));
    new
}

fn expression(list: &mut Request, name: &str, fill: impl FnOnce(&mut Request)) {
    list.nested(1 | NESTED, |element| {
        element.text(1, name);
        element.nested(2 | NESTED, fill);
    });
}

/// Attributes that are numbers.
fn load(list: &mut Request, name: &str, numbers: &[(u16, u32)]) {
    expression(list, name, |data| {
        for (kind, value) in numbers {
            data.attribute(*kind, &value.to_be_bytes());
        }
    });
}

fn value(list: &mut Request, kind: u16, bytes: &[u8]) {
    list.nested(kind | NESTED, |data| {
        data.attribute(1, bytes);
    });
}

/// Ends the rule unless the register is (or is not) this.
fn compare(list: &mut Request, equal: bool, bytes: &[u8]) {
    expression(list, "cmp", |data| {
        data.attribute(1, &REGISTER.to_be_bytes()).attribute(2, &u32::from(!equal).to_be_bytes());
        value(data, 3, bytes);
    });
}

fn mask(list: &mut Request, bytes: &[u8]) {
    expression(list, "bitwise", |data| {
        data.attribute(1, &REGISTER.to_be_bytes()).attribute(2, &REGISTER.to_be_bytes());
        data.attribute(3, &(bytes.len() as u32).to_be_bytes());
        value(data, 4, bytes);
        value(data, 5, &vec![0; bytes.len()]);
    });
}

fn immediate(list: &mut Request, register: u32, bytes: &[u8]) {
    expression(list, "immediate", |data| {
        data.attribute(1, &register.to_be_bytes());
        value(data, 2, bytes);
    });
}

fn meta(list: &mut Request, key: u32) {
    load(list, "meta", &[(1, REGISTER), (2, key)]);
}

/// Bytes of the network's (1) or the transport's header (2).
fn payload(list: &mut Request, base: u32, at: u32, length: u32) {
    load(list, "payload", &[(1, REGISTER), (2, base), (3, at), (4, length)]);
}

const META_MARK: u32 = 3;
const META_IIFNAME: u32 = 6;
const META_NFPROTO: u32 = 15;
const META_L4PROTO: u32 = 16;
const FIB_BY_DESTINATION: u32 = 2;
const FIB_OIFNAME: u32 = 2;
const FIB_ADDRTYPE: u32 = 3;

/// A device's name as the kernel compares it.
fn device(name: &str) -> [u8; libc::IFNAMSIZ] {
    let mut bytes = [0; libc::IFNAMSIZ];
    // The last byte stays zero.
    for (to, from) in bytes[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *to = from;
    }
    bytes
}

fn network(list: &mut Request, address: IpAddr, length: u8, at: [u32; 2]) {
    let bytes = octets(address);
    let [v4, v6] = at;
    write(list, &Term::Version(Version::of(&address)));
    payload(list, 1, if address.is_ipv4() { v4 } else { v6 }, bytes.len() as u32);
    let whole = bytes.len() * 8;
    let bits: Vec<u8> = (0..bytes.len())
        .map(|at| match usize::from(length).min(whole).saturating_sub(at * 8) {
            0 => 0,
            left if left >= 8 => 0xff,
            left => 0xff << (8 - left),
        })
        .collect();
    mask(list, &bits);
    let masked: Vec<u8> = bytes.iter().zip(&bits).map(|(byte, bit)| byte & bit).collect();
    compare(list, true, &masked);
}

fn write(list: &mut Request, term: &Term) {
    match term {
        Term::Tcp => {
            meta(list, META_L4PROTO);
            compare(list, true, &[libc::IPPROTO_TCP as u8]);
        }
        Term::Opens | Term::Continues => {
            // FIN 1, SYN 2, RST 4, ACK 16
            payload(list, 2, 13, 1);
            mask(list, &[0x17]);
            compare(list, *term == Term::Opens, &[0x02]);
        }
        Term::Icmp(version) => {
            write(list, &Term::Version(*version));
            meta(list, META_L4PROTO);
            compare(list, true, &[version.icmp()]);
        }
        Term::Unreachable(version) => {
            write(list, &Term::Icmp(*version));
            payload(list, 2, 0, 1);
            compare(list, true, &[version.icmp_unreachable()]);
        }
        Term::CameBy(name) => {
            meta(list, META_IIFNAME);
            compare(list, true, &device(name));
        }
        Term::Version(version) => {
            meta(list, META_NFPROTO);
            compare(list, true, &[version.number()]);
        }
        Term::GoesBy(name, yes) => {
            load(list, "fib", &[(1, REGISTER), (2, FIB_OIFNAME), (3, FIB_BY_DESTINATION)]);
            compare(list, *yes, &device(name));
            if !yes {
                compare(list, false, &device(""));
            }
        }
        Term::NotLocal => {
            load(list, "fib", &[(1, REGISTER), (2, FIB_ADDRTYPE), (3, FIB_BY_DESTINATION)]);
            compare(list, false, &u32::from(libc::RTN_LOCAL).to_ne_bytes());
        }
        Term::TransparentSocket => {
            load(list, "socket", &[(1, 0), (2, REGISTER)]);
            compare(list, true, &[1]);
        }
        Term::To(address, length) => network(list, *address, *length, [16, 24]),
        Term::From(address, length) => network(list, *address, *length, [12, 8]),
        Term::ToPort(port) => {
            payload(list, 2, 2, 2);
            compare(list, true, &port.to_be_bytes());
        }
        Term::Marked(mark) | Term::NotMarked(mark) => {
            meta(list, META_MARK);
            compare(list, matches!(term, Term::Marked(_)), &mark.to_ne_bytes());
        }
        Term::NoTrack => expression(list, "notrack", |_| ()),
        Term::Mark(mark) => {
            immediate(list, REGISTER, &mark.to_ne_bytes());
            load(list, "meta", &[(3, REGISTER), (2, META_MARK)]);
        }
        Term::ToListener(address) => {
            immediate(list, REGISTER, &octets(address.ip()));
            immediate(list, REGISTER_2, &address.port().to_be_bytes());
            let family = u32::from(Version::of(&address.ip()).number());
            load(list, "tproxy", &[(1, family), (2, REGISTER), (3, REGISTER_2)]);
        }
        Term::Accept => expression(list, "immediate", |data| {
            data.attribute(1, &VERDICT.to_be_bytes());
            data.nested(2 | NESTED, |inner| {
                inner.nested(2 | NESTED, |verdict| {
                    verdict.attribute(1, &ACCEPT.to_be_bytes());
                });
            });
        }),
        Term::Queue(number, Spelling::Expression) => expression(list, "queue", |data| {
            data.attribute(1, &number.to_be_bytes())
                .attribute(2, &1u16.to_be_bytes())
                .attribute(3, &QUEUE_BYPASS.to_be_bytes());
        }),
        Term::Queue(number, Spelling::Target) => expression(list, "target", |data| {
            // struct xt_NFQ_info_v2: the queue, how many, bypass; and what fills it up to the
            // kernel's alignment.
            let words = [*number, 1, QUEUE_BYPASS, 0];
            data.text(1, "NFQUEUE")
                .attribute(2, &2u32.to_be_bytes())
                .attribute(3, &words.map(u16::to_ne_bytes).concat());
        }),
        Term::Reset => load(list, "reject", &[(1, REJECT_RESET)]),
        Term::Refuse(code) => expression(list, "reject", |data| {
            data.attribute(1, &REJECT_ICMP.to_be_bytes()).attribute(2, &[*code]);
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::{attribute, attributes};

    /// What `nft --debug=mnl` of nftables 1.0.6 sends for `queue flags bypass to 22595`: a kernel
    /// built without the expression, as this project's machines have it, cannot say whether it
    /// would take ours.
    #[test]
    fn the_queue_is_told_as_nft_tells_it() {
        let bytes = new_rule("t", "c", &[Term::Queue(22_595, Spelling::Expression)]).finish(0);
        let message = messages(&bytes).next().unwrap();
        let list = attribute(&message.payload[4..], 4).unwrap();
        let expression = attribute(list, 1).unwrap();
        assert_eq!(attribute(expression, 1), Some(&b"queue\0"[..]));
        let data: Vec<_> = attributes(attribute(expression, 2).unwrap()).collect();
        assert_eq!(data, [(1, &[0x58, 0x43][..]), (2, &[0, 1]), (3, &[0, 1])]);
    }
}
