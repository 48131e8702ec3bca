//! Which traces a scenario file names, and their place in its text: `rate-changes` and
//! `delay-changes` of a link may be the name of a file instead of a list. What such a file says is
//! `trace.rs`'s business.

use std::fmt::Display;
use std::path::{Component, Path, PathBuf};

use crate::error::{Issue, ScenarioError, Source, Span};
use crate::spec::{DELAY_CHANGES, DURATION, RATE_CHANGES};
use crate::trace::{self, Trace};
use crate::tree::{self, Entry, Table, Value};
use xcp_law::quantity;
use xcp_law::text::split_path;
use xcp_model::units::Nanos;

/// A trace is read into memory and written out as text.
const MOST_BYTES: u64 = 16 << 20;

/// A name in the text.
struct Named {
    span: Span,
    key: &'static str,
    file: String,
}

/// What is wrong, and what would be right.
type Wrong = (String, &'static str);

/// The text with every list in the place of the name of its trace, on the same line: for the longest
/// `duration` in the text or in `settings`, which may have several, as a sweep's do. What is in a
/// file `content` says. A text that is not TOML is left alone: whoever reads it will tell.
///
/// # Errors
/// Everything that is wrong with the traces.
fn written_out(
    path: &Path,
    text: String,
    settings: &[(String, String)],
    mut content: impl FnMut(&str) -> Result<String, Wrong>,
) -> Result<String, ScenarioError> {
    let (root, syntax) = tree::parse(&text);
    if !syntax.is_empty() {
        return Ok(text);
    }
    let mut named = Vec::new();
    names(&root, &mut named);
    if named.is_empty() {
        return Ok(text);
    }
    // Without one there is nothing to run, which is told when the text is read: a first step is
    // enough for that.
    let duration = longest(&root).max(longest_set(settings)).max(1);
    let (mut out, mut written_to, mut issues) = (String::new(), 0, Vec::new());
    named.sort_by_key(|name| name.span);
    for name in named {
        match content(&name.file).and_then(|content| list(path, &name, &content, duration)) {
            Ok(list) => {
                out.push_str(&text[written_to..name.span.start]);
                out.push_str(&list);
                written_to = name.span.end;
            }
            Err((what, help)) => {
                issues.push(Issue { span: Some(name.span), what, help: Some(help.into()) });
            }
        }
    }
    if !issues.is_empty() {
        let source = Source { name: path.display().to_string(), text };
        return Err(ScenarioError::from_issues(issues, &[source]));
    }
    out.push_str(&text[written_to..]);
    Ok(out)
}

/// [`written_out`] with the files that are beside the text's.
///
/// # Errors
/// Everything that is wrong with the traces.
pub(crate) fn from_files(
    path: &Path,
    text: String,
    settings: &[(String, String)],
) -> Result<String, ScenarioError> {
    written_out(path, text, settings, |file| read(path, file))
}

/// The traces that a text names, which are beside its file: their names and what is in them. For
/// [`with_traces`], wherever that is asked later.
///
/// # Errors
/// Everything that is wrong with them.
pub fn read_traces(path: &Path, text: &str) -> Result<Vec<(String, String)>, ScenarioError> {
    let mut found: Vec<(String, String)> = Vec::new();
    written_out(path, text.to_owned(), &[], |file| {
        let content = read(path, file)?;
        if found.iter().all(|(name, _)| name != file) {
            found.push((file.to_owned(), content.clone()));
        }
        Ok(content)
    })?;
    Ok(found)
}

/// A text with these traces written into it as the lists of steps that they come to, for a run as
/// long as the text, or one of `settings`, says.
///
/// # Errors
/// That a trace is not among them, or is wrong.
pub fn with_traces(
    path: &Path,
    text: String,
    settings: &[(String, String)],
    traces: &[(String, String)],
) -> Result<String, ScenarioError> {
    written_out(path, text, settings, |file| {
        let found =
            traces.iter().find(|(name, _)| name == file).map(|(_, content)| content.clone());
        let lacking = || (format!("there is no trace `{file}`"), "read it with the scenario file");
        found.ok_or_else(lacking)
    })
}

fn time_of(text: &str) -> Nanos {
    quantity::time(text).unwrap_or(0)
}

/// The longest duration that is set; what is set wrongly is told when it is read.
fn longest_set(settings: &[(String, String)]) -> Nanos {
    let path = Some(vec![DURATION.to_owned()]);
    let set = settings.iter().filter(|(key, _)| split_path(key) == path);
    let values = set.flat_map(|(_, values)| xcp_law::list::values(values).unwrap_or_default());
    let time = |value: String| match tree::parse_value(&value, 0, 0).value {
        Value::Text(text) => time_of(&text),
        _ => 0,
    };
    values.map(time).max().unwrap_or(0)
}

/// The longest duration of the file, of its variants and of `quick`: the key has this name nowhere
/// else.
fn longest(table: &Table) -> Nanos {
    let of = |entry: &Entry| match &entry.item.value {
        Value::Table(below) => longest(below),
        Value::Array(items) => {
            let tables = items.iter().map(|item| match &item.value {
                Value::Table(below) => longest(below),
                _ => 0,
            });
            tables.max().unwrap_or(0)
        }
        Value::Text(text) if entry.key == DURATION => time_of(text),
        _ => 0,
    };
    table.entries.iter().map(of).max().unwrap_or(0)
}

/// In links, and in what variants set (`link.NAME.rate-changes`): the keys have these names nowhere
/// else.
fn names(table: &Table, named: &mut Vec<Named>) {
    for Entry { key, item, .. } in &table.entries {
        match &item.value {
            Value::Table(below) => names(below, named),
            Value::Array(items) => {
                for below in items {
                    if let Value::Table(below) = &below.value {
                        names(below, named);
                    }
                }
            }
            Value::Text(file) => {
                let last = key.rsplit('.').next();
                let key = [RATE_CHANGES, DELAY_CHANGES].into_iter().find(|k| last == Some(k));
                named.extend(key.map(|key| Named { span: item.span, key, file: file.clone() }));
            }
            _ => {}
        }
    }
}

/// Where a trace is.
fn place(scenario: &Path, file: &str) -> PathBuf {
    scenario.parent().unwrap_or(Path::new("")).join(file)
}

fn unread(place: &Path, why: impl Display) -> Wrong {
    (
        format!("the trace {} cannot be read: {why}", place.display()),
        "a trace is either a mahimahi file or a table (CSV); see docs/scenario.md",
    )
}

/// What is in the file of a trace.
fn read(scenario: &Path, name: &str) -> Result<String, Wrong> {
    let file = Path::new(name);
    // A scenario from somewhere else must not look into files that are none of its business.
    let below = file.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if !below || name.is_empty() {
        return Err((
            format!("`{name}` is neither beside the scenario file nor in a directory below it"),
            "write the name of a file there, or a list of steps",
        ));
    }
    let place = place(scenario, name);
    let about = std::fs::metadata(&place).map_err(|why| unread(&place, why))?;
    if !about.is_file() {
        return Err(unread(&place, "it is not a file"));
    }
    if about.len() > MOST_BYTES {
        return Err(unread(&place, format_args!("it has more than {} MB", MOST_BYTES >> 20)));
    }
    std::fs::read_to_string(&place).map_err(|why| unread(&place, why))
}

/// The list that a trace comes to.
fn list(scenario: &Path, name: &Named, content: &str, duration: Nanos) -> Result<String, Wrong> {
    let wrong = |why: String| unread(&place(scenario, &name.file), why);
    let Trace { rates, delays } = trace::read(content, duration).map_err(wrong)?;
    let (list, what) = if name.key == RATE_CHANGES {
        (if rates.is_empty() { None } else { Some(trace::rates_toml(&rates)) }, "rates")
    } else {
        (if delays.is_empty() { None } else { Some(trace::delays_toml(&delays)) }, "delays")
    };
    list.ok_or_else(|| wrong(format!("it contains no {what}")))
}
