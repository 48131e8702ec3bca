//! What is wrong with a scenario, for a person: file, line, the words themselves, what is wrong,
//! what would be right. Rendering only; finding the faults is the business of the modules that
//! read.

use std::fmt;

/// Where in which text something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Span {
    /// 0 is the file, `n` the n-th override.
    pub source: usize,
    /// Offset of the first byte in the file.
    pub start: usize,
    /// First byte after it.
    pub end: usize,
}

/// A text that spans point into.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Path of the file, or how the override was given.
    pub name: String,
    /// Content of the file.
    pub text: String,
}

/// One fault before it is tied to its text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Issue {
    /// `None` concerns the file as a whole.
    pub span: Option<Span>,
    pub what: String,
    pub help: Option<String>,
}

/// One fault of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    /// The file, or `--set PATH=VALUE` where an override is at fault.
    pub source: String,
    /// Line, from 1; 0 where the fault concerns the whole file.
    pub line: usize,
    /// Column in characters, from 1; 0 where the fault concerns the whole file.
    pub column: usize,
    /// How many characters are at fault on that line.
    pub width: usize,
    /// Text of the line.
    pub snippet: String,
    /// What is wrong there.
    pub what: String,
    /// What would be right.
    pub help: Option<String>,
}

/// Why a scenario cannot be used: all that is wrong with it, in the file's order. [`fmt::Display`]
/// gives the text to print before leaving with exit status 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioError {
    problems: Vec<Problem>,
}

/// More than these are counted, not shown.
const SHOWN: usize = 20;
/// How the name of an override begins; it is a line of its own and needs no line number.
pub(crate) const OVERRIDE: &str = "--set ";
/// Lines are cut to this many characters around the fault.
const LINE_WIDTH: usize = 160;

impl ScenarioError {
    /// The faults, in the file's order.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// An error about a file as a whole: it cannot be read, it is a directory.
    pub(crate) fn whole(source: &str, what: String, help: Option<String>) -> Self {
        let problem = Problem {
            source: source.into(),
            line: 0,
            column: 0,
            width: 0,
            snippet: String::new(),
            what,
            help,
        };
        Self { problems: vec![problem] }
    }

    /// Ties faults to their texts; the same fault found again (in another variant, in another
    /// member of a group) is told once.
    pub(crate) fn from_issues(mut issues: Vec<Issue>, sources: &[Source]) -> Self {
        issues.sort();
        issues.dedup();
        let problems = issues.into_iter().map(|issue| locate(issue, sources)).collect();
        Self { problems }
    }
}

/// Line and column of a fault.
fn locate(issue: Issue, sources: &[Source]) -> Problem {
    let Issue { span, what, help } = issue;
    let Some(span) = span else {
        let source = sources.first().map_or_else(String::new, |s| s.name.clone());
        return Problem {
            source,
            line: 0,
            column: 0,
            width: 0,
            snippet: String::new(),
            what,
            help,
        };
    };
    let source = &sources[span.source];
    let text = &source.text;
    let start = floor_char(text, span.start);
    let end = floor_char(text, span.end.max(span.start)).max(start);
    let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |i| start + i);
    let line = text[..start].matches('\n').count() + 1;
    let before: String = text[line_start..start].chars().map(printable).collect();
    let within: String = text[start..end.min(line_end)].chars().map(printable).collect();
    let column = before.chars().count() + 1;
    let width = within.chars().count().max(1);
    let snippet: String =
        text[line_start..line_end].trim_end_matches('\r').chars().map(printable).collect();
    Problem { source: source.name.clone(), line, column, width, snippet, what, help }
}

/// The nearest character boundary at or before `at`.
fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Tabs take one column, control characters do not reach the terminal.
fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.what)?;
        if self.line == 0 {
            writeln!(f, "  --> {}", self.source)?;
        } else {
            let number = self.line.to_string();
            let gutter = " ".repeat(number.len());
            let (snippet, column) = excerpt(&self.snippet, self.column);
            let width = self.width.min(LINE_WIDTH.saturating_sub(column - 1)).max(1);
            if self.source.starts_with(OVERRIDE) {
                writeln!(f, "{gutter}--> {}", self.source)?;
            } else {
                writeln!(f, "{gutter}--> {}:{}:{}", self.source, self.line, self.column)?;
            }
            writeln!(f, "{gutter} |")?;
            writeln!(f, "{number} | {snippet}")?;
            writeln!(f, "{gutter} | {}{}", " ".repeat(column - 1), "^".repeat(width))?;
        }
        if let Some(help) = &self.help {
            writeln!(f, "  help: {help}")?;
        }
        Ok(())
    }
}

/// The part of a long line around a column, and the column in it.
fn excerpt(line: &str, column: usize) -> (String, usize) {
    if line.chars().count() <= LINE_WIDTH {
        return (line.trim_end().to_string(), column);
    }
    let from = (column - 1).saturating_sub(LINE_WIDTH / 3);
    (line.chars().skip(from).take(LINE_WIDTH).collect(), column - from)
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().take(SHOWN).enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        if self.problems.len() > SHOWN {
            writeln!(f, "\n... and {} more", self.problems.len() - SHOWN)?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioError {}
