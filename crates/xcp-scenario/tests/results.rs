//! The run: its summary's published names, and what expectations read from it.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use xcp_model::Scenario;
use xcp_model::run::{
    FlowSummary, GroupSummary, LinkSummary, Quantity, Run, Series, Subject, Summary, jain,
};
use xcp_model::spread::Percentiles;
use xcp_model::{Verdict, evaluate, evaluate_variants, over_seeds};
use xcp_scenario::{Overrides, load};

#[test]
fn published_names_of_the_summary() {
    let published = json!({
        "seed": 1, "backend": "sim",
        "links": {"bottleneck": {"utilisation": 0.998, "queue_mean": 0.8, "queue_max": 12, "drops": 0, "lost": 0, "packets": 10}},
        "flows": [{"name": "flow-1", "goodput": 2384000.0, "rtt_mean": 0.501, "retransmits": 0, "timeouts": 0, "cwnd_mean": 99.5}],
        "jain": 0.9999
    });
    let summary: Summary = serde_json::from_value(published.clone()).unwrap();
    assert_eq!(summary.links["bottleneck"].queue_max, 12);
    assert_eq!(summary.flows[0].goodput, 2_384_000.0);
    let mut written = serde_json::to_value(&summary).unwrap();
    assert_eq!(
        written["flows"][0].as_object_mut().unwrap().remove("start"),
        Some(json!(0.0)),
        "it came later"
    );
    assert_eq!(written, published);
}

fn percentiles() -> impl Strategy<Value = Option<Percentiles>> {
    let three = (0.0..1e3, 0.0..1e3, 0.0..1e3);
    prop::option::of(three.prop_map(|(p50, p95, p99)| Percentiles { p50, p95, p99 }))
}

fn group_summary() -> impl Strategy<Value = GroupSummary> {
    (".*", ".*", ".*", any::<usize>(), any::<usize>(), percentiles(), percentiles()).prop_map(
        |(name, from, to, flows, completed, completion_time, rtt)| GroupSummary {
            name,
            from,
            to,
            flows,
            completed,
            completion_time,
            rtt,
        },
    )
}

fn link_summary() -> impl Strategy<Value = LinkSummary> {
    (0.0..=1.0, 0.0..1e9, any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), percentiles())
        .prop_map(|(utilisation, queue_mean, queue_max, drops, lost, packets, queue_delay)| {
            LinkSummary {
                utilisation,
                queue_mean,
                queue_max,
                drops,
                refused: 0,
                lost,
                packets,
                queue_delay,
            }
        })
}

fn flow_summary() -> impl Strategy<Value = FlowSummary> {
    (
        "(.*|[a-z]*-[0-9]*)",
        0.0..1e13,
        0.0..1e3,
        any::<u64>(),
        any::<u32>(),
        0.0..1e9,
        prop::option::of((0.0..1e8, 0.0..1e8)),
    )
        .prop_map(|(name, goodput, rtt_mean, retransmits, timeouts, cwnd_mean, completed)| {
            FlowSummary {
                name: name.into(),
                active: retransmits % 2 == 0,
                goodput,
                rtt_mean,
                retransmits,
                timeouts,
                cwnd_mean,
                completed_at: completed.map(|(at, _)| at),
                completion_time: completed.map(|(_, time)| time),
                start: rtt_mean,
                bytes: NonZeroU64::new(retransmits / 2),
            }
        })
}

proptest! {
    #[test]
    fn summaries_survive_json(seed: u64, title in ".*", links in prop::collection::btree_map(".*", link_summary(), 0..3), flows in prop::collection::vec(flow_summary(), 0..3), groups in prop::collection::vec(group_summary(), 0..3), interrupted: bool) {
        let summary = Summary { seed, backend: "sim".into(), title, variant: String::new(), links, flows, groups, jain: Some(0.5), interrupted, notes: Vec::new() };
        let text = serde_json::to_string(&summary).unwrap();
        prop_assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
    }

    /// Jain's index lies between 1/n and 1 and does not care for the unit; there is none where
    /// nobody has anything.
    #[test]
    fn jain_is_between_one_nth_and_one(rates in prop::collection::vec(0.0..1e9f64, 1..20), unit in 1e-3..1e3f64) {
        let Some(index) = jain(&rates) else {
            prop_assert!(rates.iter().all(|r| r * r == 0.0));
            return Ok(());
        };
        prop_assert!(index <= 1.0 + 1e-12 && index >= 1.0 / rates.len() as f64 - 1e-12);
        let scaled: Vec<f64> = rates.iter().map(|r| r * unit).collect();
        prop_assert!((jain(&scaled).unwrap() - index).abs() < 1e-9);
    }
}

#[test]
fn nothing_is_not_shared_fairly() {
    assert_eq!((jain(&[]), jain(&[0.0, 0.0])), (None, None));
    assert_eq!(jain(&[1.0, 0.0]), Some(0.5));
}

const SECOND: u64 = 1_000_000_000;

/// Ten seconds, two flows and a source of datagrams; the first flow stops at 8 s, the second starts
/// at 5 s.
fn scenario(expectations: &str) -> Scenario {
    let text = format!(
        "duration = \"10s\"\nsample = \"1s\"\nmeasure = {{ from = \"5s\" }}\n\
         [[link]]\nname = \"l\"\nbetween = [\"S\", \"D\"]\nrate = \"10mbit\"\ndelay = \"10ms\"\n\
         [[flow]]\nname = \"a\"\nfrom = \"S\"\nto = \"D\"\ncongestion = \"xcp\"\nstop = \"8s\"\n\
         [[flow]]\nname = \"b\"\ncount = 1\nfrom = \"S\"\nto = \"D\"\ncongestion = \"xcp\"\nstart \
            = \"5s\"\n\
         [[flow]]\nname = \"u\"\nfrom = \"S\"\nto = \"D\"\nudp = \
            {{ rate = \"1mbit\" }}\n{expectations}"
    );
    load(Path::new("x.toml"), &text, &Overrides::none()).unwrap_or_else(|e| panic!("{e}")).remove(0)
}

fn run() -> Run {
    let times = Arc::new((1..=10).map(|s| s * SECOND).collect::<Vec<_>>());
    let series = |subject: Subject, quantity, f: &dyn Fn(f64) -> f64| {
        let values = (1..=10).map(|s| f(f64::from(s))).collect();
        Series { subject, quantity, times: times.clone(), values }
    };
    let link = || Subject::Link("l".into());
    let flow = |name: &str| Subject::Flow(name.into());
    let flows = ["a", "b-1", "u"].map(|name| FlowSummary {
        name: name.into(),
        active: true,
        goodput: 4e6,
        rtt_mean: 0.02,
        retransmits: 3,
        timeouts: 1,
        cwnd_mean: 20.0,
        completed_at: (name == "b-1").then_some(9.5),
        completion_time: (name == "b-1").then_some(4.5),
        start: 0.0,
        bytes: None,
    });
    let queue_delay = Some(Percentiles { p50: 0.001, p95: 0.02, p99: 0.3 });
    let direction = LinkSummary {
        utilisation: 0.9,
        queue_mean: 2.0,
        queue_max: 9,
        drops: 4,
        refused: 0,
        lost: 5,
        packets: 1000,
        queue_delay,
    };
    Run {
        title: String::new(),
        variant: String::new(),
        completed: 10 * SECOND,
        duration: 10 * SECOND,
        summary: Summary {
            seed: 1,
            backend: "sim".into(),
            title: String::new(),
            variant: String::new(),
            links: BTreeMap::from([
                ("l".into(), direction.clone()),
                ("l.reverse".into(), LinkSummary { utilisation: 0.1, ..direction }),
            ]),
            flows: flows.to_vec(),
            groups: Vec::new(),
            jain: Some(0.75),
            interrupted: false,
            notes: Vec::new(),
        },
        series: vec![
            series(link(), Quantity::Utilisation, &|s| if s <= 5.0 { 0.5 } else { 1.0 }),
            series(link(), Quantity::QueueMean, &|s| s),
            series(link(), Quantity::QueueMax, &|s| 2.0 * s),
            series(link(), Quantity::Drops, &|s| if s == 4.0 { 7.0 } else { 0.0 }),
            series(flow("a"), Quantity::Goodput, &|s| if s <= 8.0 { 3e6 } else { 0.0 }),
            series(flow("b-1"), Quantity::Goodput, &|s| if s <= 5.0 { 0.0 } else { 1e6 }),
            series(flow("a"), Quantity::Cwnd, &|s| 100.0 + 5.0 * s),
            series(flow("b-1"), Quantity::Cwnd, &|s| if s <= 5.0 { f64::NAN } else { 50.0 }),
        ],
    }
}

fn measured(metric: &str, more: &str) -> Option<f64> {
    let scenario = scenario(&format!("[[expect]]\nmetric = \"{metric}\"\nmin = 0\n{more}"));
    evaluate(&scenario, &run()).remove(0).measured
}

#[test]
fn numbers_of_the_measured_period_are_the_summarys() {
    for (metric, expected) in [
        ("jain", 0.75),
        ("links.l.utilisation", 0.9),
        ("links.l.utilisation_mean", 0.9),
        ("links.l.reverse.utilisation", 0.1),
        ("links.l.queue_mean", 2.0),
        ("links.l.queue_max", 9.0),
        ("links.l.drops", 4.0),
        ("links.l.lost", 5.0),
        ("links.l.packets", 1000.0),
        ("links.l.queue_delay_p50", 0.001),
        ("links.l.queue_delay_p95", 0.02),
        ("links.l.queue_delay_p99", 0.3),
        ("flows.a.goodput", 4e6),
        ("flows.a.rtt_mean", 0.02),
        ("flows.a.cwnd_mean", 20.0),
        ("flows.b.retransmits", 3.0),
        ("flows.b-1.timeouts", 1.0),
        ("flows.*.retransmits.sum", 6.0),
        ("flows.b.completed_at", 9.5),
        ("flows.b.completion_time", 4.5),
        ("flows.*.completion_time", 4.5),
        ("flows.*.completion_time.p95", 4.5),
    ] {
        assert_eq!(measured(metric, ""), Some(expected), "{metric}");
    }
    assert_eq!(measured("flows.a.completed_at", ""), None, "never completed");
    assert_eq!(measured("flows.a.completion_time", ""), None, "never completed");
    assert_eq!(measured("flows.*.completed_at", ""), None, "not all completed");
}

#[test]
fn numbers_of_other_periods_come_from_the_series() {
    for (metric, period, expected) in [
        ("links.l.utilisation", "from = \"0s\"\nto = \"10s\"", 0.75),
        ("links.l.utilisation", "from = \"6s\"", 1.0),
        ("links.l.utilisation_min", "from = \"4s\"", 0.5),
        ("links.l.idle_time", "from = \"0s\"\nto = \"10s\"", 2.5),
        ("links.l.queue_mean", "from = \"0s\"\nto = \"4s\"", 2.5),
        ("links.l.queue_max", "from = \"0s\"\nto = \"4s\"", 8.0),
        ("links.l.drops", "from = \"3s\"\nto = \"4s\"", 7.0),
        ("links.l.drops", "from = \"4s\"\nto = \"9s\"", 0.0),
        // `a` is looked at until it stops.
        ("flows.a.goodput", "from = \"2s\"\nto = \"10s\"", 3e6),
        ("flows.*.goodput", "from = \"6s\"\nto = \"10s\"", 2e6),
        ("flows.*.goodput.sum", "from = \"6s\"\nto = \"10s\"", 4e6),
        ("flows.*.goodput.min", "from = \"6s\"\nto = \"10s\"", 1e6),
        ("flows.*.goodput.spread", "from = \"6s\"\nto = \"10s\"", 1.0),
        ("jain", "from = \"6s\"\nto = \"8s\"", 16.0 / 20.0),
        ("jain", "from = \"8s\"\nto = \"10s\"", 1.0),
        // Only in the series, hence over the measured period: samples at 6, 7 and 8 s.
        ("flows.a.cwnd_max", "", 140.0),
        ("flows.a.cwnd_min", "", 130.0),
        ("flows.a.cwnd_end", "", 140.0),
        ("flows.a.cwnd_growth", "", 5.0),
        ("flows.a.cwnd_median", "", 135.0),
        // 130 is more than a twentieth from 140, 135 is not.
        ("flows.a.cwnd_settling", "", 1.0),
        ("flows.*.goodput.median", "from = \"6s\"\nto = \"10s\"", 2e6),
        ("flows.b.cwnd_cov", "", 0.0),
        ("flows.b.goodput_cov", "", 0.0),
    ] {
        let got = measured(metric, period).unwrap_or(f64::NAN);
        assert!(
            (got - expected).abs() <= 1e-9 * expected.abs(),
            "{metric} {period}: {got}, not {expected}"
        );
    }
    assert_eq!(measured("links.l.phi_mean", ""), None, "not recorded");
}

/// Who was not active has no goodput, and who saw no answer no round trip: no zero of theirs makes
/// a claim true, or counts in a mean.
#[test]
fn what_was_not_measured_is_no_zero() {
    let measured = |metric: &str, more: &str| {
        let scenario = scenario(&format!("[[expect]]\nmetric = \"{metric}\"\nmax = 1e12\n{more}"));
        let mut run = run();
        let [a, b, u] = &mut run.summary.flows[..] else { unreachable!() };
        (a.active, a.goodput, a.rtt_mean, a.cwnd_mean) = (false, 0.0, 0.0, 0.0);
        (b.rtt_mean, u.cwnd_mean) = (0.0, 0.0);
        evaluate(&scenario, &run).remove(0).measured
    };
    for metric in ["flows.a.goodput", "flows.a.rtt_mean", "flows.b.rtt_mean", "flows.u.cwnd_mean"] {
        assert_eq!(measured(metric, ""), None, "{metric}");
    }
    assert_eq!(measured("flows.*.goodput", ""), Some(4e6));
    assert_eq!(measured("flows.*.goodput.min", ""), Some(4e6));
    assert_eq!(measured("flows.*.rtt_mean", ""), None, "neither of TCP's saw an answer");
    assert_eq!(measured("flows.*.cwnd_mean", ""), Some(20.0));
    assert_eq!(measured("flows.*.retransmits.sum", ""), Some(6.0), "none is a number of those");
}

/// A flow is looked at from when it started, jitter included; one that is there for less than a
/// sample has no number over a period, and the others do.
#[test]
fn periods_begin_with_the_flow() {
    let measured = |metric: &str, start: f64, complete: Option<f64>| {
        let more = "from = \"0s\"\nto = \"10s\"";
        let scenario = scenario(&format!("[[expect]]\nmetric = \"{metric}\"\nmin = 0\n{more}"));
        let mut run = run();
        let b = &mut run.summary.flows[1];
        (b.start, b.completed_at) = (start, complete);
        evaluate(&scenario, &run).remove(0).measured
    };
    assert_eq!(measured("flows.b.goodput", 5.0, None), Some(1e6));
    assert_eq!(measured("flows.b.goodput", 0.0, None), Some(0.5e6));
    assert_eq!(measured("flows.b.goodput", 7.1, Some(7.9)), None);
    assert_eq!(measured("flows.*.goodput.max", 7.1, Some(7.9)), Some(3e6));
    assert_eq!(measured("jain", 7.1, Some(7.9)), Some(1.0));
    assert_eq!(measured("jain", 5.0, None), Some(0.8));
}

#[test]
fn verdicts() {
    let band = |bounds: &str| -> Verdict {
        let scenario = scenario(&format!(
            "[[expect]]\nclaim = \"c\"\nsource = \"s\"\nmetric = \"links.l.drops\"\n{bounds}"
        ));
        evaluate(&scenario, &run()).remove(0)
    };
    // There are 4.
    for (bounds, inside) in [
        ("min = 4", true),
        ("max = 4", true),
        ("min = 3\nmax = 5", true),
        ("min = 5", false),
        ("max = 3.9", false),
    ] {
        assert_eq!(band(bounds).inside, inside, "{bounds}");
    }
    let verdict = band("min = 1");
    assert_eq!(
        (verdict.claim.as_str(), verdict.metric.as_str(), verdict.period.from),
        ("c (s)", "links.l.drops", 5 * SECOND)
    );
    let missing = scenario("[[expect]]\nmetric = \"flows.a.completed_at\"\nmax = 100");
    assert!(!evaluate(&missing, &run())[0].inside, "a number that is missing is not inside");
}

/// A claim over several seeds: the median is shown; median, all or a share of the seeds must be
/// inside.
#[test]
fn several_seeds() {
    let judge = |seeds: &str, drops: &[Option<u64>]| -> Verdict {
        let scenario = scenario(&format!(
            "[[expect]]\nmetric = \"links.l.drops\"\nmin = 2\nmax = 4\nseeds = {seeds}"
        ));
        let each: Vec<Vec<Verdict>> = drops
            .iter()
            .map(|drops| {
                let mut run = run();
                match drops {
                    Some(drops) => run.summary.links.get_mut("l").unwrap().drops = *drops,
                    None => {
                        run.summary.links.remove("l");
                    }
                }
                evaluate(&scenario, &run)
            })
            .collect();
        over_seeds(&each).remove(0)
    };
    let all = |drops: &[u64]| drops.iter().copied().map(Some).collect::<Vec<_>>();
    for (seeds, drops, measured, inside) in [
        ("\"median\"", all(&[1, 3, 9]), Some(3.0), true),
        ("\"median\"", all(&[3, 3, 9, 9]), Some(6.0), false),
        ("\"all\"", all(&[2, 3, 4]), Some(3.0), true),
        ("\"all\"", all(&[2, 3, 5]), Some(3.0), false),
        ("0.5", all(&[1, 3, 4, 9]), Some(3.5), true),
        ("0.51", all(&[1, 3, 4, 9]), Some(3.5), false),
        ("0.75", all(&[1, 3, 4, 4]), Some(3.5), true),
        ("1", all(&[3]), Some(3.0), true),
        ("\"median\"", vec![Some(3), None, Some(3)], Some(3.0), true),
        ("\"median\"", vec![Some(3), None], None, false),
        ("\"all\"", vec![Some(3), None, Some(3)], Some(3.0), false),
    ] {
        let verdict = judge(seeds, &drops);
        assert_eq!((verdict.measured, verdict.inside), (measured, inside), "{seeds} of {drops:?}");
        let count = drops.iter().flatten().filter(|d| (2..=4).contains(*d)).count();
        assert_eq!((verdict.seeds.len(), verdict.seeds_inside), (drops.len(), count));
    }
    assert!(over_seeds(&[]).is_empty());
}

/// Bounds that are multiples of another number are in the number's own unit in the verdict.
#[test]
fn comparisons() {
    let text = |claim: &str| {
        let variants =
            "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n[[variant]]\nname = \"c\"\n";
        format!(
            "duration = \"10s\"\nsample = \"1s\"\n[[link]]\nname = \"l\"\nbetween = \
                [\"S\", \"D\"]\nrate = \"10mbit\"\ndelay = \"10ms\"\n\
             [[flow]]\nfrom = \"S\"\nto = \"D\"\ncongestion \
                = \"xcp\"\n{variants}[[expect]]\n{claim}"
        )
    };
    let drops = |n: u64| {
        let mut run = run();
        run.summary.links.get_mut("l").unwrap().drops = n;
        run
    };
    // 4 are dropped in a, 10 in b, none in c.
    let runs = [drops(4), drops(10), drops(0)];
    let judge = |claim: &str| -> Vec<Vec<Verdict>> {
        let scenarios = load(Path::new("x.toml"), &text(claim), &Overrides::none())
            .unwrap_or_else(|e| panic!("{e}"));
        evaluate_variants(&scenarios, &runs)
    };
    let of_b = |bounds: &str| {
        judge(&format!("metric = \"links.l.drops\"\nvariant = \"b\"\nthan = \"a\"\n{bounds}"))
            .remove(1)
            .remove(0)
    };
    for (bounds, inside) in [
        ("min = 2.5", true),
        ("max = 2.5", true),
        ("min = 2.51", false),
        ("max = 2.4", false),
        ("min = 1\nmax = 3", true),
    ] {
        assert_eq!(of_b(bounds).inside, inside, "{bounds}");
    }
    let verdict = of_b("min = 1.5");
    assert_eq!((verdict.measured, verdict.min, verdict.max), (Some(10.0), Some(6.0), None));
    let than = verdict.than.unwrap();
    assert_eq!(
        (than.variant.as_deref(), than.measured, than.min),
        (Some("a"), Some(4.0), Some(1.5))
    );

    let rising = judge(
        "metric = \"links.l.drops\"\nvariant = [\"c\", \"a\", \"b\"]\nthan = \
            { preceding = true }\nmin = 1",
    );
    assert!(rising[2].is_empty() && rising[0][0].inside && rising[1][0].inside, "0, 4, 10");
    let falling = judge(
        "metric = \"links.l.drops\"\nvariant = [\"c\", \"a\", \"b\"]\nthan = \
            { preceding = true }\nmax = 1",
    );
    assert!(!falling[0][0].inside && !falling[1][0].inside);

    let own = judge(
        "metric = \"links.l.drops\"\nvariant = \"b\"\nthan = \
        { metric = \"links.l.lost\" }\nmin = 2",
    )
    .remove(1)
    .remove(0);
    assert_eq!(
        (own.min, own.inside, own.than.unwrap().metric.as_deref()),
        (Some(10.0), true, Some("links.l.lost"))
    );

    let nothing = judge(
        "metric = \"links.l.drops\"\nvariant = \"b\"\nthan = \
            { metric = \"links.l.phi_mean\" }\nmin = 0",
    )
    .remove(1)
    .remove(0);
    assert!(!nothing.inside && nothing.min.is_none(), "no number to compare with");

    let scenarios = load(
        Path::new("x.toml"),
        &text("metric = \"jain\"\nthan = \"a\"\nmin = 1"),
        &Overrides::none(),
    )
    .unwrap();
    assert!(
        evaluate_variants(&scenarios[1..], &runs[1..]).iter().all(Vec::is_empty),
        "the other was not run"
    );
}
