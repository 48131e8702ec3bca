//! Quantities as people write them ("10mbit", "250ms", "64kb", "2bdp") turned into integers by
//! exact decimal arithmetic: 0.1 Gbit/s is 100 000 000 bit/s, never one less. What a quantity is
//! used for, and whether it may be zero, is for others to say.

use crate::units::{NANOS_PER_SEC, Nanos};

/// How much a queue holds, the packet in service not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Packets.
    Packets(u64),
    /// Bytes. `2bdp` in the file is turned into these: rate times the largest base RTT of the flows
    /// that cross.
    Bytes(u64),
}

/// What is said of a number, whatever it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Claim<T> {
    /// So many times the true one.
    Times(f64),
    /// This.
    Is(T),
}

/// What is wrong with a quantity, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// What is wrong with the text.
    pub what: String,
    /// What would be right.
    pub help: String,
}

fn complain<T>(what: impl Into<String>, help: impl Into<String>) -> Result<T, Complaint> {
    Err(Complaint { what: what.into(), help: help.into() })
}

/// The greatest rate: 1 TB/s, up to which the engine's arithmetic is proven.
pub const MAX_RATE_BPS: u64 = 8_000_000_000_000;
/// The least rate of a link but none at all: a router's arithmetic is in whole bytes/s.
pub const MIN_RATE_BPS: u64 = 8;
/// The greatest time, about three years: sums of several stay far below 2^64 ns.
pub const MAX_TIME: Nanos = 100_000_000 * NANOS_PER_SEC;
/// The greatest number of bytes, an exabyte.
pub const MAX_BYTES: u64 = 1_000_000_000_000_000_000;
/// The greatest queue, packets.
pub const MAX_PACKETS: u64 = 1_000_000_000_000_000;

/// A non-negative decimal number, `digits / 10^scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal {
    /// All digits, as a whole number.
    pub digits: u128,
    /// How many of them stand after the point.
    pub scale: u32,
}

impl Decimal {
    /// `self * unit` if that is a whole number.
    fn times(self, unit: u128) -> Result<Option<u128>, ()> {
        let product = self.digits.checked_mul(unit).ok_or(())?;
        let divisor = 10u128.pow(self.scale);
        Ok((product % divisor == 0).then(|| product / divisor))
    }

    /// The nearest double-precision number.
    #[expect(clippy::cast_precision_loss, reason = "the nearest double is what is wanted")]
    pub fn to_f64(self) -> f64 {
        self.digits as f64 / 10f64.powi(self.scale.cast_signed())
    }

    /// `self * a * b / divisor`, rounded down.
    pub fn scaled(self, a: u64, b: u64, divisor: u128) -> Option<u128> {
        let product = self.digits.checked_mul(u128::from(a))?.checked_mul(u128::from(b))?;
        Some(product / 10u128.pow(self.scale).checked_mul(divisor)?)
    }
}

/// A number and what follows it: "1.5", "ms".
fn split<'a>(text: &'a str, kind: &str, example: &str) -> Result<(Decimal, &'a str), Complaint> {
    let trimmed = text.trim();
    if trimmed.starts_with('-') {
        return complain(
            format!("{kind} cannot be negative: \"{trimmed}\""),
            format!("write it like \"{example}\""),
        );
    }
    let end = trimmed
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    match decimal(number) {
        Some(number) => Ok((number, unit.trim())),
        None if number.len() > 24 => complain(
            format!("\"{trimmed}\" has too many digits"),
            format!("write it like \"{example}\""),
        ),
        None => complain(
            format!("\"{trimmed}\" is not {kind}"),
            format!("write a number and a unit, like \"{example}\""),
        ),
    }
}

/// Digits with at most one point and at most 24 of them that count.
fn decimal(text: &str) -> Option<Decimal> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty()
        || (text.contains('.') && fraction.is_empty())
        || fraction.contains('.')
        || text.starts_with('_')
    {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let digits: String = whole.chars().chain(fraction.chars()).filter(|c| *c != '_').collect();
    let fraction_digits = fraction.chars().filter(|c| *c != '_').count();
    if digits.trim_start_matches('0').len() > 24 || fraction_digits > 24 {
        return None;
    }
    let digits = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    Some(Decimal { digits, scale: u32::try_from(fraction_digits).ok()? })
}

/// bit/s of one unit of a rate, as `tc` reads it: `bit` is a bit and `bps` a byte per second, `k`
/// is 1000 and `ki` 1024, case does not matter (but see [`ambiguous`]).
fn rate_unit(unit: &str) -> Option<u128> {
    let lower = unit.to_ascii_lowercase();
    let name = lower.strip_suffix("/s").filter(|n| n.ends_with("bit")).unwrap_or(&lower);
    let (prefix, factor) = if let Some(prefix) = name.strip_suffix("bit") {
        (prefix, 1)
    } else {
        (name.strip_suffix("bps")?, 8)
    };
    let prefix = match prefix {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        "ti" => 1 << 40,
        _ => return None,
    };
    Some(prefix * factor)
}

/// Whether people mean by it something else than `tc` does: "Mbps" is megabits per second nearly
/// everywhere else.
fn ambiguous(unit: &str) -> bool {
    unit.to_ascii_lowercase().ends_with("bps") && unit.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// A rate in bit/s, zero included.
pub fn rate(text: &str) -> Result<u64, Complaint> {
    let (number, unit) = split(text, "a rate", "10mbit")?;
    let text = text.trim();
    if unit.is_empty() {
        let example = if number.digits == 0 { "10" } else { text };
        return complain(
            format!("the rate \"{text}\" has no unit"),
            format!(
                "write \"{example}mbit\" if it is in Mbit/s; the units are those of tc: bit, kbit, \
                 mbit, gbit, tbit, and kbps, mbps, gbps for bytes"
            ),
        );
    }
    let Some(factor) = rate_unit(unit) else {
        return complain(
            format!("\"{unit}\" is not a unit of rate"),
            "the units are those of tc: bit, kbit, mbit, gbit, tbit (bits per second), bps, kbps, \
             mbps, gbps (bytes per second), kibit, mibit, gibit",
        );
    };
    if ambiguous(unit) {
        let (prefix, number) =
            (unit[..unit.len() - 3].to_ascii_lowercase(), text.trim_end_matches(unit).trim_end());
        return complain(
            format!("\"{unit}\" may mean bits or bytes per second"),
            format!(
                "write \"{number}{prefix}bit\" if it is bits; \"{number}{prefix}bps\" is bytes \
                 per second, as in tc"
            ),
        );
    }
    match number.times(factor) {
        Ok(None) => complain(
            format!("\"{text}\" is not a whole number of bits per second"),
            "write the whole number, like \"1500bit\"",
        ),
        Ok(Some(bits)) if bits <= u128::from(MAX_RATE_BPS) => Ok(bits as u64),
        _ => complain(
            format!("the rate \"{text}\" is above 1 TB/s (8tbit)"),
            "write at most \"8tbit\"",
        ),
    }
}

/// A time in nanoseconds, zero included.
pub fn time(text: &str) -> Result<Nanos, Complaint> {
    let (number, unit) = split(text, "a time", "250ms")?;
    let text = text.trim();
    let factor = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => {
            return complain(
                format!("the time \"{text}\" has no unit"),
                format!("write \"{text}s\" for seconds or \"{text}ms\" for milliseconds"),
            );
        }
        _ => {
            return complain(
                format!("\"{unit}\" is not a unit of time"),
                "the units are ns, us, ms, s, m (minutes) and h",
            );
        }
    };
    match number.times(factor) {
        Ok(None) => complain(
            format!("\"{text}\" is finer than a nanosecond"),
            "write a whole number of nanoseconds, like \"1500ns\"",
        ),
        Ok(Some(nanos)) if nanos <= u128::from(MAX_TIME) => Ok(nanos as Nanos),
        _ => complain(
            format!("the time \"{text}\" is too long"),
            "write at most \"100000000s\", about three years",
        ),
    }
}

/// Bytes of one unit of size, as `tc` reads it: `kb` is 1024 bytes.
fn size_unit(unit: &str) -> Option<u128> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return None,
    })
}

const SIZE_UNITS: &str = "the units are those of tc: b, kb (1024 bytes), mb, gb";

/// A number of bytes, zero included.
pub fn size(text: &str) -> Result<u64, Complaint> {
    let (number, unit) = split(text, "a size", "64kb")?;
    let text = text.trim();
    if unit.is_empty() {
        return complain(
            format!("the size \"{text}\" has no unit"),
            format!("write \"{text}b\" for bytes; {SIZE_UNITS}"),
        );
    }
    match size_unit(unit) {
        Some(factor) => bytes_of(number, factor, text),
        None => complain(format!("\"{unit}\" is not a unit of size"), SIZE_UNITS),
    }
}

fn bytes_of(number: Decimal, factor: u128, text: &str) -> Result<u64, Complaint> {
    match number.times(factor) {
        Ok(None) => complain(
            format!("\"{text}\" is not a whole number of bytes"),
            "write the whole number, like \"1500b\"",
        ),
        Ok(Some(bytes)) if bytes <= u128::from(MAX_BYTES) => Ok(bytes as u64),
        _ => complain(format!("the size \"{text}\" is too large"), "write at most 10^18 bytes"),
    }
}

/// What a text with a unit is in bit/s, seconds or bytes, and which of these: `_bps`, `_s` or
/// `_bytes`, the end of a column's name. `None` where it is no such text, or could be two of them
/// (`5m`).
#[must_use]
pub fn in_base_units(text: &str) -> Option<(f64, &'static str)> {
    let rate = rate(text).ok().map(|bps| (bps as f64, "_bps"));
    let time = time(text).ok().map(|nanos| (nanos as f64 / NANOS_PER_SEC as f64, "_s"));
    let size = size(text).ok().map(|bytes| (bytes as f64, "_bytes"));
    let mut readings = [rate, time, size].into_iter().flatten();
    readings.next().filter(|_| readings.next().is_none())
}

/// How much of a queue, before rates and delays are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// Packets.
    Packets(u64),
    /// Bytes.
    Bytes(u64),
    /// Multiples of the bandwidth-delay product.
    Bdp(Decimal),
    /// Hundredths of the queue's limit.
    Percent(Decimal),
}

impl Amount {
    /// Whether it is nothing, whatever of.
    #[must_use]
    pub fn is_zero(self) -> bool {
        match self {
            Self::Packets(n) | Self::Bytes(n) => n == 0,
            Self::Bdp(d) | Self::Percent(d) => d.digits == 0,
        }
    }
}

const AMOUNT_HELP: &str =
    "write packets (\"100p\" or 100), bytes (\"64kb\") or bandwidth-delay products (\"2bdp\")";

/// A queue's limit or, where `percent` is allowed, a threshold of it.
pub fn amount(text: &str, percent: bool) -> Result<Amount, Complaint> {
    let (number, unit) = split(
        text,
        if percent { "a threshold" } else { "a queue limit" },
        if percent { "33%" } else { "2bdp" },
    )?;
    let text = text.trim();
    match unit.to_ascii_lowercase().as_str() {
        "p" | "packet" | "packets" => packets_of(number, text),
        "bdp" => Ok(Amount::Bdp(number)),
        "%" if percent => Ok(Amount::Percent(number)),
        "" => complain(
            format!("\"{text}\" has no unit"),
            format!("write \"{text}p\" for packets, \"{text}b\" for bytes or \"{text}bdp\""),
        ),
        lower => match size_unit(lower) {
            Some(factor) => Ok(Amount::Bytes(bytes_of(number, factor, text)?)),
            None => complain(format!("\"{unit}\" is not a unit of queue length"), AMOUNT_HELP),
        },
    }
}

/// A queue that may stand, before rates and delays are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing {
    /// A size, or a part of something.
    Amount(Amount),
    /// What the link sends in this time.
    Time(Nanos),
}

impl Standing {
    /// In bytes; where that is more than a number holds, the greatest. `bdp` says what multiples of
    /// the bandwidth-delay product are.
    #[must_use]
    pub fn bytes(self, rate_bps: u64, packet_bytes: u32, bdp: impl FnOnce(Decimal) -> u64) -> u64 {
        match self {
            Self::Amount(Amount::Packets(n)) => n.saturating_mul(packet_bytes.into()),
            Self::Amount(Amount::Bytes(n)) => n,
            Self::Amount(Amount::Bdp(times)) => bdp(times),
            // What stands is no percentage: `standing` reads none.
            Self::Amount(Amount::Percent(_)) => 0,
            // At most 2^43 bit/s for 2^57 ns: far below 2^128, but not below 2^64.
            Self::Time(time) => {
                let bits = u128::from(rate_bps) * u128::from(time) / u128::from(NANOS_PER_SEC);
                u64::try_from(bits / 8).unwrap_or(u64::MAX)
            }
        }
    }
}

/// A standing queue, zero included. `m` is a size, as for every amount, and not minutes.
pub fn standing(text: &str) -> Result<Standing, Complaint> {
    let (_, unit) = split(text, "a queue length", "5ms")?;
    if matches!(unit, "ns" | "us" | "µs" | "μs" | "ms" | "s") {
        return Ok(Standing::Time(time(text)?));
    }
    match amount(text, false) {
        Ok(amount) => Ok(Standing::Amount(amount)),
        Err(Complaint { what, help }) => {
            complain(what, format!("{help}, or the time it takes to send (\"5ms\")"))
        }
    }
}

fn packets_of(number: Decimal, text: &str) -> Result<Amount, Complaint> {
    match number.times(1) {
        Ok(None) => complain(format!("\"{text}\" is not a whole number of packets"), AMOUNT_HELP),
        Ok(Some(n)) if n <= u128::from(MAX_PACKETS) => Ok(Amount::Packets(n as u64)),
        _ => complain(format!("\"{text}\" are too many packets"), "write at most 10^15 packets"),
    }
}

/// The greatest factor of a claim.
pub const MAX_FACTOR: f64 = 1e9;

/// Multiples of something: "10x".
pub fn factor(text: &str) -> Result<f64, Complaint> {
    match split(text, "a factor", "10x")? {
        (number, "x") if number.to_f64() <= MAX_FACTOR => Ok(number.to_f64()),
        (_, "x") => complain(
            format!("the factor \"{}\" is too large", text.trim()),
            "write at most \"1000000000x\"",
        ),
        (_, "") => complain(
            format!("the factor \"{0}\" has no unit", text.trim()),
            format!("write \"{}x\"", text.trim()),
        ),
        (_, unit) => complain(
            format!("\"{unit}\" does not make a factor"),
            "write a number and an x, like \"10x\"",
        ),
    }
}

/// What is claimed of a time: the time, or multiples of the true one.
pub fn claimed_time(text: &str) -> Result<Claim<Nanos>, Complaint> {
    let (_, unit) = split(text, "a time", "5s")?;
    if unit == "x" {
        return Ok(Claim::Times(factor(text)?));
    }
    let or_factor = |c: Complaint| Complaint {
        help: format!("{}; multiples of the true one are written \"10x\"", c.help),
        ..c
    };
    time(text).map(Claim::Is).map_err(or_factor)
}

/// What is claimed of a window: packets, fractions of them included, or multiples of the true one.
pub fn claimed_window(text: &str) -> Result<Claim<f64>, Complaint> {
    let (number, unit) = split(text, "a window", "10p")?;
    if unit == "x" {
        return Ok(Claim::Times(factor(text)?));
    }
    let text = text.trim();
    #[expect(clippy::cast_precision_loss, reason = "a bound")]
    let most = MAX_PACKETS as f64;
    match unit.to_ascii_lowercase().as_str() {
        "p" | "packet" | "packets" if number.to_f64() <= most => Ok(Claim::Is(number.to_f64())),
        "p" | "packet" | "packets" => {
            complain(format!("\"{text}\" are too many packets"), "write at most 10^15 packets")
        }
        "" => complain(
            format!("\"{text}\" has no unit"),
            format!("write \"{text}p\" for packets or \"{text}x\" for multiples of the true one"),
        ),
        _ => complain(
            format!("\"{unit}\" is not a unit of windows"),
            "write packets (\"10p\") or multiples of the true one (\"0.5x\")",
        ),
    }
}

/// A time as a person would write it, exactly.
pub fn show_time(t: Nanos) -> String {
    for (unit, factor) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if t >= factor && (t % factor).is_multiple_of(factor / 1000) {
            let text = format!("{}.{:03}", t / factor, t % factor / (factor / 1000));
            return format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    if t == 0 { "0s".into() } else { format!("{t}ns") }
}

/// A number of bytes for a person: rounded to one decimal of the unit that suits.
#[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
pub fn show_bytes(bytes: u128) -> String {
    let units = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{value:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_mean_what_tc_means() {
        for (text, bps) in [
            ("1bit", 1),
            ("10mbit", 10_000_000),
            ("10 Mbit", 10_000_000),
            ("10Mbit/s", 10_000_000),
            ("0.1gbit", 100_000_000),
            ("2.488gbit", 2_488_000_000),
            ("1kbps", 8_000),
            ("1mbps", 8_000_000),
            ("1kibit", 1024),
            ("1mibit", 1_048_576),
            ("1tbps", MAX_RATE_BPS),
            ("0bit", 0),
            ("1_000kbit", 1_000_000),
        ] {
            assert_eq!(rate(text), Ok(bps), "{text}");
        }
    }

    #[test]
    fn what_others_read_otherwise_is_asked_for_again() {
        for (text, bits) in [
            ("10Mbps", "\"10mbit\""),
            ("1.5 Gbps", "\"1.5gbit\""),
            ("8MBps", "\"8mbit\""),
            ("9Bps", "\"9bit\""),
            ("2KBPS", "\"2kbit\""),
        ] {
            let complaint = format!("{:?}", rate(text).unwrap_err());
            assert!(complaint.replace("\\\"", "\"").contains(bits), "{text}: {complaint}");
        }
    }

    #[test]
    fn times_are_exact() {
        for (text, nanos) in [
            ("250ms", 250_000_000),
            ("1.5s", 1_500_000_000),
            ("10us", 10_000),
            ("0s", 0),
            ("2m", 120_000_000_000),
            ("0.000000001s", 1),
            ("0.3s", 300_000_000),
            ("1.10s", 1_100_000_000),
        ] {
            assert_eq!(time(text), Ok(nanos), "{text}");
        }
    }

    #[test]
    fn sizes_and_amounts() {
        assert_eq!(size("64kb"), Ok(65_536));
        assert_eq!(size("10mb"), Ok(10 << 20));
        assert_eq!(size("1.5k"), Ok(1536));
        assert_eq!(amount("100p", false), Ok(Amount::Packets(100)));
        assert_eq!(amount("64kb", false), Ok(Amount::Bytes(65_536)));
        assert_eq!(amount("0.5bdp", false), Ok(Amount::Bdp(Decimal { digits: 5, scale: 1 })));
        assert_eq!(standing("5ms"), Ok(Standing::Time(5_000_000)));
        assert_eq!(
            standing("0.5bdp"),
            Ok(Standing::Amount(Amount::Bdp(Decimal { digits: 5, scale: 1 })))
        );
        assert_eq!(standing("0p"), Ok(Standing::Amount(Amount::Packets(0))));
        assert_eq!(
            standing("2m"),
            Ok(Standing::Amount(Amount::Bytes(2 << 20))),
            "a size, not minutes"
        );
        assert!(standing("33%").is_err());
        assert_eq!(amount("33.3%", true), Ok(Amount::Percent(Decimal { digits: 333, scale: 1 })));
    }

    #[test]
    fn nonsense_is_refused_with_a_remedy() {
        let table: Vec<String> = [
            "10",
            "-1mbit",
            "",
            "mbit",
            "1.2.3mbit",
            "10mbot",
            "0.5bit",
            "9tbit",
            "99999999999999999999999999mbit",
            "1e3mbit",
            "1.",
        ]
        .iter()
        .map(|text| {
            let Complaint { what, help } = rate(text).unwrap_err();
            format!("{text:30} {what} | {help}")
        })
        .chain(["10", "-5s", "1.5", "0.1ns", "10000000000s", "5 fortnights", "1S"].iter().map(
            |text| {
                let Complaint { what, help } = time(text).unwrap_err();
                format!("{text:30} {what} | {help}")
            },
        ))
        .chain(["10", "1.5p", "2bpd", "33%", "0.0001b", "99999999999999999p"].iter().map(|text| {
            let Complaint { what, help } = amount(text, false).unwrap_err();
            format!("{text:30} {what} | {help}")
        }))
        .collect();
        insta::assert_snapshot!(table.join("\n"));
    }

    #[test]
    fn shown_quantities_read_back() {
        for t in [0, 1, 1500, 250_000_000, 1_500_000_000, 60_000_000_000, 1_234_567_891] {
            assert_eq!(time(&show_time(t)), Ok(t));
        }
    }
}
