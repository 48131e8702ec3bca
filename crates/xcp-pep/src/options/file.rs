//! A file of options, as `--config` names it: TOML, whose keys are the names that the options have
//! on the command line. What is wrong is told with file and line.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toml::{Spanned, Value};
use xcp_law::text::suggest;
use xcp_linux::{Error, Result};

/// What a file says of an option.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Name of the option.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// File and line, `pep.toml:3`.
    pub place: String,
}

/// What a file says, in its order.
///
/// # Errors
/// It cannot be read, or is not TOML.
pub fn entries(path: &Path) -> Result<Vec<Entry>> {
    let text = xcp_law::file::read(path, "configuration file").map_err(|wrong| {
        Error::new(format!("{}: {}", path.display(), wrong.what)).remedy(wrong.help)
    })?;
    let place = |at: usize| {
        let line =
            text.as_bytes()[..at.min(text.len())].iter().filter(|b| **b == b'\n').count() + 1;
        format!("{}:{line}", path.display())
    };
    let table: BTreeMap<Spanned<String>, Spanned<Value>> = toml::from_str(&text).map_err(|e| {
        let place = e.span().map_or_else(|| path.display().to_string(), |span| place(span.start));
        Error::new(format!("{place}: {}", e.message().replace('\n', ", ")))
            .remedy("write each option once, as in TOML: NAME = \"VALUE\"")
    })?;
    let mut found: Vec<_> = table.into_iter().collect();
    found.sort_by_key(|(key, _)| key.span().start);
    let entry = |(key, value): (Spanned<String>, Spanned<Value>)| {
        let place = place(key.span().start);
        Entry { key: key.into_inner(), value: value.into_inner(), place }
    };
    Ok(found.into_iter().map(entry).collect())
}

impl Entry {
    /// An error of its value.
    #[must_use]
    pub fn wrong(&self, why: impl Display) -> Error {
        Error::new(format!("{}: `{}`: {why}", self.place, self.key))
    }

    /// The error that there is no such option among those `known`.
    #[must_use]
    pub fn unknown<'a>(&self, known: impl IntoIterator<Item = &'a str> + Clone) -> Error {
        Error::new(format!("{}: there is no option `{}`", self.place, self.key))
            .remedy(suggest(&self.key, known, "options"))
    }

    pub(super) fn read<T: FromFile>(&self) -> Result<T> {
        T::of(&self.value).ok_or_else(|| self.wrong(format_args!("write {}", T::shape())))
    }
}

/// An option that a file can give.
pub(super) trait FromFile: Sized {
    /// The option with this value, if it can have it.
    fn of(value: &Value) -> Option<Self>;
    /// What is to be written.
    fn shape() -> String;
}

/// One value of an option.
trait One: Sized {
    const SHAPE: &'static str;
    fn one(value: &Value) -> Option<Self>;
}

impl<T: One> FromFile for Option<T> {
    fn of(value: &Value) -> Option<Self> {
        T::one(value).map(Some)
    }

    fn shape() -> String {
        T::SHAPE.to_owned()
    }
}

/// A list of one may be written without its brackets.
impl<T: One> FromFile for Vec<T> {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Array(values) => values.iter().map(T::one).collect(),
            one => T::one(one).map(|one| vec![one]),
        }
    }

    fn shape() -> String {
        format!("{}, or several of them in brackets", T::SHAPE)
    }
}

impl One for String {
    const SHAPE: &'static str = "it in quotes";
    fn one(value: &Value) -> Option<Self> {
        value.as_str().map(ToOwned::to_owned)
    }
}

impl One for PathBuf {
    const SHAPE: &'static str = "the path of a file in quotes";
    fn one(value: &Value) -> Option<Self> {
        value.as_str().map(Self::from)
    }
}

impl One for SocketAddr {
    const SHAPE: &'static str = "an IP address and a port in quotes, like \"127.0.0.1:1080\"";
    fn one(value: &Value) -> Option<Self> {
        value.as_str()?.parse().ok()
    }
}

impl One for bool {
    const SHAPE: &'static str = "true or false";
    fn one(value: &Value) -> Option<Self> {
        value.as_bool()
    }
}

impl One for usize {
    const SHAPE: &'static str = "a whole number, 0 or more";
    fn one(value: &Value) -> Option<Self> {
        value.as_integer()?.try_into().ok()
    }
}

impl One for u32 {
    const SHAPE: &'static str = "a whole number from 0 to 4294967295";
    fn one(value: &Value) -> Option<Self> {
        value.as_integer()?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Options;
    use super::*;

    fn load(content: &[u8]) -> std::result::Result<Options, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pep.toml");
        std::fs::write(&path, content).unwrap();
        let place = format!("{}/", directory.path().display());
        Options::load(&path).map_err(|e| e.to_string().replace(&place, ""))
    }

    #[test]
    fn a_list_of_one_needs_no_brackets() {
        let options = load(b"lan = \"eth0\"\nexclude = [\"port 22\", \"10.0.0.0/8\"]\n").unwrap();
        assert_eq!((options.lan.len(), options.exclude.len()), (1, 2));
    }

    #[test]
    fn what_is_wrong_is_told_with_file_line_and_remedy() {
        for (content, told) in [
            (&b"# rates\nrate = 1\n"[..], "pep.toml:2: `rate`: write it in quotes"),
            (b"\n\nworkers = -3", "pep.toml:3: `workers`: write a whole number, 0 or more"),
            (b"confirm = 1", "pep.toml:1: `confirm`: write true or false"),
            (b"lan = 7", "pep.toml:1: `lan`: write it in quotes, or several of them in brackets"),
            (b"metrics = \"x\"", "pep.toml:1: `metrics`: write an IP address and a port"),
            (b"ratte = \"1mbit\"", "pep.toml:1: there is no option `ratte`; did you mean `rate`?"),
            (b"wan = \"a\"\nrate =\n", "pep.toml:2: "),
            (b"wan = \"a\"\n\xff", "pep.toml: line 2 is not UTF-8 text; save the file as UTF-8"),
        ] {
            let error = load(content).unwrap_err();
            assert!(error.starts_with(told), "{error}");
        }
        let error = |path: &str| entries(Path::new(path)).unwrap_err().to_string();
        assert!(error("/none/x").starts_with("/none/x: there is no such file; check the path"));
        assert!(error("/").starts_with("/: this is a directory, not a configuration file; name"));
    }
}
