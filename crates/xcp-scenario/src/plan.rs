//! What `xcpnet reproduce` runs of a file: its seeds, and the smaller part that `--quick` asks for.
//! Leaves the scenarios themselves to `file.rs`.

use std::path::Path;

use crate::claims::known_variant;
use crate::error::{ScenarioError, Source, Span};
use crate::fields::{Faults, Fields};
use crate::set::{self, Setting};
use crate::spec::{FILE, QUICK};
use crate::tree::{self, Item, Table, Value};

/// Most seeds of a file.
pub(crate) const MAX_SEEDS: u64 = 1000;

/// A file's seeds, and what it says of `--quick`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// At least one, in the file's order.
    pub seeds: Vec<u64>,
    /// `None` where the file leaves it open.
    pub quick: Option<QuickPlan>,
}

/// What `--quick` runs of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuickPlan {
    /// Seeds to run, at least one.
    pub seeds: Vec<u64>,
    /// Whether the whole file is skipped.
    pub skip: bool,
}

/// As the reader of the scenarios needs it.
#[derive(Debug)]
pub(crate) struct Read {
    /// The file's `seed`.
    first: u64,
    seeds: Option<Vec<u64>>,
    pub quick: Option<ReadQuick>,
}

#[derive(Debug)]
pub(crate) struct ReadQuick {
    variants: Option<Vec<String>>,
    seeds: Option<Vec<u64>>,
    skip: bool,
    pub settings: Vec<Setting>,
}

impl ReadQuick {
    /// Whether it runs a variant.
    pub fn runs(&self, variant: &str) -> bool {
        self.variants.as_ref().is_none_or(|names| names.iter().any(|n| n == variant))
    }
}

/// The plan of a scenario file.
///
/// # Errors
/// What is wrong with these keys; the rest of the file is [`load`](crate::load)'s.
pub fn plan(path: &Path, text: &str) -> Result<Plan, ScenarioError> {
    let sources = [Source { name: path.display().to_string(), text: text.into() }];
    let (root, syntax) = tree::parse(text);
    if !syntax.is_empty() {
        return Err(ScenarioError::from_issues(syntax, &sources));
    }
    let faults = Faults::default();
    let read = read(&root, &crate::variant_names(text), &faults);
    let issues = faults.take();
    if !issues.is_empty() {
        return Err(ScenarioError::from_issues(issues, &sources));
    }
    let alone = || vec![read.first];
    let quick =
        read.quick.map(|q| QuickPlan { seeds: q.seeds.unwrap_or_else(alone), skip: q.skip });
    Ok(Plan { seeds: read.seeds.unwrap_or_else(alone), quick })
}

/// Reads `seeds` and `quick`.
pub(crate) fn read(root: &Table, variants: &[String], faults: &Faults) -> Read {
    // Faults of other keys are told, too, by whoever reads the scenarios.
    let unknown = Faults::default();
    let first = Fields::new(&unknown, &FILE, root, Span { source: 0, start: 0, end: 0 })
        .integer("seed")
        .unwrap_or(1);
    let quick = root.get("quick").and_then(|item| Fields::of(faults, &QUICK, item)).map(|fields| {
        let names = fields.names("variants");
        for (name, span) in names.iter().flatten() {
            known_variant(&fields, name, *span, variants);
        }
        if let Some([]) = names.as_deref() {
            faults.add(
                fields.span_of("variants"),
                "`variants` is empty",
                "leave the key out to run all variants, or write skip = true to run none",
            );
        }
        let settings = set::settings(&fields, "{ duration = \"20s\" }");
        ReadQuick {
            variants: names.map(|list| list.into_iter().map(|(name, _)| name).collect()),
            seeds: fields.item("seeds").and_then(|item| seeds(item, first, faults)),
            skip: fields.bool("skip").unwrap_or(false),
            settings,
        }
    });
    Read { first, seeds: root.get("seeds").and_then(|item| seeds(item, first, faults)), quick }
}

/// A number of seeds from `first` on, or a list.
fn seeds(item: &Item, first: u64, faults: &Faults) -> Option<Vec<u64>> {
    let number = |item: &Item| match item.value {
        Value::Integer(Some(n)) => u64::try_from(n).ok(),
        _ => None,
    };
    let list = match &item.value {
        Value::Array(items) => items.iter().map(number).collect::<Option<Vec<u64>>>(),
        _ => number(item)
            .filter(|n| *n <= MAX_SEEDS)
            .map(|n| (0..n).map(|i| first.saturating_add(i)).collect()),
    };
    let sound = |list: &Vec<u64>| {
        let mut sorted = list.clone();
        sorted.sort_unstable();
        sorted.dedup();
        !list.is_empty()
            && sorted.len() == list.len()
            && list.len() as u64 <= MAX_SEEDS
            && list.iter().all(|s| i64::try_from(*s).is_ok())
    };
    let list = list.filter(sound);
    if list.is_none() {
        let what = "`seeds` takes a number of seeds, or a list of seeds without repetition";
        faults.add(
            item.span,
            what,
            format!("write seeds = 8 (at most {MAX_SEEDS}), or seeds = [1, 2, 3]"),
        );
    }
    list
}
