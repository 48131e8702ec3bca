//! First windows: what a router that remembers its promises answers to a SYN, and what the sender
//! makes of it.

use xcp_engine::{
    Answer, ForwardHeader, Preset, ReturnHeader, RobustRouter, RobustSender, RouterConfig,
    Sendable, WireFormat, flags,
};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
/// 100 Mbit/s, bytes/s.
const C: u64 = 12_500_000;
const SIZE: u32 = 1500;
const SYN: u32 = 60;
const RTT: u64 = 80 * MS;

/// A router that has served `flows` flows for a second, which fill the link and ask for nothing.
fn served(flows: u32) -> (RobustRouter, u64) {
    let mut r = RobustRouter::new(&RouterConfig::preset(Preset::Robust, C), 0, 7).expect("valid");
    let window = C as f64 * RTT as f64 / S as f64 / f64::from(SIZE) / f64::from(flows);
    let mut now = 0;
    while now < S {
        let mut h = ForwardHeader::encode(WireFormat::Extended, RTT, window, 0.0);
        h.flags |= flags::KEEPS;
        r.arrival(now, SIZE, &h, 0);
        r.departure(now, SIZE, &mut h, 0);
        now += u64::from(SIZE) * S / C;
    }
    (r, now)
}

/// A SYN that asks for so many packets, through a router; what its header says then.
fn opens(r: &mut RobustRouter, now: u64, packets: u32) -> ForwardHeader {
    let mut h = ForwardHeader::default();
    asks(packets, &mut h);
    through(r, now, &mut h);
    h
}

fn asks(packets: u32, h: &mut ForwardHeader) {
    let sender = RobustSender::new(SIZE, packets, None);
    sender.write_opening(&Sendable { window_limit: u32::MAX }, h);
}

fn through(r: &mut RobustRouter, now: u64, h: &mut ForwardHeader) {
    r.arrival(now, SYN, h, 0);
    r.departure(now, SYN, h, 0);
}

/// What a sender begins with that is answered so after a round trip, packets.
fn begins(h: &ForwardHeader, rtt: u64, packets: u32) -> f64 {
    let mut sender = RobustSender::new(SIZE, packets, None);
    let returned = ReturnHeader {
        feedback: h.feedback,
        flags: h.flags & (flags::PRESENT | flags::MARK | flags::KEEPS),
        wait: h.wait,
        next_bottleneck_id: 0,
    };
    let (now_ns, sent_ns) = (S + rtt, S);
    let answer = Answer { now_ns, sent_ns, rtt_ns: rtt, srtt_ns: rtt, ..Answer::default() };
    sender.answered(&Answer { covered: 1, ..answer });
    sender.opened(&Answer { returned, answers: 1, ..answer });
    sender.window()
}

/// Whose link it is alone begins as anybody does, whatever the round trip; and the link's rate is
/// the most.
#[test]
fn a_link_that_nobody_uses_holds_nobody_up() {
    let mut r = RobustRouter::new(&RouterConfig::preset(Preset::Robust, C), 0, 7).expect("valid");
    let h = opens(&mut r, S, 10);
    assert!((h.feedback_value() / C as f64 - 1.0).abs() < 0.01, "{}", h.feedback_value());
    assert_eq!(begins(&h, RTT, 10), 10.0);
    assert_eq!(begins(&h, 600 * MS, 10), 10.0);
    let one_ms = begins(&h, MS, 10);
    assert!((one_ms - C as f64 / 1000.0 / f64::from(SIZE)).abs() < 0.1, "{one_ms}");
}

/// A hundred at once get half of what the link holds between them, and then a packet each; a round
/// trip later there is as much again.
#[test]
fn first_windows_together_are_half_of_the_link() {
    let (mut r, mut now) = served(10);
    for _ in 0..2 {
        let windows: Vec<f64> =
            (0..100).map(|_| begins(&opens(&mut r, now, 10), RTT, 10)).collect();
        let all: f64 = windows.iter().sum();
        assert!(windows[..30].iter().all(|w| *w > 9.9), "{windows:?}");
        assert!(windows[34..].iter().all(|w| (w - 1.0).abs() < 0.01), "{windows:?}");
        assert!((333.0..=405.0).contains(&all), "{all}");
        now += RTT;
    }
}

/// Not booked, no input but the SYN's own bytes, no flow: who floods with SYNs takes nothing from
/// those who send, and leaves a packet to each who begins, and all of it a d later.
#[test]
fn a_flood_of_syns_takes_nothing() {
    let (mut calm, now) = served(10);
    let mut flooded = calm.clone();
    for i in 0..10_000 {
        opens(&mut flooded, now + i, 1000);
    }
    let ask = |r: &mut RobustRouter| {
        let mut h = ForwardHeader::encode(WireFormat::Extended, RTT, 66.7, f64::INFINITY);
        h.flags |= flags::KEEPS;
        r.arrival(now + 10_000, SIZE, &h, 0);
        r.departure(now + 10_000, SIZE, &mut h, 0);
        (h.feedback, r.promised_bps())
    };
    let (calm, flooded_with) = (ask(&mut calm), ask(&mut flooded));
    // What is rounded at random may be another code.
    assert!(calm.0.abs_diff(flooded_with.0) <= 1, "{calm:?} {flooded_with:?}");
    assert!((calm.1 - flooded_with.1).abs() <= 0.01 * calm.1.abs(), "{calm:?} {flooded_with:?}");
    let last = begins(&opens(&mut flooded, now + 10_000, 10), RTT, 10);
    assert!((last - 1.0).abs() < 0.01, "{last}");
    let later = begins(&opens(&mut flooded, now + 2 * RTT, 10), RTT, 10);
    assert!(later > 9.9, "{later}");
}

/// Processors read their clocks before they wait for each other, so a SYN may be a little older than
/// the one before: that is no time in which a link has emptied.
#[test]
fn a_clock_that_is_behind_gives_nothing_back() {
    let (mut r, now) = served(10);
    for _ in 0..100 {
        opens(&mut r, now + 1000, 10);
    }
    let windows: Vec<f64> =
        [500, 1000, 600, 1001].map(|t| begins(&opens(&mut r, now + t, 10), RTT, 10)).to_vec();
    assert!(windows.iter().all(|w| (w - 1.0).abs() < 0.01), "{windows:?}");
}

/// How far apart the packets of a flow are says how long parts are, where windows are small. What
/// says nothing of that, such as a SYN, does not count.
#[test]
fn syns_do_not_shorten_parts() {
    let after = |syns: u32| {
        let mut r =
            RobustRouter::new(&RouterConfig::preset(Preset::Robust, C), 0, 7).expect("valid");
        let mut now = 0;
        while now < S {
            let mut h = ForwardHeader::encode(WireFormat::Extended, RTT, 1.0, 0.0);
            h.flags |= flags::KEEPS;
            r.arrival(now, SIZE, &h, 0);
            r.departure(now, SIZE, &mut h, 0);
            for _ in 0..syns {
                opens(&mut r, now, 10);
            }
            now += u64::from(SIZE + syns * SYN) * S / C;
        }
        r.state().control_interval_s
    };
    let (calm, flooded) = (after(0), after(4));
    assert!(calm > 0.07 && (flooded - calm).abs() < 0.01, "{calm} {flooded}");
}

/// Of several routers the tightest counts.
#[test]
fn the_narrowest_link_says() {
    let (mut wide, now) = served(10);
    let mut narrow = wide.clone();
    opens(&mut narrow, now, 1000);
    let share = opens(&mut narrow.clone(), now, 100).feedback_value();
    for first in [true, false] {
        let mut h = opens(if first { &mut narrow } else { &mut wide }, now, 100);
        through(if first { &mut wide } else { &mut narrow }, now, &mut h);
        let off = h.feedback_value() / share - 1.0;
        assert!(off.abs() < 0.02 && h.flags & flags::MARK != 0, "{off}, {h:?}");
    }
}

/// Only who keeps a rate is answered so: to others a header without a round trip asks for nothing
/// that could be given, and a decrease stays.
#[test]
fn who_does_not_ask_for_a_first_window_is_not_answered() {
    let (mut r, now) = served(10);
    let mut h = ForwardHeader::encode(WireFormat::Extended, 0, 10.0, f64::INFINITY);
    through(&mut r, now, &mut h);
    assert_eq!(h.feedback, 0);
    // Data could get one answer after the other.
    let mut h = ForwardHeader::default();
    asks(10, &mut h);
    h.flags &= !flags::OPENS;
    r.arrival(now, SIZE, &h, 0);
    r.departure(now, SIZE, &mut h, 0);
    assert_eq!(h.feedback, 0);
    let mut h = ForwardHeader::encode(WireFormat::Extended, 0, 10.0, -1000.0);
    h.flags |= flags::KEEPS;
    let before = h.feedback;
    through(&mut r, now, &mut h);
    assert_eq!(h.feedback, before);
}

/// Where nobody answers, or a router whose law has no answer, a connection begins as it would have;
/// and nobody begins with more than it asked for.
#[test]
fn without_an_answer_it_begins_as_ever() {
    let mut h = ForwardHeader::default();
    asks(10, &mut h);
    assert_eq!(begins(&h, RTT, 10), 10.0);
    h.flags |= flags::MARK;
    assert_eq!(begins(&h, RTT, 10), 10.0);
    assert_eq!(begins(&ForwardHeader { feedback: 0, ..h }, RTT, 10), 10.0);
    assert_eq!(begins(&ForwardHeader { feedback: 1, ..h }, RTT, 10), 1.0, "a packet at the least");
}

/// A first window that is sent at once has others make room for a window a round trip, not for all
/// of it in a fifth of one.
#[test]
fn what_is_sent_at_once_is_measured_over_a_round_trip() {
    let taken = |window: u32, at_once: bool| {
        let (mut r, mut now) = served(20);
        let mut taken = 0.0f64;
        let mut pass = |r: &mut RobustRouter, now: u64, window: f64, flag: u8| {
            let mut h = ForwardHeader::encode(WireFormat::Extended, RTT, window, 0.0);
            h.flags |= flags::KEEPS | flag;
            r.arrival(now, SIZE, &h, 0);
            r.departure(now, SIZE, &mut h, 0);
            taken -= WireFormat::Extended.decode_feedback(h.feedback).min(0.0);
        };
        for _ in 0..window {
            let flag = if at_once { flags::OPENS } else { 0 };
            pass(&mut r, now, f64::from(window), flag);
        }
        for _ in 0..200 {
            pass(&mut r, now, 667.0 / 20.0, 0);
            now += u64::from(SIZE) * S / C;
        }
        taken
    };
    let shuffled = taken(0, false);
    let of_window = |at_once: bool| {
        (taken(100, at_once) - shuffled) / (f64::from(100 * SIZE) * S as f64 / RTT as f64)
    };
    // Its rate, and the queue that it makes in a round trip.
    assert!((1.0..2.0).contains(&of_window(true)), "{}", of_window(true));
    assert!(of_window(false) > 5.0, "{}", of_window(false));
}
