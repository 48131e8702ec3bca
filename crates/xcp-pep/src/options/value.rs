//! How a single value is read, and what bounds it.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use xcp_law::typed;
use xcp_linux::{Error, Result};

/// Least and most of an option, as people write them. Beyond them it would have no effect, or none
/// that anybody wants.
pub(super) type Bounds = [&'static str; 2];

pub(super) fn wrong(key: &str, why: impl Display) -> Error {
    Error::new(format!("{key}: {why}"))
}

/// A value within its bounds.
pub(super) fn within<T: PartialOrd>(
    key: &str,
    text: &str,
    [least, most]: Bounds,
    read: impl Fn(&str, &str) -> Result<T>,
) -> Result<T> {
    let value = read(key, text)?;
    if (read(key, least)?..=read(key, most)?).contains(&value) {
        Ok(value)
    } else {
        Err(wrong(key, format_args!("\"{text}\" is not between {least} and {most}")))
    }
}

/// The same of a time that may also be none at all.
pub(super) fn within_or_zero(key: &str, text: &str, bounds: Bounds) -> Result<Duration> {
    match time(key, text)? {
        Duration::ZERO => Ok(Duration::ZERO),
        _ => within(key, text, bounds, time),
    }
}

/// The same of a number.
pub(super) fn number<T: PartialOrd + Display>(
    key: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<T> {
    if range.contains(&value) {
        return Ok(value);
    }
    let (least, most) = range.into_inner();
    Err(wrong(key, format_args!("{value} is not between {least} and {most}")))
}

pub(super) fn time(key: &str, text: &str) -> Result<Duration> {
    typed::time(text).map(Duration::from_nanos).map_err(|e| wrong(key, e))
}

/// A number of bytes. Unlike in scenario files, whose units are those of `tc`, `kb` is 1000: files of
/// options have it so, and keep what they mean.
pub(super) fn bytes(key: &str, text: &str) -> Result<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => Some(1),
        "kb" => Some(1_000),
        "mb" => Some(1_000_000),
        "gb" => Some(1_000_000_000),
        "kib" => Some(1u64 << 10),
        "mib" => Some(1 << 20),
        "gib" => Some(1 << 30),
        _ => None,
    };
    let value = digits.trim().parse::<u64>().ok().zip(factor).and_then(|(n, f)| n.checked_mul(f));
    value.ok_or_else(|| {
        wrong(
            key,
            format_args!(
                "\"{text}\" is not a number of bytes; write one like 64mib (kib, mib and gib are \
                 multiples of 1024, and kb, mb and gb of 1000)"
            ),
        )
    })
}

/// An address, or a network with the length of its common part.
pub(super) fn network(text: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
    let address: IpAddr = address.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Ok(most), str::parse).ok()?;
    (length <= most).then_some((address, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_mean_what_the_help_says() {
        for (text, expected) in [
            ("64kib", 65_536),
            ("64kb", 64_000),
            ("1MiB", 1 << 20),
            ("2 gb", 2_000_000_000),
            ("7", 7),
        ] {
            assert_eq!(bytes("held", text).unwrap(), expected, "{text}");
        }
        let refused = bytes("held", "64 kilos").unwrap_err().to_string();
        assert!(
            refused.contains("64mib") && refused.contains("kb, mb and gb of 1000"),
            "{refused}"
        );
    }
}
