//! The scenarios of a grid, read when they are needed, each for its run: what a file says of
//! arrivals and sizes is drawn from the seed while it is read. Also finds what is wrong with a grid
//! before anything runs.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use xcp_model::Scenario;
use xcp_model::packet_hops;
use xcp_scenario::{Loaded, Overrides, check, footprint, load_with_origins};
use xcp_sim::SimError;

use crate::error::Error;
use crate::grid::{Grid, Place};
use crate::memory;

/// Up to this many combinations and seeds are all read before anything runs; of more, each value
/// once with the first seed, and this many seeds with the first value of each setting.
const ALL_CHECKED: u64 = 512;

/// A scenario and how much memory it takes to run.
pub struct Ready {
    /// Scenario of the run.
    pub scenario: Scenario,
    /// Upper bound of its memory, bytes.
    pub bytes: u128,
}

/// Reads the scenarios of a grid.
pub struct Scenarios<'a> {
    path: &'a Path,
    text: &'a str,
    grid: &'a Grid,
    /// Memory a run may take.
    available: Option<u64>,
}

impl<'a> Scenarios<'a> {
    /// Those of a file's text over a grid.
    pub fn new(path: &'a Path, text: &'a str, grid: &'a Grid) -> Self {
        Self { path, text, grid, available: memory::available() }
    }

    /// Memory all runs together may take, if that is known.
    pub fn available(&self) -> Option<u64> {
        self.available
    }

    /// The scenario of a run.
    ///
    /// # Errors
    /// What is wrong with it, and which combination it is of.
    pub fn read(&self, place: Place) -> Result<Ready, Error> {
        // All variants: a setting has to mean something in one of them, not in each.
        let mut read = self.load(place.combination, place.seed)?;
        Ok(read.swap_remove(place.variant))
    }

    /// The variants of a combination with a seed, the file's own if absent.
    fn load(&self, number: u64, seed: Option<u64>) -> Result<Vec<Ready>, Error> {
        let told = |e: xcp_scenario::ScenarioError| {
            Error::scenario(self.blame(number, &e.to_string()), e.problems().to_vec())
        };
        let settings = self
            .grid
            .settings(number)
            .map(|(path, value)| (path.to_owned(), value.to_owned()))
            .collect();
        let mut loaded = self.loaded(settings, seed).map_err(told)?;
        loaded.iter_mut().for_each(|one| one.scenario.series = false);
        if let Some(available) = self.available {
            loaded
                .iter()
                .try_for_each(|one| check(&one.scenario, &one.origins, available).map(drop))
                .map_err(told)?;
        }
        for link in loaded.iter().flat_map(|one| &one.scenario.links) {
            for direction in &link.directions {
                let built = xcp_sim::queue::Queue::new(direction, 0, 0);
                built.map_err(|reason| {
                    let law = SimError::Law { link: link.name.clone(), reason };
                    Error::refused(self.blame(number, &format!("error: {law}")))
                })?;
            }
        }
        Ok(loaded
            .into_iter()
            .map(|l| Ready { bytes: footprint(&l.scenario).bytes, scenario: l.scenario })
            .collect())
    }

    fn loaded(
        &self,
        settings: Vec<(String, String)>,
        seed: Option<u64>,
    ) -> Result<Vec<Loaded>, xcp_scenario::ScenarioError> {
        let mut overrides =
            Overrides { settings, variants: self.grid.variants.clone(), ..Overrides::none() };
        if let Some(seed) = seed {
            overrides = overrides.with("seed", seed.to_string());
        }
        load_with_origins(self.path, self.text, &overrides)
    }

    /// An error, with the combination it occurs in.
    pub fn blame(&self, number: u64, error: &str) -> String {
        let error = error.trim_end();
        if self.grid.axes.is_empty() {
            error.to_owned()
        } else {
            format!("{error}\n  in the combination {}", self.grid.typed(number))
        }
    }

    /// Reads every combination, or of a large grid every value, to find what is wrong before
    /// anything runs.
    ///
    /// # Errors
    /// The first in the order of the grid.
    pub fn check(&self, jobs: usize) -> Result<(), Error> {
        // What is wrong without any setting is not the settings' fault, unless they mend it.
        let without = self.loaded(Vec::new(), None).err();
        let numbers = self.to_check();
        let next = AtomicUsize::new(0);
        let first: Mutex<Option<(usize, Error)>> = Mutex::new(None);
        thread::scope(|scope| {
            for _ in 0..jobs.clamp(1, numbers.len()) {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(&(number, seed)) = numbers.get(at) else { return };
                        if let Err(error) = self.load(number, seed) {
                            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                            if first.as_ref().is_none_or(|(before, _)| at < *before) {
                                *first = Some((at, error));
                            }
                            // Those before it are being read already.
                            next.store(numbers.len(), Ordering::Relaxed);
                            return;
                        }
                    }
                });
            }
        });
        match (first.into_inner().unwrap_or_else(PoisonError::into_inner), without) {
            (None, _) => Ok(()),
            (Some((_, error)), Some(plain))
                if error.to_string().starts_with(plain.to_string().trim_end()) =>
            {
                Err(plain.into())
            }
            (Some((_, error)), _) => Err(error),
        }
    }

    /// The work of a run in each of so many stretches of the grid at most, equally long but for the
    /// last: how many runs a stretch has, and packets times links of one of them on the average of
    /// its variants (an estimate). A combination that cannot be read is no work; that it cannot is
    /// told when its turn comes.
    #[must_use]
    pub fn work(&self, stretches: u64) -> Vec<(u64, f64)> {
        let (combinations, runs) = (self.grid.combinations(), self.grid.runs());
        let each = combinations.div_ceil(stretches.clamp(1, combinations.max(1)));
        let runs_each = each * (runs / combinations.max(1));
        let first = self.grid.seeds.as_ref().map(|seeds| seeds.at(0));
        let stretch = |number: u64| {
            let mean = |read: Vec<Ready>| {
                let work: f64 = read.iter().map(|one| packet_hops(&one.scenario)).sum();
                work / read.len() as f64
            };
            let begun = number / each * runs_each;
            (runs_each.min(runs - begun), self.load(number, first).map_or(0.0, mean))
        };
        (0..combinations).step_by(each as usize).map(stretch).collect()
    }

    /// The combinations and seeds to be read beforehand, in the order of the grid.
    fn to_check(&self) -> Vec<(u64, Option<u64>)> {
        let seed = |number: u64| self.grid.seeds.as_ref().map(|seeds| seeds.at(number));
        let (combinations, seeds) = (self.grid.combinations(), self.grid.seeds());
        if combinations.saturating_mul(seeds) <= ALL_CHECKED {
            return (0..combinations)
                .flat_map(|number| (0..seeds).map(move |s| (number, s)))
                .map(|(number, s)| (number, seed(s)))
                .collect();
        }
        let mut numbers: Vec<(u64, u64)> =
            (0..seeds.min(ALL_CHECKED)).map(|seed| (0, seed)).collect();
        if combinations <= ALL_CHECKED {
            numbers.extend((1..combinations).map(|number| (number, 0)));
        } else {
            let mut choice = vec![0; self.grid.axes.len()];
            for (i, axis) in self.grid.axes.iter().enumerate() {
                for value in 1..axis.written.len() {
                    choice[i] = value;
                    numbers.push((self.grid.combination(&choice), 0));
                }
                choice[i] = 0;
            }
        }
        numbers.sort_unstable();
        numbers.into_iter().map(|(number, s)| (number, seed(s))).collect()
    }
}
