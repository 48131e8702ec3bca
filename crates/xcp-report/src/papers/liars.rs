//! The page of liars: lies down, laws across, each without and with a policer; in each cell what
//! the liar gains and what is left to the others. As Markdown. What is run, and when a number is
//! too bad, is for the scenario files to say.
//!
//! A row is a scenario file with three variants for each law: `LAW-honest`, where nobody lies,
//! `LAW`, where somebody does, and `LAW-policed`, where the router polices. Where a file has no
//! liar the second is absent. Its numbers are those of the link named [`LINK`] and of flows without
//! end.

use std::fmt::Write as _;

use xcp_model::run::{FlowSummary, Run, jain};
use xcp_model::{Flow, Scenario};

use super::failures::LINK;
use super::situation::Situation;
use crate::human;
use crate::table::quantile;

/// What came of a run, over the measured part of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// The liar's goodput, in that of a flow where nobody lies; `None` where it wants no share.
    pub gain: Option<f64>,
    /// The honest flows' goodputs, summed, over the sum of the same flows' where nobody lies.
    pub honest: f64,
    /// Share of the link's capacity used.
    pub utilisation: f64,
    /// Jain's index of the honest flows' goodputs, each over what it is where nobody lies.
    pub fairness: f64,
    /// Mean queue in packets.
    pub queue: f64,
    /// Packets dropped because the queue was full.
    pub drops: f64,
    /// Packets refused by the policer.
    pub refused: f64,
}

/// Cells of several seeds, put together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seeds {
    /// The median of each number.
    pub median: Cell,
    /// The worst of each.
    pub worst: Cell,
}

/// A law's three cells: nobody lies, somebody does, and is policed.
#[derive(Debug, Clone, PartialEq)]
pub struct Law {
    /// Name of the law.
    pub name: String,
    /// As the variant `NAME-honest` has it.
    pub honest: Option<Seeds>,
    /// As `NAME` has it.
    pub free: Option<Seeds>,
    /// As `NAME-policed` has it.
    pub policed: Option<Seeds>,
}

/// A lie and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The lie, flood or honest traffic.
    pub situation: Situation,
    /// By law, in the file's order.
    pub laws: Vec<Law>,
}

/// What the variants of a law end in.
pub const HONEST: &str = "-honest";
/// As [`HONEST`].
pub const POLICED: &str = "-policed";

/// Flows that have no end, with their goodputs.
fn lasting<'a>(
    scenario: &'a Scenario,
    run: &'a Run,
) -> impl Iterator<Item = (&'a Flow, &'a FlowSummary)> {
    scenario.flows.iter().zip(&run.summary.flows).filter(|(flow, _)| flow.bytes().is_none())
}

fn is_honest(flow: &Flow) -> bool {
    flow.is_tcp() && flow.group.lies.is_none()
}

impl Cell {
    /// What a run gave, beside the one of the same seed where nobody lies.
    #[must_use]
    pub fn new(
        (scenario, run): (&Scenario, &Run),
        (honest_scenario, honest_run): (&Scenario, &Run),
    ) -> Option<Self> {
        let link = run.summary.links.get(LINK)?;
        let before: Vec<_> = lasting(honest_scenario, honest_run)
            .filter(|(flow, _)| is_honest(flow))
            .map(|(_, told)| told)
            .collect();
        let share =
            before.iter().map(|told| told.goodput).sum::<f64>() / before.len().max(1) as f64;
        let (honest, liars): (Vec<_>, Vec<_>) =
            lasting(scenario, run).partition(|(flow, _)| is_honest(flow));
        let pairs: Vec<(f64, f64)> = honest
            .iter()
            .filter_map(|(_, now)| {
                Some((now.goodput, before.iter().find(|then| then.name == now.name)?.goodput))
            })
            .collect();
        let sum = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
        // In the liar's place there is an honest flow more, where it wants a share at all.
        let gain = (before.len() == honest.len() + liars.len() && !liars.is_empty() && share > 0.0)
            .then(|| {
                liars.iter().map(|(_, told)| told.goodput).sum::<f64>() / liars.len() as f64 / share
            });
        let relative: Vec<f64> =
            pairs.iter().filter(|(_, then)| *then > 0.0).map(|(now, then)| now / then).collect();
        Some(Self {
            gain,
            honest: sum(|p| p.0) / sum(|p| p.1).max(f64::MIN_POSITIVE),
            utilisation: link.utilisation,
            fairness: jain(&relative).unwrap_or(1.0), // nothing to share
            queue: link.queue_mean,
            drops: (link.drops - link.refused) as f64,
            refused: link.refused as f64,
        })
    }
}

impl Seeds {
    /// Puts the cells of several seeds together.
    #[must_use]
    pub fn new(cells: &[Cell]) -> Option<Self> {
        // Of each number the median, and at the end where it is worst.
        let both = |of: fn(&Cell) -> f64, greatest: bool| {
            let mut values: Vec<f64> = cells.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            [quantile(&values, 0.5), quantile(&values, if greatest { 1.0 } else { 0.0 })]
        };
        let gains = both(|c| c.gain.unwrap_or(f64::NAN), true);
        let has_gain = cells.iter().all(|c| c.gain.is_some());
        let (honest, utilisation, fairness) = (
            both(|c| c.honest, false),
            both(|c| c.utilisation, false),
            both(|c| c.fairness, false),
        );
        let (queue, drops, refused) =
            (both(|c| c.queue, true), both(|c| c.drops, true), both(|c| c.refused, true));
        let cell = |i: usize| Cell {
            gain: has_gain.then(|| gains[i]),
            honest: honest[i],
            utilisation: utilisation[i],
            fairness: fairness[i],
            queue: queue[i],
            drops: drops[i],
            refused: refused[i],
        };
        (!cells.is_empty()).then(|| Self { median: cell(0), worst: cell(1) })
    }

    /// A number of all seeds in words: the median, and in brackets the worst where that reads
    /// differently.
    fn told(&self, of: impl Fn(&Cell) -> Option<f64>, words: impl Fn(f64) -> String) -> String {
        let (Some(median), Some(worst)) =
            (of(&self.median).map(&words), of(&self.worst).map(&words))
        else {
            return "–".into();
        };
        if median == worst { median } else { format!("{median} ({worst})") }
    }

    fn gain(&self) -> String {
        self.told(|c| c.gain, |gain| format!("{gain:.2}"))
    }

    fn honest(&self) -> String {
        self.told(|c| Some(c.honest), percent)
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn whole(number: f64) -> String {
    format!("{number:.0}")
}

/// What stands in the cells of the first table.
pub const CELLS: &str = "In each cell of the table: what the liar gains, as its goodput in \
    multiples of that of a flow where nobody lies; and what is left to the honest flows, as the \
    sum of their goodputs in per cent of what the same flows have where nobody lies. The numbers \
    are medians over the seeds, with the worst seed in brackets if its number differs.";

/// The page's body: a table of all, then what is to be said of each.
#[must_use]
pub fn markdown(rows: &[Row]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for law in rows.iter().flat_map(|row| &row.laws) {
        if !names.contains(&law.name.as_str()) {
            names.push(&law.name);
        }
    }
    let policed: Vec<String> = names.iter().map(|name| format!("{name}, policed")).collect();
    let mut out = format!(
        "| | {} | {} |\n|---|{}\n",
        names.join(" | "),
        policed.join(" | "),
        "---|".repeat(2 * names.len())
    );
    for row in rows {
        let cell = |name: &&str, of: fn(&Law) -> Option<Seeds>| {
            let seeds = row.laws.iter().find(|law| law.name == **name).and_then(of);
            seeds.map_or("–".into(), |seeds| format!("{}<br>{}", seeds.gain(), seeds.honest()))
        };
        let cells: Vec<String> = names
            .iter()
            .map(|name| cell(name, |law| law.free))
            .chain(names.iter().map(|name| cell(name, |law| law.policed)))
            .collect();
        let _ = writeln!(out, "| {} | {} |", row.situation.link(), cells.join(" | "));
    }
    for row in rows {
        out.push_str(&row.situation.heading());
        out.push('\n');
        out.push_str(
            "| | gain | honest | utilisation | Jain | mean queue | dropped | refused \
            |\n|---|---|---|---|---|---|---|---|\n",
        );
        for law in &row.laws {
            for (seeds, what) in
                [(law.honest, ", honest"), (law.free, ""), (law.policed, ", policed")]
            {
                let Some(seeds) = seeds else { continue };
                let _ = writeln!(
                    out,
                    "| {}{what} | {} | {} | {} | {} | {} | {} | {} |",
                    law.name,
                    seeds.gain(),
                    seeds.honest(),
                    seeds.told(|c| Some(c.utilisation), percent),
                    seeds.told(|c| Some(c.fairness), |jain| format!("{jain:.3}")),
                    seeds.told(|c| Some(c.queue), human::number),
                    seeds.told(|c| Some(c.drops), whole),
                    seeds.told(|c| Some(c.refused), whole),
                );
            }
        }
        let _ = write!(out, "\n{}", row.situation.command());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(gain: Option<f64>, honest: f64, queue: f64) -> Cell {
        Cell { gain, honest, utilisation: 0.99, fairness: 1.0, queue, drops: 3.0, refused: 0.0 }
    }

    #[test]
    fn the_worst_seed_stands_beside_the_median() {
        let seeds =
            [cell(Some(5.1), 0.52, 4.0), cell(Some(5.4), 0.5, 9.0), cell(Some(5.3), 0.51, 3.0)];
        let both = Seeds::new(&seeds).unwrap();
        assert_eq!(
            (both.median.gain, both.worst.gain),
            (Some(5.3), Some(5.4)),
            "who gains more is worse"
        );
        assert_eq!(
            (both.median.honest, both.worst.honest),
            (0.51, 0.5),
            "who is left less is worse"
        );
        assert_eq!((both.median.queue, both.worst.queue), (4.0, 9.0));
        assert_eq!(
            (both.gain().as_str(), both.honest().as_str()),
            ("5.30 (5.40)", "51.0 % (50.0 %)")
        );
        assert_eq!(Seeds::new(&[cell(None, 1.0, 1.0)]).unwrap().gain(), "–");
        assert!(Seeds::new(&[]).is_none());
    }

    #[test]
    fn every_cell_is_in_the_page() {
        let seeds = |gain: Option<f64>, honest: f64| Seeds::new(&[cell(gain, honest, 2.0)]);
        let law = |name: &str, gain: f64| Law {
            name: name.into(),
            honest: seeds(None, 1.0),
            free: seeds(Some(gain), 0.52),
            policed: seeds(Some(1.01), 0.998),
        };
        let situation = Situation::new(
            "liars/01-a".into(),
            "Ten times, at once".into(),
            "It says\nten times.\n\nIt gains.",
        );
        let page =
            markdown(&[Row { situation, laws: vec![law("xcp", 5.26), law("own-rtt", 5.31)] }]);
        for words in [
            "| | xcp | own-rtt | xcp, policed | own-rtt, policed |",
            "| [Ten times, at once](#ten-times-at-once) | 5.26<br>52.0 % | 5.31<br>52.0 % | \
                1.01<br>99.8 % | 1.01<br>99.8 % |",
            "### Ten times, at once\n\nIt says ten times.\n\nIt gains.\n",
            "| own-rtt, honest | – | 100.0 % |",
            "| xcp, policed | 1.01 | 99.8 % | 99.0 % | 1.000 | 2 | 3 | 0 |",
            "`xcpnet reproduce liars/01-a`",
        ] {
            assert!(page.contains(words), "{words} in\n{page}");
        }
    }
}
