//! `xcpnet reproduce liars --markdown`: the files of `experiments/liars/` as rows of a table, and
//! `docs/liars.md`, which is made of it. Their claims are judged and reported as every paper's.

use xcp_report::papers::liars::{CELLS, Cell, HONEST, Law, POLICED, Row, Seeds, markdown};

use crate::experiments::{LIARS, Paper};
use crate::reproduce::told::Judged;
use crate::reproduce::work::Figure;

/// The row of a figure of the table; `None` for other figures.
pub fn row(figure: &Figure, judged: &Judged) -> Option<Row> {
    if figure.experiment.paper != LIARS {
        return None;
    }
    let place = |variant: &str| judged.scenarios.iter().position(|s| s.variant == variant);
    let laws = judged
        .scenarios
        .iter()
        .filter_map(|scenario| scenario.variant.strip_suffix(HONEST))
        .filter_map(|name| {
            let honest = place(&format!("{name}{HONEST}"))?;
            let seeds = |variant: &str| {
                let here = place(variant)?;
                let cell = |runs: &Vec<_>| {
                    Cell::new(
                        (&judged.scenarios[here], &runs[here]),
                        (&judged.scenarios[honest], &runs[honest]),
                    )
                };
                Seeds::new(
                    &std::iter::once(&judged.runs)
                        .chain(&judged.more)
                        .map(cell)
                        .collect::<Option<Vec<_>>>()?,
                )
            };
            let (free, policed) = (seeds(name), seeds(&format!("{name}{POLICED}")));
            Some(Law {
                name: name.to_owned(),
                honest: seeds(&format!("{name}{HONEST}")),
                free,
                policed,
            })
        });
    Some(Row { situation: figure.situation(), laws: laws.collect() })
}

/// The page that people link to.
pub fn document(rows: &[Row]) -> String {
    let paper = Paper::of(LIARS);
    let made = "<!-- Made by: xcpnet reproduce liars --markdown -->";
    format!("# {}\n\n{made}\n\n{}\n\n{CELLS}\n\n{}", paper.title, paper.about, markdown(rows))
}
