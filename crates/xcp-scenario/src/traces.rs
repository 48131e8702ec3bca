//! Which traces a scenario file names, and their place in its text: `rate-changes` and
//! `delay-changes` of a link may be the name of a file instead of a list. What such a file says is
//! `trace.rs`'s business.

use std::path::{Component, Path};

use crate::error::{Issue, ScenarioError, Source, Span};
use crate::spec::{DELAY_CHANGES, DURATION, RATE_CHANGES};
use crate::trace::{self, Trace};
use crate::tree::{self, Entry, Table, Value};
use xcp_law::quantity;
use xcp_model::units::Nanos;

/// A trace is read into memory and written out as text.
const MOST_BYTES: u64 = 16 << 20;

/// A name in the text.
struct Named {
    span: Span,
    key: &'static str,
    file: String,
}

/// The text with every list in the place of the name of its trace, on the same line: for the longest
/// `duration` in the text or in `settings`, which may have several, with commas between. A text that
/// is not TOML is left alone: whoever reads it will tell.
///
/// # Errors
/// Everything that is wrong with the traces.
pub(crate) fn written_out(
    path: &Path,
    text: String,
    settings: &[(String, String)],
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
    let set = settings.iter().filter(|(key, _)| key == DURATION);
    let set = set.flat_map(|(_, values)| values.split(',')).map(time_of).max().unwrap_or(0);
    let duration = longest(&root).max(set).max(1);
    let (mut out, mut written_to, mut issues) = (String::new(), 0, Vec::new());
    named.sort_by_key(|name| name.span);
    for name in named {
        match list(path, &name, duration) {
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

fn time_of(text: &str) -> Nanos {
    quantity::time(text.trim().trim_matches('"')).unwrap_or(0)
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

/// The list that a trace comes to, or what is wrong and what would be right.
fn list(scenario: &Path, name: &Named, duration: Nanos) -> Result<String, (String, &'static str)> {
    let file = Path::new(&name.file);
    // A scenario from somewhere else must not look into files that are none of its business.
    let below = file.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if !below || name.file.is_empty() {
        return Err((
            format!(
                "`{}` is neither beside the scenario file nor in a directory below it",
                name.file
            ),
            "write the name of a file there, or a list of steps",
        ));
    }
    let place = scenario.parent().unwrap_or(Path::new("")).join(file);
    let unread = |why: String| {
        (
            format!("the trace {} cannot be read: {why}", place.display()),
            "a trace is either a mahimahi file or a table (CSV); see docs/scenario.md",
        )
    };
    let told = |why: std::io::Error| unread(why.to_string());
    let about = std::fs::metadata(&place).map_err(told)?;
    if !about.is_file() {
        return Err(unread("it is not a file".into()));
    }
    if about.len() > MOST_BYTES {
        return Err(unread(format!("it has more than {} MB", MOST_BYTES >> 20)));
    }
    let text = std::fs::read_to_string(&place).map_err(told)?;
    let Trace { rates, delays } = trace::read(&text, duration).map_err(unread)?;
    let (list, what) = if name.key == RATE_CHANGES {
        (if rates.is_empty() { None } else { Some(trace::rates_toml(&rates)) }, "rates")
    } else {
        (if delays.is_empty() { None } else { Some(trace::delays_toml(&delays)) }, "delays")
    };
    list.ok_or_else(|| unread(format!("it contains no {what}")))
}
