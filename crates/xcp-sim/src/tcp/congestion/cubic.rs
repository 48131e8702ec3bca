//! CUBIC (RFC 9438): the window is a cubic function of the time since the last reduction.
//!
//! Where it differs:
//! 1. Floating point. Additions, multiplications, divisions and square roots are exactly defined by
//!    IEEE 754, and the cube root is found by Newton's method from those, so results are the same
//!    on every machine; `f64::cbrt` would be the platform's.
//! 2. No HyStart++ (RFC 9406): slow start runs until the first loss.
//! 3. Slow start counts segments acknowledged without limit, as `reno.rs`.
//! 4. No spurious-event undo (§4.9).
//! 5. While something other than the window limits the sender, the epoch's clock stands still (§5.8
//!    leaves the manner open).

use super::{Acked, Control, MAX_WINDOW};
use crate::tcp::SenderConfig;
use xcp_model::units::{NANOS_PER_SEC, Nanos};

/// RFC 9438 §5, in packets and seconds.
const C: f64 = 0.4;
/// RFC 9438 §4.6.
const BETA: f64 = 0.7;
/// Additive increase that makes AIMD with `BETA` as fast as Reno (RFC 9438 §4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Window in packets.
#[derive(Debug, Clone)]
pub(in crate::tcp) struct Cubic {
    cwnd: f64,
    ssthresh: f64,
    /// Plateau of the cubic.
    w_max: f64,
    /// Window before the last reduction.
    prior: f64,
    /// The Reno-friendly estimate of this epoch.
    w_est: f64,
    /// Seconds from the epoch's start to the plateau.
    k: f64,
    /// When this epoch began; `None` before congestion avoidance.
    epoch: Option<Nanos>,
    /// When the last ACK came.
    last: Nanos,
    /// The next epoch follows a timeout or the first slow start: K = 0 (§4.8).
    from_slow_start: bool,
}

impl Control for Cubic {
    fn new(config: &SenderConfig) -> Self {
        Self::with_window(config.initial_window)
    }

    #[inline]
    fn cwnd(&self) -> u32 {
        self.cwnd as u32
    }

    fn window(&self) -> f64 {
        self.cwnd
    }

    fn acked(&mut self, ack: &Acked) {
        if ack.segments > 0 && !ack.recovering {
            self.grow(ack.now, ack.srtt, ack.segments, ack.limited);
        }
    }

    fn lost(&mut self, flight: u32) {
        self.reduce(flight);
        self.cwnd = self.ssthresh;
        self.from_slow_start = false;
    }

    fn limit(&mut self, most: u32) {
        self.cwnd = self.cwnd.min(f64::from(most));
    }

    fn timed_out(&mut self, flight: u32, again: bool) {
        if !again {
            self.reduce(flight);
        }
        self.epoch = None;
        self.cwnd = 1.0;
        self.from_slow_start = true;
    }
}

impl Cubic {
    fn with_window(initial: u32) -> Self {
        let cwnd = f64::from(initial.min(MAX_WINDOW));
        let unbounded = f64::from(u32::MAX);
        Cubic {
            cwnd,
            ssthresh: unbounded,
            w_max: 0.0,
            prior: 0.0,
            w_est: cwnd,
            k: 0.0,
            epoch: None,
            last: 0,
            from_slow_start: true,
        }
    }

    fn grow(&mut self, now: Nanos, srtt: Nanos, segments: u32, limited: bool) {
        let since = now - self.last;
        self.last = now;
        if !limited {
            if let Some(epoch) = &mut self.epoch {
                *epoch += since;
            }
            return;
        }
        let mut segments = f64::from(segments);
        if self.cwnd < self.ssthresh {
            let step = segments.min(self.ssthresh - self.cwnd);
            self.cwnd += step;
            segments -= step;
        }
        if segments > 0.0 {
            self.avoid(now, srtt, segments);
        }
        self.cwnd = self.cwnd.min(f64::from(MAX_WINDOW));
    }

    /// Congestion avoidance (RFC 9438 §4.2 to §4.5).
    fn avoid(&mut self, now: Nanos, srtt: Nanos, segments: f64) {
        let epoch = *self.epoch.get_or_insert_with(|| {
            if self.from_slow_start || self.w_max < self.cwnd {
                self.w_max = self.cwnd;
                self.k = 0.0;
            } else {
                self.k = cube_root((self.w_max - self.cwnd) / C);
            }
            self.w_est = self.cwnd;
            now
        });
        let t = seconds(now - epoch);
        let alpha = if self.w_est >= self.prior { 1.0 } else { ALPHA };
        self.w_est += alpha * segments / self.cwnd;
        if self.cubic(t) < self.w_est {
            // Reno-friendly region, §4.3.
            self.cwnd = self.cwnd.max(self.w_est);
        } else {
            // Concave and convex regions, §4.4 and §4.5: towards where the curve will be a round
            // trip from now, by at most half per round trip.
            let target = self.cubic(t + seconds(srtt)).clamp(self.cwnd, 1.5 * self.cwnd);
            self.cwnd += (target - self.cwnd) / self.cwnd * segments;
        }
    }

    /// W_cubic(t), RFC 9438 (1).
    fn cubic(&self, t: f64) -> f64 {
        let x = t - self.k;
        C * x * x * x + self.w_max
    }

    fn reduce(&mut self, flight: u32) {
        self.prior = self.cwnd;
        // Fast convergence, §4.7: who is below its last plateau makes room for newcomers.
        self.w_max =
            if self.cwnd < self.w_max { self.cwnd * (1.0 + BETA) / 2.0 } else { self.cwnd };
        self.ssthresh = (f64::from(flight) * BETA).max(2.0);
        self.epoch = None;
    }
}

fn seconds(t: Nanos) -> f64 {
    t as f64 / NANOS_PER_SEC as f64
}

/// Cube root of `x >= 0`, to the last few bits, from IEEE operations alone.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    // A third of the exponent is a guess within a few per cent; each step of Newton's method
    // doubles the digits.
    let mut root = f64::from_bits(x.to_bits() / 3 + (1023_u64 << 52) / 3 * 2);
    for _ in 0..6 {
        root -= (root * root * root - x) / (3.0 * root * root);
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// A window's worth of ACKs spread over each round trip; returns the window after each.
    fn run(cubic: &mut Cubic, start: Nanos, rtt: Nanos, rounds: u32) -> Vec<f64> {
        let mut now = start;
        (0..rounds)
            .map(|_| {
                let n = cubic.cwnd();
                for i in 0..n {
                    cubic.grow(now + rtt * Nanos::from(i) / Nanos::from(n), rtt, 1, true);
                }
                now += rtt;
                cubic.window()
            })
            .collect()
    }

    #[test]
    fn cube_roots() {
        for x in [1e-9, 1e-3, 0.5, 1.0, 2.0, 27.0, 1e6, 1e12] {
            let root = cube_root(x);
            assert!((root * root * root / x - 1.0).abs() < 1e-14, "{x}: {root}");
        }
    }

    /// After a loss at 1000 packets the window is 1000 + .4 (t - K)^3, K = cbrt(300/.4) = 9.09 s:
    /// 700, 1000 at K, 1300 at 2 K.
    #[test]
    fn follows_the_cubic_of_rfc_9438() {
        let mut cubic = Cubic::with_window(1000);
        cubic.lost(1000);
        assert_eq!((cubic.window(), cubic.w_max), (700.0, 1000.0));
        let k = (300.0_f64 / C).powf(1.0 / 3.0);
        for (round, window) in run(&mut cubic, 5_000 * MS, 100 * MS, 200).into_iter().enumerate() {
            let t = (round + 1) as f64 / 10.0;
            let curve = C * (t - k).powi(3) + 1000.0;
            assert!((window / curve - 1.0).abs() < 0.005, "at {t} s: {window}, formula {curve}");
        }
    }

    /// Where the cubic is slower than Reno (small windows, short round trips), growth is Reno's:
    /// ALPHA per round trip up to the old window, then 1.
    #[test]
    fn is_as_fast_as_reno_where_the_curve_is_not() {
        let mut cubic = Cubic::with_window(20);
        cubic.lost(20);
        let windows = run(&mut cubic, 0, 10 * MS, 30);
        let slope = windows[7] - windows[2];
        assert!((slope / (5.0 * ALPHA) - 1.0).abs() < 0.1, "{windows:?}");
        let slope = windows[28] - windows[18];
        assert!((slope / 10.0 - 1.0).abs() < 0.1, "{windows:?}");
    }

    #[test]
    fn fast_convergence_lowers_the_plateau() {
        let mut cubic = Cubic::with_window(100);
        cubic.lost(100);
        cubic.lost(70);
        assert!((cubic.w_max - 70.0 * 0.85).abs() < 1e-9);
    }

    #[test]
    fn the_clock_stands_while_the_sender_is_limited_elsewhere() {
        let mut cubic = Cubic::with_window(1000);
        cubic.lost(1000);
        run(&mut cubic, 0, 100 * MS, 20);
        let before = cubic.window();
        for i in 0..600 {
            cubic.grow(2_000 * MS + i * 100 * MS, 100 * MS, 1, false);
        }
        assert!(cubic.window() == before);
        let after = *run(&mut cubic, 62_000 * MS, 100 * MS, 1).last().unwrap();
        assert!(after < before * 1.1, "a minute's pause must not count: {before} -> {after}");
    }
}
