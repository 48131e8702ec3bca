//! Among whom the long link is shared: connections, or those who open them, however many they open
//! (`bpf/endpoint_share.h`).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bits of an address that a host has been given by its network (RFC 4291 §2.5.1): the rest of it
/// is the host's own choice, and as many of them as it likes.
const HOST: u8 = 64;
/// Of a subscriber's network, where no lengths are said.
const NETWORK: [u8; 2] = [24, 56];

const CONNECTION: &str = "connection";
const ADDRESS: &str = "address";
const PREFIX: &str = "prefix";

/// Who has a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Share {
    /// Each connection.
    #[default]
    Connection,
    /// Each client's address; of IPv6 what its network gives to a host.
    Address,
    /// Each network of clients: so many bits of their addresses, of IPv4 and IPv6.
    Prefix(u8, u8),
}

impl Share {
    /// What there is to choose from.
    pub const CHOICES: &'static str = "connection, address, prefix, prefix/28 or prefix/28/48";

    /// What a text says.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut words = text.split('/');
        let kind = words.next()?;
        let lengths: Vec<u8> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let [v4, v6] = NETWORK;
        let share = match (kind, &lengths[..]) {
            (CONNECTION, []) => Self::Connection,
            (ADDRESS, []) => Self::Address,
            (PREFIX, []) => Self::Prefix(v4, v6),
            (PREFIX, [v4]) => Self::Prefix(*v4, v6),
            (PREFIX, [v4, v6]) => Self::Prefix(*v4, *v6),
            _ => return None,
        };
        (!matches!(share, Self::Prefix(v4, v6) if v4 > 32 || v6 > 128)).then_some(share)
    }

    /// Whose a client's connections are; `None`: their own.
    #[must_use]
    pub fn whose(self, client: IpAddr) -> Option<IpAddr> {
        let (v4, v6) = match self {
            Self::Connection => return None,
            Self::Address => (32, HOST),
            Self::Prefix(v4, v6) => (v4, v6),
        };
        // A shift by all of the bits is none for the processor.
        Some(match client {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(v4)).unwrap_or(0);
                Ipv4Addr::from(u32::from(address) & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(v6)).unwrap_or(0);
                Ipv6Addr::from(u128::from(address) & mask).into()
            }
        })
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection => f.write_str(CONNECTION),
            Self::Address => f.write_str(ADDRESS),
            Self::Prefix(v4, v6) => write!(f, "{PREFIX}/{v4}/{v6}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_share() {
        let whose = |text: &str, client: &str| {
            let whose = Share::read(text).expect(text).whose(client.parse().unwrap());
            whose.map(|address| address.to_string())
        };
        let is = |text, client, expected: &str| {
            assert_eq!(whose(text, client).as_deref(), Some(expected), "{text} {client}");
        };
        assert_eq!(whose("connection", "10.1.2.3"), None);
        is("address", "10.1.2.3", "10.1.2.3");
        is("address", "2001:db8:1:2:3::4", "2001:db8:1:2::");
        is("prefix", "10.1.2.3", "10.1.2.0");
        is("prefix", "2001:db8:1:2ff::4", "2001:db8:1:200::");
        is("prefix/30", "10.1.2.7", "10.1.2.4");
        is("prefix/0/0", "10.1.2.7", "0.0.0.0");
        is("prefix/0/0", "2001:db8::1", "::");
        is("prefix/32/128", "2001:db8::1", "2001:db8::1");
        for wrong in ["", "address/8", "prefix/33", "prefix/1/129", "prefix/x", "prefix/1/2/3"] {
            assert_eq!(Share::read(wrong), None, "{wrong}");
        }
        for share in [Share::Connection, Share::Address, Share::Prefix(28, 48)] {
            assert_eq!(Share::read(&share.to_string()), Some(share));
        }
    }
}
