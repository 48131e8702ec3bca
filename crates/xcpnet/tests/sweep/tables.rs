//! What the tables of a sweep hold: what `run` prints, how to make them again, the same bytes
//! however many run at once; and that others can read them.

use std::fs;
use std::process::Command;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;

use crate::{FILES, GRID, SMALL, home, listing, results, rows, run, text};

fn number(field: &Field) -> f64 {
    match field {
        Field::Long(n) => *n as f64,
        Field::Double(x) => *x,
        other => panic!("{other:?} is no number"),
    }
}

fn cell<'a>(row: &'a [(String, Field)], name: &str) -> &'a Field {
    &row.iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no column {name}")).1
}

#[test]
fn the_tables_hold_what_run_prints() {
    let home = home(SMALL);
    let dir = home.path();
    let output = run(0, &format!("{GRID} --out out --json"), dir);
    assert_eq!(
        text(&output.stderr),
        "wrote out/runs.parquet, out/links.parquet, out/flows.parquet, out/groups.parquet\n",
        "no progress bar in a pipe"
    );
    assert_eq!(
        listing(&dir.join("out")),
        ["flows.parquet", "groups.parquet", "links.parquet", "runs.parquet", "sweep.journal"]
    );
    let lines: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (runs, links, flows) = (
        rows(&dir.join("out/runs.parquet")),
        rows(&dir.join("out/links.parquet")),
        rows(&dir.join("out/flows.parquet")),
    );
    assert_eq!((lines.len(), runs.len(), links.len(), flows.len()), (36, 36, 72, 12 * (1 + 2 + 3)));
    let mut expected = Vec::new();
    for target in [0, 20] {
        for count in 1..=3 {
            for variant in ["XCP", "TCP"] {
                for seed in 1..=3 {
                    expected.push((target, count, variant, seed));
                }
            }
        }
    }
    for (i, (&(target, count, variant, seed), line)) in expected.iter().zip(&lines).enumerate() {
        assert_eq!(line["run"], i);
        assert_eq!(
            line["settings"],
            serde_json::json!({ "queue.target": target, "flow.count": count })
        );
        assert_eq!((&line["variant"], &line["seed"]), (&variant.into(), &seed.into()));
        let row = &runs[i];
        assert_eq!(
            row.iter().map(|c| c.0.as_str()).collect::<Vec<_>>()[..5],
            ["run", "variant", "seed", "queue.target", "flow.count"]
        );
        assert_eq!(cell(row, "variant"), &Field::Str(variant.into()));
        assert_eq!(number(cell(row, "jain")).to_bits(), line["jain"].as_f64().unwrap().to_bits());
        assert_eq!(number(cell(row, "completed_s")), 0.3);
        let of_run = |row: &&Vec<(String, Field)>| number(cell(row, "run")) == i as f64;
        for row in links.iter().filter(of_run) {
            let Field::Str(name) = cell(row, "link") else { panic!() };
            assert_eq!(
                [number(cell(row, "queue.target")), number(cell(row, "seed"))],
                [f64::from(target), f64::from(seed)]
            );
            for (column, field) in [
                ("utilisation", "utilisation"),
                ("queue_mean_packets", "queue_mean"),
                ("queue_max_packets", "queue_max"),
                ("drops", "drops"),
                ("lost", "lost"),
                ("packets", "packets"),
            ] {
                assert_eq!(
                    number(cell(row, column)).to_bits(),
                    line["links"][name.as_str()][field].as_f64().unwrap().to_bits(),
                    "{column}"
                );
            }
        }
        let listed = line["flows"].as_array().unwrap();
        assert_eq!(flows.iter().filter(of_run).count(), listed.len());
        for (row, flow) in flows.iter().filter(of_run).zip(listed) {
            assert_eq!(cell(row, "flow"), &Field::Str(flow["name"].as_str().unwrap().into()));
            for (column, field) in [
                ("goodput_bps", "goodput"),
                ("rtt_mean_s", "rtt_mean"),
                ("retransmits", "retransmits"),
                ("timeouts", "timeouts"),
                ("cwnd_mean_packets", "cwnd_mean"),
            ] {
                assert_eq!(
                    number(cell(row, column)).to_bits(),
                    flow[field].as_f64().unwrap().to_bits(),
                    "{column}"
                );
            }
            assert_eq!(cell(row, "completed_at_s"), &Field::Null);
        }
        // One in five by itself: a sweep's runs are those of `run`.
        if i % 5 == 0 {
            let single = format!(
                "run s.toml --set queue.target={target} --set flow.count={count} --seed {seed} \
                    --json{}",
                // A law's setting without any law would be refused.
                if variant == "XCP" { " --variant XCP" } else { "" }
            );
            let output = run(0, &single, dir);
            let mut alone: Vec<Value> = text(&output.stdout)
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            let alone = alone.pop().unwrap();
            for (key, value) in alone.as_object().unwrap() {
                assert_eq!(&line[key], value, "{key}");
            }
        }
    }
}

/// What one needs for a plot of completion times is in the files, with settings in base units, and
/// so is what one needs to make them again.
#[test]
fn tables_say_of_themselves_what_they_are() {
    let scenario = SMALL.replace("start-jitter", "bytes = 3000\nstart-jitter");
    let home = home(&scenario);
    let dir = home.path();
    run(0, "sweep s.toml --set link.bottleneck.rate=10..20mbit:10 --seeds 4 --out out", dir);
    let (flows, groups) =
        (rows(&dir.join("out/flows.parquet")), rows(&dir.join("out/groups.parquet")));
    assert_eq!((flows.len(), groups.len()), (8, 4));
    for (row, rate) in groups.iter().zip([1e7, 1e7, 2e7, 2e7]) {
        assert_eq!(number(cell(row, "link.bottleneck.rate_bps")), rate);
        let Field::Str(written) = cell(row, "link.bottleneck.rate") else { panic!("no text") };
        assert_eq!(written, &format!("{}mbit", rate / 1e6));
        let [group, from, to] = ["group", "from", "to"].map(|name| cell(row, name));
        assert_eq!(
            [group, from, to],
            ["flow", "S", "D"].map(|text| Field::Str(text.into())).each_ref()
        );
        assert_eq!((number(cell(row, "flows")), number(cell(row, "completed"))), (2.0, 2.0));
        // A round trip at least; a delayed acknowledgement at most.
        let times =
            ["p50", "p95", "p99"].map(|p| number(cell(row, &format!("completion_time_{p}_s"))));
        assert!(times[0] >= 0.01 && times.is_sorted() && times[2] < 0.08, "{times:?}");
        let rtts = ["p50", "p95", "p99"].map(|p| number(cell(row, &format!("rtt_{p}_s"))));
        assert!(rtts[0] >= 0.01 && rtts.is_sorted() && rtts[2] < 0.06, "{rtts:?}");
    }
    for row in &flows {
        let [start, end, time] =
            ["start_s", "completed_at_s", "completion_time_s"].map(|name| number(cell(row, name)));
        assert!((start + time - end).abs() < 1e-9 && start > 0.0, "{start} {time} {end}");
        assert_eq!(number(cell(row, "size_bytes")), 3000.0);
    }
    for name in FILES {
        let reader = SerializedFileReader::try_from(dir.join("out").join(name).as_path()).unwrap();
        let said = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let value = |key: &str| {
            said.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.clone())
        };
        assert_eq!(value("xcpnet.scenario").as_deref(), Some(scenario.as_str()), "{name}");
        assert_eq!(
            value("xcpnet.settings").as_deref(),
            Some(r#"{"link.bottleneck.rate":["10mbit","20mbit"]}"#)
        );
        assert_eq!(value("xcpnet.seeds").as_deref(), Some("4"));
        let units: Value = serde_json::from_str(&value("xcpnet.units").unwrap()).unwrap();
        assert_eq!(units["link.bottleneck.rate_bps"], "bits per second", "{name}");
    }
}

#[test]
fn the_same_bytes_however_many_run_at_once() {
    let home = home(SMALL);
    let one = run(0, &format!("{GRID} --out one --jobs 1 --json"), home.path());
    let two = run(0, &format!("{GRID} --out two --jobs 2 --json"), home.path());
    let many = run(0, &format!("{GRID} --out many --jobs 7"), home.path());
    assert_eq!(one.stdout, two.stdout);
    let expected = results(&home.path().join("one"));
    assert!(expected == results(&home.path().join("two")));
    assert!(expected == results(&home.path().join("many")));
    insta::assert_snapshot!(text(&many.stdout));
}

/// A reader that shares no code with the writer. `PYTHON` names another interpreter.
#[test]
fn others_read_the_files() {
    let home = home(SMALL);
    let dir = home.path();
    let output = run(0, &format!("{GRID} --set queue.alpha=0.2,0.4 --out out --json"), dir);
    let script = r#"
import importlib, json, sys
names = ["runs", "links", "flows"]
readers = []
try:
    pq = importlib.import_module("pyarrow.parquet")
    readers.append(("pyarrow", {n: pq.read_table(f"out/{n}.parquet").to_pylist() for n in names}))
except ImportError: pass
try:
    duckdb = importlib.import_module("duckdb")
    def rows(n):
        r = duckdb.sql(f"select * from 'out/{n}.parquet'")
        return [dict(zip(r.columns, row)) for row in r.fetchall()]
    readers.append(("duckdb", {n: rows(n) for n in names}))
except ImportError: pass
try:
    polars = importlib.import_module("polars")
    readers.append(("polars", {n: polars.read_parquet(f"out/{n}.parquet").to_dicts() for n in names}))
except ImportError: pass
if not readers:
    print("no reader")
    sys.exit()
lines = [json.loads(line) for line in open("lines.json")]
for reader, tables in readers:
    runs, links, flows = [], [], []
    for line in lines:
        shared = {"run": line["run"], "variant": line["variant"], "seed": line["seed"], **{k: line["settings"][k] for k in ["queue.target", "flow.count", "queue.alpha"]}}
        runs.append({**shared, "jain": line["jain"], "completed_s": 0.3})
        for name in sorted(line["links"]):
            l = line["links"][name]
            links.append({**shared, "link": name, "utilisation": l["utilisation"], "queue_mean_packets": l["queue_mean"],
                          "queue_max_packets": l["queue_max"], "drops": l["drops"], "lost": l["lost"], "packets": l["packets"]})
        for f in line["flows"]:
            flows.append({**shared, "flow": f["name"], "goodput_bps": f["goodput"], "rtt_mean_s": f["rtt_mean"] or None, "retransmits": f["retransmits"],
                          "timeouts": f["timeouts"], "cwnd_mean_packets": f["cwnd_mean"], "completed_at_s": f.get("completed_at")})
    for name, expected in zip(names, [runs, links, flows]):
        got = tables[name]
        assert [list(r) for r in got[:1]] == [list(r) for r in expected[:1]], (reader, name, got[0], expected[0])
        assert got == expected, (reader, name, [p for p in zip(got, expected) if p[0] != p[1]][:1])
    print(reader, "agrees")
"#;
    fs::write(dir.join("lines.json"), &output.stdout).unwrap();
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let output = match Command::new(&python).args(["-c", script]).current_dir(dir).output() {
        Ok(output) => output,
        Err(e) => return xcp_skip::skipped!("parquet-reader", "cannot start {python}: {e}"),
    };
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    if text(&output.stdout) == "no reader\n" {
        xcp_skip::skipped!(
            "parquet-reader",
            "{python} has no reader of Parquet; pip install pyarrow, duckdb or polars"
        );
    } else {
        assert!(text(&output.stdout).lines().all(|line| line.ends_with(" agrees")));
        eprint!("{}", text(&output.stdout));
    }
}
