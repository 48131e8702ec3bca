//! Rate and window: what changes them and what does not, and how much may be in flight.

use super::*;

/// Steps 1 and 2: a queue changes neither rate nor window, and feedback without a mark nothing.
#[test]
fn the_rate_is_the_state() {
    let mut sender = RobustSender::new(SIZE, 10, None);
    sender.answered(&ack(100 * MS, 100 * MS, 0, answer(0.0)));
    let gap = sender.gap_ns();
    assert_eq!(gap, Some(10 * MS));
    sender.answered(&Answer {
        delivered: 0,
        srtt_ns: 190 * MS,
        ..ack(300 * MS, 200 * MS, 100 * MS, answer(0.0))
    });
    assert_eq!((sender.gap_ns(), sender.window()), (gap, 10.0));
    assert_eq!(sender.limit(), 10, "the first window may have filled a queue by itself");
    sender.answered(&delivery(300 * MS, 100 * MS, 1));
    assert!(sender.limit() >= 19, "in flight as much as the rate makes of it: {}", sender.limit());
    let unmarked = ReturnHeader { flags: flags::PRESENT, ..answer(1e6) };
    sender.answered(&feedback(310 * MS, 100 * MS, unmarked));
    assert_eq!(sender.window(), 10.0);
    // A shorter path: the rate stays.
    sender.answered(&Answer {
        delivered: 0,
        srtt_ns: 150 * MS,
        ..ack(350 * MS, 50 * MS, 300 * MS, answer(0.0))
    });
    assert_eq!((sender.gap_ns(), sender.window()), (gap, 5.0));
}

/// Difference 1: where a router does not rely on the rate, no more than W is in flight, but three
/// packets where a receiver would wait for a second one for longer than the next one takes.
#[test]
fn a_path_that_is_shorter_than_a_packet_has_three_in_flight() {
    let limit = |rtt: u64, keeps: u8| {
        let mut sender = RobustSender::new(SIZE, 2, None);
        let mut now = S;
        for feedback in [0.0, 0.0, -1e9, -1e9] {
            let sent = now;
            now += rtt;
            let h = answer(feedback);
            let h = ReturnHeader { flags: h.flags & !flags::KEEPS | keeps, ..h };
            sender.answered(&ack(now, rtt, sent, h));
        }
        assert!(sender.window() < 1.0, "{}", sender.window());
        sender.limit()
    };
    assert_eq!(limit(MS, 0), 3);
    assert_eq!(limit(100 * MS, 0), 1);
    assert_eq!(limit(100 * MS, flags::KEEPS), 3, "twice a packet, and one");
}

/// Difference 16: a router gives again what it has not seen a round trip later. An increase counts
/// as much less as its answer took longer than twice that; a decrease counts.
#[test]
fn an_increase_whose_answer_took_long_counts_less() {
    let by = |feedback: f64, took: u64| {
        let mut sender = RobustSender::new(SIZE, 40, None);
        sender.answered(&Answer { delivered: 0, ..ack(S, 100 * MS, S - took, answer(feedback)) });
        sender.window() - 40.0
    };
    let (more, less) = (by(30_000.0, 100 * MS), by(-30_000.0, 100 * MS));
    assert!(more > 1.0 && less < -1.0, "{more} and {less}");
    assert_eq!(by(30_000.0, 200 * MS), more);
    let late = by(30_000.0, 400 * MS);
    assert!((late / more - 0.5).abs() < 1e-6, "{late} of {more}");
    assert_eq!(by(-30_000.0, 400 * MS), less);
}

/// Where a router does not rely on its rate being kept, acknowledgements clock it as any sender of
/// XCP; an acknowledgement that came with data does not say.
#[test]
fn who_is_not_relied_on_has_no_more_than_the_window_in_flight() {
    let mut sender = RobustSender::new(SIZE, 10, None);
    let mut now = S;
    for _ in 0..4 {
        round(&mut sender, &mut now, 100 * MS, 10, 0.0);
    }
    assert!(sender.limit() > 15, "{}", sender.limit());
    let not =
        |flags| ReturnHeader { flags: answer(0.0).flags & !flags::KEEPS | flags, ..answer(0.0) };
    let hear = |sender: &mut RobustSender, h| {
        sender.answered(&feedback(now, now - MS, h));
        sender.limit()
    };
    assert!(hear(&mut sender, not(flags::SHARED)) > 15);
    assert_eq!(hear(&mut sender, not(0)), 10);
    assert_eq!(hear(&mut sender, not(flags::SHARED)), 10);
    assert_eq!(sender.gap_ns(), Some(10 * MS), "the rate is the same");
    assert!(hear(&mut sender, answer(0.0)) > 15);
}

/// What a router on the host lends is a part of the rate at once; without a router there is none
/// that could.
#[test]
fn what_is_lent_is_a_part_of_the_rate() {
    let mut sender = RobustSender::new(SIZE, 10, None);
    sender.answered(&sample(100 * MS, 0));
    sender.lent(100 * MS, 90);
    assert_eq!((sender.window(), sender.gap_ns()), (100.0, Some(MS)));
    let mut greedy = sender.clone();
    for _ in 0..4 {
        greedy.lent(100 * MS, u32::MAX);
    }
    assert!(greedy.window() > 1e9 && greedy.gap_ns().is_some(), "{:?}", greedy.state());
    for now in [200, 300, 400, 500, 600].map(|ms| ms * MS) {
        sender.answered(&sample(100 * MS, now - 100 * MS));
        let unmarked = ReturnHeader { flags: flags::PRESENT, ..answer(0.0) };
        sender.answered(&Answer { covered: 0, ..ack(now, 0, now - 100 * MS, unmarked) });
    }
    let alone = sender.state();
    assert!(!alone.routed && alone.explicit_window.is_infinite(), "{alone:?}");
    sender.lent(600 * MS, 90);
    assert_eq!(sender.state(), alone);
}
