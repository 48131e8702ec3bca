//! What a file of options has to do with what is told of them: what it gave is found wrong later,
//! by clap or by whoever reads the value, neither of which knows of the file.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::failure::Failure;

/// What a file gave, so that what is wrong with it is told of the file: names of options, and the
/// file and the line where each stands.
#[derive(Debug, Default)]
pub struct Given(Vec<(String, String)>);

impl Given {
    /// That these options are from a file as a whole.
    #[cfg(target_os = "linux")]
    pub fn by(file: &std::path::Path, names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().map(|name| (name, file.display().to_string())).collect())
    }

    /// That an option stands at a place, FILE:LINE.
    #[cfg(target_os = "linux")]
    pub fn add(&mut self, name: String, place: String) {
        self.0.push((name, place));
    }

    fn place(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, place)| place.as_str())
    }

    /// The failure, told of the file if it begins with the name of an option from there.
    pub fn told(&self, failure: Failure) -> Failure {
        let text = failure.to_string();
        let name = text.split_once(": ").map_or("", |(name, _)| name.trim_start_matches('-'));
        match self.place(name) {
            Some(place) => Failure::with_status(format!("{place}: {text}"), failure.status),
            None => failure,
        }
    }

    /// What clap has against the value of an option from the file.
    pub fn refused(&self, error: &clap::Error) -> Option<Failure> {
        let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg) else {
            return None;
        };
        let name = argument.strip_prefix("--")?.split(' ').next()?;
        let place = self.place(name)?;
        let value = match error.get(ContextKind::InvalidValue) {
            Some(ContextValue::String(value)) => value,
            _ => "",
        };
        let why = match (error.kind(), error.get(ContextKind::ValidValue)) {
            (ErrorKind::InvalidValue, Some(ContextValue::Strings(words))) => {
                format!("write {}", one_of(words.iter().map(String::as_str)))
            }
            (ErrorKind::ValueValidation, _) => std::error::Error::source(error)?.to_string(),
            _ => return None,
        };
        Some(Failure::new(format!("{place}: {name}: \"{value}\" is not possible here; {why}")))
    }
}

/// `"a", "b" or "c"`.
pub fn one_of<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    match &words[..] {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        all => all.concat(),
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_found_later_is_told_of_the_file() {
        let from = super::Given::by(std::path::Path::new("x.toml"), ["capacity".to_owned()]);
        let told = |text: &str| from.told(super::Failure::new(text)).to_string();
        assert_eq!(told("capacity: 10 lacks a unit"), "x.toml: capacity: 10 lacks a unit");
        assert_eq!(told("limit: 0 is none"), "limit: 0 is none");
    }
}
