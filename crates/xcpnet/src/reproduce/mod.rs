//! `xcpnet reproduce`: the papers' figures against the bands they claim.
//!
//! Experiments ([`crate::experiments`]) → [`work`] (what is run, longest first, with what [`cache`]
//! has) → [`told`] (judged, printed, counted) → [`report`] (pages, a section for each figure);
//! those of [`failures`] are rows of a table instead, those of [`liars`] besides.

mod cache;
mod failures;
mod liars;
mod report;
mod told;
mod work;

use xcp_report::files::Staged;
use xcp_sweep::memory;

use crate::backend::tell_notes;
use crate::batch;
use crate::cli::{Backend, ReproduceArguments};
use crate::experiments::{self, LIARS, TABLES, table};
use crate::failure::{Failure, INTERRUPTED, OUTSIDE};
use crate::interrupt;
use crate::output::{Printer, width};
use crate::reproduce::cache::{Cache, LIMIT};
use crate::reproduce::report::Pages;
use crate::reproduce::told::{Judged, list, summary};
use crate::reproduce::work::Way;
use crate::terminal;

/// Runs what was asked for.
pub fn reproduce(arguments: &ReproduceArguments, printer: &mut Printer) -> Result<(), Failure> {
    let all = match &arguments.experiments {
        Some(dir) => experiments::of_directory(dir)?,
        None => experiments::built_in(),
    };
    let chosen = experiments::choose(all, &arguments.what)?;
    // What a real network gave is not what it will give.
    let keep = arguments.on == Backend::Sim && !arguments.no_cache;
    let cache =
        if keep { Cache::new(arguments.cache.as_deref(), arguments.trust_cache) } else { None };
    let way = Way {
        backend: arguments.on,
        quick: arguments.quick,
        variants: &arguments.variants,
        seeds: arguments.seeds,
        cache: cache.as_ref(),
    };
    let (figures, loaded) = work::read(chosen, &way)?;
    if arguments.list {
        return printer.text(&list(&figures));
    }
    if !arguments.what.is_empty() && figures.iter().all(|figure| figure.left_out) {
        let names: Vec<String> = figures.iter().map(|f| f.experiment.name()).collect();
        return Err(Failure::new(format!(
            "nothing is left to run: --quick leaves out {}; run this without --quick",
            names.join(", ")
        )));
    }
    let in_table = |paper: &str| table(paper).is_some() || paper == LIARS;
    if arguments.markdown && !figures.iter().any(|f| in_table(&f.experiment.paper)) {
        return Err(Failure::new(format!(
            "--markdown prints a table, but nothing that was chosen belongs to one; the tables are {} and {LIARS}",
            TABLES.join(", ")
        )));
    }
    arguments.on.check()?;
    let mut staged = arguments.out.as_deref().map(Staged::new).transpose()?;
    if let Some(staged) = &staged {
        interrupt::forget_on_exit(staged.temporary());
    }
    let jobs = memory::fitting(&loaded, arguments.on.jobs(batch::jobs(arguments.jobs)))?;
    drop(loaded);
    interrupt::listen()?;

    let wanted = figures.iter().filter(|f| !f.left_out).count();
    let mut complete = 0;
    let mut counts: Vec<Option<(usize, usize)>> = vec![None; figures.len()];
    let mut texts: Vec<Option<String>> =
        figures.iter().map(|f| f.left_out.then(String::new)).collect();
    let mut printed = 0;
    let mut pages = Pages::new(figures.len());
    let mut lies = vec![None; figures.len()];
    work::run(&figures, &way, jobs, |index, done, progress| {
        let figure = &figures[index];
        // Of a simulation they say what the file's author knew.
        let measured = done.iter().filter(|d| d.run.summary.backend != "sim");
        progress.suspend(|| measured.for_each(|d| tell_notes(&d.run)));
        let judged = Judged::new(figure, done);
        counts[index] = Some(judged.counts());
        complete += 1;
        if progress.is_hidden() && wanted > 1 {
            let kept = if judged.cached > 0 {
                format!(", {} of them kept from before", judged.cached)
            } else {
                String::new()
            };
            let runs = xcp_report::human::plural(judged.made as u64, "run");
            terminal::tell(&format!(
                "{complete} of {wanted} figures: {}, {runs}{kept}",
                figure.experiment.name()
            ));
        }
        let row = failures::row(figure, &judged);
        lies[index] = liars::row(figure, &judged);
        texts[index] = Some(match &row {
            _ if arguments.markdown => String::new(),
            Some(row) if arguments.json => failures::json(row),
            Some(row) => xcp_report::papers::failures::text(std::slice::from_ref(row), width()),
            None if arguments.json => judged.json(figure),
            None => judged.table(figure),
        });
        pages.add(index, figure, &judged, row, staged.as_mut())?;
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
        let nothing = arguments
            .out
            .as_ref()
            .map(|dir| format!("; nothing was written to {}", dir.display()))
            .unwrap_or_default();
        let kept = if cache.is_some() { "; completed runs are kept for the next time" } else { "" };
        let message =
            format!("interrupted; {complete} of {wanted} figures complete{kept}{nothing}");
        return Err(Failure::with_status(message, INTERRUPTED));
    }
    if arguments.markdown {
        let (rows, lies): (Vec<_>, Vec<_>) = (pages.rows(), lies.into_iter().flatten().collect());
        let documents = [
            (!rows.is_empty()).then(|| failures::document(&rows)),
            (!lies.is_empty()).then(|| liars::document(&lies)),
        ];
        printer.text(&documents.into_iter().flatten().collect::<Vec<_>>().join("\n"))?;
    } else if !arguments.json {
        printer.text(&summary(&figures, &counts))?;
    }
    if let (Some(mut staged), Some(dir)) = (staged, &arguments.out) {
        pages.write(&figures, &mut staged)?;
        staged.commit()?;
        terminal::tell(&format!("wrote {}", dir.join("report.html").display()));
    }
    let outside: usize = counts.iter().flatten().map(|(_, outside)| outside).sum();
    if outside > 0 {
        let many = if outside == 1 {
            "1 claim is outside its band".to_owned()
        } else {
            format!("{outside} claims are outside their bands")
        };
        return Err(Failure::with_status(many, OUTSIDE));
    }
    Ok(())
}
