//! Quantities typed on a command line, read by the scenario file's rules. Errors say what is wrong
//! and what would be right.

use crate::quantity::{self, Amount, Complaint, Limit};
use crate::units::{NANOS_PER_SEC, Nanos};

fn told(complaint: Complaint) -> String {
    format!("{}; {}", complaint.what, complaint.help)
}

/// A rate in bit/s: `10mbit`.
///
/// # Errors
/// Not a rate.
pub fn rate(text: &str) -> Result<u64, String> {
    quantity::rate(text).map_err(told)
}

/// A time: `100ms`.
///
/// # Errors
/// Not a time.
pub fn time(text: &str) -> Result<Nanos, String> {
    quantity::time(text).map_err(told)
}

/// A queue's limit: `100` or `100p` packets, `64kb`, `2bdp` at a rate and round-trip time.
///
/// # Errors
/// Not a limit, or none at all.
pub fn limit(text: &str, rate_bps: u64, rtt: Nanos) -> Result<Limit, String> {
    let amount = match text.parse() {
        Ok(packets) => Amount::Packets(packets),
        Err(_) => quantity::amount(text, false).map_err(told)?,
    };
    let limit = match amount {
        Amount::Packets(n) => Limit::Packets(n),
        other => Limit::Bytes(bytes(other, rate_bps, rtt)),
    };
    if matches!(limit, Limit::Packets(0) | Limit::Bytes(0)) {
        return Err(format!(
            "a queue of {text} holds nothing; write packets (100p), bytes (64kb) or \
                bandwidth-delay products (2bdp)"
        ));
    }
    Ok(limit)
}

/// A queue that may stand, bytes: a size, a limit's units or the time it takes to send it.
///
/// # Errors
/// None of these.
pub fn standing(text: &str, rate_bps: u64, rtt: Nanos, packet_bytes: u32) -> Result<u64, String> {
    if let Ok(packets) = text.parse::<u64>() {
        return Ok(packets.saturating_mul(packet_bytes.into()));
    }
    let bdp = |times| bytes(Amount::Bdp(times), rate_bps, rtt);
    Ok(quantity::standing(text).map_err(told)?.bytes(rate_bps, packet_bytes, bdp))
}

fn bytes(amount: Amount, rate_bps: u64, rtt: Nanos) -> u64 {
    match amount {
        Amount::Bytes(n) => n,
        Amount::Bdp(times) => times
            .scaled(rate_bps, rtt, 8 * u128::from(NANOS_PER_SEC))
            .map_or(u64::MAX, |b| b.min(u128::from(u64::MAX)) as u64),
        Amount::Packets(_) | Amount::Percent(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_after_a_command() {
        assert_eq!(rate("10mbit"), Ok(10_000_000));
        assert_eq!(limit("100", 1, 1), Ok(Limit::Packets(100)));
        assert_eq!(limit("2bdp", 10_000_000, 100_000_000), Ok(Limit::Bytes(250_000)));
        assert_eq!(standing("4ms", 10_000_000, 1, 1500), Ok(5000));
        assert_eq!(standing("2", 1, 1, 1500), Ok(3000));
        assert!(rate("10").unwrap_err().contains("unit"));
        assert!(limit("0p", 1, 1).is_err());
        // 10^20 bytes.
        assert_eq!(standing("100000000s", quantity::MAX_RATE_BPS, 1, 1500), Ok(u64::MAX));
    }
}
