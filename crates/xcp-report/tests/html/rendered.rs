//! The page in a browser: that it is quiet, fits, prints, and takes no name for markup. What its
//! plots show and what they save has files of its own.

use std::path::PathBuf;

use serde_json::json;
use xcp_model::run::{Run, Subject};
use xcp_report::{Report, Source, html, human};

use crate::common::browser::{self, Browser};
use crate::common::{Manner, run};
use crate::page;
use crate::plots::{
    bands_hold_the_quantiles, cursor_and_zoom_are_shared, plots_hold_the_numbers,
    the_drop_down_changes_the_link,
};
use crate::saved::{charts_can_be_saved, well_formed};

fn written(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// The browser works through these one after the other: starting it takes longer than any of them.
#[test]
fn in_a_browser() {
    let Some(program) = browser::find() else { return };
    let mut browser = Browser::start(&program);
    let (runs, text) = page(4);
    let path = written("report.html", &text);

    browser.open(&path, 1400, 900);
    assert_eq!(
        browser.complaints(),
        Vec::<String>::new(),
        "the console is quiet and nothing is fetched"
    );
    numbers_are_those_of_the_tables(&mut browser);
    plots_hold_the_numbers(&mut browser, &runs);
    the_drop_down_changes_the_link(&mut browser, &runs);
    cursor_and_zoom_are_shared(&mut browser);
    charts_can_be_saved(&mut browser, &runs);
    it_prints_light_and_narrow(&mut browser);
    assert_eq!(browser.complaints(), Vec::<String>::new());

    for width in [1400, 1000, 800] {
        browser.open(&path, width, 900);
        headline_does_not_overlap(&mut browser);
    }
    browser.open(&path, 375, 800);
    headline_does_not_overlap(&mut browser);
    it_fits(&mut browser, 375);
    browser.open(&path, 320, 800);
    it_fits(&mut browser, 320);

    let (runs, text) = page(120);
    browser.open(&written("many-flows.html", &text), 1400, 900);
    bands_hold_the_quantiles(&mut browser, &runs);
    assert_eq!(browser.complaints(), Vec::<String>::new());

    let (_, text) = hostile();
    browser.open(&written("hostile.html", &text), 375, 800);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    assert_eq!(browser.eval("typeof window.stolen"), "undefined", "names are text, never markup");
    let charts = browser.eval("xcpnet.plots.length");
    assert_ne!(charts, 0);
    let saved = browser.eval(&well_formed("xcpnet.plots.map((p) => p.menu)"));
    assert_eq!(saved, charts, "so they are in what is saved");
    it_fits(&mut browser, 375);
}

/// `assets/numbers.js` and `human.rs` are one set of rules in two languages.
fn numbers_are_those_of_the_tables(browser: &mut Browser) {
    // Around every threshold, where a digit more or less is shown or the unit changes; and what is
    // exactly between two.
    let around = |x: f64| [x * (1.0 - 1e-4), x.next_down(), x, x.next_up(), x * (1.0 + 1e-4)];
    let significands = [0.9995, 0.99951, 0.99995, 1.0, 2.384, 9.995, 0.125, 0.375, 0.0625, 1.005];
    let values: Vec<f64> = (-7..=11)
        .flat_map(|e| significands.map(|s| s * 10f64.powi(e)))
        .chain([0.5, 1.5, 2.5, 1234.5, 1235.5, 0.25, 0.75, 12.25, 12.75, 0.99991])
        .flat_map(around)
        .flat_map(|x| [x, -x])
        .chain([0.0])
        .collect();
    for (ours, theirs) in [
        ("number(x)", human::number as fn(f64) -> String),
        ("percent(x)", human::percent),
        ("index(x)", human::index),
        ("withUnit('bps', x)", human::rate),
        ("withUnit('seconds', x)", human::seconds),
    ] {
        let shown = browser.eval(&format!("{}.map((x) => xcpNumbers.{ours})", json!(values)));
        let shown: Vec<String> = serde_json::from_value(shown).unwrap();
        for (x, shown) in values.iter().zip(shown) {
            assert_eq!(shown, theirs(*x), "{ours} of {x}");
        }
        assert_eq!(browser.eval(&format!("(x => xcpNumbers.{ours})(NaN)")), theirs(f64::NAN));
    }
    let unit = |largest: f64| {
        browser
            .eval(&format!("xcpNumbers.unitFor('bps', {largest})[1]"))
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!([999_400.0, 999_600.0].map(unit), ["kbit/s", "Mbit/s"], "of an axis, too");
}

fn it_prints_light_and_narrow(browser: &mut Browser) {
    let dark =
        serde_json::json!({ "features": [{ "name": "prefers-color-scheme", "value": "dark" }] });
    browser.call("Emulation.setEmulatedMedia", dark);
    browser.eval("dispatchEvent(new Event('beforeprint'))");
    assert_eq!(
        browser.eval("getComputedStyle(document.body).backgroundColor"),
        "rgb(255, 255, 255)",
        "light even where the screen is dark"
    );
    assert_eq!(
        browser.eval(
            "Math.max(...[...document.querySelectorAll('.row:not(.empty) .plot')].map((p) => \
                p.getBoundingClientRect().right)) <= 680"
        ),
        true
    );
    assert_eq!(
        browser.eval("document.querySelector('details.source').open"),
        true,
        "the scenario is unfolded"
    );
    browser.eval("dispatchEvent(new Event('afterprint'))");
    assert_ne!(
        browser.eval("getComputedStyle(document.body).backgroundColor"),
        "rgb(255, 255, 255)"
    );
    let pdf = browser.call("Page.printToPDF", serde_json::json!({}));
    assert!(pdf["data"].as_str().unwrap().starts_with("JVBERi"), "base64 of %PDF");
    browser.call("Emulation.setEmulatedMedia", serde_json::json!({ "features": [] }));
}

fn it_fits(browser: &mut Browser, width: u32) {
    let scroll = browser.eval("document.scrollingElement.scrollWidth").as_u64().unwrap();
    assert!(scroll <= u64::from(width), "the page is {scroll} wide on a screen of {width}");
    let columns = browser.eval(
        "new Set([...document.querySelectorAll('.row[data-row=queue] figure')].map((f) => \
            f.getBoundingClientRect().left)).size",
    );
    assert_eq!(columns, 1, "one column");
    let wide = browser.eval(
        "[...document.querySelectorAll('.plot .u-wrap')].every((p) => p.clientWidth \
            <= p.closest('.plot').clientWidth)",
    );
    assert_eq!(wide, true);
}

fn headline_does_not_overlap(browser: &mut Browser) {
    // A figure's text is as wide as its last inline box; it must end before the next figure of its
    // line begins.
    let overlaps = "[...document.querySelectorAll('.card')].flatMap((card) => {
        const boxes = [...card.querySelectorAll('.figure dd')].map((dd) => { const r = document.createRange(); r.selectNodeContents(dd); return r.getBoundingClientRect(); });
        return boxes.filter((a, i) => a.right > card.getBoundingClientRect().right + 1 || boxes.some((b, k) => k > i && b.left < a.right && b.right > a.left && b.top < a.bottom && b.bottom > a.top));
    }).length";
    assert_eq!(browser.eval(overlaps), 0);
}

/// A run whose names try to be markup, whose numbers are missing, cut short.
fn hostile() -> (Vec<Run>, String) {
    let mut run = run(Manner::Xcp, 2);
    let evil =
        "</script><script>window.stolen = 1</script><img src=x onerror=\"window.stolen = 1\">";
    run.title = format!("{evil}{}", "unbroken".repeat(40));
    run.variant = evil.repeat(3);
    run.summary.flows[0].name = evil.into();
    run.summary.interrupted = true;
    run.summary.notes = vec![evil.into()];
    run.completed /= 2;
    for series in &mut run.series {
        if series.subject == Subject::Flow("flow-1".into()) {
            series.subject = Subject::Flow(evil.into());
        }
        let mut values = series.values.to_vec();
        values.iter_mut().step_by(3).for_each(|v| *v = f64::NAN);
        series.values = values.into();
    }
    let summary = run.summary.links["bottleneck"].clone();
    run.summary.links.insert(evil.into(), summary);
    let runs = vec![run];
    let sources = [Source { name: evil.into(), text: evil.into() }];
    let report = Report {
        runs: &runs,
        scenarios: &[],
        sources: &sources,
        verdicts: &[],
        references: &[],
        command: evil,
        playgrounds: &[],
        version: evil,
    };
    let text = html(&report);
    (runs, text)
}
