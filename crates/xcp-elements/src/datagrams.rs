//! Sources of datagrams: UDP traffic that takes no notice of the network. A sans-I/O timer: asked
//! for the next time, told when it has come.

use xcp_model::UdpPattern;
use xcp_model::rng::Stream;
use xcp_model::units::{NANOS_PER_SEC, Nanos};

use crate::serializer::Serializer;

/// When a source of datagrams sends; what they are is for who sends them.
#[derive(Debug)]
pub struct Datagrams {
    size: u16,
    pattern: Pattern,
    random: Stream,
}

/// A pattern with what it needs to go on.
#[derive(Debug)]
enum Pattern {
    /// Evenly spaced.
    Constant(Serializer),
    /// Exponential gaps of this mean, nanoseconds. The fraction of a nanosecond is carried to the
    /// next gap, as the serializer does: cut off, it would be half a nanosecond a packet, 1 % of
    /// the rate at 10 Gbit/s of small packets, and all of it beyond a few Tbit/s.
    Poisson { mean: f64, carry: f64 },
    /// Evenly spaced until `burst_ends`, then silent.
    OnOff { line: Serializer, on: Nanos, off: Nanos, random: bool, burst_ends: Nanos },
    /// Steps yet to come are in `steps[at..]`.
    Schedule { steps: Vec<(Nanos, u64)>, at: usize, line: Option<Serializer> },
}

impl Datagrams {
    /// A source of datagrams of `size` bytes on the wire.
    #[must_use]
    pub fn new(size: u16, pattern: &UdpPattern, random: Stream) -> Self {
        let pattern = match *pattern {
            UdpPattern::Constant { rate_bps } => Pattern::Constant(Serializer::new(rate_bps)),
            UdpPattern::Poisson { rate_bps } => Pattern::Poisson {
                mean: (8 * u64::from(size) * NANOS_PER_SEC) as f64 / rate_bps as f64,
                carry: 0.0,
            },
            UdpPattern::OnOff { rate_bps, on, off, random } => {
                Pattern::OnOff { line: Serializer::new(rate_bps), on, off, random, burst_ends: 0 }
            }
            UdpPattern::Schedule { ref steps } => {
                Pattern::Schedule { steps: steps.clone(), at: 0, line: None }
            }
        };
        Self { size, pattern, random }
    }

    /// When the first datagram goes out, started at `now`; `None` if never.
    pub fn start(&mut self, now: Nanos) -> Option<Nanos> {
        match &mut self.pattern {
            Pattern::Constant(_) | Pattern::Poisson { .. } => Some(now),
            Pattern::OnOff { on, random, burst_ends, .. } => {
                *burst_ends = now + duration(*on, *random, &mut self.random);
                Some(now)
            }
            Pattern::Schedule { .. } => self.enter_step(now),
        }
    }

    /// When the datagram after the one that goes out now does; `None` if none does.
    #[inline]
    pub fn next(&mut self, now: Nanos) -> Option<Nanos> {
        match &mut self.pattern {
            Pattern::Constant(line) => Some(now + line.transmit(self.size)),
            Pattern::Poisson { mean, carry } => {
                let gap = *carry + self.random.unit_exponential() * *mean;
                *carry = gap.fract();
                Some(now + gap as Nanos)
            }
            Pattern::OnOff { line, on, off, random, burst_ends } => {
                let next = now + line.transmit(self.size);
                if next < *burst_ends {
                    return Some(next);
                }
                let next = *burst_ends + duration(*off, *random, &mut self.random);
                *burst_ends = next + duration(*on, *random, &mut self.random);
                Some(next)
            }
            Pattern::Schedule { steps, at, line } => {
                let line = line.as_mut()?;
                let next = now + line.transmit(self.size);
                match steps.get(*at) {
                    Some(&(change, _)) if next >= change => self.enter_step(change),
                    _ => Some(next),
                }
            }
        }
    }

    /// Goes to the step that holds at `now`, or to the next that sends anything; returns when it
    /// begins.
    fn enter_step(&mut self, now: Nanos) -> Option<Nanos> {
        let Pattern::Schedule { steps, at, line } = &mut self.pattern else { return None };
        let mut rate_bps = 0;
        let mut begins = now;
        while let Some(&(from, rate)) = steps.get(*at) {
            if from > now && rate_bps > 0 {
                break;
            }
            rate_bps = rate;
            begins = from.max(now);
            *at += 1;
        }
        *line = (rate_bps > 0).then(|| Serializer::new(rate_bps));
        line.is_some().then_some(begins)
    }
}

fn duration(mean: Nanos, random: bool, stream: &mut Stream) -> Nanos {
    if random { stream.exponential(mean) } else { mean }
}

#[cfg(test)]
mod tests {
    use xcp_model::rng::Purpose;

    use super::*;

    /// Times of the datagrams before `end`.
    fn times(pattern: &UdpPattern, start: Nanos, end: Nanos) -> Vec<Nanos> {
        let mut source = Datagrams::new(1000, pattern, Stream::new(1, Purpose::Datagrams, 0));
        let mut next = source.start(start);
        let mut times = Vec::new();
        while let Some(now) = next.filter(|&t| t < end) {
            times.push(now);
            next = source.next(now);
        }
        times
    }

    const MS: Nanos = 1_000_000;

    #[test]
    fn constant_is_evenly_spaced() {
        // 8 Mbit/s of 1000-byte datagrams: one a millisecond.
        assert_eq!(
            times(&UdpPattern::Constant { rate_bps: 8_000_000 }, 5 * MS, 8 * MS),
            [5 * MS, 6 * MS, 7 * MS]
        );
    }

    #[test]
    fn poisson_has_its_rate_and_spread() {
        // 1000-byte datagrams a millisecond, 8 ns and 1 ns apart.
        for (rate_bps, end) in [
            (8_000_000, 100_000 * MS),
            (1_000_000_000_000, MS * 8 / 10),
            (8_000_000_000_000, MS / 10),
        ] {
            let sent = times(&UdpPattern::Poisson { rate_bps }, 0, end).len() as f64;
            assert!((sent - 1e5).abs() < 4.0 * 1e5f64.sqrt(), "{rate_bps} bit/s: {sent}");
        }
    }

    #[test]
    fn bursts_and_silences_alternate() {
        let pattern =
            UdpPattern::OnOff { rate_bps: 8_000_000, on: 3 * MS, off: 7 * MS, random: false };
        assert_eq!(times(&pattern, MS, 14 * MS), [1, 2, 3, 11, 12, 13].map(|t| t * MS));
    }

    #[test]
    fn random_bursts_have_the_right_share() {
        let pattern =
            UdpPattern::OnOff { rate_bps: 8_000_000, on: 30 * MS, off: 70 * MS, random: true };
        let sent = times(&pattern, 0, 1_000_000 * MS).len() as f64;
        // 0.3 of a million; bursts are cut up to a whole datagram, which adds about half of one to
        // each of 10^4.
        assert!((sent / 3.05e5 - 1.0).abs() < 0.04, "{sent}");
    }

    #[test]
    fn schedule_changes_rate_and_falls_silent() {
        let steps =
            vec![(2 * MS, 8_000_000), (4 * MS, 0), (6 * MS, 16_000_000), (7 * MS, 4_000_000)];
        let pattern = UdpPattern::Schedule { steps };
        assert_eq!(
            times(&pattern, 0, 12 * MS),
            [2 * MS, 3 * MS, 6 * MS, 6 * MS + MS / 2, 7 * MS, 9 * MS, 11 * MS]
        );
        assert_eq!(
            times(&pattern, 3 * MS + 1, 6 * MS),
            [3 * MS + 1],
            "started in the middle of a step"
        );
    }
}
