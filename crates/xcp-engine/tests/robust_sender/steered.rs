//! Difference 20: a queue that TCP has filled, and that its router says it steers.

use super::*;
use xcp_engine::Bound;

/// A code for 67 to 101 ms, and one for 4 to 6: docs/wire-format.md.
const LONG: u8 = 9;
const SHORT: u8 = 1;

/// A sender with twenty packets in flight that has seen an RTT of 80 ms for three rounds.
fn settled() -> (RobustSender, u64) {
    let mut sender = RobustSender::new(SIZE, 20, None);
    let mut now = S;
    for _ in 0..3 {
        behind(&mut sender, &mut now, 80 * MS, 0, 0);
    }
    (sender, now)
}

/// A round trip whose answers say that they waited behind TCP, and in which so many segments are
/// found lost.
fn behind(sender: &mut RobustSender, now: &mut u64, rtt: u64, wait: u8, lost: u32) {
    answered(sender, now, rtt, ReturnHeader { wait, ..answer(0.0) }, lost);
}

fn answered(sender: &mut RobustSender, now: &mut u64, rtt: u64, returned: ReturnHeader, lost: u32) {
    let sent = *now;
    *now += rtt;
    for n in 0..18 {
        sender.answered(&Answer {
            stamp_ms: ((*now - 40 * MS) / MS) as u32,
            stamped: true,
            lost: if n == 0 { lost } else { 0 },
            ..ack(*now, rtt, sent, returned)
        });
        *now += 1;
    }
}

/// What the rounds say is taken off their RTTs, and what is beyond that is a queue.
#[test]
fn what_waits_behind_tcp_is_no_foreign_queue() {
    let after = |rtt: u64, returned: ReturnHeader| {
        let (mut sender, mut now) = settled();
        for _ in 0..6 {
            answered(&mut sender, &mut now, rtt, returned, 0);
        }
        assert_eq!(sender.state().base_ns, 80 * MS);
        sender.state().bound
    };
    let said = |wait: u8| ReturnHeader { wait, ..answer(0.0) };
    assert_eq!(after(170 * MS, said(0)), Bound::Delay, "nobody says so");
    assert_eq!(after(170 * MS, said(LONG)), Bound::Free);
    assert_eq!(after(200 * MS, said(LONG)), Bound::Delay, "more than that");
    assert_eq!(after(170 * MS, said(SHORT)), Bound::Delay, "less");
    let unmarked = ReturnHeader { flags: flags::PRESENT, ..said(LONG) };
    assert_ne!(after(170 * MS, unmarked), Bound::Free, "no router has said it");
}

/// What is lost there is TCP's doing, be it in one round or in several; a short queue loses nothing.
#[test]
fn what_is_lost_behind_tcp_does_not_count() {
    let after = |wait: u8, rounds: u32| {
        let (mut sender, mut now) = settled();
        for _ in 0..rounds {
            behind(&mut sender, &mut now, 160 * MS, wait, 9);
        }
        behind(&mut sender, &mut now, 80 * MS, 0, 0);
        sender.state().bound
    };
    assert_eq!(after(LONG, 1), Bound::Free);
    assert_eq!(after(LONG, 7), Bound::Free);
    assert_ne!(after(SHORT, 2), Bound::Free);
    assert_ne!(after(0, 2), Bound::Free);
}

/// Rounds that say so and lose something, one after the other or not, are enough in the end. Then
/// nothing of it is believed for long, and then again.
#[test]
fn a_receiver_that_blames_tcp_is_found_out() {
    let (mut sender, mut now) = settled();
    for n in 0..7 {
        behind(&mut sender, &mut now, 160 * MS, LONG, 1);
        behind(&mut sender, &mut now, 160 * MS, LONG, 0);
        assert_eq!(sender.state().bound, Bound::Free, "{n}");
    }
    let mut honest = sender.clone();
    for _ in 0..4 {
        behind(&mut sender, &mut now, 160 * MS, LONG, 1);
    }
    assert_eq!(sender.state().bound, Bound::Delay);
    // Not once it has said so for long, either: now one such round is enough.
    for _ in 0..300 {
        behind(&mut sender, &mut now, 80 * MS, LONG, 0);
    }
    assert_eq!(sender.state().bound, Bound::Free);
    for _ in 0..5 {
        behind(&mut sender, &mut now, 160 * MS, LONG, 1);
    }
    assert_ne!(sender.state().bound, Bound::Free);
    // Whoever says nothing of it for long is believed as before.
    for _ in 0..7 * 16 {
        behind(&mut honest, &mut now, 80 * MS, 0, 0);
    }
    for _ in 0..7 {
        behind(&mut honest, &mut now, 160 * MS, LONG, 1);
    }
    assert_eq!(honest.state().bound, Bound::Free);
}

/// Nor does it help to blame TCP only where something has been lost, and to say nothing in between:
/// three such rounds make up for less than a fifth of one.
#[test]
fn whoever_blames_tcp_now_and_then_is_found_out() {
    let after = |times: u32| {
        let (mut sender, mut now) = settled();
        for _ in 0..times {
            behind(&mut sender, &mut now, 160 * MS, LONG, 1);
            for _ in 0..3 {
                behind(&mut sender, &mut now, 80 * MS, 0, 0);
            }
        }
        assert_eq!(sender.state().bound, Bound::Free);
        for _ in 0..4 {
            behind(&mut sender, &mut now, 160 * MS, LONG, 0);
        }
        sender.state().bound
    };
    assert_eq!(after(8), Bound::Free);
    assert_eq!(after(10), Bound::Delay);
}

/// Where answers come without a header from then on, as when something on the way drops options,
/// what was said last is forgotten with the round.
#[test]
fn what_was_said_once_is_not_believed_for_ever() {
    let (mut sender, mut now) = settled();
    behind(&mut sender, &mut now, 160 * MS, LONG, 0);
    for _ in 0..5 {
        let sent = now;
        now += 160 * MS;
        for _ in 0..18 {
            let nothing = ReturnHeader::default();
            sender.answered(&Answer { answers: 0, ..ack(now, 160 * MS, sent, nothing) });
            now += 1;
        }
    }
    assert_eq!(sender.state().bound, Bound::Delay);
}

/// A queue that a slow start fills grows as suddenly as a path becomes longer: 80 ms more between
/// two packets that were sent 10 ms apart, for .3 s, and again.
#[test]
fn what_tcp_fills_is_no_jump_of_the_path() {
    let after = |wait: u8| {
        let mut sender = RobustSender::new(SIZE, 10, None);
        let mut now = 0;
        for n in 0..1000 {
            let (sent, longer) = (S + n * 10 * MS, n / 30 % 2 == 1);
            let (rtt, wait) = if longer { (180 * MS, wait) } else { (100 * MS, 0) };
            now = (sent + rtt).max(now + 1);
            let returned = ReturnHeader { wait, ..answer(0.0) };
            let stamp_ms = (now / MS) as u32;
            let ack = ack(now, now - sent, sent, returned);
            sender.answered(&Answer { stamp_ms, stamped: true, ..ack });
        }
        sender.state()
    };
    assert!(after(0).jumps, "{:?}", after(0));
    let steered = after(LONG);
    assert!(!steered.jumps && steered.binds == 0, "{steered:?}");
}
