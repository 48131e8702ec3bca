//! Links, queues, lines, paths.

use xcp_lab::{Family, Options};

use crate::{flow, lab, lab_with, link, scenario, series};

/// Two connections over a link with a queue and a delay.
const TWO: &str = "duration = \"2s\"\nsample = \"100ms\"\n\
    [[link]]\nname = \"l\"\nbetween = [\"S\", \"D\"]\nrate = \"10mbit\"\ndelay = \"10ms\"\nqueue \
    = { limit = \"1bdp\" }\n\
    [[flow]]\ncount = 2\nfrom = \"S\"\nto = \"D\"\ncongestion = \"cubic\"\n";

#[test]
fn connections_share_a_link_and_are_recorded_like_simulated_ones() {
    let Some(run) = lab("two connections", TWO) else { return };
    assert_eq!(
        (run.summary.backend.as_str(), run.completed, run.summary.interrupted),
        ("linux", 2_000_000_000, false)
    );
    let (there, back) = (link(&run, "l"), link(&run, "l.reverse"));
    // Full frames of 1500 bytes: 1666 of them fill 2 s. A machine that is slow sends fewer, none
    // sends more.
    assert!(there.packets > 200 && there.packets < 1700, "{there:?}");
    assert!(
        (there.utilisation - there.packets as f64 * 1500.0 * 8.0 / 20e6).abs() < 0.01,
        "full frames have their size: {there:?}"
    );
    // One more was seen once: what the shaper has taken out of the queue and the device has not
    // sent yet waits, too.
    assert!(
        there.queue_max <= 17 && there.drops > 0 && there.queue_mean > 0.0,
        "a queue of 16 packets was filled: {there:?}"
    );
    assert!(back.packets > there.packets / 3 && back.utilisation < 0.1, "{back:?}");
    for name in ["flow-1", "flow-2"] {
        let flow = flow(&run, name);
        assert!(flow.goodput > 1e5 && flow.rtt_mean >= 0.02 && flow.cwnd_mean > 1.0, "{flow:?}");
    }
    assert_eq!(run.summary.flows.iter().map(|f| f.retransmits).sum::<u64>() > 0, there.drops > 0);
    let simulated = xcp_sim::simulate(&scenario(TWO), &mut ()).unwrap();
    assert_eq!(series(&run), series(&simulated));
    assert_eq!(run.series[0].times, simulated.series[0].times);
}

#[test]
fn ipv6_is_the_same_but_for_its_header() {
    let options = Options { family: Family::V6, ..Options::default() };
    let Some(run) = lab_with("IPv6", &scenario(TWO), options, &mut ()) else { return };
    let there = link(&run, "l");
    assert!(there.packets > 200, "{there:?}");
    assert!(
        (there.utilisation - there.packets as f64 * 1500.0 * 8.0 / 20e6).abs() < 0.01,
        "full frames have their size: {there:?}"
    );
}

#[test]
fn a_link_without_delay_is_a_cable() {
    let text = TWO.replace("\"10ms\"", "\"0s\"").replace("\"1bdp\"", "20");
    let Some(run) = lab("a cable", &text) else { return };
    let there = link(&run, "l");
    assert!(there.packets > 200 && there.lost == 0, "{there:?}");
}

#[test]
fn a_link_that_is_not_shaped_is_counted_by_its_device() {
    let text = TWO
        .replace("\"10mbit\"", "\"100gbit\"")
        .replace("\"10ms\"", "\"0s\"")
        .replace("\"1bdp\"", "1000")
        .replace("\"2s\"", "\"500ms\"");
    let Some(run) = lab("a link that is not shaped", &text) else { return };
    let there = link(&run, "l");
    assert!(there.utilisation > 0.0 && there.packets > 100, "{there:?}");
    assert!(run.summary.notes.iter().any(|n| n.contains("not shaped")), "{:?}", run.summary.notes);
}

#[test]
fn losses_blackouts_and_red_do_what_they_say() {
    // 400 packets a second each. The first link loses before its queue, the second after it, the
    // third is dark for half of the time.
    let one = |n: usize, more: &str| {
        format!(
            "[[link]]\nname = \"l{n}\"\nbetween = [\"S\", \"D{n}\"]\nrate = \"10mbit\"\ndelay \
                = \"2ms\"\n{more}\n\
                 [[flow]]\nname = \"u{n}\"\nfrom = \"S\"\nto = \"D{n}\"\npacket = 1000\nudp = \
                {{ rate = \"3200kbit\" }}\n"
        )
    };
    let text = format!(
        "duration = \"2s\"\nmeasure = {{ to = \"1900ms\" }}\n{}{}{}{}",
        one(0, "loss = { probability = 0.3, place = \"before-queue\" }"),
        one(1, "loss = 0.3"),
        one(2, "blackout = { from = \"500ms\", to = \"1500ms\" }"),
        one(
            3,
            "rate = \"2mbit\"\nqueue = \
            { kind = \"red\", limit = 30, min = 5, max = 15, weight = 0.1 }"
        )
        .replacen("rate = \"10mbit\"\n", "", 1),
    );
    let Some(run) = lab("losses", &text) else { return };
    let lost = |n: usize| link(&run, &format!("l{n}")).lost as f64;
    let sent = |n: usize| link(&run, &format!("l{n}")).packets as f64;
    // Of 760: 228, within six standard deviations.
    assert!(
        (lost(0) - 228.0).abs() < 76.0 && (lost(0) + sent(0) - 760.0).abs() < 20.0,
        "before: {} of {}",
        lost(0),
        sent(0)
    );
    assert!(
        (lost(1) - 228.0).abs() < 76.0 && (sent(1) - 760.0).abs() < 20.0,
        "after: {} of {}",
        lost(1),
        sent(1)
    );
    assert!((lost(2) - 400.0).abs() < 20.0, "dark: {} of {}", lost(2), sent(2));
    let red = link(&run, "l3");
    assert!(red.drops > 100 && red.queue_max <= 30 && red.queue_mean > 3.0, "{red:?}");
    // The line's transmitter sends 2 Mbit/s, no more and no less.
    assert!((red.utilisation - 1.0).abs() < 0.05, "{red:?}");
    assert_eq!(lost(3), 0.0);
    // 3.2 Mbit/s on the wire less headers of 42 bytes, less what was lost.
    for (n, share) in [(0, sent(0) / 760.0), (1, 1.0 - lost(1) / 760.0), (2, 1.0 - lost(2) / 760.0)]
    {
        let expected = 3.2e6 * 0.958 * share;
        let goodput = flow(&run, &format!("u{n}")).goodput;
        assert!((goodput / expected - 1.0).abs() < 0.05, "u{n}: {goodput}, expected {expected}");
    }
}

#[test]
fn flows_take_the_paths_of_the_scenario() {
    let text = "duration = \"1s\"\n\
        link = [{ name = \"direct\", between = [\"S\", \"D\"], rate = \"10mbit\", delay = \"1ms\" },\n\
                { name = \"first\", between = [\"S\", \"R\"], rate = \"10mbit\", delay = \"1ms\" },\n\
                { name = \"second\", between = [\"R\", \"D\"], rate = \"10mbit\", delay = \"1ms\" }]\n\
        flow = [{ name = \"short\", from = \"S\", to = \"D\", packet = 1000, udp = { rate = \"800kbit\" } },\n\
                { name = \"long\", from = \"S\", to = \"D\", via = [\"R\"], packet = 1000, udp = { rate = \"1600kbit\" } },\n\
                { name = \"back\", from = \"D\", to = \"R\", packet = 1000, udp = { rate = \"2400kbit\" } }]\n";
    let Some(run) = lab("paths", text) else { return };
    for (name, packets) in [
        ("direct", 100.0),
        ("first", 200.0),
        ("second", 200.0),
        ("second.reverse", 300.0),
        ("direct.reverse", 0.0),
        ("first.reverse", 0.0),
    ] {
        let counted = link(&run, name).packets as f64;
        assert!((counted - packets).abs() <= 0.05 * packets, "{name}: {counted} packets");
    }
}

/// XCP both ways over a cable with a queue at either end: single segments, and packets of several
/// that the queues cut up and nobody puts together. What is on the way is some ten packets to a
/// direction.
#[test]
fn large_packets_are_cut_up_by_the_queues() {
    let text = TWO
        .replace("\"10mbit\"", "\"50mbit\"")
        .replace("\"10ms\"", "\"0s\"")
        .replace("{ limit = \"1bdp\" }", "{ kind = \"xcp\", limit = 200 }")
        .replace("count = 2\n", "")
        .replace("cubic", "xcp")
        + "[[flow]]\nname = \"back\"\nfrom = \"D\"\nto = \"S\"\ncongestion = \"xcp\"\n";
    for offload in [false, true] {
        let options = Options { offload, ..Options::default() };
        let Some(run) = lab_with("large packets", &scenario(&text), options, &mut ()) else {
            return;
        };
        assert_eq!(
            run.summary.notes.iter().any(|n| n.contains("nobody puts them together")),
            offload,
            "{:?}",
            run.summary.notes
        );
        for (name, back) in [("flow", "l"), ("back", "l.reverse")] {
            let (flow, link) = (flow(&run, name), link(&run, back));
            assert_eq!(link.drops, 0, "offload {offload}: {link:?}");
            assert!(flow.goodput > 1e6 && flow.cwnd_mean < 150.0, "offload {offload}: {flow:?}");
        }
    }
}
