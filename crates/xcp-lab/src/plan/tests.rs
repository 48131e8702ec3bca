//! Plans as texts to review, and properties of all plans.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::path::Path;

use proptest::prelude::*;
use xcp_scenario::{Overrides, load};

use super::*;

fn machine(family: Family) -> Machine {
    Machine {
        congestions: ["reno", "cubic", "bbr"].map(str::to_owned).to_vec(),
        rto_min: true,
        family,
        offload: false,
    }
}

fn scenario(text: &str) -> Scenario {
    let overrides = Overrides::none().on_kernel(machine(Family::V4).congestions);
    load(Path::new("x.toml"), &format!("duration = \"10s\"\n{text}"), &overrides)
        .unwrap_or_else(|e| panic!("{e}"))
        .remove(0)
}

fn plan(text: &str) -> String {
    Plan::new(&scenario(text), &machine(Family::V4)).unwrap_or_else(|e| panic!("{e}")).to_string()
}

fn refused(text: &str) -> String {
    Plan::new(&scenario(text), &machine(Family::V4)).expect_err("refused").to_string()
}

const LINK: &str = "[[link]]\nbetween = [\"S\", \"D\"]\nrate = \"10mbit\"\ndelay = \"10ms\"\n";
const FLOW: &str = "[[flow]]\nfrom = \"S\"\nto = \"D\"\n";

#[test]
fn a_dumbbell_with_an_xcp_queue() {
    insta::assert_snapshot!(plan(
        "link = [{ between = [\"S\", \"R\"], rate = \"100mbit\", delay = \"0s\" },
                 { name = \"b\", between = [\"R\", \"D\"], rate = \"10mbit\", delay = \"249ms\", queue = { kind = \"xcp\", limit = \"64kb\" },
                   blackout = { from = \"1s\", to = \"2s\", direction = \"forward\" } }]
         flow = [{ count = 2, from = \"S\", to = \"D\", congestion = \"xcp\", stagger = \"1s\", stop = \"9s\", initial-window = 2,
                   receive-buffer = \"64kb\" },
                 { name = \"back\", from = \"D\", to = \"R\", congestion = \"bbr\" },
                 { name = \"u\", from = \"S\", to = \"D\", udp = { rate = \"1mbit\" }, packet = 1000 }]"
    ));
}

#[test]
fn large_packets_where_they_are_wanted() {
    let text = format!("{LINK}queue = \"xcp\"\n{FLOW}congestion = \"xcp\"");
    for (offload, large) in [
        (false, "\nmtu 1486\n"),
        (true, "\nmtu 1486, packets of up to 16 segments, cut up by queues\n"),
    ] {
        let shown = Plan::new(&scenario(&text), &Machine { offload, ..machine(Family::V4) })
            .unwrap_or_else(|e| panic!("{e}"))
            .to_string();
        assert!(
            shown.contains(large) && shown.contains("nobody puts them together") == offload,
            "{shown}"
        );
    }
}

#[test]
fn losses_before_a_queue_have_a_gate() {
    let loss = "loss = [{ probability = 0.01, place = \"before-queue\", direction = \"forward\" }, { probability = 0.02, from = \"1s\" }]";
    insta::assert_snapshot!(plan(&format!("{LINK}{loss}\n{FLOW}congestion = \"cubic\"")));
}

#[test]
fn red_is_the_lines() {
    let reverse = "reverse = { rate = \"100gbit\", queue = \"drop-tail\", delay = \"0s\" }";
    insta::assert_snapshot!(plan(&format!(
        "{LINK}queue = {{ kind = \"red\", limit = 90 }}\n{reverse}\n{FLOW}congestion \
            = \"newreno\"\ndelayed-ack = false\nrto = \"fixed\"\n\
         handshake = false\npaced = true\ninitial-window = 2\nwindow-scaling = false\nsend-buffer \
            = 30000"
    )));
}

#[test]
fn flows_between_the_same_nodes_may_take_different_paths() {
    insta::assert_snapshot!(plan(
        "link = [{ between = [\"S\", \"D\"], rate = \"100gbit\", delay = \"0s\" },
                 { between = [\"S\", \"R\"], rate = \"100gbit\", delay = \"0s\" }, { between = [\"R\", \"D\"], rate = \"100gbit\", delay = \"0s\" }]
         flow = [{ name = \"short\", from = \"S\", to = \"D\", congestion = \"cubic\" },
                 { name = \"long\", from = \"S\", to = \"D\", via = [\"R\"], congestion = \"cubic\" }]"
    ));
}

#[test]
fn what_linux_cannot_do_is_refused() {
    let triangle = |via: &str| {
        format!(
            "link = [{{ between = [\"S\", \"D\"], rate = \"1mbit\", delay = \"1ms\" }}, \
                {{ between = [\"S\", \"R\"], rate = \"1mbit\", delay = \"1ms\" }}]
             flow = [{{ from = \"S\", to = \"D\", via = [{via}], congestion = \"cubic\" }}]"
        )
    };
    let mixed =
        format!("{LINK}{FLOW}congestion = \"cubic\"\n{FLOW}name = \"old\"\ncongestion = \"reno\"");
    let fast = |queue: &str| {
        format!(
            "{}queue = \"{queue}\"\n{FLOW}congestion = \"cubic\"",
            LINK.replace("10mbit", "100gbit")
        )
    };
    let cases = [
        ("packets too small for TCP", format!("{LINK}{FLOW}congestion = \"cubic\"\npacket = 141")),
        (
            "packets too large for TCP",
            format!("{LINK}{FLOW}congestion = \"cubic\"\npacket = 40000"),
        ),
        ("a path through a node twice", triangle("\"R\"")),
        ("with and without SACK", mixed),
        ("RED beyond what can be shaped", fast("red")),
        ("XCP beyond what can be shaped", fast("xcp")),
        (
            "packets too large for a line",
            format!("{LINK}{FLOW}udp = {{ rate = \"1mbit\" }}\npacket = 65535"),
        ),
        ("too many flows", format!("{LINK}{FLOW}congestion = \"cubic\"\ncount = 20001")),
    ];
    insta::assert_snapshot!(
        cases.map(|(name, text)| format!("──── {name}\n{}\n", refused(&text))).concat()
    );
}

#[test]
fn a_congestion_control_that_the_kernel_lacks_is_missing() {
    let poor = Machine {
        congestions: vec!["reno".into()],
        rto_min: true,
        family: Family::V4,
        offload: false,
    };
    let error =
        Plan::new(&scenario(&format!("{LINK}{FLOW}congestion = \"cubic\"")), &poor).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, LabError::Missing(_)), "{error:?}");
    assert!(text.contains("\"cubic\"") && text.contains("modprobe tcp_cubic"), "{text}");
}

/// A random graph's links, and flows over it.
fn networks() -> impl Strategy<Value = String> {
    let links = prop::collection::vec((0..6usize, 0..6usize, 0..4usize), 1..9);
    let flows = prop::collection::vec(
        (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..3usize),
        1..6,
    );
    (links, flows).prop_map(|(links, flows)| {
        let mut text = String::from("link = [\n");
        // A ring first, so that everything is connected.
        let ring = (0..6).map(|n| (n, (n + 1) % 6, 3));
        for (i, (a, b, kind)) in ring.chain(links).filter(|(a, b, _)| a != b).enumerate() {
            let more = [
                "delay = \"0s\"",
                "delay = \"1ms\"",
                "delay = \"0s\", loss = { probability = 0.1, place = \"before-queue\" }",
                "delay = \"2ms\", queue = \"red\"",
            ][kind];
            text += &format!(
                "{{ name = \"k{i}\", between = [\"n{a}\", \"n{b}\"], rate = \"1mbit\", {more} }},\n"
            );
        }
        text += "]\nflow = [\n";
        for (i, (from, to, kind)) in flows.iter().enumerate() {
            let (from, to) = (from.index(6), to.index(5));
            let to = if to >= from { to + 1 } else { to };
            let what = [
                "congestion = \"cubic\"",
                "congestion = \"bbr\", initial-window = 3",
                "udp = { rate = \"1mbit\" }",
            ][*kind];
            text +=
                &format!("{{ name = \"f{i}\", from = \"n{from}\", to = \"n{to}\", {what} }},\n");
        }
        text + "]\n"
    })
}

proptest! {
    /// Following routes, cables and lines from one end of a way leads over its links' queues, in
    /// order, to the other end, and back.
    #[test]
    fn packets_find_their_way(text in networks()) {
        let scenario = scenario(&text);
        let plan = Plan::new(&scenario, &machine(Family::V4)).unwrap();
        let beyond: HashMap<_, _> = plan.neighbours.iter().copied().collect();
        let cable: HashMap<_, _> = plan.cables.iter().flat_map(|&[a, b]| [(a, b), (b, a)]).collect();
        let line: HashMap<_, _> = plan.lines.iter().map(|l| (l.input, l)).collect();
        for (flow, spec) in plan.flows.iter().zip(&scenario.flows) {
            let way = &plan.ways[flow.way];
            let walk = |from: (SpaceId, IpAddr), to: (SpaceId, IpAddr)| {
                let (mut at, mut passed) = (from.0, Vec::new());
                for _ in 0..50 {
                    if at == to.0 {
                        return passed;
                    }
                    let route = plan.routes.iter().find(|r| r.space == at && r.to == to.1).expect("a route");
                    assert_eq!(plan.devices[route.device].space, at);
                    passed.extend(plan.shapers.iter().filter(|s| s.device == route.device).map(|s| s.direction));
                    // What the frame reaches by cables and lines is what its address says.
                    let mut reached = cable[&route.device];
                    while let Some(line) = line.get(&reached) {
                        passed.extend(line.queue.then_some(line.direction));
                        reached = cable[&line.output];
                    }
                    assert_eq!(reached, beyond[&route.device]);
                    at = plan.devices[reached].space;
                }
                panic!("lost on the way");
            };
            prop_assert_eq!(&walk(way.source, way.destination), &spec.group.route);
            prop_assert_eq!(&walk(way.destination, way.source), &spec.group.return_route);
        }
        let names: HashSet<_> = plan.devices.iter().map(|d| (d.space, &d.name)).collect();
        prop_assert_eq!(names.len(), plan.devices.len(), "two devices of one name");
        prop_assert!(plan.devices.iter().all(|d| d.name.len() <= 15), "a name too long for Linux");
        prop_assert!(plan.devices.iter().enumerate().all(|(id, d)| plan.spaces[d.space].role == Role::Wire || beyond.contains_key(&id) || d.name == "in"));
        prop_assert_eq!(plan.meters.len(), 2 * scenario.links.len());
    }
}
