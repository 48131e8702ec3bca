//! The report in the making: as figures become complete their sections are written and their files
//! staged; at the end the pages are put together.

use xcp_model::Scenario;
use xcp_model::Verdict;
use xcp_report::files::Staged;
use xcp_report::papers::failures::{Row, html};
use xcp_report::papers::{self, Front, Section, Theories, front_page, paper_page, section};
use xcp_report::{Source, references};
use xcp_theory::predict::{Theory, predict};

use crate::experiments::{Paper, TABLES, table};
use crate::failure::Failure;
use crate::output::{Content, command};
use crate::playground::{self, ENGINE, PAGE};
use crate::reproduce::told::Judged;
use crate::reproduce::work::Figure;

/// With at most so many figures their summaries and series are written, too; those of all would be
/// gigabytes.
const NUMBERS: usize = 4;

/// What is said of each figure so far.
pub struct Pages {
    sections: Vec<Option<Section>>,
    rows: Vec<Option<Row>>,
}

impl Pages {
    /// For so many figures.
    pub fn new(figures: usize) -> Self {
        Self { sections: vec![None; figures], rows: vec![None; figures] }
    }

    /// A figure is complete; if it is of a table, its row.
    pub fn add(
        &mut self,
        index: usize,
        figure: &Figure,
        judged: &Judged,
        row: Option<Row>,
        staged: Option<&mut Staged>,
    ) -> Result<(), Failure> {
        self.rows[index] = row;
        let Some(staged) = staged else { return Ok(()) };
        let e = &figure.experiment;
        let sources = [Source { name: e.path.clone(), text: e.text.clone() }];
        let origins = vec![0; judged.runs.len()];
        let playgrounds =
            ENGINE.map_or_else(Vec::new, |_| vec![playground::address("../../", index)]);
        let content = Content {
            runs: &judged.runs,
            scenarios: &judged.scenarios,
            settings: &[],
            sources: &sources,
            origins: &origins,
            verdicts: &judged.verdicts,
            numbers: self.sections.len() <= NUMBERS,
            parquet: false,
            playgrounds: &playgrounds,
        };
        content.stage(staged, &format!("{}/{}/", e.paper, e.figure))?;
        let theory: Vec<Vec<Theories>> = judged
            .scenarios
            .iter()
            .zip(&judged.verdicts)
            .map(|(s, list)| list.iter().map(|v| theories(s, v)).collect())
            .collect();
        self.sections[index] = Some(section(&papers::Figure {
            name: &e.name(),
            again: &e.again,
            scenarios: &judged.scenarios,
            runs: &judged.runs,
            verdicts: &judged.verdicts,
            theory: &theory,
            references: &references(&judged.scenarios),
            seeds: figure.seeds,
        }));
        Ok(())
    }

    /// The rows of the tables, in their order.
    pub fn rows(&self) -> Vec<Row> {
        self.rows.iter().flatten().cloned().collect()
    }

    /// The tables themselves.
    fn tables(&self) -> String {
        let rows = self.rows();
        let one = |name: &&str| {
            let rows: Vec<Row> = rows.iter().filter(|row| row.table() == *name).cloned().collect();
            let Paper { name, title, about } = Paper::of(name);
            html(&rows, &name, &title, &about)
        };
        TABLES.iter().map(one).collect()
    }

    /// Writes the overview and a page for each paper.
    pub fn write(&self, figures: &[Figure], staged: &mut Staged) -> Result<(), Failure> {
        let (command, version) = (command(), env!("CARGO_PKG_VERSION"));
        let mut found: Vec<(Paper, Vec<Section>)> = Vec::new();
        for (figure, section) in figures.iter().zip(&self.sections) {
            let name = &figure.experiment.paper;
            let Some(section) = section.as_ref().filter(|_| table(name).is_none()) else {
                continue;
            };
            if found.last().is_none_or(|(paper, _)| paper.name != *name) {
                found.push((Paper::of(name), Vec::new()));
            }
            if let Some((_, sections)) = found.last_mut() {
                sections.push(section.clone());
            }
        }
        let pages: Vec<papers::Paper<'_>> = found
            .iter()
            .map(|(p, sections)| papers::Paper {
                name: &p.name,
                title: &p.title,
                about: &p.about,
                sections,
            })
            .collect();
        if let Some(engine) = ENGINE {
            let source = |figure: &Figure| {
                let e = &figure.experiment;
                Source { name: e.path.clone(), text: e.text.clone() }
            };
            let sources: Vec<Source> = figures.iter().map(source).collect();
            staged.write(PAGE, playground::page(&sources, "Experiments", engine).as_bytes())?;
        }
        for page in &pages {
            staged.write(
                format!("{}.html", page.name),
                paper_page(page, &command, version).as_bytes(),
            )?;
        }
        let left_out: Vec<String> =
            figures.iter().filter(|f| f.left_out).map(|f| f.experiment.name()).collect();
        let tables = self.tables();
        let front = Front {
            papers: &pages,
            tables: &tables,
            left_out: &left_out,
            command: &command,
            version,
        };
        Ok(staged.write("report.html", front_page(&front).as_bytes())?)
    }
}

/// What theories say of a claim's number.
fn theories(scenario: &Scenario, verdict: &Verdict) -> Theories {
    Theory::ALL
        .into_iter()
        .filter_map(|theory| {
            Some((theory.name(), predict(scenario, theory, &verdict.metric, Some(verdict.period))?))
        })
        .collect()
}
