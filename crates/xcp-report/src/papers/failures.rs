//! Tables of failures: situations that the papers warn of, down, protocols, across; in each cell how full the link was, how equal the shares, how long the queue, how much was dropped. As a
//! terminal table, as Markdown, and as the part of the report that closes it.
//!
//! A row is a scenario file with a variant for each protocol. Its numbers are those of the link
//! named `bottleneck`. Cells are graded by their worst number ([`Cell::grade`]). Beside the median
//! of the seeds stands the worst of them: what goes well with most seeds and badly with one is not
//! good.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use xcp_model::Scenario;
use xcp_model::run::{Run, jain};
use xcp_theory::{Network, max_min};

use super::situation::Situation;
use crate::grid::{Align, Grid};
use crate::html::{escape, inline};
use crate::human;
use crate::table::quantile;

/// The link that a row's numbers are about.
pub const LINK: &str = "bottleneck";

/// What a protocol made of a situation, over the measured part of the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Share of the link's capacity used.
    pub utilisation: f64,
    /// The most that packets can use of it: less than all where framing, or a medium that
    /// acknowledgements share, takes a part.
    pub most: f64,
    /// Jain's index of the long-lived flows' goodputs, each over its max-min share.
    pub fairness: f64,
    /// Mean queue in packets.
    pub queue: f64,
    /// The time that queue takes to drain, over the mean round trip without queues.
    pub queue_rtts: f64,
    /// Packets dropped by the queue.
    pub drops: u64,
    /// Their share of what came to it.
    pub dropped: f64,
}

/// A row of the table: one situation, with a cell for each protocol.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What it is; what is said about it is what the papers warn of.
    pub situation: Situation,
    /// Protocols and what they made of it, in the file's order: the median of the seeds, and the
    /// worst.
    pub cells: Vec<(String, Cell, Cell)>,
}

impl Row {
    /// The table that it is of: the directory of its file.
    #[must_use]
    pub fn table(&self) -> &str {
        self.situation.name.split_once('/').map_or("", |(table, _)| table)
    }
}

/// How bad a number is: 0 good, 3 worst.
type Grade = usize;

fn grade(value: f64, steps: [f64; 3]) -> Grade {
    steps.iter().filter(|&&step| value > step).count()
}

/// Bytes of an acknowledgement: headers, timestamps and XCP's option.
const ACKNOWLEDGEMENT: f64 = 64.0;

impl Cell {
    /// The median and the worst of a scenario's runs, one for each seed. `None` where there is no run,
    /// or no link called [`LINK`].
    #[must_use]
    pub fn of_seeds<'a>(
        scenario: &Scenario,
        runs: impl IntoIterator<Item = &'a Run>,
    ) -> Option<(Self, Self)> {
        let shares = shares(scenario);
        let of = |run| Self::new(scenario, run, &shares);
        let seeds = runs.into_iter().map(of).collect::<Option<Vec<_>>>()?;
        Some((Self::median(&seeds)?, Self::worst(&seeds)?))
    }

    /// What a run gave. `shares` has each flow's max-min share, bit/s of goodput; `None` for those
    /// that fairness does not ask about.
    #[must_use]
    fn new(scenario: &Scenario, run: &Run, shares: &[Option<f64>]) -> Option<Self> {
        let link = run.summary.links.get(LINK)?;
        let (direction, medium) =
            scenario.links.iter().find(|l| l.name == LINK).map(|l| (&l.directions[0], l.medium))?;
        let relative: Vec<f64> = run
            .summary
            .flows
            .iter()
            .zip(shares)
            .filter_map(|(f, share)| share.filter(|s| *s > 0.0).map(|s| f.goodput / s))
            .collect();
        let (mut trips, mut flows) = (0.0, 0.0);
        for flow in scenario.flows.iter().filter(|f| f.is_tcp()) {
            let directions: Vec<_> = scenario.links.iter().flat_map(|l| &l.directions).collect();
            trips += flow
                .group
                .route
                .iter()
                .chain(&flow.group.return_route)
                .map(|&d| directions[d].delay as f64 / 1e9)
                .sum::<f64>();
            flows += 1.0;
        }
        let packet = scenario.flows.first().map_or(1500.0, |f| f64::from(f.group.packet_bytes));
        let drain = link.queue_mean * packet * 8.0 / direction.rate_bps as f64;
        let framed = packet + f64::from(direction.framing_bytes);
        // Every second packet is acknowledged; the medium carries that, too.
        let shared =
            medium.map_or(0.0, |_| (ACKNOWLEDGEMENT + f64::from(direction.framing_bytes)) / 2.0);
        Some(Self {
            utilisation: link.utilisation,
            most: packet / (framed + shared),
            fairness: jain(&relative).unwrap_or(1.0), // nothing to share
            queue: link.queue_mean,
            queue_rtts: drain / (trips / f64::max(flows, 1.0)).max(1e-9),
            drops: link.drops,
            dropped: link.drops as f64 / f64::max((link.drops + link.packets) as f64, 1.0),
        })
    }

    /// The median of each number over several seeds.
    #[must_use]
    fn median(seeds: &[Self]) -> Option<Self> {
        let middle = |of: fn(&Self) -> f64| {
            let mut values: Vec<f64> = seeds.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            quantile(&values, 0.5)
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of packets"
        )]
        let cell = Self {
            utilisation: middle(|c| c.utilisation),
            most: middle(|c| c.most),
            fairness: middle(|c| c.fairness),
            queue: middle(|c| c.queue),
            queue_rtts: middle(|c| c.queue_rtts),
            drops: middle(|c| c.drops as f64) as u64,
            dropped: middle(|c| c.dropped),
        };
        (!seeds.is_empty()).then_some(cell)
    }

    /// The worst of each number over several seeds.
    #[must_use]
    fn worst(seeds: &[Self]) -> Option<Self> {
        let worse = |a: Self, b: &Self| Self {
            utilisation: a.utilisation.min(b.utilisation),
            most: a.most,
            fairness: a.fairness.min(b.fairness),
            queue: a.queue.max(b.queue),
            queue_rtts: a.queue_rtts.max(b.queue_rtts),
            drops: a.drops.max(b.drops),
            dropped: a.dropped.max(b.dropped),
        };
        seeds.split_first().map(|(first, rest)| rest.iter().fold(*first, worse))
    }

    /// Grades of its numbers: utilisation, of the most that there can be, below 95, 80 and 50 %;
    /// fairness below .95, .8 and .5; a queue beyond a tenth of the round trip, half of it, all of
    /// it; more than a packet dropped in a thousand, a hundred, ten.
    #[must_use]
    pub fn grades(&self) -> [Grade; 4] {
        [
            grade(1.0 - self.utilisation / self.most, [0.05, 0.2, 0.5]),
            grade(1.0 - self.fairness, [0.05, 0.2, 0.5]),
            grade(self.queue_rtts, [0.1, 0.5, 1.0]),
            grade(self.dropped, [0.001, 0.01, 0.1]),
        ]
    }

    /// The worst of them.
    #[must_use]
    pub fn grade(&self) -> Grade {
        self.grades().into_iter().max().unwrap_or(0)
    }

    /// Its numbers in words, in the order of [`Cell::grades`].
    fn words(&self) -> [String; 4] {
        let percent = |x: f64| format!("{:.0} %", x * 100.0);
        [
            // 99.96 % is not full.
            if self.utilisation < 0.9995 {
                format!("{:.1} %", self.utilisation * 100.0)
            } else {
                percent(self.utilisation)
            },
            format!("{:.3}", self.fairness),
            human::number(self.queue),
            self.drops.to_string(),
        ]
    }
}

/// Each flow's max-min share, bit/s of goodput, for flows that last to the end of the measured
/// period.
fn shares(scenario: &Scenario) -> Vec<Option<f64>> {
    let network = Network::before(scenario, scenario.measure.to);
    let rates = max_min(&network).rates;
    let share = |flow: &xcp_model::Flow| {
        let group = &*flow.group.name;
        let lasts = flow.is_tcp()
            && flow.bytes().is_none()
            && flow.group.stop.is_none_or(|stop| stop >= scenario.measure.to);
        let (class, rate) =
            network.classes.iter().zip(&rates).find(|(class, _)| lasts && class.name == group)?;
        Some(class.goodput(*rate))
    };
    scenario.flows.iter().map(share).collect()
}

/// The median's words, and the worst seed's in brackets where they are others.
fn beside(median: &Cell, worst: &Cell) -> [String; 4] {
    let mut words = median.words();
    for (word, worst) in words.iter_mut().zip(worst.words()) {
        if *word != worst {
            *word = format!("{word} ({worst})");
        }
    }
    words
}

/// Protocols of all rows, in the order in which they come.
fn protocols(rows: &[Row]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, ..) in rows.iter().flat_map(|r| &r.cells) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

fn by_name(row: &Row) -> BTreeMap<&str, (&Cell, &Cell)> {
    row.cells.iter().map(|(name, median, worst)| (name.as_str(), (median, worst))).collect()
}

/// What stands in a cell.
pub const CELLS: &str = "In each cell, from top to bottom: utilisation of the link; Jain’s index \
    of the long-lived flows’ goodputs over their max-min shares; mean queue in packets; packets \
    dropped by the queue. The numbers are medians over the seeds, with the worst seed in brackets \
    if its number differs.";
/// What each of the four grades means, from good to worst.
pub const GRADES: [&str; 4] = [
    "good",
    "utilisation below 95 % of what packets can use of the link, fairness below .95, a mean queue \
     of more than a tenth of the round trip, or more than one packet in a thousand dropped",
    "below 80 %, below .8, half a round trip, one in a hundred",
    "below 50 %, below .5, a whole round trip, one in ten",
];

/// Marks of grades, for where there are no colours.
const MARKS: [&str; 4] = ["", "·", "!", "!!"];

/// For a terminal: a table for each situation, since ten protocols do not fit beside one another.
#[must_use]
pub fn text(rows: &[Row], width: usize) -> String {
    use Align::{Left, Right};
    let mut out = String::new();
    for row in rows {
        let _ = writeln!(out, "{}: {}", row.situation.name, row.situation.title);
        let mut grid = Grid::new(&[
            ("protocol", Left),
            ("utilisation", Right),
            ("fairness", Right),
            ("mean queue", Right),
            ("drops", Right),
            ("", Left),
        ]);
        for (name, cell, worst) in &row.cells {
            let [utilisation, fairness, queue, drops] = beside(cell, worst);
            let marks = if worst.grade() > cell.grade() {
                format!("{} ({})", MARKS[cell.grade()], MARKS[worst.grade()])
            } else {
                MARKS[cell.grade()].to_owned()
            };
            grid.push(vec![name.clone(), utilisation, fairness, queue, drops, marks]);
        }
        grid.without("", "").render(width, &mut out);
        out.push('\n');
    }
    out
}

/// As a page of Markdown's body: one table, the numbers of a cell below one another.
#[must_use]
pub fn markdown(rows: &[Row]) -> String {
    let names = protocols(rows);
    let mut out = format!("| | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for row in rows {
        let cells = by_name(row);
        let told: Vec<String> = names
            .iter()
            .map(|name| {
                cells.get(name).map_or("–".to_owned(), |(cell, worst)| {
                    let words: Vec<String> = beside(cell, worst)
                        .into_iter()
                        .zip(cell.grades())
                        .map(|(w, g)| if g > 1 { format!("**{w}**") } else { w })
                        .collect();
                    let mark = |cell: &Cell| ["🟦", "🟨", "🟧", "🟥"][cell.grade()];
                    let seeds = if worst.grade() > cell.grade() {
                        format!("{} ({})", mark(cell), mark(worst))
                    } else {
                        mark(cell).into()
                    };
                    format!("{seeds} {}", words.join("<br>"))
                })
            })
            .collect();
        let _ = writeln!(out, "| {} | {} |", row.situation.link(), told.join(" | "));
    }
    for row in rows {
        let _ = write!(out, "{}\n{}", row.situation.heading(), row.situation.command());
    }
    out
}

/// As a part of the report, with `id` as its anchor; `lead` is said above it.
#[must_use]
pub fn html(rows: &[Row], id: &str, title: &str, lead: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let names = protocols(rows);
    let (id, title) = (escape(id), escape(title));
    let mut out = format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 \
            id=\"{id}-title\">{title}</h2>\n",
    );
    for paragraph in lead.split("\n\n").filter(|p| !p.is_empty()) {
        let _ = writeln!(out, "<p class=\"lead\">{}</p>", inline(paragraph));
    }
    let _ = writeln!(
        out,
        "<p class=\"note\">{CELLS} The colour is that of the worst of them, which is bold:</p>"
    );
    out.push_str("<ul class=\"grades\">");
    for (i, grade) in GRADES.iter().enumerate() {
        let _ = write!(out, "<li class=\"q{i}\">{grade}</li>");
    }
    out.push_str("</ul>\n");
    let _ = write!(
        out,
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" \
        aria-labelledby=\"{id}-title\"><table class=\"failures\">\n<thead><tr><th \
        scope=\"col\">Situation</th>",
    );
    for name in &names {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(name));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        let cells = by_name(row);
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(&row.situation.title));
        for name in &names {
            let Some((cell, worst)) = cells.get(name) else {
                out.push_str("<td>–</td>");
                continue;
            };
            let words: Vec<String> = beside(cell, worst)
                .into_iter()
                .zip(cell.grades())
                .map(|(w, g)| if g > 0 && g == cell.grade() { format!("<b>{w}</b>") } else { w })
                .collect();
            let _ = write!(out, "<td class=\"q{}\">{}</td>", cell.grade(), words.join("<br>"));
        }
        let _ = writeln!(
            out,
            "</tr>\n<tr class=\"say\"><td colspan=\"{}\"><p>{} <b>Seen:</b> {} <code>xcpnet \
                reproduce {}</code> · <a href=\"{3}/report.html\">all curves</a></p></td></tr>",
            names.len() + 1,
            inline(&row.situation.about),
            inline(&row.situation.seen),
            escape(&row.situation.name)
        );
    }
    out.push_str("</tbody></table></div>\n</section>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(utilisation: f64, fairness: f64, queue_rtts: f64, dropped: f64) -> Cell {
        Cell { utilisation, most: 1.0, fairness, queue: 12.0, queue_rtts, drops: 7, dropped }
    }

    #[test]
    fn a_cell_is_as_bad_as_its_worst_number() {
        for (cell, grade) in [
            (cell(1.0, 1.0, 0.0, 0.0), 0),
            (cell(0.96, 0.96, 0.05, 0.0005), 0),
            (cell(0.9, 1.0, 0.0, 0.0), 1),
            (cell(1.0, 0.7, 0.0, 0.0), 2),
            (cell(1.0, 1.0, 1.5, 0.0), 3),
            (cell(0.99, 1.0, 0.2, 0.2), 3),
        ] {
            assert_eq!(cell.grade(), grade, "{cell:?}");
        }
    }

    #[test]
    fn seeds_are_put_together_number_by_number() {
        let seeds = [cell(0.9, 0.5, 0.3, 0.0), cell(0.8, 0.7, 0.1, 0.2), cell(1.0, 0.6, 0.2, 0.1)];
        let median = Cell::median(&seeds).unwrap();
        assert_eq!(
            (median.utilisation, median.fairness, median.queue_rtts, median.dropped),
            (0.9, 0.6, 0.2, 0.1)
        );
        assert_eq!(Cell::median(&[]), None);
        let worst = Cell::worst(&seeds).unwrap();
        assert_eq!(
            (worst.utilisation, worst.fairness, worst.queue_rtts, worst.dropped),
            (0.8, 0.5, 0.3, 0.2)
        );
        assert_eq!(Cell::worst(&[]), None);
    }

    #[test]
    fn the_worst_seed_stands_beside_the_median() {
        let (median, worst) = (cell(0.9, 0.5, 0.3, 0.0), cell(0.8, 0.5, 0.3, 0.0));
        assert_eq!(beside(&median, &worst), ["90.0 % (80.0 %)", "0.500", "12", "7"]);
    }

    #[test]
    fn a_link_is_graded_by_what_packets_can_use_of_it() {
        let shared = Cell { most: 0.944, ..cell(0.91, 1.0, 0.0, 0.0) };
        assert_eq!((shared.grade(), Cell { most: 1.0, ..shared }.grade()), (0, 1));
    }

    #[test]
    fn every_form_has_every_cell() {
        let row = |title: &str, cells: &[(&str, f64)]| Row {
            situation: Situation::new(
                "failures/a".into(),
                title.into(),
                "Somebody warns:\na < b.\n\nIt is so.",
            ),
            cells: cells
                .iter()
                .map(|(name, u)| {
                    ((*name).to_owned(), cell(*u, 1.0, 0.0, 0.0), cell(*u, 1.0, 0.0, 0.0))
                })
                .collect(),
        };
        let rows = [
            row("One in a hundred", &[("xcp", 0.4321), ("cubic", 0.877)]),
            row("Many, many", &[("xcp", 0.5432)]),
        ];
        for form in [text(&rows, 80), markdown(&rows), html(&rows, "a", "Failures", "")] {
            for number in ["43.2 %", "87.7 %", "54.3 %", "cubic"] {
                assert!(form.contains(number), "{number} in\n{form}");
            }
        }
        assert!(
            markdown(&rows).contains("(#many-many)")
                && html(&rows, "a", "Failures", "").contains("a &lt; b")
        );
        assert_eq!(html(&[], "a", "Failures", "lead"), "");
    }
}
