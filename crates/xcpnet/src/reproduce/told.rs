//! What `reproduce` prints: a figure's claims as a table or as JSON, the list of what there is, the
//! sum of it all.

use serde_json::json;
use xcp_model::Scenario;
use xcp_model::run::Run;
use xcp_model::{Verdict, evaluate_variants, over_seeds};
use xcp_report::{human, verdict_table};

use crate::experiments::Paper;
use crate::output::width;
use crate::reproduce::work::{Done, Figure};

/// A figure, run and judged.
pub struct Judged {
    /// What was run, for each of `runs`.
    pub scenarios: Vec<Scenario>,
    /// A run for each variant: its first seed's.
    pub runs: Vec<Run>,
    /// The other seeds' runs, a list of all variants for each seed.
    pub more: Vec<Vec<Run>>,
    /// For each of them what came of its claims, over all seeds.
    pub verdicts: Vec<Vec<Verdict>>,
    /// Runs in all.
    pub made: usize,
    /// How many of them came from the cache.
    pub cached: usize,
}

impl Judged {
    /// Judges the runs of a figure.
    pub fn new(figure: &Figure, done: Vec<Done>) -> Self {
        let (made, cached) = (done.len(), done.iter().filter(|d| d.cached).count());
        // One seed's runs of all variants are compared with one another.
        let mut by_seed: Vec<Vec<Run>> = (0..figure.seeds).map(|_| Vec::new()).collect();
        for (i, one) in done.into_iter().enumerate() {
            by_seed[i % figure.seeds].push(one.run);
        }
        let judged = |(seed, runs): (usize, &Vec<Run>)| {
            let scenarios: Vec<Scenario> = figure
                .runs
                .iter()
                .skip(seed)
                .step_by(figure.seeds)
                .map(|p| p.scenario.clone())
                .collect();
            evaluate_variants(&scenarios, runs)
        };
        let mut each: Vec<_> = by_seed.iter().enumerate().map(judged).map(Vec::into_iter).collect();
        let mut verdicts = Vec::new();
        while let Some(variant) =
            each.iter_mut().map(Iterator::next).collect::<Option<Vec<Vec<Verdict>>>>()
        {
            verdicts.push(over_seeds(&variant));
        }
        let scenarios =
            figure.runs.iter().step_by(figure.seeds).map(|p| p.scenario.clone()).collect();
        let runs = by_seed.remove(0);
        Self { scenarios, runs, more: by_seed, verdicts, made, cached }
    }

    /// Claims inside their bands, and outside.
    pub fn counts(&self) -> (usize, usize) {
        let inside = self.verdicts.iter().flatten().filter(|v| v.inside).count();
        (inside, self.verdicts.iter().flatten().count() - inside)
    }

    /// The table of its claims.
    pub fn table(&self, figure: &Figure) -> String {
        let judged = verdict_table(&self.runs, &self.verdicts, width());
        let judged = if judged.is_empty() { "no claims\n".to_owned() } else { judged };
        format!("{}: {}\n{judged}\n", figure.experiment.name(), figure.title())
    }

    /// A line for each claim.
    pub fn json(&self, figure: &Figure) -> String {
        let e = &figure.experiment;
        let mut lines = String::new();
        for (run, v) in self
            .runs
            .iter()
            .zip(&self.verdicts)
            .flat_map(|(run, list)| list.iter().map(move |v| (run, v)))
        {
            let line = json!({
                "paper": e.paper, "figure": e.figure, "variant": run.variant, "claim": v.claim, "metric": v.metric,
                "measured": v.measured, "min": v.min, "max": v.max, "inside": v.inside,
                "seeds": v.seeds.len(), "seeds_inside": v.seeds_inside,
            });
            lines.push_str(&format!("{line}\n"));
        }
        lines
    }
}

/// Claims counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Figures.
    pub figures: usize,
    /// Claims inside their bands.
    pub inside: usize,
    /// Claims outside.
    pub outside: usize,
}

impl Tally {
    /// Adds a figure's.
    pub fn add(&mut self, (inside, outside): (usize, usize)) {
        self.figures += 1;
        self.inside += inside;
        self.outside += outside;
    }
}

/// What there is: papers, figures, claims, cost.
pub fn list(figures: &[Figure]) -> String {
    let mut out = String::new();
    let width = figures.iter().map(|f| f.experiment.name().chars().count()).max().unwrap_or(0);
    let mut paper = "";
    for figure in figures {
        if figure.experiment.paper != paper {
            paper = &figure.experiment.paper;
            out.push_str(&format!(
                "{}{}\n",
                if out.is_empty() { "" } else { "\n" },
                Paper::of(paper).title
            ));
        }
        let variants = figure.runs.len() / figure.seeds;
        let runs = if figure.seeds > 1 {
            format!("{variants} x {}", human::plural(figure.seeds as u64, "seed"))
        } else {
            human::plural(variants as u64, "run")
        };
        let cost = match figure.seconds() {
            _ if figure.left_out => "left out".to_owned(),
            0.0 => "kept".to_owned(),
            s if s < 1.0 => "< 1 s".to_owned(),
            s => format!("{s:.0} s"),
        };
        let claims = human::plural(figure.claims() as u64, "claim");
        out.push_str(&format!(
            "  {:width$}  {runs:>12}  {claims:>10}  {cost:>8}  {}\n",
            figure.experiment.name(),
            figure.title()
        ));
    }
    let seconds: f64 = figures.iter().filter(|f| !f.left_out).map(Figure::seconds).sum();
    out.push_str(&format!(
        "\nall of it: about {} of one processor; results of earlier runs are kept\n",
        human::seconds(seconds.round())
    ));
    out
}

/// The end of it: claims by paper, those outside, what was left out.
pub fn summary(figures: &[Figure], judged: &[Option<(usize, usize)>]) -> String {
    let mut papers: Vec<(&str, Tally)> = Vec::new();
    for (figure, counts) in figures.iter().zip(judged) {
        let Some(counts) = counts else { continue };
        let name = figure.experiment.paper.as_str();
        if papers.last().is_none_or(|(paper, _)| *paper != name) {
            papers.push((name, Tally::default()));
        }
        papers.last_mut().expect("one was just added").1.add(*counts);
    }
    let mut out = String::new();
    if papers.len() > 1 {
        for (name, tally) in papers.iter().filter(|(_, t)| t.inside + t.outside > 0) {
            let all = tally.inside + tally.outside;
            out.push_str(&format!(
                "{name}: {} of {all} claims inside their bands, {}\n",
                tally.inside,
                human::plural(tally.figures as u64, "figure")
            ));
        }
    }
    for (figure, counts) in figures.iter().zip(judged) {
        if let Some((_, outside @ 1..)) = counts {
            let experiment = &figure.experiment;
            out.push_str(&format!(
                "outside: {} in {}; to run only that: xcpnet reproduce {}\n",
                human::plural(*outside as u64, "claim"),
                experiment.name(),
                experiment.again
            ));
        }
    }
    let left: Vec<String> =
        figures.iter().filter(|f| f.left_out).map(|f| f.experiment.name()).collect();
    if !left.is_empty() {
        out.push_str(&format!("left out of --quick: {}\n", left.join(", ")));
    }
    let (inside, outside) = judged.iter().flatten().fold((0, 0), |(a, b), (i, o)| (a + i, b + o));
    if inside + outside > 0 || judged.iter().flatten().count() == 0 {
        out.push_str(&format!("{inside} of {} claims inside their bands\n", inside + outside));
    }
    out
}
