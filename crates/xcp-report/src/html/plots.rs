//! The plots' empty places, which report.js fills, and what is said of them.

use std::fmt::Write as _;

use xcp_theory::timeline::{CHANGES, is_followed};

use super::sections::{grid, quiet};
use super::{Report, data, escape};
use crate::{human, links};

/// A row of plots: its key in report.js, heading, explanation.
struct Row {
    key: &'static str,
    heading: &'static str,
    note: &'static str,
}

/// What everybody looks at.
const ROWS: [Row; 5] = [
    Row {
        key: "utilisation", heading: "Utilisation", note: "share of the link’s capacity in use"
    },
    Row {
        key: "queue",
        heading: "Queue",
        note: "packets waiting: mean of each interval, the largest shaded",
    },
    Row { key: "drops", heading: "Drops", note: "packets dropped by the queue in each interval" },
    Row {
        key: "goodput",
        heading: "Goodput",
        note: "new data that reached the receiving application",
    },
    Row {
        key: "cwnd",
        heading: "Congestion window",
        note: "packets that each sender may have in flight",
    },
];

/// What explains the rest.
const MORE: [Row; 8] = [
    Row { key: "srtt", heading: "Round-trip time", note: "smoothed, as the sender sees it" },
    Row {
        key: "retransmits",
        heading: "Retransmissions",
        note: "segments sent again in each interval",
    },
    Row {
        key: "control_interval",
        heading: "Control interval",
        note: "XCP router: the mean RTT that it works with",
    },
    Row {
        key: "flows_estimated",
        heading: "Flows",
        note: "XCP router: its estimate of their number",
    },
    Row {
        key: "phi",
        heading: "Aggregate feedback",
        note: "XCP router: φ of the last control interval",
    },
    Row {
        key: "shuffled",
        heading: "Shuffled traffic",
        note: "XCP router: traffic taken and given back for fairness",
    },
    Row {
        key: "persistent_queue",
        heading: "Persistent queue",
        note: "XCP router: the queue that did not drain within an interval",
    },
    Row {
        key: "input_traffic",
        heading: "Input traffic",
        note: "XCP router: rate of arrivals in the last control interval",
    },
];

/// Writes them all.
pub(super) fn write(report: &Report<'_>, page: &mut String) {
    page.push_str(
        "<section aria-labelledby=\"curves\" id=\"plots\">\n<h2 id=\"curves\" \
        class=\"sr\">Curves</h2>\n",
    );
    if report.runs.iter().all(|run| run.series.is_empty()) {
        page.push_str(
            "<p class=\"note\">There are no curves: <code>sample</code> is \
            <code>\"off\"</code>, or longer than the run.</p>\n</section>\n",
        );
        return;
    }
    page.push_str(
        "<div class=\"tools\" hidden>\n<label id=\"link-choice\">Link \
        <select></select></label>\n<div class=\"zoom\" role=\"group\" aria-label=\"Stretch of \
        time shown\"><button type=\"button\" data-zoom=\"all\" aria-pressed=\"true\">Whole \
        run</button><button type=\"button\" data-zoom=\"measured\" \
        aria-pressed=\"false\">Measured part</button></div>\n<p class=\"hint\">Point to read \
        values in all plots; drag or pinch to zoom.</p>\n</div>\n",
    );
    page.push_str(
        "<noscript><p class=\"warn\">The curves are drawn by a script that this browser \
        does not run; the tables below hold the figures.</p></noscript>\n",
    );
    let mut notes = Vec::new();
    let most = report.runs.iter().map(|r| r.summary.flows.len()).max().unwrap_or(0);
    if most > data::LINES {
        notes.push(format!(
            "With more than {} flows, a group of flows is drawn as one: the line is the median \
             flow, the darker band is the middle half, the lighter band all of them.",
            data::LINES
        ));
    }
    if report.scenarios.iter().any(|s| s.measure.from > 0 || s.measure.to < s.duration) {
        notes.push(
            "The grey bar under a plot marks the part of the run that the figures cover."
                .to_owned(),
        );
    }
    if report.runs.iter().flat_map(|r| &r.series).any(|s| s.times.len() > data::POINTS) {
        notes.push(
            "If there are more samples than can be seen, they are drawn in equal groups: as their \
             mean, as the sum for counts, and as the maximum for the largest queue."
                .to_owned(),
        );
    }
    let theories = theories(report);
    if !theories.is_empty() {
        notes.push(format!("Dashed lines beside goodput are theory: {}.", theories.join("; ")));
    }
    if !report.references.is_empty() && !report.scenarios.iter().all(is_followed) {
        notes.push(format!(
            "No theory is drawn beside runs with more changes than it follows: {CHANGES}, fewer if \
             there are very many flows."
        ));
    }
    let directions = links::all(report.runs).len();
    if directions > data::LINKS {
        notes.push(format!(
            "Of {directions} link directions the page shows {}: the bottlenecks and the most used.",
            data::LINKS
        ));
    }
    if !notes.is_empty() {
        put!(page, "<p class=\"note\">{}</p>\n", escape(&notes.join(" ")));
    }
    for row in &ROWS {
        plot_row(report, row, page);
    }
    page.push_str(
        "<details id=\"more\">\n<summary><h2>Round-trip times and the router’s own \
        variables</h2></summary>\n",
    );
    for row in &MORE {
        plot_row(report, row, page);
    }
    page.push_str("</details>\n</section>\n");
}

fn plot_row(report: &Report<'_>, row: &Row, page: &mut String) {
    let key = row.key;
    put!(page, "<section class=\"row\" data-row=\"{key}\" aria-labelledby=\"row-{key}\">\n");
    put!(
        page,
        "<h3 id=\"row-{key}\">{} <span class=\"unit\"></span></h3>\n<p class=\"note\">{}<span \
            class=\"of\"></span></p>\n",
        row.heading,
        row.note
    );
    page.push_str(&grid(report));
    for (i, run) in report.runs.iter().enumerate() {
        put!(
            page,
            "<figure data-run=\"{i}\"><figcaption><b{}>{}</b><span \
                class=\"at\"></span></figcaption><div class=\"plot\"></div><ul \
                class=\"legend\"></ul></figure>\n",
            quiet(report),
            escape(human::run_name(run))
        );
    }
    page.push_str("</div>\n</section>\n");
}

/// Names of what the runs are compared with, each once, in order.
pub(super) fn theories<'a>(report: &Report<'a>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for reference in report.references.iter().flatten() {
        if !names.contains(&reference.name.as_str()) {
            names.push(&reference.name);
        }
    }
    names
}
