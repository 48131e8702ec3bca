//! What came of the mutants, as tables of `docs/reproduce.md`.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;

use xcp_engine::mutants::MUTANTS;

use crate::figures::{Claim, Figure, Judged};
use crate::files::insert;
use crate::record::Record;

/// Claims that have to notice a mutant, and files that they are in, at least.
const CLAIMS: usize = 3;
const FILES: usize = 2;

/// The marks in the page: around the tables of mutants, and around the count of claims.
const MUTANTS_MARKS: [&str; 2] =
    ["<!-- mutants: made by make mutants -->", "<!-- end of mutants -->"];
const CLAIMS_MARKS: [&str; 2] = ["<!-- claims: made by make mutants -->", "<!-- end of claims -->"];

/// What a source says of a claim that is not the paper's.
const OURS: [&str; 7] = [
    "not in the paper",
    "not the paper's",
    "ours",
    "closed form",
    "cure",
    "the law at rest",
    "follows from",
];

/// How many claims noticed a mutant, in how many files.
fn counts(record: &Record, mutant: usize) -> (usize, usize) {
    let noticed = record.figures.iter().filter_map(|f| f[mutant].as_ref()).map(Vec::len);
    noticed.filter(|&n| n > 0).fold((0, 0), |(claims, files), n| (claims + n, files + 1))
}

/// Whether enough claims noticed it.
pub fn suffices(record: &Record, mutant: usize) -> bool {
    let (claims, files) = counts(record, mutant);
    claims >= CLAIMS && files >= FILES
}

/// A line for each claim, to standard error.
pub fn numbers(figure: &Figure, judged: &Judged) {
    let mutant = judged.mutant.map_or("right", |m| MUTANTS[m].name);
    let number = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.5}"));
    for (claim, v) in figure.claims().iter().zip(judged.verdicts) {
        eprintln!(
            "{}{}\t{}\t{}\t{}\t{} in {}..{}\t{}",
            if v.inside { "" } else { "*" },
            mutant,
            figure.full_name(),
            claim.variant,
            claim.metric,
            number(v.measured),
            number(v.min),
            number(v.max),
            claim.claim
        );
    }
}

/// How many were noticed; mutants by papers; what was not run; the claims that notice none.
pub fn tables(figures: &[Figure], record: &Record) -> String {
    let enough = (0..MUTANTS.len()).filter(|&m| suffices(record, m)).count();
    let total = MUTANTS.len();
    let mut out = format!(
        "{enough} of {total} mutants are noticed by {CLAIMS} claims in {FILES} files at least.\n\n"
    );
    mutants(figures, record, &mut out);
    not_run(figures, record, &mut out);
    idle(figures, record, &mut out);
    out
}

fn mutants(figures: &[Figure], record: &Record, out: &mut String) {
    let mut papers: Vec<&str> = figures.iter().map(|f| f.paper.as_str()).collect();
    papers.dedup();
    let _ = write!(
        out,
        "| Mutant | {} | claims | files |\n|---|{}---:|---:|\n",
        papers.join(" | "),
        "---|".repeat(papers.len())
    );
    for (index, mutant) in MUTANTS.iter().enumerate() {
        let _ = write!(out, "| {} |", mutant.what);
        for paper in &papers {
            let here = figures.iter().zip(&record.figures).filter(|(f, _)| f.paper == *paper);
            let cells: Vec<String> = here
                .filter_map(|(f, noticed)| Some((f, noticed[index].as_ref()?.len())))
                .filter(|&(_, claims)| claims > 0)
                .map(|(f, claims)| format!("{} {claims}", f.name))
                .collect();
            let _ = write!(out, " {} |", cells.join(", "));
        }
        let (claims, files) = counts(record, index);
        let lacking = if suffices(record, index) { "" } else { " **too few**" };
        let _ = writeln!(out, " {claims}{lacking} | {files} |");
    }
}

/// Which figures were run with a part of the mutants.
fn not_run(figures: &[Figure], record: &Record, out: &mut String) {
    let mut parts: BTreeMap<Vec<usize>, Vec<String>> = BTreeMap::new();
    for (figure, noticed) in figures.iter().zip(&record.figures) {
        let with: Vec<usize> = (0..MUTANTS.len()).filter(|&m| noticed[m].is_some()).collect();
        if with.len() < MUTANTS.len() {
            parts.entry(with).or_default().push(format!("`{}`", figure.full_name()));
        }
    }
    if parts.is_empty() {
        return;
    }
    out.push_str("\nNot every file was run with every mutant:\n\n");
    out.push_str("| Files | Mutants that they were run with |\n|---|---|\n");
    for (with, files) in parts {
        let names: Vec<&str> = with.iter().map(|&m| MUTANTS[m].what).collect();
        let names = if names.is_empty() { "none".into() } else { names.join("; ") };
        let _ = writeln!(out, "| {} | {names} |", files.join(", "));
    }
}

/// The claims that notice nothing, of the figures that were run with all mutants.
fn idle(figures: &[Figure], record: &Record, out: &mut String) {
    let (mut all, mut others, mut many) = (0, 0, 0);
    let mut lines = String::new();
    for (figure, noticed) in figures.iter().zip(&record.figures) {
        let Some(noticed) = noticed.iter().map(Option::as_ref).collect::<Option<Vec<_>>>() else {
            continue;
        };
        let claims = figure.claims();
        let notices: HashSet<usize> = noticed.into_iter().flatten().copied().collect();
        all += claims.iter().filter(|c| c.ours).count();
        others += claims.iter().filter(|c| !c.ours).count();
        let blind: Vec<&Claim> = claims
            .iter()
            .enumerate()
            .filter(|(number, c)| c.ours && !notices.contains(number))
            .map(|(_, c)| c)
            .collect();
        if blind.is_empty() {
            continue;
        }
        many += blind.len();
        let mut told = HashSet::new();
        let words: Vec<&str> = blind
            .iter()
            .filter(|c| told.insert(&c.claim))
            .map(|c| c.claim.rsplit_once(" (").map_or(&*c.claim, |(words, _)| words))
            .collect();
        let _ =
            writeln!(lines, "| `{}` | {}: {} |", figure.full_name(), blind.len(), words.join("; "));
    }
    let total = MUTANTS.len();
    let _ = writeln!(
        out,
        "\nOf {all} claims in files that were run with every mutant, {many} notice none of the \
         {total}; {others} more are about runs without any XCP router or sender, which no mutant \
         can reach."
    );
    if many > 0 {
        let _ = write!(out, "\n| File | Claims that notice no mutant |\n|---|---|\n{lines}");
    }
}

/// How many claims are the papers', and how many ours, by what their sources say.
pub fn claims(figures: &[Figure]) -> String {
    let mut out = "| Paper | its claims | ours |\n|---|---:|---:|\n".to_owned();
    let mut papers: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for figure in figures {
        for claim in &figure.whole {
            let source = claim.rsplit_once(" (").map_or("", |(_, source)| source);
            let ours = OURS.iter().any(|words| source.contains(words));
            papers.entry(&figure.paper).or_default()[usize::from(ours)] += 1;
        }
    }
    let mut all = [0, 0];
    for (paper, [theirs, ours]) in papers {
        let _ = writeln!(out, "| `{paper}` | {theirs} | {ours} |");
        all = [all[0] + theirs, all[1] + ours];
    }
    let _ = writeln!(out, "| all | {} | {} |", all[0], all[1]);
    out
}

/// Puts the tables between the page's marks.
pub fn write(page: &Path, figures: &[Figure], tables: &str) -> Result<(), String> {
    insert(page, &[(CLAIMS_MARKS, &claims(figures)), (MUTANTS_MARKS, tables)])
}
