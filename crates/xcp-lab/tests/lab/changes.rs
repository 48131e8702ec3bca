//! Links that change while a scenario runs: the kernel's queue gets another rate, its router is
//! told, and the line another delay.

use xcp_model::run::{Quantity, Run, Subject};

use crate::lab;

/// Of a series, the median of its values from one second to another.
fn median(run: &Run, subject: &Subject, quantity: Quantity, from: u64, to: u64) -> f64 {
    let series = run.find(subject, quantity).unwrap();
    let seconds = |t: u64| t * 1_000_000_000;
    let within = series.times.iter().zip(series.values.iter());
    let mut values: Vec<f64> = within
        .filter(|(time, value)| **time > seconds(from) && **time <= seconds(to) && !value.is_nan())
        .map(|(_, value)| value)
        .collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// 20 Mbit/s and 10 ms; after 3 s a quarter of that; after 6 s four times the way. A machine that
/// stops for a while spoils one run: three have to fail. A router that is not told spoils all.
#[test]
fn rates_and_delays_change_and_the_router_is_told() {
    let text = r#"
        title = "changes"
        duration = "9s"
        sample = "100ms"
        link = [{
            name = "l", between = ["a", "b"], rate = "20mbit", delay = "10ms",
            rate-changes = [["3s", "5mbit"]], delay-changes = [["6s", "40ms"]],
            queue = { kind = "xcp", limit = 1000 },
        }]
        flow = [{ name = "x", count = 2, from = "a", to = "b", congestion = "xcp" }]
    "#;
    let mut wrong = Vec::new();
    for _ in 0..3 {
        let Some(run) = lab("links that change in the lab", text) else { return };
        wrong.push(faults(&run));
        if wrong.last().is_some_and(Vec::is_empty) {
            return;
        }
    }
    panic!("three runs failed: {wrong:#?}");
}

/// What is not as it should be.
fn faults(run: &Run) -> Vec<String> {
    let mut wrong = Vec::new();
    let link = Subject::Link("l".into());
    let of = |quantity, from, to| median(run, &link, quantity, from, to);
    // Of each time's own rate; told, XCP lets no queue stand.
    for (from, to) in [(1, 3), (4, 6), (7, 9)] {
        let (used, waiting) =
            (of(Quantity::Utilisation, from, to), of(Quantity::QueueMean, from, to));
        if !(0.85..1.05).contains(&used) {
            wrong.push(format!("{from} to {to} s: {used} of the link"));
        }
        if waiting.is_nan() || waiting >= 30.0 {
            wrong.push(format!("{from} to {to} s: {waiting} packets wait"));
        }
    }
    let flow = Subject::Flow("x-1".into());
    let rtt = |from, to| median(run, &flow, Quantity::Srtt, from, to);
    let (before, after) = (rtt(4, 6), rtt(8, 9));
    if !(0.02..0.045).contains(&before) || !(0.08..0.12).contains(&after) {
        wrong.push(format!("round trips of {before} and {after} s"));
    }
    wrong
}
