//! Queues: every kind, and their limits, thresholds and targets in every unit.

use xcp_model::{Discipline, Limit, Queue, Red, Router};
use xcp_scenario::QUEUES;

use crate::{one, small};

/// A word that the language has and the reader does not know would be drop-tail.
#[test]
fn every_kind_of_queue_is_read() {
    for word in QUEUES {
        let s = one(&small(&format!("queue = \"{word}\""), "", ""));
        assert_eq!(s.links[0].directions[0].queue.discipline.name(), *word);
    }
}

#[test]
fn limits_in_every_unit() {
    let limit = |text: &str| match one(&small(&format!("queue = {{ limit = {text} }}"), "", ""))
        .links[0]
        .directions[0]
        .queue
    {
        Queue { limit, discipline: Discipline::DropTail, .. } => limit,
        _ => panic!(),
    };
    assert_eq!(limit("100"), Limit::Packets(100));
    assert_eq!(limit("\"100p\""), Limit::Packets(100));
    assert_eq!(limit("\"64kb\""), Limit::Bytes(65_536));
    assert_eq!(limit("\"2.5bdp\""), Limit::Bytes(62_500));
    assert_eq!(limit("\"0.001bdp\""), Limit::Bytes(1500), "at least a packet");
    // No flow crosses `spare`: twice its own delay.
    let spare = "[[link]]\nname = \"spare\"\nbetween = [\"X\", \"S\"]\nrate = \"8mbit\"\ndelay \
        = \"100ms\"\nqueue = { limit = \"1bdp\" }";
    assert!(matches!(
        one(&small("", "", spare)).links[1].directions[1].queue,
        Queue { limit: Limit::Bytes(200_000), discipline: Discipline::DropTail, .. }
    ));
}

#[test]
fn red_thresholds() {
    let red = |text: &str| match one(&small(
        &format!("queue = {{ kind = \"red\", {text} }}"),
        "packet = 1000",
        "",
    ))
    .links[0]
        .directions[0]
        .queue
    {
        Queue {
            discipline:
                Discipline::Red(Red { min_packets, max_packets, max_probability, weight, gentle }),
            ..
        } => (min_packets, max_packets, max_probability, weight, gentle),
        _ => panic!(),
    };
    assert_eq!(red("limit = 300"), (100.0, 200.0, 0.1, None, true));
    assert_eq!(
        red("limit = 300, min = 5, max = \"15p\", probability = 0.02, weight = 0.002, gentle = \
                false"),
        (5.0, 15.0, 0.02, Some(0.002), false)
    );
    assert_eq!(
        red("limit = \"100000b\", min = \"25%\", max = \"50kb\""),
        (25.0, 51.2, 0.1, None, true)
    );
    // 10 Mbit/s x 20 ms are 25 packets of 1000 bytes.
    assert_eq!(
        red("limit = \"4bdp\", min = \"1bdp\", max = \"3bdp\""),
        (25.0, 75.0, 0.1, None, true)
    );
}

#[test]
fn a_target_is_bytes_by_the_flows_that_cross() {
    let target = |written: &str, packets: &str| {
        let link = format!(
            "queue = {{ kind = \"xcp\", limit = \"8mb\", law = {{ target = {written} }} }}"
        );
        let s = one(&small(&link, packets, ""));
        s.links[0].directions.each_ref().map(|d| match &d.queue {
            Queue { discipline: Discipline::Xcp(Router { law, .. }), .. } => {
                law.config.queue_target_bytes
            }
            _ => panic!("not an xcp queue"),
        })
    };
    // Only the forward direction carries data; the other counts packets of 1500 bytes.
    assert_eq!(target("10", "packet = 500"), [5000, 15_000]);
    assert_eq!(target("\"10p\"", ""), [15_000, 15_000]);
    assert_eq!(target("\"3kb\"", "packet = 500"), [3072, 3072]);
    // 10 Mbit/s: 1250 bytes a millisecond, 20 ms of round trip.
    assert_eq!(target("\"4ms\"", ""), [5000, 5000]);
    assert_eq!(target("\"0.5bdp\"", ""), [12_500, 12_500]);
    assert_eq!(target("0", ""), [0, 0]);
    assert_eq!(target("\"0s\"", ""), [0, 0]);
}
