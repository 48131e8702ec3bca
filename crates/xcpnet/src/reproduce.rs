//! `xcpnet reproduce`: the papers' figures against the bands they claim.

use std::io::Write as _;
use std::path::Path;

use serde_json::json;
use xcp_report::files::Staged;
use xcp_report::{Source, verdict_table};
use xcp_scenario::model::Scenario;
use xcp_scenario::run::Run;
use xcp_scenario::{Loaded, Verdict, evaluate_variants, load_with_origins};

use crate::backend::tell_notes;
use crate::batch;
use crate::cli::ReproduceArguments;
use crate::experiments::{self, Experiment};
use crate::failure::{Failure, INTERRUPTED, OUTSIDE};
use crate::interrupt;
use crate::output::{Content, Printer, width};

/// A figure and its scenarios.
struct Figure {
    experiment: Experiment,
    scenarios: Vec<Scenario>,
}

/// Claims counted over all figures.
#[derive(Default)]
struct Tally {
    inside: usize,
    outside: usize,
}

/// Runs what was asked for.
pub fn reproduce(arguments: &ReproduceArguments, printer: &mut Printer) -> Result<(), Failure> {
    let all = match &arguments.experiments {
        Some(dir) => experiments::of_directory(dir)?,
        None => experiments::built_in(),
    };
    let chosen = experiments::choose(all, &arguments.what)?;
    let overrides = arguments.on.overrides()?;
    let mut loaded: Vec<(Experiment, Vec<Loaded>)> = Vec::new();
    for experiment in chosen {
        let scenarios = load_with_origins(Path::new(&experiment.path), &experiment.text, &overrides)?;
        loaded.push((experiment, scenarios));
    }
    if arguments.list {
        for (experiment, scenarios) in &loaded {
            let title = scenarios.first().map_or("", |l| l.scenario.title.as_str());
            printer.line(&format!("{}  {title}", experiment.name()))?;
        }
        return Ok(());
    }
    arguments.on.check()?;
    let mut staged = arguments.out.as_deref().map(Staged::new).transpose()?;
    if let Some(staged) = &staged {
        interrupt::forget_on_exit(staged.temporary());
    }
    let jobs = batch::fitting(loaded.iter().flat_map(|(_, list)| list), arguments.on.jobs(batch::jobs(arguments.jobs)))?;
    interrupt::listen()?;
    let figures: Vec<Figure> = loaded
        .into_iter()
        .map(|(experiment, list)| Figure { experiment, scenarios: list.into_iter().map(|l| l.scenario).collect() })
        .collect();
    let scenarios: Vec<&Scenario> = figures.iter().flat_map(|f| &f.scenarios).collect();

    let mut tally = Tally::default();
    let mut waiting: Vec<Run> = Vec::new();
    let mut current = 0;
    let mut complete = 0;
    batch::run(arguments.on, &scenarios, jobs, 1, |_, run, progress| {
        progress.suspend(|| tell_notes(&run));
        if run.summary.interrupted {
            return Ok(());
        }
        waiting.push(run);
        // A figure is told as soon as its last scenario is done.
        while current < figures.len() && waiting.len() == figures[current].scenarios.len() {
            let runs = std::mem::take(&mut waiting);
            let told = tell(&figures[current], &runs, arguments.json, &mut tally, staged.as_mut())?;
            progress.suspend(|| printer.text(&told))?;
            current += 1;
            complete += 1;
        }
        Ok(())
    })?;
    if complete < figures.len() {
        let nothing = arguments.out.as_ref().map(|dir| format!("; nothing was written to {}", dir.display())).unwrap_or_default();
        let message = format!("interrupted; {complete} of {} figures complete{nothing}", figures.len());
        return Err(Failure::with_status(message, INTERRUPTED));
    }
    if !arguments.json {
        printer.line(&format!("{} of {} claims inside their bands", tally.inside, tally.inside + tally.outside))?;
    }
    if let (Some(staged), Some(dir)) = (staged, &arguments.out) {
        staged.commit()?;
        let _ = writeln!(std::io::stderr(), "wrote {}", dir.display());
    }
    if tally.outside > 0 {
        let many = if tally.outside == 1 {
            "1 claim is outside its band".to_owned()
        } else {
            format!("{} claims are outside their bands", tally.outside)
        };
        return Err(Failure::with_status(many, OUTSIDE));
    }
    Ok(())
}

/// Judges a figure, stages its files, and gives what is to be printed about it.
fn tell(figure: &Figure, runs: &[Run], as_json: bool, tally: &mut Tally, staged: Option<&mut Staged>) -> Result<String, Failure> {
    let verdicts: Vec<Vec<Verdict>> = evaluate_variants(&figure.scenarios, runs);
    let inside = verdicts.iter().flatten().filter(|v| v.inside).count();
    tally.inside += inside;
    tally.outside += verdicts.iter().flatten().count() - inside;
    let e = &figure.experiment;
    if let Some(staged) = staged {
        let sources = [Source { name: e.path.clone(), text: e.text.clone() }];
        let origins = vec![0; runs.len()];
        let content =
            Content { runs, scenarios: &figure.scenarios, sources: &sources, origins: &origins, verdicts: &verdicts, parquet: false };
        content.stage(staged, &format!("{}/{}/", e.paper, e.figure))?;
    }
    if as_json {
        let mut lines = String::new();
        for (run, v) in runs.iter().zip(&verdicts).flat_map(|(run, list)| list.iter().map(move |v| (run, v))) {
            let line = json!({
                "paper": e.paper, "figure": e.figure, "variant": run.variant, "claim": v.claim, "metric": v.metric,
                "measured": v.measured, "min": v.min, "max": v.max, "inside": v.inside,
            });
            lines.push_str(&format!("{line}\n"));
        }
        return Ok(lines);
    }
    let title = figure.scenarios.first().map_or("", |s| s.title.as_str());
    let judged = verdict_table(runs, &verdicts, width());
    let judged = if judged.is_empty() { "nothing is claimed\n".to_owned() } else { judged };
    Ok(format!("{}: {title}\n{judged}\n", e.name()))
}
