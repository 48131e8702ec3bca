//! Congestion controls that are more than a window's arithmetic: all that scenarios can name, and
//! what theory says of Vegas.

use std::path::Path;

use xcp_model::Scenario;
use xcp_model::run::Run;
use xcp_scenario::{CONGESTIONS, Overrides, load};
use xcp_sim::simulate;

fn scenario(text: &str) -> Scenario {
    load(Path::new("test.toml"), text, &Overrides::none())
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
        .remove(0)
}

fn run(text: &str) -> Run {
    simulate(&scenario(text), &mut ()).expect("a run")
}

/// `count` flows of a kind from the same moment on a link of 12 Mbit/s.
fn bottleneck(congestion: &str, count: u32, delay_ms: u32, paced: bool) -> String {
    format!(
        r#"
        duration = "60s"
        measure = {{ from = "20s" }}
        [[link]]
        name = "line"
        between = ["A", "B"]
        rate = "12mbit"
        delay = "{delay_ms}ms"
        queue = {{ kind = "drop-tail", limit = 1000 }}
        [[flow]]
        from = "A"
        to = "B"
        congestion = "{congestion}"
        count = {count}
        delayed-ack = false
        paced = {paced}
        "#
    )
}

/// A word that the reader accepts and the simulator does not know would be found by users.
#[test]
fn every_word_of_the_language_is_simulated() {
    for word in CONGESTIONS {
        let run = run(&bottleneck(word, 2, 20, false));
        let utilisation = run.summary.links["line"].utilisation;
        assert!(utilisation > 0.95, "{word}: {utilisation}");
    }
}

/// Each flow keeps alpha to beta packets in the queue (Brakmo and Peterson, section 3.2), so that
/// the link is full and nothing is lost.
#[test]
fn vegas_keeps_its_packets_in_the_queue() {
    for (count, delay_ms, paced) in [
        (1, 10, false),
        (1, 50, false),
        (1, 50, true),
        (1, 150, true),
        (4, 50, true),
        (8, 20, true),
    ] {
        let run = run(&bottleneck("vegas", count, delay_ms, paced));
        let link = &run.summary.links["line"];
        let each = link.queue_mean / f64::from(count);
        let jain = run.summary.jain.unwrap();
        let what = format!("{count} flows, {delay_ms} ms, paced {paced}: {link:?}, {jain}");
        assert!((2.0..=4.0).contains(&each), "{what}");
        assert!(link.utilisation > 0.995 && link.drops == 0, "{what}");
        assert!(jain > 0.93, "{what}");
    }
}

/// docs/extend.md shows how a congestion control is added by this one: it has to be this one.
#[test]
fn the_worked_example_is_what_is_compiled() {
    let file = |path: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    };
    let (page, code) = (file("../../docs/extend.md"), file("src/tcp/congestion/vegas.rs"));
    let shown = page.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    assert!(shown == Some(code.as_str()), "copy vegas.rs into docs/extend.md");
}
