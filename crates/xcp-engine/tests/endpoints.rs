//! Sender and receiver by themselves: units, bounds, fractions, requests, ageing.

use proptest::prelude::*;
use xcp_engine::{
    ForwardHeader, Receiver, ReturnHeader, Rounding, Sendable, Sender, SenderConfig, WireFormat,
    flags,
};

const MS: u64 = 1_000_000;

fn sender(f: impl Fn(&mut SenderConfig)) -> Sender {
    let mut config = SenderConfig::new(WireFormat::Extended, 1500);
    f(&mut config);
    Sender::new(&config)
}

fn limit(window_limit: u32) -> Sendable {
    Sendable { window_limit }
}

#[test]
fn feedback_is_a_rate_times_the_rtt() {
    let mut s = sender(|c| c.initial_window = 100);
    // 3000 bytes/s at 100 ms are 300 bytes, a fifth of a packet
    s.feedback(0, &ReturnHeader::encode(WireFormat::Extended, 3000.0, true), 100 * MS, true);
    assert!((s.window() - 100.2).abs() < 1e-8);
    s.feedback(0, &ReturnHeader::encode(WireFormat::Extended, -3000.0, true), 100 * MS, true);
    assert!((s.window() - 100.0).abs() < 1e-8);
    assert_eq!(s.cwnd(), if s.window() < 100.0 { 99 } else { 100 });
    // RTT unknown, header absent or of the other format: nothing happens
    let before = s.window();
    s.feedback(0, &ReturnHeader::encode(WireFormat::Extended, 1e6, true), 0, true);
    s.feedback(0, &ReturnHeader::default(), 100 * MS, true);
    s.feedback(0, &ReturnHeader::encode(WireFormat::Classic, 5.0, true), 100 * MS, true);
    assert_eq!(s.window(), before);
    let mut c = sender(|c| c.format = WireFormat::Classic);
    c.feedback(0, &ReturnHeader::encode(WireFormat::Classic, 0.25, false), 0, true);
    assert_eq!(c.window(), 2.25);
}

#[test]
fn bounds() {
    let mut s = sender(|c| (c.min_window, c.max_window) = (0.5, 50));
    s.feedback(
        0,
        &ReturnHeader::encode(WireFormat::Extended, f64::INFINITY, true),
        65_000 * MS,
        true,
    );
    assert_eq!(s.window(), 50.0);
    s.on_loss(true);
    assert_eq!(s.window(), 25.0);
    s.on_timeout();
    assert_eq!(s.window(), 1.0);
    s.feedback(
        0,
        &ReturnHeader::encode(WireFormat::Extended, f64::NEG_INFINITY, true),
        65_000 * MS,
        true,
    );
    assert_eq!((s.window(), s.cwnd()), (0.5, 1));
}

#[test]
fn a_spurious_timeout_or_loss_is_undone() {
    for marked in [false, true] {
        let mut s = sender(|c| c.initial_window = 40);
        if marked {
            s.feedback(0, &ReturnHeader::encode(WireFormat::Extended, 0.0, true), 100 * MS, true);
        }
        let before = s.clone();
        s.on_timeout();
        assert_eq!(s.window(), 1.0);
        s.restore(&before);
        assert_eq!(s.window(), 40.0);
        s.on_loss(true);
        assert_eq!(s.window(), 20.0);
        s.restore(&before);
        let ask = |s: &mut Sender| s.header(1, 100 * MS, &Sendable::UNLIMITED).feedback_value();
        assert_eq!(ask(&mut s), ask(&mut before.clone()), "slow start goes on where it was");
        // what has grown meanwhile is not taken away
        s.feedback(
            0,
            &ReturnHeader::encode(WireFormat::Extended, f64::INFINITY, true),
            100 * MS,
            true,
        );
        let grown = s.window();
        s.restore(&before);
        assert!(grown > 40.0 && s.window() == grown);
    }
}

#[test]
fn requests() {
    let rtt = 100 * MS;
    let packet_per_packet = 1500.0 / 0.1;
    let ask = |s: &mut Sender, l| s.header(1, rtt, &l).feedback_value();
    let near = |a: f64, b: f64| assert!((a - b).abs() <= b.abs() / 256.0, "{a} {b}");
    let mut s = sender(|c| c.initial_window = 10);
    // no router heard of: slow start
    near(ask(&mut s, Sendable::UNLIMITED), packet_per_packet);
    near(ask(&mut s, limit(1000)), packet_per_packet);
    near(ask(&mut s, limit(15)), 0.5 * packet_per_packet);
    assert_eq!(ask(&mut s, limit(10)), 0.0);
    assert_eq!(ask(&mut s, limit(0)), 0.0);
    // a mark: the rest of what can be used within a round trip, or all there is
    s.feedback(1, &ReturnHeader::encode(WireFormat::Extended, 0.0, true), rtt, true);
    assert!(s.marked());
    assert_eq!(s.header(1, rtt, &Sendable::UNLIMITED).feedback, 0x7fff);
    near(ask(&mut s, limit(1000)), 99.0 * packet_per_packet);
    // RTT unknown: nothing can be asked for
    assert_eq!(s.header(1, 0, &Sendable::UNLIMITED).feedback, 0);
    // the 2005 study's sender
    let mut s = sender(|c| c.honest = false);
    assert_eq!(s.header(1, rtt, &limit(1)).feedback, 0x7fff);
    // classic: packets; and less than the smallest request is a router's work
    let mut s = sender(|c| c.format = WireFormat::Classic);
    assert_eq!(s.header(1, rtt, &Sendable::UNLIMITED).feedback_value(), 1.0);
    s.feedback(1, &ReturnHeader::encode(WireFormat::Classic, 1.0, false), rtt, true);
    assert!(!s.marked());
    s.feedback(1, &ReturnHeader::encode(WireFormat::Classic, 0.75, false), rtt, true);
    assert!(s.marked());
    assert_eq!(s.header(1, rtt, &Sendable::UNLIMITED).feedback, 0x7fff);
}

/// A round trip over a path without routers: as many packets as the window holds, and what each
/// asked for comes back. `per_ack` packets to an ACK.
fn round_trip(s: &mut Sender, now: &mut u64, format: WireFormat, per_ack: usize) {
    let rtt = 100 * MS;
    let mut receiver = Receiver::new(format);
    let sent: Vec<_> = (0..s.cwnd()).map(|_| s.header(*now, rtt, &Sendable::UNLIMITED)).collect();
    *now += rtt;
    for headers in sent.chunks(per_ack) {
        headers.iter().for_each(|h| receiver.data(h));
        s.feedback(*now, &receiver.returned(), rtt, true);
    }
}

#[test]
fn without_routers_it_is_tcp() {
    for format in [WireFormat::Extended, WireFormat::Classic] {
        let mut s = sender(|c| c.format = format);
        let mut now = MS;
        let near = |s: &Sender, want: f64| {
            assert!((s.window() / want - 1.0).abs() < 0.02, "{format:?}: {} not {want}", s.window())
        };
        // slow start: what was sent is added
        for _ in 0..5 {
            let want = s.window() + f64::from(s.cwnd());
            round_trip(&mut s, &mut now, format, 1);
            near(&s, want);
        }
        assert!(s.window() > 45.0);
        // a loss halves, whatever the answer to losses; then one packet per round trip
        for answer in [false, true] {
            let half = s.window() / 2.0;
            s.on_loss(answer);
            near(&s, half);
            for more in [1.0, 2.0, 3.0, 4.0] {
                round_trip(&mut s, &mut now, format, 1);
                near(&s, half + more);
            }
        }
        // and so with delayed acknowledgements
        let before = s.window();
        (0..4).for_each(|_| round_trip(&mut s, &mut now, format, 2));
        near(&s, before + 4.0);
        // a timeout: slow start to half the window, where slow start's last answers do not carry it
        // on
        let half = s.window() / 2.0;
        s.on_timeout();
        assert_eq!(s.window(), 1.0);
        let mut rounds = 0;
        while s.window() < half {
            let want = (s.window() + f64::from(s.cwnd())).min(half + 2.0);
            round_trip(&mut s, &mut now, format, 1);
            assert!(
                s.window() <= want && s.window() > 0.98 * want - 2.0,
                "{format:?}: {} not {want}",
                s.window()
            );
            rounds += 1;
        }
        assert!((4..=6).contains(&rounds) && !s.marked(), "{rounds}");
        // never less than two packets
        (0..10).for_each(|_| s.on_loss(false));
        assert_eq!(s.window(), 2.0);
    }
}

/// The queue fills while slow start goes on: a request is a rate, and the RTT by which it is taken
/// has grown. With delayed acknowledgements the window does not more than double all the same.
#[test]
fn growing_round_trips_do_not_hasten_slow_start() {
    let mut s = sender(|c| c.initial_window = 32);
    let mut receiver = Receiver::new(WireFormat::Extended);
    let asked: Vec<_> = (0..32).map(|_| s.header(MS, 40 * MS, &Sendable::UNLIMITED)).collect();
    for two in asked.chunks(2) {
        two.iter().for_each(|h| receiver.data(h));
        s.feedback(2 * MS, &receiver.returned(), 120 * MS, true);
    }
    assert_eq!(s.window(), 64.0);
}

/// What was asked for before the loss comes back after it, and does not undo the halving.
#[test]
fn late_answers_do_not_undo_a_loss() {
    let rtt = 100 * MS;
    let mut s = sender(|c| c.initial_window = 100);
    let asked: Vec<_> =
        (0..100).map(|_| s.header(MS, rtt, &Sendable::UNLIMITED).feedback_value()).collect();
    s.on_loss(false);
    for value in asked {
        s.feedback(2 * MS, &ReturnHeader::encode(WireFormat::Extended, value, false), rtt, true);
    }
    assert!((50.0..=54.0).contains(&s.window()), "{}", s.window());
    // a router's answer is taken whole
    let before = s.window();
    s.feedback(
        3 * MS,
        &ReturnHeader::encode(WireFormat::Extended, 15_000.0 * 10.0, true),
        rtt,
        true,
    );
    assert!((s.window() - before - 10.0).abs() < 0.1, "{}", s.window());
}

/// The first mark makes the threshold forgotten; losses are answered as the connection is set to.
#[test]
fn marked_senders_know_no_threshold() {
    let rtt = 100 * MS;
    let mark = ReturnHeader::encode(WireFormat::Extended, 0.0, true);
    let rise = |marked| ReturnHeader::encode(WireFormat::Extended, 15_000.0, marked);
    let mut lossy = sender(|c| c.initial_window = 64);
    lossy.on_loss(false);
    lossy.feedback(MS, &mark, rtt, true);
    let mut clean = sender(|c| c.initial_window = 32);
    clean.feedback(MS, &mark, rtt, true);
    for s in [&mut lossy, &mut clean] {
        assert_eq!(s.header(MS, rtt, &Sendable::UNLIMITED).feedback, 0x7fff);
        s.on_loss(false);
        assert_eq!(s.window(), 32.0);
        s.feedback(2 * MS, &rise(true), rtt, true);
        s.feedback(2 * MS, &rise(true), rtt, true);
        assert!((s.window() - 34.0).abs() < 0.01, "{}", s.window());
        s.on_loss(true);
        assert!((s.window() - 17.0).abs() < 0.01, "{}", s.window());
        s.on_timeout();
        assert_eq!(s.window(), 1.0);
        (0..40).for_each(|_| s.feedback(3 * MS, &rise(true), rtt, true));
        assert!((s.window() - 41.0).abs() < 0.2, "{}", s.window());
        (0..6).for_each(|_| s.on_loss(true));
        assert_eq!(s.window(), 1.0);
        assert!(s.marked());
    }
    // the 2005 study's sender never knew one
    let mut naive = sender(|c| (c.initial_window, c.honest) = (64, false));
    naive.on_loss(false);
    assert_eq!(naive.window(), 64.0);
    naive.on_loss(true);
    assert_eq!(naive.window(), 32.0);
    assert_eq!(naive.header(1, rtt, &Sendable::UNLIMITED).feedback, 0x7fff);
    naive.on_timeout();
    (0..40).for_each(|_| naive.feedback(3 * MS, &rise(false), rtt, true));
    assert!((naive.window() - 41.0).abs() < 0.2, "{}", naive.window());
}

#[test]
fn headers_say_what_will_be_sent() {
    let window = |s: &mut Sender, l| s.header(1, 100 * MS, &l).window_packets().expect("known");
    let mut s = sender(|c| c.initial_window = 100);
    assert_eq!(window(&mut s, Sendable::UNLIMITED), 100.0);
    assert_eq!(window(&mut s, limit(40)), 40.0);
    assert_eq!(window(&mut s, limit(0)), 1.0);
    let mut naive = sender(|c| (c.initial_window, c.honest) = (100, false));
    assert_eq!(window(&mut naive, limit(40)), 100.0);
}

#[test]
fn unused_allowance_ages_once_per_round_trip() {
    let rtt = 100 * MS;
    let none = ReturnHeader::encode(WireFormat::Extended, 0.0, true);
    let mut s = sender(|c| c.initial_window = 100);
    let mut now = MS;
    for want in [70.0, 55.0, 47.5] {
        for _ in 0..10 {
            s.header(now, rtt, &limit(40));
            now += rtt / 10;
            s.feedback(now, &none, rtt, false);
        }
        assert_eq!(s.window(), want);
    }
    // limited only part of the time: the whole window was used, nothing ages
    for i in 0..20 {
        s.header(now, rtt, &limit(if i % 10 == 3 { 100 } else { 40 }));
        now += rtt / 10;
        s.feedback(now, &none, rtt, true);
    }
    assert_eq!(s.window(), 47.5);
    // increases do not count while something else is the limit, decreases do
    s.feedback(now, &ReturnHeader::encode(WireFormat::Extended, 15_000.0, true), rtt, false);
    assert_eq!(s.window(), 47.5);
    s.feedback(now, &ReturnHeader::encode(WireFormat::Extended, -15_000.0, true), rtt, false);
    assert!((s.window() - 46.5).abs() < 1e-2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// However many packets an acknowledgement answers: what came back is what went out, but for
    /// less than one step still in the sum.
    #[test]
    fn receivers_lose_nothing(values in prop::collection::vec(-1e4..1e4f64, 1..300), per_ack in 1..5usize, classic in any::<bool>()) {
        let format = if classic { WireFormat::Classic } else { WireFormat::Extended };
        let mut r = Receiver::new(format);
        let (mut sent, mut back, mut last) = (0.0, 0.0, 0.0f64);
        for chunk in values.chunks(per_ack) {
            for v in chunk {
                let h = ForwardHeader { wait: 3, ..ForwardHeader::encode(format, 1, 1.0, *v) };
                sent += h.feedback_value();
                r.data(&h);
            }
            let h = r.returned();
            prop_assert_eq!((h.format(), h.wait), (format, 3));
            last = h.feedback_value();
            back += last;
        }
        let step = if classic { last.abs() / 256.0 } else { last.abs() / 512.0 };
        prop_assert!((sent - back).abs() <= step + 1e-6, "{sent} {back}");
        // with nothing new, the rest follows
        for _ in 0..6 {
            back += r.returned().feedback_value();
        }
        prop_assert!((sent - back).abs() <= 1e-6, "{sent} {back}");
    }

    /// The same where an acknowledgement is cut into segments, each of which is heard once, whether
    /// they are put together again or not.
    #[test]
    fn segments_share_what_is_returned(
        acks in prop::collection::vec((prop::collection::vec(-1e6..1e6f64, 1..4), 1..50u32, any::<bool>()), 1..100),
        classic in any::<bool>(),
    ) {
        let format = if classic { WireFormat::Classic } else { WireFormat::Extended };
        let rtt = 100 * MS;
        let mut receiver = Receiver::new(format);
        // In the classic format feedback is packets, in the other a rate of which 15000 bytes/s are
        // a packet.
        let (scale, worth) = if classic { (1e-3, 1.0) } else { (1.0, 15_000.0) };
        let mut s = sender(|c| (c.format, c.initial_window, c.honest) = (format, 1 << 20, false));
        let (start, mut granted) = (s.window(), 0.0);
        let mut last = 0.0f64;
        for (values, segments, together) in acks {
            for v in values {
                let h = ForwardHeader::encode(format, 1, 1.0, v * scale);
                granted += h.feedback_value();
                receiver.data(&h);
            }
            let part = receiver.returned_segments(segments);
            last = part.feedback_value();
            if together {
                s.feedback_segments(0, &part, rtt, true, segments);
            } else {
                (0..segments).for_each(|_| s.feedback(0, &part, rtt, true));
            }
        }
        // What the parts could not say is still in the sum: less than a step of the code for each
        // segment.
        let rest: f64 = (0..8).map(|_| receiver.returned().feedback_value()).sum();
        prop_assert!(rest.abs() <= 50.0 * (last.abs() / 256.0 + 1e-3), "{rest} after {last}");
        let got = (s.window() - start) * worth + rest;
        prop_assert!((got - granted).abs() <= 1e-6 * granted.abs() + 1e-2, "{got} of {granted}");
    }

    #[test]
    fn segments_count(v in -1e9..1e9f64, n in 1..100u32) {
        let h = ForwardHeader::encode(WireFormat::Extended, 1, 1.0, v);
        let (mut a, mut b) = (Receiver::new(WireFormat::Extended), Receiver::new(WireFormat::Extended));
        a.data_segments(&h, n);
        (0..n).for_each(|_| b.data(&h));
        prop_assert_eq!(a.returned(), b.returned());
    }
}

#[test]
fn mark_and_id_are_the_newest_packets() {
    let mut r = Receiver::new(WireFormat::Extended);
    let h = ForwardHeader::encode(WireFormat::Extended, 1, 1.0, 0.0);
    r.data(&ForwardHeader {
        flags: h.flags | flags::MARK | flags::IDS,
        next_bottleneck_id: 7,
        ..h
    });
    let back = r.returned();
    assert!(back.marked() && back.next_bottleneck_id == 7 && back.flags & flags::IDS != 0);
    r.data(&h);
    assert!(!r.returned().marked());
    // other formats, and no header at all, are ignored
    r.data(&ForwardHeader::encode(WireFormat::Classic, 1, 1.0, 100.0));
    r.data(&ForwardHeader::default());
    assert_eq!(r.returned().feedback_value(), 0.0);
    assert_eq!(WireFormat::Extended.encode_feedback(0.0, Rounding::Nearest), 0);
}

/// Where routers vanish, what was asked for comes home unlowered, and without a mark: it raises
/// nothing, and after a round trip or two the sender is an ordinary TCP in congestion avoidance,
/// until a router speaks again.
#[test]
fn a_router_that_vanishes() {
    for format in [WireFormat::Extended, WireFormat::Classic] {
        for per_ack in [1, 2] {
            let mut s = sender(|c| (c.format, c.initial_window) = (format, 50));
            let router =
                |value| ReturnHeader::encode(format, value, format == WireFormat::Extended);
            let mut now = MS;
            s.header(now, 100 * MS, &Sendable::UNLIMITED);
            s.feedback(now, &router(-1.0), 100 * MS, true);
            assert!(s.marked());
            let (mut was, mut rounds) = (s.window(), 0);
            while s.marked() {
                round_trip(&mut s, &mut now, format, per_ack);
                rounds += 1;
                assert!(
                    s.window() <= was + 2.0 && rounds <= 3,
                    "{format:?}, round {rounds}: {} after {was}",
                    s.window()
                );
            }
            for _ in 0..10 {
                was = s.window();
                round_trip(&mut s, &mut now, format, per_ack);
                assert!(
                    s.window() > was + 0.9 && s.window() < was + 1.1,
                    "{format:?}: {} after {was}",
                    s.window()
                );
            }
            was = s.window();
            s.on_loss(false);
            assert!((s.window() - was / 2.0).abs() < 1e-6);
            // it is back
            s.feedback(now, &router(-1.0), 100 * MS, true);
            assert!(s.marked());
            assert_eq!(s.header(now, 100 * MS, &Sendable::UNLIMITED).feedback, 0x7fff);
        }
    }
}

/// One path of several has a router: marks come with some answers only. Those count, and the sender
/// stays what it is.
#[test]
fn some_answers_without_mark() {
    let rtt = 100 * MS;
    let rise = |marked| ReturnHeader::encode(WireFormat::Extended, 15_000.0, marked);
    let mut s = sender(|c| c.initial_window = 10);
    s.header(MS, rtt, &Sendable::UNLIMITED);
    for i in 0..300 {
        s.feedback(MS + i * rtt / 10, &rise(i % 10 == 0), rtt, true);
    }
    assert!(s.marked() && (s.window() - 40.0).abs() < 0.1, "{}", s.window());
    // the 2005 study's sender believes everything
    let mut naive = sender(|c| (c.initial_window, c.honest) = (10, false));
    (0..300).for_each(|i| naive.feedback(MS + i * rtt / 10, &rise(i % 10 == 0), rtt, true));
    assert!((naive.window() - 310.0).abs() < 1.0, "{}", naive.window());
}

/// A router comes on to the path within one acknowledgement: its mark does not vouch for what the
/// packet before it asked for.
#[test]
fn a_mark_vouches_for_nobody_else() {
    let asked = ForwardHeader::encode(WireFormat::Extended, 1, 1.0, f64::INFINITY);
    let granted = ForwardHeader::encode(WireFormat::Extended, 1, 1.0, 3000.0);
    let marked = |h: ForwardHeader| ForwardHeader { flags: h.flags | flags::MARK, ..h };
    let mut r = Receiver::new(WireFormat::Extended);
    for before in 1..4 {
        (0..before).for_each(|_| r.data(&asked));
        r.data(&marked(granted));
        assert!((r.returned().feedback_value() / 3000.0 - 1.0).abs() < 0.01);
        assert!(
            !{
                r.data(&asked);
                r.returned()
            }
            .marked()
        );
    }
    // what was to be taken away is, whoever said so
    let cut = ForwardHeader::encode(WireFormat::Extended, 1, 1.0, -3000.0);
    let mut r = Receiver::new(WireFormat::Extended);
    r.data(&cut);
    r.data(&marked(cut));
    assert!((r.returned().feedback_value() / 6000.0 + 1.0).abs() < 0.01);
}

/// In the classic format feedback below any request names a router; but not where it may be a part
/// of a sum, as beside data.
#[test]
fn a_part_of_a_sum_names_no_classic_router() {
    let mut receiver = Receiver::new(WireFormat::Classic);
    let mut s = sender(|c| (c.format, c.initial_window) = (WireFormat::Classic, 10));
    (0..10).for_each(|_| receiver.data(&s.header(MS, 100 * MS, &Sendable::UNLIMITED)));
    let part = receiver.returned_segments(20);
    let shared = ReturnHeader { flags: part.flags | flags::SHARED, ..part };
    s.feedback(MS, &shared, 100 * MS, true);
    assert!(!s.marked() && part.feedback_value() < 1.0);
    s.feedback(MS, &part, 100 * MS, true);
    assert!(s.marked());
}
