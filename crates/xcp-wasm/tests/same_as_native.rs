//! The WebAssembly that pages run gives the summaries that the native simulator gives, byte for
//! byte: one variant of each experiment, those apart that take long and cannot be shortened. And
//! watching a run changes nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use xcp_scenario::rewrite::rewrite;
use xcp_scenario::{Overrides, load, packet_hops, variant_names};
use xcp_wasm::Session;

/// A run's work in packets times links: longer ones are shortened to about this.
const WORK: f64 = 30_000.0;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A run of an experiment: its file's name, its text, which variant.
struct Case {
    name: String,
    text: String,
    variant: usize,
}

impl Case {
    fn request(&self) -> Value {
        json!({ "do": "run", "name": self.name, "text": self.text, "variant": self.variant, "most_hops": 1e9, "packets": true })
    }

    /// What the simulator gives unwatched.
    fn native(&self) -> String {
        let scenarios = load(Path::new(&self.name), &self.text, &self.only()).unwrap();
        let run = xcp_sim::simulate(&scenarios[0], &mut ()).unwrap();
        serde_json::to_string(&run.summary).unwrap()
    }

    fn only(&self) -> Overrides {
        match &variant_names(&self.text)[self.variant] {
            name if name.is_empty() => Overrides::none(),
            name => Overrides::none().only(std::slice::from_ref(name)),
        }
    }
}

/// One variant of each experiment, shortened as needed.
fn experiments() -> Vec<Case> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(root().join("experiments"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.is_dir())
        .flat_map(|paper| std::fs::read_dir(paper).unwrap().map(|e| e.unwrap().path()))
        .filter(|p| p.extension().is_some_and(|end| end == "toml"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let cases: Vec<Case> = files
        .iter()
        .enumerate()
        .filter_map(|(number, file)| {
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            let text = without_claims(&std::fs::read_to_string(file).unwrap());
            let variant = number % variant_names(&text).len();
            shortened(Case { name, text, variant })
        })
        .collect();
    assert!(10 * cases.len() >= 9 * files.len(), "{} of {}", cases.len(), files.len());
    cases
}

/// The text without the sections that only judge a run, and whose periods would not fit.
fn without_claims(text: &str) -> String {
    let mut judging = false;
    let kept = text.lines().filter(|line| {
        if line.starts_with('[') {
            judging = line.contains("expect") || line.contains("quick");
        }
        !judging
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// `None` where what happens at some time of a long run does not fit into a shorter one.
fn shortened(mut case: Case) -> Option<Case> {
    let scenario = load(Path::new(&case.name), &case.text, &case.only()).unwrap().remove(0);
    let hops = packet_hops(&scenario);
    let seconds = scenario.duration as f64 / 1e9;
    let mut share = WORK / hops;
    while share < 1.0 {
        let duration = format!("\"{:.3}s\"", (seconds * share).max(0.05));
        let text = rewrite(&case.text, None, "duration", &duration).unwrap();
        if load(Path::new(&case.name), &text, &case.only()).is_ok() {
            case.text = text;
            return Some(case);
        }
        share *= 2.0;
    }
    (hops < 300.0 * WORK).then_some(case)
}

fn summary(answer: &Value) -> &str {
    answer["json"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn experiments_in_webassembly() {
    let engine = root().join("crates/xcpnet/engine/engine.wasm.gz");
    if !engine.is_file() {
        xcp_skip::skipped!("wasm", "no engine for pages, which `make wasm` builds");
        return;
    }
    if Command::new("node").arg("--version").output().is_err() {
        xcp_skip::skipped!("node", "no node, which runs WebAssembly: `apt-get install nodejs`");
        return;
    }
    let cases = experiments();
    let requests: String = cases.iter().map(|case| format!("{}\n", case.request())).collect();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("requests.jsonl");
    std::fs::write(&file, requests).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine.mjs");
    let out = Command::new("node").args([&script, &engine, &file]).output().unwrap();
    let told = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{told}");
    let answers = String::from_utf8(out.stdout).unwrap();
    assert_eq!(answers.lines().count(), cases.len(), "{told}");
    for (case, answer) in cases.iter().zip(answers.lines()) {
        let answer: Value = serde_json::from_str(answer).unwrap();
        assert_eq!(
            summary(&answer),
            case.native(),
            "{}: WebAssembly and native differ; is the engine of this tree? `make wasm`",
            case.name
        );
    }
    eprintln!("{} experiments give the same in WebAssembly", cases.len());
}

#[test]
fn watching_changes_nothing() {
    for case in experiments().into_iter().step_by(7) {
        let answer = Session::default().answer(&case.request().to_string(), &mut ());
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!(summary(&answer), case.native(), "{}", case.name);
        let seen = answer["packets"]["left"][1].as_u64().unwrap();
        assert!(seen > 0, "{}: packets were seen", case.name);
    }
}
