//! `xcpnet reproduce failures`: the files of `experiments/failures/` as rows of a table, and
//! `docs/failures.md`, which is made of it.

use serde_json::json;
use xcp_model::Scenario;
use xcp_report::papers::failures::{CELLS, Cell, GRADES, Row, markdown};
use xcp_theory::{Network, max_min};

use crate::experiments::{FAILURES, Paper};
use crate::reproduce::told::Judged;
use crate::reproduce::work::Figure;

/// The row of a figure of the table; `None` for other figures.
pub fn row(figure: &Figure, judged: &Judged) -> Option<Row> {
    if figure.experiment.paper != FAILURES {
        return None;
    }
    let cell = |(i, scenario): (usize, &Scenario)| {
        let shares = shares(scenario);
        let seeds = std::iter::once(&judged.runs)
            .chain(&judged.more)
            .map(|runs| Cell::new(scenario, &runs[i], &shares));
        let seeds = seeds.collect::<Option<Vec<_>>>()?;
        Some((scenario.variant.clone(), Cell::median(&seeds)?, Cell::worst(&seeds)?))
    };
    Some(Row {
        situation: figure.situation(),
        cells: judged.scenarios.iter().enumerate().filter_map(cell).collect(),
    })
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

/// A line for each cell.
pub fn json(row: &Row) -> String {
    let (paper, figure) =
        row.situation.name.split_once('/').unwrap_or((FAILURES, &row.situation.name));
    let line = |(variant, cell, worst): &(String, Cell, Cell)| {
        let line = json!({
            "paper": paper, "figure": figure, "variant": variant, "utilisation": cell.utilisation, "jain": cell.fairness,
            "queue_mean": cell.queue, "queue_rtts": cell.queue_rtts, "drops": cell.drops, "grade": cell.grade(),
            "utilisation_most": cell.most, "utilisation_worst": worst.utilisation, "jain_worst": worst.fairness, "queue_mean_worst": worst.queue,
            "drops_worst": worst.drops, "grade_worst": worst.grade(),
        });
        format!("{line}\n")
    };
    row.cells.iter().map(line).collect()
}

/// The page that people link to.
pub fn document(rows: &[Row]) -> String {
    let paper = Paper::of(FAILURES);
    let mut out = format!(
        "# {}\n\n<!-- Made by: xcpnet reproduce failures --markdown -->\n\n{}\n\n{CELLS} The mark \
            is that of the worst of them:\n\n",
        paper.title, paper.about
    );
    for (mark, grade) in ["🟦", "🟨", "🟧", "🟥"].iter().zip(GRADES) {
        out.push_str(&format!("* {mark} {grade}\n"));
    }
    out.push('\n');
    out.push_str(&markdown(rows));
    out
}
