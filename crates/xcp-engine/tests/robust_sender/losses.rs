//! Losses and timeouts: heavy loss, a link's own, and outages.

use xcp_engine::Bound;

use super::*;

/// Where much has been lost, and a timeout besides, B is what was delivered in a round trip, however
/// many the round took and whatever the timeout has left of W.
#[test]
fn heavy_loss_leaves_what_was_delivered() {
    let mut sender = RobustSender::new(SIZE, 100, None);
    let mut now = S;
    for _ in 0..3 {
        round(&mut sender, &mut now, 100 * MS, 20, -2000.0);
    }
    let before = now - MS;
    for _ in 0..10 {
        now += 100 * MS;
        sender.answered(&delivery(now, before, 20));
    }
    sender.answered(&loss(100));
    sender.on_timeout(now);
    assert_eq!(sender.state().bound, Bound::Free);
    round(&mut sender, &mut now, 115 * MS, 1, 0.0);
    let state = sender.state();
    assert_eq!(state.bound, Bound::Delay, "{state:?}");
    assert!((10.0..15.0).contains(&state.bound_packets), "0.7 of 20: {state:?}");
}

/// Difference 4: a twentieth of a round is heavy loss where there is a queue, or there was one when
/// that was sent. It is a link's own where there is none, however long acknowledgements have waited.
/// Of what is skipped at once four count.
#[test]
fn what_a_link_loses_is_no_queue() {
    let after_gaps = |before: u64, then: u64, lost: u32, gap: u32| {
        let mut sender = RobustSender::new(SIZE, 40, None);
        let mut now = S;
        let rounds = [(80 * MS, 0), (80 * MS, 0), (80 * MS, 0), (before, 0), (then, lost)];
        for (rtt, lost) in rounds {
            let sent = now;
            now += rtt;
            sender.answered(&Answer {
                delivered: 0,
                answers: 18,
                ..ack(now, rtt, sent, answer(0.0))
            });
            for _ in 0..lost / gap {
                sender.answered(&Answer {
                    skipped: gap,
                    missing: gap,
                    lost: gap,
                    ..Answer::default()
                });
            }
            sender.answered(&delivery(now, sent, 18));
        }
        sender.state().bound
    };
    let after = |before: u64, then: u64, lost: u32| after_gaps(before, then, lost, 1);
    assert_eq!(after(80 * MS, 84 * MS, 4), Bound::Free, "less than half of tau");
    assert_eq!(after(84 * MS, 80 * MS, 4), Bound::Free, "less than half of tau, before");
    assert_eq!(after(80 * MS, 86 * MS, 4), Bound::Delay, "a queue");
    assert_eq!(after(86 * MS, 80 * MS, 4), Bound::Delay, "a queue before");
    assert_eq!(after(86 * MS, 86 * MS, 1), Bound::Free, "too little");
    assert_eq!(after(80 * MS, 80 * MS, 5), Bound::Free, "less than a quarter");
    assert_eq!(after(80 * MS, 80 * MS, 7), Bound::Delay, "more than a quarter");
    assert_eq!(after_gaps(80 * MS, 80 * MS, 36, 36), Bound::Free, "two thirds, but at once");
    assert_ne!(after_gaps(80 * MS, 80 * MS, 36, 9), Bound::Free, "in four gaps");
    assert_eq!(after_gaps(80 * MS, 86 * MS, 36, 36), Bound::Delay, "at once, and a queue");
}

/// Step 6: a timeout while routers are content is forgotten with the first fresh answer.
#[test]
fn a_timeout_gives_the_window_back() {
    let mut sender = RobustSender::new(SIZE, 20, None);
    let mut now = S;
    for _ in 0..3 {
        round(&mut sender, &mut now, 100 * MS, 20, 0.0);
    }
    sender.on_timeout(now);
    assert_eq!(sender.window(), 1.0);
    let before = now - 50 * MS;
    sender.answered(&ack(now + MS, 100 * MS, before, answer(0.0)));
    assert_eq!(sender.window(), 1.0, "the answer to what was sent before says nothing");
    round(&mut sender, &mut now, 100 * MS, 1, 0.0);
    assert_eq!(sender.window(), 20.0);
}

/// Difference 9: in an outage the timer has a bound, whatever comes back ends it, and nobody takes
/// what the first answer offers besides.
#[test]
fn in_an_outage_the_timer_waits_a_second_at_most() {
    let mut sender = RobustSender::new(SIZE, 20, None);
    let mut now = S;
    for _ in 0..3 {
        round(&mut sender, &mut now, 100 * MS, 20, 0.0);
    }
    assert_eq!(sender.patience_ns(), None);
    let before = now - 50 * MS;
    sender.on_timeout(now);
    assert_eq!(sender.patience_ns(), Some(S));
    // After one expiry an answer to what was sent before says that there is none,
    let mut once = sender.clone();
    once.answered(&delivery(now + MS, before, 1));
    assert_eq!((once.window(), once.patience_ns()), (1.0, None));
    // and after two that it is over.
    let first = now;
    now += S;
    sender.on_timeout(now);
    for sent in [before, first + MS, now + MS] {
        let mut sender = sender.clone();
        sender.answered(&ack(now + 100 * MS, 100 * MS, sent, answer(1e6)));
        assert_eq!((sender.window(), sender.patience_ns()), (20.0, None), "sent at {sent}");
        // Another timeout soon after is congestion, and stays so.
        for after in [S, 10 * S] {
            sender.on_timeout(now + after);
            assert_eq!((sender.window(), sender.patience_ns()), (1.0, None));
        }
    }
    // Nor is it an outage where routers have just taken something away,
    let mut sender = RobustSender::new(SIZE, 20, None);
    for _ in 0..3 {
        round(&mut sender, &mut now, 100 * MS, 20, -3000.0);
    }
    sender.on_timeout(now);
    assert_eq!(sender.patience_ns(), None);
    // or where no router has been heard of, be it because nothing has come back at all: of so many
    // who begin that all lose their first windows, none is to have it back.
    let mut sender = RobustSender::new(SIZE, 20, None);
    sender.on_timeout(now);
    assert_eq!(sender.patience_ns(), None);
    round(&mut sender, &mut now, 100 * MS, 1, 0.0);
    assert_eq!(sender.window(), 1.0);
    let mut sender = RobustSender::new(SIZE, 20, None);
    let unmarked = ReturnHeader { flags: flags::PRESENT, ..answer(0.0) };
    for _ in 0..3 {
        let sent = now;
        now += 100 * MS;
        sender.answered(&Answer { delivered: 20, ..ack(now, 100 * MS, sent, unmarked) });
    }
    assert!(!sender.state().routed);
    sender.on_timeout(now);
    assert_eq!(sender.patience_ns(), None);
}
