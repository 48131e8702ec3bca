//! Which of many link directions a reader wants to see first.

use std::collections::BTreeSet;

use xcp_model::run::{LinkSummary, Run};
use xcp_model::{Discipline, Scenario};

/// Names of all link directions of all runs.
pub(crate) fn all(runs: &[Run]) -> BTreeSet<&str> {
    runs.iter().flat_map(|run| run.summary.links.keys()).map(String::as_str).collect()
}

/// The direction's description in a scenario.
pub(crate) fn direction<'a>(
    scenario: &'a Scenario,
    name: &str,
) -> Option<&'a xcp_model::Direction> {
    let (base, way) = name.strip_suffix(".reverse").map_or((name, 0), |base| (base, 1));
    scenario.links.iter().find(|link| link.name == base).map(|link| &link.directions[way])
}

/// The bottlenecks: every direction with an XCP or RED queue in some run that carried data worth a
/// queue; where there is none, the direction used most. In order of use, most first.
pub(crate) fn bottlenecks<'a>(runs: &'a [Run], scenarios: &[Scenario]) -> Vec<&'a str> {
    let ranked = ranked(runs);
    let managed: Vec<&str> = ranked
        .iter()
        .copied()
        .filter(|name| {
            scenarios.iter().any(|s| {
                direction(s, name).is_some_and(|d| d.queue.discipline != Discipline::DropTail)
            }) && best(runs, name, |l| l.utilisation)
                >= 0.5 * best(runs, ranked[0], |l| l.utilisation)
        })
        .collect();
    if managed.is_empty() { ranked.into_iter().take(1).collect() } else { managed }
}

/// All directions, the most used first; ties in order of name.
pub(crate) fn ranked(runs: &[Run]) -> Vec<&str> {
    let mut names: Vec<&str> = all(runs).into_iter().collect();
    names.sort_by(|a, b| {
        best(runs, b, |l| l.utilisation).total_cmp(&best(runs, a, |l| l.utilisation))
    });
    names
}

/// Largest value over the runs of something about a direction.
pub(crate) fn best(runs: &[Run], name: &str, of: impl Fn(&LinkSummary) -> f64) -> f64 {
    runs.iter().filter_map(|run| run.summary.links.get(name)).map(of).fold(0.0, f64::max)
}
