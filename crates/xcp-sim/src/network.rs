//! Links and the packets on them: what happens to a packet from the endpoint that sends it to the
//! one that receives it.

use xcp_model::LossPlace;
use xcp_model::units::Nanos;

use crate::events::Events;
use crate::fifo::{Packets, Transit};
use crate::link::Link;
use crate::medium::{Medium, Turn};
use crate::packet::{Outbox, Packet, SackBlocks, SackId};
use crate::routing::{Position, Routing};

/// Links with their packets, and the events to come on them and at their endpoints.
#[derive(Debug)]
pub struct Network<'r> {
    /// All routes.
    pub routing: &'r Routing,
    /// The packets.
    pub packets: Packets,
    /// The links.
    pub links: Vec<Link>,
    /// The media that links transmit on when it is their turn. Their events are numbered after the
    /// links'.
    pub media: Vec<Medium>,
    /// The links some of whose packets fall back. The events of their detours are numbered after
    /// the media's.
    pub detours: Vec<usize>,
    /// What happens when.
    pub events: Events,
    /// When the recorder next looks at the links, or the run ends: before that, nobody can tell
    /// whether they are ahead.
    pub horizon: Nanos,
}

impl Network<'_> {
    /// Puts a packet onto link `number`, the one at `position` of its route, and at once onto those
    /// after it as far as it may go ahead. The link where it stays gets an event, if it was empty.
    #[inline(never)]
    pub fn forward(
        &mut self,
        mut now: Nanos,
        mut number: usize,
        mut position: Position,
        packet: &mut Packet,
    ) {
        loop {
            let link = &mut self.links[number];
            if !link.is_clear(now) {
                return self.queue(now, number, position, packet);
            }
            let was_empty = link.is_empty();
            let Some(arrives) = link.pass(now, packet, &mut self.packets) else { return };
            position += 1;
            let next = self.routing.hop(position);
            if was_empty
                && link.feeds
                && arrives < self.horizon
                && let Some(next) = next.fed_link()
            {
                if link.is_lost(LossPlace::AfterQueue, arrives, packet, &mut self.packets) {
                    return;
                }
                (now, number) = (arrives, next);
                continue;
            }
            link.hold(arrives, packet, position, next, &mut self.packets);
            if was_empty && !link.leads_away {
                self.events.set_link(number as u32, arrives);
            }
            return;
        }
    }

    /// Puts a packet onto a link where it has to wait, or where departures have to be made up for
    /// first.
    #[inline(never)]
    fn queue(&mut self, now: Nanos, number: usize, position: Position, packet: &mut Packet) {
        let link = &mut self.links[number];
        let next = self.routing.hop(position + 1);
        if let Some(medium) = link.medium() {
            link.queue_up(now, packet, position + 1, next, &mut self.packets);
            return self.arrange(now, medium);
        }
        link.advance(now, &mut self.packets);
        let was_empty = link.is_empty();
        let arrives = if link.is_idle(now) {
            let Some(arrives) = link.pass(now, packet, &mut self.packets) else { return };
            link.hold(arrives, packet, position + 1, next, &mut self.packets);
            arrives
        } else {
            let Some(arrives) = link.wait(now, packet, position + 1, next, &mut self.packets)
            else {
                return;
            };
            arrives
        };
        if was_empty && !link.leads_away {
            self.events.set_link(number as u32, arrives);
        }
    }

    /// It may be somebody's turn on a medium.
    pub fn turn(&mut self, now: Nanos, medium: usize) {
        if let Turn::Sends(number) =
            self.media[medium].turn(now, &mut self.links, &mut self.packets)
        {
            let link = &self.links[number];
            if !link.leads_away {
                self.events.set_link(number as u32, link.next_arrival(&self.packets));
            }
        }
        self.arrange(now, medium);
    }

    /// Sets when it is somebody's turn next.
    fn arrange(&mut self, now: Nanos, medium: usize) {
        let next = self.media[medium].next_turn(now, &self.links);
        self.events.set_link((self.links.len() + medium) as u32, next);
    }

    /// A packet that has reached a link's far end waits there, and others overtake it.
    pub fn fall_back(&mut self, number: usize, extra: Nanos, transit: Transit) {
        if let Some(detour) = &mut self.links[number].detour {
            detour.push(extra, transit);
            self.events.set_link(detour.source, detour.next());
        }
    }

    /// The next of those that have fallen back, if its time has come.
    pub fn next_of_detour(&mut self, now: Nanos, number: usize) -> Option<Transit> {
        let detour = self.links[self.detours[number]].detour.as_mut()?;
        let transit = detour.pop(now);
        self.events.set_link(detour.source, detour.next());
        transit
    }

    /// Lets a link's packets go on to the next link before their time, as far as nobody can tell.
    ///
    /// A link that gets all its packets from one other gets them in that one's order: nothing comes
    /// between two of them, and what they do to it can be worked out as soon as they are under way.
    /// They keep the times they would have had. Only the recorder looks at links from outside, so
    /// none goes ahead of its next look. A chain of links then costs one event a packet, not one a
    /// link. (Every transmission takes a nanosecond at least, a scenario's rates see to that: a
    /// packet never reaches two links' ends in the same instant.)
    pub fn go_ahead(&mut self, number: usize) {
        while let Some(transit) = self.links[number].next_on_the_way(&self.packets)
            && transit.arrives < self.horizon
            && let Some(next) = transit.next.fed_link()
        {
            let mut transit = *transit;
            if self.links[number].deliver(&transit, &mut self.packets) {
                self.forward(transit.arrives, next, transit.position, &mut transit.packet);
            }
        }
    }
}

/// Where an endpoint's packets go: onto the first link of its route, which has one at least.
#[derive(Debug)]
pub struct Port<'a, 'r> {
    /// The time.
    pub now: Nanos,
    /// Where the route begins.
    pub route: Position,
    /// The links.
    pub network: &'a mut Network<'r>,
}

impl Outbox for Port<'_, '_> {
    #[inline(always)]
    fn send(&mut self, packet: &mut Packet) {
        if let Some(link) = self.network.routing.hop(self.route).link() {
            self.network.forward(self.now, link, self.route, packet);
        }
    }

    fn sack(&mut self, blocks: SackBlocks) -> SackId {
        self.network.packets.sacks.keep(blocks)
    }
}
