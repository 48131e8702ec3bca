//! `xcpnet run`.

use std::path::Path;

use xcp_model::Scenario;
use xcp_model::run::Run;
use xcp_model::{Verdict, evaluate_variants};
use xcp_report::files::Staged;
use xcp_report::{Source, human, json, table, verdict_table};
use xcp_scenario::rewrite::{as_toml, rewrite};
use xcp_scenario::{Loaded, Overrides, load_with_origins, read_text};
use xcp_sweep::{chosen_variants, memory};

use crate::backend::tell_notes;
use crate::batch;
use crate::cli::{RunArguments, WhatIsRun};
use crate::failure::{Failure, INTERRUPTED};
use crate::interrupt;
use crate::output::{Content, Printer, width};
use crate::playground::{ENGINE, PAGE, address, page};
use crate::terminal;

/// A file's scenarios as chosen by the arguments.
fn load(path: &Path, text: &str, arguments: &WhatIsRun) -> Result<Vec<Loaded>, Failure> {
    let mut overrides = arguments.on.overrides()?;
    for (path, value) in &arguments.settings {
        overrides = overrides.with(path, value);
    }
    if let Some(seed) = arguments.seed {
        overrides = overrides.with("seed", seed.to_string());
    }
    chosen_variants(path, text, &arguments.variants)?;
    Ok(load_with_origins(path, text, &overrides.only(&arguments.variants))?)
}

/// What was asked for, carried out as far as it got.
pub struct Carried {
    /// The scenarios.
    pub scenarios: Vec<Scenario>,
    /// The runs of the first of them; of all, unless interrupted.
    pub runs: Vec<Run>,
    /// The files.
    pub sources: Vec<Source>,
    /// For each scenario, the file it came from.
    pub origins: Vec<usize>,
}

impl Carried {
    /// Whether something is missing.
    pub fn interrupted(&self) -> bool {
        self.runs.len() < self.scenarios.len() || self.runs.iter().any(|r| r.summary.interrupted)
    }
}

/// Reads the files, and runs what is in them if it is not `refused`. `series`: whether those are
/// wanted, which claims want in any case.
pub fn carry_out(
    arguments: &WhatIsRun,
    series: bool,
    refused: impl FnOnce(&[&Scenario]) -> Result<(), Failure>,
) -> Result<Carried, Failure> {
    let mut sources = Vec::new();
    let mut loaded: Vec<Loaded> = Vec::new();
    let mut origins = Vec::new();
    for (i, file) in arguments.files.iter().enumerate() {
        let text = read_text(file, &arguments.settings)?;
        let mut more = load(file, &text, arguments)?;
        xcp_scenario::keep_series(&mut more, series);
        origins.extend(std::iter::repeat_n(i, more.len()));
        loaded.extend(more);
        sources.push(Source { name: file.display().to_string(), text });
    }
    arguments.on.check()?;
    refused(&loaded.iter().map(|l| &l.scenario).collect::<Vec<_>>())?;
    let jobs = memory::fitting(&loaded, arguments.on.jobs(batch::jobs(arguments.jobs)))?;
    interrupt::listen()?;
    let scenarios: Vec<Scenario> = loaded.into_iter().map(|l| l.scenario).collect();
    let mut runs: Vec<Run> = Vec::new();
    batch::run(
        arguments.on,
        &scenarios.iter().collect::<Vec<_>>(),
        jobs,
        usize::from(arguments.threads),
        |_, run, progress| {
            progress.suspend(|| tell_notes(&run));
            runs.push(run);
            Ok(())
        },
    )?;
    Ok(Carried { scenarios, runs, sources, origins })
}

/// Runs what was asked for.
pub fn run(arguments: &RunArguments, printer: &mut Printer) -> Result<(), Failure> {
    // Whether there is room for the result is asked before the work, not after it.
    if let Some(dir) = &arguments.out {
        drop(Staged::new(dir)?);
    }
    if arguments.end_with_input {
        interrupt::listen_to_end_of_input()?;
    }
    let carried = carry_out(&arguments.what, arguments.out.is_some(), |_| Ok(()))?;
    let interrupted = carried.interrupted();
    let Carried { scenarios, runs, sources, origins } = carried;
    let verdicts: Vec<Vec<Verdict>> =
        if interrupted { Vec::new() } else { judged(&scenarios, &runs, &origins) };
    if arguments.json {
        printer.with(|out| json::write(&runs, out))?;
    } else if !runs.is_empty() {
        printer.text(&tables(&runs, &origins, &verdicts))?;
    }
    if interrupted {
        return Err(told(&scenarios, &runs, arguments));
    }
    if let Some(dir) = &arguments.out {
        let mut staged = Staged::new(dir)?;
        interrupt::forget_on_exit(staged.temporary());
        let pages = match ENGINE.filter(|_| !arguments.no_playground) {
            Some(engine) => as_run(&sources, &arguments.what.settings, arguments.what.seed)
                .map(|sources| Some((sources, engine)))
                .unwrap_or_else(|why| {
                    terminal::tell(&format!(
                        "note: no {PAGE} was written beside the report: {why}"
                    ));
                    None
                }),
            None => None,
        };
        let playgrounds: Vec<String> = pages
            .iter()
            .flat_map(|(sources, _)| 0..sources.len())
            .map(|i| address("", i))
            .collect();
        let content = Content {
            runs: &runs,
            scenarios: &scenarios,
            settings: &arguments.what.settings,
            sources: &sources,
            origins: &origins,
            verdicts: &verdicts,
            numbers: true,
            parquet: arguments.parquet,
            playgrounds: &playgrounds,
        };
        content.stage(&mut staged, "")?;
        if let Some((sources, engine)) = pages {
            let title = scenarios.first().map_or("", |scenario| scenario.title.as_str());
            staged.write(PAGE, page(&sources, title, engine).as_bytes())?;
        }
        staged.commit()?;
        terminal::tell(&format!("wrote {}", dir.join("report.html").display()));
    }
    Ok(())
}

/// The files with the settings that were made beside them, as a page can run them, or why it
/// cannot.
fn as_run(
    sources: &[Source],
    settings: &[(String, String)],
    seed: Option<u64>,
) -> Result<Vec<Source>, String> {
    let seed = seed.map(|seed| ("seed".to_owned(), seed.to_string()));
    let set = |source: &Source| {
        let name = source.name.clone();
        let mut text = source.text.clone();
        for (path, value) in settings.iter().chain(&seed) {
            text = rewrite(&text, None, path, &as_toml(value)).map_err(|e| {
                format!("--set {path}={value} cannot be written into the text of {name}: {e}")
            })?;
        }
        // What runs on a kernel only is not for a page.
        if let Err(e) = xcp_scenario::load(Path::new(&name), &text, &Overrides::none()) {
            let what = e.problems().first().map_or("", |problem| problem.what.as_str());
            return Err(format!("{name} does not run in the simulator: {what}"));
        }
        Ok(Source { name, text })
    };
    sources.iter().map(set).collect()
}

/// The verdicts, file by file.
fn judged(scenarios: &[Scenario], runs: &[Run], origins: &[usize]) -> Vec<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for file in origins.chunk_by(|a, b| a == b) {
        let variants = verdicts.len()..verdicts.len() + file.len();
        verdicts.extend(evaluate_variants(&scenarios[variants.clone()], &runs[variants]));
    }
    verdicts
}

/// A table for each file, verdicts below it.
fn tables(runs: &[Run], origins: &[usize], verdicts: &[Vec<Verdict>]) -> String {
    let mut out = String::new();
    let mut from = 0;
    for file in origins[..runs.len()].chunk_by(|a, b| a == b) {
        let to = from + file.len();
        if from > 0 {
            out.push('\n');
        }
        out.push_str(&table(&runs[from..to], width()));
        let judged =
            verdict_table(&runs[from..to], verdicts.get(from..to).unwrap_or_default(), width());
        if !judged.is_empty() {
            out.push('\n');
            out.push_str(&judged);
        }
        from = to;
    }
    out
}

/// What was completed when Ctrl-C came.
fn told(scenarios: &[Scenario], runs: &[Run], arguments: &RunArguments) -> Failure {
    let mut parts = Vec::new();
    for (i, scenario) in scenarios.iter().enumerate() {
        let name = if scenario.variant.is_empty() { &scenario.title } else { &scenario.variant };
        let asked = human::nanos(scenario.duration);
        parts.push(match runs.get(i) {
            Some(run) if !run.summary.interrupted => format!("{name}: complete ({asked})"),
            Some(run) => format!("{name}: {} of {asked}", human::nanos(run.completed)),
            None => format!("{name}: not started"),
        });
    }
    let nothing = arguments
        .out
        .as_ref()
        .map(|dir| format!("; nothing was written to {}", dir.display()))
        .unwrap_or_default();
    Failure::with_status(
        format!("interrupted; {} so far: {}{nothing}", arguments.what.on.done(), parts.join(", ")),
        INTERRUPTED,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_what_it_can_run() {
        let text = |congestion: &str| {
            format!(
                "duration = \"1s\"\n[[link]]\nname = \"l\"\nbetween = [\"A\", \"B\"]\nrate = \
                 \"1mbit\"\ndelay = \"1ms\"\n[[flow]]\nfrom = \"A\"\nto = \"B\"\n\
                 congestion = \"{congestion}\"\n"
            )
        };
        let run = |congestion: &str, path: &str| {
            let source = Source { name: "x.toml".into(), text: text(congestion) };
            as_run(&[source], &[(path.into(), "7".into())], Some(3))
        };
        let sources = run("reno", "flow.count").unwrap();
        assert!(["count = 7", "seed = 3"].iter().all(|set| sources[0].text.contains(set)));
        let kernels = run("bbr", "flow.count").unwrap_err();
        assert!(
            kernels.contains("x.toml does not run in the simulator: ") && kernels.contains("bbr")
        );
        let everywhere = run("reno", "queue.alpha").unwrap_err();
        assert!(everywhere.starts_with("--set queue.alpha=7 cannot be written into the text"));
    }
}
