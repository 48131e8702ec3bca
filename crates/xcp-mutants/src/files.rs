//! What is written: records, whole or not at all, and the tables of a page.

use std::path::Path;
use std::{fs, io};

/// Writes a file anew, whole or not at all: the program may be ended at any time.
pub fn replace(file: &Path, text: &str) -> Result<(), String> {
    let fail = |e: io::Error| format!("{}: {e}", file.display());
    let part = file.with_extension("part");
    fs::write(&part, text).map_err(fail)?;
    fs::rename(&part, file).map_err(fail)
}

/// Puts tables between the page's marks.
pub fn insert(page: &Path, tables: &[([&str; 2], &str)]) -> Result<(), String> {
    let fail = |e: io::Error| format!("{}: {e}", page.display());
    let mut text = fs::read_to_string(page).map_err(fail)?;
    for ([begin, end], table) in tables {
        let lacks = || format!("{} lacks the marks {begin} and {end}", page.display());
        let (before, rest) = text.split_once(begin).ok_or_else(lacks)?;
        let (_, after) = rest.split_once(end).ok_or_else(lacks)?;
        text = format!("{before}{begin}\n{table}{end}{after}");
    }
    fs::write(page, text).map_err(fail)
}
