//! What files turn into.

use std::path::Path;

use xcp_scenario::model::{Congestion, Limit, LossPlace, Queue, Recovery, Sampling, Scenario, Traffic, UdpPattern, WireFormat};
use xcp_scenario::units::Period;
use xcp_scenario::{Overrides, load};

const FOUR_FLOWS: &str = include_str!("files/good/four-flows.toml");

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
    let Queue::Xcp { limit, law } = &s.links[1].directions[0].queue else { panic!("not an xcp queue") };
    // 2 x 10 Mbit/s x 500 ms / 8
    assert_eq!(*limit, Limit::Bytes(1_250_000));
    assert_eq!((law.alpha, law.beta, law.gamma, law.pools), (0.4, 0.226, 0.1, true));
    assert!(matches!(s.links[1].directions[1].queue, Queue::Xcp { limit: Limit::Bytes(1_250_000), .. }), "both directions");
    assert!(matches!(s.links[0].directions[0].queue, Queue::DropTail { limit: Limit::Packets(1000) }));
    let names: Vec<&str> = s.flows.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["flow-1", "flow-2", "flow-3", "flow-4"]);
    assert_eq!((s.flows[0].route.as_slice(), s.flows[0].return_route.as_slice()), (&[0, 2][..], &[3, 1][..]));
    let Traffic::Tcp(tcp) = &s.flows[3].traffic else { panic!("not TCP") };
    assert_eq!((tcp.congestion, tcp.recovery, tcp.paced, tcp.wire), (Congestion::Xcp, Recovery::Sack, true, WireFormat::Extended));
    assert_eq!((tcp.initial_window, tcp.rto_min, tcp.receive_buffer), (10, 200_000_000, None));
}
