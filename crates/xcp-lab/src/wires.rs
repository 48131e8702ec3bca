//! Starts the lines of a plan: what a line is told of a link direction.

use std::os::fd::AsFd as _;

use xcp_model::{Discipline, LossPlace, Scenario};

use crate::LabError;
use crate::clock::Clock;
use crate::line::{Line, LineConfig, QueueConfig};
use crate::plan::{self, Plan, direction_name};
use crate::site::Site;

/// What comes at a line without a shaper before it is not known: at least this fast, bit/s.
const UNSHAPED_BPS: u64 = 1_000_000_000;

/// Starts them all, by the scenario's time.
pub(crate) fn start(
    plan: &Plan,
    scenario: &Scenario,
    site: &Site,
    clock: Clock,
) -> Result<Vec<Line>, LabError> {
    let wire = |line: &plan::Line| plan.devices[line.input].space;
    let begin = |line: &plan::Line| {
        let [from, to] = [line.input, line.output].map(|device| plan.devices[device].name.as_str());
        let name = direction_name(scenario, line.direction);
        Line::start(
            &config(line, plan, scenario, clock),
            Some(site.spaces[wire(line)].as_fd()),
            from,
            to,
        )
        .map_err(|why| LabError::failed(format_args!("start the line of \"{name}\""), why))
    };
    plan.lines.iter().map(begin).collect()
}

fn config(line: &plan::Line, plan: &Plan, scenario: &Scenario, clock: Clock) -> LineConfig {
    let direction = &scenario.links[line.direction / 2].directions[line.direction % 2];
    let queue = line.queue.then(|| QueueConfig {
        rates: direction.rates(),
        queue: direction.queue.clone(),
        overhead_bytes: 0,
    });
    let shaped = !line.before_queue && !line.queue;
    let losses_elsewhere = !line.queue
        && !line.before_queue
        && direction.losses.iter().any(|loss| loss.place == LossPlace::BeforeQueue);
    let red = matches!(direction.queue.discipline, Discipline::Red(_));
    debug_assert!(line.queue == red || line.before_queue);
    LineConfig {
        delays: line.delays.clone(),
        losses: line.losses.clone(),
        losses_elsewhere,
        blackouts: line.blackouts.clone(),
        reorder: line.reorder,
        queue,
        seed: scenario.seed,
        index: line.direction,
        zero: clock.zero(),
        mtu: plan.mtu,
        input_rate_bps: if shaped {
            direction.fastest_bps()
        } else {
            direction.fastest_bps().saturating_mul(4).max(UNSHAPED_BPS)
        },
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use xcp_scenario::{Overrides, load};

    use super::*;
    use crate::line::wire::Wire;
    use crate::plan::{Family, Machine};

    /// Two lines, one before the queue and one behind it, lose what one with both places would: that
    /// one is the simulator's link (`line/wire_tests.rs`).
    #[test]
    fn two_lines_lose_what_one_with_both_places_loses() {
        let text = "duration = \"10s\"\nseed = 7\n\
             [[link]]\nbetween = [\"S\", \"D\"]\nrate = \"10mbit\"\ndelay = \"10ms\"\n\
             loss = [{ probability = 0.2, place = \"before-queue\" }, { probability = 0.3 }]\n\
             [[flow]]\nfrom = \"S\"\nto = \"D\"\ncongestion = \"cubic\"\n";
        let scenario = load(Path::new("x.toml"), text, &Overrides::none()).unwrap().remove(0);
        let machine = Machine {
            congestions: vec!["cubic".into()],
            rto_min: true,
            family: Family::V4,
            offload: false,
        };
        let plan = Plan::new(&scenario, &machine).unwrap();
        let clock = Clock::starting_in(0);
        for number in [0, 1] {
            let mut lines: Vec<_> = plan.lines.iter().filter(|l| l.direction == number).collect();
            lines.sort_by_key(|line| !line.before_queue);
            let [first, second] = lines[..] else { panic!("{} lines", lines.len()) };
            let [before, behind] =
                [first, second].map(|line| config(line, &plan, &scenario, clock));
            let all = scenario.links[0].directions[number].losses.clone();
            let mut whole =
                Wire::new(&LineConfig { losses: all, losses_elsewhere: false, ..behind.clone() });
            let mut apart = [before, behind].map(|config| Wire::new(&config));
            for frame in 0..1000 {
                let at = clock.zero() + frame;
                let lost = apart.iter_mut().any(|wire| wire.arrival(at, 1000).is_none());
                assert_eq!(lost, whole.arrival(at, 1000).is_none(), "frame {frame}");
            }
            assert!(whole.counters().lost_at_random > 300, "{:?}", whole.counters());
        }
    }
}
