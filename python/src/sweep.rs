//! Sweeps in shards: the plan of one, and the work of a shard. Where shards go, and who does which,
//! is Python's.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use xcp_sweep::compute::{Failed, Manner, Shard, compute, marker, part};
use xcp_sweep::manifest::{Manifest, Shards};
use xcp_sweep::merge::merge;
use xcp_sweep::work::Tally;
use xcp_sweep::{Error, Sweep, directory};

use crate::errors;

/// Work of this process that nobody wants any more, by the number it was begun with.
static CANCELLED: Mutex<Option<HashSet<u64>>> = Mutex::new(None);

/// Ends what was begun with this number in this process, whatever thread it is in.
#[pyfunction]
pub fn cancel(token: u64) {
    let mut cancelled = CANCELLED.lock().unwrap_or_else(PoisonError::into_inner);
    cancelled.get_or_insert_default().insert(token);
}

fn is_cancelled(token: u64) -> bool {
    let cancelled = CANCELLED.lock().unwrap_or_else(PoisonError::into_inner);
    cancelled.as_ref().is_some_and(|all| all.contains(&token))
}

/// A sweep cut into shards, which count from 0.
#[pyclass(frozen, module = "xcpnet")]
pub struct Plan {
    manifest: Manifest,
}

/// Runs that failed and why.
type Failures = Vec<(u64, String)>;

/// Names and what is to be stored under them.
type Objects = Vec<(String, Py<PyBytes>)>;

fn failures(failed: Vec<Failed>) -> Failures {
    failed.into_iter().map(|failed| (failed.run, failed.error)).collect()
}

impl Plan {
    /// Does a shard, without the interpreter's lock.
    fn compute(&self, shard: u64, jobs: usize, keep_failed: bool, token: u64) -> PyResult<Shard> {
        let sweep = self.manifest.to_do().map_err(errors::sweep)?;
        let stop = AtomicBool::new(false);
        let mut pressed = None;
        let mut tick = |_: &Tally| {
            if let Err(e) = Python::attach(|py| py.check_signals()) {
                pressed = Some(e);
                stop.store(true, Ordering::Relaxed);
                return Err(Error::interrupted("interrupted"));
            }
            if is_cancelled(token) {
                stop.store(true, Ordering::Relaxed);
                return Err(Error::interrupted("cancelled"));
            }
            Ok(())
        };
        let asked = || stop.load(Ordering::Relaxed);
        let manner = Manner { jobs, keep_failed, asked: &asked };
        let done = compute(&self.manifest, &sweep, shard, &manner, &mut tick);
        // What a handler of signals raised goes on to whoever waits for it.
        match (done, pressed) {
            (_, Some(raised)) => Err(raised),
            (done, None) => done.map_err(errors::sweep),
        }
    }
}

#[pymethods]
impl Plan {
    /// Cuts a sweep into so many shards, or into shards of so many seconds; with `check` what is
    /// wrong with its scenarios is told first.
    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "Python's sweep has named ones")]
    fn make(
        py: Python<'_>,
        name: &str,
        text: &str,
        settings: Vec<(String, Vec<String>)>,
        seeds: Option<&str>,
        variants: Vec<String>,
        number: Option<u64>,
        seconds: f64,
        check: bool,
    ) -> PyResult<Self> {
        let shards = number.map_or(Shards::Seconds(seconds), Shards::Number);
        py.detach(|| {
            let sweep = Sweep::of_values(Path::new(name), text, &settings, seeds, &variants)?;
            if check {
                let jobs = std::thread::available_parallelism().map_or(1, usize::from);
                sweep.scenarios().check(jobs)?;
            }
            Ok(Self { manifest: Manifest::new(&sweep, shards)? })
        })
        .map_err(errors::sweep)
    }

    /// Reads what `text` gave.
    #[staticmethod]
    fn read(text: &str) -> PyResult<Self> {
        Ok(Self { manifest: Manifest::read(text).map_err(errors::sweep)? })
    }

    /// As it is kept.
    fn text(&self) -> String {
        self.manifest.text()
    }

    /// Tells plans apart.
    #[getter]
    fn digest(&self) -> &str {
        &self.manifest.digest
    }

    /// How many shards there are.
    #[getter]
    fn shards(&self) -> u64 {
        self.manifest.shards()
    }

    /// How many runs there are.
    #[getter]
    fn runs(&self) -> u64 {
        self.manifest.sweep.runs
    }

    /// The first run of a shard, and the one behind its last.
    fn bounds(&self, shard: u64) -> PyResult<(u64, u64)> {
        let runs = self.manifest.runs(shard).map_err(errors::sweep)?;
        Ok((runs.start, runs.end))
    }

    /// Whether another plan is of the same sweep, however that is cut.
    fn same_sweep(&self, other: &Self) -> bool {
        self.manifest.sweep == other.manifest.sweep
    }

    /// Refuses another plan that was found in a place.
    fn refuse_other(&self, there: &Self, place: &str) -> PyResult<()> {
        self.manifest.same_as(&there.manifest, place).map_err(errors::sweep)
    }

    /// Refuses plans of other builds.
    fn refuse_other_build(&self) -> PyResult<()> {
        self.manifest.to_do().map(drop).map_err(errors::sweep)
    }

    /// Name of a shard's marker.
    #[staticmethod]
    fn marker(shard: u64) -> String {
        marker(shard)
    }

    /// Name of a shard's part of a table.
    #[staticmethod]
    fn part(table: &str, shard: u64) -> String {
        part(table, shard)
    }

    /// Runs that failed, by what a marker says.
    fn failed(&self, shard: u64, marker: &[u8]) -> PyResult<Failures> {
        let read = directory::read_marker(&self.manifest, shard, marker).map_err(errors::sweep)?;
        Ok(failures(read.failed))
    }

    /// Does a shard: what is to be stored, the marker last; how many runs were done, and which
    /// failed.
    fn shard(
        &self,
        py: Python<'_>,
        shard: u64,
        jobs: usize,
        keep_failed: bool,
        token: u64,
    ) -> PyResult<(Objects, u64, Failures)> {
        let done = py.detach(|| self.compute(shard, jobs, keep_failed, token))?;
        let objects = done.parts.into_iter().chain([done.marker]);
        let objects = objects.map(|object| (object.name, PyBytes::new(py, &object.bytes).unbind()));
        Ok((objects.collect(), done.runs, failures(done.failed)))
    }

    /// Does a shard and stores it in a directory.
    fn shard_into(
        &self,
        py: Python<'_>,
        dir: &str,
        shard: u64,
        jobs: usize,
        keep_failed: bool,
        token: u64,
    ) -> PyResult<(u64, Failures)> {
        py.detach(|| {
            let done = self.compute(shard, jobs, keep_failed, token)?;
            directory::store(Path::new(dir), &done).map_err(errors::sweep)?;
            Ok((done.runs, failures(done.failed)))
        })
    }

    /// Puts the plan into a directory, or finds that it is there.
    fn begin(&self, dir: &str) -> PyResult<()> {
        directory::begin(Path::new(dir), &self.manifest).map_err(errors::sweep)
    }

    /// Takes away what killed workers left in a directory.
    #[staticmethod]
    fn tidy(dir: &str) -> PyResult<()> {
        directory::tidy(Path::new(dir)).map_err(errors::sweep)
    }

    /// Writes the tables into a directory. `has` and `fetch` say what is stored under a name.
    fn merge(
        &self,
        dir: &str,
        without_failed: bool,
        has: &Bound<'_, PyAny>,
        fetch: &Bound<'_, PyAny>,
    ) -> PyResult<Failures> {
        let raised = std::cell::RefCell::new(None);
        let keep = |e: PyErr| {
            let error = Error::system(&e);
            *raised.borrow_mut() = Some(e);
            error
        };
        let mut has = |name: &str| has.call1((name,)).and_then(|r| r.extract()).map_err(keep);
        let mut fetch =
            |name: &str| fetch.call1((name,)).and_then(|r| r.extract::<Vec<u8>>()).map_err(keep);
        let merged = merge(&self.manifest, Path::new(dir), without_failed, &mut has, &mut fetch);
        match (merged, raised.into_inner()) {
            (_, Some(raised)) => Err(raised),
            (merged, None) => Ok(failures(merged.map_err(errors::sweep)?)),
        }
    }
}
