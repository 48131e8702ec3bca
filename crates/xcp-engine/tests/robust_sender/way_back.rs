//! What acknowledgements wait for on their way, by the receiver's clock: difference 17.

use proptest::prelude::*;
use xcp_engine::{Bound, ForwardHeader, Sendable};

use super::*;

/// The receiver's clock when ours says nothing. It wraps after a second and a half.
const AHEAD_MS: u64 = (1 << 32) - 1500;

/// A path of 100 ms, what comes over it, and its receiver's clock.
struct Path {
    sender: RobustSender,
    now: u64,
    srtt: u64,
    clock: fn(u64) -> u64,
}

impl Path {
    fn new(window: u32) -> Self {
        let sender = RobustSender::new(SIZE, window, None);
        Path { sender, now: S, srtt: 0, clock: |ns| AHEAD_MS + ns / MS }
    }

    /// A round of `segments` packets in flight that wait this long there and back, with so much
    /// feedback on each answer.
    fn round(&mut self, there: u64, back: u64, segments: u32, feedback: f64) {
        let (rtt, sent) = (100 * MS + there + back, self.now);
        self.now += rtt;
        for _ in 0..segments {
            self.srtt = if self.srtt == 0 { rtt } else { self.srtt - self.srtt / 8 + rtt / 8 };
            self.sender.answered(&Answer {
                srtt_ns: self.srtt,
                stamp_ms: (self.clock)(self.now - back) as u32,
                stamped: true,
                ..ack(self.now, rtt, sent, answer(feedback))
            });
            self.now += 1;
        }
    }

    /// What the next header says: the RTT, ms, and packets.
    fn told(&mut self) -> (f64, f64) {
        let mut h = ForwardHeader::default();
        self.sender.write_header(self.now, &Sendable::UNLIMITED, false, &mut h);
        (h.rtt_ns().expect("known") as f64 / MS as f64, h.window_packets().expect("one"))
    }
}

/// The same delay is a queue on the way there, and on the way back is none: that is a longer round
/// trip at the same rate, with as many more packets in flight.
#[test]
fn what_acknowledgements_wait_for_is_no_queue() {
    let after = |there: u64, back: u64| {
        let mut path = Path::new(40);
        for n in 0..6 {
            let waits = u64::from(n > 0);
            path.round(waits * there, waits * back, 40, 0.0);
        }
        path
    };
    let mut waiting = after(0, 80 * MS);
    assert_eq!(waiting.sender.state().bound, Bound::Free);
    assert_eq!(waiting.sender.gap_ns(), Some(100 * MS / 40));
    let (rtt_ms, window) = waiting.told();
    assert!((rtt_ms - 179.0).abs() < 1.0, "{rtt_ms}");
    assert!((window / rtt_ms - 40.0 / 100.0).abs() < 1e-3, "{window} in {rtt_ms} ms");
    assert!((142..=146).contains(&waiting.sender.limit()), "{}", waiting.sender.limit());
    let queue = after(80 * MS, 0);
    assert_eq!(queue.sender.state().bound, Bound::Delay);
    let mut empty = after(0, 0);
    assert!((empty.told().0 - 100.0).abs() < 0.01);
    assert_eq!(empty.sender.limit(), 81);
}

/// Both at once: it is the queue that binds, and the bound is the rate's.
#[test]
fn a_queue_is_seen_behind_a_way_back_that_is_full() {
    let mut path = Path::new(40);
    path.round(0, 0, 40, 0.0);
    for _ in 0..5 {
        path.round(0, 200 * MS, 120, 0.0);
    }
    assert_eq!(path.sender.state().bound, Bound::Free);
    for _ in 0..4 {
        path.round(80 * MS, 200 * MS, 150, 0.0);
    }
    let state = path.sender.state();
    assert_eq!(state.bound, Bound::Delay);
    assert!((38.0..42.0).contains(&state.bound_packets), "{state:?}");
    assert!((80..86).contains(&path.sender.limit()), "{}", path.sender.limit());
    let rate = state.bound_packets * 100.0 / 180.0;
    assert!((state.window / rate - 1.0).abs() < 0.02, "the way back is no part of it: {state:?}");
}

/// Where RTTs show others' queue, CUBIC's losses are that queue's: the clock hides nothing.
#[test]
fn a_clock_is_believed_where_the_queue_is_seen() {
    let mut path = Path::new(40);
    path.round(0, 0, 40, 1000.0);
    let mut rounds = 0..;
    let mut round = |path: &mut Path| {
        let there = 60 + 10 * (rounds.next().expect("more") % 5); // it moves, as queues do
        path.round(there * MS, 50 * MS, 60, 1000.0);
    };
    for _ in 0..24 {
        round(&mut path);
    }
    assert_eq!(path.sender.state().bound, Bound::Compete, "{:?}", path.sender.state());
    for _ in 0..6 {
        for _ in 0..7 {
            round(&mut path);
        }
        path.sender.answered(&loss(1));
        round(&mut path);
    }
    assert_eq!(path.sender.state().bound, Bound::Compete, "{:?}", path.sender.state());
    assert!((path.told().0 - 149.0).abs() < 5.0, "{:?}", path.told());
}

/// What the answers to a steady rate wait for makes none of them late: difference 16 begins beyond.
#[test]
fn what_comes_over_a_full_way_back_is_in_time() {
    let grows = |back: u64| {
        let mut path = Path::new(40);
        path.round(0, 0, 40, 0.0);
        for _ in 0..12 {
            path.round(0, back, 40, 0.0);
        }
        path.round(0, back, 40, 2000.0);
        path.sender.window() - 40.0
    };
    let (empty, full) = (grows(0), grows(300 * MS));
    assert!(empty > 4.0 && (full / empty - 1.0).abs() < 1e-6, "{full} of {empty}");
}

/// A receiver's clock counts without a router's mark, too.
#[test]
fn a_clock_counts_where_no_router_answers() {
    let mut path = Path::new(40);
    path.round(0, 0, 40, 0.0);
    path.round(0, 80 * MS, 40, 0.0);
    assert!(path.told().0 > 170.0);
    let unmarked = ReturnHeader { flags: flags::PRESENT, ..answer(0.0) };
    for _ in 0..6 {
        let (rtt, sent) = (180 * MS, path.now);
        path.now += rtt;
        for _ in 0..40 {
            let stamp_ms = (path.clock)(path.now - 80 * MS) as u32;
            let ack = ack(path.now, rtt, sent, unmarked);
            path.sender.answered(&Answer { stamp_ms, stamped: true, ..ack });
            path.now += 1;
        }
    }
    assert!(!path.sender.state().routed);
    assert!((path.told().0 - 179.0).abs() < 1.0, "{:?}", path.told());
}

/// What a clock says that has stood still, with its machine, cannot be: nothing is taken off, and
/// from then on only what the way back adds.
#[test]
fn a_clock_that_stood_still_hides_nothing() {
    let mut path = Path::new(40);
    path.round(0, 0, 40, 0.0);
    path.clock = |ns| AHEAD_MS + ns / MS - 30_000;
    path.round(0, 0, 40, 0.0);
    assert!((path.told().0 - 100.0).abs() < 0.01, "{:?}", path.told());
    path.round(0, 50 * MS, 40, 0.0);
    assert!(path.told().0 > 145.0, "{:?}", path.told());
    for _ in 0..5 {
        path.round(80 * MS, 0, 40, 0.0);
    }
    assert_eq!(path.sender.state().base_ns, 100 * MS);
    assert_eq!(path.sender.state().bound, Bound::Delay);
}

/// A way back that has become longer for good is its own least at last; so nothing that a clock
/// says, or does wrong, is believed for ever.
#[test]
fn what_is_waited_for_is_forgotten() {
    let mut path = Path::new(40);
    path.round(0, 0, 40, 0.0);
    path.round(0, 8 * MS, 40, 0.0);
    assert!(path.told().0 > 105.0, "{:?}", path.told());
    for _ in 0..800 {
        path.round(0, 8 * MS, 40, 0.0);
    }
    assert!(path.told().0 < 101.0, "{:?} after a minute and a half", path.told());
}

/// While the way back fills, answers come later than routers expect, and W follows slowly.
#[test]
fn a_way_back_that_fills_is_followed_slowly() {
    let window = |grows: u64, feedback: f64| {
        let mut path = Path::new(64);
        for n in 0..4 {
            path.round(0, n * grows, 64, 0.0);
        }
        path.round(0, 4 * grows, 64, feedback);
        path.sender.window()
    };
    for grows in [0, 20 * MS] {
        let (more, less) = (window(grows, 4000.0), window(grows, -4000.0));
        assert!(more > 80.0 && less < 48.0, "{less} to {more} where it grows by {grows} ns");
    }
    let (more, less) = (window(40 * MS, 4000.0), window(40 * MS, -4000.0));
    assert!((68.0..69.0).contains(&more), "a sixteenth: {more}");
    assert!((55.0..56.0).contains(&less), "an eighth: {less}");
}

proptest! {
    /// A clock in microseconds says nothing of the way back.
    #[test]
    fn another_clock_is_none(rounds in prop::collection::vec((0u64..90, 0u64..90), 1..40), ahead in any::<u32>()) {
        let mut path = Path::new(40);
        path.clock = |ns| ns / 1000;
        let mut without = RobustSender::new(SIZE, 40, None);
        let (mut now, mut srtt) = (S, 0);
        for (there, back) in rounds {
            let (rtt, sent) = ((100 + there + back) * MS, now);
            now += rtt;
            for _ in 0..8 {
                srtt = if srtt == 0 { rtt } else { srtt - srtt / 8 + rtt / 8 };
                let stamp_ms = ahead.wrapping_add(((now - back * MS) / 1000) as u32);
                let ack = Answer { srtt_ns: srtt, ..ack(now, rtt, sent, answer(100.0)) };
                path.sender.answered(&Answer { stamp_ms, stamped: true, ..ack });
                without.answered(&ack);
                now += 5 * MS;
            }
            prop_assert_eq!(path.sender.state(), without.state());
            prop_assert_eq!(path.sender.limit(), without.limit());
        }
    }
}
