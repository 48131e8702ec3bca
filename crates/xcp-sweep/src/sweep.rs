//! A sweep: a scenario's text and a grid over it, and what says which sweep it is.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xcp_law::list;
use xcp_report::parquet::Said;
use xcp_scenario::variant_names;

use crate::BUILD;
use crate::error::Error;
use crate::grid::{self, Grid};
use crate::scenarios::Scenarios;
use crate::seeds::Seeds;

/// What a sweep is: two are the same if and only if all of this is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// Version of the program.
    pub program: String,
    /// Tells apart builds of a version.
    pub build: String,
    /// The scenario's title where the file gives none.
    pub name: String,
    /// Paths of the settings and their values, as written.
    pub settings: Vec<(String, Vec<String>)>,
    /// Names of the variants.
    pub variants: Vec<String>,
    /// As written on the command line; the file's own if absent.
    pub seeds: Option<String>,
    /// Number of runs.
    pub runs: u64,
    /// Text of the scenario file.
    pub scenario: String,
}

impl Description {
    /// What is different in another sweep, in words; empty if nothing is.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<&'static str> {
        let pairs = [
            (
                self.scenario != other.scenario || self.name != other.name,
                "another scenario file, or the file was changed",
            ),
            (self.settings != other.settings, "other --set"),
            (self.variants != other.variants, "other variants"),
            (self.seeds != other.seeds, "other --seeds"),
            (
                self.program != other.program || self.build != other.build,
                "another build of xcpnet, whose numbers may differ",
            ),
        ];
        pairs.into_iter().filter(|(differ, _)| *differ).map(|(_, what)| what).collect()
    }

    /// What the sweep's Parquet files say of themselves: all that is needed to make them again.
    #[must_use]
    pub fn metadata(&self) -> Vec<Said> {
        let settings =
            self.settings.iter().map(|(path, values)| (path.clone(), values.clone().into()));
        vec![
            ("xcpnet.program", self.program.clone()),
            ("xcpnet.build", self.build.clone()),
            ("xcpnet.scenario", self.scenario.clone()),
            ("xcpnet.settings", serde_json::Value::Object(settings.collect()).to_string()),
            ("xcpnet.seeds", self.seeds.clone().unwrap_or_default()),
        ]
    }
}

/// A scenario and a grid over it.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Grid of its runs.
    pub grid: Grid,
    /// Which sweep it is.
    pub description: Description,
    /// The scenario file, for messages and for the title it has by its name.
    path: PathBuf,
}

impl Sweep {
    /// A file's text over the settings' values, as they are typed (`0,150`, `1..8`), over seeds as
    /// they are typed, and over those of its variants that are named; over all if none is.
    ///
    /// # Errors
    /// What is typed wrongly, and what would be right.
    pub fn typed(
        path: &Path,
        text: &str,
        settings: &[(String, String)],
        seeds: Option<&str>,
        variants: &[String],
    ) -> Result<Self, Error> {
        Self::new(path, text, grid::axes(settings), seeds, variants)
    }

    /// The same over lists of values.
    ///
    /// # Errors
    /// As [`Sweep::typed`].
    pub fn of_values(
        path: &Path,
        text: &str,
        settings: &[(String, Vec<String>)],
        seeds: Option<&str>,
        variants: &[String],
    ) -> Result<Self, Error> {
        for (path, values) in settings {
            list::distinct(values)
                .map_err(|what| Error::refused(format!("the setting {path}: {what}")))?;
        }
        Self::new(path, text, grid::axes_of(settings), seeds, variants)
    }

    /// The one that was described.
    ///
    /// # Errors
    /// What is wrong in the description.
    pub fn described(description: &Description) -> Result<Self, Error> {
        let path = PathBuf::from(format!("{}.toml", description.name));
        let seeds = description.seeds.as_deref();
        let (text, settings) = (&description.scenario, &description.settings);
        let mut again = Self::of_values(&path, text, settings, seeds, &description.variants)?;
        again.description.program.clone_from(&description.program);
        again.description.build.clone_from(&description.build);
        if again.description != *description {
            return Err(Error::refused("the description of the sweep contradicts itself"));
        }
        Ok(again)
    }

    fn new(
        path: &Path,
        text: &str,
        axes: Result<Vec<grid::Axis>, String>,
        seeds: Option<&str>,
        variants: &[String],
    ) -> Result<Self, Error> {
        let axes = axes.map_err(Error::refused)?;
        let seeds = seeds
            .map(Seeds::parse)
            .transpose()
            .map_err(|e| Error::refused(format!("--seeds: {e}")))?;
        let mut chosen = chosen_variants(path, text, variants)?;
        if chosen.is_empty() {
            // The text is not even TOML; reading it will say so.
            chosen.push(String::new());
        }
        let grid = Grid::new(axes, chosen, seeds).map_err(Error::refused)?;
        let description = Description {
            program: format!("xcpnet {}", env!("CARGO_PKG_VERSION")),
            build: BUILD.to_owned(),
            name: stem(path),
            settings: grid
                .axes
                .iter()
                .map(|axis| (axis.path.clone(), axis.written.clone()))
                .collect(),
            variants: grid.variants.clone(),
            seeds: grid.seeds.as_ref().map(Seeds::to_string),
            runs: grid.runs(),
            scenario: text.to_owned(),
        };
        Ok(Self { grid, description, path: path.to_owned() })
    }

    /// The scenarios of its runs.
    #[must_use]
    pub fn scenarios(&self) -> Scenarios<'_> {
        Scenarios::new(&self.path, &self.description.scenario, &self.grid)
    }

    /// Title of the scenario.
    #[must_use]
    pub fn title(&self) -> String {
        let overrides = xcp_scenario::Overrides::none();
        xcp_scenario::load(&self.path, &self.description.scenario, &overrides)
            .ok()
            .and_then(|list| list.into_iter().next())
            .map_or_else(|| self.description.name.clone(), |scenario| scenario.title)
    }
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Those of a file's variants that were asked for, all if none were, in the file's order.
///
/// # Errors
/// A name that the file lacks.
pub fn chosen_variants(path: &Path, text: &str, wanted: &[String]) -> Result<Vec<String>, Error> {
    let names = variant_names(text);
    // What describes a file without variants names the empty one.
    let missing = |w: &&String| !names.is_empty() && !names.contains(w);
    if let Some(absent) = wanted.iter().find(missing) {
        let there = if names == [""] {
            "it has no variants; leave out --variant".to_owned()
        } else {
            format!("it has \"{}\"", names.join("\", \""))
        };
        return Err(Error::refused(format!(
            "{} has no variant \"{absent}\": {there}",
            path.display()
        )));
    }
    Ok(names.into_iter().filter(|name| wanted.is_empty() || wanted.contains(name)).collect())
}
