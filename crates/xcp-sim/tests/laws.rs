//! The named laws: the scenario's are the engine's, what they do to shares is what their papers' equations say, and a law that takes another's
//! place during a run does so then.

use std::path::Path;

use xcp_engine::{Preset, RouterConfig};
use xcp_scenario::model::Law;
use xcp_scenario::run::{Quantity, Run, Subject};
use xcp_scenario::{Overrides, load};

#[test]
fn presets_are_the_engines() {
    for preset in Preset::ALL {
        let law = Law::preset(preset.name()).unwrap_or_else(|| panic!("no law {}", preset.name()));
        assert_eq!(xcp_sim::queue::router_config(&law, 8_000_000), RouterConfig::preset(preset, 1_000_000), "{}", preset.name());
    }
}

fn run(text: &str, overrides: &Overrides) -> Run {
    let scenario = load(Path::new("laws.toml"), text, overrides).unwrap_or_else(|e| panic!("{e}")).remove(0);
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
    for t in samples.iter().filter(between(1.0, 1.9)).chain(samples.iter().filter(between(4.7, 5.9))) {
        assert!(d.values[*t] < 0.1, "d is {} s at sample {t}", d.values[*t]);
    }
    for t in samples.iter().filter(between(2.7, 3.9)) {
        assert!((d.values[*t] - 0.22).abs() < 0.01, "d is {} s at sample {t}", d.values[*t]);
    }
    assert!(samples.iter().filter(between(1.0, 3.9)).any(|t| shuffled.values[*t] > 0.0));
    assert!(samples.iter().filter(between(4.7, 5.9)).all(|t| shuffled.values[*t] == 0.0));
}

/// The network of iXCP's Fig. 1, one short and `n` long flows, in either order of the links.
fn two_bottlenecks(law: &str, n: usize, upstream: bool) -> (Run, f64) {
    let (first, second) = if upstream { ("100mbit", "155mbit") } else { ("155mbit", "100mbit") };
    let (from, to) = if upstream { ("b", "c") } else { ("a", "b") };
    let text = format!(
        r#"
        duration = "90s"
        measure = {{ from = "50s" }}
        sample = "off"
        link = [
          {{ name = "one", between = ["a", "b"], rate = "{first}", delay = "20ms", queue = {{ kind = "xcp", law = "{law}", limit = "5000p" }} }},
          {{ name = "two", between = ["b", "c"], rate = "{second}", delay = "20ms", queue = {{ kind = "xcp", law = "{law}", limit = "5000p" }} }},
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

#[test]
fn ixcp_r_fills_both_bottlenecks() {
    for n in [4, 16] {
        for upstream in [false, true] {
            let (_, plain) = two_bottlenecks("xcp", n, upstream);
            let (run, cured) = two_bottlenecks("ixcp-r", n, upstream);
            assert!(cured > 0.995, "{n} flows, upstream {upstream}: {cured}, plain XCP {plain}");
            assert!(plain < 0.98, "{n} flows, upstream {upstream}: plain XCP {plain}");
            assert_eq!(run.summary.links["one"].drops + run.summary.links["two"].drops, 0);
        }
    }
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
        assert!((short.goodput / (20e6 * payload / 1500.0) - 1.0).abs() < 0.02, "{wire}: {}", short.goodput);
    }
}

/// XCP-IR beside datagrams: XCP gives them the room they take, and the queue stands where it was told to.
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
        assert!((link.queue_mean - f64::from(target)).abs() < 25.0, "target {target}: {}", link.queue_mean);
        assert_eq!(link.drops, 0);
    }
}
