//! Transmitters that take turns: shared media against closed forms and conservation, queues for two
//! classes, framing.

use std::path::Path;

use proptest::prelude::*;
use xcp_model::run::Run;
use xcp_scenario::{Overrides, load};

fn run(text: &str) -> Run {
    let mut scenarios = load(Path::new("test.toml"), text, &Overrides::none())
        .unwrap_or_else(|e| panic!("{e}\n{text}"));
    xcp_sim::simulate(&scenarios.remove(0), &mut ()).unwrap_or_else(|e| panic!("{e}"))
}

/// A full line sends exactly its rate, however fast it is and however its packets take turns: what
/// is left of a nanosecond is carried to the next packet.
#[test]
fn a_full_line_sends_its_rate() {
    for (rate, packet) in
        [("155mbit", 1000), ("10gbit", 64), ("400gbit", 64), ("40gbit", 1514), ("8tbit", 64)]
    {
        for how in [
            "queue = { limit = 50 }\nmedium = \"m\"",
            "queue = { kind = \"xcp\", limit = 50, others = \"last\" }",
            "queue = { limit = 50 }",
        ] {
            let text = format!(
                "duration = \"100us\"\nmeasure = {{ from = \"10us\" }}\nsample = \"off\"\n\
                 [[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nrate = \"{rate}\"\ndelay = \
                    \"1us\"\n{how}\n[[flow]]\nname = \"f\"\ncount = 2\nfrom = \"a\"\nto = \"b\"\n\
                    packet = {packet}\nudp = {{ rate = \"{rate}\" }}\n"
            );
            let utilisation = run(&text).summary.links["l"].utilisation;
            assert!(
                (utilisation - 1.0).abs() < 1e-4,
                "{rate}, {packet} bytes, {how}: {utilisation}"
            );
        }
    }
}

/// Hosts h1, h2, ... on a hub of 10 Mbit/s, each sending datagrams of a size at a rate to the node
/// in the middle.
fn hub(duration: &str, seed: u64, hosts: &[(u32, u32)], framing: u32) -> String {
    let mut text =
        format!("title = \"hub\"\nduration = \"{duration}\"\nseed = {seed}\nsample = \"off\"\n");
    for (i, (kbit, packet)) in hosts.iter().enumerate() {
        let i = i + 1;
        text += &format!(
            "[[link]]\nname = \"l{i}\"\nbetween = [\"h{i}\", \"hub\"]\nrate = \"10mbit\"\ndelay \
                = \"1us\"\nmedium = \"hub\"\nframing = {framing}\nqueue = {{ limit = 50 }}\n\
             [[flow]]\nname = \"f{i}\"\nfrom = \"h{i}\"\nto = \"hub\"\npacket = {packet}\nudp = \
                {{ rate = \"{kbit}kbit\" }}\n"
        );
    }
    text
}

/// A station that has the medium to itself gets what a line of its own would give: packet by
/// packet, with and without framing.
#[test]
fn a_medium_with_one_station_is_a_line() {
    for framing in [0, 38] {
        for kbit in [3_000, 9_990, 15_000] {
            // Not to the end of a packet: whether the next one has begun in that very instant is
            // nobody's business.
            let shared = hub("5000100us", 1, &[(kbit, 1000)], framing);
            let own = shared.replace("medium = \"hub\"\n", "");
            assert_ne!(shared, own);
            assert_eq!(
                run(&shared).summary.links["l1"],
                run(&own).summary.links["l1"],
                "{kbit} kbit/s"
            );
        }
    }
}

/// A full line spends its framing's part of the time on framing.
#[test]
fn framing_takes_its_time() {
    let link =
        |framing| run(&hub("10s", 1, &[(20_000, 1000)], framing)).summary.links["l1"].clone();
    for framing in [0, 38, 90, 1000] {
        let expected = 1000.0 / (1000.0 + f64::from(framing));
        assert!(
            (link(framing).utilisation - expected).abs() < 1e-3,
            "{framing}: {}",
            link(framing).utilisation
        );
    }
}

/// Two that always have packets collide after every packet, again and again until they draw
/// different slots: with the first collision in one of two cases, then in one of four, ... The one
/// that lost backs off longer than the one that won, so one of them keeps the medium for a while;
/// in the long run each has half. (Ramakrishnan & Yang 1994, the Ethernet capture effect.)
#[test]
fn two_full_stations_share_a_hub() {
    let run = run(&hub("300s", 3, &[(20_000, 1500), (20_000, 1500)], 0));
    let [a, b] = ["l1", "l2"].map(|name| run.summary.links[name].utilisation);
    let both = a + b;
    // A packet takes 1.2 ms, a collision 51.2 us; and while the loser backs off, up to 1023 times
    // that, there are none.
    assert!((1.2 / 1.35..1.0).contains(&both), "{both}");
    assert!((a / both - 0.5).abs() < 0.05, "{a} {b}");
}

/// Two that yield take turns: after a packet of the one the other finds nobody else ready.
#[test]
fn two_full_stations_that_yield_take_turns() {
    let text = hub("20s", 3, &[(20_000, 1500), (20_000, 1500)], 0);
    let run = run(&text.replace("limit = 50", "limit = 50, yields = true"));
    for name in ["l1", "l2"] {
        let utilisation = run.summary.links[name].utilisation;
        assert!((utilisation - 0.5).abs() < 0.001, "{name}: {utilisation}");
    }
}

/// A half-duplex link carries as much as it has in both directions together.
#[test]
fn a_half_duplex_link_is_shared_by_its_directions() {
    let text = |medium: &str| {
        format!(
            "title = \"both ways\"\nduration = \"60s\"\nsample = \"off\"\n\
             [[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nrate = \"10mbit\"\ndelay \
                = \"5ms\"\n{medium}\n\
             [[flow]]\nname = \"there\"\nfrom = \"a\"\nto = \"b\"\nudp = {{ rate = \"9mbit\" }}\n\
             [[flow]]\nname = \"back\"\nfrom = \"b\"\nto = \"a\"\nudp = {{ rate = \"9mbit\" }}\n"
        )
    };
    let sum = |run: &Run| run.summary.links.values().map(|l| l.utilisation).sum::<f64>();
    let (full, half) = (run(&text("")), run(&text("medium = \"m\"")));
    assert!((sum(&full) - 1.8).abs() < 0.01);
    assert!((0.85..1.0).contains(&sum(&half)), "{}", sum(&half));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// However many stations, whatever they send: never two at a time, nothing made or lost but by
    /// collisions, everything sent while there is room.
    #[test]
    fn a_hub_carries_one_packet_at_a_time(
        hosts in prop::collection::vec((100u32..6000, 64u32..1500), 1..8),
        framing in 0u32..100,
        seed in 0u64..1000,
    ) {
        let run = run(&hub("4s", seed, &hosts, framing));
        let links: Vec<_> = (1..=hosts.len()).map(|i| run.summary.links[&format!("l{i}")].clone()).collect();
        let busy: f64 = links.iter().zip(&hosts).map(|(l, &(_, size))| l.packets as f64 * f64::from(8 * (size + framing)) / 40e6).sum();
        prop_assert!(busy <= 1.0 + 1e-3, "{busy}");
        for (link, (kbit, size)) in links.iter().zip(hosts) {
            let offered = f64::from(kbit) * 4000.0 / f64::from(8 * size);
            let seen = (link.packets + link.drops + link.lost) as f64;
            // At most 50 wait at the end, and one is at either end of the run.
            prop_assert!(seen <= offered + 1.0 && seen >= offered - 53.0, "{seen} of {offered}");
        }
    }
}

/// An XCP flow and a stream of datagrams on a bottleneck of 10 Mbit/s and 100 ms.
fn classes(queue: &str, others: &str, duration: &str) -> String {
    format!(
        "title = \"classes\"\nduration = \"{duration}\"\nmeasure = {{ from = \"20s\" }}\nsample \
            = \"off\"\n\
         [[link]]\nname = \"in\"\nbetween = [\"S\", \"R\"]\nrate = \"100mbit\"\ndelay = \"1ms\"\n\
         [[link]]\nname = \"l\"\nbetween = [\"R\", \"D\"]\nrate = \"10mbit\"\ndelay \
            = \"49ms\"\nqueue = {{ kind = \"xcp\", limit = \"2bdp\"{queue} }}\n\
         [[flow]]\nname = \"x\"\nfrom = \"S\"\nto = \"D\"\ncongestion = \"xcp\"\n\
         [[flow]]\nname = \"o\"\nfrom = \"S\"\nto = \"D\"\n{others}\n"
    )
}

/// Goodputs of the XCP flow and of the other, Mbit/s.
fn goodputs(queue: &str, others: &str) -> [f64; 2] {
    let run = run(&classes(queue, others, "60s"));
    [0, 1].map(|flow| run.summary.flows[flow].goodput / 1e6)
}

const DATAGRAMS: &str = "udp = { rate = \"4mbit\" }";
const TCP: &str = "congestion = \"sack\"";

/// Whoever goes first gets what it sends, and XCP's law leaves the others' part of the capacity
/// free where it counts all input.
#[test]
fn a_class_that_goes_first_is_not_held_up() {
    let first = goodputs(", others = \"first\", law = { input = \"all\" }", DATAGRAMS);
    assert!((first[1] - 4.0 * 1472.0 / 1500.0).abs() < 0.1, "{first:?}");
    assert!((5.4..6.0).contains(&first[0]), "{first:?}");
    // Where the law knows nothing of the others it fills the link, and they starve.
    let last = goodputs(", others = \"last\", law = { input = \"xcp\" }", DATAGRAMS);
    assert!(last[0] > 9.3 && last[1] < 0.3, "{last:?}");
}

/// Each class has its share of the bytes while both have packets, though XCP and TCP differ as much
/// as they can in what they make of a queue.
#[test]
fn fair_classes_have_their_shares() {
    for share in [0.3, 0.7] {
        let [xcp, tcp] = goodputs(
            &format!(", others = \"fair\", share = {share}, law = {{ input = \"xcp\" }}"),
            TCP,
        );
        assert!((xcp / (xcp + tcp) - share).abs() < 0.03, "{share}: {xcp} {tcp}");
        assert!(xcp + tcp > 9.0, "{xcp} {tcp}");
    }
}

/// With a static split XCP takes its share and no more, even where nobody else wants the rest; the
/// others may.
#[test]
fn a_split_is_a_capacity_of_its_own() {
    let split = ", others = \"split\", share = 0.4, law = { input = \"xcp\" }";
    let [xcp, tcp] = goodputs(split, TCP);
    assert!((3.6..4.0).contains(&xcp) && tcp > 5.0, "{xcp} {tcp}");
    let [alone, _] = goodputs(split, "udp = { rate = \"1kbit\" }");
    assert!((3.6..4.0).contains(&alone), "{alone}");
}

/// The law sees its own class's queue: TCP's standing queue beside it does not count.
#[test]
fn the_law_sees_its_own_queue() {
    let persistent = |others: &str| {
        let text =
            classes(&format!(", others = \"{others}\", law = {{ input = \"xcp\" }}"), TCP, "60s")
                .replace("sample = \"off\"", "sample = \"1s\"");
        let text = text + "[[expect]]\nmetric = \"links.l.persistent_queue_mean\"\nmin = 0\n";
        let scenario = load(Path::new("test.toml"), &text, &Overrides::none()).unwrap().remove(0);
        let run = xcp_sim::simulate(&scenario, &mut ()).unwrap();
        let seen = xcp_model::evaluate(&scenario, &run)[0].measured.unwrap();
        (seen, run.summary.links["l"].queue_mean * 1500.0)
    };
    let (shared, standing) = persistent("shared");
    assert!(shared > 0.5 * standing, "one queue: {shared} of {standing}");
    let (own, standing) = persistent("split");
    assert!(own < 5.0 * 1500.0 && standing > 50_000.0, "its own: {own} of {standing}");
}
