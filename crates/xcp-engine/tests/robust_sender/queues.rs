//! Round trips that have become longer: which of them are a queue that binds, and whose it is.
//! Paths that jump are `jumps.rs`'s.

use xcp_engine::Bound;

use super::*;

/// Step 7: a standing queue binds where routers are content, and does not where they take.
#[test]
fn a_queue_that_no_router_governs_binds() {
    let bound = |feedback: f64| {
        let mut sender = RobustSender::new(SIZE, 40, None);
        let mut now = S;
        for n in 0..6 {
            round(&mut sender, &mut now, if n == 0 { 100 } else { 180 } * MS, 20, feedback);
        }
        sender.state()
    };
    let content = bound(0.0);
    assert_eq!(content.bound, Bound::Delay, "{content:?}");
    assert!(content.bound_packets < 40.0, "{content:?}");
    let governed = bound(-2000.0);
    assert_eq!(governed.bound, Bound::Free, "{governed:?}");
}

/// A receiver that claims as much as the format can say, in one answer for sixteen segments, does
/// not have its own queue taken for one from which routers take. Where what the peer takes is known,
/// no claim raises W beyond that, the first one included.
#[test]
fn what_a_receiver_makes_up_hides_no_queue() {
    let mut sender = RobustSender::new(SIZE, 40, None);
    let (mut now, most) = (S, 400);
    let claim = ReturnHeader { feedback: 0x7fff, ..answer(0.0) };
    for n in 0..8u64 {
        let (sent, rtt) = (now, (100 + 40 * n) * MS);
        now += rtt;
        for _ in 0..20 {
            sender.answered(&sample(rtt, sent));
            sender.hold(most);
            sender.answered(&Answer { answers: 16, ..feedback(now, sent, claim) });
            assert!(sender.window() <= f64::from(most), "round {n}: {}", sender.window());
            sender.answered(&delivery(now, sent, 1));
            now += 1;
        }
    }
    let state = sender.state();
    assert_eq!(state.bound, Bound::Delay, "{state:?}");
    assert!(state.window < 40.0, "{state:?}");
}

/// Difference 16: a queue that runs full and empty in turn binds, though each round has a short RTT.
#[test]
fn a_queue_that_comes_and_goes_binds() {
    let after = |long: u64| {
        let mut sender = RobustSender::new(SIZE, 40, None);
        let mut now = S;
        for n in 0..6 {
            let sent = now;
            let long = if n == 0 { 100 * MS } else { long };
            sender.answered(&sample(100 * MS, 0));
            now += long;
            for _ in 0..20 {
                sender.answered(&ack(now, long, sent, answer(0.0)));
                now += 1;
            }
        }
        sender.state().bound
    };
    assert_eq!(after(190 * MS), Bound::Free, "less than twice");
    assert_eq!(after(230 * MS), Bound::Delay, "more than twice");
}

/// Difference 11: what a receiver waits for a second packet is no queue, where packets are further
/// apart than that or only one is on its way; one that acknowledges each packet does not wait.
#[test]
fn a_receivers_wait_is_no_queue() {
    let after = |base: u64, packets: u32, at_a_time: u32, longer: u64| {
        let mut sender = RobustSender::new(SIZE, packets, None);
        let mut now = S;
        for n in 0..6 {
            let rtt = if n == 0 { base } else { base + longer };
            let sent = now;
            now += rtt;
            for _ in 0..4 {
                sender.answered(&Answer { covered: at_a_time, ..ack(now, rtt, sent, answer(0.0)) });
                now += 1;
            }
        }
        sender.state().bound
    };
    let bound = |packets, at_a_time, longer| after(200 * MS, packets, at_a_time, longer);
    assert_eq!(bound(4, 1, 40 * MS), Bound::Free, "50 ms apart");
    assert_eq!(bound(1, 1, 40 * MS), Bound::Free, "there is no second one");
    assert_eq!(bound(4, 2, 40 * MS), Bound::Delay, "two of them do not wait");
    assert_eq!(bound(20, 1, 40 * MS), Bound::Delay, "10 ms apart");
    assert_eq!(bound(4, 1, 80 * MS), Bound::Delay, "the rest is a queue");
    // Where there is no second one, Linux waits for a round trip or 200 ms.
    assert_eq!(bound(1, 1, 200 * MS), Bound::Free, "a round trip");
    assert_eq!(bound(1, 1, 240 * MS), Bound::Delay, "more than a round trip");
    assert_eq!(after(500 * MS, 1, 1, 200 * MS), Bound::Free, "200 ms at most");
    assert_eq!(
        after(500 * MS, 1, 1, 300 * MS),
        Bound::Delay,
        "which are less than that round trip"
    );
}

/// Difference 7: W below B says that routers are the tighter bound if they have stopped adding.
#[test]
fn what_routers_are_still_adding_is_waited_for() {
    let after = |feedback: f64| {
        let mut sender = RobustSender::new(SIZE, 40, None);
        let mut now = S;
        for n in 0..6 {
            round(&mut sender, &mut now, if n == 0 { 100 } else { 180 } * MS, 20, 0.0);
        }
        round(&mut sender, &mut now, 100 * MS, 20, -1000.0);
        let state = sender.state();
        assert!(state.bound == Bound::Delay && state.window < state.bound_packets, "{state:?}");
        for _ in 0..4 {
            round(&mut sender, &mut now, 100 * MS, 20, feedback);
        }
        sender.state()
    };
    let added = after(5.0);
    assert!(added.bound == Bound::Delay && added.window < added.bound_packets, "{added:?}");
    let nothing = after(0.0);
    assert_eq!(nothing.bound, Bound::Free, "{nothing:?}");
}

/// Steps 6 and 7: a queue that no cut moves is others', or none. If routers turn out tighter than
/// what fills queues, it is none: the path has become longer.
#[test]
fn a_queue_that_nothing_moves_is_a_longer_path() {
    let mut sender = RobustSender::new(SIZE, 40, None);
    let mut now = S;
    for n in 0..10 {
        round(&mut sender, &mut now, if n == 0 { 100 } else { 180 } * MS, 20, 0.0);
    }
    let state = sender.state();
    assert_eq!((state.bound, state.base_ns), (Bound::Compete, 100 * MS), "{state:?}");
    for _ in 0..3 {
        round(&mut sender, &mut now, 180 * MS, 20, -2000.0);
    }
    let state = sender.state();
    assert_eq!((state.bound, state.base_ns), (Bound::Free, 180 * MS), "{state:?}");
}

/// And it takes as many rounds to say so each time.
#[test]
fn each_queue_that_nothing_moves_is_looked_at_as_long() {
    let mut sender = RobustSender::new(SIZE, 40, None);
    let mut now = S;
    round(&mut sender, &mut now, 100 * MS, 20, 0.0);
    let rounds: Vec<_> = [180, 300]
        .iter()
        .map(|rtt| {
            let mut bounds = Vec::new();
            while bounds.last() != Some(&Bound::Compete) && bounds.len() < 20 {
                round(&mut sender, &mut now, rtt * MS, 20, 0.0);
                bounds.push(sender.state().bound);
            }
            while sender.state().bound != Bound::Free {
                round(&mut sender, &mut now, rtt * MS, 20, -2000.0);
            }
            // What routers took they give back.
            for _ in 0..20 {
                round(&mut sender, &mut now, rtt * MS, 20, 1000.0);
            }
            bounds.iter().filter(|bound| **bound == Bound::Delay).count()
        })
        .collect();
    assert_eq!(rounds, [4, 4]);
}

/// Difference 6: a queue that stands is tried by sending less. One that empties is left to those who
/// go by delay, and B is what it was; one that does not is others'.
#[test]
fn a_queue_that_stands_is_tried() {
    let after = |own: bool| {
        let mut sender = RobustSender::new(SIZE, 40, None);
        let mut now = S;
        round(&mut sender, &mut now, 100 * MS, 20, 100.0);
        let mut bounds = Vec::new();
        for n in 0..30 {
            let tries = matches!(bounds[..], [.., before, last] if last < 0.45 * before);
            // It never stays what it was, or it would be a longer path.
            let rtt = [[170, 190][n / 2 % 2], 100][usize::from(tries && own)];
            round(&mut sender, &mut now, rtt * MS, 20, 100.0);
            let state = sender.state();
            match state.bound {
                Bound::Free => {}
                Bound::Delay => bounds.push(state.bound_packets),
                Bound::Compete => break,
            }
        }
        (bounds, sender.state())
    };
    let (bounds, state) = after(true);
    assert_eq!(state.bound, Bound::Delay, "{bounds:?}");
    let tries: Vec<_> = bounds.windows(3).filter(|of| of[1] < 0.45 * of[0]).collect();
    assert!(tries.len() >= 2, "{bounds:?}");
    for of in tries {
        assert!((1.9..=2.1).contains(&(of[2] / of[1])), "{of:?} of {bounds:?}");
    }
    let (bounds, state) = after(false);
    assert!(state.bound == Bound::Compete && bounds.len() < 10, "{bounds:?}");
    assert!(state.bound_packets > bounds[0], "from what it had before: {state:?}, {bounds:?}");
}

/// Difference 1: the handshake's packets are small. A link on which full ones take longer is no
/// queue, nor is the queue in which the first data wait a link.
#[test]
fn a_slow_link_is_no_queue() {
    let base = |first: u64, then: u64| {
        let mut sender = RobustSender::new(SIZE, 10, None);
        sender.answered(&Answer { covered: 1, ..sample(80 * MS, 0) });
        let mut now = S;
        for n in 0..4 {
            round(&mut sender, &mut now, if n == 0 { first } else { then } * MS, 6, 0.0);
        }
        sender.state().base_ns / MS
    };
    // The handshake's time, which is below base then, is no round trip of data: a first slow start
    // without a router goes on.
    let mut sender = RobustSender::new(SIZE, 10, None);
    sender.answered(&Answer { covered: 1, ..sample(80 * MS, 0) });
    for n in 0..4 {
        let now = S + n * 92 * MS;
        let unmarked = ReturnHeader { flags: flags::PRESENT, ..answer(0.0) };
        let ack = ack(now, 92 * MS, now - 92 * MS, unmarked);
        sender.answered(&Answer { delivered: 2, ..ack });
    }
    let state = sender.state();
    assert_eq!((state.bound, state.binds), (Bound::Compete, 0), "{state:?}");
    assert_eq!(base(92, 92), 92, "1 Mbit/s");
    assert_eq!(base(92, 86), 86);
    assert_eq!(base(92, 95), 92, "only the first data say so");
    assert_eq!(base(82, 92), 80, "what does not matter");
    assert_eq!(base(110, 110), 80, "a queue");
}
