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

/// By how much utilisation and mean queue (packets) of a link are greater of the fluid than of
/// packets.
fn more(scenario: &Scenario, link: &str) -> (f64, f64) {
    let moved = fluid(scenario).unwrap();
    let from = scenario.measure.from as f64 / 1e9;
    let l = moved.links.iter().position(|name| name == link).unwrap();
    let run = xcp_sim::simulate(scenario, &mut ()).unwrap();
    let packets = &run.summary.links[link];
    let told = (moved.mean_utilisation(l, from), moved.mean_queue(l, from) / 1500.0);
    println!("{}, {link}: {told:.4?}, {packets:?}", scenario.title);
    (told.0 - packets.utilisation, told.1 - packets.queue_mean)
}

/// They are this close.
fn beside(scenario: &Scenario, link: &str, utilisation: f64, queue: f64) {
    let by = more(scenario, link);
    assert!(by.0.abs() < utilisation && by.1.abs() < queue, "{}, {link}: {by:?}", scenario.title);
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
/// decrease and its increase. Where they come and go within three round trips, windows fall to one
/// packet and parts are as long as d; what comes of it depends on where a part ends, so there it is
/// the mean of several such times that is the same.
#[test]
fn datagrams_that_come_and_go() {
    let come_and_go = |period: u64| {
        let mut scenario = robust("failures/03-udp-beside.toml");
        for flow in &mut scenario.flows {
            if let Traffic::Udp(pattern) = &mut Arc::make_mut(&mut flow.group).traffic {
                let rate = |i: u64| if i.is_multiple_of(2) { 60_000_000 } else { 0 };
                let steps = (0..40_000 / period).map(|i| (i * period * 1_000_000, rate(i)));
                *pattern = UdpPattern::Schedule { steps: steps.collect() };
            }
        }
        scenario
    };
    beside(&come_and_go(1000), "bottleneck", 0.005, 6.0);
    let periods = [220, 240, 260, 280];
    let all = periods.map(|period| more(&come_and_go(period), "bottleneck"));
    let mean = |by: fn(&(f64, f64)) -> f64| all.iter().map(by).sum::<f64>() / periods.len() as f64;
    assert!(mean(|by| by.0).abs() < 0.005 && mean(|by| by.1).abs() < 6.0, "{all:?}");
    // Of more changes than the timeline follows nothing is said.
    assert_eq!(fluid(&come_and_go(2)), Err(NoFluid::Restless));
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
    let changes = "rate-changes = [[\"500ms\", \"5mbit\"]]";
    assert_eq!(file(changes, law, flow), NoFluid::Changes);
    let xcp = "{ kind = \"xcp\", limit = 100 }";
    assert_eq!(file(changes, xcp, "congestion = \"xcp\""), NoFluid::Changes);
}
