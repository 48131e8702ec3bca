//! HTTP CONNECT (RFC 9110 §9.3.6): `CONNECT host:port HTTP/1.1`, headers that are not looked at, an
//! empty line.

use std::net::{IpAddr, SocketAddr};

use super::{Reached, Step, Target};

/// More than this before the empty line is refused.
const LONGEST: usize = 8 * 1024;
/// A name in the DNS (RFC 1035 §2.3.4).
const LONGEST_NAME: usize = 253;

fn refuse(status: &str, why: &'static str) -> Step {
    Step::Refuse(
        format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes(),
        why,
    )
}

/// The next step.
pub(super) fn advance(input: &[u8]) -> Step {
    let end = input.windows(4).position(|w| w == b"\r\n\r\n");
    let Some(end) = end.filter(|end| *end <= LONGEST) else {
        // What cannot become a request need not be waited for.
        let start = &b"CONNECT "[..input.len().min(8)];
        return if !input.starts_with(start) {
            refuse("405 Method Not Allowed\r\nAllow: CONNECT", "it is HTTP, but not CONNECT")
        } else if input.len() > LONGEST {
            refuse("431 Request Header Fields Too Large", "its request is too long")
        } else {
            Step::More
        };
    };
    let line = input[..end].split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = std::str::from_utf8(line).unwrap_or_default().split(' ');
    let (Some(method), Some(authority), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return refuse("400 Bad Request", "its request line is not one of HTTP");
    };
    if method != "CONNECT" {
        return refuse("405 Method Not Allowed\r\nAllow: CONNECT", "it is HTTP, but not CONNECT");
    }
    if !version.starts_with("HTTP/1.") {
        return refuse("505 HTTP Version Not Supported", "its HTTP is not version 1");
    }
    match read(authority) {
        Some(target) => Step::Go(end + 4, target),
        None => refuse("400 Bad Request", "its target is not HOST:PORT"),
    }
}

/// `host:port`, `1.2.3.4:port`, `[2001:db8::1]:port`.
fn read(authority: &str) -> Option<Target> {
    let (host, port) = authority.rsplit_once(':')?;
    let port = port
        .parse()
        .ok()
        .filter(|port| *port != 0 && authority.ends_with(|c: char| c.is_ascii_digit()))?;
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Some(Target::Address(SocketAddr::new(IpAddr::V6(inner.parse().ok()?), port)));
    }
    is_name(host).then(|| target(host, port))
}

/// An address written as a name is one.
pub(super) fn target(name: &str, port: u16) -> Target {
    match name.parse::<IpAddr>() {
        Ok(address) => Target::Address(SocketAddr::new(address, port)),
        Err(_) => Target::Name(name.to_owned(), port),
    }
}

/// Whether it can be a name.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:".contains(&b))
}

/// What the client is told.
pub(super) fn outcome(reached: Reached) -> Vec<u8> {
    let status = match reached {
        Reached::Yes => return b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec(),
        Reached::NotAllowed | Reached::Forbidden => "403 Forbidden",
        Reached::TimedOut => "504 Gateway Timeout",
        Reached::Refused => "502 Bad Gateway (connection refused)",
        Reached::NoNetwork => "502 Bad Gateway (network unreachable)",
        Reached::NoHost => "502 Bad Gateway (host unreachable)",
        Reached::NoName => "502 Bad Gateway (unknown name)",
        Reached::Failed => "502 Bad Gateway",
    };
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").into_bytes()
}
