//! The fluid of the robust law beside its packets.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::scenario;
use xcp_model::{Scenario, Traffic, UdpPattern};
use xcp_scenario::{Overrides, load};
use xcp_theory::fluid::{NoFluid, fluid};

/// The variant `robust` of an experiment.
fn robust(file: &str) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    load(&path, &text, &Overrides::none().only(&["robust".to_owned()])).unwrap().remove(0)
}

/// Utilisation and mean queue (packets) of a link, of the fluid and of packets, are this close.
fn beside(scenario: &Scenario, link: &str, utilisation: f64, queue: f64) {
    let moved = fluid(scenario).unwrap();
    let from = scenario.measure.from as f64 / 1e9;
    let l = moved.links.iter().position(|name| name == link).unwrap();
    let run = xcp_sim::simulate(scenario, &mut ()).unwrap();
    let packets = &run.summary.links[link];
    let told = (moved.mean_utilisation(l, from), moved.mean_queue(l, from) / 1500.0);
    println!("{}, {link}: {told:.4?}, {packets:?}", scenario.title);
    assert!(
        (told.0 - packets.utilisation).abs() < utilisation
            && (told.1 - packets.queue_mean).abs() < queue,
        "{}, {link}: {told:?}, {packets:?}",
        scenario.title
    );
}

#[test]
fn lasting_flows_fill_the_link_with_a_queue_of_two_packets() {
    for file in ["beyond/01-one-flow.toml", "beyond/05-round-trips-by-twenty.toml"] {
        beside(&robust(file), "bottleneck", 0.003, 1.5);
    }
    beside(&robust("failures/06-unequal-round-trips.toml"), "bottleneck", 0.003, 1.5);
}

/// Flows that join (with first windows that are more than the path holds) and leave.
#[test]
fn flows_join_and_leave() {
    beside(&robust("failures/01-joining-and-leaving.toml"), "bottleneck", 0.01, 20.0);
}

/// All flows of a class change their minds at once on which link limits them, which makes a queue
/// that packets do not have, and leaves up to a hundredth of the second link unused.
#[test]
fn two_bottlenecks_have_their_max_min_shares() {
    let scenario = robust("failures/05-two-bottlenecks.toml");
    beside(&scenario, "bottleneck", 0.005, 15.0);
    beside(&scenario, "second", 0.01, 15.0);
    let moved = fluid(&scenario).unwrap();
    for (class, fair) in [(0, 6.25e6), (1, 55e6)] {
        let mean = moved.motion(class, 20.0).unwrap().mean;
        assert!((mean / fair - 1.0).abs() < 0.01, "{mean}, not {fair}");
    }
}

/// Datagrams at 60 % of the link, half of the time: the calendar's queue a round trip ahead, its
/// decrease and its increase.
#[test]
fn datagrams_that_come_and_go() {
    for period in [1000, 250, 50] {
        let mut scenario = robust("failures/03-udp-beside.toml");
        for flow in &mut scenario.flows {
            if let Traffic::Udp(pattern) = &mut Arc::make_mut(&mut flow.group).traffic {
                let rate = |i: u64| if i.is_multiple_of(2) { 60_000_000 } else { 0 };
                let steps = (0..40_000 / period).map(|i| (i * period * 1_000_000, rate(i)));
                *pattern = UdpPattern::Schedule { steps: steps.collect() };
            }
        }
        // More changes than the timeline follows are seen by their mean.
        if period > 100 {
            beside(&scenario, "bottleneck", 0.005, 6.0);
        } else {
            assert!(fluid(&scenario).unwrap().mean_utilisation(0, 20.0) > 0.99);
        }
    }
}

#[test]
fn what_the_fluid_does_not_know_of_the_robust_law_it_says() {
    let file = |link: &str, queue: &str, flow: &str| {
        fluid(&scenario(&format!(
            "duration = \"1s\"\n[[link]]\nname = \"l\"\nbetween = [\"S\", \"D\"]\nrate = \
             \"10mbit\"\ndelay = \"10ms\"\n{link}\nqueue = {queue}\n[[link]]\nname = \
             \"m\"\nbetween = [\"D\", \"E\"]\nrate = \"2mbit\"\ndelay = \"1ms\"\n[[flow]]\nname = \
             \"f\"\nfrom = \"S\"\nto = \"D\"\n{flow}\n"
        )))
        .map(|_| ())
        .unwrap_err()
    };
    let (law, flow) =
        ("{ kind = \"xcp\", law = \"robust\", limit = 100 }", "congestion = \"xcp-robust\"");
    let more = "congestion = \"xcp-robust\"\n[[flow]]\nname = \"g\"\nfrom = \"S\"\n";
    assert_eq!(file("", law, "congestion = \"xcp\""), NoFluid::Mixed);
    assert_eq!(file("", "{ kind = \"xcp\", limit = 100 }", flow), NoFluid::Mixed);
    let other = format!("{more}to = \"D\"\ncongestion = \"cubic\"");
    assert_eq!(file("", law, &other), NoFluid::OtherTcp);
    let further = format!("{more}to = \"E\"\ncongestion = \"xcp-robust\"");
    assert_eq!(file("", law, &further), NoFluid::ForeignQueue);
    assert_eq!(file("rate-changes = [[\"500ms\", \"5mbit\"]]", law, flow), NoFluid::Changes);
}
