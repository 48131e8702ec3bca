//! What the header says where the rate alone does not: below one packet, and by a late pacer.

use xcp_engine::{ForwardHeader, Sendable};

use super::*;

/// Below one packet the header says a longer RTT and a window of one.
#[test]
fn below_one_packet_the_header_says_how_long_one_takes() {
    let mut sender = RobustSender::new(SIZE, 2, None);
    let mut now = S;
    for _ in 0..40 {
        round(&mut sender, &mut now, 100 * MS, 1, -20_000.0);
        sender.answered(&loss(1));
    }
    let window = sender.window();
    assert!((1.0 / 64.0..1.0).contains(&window), "{window}");
    let mut h = ForwardHeader::default();
    sender.write_header(now, &Sendable::UNLIMITED, false, &mut h);
    let told = h.rtt_ns().expect("known") as f64;
    assert_eq!(h.window_packets(), Some(1.0));
    assert!((told * window / (100.0 * MS as f64) - 1.0).abs() < 0.01, "{told} for {window}");
}

/// Where the pacer does not move what waits, the same rate is told as that of a longer path.
#[test]
fn a_late_pacer_is_told_as_half_a_gap_more() {
    let mut sender = RobustSender::new(SIZE, 4, None);
    sender.answered(&Answer { delivered: 0, ..ack(100 * MS, 100 * MS, 0, answer(0.0)) });
    for (late, rtt_ms, window) in [(false, 100.0, 4.0), (true, 112.5, 4.5)] {
        let mut h = ForwardHeader::default();
        sender.write_header(100 * MS, &Sendable::UNLIMITED, late, &mut h);
        assert_eq!(h.window_packets(), Some(window));
        let told_ms = h.rtt_ns().expect("known") as f64 / MS as f64;
        assert!((told_ms / rtt_ms - 1.0).abs() < 0.001, "{told_ms}");
    }
}
