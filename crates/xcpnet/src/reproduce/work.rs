//! From experiments to runs: what is to be run of each figure, what it costs, and the running,
//! longest first, with what the cache has.

use std::num::NonZeroUsize;
use std::path::Path;

use xcp_model::Scenario;
use xcp_model::packet_hops;
use xcp_model::run::{Observer, Run};
use xcp_report::papers::situation::Situation;
use xcp_scenario::{Loaded, Overrides, load_with_origins, plan};
use xcp_sweep::chosen_variants;

use crate::batch;
use crate::cli::Backend;
use crate::experiments::Experiment;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::reproduce::cache::{Cache, Key};

/// Packets over links that a processor simulates in a second, roughly: for telling what figures
/// cost.
const HOPS_PER_SECOND: f64 = 1e7;
/// A figure whose file says nothing of `--quick` is run whole, with one seed, if it costs no more
/// than this, and else left out.
const QUICK_SECONDS: f64 = 2.0;
/// What a run from the cache costs beside one that is simulated.
const CACHED: f64 = 0.01;

/// A figure and what is to be run of it.
pub struct Figure {
    /// Its file.
    pub experiment: Experiment,
    /// Runs: all seeds of the first variant, all of the second, ...
    pub runs: Vec<Planned>,
    /// Seeds of each variant; at least 1.
    pub seeds: usize,
    /// Whether `--quick` leaves it out.
    pub left_out: bool,
}

/// A run to be made.
pub struct Planned {
    /// What is run.
    pub scenario: Scenario,
    /// Estimated seconds of a processor.
    pub seconds: f64,
    key: Option<Key>,
    /// Whether the cache seems to have it.
    pub cached: bool,
}

impl Figure {
    /// Seconds of a processor that all of it takes, what is in the cache not counted.
    pub fn seconds(&self) -> f64 {
        self.runs.iter().filter(|r| !r.cached).map(|r| r.seconds).sum()
    }

    /// Claims that are judged, each once for each variant it speaks of.
    pub fn claims(&self) -> usize {
        self.runs.iter().step_by(self.seeds).map(|r| r.scenario.expectations.len()).sum()
    }

    /// What it is as a row of a table.
    pub fn situation(&self) -> Situation {
        let description = self.runs.first().map_or("", |r| &r.scenario.description);
        Situation::new(self.experiment.name(), self.title().to_owned(), description)
    }

    /// What it is about.
    pub fn title(&self) -> &str {
        self.runs.first().map_or("", |r| &r.scenario.title)
    }
}

/// How figures are to be run.
pub struct Way<'a> {
    /// On what.
    pub backend: Backend,
    /// Less of each.
    pub quick: bool,
    /// Only these variants; all if none is named.
    pub variants: &'a [String],
    /// So many of each figure's seeds at the most.
    pub seeds: Option<NonZeroUsize>,
    /// What is kept of earlier runs; nothing if absent.
    pub cache: Option<&'a Cache>,
}

/// Reads experiments. Also gives where everything stands in the files, for telling what does not
/// fit into memory.
pub fn read(
    experiments: Vec<Experiment>,
    way: &Way<'_>,
) -> Result<(Vec<Figure>, Vec<Loaded>), Failure> {
    let mut all = Vec::new();
    let mut figures = Vec::new();
    for experiment in experiments {
        let path = Path::new(&experiment.path);
        let plan = plan(path, &experiment.text)?;
        chosen_variants(path, &experiment.text, way.variants)?;
        let skip = way.quick && plan.quick.as_ref().is_some_and(|q| q.skip);
        let (mut seeds, unsaid) = match (&plan.quick, way.quick, way.backend) {
            // Each takes as long as the scenario says. What a seed decides there are starts,
            // losses and sources; the rest differs from run to run by itself.
            (_, _, Backend::Linux | Backend::LinuxOffload) | (None, true, _) => {
                (plan.seeds.clone(), 1)
            }
            (Some(quick), true, _) => (quick.seeds.clone(), usize::MAX),
            (_, false, _) => (plan.seeds.clone(), usize::MAX),
        };
        seeds.truncate(way.seeds.map_or(unsaid, NonZeroUsize::get));
        let mut by_seed: Vec<Vec<Loaded>> = Vec::new();
        for seed in &seeds {
            let overrides: Overrides = way
                .backend
                .overrides()?
                .quick(way.quick)
                .only(way.variants)
                .with("seed", seed.to_string());
            by_seed.push(load_with_origins(path, &experiment.text, &overrides)?);
        }
        let seeds = by_seed.len();
        let mut loaded: Vec<Loaded> = Vec::new();
        let mut lists: Vec<_> = by_seed.into_iter().map(Vec::into_iter).collect();
        while let Some(variant) =
            lists.iter_mut().map(Iterator::next).collect::<Option<Vec<Loaded>>>()
        {
            loaded.extend(variant);
        }
        let runs: Vec<Planned> = loaded.iter().map(|l| planned(&l.scenario, way)).collect();
        let cost: f64 = runs.iter().map(|r| r.seconds).sum();
        let left_out = skip || way.quick && plan.quick.is_none() && cost > QUICK_SECONDS;
        if !left_out {
            all.extend(loaded);
        }
        figures.push(Figure { experiment, runs, seeds, left_out });
    }
    Ok((figures, all))
}

fn planned(scenario: &Scenario, way: &Way<'_>) -> Planned {
    let key = way.cache.map(|_| Key::of(scenario));
    let cached = way.cache.zip(key.as_ref()).is_some_and(|(cache, key)| cache.has(key));
    let seconds = match way.backend {
        Backend::Sim => packet_hops(scenario) / HOPS_PER_SECOND,
        Backend::Linux | Backend::LinuxOffload => scenario.duration as f64 / 1e9,
    };
    Planned { scenario: scenario.clone(), seconds, key, cached }
}

/// What came of a run.
pub struct Done {
    /// The run.
    pub run: Run,
    /// Whether it came from the cache.
    pub cached: bool,
}

/// Runs everything; `ready` gets each figure with its runs as soon as the last of them is done, in
/// the order in which that happens. After Ctrl-C what is under way ends, and figures that are not
/// complete are not handed over.
pub fn run(
    figures: &[Figure],
    way: &Way<'_>,
    jobs: usize,
    mut ready: impl FnMut(usize, Vec<Done>, &Progress) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let places: Vec<(usize, usize)> = figures
        .iter()
        .enumerate()
        .filter(|(_, f)| !f.left_out)
        .flat_map(|(i, f)| (0..f.runs.len()).map(move |j| (i, j)))
        .collect();
    let planned = |place: usize| &figures[places[place].0].runs[places[place].1];
    let weight = |run: &Planned| if run.cached { CACHED * run.seconds } else { run.seconds };
    let progress = Progress::new(
        (0..places.len()).map(|p| (planned(p).scenario.duration, weight(planned(p)))).collect(),
        way.backend.done(),
    );
    // What is there already, so that it is told at once; then the longest, so that no processor is
    // left alone with one at the end. On Linux in order.
    let mut order: Vec<usize> = (0..places.len()).collect();
    if way.backend == Backend::Sim {
        order.sort_by(|&a, &b| {
            let key = |p: usize| (!planned(p).cached, -planned(p).seconds);
            key(a).partial_cmp(&key(b)).unwrap_or(std::cmp::Ordering::Equal)
        });
    }
    let work = |place: usize, observer: &mut dyn Observer| one(planned(place), way, observer);
    let mut waiting: Vec<Vec<Option<Done>>> =
        figures.iter().map(|f| f.runs.iter().map(|_| None).collect()).collect();
    batch::unordered(&order, jobs, &progress, work, |place, result| {
        let (figure, run) = places[place];
        let done = result.map_err(|e| {
            Failure::with_status(format!("{}: {e}", figures[figure].experiment.name()), e.status)
        })?;
        if done.run.summary.interrupted {
            return Ok(());
        }
        waiting[figure][run] = Some(done);
        if waiting[figure].iter().any(Option::is_none) {
            return Ok(());
        }
        let complete = std::mem::take(&mut waiting[figure]).into_iter().flatten().collect();
        ready(figure, complete, &progress)
    })
}

/// A run from the cache, or else made and kept.
fn one(planned: &Planned, way: &Way<'_>, observer: &mut dyn Observer) -> Result<Done, Failure> {
    let kept = way.cache.zip(planned.key.as_ref());
    if let Some(run) = kept.and_then(|(cache, key)| cache.load(key, &planned.scenario)) {
        return Ok(Done { run, cached: true });
    }
    let run = way.backend.run(&planned.scenario, 1, observer)?;
    if let Some((cache, key)) = kept.filter(|_| !run.summary.interrupted) {
        cache.store(key, &run);
    }
    Ok(Done { run, cached: false })
}
