//! Routes, and the Ethernet addresses of neighbours.

use std::net::IpAddr;

use super::addresses::{address, family, octets};
use super::message::{Request, attribute};
use super::{Netlink, Result};

/// What else there is to say about a route.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RouteOptions {
    /// That `via` is at the other end of the wire, although no address of the device says so
    /// (iproute2's `onlink`).
    pub on_link: bool,
    /// First congestion window of connections that take it, packets (iproute2's `initcwnd`); the
    /// kernel's own if absent.
    pub initial_window: Option<u32>,
    /// Whether every segment that comes from there is acknowledged at once (iproute2's `quickack`).
    pub quick_ack: bool,
}

/// linux/rtnetlink.h.
const RTNH_F_ONLINK: u32 = 4;
/// Fixed part of a route: struct rtmsg.
const RTMSG: usize = 12;
/// linux/neighbour.h: find it out now, as if something were to be sent.
const NTF_USE: u8 = 1;
const RTAX_INITCWND: u16 = 11;
const RTAX_QUICKACK: u16 = 15;

impl Netlink {
    /// Adds a route to the main table: to a prefix, by way of a neighbour (`via`) or straight onto
    /// the wire, through a device.
    pub fn add_route(
        &mut self,
        to: IpAddr,
        prefix_len: u8,
        via: Option<IpAddr>,
        index: u32,
    ) -> Result<()> {
        self.add_route_with(to, prefix_len, via, index, RouteOptions::default())
    }

    /// The same with more to say.
    pub fn add_route_with(
        &mut self,
        to: IpAddr,
        prefix_len: u8,
        via: Option<IpAddr>,
        index: u32,
        options: RouteOptions,
    ) -> Result<()> {
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let scope = if via.is_none() && to.is_ipv4() {
            libc::RT_SCOPE_LINK
        } else {
            libc::RT_SCOPE_UNIVERSE
        };
        // struct rtmsg: family, lengths of the destination and the source, TOS, table, who made it,
        // scope, type, flags
        let mut fixed = [
            family(to),
            prefix_len,
            0,
            0,
            libc::RT_TABLE_MAIN,
            libc::RTPROT_STATIC,
            scope,
            libc::RTN_UNICAST,
            0,
            0,
            0,
            0,
        ];
        if options.on_link {
            fixed[8..].copy_from_slice(&RTNH_F_ONLINK.to_ne_bytes());
        }
        let mut request = Request::new(libc::RTM_NEWROUTE, flags as u16, &fixed);
        request.attribute(libc::RTA_DST, &octets(to)).number(libc::RTA_OIF, index);
        if let Some(via) = via {
            request.attribute(libc::RTA_GATEWAY, &octets(via));
        }
        if options.initial_window.is_some() || options.quick_ack {
            request.nested(libc::RTA_METRICS, |inner| {
                if let Some(packets) = options.initial_window {
                    inner.number(RTAX_INITCWND, packets);
                }
                inner.number(RTAX_QUICKACK, options.quick_ack.into());
            });
        }
        let way = via.map(|via| format!(" via {via}")).unwrap_or_default();
        self.change(
            || {
                format!(
                    "add a route to {to}/{prefix_len}{way} through the network device \
            number {index}"
                )
            },
            request,
        )
    }

    /// Makes a neighbour's Ethernet address known for good, so that it is never asked for (ARP,
    /// neighbour discovery).
    pub fn add_neighbour(&mut self, index: u32, address: IpAddr, mac: [u8; 6]) -> Result<()> {
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        // struct ndmsg: family, padding, device, state, flags, type
        let mut fixed = [0; 12];
        fixed[0] = family(address);
        fixed[4..8].copy_from_slice(&index.to_ne_bytes());
        fixed[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
        let mut request = Request::new(libc::RTM_NEWNEIGH, flags as u16, &fixed);
        request.attribute(libc::NDA_DST, &octets(address)).attribute(libc::NDA_LLADDR, &mac);
        self.change(
            || format!("make the neighbour {address} known to the network device number {index}"),
            request,
        )
    }

    /// The routers to which routes through a device lead, each once; not those of routes that are
    /// spread over several routers.
    pub fn routers(&mut self, index: u32) -> Result<Vec<IpAddr>> {
        let request = || Request::new(libc::RTM_GETROUTE, libc::NLM_F_DUMP as u16, &[0; RTMSG]);
        let mut found = self.dump(
            || format!("list the routes through the network device number {index}"),
            request,
            |payload| {
                let attributes = payload.get(RTMSG..)?;
                let of = attribute(attributes, libc::RTA_OIF)?;
                (of == index.to_ne_bytes())
                    .then(|| address(attribute(attributes, libc::RTA_GATEWAY)?))?
            },
        )?;
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// Has the kernel ask for a neighbour's Ethernet address, unless it knows it or needs none: the
    /// first packet to it need not wait for the answer. Does not wait for it either.
    pub fn ask_for_neighbour(&mut self, index: u32, address: IpAddr) -> Result<()> {
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE;
        // struct ndmsg: family, padding, device, state, flags, type
        let mut fixed = [0; 12];
        fixed[0] = family(address);
        fixed[4..8].copy_from_slice(&index.to_ne_bytes());
        fixed[10] = NTF_USE;
        let mut request = Request::new(libc::RTM_NEWNEIGH, flags as u16, &fixed);
        request.attribute(libc::NDA_DST, &octets(address));
        self.change(
            || format!("ask for the neighbour {address} at the network device number {index}"),
            request,
        )
    }
}
