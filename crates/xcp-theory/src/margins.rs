//! How far a link's loops are from instability around the equilibrium: gain and phase margin of the
//! efficiency loop, and the fairness loop's bound.
//!
//! Efficiency loop, rates x = w/T, K of the N flows at the link limited there (the others do not
//! heed it):
//!
//! ```text
//! L(jω) = α/(jωd) · (1 + β/(α d jω)) · (1/N) Σ g_i e^(−jωT_i)        over the K flows, g_i the law's gain for round trip T_i
//! ```
//!
//! Fairness loop of one flow: dx/dt = (γ g_i/d)(y/N − x(t − T_i)), stable while γ g_i T_i/d < π/2.
//!
//! Where the link is not full at rest no queue is near, and the loop is without β.
//!
//! For one round trip d and β = α²√2 the first is Katabi, Handley and Rohrs' bound 0 < α < π/(4√2),
//! and L crosses 1 at ω = α√2/d.
//!
//! A router with a calendar has another loop, that of [`mod@crate::calendar`]; the fairness loop is the
//! same, since the calendar holds sums, not whose they are.
//!
//! What this leaves out: sampling once an interval (delay it adds: about d/2), the change of T with
//! the queue, everything that is not small; ACK-clocked senders, whose rate is not w/T. A link may
//! be stable here and not in packets: "An Example of Instability in XCP" is about one. See `fluid`.

use std::f64::consts::PI;

use serde::Serialize;

use crate::calendar::{CalendarLoop, CalendarMargins, part};
use crate::equilibrium::{Equilibrium, interval};
use crate::max_min::Bound;
use crate::network::Network;

/// Stability margins of a link's two loops.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Margins {
    /// The control interval, seconds.
    pub interval: f64,
    /// Least angle from −180° where |L| = 1, degrees; negative beyond it.
    pub phase_degrees: f64,
    /// Factor by which the gain may grow before the loop is unstable; below 1 if it is.
    pub gain: f64,
    /// Whether the efficiency loop is stable (Nyquist).
    pub efficiency_stable: bool,
    /// Greatest γ g T/d of the flows; below π/2 is stable.
    pub fairness: f64,
    /// Whether both loops are stable.
    pub stable: bool,
    /// How wrong a calendar may be, where the router has one and the loop is stable with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calendar: Option<CalendarMargins>,
}

/// A loop: its constants, and the flows in it as (weight, round trip), the weights shares of all
/// flows at the link.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    /// Gain on spare bandwidth.
    pub alpha: f64,
    /// Gain on the queue.
    pub beta: f64,
    /// The control interval, seconds.
    pub interval: f64,
    /// (Share times gain, RTT in seconds).
    pub flows: Vec<(f64, f64)>,
}

/// The greatest α for which one round trip is stable with β = α²√2.
pub const ALPHA_LIMIT: f64 = PI / (4.0 * std::f64::consts::SQRT_2);

/// Steps of frequency: a factor of 1.0005 each.
const STEP: f64 = 1.0005;

impl Loop {
    /// L(jω) as (real, imaginary).
    fn at(&self, w: f64) -> (f64, f64) {
        let (mut re, mut im) = (0.0, 0.0);
        for (weight, rtt) in &self.flows {
            re += weight * libm::cos(w * rtt);
            im -= weight * libm::sin(w * rtt);
        }
        // α/(jωd) · (1 − jβ/(αdω)) = −β/(ωd)² − jα/(ωd)
        let wd = w * self.interval;
        let (a, b) = (-self.beta / (wd * wd), -self.alpha / wd);
        (a * re - b * im, a * im + b * re)
    }

    /// Phase margin (degrees), gain margin and Nyquist's verdict. `None` without flows or gain.
    ///
    /// L has two poles at 0 (without β one) and none to the right, so that the closed loop is
    /// stable exactly when 1 + L turns by +π (+π/2) from ω = 0 to ω = ∞, where it is 1; each pair
    /// of unstable poles takes 2π of it.
    #[must_use]
    pub fn margins(&self) -> Option<(f64, f64, bool)> {
        let weight: f64 = self.flows.iter().map(|(w, _)| w).sum();
        if weight <= 0.0 || self.alpha <= 0.0 {
            return None;
        }
        // From where |L| > 10³ on the poles to where it is surely below 1/20.
        let mut w = (0.03 * (self.beta * weight).sqrt()).min(1e-3 * self.alpha * weight).max(1e-6)
            / self.interval;
        let end = 100.0 * (self.alpha + self.beta.sqrt()) * weight.max(1.0) / self.interval;
        let (mut phase, mut turned) = (f64::INFINITY, 0.0);
        let (mut more, mut less): (f64, f64) = (f64::INFINITY, 0.0);
        let mut last = self.at(w);
        while w < end {
            w *= STEP;
            let now = self.at(w);
            let (before, after) = (libm::hypot(last.0, last.1), libm::hypot(now.0, now.1));
            if (before - 1.0) * (after - 1.0) <= 0.0 {
                phase = phase.min(from_180(now));
            }
            // Crossings of the negative real axis.
            if last.1 * now.1 <= 0.0 && now.0 < 0.0 {
                let margin = 1.0 / after;
                if margin >= 1.0 { more = more.min(margin) } else { less = less.max(margin) }
            }
            turned += turn((1.0 + last.0, last.1), (1.0 + now.0, now.1));
            last = now;
        }
        let stable = turned > 0.0;
        Some((phase.to_degrees(), if stable { more } else { less }, stable))
    }
}

/// Angle above −π, in (−π, π].
fn from_180((re, im): (f64, f64)) -> f64 {
    let angle = libm::atan2(im, re) + PI;
    if angle > PI { angle - 2.0 * PI } else { angle }
}

/// Angle from one point to the next around 0.
fn turn(a: (f64, f64), b: (f64, f64)) -> f64 {
    libm::atan2(a.0 * b.1 - a.1 * b.0, a.0 * b.0 + a.1 * b.1)
}

/// The loops of a link in equilibrium; `None` where no router stops any flow, or has no loop.
#[must_use]
pub fn margins(network: &Network, rest: &Equilibrium, link: usize) -> Option<Margins> {
    let router = network.links[link].router?;
    // A rate keeps to the empty path's round trip, whatever waits.
    let wait = if router.calendar {
        0.0
    } else {
        rest.queues[link].filter(|q| q.is_finite()).unwrap_or(0.0) * 8.0
            / network.links[link].drain()
    };
    let d = interval(network, link, wait)?;
    let crossing = || {
        network
            .classes
            .iter()
            .zip(&rest.bounds)
            .filter(|(c, _)| c.explicit && c.route.contains(&link))
    };
    let all: f64 = crossing().map(|(c, _)| c.count as f64).sum();
    let limited = || {
        crossing()
            .filter(|(_, b)| **b == Bound::Link(link))
            .map(|(c, _)| (c.count as f64 / all, c.rtt + wait))
    };
    let fairness = limited()
        .map(|(_, rtt)| router.gamma * router.gain.factor(d, rtt) * rtt / d)
        .fold(0.0, f64::max);
    if router.calendar {
        return with_calendar(network, rest, link, d, fairness, limited().collect());
    }
    let flows: Vec<(f64, f64)> =
        limited().map(|(share, rtt)| (share * router.gain.factor(d, rtt), rtt)).collect();
    let (phase_degrees, gain, efficiency_stable) =
        Loop { alpha: router.alpha, beta: router.beta, interval: d, flows }.margins()?;
    let stable = efficiency_stable && fairness < PI / 2.0;
    let calendar = None;
    Some(Margins {
        interval: d,
        phase_degrees,
        gain,
        efficiency_stable,
        fairness,
        stable,
        calendar,
    })
}

/// `limited`: (share of all flows at the link, round trip) of those that it limits, who take all
/// that is granted.
fn with_calendar(
    network: &Network,
    rest: &Equilibrium,
    link: usize,
    d: f64,
    fairness: f64,
    limited: Vec<(f64, f64)>,
) -> Option<Margins> {
    let router = network.links[link].router?;
    let crossing =
        || network.classes.iter().zip(&rest.rates).filter(|(c, _)| c.route.contains(&link));
    let flows: f64 = crossing().map(|(c, _)| c.count as f64).sum();
    let packets: f64 = crossing().map(|(c, rate)| c.count as f64 * rate / 8.0 / c.packet).sum();
    let all: f64 = limited.iter().map(|(share, _)| share).sum();
    let looped = CalendarLoop {
        gain: router.alpha,
        interval: d,
        part: part(d, router.capacity / 8.0, flows / packets.max(f64::MIN_POSITIVE)),
        flows: limited.into_iter().map(|(share, rtt)| (share / all, rtt)).collect(),
    };
    let (phase_degrees, gain, efficiency_stable) = looped.margins()?;
    let stable = efficiency_stable && fairness < PI / 2.0;
    let calendar = looped.calendar_margins();
    Some(Margins {
        interval: d,
        phase_degrees,
        gain,
        efficiency_stable,
        fairness,
        stable,
        calendar,
    })
}
