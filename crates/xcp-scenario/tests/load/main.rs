//! What files turn into. Here are the first example, sampling, and the smallest file, of which each
//! module changes what it is about.

mod expectations;
mod flows;
mod lies;
mod links;
mod members;
mod queues;
mod size;
mod variants;

use std::path::Path;

use xcp_model::units::Period;
use xcp_model::{
    Congestion, Discipline, Limit, Queue, Recovery, Router, Sampling, Scenario, Traffic, WireFormat,
};
use xcp_scenario::{Overrides, load};

const FOUR_FLOWS: &str = include_str!("../files/good/four-flows.toml");

fn read(text: &str) -> Vec<Scenario> {
    load(Path::new("test.toml"), text, &Overrides::none()).unwrap_or_else(|e| panic!("{e}"))
}

fn one(text: &str) -> Scenario {
    let mut all = read(text);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn the_first_example() {
    let s = one(FOUR_FLOWS);
    assert_eq!(s.title, "Four XCP flows, 10 Mbit/s, 500 ms");
    assert_eq!((s.duration, s.seed), (60_000_000_000, 1));
    assert_eq!(s.measure, Period { from: 20_000_000_000, to: 60_000_000_000 });
    assert_eq!(s.sample, Sampling::Every(100_000_000));
    assert_eq!(s.nodes, ["S", "R", "D"]);
    assert_eq!(s.links[0].name, "S-R");
    let Queue { limit, discipline: Discipline::Xcp(Router { law, .. }), .. } =
        &s.links[1].directions[0].queue
    else {
        panic!("not an xcp queue")
    };
    // 2 x 10 Mbit/s x 500 ms / 8
    assert_eq!(*limit, Limit::Bytes(1_250_000));
    assert_eq!(
        (law.config.alpha, law.config.beta, law.config.gamma, law.config.pools),
        (0.4, 0.226, 0.1, true)
    );
    assert!(
        matches!(
            s.links[1].directions[1].queue,
            Queue { limit: Limit::Bytes(1_250_000), discipline: Discipline::Xcp(_), .. }
        ),
        "both directions"
    );
    assert!(matches!(
        s.links[0].directions[0].queue,
        Queue { limit: Limit::Packets(1000), discipline: Discipline::DropTail, .. }
    ));
    let names: Vec<String> = s.flows.iter().map(|f| f.name().to_string()).collect();
    assert_eq!(names, ["flow-1", "flow-2", "flow-3", "flow-4"]);
    assert_eq!(
        (s.flows[0].group.route.as_slice(), s.flows[0].group.return_route.as_slice()),
        (&[0, 2][..], &[3, 1][..])
    );
    let Traffic::Tcp(tcp) = &s.flows[3].traffic() else { panic!("not TCP") };
    assert_eq!(
        (&tcp.congestion, tcp.recovery, tcp.paced, tcp.wire),
        (&Congestion::Xcp, Recovery::Sack, true, WireFormat::Extended)
    );
    assert_eq!((tcp.initial_window, tcp.rto_min, tcp.receive_buffer), (10, 200_000_000, None));
}

const LINK: &str = "[[link]]\nbetween = [\"S\", \"D\"]\nrate = \"10mbit\"\ndelay = \"10ms\"\n";
const FLOW: &str = "[[flow]]\nfrom = \"S\"\nto = \"D\"\ncongestion = \"reno\"\n";

/// A smallest file with lines added to its link, its flow and its end.
fn small(link: &str, flow: &str, end: &str) -> String {
    format!("duration = \"60s\"\n{LINK}{link}\n{FLOW}{flow}\n{end}\n")
}

#[test]
fn sampling() {
    let sample = |top: &str| {
        one(&format!("{top}\n{}", small("", "", "").replacen("duration = \"60s\"", "", 1))).sample
    };
    assert_eq!(sample("duration = \"60s\""), Sampling::Every(100_000_000));
    assert_eq!(sample("duration = \"61s\""), Sampling::Every(100_000_000));
    assert_eq!(sample("duration = \"59s\""), Sampling::Every(50_000_000));
    assert_eq!(sample("duration = \"1us\""), Sampling::Every(1_000_000));
    assert_eq!(sample("duration = \"1s\"\nsample = \"5ms\""), Sampling::Every(5_000_000));
    assert_eq!(sample("duration = \"1s\"\nsample = \"rtt\""), Sampling::PerRtt(20_000_000));
    assert_eq!(sample("duration = \"1s\"\nsample = \"off\""), Sampling::Off);
}
