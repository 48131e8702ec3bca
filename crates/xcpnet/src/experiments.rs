//! The papers' figures: built into the program, or read from a directory.

use std::fs;
use std::path::Path;

use crate::failure::Failure;
use crate::output::quoted;

/// One figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Experiment {
    /// The paper: the directory's name.
    pub paper: String,
    /// The figure: the file's name without `.toml`.
    pub figure: String,
    /// The file, for messages.
    pub path: String,
    /// What `xcpnet reproduce` is given for this one alone: its name, or where its file is.
    pub again: String,
    /// The scenario.
    pub text: String,
}

impl Experiment {
    /// `PAPER/FIGURE`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.paper, self.figure)
    }
}

const BUILT_IN: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

const PAPERS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/papers.rs"));

/// What a paper is, from the `README.md` beside its figures: the heading, and the text below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paper {
    /// The directory's name.
    pub name: String,
    /// In a line.
    pub title: String,
    /// Paragraphs.
    pub about: String,
}

impl Paper {
    /// One that is built in, or of which nothing is known but its name.
    pub fn of(name: &str) -> Self {
        let text = PAPERS.iter().find(|(paper, _)| *paper == name).map_or("", |(_, text)| *text);
        let (heading, about) = text.split_once('\n').unwrap_or((text, ""));
        let title = heading.strip_prefix("# ").filter(|t| !t.is_empty()).unwrap_or(name);
        Self { name: name.into(), title: title.into(), about: about.trim().into() }
    }
}

/// Those built into the program, by paper and figure.
pub fn built_in() -> Vec<Experiment> {
    let one = |&(paper, figure, text): &(&str, &str, &str)| Experiment {
        paper: paper.into(),
        figure: figure.into(),
        path: format!("experiments/{paper}/{figure}.toml"),
        again: format!("{paper}/{figure}"),
        text: text.into(),
    };
    sorted(BUILT_IN.iter().map(one).collect())
}

/// Names of the directories whose files are rows of a table, which close the report: where each
/// protocol fails, and what else was asked of the robust law.
pub const TABLES: [&str; 2] = ["failures", "beyond"];

/// Which of the tables a directory is.
pub fn table(paper: &str) -> Option<usize> {
    TABLES.iter().position(|name| *name == paper)
}

/// Name of the directory of the page of liars.
pub const LIARS: &str = "liars";

/// By paper, the tables last, and figures by their numbers: `fig2` before `fig10`.
fn sorted(mut experiments: Vec<Experiment>) -> Vec<Experiment> {
    let key = |name: &str| {
        let mut parts: Vec<(String, u64)> = Vec::new();
        for c in name.chars() {
            match (c.to_digit(10), parts.last_mut()) {
                (Some(digit), Some((_, number))) => {
                    *number = number.saturating_mul(10).saturating_add(digit.into())
                }
                (Some(digit), None) => parts.push((String::new(), digit.into())),
                (None, Some((word, 0))) => word.push(c),
                (None, _) => parts.push((c.into(), 0)),
            }
        }
        parts
    };
    experiments.sort_by_cached_key(|e| (table(&e.paper), e.paper.clone(), key(&e.figure)));
    experiments
}

/// One file.
pub fn of_file(path: &Path) -> Result<Experiment, Failure> {
    let name = |p: Option<&std::ffi::OsStr>| {
        p.map(|n| n.to_string_lossy().into_owned()).filter(|n| !n.is_empty())
    };
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Ok(Experiment {
        paper: name(whole.parent().and_then(Path::file_name)).unwrap_or_else(|| "file".into()),
        figure: name(path.file_stem()).unwrap_or_else(|| "scenario".into()),
        path: path.display().to_string(),
        again: quoted(&path.display().to_string()),
        text: xcp_scenario::read_text(path, &[])?,
    })
}

/// Those of a directory: PAPER/FIGURE.toml, by paper and figure.
pub fn of_directory(dir: &Path) -> Result<Vec<Experiment>, Failure> {
    let list = |dir: &Path| -> Result<Vec<std::path::PathBuf>, Failure> {
        let fail = |e| {
            let reason = xcp_report::files::reason(&e);
            Failure::new(format!(
                "cannot read the directory {}: {reason}; give a directory of files \
                 PAPER/FIGURE.toml",
                dir.display()
            ))
        };
        let mut paths = Vec::new();
        for entry in fs::read_dir(dir).map_err(fail)? {
            paths.push(entry.map_err(fail)?.path());
        }
        paths.sort();
        Ok(paths)
    };
    let mut found = Vec::new();
    for paper in list(dir)?.into_iter().filter(|p| p.is_dir()) {
        for file in list(&paper)?.into_iter().filter(|f| f.extension().is_some_and(|e| e == "toml"))
        {
            let name = |p: &Path| {
                p.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
            };
            found.push(Experiment {
                paper: name(&paper),
                figure: name(&file),
                path: file.display().to_string(),
                again: quoted(&file.display().to_string()),
                text: xcp_scenario::read_text(&file, &[])?,
            });
        }
    }
    if found.is_empty() {
        return Err(Failure::new(format!(
            "{} contains no experiments; an experiment is a file PAPER/FIGURE.toml",
            dir.display()
        )));
    }
    Ok(sorted(found))
}

/// Those that were asked for: papers, figures, `PAPER/FIGURE`, or files that are there; all if
/// nothing was. In their own order, each once, files last.
pub fn choose(all: Vec<Experiment>, wanted: &[String]) -> Result<Vec<Experiment>, Failure> {
    let is_file = |word: &str| word.ends_with(".toml") && Path::new(word).is_file();
    let files = wanted
        .iter()
        .filter(|w| is_file(w))
        .map(|w| of_file(Path::new(w)))
        .collect::<Result<Vec<_>, _>>()?;
    let names: Vec<String> = wanted.iter().filter(|w| !is_file(w)).cloned().collect();
    let mut chosen = if names.is_empty() && !files.is_empty() {
        Vec::new()
    } else {
        choose_by_name(all, &names)?
    };
    chosen.extend(files);
    Ok(chosen)
}

fn choose_by_name(all: Vec<Experiment>, wanted: &[String]) -> Result<Vec<Experiment>, Failure> {
    let is = |e: &Experiment, word: &str| {
        let word = word.trim_end_matches('/').trim_end_matches(".toml");
        let word = word.strip_prefix("experiments/").unwrap_or(word);
        e.paper == word || e.figure == word || e.name() == word
    };
    for word in wanted {
        if !all.iter().any(|e| is(e, word)) {
            // Of the paper that was meant its figures, else the papers.
            let meant = word.split('/').next().unwrap_or(word);
            let mut there: Vec<String> =
                all.iter().filter(|e| e.paper == meant).map(Experiment::name).collect();
            if there.is_empty() {
                there = all.iter().map(|e| e.paper.clone()).collect();
                there.dedup();
            }
            let nor = if word.ends_with(".toml") { ", nor such a file" } else { "" };
            return Err(Failure::new(format!(
                "there is no paper or figure \"{word}\"{nor}; there are {} (`xcpnet reproduce \
                    --list` shows all figures)",
                there.join(", ")
            )));
        }
    }
    Ok(all.into_iter().filter(|e| wanted.is_empty() || wanted.iter().any(|w| is(e, w))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_by_paper_figure_or_both() {
        let one = |paper: &str, figure: &str| Experiment {
            paper: paper.into(),
            figure: figure.into(),
            path: String::new(),
            again: String::new(),
            text: String::new(),
        };
        let all = || vec![one("a", "fig1"), one("a", "fig2"), one("b", "fig1")];
        let names = |wanted: &[&str]| -> Vec<String> {
            let wanted: Vec<String> = wanted.iter().map(|w| (*w).to_owned()).collect();
            choose(all(), &wanted).unwrap().iter().map(Experiment::name).collect()
        };
        assert_eq!(names(&[]).len(), 3);
        assert_eq!(names(&["a"]), ["a/fig1", "a/fig2"]);
        assert_eq!(names(&["fig1"]), ["a/fig1", "b/fig1"]);
        assert_eq!(names(&["b/fig1", "fig1"]), ["a/fig1", "b/fig1"]);
        assert!(choose(all(), &["fig9".to_owned()]).is_err());
    }

    #[test]
    fn figures_stand_in_the_order_of_their_numbers() {
        let one = |figure: &str| Experiment {
            paper: "p".into(),
            figure: figure.into(),
            path: String::new(),
            again: String::new(),
            text: String::new(),
        };
        let names =
            ["fig10", "fig2", "fig06b", "fig06a", "section-3", "fig7-left", "fig7"].map(one);
        let order: Vec<String> = sorted(names.into()).into_iter().map(|e| e.figure).collect();
        assert_eq!(order, ["fig2", "fig06a", "fig06b", "fig7", "fig7-left", "fig10", "section-3"]);
    }

    #[test]
    fn the_built_in_ones_can_be_loaded() {
        for e in built_in() {
            for quick in [false, true] {
                let loaded = xcp_scenario::load(
                    Path::new(&e.path),
                    &e.text,
                    &xcp_scenario::Overrides::none().quick(quick),
                );
                assert!(loaded.is_ok(), "{}", loaded.unwrap_err());
            }
        }
    }
}
