//! The series as the page carries them: 32-bit floats in base64, cut down to what a screen can
//! show.
//!
//! * More than [`POINTS`] samples are drawn in equal groups of consecutive samples (means; sums of
//!   counts; maxima of the largest queue).
//! * More than [`LINES`] flows are drawn as groups (`NAME-1`, `NAME-2`, ... are one), each by its
//!   minimum, quartiles and maximum.
//! * More than [`LINKS`] link directions: the most used ones, bottlenecks first.
//!
//! The page says where it does so.

use serde_json::{Map, Value, json};
use xcp_model::run::{FlowSummary, Quantity, Run, Series, Subject};

use super::Report;
use crate::reference::Reference;
use crate::table::{groups, quantile, sorted};
use crate::{human, links};

/// Most samples per curve. A 4K screen has 3840 columns.
pub(super) const POINTS: usize = 4000;
/// Most flows drawn one by one.
pub(super) const LINES: usize = 8;
/// Most link directions in the page.
pub(super) const LINKS: usize = 40;

/// The whole of it.
pub(super) fn json(report: &Report<'_>) -> String {
    let bottlenecks = links::bottlenecks(report.runs, report.scenarios);
    let mut names = bottlenecks.clone();
    names.extend(links::ranked(report.runs).into_iter().filter(|n| !bottlenecks.contains(n)));
    names.truncate(LINKS);
    let runs: Vec<Value> =
        report.runs.iter().enumerate().map(|(i, run)| one(report, i, run, &names)).collect();
    json!({
        "version": report.version,
        "links": names,
        "bottlenecks": bottlenecks,
        "runs": runs,
        "look": crate::plot::look(),
    })
    .to_string()
}

fn one(report: &Report<'_>, index: usize, run: &Run, names: &[&str]) -> Value {
    let samples = run.series.iter().map(|s| s.times.len()).max().unwrap_or(0);
    let bucket = samples.div_ceil(POINTS).max(1);
    let times = run.series.iter().max_by_key(|s| s.times.len()).map_or(&[][..], |s| &s.times[..]);
    let ends: Vec<f64> = times.chunks(bucket).map(|c| c[c.len() - 1] as f64 / 1e9).collect();
    let links: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), link(run, name, bucket))).collect();
    let measure =
        report.scenario(index).map(|s| [s.measure.from as f64 / 1e9, s.measure.to as f64 / 1e9]);
    json!({
        "name": human::run_name(run),
        "seed": run.summary.seed,
        "duration": run.duration as f64 / 1e9,
        "completed": run.completed as f64 / 1e9,
        "measure": measure,
        "bucket": bucket,
        "times": base64(ends.iter().flat_map(|t| t.to_le_bytes())),
        "links": links,
        "flows": flows(run, bucket),
        "references": references(report.references(index), &ends),
    })
}

/// Curves to compare goodput with, equal ones of a theory together: at the ends of the samples
/// drawn.
fn references(list: &[Reference], ends: &[f64]) -> Value {
    let mut out = Vec::new();
    for reference in list {
        let mut curves: Vec<(String, Vec<f64>)> = Vec::new();
        for curve in &reference.goodputs {
            let values: Vec<f64> = ends.iter().map(|&t| curve.step_before(t)).collect();
            let near =
                |a: &f64, b: &f64| (a - b).abs() <= 1e-6 * a.abs() || a.is_nan() && b.is_nan();
            match curves.iter_mut().find(|(_, v)| v.iter().zip(&values).all(|(a, b)| near(a, b))) {
                Some((name, _)) => name.extend([", ", &curve.name]),
                None => curves.push((curve.name.clone(), values)),
            }
        }
        let single = curves.len() == 1;
        for (flows, values) in curves.into_iter().take(LINES) {
            let name = if single {
                reference.name.clone()
            } else {
                format!("{}: {flows}", reference.name)
            };
            out.push(
                json!({ "name": name, "theory": reference.name, "goodput_bps": floats(&values) }),
            );
        }
    }
    Value::Array(out)
}

fn link(run: &Run, name: &str, bucket: usize) -> Value {
    let subject = Subject::Link(name.to_owned());
    let curves = run.series.iter().filter(|s| s.subject == subject);
    let mut out: Map<String, Value> =
        curves.map(|s| (s.quantity.column().to_owned(), floats(&shrunk(s, bucket)))).collect();
    if let Some(summary) = run.summary.links.get(name) {
        out.insert("summary".to_owned(), json!(summary));
    }
    Value::Object(out)
}

/// Flows or groups of them, each with its curves: one array for a flow, five (minimum, quartiles,
/// maximum) for a group.
fn flows(run: &Run, bucket: usize) -> Value {
    let mut by_flow: std::collections::BTreeMap<&str, Vec<&Series>> =
        std::collections::BTreeMap::new();
    for series in &run.series {
        if let Subject::Flow(name) = &series.subject {
            by_flow.entry(name).or_default().push(series);
        }
    }
    let curve = |flow: usize, quantity: Quantity| {
        let list = by_flow.get(run.summary.flows[flow].name.to_string().as_str())?;
        list.iter().find(|s| s.quantity == quantity).map(|s| shrunk(s, bucket))
    };
    let entities = groups(&run.summary.flows, LINES).into_iter().map(|(name, members)| {
        let mut out = Map::new();
        out.insert("name".to_owned(), json!(name));
        out.insert("flows".to_owned(), json!(members.len()));
        let middle = |of: fn(&FlowSummary) -> Option<f64>| {
            quantile(&sorted(&run.summary.flows, &members, of), 0.5)
        };
        // What the legend shows at rest: the summary's figure, the median one of a group.
        out.insert("summary".to_owned(), json!({ "goodput_bps": middle(FlowSummary::goodput), "cwnd_packets": middle(FlowSummary::cwnd_mean), "srtt_s": middle(FlowSummary::rtt_mean), "retransmits": middle(|f| Some(f.retransmits as f64)) }));
        for quantity in [Quantity::Goodput, Quantity::Cwnd, Quantity::Srtt, Quantity::Retransmits] {
            let curves: Vec<Vec<f64>> = members.iter().filter_map(|&i| curve(i, quantity)).collect();
            let value = match &curves[..] {
                [] => continue,
                [only] => floats(only),
                many => json!(spread(many).map(|c| floats(&c))),
            };
            out.insert(quantity.column().to_owned(), value);
        }
        Value::Object(out)
    });
    Value::Array(entities.collect())
}

/// Minimum, quartiles and maximum at each time, over the curves that have a value there.
fn spread(curves: &[Vec<f64>]) -> [Vec<f64>; 5] {
    let length = curves.iter().map(Vec::len).max().unwrap_or(0);
    let mut out: [Vec<f64>; 5] = std::array::from_fn(|_| Vec::with_capacity(length));
    let mut values = Vec::with_capacity(curves.len());
    for i in 0..length {
        values.clear();
        values.extend(curves.iter().filter_map(|c| c.get(i)).copied().filter(|v| v.is_finite()));
        values.sort_unstable_by(f64::total_cmp);
        for (curve, q) in out.iter_mut().zip([0.0, 0.25, 0.5, 0.75, 1.0]) {
            curve.push(quantile(&values, q));
        }
    }
    out
}

/// A curve in groups of `bucket` samples.
fn shrunk(series: &Series, bucket: usize) -> Vec<f64> {
    let values = series.values.to_vec();
    if bucket == 1 {
        return values;
    }
    let of = |group: &[f64]| {
        let there = || group.iter().copied().filter(|v| v.is_finite());
        let count = there().count();
        if count == 0 {
            return f64::NAN;
        }
        match series.quantity {
            Quantity::Drops | Quantity::Lost | Quantity::Retransmits => there().sum(),
            Quantity::QueueMax => there().fold(f64::NEG_INFINITY, f64::max),
            _ => there().sum::<f64>() / count as f64,
        }
    };
    values.chunks(bucket).map(of).collect()
}

fn floats(values: &[f64]) -> Value {
    Value::String(base64(values.iter().flat_map(|&v| (v as f32).to_le_bytes())))
}

/// RFC 4648 §4.
pub(crate) fn base64(bytes: impl Iterator<Item = u8>) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    let mut bytes = bytes.peekable();
    while bytes.peek().is_some() {
        let group: [Option<u8>; 3] = std::array::from_fn(|_| bytes.next());
        let have = group.iter().flatten().count();
        let word = group.iter().fold(0u32, |w, b| w << 8 | u32::from(b.unwrap_or(0)));
        for i in 0..4 {
            let digit = ALPHABET[(word >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= have { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn base64_as_the_rfc_shows_it() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.bytes()), coded);
        }
    }

    #[test]
    fn groups_of_samples_keep_sums_and_maxima() {
        let series = |quantity, values: &[f64]| Series {
            subject: Subject::Link("l".into()),
            quantity,
            times: Arc::new((1..=values.len() as u64).collect()),
            values: values.to_vec().into(),
        };
        let values = [1.0, 2.0, f64::NAN, 4.0, 9.0];
        assert_eq!(shrunk(&series(Quantity::Drops, &values), 2), [3.0, 4.0, 9.0]);
        assert_eq!(shrunk(&series(Quantity::QueueMax, &values), 2), [2.0, 4.0, 9.0]);
        assert_eq!(shrunk(&series(Quantity::Utilisation, &values), 2), [1.5, 4.0, 9.0]);
    }

    #[test]
    fn the_spread_ignores_flows_without_a_value() {
        let nan = f64::NAN;
        let spread = spread(&[vec![1.0, nan, nan], vec![2.0, 5.0, nan], vec![3.0, nan, nan]]);
        assert_eq!(spread[0][..2], [1.0, 5.0]);
        assert_eq!(spread[2][..2], [2.0, 5.0]);
        assert_eq!(spread[4][..2], [3.0, 5.0]);
        assert!(spread[2][2].is_nan());
    }
}
