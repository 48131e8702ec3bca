//! The tables of links, flows and groups of flows.

use std::fmt::Write as _;

use xcp_model::run::{FlowSummary, Run};
use xcp_model::spread::{Percentiles, nearest_rank};

use super::plots::theories;
use super::{Report, data, escape};
use crate::table::{groups, quantile, sorted};
use crate::{human, links};

pub(super) fn link_table(report: &Report<'_>, page: &mut String) {
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
            begin_row(page, i == 0, name, run);
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

pub(super) fn flow_table(report: &Report<'_>, page: &mut String) {
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
            begin_row(page, first, name, run);
            first = false;
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
pub(super) fn group_table(report: &Report<'_>, page: &mut String) {
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
            begin_row(page, i == 0, name, run);
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

/// Begins a row. The first of several about the same thing shows its name, the others have it for
/// readers by ear.
fn begin_row(page: &mut String, first: bool, name: &str, run: &Run) {
    let name = escape(name);
    let (class, head) = if first {
        (" class=\"first\"", name)
    } else {
        ("", format!("<span class=\"sr\">{name}</span>"))
    };
    put!(page, "<tr{class}><th scope=\"row\">{head}</th><td>{}</td>", escape(human::run_name(run)));
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
