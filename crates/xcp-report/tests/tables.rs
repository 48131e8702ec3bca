//! Tables, JSON and CSV of made-up runs.

mod common;

use std::num::NonZeroU64;

use common::{Manner, run};
use serde_json::Value;
use xcp_model::OverSeeds;
use xcp_model::run::{GroupSummary, Quantity, Run, Subject, Summary};
use xcp_model::spread::Percentiles;
use xcp_model::units::Period;
use xcp_model::{Multiple, Verdict};
use xcp_report::csv::{self, Kind};
use xcp_report::parquet::Cell;
use xcp_report::sweep::{Entry, TABLES, Tables};
use xcp_report::table::band;
use xcp_report::{SweepTable, columns, json, table, verdict_table};

fn three(flows: usize) -> Vec<Run> {
    [Manner::Xcp, Manner::DropTail, Manner::Red].map(|m| run(m, flows)).into()
}

#[test]
fn one_run() {
    insta::assert_snapshot!(table(&three(4)[..1], 100));
}

#[test]
fn several_runs_under_one_another() {
    insta::assert_snapshot!(table(&three(4), 100));
}

#[test]
fn many_flows_are_told_by_their_extremes() {
    insta::assert_snapshot!(table(&three(300), 100));
}

#[test]
fn completed_transfers_are_told_by_how_long_they_took() {
    let mut runs = three(300);
    for run in &mut runs[..2] {
        for (i, flow) in (0..).zip(&mut run.summary.flows).filter(|(i, _)| i % 3 > 0) {
            flow.completed_at = Some(10.0 + f64::from(i));
            flow.completion_time = Some(0.1 + 0.01 * f64::from(i));
        }
    }
    insta::assert_snapshot!(table(&runs, 100));
}

/// Of flows that were not active in the measured part there is nothing to tell.
#[test]
fn numbers_are_those_of_the_flows_that_were_active() {
    let mut runs = three(300);
    for flow in &mut runs[0].summary.flows[20..] {
        flow.active = false;
        (flow.goodput, flow.rtt_mean, flow.cwnd_mean) = (0.0, 0.0, 0.0);
    }
    let all = table(&three(300), 100);
    let some = table(&runs, 100);
    let row = |text: &str, word: &str| {
        text.lines().find(|line| line.contains(word)).expect(word).to_owned()
    };
    assert!(all.lines().all(|line| !line.contains("median of")), "{all}");
    let middle = row(&some, "median of 20 ");
    assert!(middle.contains("bit/s") && !middle.contains(" 0 "), "{some}");
    for flow in &mut runs[0].summary.flows[..20] {
        flow.active = false;
    }
    assert!(row(&table(&runs, 100), "median of 0").contains('–'));
}

#[test]
fn a_sweep_takes_its_mean_over_the_flows_that_were_active() {
    let mut summary = run(Manner::Xcp, 4).summary;
    for flow in &mut summary.flows {
        flow.goodput = 2e6;
    }
    let mut table = SweepTable::new(vec!["rate".into()], 9);
    (summary.flows[3].active, summary.flows[3].goodput) = (false, 0.0);
    table.add(0, || vec!["some".into()], &summary);
    summary.flows.iter_mut().for_each(|flow| flow.active = false);
    table.add(1, || vec!["none".into()], &summary);
    let text = table.render(200);
    let last = |word: &str| text.lines().find(|line| line.contains(word)).unwrap().trim();
    assert!(last("some").ends_with("2.00 Mbit/s"), "{text}");
    assert!(last("none").ends_with('–'), "{text}");
}

#[test]
fn a_narrow_terminal_loses_columns_and_is_told_so() {
    let text = table(&three(4), 60);
    assert!(text.contains("for lack of width: "));
    let longest = text
        .lines()
        .filter(|l| !l.contains("width: ") && !l.contains("Jain"))
        .map(|l| l.chars().count())
        .max();
    assert!(longest <= Some(60), "{text}");
}

#[test]
fn verdicts() {
    let verdict = |measured, min, max, inside| Verdict {
        claim: "XCP keeps the queue short and the link full, whatever happens (Katabi, Handley & \
            Rohrs 2002, Fig. 5)"
            .into(),
        metric: "links.bottleneck.queue_mean".into(),
        measured,
        min,
        max,
        than: None,
        inside,
        period: Period { from: 0, to: 1 },
        seeds: vec![measured],
        seeds_inside: usize::from(inside),
        over_seeds: OverSeeds::Median,
    };
    let lists = [
        vec![verdict(Some(0.8), None, Some(2.0), true)],
        vec![],
        vec![verdict(None, Some(1.0), Some(2.0), false)],
    ];
    insta::assert_snapshot!(verdict_table(&three(4), &lists, 80));
    assert_eq!(verdict_table(&three(4), &[vec![], vec![], vec![]], 80), "");

    let of_seeds = |over_seeds, inside| Verdict {
        seeds: vec![Some(0.5), Some(0.8), None, Some(9.0)],
        seeds_inside: 2,
        over_seeds,
        ..verdict(Some(0.8), None, Some(2.0), inside)
    };
    let lists = [vec![
        of_seeds(OverSeeds::Median, true),
        of_seeds(OverSeeds::All, false),
        of_seeds(OverSeeds::Share(0.5), true),
    ]];
    insta::assert_snapshot!("verdicts_of_seeds", verdict_table(&three(4), &lists, 80));

    let compared =
        |variant: Option<&str>, metric: Option<&str>, theirs, factors: [Option<f64>; 2]| {
            let times = |factor: Option<f64>| factor.zip(theirs).map(|(f, x): (f64, f64)| f * x);
            let than = Multiple {
                variant: variant.map(Into::into),
                metric: metric.map(Into::into),
                measured: theirs,
                min: factors[0],
                max: factors[1],
            };
            let (min, max) = (times(factors[0]), times(factors[1]));
            band(&Verdict { than: Some(than), ..verdict(Some(2.0), min, max, true) })
        };
    assert_eq!(
        compared(Some("red"), None, Some(10.0), [Some(1.1), None]),
        "at least 11 (1.1 × red)"
    );
    assert_eq!(
        compared(Some("red"), None, Some(10.0), [Some(0.5), Some(2.0)]),
        "5 to 20 (0.5 to 2 × red)"
    );
    assert_eq!(
        compared(None, Some("links.a.drops"), Some(3.0), [None, Some(1.0)]),
        "at most 3 (1 × links.a.drops)"
    );
    assert_eq!(
        compared(Some("red"), Some("links.a.drops"), None, [None, Some(1.0)]),
        "links.a.drops of red has no number"
    );
}

#[test]
fn json_has_a_line_for_each_run_and_reads_back() {
    let runs = three(2);
    let mut text = Vec::new();
    json::write(&runs, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let back: Vec<Summary> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(back, runs.iter().map(|r| r.summary.clone()).collect::<Vec<_>>());
}

/// One name for one thing: what a sweep's tables call a number, a line of `--json` calls it too.
#[test]
fn json_has_every_number_under_the_name_of_the_tables() {
    let mut run = run(Manner::Xcp, 2);
    let spread = Some(Percentiles { p50: 0.25, p95: 0.5, p99: 0.75 });
    for link in run.summary.links.values_mut() {
        link.queue_delay = spread;
    }
    let flow = &mut run.summary.flows[1];
    (flow.completed_at, flow.completion_time) = (Some(3.5), Some(2.5));
    (flow.start, flow.bytes) = (1.0, NonZeroU64::new(15_000));
    run.summary.groups = vec![GroupSummary {
        name: "flow".into(),
        from: "a".into(),
        to: "b".into(),
        flows: 2,
        completed: 1,
        completion_time: spread,
        rtt: spread,
    }];
    let summary = &run.summary;
    let mut files: [Vec<u8>; 4] = Default::default();
    let mut tables = Tables::new(&[], &[], files.each_mut()).unwrap();
    tables.add(&Entry { run: 0, settings: Vec::new(), completed: run.completed, summary }).unwrap();
    tables.finish().unwrap();

    let told = serde_json::to_value(json::Told::from(summary)).unwrap();
    let rows: [Vec<&Value>; 4] = [
        vec![&told],
        told["links"].as_object().unwrap().values().collect(),
        told["flows"].as_array().unwrap().iter().collect(),
        told["groups"].as_array().unwrap().iter().collect(),
    ];
    // What says which row this is, and what the run's line says once for all of its rows.
    let elsewhere = |table: &str, column: &str| match column {
        "run" | "variant" | "seed" | "completed_s" | "link" => true,
        "group" | "from" | "to" => table == "flows",
        _ => false,
    };
    let mut compared = 0;
    for ((table, file), objects) in TABLES.into_iter().zip(files).zip(rows) {
        let table_read = columns::read(bytes::Bytes::from(file)).unwrap();
        assert_eq!(table_read.rows, objects.len(), "{table}");
        for (column, values) in &table_read.columns {
            for (row, object) in objects.iter().enumerate().filter(|_| !elsewhere(table, column)) {
                let expected = match values.cell(row) {
                    Cell::Integer(n) => Value::from(n),
                    Cell::Number(x) => Value::from(x),
                    Cell::Text(text) => Value::from(text),
                    Cell::Missing => Value::Null,
                };
                let is = object.get(column).cloned().unwrap_or(Value::Null);
                let same = match (&is, &expected) {
                    // Sizes are doubles in the tables, for there they may be missing.
                    (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
                    (a, b) => a == b,
                };
                assert!(same, "{table}.{column}, row {row}: {is} instead of {expected}");
                compared += usize::from(!expected.is_null());
            }
        }
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn csv_holds_every_value_exactly() {
    let mut run = run(Manner::Xcp, 2);
    let mut values = run.series[0].values.to_vec();
    values[7] = f64::NAN;
    run.series[0].values = values.into();
    let mut text = Vec::new();
    csv::write(&run, Kind::Links, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut lines = text.lines();
    let heading: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(heading[..3], ["time_s", "link", "utilisation"]);
    let rows: Vec<Vec<&str>> = lines.map(|l| l.split(',').collect()).collect();
    assert_eq!(rows.len(), 2 * 600, "both directions");
    assert_eq!(rows[7][2], "", "a missing value is an empty field");
    let series = run.find(&Subject::Link("bottleneck".into()), Quantity::Phi).unwrap();
    let column = heading.iter().position(|h| *h == "phi_bps").unwrap();
    for (row, (time, value)) in rows.iter().zip(series.times.iter().zip(series.values.iter())) {
        assert_eq!(row[0].parse::<f64>().unwrap(), *time as f64 / 1e9);
        assert_eq!(row[1], "bottleneck");
        assert_eq!(row[column].parse::<f64>().unwrap(), value);
    }
    let mut flows = Vec::new();
    csv::write(&run, Kind::Flows, &mut flows).unwrap();
    let flows = String::from_utf8(flows).unwrap();
    assert!(flows.starts_with("time_s,flow,goodput_bps,cwnd_packets,srtt_s\n0.1,flow-1,"));
}

#[test]
fn tables_fit_any_terminal_without_panic() {
    for width in [0, 1, 20, 79] {
        assert!(table(&three(20), width).contains("link"));
        assert!(!table(&[], width).contains("NaN"));
    }
}
