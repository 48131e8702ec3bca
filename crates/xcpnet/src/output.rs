//! Standard output, and the files of `--out`.

use std::io::{self, StdoutLock, Write as _};

use xcp_model::Scenario;
use xcp_model::Verdict;
use xcp_model::run::Run;
use xcp_report::csv::{self, Kind};
use xcp_report::files::{Staged, WriteError, reason};
use xcp_report::parquet::Said;
use xcp_report::{Report, Source, html, json, references};

use crate::failure::Failure;
use crate::terminal::Plain;

/// Standard output that bears being closed by its reader (`| head`): what comes after is dropped,
/// the program goes on.
pub struct Printer {
    closed: bool,
}

impl Printer {
    /// An open one.
    pub fn new() -> Self {
        Self { closed: false }
    }

    /// Prints text, without what a terminal would act on ([`crate::terminal`]).
    pub fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.with(|out| out.write_all(text.as_bytes()))
    }

    /// Prints what a function writes, for what is too long to be held as a whole.
    pub fn with(
        &mut self,
        write: impl FnOnce(&mut Plain<StdoutLock<'static>>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if self.closed {
            return Ok(());
        }
        let mut out = Plain::new(io::stdout().lock());
        match write(&mut out).and_then(|()| out.flush()) {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(())
            }
            Err(e) => Err(Failure::new(format!("cannot write to standard output: {}", reason(&e)))),
            Ok(()) => Ok(()),
        }
    }

    /// Whether the reader has gone.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Prints a line.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        self.text(&format!("{text}\n"))
    }
}

/// Characters to a line: the terminal's, or without bound in a pipe or file.
pub fn width() -> usize {
    let terminal = console::Term::stdout();
    if terminal.is_term() {
        terminal.size_checked().map_or(80, |(_, columns)| usize::from(columns))
    } else {
        usize::MAX
    }
}

/// A word, quoted for a shell if it has to be.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The command as it was typed, quoted for a shell.
pub fn command() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("xcpnet".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// What goes into one directory.
pub struct Content<'a> {
    /// The runs.
    pub runs: &'a [Run],
    /// Their scenarios.
    pub scenarios: &'a [Scenario],
    /// What was set beside the files.
    pub settings: &'a [(String, String)],
    /// Their files.
    pub sources: &'a [Source],
    /// For each run, the file it came from.
    pub origins: &'a [usize],
    /// For each run, what came of its expectations.
    pub verdicts: &'a [Vec<Verdict>],
    /// Whether the numbers are written, too: summary.json, and the series as CSV.
    pub numbers: bool,
    /// Whether they are written as Parquet, too.
    pub parquet: bool,
    /// For each file the address of a page in which it can be changed and run; empty if there are
    /// none.
    pub playgrounds: &'a [String],
}

impl Content<'_> {
    /// Writes report.html, the scenarios, and if wanted summary.json and the series under `prefix`
    /// (empty, or ending in a slash).
    pub fn stage(&self, staged: &mut Staged, prefix: &str) -> Result<(), WriteError> {
        let command = command();
        let references = references(self.scenarios);
        let report = Report {
            runs: self.runs,
            scenarios: self.scenarios,
            sources: self.sources,
            verdicts: self.verdicts,
            references: &references,
            command: &command,
            playgrounds: self.playgrounds,
            version: env!("CARGO_PKG_VERSION"),
        };
        staged.write(format!("{prefix}report.html"), html(&report).as_bytes())?;
        if self.numbers {
            staged
                .write_with(format!("{prefix}summary.json"), |file| json::write(self.runs, file))?;
        }
        for (number, (run, name)) in
            self.runs.iter().zip(self.names()).enumerate().filter(|_| self.numbers)
        {
            for kind in [Kind::Links, Kind::Flows] {
                let table = kind.name();
                staged.write_with(format!("{prefix}{name}.{table}.csv"), |file| {
                    csv::write(run, kind, file)
                })?;
                if self.parquet {
                    let path = format!("{prefix}{name}.{table}.parquet");
                    let metadata = self.metadata(number);
                    staged.write_with(path, |file| {
                        xcp_report::parquet::write(run, kind, &metadata, file)
                    })?;
                }
            }
        }
        for (source, file) in self.sources.iter().zip(copies(self.sources)) {
            staged.write(format!("{prefix}{file}"), source.text.as_bytes())?;
        }
        Ok(())
    }

    /// What a Parquet file of a run says of itself.
    fn metadata(&self, run: usize) -> Vec<Said> {
        let settings =
            self.settings.iter().map(|(path, value)| (path.clone(), value.as_str().into()));
        vec![
            ("xcpnet.program", format!("xcpnet {}", env!("CARGO_PKG_VERSION"))),
            ("xcpnet.scenario", self.sources[self.origins[run]].text.clone()),
            ("xcpnet.settings", serde_json::Value::Object(settings.collect()).to_string()),
            ("xcpnet.variant", self.runs[run].variant.clone()),
            ("xcpnet.seed", self.runs[run].summary.seed.to_string()),
        ]
    }

    /// File names of the runs: the variant, else the scenario file; with the file before it where
    /// several files have the variant.
    fn names(&self) -> Vec<String> {
        let stem = |run: usize| {
            let name = &self.sources[self.origins[run]].name;
            let file = name.rsplit('/').next().unwrap_or(name);
            slug(file.strip_suffix(".toml").unwrap_or(file))
        };
        let short: Vec<String> = self
            .runs
            .iter()
            .enumerate()
            .map(|(i, r)| if r.variant.is_empty() { stem(i) } else { slug(&r.variant) })
            .collect();
        let mut names: Vec<String> = Vec::new();
        for (i, name) in short.iter().enumerate() {
            let unique = short.iter().filter(|n| *n == name).count() == 1;
            let base = if unique { name.clone() } else { format!("{}-{name}", stem(i)) };
            let mut chosen = base.clone();
            let mut n = 2;
            while names.contains(&chosen) {
                chosen = format!("{base}-{n}");
                n += 1;
            }
            names.push(chosen);
        }
        names
    }
}

/// Names for copies of the files. Those of one name from different directories are told apart by
/// their number, and by a higher one where a file is called that already.
fn copies(sources: &[Source]) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for (number, source) in (1..).zip(sources) {
        let file = source.name.rsplit('/').next().unwrap_or(&source.name);
        let numbered = (number..).map(|n| format!("{n}-{file}"));
        let free = std::iter::once(file.to_owned()).chain(numbered).find(|n| !taken.contains(n));
        taken.extend(free);
    }
    taken
}

/// A name fit for files everywhere: letters, digits, `-` and `_`; never empty, never with a dot in
/// front.
fn slug(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_alphanumeric() || c == '_' || c == '.' && !out.is_empty() {
            out.push(c);
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
    }
    let out = out.trim_end_matches(['-', '.']);
    if out.is_empty() { "run".to_owned() } else { out.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_files_have_names_of_their_own() {
        let named = |names: &[&str]| {
            let source = |name: &&str| Source { name: (*name).into(), text: String::new() };
            copies(&names.iter().map(source).collect::<Vec<_>>())
        };
        assert_eq!(named(&["a/x.toml", "b/x.toml"]), ["x.toml", "2-x.toml"]);
        assert_eq!(named(&["x", "b/x", "c/2-x"]), ["x", "2-x", "3-2-x"]);
        assert_eq!(named(&["x", "3-x", "b/x"]), ["x", "3-x", "4-x"]);
    }

    #[test]
    fn slugs_are_fit_for_files() {
        for (name, expected) in [
            ("TCP, drop-tail", "TCP-drop-tail"),
            ("../etc", "etc"),
            ("  ", "run"),
            ("n=4", "n-4"),
            ("1.5 s", "1.5-s"),
            ("é/ü", "é-ü"),
        ] {
            assert_eq!(slug(name), expected);
        }
    }
}
