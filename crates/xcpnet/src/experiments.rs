//! The papers' figures: built into the program, or read from a directory.

use std::fs;
use std::path::Path;

use crate::failure::Failure;

/// One figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Experiment {
    /// The paper: the directory's name.
    pub paper: String,
    /// The figure: the file's name without `.toml`.
    pub figure: String,
    /// The file, for messages.
    pub path: String,
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

/// Those built into the program, by paper and figure.
pub fn built_in() -> Vec<Experiment> {
    let one = |&(paper, figure, text): &(&str, &str, &str)| Experiment {
        paper: paper.into(),
        figure: figure.into(),
        path: format!("experiments/{paper}/{figure}.toml"),
        text: text.into(),
    };
    BUILT_IN.iter().map(one).collect()
}

/// Those of a directory: PAPER/FIGURE.toml, by paper and figure.
pub fn of_directory(dir: &Path) -> Result<Vec<Experiment>, Failure> {
    let list = |dir: &Path| -> Result<Vec<std::path::PathBuf>, Failure> {
        let fail = |e| Failure::new(format!("cannot read the directory {}: {e}", dir.display()));
        let mut paths = Vec::new();
        for entry in fs::read_dir(dir).map_err(fail)? {
            paths.push(entry.map_err(fail)?.path());
        }
        paths.sort();
        Ok(paths)
    };
    let mut found = Vec::new();
    for paper in list(dir)?.into_iter().filter(|p| p.is_dir()) {
        for file in list(&paper)?.into_iter().filter(|f| f.extension().is_some_and(|e| e == "toml")) {
            let name = |p: &Path| p.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            found.push(Experiment {
                paper: name(&paper),
                figure: name(&file),
                path: file.display().to_string(),
                text: xcp_scenario::read_text(&file)?,
            });
        }
    }
    if found.is_empty() {
        return Err(Failure::new(format!("{} holds no experiments; they are files PAPER/FIGURE.toml", dir.display())));
    }
    Ok(found)
}

/// Those that were asked for: papers, figures, or `PAPER/FIGURE`; all if nothing was. In their own order, each once.
pub fn choose(all: Vec<Experiment>, wanted: &[String]) -> Result<Vec<Experiment>, Failure> {
    let is = |e: &Experiment, word: &str| {
        let word = word.trim_end_matches('/').trim_end_matches(".toml");
        e.paper == word || e.figure == word || e.name() == word
    };
    for word in wanted {
        if !all.iter().any(|e| is(e, word)) {
            let there: Vec<String> = all.iter().map(Experiment::name).collect();
            return Err(Failure::new(format!("there is no paper or figure \"{word}\"; there are {}", there.join(", "))));
        }
    }
    Ok(all.into_iter().filter(|e| wanted.is_empty() || wanted.iter().any(|w| is(e, w))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_by_paper_figure_or_both() {
        let one =
            |paper: &str, figure: &str| Experiment { paper: paper.into(), figure: figure.into(), path: String::new(), text: String::new() };
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
    fn the_built_in_ones_can_be_loaded() {
        for e in built_in() {
            let loaded = xcp_scenario::load(Path::new(&e.path), &e.text, &xcp_scenario::Overrides::none());
            assert!(loaded.is_ok(), "{}", loaded.unwrap_err());
        }
    }
}
