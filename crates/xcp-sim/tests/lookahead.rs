//! Packets that go ahead to the next link before their time must leave no trace. A recorder that
//! looks more often than any link is long keeps all of them back; so the same scenario with and
//! without such a recorder must come out the same, to the last packet.

use std::path::Path;

use proptest::prelude::*;
use xcp_model::run::Run;
use xcp_scenario::{Overrides, load};

fn run(text: &str, sample: &str) -> Run {
    let overrides = Overrides::none().with("sample", format!("\"{sample}\""));
    let scenarios =
        load(Path::new("test.toml"), text, &overrides).unwrap_or_else(|e| panic!("{e}"));
    xcp_sim::simulate(&scenarios[0], &mut ()).unwrap_or_else(|e| panic!("{e}"))
}

/// A chain with a branch in the middle, every kind of queue and loss, flows both ways.
fn chain(
    seed: u64,
    rates: &[u64],
    queues: &[&str],
    loss: f64,
    congestion: &str,
    overtaken: usize,
) -> String {
    let mut text = format!(
        "title = \"chain\"\nduration = \"2s\"\nseed = {seed}\nmeasure = \
            {{ from = \"300ms\", to = \"1900ms\" }}\n"
    );
    for (i, (rate, queue)) in rates.iter().zip(queues).enumerate() {
        text += &format!(
            "[[link]]\nname = \"l{i}\"\nbetween = [\"n{i}\", \"n{}\"]\nrate \
                = \"{rate}mbit\"\ndelay = \"{}ms\"\n\
             loss = [{{ probability = {loss} }}, \
                {{ probability = {loss}, place = \"after-queue\" }}]\n\
             queue = {{ kind = \"{queue}, limit = 40 }}\nblackout = \
                [{{ from = \"1s\", to = \"1050ms\" }}]\n",
            i + 1,
            1 + i
        );
        if i == overtaken {
            text += "reorder = { probability = 0.1, most = \"3ms\" }\n";
        }
    }
    let last = rates.len();
    text += "[[link]]\nname = \"branch\"\nbetween = [\"n1\", \"side\"]\nrate = \"5mbit\"\ndelay \
        = \"2ms\"\nmedium = \"hub\"\n";
    for (name, from, to) in [
        ("along", "n0".to_string(), format!("n{last}")),
        ("back", format!("n{last}"), "n0".into()),
        ("out", "n0".into(), "side".into()),
    ] {
        text += &format!(
            "[[flow]]\nname = \"{name}\"\ncount = 2\nfrom = \"{from}\"\nto = \"{to}\"\ncongestion \
                = \"{congestion}\"\nstart-jitter = \"50ms\"\n"
        );
    }
    text += &format!(
        "[[flow]]\nname = \"cross\"\nfrom = \"n0\"\nto = \"n{last}\"\npacket = 300\nudp = \
            {{ pattern = \"poisson\", rate = \"1mbit\" }}\n"
    );
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn going_ahead_changes_nothing(
        seed in 0u64..1000,
        rates in prop::collection::vec(2u64..40, 2..5),
        queues in prop::collection::vec(prop::sample::select(vec![
            "drop-tail\"",
            "red\"",
            "xcp\"",
            "xcp\", others = \"first\"",
            "xcp\", others = \"split\"",
        ]), 4),
        loss in prop::sample::select(vec![0.0, 0.02]),
        congestion in prop::sample::select(vec!["xcp", "sack", "cubic", "newreno"]),
        // Which of the links keeps no order, if there are so many.
        overtaken in 0usize..8,
    ) {
        let text = chain(seed, &rates, &queues, loss, congestion, overtaken);
        let (held_back, ahead) = (run(&text, "500us"), run(&text, "off"));
        prop_assert_eq!(&held_back.summary.links, &ahead.summary.links);
        for (a, b) in held_back.summary.flows.iter().zip(&ahead.summary.flows) {
            // The mean window is the mean of the recorder's samples.
            let b = xcp_model::run::FlowSummary { cwnd_mean: a.cwnd_mean, ..b.clone() };
            prop_assert_eq!(a, &b);
        }
    }
}
