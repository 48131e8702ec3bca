//! The page's body, top to bottom: headings, headline numbers, verdicts, the scenario, how it was
//! made. Plots and tables are in files of their own.

use std::fmt::Write as _;

use xcp_model::run::{FlowSummary, Run};
use xcp_model::{Direction, Limit, Preset};

use super::{Report, escape, inline, plots, tables};
use crate::table::{band, measured};
use crate::{human, links};

/// Writes the body.
pub(super) fn write(report: &Report<'_>, page: &mut String) {
    heading(report, page);
    headline(report, page);
    plots::write(report, page);
    verdicts(report, page);
    tables::link_table(report, page);
    tables::flow_table(report, page);
    tables::group_table(report, page);
    notes(report, page);
    sources(report, page);
    made(report, page);
}

fn heading(report: &Report<'_>, page: &mut String) {
    let title = report.runs.first().map_or("No runs", |run| run.title.as_str());
    let others = titles(report).len().saturating_sub(1) as u64;
    let more = if others == 0 {
        String::new()
    } else {
        format!(" and {}", human::plural(others, "other scenario"))
    };
    put!(page, "<header>\n<h1>{}{more}</h1>\n", escape(title));
    // The first paragraph leads; the rest is with the scenario's text, which holds it.
    if let Some(text) = report
        .scenarios
        .first()
        .filter(|_| others == 0)
        .and_then(|s| s.description.trim().split("\n\n").next())
        .filter(|t| !t.is_empty())
    {
        put!(page, "<p class=\"lead\">{}</p>\n", inline(text));
    }
    let mut facts: Vec<String> = Vec::new();
    if let Some(run) = report.runs.first() {
        let backend = match run.summary.backend.as_str() {
            "sim" => "simulated",
            "linux" => "measured on Linux",
            other => other,
        };
        let lengths = report.runs.iter().map(|r| r.completed);
        let (shortest, longest) = (lengths.clone().min().unwrap_or(0), lengths.max().unwrap_or(0));
        let range = if shortest == longest {
            String::new()
        } else {
            format!("{} to ", human::nanos(shortest))
        };
        facts.push(format!("{range}{} {backend}", human::nanos(longest)));
        let seeds: std::collections::BTreeSet<u64> =
            report.runs.iter().map(|r| r.summary.seed).collect();
        let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
        facts.push(format!("seed {}", seeds.join(", ")));
        if let Some(s) = report
            .scenarios
            .first()
            .filter(|s| report.scenarios.iter().all(|t| t.measure == s.measure))
            .filter(|s| s.measure.from > 0 || s.measure.to < s.duration)
        {
            facts.push(format!(
                "figures cover {} to {}",
                human::nanos(s.measure.from),
                human::nanos(s.measure.to)
            ));
        }
    }
    let facts: Vec<String> =
        facts.iter().map(|f| format!("<span class=\"nb\">{}</span>", escape(f))).collect();
    let claims = report.verdicts.iter().flatten().count();
    let inside = report.verdicts.iter().flatten().filter(|v| v.inside).count();
    let judged = match claims {
        0 => String::new(),
        n => format!(
            " · <a class=\"nb\" href=\"#claims\">{inside} of {n} claims inside their bands</a>"
        ),
    };
    let playground = report.playgrounds.first().map_or_else(String::new, |address| {
        let what = if report.sources.len() > 1 {
            "Change these scenarios and run them here"
        } else {
            "Change this scenario and run it here"
        };
        format!(" · <a class=\"nb\" href=\"{}\">{what}</a>", escape(address))
    });
    put!(page, "<p class=\"facts\">{}{judged}{playground}</p>\n</header>\n", facts.join(" · "));
}

/// The scenarios' titles, each once, in order.
fn titles<'a>(report: &Report<'a>) -> Vec<&'a str> {
    let mut titles: Vec<&str> = Vec::new();
    for run in report.runs {
        if !titles.contains(&run.title.as_str()) {
            titles.push(&run.title);
        }
    }
    titles
}

/// The link the big numbers of a run are about: of the bottlenecks the one this run used most.
fn main_link<'a>(report: &'a Report<'_>, run: &Run) -> Option<&'a str> {
    let use_of = |name: &str| run.summary.links.get(name).map_or(-1.0, |l| l.utilisation);
    links::bottlenecks(report.runs, report.scenarios)
        .into_iter()
        .reduce(|a, b| if use_of(b) > use_of(a) { b } else { a })
}

fn headline(report: &Report<'_>, page: &mut String) {
    put!(
        page,
        "<section aria-labelledby=\"headline\">\n<h2 id=\"headline\" class=\"sr\">At a \
            glance</h2>\n{}",
        grid(report)
    );
    for (i, run) in report.runs.iter().enumerate() {
        put!(
            page,
            "<article class=\"card\">\n<h3{}>{}</h3>\n",
            quiet(report),
            escape(human::run_name(run))
        );
        if titles(report).len() > 1 && !run.variant.is_empty() {
            put!(page, "<p class=\"sub\">{}</p>\n", escape(&run.title));
        }
        if let Some(name) = main_link(report, run) {
            let described =
                report.scenario(i).and_then(|s| links::direction(s, name)).map(describe);
            let described = described.unwrap_or_else(|| vec![name.to_owned()]);
            let described: Vec<String> = described
                .iter()
                .map(|d| format!("<span class=\"nb\">{}</span>", escape(d)))
                .collect();
            put!(page, "<p class=\"sub\">{}</p>\n", described.join(", "));
            if let Some(link) = run.summary.links.get(name) {
                put!(
                    page,
                    "<dl>\n{}",
                    figure("Utilisation", &human::percent(link.utilisation), "big")
                );
                put!(
                    page,
                    "{}",
                    figure(
                        "Mean queue",
                        &format!("{} packets", human::number(link.queue_mean)),
                        "big"
                    )
                );
                put!(page, "{}", figure("Drops", &link.drops.to_string(), "big"));
                let rtts: Vec<f64> =
                    run.summary.flows.iter().filter_map(FlowSummary::rtt_mean).collect();
                let rtt = if rtts.is_empty() {
                    "–".to_owned()
                } else {
                    human::seconds(rtts.iter().sum::<f64>() / rtts.len() as f64)
                };
                put!(page, "{}", figure("Mean RTT", &rtt, ""));
                put!(
                    page,
                    "{}</dl>\n",
                    figure("Fairness (Jain)", &human::fairness(run.summary.jain), "")
                );
            }
        }
        if run.summary.interrupted {
            let (done, asked) = (human::nanos(run.completed), human::nanos(run.duration));
            put!(
                page,
                "<p class=\"warn\">Interrupted at {done} of {asked}; the figures cover what was \
                    run.</p>\n"
            );
        }
        page.push_str("</article>\n");
    }
    page.push_str("</div>\n</section>\n");
}

fn figure(name: &str, value: &str, class: &str) -> String {
    // The unit is set smaller than the number.
    let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
    let unit =
        if unit.is_empty() { String::new() } else { format!(" <small>{}</small>", escape(unit)) };
    format!(
        "<div class=\"figure {class}\"><dt>{name}</dt><dd>{}{unit}</dd></div>\n",
        escape(number)
    )
}

/// A single run needs no name of its own beside the title; readers by ear get it all the same.
pub(super) fn quiet(report: &Report<'_>) -> &'static str {
    if report.runs.len() == 1 { " class=\"sr\"" } else { "" }
}

/// Opens a grid with a column for each run; many runs wrap.
pub(super) fn grid(report: &Report<'_>) -> String {
    let n = report.runs.len();
    let class = match n {
        0 | 1 => "grid one",
        2..=4 => "grid",
        _ => "grid many",
    };
    format!("<div class=\"{class}\" style=\"--cols:{}\">\n", n.clamp(1, 4))
}

/// A queue and link in a few words: `xcp queue of 313 kB`, `10 Mbit/s`, `249 ms one way`.
fn describe(d: &Direction) -> Vec<String> {
    let size = match d.queue.limit {
        Limit::Packets(n) => human::plural(n, "packet"),
        Limit::Bytes(n) if n >= 10_000 => format!("{} kB", n / 1000),
        Limit::Bytes(n) => human::plural(n, "byte"),
    };
    let kind = d.queue.discipline.name();
    let kind = match d.queue.router().map(|router| router.law.preset) {
        Some(preset) if preset != Preset::Xcp => format!("{kind} ({})", preset.name()),
        _ => kind.to_owned(),
    };
    vec![
        format!("{kind} queue of {size}"),
        human::rate(d.rate_bps as f64),
        format!("{} one way", human::nanos(d.delay)),
    ]
}

fn verdicts(report: &Report<'_>, page: &mut String) {
    let all: Vec<_> = report
        .runs
        .iter()
        .zip(report.verdicts)
        .flat_map(|(run, list)| list.iter().map(move |v| (run, v)))
        .collect();
    if all.is_empty() {
        return;
    }
    let outside = all.iter().filter(|(_, v)| !v.inside).count();
    let say = if outside == 0 {
        "all inside".to_owned()
    } else {
        format!("{outside} of {} outside", all.len())
    };
    put!(
        page,
        "<section aria-labelledby=\"claims\">\n<h2 id=\"claims\">Claims <span \
            class=\"unit\">{say}</span></h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" \
            aria-labelledby=\"claims\"><table class=\"claims\">\n"
    );
    page.push_str(
        "<thead><tr><th scope=\"col\">Verdict</th><th scope=\"col\">Run</th><th \
        scope=\"col\">Claim</th><th scope=\"col\" class=\"n\">Measured</th><th \
        scope=\"col\">Band</th></tr></thead>\n<tbody>\n",
    );
    for (run, v) in all {
        let (class, mark, word) =
            if v.inside { ("ok", "✓", "inside") } else { ("bad", "✗", "outside") };
        put!(
            page,
            "<tr><td class=\"{class}\"><span aria-hidden=\"true\">{mark}</span> \
                {word}</td><td>{}</td><td>{}<br><code>{}</code></td><td \
                class=\"n\">{}</td><td>{}</td></tr>\n",
            escape(human::run_name(run)),
            escape(&v.claim),
            escape(&v.metric),
            escape(&measured(v)),
            escape(&band(v)),
        );
    }
    page.push_str("</tbody></table></div>\n</section>\n");
}

/// What one should know before believing the numbers.
fn notes(report: &Report<'_>, page: &mut String) {
    if report.runs.iter().all(|run| run.summary.notes.is_empty()) {
        return;
    }
    page.push_str(
        "<section aria-labelledby=\"notes\">\n<h2 id=\"notes\">Notes</h2>\n<ul class=\"notes\">\n",
    );
    for (run, note) in
        report.runs.iter().flat_map(|run| run.summary.notes.iter().map(move |note| (run, note)))
    {
        let name = if report.runs.len() == 1 {
            String::new()
        } else {
            format!("<b>{}</b>: ", escape(human::run_name(run)))
        };
        put!(page, "<li>{name}{}</li>\n", escape(note));
    }
    page.push_str("</ul>\n</section>\n");
}

fn sources(report: &Report<'_>, page: &mut String) {
    for (i, source) in report.sources.iter().enumerate() {
        put!(
            page,
            "<details class=\"source\">\n<summary><h2>The scenario <span \
                class=\"unit\">{}</span></h2></summary>\n",
            escape(&source.name)
        );
        if let Some(address) = report.playgrounds.get(i) {
            put!(page, "<p><a href=\"{}\">Change it and run it here</a></p>\n", escape(address));
        }
        put!(page, "<pre tabindex=\"0\"><code>{}</code></pre>\n</details>\n", escape(&source.text));
    }
}

fn made(report: &Report<'_>, page: &mut String) {
    put!(page, "<footer>\n<p>Made by xcpnet {}", escape(report.version));
    if !report.command.is_empty() {
        put!(page, " with <code>{}</code>", escape(report.command));
    }
    let repeatable = if report.runs.iter().all(|run| run.summary.backend == "sim") {
        "The same scenario, seed and version give the same numbers."
    } else {
        "Measured on a real machine: another run gives somewhat different numbers."
    };
    put!(
        page,
        ". {repeatable} Plots: uPlot (MIT licence, in this file’s source).</p>\n</footer>\n"
    );
}
