//! The papers' figures as `xcpnet reproduce --quick` runs them, with and without each mutant.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use xcp_engine::mutants::{self, MUTANTS};
use xcp_model::run::{Observer, Run};
use xcp_model::units::Nanos;
use xcp_model::{Congestion, Scenario, Traffic};
use xcp_model::{Verdict, evaluate_variants, over_seeds, packet_hops};
use xcp_scenario::{Overrides, load, plan, read_text};

/// Directories that hold no paper: their claims are about policers, or there are none.
const NOT_PAPERS: [&str; 2] = ["failures", "liars"];

/// A figure that takes so many times as long as without the mutant, and five minutes more, is
/// ended; what it then fails to give is outside every band.
const PATIENCE: u32 = 30;

/// A figure.
pub struct Figure {
    /// The paper: the directory's name.
    pub paper: String,
    /// The file's name without `.toml`.
    pub name: String,
    /// All variants of the first seed, of the second, ...
    seeds: Vec<Vec<Scenario>>,
}

/// What came of one mutant.
pub struct Noticed {
    /// Which of [`MUTANTS`].
    pub mutant: usize,
    /// For each figure, the claims that hold without the mutant and fail with it.
    pub claims: Vec<Vec<Claim>>,
    /// For each figure, all claims as measured with the mutant.
    pub all: Vec<Vec<Claim>>,
}

/// A claim that holds without mutants.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    /// Of which variant.
    pub variant: String,
    /// In words.
    pub claim: String,
    /// Which number.
    pub metric: String,
    /// What was measured, and its band.
    pub measured: String,
}

/// The papers' figures that `--quick` does not leave out.
pub fn read(dir: &Path, wanted: &[&String]) -> Result<Vec<Figure>, String> {
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
            let (paper, figure) = (name(&paper), name(&path));
            let is = |word: &&String| {
                **word == paper || **word == figure || **word == format!("{paper}/{figure}")
            };
            if !wanted.is_empty() && !wanted.iter().any(is) {
                continue;
            }
            figures.extend(one(paper, figure, &path)?);
        }
    }
    if figures.is_empty() {
        return Err(format!("{} has no such figure, and no mutant is called so", dir.display()));
    }
    Ok(figures)
}

fn one(paper: String, name: String, path: &Path) -> Result<Option<Figure>, String> {
    let text = read_text(path).map_err(|e| e.to_string())?;
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
    // As `xcpnet reproduce --quick` leaves out what is dear and says nothing of it.
    let hops: f64 = seeds.iter().flatten().map(packet_hops).sum();
    Ok((plan.quick.is_some() || hops < 2e7).then_some(Figure { paper, name, seeds }))
}

impl Figure {
    /// `PAPER/FIGURE`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.paper, self.name)
    }

    fn cost(&self) -> f64 {
        self.seeds.iter().flatten().map(packet_hops).sum()
    }
}

/// Whether a law or an XCP end has any part in it.
fn has_xcp(scenario: &Scenario) -> bool {
    let queues =
        scenario.links.iter().flat_map(|link| &link.directions).any(|d| d.queue.router().is_some());
    let is_xcp = |traffic: &Traffic| matches!(traffic, Traffic::Tcp(tcp) if tcp.congestion == Congestion::Xcp);
    queues || scenario.flows.iter().any(|f| is_xcp(&f.group.traffic))
}

/// Ends a run that takes too long.
struct Watch(Instant, Duration);

impl Observer for Watch {
    fn progress(&mut self, _: Nanos) -> ControlFlow<()> {
        if self.0.elapsed() > self.1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// The verdicts of a figure, and how long it took. `right`: the runs without a mutant.
fn judge(
    figure: &Figure,
    mutant: Option<usize>,
    right: Option<&(Vec<Vec<Run>>, Duration)>,
) -> Result<Judged, String> {
    mutants::select(mutant);
    let begun = Instant::now();
    let limit =
        right.map_or(Duration::MAX, |(_, took)| *took * PATIENCE + Duration::from_secs(300));
    let mut runs: Vec<Vec<Run>> = Vec::new();
    for (seed, scenarios) in figure.seeds.iter().enumerate() {
        let run = |(variant, scenario): (usize, &Scenario)| match right {
            Some((right, _)) if !has_xcp(scenario) => Ok(right[seed][variant].clone()),
            _ => xcp_sim::simulate_on(scenario, 1, &mut Watch(begun, limit)),
        };
        let all = scenarios.iter().enumerate().map(run).collect::<Result<Vec<_>, _>>();
        runs.push(all.map_err(|e| format!("{}: {e}", figure.full_name()))?);
    }
    mutants::select(None);
    let mut each: Vec<_> =
        figure.seeds.iter().zip(&runs).map(|(s, r)| evaluate_variants(s, r).into_iter()).collect();
    let mut verdicts = Vec::new();
    for scenario in &figure.seeds[0] {
        let of_seeds: Vec<Vec<Verdict>> = each.iter_mut().filter_map(Iterator::next).collect();
        verdicts.extend(over_seeds(&of_seeds).into_iter().map(|v| (scenario.variant.clone(), v)));
    }
    Ok(Judged { verdicts, runs, took: begun.elapsed() })
}

struct Judged {
    verdicts: Vec<(String, Verdict)>,
    runs: Vec<Vec<Run>>,
    took: Duration,
}

/// Runs all figures, without and with every mutant, on all processors. An error if a claim fails
/// without any.
pub fn run(figures: &[Figure], wanted: &[&String]) -> Result<Vec<Noticed>, String> {
    let chosen: Vec<usize> = (0..MUTANTS.len())
        .filter(|&m| wanted.is_empty() || wanted.iter().any(|w| **w == MUTANTS[m].name))
        .collect();
    let mut order: Vec<usize> = (0..figures.len()).collect();
    order.sort_by(|&a, &b| figures[b].cost().total_cmp(&figures[a].cost()));
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, usize, Told)>> = Mutex::new(Vec::new());
    let wrong: Mutex<Option<String>> = Mutex::new(None);
    let work = || {
        while wrong.lock().expect("no panic").is_none() {
            let Some(&index) = order.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let figure = &figures[index];
            match mutate(figure, &chosen) {
                Ok(list) => found
                    .lock()
                    .expect("no panic")
                    .extend(list.into_iter().map(|(m, told)| (m, index, told))),
                Err(error) => *wrong.lock().expect("no panic") = Some(error),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    if let Some(error) = wrong.into_inner().expect("no panic") {
        return Err(error);
    }
    let mut noticed: Vec<Noticed> = chosen
        .iter()
        .map(|&mutant| Noticed {
            mutant,
            claims: vec![Vec::new(); figures.len()],
            all: vec![Vec::new(); figures.len()],
        })
        .collect();
    for (mutant, figure, (claims, all)) in found.into_inner().expect("no panic") {
        let one = noticed.iter_mut().find(|n| n.mutant == mutant).expect("it was chosen");
        one.claims[figure] = claims;
        one.all[figure] = all;
    }
    Ok(noticed)
}

/// The claims that fail with a mutant, and all.
type Told = (Vec<Claim>, Vec<Claim>);

/// What a figure's claims notice of each mutant.
fn mutate(figure: &Figure, mutants: &[usize]) -> Result<Vec<(usize, Told)>, String> {
    let right = judge(figure, None, None)?;
    let failing: Vec<Claim> = right
        .verdicts
        .iter()
        .filter(|(_, v)| !v.inside)
        .map(|(variant, v)| claim(variant, v))
        .collect();
    if !failing.is_empty() {
        return Err(format!("{}: these fail without a mutant: {failing:#?}", figure.full_name()));
    }
    let known = (right.runs, right.took);
    let mut list = Vec::new();
    for &mutant in mutants {
        let judged = judge(figure, Some(mutant), Some(&known))?;
        if judged.runs.iter().flatten().any(|run| run.summary.interrupted) {
            eprintln!(
                "{}: {} took too long and was ended",
                figure.full_name(),
                MUTANTS[mutant].name
            );
        }
        // The same claims in the same order; what a run does not give is outside.
        let told = |all: bool| {
            judged
                .verdicts
                .iter()
                .filter(|(_, v)| all || !v.inside)
                .map(|(variant, v)| claim(variant, v))
                .collect()
        };
        list.push((mutant, (told(false), told(true))));
    }
    let seconds = known.1.as_secs_f64();
    eprintln!(
        "{}: {} claims, {seconds:.1} s without a mutant",
        figure.full_name(),
        right.verdicts.len()
    );
    Ok(list)
}

/// A claim as it is counted.
fn claim(variant: &str, v: &Verdict) -> Claim {
    let number = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.5}"));
    let measured = format!("{} in {}..{}", number(v.measured), number(v.min), number(v.max));
    Claim { variant: variant.into(), claim: v.claim.clone(), metric: v.metric.clone(), measured }
}

impl Figure {
    /// All its claims, in their order: variant, words, number.
    pub fn claims(&self) -> Vec<Claim> {
        let of = |scenario: &Scenario| {
            let variant = scenario.variant.clone();
            scenario.expectations.clone().into_iter().map(move |e| Claim {
                variant: variant.clone(),
                claim: e.claim,
                metric: e.metric,
                measured: String::new(),
            })
        };
        self.seeds[0].iter().flat_map(of).collect()
    }
}
