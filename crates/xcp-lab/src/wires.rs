//! Starts the lines of a plan: what a line is told of a link direction.

use std::os::fd::AsFd as _;

use xcp_model::rng::{Purpose, Stream};
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
    // Where losses strike at two places by two lines, each has its own numbers, as in the
    // simulator; a line that does both sees to that itself.
    let second = !line.queue
        && !line.before_queue
        && direction.losses.iter().any(|loss| loss.place == LossPlace::BeforeQueue);
    let seed = if second {
        Stream::new(scenario.seed, Purpose::LossOnTheWay, line.direction).bits()
    } else {
        scenario.seed
    };
    let red = matches!(direction.queue.discipline, Discipline::Red(_));
    debug_assert!(line.queue == red || line.before_queue);
    LineConfig {
        delays: line.delays.clone(),
        losses: line.losses.clone(),
        blackouts: line.blackouts.clone(),
        // Scenarios have none: the simulator's links keep their order.
        reorder: None,
        queue,
        seed,
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
