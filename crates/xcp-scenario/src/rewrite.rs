//! Changes a setting in a scenario's text and leaves all else as it is written, comments and all:
//! the text that a person would have typed instead. What the new text means, and whether it is
//! right, the reader says afterwards.
//!
//! A path names what it does for an override (`set`), `queue.KEY` apart: the link is to be
//! named.

use std::ops::Range;

use crate::set::{concerns, name_of};
use crate::spec::{FILE, FLOW, Kind, LINK, Spec};
use crate::tree::{self, Entry, Item, Table, Value};
use xcp_law::text::split_path;

/// Why a text was not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotRewritten {
    /// The text is not TOML.
    Syntax,
    /// The path does not lead to a setting of this text.
    Path(String),
}

impl std::fmt::Display for NotRewritten {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Syntax => f.write_str("the text must be valid TOML before it can be changed"),
            Self::Path(path) => write!(
                f,
                "`{path}` cannot be set from outside in this text: change it in the text itself"
            ),
        }
    }
}

impl std::error::Error for NotRewritten {}

/// A text with a setting, its value written as TOML, for one variant or for all. A variant that
/// sets the same for itself gets the new value too where it is for all.
///
/// # Errors
/// When there is no place for it.
pub fn rewrite(
    text: &str,
    variant: Option<&str>,
    path: &str,
    value: &str,
) -> Result<String, NotRewritten> {
    let (root, syntax) = tree::parse(text);
    if !syntax.is_empty() {
        return Err(NotRewritten::Syntax);
    }
    let nowhere = || NotRewritten::Path(path.into());
    let parts = split_path(path).ok_or_else(nowhere)?;
    let mut edits = Edits { text, value, list: Vec::new() };
    if let Some(name) = variant.filter(|name| !name.is_empty()) {
        let (table, span) = variant_tables(&root)
            .find(|(table, _)| table.text("name") == Some(name))
            .ok_or_else(nowhere)?;
        edits.variant(table, span, path, &parts).ok_or_else(nowhere)?;
    } else {
        edits.base(&root, &parts).ok_or_else(nowhere)?;
        for entry in variant_tables(&root).flat_map(|(table, _)| set_entries(table)) {
            edits.overriding(entry, &parts).ok_or_else(nowhere)?;
        }
    }
    Ok(edits.applied())
}

/// A value as an override has it, as TOML: a text without its quotes gets them.
#[must_use]
pub fn as_toml(value: &str) -> String {
    match tree::parse_value(value, 0, 0).value {
        Value::Text(text) if text == value => quoted(value),
        _ => value.to_owned(),
    }
}

/// How a setting is written that holds for a variant: in its `set`, else in the file's tables.
/// `None` where it is nowhere, or in several places.
#[must_use]
pub fn written(text: &str, variant: &str, path: &str) -> Option<String> {
    let (root, syntax) = tree::parse(text);
    if !syntax.is_empty() {
        return None;
    }
    let parts = split_path(path)?;
    let own = variant_tables(&root)
        .find(|(table, _)| table.text("name") == Some(variant))
        .into_iter()
        .flat_map(|(table, _)| set_entries(table))
        .filter_map(|entry| below(&split_path(&entry.key)?, &parts).map(|rest| (entry, rest)))
        .find_map(|(entry, rest)| {
            let kind = kind_of(&split_path(&entry.key)?)?;
            find(&entry.item, kind, &parts[parts.len() - rest..])
        });
    let item = own.or_else(|| {
        let [target] = <[Target<'_, '_>; 1]>::try_from(targets(&root, &parts)?).ok()?;
        let Target { table, spec, rest, .. } = target;
        find(table.get(rest.first()?)?, spec.key(&rest[0])?.kind, &rest[1..])
    })?;
    text.get(item.span.start..item.span.end).map(str::to_owned)
}

/// An item below another; a short form is its key `short`.
fn find<'a>(item: &'a Item, kind: Kind, rest: &[String]) -> Option<&'a Item> {
    let Some(name) = rest.first() else { return Some(item) };
    let spec = table_of(kind)?;
    match (&item.value, kind) {
        (Value::Table(table), _) => find(table.get(name)?, spec.key(name)?.kind, &rest[1..]),
        (Value::Array(items), _) => match &items[..] {
            [only] => find(only, kind, rest),
            _ => None,
        },
        (_, Kind::Short { short, .. } | Kind::ShortList { short, .. }) => {
            (name == short && rest.len() == 1).then_some(item)
        }
        _ => None,
    }
}

fn table_of(kind: Kind) -> Option<&'static Spec> {
    match kind {
        Kind::Table(table) | Kind::Short { table, .. } | Kind::ShortList { table, .. } => {
            Some(table)
        }
        _ => None,
    }
}

/// The tables of the variants, and where each stands.
fn variant_tables(root: &Table) -> impl Iterator<Item = (&Table, Range<usize>)> {
    let items = match root.get("variant").map(|item| &item.value) {
        Some(Value::Array(items)) => &items[..],
        _ => &[],
    };
    items.iter().filter_map(|item| Some((as_table(item)?, item.span.start..item.span.end)))
}

fn set_entries(variant: &Table) -> impl Iterator<Item = &Entry> {
    variant.get("set").and_then(as_table).into_iter().flat_map(|set| &set.entries)
}

fn as_table(item: &Item) -> Option<&Table> {
    match &item.value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

/// A table that a path is about.
struct Target<'a, 'p> {
    table: &'a Table,
    /// Where it stands; nowhere for the file itself.
    span: Range<usize>,
    spec: &'static Spec,
    /// The rest of the path.
    rest: &'p [String],
}

/// The tables that a path is about.
fn targets<'a, 'p>(root: &'a Table, path: &'p [String]) -> Option<Vec<Target<'a, 'p>>> {
    let spec = match path[0].as_str() {
        "flow" => &FLOW,
        "link" => &LINK,
        "queue" | "variant" | "expect" | "quick" | "seeds" => return None,
        name => {
            FILE.key(name)?;
            return Some(vec![Target { table: root, span: 0..0, spec: &FILE, rest: path }]);
        }
    };
    let Value::Array(members) = &root.get(spec.name)?.value else { return None };
    let first = path.get(1)?;
    let of_all = spec.key(first).is_some();
    let rest = if of_all { &path[1..] } else { &path[2..] };
    rest.first()?;
    let wanted = |table: &Table| {
        if of_all { concerns(table, first) } else { name_of(table, spec).as_ref() == Some(first) }
    };
    let found: Vec<_> = members
        .iter()
        .filter_map(|item| Some((as_table(item)?, item.span.start..item.span.end)))
        .filter(|(table, _)| wanted(table))
        .map(|(table, span)| Target { table, span, spec, rest })
        .collect();
    (!found.is_empty()).then_some(found)
}

/// What a path's value is.
fn kind_of(path: &[String]) -> Option<Kind> {
    let (mut spec, mut rest) = match path[0].as_str() {
        "flow" => (&FLOW, &path[1..]),
        "link" => (&LINK, &path[1..]),
        _ => (&FILE, path),
    };
    if path.len() != rest.len() && spec.key(rest.first()?).is_none() {
        rest = &rest[1..];
    }
    loop {
        let kind = spec.key(rest.first()?)?.kind;
        if rest.len() == 1 {
            return Some(kind);
        }
        (spec, rest) = (table_of(kind)?, &rest[1..]);
    }
}

/// Whether one path is another, or leads to where that goes on: how many parts are left then. A
/// setting of one link is below that of all links, not the other way round.
fn below(path: &[String], wanted: &[String]) -> Option<usize> {
    if wanted.starts_with(path) {
        return Some(wanted.len() - path.len());
    }
    let spec = match path[0].as_str() {
        "flow" => &FLOW,
        "link" => &LINK,
        _ => return None,
    };
    let of_all = spec.key(path.get(1)?).is_some();
    let of_one = wanted.len() > 2 && wanted[0] == path[0] && spec.key(&wanted[1]).is_none();
    (of_all && of_one && wanted[2..].starts_with(&path[1..])).then(|| wanted.len() - 1 - path.len())
}

/// What is to be written where.
struct Edits<'a> {
    text: &'a str,
    value: &'a str,
    list: Vec<(Range<usize>, String)>,
}

impl Edits<'_> {
    fn base(&mut self, root: &Table, path: &[String]) -> Option<()> {
        for Target { table, span, spec, rest } in targets(root, path)? {
            self.in_table(table, span, spec, rest)?;
        }
        Some(())
    }

    /// A variant's own setting, if it is about the path.
    fn overriding(&mut self, entry: &Entry, path: &[String]) -> Option<()> {
        let own = split_path(&entry.key)?;
        match below(&own, path) {
            Some(rest) => self.in_item(&entry.item, kind_of(&own)?, &path[path.len() - rest..]),
            None => Some(()),
        }
    }

    fn variant(
        &mut self,
        table: &Table,
        span: Range<usize>,
        path: &str,
        parts: &[String],
    ) -> Option<()> {
        let about = |entry: &&Entry| {
            split_path(&entry.key).is_some_and(|own| parts.starts_with(&own) || own == parts)
        };
        if let Some(entry) = set_entries(table).find(about) {
            return self.overriding(entry, parts);
        }
        let assignment = format!("{} = {}", quoted(path), self.value);
        match table.entry("set") {
            Some(entry) => {
                let set = as_table(&entry.item)?;
                self.add(set, entry.item.span.start..entry.item.span.end, &assignment)
            }
            None => self.add(table, span, &format!("set = {{ {assignment} }}")),
        }
    }

    /// Sets a path below a table that stands there.
    fn in_table(
        &mut self,
        table: &Table,
        span: Range<usize>,
        spec: &'static Spec,
        path: &[String],
    ) -> Option<()> {
        let (name, rest) = path.split_first()?;
        let kind = spec.key(name)?.kind;
        match table.get(name) {
            Some(item) => self.in_item(item, kind, rest),
            None => {
                let mut value = self.value.to_owned();
                for (i, part) in rest.iter().enumerate().rev() {
                    kind_below(kind, &rest[..=i])?;
                    value = format!("{{ {} = {value} }}", bare_or_quoted(part));
                }
                let assignment = format!("{} = {value}", bare_or_quoted(name));
                self.add(table, span, &assignment)
            }
        }
    }

    fn in_item(&mut self, item: &Item, kind: Kind, rest: &[String]) -> Option<()> {
        let span = item.span.start..item.span.end;
        if rest.is_empty() {
            // A table that stands in several places has no text to replace.
            if matches!(item.value, Value::Table(_)) && !self.is_inline(&span) {
                return None;
            }
            self.list.push((span, self.value.to_owned()));
            return Some(());
        }
        match (&item.value, kind) {
            (Value::Table(table), _) => self.in_table(table, span, table_of(kind)?, rest),
            (Value::Array(items), _) => {
                items.iter().try_for_each(|item| self.in_item(item, kind, rest))
            }
            (_, Kind::Short { short, .. } | Kind::ShortList { short, .. }) if !short.is_empty() => {
                let table = table_of(kind)?;
                if rest[0] == short && rest.len() == 1 {
                    self.list.push((span, self.value.to_owned()));
                    return Some(());
                }
                kind_below(kind, rest)?;
                let mut value = self.value.to_owned();
                for part in rest[1..].iter().rev() {
                    value = format!("{{ {} = {value} }}", bare_or_quoted(part));
                }
                table.key(&rest[0])?;
                let old = &self.text[span.clone()];
                let new = format!("{{ {short} = {old}, {} = {value} }}", bare_or_quoted(&rest[0]));
                self.list.push((span, new));
                Some(())
            }
            _ => None,
        }
    }

    fn is_inline(&self, span: &Range<usize>) -> bool {
        self.text.as_bytes().get(span.start) == Some(&b'{')
            && self.text.as_bytes().get(span.end.wrapping_sub(1)) == Some(&b'}')
    }

    /// Adds `key = value` to a table after what is written in it.
    fn add(&mut self, table: &Table, span: Range<usize>, assignment: &str) -> Option<()> {
        if self.is_inline(&span) {
            match table.entries.last() {
                Some(last) => {
                    let end = last.item.span.end;
                    self.list.push((end..end, format!(", {assignment}")));
                }
                None => self.list.push((span, format!("{{ {assignment} }}"))),
            }
            return Some(());
        }
        // After the last line of the table's own section, begun as that one is: so a key of a table
        // that is written with dots (`queue.limit = ...`) keeps what is before the dot.
        let headed = |item: &Item| match &item.value {
            Value::Table(_) => !self.is_inline(&(item.span.start..item.span.end)),
            Value::Array(items) => items.iter().any(|i| {
                matches!(i.value, Value::Table(_)) && !self.is_inline(&(i.span.start..i.span.end))
            }),
            _ => false,
        };
        let last = table.entries.iter().rfind(|entry| !headed(&entry.item))?;
        let line = self.text[..last.key_span.start].rfind('\n').map_or(0, |at| at + 1);
        let begun = &self.text[line..last.key_span.start];
        if !begun.chars().all(|c| c.is_alphanumeric() || " \t._-".contains(c)) {
            return None;
        }
        let value_end = last.item.span.end;
        let end = self.text[value_end..].find('\n').map_or(self.text.len(), |at| value_end + at);
        self.list.push((end..end, format!("\n{begun}{assignment}")));
        Some(())
    }

    fn applied(mut self) -> String {
        self.list.sort_by_key(|(range, _)| (range.start, range.end));
        self.list.dedup();
        let (mut out, mut done) = (String::with_capacity(self.text.len() + 64), 0);
        for (range, new) in &self.list {
            out.push_str(&self.text[done..range.start.max(done)]);
            out.push_str(new);
            done = range.end.max(done);
        }
        out.push_str(&self.text[done..]);
        out
    }
}

/// Whether there are such keys below.
fn kind_below(mut kind: Kind, path: &[String]) -> Option<Kind> {
    for part in path {
        kind = table_of(kind)?.key(part)?.kind;
    }
    Some(kind)
}

fn bare_or_quoted(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if key.chars().all(bare) { key.into() } else { quoted(key) }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Overrides, load, variant_names};

    const TEXT: &str = r#"duration = "10s"   # short

[[link]]
name    = "b"
between = ["S", "D"]
rate    = "10mbit"   # the bottleneck
delay   = "20ms"
queue   = "red"

[[flow]]
count      = 2
from       = "S"
to         = "D"
congestion = "cubic"

[[variant]]
name = "as it is"

[[variant]]
name = "xcp"
set  = { "flow.congestion" = "xcp", "link.b.queue" = { kind = "xcp", limit = "1bdp" } }
"#;

    #[test]
    fn what_is_written_stays_and_what_is_missing_comes() {
        let change = |variant, path, value| rewrite(TEXT, variant, path, value).unwrap();
        let rate = change(None, "link.b.rate", "\"5mbit\"");
        assert_eq!(rate, TEXT.replace("\"10mbit\"", "\"5mbit\""), "comments stay");
        let limit = change(None, "link.b.queue.limit", "\"2bdp\"");
        assert!(limit.contains("queue   = { kind = \"red\", limit = \"2bdp\" }"), "{limit}");
        assert!(
            limit.contains("kind = \"xcp\", limit = \"2bdp\""),
            "a variant's own, too: {limit}"
        );
        let loss = change(None, "link.b.loss", "0.01");
        assert!(loss.contains("queue   = \"red\"\nloss = 0.01\n"), "{loss}");
        let law = change(Some("xcp"), "link.b.queue.law.preset", "\"ixcp\"");
        assert!(law.contains("limit = \"1bdp\", law = { preset = \"ixcp\" } } }"), "{law}");
        let own = change(Some("as it is"), "flow.congestion", "\"reno\"");
        assert!(
            own.contains("name = \"as it is\"\nset = { \"flow.congestion\" = \"reno\" }\n"),
            "{own}"
        );
        assert_eq!(written(TEXT, "xcp", "link.b.queue.limit").as_deref(), Some("\"1bdp\""));
        assert_eq!(written(TEXT, "as it is", "link.b.queue.kind").as_deref(), Some("\"red\""));
        assert_eq!(written(TEXT, "as it is", "link.b.queue.limit"), None);
        assert_eq!(written(TEXT, "xcp", "duration").as_deref(), Some("\"10s\""));
    }

    #[test]
    fn tables_in_one_line_grow_there() {
        let text = "link = [{ name = \"b\", rate = \"1mbit\" }, { name = \"c\" }]\n\
            variant = [{ name = \"v\" }]\n";
        let loss = rewrite(text, None, "link.b.loss", "0.1").unwrap();
        assert_eq!(loss, text.replace("\"1mbit\" }", "\"1mbit\", loss = 0.1 }"));
        let own = rewrite(text, Some("v"), "duration", "\"1s\"").unwrap();
        assert!(own.contains("{ name = \"v\", set = { \"duration\" = \"1s\" } }"), "{own}");
        let all = rewrite(text, None, "link.delay", "\"1ms\"").unwrap();
        assert_eq!(all.matches("delay = \"1ms\"").count(), 2, "{all}");
    }

    #[test]
    fn values_get_the_quotes_that_they_lack() {
        for (value, expected) in [
            ("10mbit", "\"10mbit\""),
            ("\"10mbit\"", "\"10mbit\""),
            ("5", "5"),
            ("true", "true"),
            ("{ kind = \"red\" }", "{ kind = \"red\" }"),
            ("a\"b", "\"a\\\"b\""),
        ] {
            assert_eq!(as_toml(value), expected);
        }
    }

    #[test]
    fn what_has_no_place_is_refused() {
        for path in ["", "nonsense", "link.other.rate", "link", "flow.flow", "queue.limit", "a..b"]
        {
            let refused = rewrite(TEXT, None, path, "1");
            assert!(matches!(refused, Err(NotRewritten::Path(_))), "{path}: {refused:?}");
        }
        assert_eq!(rewrite("a = [", None, "duration", "1"), Err(NotRewritten::Syntax));
        assert!(rewrite(TEXT, Some("absent"), "duration", "\"1s\"").is_err());
    }

    /// In every experiment: the text changed means what the text with an override means.
    #[test]
    fn a_changed_text_means_what_an_override_means() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
        let mut compared = 0;
        for paper in std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
            if !paper.is_dir() {
                continue;
            }
            for file in std::fs::read_dir(paper).unwrap().map(|e| e.unwrap().path()) {
                if file.extension().is_none_or(|end| end != "toml") {
                    continue;
                }
                let text = std::fs::read_to_string(&file).unwrap();
                // Some have a thousand variants: the first and the last do.
                let names = variant_names(&text);
                let some = [names[0].clone(), names[names.len() - 1].clone()];
                let few = || {
                    let named = Overrides::none().only(&some);
                    if names[0].is_empty() { Overrides::none() } else { named }
                };
                let before = load(&file, &text, &few()).unwrap();
                let link = before[0].links.last().unwrap().name.clone();
                let group = before[0].flows[0].group.name.to_string();
                for (path, value) in [
                    ("duration".to_owned(), "\"90s\""),
                    (format!("link.{link}.rate"), "\"7mbit\""),
                    (format!("link.{link}.delay"), "\"33ms\""),
                    (format!("link.{link}.loss"), "0.001"),
                    (format!("link.{link}.queue.limit"), "\"77p\""),
                    (format!("flow.{group}.packet"), "1000"),
                ] {
                    let Ok(changed) = rewrite(&text, None, &path, value) else { continue };
                    let own = few().with(&path, value);
                    match (load(&file, &changed, &few()), load(&file, &text, &own)) {
                        (Ok(a), Ok(b)) => {
                            assert_eq!(a, b, "{} {path}", file.display());
                            compared += 1;
                        }
                        (Err(_), Err(_)) => {}
                        (a, b) => panic!(
                            "{} {path}: {:?} but {:?}\n{changed}",
                            file.display(),
                            a.map(|_| "read").map_err(|e| e.to_string()),
                            b.map(|_| "read").map_err(|e| e.to_string())
                        ),
                    }
                }
            }
        }
        assert!(compared > 100, "{compared}");
    }
}
