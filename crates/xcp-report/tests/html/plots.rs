//! The plots of a page in a browser: the numbers that they draw, the link that they are about, the
//! cursor and the zoom that they share.

use xcp_model::run::{Quantity, Run, Subject};

use crate::common::browser::Browser;

/// Numbers that uPlot draws, per curve; gaps are NaN.
fn drawn(browser: &mut Browser, row: &str, run: usize) -> Vec<Vec<f64>> {
    let found = format!(
        "xcpnet.plots.find((p) => p.key === {row:?} && p.run === xcpnet.runs[{run}]).uplot"
    );
    let data = browser.eval(&format!("Array.from({found}.data, (c) => Array.from(c))"));
    let curve = |c: &serde_json::Value| {
        c.as_array().unwrap().iter().map(|v| v.as_f64().unwrap_or(f64::NAN)).collect()
    };
    data.as_array().unwrap().iter().map(curve).collect()
}

/// The page carries 32-bit floats.
fn assert_same(drawn: &[f64], expected: &[f64], what: &str) {
    assert_eq!(drawn.len(), expected.len(), "{what}");
    for (i, (&a, &b)) in drawn.iter().zip(expected).enumerate() {
        assert!(
            a as f32 == b as f32 || a.is_nan() && b.is_nan(),
            "{what}, sample {i}: {a} drawn for {b}"
        );
    }
}

pub fn values(run: &Run, subject: Subject, quantity: Quantity) -> Vec<f64> {
    run.find(&subject, quantity).unwrap().values.to_vec()
}

pub fn plots_hold_the_numbers(browser: &mut Browser, runs: &[Run]) {
    assert_eq!(
        browser.eval("xcpnet.plots.length"),
        15,
        "five rows for three runs, the rest is folded away"
    );
    let link = || Subject::Link("bottleneck".into());
    for (i, run) in runs.iter().enumerate() {
        let times: Vec<f64> = run.series[0].times.iter().map(|&t| t as f64 / 1e9).collect();
        for (row, quantities) in [
            ("utilisation", &[Quantity::Utilisation][..]),
            ("queue", &[Quantity::QueueMax, Quantity::QueueMean]),
            ("drops", &[Quantity::Drops]),
        ] {
            let drawn = drawn(browser, row, i);
            assert_eq!(drawn[0], times, "{row}");
            assert_eq!(drawn.len(), 1 + quantities.len(), "{row}");
            for (curve, &quantity) in drawn[1..].iter().zip(quantities) {
                assert_same(curve, &values(run, link(), quantity), row);
            }
        }
        for (row, quantity) in [("goodput", Quantity::Goodput), ("cwnd", Quantity::Cwnd)] {
            let mut drawn = drawn(browser, row, i);
            if row == "goodput" && i == 0 {
                // Theory's lines come last: two that agree, one apart, one that begins later.
                let lines = drawn.split_off(5);
                assert_eq!(lines.len(), 3);
                assert!(lines[0].iter().all(|v| *v == 2e6) && lines[1].iter().all(|v| *v == 1e6));
                assert!(lines[2].iter().zip(&times).all(|(v, t)| if *t > 30.0 {
                    *v == 3e6
                } else {
                    v.is_nan()
                }));
                let legend = browser.eval(
                    "[...document.querySelectorAll('[data-row=goodput] \
                    figure[data-run=\"0\"] .legend li')].map((l) => l.textContent.trim())",
                );
                let legend = legend.to_string();
                assert!(
                    legend.contains("max-min: flow-1, flow-2") && legend.contains("equilibrium"),
                    "{legend}"
                );
                let cells = browser
                    .eval(
                        "[...document.querySelectorAll('[aria-labelledby=links] th')].map((t) \
                        => t.textContent).join()",
                    )
                    .to_string();
                assert!(
                    cells.contains("by max-min") && cells.contains("by equilibrium"),
                    "{cells}"
                );
            }
            assert_eq!(drawn.len(), 5, "{row}: times and four flows");
            for (k, curve) in drawn[1..].iter().enumerate() {
                assert_same(
                    curve,
                    &values(run, Subject::Flow(format!("flow-{}", k + 1)), quantity),
                    row,
                );
            }
        }
    }
    // The folded rows are drawn when they are opened.
    browser.eval("new Promise((done) => \
        { const d = document.getElementById('more'); d.addEventListener('toggle', () => setTimeout(() => done(0))); d.open = true; })");
    assert_same(
        &drawn(browser, "srtt", 1)[2],
        &values(&runs[1], Subject::Flow("flow-2".into()), Quantity::Srtt),
        "srtt",
    );
    assert_same(&drawn(browser, "phi", 0)[1], &values(&runs[0], link(), Quantity::Phi), "phi");
    let shared = browser.eval(
        "new Set(xcpnet.plots.filter((p) => p.key === 'queue').map((p) => \
        p.uplot.scales.y.max)).size",
    );
    assert_eq!(shared, 1, "a row of plots shares its axis");
    let visible = browser.eval(
        "[...document.querySelectorAll('.row:not(.empty) \
        canvas')].every((c) => c.width > 100 && c.height > 50)",
    );
    assert_eq!(visible, true);
    let painted = "xcpnet.plots.every((p) => \
        { const c = p.uplot.ctx.canvas; return p.uplot.ctx.getImageData(0, 0, c.width, c.height).data.some((v) => v > 0); })";
    assert_eq!(browser.eval(painted), true, "something is on every canvas");
    let labelled = "[...document.querySelectorAll('.row:not(.empty) .plot')].every((p) => \
        p.getAttribute('aria-label').length > 10)";
    assert_eq!(browser.eval(labelled), true, "every plot says in words what it shows");
}

pub fn the_drop_down_changes_the_link(browser: &mut Browser, runs: &[Run]) {
    browser.eval("xcpnet.choose('bottleneck.reverse')");
    let reverse = Subject::Link("bottleneck.reverse".into());
    assert_same(
        &drawn(browser, "queue", 1)[1],
        &values(&runs[1], reverse, Quantity::QueueMean),
        "the other direction",
    );
    browser.eval("xcpnet.choose('bottleneck')");
}

pub fn cursor_and_zoom_are_shared(browser: &mut Browser) {
    browser.eval(
        "document.querySelector('[data-zoom=measured]').click(), new Promise((done) => \
        setTimeout(done))",
    );
    let views = browser.eval(
        "[...new Set(xcpnet.plots.map((p) => p.uplot.scales.x.min + ' ' + p.uplot.scales.x.max))]",
    );
    assert_eq!(views, serde_json::json!(["20 60"]));
    browser.eval(
        "document.querySelector('[data-zoom=all]').click(), new Promise((done) => \
        setTimeout(done))",
    );
    assert_eq!(browser.eval("xcpnet.plots[3].uplot.scales.x.max"), 60);
    browser.eval("xcpnet.plots[0].uplot.setCursor({ left: 100, top: 10 }, true, true)");
    let indices = browser.eval("[...new Set(xcpnet.plots.map((p) => p.uplot.cursor.idx))].length");
    assert_eq!(indices, 1, "the cursor stands at the same time in every plot");
    let told = browser.eval(
        "[...document.querySelectorAll('.row[data-row=queue] .at')].every((e) \
        => e.textContent.endsWith(' s'))",
    );
    assert_eq!(told, true);
}

pub fn bands_hold_the_quantiles(browser: &mut Browser, runs: &[Run]) {
    let drawn = drawn(browser, "cwnd", 1);
    assert_eq!(drawn.len(), 6, "times, minimum, quartiles, maximum");
    let flows: Vec<Vec<f64>> = (1..=120)
        .map(|i| values(&runs[1], Subject::Flow(format!("flow-{i}")), Quantity::Cwnd))
        .collect();
    for t in [0, 100, 599] {
        let mut at: Vec<f64> = flows.iter().map(|f| f[t]).collect();
        at.sort_by(f64::total_cmp);
        assert_eq!(drawn[1][t] as f32, at[0] as f32);
        assert_eq!(
            drawn[3][t] as f32,
            ((at[59] + at[60]) / 2.0) as f32,
            "the median of an even number"
        );
        assert_eq!(drawn[5][t] as f32, at[119] as f32);
    }
    let said = browser.eval("document.body.innerText.includes('a group of flows is drawn as one')");
    assert_eq!(said, true, "the page says what it left out");
}
