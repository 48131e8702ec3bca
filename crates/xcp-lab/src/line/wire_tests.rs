//! The wire against a naive model, against the simulator's link, and by its properties.

use proptest::prelude::*;
use xcp_model::units::{NANOS_PER_SEC, Nanos, Period};
use xcp_model::{self as model, Limit, Loss, LossPlace, Reorder};
use xcp_sim::fifo::Packets;
use xcp_sim::link::Link;
use xcp_sim::packet::Packet;
use xcp_sim::routing::Hop;

use super::*;
use crate::line::config::{LineConfig, QueueConfig};

const MS: Nanos = 1_000_000;
const ALWAYS: Period = Period { from: 0, to: Nanos::MAX };

fn config() -> LineConfig {
    LineConfig {
        delays: (5 * MS).into(),
        losses: Vec::new(),
        losses_elsewhere: false,
        blackouts: Vec::new(),
        reorder: None,
        queue: None,
        seed: 1,
        index: 3,
        zero: 0,
        mtu: 9000,
        input_rate_bps: 1_000_000_000,
    }
}

fn with_queue(rate_bps: u64, queue: model::Queue) -> LineConfig {
    LineConfig {
        queue: Some(QueueConfig { rates: rate_bps.into(), queue, overhead_bytes: 0 }),
        ..config()
    }
}

fn loss(probability: f64, place: LossPlace, period: Period) -> Loss {
    Loss { probability, place, period }
}

/// Gap before a frame and its size.
fn frames() -> impl Strategy<Value = Vec<(Nanos, u32)>> {
    // Bursts, gaps about the time a frame takes, and pauses in which a queue empties.
    let gap = prop_oneof![Just(0), 0..2 * MS, 0..100 * MS];
    prop::collection::vec((gap, 60u32..9015), 1..300)
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![(0u64..50).prop_map(Limit::Packets), (0u64..100_000).prop_map(Limit::Bytes)]
}

fn red() -> impl Strategy<Value = model::Queue> {
    (
        limits(),
        0.0f64..5.0,
        1.0f64..20.0,
        0.0f64..=1.0,
        prop::option::of(0.001f64..=1.0),
        any::<bool>(),
    )
        .prop_map(|(limit, min_packets, more, max_probability, weight, gentle)| {
            let red = model::Red {
                min_packets,
                max_packets: min_packets + more,
                max_probability,
                weight,
                gentle,
            };
            model::Queue { limit, discipline: model::Discipline::Red(red), yields: false }
        })
}

/// A drop-tail queue that remembers everything it was given and counts anew at every arrival.
#[derive(Default)]
struct Naive {
    /// Of every packet taken: start of service, end of service, bytes.
    taken: Vec<(Nanos, Nanos, u64)>,
    /// Since when the transmitter has been busy, and what it has been given since.
    busy: (Nanos, u64),
}

impl Naive {
    fn waiting(&self, now: Nanos) -> (u64, u64) {
        let waiting = self.taken.iter().filter(|&&(starts, ..)| starts > now);
        waiting.fold((0, 0), |(packets, sum), (.., bytes)| (packets + 1, sum + bytes))
    }

    fn arrival(&mut self, now: Nanos, bytes: u64, rate_bps: u64, limit: Limit) -> Option<Nanos> {
        let free_at = self.taken.last().map_or(0, |&(_, ends, _)| ends);
        let (packets, waiting_bytes) = self.waiting(now);
        let full = match limit {
            Limit::Packets(limit) => packets >= limit,
            Limit::Bytes(limit) => waiting_bytes + bytes > limit,
        };
        if now < free_at && full {
            return None;
        }
        if now > free_at {
            self.busy = (now, 0);
        }
        self.busy.1 += bytes;
        let length = u128::from(self.busy.1) * 8 * u128::from(NANOS_PER_SEC) / u128::from(rate_bps);
        let ends = self.busy.0 + length as Nanos;
        self.taken.push((now.max(free_at), ends, bytes));
        Some(ends)
    }
}

proptest! {
    #[test]
    fn a_drop_tail_wire_is_the_naive_one(frames in frames(), rate_bps in 1_000_000u64..2_000_000_000, limit in limits()) {
        let mut wire = Wire::new(&with_queue(rate_bps, model::Queue::drop_tail(limit)));
        let mut naive = Naive::default();
        let (mut now, mut last_due, mut drops, mut integral) = (1, 0, 0, 0u128);
        for (gap, bytes) in frames {
            // What has been waiting since the last arrival, by each packet's own wait.
            let wait = |&(starts, ..): &(Nanos, Nanos, u64)| u128::from(starts.clamp(now, now + gap) - now);
            integral += naive.taken.iter().map(wait).sum::<u128>();
            now += gap;
            let due = wire.arrival(now, bytes);
            prop_assert_eq!(due, naive.arrival(now, u64::from(bytes), rate_bps, limit).map(|ends| ends + 5 * MS));
            drops += u64::from(due.is_none());
            if let Some(due) = due {
                prop_assert!(due >= last_due);
                last_due = due;
            }
            let state = wire.queue().unwrap().look(now);
            prop_assert_eq!((state.packets, state.bytes), naive.waiting(now));
            prop_assert_eq!(u128::from(state.integral), integral);
            let within_limit = match limit {
                Limit::Packets(limit) => state.packets <= limit,
                Limit::Bytes(limit) => state.bytes <= limit,
            };
            prop_assert!(within_limit);
        }
        prop_assert_eq!(wire.counters().queue_drops, drops);
    }

    /// The same arrivals at the simulator's link: the same departures, drops, losses and queue,
    /// packet by packet.
    #[test]
    fn a_wire_is_the_simulators_link(
        frames in frames(),
        rate_bps in 1_000_000u64..2_000_000_000,
        queue in prop_oneof![limits().prop_map(model::Queue::drop_tail), red()],
        probabilities in prop::collection::vec((0.0f64..=0.5, any::<bool>()), 0..3),
        rates in prop::collection::vec((1u64..100 * MS, 1_000_000u64..2_000_000_000), 0..4),
        delays in prop::collection::vec((1u64..100 * MS, 0u64..50 * MS), 0..4),
        seed: u64,
    ) {
        let steps = |gaps: Vec<(Nanos, u64)>| -> Vec<(Nanos, u64)> {
            let mut at = 0;
            gaps.into_iter().map(|(gap, value)| { at += gap; (at, value) }).collect()
        };
        let (rate_changes, delay_changes) = (steps(rates), steps(delays));
        let place = |before| if before { LossPlace::BeforeQueue } else { LossPlace::AfterQueue };
        let losses: Vec<Loss> = probabilities.into_iter().map(|(p, before)| loss(p, place(before), ALWAYS)).collect();
        let direction = model::Direction { rate_bps, rate_changes, delay: 5 * MS, delay_changes, framing_bytes: 0, queue, losses: losses.clone(), blackouts: Vec::new(), reorder: None };
        let queue = QueueConfig { rates: direction.rates(), queue: direction.queue.clone(), overhead_bytes: 0 };
        let mut wire = Wire::new(&LineConfig { losses, seed, delays: direction.delays(), queue: Some(queue), ..config() });
        let (mut link, mut packets) = (Link::new(&direction, 3, seed).unwrap(), Packets::default());
        let (mut due, mut now, mut max) = (Vec::new(), 1, 0);
        for (gap, bytes) in frames {
            now += gap;
            due.extend(wire.arrival(now, bytes));
            max = max.max(wire.queue().unwrap().look(now).max_packets);

            let mut packet = Packet { size: bytes as u16, ..Packet::default() };
            link.advance(now, &mut packets);
            if link.is_idle(now) {
                if let Some(arrives) = link.pass(now, &mut packet, &mut packets) {
                    link.hold(arrives, &packet, 0, Hop::END, &mut packets);
                }
            } else {
                link.wait(now, &mut packet, 0, Hop::END, &mut packets);
            }
        }
        let end = now + 3600 * NANOS_PER_SEC;
        link.advance(end, &mut packets);
        let mut arrived = Vec::new();
        while let Some(&transit) = link.next_on_the_way(&packets) {
            if link.deliver(&transit, &mut packets) {
                arrived.push(transit.arrives);
            }
        }
        prop_assert_eq!(due, arrived);
        let counters = *link.counters(end);
        prop_assert_eq!(wire.counters().queue_drops, counters.drops);
        prop_assert_eq!(wire.counters().lost_at_random, counters.lost);
        prop_assert_eq!(u128::from(wire.queue().unwrap().look(end).integral), counters.queue_integral);
        prop_assert_eq!(max, link.take_queue_max());
    }

    /// What is lost in a blackout is what leaves the transmitter in it, to the nanosecond, wherever
    /// the scenario's zero lies.
    #[test]
    fn blackouts_strike_exactly(frames in frames(), from in 0..200 * MS, length in 0..200 * MS, zero in 0..200 * MS, queued: bool) {
        let base = if queued { with_queue(10_000_000, model::Queue::drop_tail(Limit::Packets(u64::MAX))) } else { config() };
        let blackout = Period { from, to: from + length };
        let mut wire = Wire::new(&LineConfig { blackouts: vec![blackout], zero, ..base.clone() });
        let mut clear = Wire::new(&base);
        let (mut now, mut lost) = (1, 0);
        for (gap, bytes) in frames {
            now += gap;
            let leaves = clear.arrival(now, bytes).unwrap() - 5 * MS;
            let dark = leaves >= zero && blackout.contains(leaves - zero);
            lost += u64::from(dark);
            prop_assert_eq!(wire.arrival(now, bytes).is_none(), dark);
        }
        prop_assert_eq!(wire.counters(), Counters { lost_in_blackouts: lost, ..Counters::default() });
    }

    /// The fate of the n-th packet does not depend on when packets come, nor on what else strikes
    /// them.
    #[test]
    fn losses_go_by_the_packets_number(gaps in prop::collection::vec(0..100 * MS, 200), other in 0..100 * MS, seed: u64) {
        let half = Period { from: 0, to: 5 * NANOS_PER_SEC };
        let losses = vec![loss(0.2, LossPlace::AfterQueue, ALWAYS), loss(0.3, LossPlace::AfterQueue, half)];
        let blackouts = vec![Period { from: other, to: 2 * other }];
        let mut wire = Wire::new(&LineConfig { losses: losses.clone(), blackouts: blackouts.clone(), seed, ..config() });
        // All at once in the second half and outside the blackout: only the first loss applies.
        let mut late = Wire::new(&LineConfig { losses: losses.clone(), blackouts: blackouts.clone(), seed, ..config() });
        // All at once in the first half: both do.
        let mut early = Wire::new(&LineConfig { losses, seed, ..config() });
        let mut now = 0;
        for gap in gaps {
            now += gap;
            let lost = wire.arrival(now, 1000).is_none();
            let by_first = late.arrival(3600 * NANOS_PER_SEC, 1000).is_none();
            let by_either = early.arrival(0, 1000).is_none();
            let dark = blackouts[0].contains(now);
            prop_assert_eq!(lost, dark || if half.contains(now) { by_either } else { by_first });
        }
    }

    /// A frame that falls back does so by what it may, all others come when they would; which do
    /// goes by the packet's number.
    #[test]
    fn some_fall_back_and_the_others_do_not_notice(frames in frames(), probability in 0.0f64..=1.0, most in 0..50 * MS, seed: u64) {
        let losses = vec![loss(0.2, LossPlace::AfterQueue, ALWAYS)];
        let clear = LineConfig { losses, seed, ..config() };
        let reorder = Some(Reorder { probability, most });
        let (mut plain, mut wire) = (Wire::new(&clear), Wire::new(&LineConfig { reorder, ..clear.clone() }));
        let mut at_once = Wire::new(&LineConfig { reorder, ..clear });
        let (mut now, mut fell_back) = (1, 0);
        for (gap, bytes) in frames {
            now += gap;
            let (due, other) = (wire.arrival(now, bytes), plain.arrival(now, bytes));
            prop_assert_eq!(due.is_some(), other.is_some());
            let extra = due.unwrap_or(0) - other.unwrap_or(0);
            prop_assert!(extra <= most);
            prop_assert_eq!(at_once.arrival(0, bytes).map_or(0, |due| due - 5 * MS), extra);
            fell_back += u64::from(extra > 0);
        }
        prop_assert_eq!(wire.counters().fell_back, fell_back);
    }

    /// Time does not go back, even where the caller's does.
    #[test]
    fn due_times_are_in_order_whatever_the_clock_does(times in prop::collection::vec(any::<u64>(), 1..100), queued: bool) {
        let base = if queued { with_queue(1, model::Queue::drop_tail(Limit::Packets(10))) } else { config() };
        let mut wire = Wire::new(&base);
        let mut last = 0;
        for time in times {
            if let Some(due) = wire.arrival(time, 9014) {
                prop_assert!(due >= last);
                last = due;
            }
        }
    }
}

#[test]
fn losses_have_their_probability() {
    for probability in [0.001, 0.01, 0.5] {
        let mut wire = Wire::new(&LineConfig {
            losses: vec![loss(probability, LossPlace::AfterQueue, ALWAYS)],
            ..config()
        });
        let n = 400_000u32;
        let lost = (0..n).filter(|_| wire.arrival(0, 1000).is_none()).count() as f64;
        let mean = probability * f64::from(n);
        // Four standard deviations.
        assert!(
            (lost - mean).abs() < 4.0 * (mean * (1.0 - probability)).sqrt(),
            "{probability}: {lost} of {n}"
        );
    }
}

#[test]
fn as_many_fall_back_as_should_and_half_as_far_on_average_as_they_may() {
    let mut wire = Wire::new(&LineConfig {
        reorder: Some(Reorder { probability: 0.01, most: 8 * MS }),
        ..config()
    });
    let n = 400_000;
    let extra: Vec<Nanos> = (0..n)
        .map(|_| wire.arrival(0, 1000).unwrap() - 5 * MS)
        .filter(|&extra| extra > 0)
        .collect();
    let mean = 0.01 * f64::from(n);
    // Four standard deviations; of a uniform time it is most / sqrt(12).
    assert!((extra.len() as f64 - mean).abs() < 4.0 * (mean * 0.99).sqrt(), "{}", extra.len());
    let average = extra.iter().sum::<Nanos>() as f64 / extra.len() as f64;
    assert!((average - 4e6).abs() < 4.0 * 8e6 / (12.0 * extra.len() as f64).sqrt(), "{average}");
}

#[test]
fn an_overhead_is_time_on_the_wire() {
    let queue = |overhead_bytes| QueueConfig {
        rates: 8_000_000.into(),
        queue: model::Queue::drop_tail(Limit::Packets(1)),
        overhead_bytes,
    };
    for (overhead, micros) in [(0, 1014), (-14, 1000), (24, 1038), (-2000, 1)] {
        let mut wire = Wire::new(&LineConfig { queue: Some(queue(overhead)), ..config() });
        assert_eq!(wire.arrival(10 * MS, 1014), Some(15 * MS + micros * 1000));
    }
}
