//! What goes first on the long link, up to a bound (`bpf/router_urgent.h`): how it is written, and
//! how a connection has the mark of its client on both of its legs.

use xcp_linux::urgent::Urgent;

/// Differentiated services code points by name: RFC 2474, 2597, 3246, 5865, 8622. The first and
/// the last are what everybody has who asks for nothing.
const NAMES: [(&str, u8); 24] = [
    ("df", 0),
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("va", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
    ("cs0", 0),
];
/// The bound, in hundredths of the rate: something is left for the rest.
const SHARES: std::ops::RangeInclusive<u16> = 1..=90;

/// What a text says, like `ef:10%` or `ef,cs5,34:20%`.
///
/// # Errors
/// Why it says nothing.
pub fn read(text: &str) -> Result<Urgent, String> {
    let wrong = |why: String| format!("\"{text}\": {why}; write it like ef:10% or ef,cs5:20%");
    let (names, share) =
        text.split_once(':').ok_or_else(|| wrong("it does not give a limit".into()))?;
    let percent = share.trim().strip_suffix('%').and_then(|number| number.parse::<u16>().ok());
    let percent = percent.filter(|percent| SHARES.contains(percent)).ok_or_else(|| {
        let [least, most] = [SHARES.start(), SHARES.end()];
        wrong(format!(
            "the limit is a share of the rate in whole percent, from {least}% to {most}%"
        ))
    })?;
    let mut codes = 0;
    for name in names.split(',').map(str::trim) {
        let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let code = known.map(|(_, code)| *code).or_else(|| name.parse().ok().filter(|n| *n < 64));
        match code {
            Some(0) => {
                return Err(wrong(format!(
                    "{name} is the value of packets that nobody has marked"
                )));
            }
            Some(code) => codes |= 1 << code,
            None => {
                return Err(wrong(format!(
                    "{name} is not a DSCP; use one of {}, or a number from 1 to 63",
                    NAMES[1..NAMES.len() - 1]
                        .iter()
                        .map(|(name, _)| *name)
                        .collect::<Vec<_>>()
                        .join(", ")
                )));
            }
        }
    }
    Ok(Urgent { codes, share: percent * 10 })
}

/// As it is read again.
#[must_use]
pub fn write(urgent: Urgent) -> String {
    let name = |code: u8| {
        let known = NAMES.iter().find(|(_, known)| *known == code);
        known.map_or_else(|| code.to_string(), |(name, _)| (*name).to_owned())
    };
    let names: Vec<String> = (0..64).filter(|code| urgent.has(*code)).map(name).collect();
    format!("{}:{}%", names.join(","), urgent.share / 10)
}

/// A connection's mark where its client's is urgent; else 0, as the kernel has it.
#[must_use]
pub fn mark(urgent: Option<Urgent>, dscp: u8) -> u8 {
    if urgent.is_some_and(|urgent| urgent.has(dscp)) { dscp } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_urgent_is_read_and_written() {
        let is = |text: &str, codes: &[u8], share| {
            let expected = Urgent { codes: codes.iter().map(|code| 1 << code).sum(), share };
            assert_eq!(read(text), Ok(expected), "{text}");
            assert_eq!(read(&write(expected)), Ok(expected), "{text}");
        };
        is("ef:10%", &[46], 100);
        is(" EF, cs5,7:90% ", &[46, 40, 7], 900);
        is("af41:1%", &[34], 10);
        assert_eq!(write(read("46,40:20%").unwrap()), "cs5,ef:20%");
        for (text, said) in [
            ("ef", "limit"),
            ("ef:", "percent"),
            ("ef:0%", "percent"),
            ("ef:91%", "percent"),
            ("ef:10", "percent"),
            ("ef:x%", "percent"),
            (":10%", "not a DSCP"),
            ("ef,:10%", "not a DSCP"),
            ("64:10%", "not a DSCP"),
            ("voice:10%", "af43"),
            ("cs0:10%", "nobody has marked"),
            ("0:10%", "nobody has marked"),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(said), "{text}: {why}");
        }
        let urgent = read("ef:10%").ok();
        assert_eq!([mark(urgent, 46), mark(urgent, 40), mark(None, 46)], [46, 0, 0]);
    }
}
