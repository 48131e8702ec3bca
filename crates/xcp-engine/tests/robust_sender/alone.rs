//! A path without a router, where it goes on as CUBIC.

use xcp_engine::Bound;

use super::*;

/// Without a mark there is no router, and it goes on as CUBIC; the first mark is heard.
#[test]
fn without_marks_it_competes() {
    let mut sender = RobustSender::new(SIZE, 10, None);
    let mut now = S;
    let unmarked = ReturnHeader { flags: flags::PRESENT, ..answer(1e6) };
    for _ in 0..6 {
        let sent = now;
        now += 100 * MS;
        for _ in 0..10 {
            sender.answered(&ack(now, 100 * MS, sent, unmarked));
        }
    }
    let alone = sender.state();
    assert!(!alone.routed && alone.bound == Bound::Compete, "{alone:?}");
    assert!(alone.window > 20.0 && alone.explicit_window.is_infinite(), "{alone:?}");
    sender.answered(&feedback(now, now - 1, answer(0.0)));
    let heard = sender.state();
    assert!(heard.routed && heard.explicit_window.is_finite(), "{heard:?}");
}

/// Difference 8: the first slow start ends by delay, whether a queue or a loss ends it.
#[test]
fn a_first_slow_start_leads_to_delay() {
    let unmarked = ReturnHeader { flags: flags::PRESENT, ..answer(0.0) };
    for lost in [0, 1, 5] {
        let mut sender = RobustSender::new(SIZE, 10, None);
        let mut now = S;
        for n in 0..6 {
            let (sent, rtt) = (now, if n < 4 { 100 } else { 190 } * MS);
            now += rtt;
            sender.answered(&loss(if n == 4 { lost } else { 0 }));
            for _ in 0..10 {
                sender.answered(&ack(now, rtt, sent, unmarked));
            }
            assert!(n >= 4 || sender.state().bound != Bound::Delay);
        }
        assert_eq!(sender.state().bound, Bound::Delay, "{lost} lost: {:?}", sender.state());
    }
}
