//! The page's body: headings, headline numbers, empty places for the plots, tables, the scenario,
//! how it was made.

use std::fmt::Write as _;

use xcp_model::run::{FlowSummary, Run};
use xcp_model::spread::Percentiles;
use xcp_model::spread::nearest_rank;
use xcp_model::{Direction, Limit, Preset};

use super::{Report, data, escape, inline};
use crate::table::{band, groups, measured, quantile, sorted};
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

/// Writes the body.
pub(super) fn write(report: &Report<'_>, page: &mut String) {
    heading(report, page);
    headline(report, page);
    plots(report, page);
    verdicts(report, page);
    link_table(report, page);
    flow_table(report, page);
    group_table(report, page);
    notes(report, page);
    sources(report, page);
    made(report, page);
}

/// Appends formatted text; writing into a string cannot fail.
macro_rules! put {
    ($page:expr, $($arg:tt)*) => {{ let _ = write!($page, $($arg)*); }};
}

fn heading(report: &Report<'_>, page: &mut String) {
    let title = report.runs.first().map_or("No runs", |run| run.title.as_str());
    let others = titles(report).len().saturating_sub(1) as u64;
    let more = if others == 0 {
        String::new()
    } else {
        format!(" and {}", human::plural(others, "other scenario"))
    };
    put!(page, "<header>\n<h1>{}{more}</h1>\n", escape(title));
    // The first paragraph leads; the rest is with the scenario's text, which holds it.
    if let Some(text) = report
        .scenarios
        .first()
        .filter(|_| others == 0)
        .and_then(|s| s.description.trim().split("\n\n").next())
        .filter(|t| !t.is_empty())
    {
        put!(page, "<p class=\"lead\">{}</p>\n", inline(text));
    }
    let mut facts: Vec<String> = Vec::new();
    if let Some(run) = report.runs.first() {
        let backend = match run.summary.backend.as_str() {
            "sim" => "simulated",
            "linux" => "measured on Linux",
            other => other,
        };
        let lengths = report.runs.iter().map(|r| r.completed);
        let (shortest, longest) = (lengths.clone().min().unwrap_or(0), lengths.max().unwrap_or(0));
        let range = if shortest == longest {
            String::new()
        } else {
            format!("{} to ", human::nanos(shortest))
        };
        facts.push(format!("{range}{} {backend}", human::nanos(longest)));
        let seeds: std::collections::BTreeSet<u64> =
            report.runs.iter().map(|r| r.summary.seed).collect();
        let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
        facts.push(format!("seed {}", seeds.join(", ")));
        if let Some(s) = report
            .scenarios
            .first()
            .filter(|s| report.scenarios.iter().all(|t| t.measure == s.measure))
            .filter(|s| s.measure.from > 0 || s.measure.to < s.duration)
        {
            facts.push(format!(
                "figures cover {} to {}",
                human::nanos(s.measure.from),
                human::nanos(s.measure.to)
            ));
        }
    }
    let facts: Vec<String> =
        facts.iter().map(|f| format!("<span class=\"nb\">{}</span>", escape(f))).collect();
    let claims = report.verdicts.iter().flatten().count();
    let inside = report.verdicts.iter().flatten().filter(|v| v.inside).count();
    let judged = match claims {
        0 => String::new(),
        n => format!(
            " · <a class=\"nb\" href=\"#claims\">{inside} of {n} claims inside their bands</a>"
        ),
    };
    let playground = report.playgrounds.first().map_or_else(String::new, |address| {
        let what = if report.sources.len() > 1 {
            "Change these scenarios and run them here"
        } else {
            "Change this scenario and run it here"
        };
        format!(" · <a class=\"nb\" href=\"{}\">{what}</a>", escape(address))
    });
    put!(page, "<p class=\"facts\">{}{judged}{playground}</p>\n</header>\n", facts.join(" · "));
}

/// The scenarios' titles, each once, in order.
fn titles<'a>(report: &Report<'a>) -> Vec<&'a str> {
    let mut titles: Vec<&str> = Vec::new();
    for run in report.runs {
        if !titles.contains(&run.title.as_str()) {
            titles.push(&run.title);
        }
    }
    titles
}

/// The link the big numbers of a run are about: of the bottlenecks the one this run used most.
fn main_link<'a>(report: &'a Report<'_>, run: &Run) -> Option<&'a str> {
    let use_of = |name: &str| run.summary.links.get(name).map_or(-1.0, |l| l.utilisation);
    links::bottlenecks(report.runs, report.scenarios)
        .into_iter()
        .reduce(|a, b| if use_of(b) > use_of(a) { b } else { a })
}

fn headline(report: &Report<'_>, page: &mut String) {
    put!(
        page,
        "<section aria-labelledby=\"headline\">\n<h2 id=\"headline\" class=\"sr\">At a \
            glance</h2>\n{}",
        grid(report)
    );
    for (i, run) in report.runs.iter().enumerate() {
        put!(
            page,
            "<article class=\"card\">\n<h3{}>{}</h3>\n",
            quiet(report),
            escape(human::run_name(run))
        );
        if titles(report).len() > 1 && !run.variant.is_empty() {
            put!(page, "<p class=\"sub\">{}</p>\n", escape(&run.title));
        }
        if let Some(name) = main_link(report, run) {
            let described =
                report.scenario(i).and_then(|s| links::direction(s, name)).map(describe);
            let described = described.unwrap_or_else(|| vec![name.to_owned()]);
            let described: Vec<String> = described
                .iter()
                .map(|d| format!("<span class=\"nb\">{}</span>", escape(d)))
                .collect();
            put!(page, "<p class=\"sub\">{}</p>\n", described.join(", "));
            if let Some(link) = run.summary.links.get(name) {
                put!(
                    page,
                    "<dl>\n{}",
                    figure("Utilisation", &human::percent(link.utilisation), "big")
                );
                put!(
                    page,
                    "{}",
                    figure(
                        "Mean queue",
                        &format!("{} packets", human::number(link.queue_mean)),
                        "big"
                    )
                );
                put!(page, "{}", figure("Drops", &link.drops.to_string(), "big"));
                let rtts: Vec<f64> =
                    run.summary.flows.iter().filter_map(FlowSummary::rtt_mean).collect();
                let rtt = if rtts.is_empty() {
                    "–".to_owned()
                } else {
                    human::seconds(rtts.iter().sum::<f64>() / rtts.len() as f64)
                };
                put!(page, "{}", figure("Mean RTT", &rtt, ""));
                put!(
                    page,
                    "{}</dl>\n",
                    figure("Fairness (Jain)", &human::index(run.summary.jain), "")
                );
            }
        }
        if run.summary.interrupted {
            let (done, asked) = (human::nanos(run.completed), human::nanos(run.duration));
            put!(
                page,
                "<p class=\"warn\">Interrupted at {done} of {asked}; the figures cover what was \
                    run.</p>\n"
            );
        }
        page.push_str("</article>\n");
    }
    page.push_str("</div>\n</section>\n");
}

fn figure(name: &str, value: &str, class: &str) -> String {
    // The unit is set smaller than the number.
    let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
    let unit =
        if unit.is_empty() { String::new() } else { format!(" <small>{}</small>", escape(unit)) };
    format!(
        "<div class=\"figure {class}\"><dt>{name}</dt><dd>{}{unit}</dd></div>\n",
        escape(number)
    )
}

/// A single run needs no name of its own beside the title; readers by ear get it all the same.
fn quiet(report: &Report<'_>) -> &'static str {
    if report.runs.len() == 1 { " class=\"sr\"" } else { "" }
}

/// Opens a grid with a column for each run; many runs wrap.
fn grid(report: &Report<'_>) -> String {
    let n = report.runs.len();
    let class = match n {
        0 | 1 => "grid one",
        2..=4 => "grid",
        _ => "grid many",
    };
    format!("<div class=\"{class}\" style=\"--cols:{}\">\n", n.clamp(1, 4))
}

/// A queue and link in a few words: `xcp queue of 313 kB`, `10 Mbit/s`, `249 ms one way`.
fn describe(d: &Direction) -> Vec<String> {
    let size = match d.queue.limit {
        Limit::Packets(n) => human::plural(n, "packet"),
        Limit::Bytes(n) if n >= 10_000 => format!("{} kB", n / 1000),
        Limit::Bytes(n) => human::plural(n, "byte"),
    };
    let kind = d.queue.discipline.name();
    let kind = match d.queue.router().map(|router| router.law.preset) {
        Some(preset) if preset != Preset::Xcp => format!("{kind} ({})", preset.name()),
        _ => kind.to_owned(),
    };
    vec![
        format!("{kind} queue of {size}"),
        human::rate(d.rate_bps as f64),
        format!("{} one way", human::nanos(d.delay)),
    ]
}

fn verdicts(report: &Report<'_>, page: &mut String) {
    let all: Vec<_> = report
        .runs
        .iter()
        .zip(report.verdicts)
        .flat_map(|(run, list)| list.iter().map(move |v| (run, v)))
        .collect();
    if all.is_empty() {
        return;
    }
    let outside = all.iter().filter(|(_, v)| !v.inside).count();
    let say = if outside == 0 {
        "all inside".to_owned()
    } else {
        format!("{outside} of {} outside", all.len())
    };
    put!(
        page,
        "<section aria-labelledby=\"claims\">\n<h2 id=\"claims\">Claims <span \
            class=\"unit\">{say}</span></h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" \
            aria-labelledby=\"claims\"><table class=\"claims\">\n"
    );
    page.push_str(
        "<thead><tr><th scope=\"col\">Verdict</th><th scope=\"col\">Run</th><th \
        scope=\"col\">Claim</th><th scope=\"col\" class=\"n\">Measured</th><th \
        scope=\"col\">Band</th></tr></thead>\n<tbody>\n",
    );
    for (run, v) in all {
        let (class, mark, word) =
            if v.inside { ("ok", "✓", "inside") } else { ("bad", "✗", "outside") };
        put!(
            page,
            "<tr><td class=\"{class}\"><span aria-hidden=\"true\">{mark}</span> \
                {word}</td><td>{}</td><td>{}<br><code>{}</code></td><td \
                class=\"n\">{}</td><td>{}</td></tr>\n",
            escape(human::run_name(run)),
            escape(&v.claim),
            escape(&v.metric),
            escape(&measured(v)),
            escape(&band(v)),
        );
    }
    page.push_str("</tbody></table></div>\n</section>\n");
}

fn plots(report: &Report<'_>, page: &mut String) {
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
fn theories<'a>(report: &Report<'a>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for reference in report.references.iter().flatten() {
        if !names.contains(&reference.name.as_str()) {
            names.push(&reference.name);
        }
    }
    names
}

fn link_table(report: &Report<'_>, page: &mut String) {
    page.push_str(
        "<section aria-labelledby=\"links\">\n<h2 id=\"links\">Links</h2>\n<div \
        class=\"wide\" tabindex=\"0\" role=\"region\" \
        aria-labelledby=\"links\"><table>\n<thead><tr><th scope=\"col\">Link</th><th \
        scope=\"col\">Run</th>",
    );
    let theories = theories(report);
    page.push_str("<th scope=\"col\" class=\"n\">Utilisation</th>");
    for name in &theories {
        put!(page, "<th scope=\"col\" class=\"n\">by {}</th>", escape(name));
    }
    for name in
        ["Mean queue", "Largest queue", "Queueing delay", "Drops", "Lost on the link", "Packets"]
    {
        put!(page, "<th scope=\"col\" class=\"n\">{name}</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    let ranked = links::ranked(report.runs);
    let shown = 20;
    for name in ranked.iter().take(shown) {
        for (i, (place, run)) in report
            .runs
            .iter()
            .enumerate()
            .filter(|(_, r)| r.summary.links.contains_key(*name))
            .enumerate()
        {
            let l = &run.summary.links[*name];
            let class = if i == 0 { " class=\"first\"" } else { "" };
            let head = if i == 0 {
                escape(name)
            } else {
                format!("<span class=\"sr\">{}</span>", escape(name))
            };
            put!(
                page,
                "<tr{class}><th scope=\"row\">{head}</th><td>{}</td>",
                escape(human::run_name(run))
            );
            put!(page, "<td class=\"n\">{}</td>", human::percent(l.utilisation));
            for theory in &theories {
                let said = report
                    .references(place)
                    .iter()
                    .find(|r| r.name == *theory)
                    .and_then(|r| r.utilisation.get(*name));
                put!(
                    page,
                    "<td class=\"n\">{}</td>",
                    said.map_or("–".to_owned(), |u| human::percent(*u))
                );
            }
            let cells = [
                human::number(l.queue_mean),
                l.queue_max.to_string(),
                spread(l.queue_delay),
                l.drops.to_string(),
                l.lost.to_string(),
                l.packets.to_string(),
            ];
            for cell in cells {
                put!(page, "<td class=\"n\">{cell}</td>");
            }
            page.push_str("</tr>\n");
        }
    }
    page.push_str(
        "</tbody></table></div>\n<p class=\"note\">Queues are in packets, not counting the one in \
         service. Queueing delay: the median, and below it the 95th and 99th percentiles.",
    );
    if ranked.len() > shown {
        put!(
            page,
            " The {shown} most used of {} link directions; the rest are in the summary.",
            ranked.len()
        );
    }
    page.push_str("</p>\n</section>\n");
}

fn flow_table(report: &Report<'_>, page: &mut String) {
    page.push_str(
        "<section aria-labelledby=\"flows\">\n<h2 id=\"flows\">Flows</h2>\n<div \
        class=\"wide\" tabindex=\"0\" role=\"region\" \
        aria-labelledby=\"flows\"><table>\n<thead><tr><th scope=\"col\">Flow</th><th \
        scope=\"col\">Run</th>",
    );
    for name in ["Goodput", "Mean RTT", "Mean window", "Sent again", "Timeouts", "Done at"] {
        put!(page, "<th scope=\"col\" class=\"n\">{name}</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    // Name, then run; groups by their median flow with the extremes of goodput beside it.
    let mut names: Vec<String> = Vec::new();
    let grouped: Vec<Vec<(String, Vec<usize>)>> =
        report.runs.iter().map(|r| groups(&r.summary.flows, 2 * data::LINES)).collect();
    for (name, _) in grouped.iter().flatten() {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    for name in &names {
        let mut first = true;
        for (run, list) in report.runs.iter().zip(&grouped) {
            let Some((_, members)) = list.iter().find(|(n, _)| n == name) else { continue };
            let flows = &run.summary.flows;
            let range = |of: fn(&FlowSummary) -> Option<f64>, show: fn(f64) -> String| {
                let values = sorted(flows, members, of);
                let [least, middle, most] = [0.0, 0.5, 1.0].map(|q| show(quantile(&values, q)));
                if members.len() == 1 || values.is_empty() {
                    middle
                } else {
                    format!("{middle}<br><small>{least} – {most}</small>")
                }
            };
            let done = match (&members[..], flows[members[0]].completed_at) {
                ([_], Some(t)) => human::seconds(t),
                ([_], None) => "–".to_owned(),
                _ => {
                    let times = sorted(flows, members, |f| f.completion_time);
                    let took = match times.last() {
                        Some(&longest) => {
                            let [median, longest] =
                                [nearest_rank(&times, 0.5).unwrap_or(longest), longest]
                                    .map(human::seconds_cell);
                            format!("<br><small>took {median}, at most {longest}</small>")
                        }
                        None => String::new(),
                    };
                    format!("{} of {}{took}", times.len(), members.len())
                }
            };
            let class = if first { " class=\"first\"" } else { "" };
            let head = if first {
                escape(name)
            } else {
                format!("<span class=\"sr\">{}</span>", escape(name))
            };
            first = false;
            put!(
                page,
                "<tr{class}><th scope=\"row\">{head}</th><td>{}</td>",
                escape(human::run_name(run))
            );
            for cell in [
                range(FlowSummary::goodput, human::rate_cell),
                range(FlowSummary::rtt_mean, human::seconds_cell),
                range(FlowSummary::cwnd_mean, human::number),
                range(|f| Some(f.retransmits as f64), human::number),
                range(|f| Some(f64::from(f.timeouts)), human::number),
                done,
            ] {
                put!(page, "<td class=\"n\">{cell}</td>");
            }
            page.push_str("</tr>\n");
        }
    }
    page.push_str(
        "</tbody></table></div>\n<p class=\"note\">Windows are in packets. For groups: the median \
         of the flows that were active in the measured part, and below it the least and the \
         greatest value.</p>\n</section>\n",
    );
}

/// The flows of each `[[flow]]` together, where there is more to say of them than of each.
fn group_table(report: &Report<'_>, page: &mut String) {
    let told = |run: &Run| {
        run.summary.groups.iter().any(|g| g.rtt.is_some() || g.completion_time.is_some())
    };
    if !report.runs.iter().any(told) {
        return;
    }
    page.push_str(
        "<section aria-labelledby=\"groups\">\n<h2 id=\"groups\">Groups of \
        flows</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" \
        aria-labelledby=\"groups\"><table>\n<thead><tr><th scope=\"col\">Flows</th><th \
        scope=\"col\">Run</th><th scope=\"col\">From, to</th>",
    );
    for name in ["Flows", "Completed", "Completion time", "Round trip"] {
        put!(page, "<th scope=\"col\" class=\"n\">{name}</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    let mut names: Vec<&str> = Vec::new();
    for group in report.runs.iter().flat_map(|run| &run.summary.groups) {
        if !names.contains(&group.name.as_str()) {
            names.push(&group.name);
        }
    }
    for name in names {
        let groups = report
            .runs
            .iter()
            .flat_map(|run| run.summary.groups.iter().map(move |group| (run, group)));
        for (i, (run, group)) in groups.filter(|(_, group)| group.name == name).enumerate() {
            let class = if i == 0 { " class=\"first\"" } else { "" };
            let head = if i == 0 {
                escape(name)
            } else {
                format!("<span class=\"sr\">{}</span>", escape(name))
            };
            put!(
                page,
                "<tr{class}><th scope=\"row\">{head}</th><td>{}</td>",
                escape(human::run_name(run))
            );
            put!(page, "<td>{} – {}</td>", escape(&group.from), escape(&group.to));
            let completed = if group.completion_time.is_some() {
                group.completed.to_string()
            } else {
                "–".to_owned()
            };
            for cell in [
                group.flows.to_string(),
                completed,
                spread(group.completion_time),
                spread(group.rtt),
            ] {
                put!(page, "<td class=\"n\">{cell}</td>");
            }
            page.push_str("</tr>\n");
        }
    }
    page.push_str(
        "</tbody></table></div>\n<p class=\"note\">Times: the median, and below it the 95th and \
         99th percentiles. Round trips include all samples of all flows.</p>\n</section>\n",
    );
}

/// Percentiles in a cell.
fn spread(percentiles: Option<Percentiles>) -> String {
    percentiles.map_or_else(
        || "–".to_owned(),
        |p| {
            let show = |x: f64| if x == 0.0 { "0".to_owned() } else { human::seconds_cell(x) };
            let [p50, p95, p99] = [p.p50, p.p95, p.p99].map(show);
            format!("{p50}<br><small>{p95} – {p99}</small>")
        },
    )
}

/// What one should know before believing the numbers.
fn notes(report: &Report<'_>, page: &mut String) {
    if report.runs.iter().all(|run| run.summary.notes.is_empty()) {
        return;
    }
    page.push_str(
        "<section aria-labelledby=\"notes\">\n<h2 id=\"notes\">Notes</h2>\n<ul class=\"notes\">\n",
    );
    for (run, note) in
        report.runs.iter().flat_map(|run| run.summary.notes.iter().map(move |note| (run, note)))
    {
        let name = if report.runs.len() == 1 {
            String::new()
        } else {
            format!("<b>{}</b>: ", escape(human::run_name(run)))
        };
        put!(page, "<li>{name}{}</li>\n", escape(note));
    }
    page.push_str("</ul>\n</section>\n");
}

fn sources(report: &Report<'_>, page: &mut String) {
    for (i, source) in report.sources.iter().enumerate() {
        put!(
            page,
            "<details class=\"source\">\n<summary><h2>The scenario <span \
                class=\"unit\">{}</span></h2></summary>\n",
            escape(&source.name)
        );
        if let Some(address) = report.playgrounds.get(i) {
            put!(page, "<p><a href=\"{}\">Change it and run it here</a></p>\n", escape(address));
        }
        put!(page, "<pre tabindex=\"0\"><code>{}</code></pre>\n</details>\n", escape(&source.text));
    }
}

fn made(report: &Report<'_>, page: &mut String) {
    put!(page, "<footer>\n<p>Made by xcpnet {}", escape(report.version));
    if !report.command.is_empty() {
        put!(page, " with <code>{}</code>", escape(report.command));
    }
    let repeatable = if report.runs.iter().all(|run| run.summary.backend == "sim") {
        "The same scenario, seed and version give the same numbers."
    } else {
        "Measured on a real machine: another run gives somewhat different numbers."
    };
    put!(
        page,
        ". {repeatable} Plots: uPlot (MIT licence, in this file’s source).</p>\n</footer>\n"
    );
}
