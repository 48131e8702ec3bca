//! The WebAssembly that pages run gives the summaries that the native simulator gives, byte for
//! byte: one variant of each experiment, those apart that take long and cannot be shortened; by
//! `make wasm-all` all variants of all of them, whole. And watching a run changes nothing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use xcp_model::Scenario;
use xcp_model::packet_hops;
use xcp_report::json::Told;
use xcp_scenario::rewrite::rewrite;
use xcp_scenario::{Overrides, load, variant_names};
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
        json!({ "do": "run", "name": self.name, "text": self.text, "variant": self.variant, "most_hops": 1e12, "packets": true })
    }

    fn scenario(&self) -> Scenario {
        load(Path::new(&self.name), &self.text, &self.only()).unwrap().remove(0)
    }

    /// What the simulator gives unwatched.
    fn native(&self) -> String {
        let run = xcp_sim::simulate(&self.scenario(), &mut ()).unwrap();
        serde_json::to_string(&Told::from(&run.summary)).unwrap()
    }

    /// The same without series, and without the claims that want some.
    fn unsampled(&self) -> Self {
        let text = rewrite(&without_claims(&self.text), None, "sample", "\"off\"").unwrap();
        Self { name: self.name.clone(), text, variant: self.variant }
    }

    fn only(&self) -> Overrides {
        match &variant_names(&self.text)[self.variant] {
            name if name.is_empty() => Overrides::none(),
            name => Overrides::none().only(std::slice::from_ref(name)),
        }
    }
}

/// The experiments' files.
fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(root().join("experiments"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.is_dir())
        .flat_map(|paper| std::fs::read_dir(paper).unwrap().map(|e| e.unwrap().path()))
        .filter(|p| p.extension().is_some_and(|end| end == "toml"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Its name for people, and its text.
fn read(file: &Path) -> (String, String) {
    let name = file.strip_prefix(root().join("experiments")).unwrap().display().to_string();
    (name, std::fs::read_to_string(file).unwrap())
}

/// One variant of each experiment, shortened as needed.
fn experiments() -> Vec<Case> {
    let files = files();
    let cases: Vec<Case> = files
        .iter()
        .enumerate()
        .filter_map(|(number, file)| {
            let (name, text) = read(file);
            let text = without_claims(&text);
            let variant = number % variant_names(&text).len();
            shortened(Case { name, text, variant })
        })
        .collect();
    assert!(10 * cases.len() >= 9 * files.len(), "{} of {}", cases.len(), files.len());
    cases
}

/// All variants of all experiments, file by file, the most work first.
fn everything() -> Vec<Vec<Case>> {
    let mut all: Vec<(f64, Vec<Case>)> = files()
        .iter()
        .map(|file| {
            let (name, text) = read(file);
            let one = |variant| Case { name: name.clone(), text: text.clone(), variant };
            let cases: Vec<Case> = (0..variant_names(&text).len()).map(one).collect();
            (cases.iter().map(|case| packet_hops(&case.scenario())).sum(), cases)
        })
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.into_iter().map(|(_, cases)| cases).collect()
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
    let scenario = case.scenario();
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

/// The engine that pages run, if it can be run here; says aloud when not.
fn engine() -> Option<PathBuf> {
    let engine = root().join("crates/xcpnet/engine/engine.wasm.gz");
    if !engine.is_file() {
        xcp_skip::skipped!("wasm", "no engine for pages, which `make wasm` builds");
        return None;
    }
    if Command::new("node").arg("--version").output().is_err() {
        xcp_skip::skipped!("node", "no node, which runs WebAssembly: `apt-get install nodejs`");
        return None;
    }
    Some(engine)
}

/// What the engine answers, in their order; `name` tells files of requests apart.
fn in_webassembly(engine: &Path, name: &str, cases: &[&Case]) -> Vec<Value> {
    let requests: String = cases.iter().map(|case| format!("{}\n", case.request())).collect();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, requests).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine.mjs");
    let out = Command::new("node").arg(&script).args([engine, &file]).output().unwrap();
    let told = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{told}");
    let answers = String::from_utf8(out.stdout).unwrap();
    assert_eq!(answers.lines().count(), cases.len(), "{told}");
    answers.lines().map(|answer| serde_json::from_str(answer).unwrap()).collect()
}

#[test]
fn experiments_in_webassembly() {
    let Some(engine) = engine() else { return };
    let cases = experiments();
    let all: Vec<&Case> = cases.iter().collect();
    for (case, answer) in cases.iter().zip(in_webassembly(&engine, "requests.jsonl", &all)) {
        assert_eq!(
            summary(&answer),
            case.native(),
            "{}: WebAssembly and native differ; is the engine of this tree? `make wasm`",
            case.name
        );
    }
    eprintln!("{} experiments give the same in WebAssembly", cases.len());
}

/// As many files at a time as there are processors, each in a process of its own; all are tried
/// before what differs is told. A page refuses what does not fit into its memory: of some runs the
/// samples. These are left out then, of both.
#[test]
#[ignore = "takes some minutes: make wasm-all"]
fn all_variants_of_all_experiments_in_webassembly() {
    let Some(engine) = engine() else { panic!("there is nothing to try it with") };
    let (files, next) = (everything(), AtomicUsize::new(0));
    let one = &|thread: usize| {
        let mut differ = Vec::new();
        while let Some(cases) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let file = format!("requests-{thread}.jsonl");
            let all: Vec<&Case> = cases.iter().collect();
            for (case, mut answer) in cases.iter().zip(in_webassembly(&engine, &file, &all)) {
                let name = format!("{} {:?}", case.name, variant_names(&case.text)[case.variant]);
                let (mut native, mut how) = (case, "");
                let less;
                let why = answer["text"].as_str().unwrap_or_default();
                if why.contains("the samples of its series") {
                    less = case.unsampled();
                    answer = in_webassembly(&engine, &file, &[&less]).remove(0);
                    (native, how) = (&less, ", without samples");
                }
                let same = answer["json"].as_str() == Some(&native.native());
                eprintln!("{} {name}{how}", if same { "same" } else { "DIFFERS" });
                if !same {
                    let why = answer["text"].as_str().unwrap_or("other numbers");
                    differ.push(format!("{name}: {why}"));
                }
            }
        }
        differ
    };
    let runs: usize = files.iter().map(Vec::len).sum();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let differ: Vec<String> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|n| scope.spawn(move || one(n))).collect();
        all.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(differ.is_empty(), "{} of {runs}: {differ:#?}", differ.len());
    eprintln!("{runs} runs give the same in WebAssembly");
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
