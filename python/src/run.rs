//! Runs of one scenario: its variants side by side, and what can be asked of them afterwards.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use xcp_model::Scenario;
use xcp_model::run::{Observer, Run, Series, Summary};
use xcp_model::units::Nanos;
use xcp_model::{Verdict, evaluate_variants};
use xcp_report::columns::{self, Columns};
use xcp_report::csv::Kind as TableKind;
use xcp_report::plot::{Kind, Wanted, figure};
use xcp_report::sweep::{Entry, TABLES, Tables};
use xcp_report::{Report, Source, html, json, parquet, read_back, references};

use crate::errors;
use crate::scenario::{Settings, load, load_for_kernel};
use crate::table::Table;

/// How often the interpreter is asked whether somebody pressed Ctrl-C.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// Tells how far a run is, and ends it when it is told to.
struct Watch<'a> {
    now: &'a AtomicU64,
    stop: &'a AtomicBool,
}

impl Observer for Watch<'_> {
    fn progress(&mut self, now: Nanos) -> ControlFlow<()> {
        self.now.store(now, Ordering::Relaxed);
        if self.stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Runs the variants of a scenario, at most `jobs` at a time. `progress` is called with the part
/// that is done, from 0 to 1.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python's run has named ones")]
pub fn run(
    py: Python<'_>,
    name: &str,
    text: &str,
    settings: Settings,
    variants: Vec<String>,
    series: bool,
    threads: usize,
    jobs: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Runs> {
    let mut loaded = load(name, text, settings, &variants)?;
    xcp_scenario::keep_series(&mut loaded, series);
    let jobs =
        xcp_sweep::memory::fitting(&loaded, jobs.min(loaded.len())).map_err(errors::scenario)?;
    let scenarios: Vec<Scenario> = loaded.into_iter().map(|one| one.scenario).collect();
    let runs = py.detach(|| simulate(&scenarios, threads, jobs, progress.as_ref()))?;
    let source = Source { name: name.to_owned(), text: text.to_owned() };
    Ok(Runs { runs, scenarios, source })
}

fn simulate(
    scenarios: &[Scenario],
    threads: usize,
    jobs: usize,
    progress: Option<&Py<PyAny>>,
) -> PyResult<Vec<Run>> {
    let all: f64 = scenarios.iter().map(|s| s.duration as f64).sum();
    let now: Vec<AtomicU64> = scenarios.iter().map(|_| AtomicU64::new(0)).collect();
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut runs: Vec<Option<Run>> = scenarios.iter().map(|_| None).collect();
    let tick = || {
        Python::attach(|py| {
            py.check_signals()?;
            let Some(progress) = progress else { return Ok(()) };
            let done: u64 = now.iter().map(|now| now.load(Ordering::Relaxed)).sum();
            progress.call1(py, ((done as f64 / all.max(1.0)).min(1.0),)).map(drop)
        })
    };
    let (sender, results) = channel();
    thread::scope(|scope| {
        for _ in 0..jobs {
            let (sender, next, stop, now) = (sender.clone(), &next, &stop, &now);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(scenario) = scenarios.get(at) else { return };
                    let mut watch = Watch { now: &now[at], stop };
                    let run = xcp_sim::simulate_on(scenario, threads, &mut watch);
                    now[at].store(scenario.duration, Ordering::Relaxed);
                    if sender.send((at, run)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let outcome = loop {
            match results.recv_timeout(ASK_EVERY) {
                Ok((at, Ok(run))) => runs[at] = Some(run),
                Ok((_, Err(e))) => break Err(errors::other(e)),
                Err(RecvTimeoutError::Timeout) => {}
                // What was pressed at the very end is for whoever comes next.
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            }
            if let Err(e) = tick() {
                break Err(e);
            }
        };
        stop.store(true, Ordering::Relaxed);
        outcome
    })?;
    Ok(runs.into_iter().flatten().collect())
}

/// The series in a file of theirs.
fn series_of(file: Vec<u8>, kind: TableKind) -> PyResult<Vec<Series>> {
    Ok(read_back::series(&columns::read(bytes::Bytes::from(file))?, kind)?)
}

/// Runs of one file, one for each variant.
#[pyclass(frozen, module = "xcpnet")]
pub struct Runs {
    runs: Vec<Run>,
    scenarios: Vec<Scenario>,
    source: Source,
}

impl Runs {
    fn verdicts(&self) -> Vec<Vec<Verdict>> {
        evaluate_variants(&self.scenarios, &self.runs)
    }
}

#[pymethods]
impl Runs {
    /// Runs that `xcpnet run --on linux` did: for each variant the line of `--json`, and of
    /// `--parquet` the series of links and of flows.
    #[staticmethod]
    fn done_by_lab(
        name: &str,
        text: &str,
        settings: Settings,
        variants: Vec<String>,
        series: bool,
        done: Vec<(String, Vec<u8>, Vec<u8>)>,
    ) -> PyResult<Self> {
        let mut loaded = load_for_kernel(name, text, settings, &variants)?;
        xcp_scenario::keep_series(&mut loaded, series);
        let scenarios: Vec<Scenario> = loaded.into_iter().map(|one| one.scenario).collect();
        let mut runs = Vec::new();
        for (scenario, (line, links, flows)) in scenarios.iter().zip(done) {
            let summary: Summary = serde_json::from_str(&line).map_err(errors::other)?;
            let mut series = Vec::new();
            if scenario.series {
                series.extend(series_of(links, TableKind::Links)?);
                series.extend(series_of(flows, TableKind::Flows)?);
            }
            runs.push(Run {
                title: summary.title.clone(),
                variant: summary.variant.clone(),
                completed: scenario.duration,
                duration: scenario.duration,
                summary,
                series,
            });
        }
        let source = Source { name: name.to_owned(), text: text.to_owned() };
        Ok(Self { runs, scenarios, source })
    }

    /// The variants' names.
    #[getter]
    fn variants(&self) -> Vec<&str> {
        self.runs.iter().map(|run| run.variant.as_str()).collect()
    }

    /// The runs' title.
    #[getter]
    fn title(&self) -> &str {
        self.runs.first().map_or("", |run| &run.title)
    }

    /// One of them by itself.
    fn only(&self, index: usize) -> PyResult<Self> {
        let (Some(run), Some(scenario)) = (self.runs.get(index), self.scenarios.get(index)) else {
            return Err(PyIndexError::new_err("there is no such run"));
        };
        Ok(Self {
            runs: vec![run.clone()],
            scenarios: vec![scenario.clone()],
            source: self.source.clone(),
        })
    }

    /// What `xcpnet run --json` prints.
    fn json(&self) -> PyResult<String> {
        let mut out = Vec::new();
        json::write(&self.runs, &mut out)?;
        String::from_utf8(out).map_err(errors::other)
    }

    /// One of the tables that a sweep writes.
    fn table(&self, table: &str) -> PyResult<Table> {
        let Some(at) = TABLES.iter().position(|name| *name == table) else {
            return Err(PyValueError::new_err(format!("there are {}", TABLES.join(", "))));
        };
        let mut bytes: [Vec<u8>; 4] = Default::default();
        let mut tables = Tables::new(&[], &[], bytes.each_mut())?;
        for (number, run) in (0..).zip(&self.runs) {
            tables.add(&Entry {
                run: number,
                settings: Vec::new(),
                completed: run.completed,
                summary: &run.summary,
            })?;
        }
        tables.finish()?;
        let [runs, links, flows, groups] = bytes;
        let one = [runs, links, flows, groups].into_iter().nth(at).unwrap_or_default();
        Ok(Table::new(columns::read(bytes::Bytes::from(one))?))
    }

    /// The series of a run: of its `links` or its `flows`.
    fn series(&self, index: usize, of: &str) -> PyResult<Table> {
        let kind = match of {
            "links" => TableKind::Links,
            "flows" => TableKind::Flows,
            _ => return Err(PyValueError::new_err("there are series of links and of flows")),
        };
        let Some(run) = self.runs.get(index) else {
            return Err(PyIndexError::new_err("there is no such run"));
        };
        if run.series.is_empty() {
            return Ok(Table::new(Columns::default()));
        }
        let mut bytes = Vec::new();
        parquet::write(run, kind, &[], &mut bytes)?;
        Ok(Table::new(columns::read(bytes::Bytes::from(bytes))?))
    }

    /// A figure as SVG, as `xcpnet plot` draws it.
    fn svg(&self, kind: &str, quantity: Option<&str>, link: Option<&str>) -> PyResult<String> {
        let kind = match kind {
            "series" => Kind::Series,
            "cdf" => Kind::Cdf,
            "completion" => Kind::Completion,
            "delay" => Kind::Delay,
            _ => {
                let what = "there are the figures series, cdf, completion and delay";
                return Err(PyValueError::new_err(what));
            }
        };
        let wanted = Wanted { kind, quantity, link };
        figure(&self.runs, &self.scenarios, &wanted)
            .map(|figure| figure.svg())
            .map_err(|e| PyValueError::new_err(e.to_string()))
    }

    /// The report, as one page of HTML.
    fn html(&self) -> String {
        let verdicts = self.verdicts();
        let report = Report {
            runs: &self.runs,
            scenarios: &self.scenarios,
            sources: std::slice::from_ref(&self.source),
            verdicts: &verdicts,
            references: &references(&self.scenarios),
            command: "",
            playgrounds: &[],
            version: env!("CARGO_PKG_VERSION"),
        };
        html(&report)
    }

    /// What came of the file's expectations, as JSON: an object for each.
    fn expect(&self) -> Vec<String> {
        let all = self.runs.iter().zip(self.verdicts());
        let one = |(run, verdicts): (&Run, Vec<Verdict>)| {
            let variant = run.variant.clone();
            verdicts.into_iter().map(move |v| {
                let (from, to) = (v.period.from as f64 / 1e9, v.period.to as f64 / 1e9);
                serde_json::json!({
                    "variant": variant, "claim": v.claim, "metric": v.metric,
                    "measured": v.measured, "min": v.min, "max": v.max, "inside": v.inside,
                    "from_s": from, "to_s": to,
                })
                .to_string()
            })
        };
        all.flat_map(one).collect()
    }
}
