//! The report of `xcpnet reproduce`: a page for each paper with a section for each of its figures,
//! in the paper's order, and an overview that leads to them and ends with the table of failures.
//! Static HTML: no network, fit for paper, and no script but what lets its charts be saved. The
//! curves of single runs in full are in the pages of [`crate::html()`], which the sections lead to.
//!
//! A figure's section is made as soon as its runs are there ([`section`]), so that runs need not be
//! kept until the end.

mod chart;
mod curves;
pub mod failures;
pub mod liars;
mod page;
pub mod situation;

pub use page::{Front, Paper, front_page, paper_page};

use std::fmt::Write as _;

use xcp_model::Scenario;
use xcp_model::Verdict;
use xcp_model::run::Run;

use crate::Reference;
use crate::html::{escape, inline, paragraphs};
use crate::human;
use crate::table::{band, measured, seeds};

/// What theories say of a number, each by its name; the same ones in the same order wherever they
/// say something.
pub type Theories = Vec<(&'static str, f64)>;

/// A figure, run and judged. Lists have an entry for each variant.
#[derive(Debug, Clone, Copy)]
pub struct Figure<'a> {
    /// `PAPER/FIGURE`.
    pub name: &'a str,
    /// What the command is given for this one alone: the name, or where its file is.
    pub again: &'a str,
    /// The scenarios that were run.
    pub scenarios: &'a [Scenario],
    /// What came of it with the first seed.
    pub runs: &'a [Run],
    /// The claims about it, judged over all seeds.
    pub verdicts: &'a [Vec<Verdict>],
    /// For each claim what theories give for the number.
    pub theory: &'a [Vec<Theories>],
    /// What theories say of each run.
    pub references: &'a [Vec<Reference>],
    /// Number of seeds it was run with.
    pub seeds: usize,
}

/// What is left of a figure once its section is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Name of the figure, `PAPER/FIGURE`.
    pub name: String,
    /// What the command is given for this one alone.
    pub again: String,
    /// What it is about.
    pub title: String,
    /// Claims inside their bands.
    pub inside: usize,
    /// Number of claims outside their bands.
    pub outside: usize,
    html: String,
}

/// Words for a figure's file name: `fig05` is Fig. 5.
fn called(name: &str) -> String {
    let figure = name.rsplit('/').next().unwrap_or(name);
    match figure.strip_prefix("fig") {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("Fig. {}", rest.trim_start_matches('0'))
        }
        _ => figure.replace('-', " "),
    }
}

fn anchor(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Inside and outside in a mark and words.
fn verdict(inside: usize, outside: usize) -> String {
    match (inside, outside) {
        (0, 0) => "<span class=\"unit\">no claims</span>".to_owned(),
        (n, 0) => format!("<span class=\"ok\">✓ {n} of {n} inside</span>"),
        (n, out) => format!("<span class=\"bad\">✗ {out} of {} outside</span>", n + out),
    }
}

/// Writes a figure's section.
#[must_use]
pub fn section(figure: &Figure<'_>) -> Section {
    let title = figure.scenarios.first().map_or("", |s| s.title.as_str());
    let inside = figure.verdicts.iter().flatten().filter(|v| v.inside).count();
    let outside = figure.verdicts.iter().flatten().count() - inside;
    let mut page = String::new();
    let id = escape(anchor(figure.name));
    let _ = write!(
        page,
        "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\"><a \
            href=\"#{id}\">{}</a> {}</h2>\n",
        escape(&called(figure.name)),
        escape(title)
    );
    let runs = human::plural((figure.runs.len() * figure.seeds) as u64, "run");
    let _ = writeln!(
        page,
        "<p class=\"facts\">{} · {runs} · <code>xcpnet reproduce {}</code> · <a \
            href=\"{1}/report.html\">all curves</a></p>",
        verdict(inside, outside),
        escape(figure.again)
    );
    let description = figure.scenarios.first().map_or("", |s| s.description.trim());
    let (lead, rest) = description.split_once("\n\n").unwrap_or((description, ""));
    if !lead.is_empty() {
        let _ = writeln!(page, "<p class=\"lead\">{}</p>", inline(lead));
    }
    if !rest.is_empty() {
        let _ = writeln!(
            page,
            "<details><summary>More about this run: choices and findings</summary><div \
                class=\"more\">{}</div></details>",
            paragraphs(rest)
        );
    }
    let content = curves::Content {
        scenarios: figure.scenarios,
        runs: figure.runs,
        verdicts: figure.verdicts,
        theory: figure.theory,
        references: figure.references,
        seeds: figure.seeds,
    };
    content.write(&mut page);
    claims(figure, &mut page);
    page.push_str("</section>\n");
    let (name, again, title) = (figure.name.into(), figure.again.into(), title.into());
    Section { name, again, title, inside, outside, html: page }
}

fn claims(figure: &Figure<'_>, page: &mut String) {
    if figure.verdicts.iter().all(Vec::is_empty) {
        return;
    }
    let with_theory = figure.theory.iter().flatten().any(|t| !t.is_empty());
    let named = figure.runs.len() > 1;
    page.push_str(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" \
        aria-label=\"Claims\"><table class=\"claims\">\n<thead><tr><th scope=\"col\">Verdict</th>",
    );
    if named {
        page.push_str("<th scope=\"col\">Run</th>");
    }
    page.push_str(
        "<th scope=\"col\">Claim</th><th scope=\"col\" \
        class=\"n\">Measured</th><th scope=\"col\">Band</th>",
    );
    if with_theory {
        page.push_str("<th scope=\"col\" class=\"n\">Theory</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for (i, (run, verdicts)) in figure.runs.iter().zip(figure.verdicts).enumerate() {
        for (j, v) in verdicts.iter().enumerate() {
            let (class, words) =
                if v.inside { ("ok", "✓ inside") } else { ("bad", "✗ outside") };
            let name = if named {
                format!("<td>{}</td>", escape(human::run_name(run)))
            } else {
                String::new()
            };
            let over = seeds(v)
                .map_or(String::new(), |text| format!("<br><small>{}</small>", escape(&text)));
            let span = if figure.scenarios.get(i).is_some_and(|s| s.measure == v.period) {
                String::new()
            } else {
                format!(", {} to {}", human::nanos(v.period.from), human::nanos(v.period.to))
            };
            let theory = figure.theory.get(i).and_then(|t| t.get(j)).into_iter().flatten();
            // Theories that give the same number are told together.
            let mut told: Vec<(String, Vec<&str>)> = Vec::new();
            for (name, value) in theory {
                let value = human::metric(&v.metric, *value);
                match told.iter_mut().find(|(known, _)| *known == value) {
                    Some((_, names)) => names.push(name),
                    None => told.push((value, vec![name])),
                }
            }
            let theory: Vec<String> = told
                .iter()
                .map(|(value, names)| {
                    format!("{} <small>{}</small>", escape(value), names.join(", "))
                })
                .collect();
            let theory = if with_theory {
                format!("<td class=\"n\">{}</td>", theory.join("<br>"))
            } else {
                String::new()
            };
            let _ = writeln!(
                page,
                "<tr><td class=\"{class}\">{words}</td>{name}<td>{}<br><code>{}</code><small>{span}</small></td><td class=\"n\">{}{over}</td><td>{}</td>{theory}</tr>",
                escape(&v.claim),
                escape(&v.metric),
                escape(&measured(v)),
                escape(&band(v)),
            );
        }
    }
    page.push_str("</tbody></table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_called_as_papers_call_them() {
        for (name, expected) in [
            ("p/fig05", "Fig. 5"),
            ("p/fig06a", "Fig. 6a"),
            ("p/fig16-left", "Fig. 16-left"),
            ("p/section-3", "section 3"),
        ] {
            assert_eq!(called(name), expected);
        }
    }
}
