//! The scenarios of a grid, read when they are needed: a combination of settings is read once for all its variants and seeds, and forgotten when
//! its last run has begun. Also finds what is wrong with a grid before anything runs.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use xcp_scenario::model::Scenario;
use xcp_scenario::{Loaded, Overrides, check, footprint, load_with_origins};
use xcp_sim::SimError;

use crate::failure::Failure;
use crate::memory;
use crate::sweep::grid::Grid;

/// Up to this many combinations are all read before anything runs; of more, each value once.
const ALL_CHECKED: u64 = 512;

/// A scenario and how much memory it takes to run.
pub struct Ready {
    pub scenario: Scenario,
    pub bytes: u128,
}

/// The scenarios of a combination, one for each variant.
type Combination = Result<Vec<Ready>, String>;

/// A combination that is read by the first who needs it.
type Shared = Arc<OnceLock<Combination>>;

/// Reads the scenarios of a grid.
pub struct Scenarios<'a> {
    path: &'a Path,
    text: &'a str,
    grid: &'a Grid,
    /// Memory a run may take.
    available: Option<u64>,
    /// The newest combination. Runs begin in the order of the grid, so that no older one is asked for again.
    newest: Mutex<(u64, Shared)>,
}

impl<'a> Scenarios<'a> {
    /// Those of a file's text over a grid.
    pub fn new(path: &'a Path, text: &'a str, grid: &'a Grid) -> Self {
        let none = (u64::MAX, Arc::default());
        Self { path, text, grid, available: memory::available(), newest: Mutex::new(none) }
    }

    /// Memory all runs together may take, if that is known.
    pub fn available(&self) -> Option<u64> {
        self.available
    }

    /// A combination, to be read by [`Scenarios::read`]. To be asked for in the order of the grid.
    pub fn combination(&self, number: u64) -> Shared {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        if newest.0 != number {
            *newest = (number, Arc::default());
        }
        newest.1.clone()
    }

    /// The scenarios of a combination, in the order of the variants.
    ///
    /// # Errors
    /// What is wrong with them, and which combination it is.
    pub fn read<'c>(&self, number: u64, combination: &'c Shared) -> Result<&'c [Ready], Failure> {
        let read = combination.get_or_init(|| self.load(number));
        read.as_deref().map_err(Failure::new)
    }

    fn load(&self, number: u64) -> Combination {
        let told = |e: xcp_scenario::ScenarioError| self.blame(number, &e.to_string());
        let settings = self.grid.settings(number).map(|(path, value)| (path.to_owned(), value.to_owned())).collect();
        let loaded = self.loaded(settings).map_err(told)?;
        if let Some(available) = self.available {
            loaded.iter().try_for_each(|one| check(&one.scenario, &one.origins, available).map(drop)).map_err(told)?;
        }
        for link in loaded.iter().flat_map(|one| &one.scenario.links) {
            for direction in &link.directions {
                let built = xcp_sim::queue::Queue::new(direction, 0, 0);
                built.map_err(|reason| self.blame(number, &format!("error: {}", SimError::Law { link: link.name.clone(), reason })))?;
            }
        }
        Ok(loaded.into_iter().map(|l| Ready { bytes: footprint(&l.scenario).bytes, scenario: l.scenario }).collect())
    }

    fn loaded(&self, settings: Vec<(String, String)>) -> Result<Vec<Loaded>, xcp_scenario::ScenarioError> {
        load_with_origins(self.path, self.text, &Overrides { settings, variants: self.grid.variants.clone(), ..Overrides::none() })
    }

    /// An error, with the combination it occurs in.
    pub fn blame(&self, number: u64, error: &str) -> String {
        let error = error.trim_end();
        if self.grid.axes.is_empty() { error.to_owned() } else { format!("{error}\n  in the combination {}", self.grid.typed(number)) }
    }

    /// Reads every combination, or of a large grid every value, to find what is wrong before anything runs.
    ///
    /// # Errors
    /// The first in the order of the grid.
    pub fn check(&self, jobs: usize) -> Result<(), Failure> {
        // What is wrong without any setting is not the settings' fault, unless they mend it.
        let without = self.loaded(Vec::new()).err().map(|e| e.to_string());
        let numbers = self.to_check();
        let next = AtomicUsize::new(0);
        let first: Mutex<Option<(usize, String)>> = Mutex::new(None);
        thread::scope(|scope| {
            for _ in 0..jobs.clamp(1, numbers.len()) {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(&number) = numbers.get(at) else { return };
                        if let Err(message) = self.load(number) {
                            let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                            if first.as_ref().is_none_or(|(before, _)| at < *before) {
                                *first = Some((at, message));
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
            (Some((_, message)), Some(plain)) if message.starts_with(plain.trim_end()) => Err(Failure::new(plain)),
            (Some((_, message)), _) => Err(Failure::new(message)),
        }
    }

    /// The combinations to be read beforehand, ascending.
    fn to_check(&self) -> Vec<u64> {
        if self.grid.combinations() <= ALL_CHECKED {
            return (0..self.grid.combinations()).collect();
        }
        let mut numbers = vec![0];
        let mut choice = vec![0; self.grid.axes.len()];
        for (i, axis) in self.grid.axes.iter().enumerate() {
            for value in 1..axis.written.len() {
                choice[i] = value;
                numbers.push(self.grid.combination(&choice));
            }
            choice[i] = 0;
        }
        numbers.sort_unstable();
        numbers
    }
}
