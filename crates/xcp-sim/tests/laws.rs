//! The named laws: what they do to shares is what their papers'
//! equations say, and a law that takes another's place during a run does so then.

use std::path::Path;

use xcp_engine::RouterConfig;
use xcp_model::run::{Quantity, Run, Subject};
use xcp_scenario::{Overrides, load};

/// What a scenario may write of intervals is what the engine takes.
#[test]
fn the_longest_interval_is_the_engines() {
    let law = |max: u64| RouterConfig { max_interval_ns: max, ..RouterConfig::xcp(1_000_000) };
    let taken = |max: u64| xcp_engine::Router::new(&law(max), 0, 0).is_ok();
    assert!(taken(1 << 42) && !taken((1 << 42) + 1));
    let written = |max: &str| {
        let text = format!(
            "duration = \"1s\"\n[[link]]\nbetween = [\"S\", \"D\"]\nrate = \"1mbit\"\ndelay \
                = \"1ms\"\n\
             queue = {{ kind = \"xcp\", law = {{ max-interval = \"{max}\" }} }}\n[[flow]]\nfrom \
                = \"S\"\nto = \"D\"\ncongestion = \"xcp\"\n"
        );
        load(Path::new("laws.toml"), &text, &Overrides::none()).map_err(|e| e.to_string())
    };
    assert!(
        written("4398.046511104s").is_ok() && written("4398.046511105s").is_err(),
        "{:?}",
        written("4398.046511104s")
    );
}

/// A flow over 4 s of path beside one over 20 ms. Its RTT keeps the router from looking for two
/// seconds at a time; with `max-interval` it counts as no more than that, and `min-interval` holds
/// the other way.
#[test]
fn intervals_are_bounded_where_the_law_says_so() {
    let longest = |law: &str| {
        let text = format!(
            r#"
            duration = "40s"
            sample = "100ms"
            link = [
              {{ name = "far", between = ["S", "R"], rate = "200mbit", delay = "2s" }},
              {{ name = "bottleneck", between = ["R", "D"], rate = "20mbit", delay = "10ms", queue = {{ kind = "xcp", law = {{ {law} }} }} }},
            ]
            flow = [
              {{ name = "long", from = "S", to = "D", congestion = "xcp" }},
              {{ name = "short", from = "R", to = "D", congestion = "xcp" }},
            ]
        "#
        );
        let run = run(&text, &Overrides::none());
        let d = run.find(&Subject::Link("bottleneck".into()), Quantity::ControlInterval).unwrap();
        let later = &d.values.to_vec()[200..];
        (
            later.iter().copied().fold(f64::INFINITY, f64::min),
            later.iter().copied().fold(0.0, f64::max),
        )
    };
    let free = longest("");
    assert!(free.1 > 1.9, "the mean of 4.02 s and 0.02 s: {free:?}");
    let bounded = longest("max-interval = \"200ms\"");
    assert!(bounded.1 > 0.1 && bounded.1 <= 0.2, "no RTT counts as more than 0.2 s: {bounded:?}");
    let slow = longest("min-interval = \"3s\"");
    assert_eq!(slow, (3.0, 3.0));
}

fn run(text: &str, overrides: &Overrides) -> Run {
    let scenario =
        load(Path::new("laws.toml"), text, overrides).unwrap_or_else(|e| panic!("{e}")).remove(0);
    xcp_sim::simulate(&scenario, &mut ()).unwrap()
}

#[test]
fn laws_change_when_they_should() {
    let text = r#"
        duration = "6s"
        sample = "50ms"
        link = [
          { name = "far", between = ["S", "R"], rate = "200mbit", delay = "100ms" },
          { name = "bottleneck", between = ["R", "D"], rate = "100mbit", delay = "10ms",
            queue = { kind = "xcp", law-changes = [{ at = "2s", law = "max-rtt" }, { at = "4s", law = { preset = "xcp", gamma = 0 } }] } },
        ]
        flow = [
          { name = "long", from = "S", to = "D", congestion = "xcp" },
          { name = "short", count = 3, from = "R", to = "D", congestion = "xcp" },
        ]
    "#
    .replace(",\n            queue", ", queue");
    let run = run(&text, &Overrides::none());
    let series = |quantity| run.find(&Subject::Link("bottleneck".into()), quantity).unwrap();
    let d = series(Quantity::ControlInterval);
    let shuffled = series(Quantity::Shuffled);
    let between = |from: f64, to: f64| move |t: &&usize| (from..to).contains(&(**t as f64 * 0.05));
    let samples: Vec<usize> = (0..d.values.len()).collect();
    // The mean RTT is 75 ms, the longest 220 ms. An interval or two after the change.
    for t in
        samples.iter().filter(between(1.0, 1.9)).chain(samples.iter().filter(between(4.7, 5.9)))
    {
        assert!(
            d.values.get(*t).unwrap() < 0.1,
            "d is {} s at sample {t}",
            d.values.get(*t).unwrap()
        );
    }
    for t in samples.iter().filter(between(2.7, 3.9)) {
        assert!(
            (d.values.get(*t).unwrap() - 0.22).abs() < 0.01,
            "d is {} s at sample {t}",
            d.values.get(*t).unwrap()
        );
    }
    assert!(
        samples.iter().filter(between(1.0, 3.9)).any(|t| shuffled.values.get(*t).unwrap() > 0.0)
    );
    assert!(
        samples.iter().filter(between(4.7, 5.9)).all(|t| shuffled.values.get(*t).unwrap() == 0.0)
    );
}

/// The network of iXCP's Fig. 1, one short and `n` long flows, in either order of the links: what
/// the wide link is used to, once settled.
fn two_bottlenecks(law: &str, n: usize, upstream: bool) -> (Run, f64) {
    let (first, second) = if upstream { ("100mbit", "155mbit") } else { ("155mbit", "100mbit") };
    let (from, to) = if upstream { ("b", "c") } else { ("a", "b") };
    let text = format!(
        r#"
        duration = "90s"
        measure = {{ from = "50s" }}
        sample = "off"
        link = [
          {{ name = "one", between = ["a", "b"], rate = "{first}", delay = "20ms", queue = {{ kind = "xcp", law = {law}, limit = "5000p" }} }},
          {{ name = "two", between = ["b", "c"], rate = "{second}", delay = "20ms", queue = {{ kind = "xcp", law = {law}, limit = "5000p" }} }},
        ]
        flow = [
          {{ name = "long", count = {n}, from = "a", to = "c", congestion = "xcp", packet = 1000, start-jitter = "100ms" }},
          {{ name = "short", from = "{from}", to = "{to}", congestion = "xcp", packet = 1000 }},
        ]
        "#
    );
    let run = run(&text, &Overrides::none());
    let wide = if upstream { "two" } else { "one" };
    let utilisation = run.summary.links[wide].utilisation;
    (run, utilisation)
}

/// Utilisation of the wide link where the short flow's positive feedback, of which spare bandwidth
/// counts `times` as much, balances what it loses to the shuffle: (h + times * phi) / (N r) = h /
/// y, h + phi = gamma y, phi = alpha (c - y) (Low, Andrew & Wydrowski 2005 for `times` = 1).
fn balance(n: usize, times: f64) -> f64 {
    let (alpha, gamma, c, others, flows) = (0.4, 0.1, 155.0, 100.0, n as f64 + 1.0);
    let gain = |r: f64| {
        let y = others + r;
        let phi = alpha * (c - y);
        let h = (gamma * y - phi).max(0.0);
        (h + times * phi) / (flows * r) - h / y
    };
    let (mut low, mut high) = (1.0, c - others);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if gain(middle) > 0.0 { low = middle } else { high = middle }
    }
    (others + low) / c
}

#[test]
fn xcp_rests_where_low_andrew_and_wydrowski_say() {
    for (n, known) in [(2, 0.9896), (4, 0.9227), (16, 0.8423), (64, 0.8122)] {
        let theory = balance(n, 1.0);
        assert!((theory - known).abs() < 1e-4, "{n}: {theory}");
        // Only the tight link downstream: upstream, pools book what the tight link has already
        // refused as taken.
        let (_, is) = two_bottlenecks("\"xcp\"", n, false);
        assert!((is - theory).abs() < 0.005, "{n} flows: {is}, theory {theory}");
    }
}

/// Where the tight link is upstream, P-XCP knows that the long flows are not its own, and scales by
/// N / N_b up to its bound; where it is downstream it does not, and is XCP.
#[test]
fn p_xcp_rests_where_its_scaling_says() {
    for (n, most) in [(4, 255), (16, 255), (16, 4), (64, 8)] {
        let law = format!("{{ preset = \"p-xcp\", pools = false, spare-most = {most} }}");
        let theory = balance(n, (n as f64 + 1.0).min(f64::from(most)));
        let (_, is) = two_bottlenecks(&law, n, true);
        assert!((is - theory).abs() < 0.01, "{n} flows, at most {most}: {is}, theory {theory}");
    }
    let (_, downstream) = two_bottlenecks("\"p-xcp\"", 16, false);
    assert!((downstream - balance(16, 1.0)).abs() < 0.005, "{downstream}");
}

#[test]
fn ixcp_r_fills_both_bottlenecks() {
    for n in [4, 16, 64] {
        for upstream in [false, true] {
            let (run, cured) = two_bottlenecks("\"ixcp-r\"", n, upstream);
            assert!(cured > 0.995, "{n} flows, upstream {upstream}: {cured}");
            assert_eq!(run.summary.links["one"].drops + run.summary.links["two"].drops, 0);
        }
    }
}

/// iXCP's Fig. 6 and 7: the shares that are max-min fair while flows come and go, under the cured
/// rule.
#[test]
fn ixcp_r_follows_bottlenecks_that_move() {
    let text = r#"
        duration = "60s"
        sample = "100ms"
        link = [
          { name = "l1", between = ["a", "b"], rate = "150mbit", delay = "20ms", queue = { kind = "xcp", law = "ixcp-r", limit = "5000p" } },
          { name = "l2", between = ["b", "c"], rate = "100mbit", delay = "20ms", queue = { kind = "xcp", law = "ixcp-r", limit = "5000p" } },
          { name = "l3", between = ["c", "d"], rate = "120mbit", delay = "20ms", queue = { kind = "xcp", law = "ixcp-r", limit = "5000p" } },
        ]
        flow = [
          { name = "long", from = "a", to = "d", congestion = "xcp", packet = 1000 },
          { name = "s1", from = "a", to = "b", congestion = "xcp", packet = 1000 },
          { name = "s2", from = "b", to = "c", congestion = "xcp", packet = 1000 },
          { name = "s3", from = "c", to = "d", congestion = "xcp", packet = 1000 },
          { name = "s4", from = "c", to = "d", congestion = "xcp", packet = 1000, stop = "40s" },
          { name = "more", count = 3, from = "a", to = "b", congestion = "xcp", packet = 1000, start = "20s", stop = "40s" },
        ]
    "#;
    for (from, to, shares) in [
        (
            "10s",
            "20s",
            vec![("long", 40.0), ("s1", 110.0), ("s2", 60.0), ("s3", 40.0), ("s4", 40.0)],
        ),
        (
            "30s",
            "40s",
            vec![
                ("long", 30.0),
                ("s1", 30.0),
                ("s2", 70.0),
                ("s3", 45.0),
                ("s4", 45.0),
                ("more-1", 30.0),
                ("more-3", 30.0),
            ],
        ),
        ("50s", "60s", vec![("long", 50.0), ("s1", 100.0), ("s2", 50.0), ("s3", 70.0)]),
    ] {
        let period = Overrides::none()
            .with("measure.from", format!("\"{from}\""))
            .with("measure.to", format!("\"{to}\""));
        let run = run(text, &period);
        for (name, mbit) in shares {
            let flow = run.summary.flows.iter().find(|f| f.name.to_string() == name).unwrap();
            // 928 of 1000 bytes are payload: 52 of headers and timestamps, 20 of XCP with its ids.
            let share = flow.goodput / 0.928 / 1e6;
            assert!(
                (share / mbit - 1.0).abs() < 0.03,
                "{name} from {from}: {share} of {mbit} Mbit/s"
            );
        }
        for link in ["l1", "l2", "l3"] {
            assert!(
                run.summary.links[link].utilisation > 0.99,
                "{link} from {from}: {}",
                run.summary.links[link].utilisation
            );
        }
    }
}

/// The network of "An Example of Instability in XCP": one RTT 5.5 times the mean, windows clocked
/// by acknowledgements.
#[test]
fn longest_rtt_and_own_rtt_settle_where_xcp_does_not() {
    let shares = |law: &str, paced: bool| {
        let text = format!(
            r#"
            duration = "60s"
            measure = {{ from = "40s" }}
            sample = "off"
            link = [
              {{ name = "L1", between = ["a", "b"], rate = "1gbit", delay = "10ms", queue = {{ kind = "xcp", law = "{law}", limit = "30000p" }} }},
              {{ name = "L2", between = ["b", "c"], rate = "2gbit", delay = "100ms", queue = {{ kind = "xcp", law = "{law}", limit = "30000p" }} }},
            ]
            flow = [
              {{ name = "long", from = "a", to = "c", congestion = "xcp", packet = 1000, paced = {paced}, delayed-ack = false }},
              {{ name = "short", count = 9, from = "a", to = "b", congestion = "xcp", packet = 1000, paced = {paced}, delayed-ack = false }},
            ]
            "#
        );
        let run = run(&text, &Overrides::none());
        let long = run.summary.flows.iter().find(|f| f.name.to_string() == "long").unwrap();
        (long.goodput / 0.936 / 1e6, run.summary.links["L1"].utilisation, run.summary.jain.unwrap())
    };
    for (law, paced) in [("max-rtt", false), ("own-rtt", false), ("own-rtt", true), ("xcp", true)] {
        let (long, utilisation, jain) = shares(law, paced);
        assert!(
            (long - 100.0).abs() < 3.0 && utilisation > 0.998 && jain > 0.999,
            "{law}, paced {paced}: {long} Mbit/s, {utilisation}, {jain}"
        );
    }
    let (long, utilisation, jain) = shares("xcp", false);
    assert!(utilisation < 0.95 && long < 80.0, "xcp: {long} Mbit/s, {utilisation}, {jain}");
}

/// With ids or without, in either format, the same: ids cost bytes, nothing else.
#[test]
fn ids_travel_in_both_formats() {
    for wire in ["extended", "classic"] {
        let text = format!(
            r#"
            duration = "20s"
            measure = {{ from = "10s" }}
            sample = "off"
            link = [
              {{ name = "one", between = ["a", "b"], rate = "40mbit", delay = "10ms", queue = {{ kind = "xcp", law = "ixcp-r" }} }},
              {{ name = "two", between = ["b", "c"], rate = "20mbit", delay = "10ms", queue = {{ kind = "xcp", law = "ixcp-r" }} }},
            ]
            flow = [
              {{ name = "long", count = 4, from = "a", to = "c", congestion = "xcp", wire = "{wire}", access-id = true }},
              {{ name = "short", from = "a", to = "b", congestion = "xcp", wire = "{wire}" }},
            ]
            "#
        );
        let run = run(&text, &Overrides::none());
        let link = &run.summary.links["one"];
        assert!(link.utilisation > 0.99, "{wire}: {}", link.utilisation);
        // The 1500 bytes hold 52 of headers and timestamps, 12 or 8 of XCP, and 8 of ids.
        let short = run.summary.flows.iter().find(|f| f.name.to_string() == "short").unwrap();
        let payload = 1500.0 - 52.0 - if wire == "classic" { 16.0 } else { 20.0 };
        assert!(
            (short.goodput / (20e6 * payload / 1500.0) - 1.0).abs() < 0.02,
            "{wire}: {}",
            short.goodput
        );
    }
}

/// XCP-IR beside datagrams: XCP gives them the room they take, and the queue stands where it was
/// told to.
#[test]
fn xcp_ir_leaves_others_what_they_take() {
    let text = r#"
        duration = "40s"
        measure = { from = "20s" }
        sample = "off"
        link = [{ name = "bottleneck", between = ["S", "D"], rate = "50mbit", delay = "25ms", queue = { kind = "xcp", law = "xcp-ir", limit = "4000p" } }]
        flow = [
          { name = "data", count = 4, from = "S", to = "D", congestion = "xcp", packet = 1000 },
          { name = "noise", from = "S", to = "D", packet = 1000, udp = { rate = "20mbit" } },
        ]
    "#;
    for target in [0, 100] {
        let run = run(text, &Overrides::none().with("queue.target", format!("{target}p")));
        let link = &run.summary.links["bottleneck"];
        assert!(link.utilisation > 0.99, "target {target}: {}", link.utilisation);
        assert!(
            (link.queue_mean - f64::from(target)).abs() < 25.0,
            "target {target}: {}",
            link.queue_mean
        );
        assert_eq!(link.drops, 0);
    }
}

/// The line drops to a quarter of its rate and comes back. A router that is told keeps its queue
/// short from then on; one whose law has a capacity of its own goes on believing in it.
#[test]
fn a_router_is_told_of_its_rate_unless_it_has_a_capacity() {
    let queue = |law: &str| {
        let text = format!(
            r#"
            duration = "60s"
            sample = "100ms"
            link = [
              {{ name = "bottleneck", between = ["S", "D"], rate = "20mbit", delay = "20ms", rate-changes = [["20s", "5mbit"], ["40s", "20mbit"]], queue = {{ kind = "xcp", limit = "1000p", law = {law} }} }},
            ]
            flow = [{{ name = "flow", count = 4, from = "S", to = "D", congestion = "xcp" }}]
        "#
        );
        let run = run(&text, &Overrides::none());
        let bottleneck = Subject::Link("bottleneck".into());
        let of = |quantity| run.find(&bottleneck, quantity).unwrap().values.to_vec();
        let mean = |values: &[f64], from: usize, to: usize| {
            values[from..to].iter().sum::<f64>() / (to - from) as f64
        };
        let (waiting, used) = (of(Quantity::QueueMean), of(Quantity::Utilisation));
        (mean(&waiting, 300, 400), mean(&used, 300, 400), mean(&used, 450, 600))
    };
    let (told, used, again) = queue("{ preset = \"xcp\" }");
    assert!(told < 10.0 && used > 0.97 && again > 0.97, "{told} packets, {used}, {again}");
    let (untold, used, again) = queue("{ preset = \"xcp\", capacity = \"20mbit\" }");
    assert!(untold > 50.0 && used > 0.99 && again > 0.97, "{untold} packets, {used}, {again}");
}
