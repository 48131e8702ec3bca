//! Values below 0. To clap, `-5s` is an unknown option, and its advice is to write `-- -5s`. What
//! it means is known to whoever reads the value, and says why there can be none.

use std::ffi::{OsStr, OsString};

/// Whether a word is a number below 0, with or without a unit. No option is called so.
pub fn is_negative(word: &OsStr) -> bool {
    let digit = |b: &u8| b.is_ascii_digit();
    match word.as_encoded_bytes() {
        [b'-', b'.', first, ..] | [b'-', first, ..] => digit(first),
        _ => false,
    }
}

/// A command line in which a number below 0 is the value of the option before it: `--at=-5s`.
pub fn with_negative_values(line: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::new();
    for word in line {
        let takes = |option: &OsString| {
            let bytes = option.as_encoded_bytes();
            bytes.len() > 1 && bytes[0] == b'-' && !bytes.contains(&b'=') && option != "--"
        };
        match out.last_mut().filter(|last| takes(last) && is_negative(&word)) {
            Some(option) => {
                option.push("=");
                option.push(word);
            }
            None => out.push(word),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_below_zero_belongs_to_the_option_before_it() {
        for (line, joined) in [
            ("theory x.toml --at -5s --json", "theory x.toml --at=-5s --json"),
            ("run x.toml --seed -1 -j -2", "run x.toml --seed=-1 -j=-2"),
            ("pep up --rate -.5mbit", "pep up --rate=-.5mbit"),
            ("router add dev a overhead -4", "router add dev a overhead -4"),
            ("run --out -x --set=a=-1 -2 -- -3", "run --out -x --set=a=-1 -2 -- -3"),
        ] {
            let words = with_negative_values(line.split(' ').map(OsString::from));
            assert_eq!(words.join(OsStr::new(" ")), joined);
        }
    }
}
