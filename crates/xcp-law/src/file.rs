//! A file that a person names, as text. Errors say what is wrong with it and what would be right.

use std::io;
use std::path::Path;

use crate::quantity::Complaint;

/// The content of a file; `kind` is what it should be, as in "not a scenario file".
///
/// # Errors
/// It cannot be read, is a directory, or is not UTF-8.
pub fn read(path: &Path, kind: &str) -> Result<String, Complaint> {
    let wrong = |what: String, help: String| Complaint { what, help };
    if path.is_dir() {
        return Err(wrong(
            format!("this is a directory, not a {kind}"),
            "name a .toml file in it".into(),
        ));
    }
    let bytes = std::fs::read(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => {
            wrong("there is no such file".into(), format!("check the path; {kind}s end in .toml"))
        }
        _ => wrong(format!("the file cannot be read: {e}"), "check its permissions".into()),
    })?;
    String::from_utf8(bytes).map_err(|e| {
        let before = &e.as_bytes()[..e.utf8_error().valid_up_to()];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        wrong(format!("line {line} is not UTF-8 text"), "save the file as UTF-8".into())
    })
}
