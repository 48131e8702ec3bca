//! What came of the mutants, as tables of `docs/reproduce.md`.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use xcp_engine::mutants::MUTANTS;

use crate::figures::{Claim, Figure, Noticed};

/// Claims that have to notice a mutant, and files that they are in, at least.
const CLAIMS: usize = 3;
const FILES: usize = 2;

/// The marks in the page.
const BEGIN: &str = "<!-- mutants: made by make mutants -->";
const END: &str = "<!-- end of mutants -->";

/// How many claims noticed it, in how many files.
fn counts(noticed: &Noticed) -> (usize, usize) {
    let files = noticed.claims.iter().filter(|list| !list.is_empty()).count();
    (noticed.claims.iter().map(Vec::len).sum(), files)
}

/// Whether enough claims noticed it.
pub fn suffices(noticed: &Noticed) -> bool {
    let (claims, files) = counts(noticed);
    claims >= CLAIMS && files >= FILES
}

/// A line for each claim that noticed it, or for all claims.
pub fn details(noticed: &Noticed, figures: &[Figure], all: bool) {
    for (figure, claims) in figures.iter().zip(if all { &noticed.all } else { &noticed.claims }) {
        for c in claims {
            let (mutant, name) = (MUTANTS[noticed.mutant].name, figure.full_name());
            eprintln!("{mutant}\t{name}\t{}\t{}\t{}\t{}", c.variant, c.metric, c.measured, c.claim);
        }
    }
}

/// Mutants by papers, and the claims that notice none.
pub fn tables(figures: &[Figure], noticed: &[Noticed]) -> String {
    let mut papers: Vec<&str> = figures.iter().map(|f| f.paper.as_str()).collect();
    papers.dedup();
    let mut out = format!(
        "| Mutant | {} | claims | files |\n|---|{}---:|---:|\n",
        papers.join(" | "),
        "---|".repeat(papers.len())
    );
    for one in noticed {
        let _ = write!(out, "| {} |", MUTANTS[one.mutant].what);
        for paper in &papers {
            let here = figures
                .iter()
                .zip(&one.claims)
                .filter(|(f, list)| f.paper == *paper && !list.is_empty());
            let cells: Vec<String> =
                here.map(|(f, list)| format!("{} {}", f.name, list.len())).collect();
            let _ = write!(out, " {} |", cells.join(", "));
        }
        let (claims, files) = counts(one);
        let lacking = if suffices(one) { "" } else { " **too few**" };
        let _ = writeln!(out, " {claims}{lacking} | {files} |");
    }
    let same = |a: &Claim, b: &Claim| {
        (&a.variant, &a.claim, &a.metric) == (&b.variant, &b.claim, &b.metric)
    };
    let mut all = 0;
    let mut idle = Vec::new();
    for (index, figure) in figures.iter().enumerate() {
        let claims = figure.claims();
        all += claims.len();
        let notices =
            |c: &Claim| noticed.iter().any(|n| n.claims[index].iter().any(|other| same(c, other)));
        let blind: Vec<Claim> = claims.into_iter().filter(|c| !notices(c)).collect();
        if !blind.is_empty() {
            idle.push((figure, blind));
        }
    }
    let many: usize = idle.iter().map(|(_, list)| list.len()).sum();
    let _ =
        writeln!(out, "\n{many} of {all} claims notice none of the {} mutants:\n", noticed.len());
    out.push_str("| File | Claims that notice no mutant |\n|---|---|\n");
    for (figure, list) in idle {
        let mut told = HashSet::new();
        let words: Vec<String> = list
            .iter()
            .filter(|c| told.insert(&c.claim))
            .map(|c| c.claim.rsplit_once(" (").map_or(&*c.claim, |(w, _)| w).into())
            .collect();
        let _ =
            writeln!(out, "| `{}` | {}: {} |", figure.full_name(), list.len(), words.join("; "));
    }
    out
}

/// Puts the text between the page's marks.
pub fn write(page: &Path, text: &str) -> Result<(), String> {
    let fail = |e: std::io::Error| format!("{}: {e}", page.display());
    let old = fs::read_to_string(page).map_err(fail)?;
    let marks = || format!("{} lacks the marks {BEGIN} and {END}", page.display());
    let (before, rest) = old.split_once(BEGIN).ok_or_else(marks)?;
    let (_, after) = rest.split_once(END).ok_or_else(marks)?;
    fs::write(page, format!("{before}{BEGIN}\n{text}{END}{after}")).map_err(fail)
}
