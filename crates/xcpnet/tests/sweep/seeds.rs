//! What a seed decides in a sweep, and what is wrong with one seed only.

use serde_json::Value;

use crate::{SMALL, home, listing, run, text};

/// Everything that a seed decides, while the file is read and while it runs.
const RANDOM: &str = r#"
title    = "Everything random"
duration = "2s"
sample   = "off"

[[link]]
name    = "first"
between = ["S", "R"]
rate    = "10mbit"
delay   = "5ms"
loss    = 0.01
queue   = { kind = "red", limit = 40 }

[[link]]
name    = "second"
between = ["R", "D"]
rate    = "8mbit"
delay   = "5ms"
loss    = { probability = 0.01, place = "before-queue" }
queue   = { kind = "xcp", limit = 100 }

[[flow]]
name       = "web"
from       = "S"
to         = "D"
congestion = "sack"
arrivals   = "50ms"
bytes      = { mean = "20kb", distribution = "pareto", shape = 1.3 }

[[flow]]
name       = "mice"
count      = 5
from       = "S"
to         = "D"
congestion = "xcp"
bytes      = { mean = "10kb", distribution = "exponential" }
start-jitter = "500ms"

[[flow]]
name = "phones"
from = "S"
to   = "D"
udp  = { pattern = "on-off", rate = "100kbit", on = "200ms", off = "300ms", random = true }

[[flow]]
name = "noise"
from = "S"
to   = "D"
udp  = { pattern = "poisson", rate = "200kbit" }
"#;

#[test]
fn each_seed_draws_everything_anew() {
    let home = home(RANDOM);
    let dir = home.path();
    let output = run(0, "sweep s.toml --seeds 1..4 --set queue.target=0,5 --out out --json", dir);
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 8);
    for line in &lines {
        let (seed, target) = (&line["seed"], &line["settings"]["queue.target"]);
        let alone =
            run(0, &format!("run s.toml --seed {seed} --set queue.target={target} --json"), dir);
        let alone: Value = serde_json::from_slice(&alone.stdout).unwrap();
        for (key, value) in alone.as_object().unwrap() {
            assert_eq!(&line[key], value, "seed {seed}, target {target}: {key}");
        }
    }
    let arrivals = |line: &Value| {
        line["flows"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|f| f["name"].as_str().unwrap().starts_with("web"))
            .count()
    };
    let drawn: std::collections::BTreeSet<usize> = lines.iter().map(arrivals).collect();
    assert!(drawn.len() > 1, "as many arrive whatever the seed: {drawn:?}");
}

/// What is wrong with one seed only is found before the first one runs.
#[test]
fn a_seed_without_arrivals_is_told_beforehand() {
    let sparse = SMALL
        .replace("count      = 2\n", "arrivals   = \"200ms\"\n")
        .replace("start-jitter = \"100ms\"\n", "");
    let home = home(&sparse);
    let output = run(2, "sweep s.toml --seeds 1..40 --out out", home.path());
    assert!(text(&output.stderr).contains("with this seed no member"), "{}", text(&output.stderr));
    assert_eq!(listing(home.path()), ["s.toml"]);
}
