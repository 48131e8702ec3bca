//! IP addresses of devices.

use std::net::IpAddr;

use super::message::{Request, attribute, number};
use super::{Netlink, Result};

/// The bytes of an address as they go onto the wire.
pub(super) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// An address of either family from its octets.
pub(super) fn address(octets: &[u8]) -> Option<IpAddr> {
    match octets.len() {
        4 => Some(IpAddr::from(<[u8; 4]>::try_from(octets).ok()?)),
        _ => Some(IpAddr::from(<[u8; 16]>::try_from(octets).ok()?)),
    }
}

pub(super) fn family(address: IpAddr) -> u8 {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    family as u8
}

impl Netlink {
    /// The addresses of a device that are for more than its own link.
    pub fn addresses(&mut self, index: u32) -> Result<Vec<IpAddr>> {
        let request = || Request::new(libc::RTM_GETADDR, libc::NLM_F_DUMP as u16, &[0; 8]);
        self.dump(
            || format!("list the addresses of the network device number {index}"),
            request,
            |payload| {
                let (scope, of) = (*payload.get(3)?, number(payload, 4)?);
                let address = address(attribute(payload.get(8..)?, libc::IFA_ADDRESS)?)?;
                (of == index && scope < libc::RT_SCOPE_LINK).then_some(address)
            },
        )
    }

    /// Gives a device an address. An IPv6 address can be used at once: whether somebody has it
    /// already is not asked (RFC 4862, 5.4, which would take a second).
    pub fn add_address(&mut self, index: u32, address: IpAddr, prefix_len: u8) -> Result<()> {
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        // struct ifaddrmsg: family, prefix length, flags, scope, device
        let mut fixed = [family(address), prefix_len, 0, libc::RT_SCOPE_UNIVERSE, 0, 0, 0, 0];
        fixed[4..].copy_from_slice(&index.to_ne_bytes());
        let mut request = Request::new(libc::RTM_NEWADDR, flags as u16, &fixed);
        request
            .attribute(libc::IFA_LOCAL, &octets(address))
            .attribute(libc::IFA_ADDRESS, &octets(address));
        if address.is_ipv6() {
            request.number(libc::IFA_FLAGS, libc::IFA_F_NODAD);
        }
        let doing =
            || format!("give the network device number {index} the address {address}/{prefix_len}");
        self.change(doing, request).map_err(|e| match (e.errno(), address) {
            (Some(libc::EACCES | libc::EOPNOTSUPP), IpAddr::V6(_)) => e
                .or("IPv6 is switched off here (net.ipv6.conf.all.disable_ipv6, or \
                    ipv6.disable=1 on the kernel's command line)"),
            _ => e,
        })
    }
}
