//! SOCKS 5 (RFC 1928), the part a client needs to connect: no authentication, CONNECT to an address
//! or a name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Reached, Step, Target};

/// The first byte of everything.
pub const VERSION: u8 = 5;
/// What a client of version 4 understands: request rejected.
pub const REFUSE_4: &[u8] = &[0, 0x5b, 0, 0, 0, 0, 0, 0];

/// How far the conversation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The client lists methods of authentication.
    Greeting,
    /// The client says where it wants to go.
    Request,
}

const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const ATYP_V4: u8 = 1;
const ATYP_NAME: u8 = 3;
const ATYP_V6: u8 = 4;
/// Replies (§6).
const FAILURE: u8 = 1;
const COMMAND_NOT_SUPPORTED: u8 = 7;
const ADDRESS_NOT_SUPPORTED: u8 = 8;

/// The next step.
pub(super) fn advance(stage: &mut Stage, input: &[u8]) -> Step {
    match stage {
        Stage::Greeting => greeting(stage, input),
        Stage::Request => request(input),
    }
}

/// VER, NMETHODS, METHODS (§3).
fn greeting(stage: &mut Stage, input: &[u8]) -> Step {
    let [version, count, rest @ ..] = input else { return Step::More };
    if *version != VERSION {
        return Step::Refuse(Vec::new(), "it is not SOCKS 5");
    }
    let Some(methods) = rest.get(..usize::from(*count)) else { return Step::More };
    if methods.contains(&NO_AUTHENTICATION) {
        *stage = Stage::Request;
        Step::Answer(2 + methods.len(), vec![VERSION, NO_AUTHENTICATION])
    } else {
        Step::Refuse(vec![VERSION, NO_METHOD], "it wants to authenticate, which is not done here")
    }
}

/// VER, CMD, RSV, ATYP, DST.ADDR, DST.PORT (§4).
fn request(input: &[u8]) -> Step {
    let [version, command, _, kind, rest @ ..] = input else { return Step::More };
    if *version != VERSION {
        return Step::Refuse(reply(FAILURE, None), "its request is not one of SOCKS 5");
    }
    if *command != CONNECT {
        return Step::Refuse(
            reply(COMMAND_NOT_SUPPORTED, None),
            "it asks for something other than CONNECT",
        );
    }
    let length = match *kind {
        ATYP_V4 => 4,
        ATYP_V6 => 16,
        ATYP_NAME => match rest.first() {
            None => return Step::More,
            Some(length) => 1 + usize::from(*length),
        },
        _ => {
            return Step::Refuse(
                reply(ADDRESS_NOT_SUPPORTED, None),
                "its address is of an unknown type",
            );
        }
    };
    let Some(address) = rest.get(..length + 2) else { return Step::More };
    let (host, port) = address.split_at(length);
    let port = u16::from_be_bytes([port[0], port[1]]);
    let used = 4 + length + 2;
    let ip: IpAddr = match *kind {
        ATYP_V4 => Ipv4Addr::from(<[u8; 4]>::try_from(host).unwrap_or_default()).into(),
        ATYP_V6 => Ipv6Addr::from(<[u8; 16]>::try_from(host).unwrap_or_default()).to_canonical(),
        _ => {
            return match std::str::from_utf8(&host[1..]) {
                Ok(name) if super::connect::is_name(name) => {
                    Step::Go(used, super::connect::target(name, port))
                }
                _ => Step::Refuse(reply(ADDRESS_NOT_SUPPORTED, None), "its name is invalid"),
            };
        }
    };
    Step::Go(used, Target::Address(SocketAddr::new(ip, port)))
}

/// VER, REP, RSV, ATYP, BND.ADDR, BND.PORT (§6).
fn reply(code: u8, bound: Option<SocketAddr>) -> Vec<u8> {
    let mut out = vec![VERSION, code, 0];
    match bound.unwrap_or_else(|| SocketAddr::from(([0, 0, 0, 0], 0))) {
        SocketAddr::V4(v4) => {
            out.push(ATYP_V4);
            out.extend(v4.ip().octets());
            out.extend(v4.port().to_be_bytes());
        }
        SocketAddr::V6(v6) => {
            out.push(ATYP_V6);
            out.extend(v6.ip().octets());
            out.extend(v6.port().to_be_bytes());
        }
    }
    out
}

/// What the client is told.
pub(super) fn outcome(reached: Reached, bound: Option<SocketAddr>) -> Vec<u8> {
    let code = match reached {
        Reached::Yes => 0,
        Reached::NotAllowed | Reached::Forbidden => 2,
        Reached::NoNetwork => 3,
        Reached::NoHost | Reached::NoName => 4,
        Reached::Refused => 5,
        // "TTL expired" is what clients take for a time-out.
        Reached::TimedOut => 6,
        Reached::Failed => FAILURE,
    };
    reply(code, bound)
}
