//! TOML as a tree in which every key and value knows where it stands, so that later stages can
//! point at it. Reading text into the tree only; what keys mean is `spec`'s business.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Issue, Span};

/// A value and its place.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub span: Span,
    pub value: Value,
}

/// A TOML value.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text(String),
    /// `None` is beyond 128 bits.
    Integer(Option<i128>),
    /// As it is written.
    Float(String),
    Bool(bool),
    Datetime,
    Array(Vec<Item>),
    Table(Table),
}

/// A table in the order of the text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    pub entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub key: String,
    pub key_span: Span,
    pub item: Item,
}

impl Table {
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key == key)
    }

    pub fn get(&self, key: &str) -> Option<&Item> {
        self.entry(key).map(|e| &e.item)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Item> {
        self.entries.iter_mut().find(|e| e.key == key).map(|e| &mut e.item)
    }

    /// Takes a key out, if it is there.
    pub fn remove(&mut self, key: &str) {
        self.entries.retain(|e| e.key != key);
    }

    /// Text of a key, where it is text.
    pub fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Sets a key, replacing what it had.
    pub fn set(&mut self, key: &str, key_span: Span, item: Item) {
        self.entries.retain(|e| e.key != key);
        self.entries.push(Entry { key: key.into(), key_span, item });
    }
}

impl Value {
    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Integer(_) => "a bare number",
            Self::Float(text) if text.contains("nan") => "not a number (nan)",
            Self::Float(text) if text.contains("inf") => "infinite",
            Self::Float(_) => "a floating-point number",
            Self::Bool(_) => "true or false",
            Self::Datetime => "a date",
            Self::Array(_) => "a list",
            Self::Table(_) => "a table",
        }
    }

    /// A bare number as it would be written, for remedies.
    pub fn number(&self) -> Option<String> {
        match self {
            Self::Integer(Some(n)) => Some(n.to_string()),
            Self::Float(text) if text.parse::<f64>().is_ok_and(f64::is_finite) => {
                Some(text.clone())
            }
            _ => None,
        }
    }
}

/// Reads a document; what cannot be read is reported and left out.
pub(crate) fn parse(text: &str) -> (Table, Vec<Issue>) {
    let (root, errors) = DeTable::parse_recoverable(text);
    let issues = errors
        .iter()
        .map(|e| {
            let range = e.span().unwrap_or(0..0);
            Issue {
                span: Some(Span { source: 0, start: range.start, end: range.end }),
                what: syntax(e.message()),
                help: remedy(e.message()),
            }
        })
        .collect();
    (table(root.get_ref(), 0, 0), issues)
}

/// Reads a single value, as given to an override: a TOML value if it is one (`5`, `true`, `{ kind =
/// "red" }`), otherwise the text itself (`10mbit`).
pub(crate) fn parse_value(text: &str, source: usize, offset: usize) -> Item {
    match DeValue::parse(text) {
        Ok(value) => item(&value, source, offset),
        Err(_) => Item {
            span: Span { source, start: offset, end: offset + text.len() },
            value: Value::Text(text.into()),
        },
    }
}

fn syntax(message: &str) -> String {
    let first = message.lines().next().unwrap_or("cannot be read");
    format!("this is not TOML: {first}")
}

fn remedy(message: &str) -> Option<String> {
    if message.contains("duplicate key") {
        Some(
            "a key may be given only once in a table; if there are several links or flows, each \
             begins with [[link]] or [[flow]]"
                .into(),
        )
    } else if message.contains("quoted") || message.contains("unit") || message.contains("number") {
        Some("texts and quantities with units must be in quotes: rate = \"10mbit\"".into())
    } else if message.contains("string") {
        Some("a text must begin and end with a quote on the same line".into())
    } else {
        None
    }
}

fn span(range: std::ops::Range<usize>, source: usize, offset: usize) -> Span {
    Span { source, start: range.start + offset, end: range.end + offset }
}

fn table(from: &DeTable<'_>, source: usize, offset: usize) -> Table {
    let mut entries: Vec<Entry> = from
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: span(key.span(), source, offset),
            item: item(value, source, offset),
        })
        .collect();
    entries.sort_by_key(|e| e.key_span.start);
    Table { entries }
}

fn item(from: &Spanned<DeValue<'_>>, source: usize, offset: usize) -> Item {
    let value = match from.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(n) => Value::Integer(i128::from_str_radix(n.as_str(), n.radix()).ok()),
        DeValue::Float(f) => Value::Float(f.as_str().into()),
        DeValue::Boolean(b) => Value::Bool(*b),
        DeValue::Datetime(_) => Value::Datetime,
        DeValue::Array(items) => {
            Value::Array(items.iter().map(|i| item(i, source, offset)).collect())
        }
        DeValue::Table(t) => Value::Table(table(t, source, offset)),
    };
    Item { span: span(from.span(), source, offset), value }
}
