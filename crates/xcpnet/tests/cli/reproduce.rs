//! `xcpnet reproduce`: claims judged, runs kept, seeds, less of it with `--quick`, and the tables
//! of failures.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{SMALL, listing, run, text};

pub fn experiment(band: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let paper = dir.path().join("experiments/somebody-2026");
    fs::create_dir_all(&paper).unwrap();
    let claim = format!(
        "{SMALL}\n[[expect]]\nmetric = \"links.bottleneck.utilisation\"\n{band}\nclaim = \"The \
            link is used (somebody 2026)\"\n"
    );
    fs::write(paper.join("fig1.toml"), claim).unwrap();
    let experiments = dir.path().join("experiments");
    (dir, experiments)
}

/// Who asks for what --quick leaves out gets no claims, which is not that they hold.
#[test]
fn nothing_left_by_quick_is_no_success() {
    let output = run(2, &["reproduce", "ixcp/fig05", "--quick", "--no-cache"], Path::new("/"));
    let told = "error: nothing is left to run: --quick leaves out ixcp/fig05; run this without";
    assert!(text(&output.stderr).starts_with(told), "{}", text(&output.stderr));
}

#[test]
fn reproduce_tells_by_its_status_whether_the_claims_hold() {
    for (band, status, word) in [("min = 0.1", 0, "inside"), ("min = 0.1\nmax = 0.2", 1, "OUTSIDE")]
    {
        let (home, _) = experiment(band);
        let output = run(
            status,
            &["reproduce", "fig1", "--experiments", "experiments", "--out", "out"],
            home.path(),
        );
        assert!(text(&output.stdout).contains(word), "{}", text(&output.stdout));
        assert!(text(&output.stdout).contains("The link is used (somebody 2026)"));
        assert!(home.path().join("out/somebody-2026/fig1/report.html").exists());
        let read = |file: &str| fs::read_to_string(home.path().join("out").join(file)).unwrap();
        assert!(
            read("report.html").contains("somebody-2026.html#fig1"),
            "the overview leads to the paper's page"
        );
        assert!(read("somebody-2026.html").contains("The link is used (somebody 2026)"));
        let output =
            run(status, &["reproduce", "--experiments", "experiments", "--json"], home.path());
        for line in text(&output.stdout).lines() {
            let verdict: Value = serde_json::from_str(line).unwrap();
            assert_eq!(verdict["paper"], "somebody-2026");
            assert_eq!(verdict["inside"], status == 0);
            assert!(verdict["measured"].is_number());
        }
        assert_eq!(
            text(&output.stdout).lines().count(),
            2,
            "a claim without a variant is about each"
        );
        // With `run` a failed claim is told, but is no failure.
        let output = run(0, &["run", "experiments/somebody-2026/fig1.toml"], home.path());
        assert!(text(&output.stdout).contains(word));
    }
}

#[test]
fn what_was_run_is_kept_and_judged_anew() {
    let (home, file) = experiment("min = 0.1");
    let file = file.join("somebody-2026/fig1.toml");
    let scenario = fs::read_to_string(&file).unwrap();
    let cache = home.path().join("kept/runs");
    let judged = |status, more: &[&str]| {
        let arguments =
            [&["reproduce", "experiments/somebody-2026/fig1.toml", "--cache", "kept/runs"], more]
                .concat();
        text(&run(status, &arguments, home.path()).stdout).to_owned()
    };
    let made = |name: &str| fs::metadata(cache.join(name)).unwrap().len();
    let first = judged(0, &[]);
    let names = listing(&cache);
    assert_eq!(names.len(), 2, "a file for each variant");
    // A damaged one is made again; the other is not touched. What is printed is the same.
    let whole = made(&names[0]);
    fs::write(cache.join(&names[0]), "xcpnet run 2 nonsense").unwrap();
    assert_eq!(judged(0, &[]), first);
    assert_eq!((made(&names[0]), listing(&cache)), (whole, names.clone()));
    // Another band is judged on the same runs, another setting is another run.
    fs::write(&file, scenario.replace("min = 0.1", "min = 0.1\nmax = 0.2")).unwrap();
    assert!(judged(1, &[]).contains("OUTSIDE"));
    assert_eq!(listing(&cache), names);
    fs::write(&file, scenario.replace("20ms", "21ms")).unwrap();
    judged(0, &[]);
    assert_eq!(listing(&cache).len(), 4);
    assert!(judged(0, &["--list"]).contains("kept"));
    let output =
        run(0, &["reproduce", "experiments/somebody-2026/fig1.toml", "--no-cache"], home.path());
    assert!(text(&output.stdout).contains("2 of 2 claims"));
    run(2, &["reproduce", "--no-cache", "--cache", "kept/runs"], home.path());
    // Where nothing can be kept the runs are made all the same.
    let output = run(
        0,
        &[
            "reproduce",
            "experiments/somebody-2026/fig1.toml",
            "--cache",
            "experiments/somebody-2026/fig1.toml",
        ],
        home.path(),
    );
    assert!(
        text(&output.stderr).contains("note: runs cannot be kept in"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn seeds_and_less_of_it() {
    let (home, file) = experiment("min = 0.1\nseeds = \"all\"");
    let file = file.join("somebody-2026/fig1.toml");
    let scenario = fs::read_to_string(&file).unwrap();
    let quick = "[quick]\nvariants = \"XCP\"\nseeds = 2\nset = \
        { duration = \"4s\", \"measure\" = { from = \"2s\" } }\n";
    fs::write(&file, format!("seeds = [1, 4, 6]\n{scenario}{quick}")).unwrap();
    let claims = |more: &[&str]| -> Vec<Value> {
        let arguments =
            [&["reproduce", "--experiments", "experiments", "--cache", "kept", "--json"], more]
                .concat();
        let output = run(0, &arguments, home.path());
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let whole = claims(&[]);
    assert_eq!(listing(&home.path().join("kept")).len(), 2 * 3);
    assert_eq!(
        (whole.len(), &whole[0]["seeds"], &whole[0]["seeds_inside"]),
        (2, &3.into(), &3.into())
    );
    // The first ones, which are kept already.
    let two = claims(&["--seeds", "2"]);
    assert_eq!((two.len(), &two[0]["seeds"]), (2, &2.into()));
    assert_eq!(claims(&["--seeds", "9"]), whole);
    assert_eq!(listing(&home.path().join("kept")).len(), 2 * 3);
    let less = claims(&["--quick"]);
    assert_eq!(listing(&home.path().join("kept")).len(), 2 * 3 + 2);
    assert_eq!((less.len(), &less[0]["variant"], &less[0]["seeds"]), (1, &"XCP".into(), &2.into()));

    // What says nothing of --quick is run if it costs little.
    fs::write(&file, &scenario).unwrap();
    assert_eq!(claims(&["--quick"]).len(), 2);
    fs::write(&file, scenario.replace("\"8s\"", "\"800h\"")).unwrap();
    assert_eq!(claims(&["--quick"]).len(), 0);
    let output = run(0, &["reproduce", "--experiments", "experiments", "--quick"], home.path());
    assert!(
        text(&output.stdout).contains("left out of --quick: somebody-2026/fig1"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn a_table_of_failures() {
    let (home, _) = experiment("min = 0.1");
    let dir = home.path().join("experiments/failures");
    fs::create_dir(&dir).unwrap();
    fs::write(
        dir.join("01-small.toml"),
        format!("description = \"\"\"\nSomebody warns.\n\nWe see it.\n\"\"\"\n{SMALL}"),
    )
    .unwrap();
    let told = |more: &[&str]| {
        let arguments = [&["reproduce", "--experiments", "experiments", "failures"], more].concat();
        text(&run(0, &arguments, home.path()).stdout).to_owned()
    };
    let table = told(&[]);
    assert!(
        table.contains("failures/01-small: Two flows")
            && table.contains("fairness")
            && !table.contains("claims"),
        "{table}"
    );
    let markdown = told(&["--markdown"]);
    for words in [
        "# ",
        "| XCP | TCP |",
        "Somebody warns.",
        "We see it.",
        "xcpnet reproduce failures/01-small",
    ] {
        assert!(markdown.contains(words), "{words} in\n{markdown}");
    }
    let cells: Vec<Value> = told(&["--json", "--out", "out"])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((cells.len(), &cells[0]["variant"]), (2, &"XCP".into()));
    for number in ["utilisation", "jain", "queue_mean", "queue_rtts", "drops", "grade"] {
        assert!(cells[1][number].is_number(), "{number}");
    }
    let report = fs::read_to_string(home.path().join("out/report.html")).unwrap();
    assert!(report.contains("We see it.") && !report.contains("somebody-2026"));
    // With everything else it comes last.
    let output = run(0, &["reproduce", "--experiments", "experiments"], home.path());
    assert!(
        text(&output.stdout).find("failures/01-small")
            > text(&output.stdout).find("somebody-2026/fig1")
    );
    // The second table follows the first, each with its own heading.
    let beyond = home.path().join("experiments/beyond");
    fs::create_dir(&beyond).unwrap();
    fs::write(beyond.join("01-far.toml"), SMALL).unwrap();
    let both = ["reproduce", "--experiments", "experiments", "failures", "beyond", "--markdown"];
    let pages = text(&run(0, &both, home.path()).stdout).to_owned();
    let at = |words: &str| pages.find(words).unwrap_or_else(|| panic!("{words} in\n{pages}"));
    assert!(at("reproduce failures --markdown") < at("failures/01-small"), "{pages}");
    assert!(at("failures/01-small") < at("reproduce beyond --markdown"), "{pages}");
    assert!(at("reproduce beyond --markdown") < at("beyond/01-far"), "{pages}");
    // So does that of the liars, which is another one.
    let liars = home.path().join("experiments/liars");
    fs::create_dir(&liars).unwrap();
    fs::write(liars.join("01-none.toml"), SMALL).unwrap();
    let all = ["reproduce", "--experiments", "experiments", "failures", "liars", "--markdown"];
    let pages = text(&run(0, &all, home.path()).stdout).to_owned();
    let at = |words: &str| pages.find(words).unwrap_or_else(|| panic!("{words} in\n{pages}"));
    assert!(at("failures/01-small") < at("reproduce liars --markdown"), "{pages}");
    // What is of no table has no page.
    let none = ["reproduce", "--experiments", "experiments", "fig1", "--markdown"];
    let output = run(2, &none, home.path());
    assert!(text(&output.stderr).contains("the tables are failures, beyond and liars"));
}

#[test]
fn the_built_in_experiments_are_listed() {
    let output = run(0, &["reproduce", "--list"], Path::new("/"));
    assert!(text(&output.stdout).contains("zhang-henderson-2005/fig05"));
    for all in ["zhang-henderson-2005", "fig05", "experiments/zhang-henderson-2005/fig05.toml"] {
        let output = run(0, &["reproduce", all, "--list"], Path::new("/"));
        assert!(text(&output.stdout).contains("zhang-henderson-2005/fig05"));
    }
}
