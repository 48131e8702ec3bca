//! `make robust-parts`: the robust law and sender with one part left out, or one constant half or
//! twice as large, in every row of the tables of failures; the table of `docs/robust-parts.md`.
//!
//! What came of it is kept in a file: a line `row NAME DIGEST`, then one for each variation that
//! was run in it: its name, its digest, and the median's numbers and the worst seed's, as
//! [`Cell`] has them. The law as it is, is called `-`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io, thread};

use xcp_engine::mutants::{self, Mutant, parts_and_constants};
use xcp_model::Scenario;
use xcp_report::papers::failures::Cell;
use xcp_scenario::{Overrides, load, plan, read_text};

use crate::digest::of_settings;
use crate::files::{insert, replace};
use crate::record::of_mutant;

/// The directories of the rows, and what stands before their numbers.
const TABLES: [(&str, &str); 2] = [("failures", ""), ("beyond", "b")];

/// The variant of the files that is varied.
const COLUMN: &str = "robust";

const HEADING: &str = "# What each variation of the robust law came to in each row of the tables of \
    failures: written and read by xcp-mutants --parts (docs/robust-parts.md).\n";

/// The marks in the page.
const MARKS: [&str; 2] = ["<!-- parts: made by make robust-parts -->", "<!-- end of parts -->"];

/// A utilisation or Jain's index that moves by as much is told, although the grade is the same.
const TOLD: f64 = 0.01;

/// The law as it is.
const WHOLE: &str = "-";

/// A row: a file, with the seeds that it asks for.
#[derive(Debug)]
struct Row {
    /// `TABLE/FILE`, without `.toml`.
    name: String,
    digest: String,
    seeds: Vec<Scenario>,
}

/// The median of the seeds, and the worst.
type Cells = (Cell, Cell);

/// Of each row by name: of each variation by name.
type Known = BTreeMap<String, BTreeMap<String, Cells>>;

/// What is asked for.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// Where the files are.
    pub experiments: &'a Path,
    /// Where what is known is kept.
    pub record: Option<&'a Path>,
    /// Runs what is known, too.
    pub again: bool,
    /// The page.
    pub page: Option<&'a Path>,
    /// Names of variations and rows; all if there are none.
    pub words: &'a [String],
}

/// Runs what is wanted and not known, and writes the table.
///
/// # Errors
/// A file that cannot be read or written, a word that means nothing.
pub fn run(wanted: &Wanted) -> Result<(), String> {
    let mut rows = Vec::new();
    for (table, _) in TABLES {
        rows.extend(read(&wanted.experiments.join(table), table)?);
    }
    let is_row = |word: &str| rows.iter().any(|row| row.name == word);
    let is_part = |word: &str| parts_and_constants().any(|part| part.name == word);
    if let Some(word) = wanted.words.iter().find(|w| *w != "none" && !is_row(w) && !is_part(w)) {
        return Err(format!("{word}: neither a variation nor a row of a table"));
    }
    let of = |is: &dyn Fn(&str) -> bool, name: &str| {
        !wanted.words.iter().any(|w| is(w)) || wanted.words.iter().any(|w| w == name)
    };
    let known = match wanted.record {
        Some(file) => recorded(file, &rows)?,
        None => Known::new(),
    };
    let mut jobs: Vec<(&Row, Option<&Mutant>)> = Vec::new();
    for row in rows.iter().filter(|row| of(&is_row, &row.name)) {
        let cells = known.get(&row.name);
        let missing = |name: &str| wanted.again || cells.is_none_or(|c| !c.contains_key(name));
        if missing(WHOLE) {
            jobs.push((row, None));
        }
        let parts = parts_and_constants().filter(|p| of(&is_part, p.name) && missing(p.name));
        jobs.extend(parts.map(|part| (row, Some(part))));
    }
    if wanted.words.iter().any(|w| w == "none") {
        jobs.clear();
    }
    let known = work(&jobs, known, &|known| match wanted.record {
        Some(file) => replace(file, &text(known, &rows)),
        None => Ok(()),
    })?;
    let table = table(&known, &rows);
    match wanted.page {
        Some(page) => insert(page, &[(MARKS, &table)]),
        None => {
            print!("{table}");
            Ok(())
        }
    }
}

fn read(dir: &Path, table: &str) -> Result<Vec<Row>, String> {
    let fail = |e: io::Error| format!("{}: {e}", dir.display());
    let mut paths = fs::read_dir(dir)
        .map_err(fail)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>, io::Error>>()
        .map_err(fail)?;
    paths.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    paths.sort();
    paths.iter().map(|path| row(path, table).map_err(|e| e.to_string())).collect()
}

fn row(path: &Path, table: &str) -> Result<Row, xcp_scenario::ScenarioError> {
    let text = read_text(path, &[])?;
    let seeds = plan(path, &text)?.seeds;
    let only = Overrides::none().only(&[COLUMN.to_owned()]);
    let read = |seed: &u64| load(path, &text, &only.clone().with("seed", seed.to_string()));
    let seeds: Vec<Vec<Scenario>> = seeds.iter().map(read).collect::<Result<_, _>>()?;
    let file = path.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Row {
        name: format!("{table}/{file}"),
        digest: of_settings(&text),
        seeds: seeds.into_iter().flatten().collect(),
    })
}

/// A row with a variation.
fn cells(row: &Row, part: Option<&Mutant>) -> Result<Cells, String> {
    mutants::select(part);
    // On this thread, whose law is varied.
    let run = |scenario| xcp_sim::simulate_on(scenario, 1, &mut ());
    let runs = row.seeds.iter().map(run).collect::<Result<Vec<_>, _>>();
    mutants::select(None);
    let runs = runs.map_err(|e| format!("{}: {e}", row.name))?;
    let scenario = row.seeds.first().ok_or(format!("{} has no variant {COLUMN}", row.name))?;
    Cell::of_seeds(scenario, &runs).ok_or(format!("{}: no bottleneck", row.name))
}

/// Does all jobs, on all processors; `tell` hears what is known after each.
fn work(
    jobs: &[(&Row, Option<&Mutant>)],
    known: Known,
    tell: &(dyn Fn(&Known) -> Result<(), String> + Sync),
) -> Result<Known, String> {
    let next = AtomicUsize::new(0);
    let known = Mutex::new(Ok::<_, String>(known));
    let each = || {
        while let Some((row, part)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let cells = cells(row, *part);
            let mut known = known.lock().expect("no panic");
            let Ok(all) = &mut *known else { return };
            let name = part.map_or(WHOLE, |part| part.name);
            let told = cells.and_then(|cells| {
                all.entry(row.name.clone()).or_default().insert(name.to_owned(), cells);
                tell(all)
            });
            if let Err(error) = told {
                *known = Err(error);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(each);
        }
    });
    known.into_inner().expect("no panic")
}

/// A cell's numbers, in the order in which they are written.
fn numbers(cell: &Cell) -> [f64; 7] {
    let drops = cell.drops as f64;
    [cell.utilisation, cell.most, cell.fairness, cell.queue, cell.queue_rtts, drops, cell.dropped]
}

fn cell(numbers: &[f64]) -> Option<Cell> {
    let [utilisation, most, fairness, queue, queue_rtts, drops, dropped] = *numbers else {
        return None;
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let drops = drops as u64;
    Some(Cell { utilisation, most, fairness, queue, queue_rtts, drops, dropped })
}

/// What the file says of these rows and variations; nothing if there is none yet.
fn recorded(file: &Path, rows: &[Row]) -> Result<Known, String> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Known::new()),
        Err(e) => return Err(format!("{}: {e}", file.display())),
    };
    let mut known = Known::new();
    let mut row: Option<&Row> = None;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let wrong = || format!("{}:{}: {line:?} is no line of it", file.display(), number + 1);
        if let ["row", name, sum] = words[..] {
            row = rows.iter().find(|row| row.name == name && row.digest == sum);
            continue;
        }
        let [name, sum, ref numbers @ ..] = words[..] else { return Err(wrong()) };
        let numbers = numbers.iter().map(|n| n.parse().ok()).collect::<Option<Vec<f64>>>();
        let numbers = numbers.filter(|n| n.len() == 14).ok_or_else(wrong)?;
        let median = cell(&numbers[..7]).ok_or_else(wrong)?;
        let worst = cell(&numbers[7..]).ok_or_else(wrong)?;
        let part = parts_and_constants().any(|p| p.name == name && of_mutant(p) == sum);
        if let Some(row) = row.filter(|_| part || name == WHOLE) {
            known.entry(row.name.clone()).or_default().insert(name.to_owned(), (median, worst));
        }
    }
    Ok(known)
}

fn text(known: &Known, rows: &[Row]) -> String {
    let mut out = HEADING.to_owned();
    for row in rows {
        let Some(cells) = known.get(&row.name) else { continue };
        let _ = writeln!(out, "row {} {}", row.name, row.digest);
        for (name, (median, worst)) in cells {
            let part = parts_and_constants().find(|p| p.name == name);
            let _ = write!(out, "{name} {}", part.map_or(WHOLE.to_owned(), of_mutant));
            for number in numbers(median).iter().chain(&numbers(worst)) {
                let _ = write!(out, " {number}");
            }
            out.push('\n');
        }
    }
    out
}

/// A row's number, as the page has it.
fn number(row: &str) -> String {
    let (table, file) = row.split_once('/').unwrap_or(("", row));
    let letter = TABLES.iter().find(|(name, _)| *name == table).map_or("", |(_, letter)| letter);
    format!("{letter}{}", file.split('-').next().unwrap_or(file).trim_start_matches('0'))
}

/// What differs in a row, in words, and whether a grade does; `None` where nothing is worth telling.
fn difference(row: &str, whole: &Cells, varied: &Cells) -> Option<(bool, String)> {
    let ((median, worst), (was, was_worst)) = (varied, whole);
    let graded = median.grade() != was.grade();
    let seeds = worst.grade() > was_worst.grade();
    let moved = |of: fn(&Cell) -> f64| (of(median) - of(was)).abs() >= TOLD;
    let mut said = Vec::new();
    if moved(|c| c.utilisation) {
        said.push(format!("{:.3}", median.utilisation).trim_start_matches('0').to_owned());
    }
    if moved(|c| c.fairness) || median.grades()[1] != was.grades()[1] {
        said.push(format!("Jain {:.2}", median.fairness).replace("0.", "."));
    }
    if median.grades()[2] != was.grades()[2] || (median.queue_rtts - was.queue_rtts).abs() > 0.05 {
        said.push(format!("queue {:.2}", median.queue_rtts).replace("0.", "."));
    }
    if median.grades()[3] != was.grades()[3] {
        said.push(format!("{} drops", median.drops));
    }
    if !graded && !seeds && said.is_empty() {
        return None;
    }
    let row = number(row);
    let mark = ["🟦", "🟨", "🟧", "🟥"];
    let mark = match (graded, seeds) {
        (true, _) => format!(" {}", mark[median.grade()]),
        (false, true) => format!(" (worst seed {})", mark[worst.grade()]),
        (false, false) => String::new(),
    };
    let said = if said.is_empty() { String::new() } else { format!(" {}", said.join(", ")) };
    Some((graded || seeds, format!("{row}{mark}{said}")))
}

/// A line for each variation: the rows that become worse, and what else moves.
fn table(known: &Known, rows: &[Row]) -> String {
    let mut out = "| | rows with another grade | what else moves |\n|---|---|---|\n".to_owned();
    for part in parts_and_constants() {
        let (mut graded, mut moved) = (Vec::new(), Vec::new());
        let mut ran = 0;
        for row in rows {
            let Some(cells) = known.get(&row.name) else { continue };
            let (Some(whole), Some(varied)) = (cells.get(WHOLE), cells.get(part.name)) else {
                continue;
            };
            ran += 1;
            if let Some((another, said)) = difference(&row.name, whole, varied) {
                if another { graded.push(said) } else { moved.push(said) }
            }
        }
        if ran == 0 {
            continue;
        }
        let cell = |said: &[String]| {
            if said.is_empty() { "–".to_owned() } else { said.join("; ") }
        };
        let (graded, moved) = (cell(&graded), cell(&moved));
        let missing = if ran < rows.len() { format!(" ({ran} rows)") } else { String::new() };
        let _ = writeln!(out, "| {}{missing} | {graded} | {moved} |", part.what);
    }
    out
}
