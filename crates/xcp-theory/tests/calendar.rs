//! Margins of a loop with a calendar: closed forms, and the same loop computed step by step.

mod common;

use common::scenario;
use proptest::prelude::*;
use xcp_theory::Network;
use xcp_theory::calendar::{CalendarLoop, RIGHT, State, Wrong, part};
use xcp_theory::equilibrium;
use xcp_theory::margins::margins;

fn one(gain: f64, interval: f64, part: f64) -> CalendarLoop {
    CalendarLoop { gain, interval, part, flows: vec![(1.0, interval)] }
}

/// Deviations from rest, computed from what the law does: grants in steps of a thirty-second
/// of a part, booked, seen and counted one by one. Whether they die away.
fn dies_away(of: &CalendarLoop, state: State, wrong: Wrong) -> bool {
    const M: usize = 32;
    const PARTS: usize = 2000;
    let h = of.part / M as f64;
    let steps = |t: f64| (t / h).round() as i64;
    let (rtt, d) = (of.flows[0].1, steps(of.interval) as usize);
    let (booked, really) = (steps(rtt) as usize, steps(rtt + wrong.late).max(1));
    // granted[j]: all that was before step j.
    let mut granted = vec![0.0, 1.0];
    granted.resize(M + 1, 1.0);
    let before = |granted: &[f64], j: i64| granted[j.clamp(0, granted.len() as i64 - 1) as usize];
    let (mut queue, mut peaks) = (vec![0.0], Vec::new());
    for k in 1..PARTS {
        let end = k * M;
        let y = |j: usize| wrong.obeyed * before(&granted, j as i64 - really + 1);
        for j in end - M..end {
            queue.push(queue[j] + y(j) * h);
        }
        let over = end.saturating_sub(2 * M)..end;
        let seen = over.clone().map(y).sum::<f64>() / (2 * M) as f64;
        let due = |j: usize| {
            let i = j as i64 - booked as i64;
            before(&granted, i + 1) - before(&granted, i)
        };
        let hidden: f64 = over
            .clone()
            .map(|j| due(j) * (j as f64 - (end as f64 - (2 * M) as f64)) / (2 * M) as f64)
            .sum();
        let owed = hidden + (end..end + booked).map(due).sum::<f64>();
        let (mut then, mut waits) = (seen + hidden, 0.0);
        match state {
            State::Empty => {}
            State::Falling => waits = queue[end],
            State::Rising => waits = queue[end.saturating_sub(2 * M)],
        }
        for j in end..end + d {
            then += due(j);
            waits += then * h;
        }
        let drain = if state == State::Empty { 0.0 } else { waits / of.interval };
        let f = -of.gain * (seen + owed + drain);
        for i in 1..=M {
            granted.push(granted[end] + f * i as f64 / M as f64);
        }
        peaks.push(granted[end].abs().max(f.abs()));
        if peaks[k - 1] > 1e9 {
            return false;
        }
    }
    let most = |from: usize, to: usize| peaks[from..to].iter().copied().fold(0.0, f64::max);
    most(PARTS * 3 / 4, PARTS - 1) < most(PARTS / 4, PARTS / 2) || most(PARTS / 4, PARTS - 1) < 1e-9
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200, failure_persistence: None, ..ProptestConfig::default()
    })]

    /// The roots' verdict is what happens, on both sides of every margin: wherever the verdict does
    /// not hang on a few percent of gain or delay.
    #[test]
    fn the_verdict_is_what_happens(
        d in 0.001f64..1.0,
        parts in 2.0f64..12.0,
        gain in 0.05f64..2.2,
        off in -1.0f64..1.5,
        obeyed in prop_oneof![Just(1.0), 0.05f64..3.0],
        state in prop::sample::select(State::ALL.to_vec()),
    ) {
        let part = d / parts;
        // In whole steps of the other computation.
        let step = part / 32.0;
        let late = (off * d.min(3.0 * part) / step).round() * step;
        let wrong = Wrong { late, obeyed };
        let interval = (d / step).round() * step;
        let of = one(gain, interval, part);
        let verdict = of.is_stable(state, wrong);
        let surely = [0.85, 0.93, 1.07, 1.15].into_iter().all(|times| {
            let later = Wrong { late: wrong.late * times, obeyed };
            one(times * gain, interval, part).is_stable(state, wrong) == verdict
                && of.is_stable(state, later) == verdict
        });
        if surely {
            prop_assert_eq!(dies_away(&of, state, wrong), verdict, "{:?} {:?}", of, wrong);
        }
    }

    /// With a right calendar it is an integrator of gain κ, whatever d, T and the round trips are.
    #[test]
    fn a_right_calendar_is_stable_below_a_gain_of_two(
        d in 0.001f64..1.0,
        parts in 2.0f64..40.0,
        other in 0.1f64..10.0,
        share in 0.0f64..1.0,
    ) {
        for gain in [0.01, 0.7, 1.98, 2.02, 3.0] {
            for state in [State::Empty, State::Falling] {
                prop_assert_eq!(one(gain, d, d / parts).is_stable(state, RIGHT), gain < 2.0);
            }
            let mixed = CalendarLoop {
                flows: vec![(share, d), (1.0 - share, other * d)],
                ..one(gain, d, d / parts)
            };
            prop_assert_eq!(mixed.is_stable(State::Empty, RIGHT), gain < 2.0);
        }
        let (phase, more, stable) = one(0.7, d, d / parts).margins().unwrap();
        prop_assert!(stable && (more - 2.0 / 0.7).abs() < 0.01, "{}", more);
        prop_assert!(phase > 25.0 && phase < 90.0 - 0.35f64.asin().to_degrees() + 0.1, "{}", phase);
    }

    /// |1 − κ| + κ |1 − ρ| < 1: small gain. With κ up to 1 senders may do anything between nothing
    /// and twice what they were granted, at any round trip, as long as nothing waits.
    #[test]
    fn without_a_queue_any_obedience_below_two_is_stable(
        d in 0.001f64..1.0,
        parts in 2.0f64..40.0,
        gain in 0.01f64..1.0,
        obeyed in 0.01f64..1.99,
    ) {
        let wrong = Wrong { late: 0.0, obeyed };
        prop_assert!(one(gain, d, d / parts).is_stable(State::Empty, wrong));
    }
}

/// |κ/(z − 1)| = 1 at 2 sin(φ/2) = κ, where the phase is −90° − φ/2: what is left where parts are
/// short and the queue's term, T/d of it in each, is small.
#[test]
fn short_parts_have_the_integrators_phase_margin() {
    for gain in [0.3f64, 0.7, 1.2] {
        let (phase, ..) = one(gain, 0.08, 0.08 / 150.0).margins().unwrap();
        let expected = 90.0 - (gain / 2.0).asin().to_degrees();
        assert!((phase - expected).abs() < 3.0, "{gain}: {phase}, not {expected}");
    }
}

/// Without a calendar it is an integrator behind d, a part's hold and the mean of two: π/2 over
/// their sum in parts.
#[test]
fn without_the_calendar_the_gain_is_that_of_a_dead_time() {
    for parts in [5.0, 10.0, 40.0] {
        let m = one(0.7, 0.08, 0.08 / parts).calendar_margins().unwrap();
        let expected = std::f64::consts::FRAC_PI_2 / (parts + 1.5);
        assert!((m.gain_without / expected - 1.0).abs() < 0.02, "{parts}: {m:?}");
    }
}

/// What the law's constants come to at a hundred packets in a part and more; margins are in
/// proportion to the part, and wider with less gain, to which the law goes where gaps are small.
#[test]
fn the_laws_own_margins() {
    assert_eq!(part(0.08, 12.5e6, 0.0), 0.008);
    assert!((part(0.02, 12.5e6, 0.0) - 0.0048).abs() < 1e-12, "forty packets");
    assert!((part(0.02, 1.25e6, 0.0) - 0.01).abs() < 1e-12, "half of d");
    assert!((part(0.08, 12.5e6, 0.04) - 0.04).abs() < 1e-12, "the time between packets");
    assert!((part(0.08, 12.5e6, 0.1) - 0.08).abs() < 1e-12, "d");
    for d in [0.01, 0.08, 0.6] {
        let of = one(0.7, d, d / 10.0);
        let m = of.calendar_margins().unwrap();
        assert!(
            (m.late_parts - 0.753).abs() < 0.01 && (m.early_parts - 0.744).abs() < 0.01,
            "{m:?}"
        );
        assert!((m.obeyed_least - 0.565).abs() < 0.01 && (m.obeyed_most - 1.45).abs() < 0.01);
        assert!((m.late / d - m.late_parts / 10.0).abs() < 1e-9);
        for times in [0.6, 0.3, 0.1, 0.03, 0.01] {
            let less = one(0.7 * times, d, d / 10.0).calendar_margins().unwrap();
            assert!(less.late > m.late && less.early > m.early, "{times}: {less:?}");
            assert!(less.obeyed_least < m.obeyed_least, "{times}: {less:?}");
            assert!(less.obeyed_most > 0.99 * m.obeyed_most, "{times}: {less:?}");
        }
    }
    // Parts of half a round trip: two of them are all of it, and with little gain a queue that
    // rises is seen too late to be damped.
    let slow = one(0.05, 0.02, 0.01);
    assert!(!slow.is_stable(State::Rising, Wrong { late: 0.001, obeyed: 1.0 }));
    assert!(slow.is_stable(State::Falling, Wrong { late: 0.001, obeyed: 1.0 }));
}

/// From a scenario: ten flows of 80 ms at 100 Mbit/s; max-min shares, a queue of two packets.
#[test]
fn a_scenario_has_them() {
    let scenario = scenario(
        r#"
duration = "5s"
[[link]]
name    = "bottleneck"
between = ["S", "D"]
rate    = "100mbit"
delay   = "39.94ms"
queue   = { kind = "xcp", law = "robust", limit = "2bdp" }
[[flow]]
count      = 10
from       = "S"
to         = "D"
congestion = "xcp-robust"
"#,
    );
    let network = Network::before(&scenario, scenario.duration);
    let rest = equilibrium(&network).unwrap();
    assert!(rest.rates.iter().all(|rate| (rate - 1e7).abs() < 1.0));
    assert_eq!(rest.queues, [Some(3000.0)]);
    let m = margins(&network, &rest, 0).unwrap();
    assert!((m.interval - 0.08).abs() < 1e-6 && m.stable);
    assert!((m.gain - 2.0 / 0.7).abs() < 1e-3 && (m.fairness - 0.1).abs() < 1e-6);
    assert!((m.phase_degrees - 61.7).abs() < 0.1, "{}", m.phase_degrees);
    assert!((m.calendar.unwrap().late - 0.006026).abs() < 1e-5);
}

/// On this side of each margin all deviations die away, in whatever state; on the other side some
/// do not.
#[test]
fn margins_are_where_it_becomes_unstable() {
    for (parts, gain) in [(2.0, 0.7), (4.0, 0.4), (4.0, 1.2), (10.0, 0.7)] {
        let of = |times: f64| one(times * gain, 0.08, 0.08 / parts);
        let all = |times: f64, late: f64, obeyed: f64| {
            State::ALL.into_iter().all(|state| dies_away(&of(times), state, Wrong { late, obeyed }))
        };
        let (_, more, _) = of(1.0).margins().unwrap();
        let m = of(1.0).calendar_margins().unwrap();
        let name = format!("{parts} parts, gain {gain}: {more}, {m:?}");
        assert!(all(0.95 * more, 0.0, 1.0) && !all(1.05 * more, 0.0, 1.0), "{name}");
        assert!(all(1.0, 0.85 * m.late, 1.0) && !all(1.0, 1.15 * m.late, 1.0), "{name}");
        assert!(all(1.0, -0.85 * m.early, 1.0) && !all(1.0, -1.15 * m.early, 1.0), "{name}");
        assert!(all(1.0, 0.0, 0.95 * m.obeyed_most), "{name}");
        assert!(!all(1.0, 0.0, 1.05 * m.obeyed_most), "{name}");
        assert!(all(1.0, 0.0, 1.1 * m.obeyed_least), "{name}");
        assert!(m.obeyed_least < 0.01 || !all(1.0, 0.0, 0.6 * m.obeyed_least), "{name}");
    }
}
