//! A perfect predictor, as a fluid: at each time it knows what the link carries and which datagrams
//! come, the queue, and all that it has promised; and it decides what arrives one dead time later.
//! It is an example of a good controller, not a bound on all.

use super::forced::Forced;

/// How it predicts and what it aims at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aim {
    /// The share of what will be left that it commits.
    pub theta: f64,
    /// Bytes that it keeps standing.
    pub standing: f64,
    /// Whether it expects of random on-off sources their conditional mean, rather than what they
    /// send now.
    pub mean: bool,
    /// Whether nobody tells it the link's rate, so that it sees it only while something waits, and
    /// takes it to have stayed meanwhile.
    pub untold: bool,
}

impl Aim {
    /// Neither more nor less than what will be left, and no queue.
    pub const EXACT: Self = Self { theta: 1.0, standing: 0.0, mean: false, untold: false };
}

/// What came of it over the measured period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// What was sent over what packets could have used.
    pub utilisation: f64,
    /// Mean queue, bytes, with the packet that is being sent.
    pub queue: f64,
}

/// Runs it.
#[must_use]
pub fn follow(forced: &Forced, aim: Aim) -> Outcome {
    let dead = forced.dead;
    let bins = forced.capacity.len();
    // What arrives in each bin: of the first dead time nothing has been decided.
    let mut arrivals = vec![0.0; bins + dead];
    let (mut queue, mut sent, mut capacity, mut area) = (0.0f64, 0.0, 0.0, 0.0);
    let (from, to) = forced.measured;
    let mut seen = forced.known.first().copied().unwrap_or(0.0);
    for i in 0..bins {
        if !aim.untold || queue > 0.0 {
            seen = forced.known[i];
        }
        let mut forecast = Forecast::new(forced, i, seen, aim.mean);
        let mut expected = queue;
        for arrival in &arrivals[i..i + dead] {
            expected = (expected + arrival - forecast.next()).max(0.0);
        }
        arrivals[i + dead] = (aim.theta * forecast.next() + aim.standing - expected).max(0.0);
        let full = queue + arrivals[i] + forced.datagrams[i];
        let left = (full - forced.capacity[i]).max(0.0);
        if (from..to).contains(&i) {
            sent += full - left;
            capacity += forced.capacity[i];
            area += f64::midpoint(queue, left);
        }
        queue = left;
    }
    Outcome {
        utilisation: sent / f64::max(capacity, 1e-9),
        queue: area / f64::max((to - from) as f64, 1.0),
    }
}

/// What will be left to the flows in the bins to come, as far as one can know.
struct Forecast {
    steady: f64,
    deviation: f64,
    keeps: f64,
}

impl Forecast {
    fn new(forced: &Forced, i: usize, seen: f64, mean: bool) -> Self {
        let now = seen - forced.intensity[i];
        match &forced.wandering {
            Some(all) if mean => {
                let deviation = all.now[i] - all.mean;
                Self { steady: now + deviation, deviation, keeps: all.keeps }
            }
            _ => Self { steady: now, deviation: 0.0, keeps: 1.0 },
        }
    }

    fn next(&mut self) -> f64 {
        let left = self.steady - self.deviation;
        self.deviation *= self.keeps;
        left
    }
}
