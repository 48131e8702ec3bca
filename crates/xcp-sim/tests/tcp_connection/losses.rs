//! Loss patterns against recoveries, as a table to be held against the RFCs.

use crate::pipe::*;
use std::fmt::Write;
use xcp_model::{Congestion, Recovery, Tcp};
use xcp_sim::packet::{Ack, Body, Outbox, Packet, SackBlock, SackBlocks, SackId, Sacks};

const RTT_MS: u64 = 100;

const RECOVERIES: [(Recovery, &str); 5] = [
    (Recovery::Reno, "Reno"),
    (Recovery::NewRenoImpatient, "NewReno impatient"),
    (Recovery::NewRenoSlowButSteady, "NewReno steady"),
    (Recovery::Sack, "SACK"),
    (Recovery::SackLinux, "SACK as Linux"),
];

/// A transfer of 300 segments with a first window of 20, over 100 ms and half a millisecond per
/// packet.
fn row(recovery: Recovery, script: Script) -> String {
    let tcp = settings(Congestion::Reno, recovery);
    let tcp = Tcp { bytes: Some(bytes(&tcp, 300)), initial_window: 20, handshake: true, ..tcp };
    let mut pipe = Pipe::new(&tcp, RTT_MS / 2 * MS, MS / 2, script);
    pipe.start();
    let mut recovering = 0;
    while pipe.run(pipe.now + MS) {
        recovering += u64::from(pipe.sender.in_recovery());
    }
    let stats = pipe.sender.stats();
    format!(
        "{:>5} {:>8} {:>8} {:>10.1} {:>8.1}",
        stats.retransmits,
        stats.timeouts,
        stats.fast_recoveries,
        recovering as f64 / RTT_MS as f64,
        pipe.sender.completed_at().unwrap() as f64 / (RTT_MS * MS) as f64,
    )
}

/// Loses segment 0 as often as this.
fn lose_zero(times: u32) -> Script<'static> {
    let mut left = times;
    Box::new(move |_, packet, _, _| {
        if matches!(packet.body, Body::Data { .. }) && packet.seq == 0 && left > 0 {
            left -= 1;
            return Fate::Lose;
        }
        Fate::Pass
    })
}

#[test]
fn patterns_by_recovery() {
    let mut table = String::from("recovering and completed in round trips\n");
    let all: Vec<u64> = (0..20).collect();
    let half: Vec<u64> = (0..20).step_by(2).collect();
    let patterns: [(&str, &[u64]); 9] = [
        ("none", &[]),
        ("first", &[0]),
        ("first 2", &[0, 1]),
        ("first 3", &[0, 1, 2]),
        ("3 spread", &[0, 6, 12]),
        ("every other", &half),
        ("whole window", &all),
        ("last of the transfer", &[299]),
        ("3 before the last", &[296, 297, 298]),
    ];
    let mut add = |name: &str, make: &dyn Fn() -> Script<'static>| {
        for (recovery, label) in RECOVERIES {
            writeln!(table, "{name:<21} {label:<18} {}", row(recovery, make())).unwrap();
        }
    };
    for (name, segments) in patterns {
        add(name, &|| lose_first(segments));
    }
    add("first, twice", &|| lose_zero(2));
    add("first, four times", &|| lose_zero(4));
    table.insert_str(
        0,
        &format!(
            "{:<40} {:>5} {:>8} {:>8} {:>10} {:>8}\n",
            "", "again", "timeouts", "recover", "recovering", "done"
        ),
    );
    insta::assert_snapshot!(table);
}

/// ns-2's Reno (`bugFix_`) repairs the first loss of a window as RFC 5681's does and leaves the
/// second to the timeout, where that starts another fast retransmit.
#[test]
fn reno_of_ns2_repairs_one_loss_a_window() {
    let lose = |recovery, segments: &'static [u64]| {
        let tcp = settings(Congestion::Reno, recovery);
        let tcp = Tcp { bytes: Some(bytes(&tcp, 300)), initial_window: 20, handshake: true, ..tcp };
        let mut pipe = Pipe::new(&tcp, RTT_MS / 2 * MS, MS / 2, lose_first(segments));
        pipe.start();
        while pipe.run(pipe.now + MS) {}
        (pipe.sender.stats().fast_recoveries, pipe.sender.timeouts())
    };
    assert_eq!(lose(Recovery::Reno, &[0]), lose(Recovery::RenoNs2, &[0]));
    assert_eq!(lose(Recovery::Reno, &[0, 1]), (2, 0));
    let (recoveries, timeouts) = lose(Recovery::RenoNs2, &[0, 1]);
    assert_eq!((recoveries, timeouts > 0), (1, true));
}

/// With a window much larger than the number of duplicate ACKs needed, SACK repairs any losses of
/// one window within two round trips and NewReno steady needs one per loss.
#[test]
fn sack_repairs_a_window_in_two_round_trips() {
    for losses in [1u64, 3, 10, 30] {
        let segments: Vec<u64> = (0..losses).map(|i| i * 6).collect();
        for (recovery, least, most) in [
            (Recovery::Sack, 1.0, 2.1),
            (Recovery::NewRenoSlowButSteady, losses as f64, losses as f64 + 1.1),
        ] {
            let tcp = Tcp { initial_window: 400, ..settings(Congestion::Reno, recovery) };
            let mut pipe = Pipe::new(&tcp, RTT_MS / 2 * MS, 0, lose_first(&segments));
            pipe.start();
            pipe.run(RTT_MS * MS);
            assert!(pipe.sender.in_recovery());
            while pipe.sender.in_recovery() {
                pipe.run(pipe.now + MS);
            }
            let round_trips = (pipe.now / MS - RTT_MS) as f64 / RTT_MS as f64;
            assert!(
                (least..=most).contains(&round_trips),
                "{recovery:?}, {losses} losses: {round_trips}"
            );
            assert_eq!((pipe.sender.stats().retransmits, pipe.sender.timeouts()), (losses, 0));
        }
    }
}

/// RFC 6675 §5: an ACK that brings news by SACK counts as a duplicate one "regardless of its status
/// as a cumulative acknowledgment". Here it is the only one that survives: it acknowledges segment
/// 2 and reports six above the hole.
#[test]
fn an_ack_that_advances_can_tell_of_a_loss_too() {
    let tcp = Tcp { initial_window: 10, ..settings(Congestion::Reno, Recovery::Sack) };
    let tcp = Tcp { bytes: Some(bytes(&tcp, 10)), ..tcp };
    let script: Script = Box::new(|data, packet, number, _| {
        let lost = if data { packet.seq == 3 && number < 10 } else { (2..8).contains(&number) };
        if lost { Fate::Lose } else { Fate::Pass }
    });
    let mut pipe = Pipe::new(&tcp, RTT_MS / 2 * MS, MS, script);
    pipe.start();
    assert!(!pipe.run(10 * SEC));
    assert_eq!((pipe.sender.retransmits(), pipe.sender.timeouts()), (1, 0));
    // Segment 9 leaves the line 10 ms after the start; the repair takes another millisecond and
    // round trip.
    assert_eq!(pipe.sender.completed_at(), Some(2 * RTT_MS * MS + 11 * MS));
}

/// A whole window is lost. Where no router says otherwise an XCP window grows as in slow start, so
/// that its repair takes log2(window) round trips; who asks for no more than is in the network
/// takes sqrt(window) of them, and after a blackout many times as long as the blackout.
#[test]
fn xcp_asks_for_the_window_to_repair_a_lost_one() {
    for (recovery, label) in RECOVERIES {
        let tcp = Tcp { initial_window: 400, ..settings(Congestion::Xcp, recovery) };
        let all: Vec<u64> = (0..400).collect();
        let mut pipe = Pipe::new(&tcp, RTT_MS / 2 * MS, 0, lose_first(&all));
        pipe.start();
        while pipe.sender.sequence().0 < 400 {
            pipe.run(pipe.now + MS);
        }
        // The initial timeout is a second; 1 + 2 + 4 + ... + 256 segments is more than 400.
        // Requests are rounded down, so that the window is a little short of doubling each time.
        let round_trips = (pipe.now - SEC) / (RTT_MS * MS);
        assert!((9..=12).contains(&round_trips), "{label}: {round_trips}");
        assert_eq!(pipe.sender.timeouts(), 1);
    }
}

/// An ACK for what was never sent changes nothing, and neither does one with absurd SACK blocks.
#[test]
fn nonsense_is_ignored() {
    let tcp = Tcp { initial_window: 10, ..settings(Congestion::Reno, Recovery::Sack) };
    let mut pipe = Pipe::new(&tcp, 50 * MS, 0, lose_first(&[3]));
    pipe.start();
    let mut acked = |seq, blocks: SackBlocks| {
        let sack = if blocks == SackBlocks::default() {
            SackId::NONE
        } else {
            Sacks::default().keep(blocks)
        };
        let ack = Ack { window: u32::MAX, sack, ..Default::default() };
        let packet = Packet { seq, timestamp: 0, flow: 0, size: 52, body: Body::Ack(ack) };
        pipe.sender.on_ack(MS, &packet, &ack, &blocks, &mut Nothing);
        (pipe.sender.sequence(), pipe.sender.outstanding(), pipe.sender.srtt())
    };
    assert_eq!(acked(11, SackBlocks::default()), ((0, 10), 10, 0));
    let absurd =
        [(u32::MAX, u32::MAX), (5, 100), (0, 0)].map(|(start, length)| SackBlock { start, length });
    assert_eq!(acked(0, absurd), ((0, 10), 10, 0));
    pipe.run(10 * RTT_MS * MS);
    assert_eq!(pipe.sender.retransmits(), 1);
}

struct Nothing;

impl Outbox for Nothing {
    fn send(&mut self, packet: &mut Packet) {
        panic!("nothing to send: {packet:?}");
    }
    fn sack(&mut self, blocks: SackBlocks) -> SackId {
        panic!("nothing to report: {blocks:?}");
    }
}
