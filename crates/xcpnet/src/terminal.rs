//! What a person's terminal may be told. Titles, descriptions, names and paths come from files that
//! others wrote, and a terminal obeys what is in them: it can be made to clear the screen, to
//! change its title, to show lines that were never printed. So everything that the program prints
//! goes through here, standard output ([`crate::output::Printer`]) and stderr ([`tell`]) alike,
//! whether or not a terminal is at the other end now.
//!
//! Control characters (C0 but newline and tab, DEL, C1) and those that reverse the order of the
//! text (U+202A to U+202E, U+2066 to U+2069) are written as JSON writes them, `\u001b`: so that one
//! can see what is there, and what is JSON stays the same JSON. Our own colours do not come this
//! way: the only thing that draws is the progress bar, which shows numbers.

use std::borrow::Cow;
use std::io::{self, Write};

/// Whether a terminal might act on it, or show what follows in another order than it stands.
fn acts(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        || c.is_control() && c != '\n' && c != '\t'
}

/// A text that a terminal only shows.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if acts(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out.into()
}

/// A line on stderr. A closed stderr is nobody to tell.
pub fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{}", plain(text));
}

/// A writer of UTF-8 text that lets through what [`plain`] makes of it. Characters may come in
/// pieces.
pub struct Plain<W: Write> {
    out: W,
    /// The beginning of a character.
    held: Vec<u8>,
}

impl<W: Write> Plain<W> {
    /// In front of a writer.
    pub fn new(out: W) -> Self {
        Self { out, held: Vec::new() }
    }
}

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let joined;
        let all = if self.held.is_empty() {
            bytes
        } else {
            joined = [&self.held, bytes].concat();
            &joined[..]
        };
        let (text, rest) = match std::str::from_utf8(all) {
            Ok(text) => (text.into(), &[][..]),
            Err(e) if e.error_len().is_none() => {
                let (text, rest) = all.split_at(e.valid_up_to());
                (String::from_utf8_lossy(text), rest)
            }
            Err(_) => (String::from_utf8_lossy(all), &[][..]),
        };
        self.out.write_all(plain(&text).as_bytes())?;
        self.held = rest.to_vec();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_acts_is_shown_instead() {
        for (text, shown) in [
            ("plain, ümlaut, 漢字, tab\there,\nnext", "plain, ümlaut, 漢字, tab\there,\nnext"),
            ("\u{1b}]0;owned\u{7}\u{1b}[2J", "\\u001b]0;owned\\u0007\\u001b[2J"),
            ("over\rwritten\u{8}\u{7f}", "over\\u000dwritten\\u0008\\u007f"),
            ("\u{9b}2J and \u{85}", "\\u009b2J and \\u0085"),
            ("\u{202e}txt.exe\u{2066}\u{2069}", "\\u202etxt.exe\\u2066\\u2069"),
        ] {
            assert_eq!(plain(text), shown);
        }
    }

    proptest! {
        /// However a text is cut up.
        #[test]
        fn pieces_are_as_the_whole(text in "(\\PC|[\u{0}-\u{a0}]|[\u{2020}-\u{2070}]){0,20}", cuts in prop::collection::vec(0..100usize, 0..6)) {
            let mut out = Plain::new(Vec::new());
            let mut rest = text.as_bytes();
            for cut in cuts {
                let (first, last) = rest.split_at(cut.min(rest.len()));
                out.write_all(first).unwrap();
                rest = last;
            }
            out.write_all(rest).unwrap();
            prop_assert_eq!(std::str::from_utf8(&out.out).unwrap(), plain(&text));
            prop_assert!(!plain(&text).contains(acts));
        }
    }
}
