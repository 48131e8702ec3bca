//! `xcpnet reproduce failures` and `beyond`: the files of these directories of `experiments/` as rows
//! of a table, and `docs/failures.md` and `docs/beyond.md`, which are made of it.

use serde_json::json;
use xcp_model::Scenario;
use xcp_report::papers::failures::{CELLS, Cell, GRADES, Row, markdown};

use crate::experiments::{Paper, TABLES, table};
use crate::reproduce::told::Judged;
use crate::reproduce::work::Figure;

/// The row of a figure of the table; `None` for other figures.
pub fn row(figure: &Figure, judged: &Judged) -> Option<Row> {
    table(&figure.experiment.paper)?;
    let cell = |(i, scenario): (usize, &Scenario)| {
        let seeds = std::iter::once(&judged.runs).chain(&judged.more).map(|runs| &runs[i]);
        let (median, worst) = Cell::of_seeds(scenario, seeds)?;
        Some((scenario.variant.clone(), median, worst))
    };
    Some(Row {
        situation: figure.situation(),
        cells: judged.scenarios.iter().enumerate().filter_map(cell).collect(),
    })
}

/// A line for each cell.
pub fn json(row: &Row) -> String {
    let name = &row.situation.name;
    let (paper, figure) = name.split_once('/').unwrap_or((TABLES[0], name));
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

/// The page that people link to, of each table of which there are rows.
pub fn document(rows: &[Row]) -> String {
    let one = |name: &&str| {
        let rows: Vec<Row> = rows.iter().filter(|row| row.table() == *name).cloned().collect();
        (!rows.is_empty()).then(|| page(&Paper::of(name), &rows))
    };
    TABLES.iter().filter_map(one).collect::<Vec<_>>().join("\n")
}

fn page(paper: &Paper, rows: &[Row]) -> String {
    let mut out = format!(
        "# {}\n\n<!-- Made by: xcpnet reproduce {} --markdown -->\n\n{}\n\n{CELLS} The mark \
            is that of the worst of them:\n\n",
        paper.title, paper.name, paper.about
    );
    for (mark, grade) in ["🟦", "🟨", "🟧", "🟥"].iter().zip(GRADES) {
        out.push_str(&format!("* {mark} {grade}\n"));
    }
    out.push('\n');
    out.push_str(&markdown(rows));
    out
}
