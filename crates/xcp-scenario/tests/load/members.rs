//! Groups of flows: how their members are named, when they start, and what the seed draws for them.

use std::path::Path;

use xcp_model::Scenario;
use xcp_scenario::{Overrides, load};

use crate::{one, small};

#[test]
fn groups() {
    let s = one(&small(
        "",
        "name = \"g\"\ncount = 3\nstart = \"1s\"\nstagger = \"500ms\"\nstart-jitter \
            = \"10ms\"\nstop = \"9s\"",
        "",
    ));
    let got: Vec<_> = s
        .flows
        .iter()
        .map(|f| {
            (f.name().to_string(), &*f.group.name, f.start, f.group.start_jitter, f.group.stop)
        })
        .collect();
    let stop = Some(9_000_000_000);
    let jitter = 10_000_000;
    assert_eq!(
        got,
        [("g-1", 1_000_000_000), ("g-2", 1_500_000_000), ("g-3", 2_000_000_000)]
            .map(|(name, start)| (name.to_owned(), "g", start, jitter, stop))
    );
    assert_eq!(one(&small("", "", "")).flows[0].name(), "flow".into());
    assert_eq!(one(&small("", "count = 1", "")).flows[0].name(), "flow-1".into());
}

/// Start and size of each member of a group.
fn members(s: &Scenario, group: &str) -> Vec<(u64, Option<u64>)> {
    s.flows.iter().filter(|f| &*f.group.name == group).map(|f| (f.start, f.bytes())).collect()
}

const WEB: &str = "name = \"web\"\nstart = \"1s\"\narrivals = \"15ms\"\nbytes = \
    { mean = \"30kb\", distribution = \"pareto\", shape = 1.2 }";

#[test]
fn arrivals_last_until_the_end_or_the_count() {
    let s = one(&small("", WEB, ""));
    let all = members(&s, "web");
    // 59 s hold 3933 of them; four standard deviations are 251.
    assert!((3680..4190).contains(&all.len()), "{}", all.len());
    assert!(
        all.is_sorted_by_key(|m| m.0)
            && all[0].0 > 1_000_000_000
            && all.last().unwrap().0 < 60_000_000_000
    );
    assert_eq!((s.flows[0].name(), s.flows[9].name()), ("web-1".into(), "web-10".into()));
    // Fewer of them, or a shorter time, are the first of the same flows.
    assert_eq!(members(&one(&small("", &format!("count = 100\n{WEB}"), "")), "web"), all[..100]);
    assert_eq!(members(&one(&small("", &format!("count = 100000\n{WEB}"), "")), "web"), all);
    let stopped = members(&one(&small("", &format!("stop = \"5s\"\n{WEB}"), "")), "web");
    assert_eq!(stopped, all.iter().copied().filter(|m| m.0 < 5_000_000_000).collect::<Vec<_>>());
    // Without count and arrivals a size is drawn too.
    let sole = one(&small("", "bytes = { mean = \"30kb\", distribution = \"exponential\" }", ""));
    assert!(sole.flows[0].bytes().is_some() && sole.flows[0].name() == "flow".into());
    assert_eq!(
        members(&one(&small("", "count = 2\nbytes = { mean = \"30kb\" }", "")), "flow"),
        [(0, Some(30 << 10)); 2]
    );
}

#[test]
fn draws_depend_on_seed_and_name_alone() {
    let read = |seed: u64, web: &str, end: &str| {
        members(&one(&format!("seed = {seed}\n{}", small("", web, end))), "web")
    };
    let drawn = read(5, WEB, "");
    assert_eq!(read(5, WEB, ""), drawn);
    let others = "[[flow]]\nname = \"other\"\nfrom = \"S\"\nto = \"D\"\ncongestion \
        = \"xcp\"\narrivals = \"1ms\"\nbytes = { mean = 9000, distribution = \"exponential\" }";
    assert_eq!(read(5, WEB, others), drawn, "another group changes nothing");
    let other_seed = read(6, WEB, "");
    assert!(
        drawn.iter().zip(&other_seed).all(|(a, b)| a.0 != b.0) && drawn[..50] != other_seed[..50]
    );
    let sizes = |list: &[(u64, Option<u64>)]| list[..1000].iter().map(|m| m.1).collect::<Vec<_>>();
    let slower = read(5, &WEB.replace("15ms", "30ms"), "");
    assert_eq!(sizes(&slower), sizes(&drawn), "arrivals do not change sizes");
    let text = small(
        "",
        WEB,
        "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\nset = \
            { \"flow.congestion\" = \"cubic\", \"flow.web.bytes.max\" = \"1gb\" }",
    );
    let variants =
        load(Path::new("x.toml"), &text, &Overrides::none()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        members(&variants[0], "web"),
        members(&variants[1], "web"),
        "variants meet the same flows"
    );
}
