//! The whole of a run, however it is divided, as the recorder sees it: link directions and flows by
//! their numbers in the scenario.

use xcp_elements::router_quantities;
use xcp_model::DirectionId;
use xcp_model::record::{Gauges, LinkCounts};
use xcp_model::run::Quantity;
use xcp_model::spread::Spread;
use xcp_model::units::Nanos;

use crate::fifo::Transit;
use crate::flow::Flow;
use crate::link::{Counters, Link};
use crate::partition::{Ends, Partition};
use crate::queue::Queue;
use crate::region::Region;

/// All regions of a run.
pub struct View<'a, 'r> {
    regions: Vec<&'a mut Region<'r>>,
    partition: &'a Partition,
    ends: &'a Ends,
}

impl<'a, 'r> View<'a, 'r> {
    /// Looks at these regions.
    #[must_use]
    pub fn new(regions: Vec<&'a mut Region<'r>>, partition: &'a Partition, ends: &'a Ends) -> Self {
        Self { regions, partition, ends }
    }

    /// A link direction at its near end, where queue and transmitter are, with all departures until
    /// `now` made up for.
    fn near_end(&mut self, number: DirectionId, now: Nanos) -> &mut Link {
        let place = self.partition.near_end(number);
        let network = &mut self.regions[place.region as usize].network;
        let link = &mut network.links[place.index as usize];
        link.advance(now, &mut network.packets);
        link
    }

    /// Packets waiting on a link direction.
    pub fn waiting(&mut self, number: DirectionId, now: Nanos) -> u64 {
        self.near_end(number, now).backlog().packets
    }

    /// What has left the queue of a link direction and not yet reached its far end, the first to
    /// get there first, each with the time when its last bit left: of these, those that get there
    /// at `from` or later. Of a divided link what the near end still has.
    pub fn on_the_way(
        &mut self,
        number: DirectionId,
        now: Nanos,
        from: Nanos,
    ) -> impl Iterator<Item = (Nanos, &Transit)> {
        self.near_end(number, now);
        let place = self.partition.near_end(number);
        let network = &self.regions[place.region as usize].network;
        let link = &network.links[place.index as usize];
        link.on_the_way(&network.packets, from)
    }

    fn counters(&mut self, number: DirectionId, now: Nanos) -> Counters {
        let mut counters = *self.near_end(number, now).counters(now);
        if let Some(place) = self.partition.far_end(number) {
            counters.lost += self.regions[place.region as usize].network.links
                [place.index as usize]
                .counters(now)
                .lost;
        }
        counters
    }
}

impl<'r> Gauges for View<'_, 'r> {
    type Flow<'b>
        = Flow<'b>
    where
        Self: 'b;

    fn link(&mut self, number: DirectionId, now: Nanos) -> LinkCounts {
        let counters = self.counters(number, now);
        let link = self.near_end(number, now);
        LinkCounts {
            served_bytes: link.served_bytes(now),
            sent_packets: counters.sent_packets,
            drops: counters.drops,
            refused: link.queue().refused(),
            lost: counters.lost,
            queue_integral: counters.queue_integral,
            queue: link.backlog().packets,
        }
    }

    fn take_queue_max(&mut self, number: DirectionId, now: Nanos) -> u64 {
        self.near_end(number, now).take_queue_max()
    }

    fn router(&mut self, number: DirectionId, now: Nanos) -> Option<Vec<(Quantity, f64)>> {
        match self.near_end(number, now).queue() {
            Queue::Xcp(xcp) => Some(router_quantities(&xcp.state()).to_vec()),
            Queue::Changing(xcp) => Some(router_quantities(&xcp.queue().state()).to_vec()),
            Queue::Robust(xcp) => Some(router_quantities(&xcp.state()).to_vec()),
            Queue::DropTail | Queue::Red(_) => None,
        }
    }

    fn measure(&mut self, now: Nanos) {
        for region in &mut self.regions {
            region.measure(now);
        }
    }

    fn waits(&mut self, number: DirectionId) -> Option<Spread> {
        let place = self.partition.near_end(number);
        self.regions[place.region as usize].network.links[place.index as usize].take_waits()
    }

    fn round_trips(&mut self, group: usize) -> Option<Spread> {
        let mut sum = Spread::default();
        for part in self.regions.iter().filter_map(|region| region.round_trips.get(group)) {
            sum.merge(part);
        }
        Some(sum)
    }

    fn flow(&self, number: usize) -> Flow<'_> {
        let (from, to) = (self.ends.sending(number), self.ends.receiving(number));
        Flow {
            sending: &self.regions[from.region as usize].senders[from.index as usize],
            receiving: &self.regions[to.region as usize].receivers[to.index as usize],
        }
    }
}
