//! The simulated network without TCP, against closed forms and conservation: queues, losses,
//! routes, repeatability.

use std::path::Path;

use proptest::prelude::*;
use xcp_model::Scenario;
use xcp_model::run::{Quantity, Run, Subject};
use xcp_scenario::{Overrides, load};

fn scenario(text: &str) -> Scenario {
    let mut variants =
        load(Path::new("test.toml"), text, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(variants.len(), 1);
    variants.remove(0)
}

fn run(text: &str) -> Run {
    xcp_sim::simulate(&scenario(text), &mut ()).unwrap_or_else(|e| panic!("{e}"))
}

/// One link of 8 Mbit/s, packets of 1000 bytes: service takes a millisecond.
fn one_link(duration: &str, queue: &str, more_link: &str, udp: &str) -> String {
    format!(
        r#"
        title = "one link"
        duration = "{duration}"
        [[link]]
        name = "line"
        between = ["A", "B"]
        rate = "8mbit"
        delay = "10ms"
        queue = {queue}
        {more_link}
        [[flow]]
        name = "cross"
        from = "A"
        to = "B"
        packet = 1000
        udp = {udp}
        "#
    )
}

/// Crommelin 1932: the part of the packets of an M/D/1 queue that wait no longer than `t` services.
fn crommelin(rho: f64, t: f64) -> f64 {
    let mut sum = 0.0;
    let mut factorial = 1.0;
    for k in 0..=t.floor() as i32 {
        let x = rho * (t - f64::from(k));
        factorial *= f64::from(k.max(1));
        sum += (-x).powi(k) / factorial * x.exp();
    }
    (1.0 - rho) * sum
}

/// Waiting times are counted packet by packet, those that do not wait too, over the measured
/// period: in one queue, and where each class waits for its turn (all of it is of one class here).
#[test]
fn packets_wait_as_crommelin_says() {
    for more in ["", ", others = \"last\""] {
        let queue = if more.is_empty() {
            r#"{ kind = "drop-tail", limit = 100000 }"#.to_owned()
        } else {
            format!(r#"{{ kind = "xcp", limit = 100000{more} }}"#)
        };
        for (rate, rho) in [("4mbit", 0.5f64), ("6400kbit", 0.8)] {
            let udp = format!(r#"{{ pattern = "poisson", rate = "{rate}" }}"#);
            let text = one_link("1000s", &queue, "", &udp);
            let run = run(&text.replace("[[link]]", "measure = { from = \"100s\" }\n[[link]]"));
            let waits = run.summary.links["line"].queue_delay.expect("waiting times");
            for (part, wait) in [(0.5, waits.p50), (0.95, waits.p95), (0.99, waits.p99)] {
                // In services, a millisecond each: the part that waited no longer is the part asked
                // for.
                let services = wait / 0.001;
                let (below, above) =
                    (crommelin(rho, services * 0.98), crommelin(rho, services * 1.02));
                assert!(
                    below - 0.002 <= part && part <= above + 0.002,
                    "load {rho}{more}: {part} wait no longer than {services}, which theory gives \
                        {below} to {above}"
                );
            }
        }
    }
}

/// A wait that has not ended is not counted: what comes shortly before the line all but stops would
/// wait for a century. Neither is one that began before the measured period.
#[test]
fn a_wait_counts_when_it_has_ended() {
    for queue in [
        r#"{ kind = "drop-tail", limit = 1000 }"#,
        r#"{ kind = "xcp", limit = 1000, others = "last" }"#,
    ] {
        let udp = r#"{ rate = "16mbit" }"#;
        let stops = r#"rate-changes = [["9990ms", "8bit"]]"#;
        let text = one_link("10s", queue, stops, udp);
        let run = run(&text.replace("[[link]]", "measure = { from = \"4s\" }\n[[link]]"));
        let waits = run.summary.links["line"].queue_delay.expect("waiting times");
        // A packet a millisecond leaves, and two come: a queue of a thousand is full after a
        // second, and everybody waits for one.
        for wait in [waits.p50, waits.p95, waits.p99] {
            assert!((0.99..=1.01).contains(&wait), "{queue}: {wait} s");
        }
    }
}

/// Who does not want the series gets the same numbers.
#[test]
fn numbers_do_not_depend_on_series() {
    let text = one_link(
        "20s",
        r#"{ kind = "red", limit = 100 }"#,
        "loss = 0.01",
        r#"{ pattern = "poisson", rate = "3mbit" }"#,
    ) + "\n[[flow]]\nname = \"tcp\"\nfrom = \"A\"\nto = \"B\"\ncount = 3\ncongestion = \"sack\"\n";
    let mut scenario = scenario(&text);
    let with = xcp_sim::simulate(&scenario, &mut ()).unwrap();
    scenario.series = false;
    let without = xcp_sim::simulate(&scenario, &mut ()).unwrap();
    assert_eq!(with.summary, without.summary);
    assert!(!with.series.is_empty() && without.series.is_empty());
}

/// The round trip of a path without a queue is what it is for every packet; completion times and
/// the members of groups are told.
#[test]
fn groups_are_told() {
    let text = one_link(
        "20s",
        r#"{ kind = "drop-tail", limit = 1000 }"#,
        "",
        r#"{ pattern = "constant", rate = "8kbit" }"#,
    ) + r#"
        [[flow]]
        name = "short"
        from = "A"
        to = "B"
        count = 3
        start = "1s"
        stagger = "2s"
        packet = 1000
        congestion = "reno"
        initial-window = 1
        delayed-ack = false
        bytes = 900
        "#;
    let summary = run(&text).summary;
    let names: Vec<_> = summary
        .groups
        .iter()
        .map(|group| (group.name.as_str(), group.flows, group.completed))
        .collect();
    assert_eq!(names, [("cross", 1, 0), ("short", 3, 3)]);
    let short = &summary.groups[1];
    assert_eq!((short.from.as_str(), short.to.as_str()), ("A", "B"));
    // A segment, 10 ms there and back, and the acknowledgement.
    let rtt = short.rtt.expect("samples");
    assert!(
        (0.0205..0.0212).contains(&rtt.p50) && rtt.p50 <= rtt.p99 && rtt.p99 < 0.023,
        "{rtt:?}"
    );
    let times = short.completion_time.expect("completed");
    let flows: Vec<_> = summary.flows.iter().filter(|flow| flow.name.stem() == "short").collect();
    assert_eq!(flows.iter().map(|flow| flow.start).collect::<Vec<_>>(), [1.0, 3.0, 5.0]);
    assert!(flows.iter().all(|flow| flow.bytes.is_some_and(|bytes| bytes.get() == 900)));
    assert_eq!(
        Some(times.p99),
        flows.iter().filter_map(|flow| flow.completion_time).max_by(f64::total_cmp)
    );
    assert_eq!(summary.groups[0].rtt, None, "datagrams are not answered");
}

/// Pollaczek-Khinchine with constant service: the mean number waiting is rho^2 / (2 (1 - rho)).
#[test]
fn poisson_arrivals_queue_as_m_d_1() {
    for (rate, rho) in [("4mbit", 0.5f64), ("6400kbit", 0.8)] {
        let run = run(&one_link(
            "2000s",
            r#"{ kind = "drop-tail", limit = 100000 }"#,
            "",
            &format!(r#"{{ pattern = "poisson", rate = "{rate}" }}"#),
        ));
        let link = &run.summary.links["line"];
        let expected = rho * rho / (2.0 * (1.0 - rho));
        assert!(
            (link.queue_mean / expected - 1.0).abs() < 0.02,
            "load {rho}: {} waiting, expected {expected}",
            link.queue_mean
        );
        assert!(
            (link.utilisation - rho).abs() < 0.005,
            "load {rho}: utilisation {}",
            link.utilisation
        );
        assert_eq!((link.drops, link.lost), (0, 0));
    }
}

/// Overload: the line is full, the queue stands at its limit, the excess is dropped.
#[test]
fn constant_overload_fills_the_queue() {
    let run = run(&one_link(
        "10s",
        r#"{ kind = "drop-tail", limit = 50 }"#,
        "",
        r#"{ pattern = "constant", rate = "10mbit" }"#,
    ));
    let link = &run.summary.links["line"];
    // 1250 packets a second come, 1000 go, 50 wait, one is in service.
    assert_eq!(link.queue_max, 50);
    assert!((2448..=2451).contains(&link.drops), "{}", link.drops);
    assert!(link.utilisation > 0.9999 && link.utilisation <= 1.0, "{}", link.utilisation);
}

/// 8 Mbit/s, then 2, then 16, each for 10 s, offered 20: the line is full and sends what its rates
/// give, in packets of a millisecond, four, and half of one.
#[test]
fn a_line_sends_what_its_rates_give() {
    let changes = r#"rate-changes = [["10s", "2mbit"], ["20s", "16mbit"]]"#;
    let udp = r#"{ pattern = "constant", rate = "20mbit" }"#;
    let run = run(&one_link("30s", r#"{ limit = "10p" }"#, changes, udp));
    let line = &run.summary.links["line"];
    assert!((line.utilisation - 1.0).abs() < 1e-4, "{}", line.utilisation);
    let sent = 10_000 + 2_500 + 20_000;
    assert!(line.packets.abs_diff(sent) <= 1, "{} packets", line.packets);
}

/// A packet each 10 ms over 100 ms, then 30, then 100 again. What is sent after the way became
/// shorter comes behind what was on it; blackouts strike those sent in them, however long they
/// take.
#[test]
fn a_way_that_becomes_shorter_is_not_overtaken() {
    let text = |more: &str| {
        format!(
            r#"
            duration = "3s"
            sample = "10ms"
            [[link]]
            name = "line"
            between = ["A", "B"]
            rate = "8mbit"
            delay = "100ms"
            delay-changes = [["1s", "30ms"], ["2s", "100ms"]]
            {more}
            [[flow]]
            name = "cross"
            from = "A"
            to = "B"
            packet = 1000
            udp = {{ pattern = "constant", rate = "800kbit" }}
            "#
        )
    };
    let come = |more: &str| -> Vec<u64> {
        let run = run(&text(more));
        let goodput = run.find(&Subject::Flow("cross".into()), Quantity::Goodput).unwrap();
        // Payload in a hundredth of a second, in packets of 972 bytes.
        goodput.values.iter().map(|v| (v / 100.0 / 8.0 / 972.0).round() as u64).collect()
    };
    let steady = come("");
    let between = |from: usize, to: usize| steady[from..to].iter().sum::<u64>();
    // The seven packets that the shorter way saves come at once, with the last of the longer one.
    assert_eq!((between(50, 100), between(109, 111), between(111, 160)), (50, 9, 49));
    // Nothing comes for as long as the way has become longer.
    assert_eq!((between(150, 203), between(204, 210), between(211, 261)), (53, 0, 50));
    let dark = come(r#"blackout = [{ from = "900ms", to = "1050ms" }]"#);
    assert_eq!(steady.iter().sum::<u64>() - dark.iter().sum::<u64>(), 15);
}

/// A packet each 10 ms over 100 ms, half of which fall back by up to 200 ms: all come, as much
/// later in the mean as they should, and none is early.
#[test]
fn what_falls_back_comes_late_but_comes() {
    let come = |more: &str| -> Vec<u64> {
        let run = run(&format!(
            r#"
            duration = "20s"
            sample = "10ms"
            [[link]]
            name = "line"
            between = ["A", "B"]
            rate = "8mbit"
            delay = "100ms"
            {more}
            [[flow]]
            name = "cross"
            from = "A"
            to = "B"
            stop = "19s"
            packet = 1000
            udp = {{ pattern = "constant", rate = "800kbit" }}
            "#
        ));
        let goodput = run.find(&Subject::Flow("cross".into()), Quantity::Goodput).unwrap();
        goodput.values.iter().map(|v| (v / 100.0 / 8.0 / 972.0).round() as u64).collect()
    };
    let in_order = come("");
    let late = come(r#"reorder = { probability = 0.5, most = "200ms" }"#);
    let all = |come: &[u64]| come.iter().sum::<u64>();
    assert_eq!((all(&in_order), all(&late)), (1901, 1901));
    let mut ahead = 0i64;
    for (n, (in_order, late)) in in_order.iter().zip(&late).enumerate() {
        ahead += *in_order as i64 - *late as i64;
        assert!(ahead >= 0, "early in sample {n}");
    }
    // Of 1900 half fall back by 100 ms in the mean.
    let samples = |come: &[u64]| (0..).zip(come).map(|(n, packets)| n * packets).sum::<u64>();
    let mean = (samples(&late) - samples(&in_order)) as f64 * 10.0 / 1900.0;
    // Four standard errors: of a time that is nothing or up to 200 ms, 65 ms / sqrt(1900).
    assert!((mean - 50.0).abs() < 6.0, "{mean} ms later");
}

/// Packets 1.2 ms apart: with less than that nothing is overtaken and a sender notices nothing;
/// with more it takes what is late for lost. A first link that keeps no order spoils it for those
/// behind it, which keep it.
#[test]
fn a_sender_notices_what_is_overtaken() {
    let flow = |way: &str, more: &str| {
        let run = run(&format!(
            r#"
            duration = "10s"
            [[link]]
            between = ["A", "B"]
            rate = "10mbit"
            delay = "10ms"
            {more}
            [[link]]
            between = ["B", "C"]
            rate = "100mbit"
            delay = "10ms"
            [[flow]]
            from = "A"
            to = "C"
            {way}
            congestion = "sack"
            "#
        ));
        assert_eq!(run.summary.links["A-B"].drops, 0);
        run.summary.flows[0].clone()
    };
    let way = "send-buffer = \"30kb\"";
    let in_order = flow(way, "");
    let near = flow(way, r#"reorder = { probability = 0.2, most = "1ms", direction = "forward" }"#);
    let far = flow(way, r#"reorder = { probability = 0.2, most = "20ms", direction = "forward" }"#);
    assert_eq!((in_order.retransmits, near.retransmits), (0, 0));
    assert!(far.retransmits > 20, "{far:?}");
    assert!(near.goodput > 0.9 * in_order.goodput && far.goodput < 0.9 * near.goodput, "{far:?}");
}

#[test]
fn random_loss_takes_its_share_and_blackouts_everything() {
    let udp = r#"{ pattern = "constant", rate = "4mbit" }"#;
    let queue = r#"{ kind = "drop-tail", limit = 50 }"#;
    for place in ["before-queue", "after-queue"] {
        let loss = format!(r#"loss = [{{ probability = 0.1, place = "{place}" }}]"#);
        let lossy = run(&one_link("100s", queue, &loss, udp));
        let lost = lossy.summary.links["line"].lost as f64;
        // 50,000 packets; four standard deviations.
        assert!(
            (lost - 5000.0).abs() < 4.0 * (50_000.0 * 0.1 * 0.9f64).sqrt(),
            "{place}: {lost} lost"
        );
    }
    let dark = run(&one_link("10s", queue, r#"blackout = [{ from = "2s", to = "4s" }]"#, udp));
    assert_eq!(dark.summary.links["line"].lost, 1000);
    let goodput = dark.find(&Subject::Flow("cross".into()), Quantity::Goodput).unwrap();
    let heard_in_the_dark = goodput
        .times
        .iter()
        .zip(goodput.values.iter())
        .any(|(&t, v)| (2_030_000_000..4_000_000_000).contains(&t) && v > 0.0);
    assert!(!heard_in_the_dark);
}

/// Packets of other sizes and a delay: the first bit that arrives says so.
#[test]
fn packets_take_transmission_and_propagation_time() {
    let text = one_link(
        "30ms",
        r#"{ kind = "drop-tail", limit = 50 }"#,
        "",
        r#"{ pattern = "constant", rate = "1mbit" }"#,
    );
    let goodput = |end: &str| run(&text.replace("30ms", end)).summary.flows[0].goodput;
    // One packet, sent at 0: 1 ms on the line, 10 ms on the way.
    assert_eq!(goodput("10999us"), 0.0);
    assert!(goodput("11001us") > 0.0);
}

/// A connection over 10 Mbit/s and 100 ms whose window of 20 packets stays, because a buffer of 10
/// is what limits it.
fn one_connection(top: &str, flow: &str) -> Run {
    run(&format!(
        r#"
        title = "one connection"
        {top}
        [[link]]
        between = ["A", "B"]
        rate = "10mbit"
        delay = "50ms"
        [[flow]]
        name = "f"
        from = "A"
        to = "B"
        congestion = "sack"
        {flow}
        "#
    ))
}

/// The mean window is known however short the measured period or the transfer is, ticks or not.
#[test]
fn the_window_is_known_between_ticks() {
    let steady = "initial-window = 20\nreceive-buffer = 15000\nhandshake = false";
    for top in [
        "duration = \"20s\"\nsample = \"1s\"\nmeasure = { from = \"10010ms\", to = \"10020ms\" }",
        "duration = \"20s\"\nsample = \"off\"\nmeasure = { from = \"10010ms\", to = \"10020ms\" }",
        "duration = \"500us\"",
    ] {
        assert_eq!(one_connection(top, steady).summary.flows[0].cwnd_mean, 20.0, "{top}");
    }
    let short =
        one_connection("duration = \"20s\"\nsample = \"1s\"", &format!("{steady}\nbytes = 1"));
    assert_eq!(short.summary.flows[0].cwnd_mean, 20.0);
    let over = one_connection(
        "duration = \"20s\"\nmeasure = { from = \"10s\" }",
        &format!("{steady}\nbytes = 1"),
    );
    assert_eq!(over.summary.flows[0].cwnd_mean, 0.0, "complete before anything was measured");
}

/// A flow that was told to stop has no window afterwards: the mean is that of the samples until
/// then, and no curve goes on.
#[test]
fn a_window_ends_with_its_flow() {
    let run = one_connection("duration = \"20s\"\nsample = \"100ms\"", "stop = \"2050ms\"");
    let cwnd = run.find(&Subject::Flow("f".into()), Quantity::Cwnd).unwrap();
    let values = |from: u64, to: u64| {
        cwnd.times
            .iter()
            .zip(cwnd.values.iter())
            .filter(move |(t, _)| (from..to).contains(*t))
            .map(|(_, v)| v)
    };
    let sent: Vec<f64> = values(0, 2_050_000_000).collect();
    assert_eq!(sent.len(), 20);
    assert!(sent[19] > 2.0 * sent[5], "it grows meanwhile");
    assert!((run.summary.flows[0].cwnd_mean - sent.iter().sum::<f64>() / 20.0).abs() < 1e-9);
    assert!(
        values(2_050_000_000, 2_100_000_001).all(|v| v.is_finite()),
        "the interval in which it stopped"
    );
    assert!(values(2_100_000_001, u64::MAX).all(f64::is_nan));
}

/// A line so fast that a packet takes less than a nanosecond, and no delay: time must pass all the
/// same.
#[test]
fn packets_shorter_than_a_nanosecond_take_time_on_average() {
    let run = run(r#"
        duration = "2us"
        [[link]]
        name = "line"
        between = ["A", "B"]
        rate = "8tbit"
        delay = "0s"
        queue = { kind = "drop-tail", limit = 100000 }
        [[flow]]
        name = "flow"
        from = "A"
        to = "B"
        congestion = "sack"
        packet = 100
    "#);
    let line = &run.summary.links["line"];
    // Ten a nanosecond, two microseconds; of the last nanosecond all may have begun.
    assert!(line.packets > 1000 && line.packets <= 20_000 + 11, "{}", line.packets);
}

/// What arrives after a flow was stopped does not count as its rate while it was active; a flow
/// that would start after its stop never does.
#[test]
fn stopped_flows_count_while_they_ran() {
    let text = |start: &str, measure: &str| {
        format!(
            r#"
            duration = "3s"
            measure = {{ from = "{measure}", to = "3s" }}
            [[link]]
            between = ["A", "B"]
            rate = "10mbit"
            delay = "250ms"
            [[flow]]
            name = "flow"
            from = "A"
            to = "B"
            start = "{start}"
            start-jitter = "2s"
            stop = "2s"
            udp = {{ pattern = "constant", rate = "8mbit" }}
            "#
        )
    };
    let goodput = run(&text("0s", "1900ms")).summary.flows[0].goodput;
    assert!((7.8e6..8e6).contains(&goodput), "{goodput}");
    let late: u64 = (0..8)
        .map(|seed| {
            run(&format!("seed = {seed}\n{}", text("1999999999ns", "0s"))).summary.links["A-B"]
                .packets
        })
        .sum();
    assert_eq!(late, 0);
}

const TWO_PATHS: &str = r#"
    title = "two paths that share nothing"
    duration = "5s"
    [[link]]
    between = ["A", "B"]
    rate = "10mbit"
    delay = "5ms"
    loss = 0.01
    [[link]]
    between = ["C", "D"]
    rate = "20mbit"
    delay = "3ms"
    loss = 0.02
    [[flow]]
    name = "first"
    from = "A"
    to = "B"
    congestion = "sack"
    start-jitter = "100ms"
"#;

const SECOND_FLOW: &str = r#"
    [[flow]]
    name = "second"
    from = "C"
    to = "D"
    congestion = "cubic"
    start-jitter = "100ms"
"#;

#[test]
fn same_seed_same_run_and_another_seed_another() {
    let text = format!("{TWO_PATHS}{SECOND_FLOW}");
    assert_eq!(format!("{:?}", run(&text)), format!("{:?}", run(&text)));
    let other = text.replace("title =", "seed = 2\ntitle =");
    assert_ne!(run(&text).summary.flows[0].goodput, run(&other).summary.flows[0].goodput);
}

/// "The same seed gives the same output whatever else runs."
#[test]
fn a_flow_elsewhere_changes_nothing_here() {
    let alone = run(TWO_PATHS);
    let beside = run(&format!("{TWO_PATHS}{SECOND_FLOW}"));
    assert_eq!(alone.summary.flows[0], beside.summary.flows[0]);
    assert_eq!(alone.summary.links["A-B"], beside.summary.links["A-B"]);
    for quantity in [Quantity::Goodput, Quantity::Cwnd, Quantity::Srtt] {
        let subject = Subject::Flow("first".into());
        // NaN before the start compares unequal to itself: compare the text.
        assert_eq!(
            format!("{:?}", alone.find(&subject, quantity)),
            format!("{:?}", beside.find(&subject, quantity))
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever the chain of links, rates, limits and losses: of the datagrams sent, each was
    /// dropped, lost, delivered or is still under way.
    #[test]
    fn packets_are_conserved(
        rates in prop::collection::vec(1u64..20, 1..5),
        limit in 1u64..60,
        loss in 0.0f64..0.3,
        queue in prop::sample::select(vec!["drop-tail", "red", "xcp"]),
        load in 1u64..30,
        seed in 0u64..1000,
    ) {
        let links: String = rates.iter().enumerate().map(|(i, rate)| format!(
            "[[link]]\nname = \"l{i}\"\nbetween = [\"n{i}\", \"n{}\"]\nrate \
                = \"{rate}mbit\"\ndelay = \"{}ms\"\nqueue = \
                {{ kind = \"{queue}\", limit = {limit} }}\nloss = {loss}\n",
            i + 1, i + 1)).collect();
        let text = format!(
            "title = \"chain\"\nduration = \"3s\"\nseed = {seed}\n{links}[[flow]]\nname \
                = \"cross\"\nfrom = \"n0\"\nto = \"n{}\"\npacket = 500\nudp = \
                {{ pattern = \"poisson\", rate = \"{load}mbit\" }}\n",
            rates.len());
        let run = run(&text);
        let mut arrived = None;
        for i in 0..rates.len() {
            let link = &run.summary.links[&format!("l{i}")];
            // The end of service is a whole nanosecond: one of three seconds' worth more than the
            // line can do, at most.
            prop_assert!(link.utilisation <= 1.0 + 1e-9);
            prop_assert!(link.queue_max <= limit);
            prop_assert!(link.queue_mean <= limit as f64);
            if let Some(arrived) = arrived {
                // What came from the link before is sent, dropped, lost before the queue or
                // waiting.
                let seen = link.packets + link.drops;
                prop_assert!(seen <= arrived, "link {i}: {seen} of {arrived}");
            }
            arrived = Some(link.packets);
        }
        let delivered = (run.summary.flows[0].goodput * 3.0 / 8.0 / 472.0).round();
        let (last, lost_last) = (arrived.unwrap(), run.summary.links[&format!("l{}", rates.len() - 1)].lost);
        prop_assert!(delivered <= last as f64);
        // All that is missing was lost on the last link or is on its cable or line: at most its
        // delay's worth and one.
        let last_rate = rates[rates.len() - 1] as f64 * 1e6 / 8.0 / 500.0;
        let under_way = last_rate * 0.001 * rates.len() as f64 + 2.0;
        prop_assert!(last as f64 - delivered - lost_last as f64 <= under_way);
    }
}

/// A transfer's completion time counts from its own start, jitter included.
#[test]
fn completion_times_count_from_the_start() {
    let text = r#"
        duration = "10s"
        [[link]]
        between = ["A", "B"]
        rate = "10mbit"
        delay = "20ms"
        [[flow]]
        count = 50
        from = "A"
        to = "B"
        congestion = "xcp"
        handshake = false
        delayed-ack = false
        start = "1s"
        start-jitter = "1s"
        arrivals = "100ms"
        bytes = 100
    "#;
    let run = run(text);
    // One small packet there and an acknowledgement back: a round trip and the transmission of
    // both, at most behind a few others.
    assert_eq!(run.summary.flows.len(), 50);
    for flow in &run.summary.flows {
        let time = flow.completion_time.unwrap();
        assert!((0.040..0.046).contains(&time), "{time}");
        assert!(flow.completed_at.unwrap() - time > 1.0);
    }
}
