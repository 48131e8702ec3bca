//! What the menu of a chart saves in a browser: pictures like those of `xcpnet plot`, and numbers.

use xcp_model::run::{Quantity, Run, Subject};
use xcp_report::plot::{Kind, Wanted, figure};

use crate::MANNERS;
use crate::common::browser::Browser;
use crate::common::scenario;
use crate::plots::values;

/// How many pictures of these menus are SVG with text and lines, and nothing else.
pub fn well_formed(menus: &str) -> String {
    format!(
        "Promise.all({menus}.map(async (menu) => {{ \
         const [name, blob] = await menu.file('svg'); \
         const svg = new DOMParser().parseFromString(await blob.text(), 'image/svg+xml'); \
         return /^[^<>/\\\\]+$/.test(name) && !svg.querySelector('parsererror') \
         && !svg.querySelector('script, img, image, foreignObject'); }}))\
         .then((all) => all.filter(Boolean).length)"
    )
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
pub fn charts_can_be_saved(browser: &mut Browser, runs: &[Run]) {
    let menus = "[...document.querySelectorAll('.row:not(.empty) figure')]\
        .every((f) => f.querySelectorAll('figcaption .save button').length === 3)";
    assert_eq!(browser.eval(menus), true, "each has its menu");
    for run in 0..runs.len() {
        let (name, svg) = saved(browser, "cwnd", run, "svg");
        assert!(name.ends_with("cwnd_packets.svg") && name.contains("Four-flows"), "{name}");
        let wanted = Wanted { kind: Kind::Series, quantity: Some("cwnd_packets"), link: None };
        let plotted = figure(&runs[run..=run], &[scenario(MANNERS[run])], &wanted).unwrap().svg();
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
    for ((line, mean), most) in lines.by_ref().zip(mean.iter()).zip(&most) {
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
