//! How far the loop of a router with a calendar (`law = "robust"`) is from instability: not only by
//! gain and phase, but by how wrong its calendar may be, and by how little or how much senders may
//! do of what they were granted.
//!
//! The router closes parts of length T. At the end t of one it grants F = κ(C − y − O − Q'/d),
//! which packets take evenly over the next one, so that what has been granted, G, is linear between
//! closings, G(t + T) = G(t) + F. Deviations from rest, one flow of round trip d, S the integral of
//! G, A(s) = (S(s) − S(s − 2T))/2T its mean over two parts:
//!
//! ```text
//! traffic        y  = ρ A(t − d − δ)            late by δ, a share ρ of what was granted
//! what is owed   O  = G(t) − A(t − d)           by the calendar, which is right if ρ = 1, δ = 0
//!            y + O  = G(t) + E                  E = ρ A(t − d − δ) − A(t − d), 0 if it is right
//! queue          Q  = ρ S(t − l − d − δ)        the least of two parts: l is between 0 and 2T
//! then, at t + d Q' = Q + d E + S(t) − S(t − d)
//!
//!  (1 − w)² + κ w (1 − w) [1 + 2E + (S(t) − S(t − d) + ρ S(t − l − d − δ))/d] = 0     w = 1/z
//!  (1 − w)  + κ w [1 + E] = 0                                                        no queue
//! ```
//!
//! where G is 1, and what is late by a whole part is multiplied by w. All roots z must be inside
//! the unit circle. With a right calendar and l = 0 this is z² − (2 − κ − κr/2)z + 1 − κ + κr/2,
//! r = T/d, and stable exactly for 0 < κ < 2, as it is without a queue: a Smith predictor. Where
//! flows have several round trips, all terms in d are means over flows, but for the d of 1/d, of T
//! and of how far the calendar is followed.
//!
//! A margin is the worst of three states: no queue, a queue whose newest value is the least of its
//! last two parts (it falls), and one whose oldest is (it rises).
//!
//! What this leaves out: that F takes no more than there is, and gives nothing while a long queue
//! grows; that the least of two parts goes from one of its ends to the other; that F is weighed
//! down where the gap is small, which makes the loop slower (with less gain the margins are wider,
//! except that a queue that rises is not damped where two parts and δ are all of d); silence;
//! packets.

use std::f64::consts::PI;

use serde::Serialize;

/// Bytes of a packet by which the law measures parts and its queue target.
pub(crate) const PACKET: f64 = 1500.0;
/// Q_T, beside what the scenario asks for; without TCP no longer than so many seconds.
const TARGET_PACKETS: f64 = 2.0;
const TARGET_S: f64 = 5e-3;
/// Parts of d.
const PARTS: f64 = 10.0;
/// Least packets in a part.
const PACKETS: f64 = 40.0;
/// Shortest part, seconds.
const SHORTEST: f64 = 5e-4;
/// Parts in which traffic is measured.
pub(crate) const MEASURED: f64 = 2.0;
/// Most of a round trip in parts that is looked at; beyond it there are no margins.
const LONGEST: f64 = 200.0;
/// Q_T of a router of so many bit/s without TCP, bytes, beside what the scenario asks for.
pub(crate) fn target(capacity: f64) -> f64 {
    (TARGET_PACKETS * PACKET).min(capacity / 8.0 * TARGET_S)
}

/// Latest calendar that is tried, in d.
pub const LATE_MOST: f64 = 2.0;
/// Least share that is carried out that is tried.
pub const OBEYED_LEAST: f64 = 1e-3;
/// Greatest share that is carried out that is tried.
pub const OBEYED_MOST: f64 = 10.0;

/// The length of a part, seconds: of round trip d, capacity (bytes/s), and the mean over packets of
/// the time between two of a flow.
#[must_use]
pub fn part(d: f64, capacity: f64, gap: f64) -> f64 {
    let measures = (PACKETS * PACKET / capacity).max(SHORTEST).min(d / 2.0);
    (d / PARTS).max(measures).max(gap.min(d))
}

/// A loop with a calendar.
#[derive(Debug, Clone, PartialEq)]
pub struct CalendarLoop {
    /// κ, the share of a gap that a part closes.
    pub gain: f64,
    /// d, seconds.
    pub interval: f64,
    /// T, seconds.
    pub part: f64,
    /// (Share of the flows, round trip in seconds), shares summing up to 1.
    pub flows: Vec<(f64, f64)>,
}

/// What is wrong with its model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wrong {
    /// δ, by how much what was granted is seen later than the calendar says, seconds.
    pub late: f64,
    /// ρ, the part of what was granted that is seen.
    pub obeyed: f64,
}

/// Nothing is.
pub const RIGHT: Wrong = Wrong { late: 0.0, obeyed: 1.0 };

/// The state that the loop is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing waits.
    Empty,
    /// A queue, whose least value of two parts is its newest.
    Falling,
    /// A queue, whose least value of two parts is its oldest.
    Rising,
}

impl State {
    /// All three.
    pub const ALL: [State; 3] = [State::Empty, State::Falling, State::Rising];
}

/// Margins of a loop with a calendar.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CalendarMargins {
    /// T, the part of the interval after which the router computes anew, seconds.
    pub part: f64,
    /// κ, the share of a gap that is closed in one.
    pub gain: f64,
    /// By how much later than the calendar says grants may be seen, seconds; 2 d at most are tried.
    pub late: f64,
    /// The same in parts.
    pub late_parts: f64,
    /// By how much earlier they may be seen, seconds; at most the whole round trip.
    pub early: f64,
    /// The same in parts.
    pub early_parts: f64,
    /// The least share of what is granted that senders may carry out.
    pub obeyed_least: f64,
    /// The greatest: above 1 they do more than they were granted; at most 10 is tried.
    pub obeyed_most: f64,
    /// The greatest share of a gap that a part might close without a calendar.
    pub gain_without: f64,
}

/// Coefficients of powers of w.
struct Polynomial(Vec<f64>);

impl Polynomial {
    fn add(&mut self, power: usize, value: f64) {
        if self.0.len() <= power {
            self.0.resize(power + 1, 0.0);
        }
        self.0[power] += value;
    }

    /// (1 − w) S(t − parts T) / T, G being linear in between.
    fn add_integral(&mut self, scale: f64, parts: f64) {
        let n = parts.max(0.0).floor();
        let f = parts.max(0.0) - n;
        let n = n as usize;
        // S(t − nT) − T (f G(n) − f²/2 (G(n) − G(n + 1)))
        let (here, before) = (f - f * f / 2.0, f * f / 2.0);
        self.add(n, scale * (0.5 - here));
        self.add(n + 1, scale * (0.5 + here - before));
        self.add(n + 2, scale * before);
    }

    /// (1 − w) A(t − parts T).
    fn add_mean(&mut self, scale: f64, parts: f64) {
        self.add_integral(scale / MEASURED, parts);
        self.add_integral(-scale / MEASURED, parts.max(0.0) + MEASURED);
    }

    /// Divided by 1 − w, of which it is a multiple.
    fn without_root_at_1(mut self) -> Self {
        for i in 1..self.0.len() {
            self.0[i] += self.0[i - 1];
        }
        self.0.pop();
        self
    }

    /// At w = e^(−jφ).
    fn at(&self, phi: f64) -> (f64, f64) {
        let (c, s) = (libm::cos(phi), -libm::sin(phi));
        self.0.iter().rev().fold((0.0, 0.0), |(re, im), a| (re * c - im * s + a, re * s + im * c))
    }

    /// Whether all roots z = 1/w are inside the unit circle (Schur and Cohn). The constant term is
    /// 1.
    fn into_verdict(mut self) -> bool {
        while let Some(k) = self.0.pop() {
            let n = self.0.len();
            if n == 0 {
                return true;
            }
            if k.abs() >= 1.0 {
                return false;
            }
            if k != 0.0 {
                let a = self.0.clone();
                for i in 1..n {
                    self.0[i] = (a[i] - k * a[n - i]) / (1.0 - k * k);
                }
            }
        }
        true
    }
}

impl CalendarLoop {
    /// (1 − w) times what is compared with what is to be had: 1 + 2E + Q/d and so on.
    fn seen(&self, state: State, wrong: Wrong) -> Polynomial {
        let (t, d) = (self.part, self.interval);
        let mut p = Polynomial(vec![1.0, -1.0]);
        let twice = if state == State::Empty { 1.0 } else { 2.0 };
        let age = if state == State::Rising { MEASURED } else { 0.0 };
        for &(share, rtt) in &self.flows {
            let really = (rtt + wrong.late) / t;
            p.add_mean(twice * share * wrong.obeyed, really);
            p.add_mean(-twice * share, rtt / t);
            if state != State::Empty {
                let scale = share * t / d;
                p.add_integral(scale, (rtt - d).max(0.0) / t);
                p.add_integral(-scale, rtt / t);
                p.add_integral(scale * wrong.obeyed, really.max(0.0) + age);
                // Those that are shorter have taken effect before d is over.
                let (over, g) = (share * (d - rtt).max(0.0) / d, [1.0, -1.0]);
                g.iter().enumerate().for_each(|(i, g)| p.add(i, over * g));
            }
        }
        p
    }

    /// The same where nothing is remembered: O = 0.
    fn seen_without(&self) -> Polynomial {
        let mut p = Polynomial(Vec::new());
        self.flows.iter().for_each(|&(share, rtt)| p.add_mean(share, rtt / self.part));
        p
    }

    /// Whether the roots of (1 − w)² + κ w seen are inside the unit circle.
    fn closes(seen: &Polynomial, gain: f64, has_integral: bool) -> bool {
        let mut c = Polynomial(vec![1.0, -2.0, 1.0]);
        seen.0.iter().enumerate().for_each(|(i, s)| c.add(i + 1, gain * s));
        if has_integral { c.into_verdict() } else { c.without_root_at_1().into_verdict() }
    }

    /// Whether small deviations die away.
    #[must_use]
    pub fn is_stable(&self, state: State, wrong: Wrong) -> bool {
        Self::closes(&self.seen(state, wrong), self.gain, state != State::Empty)
    }

    /// In all states, with so many times the gain.
    fn stable(&self, times: f64, wrong: Wrong) -> bool {
        State::ALL.into_iter().all(|state| {
            Self::closes(&self.seen(state, wrong), times * self.gain, state != State::Empty)
        })
    }

    /// Phase margin (degrees), gain margin (a factor), and whether it is stable. `None` where it
    /// has no gain, or round trips of too many parts.
    #[must_use]
    pub fn margins(&self) -> Option<(f64, f64, bool)> {
        let longest = self.flows.iter().map(|(_, rtt)| rtt / self.part).fold(0.0, f64::max);
        if self.gain <= 0.0 || self.flows.is_empty() || longest > LONGEST {
            return None;
        }
        let stable = self.stable(1.0, RIGHT);
        let gain = if stable {
            last(1.0, 100.0, 1.05, |times| self.stable(times, RIGHT))
        } else {
            1.0 / last(1.0, 1e4, 1.05, |times| !self.stable(1.0 / times, RIGHT))
        };
        let phase = State::ALL.into_iter().map(|s| self.phase(s)).fold(f64::INFINITY, f64::min);
        Some((phase.to_degrees(), gain, stable))
    }

    /// Least angle of κ w seen / (1 − w)² from −180° where it is 1, radians.
    fn phase(&self, state: State) -> f64 {
        let seen = self.seen(state, RIGHT);
        // w / (1 − w)² = −1 / (2 sin φ/2)²
        let at = |phi: f64| {
            let ((re, im), size) = (seen.at(phi), 2.0 * libm::sin(phi / 2.0));
            (self.gain * libm::hypot(re, im) / (size * size), libm::atan2(-im, -re))
        };
        let (mut margin, mut before) = (f64::INFINITY, f64::INFINITY);
        let mut phi: f64 = 1e-6;
        while phi < PI {
            let (size, angle) = at(phi);
            if (size - 1.0) * (before - 1.0) <= 0.0 && before.is_finite() {
                let over = angle + PI;
                margin = margin.min(if over > PI { over - 2.0 * PI } else { over });
            }
            before = size;
            phi = (phi * 1.0005).min(phi + 0.002);
        }
        margin
    }

    /// By how much the calendar and the senders may be off; `None` as for [`CalendarLoop::margins`]
    /// and where nothing is off and it is unstable all the same.
    #[must_use]
    pub fn calendar_margins(&self) -> Option<CalendarMargins> {
        self.margins().filter(|(.., stable)| *stable)?;
        let off = |late: f64| self.stable(1.0, Wrong { late, obeyed: 1.0 });
        let step = self.part / 8.0;
        let late = reach(LATE_MOST * self.interval, step, off);
        let longest = self.flows.iter().map(|(_, rtt)| *rtt).fold(0.0, f64::max);
        let early = reach(longest, step, |early| off(-early));
        let obeyed = |obeyed: f64| self.stable(1.0, Wrong { late: 0.0, obeyed });
        let without = self.seen_without();
        let gain_without = last(1e-4, 10.0, 1.05, |gain| Self::closes(&without, gain, false));
        Some(CalendarMargins {
            part: self.part,
            gain: self.gain,
            late,
            late_parts: late / self.part,
            early,
            early_parts: early / self.part,
            obeyed_least: 1.0 / last(1.0, 1.0 / OBEYED_LEAST, 1.05, |less| obeyed(1.0 / less)),
            obeyed_most: last(1.0, OBEYED_MOST, 1.02, obeyed),
            gain_without,
        })
    }
}

/// The last value, in steps by a factor and then between two of them, up to which something holds.
fn last(from: f64, to: f64, factor: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let mut low = from;
    while low < to {
        let next = (low * factor).min(to);
        if !holds(next) {
            return between(low, next, holds);
        }
        low = next;
    }
    to
}

/// The same in equal steps from 0.
fn reach(to: f64, step: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let mut low = 0.0;
    while low < to {
        let next = f64::min(low + step, to);
        if !holds(next) {
            return between(low, next, holds);
        }
        low = next;
    }
    to
}

fn between(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if holds(middle) { low = middle } else { high = middle }
    }
    low
}
