//! The papers' figures as `xcpnet reproduce --quick` runs them, with and without each mutant. A
//! file that has nothing for `--quick` is run whole, with its first seed.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use xcp_engine::mutants::{self, MUTANTS};
use xcp_model::run::{Observer, Run};
use xcp_model::units::Nanos;
use xcp_model::{Congestion, Expectation, Scenario, Traffic};
use xcp_model::{Verdict, evaluate_variants, over_seeds, packet_hops};
use xcp_scenario::{Overrides, load, plan, read_text};

/// Directories that hold no paper: their claims are about policers, or there are none.
const NOT_PAPERS: [&str; 3] = ["failures", "beyond", "liars"];

/// A figure that takes so many times as long as without the mutant, and a minute more, is ended;
/// what it then fails to give is outside every band.
const PATIENCE: u32 = 20;

/// A figure.
pub struct Figure {
    /// The paper: the directory's name.
    pub paper: String,
    /// The file's name without `.toml`.
    pub name: String,
    /// The file.
    pub text: String,
    /// The claims of the whole file, with their sources: of all variants, for one seed.
    pub whole: Vec<String>,
    /// What is run: all variants of the first seed, of the second, ...
    seeds: Vec<Vec<Scenario>>,
}

/// A claim of a figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Of which variant.
    pub variant: String,
    /// In words.
    pub claim: String,
    /// Which number.
    pub metric: String,
    /// Whether anything of XCP has a part in what is measured; else no mutant can be noticed.
    pub ours: bool,
}

/// What a run came to: a figure, a mutant, and all of the figure's claims as measured.
pub struct Judged<'a> {
    /// Which of the figures.
    pub figure: usize,
    /// Which of [`MUTANTS`]; `None`: without any.
    pub mutant: Option<usize>,
    /// In the order of [`Figure::claims`].
    pub verdicts: &'a [Verdict],
}

/// The papers' figures.
pub fn read(dir: &Path) -> Result<Vec<Figure>, String> {
    let list = |dir: &Path| -> Result<Vec<std::path::PathBuf>, String> {
        let entries = fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let mut paths: Vec<_> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
        paths.sort();
        Ok(paths)
    };
    let name = |path: &Path| {
        path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let mut figures = Vec::new();
    for paper in
        list(dir)?.into_iter().filter(|p| p.is_dir() && !NOT_PAPERS.contains(&name(p).as_str()))
    {
        for path in list(&paper)?.into_iter().filter(|f| f.extension().is_some_and(|e| e == "toml"))
        {
            figures.extend(one(name(&paper), name(&path), &path)?);
        }
    }
    Ok(figures)
}

fn one(paper: String, name: String, path: &Path) -> Result<Option<Figure>, String> {
    let text = read_text(path, &[]).map_err(|e| e.to_string())?;
    let plan = plan(path, &text).map_err(|e| e.to_string())?;
    let seeds = match &plan.quick {
        Some(quick) if quick.skip => return Ok(None),
        Some(quick) => quick.seeds.clone(),
        None => plan.seeds[..1].to_vec(),
    };
    let read = |seed: &u64| {
        load(path, &text, &Overrides::none().quick(true).with("seed", seed.to_string()))
    };
    let seeds = seeds.iter().map(read).collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    let whole = load(path, &text, &Overrides::none()).map_err(|e| e.to_string())?;
    let whole = whole.into_iter().flat_map(|s| s.expectations).map(|e| e.claim).collect();
    Ok(Some(Figure { paper, name, text, whole, seeds }))
}

impl Figure {
    /// `PAPER/FIGURE`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.paper, self.name)
    }

    /// Whether a word on the command line means it: its paper, its name, or both.
    pub fn is_called(&self, word: &str) -> bool {
        word == self.paper || word == self.name || word == self.full_name()
    }

    /// All its claims, in the order of their verdicts.
    pub fn claims(&self) -> Vec<Claim> {
        let scenarios = &self.seeds[0];
        let find = |variant: &str| scenarios.iter().find(|s| s.variant == variant);
        let claim = |scenario: &Scenario, e: &Expectation| {
            let other = match &e.than {
                // What it is held against is not run; then there is no verdict either.
                Some(than) => Some(find(&than.variant)?),
                None => None,
            };
            Some(Claim {
                variant: scenario.variant.clone(),
                claim: e.claim.clone(),
                metric: e.metric.clone(),
                ours: has_xcp(scenario) || other.is_some_and(has_xcp),
            })
        };
        scenarios
            .iter()
            .flat_map(|s| s.expectations.iter().filter_map(move |e| claim(s, e)))
            .collect()
    }

    fn cost(&self) -> f64 {
        self.seeds.iter().flatten().map(packet_hops).sum()
    }
}

/// Whether a law or an XCP end has any part in it.
fn has_xcp(scenario: &Scenario) -> bool {
    let queues =
        scenario.links.iter().flat_map(|link| &link.directions).any(|d| d.queue.router().is_some());
    let is_xcp = |traffic: &Traffic| match traffic {
        Traffic::Tcp(tcp) => tcp.congestion == Congestion::Xcp,
        Traffic::Udp(_) => false,
    };
    queues || scenario.flows.iter().any(|f| is_xcp(&f.group.traffic))
}

/// Ends a run that takes too long.
struct Watch(Instant, Duration);

impl Observer for Watch {
    fn progress(&mut self, _: Nanos) -> ControlFlow<()> {
        if self.0.elapsed() > self.1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// A figure's runs, for each seed and variant, and what came of them.
struct Ran {
    verdicts: Vec<Verdict>,
    runs: Vec<Vec<Run>>,
    took: Duration,
}

/// Runs a figure. `right`: what came of it without a mutant.
fn ran(figure: &Figure, mutant: Option<usize>, right: Option<&Ran>) -> Result<Ran, String> {
    mutants::select(mutant.map(|m| &MUTANTS[m]));
    let begun = Instant::now();
    let limit =
        right.map_or(Duration::MAX, |right| right.took * PATIENCE + Duration::from_secs(60));
    let mut runs: Vec<Vec<Run>> = Vec::new();
    for (seed, scenarios) in figure.seeds.iter().enumerate() {
        let run = |(variant, scenario): (usize, &Scenario)| match right {
            Some(right) if !has_xcp(scenario) => Ok(right.runs[seed][variant].clone()),
            _ => xcp_sim::simulate_on(scenario, 1, &mut Watch(begun, limit)),
        };
        let all = scenarios.iter().enumerate().map(run).collect::<Result<Vec<_>, _>>();
        runs.push(all.map_err(|e| format!("{}: {e}", figure.full_name()))?);
    }
    mutants::select(None);
    let mut each: Vec<_> =
        figure.seeds.iter().zip(&runs).map(|(s, r)| evaluate_variants(s, r).into_iter()).collect();
    let mut verdicts = Vec::new();
    for _ in &figure.seeds[0] {
        let of_seeds: Vec<Vec<Verdict>> = each.iter_mut().filter_map(Iterator::next).collect();
        verdicts.extend(over_seeds(&of_seeds));
    }
    Ok(Ran { verdicts, runs, took: begun.elapsed() })
}

/// Runs figures with mutants, on all processors: `wanted` has the mutants for each figure. An error
/// if a claim fails without any, or from `tell`, which hears of each.
pub fn run(
    figures: &[Figure],
    wanted: &[Vec<usize>],
    tell: &(dyn Fn(&Judged) -> Result<(), String> + Sync),
) -> Result<(), String> {
    let mut order: Vec<usize> = (0..figures.len()).filter(|&f| !wanted[f].is_empty()).collect();
    order.sort_by(|&a, &b| figures[b].cost().total_cmp(&figures[a].cost()));
    let next = AtomicUsize::new(0);
    let wrong: Mutex<Option<String>> = Mutex::new(None);
    let work = || {
        while wrong.lock().expect("no panic").is_none() {
            let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            if let Err(error) = mutate(&figures[index], index, &wanted[index], tell) {
                *wrong.lock().expect("no panic") = Some(error);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    wrong.into_inner().expect("no panic").map_or(Ok(()), Err)
}

/// Runs a figure with some mutants.
fn mutate(
    figure: &Figure,
    index: usize,
    mutants: &[usize],
    tell: &(dyn Fn(&Judged) -> Result<(), String> + Sync),
) -> Result<(), String> {
    let right = ran(figure, None, None)?;
    let name = figure.full_name();
    let failing: Vec<&Verdict> = right.verdicts.iter().filter(|v| !v.inside).collect();
    if !failing.is_empty() {
        return Err(format!("{name}: these fail without a mutant: {failing:#?}"));
    }
    assert_eq!(right.verdicts.len(), figure.claims().len(), "{name}: a verdict for each claim");
    tell(&Judged { figure: index, mutant: None, verdicts: &right.verdicts })?;
    for &mutant in mutants {
        let judged = ran(figure, Some(mutant), Some(&right))?;
        if judged.runs.iter().flatten().any(|run| run.summary.interrupted) {
            eprintln!("{name}: {} took too long and was ended", MUTANTS[mutant].name);
        }
        tell(&Judged { figure: index, mutant: Some(mutant), verdicts: &judged.verdicts })?;
    }
    let seconds = right.took.as_secs_f64();
    eprintln!("{name}: {} claims, {seconds:.1} s without a mutant", right.verdicts.len());
    Ok(())
}
