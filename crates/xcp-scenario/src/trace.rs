//! Files that say how a link changes: mahimahi's packet-delivery traces, and CSV. A trace that a
//! scenario file names is written into its text when the file is read, as the list of steps that it
//! comes to, so that everything after that (a sweep on other machines, a page in a browser, the
//! copy beside the results) needs the one text only.
//!
//! A line of mahimahi's says in which millisecond a packet of 1500 bytes can be sent, several equal
//! lines that several can. Here such a line has the rate at which exactly these packets have been
//! sent at exactly these times, if there are always some to send; as there, what nobody uses is
//! gone, and the file begins anew when it has ended. (Differs in this: between two times the line
//! sends evenly, where mahimahi does nothing and then sends all at once.)

use std::fmt::Write as _;

use xcp_law::quantity::{MAX_RATE_BPS, MAX_TIME, MIN_RATE_BPS};
use xcp_model::units::{NANOS_PER_SEC, Nanos};

const NANOS_PER_MILLI: Nanos = 1_000_000;
/// Bits of the packet that a line of mahimahi's stands for. (Its 1504 bytes are with the four of
/// the device that it reads from.)
const PACKET_BITS: u128 = 1500 * 8;
/// More steps than this are not a link's, and would be read for minutes.
const MOST_STEPS: usize = 500_000;

/// From when which value holds.
type List = Vec<(Nanos, u64)>;

/// What a file says; what it does not speak of is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Trace {
    /// Bit/s.
    pub rates: List,
    /// One way.
    pub delays: List,
}

/// Reads a file for a run of so long.
///
/// # Errors
/// The line, and what is wrong with it.
pub(crate) fn read(text: &str, duration: Nanos) -> Result<Trace, String> {
    // Spreadsheets put a mark before the first byte.
    let text = text.trim_start_matches('\u{feff}');
    let lines = || {
        let numbered = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
        numbered.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    };
    match lines().next() {
        None => Err("it is empty".into()),
        Some((_, first)) if first.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(Trace { rates: mahimahi(lines(), duration)?, delays: List::new() })
        }
        Some((number, head)) => csv(number, head, lines().skip(1)),
    }
}

/// The rates of a packet-delivery trace, again and again until the end.
fn mahimahi<'t>(
    lines: impl Iterator<Item = (usize, &'t str)>,
    duration: Nanos,
) -> Result<List, String> {
    let mut times: Vec<(u64, u128)> = Vec::new();
    for (number, line) in lines {
        let at: u64 = line.parse().map_err(|_| {
            format!("line {number}: `{line}` is not a whole number of milliseconds")
        })?;
        // What can be sent in the first instant can be by the end of the first millisecond.
        let at = at.max(1);
        match times.last_mut() {
            Some((last, _)) if at < *last => {
                return Err(format!("line {number}: {at} ms is before the line above"));
            }
            Some((last, packets)) if at == *last => *packets += 1,
            _ => times.push((at, 1)),
        }
    }
    let period = times.last().map_or(1, |(last, _)| *last);
    let mut rates = List::new();
    let mut begun: u64 = 0;
    loop {
        let mut from = 0;
        for &(to, packets) in &times {
            let at = begun.saturating_add(from).saturating_mul(NANOS_PER_MILLI);
            if at >= duration {
                return Ok(rates);
            }
            let rate = packets * PACKET_BITS * 1000 / u128::from(to - from);
            let rate = u64::try_from(rate).unwrap_or(u64::MAX).max(MIN_RATE_BPS);
            if rate > MAX_RATE_BPS {
                return Err(format!("{packets} lines for {to} ms are more than 8 Tbit/s"));
            }
            if rates.last().is_none_or(|(_, before)| *before != rate) {
                rates.push((at, rate));
            }
            if rates.len() > MOST_STEPS {
                return Err(format!("it gives more than {MOST_STEPS} steps in this duration"));
            }
            from = to;
        }
        begun = begun.saturating_add(period);
    }
}

/// A column of a CSV file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Time,
    Rate,
    Delay,
}

/// Names of columns, what they are, and what one of theirs is: nanoseconds or bit/s.
const COLUMNS: [(&str, Column, f64); 7] = [
    ("time_s", Column::Time, 1e9),
    ("time_ms", Column::Time, 1e6),
    ("rate_bps", Column::Rate, 1.0),
    ("rate_kbps", Column::Rate, 1e3),
    ("rate_mbps", Column::Rate, 1e6),
    ("delay_s", Column::Delay, 1e9),
    ("delay_ms", Column::Delay, 1e6),
];

/// A table with a heading; other columns than ours are somebody else's.
fn csv<'t>(
    number: usize,
    head: &str,
    lines: impl Iterator<Item = (usize, &'t str)>,
) -> Result<Trace, String> {
    let known = |name: &str| {
        let name = name.trim().trim_matches('"').to_ascii_lowercase();
        COLUMNS.iter().find(|(known, ..)| *known == name).map(|&(_, column, unit)| (column, unit))
    };
    let columns: Vec<Option<(Column, f64)>> = head.split(',').map(known).collect();
    let has = |wanted| columns.iter().flatten().filter(|(column, _)| *column == wanted).count();
    if has(Column::Time) != 1 || has(Column::Rate) > 1 || has(Column::Delay) > 1 {
        return Err(format!(
            "line {number}: neither a whole number of milliseconds (mahimahi's format) nor the \
                heading of a table (CSV) with one `time_s` or `time_ms`, and one of `rate_bps`, \
                `rate_kbps`, `rate_mbps` or one of `delay_s`, `delay_ms`"
        ));
    }
    let mut trace = Trace::default();
    let mut before = None;
    for (number, line) in lines {
        let cells: Vec<&str> = line.split(',').collect();
        if cells.len() != columns.len() {
            return Err(format!(
                "line {number}: {} values for {} columns",
                cells.len(),
                columns.len()
            ));
        }
        let value = |wanted: Column| -> Result<Option<u64>, String> {
            let mut cells = columns.iter().zip(&cells);
            let Some((unit, cell)) = cells.find_map(|(column, cell)| {
                column.filter(|(column, _)| *column == wanted).map(|(_, unit)| (unit, cell.trim()))
            }) else {
                return Ok(None);
            };
            let number_of = cell.trim_matches('"').parse::<f64>().ok();
            let value = number_of.map(|n| (n * unit).round());
            match value.filter(|v| (0.0..1e18).contains(v)) {
                Some(value) => Ok(Some(value as u64)),
                None => Err(format!("line {number}: `{cell}` is not a number from 0 on")),
            }
        };
        let at = value(Column::Time)?.unwrap_or(0);
        if before.is_some_and(|before| at <= before) {
            return Err(format!("line {number}: this time is not after that of the line above"));
        }
        before = Some(at);
        if let Some(rate) = value(Column::Rate)? {
            if rate == 0 {
                return Err(format!(
                    "line {number}: a rate of zero; for a time in which nothing arrives, use \
                        `blackout`"
                ));
            }
            if !(MIN_RATE_BPS..=MAX_RATE_BPS).contains(&rate) {
                return Err(format!("line {number}: {rate} bit/s is not from 8 bit/s to 8 Tbit/s"));
            }
            trace.rates.push((at, rate));
        }
        let delay = value(Column::Delay)?;
        if at.max(delay.unwrap_or(0)) > MAX_TIME {
            return Err(format!("line {number}: more than three years"));
        }
        trace.delays.extend(delay.map(|delay| (at, delay)));
        if trace.rates.len().max(trace.delays.len()) > MOST_STEPS {
            return Err(format!("line {number}: more than {MOST_STEPS} steps"));
        }
    }
    if before.is_none() { Err("it has a heading and nothing below it".into()) } else { Ok(trace) }
}

/// A list of rates as TOML, on one line.
pub(crate) fn rates_toml(rates: &[(Nanos, u64)]) -> String {
    list(rates, |rate| format!("{rate}bit"))
}

/// A list of delays as TOML, on one line.
pub(crate) fn delays_toml(delays: &[(Nanos, Nanos)]) -> String {
    list(delays, time)
}

fn list(steps: &[(Nanos, u64)], value: impl Fn(u64) -> String) -> String {
    let mut out = String::from("[");
    for (i, &(at, of)) in steps.iter().enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        let _ = write!(out, "{comma}[\"{}\", \"{}\"]", time(at), value(of));
    }
    out + "]"
}

/// The shortest text that means this time.
fn time(nanos: Nanos) -> String {
    for (unit, length) in [("s", NANOS_PER_SEC), ("ms", NANOS_PER_MILLI), ("us", 1000)] {
        if nanos.is_multiple_of(length) {
            return format!("{}{unit}", nanos / length);
        }
    }
    format!("{nanos}ns")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use xcp_model::steps::Steps;

    const SECOND: Nanos = NANOS_PER_SEC;

    fn rates(text: &str, duration: Nanos) -> List {
        read(text, duration).unwrap().rates
    }

    #[test]
    fn a_line_of_mahimahis_is_a_packet_and_the_file_begins_anew() {
        // Two packets in the first 2 ms, one in the next 4: 12 and 3 Mbit/s.
        assert_eq!(
            rates("2\n2\n6\n", 13_000_000),
            [
                (0, 12_000_000),
                (2_000_000, 3_000_000),
                (6_000_000, 12_000_000),
                (8_000_000, 3_000_000),
                (12_000_000, 12_000_000)
            ]
        );
        assert_eq!(rates("1\n2\n3\n", SECOND), [(0, 12_000_000)], "a constant rate is one step");
        assert_eq!(rates("0\n1\n", SECOND), [(0, 24_000_000)]);
    }

    #[test]
    fn a_table_has_rates_delays_or_both() {
        let text = "\u{feff}time_s, Rate_Mbps ,who,delay_ms\r\n# a remark\r\n0,1.5,me,20\r\n\
            2.5,0.001,you,\"7.25\"\r\n";
        let trace = read(text, SECOND).unwrap();
        assert_eq!(trace.rates, [(0, 1_500_000), (5 * SECOND / 2, 1_000)]);
        assert_eq!(trace.delays, [(0, 20_000_000), (5 * SECOND / 2, 7_250_000)]);
        assert_eq!(rates_toml(&trace.rates), r#"[["0s", "1500000bit"], ["2500ms", "1000bit"]]"#);
        assert_eq!(delays_toml(&trace.delays), r#"[["0s", "20ms"], ["2500ms", "7250us"]]"#);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, what) in [
            ("", "it is empty"),
            ("\n\n# only a remark\n", "it is empty"),
            ("5\n3\n", "line 2: 3 ms is before the line above"),
            ("5\n\nx\n", "line 3: `x` is not a whole number"),
            ("when,how much\n1,2\n", "line 1: neither"),
            ("time_s,time_ms,rate_bps\n", "line 1: neither"),
            ("time_s,rate_bps\n", "it has a heading and nothing below it"),
            ("time_s,rate_bps\n1,20\n1,30\n", "line 3: this time is not after"),
            ("time_s,rate_bps\n1\n", "line 2: 1 values for 2 columns"),
            ("time_s,rate_bps\n1,0\n", "line 2: a rate of zero"),
            ("time_s,delay_ms\n-1,0\n", "line 2: `-1` is not a number"),
            ("time_s,delay_ms\n1,inf\n", "line 2: `inf` is not a number"),
        ] {
            let told = read(text, SECOND).unwrap_err();
            assert!(told.starts_with(what), "{text:?}: {told}");
        }
    }

    proptest! {
        /// With always something to send, every packet has been sent when the file says.
        #[test]
        fn packets_are_sent_when_the_file_says(gaps in prop::collection::vec(0u64..50, 1..100)) {
            let mut at = 1;
            let times: Vec<u64> = gaps.iter().map(|gap| { at += gap; at }).collect();
            let text: String = times.iter().map(|t| format!("{t}\n")).collect();
            let list = rates(&text, 2 * at * NANOS_PER_MILLI);
            let steps = Steps::new(list[0].1, &list[1..]);
            for round in 0..2 {
                for (i, t) in times.iter().enumerate() {
                    if times.get(i + 1) == Some(t) {
                        continue;
                    }
                    let packets = (round * times.len() + i + 1) as f64;
                    let sent = steps.capacity_bytes(0, (round as u64 * at + t) * NANOS_PER_MILLI) / 1500.0;
                    // Rates are whole bits a second.
                    prop_assert!((sent - packets).abs() < 1e-3, "{sent} instead of {packets}");
                }
            }
        }

        #[test]
        fn nothing_makes_it_panic(text in "(?s)[0-9,.\\-_a-z\\PC\n\r]{0,200}", duration in any::<u64>()) {
            let _ = read(&text, duration % (10 * SECOND));
        }
    }
}
