//! A queue too short to be seen, where losses count: difference 18.

use xcp_engine::{Bound, ForwardHeader, Sendable};

use super::*;

/// A path of 100 ms, without a router or behind one.
struct Path {
    sender: RobustSender,
    now: u64,
    answer: ReturnHeader,
}

impl Path {
    fn new(window: u32, routed: bool) -> Self {
        let marked = answer(100.0); // routers have more: they are not the tighter bound
        let answer = if routed { marked } else { ReturnHeader { flags: flags::PRESENT, ..marked } };
        Path { sender: RobustSender::new(SIZE, window, None), now: S, answer }
    }

    /// A round of which so many arrive after this long and so many are lost, in its second half,
    /// one after the other or two.
    fn round(&mut self, rtt: u64, arrive: u32, lost: u32) {
        self.round_with_gap(rtt, arrive, lost, 0);
    }

    /// A round in which so many more are missed at once.
    fn round_with_gap(&mut self, rtt: u64, arrive: u32, lost: u32, at_once: u32) {
        let (sent, mut missed) = (self.now, 0);
        self.now += rtt;
        for n in 0..arrive {
            let gap = if n == arrive / 2 { at_once } else { 0 };
            let by = if n < arrive / 2 { 0 } else { (lost - missed).min(2) };
            missed += by;
            let ack = ack(self.now, rtt, sent, self.answer);
            self.sender.answered(&Answer { skipped: gap, missing: gap, lost: gap + by, ..ack });
            self.now += 1;
        }
    }

    /// Without a router, past a slow start that a loss has ended, with this bound.
    fn alone() -> (Self, f64) {
        let mut path = Path::new(40, false);
        for _ in 0..2 {
            path.round(100 * MS, 40, 0);
        }
        path.round(100 * MS, 80, 1);
        let bound = path.bound();
        for _ in 0..2 {
            path.round(100 * MS, bound as u32, 0);
        }
        (path, bound)
    }

    fn bound(&self) -> f64 {
        self.sender.state().bound_packets
    }

    fn mode(&self) -> Bound {
        self.sender.state().bound
    }
}

/// A loss ends slow start with half, for it is a round late. What is lost within a round of that is
/// the same loss; after that another seven tenths are left, at once and not when a round ends.
#[test]
fn a_loss_is_answered_at_once_and_only_once() {
    let mut path = Path::new(40, false);
    for _ in 0..2 {
        path.round(100 * MS, 40, 0);
    }
    let before = path.bound();
    path.round(100 * MS, 80, 1);
    let half = path.bound();
    assert!((0.4..0.8).contains(&(half / before)), "{half} of {before}");
    assert_eq!(path.mode(), Bound::Compete);
    let before_that = path.now - 50 * MS;
    path.sender.answered(&Answer { lost: 30, ..delivery(path.now, before_that, 1) });
    path.round(100 * MS, half as u32, 0);
    assert!(path.bound() >= half && path.bound() < half + 2.0, "{} after {half}", path.bound());
    path.round(100 * MS, half as u32, 0);
    let (grown, sent) = (path.bound(), path.now);
    path.now += 100 * MS;
    let answer = Answer { now_ns: path.now, delivered: 1, ..sample(100 * MS, sent) };
    path.sender.answered(&Answer { lost: 1, sent_ns: sent - 1, limited: true, ..answer });
    let cut = path.bound();
    assert!((cut / grown - 0.7).abs() < 0.01, "{cut} of {grown}");
    path.sender.answered(&Answer { lost: 1, ..delivery(path.now, sent, 20) });
    assert_eq!(path.bound(), cut, "nothing grows while something is missing");
}

/// It goes on as TCP does as long as no RTT shows a queue, and by delay from then on; unless
/// something is lost again.
#[test]
fn it_goes_by_delay_again_once_a_queue_shows() {
    let (mut path, bound) = Path::alone();
    for _ in 0..200 {
        path.round(100 * MS, bound as u32, 0);
        assert_eq!(path.mode(), Bound::Compete);
    }
    for (rtt, lost, mode) in
        [(119, 0, Bound::Compete), (125, 1, Bound::Compete), (125, 0, Bound::Delay)]
    {
        path.round(rtt * MS, bound as u32, lost);
        assert_eq!(path.mode(), mode, "{rtt} ms, {lost} lost");
    }
}

/// Behind a router, after quiet rounds of a hundred packets.
fn behind_a_router() -> Path {
    let mut path = Path::new(100, true);
    for _ in 0..30 {
        path.round(100 * MS, 100, 0);
    }
    path
}

/// Where routers answer, links may lose some: it takes eight packets, and a fortieth of the last few
/// rounds, which are four hundred.
#[test]
fn a_router_is_believed_until_a_fortieth_is_lost() {
    let after = |rtt: u64, lost: u32| {
        let mut path = behind_a_router();
        path.round(rtt * MS, 100, lost);
        path.round(rtt * MS, 100, 0);
        path.mode()
    };
    assert_eq!(after(100, 18), Bound::Compete);
    assert_eq!(after(100, 17), Bound::Free);
    assert_eq!(after(104, 19), Bound::Compete, "nothing that would be a queue");
    assert_ne!(after(111, 19), Bound::Compete, "a queue is seen");
}

/// Of what is missed at once four count: a link that is gone for a moment has no queue.
#[test]
fn a_gap_is_no_queue() {
    let after = |lost: u32, at_once: u32| {
        let mut path = behind_a_router();
        path.round_with_gap(100 * MS, 100, lost, at_once);
        path.round(100 * MS, 100, 0);
        path.mode()
    };
    assert_eq!(after(0, 30), Bound::Free);
    assert_eq!((after(12, 20), after(14, 20)), (Bound::Free, Bound::Compete));
    let mut path = behind_a_router();
    for _ in 0..20 {
        path.round_with_gap(100 * MS, 100, 0, 30);
        for _ in 0..3 {
            path.round(100 * MS, 100, 0);
            assert_eq!(path.mode(), Bound::Free);
        }
    }
}

/// Behind a router, after a gap of so many that is found lost over so many acknowledgements, between
/// which a round may end; or that is filled before anything more is lost.
fn after_a_gap(gap: u32, acks: u32, filled: bool) -> Path {
    let mut path = behind_a_router();
    let sent = path.now;
    path.now += 100 * MS;
    for n in 0..100 {
        let sent = if n < 55 { sent } else { path.now };
        path.sender.answered(&Answer {
            skipped: if n == 10 { gap } else { 0 },
            missing: if n < 10 || n == 50 && filled { 0 } else { gap },
            lost: if (60..60 + acks).contains(&n) { gap / acks } else { 0 },
            ..ack(path.now, 100 * MS, sent, path.answer)
        });
        path.now += 1;
    }
    path.round(100 * MS, 100, 0);
    path
}

/// A gap is one, however late and however slowly it is found lost; if it is filled, what is lost
/// after that is something else.
#[test]
fn a_gap_that_is_found_lost_bit_by_bit_is_no_queue() {
    for acks in [1, 10, 15, 30] {
        assert_ne!(after_a_gap(30, acks, false).mode(), Bound::Compete, "{acks}");
    }
    assert_eq!(after_a_gap(30, 15, true).mode(), Bound::Compete);
}

/// What is lost however little is sent is lost at random, and does not count for a while, unless it
/// becomes more than twice as much.
#[test]
fn what_no_cut_ends_is_random() {
    let found = |part: u32| {
        let mut path = behind_a_router();
        let mut rounds = 0;
        while path.mode() == Bound::Free {
            path.round(100 * MS, 100 - part, part);
            rounds += 1;
            assert!(rounds < 8, "{:?}", path.sender.state());
        }
        while path.mode() == Bound::Compete {
            path.round(100 * MS, 50 - part / 2, part / 2);
            rounds += 1;
            assert!(rounds < 24, "{:?}", path.sender.state());
        }
        assert!(
            (8..=20).contains(&rounds),
            "six cuts, each a round or two after the last: {rounds}"
        );
        path
    };
    let mut path = found(10);
    for n in 0..1000 {
        assert_eq!(path.mode(), Bound::Free, "{n} rounds later");
        path.round(100 * MS, 90, 10);
    }
    let tried = (0..40).any(|_| {
        path.round(100 * MS, 90, 10);
        path.mode() == Bound::Compete
    });
    assert!(tried, "it is tried again: {:?}", path.sender.state());

    let mut path = found(6);
    let tried = (0..12).any(|_| {
        path.round(100 * MS, 80, 20);
        path.mode() == Bound::Compete
    });
    assert!(tried, "{:?}", path.sender.state());
    for _ in 0..20 {
        path.round(100 * MS, 40, 4);
        assert_eq!(path.mode(), Bound::Compete, "once wrong, six cuts tell nothing");
    }
}

/// Losses that are rounds apart are not. After 32 cuts it is tried whether they are a queue's all
/// the same, gently; where they are, after twice as many, and so on.
#[test]
fn what_a_cut_ends_is_a_queues_until_tried() {
    let mut path = behind_a_router();
    for wanted in [32, 64, 128] {
        for _ in 0..4 {
            path.round(100 * MS, 85, 15);
        }
        assert_eq!(path.mode(), Bound::Compete);
        let mut cuts = 1u32;
        while path.mode() == Bound::Compete {
            for _ in 0..8 {
                path.round(100 * MS, 60, 0);
            }
            path.round(100 * MS, 60, 3);
            cuts += 1;
            assert!(cuts <= wanted + 2, "{:?}", path.sender.state());
        }
        assert!(cuts.abs_diff(wanted) <= 2, "{cuts} cuts, not {wanted}");
        let usual = std::mem::replace(&mut path.answer, answer(1e6)); // much more
        path.round(100 * MS, 60, 0);
        path.round(100 * MS, 60, 0);
        path.answer = usual;
        let window = path.sender.state().window;
        assert!(window < 1.5 * 60.0 + 5.0, "{window} packets after a round of 60");
    }
}

/// A timeout while losses count is no outage, whoever answers: the timer backs off.
#[test]
fn a_timeout_at_a_queue_is_no_outage() {
    let patience = |lost: u32| {
        let mut path = behind_a_router();
        path.answer = answer(0.0);
        path.round(100 * MS, 100, lost);
        path.round(100 * MS, 100, 0);
        path.sender.on_timeout(path.now);
        path.sender.patience_ns()
    };
    assert!(patience(0).is_some());
    assert_eq!(patience(20), None);
}

/// Where the first round without a router has lost something, that is TCP's slow start, too.
#[test]
fn a_loss_in_the_first_round_is_halved() {
    let mut path = Path::new(10, false);
    path.round(100 * MS, 9, 1);
    path.round(100 * MS, 5, 0);
    assert_eq!(path.mode(), Bound::Compete);
    assert!((4.0..7.5).contains(&path.bound()), "{}", path.bound());
}

/// What was cut before a router appeared says nothing of what is lost behind it.
#[test]
fn a_router_that_appears_begins_anew() {
    let (mut path, _) = Path::alone();
    for _ in 0..20 {
        path.round(100 * MS, 20, 2);
    }
    path.answer = answer(1.0);
    for _ in 0..8 {
        path.round(100 * MS, 20, 0);
        assert_eq!(path.mode(), Bound::Compete);
    }
}

/// A timeout leaves seven tenths as slow start's threshold, once, however often the timer expires.
#[test]
fn a_timeout_without_a_router_is_tcps() {
    let (mut path, _) = Path::alone();
    let before = path.bound();
    for _ in 0..2 {
        path.sender.on_timeout(path.now);
        path.now += 400 * MS;
        assert_eq!(path.sender.limit(), 1);
    }
    let mut windows = vec![];
    for _ in 0..12 {
        path.round(100 * MS, path.sender.limit(), 0);
        windows.push(path.bound());
    }
    let steps = |w: &[f64]| w.windows(2).map(|w| w[1] / w[0]).collect::<Vec<_>>();
    let knee = windows.iter().position(|&w| w >= 0.69 * before).expect("it comes back");
    assert!(knee <= 6, "it doubles until then: {windows:?} of {before}");
    assert!(steps(&windows[knee..]).iter().all(|&by| by < 1.2), "{windows:?} of {before}");
}

/// Without a router, a clock that says that acknowledgements wait is not believed once losses count
/// and something is lost all the same; and what it hid is no evidence then, either.
#[test]
fn a_clock_without_a_router_hides_one_loss() {
    let (mut path, _) = Path::alone();
    let told = |path: &mut Path, lost: u32| {
        for _ in 0..2 {
            let (sent, rtt) = (path.now, 200 * MS);
            path.now += rtt;
            for n in 0..40 {
                path.sender.answered(&Answer {
                    lost: if n == 20 { lost } else { 0 },
                    stamp_ms: ((path.now - 100 * MS) / MS) as u32,
                    stamped: true,
                    ..ack(path.now, rtt, sent, path.answer)
                });
                path.now += 1;
            }
        }
        let mut h = ForwardHeader::default();
        path.sender.write_header(path.now, &Sendable::UNLIMITED, false, &mut h);
        h.rtt_ns().expect("known") / MS
    };
    let first = path.now;
    path.sender.answered(&Answer {
        now_ns: first,
        stamp_ms: (first / MS) as u32,
        stamped: true,
        ..sample(100 * MS, 0)
    });
    let (waits, doubted) = (told(&mut path, 0), told(&mut path, 1));
    assert!((190..=202).contains(&waits), "{waits} ms");
    assert!((99..=110).contains(&doubted), "{doubted} ms");
    // Until it is believed again, and beyond: what is in flight stays.
    let mut limits = vec![];
    for _ in 0..75 {
        told(&mut path, 0);
        assert_eq!(path.mode(), Bound::Compete, "{:?}", path.sender.state());
        limits.push(path.sender.limit());
    }
    assert!(limits.windows(2).all(|l| l[1] >= l[0] - l[0] / 10), "{limits:?}");
}
