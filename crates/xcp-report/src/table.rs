//! Tables for the terminal: links and flows of one run, or of several under one another so that the
//! difference is seen.
//!
//! Long lists are cut down to what matters: idle links become one line, many flows become minimum,
//! median and maximum. The full numbers are in the JSON and CSV.

use std::collections::BTreeMap;

use xcp_model::OverSeeds;
use xcp_model::Verdict;
use xcp_model::name::FlowName;
use xcp_model::run::{FlowSummary, Run};
use xcp_model::spread::nearest_rank;

use crate::grid::{Align, Grid};
use crate::{human, links};

/// Above this many flows in a run, groups of flows are shown by minimum, median and maximum.
const FLOWS_SHOWN: usize = 8;
/// At most this many link directions are shown one by one.
const LINKS_SHOWN: usize = 10;

/// The band of a verdict in words: `0.998 to 1`, `at most 2`, `at least 0.9 (1.1 × integer)`.
#[must_use]
pub fn band(v: &Verdict) -> String {
    let text = bounds(v.min, v.max, |x| human::metric(&v.metric, x));
    let Some(than) = &v.than else { return text };
    let other = match (&than.variant, &than.metric) {
        (Some(variant), Some(metric)) => format!("{metric} of {variant}"),
        (Some(other), None) | (None, Some(other)) => other.clone(),
        (None, None) => v.metric.clone(),
    };
    if than.measured.is_none() {
        return format!("{other} has no number");
    }
    let factors: Vec<String> =
        [than.min, than.max].into_iter().flatten().map(human::number).collect();
    format!("{text} ({} × {other})", factors.join(" to "))
}

fn bounds(min: Option<f64>, max: Option<f64>, show: impl Fn(f64) -> String) -> String {
    match (min, max) {
        (Some(a), Some(b)) => format!("{} to {}", show(a), show(b)),
        (Some(a), None) => format!("at least {}", show(a)),
        (None, Some(b)) => format!("at most {}", show(b)),
        (None, None) => "any".to_owned(),
    }
}

/// The measured value of a verdict in words; the median where there are several seeds.
#[must_use]
pub fn measured(v: &Verdict) -> String {
    human::metric(&v.metric, v.measured.unwrap_or(f64::NAN))
}

/// What came of the seeds, where there are several: `0.91 to 0.98 over 8 seeds, 7 inside`, and what
/// is asked of them if it is not the median.
#[must_use]
pub fn seeds(v: &Verdict) -> Option<String> {
    if v.seeds.len() < 2 {
        return None;
    }
    let there = || v.seeds.iter().flatten().copied();
    let show = |x| human::metric(&v.metric, x);
    let (least, greatest) =
        (there().fold(f64::INFINITY, f64::min), there().fold(f64::NEG_INFINITY, f64::max));
    let asked = match v.over_seeds {
        OverSeeds::Median => String::new(),
        OverSeeds::All => ", all must be".to_owned(),
        OverSeeds::Share(share) => format!(", at least {} must be", human::percent(share)),
    };
    Some(format!(
        "{} to {} over {} seeds, {} inside{asked}",
        show(least),
        show(greatest),
        v.seeds.len(),
        v.seeds_inside
    ))
}

/// The table of one or several runs. `width` is the terminal's width in characters; `usize::MAX`
/// leaves nothing out.
#[must_use]
pub fn table(runs: &[Run], width: usize) -> String {
    let mut out = String::new();
    let mut title = "";
    for run in runs {
        if run.title != title {
            title = &run.title;
            out.push_str(title);
            out.push('\n');
        }
    }
    let same = |f: fn(&Run) -> String| {
        runs.first().map(f).filter(|first| runs.iter().all(|r| &f(r) == first))
    };
    let facts: Vec<String> = [
        same(|r| format!("{} simulated", human::nanos(r.completed)))
            .filter(|_| runs.iter().all(|r| r.summary.backend == "sim")),
        same(|r| format!("seed {}", r.summary.seed)),
        same(|r| format!("backend {}", r.summary.backend)),
    ]
    .into_iter()
    .flatten()
    .collect();
    out.push_str(&facts.join(", "));
    out.push_str("\n\n");
    link_rows(runs, width, &mut out);
    out.push('\n');
    flow_rows(runs, width, &mut out);
    for run in runs.iter().filter(|r| r.summary.interrupted) {
        let (done, asked) = (human::nanos(run.completed), human::nanos(run.duration));
        out.push_str(&format!(
            "{}: interrupted at {done} of {asked}; the numbers cover what was run\n",
            human::run_name(run)
        ));
    }
    out
}

fn link_rows(runs: &[Run], width: usize, out: &mut String) {
    use Align::{Left, Right};
    let ranked = links::ranked(runs);
    let busiest = ranked.first().map_or(0.0, |name| links::best(runs, name, |l| l.utilisation));
    let matters = |name: &&str| {
        links::best(runs, name, |l| l.utilisation) >= 0.8 * busiest
            || links::best(runs, name, |l| (l.drops + l.lost) as f64) > 0.0
            || links::best(runs, name, |l| l.queue_mean) >= 1.0
    };
    let shown: Vec<&str> = ranked
        .iter()
        .copied()
        .filter(matches_or_few(ranked.len(), matters))
        .take(LINKS_SHOWN)
        .collect();
    let mut grid = Grid::new(&[
        ("link", Left),
        ("run", Left),
        ("utilisation", Right),
        ("mean queue", Right),
        ("max queue", Right),
        ("drops", Right),
        ("lost", Right),
        ("packets", Right),
    ]);
    for name in &shown {
        for run in runs {
            let Some(link) = run.summary.links.get(*name) else { continue };
            grid.push(vec![
                (*name).to_owned(),
                human::run_name(run).to_owned(),
                human::percent(link.utilisation),
                human::number(link.queue_mean),
                link.queue_max.to_string(),
                link.drops.to_string(),
                link.lost.to_string(),
                link.packets.to_string(),
            ]);
        }
    }
    let grid = grid.without("lost", "0");
    if runs.len() == 1 { grid.without_column(1) } else { grid }.render(width, out);
    let hidden: Vec<&str> = ranked.iter().copied().filter(|name| !shown.contains(name)).collect();
    if !hidden.is_empty() {
        let most = |of: fn(&xcp_model::run::LinkSummary) -> f64| {
            hidden.iter().map(|n| links::best(runs, n, of)).fold(0.0, f64::max)
        };
        let gone = most(|l| (l.drops + l.lost) as f64) as u64;
        let note = format!(
            "and {}: utilisation at most {}, mean queue at most {}, {}",
            human::plural(hidden.len() as u64, "more link direction"),
            human::percent(most(|l| l.utilisation)),
            human::number(most(|l| l.queue_mean)),
            if gone == 0 {
                "nothing dropped or lost".to_owned()
            } else {
                format!("at most {} dropped or lost", human::plural(gone, "packet"))
            },
        );
        for line in wrapped(&note, width) {
            out.push_str(&line);
            out.push('\n');
        }
    }
}

/// Shows everything when there are no more than two directions, else what the filter picks.
fn matches_or_few<'a>(
    count: usize,
    picks: impl Fn(&&'a str) -> bool,
) -> impl FnMut(&&'a str) -> bool {
    move |name| count <= 2 || picks(name)
}

/// The group a flow belongs to: its name without `-NUMBER` at the end.
fn stem(name: &FlowName) -> &str {
    let text = name.stem();
    match text.rsplit_once('-') {
        // Numbers that no group gives (`flow-01`).
        Some((stem, number))
            if name.number().is_none()
                && !stem.is_empty()
                && !number.is_empty()
                && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            stem
        }
        _ => text,
    }
}

/// Flows in groups, in order of appearance. At most `limit` flows in all are groups of one each; if
/// there are more groups than `limit`, all flows are one group.
pub(crate) fn groups(flows: &[FlowSummary], limit: usize) -> Vec<(String, Vec<usize>)> {
    if flows.len() <= limit {
        return flows.iter().enumerate().map(|(i, f)| (f.name.to_string(), vec![i])).collect();
    }
    let mut order: Vec<&str> = Vec::new();
    let mut members: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, flow) in flows.iter().enumerate() {
        let stem = stem(&flow.name);
        let of_stem = members.entry(stem).or_insert_with(|| {
            order.push(stem);
            Vec::new()
        });
        of_stem.push(i);
    }
    if order.len() > limit {
        return vec![(format!("all {} flows", flows.len()), (0..flows.len()).collect())];
    }
    let named = |stem: &str, m: &Vec<usize>| {
        if m.len() == 1 {
            flows[m[0]].name.to_string()
        } else {
            format!("{stem} ({} flows)", m.len())
        }
    };
    order.into_iter().map(|stem| (named(stem, &members[stem]), members[stem].clone())).collect()
}

fn flow_rows(runs: &[Run], width: usize, out: &mut String) {
    use Align::{Left, Right};
    let mut grid = Grid::new(&[
        ("flow", Left),
        ("run", Left),
        ("", Left),
        ("goodput", Right),
        ("mean RTT", Right),
        ("mean cwnd", Right),
        ("retransmits", Right),
        ("timeouts", Right),
        ("done at", Right),
    ]);
    let row = |name: &str, run: &Run, what: &str, values: [f64; 5], done: Option<f64>| {
        vec![
            name.to_owned(),
            human::run_name(run).to_owned(),
            what.to_owned(),
            human::rate_cell(values[0]),
            human::seconds_cell(values[1]),
            human::number(values[2]),
            human::number(values[3]),
            human::number(values[4]),
            done.map_or(String::new(), human::seconds_cell),
        ]
    };
    // Flow by flow, the runs under one another; the order is that of the first run that has the
    // flow.
    let mut rows: Vec<(String, Vec<Vec<String>>)> = Vec::new();
    for run in runs {
        let flows = &run.summary.flows;
        for (name, members) in groups(flows, FLOWS_SHOWN) {
            let column = |of: fn(&FlowSummary) -> Option<f64>| sorted(flows, &members, of);
            let columns = [
                column(FlowSummary::goodput),
                column(FlowSummary::rtt_mean),
                column(FlowSummary::cwnd_mean),
                column(|f| Some(f.retransmits as f64)),
                column(|f| Some(f64::from(f.timeouts))),
            ];
            let pick = |q: f64| [0, 1, 2, 3, 4].map(|c| quantile(&columns[c], q));
            let set = if members.len() == 1 {
                vec![row(&name, run, "", pick(0.0), flows[members[0]].completed_at)]
            } else {
                // The numbers are those of the flows that were active in the measured part.
                let active = members.iter().filter(|&&i| flows[i].active).count();
                let median = if active == members.len() {
                    "median".to_owned()
                } else {
                    format!("median of {active}")
                };
                [("min", 0.0), (&median, 0.5), ("max", 1.0)]
                    .map(|(what, q)| row(&name, run, what, pick(q), None))
                    .to_vec()
            };
            push_to(&mut rows, name, set);
        }
    }
    for row in rows.into_iter().flat_map(|(_, set)| set) {
        grid.push(row);
    }
    let grid = grid.without("", "").without("done at", "").without("timeouts", "0");
    if runs.len() == 1 { grid.without_column(1) } else { grid }.render(width, out);
    out.push('\n');
    completion_rows(runs, width, out);
    if let [run] = runs {
        out.push_str(&format!("fairness (Jain's index): {}\n", human::fairness(run.summary.jain)));
    } else {
        let each: Vec<String> = runs
            .iter()
            .map(|r| format!("{} {}", human::run_name(r), human::fairness(r.summary.jain)))
            .collect();
        out.push_str(&format!("fairness (Jain's index): {}\n", each.join(" · ")));
    }
}

/// How long the transfers of groups took, where any was completed.
fn completion_rows(runs: &[Run], width: usize, out: &mut String) {
    use Align::{Left, Right};
    let mut grid = Grid::new(&[
        ("completed", Left),
        ("run", Left),
        ("transfers", Right),
        ("mean time", Right),
        ("median", Right),
        ("90 %", Right),
        ("99 %", Right),
        ("longest", Right),
    ]);
    let mut rows: Vec<(String, Vec<Vec<String>>)> = Vec::new();
    for run in runs {
        let flows = &run.summary.flows;
        for (name, members) in
            groups(flows, FLOWS_SHOWN).into_iter().filter(|(_, members)| members.len() > 1)
        {
            let times = sorted(flows, &members, |f| f.completion_time);
            if times.is_empty() {
                continue;
            }
            let mean = times.iter().sum::<f64>() / times.len() as f64;
            let quantiles =
                [0.5, 0.9, 0.99, 1.0].map(|q| nearest_rank(&times, q).unwrap_or(f64::NAN));
            let mut row =
                vec![name.clone(), human::run_name(run).to_owned(), times.len().to_string()];
            row.extend(std::iter::once(mean).chain(quantiles).map(human::seconds_cell));
            push_to(&mut rows, name, [row]);
        }
    }
    if rows.is_empty() {
        return;
    }
    rows.into_iter().flat_map(|(_, set)| set).for_each(|row| grid.push(row));
    if runs.len() == 1 { grid.without_column(1) } else { grid }.render(width, out);
    out.push('\n');
}

/// Adds rows to those of a name; names stay in the order in which they came first.
fn push_to(
    rows: &mut Vec<(String, Vec<Vec<String>>)>,
    name: String,
    set: impl IntoIterator<Item = Vec<String>>,
) {
    match rows.iter_mut().find(|(n, _)| *n == name) {
        Some((_, list)) => list.extend(set),
        None => rows.push((name, set.into_iter().collect())),
    }
}

/// A number of those flows of a group that have it, in ascending order.
pub(crate) fn sorted(
    flows: &[FlowSummary],
    members: &[usize],
    of: impl Fn(&FlowSummary) -> Option<f64>,
) -> Vec<f64> {
    let mut values: Vec<f64> = members.iter().filter_map(|&i| of(&flows[i])).collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The value at a share of a sorted list, interpolated between neighbours; NaN for an empty list.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = q * last as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

/// The table of expectations: inside or not, measured, band, number, and the claim below each.
/// `verdicts` has a list for each run, in the order of `runs`. Empty where nothing is expected.
#[must_use]
pub fn verdict_table(runs: &[Run], verdicts: &[Vec<Verdict>], width: usize) -> String {
    use Align::{Left, Right};
    let all: Vec<(&Run, &Verdict)> = runs
        .iter()
        .zip(verdicts)
        .flat_map(|(run, list)| list.iter().map(move |v| (run, v)))
        .collect();
    if all.is_empty() {
        return String::new();
    }
    let mut grid = Grid::new(&[
        ("claim", Left),
        ("measured", Right),
        ("band", Left),
        ("run", Left),
        ("number", Left),
    ]);
    grid.grouped = false;
    for (run, v) in &all {
        let verdict = if v.inside { "inside" } else { "OUTSIDE" };
        grid.push(vec![
            verdict.to_owned(),
            measured(v),
            band(v),
            run.variant.clone(),
            v.metric.clone(),
        ]);
    }
    let mut rows = String::new();
    grid.without("run", "").render(width, &mut rows);
    let mut out = String::new();
    for (i, line) in rows.lines().enumerate() {
        out.push_str(line);
        out.push('\n');
        if let Some((_, v)) = i.checked_sub(1).and_then(|i| all.get(i)) {
            let text = match seeds(v) {
                Some(seeds) => format!("{} ({seeds})", v.claim),
                None => v.claim.clone(),
            };
            for line in wrapped(&text, width.saturating_sub(9)) {
                out.push_str(&format!("         {line}\n"));
            }
        }
    }
    out
}

/// Breaks text between words into lines of at most `width` characters, longer words apart.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line)
                if line.chars().count().saturating_add(1 + word.chars().count()) <= width =>
            {
                line.extend([" ", word])
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
