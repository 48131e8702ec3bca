//! `xcpnet reproduce`: the papers' figures against the bands they claim.
//!
//! Experiments ([`crate::experiments`]) → [`work`] (what is run, longest first, with what [`cache`] has) → [`told`] (judged, printed, counted).

mod cache;
mod told;
mod work;

use std::io::Write as _;

use xcp_report::Source;
use xcp_report::files::Staged;
use xcp_scenario::model::Scenario;

use crate::backend::tell_notes;
use crate::batch;
use crate::cli::{Backend, ReproduceArguments};
use crate::experiments;
use crate::failure::{Failure, INTERRUPTED, OUTSIDE};
use crate::interrupt;
use crate::output::{Content, Printer};
use crate::reproduce::cache::{Cache, LIMIT};
use crate::reproduce::told::{Judged, list, summary};
use crate::reproduce::work::{Figure, Way};

/// Runs what was asked for.
pub fn reproduce(arguments: &ReproduceArguments, printer: &mut Printer) -> Result<(), Failure> {
    let all = match &arguments.experiments {
        Some(dir) => experiments::of_directory(dir)?,
        None => experiments::built_in(),
    };
    let chosen = experiments::choose(all, &arguments.what)?;
    // What a real network gave is not what it will give.
    let keep = arguments.on == Backend::Sim && !arguments.no_cache;
    let cache = if keep { Cache::new(arguments.cache.as_deref()) } else { None };
    let way = Way { backend: arguments.on, quick: arguments.quick, cache: cache.as_ref() };
    let (figures, loaded) = work::read(chosen, &way)?;
    if arguments.list {
        return printer.text(&list(&figures));
    }
    arguments.on.check()?;
    let mut staged = arguments.out.as_deref().map(Staged::new).transpose()?;
    if let Some(staged) = &staged {
        interrupt::forget_on_exit(staged.temporary());
    }
    let jobs = batch::fitting(loaded.iter(), arguments.on.jobs(batch::jobs(arguments.jobs)))?;
    drop(loaded);
    interrupt::listen()?;

    let wanted = figures.iter().filter(|f| !f.left_out).count();
    let mut complete = 0;
    let mut counts: Vec<Option<(usize, usize)>> = vec![None; figures.len()];
    let mut texts: Vec<Option<String>> = figures.iter().map(|f| f.left_out.then(String::new)).collect();
    let mut printed = 0;
    work::run(&figures, &way, jobs, |index, done, progress| {
        let figure = &figures[index];
        progress.suspend(|| done.iter().for_each(|d| tell_notes(&d.run)));
        let judged = Judged::new(figure, done);
        counts[index] = Some(judged.counts());
        complete += 1;
        if progress.is_hidden() && wanted > 1 {
            let kept = if judged.cached > 0 { format!(", {} of them kept from before", judged.cached) } else { String::new() };
            let runs = xcp_report::human::plural(judged.made as u64, "run");
            let _ = writeln!(std::io::stderr(), "{complete} of {wanted} figures: {}, {runs}{kept}", figure.experiment.name());
        }
        texts[index] = Some(if arguments.json { judged.json(figure) } else { judged.table(figure) });
        if let Some(staged) = staged.as_mut() {
            stage(staged, figure, &judged)?;
        }
        // Printed in their order, whichever comes first.
        while let Some(text) = texts.get_mut(printed).and_then(Option::take) {
            progress.suspend(|| printer.text(&text))?;
            printed += 1;
        }
        Ok(())
    })?;
    if let Some(cache) = &cache {
        cache.trim(LIMIT);
    }
    if complete < wanted {
        let nothing = arguments.out.as_ref().map(|dir| format!("; nothing was written to {}", dir.display())).unwrap_or_default();
        let kept = if cache.is_some() { "; runs that were done are kept for the next time" } else { "" };
        let message = format!("interrupted; {complete} of {wanted} figures complete{kept}{nothing}");
        return Err(Failure::with_status(message, INTERRUPTED));
    }
    if !arguments.json {
        printer.text(&summary(&figures, &counts))?;
    }
    if let (Some(staged), Some(dir)) = (staged, &arguments.out) {
        staged.commit()?;
        let _ = writeln!(std::io::stderr(), "wrote {}", dir.display());
    }
    let outside: usize = counts.iter().flatten().map(|(_, outside)| outside).sum();
    if outside > 0 {
        let many =
            if outside == 1 { "1 claim is outside its band".to_owned() } else { format!("{outside} claims are outside their bands") };
        return Err(Failure::with_status(many, OUTSIDE));
    }
    Ok(())
}

/// The files of one figure.
fn stage(staged: &mut Staged, figure: &Figure, judged: &Judged) -> Result<(), Failure> {
    let e = &figure.experiment;
    let scenarios: Vec<Scenario> = figure.runs.iter().step_by(figure.seeds).map(|p| p.scenario.clone()).collect();
    let sources = [Source { name: e.path.clone(), text: e.text.clone() }];
    let origins = vec![0; judged.runs.len()];
    let content = Content {
        runs: &judged.runs,
        scenarios: &scenarios,
        sources: &sources,
        origins: &origins,
        verdicts: &judged.verdicts,
        parquet: false,
    };
    Ok(content.stage(staged, &format!("{}/{}/", e.paper, e.figure))?)
}
