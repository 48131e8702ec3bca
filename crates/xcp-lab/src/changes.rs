//! What of a network changes while it runs: the rates of the kernel's queues, and the capacities
//! that routers behind them are told. Delays, and the rates of the lines' own queues, are known to
//! the lines from the start.

use std::collections::VecDeque;

use xcp_linux::netlink::Netlink;
use xcp_linux::qdisc::{self, Shaper, Whose};
use xcp_model::units::Nanos;
use xcp_model::{DirectionId, Scenario};

use crate::LabError;
use crate::measure::Direction;
use crate::plan::{DeviceId, Plan, direction_name};
use crate::site::Site;

/// All changes to come.
pub(crate) struct Changes {
    /// In order of time.
    steps: VecDeque<Step>,
    queues: Vec<Queue>,
}

struct Step {
    at: Nanos,
    queue: usize,
    rate_bps: u64,
    /// What the router has from then on, bytes/s; `None` where there is none.
    capacity: Option<u64>,
}

struct Queue {
    direction: DirectionId,
    /// For messages.
    name: String,
    netlink: Netlink,
    index: u32,
}

impl Changes {
    /// What a scenario wants of the queues of a network that stands.
    pub fn new(scenario: &Scenario, plan: &Plan, site: &Site) -> Result<Self, LabError> {
        let mut changes = Self { steps: VecDeque::new(), queues: Vec::new() };
        let mut steps = Vec::new();
        for shaper in &plan.shapers {
            let number = shaper.direction;
            let direction = &scenario.links[number / 2].directions[number % 2];
            if direction.rate_changes.is_empty() {
                continue;
            }
            let law = direction.queue.router().map(|router| &router.law);
            steps.extend(direction.rate_changes.iter().map(|&(at, rate_bps)| Step {
                at,
                queue: changes.queues.len(),
                rate_bps,
                // A law with a capacity of its own keeps it: nobody tells its router.
                capacity: law.map(|law| law.at(rate_bps).capacity_bytes_per_sec),
            }));
            changes.queues.push(Queue::open(plan, site, shaper.device, number, scenario)?);
        }
        steps.sort_by_key(|step| step.at);
        changes.steps = steps.into();
        Ok(changes)
    }

    /// When the next one is due; never if there is none.
    pub fn next(&self) -> Nanos {
        self.steps.front().map_or(Nanos::MAX, |step| step.at)
    }

    /// Makes those that are due. Returns how late the latest was.
    pub fn make(&mut self, now: Nanos, directions: &[Direction]) -> Result<Nanos, LabError> {
        let mut late = 0;
        while self.next() <= now
            && let Some(step) = self.steps.pop_front()
        {
            late = late.max(now - step.at);
            let queue = &mut self.queues[step.queue];
            qdisc::change_rate(
                &mut queue.netlink,
                queue.index,
                Whose::Router,
                Shaper::Htb,
                step.rate_bps,
            )
            .map_err(|why| queue.failed(why))?;
            let router = directions[queue.direction].router.as_ref();
            if let (Some(router), Some(capacity)) = (router, step.capacity) {
                router.set_capacity(capacity).map_err(|why| queue.failed(why))?;
            }
        }
        Ok(late)
    }
}

impl Queue {
    fn open(
        plan: &Plan,
        site: &Site,
        device: DeviceId,
        direction: DirectionId,
        scenario: &Scenario,
    ) -> Result<Self, LabError> {
        let (space, index) = site.device(plan, device);
        let name = direction_name(scenario, direction);
        let netlink = Netlink::open_in(&site.spaces[space])
            .map_err(|why| LabError::failed("look at its queues", why))?;
        Ok(Self { direction, name, netlink, index })
    }

    fn failed(&self, why: impl std::error::Error + Send + Sync + 'static) -> LabError {
        LabError::failed(format_args!("change the rate of \"{}\"", self.name), why)
    }
}
