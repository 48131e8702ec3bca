//! The HTML report in a real browser: it renders offline and without complaint, its plots hold the
//! runs' numbers, it fits a phone.

mod common;

use std::collections::BTreeMap;
use std::path::PathBuf;

use common::browser::{self, Browser};
use common::{Manner, run, scenario};
use serde_json::json;
use xcp_model::OverSeeds;
use xcp_model::Verdict;
use xcp_model::run::{GroupSummary, Quantity, Run, Subject};
use xcp_model::spread::Percentiles;
use xcp_model::units::{NANOS_PER_SEC, Period};
use xcp_report::plot::{Kind, Wanted, figure};
use xcp_report::{Curve, Reference, Report, Source, html, human};

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

/// How many pictures of these menus are SVG with text and lines, and nothing else.
fn well_formed(menus: &str) -> String {
    format!(
        "Promise.all({menus}.map(async (menu) => {{ \
         const [name, blob] = await menu.file('svg'); \
         const svg = new DOMParser().parseFromString(await blob.text(), 'image/svg+xml'); \
         return /^[^<>/\\\\]+$/.test(name) && !svg.querySelector('parsererror') \
         && !svg.querySelector('script, img, image, foreignObject'); }}))\
         .then((all) => all.filter(Boolean).length)"
    )
}

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

fn values(run: &Run, subject: Subject, quantity: Quantity) -> &[f64] {
    &run.find(&subject, quantity).unwrap().values
}

fn plots_hold_the_numbers(browser: &mut Browser, runs: &[Run]) {
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
                assert_same(curve, values(run, link(), quantity), row);
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
                    values(run, Subject::Flow(format!("flow-{}", k + 1)), quantity),
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
        values(&runs[1], Subject::Flow("flow-2".into()), Quantity::Srtt),
        "srtt",
    );
    assert_same(&drawn(browser, "phi", 0)[1], values(&runs[0], link(), Quantity::Phi), "phi");
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

fn the_drop_down_changes_the_link(browser: &mut Browser, runs: &[Run]) {
    browser.eval("xcpnet.choose('bottleneck.reverse')");
    let reverse = Subject::Link("bottleneck.reverse".into());
    assert_same(
        &drawn(browser, "queue", 1)[1],
        values(&runs[1], reverse, Quantity::QueueMean),
        "the other direction",
    );
    browser.eval("xcpnet.choose('bottleneck')");
}

fn cursor_and_zoom_are_shared(browser: &mut Browser) {
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

/// What the menu of a chart saves, as text; of a PNG its first bytes and its size in dots.
fn saved(browser: &mut Browser, row: &str, run: usize, kind: &str) -> (String, String) {
    let made = browser.eval(&format!(
        "xcpnet.plots.find((p) => p.key === {row:?} && p.run === xcpnet.runs[{run}])\
         .menu.file({kind:?}).then(async ([name, blob]) => {{ \
         if (blob.type !== 'image/png') return [name, await blob.text()]; \
         const bytes = new Uint8Array(await blob.arrayBuffer(), 0, 4).join(); \
         const image = await createImageBitmap(blob); \
         return [name, `${{bytes}} ${{image.width}}`]; }})"
    ));
    let text = |i: usize| made[i].as_str().unwrap().to_owned();
    (text(0), text(1))
}

/// Every chart gives its picture, on the sheet of `xcpnet plot`, and its numbers.
fn charts_can_be_saved(browser: &mut Browser, runs: &[Run]) {
    let menus = "[...document.querySelectorAll('.row:not(.empty) figure')]\
        .every((f) => f.querySelectorAll('figcaption .save button').length === 3)";
    assert_eq!(browser.eval(menus), true, "each has its menu");
    for run in 0..runs.len() {
        let (name, svg) = saved(browser, "cwnd", run, "svg");
        assert!(name.ends_with("cwnd_packets.svg") && name.contains("Four-flows"), "{name}");
        let wanted = Wanted { kind: Kind::Series, quantity: Some("cwnd_packets"), link: None };
        let plotted = figure(&runs[run..=run], &[], &wanted).unwrap().svg();
        alike(&svg, &plotted, run > 0);
    }
    let (name, csv) = saved(browser, "queue", 0, "csv");
    assert!(name.ends_with("-XCP-queue_mean_packets.csv"), "{name}");
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("time_s,link,queue_mean_packets,queue_max_packets"));
    let link = Subject::Link("bottleneck".into());
    let (mean, most) = (
        values(&runs[0], link.clone(), Quantity::QueueMean),
        values(&runs[0], link, Quantity::QueueMax),
    );
    for ((line, mean), most) in lines.by_ref().zip(mean).zip(most) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells[1], "bottleneck");
        assert_eq!(cells[2].parse::<f32>().unwrap(), *mean as f32, "{line}");
        assert_eq!(cells[3].parse::<f32>().unwrap(), *most as f32, "{line}");
    }
    assert_eq!((csv.lines().count(), lines.next()), (mean.len() + 1, None));
    // Theory is in the picture and in the numbers; what is hidden and what is zoomed away is not.
    browser.eval("xcpnet.zoom(20, 40)");
    let hide = "[...document.querySelectorAll('[data-row=goodput] .legend button')]\
        .find((b) => b.textContent.startsWith('flow-2')).click()";
    browser.eval(hide);
    let (_, csv) = saved(browser, "goodput", 0, "csv");
    assert!(csv.contains(",flow-1,") && !csv.contains(",flow-2,"));
    assert!(csv.contains(",\"max-min: flow-1, flow-2\",2000000\n"), "{}", &csv[csv.len() - 300..]);
    let times = csv.lines().skip(1).map(|line| line.split(',').next().unwrap());
    assert!(times.map(|t| t.parse::<f64>().unwrap()).all(|t| (20.0..=40.0).contains(&t)));
    let (_, svg) = saved(browser, "goodput", 0, "svg");
    assert!(svg.contains("stroke-dasharray") && !svg.contains(">flow-2<"));
    browser.eval(hide);
    browser.eval("xcpnet.zoom(0, 60)");
    for row in ["utilisation", "queue", "drops"] {
        let (_, png) = saved(browser, row, 1, "png");
        assert_eq!(png, "137,80,78,71 2016", "{row}: 252 points at 576 dots to the inch");
    }
}

/// Two sheets with the same frame, ticks and curves: theirs is drawn by a script from 32-bit
/// numbers, so that lines may lie a few hundredths of a point apart. `room`: and the y axes are the
/// same, which rows of several runs share.
fn alike(theirs: &str, ours: &str, room: bool) {
    let frame = |svg: &str| svg[..svg.find('\n').unwrap()].to_owned();
    assert_eq!(frame(theirs), frame(ours));
    let lines = |svg: &str, what: &str| -> Vec<String> {
        svg.lines().filter(|line| line.starts_with(what)).map(str::to_owned).collect()
    };
    let looks = |line: &String| line[line.find(" fill").unwrap()..].to_owned();
    let curves = |svg: &str| -> Vec<String> {
        let all = lines(svg, "<path").into_iter();
        // Those of two points are samples beside names, which stand farther apart where the machine
        // has no Helvetica.
        let drawn =
            |line: &String| line.contains("stroke-width=\"1\"") && line.matches('L').count() > 1;
        all.filter(drawn).collect()
    };
    let (a, b) = (curves(theirs), curves(ours));
    assert_eq!(a.iter().map(looks).collect::<Vec<_>>(), b.iter().map(looks).collect::<Vec<_>>());
    if !room {
        return;
    }
    let names = |line: &String| line.contains("text-anchor=\"start\"");
    let texts = |svg: &str| -> Vec<String> {
        lines(svg, "<text").into_iter().filter(|line| !names(line)).collect()
    };
    assert_eq!(texts(theirs), texts(ours), "ticks and axes");
    let places = |line: &String| -> Vec<f64> {
        let d = line.split('"').nth(1).unwrap();
        d.split(['M', 'L', ' ']).filter(|n| !n.is_empty()).map(|n| n.parse().unwrap()).collect()
    };
    for (a, b) in a.iter().map(places).zip(b.iter().map(places)) {
        assert_eq!(a.len(), b.len());
        let apart = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < 0.03, "{apart} points apart");
    }
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

fn bands_hold_the_quantiles(browser: &mut Browser, runs: &[Run]) {
    let drawn = drawn(browser, "cwnd", 1);
    assert_eq!(drawn.len(), 6, "times, minimum, quartiles, maximum");
    let flows: Vec<&[f64]> = (1..=120)
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
        series.values.iter_mut().step_by(3).for_each(|v| *v = f64::NAN);
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

#[test]
fn the_page_is_the_same_every_time_and_names_no_host() {
    let (_, once) = page(4);
    let (_, again) = page(4);
    assert!(once == again);
    let own: String = once.split("/*! https://github.com/leeoniya/uPlot").collect();
    let own = own.replace("http://www.w3.org/2000/svg", "");
    assert!(
        !own.contains("https://") && !own.contains("http://"),
        "nothing in the page points outside it but uPlot's note of its origin"
    );
}

/// Long runs and large networks: drawn in groups, and the page says so.
#[test]
fn what_is_left_out_is_told() {
    let mut long = run(Manner::Xcp, 1);
    let times = std::sync::Arc::new((1..=9000).collect::<Vec<u64>>());
    for series in &mut long.series {
        series.times = std::sync::Arc::clone(&times);
        series.values = vec![1.0; 9000];
    }
    let some = long.summary.links["S-R"].clone();
    long.summary.links.extend((0..50).map(|i| (format!("access-{i}"), some.clone())));
    let report = Report {
        runs: &[long],
        scenarios: &[],
        sources: &[],
        verdicts: &[],
        references: &[],
        command: "",
        playgrounds: &[],
        version: "",
    };
    let text = html(&report);
    assert!(text.contains("\"bucket\":3"), "9000 samples in groups of three");
    assert!(text.contains("drawn in equal groups"));
    assert!(text.contains("Of 53 link directions the page shows 40"));
}

/// What one should know before believing the numbers is on the page, and that a measurement is no
/// simulation.
#[test]
fn notes_are_on_the_page() {
    let told = |run: Run| {
        let text = html(&Report {
            runs: &[run],
            scenarios: &[],
            sources: &[],
            verdicts: &[],
            references: &[],
            command: "",
            playgrounds: &[],
            version: "",
        });
        (
            text.contains("<h2 id=\"notes\">"),
            text.contains("the line was 12 ms late"),
            text.contains("give the same numbers"),
        )
    };
    assert_eq!(told(run(Manner::Xcp, 1)), (false, false, true));
    let mut measured = run(Manner::Xcp, 1);
    measured.summary.backend = "linux".into();
    measured.summary.notes = vec!["the line was 12 ms late".into()];
    assert_eq!(told(measured), (true, true, false));
}

/// Nothing is offered that is not there: no plots without series, no groups without times; and what
/// there is has its percentiles.
#[test]
fn without_series_there_are_no_plots() {
    let page = |run: Run| {
        let runs = [run];
        html(&Report {
            runs: &runs,
            scenarios: &[],
            sources: &[],
            verdicts: &[],
            references: &[],
            command: "",
            playgrounds: &[],
            version: "",
        })
    };
    let mut run = run(Manner::Xcp, 1);
    let before = page(run.clone());
    assert!(
        before.contains("<section class=\"row\"")
            && before.contains("<div class=\"tools\"")
            && !before.contains("id=\"groups\"")
    );
    run.series.clear();
    let times = Percentiles { p50: 0.0125, p95: 0.5, p99: 2.0 };
    run.summary.groups.push(GroupSummary {
        name: "web".into(),
        from: "S".into(),
        to: "D".into(),
        flows: 7,
        completed: 5,
        completion_time: Some(times),
        rtt: None,
    });
    let after = page(run);
    assert!(!after.contains("<section class=\"row\"") && !after.contains("<div class=\"tools\""));
    assert!(after.contains("There are no curves"));
    assert!(
        after.contains("id=\"groups\"")
            && after.contains("<td class=\"n\">12.5 ms<br><small>500 ms – 2.00 s</small></td>")
    );
}

#[test]
fn without_runs_there_is_still_a_page() {
    let report = Report {
        runs: &[],
        scenarios: &[],
        sources: &[],
        verdicts: &[],
        references: &[],
        command: "",
        playgrounds: &[],
        version: "",
    };
    assert!(html(&report).contains("No runs"));
}

#[test]
fn size_is_reasonable() {
    // Three runs of a hundred flows and 600 samples: groups, not every flow's curve.
    let (_, text) = page(120);
    assert!(text.len() < 400_000, "{} bytes", text.len());
}
