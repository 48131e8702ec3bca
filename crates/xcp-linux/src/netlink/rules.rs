//! Policy routing: packets with a mark are for this machine, whatever their destination is. A rule
//! sends them to a table, the table has one route.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::addresses::{family, octets};
use super::message::{Request, attribute, number, short};
use super::{Netlink, Result};
use crate::sysctl;

/// Who made rules and routes (rtnetlink(7)'s rtm_protocol): a number nobody else has, by which they
/// are known again.
const PROTOCOL: u8 = 0x58;
/// linux/fib_rules.h.
const RTM_NEWRULE: u16 = 32;
const RTM_DELRULE: u16 = 33;
const RTM_GETRULE: u16 = 34;
const TO_TABLE: u8 = 1;
const FRA_PRIORITY: u16 = 6;
const FRA_FWMARK: u16 = 10;
const FRA_TABLE: u16 = 15;
const FRA_FWMASK: u16 = 16;
const FRA_PROTOCOL: u16 = 21;
/// linux/rtnetlink.h.
const RTA_VIA: u16 = 18;
const RTM_F_LOOKUP_TABLE: u32 = 0x1000;

/// What diverts marked packets to this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Diversion {
    /// Packet mark (fwmark) that the rule matches.
    pub mark: u32,
    /// The routing table it leads to.
    pub table: u32,
    /// The rule's place among others; that of the main table is 32766.
    pub priority: u32,
}

/// An address of each family that stands for all of it.
const FAMILIES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];

/// Addresses that are no machine's (RFC 1112, section 4; RFC 6666): no route but one that leads
/// everywhere is for them.
const NOBODYS: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(240, 0, 0, 1)),
    IpAddr::V6(Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 1)),
];

/// The versions of IP whose packets may be led to the loopback device; IPv6 may be switched off
/// there, in this thread's namespace.
fn versions<T>(of: [T; 2]) -> impl Iterator<Item = T> {
    let off = sysctl::read("net.ipv6.conf.lo.disable_ipv6").is_ok_and(|value| value == "1");
    of.into_iter().take(if off { 1 } else { 2 })
}

fn is_unsupported(errno: Option<i32>) -> bool {
    matches!(errno, Some(libc::EAFNOSUPPORT | libc::EOPNOTSUPP))
}

impl Netlink {
    /// Adds rules and routes for both families (IPv6's where there is one and it is switched on).
    /// What is there of them already is no error.
    pub fn divert(&mut self, diversion: &Diversion) -> Result<()> {
        for any in versions(FAMILIES) {
            match self.divert_family(diversion, any) {
                Err(e) if any.is_ipv6() && is_unsupported(e.errno()) => {}
                result => result?,
            }
        }
        Ok(())
    }

    fn divert_family(&mut self, diversion: &Diversion, any: IpAddr) -> Result<()> {
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let lo = self.index_of("lo")?.unwrap_or(1);
        let mut route = Request::new(libc::RTM_NEWROUTE, flags as u16, &route_header(any));
        route.number(libc::RTA_OIF, lo).number(libc::RTA_TABLE, diversion.table);
        self.change(
            || {
                format!(
                    "add the route of packets that are to stay here to table {}",
                    diversion.table
                )
            },
            route,
        )?;
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        match self.change(
            || format!("add the rule for mark {:#x}", diversion.mark),
            rule(RTM_NEWRULE, flags, diversion, any),
        ) {
            Err(e) if e.errno() == Some(libc::EEXIST) => Ok(()),
            result => result,
        }
    }

    /// Takes them away, one of each that [`Netlink::divert`] added; what is not there is no error.
    pub fn undivert(&mut self, diversion: &Diversion) -> Result<()> {
        let gone = |errno| {
            matches!(errno, Some(libc::ENOENT | libc::ESRCH | libc::ENODEV))
                || is_unsupported(errno)
        };
        for any in FAMILIES {
            let removal = rule(RTM_DELRULE, libc::NLM_F_ACK, diversion, any);
            let mut route =
                Request::new(libc::RTM_DELROUTE, libc::NLM_F_ACK as u16, &route_header(any));
            route.number(libc::RTA_TABLE, diversion.table);
            for (what, request) in [("rule", removal), ("route", route)] {
                match self
                    .change(|| format!("remove the {what} for mark {:#x}", diversion.mark), request)
                {
                    Err(e) if !gone(e.errno()) => return Err(e),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Who else uses the mark or the table: rules in words. Ours do not count.
    pub fn others_that_divert(&mut self, diversion: &Diversion) -> Result<Vec<String>> {
        self.that_divert(diversion, false)
    }

    /// Whether what [`Netlink::divert`] adds is there.
    pub fn diverts(&mut self, diversion: &Diversion) -> Result<bool> {
        Ok(!self.that_divert(diversion, true)?.is_empty())
    }

    /// The versions of IP whose marked packets do not come to this machine by the table: a rule or
    /// a route is missing, or another rule comes first. The kernel is asked what it would do with
    /// a packet, so it does not matter what has happened to which of them, nor how many routes
    /// there are.
    pub fn misled(&mut self, diversion: &Diversion) -> Result<Vec<&'static str>> {
        let mut found = Vec::new();
        for to in versions(NOBODYS) {
            match self.table_for(diversion.mark, to) {
                Ok(Some(table)) if table == diversion.table => {}
                // Packets for addresses without a route are refused by all kinds of numbers.
                Err(e) if e.errno().is_none() => return Err(e),
                Err(e) if is_unsupported(e.errno()) => {}
                _ => found.push(if to.is_ipv4() { "IPv4" } else { "IPv6" }),
            }
        }
        Ok(found)
    }

    /// The routing table that decides about packets with a mark.
    fn table_for(&mut self, mark: u32, to: IpAddr) -> Result<Option<u32>> {
        let mut fixed = [0; 12];
        fixed[0] = family(to);
        fixed[1] = if to.is_ipv4() { 32 } else { 128 };
        fixed[8..].copy_from_slice(&RTM_F_LOOKUP_TABLE.to_ne_bytes());
        let mut request = Request::new(libc::RTM_GETROUTE, 0, &fixed);
        request.attribute(libc::RTA_DST, &octets(to)).number(libc::RTA_MARK, mark);
        self.get(
            || format!("look up the route to {to} of packets with mark {mark:#x}"),
            request,
            |payload| number(attribute(payload.get(12..)?, libc::RTA_TABLE)?, 0),
        )
    }

    fn that_divert(&mut self, diversion: &Diversion, wanted_ours: bool) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for any in FAMILIES {
            let request =
                || Request::new(RTM_GETRULE, libc::NLM_F_DUMP as u16, &rule_header(any, 0));
            let wanted = *diversion;
            let others = self.dump(
                || "list the routing rules".to_owned(),
                request,
                |payload| {
                    let attributes = payload.get(12..)?;
                    let word =
                        |kind| attribute(attributes, kind).and_then(|value| number(value, 0));
                    let ours = attribute(attributes, FRA_PROTOCOL)
                        .is_some_and(|value| value.first() == Some(&PROTOCOL));
                    let (mark, table) = (word(FRA_FWMARK), word(FRA_TABLE));
                    let clash = mark == Some(wanted.mark) || table == Some(wanted.table);
                    (clash && ours == wanted_ours).then(|| {
                        let mark =
                            mark.map(|mark| format!(" fwmark {mark:#x}")).unwrap_or_default();
                        format!(
                            "ip rule{mark} lookup {} (priority {})",
                            table.unwrap_or(0),
                            word(FRA_PRIORITY).unwrap_or(0)
                        )
                    })
                },
            );
            match others {
                Err(e) if is_unsupported(e.errno()) => {}
                others => found.extend(others?),
            }
        }
        Ok(found)
    }

    /// The device by which packets to an address leave, and the source address that they have.
    pub fn way_to(&mut self, to: IpAddr) -> Result<Option<(u32, IpAddr)>> {
        let mut fixed = [0; 12];
        fixed[0] = family(to);
        fixed[1] = if to.is_ipv4() { 32 } else { 128 };
        let mut request = Request::new(libc::RTM_GETROUTE, 0, &fixed);
        request.attribute(libc::RTA_DST, &octets(to));
        self.get(
            || format!("look up the route to {to}"),
            request,
            |payload| {
                let attributes = payload.get(12..)?;
                let device = number(attribute(attributes, libc::RTA_OIF)?, 0)?;
                let source = attribute(attributes, libc::RTA_PREFSRC)?;
                let source = match to {
                    IpAddr::V4(_) => IpAddr::from(<[u8; 4]>::try_from(source).ok()?),
                    IpAddr::V6(_) => IpAddr::from(<[u8; 16]>::try_from(source).ok()?),
                };
                Some((device, source))
            },
        )
    }

    /// Whether the kernel has asked in vain for the neighbour by which packets to an address leave:
    /// the host itself, or the router before it.
    pub fn is_missing(&mut self, to: IpAddr) -> Result<bool> {
        let mut fixed = [0; 12];
        fixed[0] = family(to);
        fixed[1] = if to.is_ipv4() { 32 } else { 128 };
        let mut request = Request::new(libc::RTM_GETROUTE, 0, &fixed);
        request.attribute(libc::RTA_DST, &octets(to));
        let route = self.get(
            || format!("look up the route to {to}"),
            request,
            |payload| {
                let attributes = payload.get(12..)?;
                let device = attribute(attributes, libc::RTA_OIF)?.to_vec();
                // A router of another version of IP (RTA_VIA) is not looked for.
                let other = attribute(attributes, RTA_VIA).is_some();
                let next = attribute(attributes, libc::RTA_GATEWAY).map(<[u8]>::to_vec);
                (!other).then(|| (device, next.unwrap_or_else(|| octets(to))))
            },
        )?;
        let Some((device, next)) = route else { return Ok(false) };
        // struct ndmsg: family, padding, device, state, flags, type
        let fixed = [&[family(to), 0, 0, 0][..], &device, &[0; 4]].concat();
        let mut request = Request::new(libc::RTM_GETNEIGH, 0, &fixed);
        request.attribute(libc::NDA_DST, &next);
        let state = self.get(
            || format!("look up the neighbour on the way to {to}"),
            request,
            |payload| short(payload, 8),
        );
        match state {
            Ok(state) => Ok(state.is_some_and(|state| state & libc::NUD_FAILED != 0)),
            // It was never asked for.
            Err(e) if e.errno() == Some(libc::ENOENT) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Whether an address is this machine's own, or one of those that mean it or many.
    pub fn is_local(&mut self, address: IpAddr) -> Result<bool> {
        let mut fixed = [0; 12];
        fixed[0] = family(address);
        fixed[1] = if address.is_ipv4() { 32 } else { 128 };
        let mut request = Request::new(libc::RTM_GETROUTE, 0, &fixed);
        request.attribute(libc::RTA_DST, &octets(address));
        let kind = self.get(
            || format!("look up the route to {address}"),
            request,
            |payload| payload.get(7).copied(),
        );
        match kind {
            Ok(kind) => Ok(!matches!(
                kind,
                Some(
                    libc::RTN_UNICAST
                        | libc::RTN_UNREACHABLE
                        | libc::RTN_BLACKHOLE
                        | libc::RTN_PROHIBIT
                )
            )),
            // No way there: then it is not here.
            Err(e)
                if matches!(
                    e.errno(),
                    Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EACCES | libc::EINVAL)
                ) =>
            {
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }
}

/// `struct rtmsg` of the route: to everywhere, of type "local".
fn route_header(any: IpAddr) -> [u8; 12] {
    [
        family(any),
        0,
        0,
        0,
        libc::RT_TABLE_UNSPEC,
        PROTOCOL,
        libc::RT_SCOPE_HOST,
        libc::RTN_LOCAL,
        0,
        0,
        0,
        0,
    ]
}

/// `struct fib_rule_hdr`.
fn rule_header(any: IpAddr, action: u8) -> [u8; 12] {
    [family(any), 0, 0, 0, 0, 0, 0, action, 0, 0, 0, 0]
}

fn rule(kind: u16, flags: i32, diversion: &Diversion, any: IpAddr) -> Request {
    let mut request = Request::new(kind, flags as u16, &rule_header(any, TO_TABLE));
    request
        .number(FRA_PRIORITY, diversion.priority)
        .number(FRA_FWMARK, diversion.mark)
        .number(FRA_FWMASK, u32::MAX)
        .number(FRA_TABLE, diversion.table)
        .attribute(FRA_PROTOCOL, &[PROTOCOL]);
    request
}
