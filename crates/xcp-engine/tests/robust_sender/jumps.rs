//! Difference 13: a path whose round trips jump, how it is told from a queue, and what the rate
//! does there.

use xcp_engine::{Bound, ForwardHeader, Sendable};

use super::*;

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
        sender.answered(&ack(now, now - sent, sent, answer(feedback)));
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
        sender.answered(&Answer { lost: 1, ..ack(sent + rtt, rtt, sent, answer(0.0)) });
    }
    assert!(!sender.state().jumps, "{:?}", sender.state());
    // A path as in the first, whose packets are sent in bursts of two, 200 ms apart: what all others
    // send meanwhile may be as much.
    let mut sender = RobustSender::new(SIZE, 1, None);
    sender.answered(&sample(100 * MS, 0));
    for n in 0..200 {
        let first = S + n * 200 * MS;
        for (sent, rtt) in [(first, 100 + n % 4 / 2 * 80), (first + MS, 100 + (n + 1) % 4 / 2 * 80)]
        {
            sender.answered(&ack(sent + rtt * MS, rtt * MS, sent, answer(0.0)));
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
    shorter.answered(&Answer { delivered: 0, ..ack(now + 40 * MS, 40 * MS, now, answer(0.0)) });
    assert!((shorter.window() / 40.0 / rate - 1.0).abs() < 1e-6, "{:?}", shorter.state());
    // Its limits in this round have become smaller with W.
    let (mut given, mut taken) = (shorter.clone(), shorter.clone());
    let now = now + 50 * MS;
    for _ in 0..40 {
        given.answered(&feedback(now, now - 40 * MS, answer(1e4)));
        taken.answered(&feedback(now, now - 40 * MS, answer(-2e3)));
    }
    let (grown, left) = (given.window() / shorter.window(), taken.window() / shorter.window());
    assert!(grown < 1.2 && left < 0.9, "{grown} {left}");
    // Routers take, so a timeout is congestion.
    along(&mut sender, now, 300 * MS, -1e4, |_| 100 * MS, |_, _| ());
    let now = 13 * S;
    sender.on_timeout(now);
    assert_eq!(sender.window(), 1.0);
    sender.answered(&feedback(now + 100 * MS, now, answer(0.0)));
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
        sender.answered(&feedback(now + 101 * MS, now + MS, answer(-2e4)));
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
            sender.answered(&Answer {
                answers: segments,
                covered: segments,
                delivered: segments,
                ..ack(sent + rtt, rtt, sent, answer(0.0))
            });
        }
        assert_eq!(sender.state().jumps, jumps, "{:?}", sender.state());
    }
}
