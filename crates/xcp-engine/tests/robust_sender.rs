//! The sender whose state is its rate: what it makes of round trips, feedback, losses and timeouts.

use xcp_engine::{Bound, ForwardHeader, ReturnHeader, RobustSender, Sendable, WireFormat, flags};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
const SIZE: u32 = 1500;

/// An acknowledgement across routers that all rely on the rate being kept.
fn answer(feedback: f64) -> ReturnHeader {
    let h = ReturnHeader::encode(WireFormat::Extended, feedback, true);
    ReturnHeader { flags: h.flags | flags::KEEPS, ..h }
}

/// Steps 1 and 2: a queue changes neither rate nor window, and feedback without a mark nothing.
#[test]
fn the_rate_is_the_state() {
    let mut sender = RobustSender::new(SIZE, 10, None);
    sender.sample(Some(100 * MS), 100 * MS, 0, 2);
    sender.feedback(100 * MS, &answer(0.0), true, 0, 1);
    sender.acked(100 * MS, 1, true, 0);
    let gap = sender.gap_ns();
    assert_eq!(gap, Some(10 * MS));
    sender.sample(Some(200 * MS), 190 * MS, 100 * MS, 2);
    sender.feedback(300 * MS, &answer(0.0), true, 100 * MS, 1);
    assert_eq!((sender.gap_ns(), sender.window()), (gap, 10.0));
    assert_eq!(sender.limit(), 10, "the first window may have filled a queue by itself");
    sender.acked(300 * MS, 1, true, 100 * MS);
    assert!(sender.limit() >= 19, "in flight as much as the rate makes of it: {}", sender.limit());
    let unmarked = ReturnHeader { flags: flags::PRESENT, ..answer(1e6) };
    sender.feedback(310 * MS, &unmarked, true, 100 * MS, 1);
    assert_eq!(sender.window(), 10.0);
    // A shorter path: the rate stays.
    sender.sample(Some(50 * MS), 150 * MS, 300 * MS, 2);
    sender.feedback(350 * MS, &answer(0.0), true, 300 * MS, 1);
    assert_eq!((sender.gap_ns(), sender.window()), (gap, 5.0));
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
        sender.feedback(now, &h, true, now - MS, 1);
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
    sender.sample(Some(100 * MS), 100 * MS, 0, 2);
    sender.lent(100 * MS, 90);
    assert_eq!((sender.window(), sender.gap_ns()), (100.0, Some(MS)));
    let mut greedy = sender.clone();
    for _ in 0..4 {
        greedy.lent(100 * MS, u32::MAX);
    }
    assert!(greedy.window() > 1e9 && greedy.gap_ns().is_some(), "{:?}", greedy.state());
    for now in [200, 300, 400, 500, 600].map(|ms| ms * MS) {
        sender.sample(Some(100 * MS), 100 * MS, now - 100 * MS, 2);
        let unmarked = ReturnHeader { flags: flags::PRESENT, ..answer(0.0) };
        sender.feedback(now, &unmarked, true, now - 100 * MS, 1);
        sender.acked(now, 1, true, now - 100 * MS);
    }
    let alone = sender.state();
    assert!(!alone.routed && alone.explicit_window.is_infinite(), "{alone:?}");
    sender.lent(600 * MS, 90);
    assert_eq!(sender.state(), alone);
}

/// A round trip of a sender with `segments` packets in flight, answered at this RTT.
fn round(sender: &mut RobustSender, now: &mut u64, rtt: u64, segments: u32, feedback: f64) {
    let sent = *now;
    *now += rtt;
    for _ in 0..segments {
        sender.sample(Some(rtt), rtt, sent, 2);
        sender.feedback(*now, &answer(feedback), true, sent, 1);
        sender.acked(*now, 1, true, sent);
        *now += 1;
    }
}

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
                sender.sample(Some(rtt), rtt, sent, at_a_time);
                sender.feedback(now, &answer(0.0), true, sent, 1);
                sender.acked(now, 1, true, sent);
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
        sender.acked(now, 20, true, before);
    }
    sender.lost(100);
    sender.on_timeout(now);
    assert_eq!(sender.state().bound, Bound::Free);
    round(&mut sender, &mut now, 100 * MS, 1, 0.0);
    let state = sender.state();
    assert_eq!(state.bound, Bound::Delay, "{state:?}");
    assert!((10.0..15.0).contains(&state.bound_packets), "0.7 of 20: {state:?}");
}

/// Difference 4: a twentieth of a round is heavy loss where there is a queue, or there was one when
/// that was sent. It is a link's own where there is none, however long acknowledgements have waited.
#[test]
fn what_a_link_loses_is_no_queue() {
    let after = |before: u64, then: u64, lost: u32| {
        let mut sender = RobustSender::new(SIZE, 40, None);
        let mut now = S;
        let rounds = [(80 * MS, 0), (80 * MS, 0), (80 * MS, 0), (before, 0), (then, lost)];
        for (rtt, lost) in rounds {
            let sent = now;
            now += rtt;
            sender.sample(Some(rtt), rtt, sent, 2);
            sender.feedback(now, &answer(0.0), true, sent, 36);
            sender.lost(lost);
            sender.acked(now, 36, true, sent);
        }
        sender.state().bound
    };
    assert_eq!(after(80 * MS, 84 * MS, 4), Bound::Free, "less than half of tau");
    assert_eq!(after(84 * MS, 80 * MS, 4), Bound::Free, "less than half of tau, before");
    assert_eq!(after(80 * MS, 86 * MS, 4), Bound::Delay, "a queue");
    assert_eq!(after(86 * MS, 80 * MS, 4), Bound::Delay, "a queue before");
    assert_eq!(after(86 * MS, 86 * MS, 1), Bound::Free, "too little");
    assert_eq!(after(80 * MS, 80 * MS, 13), Bound::Delay, "more than a quarter");
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
        sender.sample(Some(80 * MS), 80 * MS, 0, 0);
        let mut now = S;
        for n in 0..4 {
            round(&mut sender, &mut now, if n == 0 { first } else { then } * MS, 6, 0.0);
        }
        sender.state().base_ns / MS
    };
    // The handshake's time, which is below base then, is no round trip of data: a first slow start
    // without a router goes on.
    let mut sender = RobustSender::new(SIZE, 10, None);
    sender.sample(Some(80 * MS), 80 * MS, 0, 0);
    for n in 0..4 {
        let now = S + n * 92 * MS;
        sender.sample(Some(92 * MS), 92 * MS, now - 92 * MS, 2);
        let unmarked = ReturnHeader { flags: flags::PRESENT, ..answer(0.0) };
        sender.feedback(now, &unmarked, true, now - 92 * MS, 1);
        sender.acked(now, 2, true, now - 92 * MS);
    }
    let state = sender.state();
    assert_eq!((state.bound, state.binds), (Bound::Compete, 0), "{state:?}");
    assert_eq!(base(92, 92), 92, "1 Mbit/s");
    assert_eq!(base(92, 86), 86);
    assert_eq!(base(92, 95), 92, "only the first data say so");
    assert_eq!(base(82, 92), 80, "what does not matter");
    assert_eq!(base(110, 110), 80, "a queue");
}

/// Packets sent every 10 ms for so long, as in [`along_every`].
fn along(
    sender: &mut RobustSender,
    from: u64,
    lasts: u64,
    feedback: f64,
    rtt: impl Fn(u64) -> u64,
    each: impl FnMut(&RobustSender, u64),
) {
    along_every(10 * MS, sender, from, lasts, feedback, rtt, each);
}

/// Packets sent at this distance for so long, on a path that has this RTT for what is sent then and
/// keeps its order; `each` sees the sender after each answer.
fn along_every(
    every: u64,
    sender: &mut RobustSender,
    from: u64,
    lasts: u64,
    feedback: f64,
    rtt: impl Fn(u64) -> u64,
    mut each: impl FnMut(&RobustSender, u64),
) {
    let mut now = 0;
    for n in 0..lasts / every {
        let sent = from + n * every;
        now = (sent + rtt(n * every)).max(now + 1);
        sender.sample(Some(now - sent), now - sent, sent, 2);
        sender.feedback(now, &answer(feedback), true, sent, 1);
        sender.acked(now, 1, true, sent);
        each(sender, now);
    }
}

/// A path of 100 or 180 ms, by turns for .3 s each.
fn jumping(at: u64) -> u64 {
    if (at / (300 * MS)).is_multiple_of(2) { 100 * MS } else { 180 * MS }
}

/// Difference 13: RTTs that jump up and stay there are no queue. The same RTTs reached no faster
/// than a queue could become so long are one; and to jump up for less than a round is no jump.
#[test]
fn a_path_that_jumps_is_no_queue() {
    let after = |rtt: &dyn Fn(u64) -> u64| {
        let mut sender = RobustSender::new(SIZE, 10, None);
        along(&mut sender, S, 10 * S, 0.0, rtt, |_, _| ());
        let so_far = sender.state();
        // Then a queue stands.
        along(&mut sender, 12 * S, S, 0.0, |_| 180 * MS, |_, _| ());
        (so_far, sender.state())
    };
    let (jumps, queue) = after(&jumping);
    assert!(jumps.jumps && jumps.bound != Bound::Delay, "{jumps:?}");
    assert_eq!(queue.binds, jumps.binds, "{queue:?}");
    // Up within .3 s and down again at once: never without a queue for long, never three rounds
    // with one.
    let (grows, queue) = after(&|at| 100 * MS + at % (300 * MS) * 80 / 300);
    assert_eq!((grows.jumps, grows.binds), (false, 0), "{grows:?}");
    assert_eq!((queue.bound, queue.binds), (Bound::Delay, 1), "{queue:?}");
    // A queue that grows by 20 ms between two packets, but these are 40 ms apart.
    let mut sender = RobustSender::new(SIZE, 10, None);
    let grows = |at: u64| 100 * MS + (at % (640 * MS)).min(160 * MS) / 2;
    along_every(40 * MS, &mut sender, S, 10 * S, 0.0, grows, |_, _| ());
    assert!(!sender.state().jumps, "{:?}", sender.state());
    // A link whose rate falls to a third: 20 ms between two packets that are 10 ms apart, three
    // times, so that to look only at the rise before, or only at the one after, would see a jump.
    let falls = |at: u64| 2 * (at % (600 * MS)).saturating_sub(200 * MS);
    let (falls, queue) = after(&|at| 100 * MS + falls(at).min(60 * MS));
    assert!(!falls.jumps, "{falls:?}");
    assert_eq!(queue.bound, Bound::Delay, "{queue:?}");
    // The first again, with a queue that overflows in every round.
    let mut sender = RobustSender::new(SIZE, 10, None);
    for n in 0..1000 {
        let (sent, rtt) = (S + n * 10 * MS, jumping(n * 10 * MS));
        sender.sample(Some(rtt), rtt, sent, 2);
        sender.feedback(sent + rtt, &answer(0.0), true, sent, 1);
        sender.lost(1);
        sender.acked(sent + rtt, 1, true, sent);
    }
    assert!(!sender.state().jumps, "{:?}", sender.state());
    // A path as in the first, whose packets are sent in bursts of two, 200 ms apart: what all others
    // send meanwhile may be as much.
    let mut sender = RobustSender::new(SIZE, 1, None);
    sender.sample(Some(100 * MS), 100 * MS, 0, 2);
    for n in 0..200 {
        let first = S + n * 200 * MS;
        for (sent, rtt) in [(first, 100 + n % 4 / 2 * 80), (first + MS, 100 + (n + 1) % 4 / 2 * 80)]
        {
            sender.sample(Some(rtt * MS), rtt * MS, sent, 2);
            sender.feedback(sent + rtt * MS, &answer(0.0), true, sent, 1);
            sender.acked(sent + rtt * MS, 1, true, sent);
        }
    }
    assert!(!sender.state().jumps, "{:?}", sender.state());
    // Acknowledgements come in bunches, every 80 ms.
    let (bunches, queue) = after(&|at| (at + 100 * MS).div_ceil(80 * MS) * 80 * MS - at);
    assert_eq!((bunches.jumps, bunches.binds), (false, 0), "{bunches:?}");
    assert_eq!((queue.bound, queue.binds), (Bound::Delay, 1), "{queue:?}");
}

/// Difference 13: there W grows by a packet a round at most, however much is granted, asks for one
/// or what rounding makes of it, and falls by an eighth, but further where routers take more than
/// all of it, until the path has stayed as it is for as long as its jumps count.
#[test]
fn where_the_path_jumps_the_rate_follows_slowly() {
    let mut sender = RobustSender::new(SIZE, 10, None);
    along(&mut sender, S, 10 * S, 0.0, jumping, |_, _| ());
    for (feedback, steady) in [(2e4, false), (-1e4, false), (-2e4, false), (2e4, true)] {
        let mut sender = sender.clone();
        let begin = if steady { 60 * S } else { 12 * S };
        if steady {
            along(&mut sender, 12 * S, 40 * S, 0.0, |_| 100 * MS, |_, _| ());
        }
        let mut h = ForwardHeader::default();
        sender.write_header(begin, &Sendable::UNLIMITED, false, &mut h);
        let a_round = 0.1 / f64::from(SIZE) * sender.window();
        let asked = WireFormat::Extended.decode_feedback(h.feedback) * a_round;
        assert_eq!(asked < 2.1, !steady, "{asked} packets more in a round");
        let (before, mut furthest) = (sender.window(), 0.0_f64);
        // Less than two rounds.
        along(
            &mut sender,
            begin,
            100 * MS,
            feedback,
            |_| 100 * MS,
            |sender, _| {
                furthest = furthest.max((sender.window() - before).abs());
            },
        );
        let rounds = 2.0;
        match (feedback > 0.0, steady) {
            (true, false) => assert!((1.5..=rounds).contains(&furthest), "{furthest} of {before}"),
            (false, _) if feedback > -2e4 => {
                let eighths = furthest / (before / 8.0);
                assert!((1.4..=rounds).contains(&eighths), "{furthest} of {before}");
            }
            (false, _) => {
                let left = (before - furthest) / before;
                assert!((0.2..0.5).contains(&left), "{furthest} of {before}");
            }
            (true, true) => assert!(furthest > before, "{furthest} of {before}"),
        }
    }
}

/// Difference 13: what W may fall by in a round is no reason to raise it, after a timeout or where
/// the path has become shorter than it ever was.
#[test]
fn where_the_path_jumps_nothing_raises_the_rate_but_routers() {
    let mut sender = RobustSender::new(SIZE, 10, None);
    along(&mut sender, S, 10 * S, 0.0, jumping, |_, _| ());
    assert!(sender.state().jumps);
    let now = 12 * S;
    let mut shorter = sender.clone();
    let rate = sender.window() / 100.0;
    shorter.sample(Some(40 * MS), 40 * MS, now, 2);
    shorter.feedback(now + 40 * MS, &answer(0.0), true, now, 1);
    assert!((shorter.window() / 40.0 / rate - 1.0).abs() < 1e-6, "{:?}", shorter.state());
    // Its limits in this round have become smaller with W.
    let (mut given, mut taken) = (shorter.clone(), shorter.clone());
    let now = now + 50 * MS;
    for _ in 0..40 {
        given.feedback(now, &answer(1e4), true, now - 40 * MS, 1);
        taken.feedback(now, &answer(-2e3), true, now - 40 * MS, 1);
    }
    let (grown, left) = (given.window() / shorter.window(), taken.window() / shorter.window());
    assert!(grown < 1.2 && left < 0.9, "{grown} {left}");
    // Routers take, so a timeout is congestion.
    along(&mut sender, now, 300 * MS, -1e4, |_| 100 * MS, |_, _| ());
    let now = 13 * S;
    sender.on_timeout(now);
    assert_eq!(sender.window(), 1.0);
    sender.feedback(now + 100 * MS, &answer(0.0), true, now, 1);
    assert_eq!(sender.window(), 1.0, "{:?}", sender.state());
}

/// Difference 13: below one packet, where a round lasts base / W, what routers take beyond all that
/// is left counts, too, down to half of W.
#[test]
fn where_the_path_jumps_routers_are_heard_below_one_packet() {
    let mut sender = RobustSender::new(SIZE, 10, None);
    along(&mut sender, S, 10 * S, 0.0, jumping, |_, _| ());
    let mut now = 12 * S;
    while sender.window() > 0.9 {
        along(&mut sender, now, 200 * MS, -2e4, |_| 100 * MS, |_, _| ());
        now += S;
        assert!(now < 100 * S, "{:?}", sender.state());
    }
    // The first answer after a round.
    along(&mut sender, now, 10 * MS, 0.0, |_| 100 * MS, |_, _| ());
    let before = sender.window();
    assert!(sender.state().jumps && before < 1.0, "{:?}", sender.state());
    for _ in 0..40 {
        sender.feedback(now + 101 * MS, &answer(-2e4), true, now + MS, 1);
    }
    let left = sender.window() / before;
    assert!((0.3..0.6).contains(&left), "{left} of {before}");
}

/// An answer of one packet, which may have waited, begins no jump, but shows that there was none.
#[test]
fn an_answer_of_one_packet_can_refute_a_jump() {
    for (others, jumps) in [(180 * MS, true), (100 * MS, false)] {
        let mut sender = RobustSender::new(SIZE, 10, None);
        for n in 0..1000_u64 {
            let sent = S + n * 10 * MS;
            // Two answers of two packets, up by 80 ms, every .6 s; all others are of one.
            let (rtt, segments) = match n % 60 {
                0 => (100 * MS, 2),
                1 => (180 * MS, 2),
                2..40 => (others, 1),
                _ => (100 * MS, 1),
            };
            sender.sample(Some(rtt), rtt, sent, segments);
            sender.feedback(sent + rtt, &answer(0.0), true, sent, segments);
            sender.acked(sent + rtt, segments, true, sent);
        }
        assert_eq!(sender.state().jumps, jumps, "{:?}", sender.state());
    }
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
    sender.sample(Some(100 * MS), 100 * MS, before, 2);
    sender.feedback(now + MS, &answer(0.0), true, before, 1);
    sender.acked(now + MS, 1, true, before);
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
    once.acked(now + MS, 1, true, before);
    assert_eq!((once.window(), once.patience_ns()), (1.0, None));
    // and after two that it is over.
    let first = now;
    now += S;
    sender.on_timeout(now);
    for sent in [before, first + MS, now + MS] {
        let mut sender = sender.clone();
        sender.sample(Some(100 * MS), 100 * MS, sent, 2);
        sender.feedback(now + 100 * MS, &answer(1e6), true, sent, 1);
        sender.acked(now + 100 * MS, 1, true, sent);
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
        sender.sample(Some(100 * MS), 100 * MS, sent, 2);
        sender.feedback(now, &unmarked, true, sent, 1);
        sender.acked(now, 20, true, sent);
    }
    assert!(!sender.state().routed);
    sender.on_timeout(now);
    assert_eq!(sender.patience_ns(), None);
}

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
            sender.sample(Some(100 * MS), 100 * MS, sent, 2);
            sender.feedback(now, &unmarked, true, sent, 1);
            sender.acked(now, 1, true, sent);
        }
    }
    let alone = sender.state();
    assert!(!alone.routed && alone.bound == Bound::Compete, "{alone:?}");
    assert!(alone.window > 20.0 && alone.explicit_window.is_infinite(), "{alone:?}");
    sender.feedback(now, &answer(0.0), true, now - 1, 1);
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
            sender.lost(if n == 4 { lost } else { 0 });
            for _ in 0..10 {
                sender.sample(Some(rtt), rtt, sent, 2);
                sender.feedback(now, &unmarked, true, sent, 1);
                sender.acked(now, 1, true, sent);
            }
            assert!(n >= 4 || sender.state().bound != Bound::Delay);
        }
        assert_eq!(sender.state().bound, Bound::Delay, "{lost} lost: {:?}", sender.state());
    }
}

/// Below one packet the header says a longer RTT and a window of one.
#[test]
fn below_one_packet_the_header_says_how_long_one_takes() {
    let mut sender = RobustSender::new(SIZE, 2, None);
    let mut now = S;
    for _ in 0..40 {
        round(&mut sender, &mut now, 100 * MS, 1, -20_000.0);
        sender.lost(1);
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
    sender.sample(Some(100 * MS), 100 * MS, 0, 2);
    sender.feedback(100 * MS, &answer(0.0), true, 0, 1);
    for (late, rtt_ms, window) in [(false, 100.0, 4.0), (true, 112.5, 4.5)] {
        let mut h = ForwardHeader::default();
        sender.write_header(100 * MS, &Sendable::UNLIMITED, late, &mut h);
        assert_eq!(h.window_packets(), Some(window));
        let told_ms = h.rtt_ns().expect("known") as f64 / MS as f64;
        assert!((told_ms / rtt_ms - 1.0).abs() < 0.001, "{told_ms}");
    }
}
