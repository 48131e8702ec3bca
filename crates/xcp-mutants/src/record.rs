//! What came of each mutant on each figure, kept in a file, so that the table can be made in parts.
//!
//! A line `figure NAME CLAIMS DIGEST`, then one for each mutant that was run with it: its name, its
//! digest, and the numbers of the claims that noticed, counted from 0 in the figure's order. What
//! was measured of a file or a mutant that has changed since does not count.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use xcp_engine::mutants::{MUTANTS, Mutant};

use crate::digest::{digest, of_settings};
use crate::figures::Figure;
use crate::files::replace;

const HEADING: &str = "# What each mutant came to on each figure: written and read by \
    xcp-mutants (docs/reproduce.md).\n";

/// The claims of a figure that noticed, for each of [`MUTANTS`]; `None` where it was not run.
pub type Noticed = Vec<Option<Vec<usize>>>;

/// What is known of all figures, in their order.
#[derive(Debug)]
pub struct Record {
    file: Option<PathBuf>,
    /// For each figure.
    pub figures: Vec<Noticed>,
    /// The lines of figures that are not there this time.
    others: BTreeMap<String, String>,
}

/// A digest of what it changes.
pub fn of_mutant(mutant: &Mutant) -> String {
    digest(mutant.edits.iter().flat_map(|e| [e.file, e.right, e.wrong]))
}

impl Record {
    /// Nothing is known.
    pub fn new(figures: &[Figure]) -> Self {
        let none = vec![vec![None; MUTANTS.len()]; figures.len()];
        Self { file: None, figures: none, others: BTreeMap::new() }
    }

    /// What the file says of these figures. Nothing, if there is none yet.
    pub fn read(file: &Path, figures: &[Figure]) -> Result<Self, String> {
        let mut record = Self { file: Some(file.into()), ..Self::new(figures) };
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(record),
            Err(e) => return Err(format!("{}: {e}", file.display())),
        };
        let mut known: Option<usize> = None;
        let mut other: Option<String> = None;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let wrong = || format!("{}:{}: {line:?} is no line of it", file.display(), number + 1);
            if let ["figure", name, claims, sum] = words[..] {
                let at = figures.iter().position(|f| f.full_name() == name);
                other = at.is_none().then(|| name.to_owned());
                known = at.filter(|&at| {
                    let figure = &figures[at];
                    of_settings(&figure.text) == sum && figure.claims().len().to_string() == claims
                });
            } else {
                let [name, sum, ref numbers @ ..] = words[..] else { return Err(wrong()) };
                let numbers = numbers.iter().map(|n| n.parse().ok()).collect::<Option<Vec<_>>>();
                let numbers: Vec<usize> = numbers.ok_or_else(wrong)?;
                let mutant = MUTANTS.iter().position(|m| m.name == name && of_mutant(m) == sum);
                if let (Some(figure), Some(mutant)) = (known, mutant) {
                    if numbers.iter().any(|&n| n >= figures[figure].claims().len()) {
                        return Err(wrong());
                    }
                    record.figures[figure][mutant] = Some(numbers);
                }
            }
            if let Some(name) = &other {
                let lines = record.others.entry(name.clone()).or_default();
                lines.push_str(line);
                lines.push('\n');
            }
        }
        Ok(record)
    }

    /// Takes note of a figure's claims that noticed a mutant, and writes the file anew.
    pub fn note(
        &mut self,
        figures: &[Figure],
        figure: usize,
        mutant: usize,
        claims: Vec<usize>,
    ) -> Result<(), String> {
        self.figures[figure][mutant] = Some(claims);
        let Some(file) = &self.file else { return Ok(()) };
        replace(file, &self.text(figures))
    }

    fn text(&self, figures: &[Figure]) -> String {
        let mut all = self.others.clone();
        for (figure, noticed) in figures.iter().zip(&self.figures) {
            if noticed.iter().all(Option::is_none) {
                continue;
            }
            let (name, claims) = (figure.full_name(), figure.claims().len());
            let mut lines = format!("figure {name} {claims} {}\n", of_settings(&figure.text));
            for (mutant, numbers) in MUTANTS.iter().zip(noticed) {
                let Some(numbers) = numbers else { continue };
                let _ = write!(lines, "{} {}", mutant.name, of_mutant(mutant));
                for number in numbers {
                    let _ = write!(lines, " {number}");
                }
                lines.push('\n');
            }
            all.insert(name, lines);
        }
        all.into_values().fold(HEADING.to_owned(), |text, lines| text + &lines)
    }
}
