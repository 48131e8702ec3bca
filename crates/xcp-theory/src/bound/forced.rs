//! What nobody controls at a link: how much it can carry at each time, and the datagrams that come.
//! Time is cut into bins, all quantities are bytes a bin.
//!
//! Datagrams are those of the run: the same source, seed and start as in the simulator. What is
//! *known* of them at an instant is how fast they come just then.

use xcp_elements::{Datagrams, start};
use xcp_model::rng::{Purpose, Stream};
use xcp_model::units::{NANOS_PER_SEC, Nanos};
use xcp_model::{DirectionId, Flow, Scenario, Traffic, UdpPattern};

/// Bins in a dead time, at best.
const FINE: u64 = 64;
/// And at least.
const COARSE: u64 = 8;
/// Most bins of a run; a finer division than this allows is made coarser.
const BINS: u64 = 2_000_000;
/// Most datagrams followed.
const DATAGRAMS: u64 = 50_000_000;

/// A link's capacity and datagrams over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Forced {
    /// Length of a bin.
    pub bin: Nanos,
    /// Bins in a dead time.
    pub dead: usize,
    /// What packets can use of the link in each bin.
    pub capacity: Vec<f64>,
    /// The same as it is known at the bin's beginning, were it to stay.
    pub known: Vec<f64>,
    /// Datagrams that come.
    pub datagrams: Vec<f64>,
    /// The same as they are known at the bin's beginning, were they to stay.
    pub intensity: Vec<f64>,
    /// The part of that which comes of random on-off sources, if all of them forget equally fast.
    pub wandering: Option<Wandering>,
    /// First bin that is measured, and the first that is not any more.
    pub measured: (usize, usize),
}

/// Random on-off sources together: what they send just now decays to its mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Wandering {
    /// What they send now, in each bin.
    pub now: Vec<f64>,
    /// What they send on average.
    pub mean: f64,
    /// What is left after a bin of a deviation from it.
    pub keeps: f64,
}

impl Forced {
    /// What nobody controls of this direction, with a dead time of so much; `None` if it is too
    /// short, or datagrams too many, to be followed.
    #[must_use]
    pub fn new(scenario: &Scenario, id: DirectionId, dead: Nanos, packet: f64) -> Option<Self> {
        let direction = &scenario.links[id / 2].directions[id % 2];
        let fine = FINE.min(BINS.saturating_mul(dead) / scenario.duration.max(1));
        if fine < COARSE {
            return None;
        }
        let bin = dead / fine;
        let bins = usize::try_from(scenario.duration / bin).ok().filter(|&bins| bins > 0)?;
        let rates = direction.rates();
        let used = packet / (packet + f64::from(direction.framing_bytes));
        let edge = |i: usize| i as u64 * bin;
        // Steps are looked up from the first each time, so their number is bounded, too.
        if rates.steps().len().saturating_mul(bins) > 2_000_000_000 {
            return None;
        }
        let mut forced = Self {
            bin,
            dead: usize::try_from(fine).ok()?,
            capacity: (0..bins)
                .map(|i| used * rates.capacity_bytes(edge(i), edge(i + 1)))
                .collect(),
            known: (0..bins).map(|i| used * rates.at(edge(i)) as f64 / 8e9 * bin as f64).collect(),
            datagrams: vec![0.0; bins],
            intensity: vec![0.0; bins],
            wandering: None,
            measured: (
                usize::try_from(scenario.measure.from.div_ceil(bin)).ok()?.min(bins),
                usize::try_from(scenario.measure.to / bin).ok()?.min(bins),
            ),
        };
        let mut left = DATAGRAMS;
        let mut decay = Decay::None;
        for (index, flow) in scenario.flows.iter().enumerate() {
            if let Traffic::Udp(pattern) = &flow.group.traffic
                && flow.group.route.contains(&id)
            {
                forced.source(scenario, id, (index, flow), pattern, (&mut left, &mut decay))?;
            }
        }
        if decay == Decay::Several {
            forced.wandering = None;
        }
        Some(forced)
    }

    fn source(
        &mut self,
        scenario: &Scenario,
        id: DirectionId,
        (index, flow): (usize, &Flow),
        pattern: &UdpPattern,
        (left, decay): (&mut u64, &mut Decay),
    ) -> Option<()> {
        let size = u16::try_from(flow.group.packet_bytes).ok()?;
        let way = reach(scenario, id, flow);
        let random = Stream::new(scenario.seed, Purpose::Datagrams, index);
        let mut source = Datagrams::new(size, pattern, random);
        let begins = start(flow, scenario.seed, index);
        let end = flow.group.stop.unwrap_or(Nanos::MAX).min(scenario.duration);
        let (bins, bin) = (self.datagrams.len(), self.bin);
        let mut now = vec![0.0; bins];
        let bytes = |rate_bps: u64| rate_bps as f64 / 8e9 * bin as f64;
        let first_after = |t: Nanos| usize::try_from(t.div_ceil(bin)).unwrap_or(bins).min(bins);
        // Evenly spaced datagrams are a fluid like all else, each from when it comes until the next
        // one would. An on-off source is on until a datagram that was due has not come.
        let gap = |rate_bps: u64| {
            (8 * u64::from(size) * NANOS_PER_SEC).div_ceil(rate_bps.max(1)).saturating_add(1)
        };
        let rate_at = |t: Nanos| match pattern {
            UdpPattern::Constant { rate_bps } | UdpPattern::OnOff { rate_bps, .. } => *rate_bps,
            UdpPattern::Schedule { steps } => {
                steps.iter().rev().find(|(from, _)| *from <= t).map_or(0, |(_, rate)| *rate)
            }
            UdpPattern::Poisson { .. } => u64::MAX,
        };
        let on_off = matches!(pattern, UdpPattern::OnOff { .. });
        let mut next = source.start(begins);
        while let Some(t) = next.filter(|&t| t < end) {
            *left = left.checked_sub(1)?;
            let (there, rate) = (t.saturating_add(way), rate_at(t));
            let gone = there.saturating_add(gap(rate));
            self.spread(f64::from(size), there, gone);
            if on_off {
                now[first_after(there)..first_after(gone)].fill(bytes(rate));
            }
            next = source.next(t);
        }
        let steady = match pattern {
            UdpPattern::Constant { rate_bps } | UdpPattern::Poisson { rate_bps } => {
                vec![(0, *rate_bps)]
            }
            UdpPattern::Schedule { steps } => steps.clone(),
            UdpPattern::OnOff { .. } => Vec::new(),
        };
        let (first, last) =
            (first_after(begins.saturating_add(way)), first_after(end.saturating_add(way)));
        for (i, known) in now.iter_mut().enumerate().take(last).skip(first) {
            let at = (i as u64 * bin).saturating_sub(way);
            if let Some((_, rate)) = steady.iter().rev().find(|(from, _)| *from <= at) {
                *known = bytes(*rate);
            }
        }
        self.intensity.iter_mut().zip(&now).for_each(|(sum, one)| *sum += one);
        if let UdpPattern::OnOff { rate_bps, on, off, random: true } = *pattern {
            let (on, off) = (on.max(1) as f64, off.max(1) as f64);
            let keeps = libm::exp(-(1.0 / on + 1.0 / off) * self.bin as f64);
            decay.also(keeps);
            let all = self.wandering.get_or_insert_with(|| Wandering {
                now: vec![0.0; bins],
                mean: 0.0,
                keeps,
            });
            all.now.iter_mut().zip(&now).for_each(|(sum, one)| *sum += one);
            all.mean += bytes(rate_bps) * on / (on + off);
        }
        Some(())
    }

    /// Datagrams of so many bytes come between two instants.
    fn spread(&mut self, size: f64, from: Nanos, to: Nanos) {
        let bins = self.datagrams.len();
        let first = usize::try_from(from / self.bin).unwrap_or(bins).min(bins);
        let last = usize::try_from(to.div_ceil(self.bin)).unwrap_or(bins).min(bins);
        for (i, bin) in (first..last).zip(&mut self.datagrams[first..last.max(first)]) {
            let edge = i as u64 * self.bin;
            let length = to.min(edge + self.bin).saturating_sub(from.max(edge));
            *bin += size * length as f64 / (to - from) as f64;
        }
    }

    /// Mean capacity of the measured period, bit/s.
    #[must_use]
    pub fn mean_capacity(&self) -> f64 {
        let (from, to) = self.measured;
        let bytes: f64 = self.capacity[from..to].iter().sum();
        bytes * 8e9 / ((to - from).max(1) as f64 * self.bin as f64)
    }
}

/// Whether all on-off sources forget equally fast.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Decay {
    None,
    One(f64),
    Several,
}

impl Decay {
    fn also(&mut self, keeps: f64) {
        *self = match *self {
            Decay::None => Decay::One(keeps),
            Decay::One(same) if (same - keeps).abs() < 1e-12 => *self,
            _ => Decay::Several,
        };
    }
}

/// From the source to the queue of this direction, queues empty.
fn reach(scenario: &Scenario, id: DirectionId, flow: &Flow) -> Nanos {
    let before = flow.group.route.iter().take_while(|&&d| d != id);
    before
        .map(|&d| {
            let direction = &scenario.links[d / 2].directions[d % 2];
            let bits = 8 * u64::from(flow.group.packet_bytes) * NANOS_PER_SEC;
            direction.delay + bits / direction.rate_bps.max(1)
        })
        .sum()
}
