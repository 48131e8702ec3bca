//! The papers' pages: every claim and command is in them, nothing is fetched, they fit a phone and
//! stay small.

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;

use common::browser::{self, Browser};
use common::{Manner, run, scenario};
use xcp_model::Verdict;
use xcp_model::run::{Quantity, Run, Subject};
use xcp_model::units::{NANOS_PER_SEC, Period};
use xcp_model::{OverSeeds, Scenario};
use xcp_report::papers::failures::{Cell, Row, html};
use xcp_report::papers::situation::Situation;
use xcp_report::papers::{Figure, Front, Paper, Section, front_page, paper_page, section};
use xcp_report::{Curve, Reference};

fn verdict(
    claim: &str,
    metric: &str,
    measured: f64,
    min: Option<f64>,
    max: Option<f64>,
    seeds: &[f64],
) -> Verdict {
    let inside = min.is_none_or(|m| measured >= m) && max.is_none_or(|m| measured <= m);
    Verdict {
        claim: claim.into(),
        metric: metric.into(),
        measured: Some(measured),
        min,
        max,
        than: None,
        inside,
        period: Period { from: 20 * NANOS_PER_SEC, to: 60 * NANOS_PER_SEC },
        seeds: seeds.iter().copied().map(Some).collect(),
        seeds_inside: seeds.len(),
        over_seeds: OverSeeds::Median,
    }
}

/// A figure of so many variants.
fn figure(name: &str, variants: usize, flows: usize, text: &str) -> Section {
    let manner = |i: usize| [Manner::Xcp, Manner::DropTail, Manner::Red][i % 3];
    let runs: Vec<Run> = (0..variants)
        .map(|i| Run {
            variant: if i < 3 { run(manner(i), flows).variant } else { format!("n={i}{text}") },
            ..run(manner(i), flows)
        })
        .collect();
    let scenarios: Vec<Scenario> = (0..variants)
        .map(|i| Scenario {
            description: format!("{text} leads.\n\nLeft open:\n- this;\n- that."),
            ..scenario(manner(i))
        })
        .collect();
    let verdicts: Vec<Vec<Verdict>> = (0..variants)
        .map(|i| {
            let x = 0.9 + 0.01 * (i % 9) as f64;
            vec![
                verdict(
                    &format!("full {text}"),
                    "links.bottleneck.utilisation",
                    x,
                    Some(0.92),
                    None,
                    &[x - 0.02, x, x + 0.01],
                ),
                verdict("steady", "flows.*.goodput_cov.max", 0.2, None, Some(0.5), &[0.2]),
            ]
        })
        .collect();
    let theory = vec![vec![vec![("max-min", 1.0), ("equilibrium", 0.97)], vec![]]; variants];
    let shares =
        Curve { name: "flow".into(), points: vec![(0.0, 2.0e6), (30.0, f64::NAN), (40.0, 1.0e6)] };
    let reference = Reference {
        name: "shares by theory".into(),
        goodputs: vec![shares],
        utilisation: BTreeMap::new(),
    };
    let references = vec![vec![reference]; variants];
    section(&Figure {
        name,
        again: name,
        scenarios: &scenarios,
        runs: &runs,
        verdicts: &verdicts,
        theory: &theory,
        references: &references,
        seeds: 3,
    })
}

fn written(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn pages(text: &str) -> (String, String) {
    let sections = [
        figure("somebody-2026/fig02", 3, 4, text),
        figure("somebody-2026/fig10", 16, 40, text),
        figure("somebody-2026/section-3", 1, 9, text),
    ];
    let paper = Paper { name: "somebody-2026", title: text, about: text, sections: &sections };
    let cell = Cell::of_seeds(&scenario(Manner::Red), [&run(Manner::Red, 4)]).unwrap().0;
    let row = Row {
        situation: Situation {
            name: "failures/loss".into(),
            title: "One in a hundred is lost".into(),
            about: text.into(),
            seen: text.into(),
        },
        cells: [
            "xcp", "xcp-ir", "ixcp", "ixcp-r", "p-xcp", "max-rtt", "own-rtt", "newreno", "sack",
            "cubic",
        ]
        .map(|p| (p.to_owned(), cell, cell))
        .into(),
    };
    let tables = html(&[row.clone(), row], "failures", "Where each protocol fails", text);
    let left_out = ["somebody-2026/fig11".to_owned()];
    let front = Front {
        papers: &[paper],
        tables: &tables,
        left_out: &left_out,
        command: text,
        version: "0.1.0",
    };
    (front_page(&front), paper_page(&paper, text, "0.1.0"))
}

/// Nothing is said of papers where none was reproduced.
#[test]
fn tables_alone_are_no_papers() {
    let front = Front {
        papers: &[],
        tables: "<section>tables</section>",
        left_out: &[],
        command: "xcpnet reproduce failures",
        version: "0.1.0",
    };
    let page = front_page(&front);
    assert!(page.contains("<h1>Explicit congestion control: tables"), "{page}");
    assert!(page.contains("<section>tables</section>") && !page.contains("0 figures"), "{page}");
}

#[test]
fn every_claim_and_command_is_there_and_nothing_is_fetched() {
    let (front, paper) = pages("words");
    for page in [&front, &paper] {
        let hosts = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!hosts.contains("http://") && !hosts.contains("https://"));
        for name in ["fig02", "fig10", "section-3"] {
            assert!(page.contains(&format!("xcpnet reproduce somebody-2026/{name}")));
            assert!(page.contains(&format!("#{name}")));
        }
    }
    assert_eq!(paper.matches("<script").count(), 1, "what saves charts, and nothing else");
    assert!(paper.contains("script-src 'sha256-"), "which the policy knows");
    assert!(!front.contains("<script") && front.contains("script-src 'none'"), "no charts there");
    assert!(
        front.contains("somebody-2026.html#fig02")
            && front.contains("xcpnet reproduce failures/loss")
            && front.contains("fig11")
    );
    assert_eq!(paper.matches("full words").count(), 3 + 16 + 1);
    assert!(paper.contains("88.0 % to 91.0 % over 3 seeds") || paper.contains("over 3 seeds"));
    assert!(paper.contains("shares by theory") && paper.contains("equilibrium"));
    // One figure of 16 variants is drawn by its numbers, not by 16 x 4 charts.
    assert!(paper.matches("<svg class=\"chart\"").count() < 20);
    assert!(paper.len() < 400_000, "{} bytes for three figures", paper.len());
    assert!(front.find("id=\"failures\"") > front.find("fig02"), "the failures close the report");
}

/// The browser works through these one after the other: starting it takes longer than any of them.
#[test]
fn in_a_browser() {
    let Some(program) = browser::find() else { return };
    let mut browser = Browser::start(&program);
    let evil = "</code><script>window.stolen = 1</script><img src=x onerror=\"window.stolen = 1\">";
    for text in ["words of a usual length that describe what somebody found", evil] {
        let (front, paper) = pages(text);
        for (name, page) in [("front.html", front), ("paper.html", paper)] {
            let path = written(name, &page);
            for width in [1400, 800, 375] {
                browser.open(&path, width, 900);
                assert_eq!(
                    browser.complaints(),
                    Vec::<String>::new(),
                    "the console is quiet and nothing is fetched"
                );
                let scroll =
                    browser.eval("document.scrollingElement.scrollWidth").as_u64().unwrap();
                let beyond = format!(
                    "[...document.querySelectorAll('main *')].filter((e) => !e.closest('.wide') \
                        && e.getBoundingClientRect().right > {width}).map((e) => \
                        e.outerHTML.slice(0, 90))"
                );
                assert!(
                    scroll <= u64::from(width),
                    "{name} is {scroll} wide on a screen of {width}: {}",
                    browser.eval(&beyond)
                );
            }
            assert_eq!(
                browser.eval("typeof window.stolen"),
                "undefined",
                "names are text, never markup"
            );
            let ids = browser.eval(
                "(() => { const ids = [...document.querySelectorAll('[id]')].map((e) => e.id); return ids.length - new Set(ids).size; })()",
            );
            assert_eq!(ids, 0, "each id once");
            let lost = browser.eval(
                "[...document.querySelectorAll('a[href^=\"#\"]')].filter((a) => \
                    !document.getElementById(a.hash.slice(1))).length",
            );
            assert_eq!(lost, 0, "links lead somewhere");
            if name == "paper.html" {
                charts_can_be_saved(&mut browser, text);
            }
        }
    }
}

/// What a chart's menu saves; `nth` of those that are called so.
fn saved(browser: &mut Browser, chart: &str, nth: usize, kind: &str) -> String {
    let made = browser.eval(&format!(
        "papers.menus.filter((m) => m.textContent.includes({chart:?}))[{nth}].file({kind:?})\
         .then(async ([, blob]) => (blob.type === 'image/png' \
         ? new Uint8Array(await blob.arrayBuffer(), 0, 4).join() : blob.text()))"
    ));
    made.as_str().unwrap().to_owned()
}

/// Pictures stand on their own, light on any screen, and numbers are those that are drawn.
fn charts_can_be_saved(browser: &mut Browser, text: &str) {
    let charts = browser.eval("document.querySelectorAll('svg.chart').length");
    assert_eq!(browser.eval("papers.menus.length"), charts, "every chart can be saved");
    let well_formed = "Promise.all(papers.menus.map(async (menu) => { \
         const [, blob] = await menu.file('svg'); \
         const svg = new DOMParser().parseFromString(await blob.text(), 'image/svg+xml'); \
         return !svg.querySelector('parsererror, script, img'); }))\
         .then((all) => all.filter(Boolean).length)";
    assert_eq!(browser.eval(well_formed), charts, "whatever names are, they are text in it");
    let dark =
        serde_json::json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    browser.call("Emulation.setEmulatedMedia", dark);
    let svg = saved(browser, "Utilisation over time, XCP", 0, "svg");
    browser.call("Emulation.setEmulatedMedia", serde_json::json!({ "features": [] }));
    assert!(svg.contains("rgb(0, 114, 178)"), "the colours of paper: {svg}");
    assert!(
        !svg.contains("class=") && !svg.contains("data-") && svg.contains(">Utilisation %, XCP<"),
        "{svg}"
    );
    assert_eq!(saved(browser, "Utilisation over time, XCP", 0, "png"), "137,80,78,71");

    let run = run(Manner::Xcp, 4);
    let series = run
        .find(&Subject::Link("bottleneck".into()), Quantity::Utilisation)
        .expect("the run has it");
    let csv = saved(browser, "Utilisation over time, XCP", 0, "csv");
    assert_eq!(csv.lines().next(), Some("time_s,utilisation"));
    let drawn: Vec<(f32, f32)> = csv
        .lines()
        .skip(1)
        .map(|line| line.split_once(',').unwrap())
        .map(|(t, v)| (t.parse().unwrap(), v.parse().unwrap()))
        .collect();
    assert!(drawn.len() > 100, "{}", drawn.len());
    let measured: Vec<(f32, f32)> = series
        .times
        .iter()
        .zip(series.values.iter())
        .map(|(t, v)| ((*t as f64 / 1e9) as f32, v as f32))
        .collect();
    assert!(drawn.iter().all(|point| measured.contains(point)));

    let csv = saved(browser, "utilisation in each variant", 1, "csv");
    let mut lines = csv.lines();
    let head = "variant,measured,seeds_least,seeds_greatest,band_min,band_max,inside";
    assert_eq!(lines.next(), Some(&*format!("{head},max-min,equilibrium")));
    assert_eq!(lines.next(), Some("XCP,0.9,0.88,0.91,0.92,,no,1,0.97"));
    assert_eq!(csv.lines().count(), 17);
    assert!(csv.contains(&text.replace('"', "\"\"")), "{csv}");
}
