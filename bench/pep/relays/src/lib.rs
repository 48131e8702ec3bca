//! What the relays share: the only request they understand, and what they are told on the command
//! line.

use std::net::SocketAddr;

/// The answer when the target is reached.
pub const REACHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Bytes moved at once.
pub const AT_ONCE: usize = 64 << 10;

/// `CONNECT 1.2.3.4:80 HTTP/1.1`, whole and alone. A relay to measure against, not one to use: no
/// names, no headers that matter, no refusals.
#[must_use]
pub fn target(request: &[u8]) -> Option<SocketAddr> {
    let text = std::str::from_utf8(request.strip_suffix(b"\r\n\r\n")?).ok()?;
    text.lines().next()?.strip_prefix("CONNECT ")?.split(' ').next()?.parse().ok()
}

/// How bytes are moved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Read into a buffer, written out of it.
    Copy,
    /// Spliced through a pipe.
    Splice,
}

/// `relay-... ADDRESS copy|splice`.
#[must_use]
pub fn arguments() -> (SocketAddr, How) {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [address, how] if how == "copy" || how == "splice" => {
            let how = if how == "copy" { How::Copy } else { How::Splice };
            (address.parse().expect("an address like 127.0.0.1:1080"), how)
        }
        _ => panic!("ADDRESS copy|splice"),
    }
}
