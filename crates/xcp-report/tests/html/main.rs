//! The HTML report in a real browser: it renders offline and without complaint, its plots hold the
//! runs' numbers, it fits a phone. And as text. Here is the page that most of these tests look at.

#[path = "../common/mod.rs"]
mod common;
mod plots;
mod rendered;
mod saved;
mod text;

use std::collections::BTreeMap;

use common::{Manner, run, scenario};
use xcp_model::OverSeeds;
use xcp_model::Verdict;
use xcp_model::run::Run;
use xcp_model::units::{NANOS_PER_SEC, Period};
use xcp_report::{Curve, Reference, Report, Source, html};

const MANNERS: [Manner; 3] = [Manner::Xcp, Manner::DropTail, Manner::Red];

fn page(flows: usize) -> (Vec<Run>, String) {
    let runs: Vec<Run> = MANNERS.map(|m| run(m, flows)).into();
    let scenarios = MANNERS.map(scenario);
    let sources = [Source {
        name: "four-flows.toml".into(),
        text: "title = \"Four <flows>\"\nduration = \"60s\"\n".repeat(12),
    }];
    let verdict = |claim: &str, measured, min, max, inside| Verdict {
        claim: claim.into(),
        metric: "links.bottleneck.utilisation".into(),
        measured: Some(measured),
        min,
        max,
        than: None,
        inside,
        period: Period { from: 0, to: 60 * NANOS_PER_SEC },
        seeds: vec![Some(measured)],
        seeds_inside: usize::from(inside),
        over_seeds: OverSeeds::Median,
    };
    let verdicts = [
        vec![verdict(
            "XCP keeps the link full & the queue empty (Katabi et al. 2002)",
            0.9987,
            Some(0.99),
            None,
            true,
        )],
        vec![],
        vec![verdict(
            "RED leaves more than a tenth of the link idle",
            0.87,
            None,
            Some(0.85),
            false,
        )],
    ];
    let references = [theory(), Vec::new(), Vec::new()];
    let report = Report {
        runs: &runs,
        scenarios: &scenarios,
        sources: &sources,
        verdicts: &verdicts,
        references: &references,
        command: "xcpnet run four-flows.toml --out out",
        playgrounds: &[],
        version: "0.1.0",
    };
    let text = html(&report);
    (runs, text)
}

/// One theory with two levels, one that speaks of one flow from 30 s on.
fn theory() -> Vec<Reference> {
    let curve =
        |name: &str, points: &[(f64, f64)]| Curve { name: name.into(), points: points.to_vec() };
    let utilisation: BTreeMap<String, f64> = [("bottleneck".to_owned(), 0.876)].into();
    vec![
        Reference {
            name: "max-min".into(),
            goodputs: vec![
                curve("flow-1", &[(0.0, 2e6)]),
                curve("flow-2", &[(0.0, 2e6)]),
                curve("flow-3", &[(0.0, 1e6)]),
            ],
            utilisation: utilisation.clone(),
        },
        Reference {
            name: "equilibrium".into(),
            goodputs: vec![curve("flow-1", &[(0.0, f64::NAN), (30.0, 3e6)])],
            utilisation,
        },
    ]
}
