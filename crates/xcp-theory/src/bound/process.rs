//! The process that the capacity left to the flows is taken to be, where one speaks of all
//! controllers: along a path that has been drawn, one that guesses right loses nothing.

use xcp_model::rng::{Purpose, Stream};
use xcp_model::units::{NANOS_PER_SEC, Nanos};
use xcp_model::{DirectionId, Scenario, Traffic, UdpPattern};

use super::forced::Forced;
use super::is_there;
use super::least::{Jumps, Level};
use crate::network::seconds;

/// Most levels that a rate may have; finding the bound takes time as their square.
const LEVELS: usize = 40;
/// Fewer changes than this in the measured period say nothing of a process.
const FEW: usize = 8;
/// Bins in a dead time, and of a path that is drawn. It has thousands of jumps, so that means over it
/// are exact to some hundredths.
const FINE: usize = 16;
const BINS: usize = 1 << 20;

/// The process that a link's capacity is taken to be, for the bound: only where one thing changes.
///
/// # Errors
/// Why there is none.
pub fn jumps(
    scenario: &Scenario,
    id: DirectionId,
    dead: Nanos,
    packet: f64,
) -> Result<(String, Jumps), &'static str> {
    let direction = &scenario.links[id / 2].directions[id % 2];
    let used = packet / (packet + f64::from(direction.framing_bytes)) / 8.0;
    let dead = seconds(dead);
    let mut constant = 0.0;
    let mut random = None;
    for flow in scenario.flows.iter().filter(|f| f.group.route.contains(&id)) {
        if !flow.is_tcp() && !is_there(scenario, flow) {
            return Err("datagrams begin or end within the measured period, or are not in it");
        }
        match flow.group.traffic {
            Traffic::Tcp(_) => {}
            Traffic::Udp(UdpPattern::Constant { rate_bps }) => constant += rate_bps as f64 / 8.0,
            Traffic::Udp(UdpPattern::OnOff { rate_bps, on, off, random: true })
                if random.is_none() =>
            {
                random = Some((rate_bps as f64 / 8.0, seconds(on), seconds(off)));
            }
            Traffic::Udp(_) => return Err("of such datagrams, or so many, no bound is known here"),
        }
    }
    let inside = |at: Nanos| (scenario.measure.from..scenario.measure.to).contains(&at);
    let values: Vec<f64> = direction
        .rate_changes
        .iter()
        .filter(|(at, _)| inside(*at))
        .map(|(_, rate)| *rate as f64 * used)
        .collect();
    match (random, values.len()) {
        (Some(_), 1..) => Err("both the rate and datagrams change"),
        (None, 0) => Err("nothing changes by chance in the measured period"),
        (Some((rate, on, off)), 0) => {
            let capacity = direction.rates().at(scenario.measure.from) as f64 * used;
            let level = |left: f64, stays: f64| Level {
                left,
                carried: capacity,
                fresh: stays / (on + off) * libm::exp(-dead / stays),
                hazard: 1.0 / stays,
                again: 1.0 / stays,
            };
            let quiet = capacity - constant;
            let process = "that of the source, with exponentially distributed periods";
            Ok((
                process.to_owned(),
                Jumps {
                    levels: vec![level(quiet, off), level(quiet - rate, on)],
                    to: vec![vec![0.0, 1.0], vec![1.0, 0.0]],
                    capacity,
                    dead,
                },
            ))
        }
        (None, 1..FEW) => Err("the rate changes too seldom to make a random process of it"),
        (None, changes) => {
            let length = seconds(scenario.measure.to - scenario.measure.from);
            let gap = length / changes as f64;
            if gap < 2.5 * dead {
                return Err("the rate changes again before two and a half dead times are over");
            }
            let mut levels: Vec<(f64, f64)> = Vec::new();
            for value in &values {
                match levels.iter_mut().find(|(level, _)| level == value) {
                    Some((_, share)) => *share += 1.0 / changes as f64,
                    None => levels.push((*value, 1.0 / changes as f64)),
                }
            }
            if levels.len() > LEVELS {
                return Err("the rate has too many different values");
            }
            let armed = gap - 2.0 * dead;
            let row: Vec<f64> = levels.iter().map(|(_, share)| *share).collect();
            let process = format!(
                "each rate is drawn from those of the measured period and stays for two dead times \
                 and a random time, {gap:.2} s on average"
            );
            Ok((
                process,
                Jumps {
                    capacity: levels.iter().map(|(level, share)| level * share).sum(),
                    to: vec![row; levels.len()],
                    levels: levels
                        .iter()
                        .map(|&(level, share)| Level {
                            left: level - constant,
                            carried: level,
                            fresh: share * armed / gap,
                            hazard: 1.0 / armed,
                            again: 0.0,
                        })
                        .collect(),
                    dead,
                },
            ))
        }
    }
}

impl Jumps {
    /// A long path of the process, always the same.
    #[must_use]
    pub fn path(&self) -> Forced {
        let bin = self.dead / FINE as f64;
        let mut random = Stream::new(1, Purpose::Datagrams, 0);
        let mut carried = Vec::with_capacity(BINS);
        let mut taken = Vec::with_capacity(BINS);
        let (mut level, mut until) = (0, 0.0);
        for i in 0..BINS {
            while until <= i as f64 {
                let mut chance = random.unit();
                let likely = |p: &f64| {
                    chance -= p;
                    chance < 0.0
                };
                level = self.to[level].iter().position(likely).unwrap_or(0);
                let Level { hazard, again, .. } = self.levels[level];
                // Whoever may not jump again at once rests for two dead times.
                let rests = if again > 0.0 { 0.0 } else { 2.0 * FINE as f64 };
                until += rests + random.unit_exponential() / (hazard * bin);
            }
            let Level { left, carried: all, .. } = self.levels[level];
            carried.push(all * bin);
            taken.push((all - left) * bin);
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a bin")]
        let bin = ((bin * NANOS_PER_SEC as f64) as Nanos).max(1);
        Forced {
            bin,
            dead: FINE,
            known: carried.clone(),
            capacity: carried,
            intensity: taken.clone(),
            datagrams: taken,
            wandering: None,
            measured: (BINS / 100, BINS),
        }
    }
}
