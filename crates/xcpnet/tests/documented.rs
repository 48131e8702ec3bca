//! What the documents say that a command shows, and the commands that the command itself tells.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn reproduce(dir: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xcpnet"))
        .args(["reproduce", "--no-cache"])
        .args(words)
        .current_dir(dir)
        .output()
        .unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The whole examples of docs/scenario.md that claim something keep it.
#[test]
fn the_examples_keep_their_claims() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md");
    let page = fs::read_to_string(path).unwrap();
    let examples = page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let mut claiming = 0;
    for example in examples.filter(|e| e.contains("[[expect]]")) {
        claiming += 1;
        fs::write(dir.path().join("example.toml"), example).unwrap();
        let output = reproduce(dir.path(), &["example.toml"]);
        assert_eq!(output.status.code(), Some(0), "{example}\n{}", text(&output));
    }
    assert!(claiming >= 4, "{claiming} examples claim something");
}

/// The command that is said to repeat a claim that is not kept does so, wherever the file is.
#[test]
fn what_is_said_to_run_it_again_does() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("my figures/too much.toml");
    fs::create_dir(file.parent().unwrap()).unwrap();
    let scenario = "title = \"Too much\"\nduration = \"2s\"\n\
        link = [{ name = \"l\", between = [\"a\", \"b\"], rate = \"1mbit\", delay = \"1ms\" }]\n\
        flow = [{ name = \"f\", from = \"a\", to = \"b\", congestion = \"reno\" }]\n\
        expect = [{ claim = \"c\", metric = \"flows.f.goodput\", min = 2e6 }]\n";
    fs::write(&file, scenario).unwrap();
    for words in [&["my figures/too much.toml"][..], &["--experiments", "."]] {
        let told = text(&reproduce(dir.path(), words));
        let again = told.split("to run only that: xcpnet ").nth(1).expect(&told);
        let again = again.lines().next().unwrap();
        let output = Command::new("sh")
            .args(["-c", &format!("\"$0\" {again}"), env!("CARGO_BIN_EXE_xcpnet")])
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{again}\n{}", text(&output));
        assert!(text(&output).contains("OUTSIDE"), "{again}\n{}", text(&output));
    }
    let none = reproduce(dir.path(), &["no.toml"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none).contains("nor such a file"), "{}", text(&none));
}

/// The first scenario that a reader of the README saves prints what is shown there, every line.
#[test]
fn the_first_scenario_prints_what_the_readme_shows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let page = fs::read_to_string(path).unwrap();
    let after = |mark: &str| page.split(mark).nth(1).unwrap().split("```").next().unwrap();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("ship.toml"), after("Save this as `ship.toml`:\n\n```toml\n"))
        .unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_xcpnet"))
        .args(["run", "ship.toml", "--out", "ship", "--no-playground"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let shown = after("$ target/release/xcpnet run ship.toml --out ship\n");
    assert_eq!(text(&output), shown);
}
