//! The packet filter as it is: tables with their comments, chains that drop. A comment is what
//! nft(8) writes and shows: user data in libnftnl's form, a type, a length and a text.

use std::io;

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};

use super::message::{self, Request, attribute, attributes, messages, text};
use super::nftables::{FAMILY_INET, SUBSYSTEM};
use super::{Error, Result};

/// linux/netfilter/nf_tables.h.
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const GET_TABLE: u16 = SUBSYSTEM << 8 | 1;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const GET_CHAIN: u16 = SUBSYSTEM << 8 | 4;
const FAMILY_ANY: u8 = 0;
const CHAIN_TABLE: u16 = 1;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const HOOK_NUMBER: u16 = 1;
/// linux/netfilter.h.
const INPUT: u32 = 1;
const DROP: u32 = 0;
const NAME: u16 = 1;
pub(super) const USER_DATA: u16 = 6;
/// `NFTNL_UDATA_TABLE_COMMENT` (libnftnl/udata.h).
const COMMENT: u8 = 0;
/// What a length of one byte counts, with the zero that ends the text.
const LONGEST: usize = 254;

/// A table of the family inet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Name of the table.
    pub name: String,
    /// What whoever made it says of it.
    pub comment: Option<String>,
}

/// A comment as user data; cut where it is too long.
pub(super) fn comment_data(comment: &str) -> Vec<u8> {
    let mut end = comment.len().min(LONGEST);
    while !comment.is_char_boundary(end) {
        end -= 1;
    }
    let text = &comment.as_bytes()[..end];
    let mut bytes = vec![COMMENT, text.len() as u8 + 1];
    bytes.extend(text);
    bytes.push(0);
    bytes
}

fn comment(mut data: &[u8]) -> Option<String> {
    loop {
        let (kind, length) = (*data.first()?, usize::from(*data.get(1)?));
        let value = data.get(2..2 + length)?;
        if kind == COMMENT {
            return Some(text(value));
        }
        data = &data[2 + length..];
    }
}

fn table(payload: &[u8]) -> Option<Table> {
    let mut found = Table { name: String::new(), comment: None };
    for (kind, value) in attributes(payload.get(4..)?) {
        match kind {
            NAME => found.name = text(value),
            USER_DATA => found.comment = comment(value),
            _ => {}
        }
    }
    (!found.name.is_empty()).then_some(found)
}

/// Those of the calling thread's network namespace. Needs CAP_NET_ADMIN.
///
/// # Errors
/// Not permitted; a kernel without nf_tables.
pub fn list() -> Result<Vec<Table>> {
    dump(GET_TABLE, NEW_TABLE, FAMILY_INET, table)
        .map_err(|e| Error::new("list the packet filter's tables", e))
}

/// Chains for what comes to this machine that drop what no rule of theirs accepts, as nft(8) names
/// them: `inet filter input`.
///
/// # Errors
/// As of [`list`].
pub fn strict_inputs() -> Result<Vec<String>> {
    let chain = |payload: &[u8]| {
        let family = match i32::from(*payload.first()?) {
            1 => "inet",
            libc::NFPROTO_IPV4 => "ip",
            libc::NFPROTO_IPV6 => "ip6",
            _ => return None,
        };
        let attributes = payload.get(4..)?;
        let network = |bytes: &[u8]| Some(u32::from_be_bytes(bytes.try_into().ok()?));
        let hook = attribute(attributes, CHAIN_HOOK)?;
        let is_input = attribute(hook, HOOK_NUMBER).and_then(network) == Some(INPUT);
        let drops = attribute(attributes, CHAIN_POLICY).and_then(network) == Some(DROP);
        let name = |kind| attribute(attributes, kind).map(text);
        (is_input && drops).then_some(format!(
            "{family} {} {}",
            name(CHAIN_TABLE)?,
            name(CHAIN_NAME)?
        ))
    };
    dump(GET_CHAIN, NEW_CHAIN, FAMILY_ANY, chain)
        .map_err(|e| Error::new("list the packet filter's chains", e))
}

/// All of a kind; each answer's payload goes to `read`.
fn dump<T>(
    get: u16,
    new: u16,
    family: u8,
    read: impl Fn(&[u8]) -> Option<T>,
) -> io::Result<Vec<T>> {
    let listed = || -> io::Result<Vec<T>> {
        let mut socket = Socket::new(NETLINK_NETFILTER)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        let request = Request::new(get, libc::NLM_F_DUMP as u16, &[family, 0, 0, 0]);
        socket.send(&request.finish(1), 0)?;
        let mut buffer = vec![0; 32 << 10];
        let mut found = Vec::new();
        loop {
            let length = match socket.recv(&mut &mut buffer[..], 0) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                received => received?,
            };
            for answer in messages(buffer.get(..length).unwrap_or_default()) {
                match i32::from(answer.kind) {
                    libc::NLMSG_DONE => return Ok(found),
                    libc::NLMSG_ERROR => {
                        let code = message::number(answer.payload, 0).unwrap_or_default() as i32;
                        return Err(io::Error::from_raw_os_error(code.saturating_neg()));
                    }
                    _ if answer.kind == new => found.extend(read(answer.payload)),
                    _ => {}
                }
            }
        }
    };
    listed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn comments_are_read_as_they_were_written_and_cut_where_they_are_too_long() {
        for said in ["", "x", "main, wan eth1", "ä"] {
            assert_eq!(comment(&comment_data(said)).as_deref(), Some(said));
        }
        let long = "ä".repeat(300);
        let data = comment_data(&long);
        assert!(data.len() <= 257);
        assert_eq!(comment(&data), Some("ä".repeat(127)));
    }

    proptest! {
        #[test]
        fn no_answer_is_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (comment(&bytes), table(&bytes));
        }
    }
}
