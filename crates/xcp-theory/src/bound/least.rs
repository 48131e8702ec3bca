//! The least mean queue that any causal controller can have at a utilisation, where what is left to
//! the flows jumps at times that nobody knows before. `docs/theory.md` has the proof; in short:
//!
//! 1. What arrives until t + d has been decided at t. Let X(h) be the queue at t and what arrives
//!    until t + h, D(h) what the link can carry of it: then the queue at t + h is at least X(h) −
//!    D(h), and what the link loses until then at least D(h) − X(h).
//! 2. A jump strikes an X that knows nothing of it. Were there none, X would be the same; so X
//!    cannot suit both.
//! 3. The least of (queue + λ · loss) over all X is a number for each λ, and all controllers
//!    together lie above that line.
//!
//! Rates here are bytes/s of what is left to the flows, times seconds, and queues bytes.

/// Something that jumps.
#[derive(Debug, Clone, PartialEq)]
pub struct Jumps {
    /// The levels.
    pub levels: Vec<Level>,
    /// `to[i][j]`: how likely it is that a jump from level i leads to j.
    pub to: Vec<Vec<f64>>,
    /// What packets can use of the link on average, datagrams included, bytes/s.
    pub capacity: f64,
    /// Dead time, seconds.
    pub dead: f64,
}

/// A level of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// What is left to the flows, bytes/s.
    pub left: f64,
    /// What packets can use of the link, datagrams included, bytes/s.
    pub carried: f64,
    /// The share of all time in which it is here, and has been for a dead time at least.
    pub fresh: f64,
    /// Jumps per second of such time.
    pub hazard: f64,
    /// Jumps per second in the two dead times after a jump to this level.
    pub again: f64,
}

/// A line below which no controller gets: queue + λ · loss ≥ least.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    /// Seconds of queue that a byte of loss is worth.
    lambda: f64,
    least: f64,
}

/// All lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Least {
    lines: Vec<Line>,
    capacity: f64,
}

/// Worths of loss that are tried, from this many dead times.
const FIRST: f64 = 0.01;
/// To this many.
const LAST: f64 = 1000.0;
/// And how many there are.
const LINES: u32 = 60;

impl Least {
    /// Finds the lines.
    #[must_use]
    pub fn new(jumps: &Jumps) -> Self {
        let line = |i: u32| {
            let lambda =
                jumps.dead * FIRST * libm::pow(LAST / FIRST, f64::from(i) / f64::from(LINES));
            let least = (0..jumps.levels.len()).map(|i| jumps.least(i, lambda)).sum();
            Line { lambda, least }
        };
        Self { lines: (0..=LINES).map(line).collect(), capacity: jumps.capacity }
    }

    /// The least mean queue at this utilisation, bytes.
    #[must_use]
    pub fn queue_at(&self, utilisation: f64) -> f64 {
        let loss = (1.0 - utilisation) * self.capacity;
        self.lines.iter().map(|l| l.least - l.lambda * loss).fold(0.0, f64::max)
    }

    /// The highest utilisation with a mean queue of so many bytes.
    #[must_use]
    pub fn utilisation_at(&self, queue: f64) -> f64 {
        let loss = self.lines.iter().map(|l| (l.least - queue) / l.lambda).fold(0.0, f64::max);
        1.0 - loss / self.capacity
    }
}

impl Jumps {
    /// The least cost of a level over all X: a convex function of where X is after a dead time and
    /// of how far it ever lags behind what the link could carry if nothing jumped.
    fn least(&self, i: usize, lambda: f64) -> f64 {
        let level = self.levels[i];
        let full = level.left.max(0.0) * self.dead;
        let most = self.levels.iter().map(|l| l.left).fold(level.left, f64::max) * self.dead;
        let cost = |x: f64| {
            let lag = (full - x).max(0.0);
            minimum(lag, full.max(lag), |y| self.cost(i, x, y, lambda))
        };
        // More than the greatest level can carry never pays.
        level.fresh * minimum(0.0, most.max(0.0), cost)
    }

    fn cost(&self, i: usize, x: f64, lag: f64, lambda: f64) -> f64 {
        let (level, d) = (self.levels[i], self.dead);
        let quiet = (x - level.left * d).max(0.0) + lambda / d * lag;
        let jumps =
            self.to[i].iter().zip(&self.levels).filter(|(p, _)| **p > 0.0).map(|(p, to)| {
                let alone = libm::exp(-to.again * d);
                let before = ramp(level.left - to.left, lag, d, to.again);
                let after = drain((x - to.left * d).max(0.0), to.left, d, to.again);
                let lost = (to.left * d - x).max(0.0);
                p * (before + alone * (after + lambda * lost))
            });
        libm::exp(-level.hazard * d) * quiet + level.hazard * jumps.sum::<f64>()
    }
}

/// ∫ e^(−νh) (slope · h − lag)⁺ dh over a dead time: the queue that builds up after a fall.
fn ramp(slope: f64, lag: f64, d: f64, again: f64) -> f64 {
    if slope * d <= lag {
        return 0.0;
    }
    let first = lag / slope;
    libm::exp(-again * first) * slope * first_moment(d - first, again)
}

/// ∫ e^(−νr) (queue − rate · r)⁺ dr over a dead time: the queue that has built up drains.
fn drain(queue: f64, rate: f64, d: f64, again: f64) -> f64 {
    let length = if rate > 0.0 { d.min(queue / rate) } else { d };
    queue * zeroth_moment(length, again) - rate * first_moment(length, again)
}

/// ∫ e^(−νr) dr from 0 to `length`.
fn zeroth_moment(length: f64, again: f64) -> f64 {
    if again * length < 1e-6 { length } else { -libm::expm1(-again * length) / again }
}

/// ∫ e^(−νr) r dr from 0 to `length`.
fn first_moment(length: f64, again: f64) -> f64 {
    let z = again * length;
    if z < 1e-3 {
        length * length * (0.5 - z / 3.0 + z * z / 8.0)
    } else {
        (1.0 - libm::exp(-z) * (1.0 + z)) / (again * again)
    }
}

/// The least value of a convex function, by golden section.
fn minimum(from: f64, to: f64, of: impl Fn(f64) -> f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let (mut a, mut b) = (from, to);
    let (mut c, mut d) = (b - GOLDEN * (b - a), a + GOLDEN * (b - a));
    let (mut at_c, mut at_d) = (of(c), of(d));
    for _ in 0..40 {
        if at_c < at_d {
            (b, d, at_d) = (d, c, at_c);
            c = b - GOLDEN * (b - a);
            at_c = of(c);
        } else {
            (a, c, at_c) = (c, d, at_d);
            d = a + GOLDEN * (b - a);
            at_d = of(d);
        }
    }
    // Kinks may be at the ends.
    at_c.min(at_d).min(of(from)).min(of(to))
}
