//! The grid of a sweep: every combination of the settings' values, every variant, every seed,
//! numbered in a fixed order. Knows nothing of scenarios; no more than the lists themselves are in
//! memory.
//!
//! The seed changes fastest, then the variant, then the last setting; the first setting changes
//! slowest.

use xcp_law::list;
use xcp_law::text::split_path;
use xcp_report::parquet::ColumnKind;
use xcp_report::sweep::{self, Value};

use crate::seeds::Seeds;

/// At most this many runs: each takes eight bytes of memory, and more than this is a slip of the
/// pen.
const MAX_RUNS: u128 = 100_000_000;

/// A setting and its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Path of the setting.
    pub path: String,
    /// The values as written.
    pub written: Vec<String>,
    /// The values as columns have them.
    pub values: Vec<Value>,
    /// Of what kind they are.
    pub kind: ColumnKind,
    /// The same in bit/s, seconds or bytes, and the name of the column with those, where all of
    /// them are written with units of one kind.
    pub base: Option<(String, Vec<Value>)>,
}

/// All combinations of values, variants and seeds.
#[derive(Debug, Clone)]
pub struct Grid {
    /// The settings, in the order in which they were given.
    pub axes: Vec<Axis>,
    /// The variants' names; one empty name where the file has none.
    pub variants: Vec<String>,
    /// The seeds; the file's own if absent.
    pub seeds: Option<Seeds>,
    combinations: u64,
    runs: u64,
}

/// Where in the grid a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which combination of the settings' values.
    pub combination: u64,
    /// Number of the variant.
    pub variant: usize,
    /// Its seed, if it does not come from the file.
    pub seed: Option<u64>,
    /// Which point: combination and variant.
    pub point: u64,
}

/// Reads the settings of the command line.
///
/// # Errors
/// What is typed wrongly.
pub(crate) fn axes(settings: &[(String, String)]) -> Result<Vec<Axis>, String> {
    let read = |(path, text): &(String, String)| {
        let written = list::values(text).map_err(|what| fault(path, text, &what))?;
        Ok((path.clone(), text.clone(), written))
    };
    checked(settings.iter().map(read).collect::<Result<_, String>>()?)
}

/// The settings with these values.
///
/// # Errors
/// Settings that cannot be swept, or not together.
pub(crate) fn axes_of(settings: &[(String, Vec<String>)]) -> Result<Vec<Axis>, String> {
    let shown =
        |(path, values): &(String, Vec<String>)| (path.clone(), values.join(","), values.clone());
    checked(settings.iter().map(shown).collect())
}

fn fault(path: &str, text: &str, what: &str) -> String {
    format!("--set {path}={text}: {what}")
}

/// Paths, what is to be shown of their values, and the values.
fn checked(settings: Vec<(String, String, Vec<String>)>) -> Result<Vec<Axis>, String> {
    let mut axes: Vec<Axis> = Vec::new();
    for (path, text, written) in settings {
        let fault = |what: String| fault(&path, &text, &what);
        let path = canonical(&path);
        if path == "seed" {
            return Err(fault(format!("seeds are not swept in this way; write --seeds {text}")));
        }
        // They would also share their names with columns of the tables.
        if path == "link" || path == "flow" {
            return Err(fault(format!(
                "`{path}` is not a setting, but its keys are; write --set {path}.KEY=..."
            )));
        }
        for before in &axes {
            if before.path == path {
                return Err(fault(format!(
                    "{path} is already set; put all its values into one --set"
                )));
            }
            if before.path.strip_prefix(&path).is_some_and(|rest| rest.starts_with('.')) {
                return Err(fault(format!(
                    "it would replace what --set {} sets; write the shorter path first",
                    before.path
                )));
            }
        }
        let (kind, values) = sweep::values(&written);
        let base = in_base_units(&path, &written);
        axes.push(Axis { path, written, values, kind, base });
    }
    Ok(axes)
}

/// What values with units are in base units, and the name of a column for that.
fn in_base_units(path: &str, written: &[String]) -> Option<(String, Vec<Value>)> {
    let values: Option<Vec<_>> =
        written.iter().map(|text| xcp_law::quantity::in_base_units(text)).collect();
    let values = values?;
    let (_, unit) = values.first()?;
    let alike = values.iter().all(|(_, other)| other == unit);
    alike.then(|| {
        (format!("{path}{unit}"), values.iter().map(|&(value, _)| Value::Number(value)).collect())
    })
}

/// A path without needless quotes and spaces, so that the same path is the same text.
fn canonical(path: &str) -> String {
    // What is no path the reader will refuse.
    let Some(parts) = split_path(path) else { return path.trim().to_owned() };
    let quote =
        |part: &String| if part.contains('.') { format!("\"{part}\"") } else { part.clone() };
    parts.iter().map(quote).collect::<Vec<_>>().join(".")
}

impl Grid {
    /// A grid of these.
    ///
    /// # Errors
    /// It would be too large.
    pub(crate) fn new(
        axes: Vec<Axis>,
        variants: Vec<String>,
        seeds: Option<Seeds>,
    ) -> Result<Self, String> {
        let product = |so_far: u128, axis: &Axis| so_far.saturating_mul(axis.written.len() as u128);
        let combinations = axes.iter().fold(1, product);
        let runs = combinations
            .saturating_mul(variants.len() as u128)
            .saturating_mul(seeds.as_ref().map_or(1, Seeds::count));
        if runs > MAX_RUNS {
            return Err(format!(
                "the grid has {runs} runs, more than the {MAX_RUNS} that one sweep can have; \
                    divide it into several"
            ));
        }
        Ok(Self { axes, variants, seeds, combinations: combinations as u64, runs: runs as u64 })
    }

    /// Number of runs in the grid.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Combinations of the settings' values.
    pub fn combinations(&self) -> u64 {
        self.combinations
    }

    /// Points: combinations and variants.
    pub fn points(&self) -> u64 {
        self.combinations * self.variants.len() as u64
    }

    /// Seeds of each point.
    pub fn seeds(&self) -> u64 {
        self.runs / self.points().max(1)
    }

    /// Where a run is.
    pub fn place(&self, run: u64) -> Place {
        let (point, seed) = (run / self.seeds(), run % self.seeds());
        let variants = self.variants.len() as u64;
        let seed = self.seeds.as_ref().map(|seeds| seeds.at(seed));
        Place { combination: point / variants, variant: (point % variants) as usize, seed, point }
    }

    /// For each setting, which of its values a combination has.
    pub fn choice(&self, combination: u64) -> Vec<usize> {
        let mut rest = combination;
        let mut choice: Vec<usize> = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            choice.push((rest % axis.written.len() as u64) as usize);
            rest /= axis.written.len() as u64;
        }
        choice.reverse();
        choice
    }

    /// The combination of a choice.
    pub fn combination(&self, choice: &[usize]) -> u64 {
        self.axes
            .iter()
            .zip(choice)
            .fold(0, |so_far, (axis, &value)| so_far * axis.written.len() as u64 + value as u64)
    }

    /// The settings of a combination as they were written.
    pub fn settings(&self, combination: u64) -> impl Iterator<Item = (&str, &str)> {
        let choice = self.choice(combination);
        self.axes
            .iter()
            .zip(choice)
            .map(|(axis, value)| (axis.path.as_str(), axis.written[value].as_str()))
    }

    /// The columns of the settings: each as it was written, and in base units where it has a unit.
    pub fn columns(&self) -> Vec<(&str, ColumnKind)> {
        let columns = self.axes.iter().flat_map(|axis| {
            let base = axis.base.as_ref().map(|(name, _)| (name.as_str(), ColumnKind::Number));
            std::iter::once((axis.path.as_str(), axis.kind)).chain(base)
        });
        columns.collect()
    }

    /// The values of a combination, by column.
    pub fn values(&self, combination: u64) -> Vec<&Value> {
        let values = self.axes.iter().zip(self.choice(combination)).flat_map(|(axis, value)| {
            let base = axis.base.as_ref().map(|(_, values)| &values[value]);
            std::iter::once(&axis.values[value]).chain(base)
        });
        values.collect()
    }

    /// A combination as one would type it.
    pub fn typed(&self, combination: u64) -> String {
        self.settings(combination)
            .map(|(path, value)| format!("--set {path}={value}"))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn set(path: &str, values: &str) -> (String, String) {
        (path.to_owned(), values.to_owned())
    }

    proptest! {
        /// Every combination of values, variant and seed occurs once, in the order of nested loops.
        #[test]
        fn every_combination_once_in_order(lengths in prop::collection::vec(1usize..5, 0..4), variants in 1usize..4, seeds in 1u64..5) {
            let settings: Vec<_> = lengths.iter().enumerate()
                .map(|(i, n)| set(&format!("a{i}"), &(0..*n).map(|v| format!("v{v}")).collect::<Vec<_>>().join(",")))
                .collect();
            let names: Vec<String> = (0..variants).map(|v| format!("n{v}")).collect();
            let seed_list = Seeds::parse(&format!("3..{}", 2 + seeds)).unwrap();
            let grid = Grid::new(axes(&settings).unwrap(), names, Some(seed_list)).unwrap();
            let all: Vec<(Vec<usize>, usize, u64)> = (0..grid.runs())
                .map(|run| {
                    let place = grid.place(run);
                    let choice = grid.choice(place.combination);
                    assert_eq!(grid.combination(&choice), place.combination);
                    assert_eq!(place.point, place.combination * variants as u64 + place.variant as u64);
                    (choice, place.variant, place.seed.unwrap())
                })
                .collect();
            prop_assert_eq!(all.len() as u64, lengths.iter().product::<usize>() as u64 * variants as u64 * seeds);
            prop_assert!(all.is_sorted(), "the first setting changes slowest");
            prop_assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
            for (choice, variant, seed) in &all {
                prop_assert!(choice.iter().zip(&lengths).all(|(c, n)| c < n) && *variant < variants && (3..3 + seeds).contains(seed));
            }
        }
    }

    #[test]
    fn a_path_is_set_once() {
        let fault = |settings: &[(String, String)]| axes(settings).unwrap_err();
        assert!(fault(&[set("queue.limit", "1"), set("queue.limit", "2")]).contains("already set"));
        assert!(
            fault(&[set("queue.limit", "1"), set(" queue.\"limit\"", "2")]).contains("already set")
        );
        assert!(
            fault(&[set("link.b.queue.limit", "1"), set("link.b.queue", "red")])
                .contains("shorter path first")
        );
        assert!(fault(&[set("flow", "{ packet = 500 }")]).contains("flow.KEY"));
        assert!(fault(&[set("seed", "1,2")]).contains("--seeds 1,2"));
        assert_eq!(
            axes(&[set("link.b.queue", "red"), set("link.b.queue.limit", "1")]).unwrap().len(),
            2
        );
        assert_eq!(axes(&[set("link.b", "{}"), set("link.bb", "{}")]).unwrap().len(), 2);
    }

    #[test]
    fn a_grid_too_large_is_refused_whatever_its_size() {
        let many = |n: u64| Seeds::parse(&format!("1..{n}")).unwrap();
        let grid = |seeds| {
            Grid::new(
                axes(&[set("a", "1..1000"), set("b", "1..100")]).unwrap(),
                vec![String::new()],
                Some(seeds),
            )
        };
        assert_eq!(grid(many(1000)).unwrap().runs(), 100_000_000);
        assert!(grid(many(1001)).unwrap_err().contains("100100000 runs"));
        assert!(grid(many(i64::MAX as u64)).is_err());
    }
}
