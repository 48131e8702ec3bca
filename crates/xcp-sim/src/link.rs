//! One direction of a link: queue, transmitter, cable.
//!
//! A queue before a transmitter of constant rate is first in, first out, so a packet's time of
//! departure and of arrival at the far end are known when it comes. A hop therefore costs one
//! event, the arrival; departures are made up for, in order and with their true times, whenever the
//! link is looked at (`advance`). Nothing else can see the difference: a queue's state is touched
//! only by the link itself.
//!
//! Where a transmitter has to wait for its turn (`medium.rs`), packets wait in its `station.rs`
//! until they are told to `start`; the line of packets (`fifo.rs`) then has only those on the way.
//! To everybody else such a link is never idle, and nothing is ever to be made up for.
//!
//! Where a run is divided among processors (`partition.rs`) and a link leads from one part to
//! another, it is two of these: the one at the near end has the queue and the transmitter and no
//! cable, the one at the far end only the cable and what strikes there.

use xcp_elements::{Backlog, Serializer, Varying};
use xcp_model::record::capacity_bytes;
use xcp_model::spread::Spread;
use xcp_model::units::Nanos;
use xcp_model::{self as model, Limit, LossPlace, Others};

use crate::cable::Cable;
use crate::detour::Detour;
use crate::fifo::{Fifo, Packets, Transit};
use crate::hazard::Hazard;
use crate::packet::Packet;
use crate::queue::Queue;
use crate::routing::{Hop, Position};
use crate::station::Station;
use crate::waits::Waits;

/// One direction of a link. In the order in which a packet needs it, by cache lines: in a network
/// of a thousand links each of them has to come from far away for nearly every packet.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Link {
    /// When the first waiting packet goes into service; never if none waits.
    next_service: Nanos,
    /// When the transmitter has sent all it was given.
    free_at: Nanos,
    fifo: Fifo,

    /// Losses before the queue.
    before: Option<Box<Hazard>>,
    /// Losses and blackouts on the way.
    after: Option<Box<Hazard>>,
    /// Where packets wait for the transmitter's turn, if it needs one.
    station: Option<Box<Station>>,
    /// Whether some link of the same region gets all its packets from this one.
    pub feeds: bool,
    /// Where those wait that others overtake, if any do.
    pub detour: Option<Box<Detour>>,
    /// Whether this is the near end of a divided link: its packets leave the region.
    pub leads_away: bool,
    delay: Nanos,
    backlog_bytes: u64,
    serializer: Serializer,
    /// What takes the serializer's place where the rate changes.
    varying: Option<Box<Varying>>,
    /// What takes the delay's place where that changes.
    cable: Option<Box<Cable>>,

    queue: Queue,
    counters: Counters,
    limit: Limit,
    rate_bps: u64,
    framing: u32,
    /// Waiting times, while they are counted.
    waits: Option<Box<Waits>>,
}

/// What a link has counted since the beginning of the run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counters {
    /// Wire bytes that went into service.
    pub sent_bytes: u64,
    /// Until when `queue_integral` goes.
    integrated_to: Nanos,
    /// Packets that went into service.
    pub sent_packets: u64,
    /// Largest queue since `take_queue_max` was last asked.
    queue_max: u64,
    /// Waiting packets integrated over time, packet nanoseconds.
    pub queue_integral: u128,
    /// Packets dropped by the queue.
    pub drops: u64,
    /// Packets lost on the link.
    pub lost: u64,
}

impl Link {
    /// Builds one direction; `index` is its number among all directions.
    ///
    /// # Errors
    /// When the router's law is out of range.
    pub fn new(
        direction: &model::Direction,
        index: usize,
        seed: u64,
    ) -> Result<Self, xcp_engine::ConfigError> {
        Ok(Self {
            rate_bps: direction.rate_bps,
            delay: direction.delay,
            limit: direction.queue.limit,
            queue: Queue::new(direction, index, seed)?,
            serializer: Serializer::with_framing(direction.rate_bps, direction.framing_bytes),
            varying: (!direction.rate_changes.is_empty())
                .then(|| Box::new(Varying::new(direction.rates(), direction.framing_bytes))),
            cable: (!direction.delay_changes.is_empty())
                .then(|| Box::new(Cable::new(direction.delays()))),
            framing: direction.framing_bytes,
            station: None,
            fifo: Fifo::default(),
            backlog_bytes: 0,
            free_at: 0,
            next_service: Nanos::MAX,
            before: Hazard::new(direction, LossPlace::BeforeQueue, index, seed),
            after: Hazard::new(direction, LossPlace::AfterQueue, index, seed),
            counters: Counters::default(),
            feeds: false,
            detour: None,
            leads_away: false,
            waits: None,
        })
    }

    /// From now on it transmits on a medium (by its number in the region), when it is its turn; it
    /// must not have been used.
    pub fn wait_for_turns(&mut self, medium: usize, others: Others, yields: bool) {
        self.station = Some(Box::new(Station::new(medium, others, yields)));
        self.free_at = Nanos::MAX;
    }

    /// Divides a link into near end and far end; it must not have been used, and its delay does not
    /// change.
    #[must_use]
    pub fn divide(mut self) -> (Self, Self) {
        let far = Self {
            rate_bps: self.rate_bps,
            delay: self.delay,
            limit: self.limit,
            queue: Queue::DropTail,
            serializer: self.serializer.clone(),
            varying: None,
            cable: None,
            framing: self.framing,
            station: None,
            fifo: Fifo::default(),
            backlog_bytes: 0,
            free_at: 0,
            next_service: Nanos::MAX,
            before: None,
            after: self.after.take(),
            counters: Counters::default(),
            feeds: self.feeds,
            detour: None,
            leads_away: false,
            waits: None,
        };
        self.feeds = false;
        self.leads_away = true;
        (self, far)
    }

    /// Whether a packet that comes now goes into service at once, and nothing has to be made up for
    /// before.
    #[inline(always)]
    #[must_use]
    pub fn is_clear(&self, now: Nanos) -> bool {
        now >= self.free_at && now < self.next_service
    }

    /// Whether a packet that comes now goes into service at once.
    #[inline(always)]
    #[must_use]
    pub fn is_idle(&self, now: Nanos) -> bool {
        now >= self.free_at
    }

    /// Whether nothing is on the link.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    /// A packet reaches the near end while the transmitter is idle, which takes it whatever the
    /// limit of the queue. Returns when it reaches the far end, `None` if never. It is for the
    /// caller to `hold` it until then, or to take it on.
    #[inline(always)]
    pub fn pass(
        &mut self,
        now: Nanos,
        packet: &mut Packet,
        packets: &mut Packets,
    ) -> Option<Nanos> {
        if self.is_lost(LossPlace::BeforeQueue, now, packet, packets) {
            return None;
        }
        if !self.queue.pass(now, packet, self.free_at) {
            self.drop_packet(packet, packets);
            return None;
        }
        // Not if the line has only just fallen idle: packets shorter than a nanosecond would take
        // no time at all, for ever.
        self.free_at = if let Some(varying) = &mut self.varying {
            varying.transmit(now, packet.size)
        } else if now > self.free_at {
            now + self.serializer.transmit_first(packet.size)
        } else {
            now + self.serializer.transmit(packet.size)
        };
        self.counters.sent_bytes += u64::from(packet.size);
        self.counters.sent_packets += 1;
        Some(self.send(self.free_at, true))
    }

    /// What is sent at this time, and is in service already or waits, goes onto the cable. Returns
    /// when it reaches the far end.
    #[inline(always)]
    fn send(&mut self, sent: Nanos, in_service: bool) -> Nanos {
        match &mut self.cable {
            None => sent.saturating_add(self.delay),
            Some(cable) => {
                let arrives = cable.send(sent);
                if in_service {
                    cable.serve();
                }
                arrives
            }
        }
    }

    /// Keeps a packet that has passed the transmitter until it reaches the far end.
    #[inline(always)]
    pub fn hold(
        &mut self,
        arrives: Nanos,
        packet: &Packet,
        position: Position,
        next: Hop,
        packets: &mut Packets,
    ) {
        self.fifo.push_served(packets, arrives, packet, position, next);
    }

    /// Whether the packet that passes a place on the link at this time is lost; if so, it is gone.
    #[inline(always)]
    pub fn is_lost(
        &mut self,
        place: LossPlace,
        at: Nanos,
        packet: &Packet,
        packets: &mut Packets,
    ) -> bool {
        // What strikes on the way strikes those that left the transmitter at the wrong time.
        let (hazard, at) = match (place, &mut self.cable) {
            (LossPlace::BeforeQueue, _) => (&mut self.before, at),
            (LossPlace::AfterQueue, None) => (&mut self.after, at - self.delay),
            (LossPlace::AfterQueue, Some(cable)) => (&mut self.after, cable.arrive()),
        };
        match hazard {
            None => false,
            Some(hazard) => {
                let lost = hazard.strikes(at);
                if lost {
                    self.counters.lost += 1;
                    packets.sacks.discard(packet);
                }
                lost
            }
        }
    }

    fn drop_packet(&mut self, packet: &Packet, packets: &mut Packets) {
        self.counters.drops += 1;
        packets.sacks.discard(packet);
    }

    /// A packet reaches the near end while the transmitter is busy, and waits if it may. The link
    /// must have been advanced to now. Returns when it reaches the far end, `None` if never.
    pub fn wait(
        &mut self,
        now: Nanos,
        packet: &mut Packet,
        position: Position,
        next: Hop,
        packets: &mut Packets,
    ) -> Option<Nanos> {
        if self.is_lost(LossPlace::BeforeQueue, now, packet, packets) {
            return None;
        }
        let backlog = Backlog { packets: self.fifo.waiting(), bytes: self.backlog_bytes };
        let full = backlog.is_full(self.limit, packet.size);
        if !self.queue.arrival(now, packet, backlog, full, None) {
            self.drop_packet(packet, packets);
            return None;
        }
        if backlog.packets == 0 {
            self.next_service = self.free_at;
        }
        if let Some(waits) = &mut self.waits {
            waits.push(self.free_at - now);
        }
        // Centuries of backlog on a very slow line: what would leave after the end of time never
        // leaves.
        self.free_at = match &mut self.varying {
            None => self.free_at.saturating_add(self.serializer.transmit(packet.size)),
            Some(varying) => varying.transmit(self.free_at, packet.size),
        };
        let arrives = self.send(self.free_at, false);
        self.integrate(now, backlog.packets);
        self.fifo.push(packets, arrives, packet, position, next);
        self.backlog_bytes += u64::from(packet.size);
        self.counters.queue_max = self.counters.queue_max.max(backlog.packets + 1);
        Some(arrives)
    }

    /// The medium it transmits on, if it needs a turn there.
    #[inline(always)]
    #[must_use]
    pub fn medium(&self) -> Option<usize> {
        self.station.as_ref().map(|station| station.medium)
    }

    /// A packet reaches the near end of a link that needs a turn, and waits for it if it may.
    pub fn queue_up(
        &mut self,
        now: Nanos,
        packet: &mut Packet,
        position: Position,
        next: Hop,
        packets: &mut Packets,
    ) {
        if self.is_lost(LossPlace::BeforeQueue, now, packet, packets) {
            return;
        }
        let Some(station) = &mut self.station else { return };
        let line = station.line(packet);
        let full = station.backlog(line).is_full(self.limit, packet.size);
        let waiting = station.waiting().packets;
        let idle_since =
            (waiting == 0 && station.sending_until <= now).then_some(station.sending_until);
        // What waits before a router's law is its own class.
        if !self.queue.arrival(now, packet, station.backlog(0), full, idle_since) {
            self.drop_packet(packet, packets);
            return;
        }
        // Until it is sent the time of arrival is that at this end.
        station.push(line, Transit { arrives: now, packet: *packet, position, next });
        self.queue_stood(now, waiting);
    }

    /// When it may try to transmit; `None` where nothing waits for its turn.
    #[must_use]
    pub fn tries_at(&self) -> Option<Nanos> {
        self.station.as_ref().and_then(|station| station.tries_at())
    }

    /// It is its turn: the next packet goes into service. Returns when the line falls free.
    pub fn start(&mut self, now: Nanos, packets: &mut Packets) -> Nanos {
        let Some(mut transit) = self.next_in_turn(now) else { return now };
        if let Some(waits) = &mut self.waits {
            waits.start(transit.arrives, now);
        }
        let size = transit.packet.size;
        // Fractions of a nanosecond are carried while it goes on sending, as where packets need no
        // turn. On a line so fast that a packet takes less than one, it may take none.
        let goes_on = self.counters.sent_packets > 0
            && self.station.as_ref().is_some_and(|s| s.sending_until == now);
        let free_at = match &mut self.varying {
            Some(varying) => varying.transmit(now, size),
            None if goes_on => now.saturating_add(self.serializer.transmit(size)),
            None => now.saturating_add(self.serializer.transmit_first(size)),
        };
        transit.arrives = self.send(free_at, true);
        self.counters.sent_bytes += u64::from(transit.packet.size);
        self.counters.sent_packets += 1;
        let law_bytes = self.station.as_mut().map_or(0, |station| {
            station.sending_until = free_at;
            station.backlog(0).bytes
        });
        self.queue.departure(now, &mut transit.packet, law_bytes);
        self.fifo.push_served(
            packets,
            transit.arrives,
            &transit.packet,
            transit.position,
            transit.next,
        );
        free_at
    }

    /// The next packet collides; returns how often it has.
    pub fn collide(&mut self) -> Option<u32> {
        let station = self.station.as_mut()?;
        station.collisions += 1;
        Some(station.collisions)
    }

    /// It does not try before this.
    pub fn back_off(&mut self, until: Nanos) {
        if let Some(station) = &mut self.station {
            station.ready_at = until;
        }
    }

    /// What it has just begun to send ends a slot before this: until then others go first, if it
    /// yields.
    pub fn leave_a_slot(&mut self, until: Nanos) {
        if let Some(station) = self.station.as_mut().filter(|station| station.yields) {
            station.ready_at = until;
        }
    }

    /// The next packet is not sent at all.
    pub fn give_up(&mut self, now: Nanos, packets: &mut Packets) {
        if let Some(transit) = self.next_in_turn(now) {
            self.counters.lost += 1;
            packets.sacks.discard(&transit.packet);
        }
    }

    /// Takes the next packet out of the lines that wait for a turn.
    fn next_in_turn(&mut self, now: Nanos) -> Option<Transit> {
        let station = self.station.as_mut()?;
        let waiting = station.waiting().packets;
        let transit = station.take()?;
        station.collisions = 0;
        self.queue_stood(now, waiting);
        Some(transit)
    }

    /// Until `to` so many packets have waited for a turn. One whose turn has come in the same
    /// instant has not waited.
    fn queue_stood(&mut self, to: Nanos, waiting: u64) {
        if to > self.counters.integrated_to {
            self.counters.queue_max = self.counters.queue_max.max(waiting);
        }
        self.integrate(to, waiting);
    }

    /// Makes up for the departures until `now`.
    #[inline(always)]
    pub fn advance(&mut self, now: Nanos, packets: &mut Packets) {
        while self.next_service <= now {
            self.serve(packets);
        }
    }

    /// The packet that has waited longest goes into service.
    #[inline(never)]
    fn serve(&mut self, packets: &mut Packets) {
        let starts = self.next_service;
        let waiting = self.fifo.waiting();
        self.integrate(starts, waiting);
        let transit = self.fifo.dequeue(packets);
        let sent = match &mut self.cable {
            None => transit.arrives - self.delay,
            Some(cable) => cable.serve(),
        };
        // The line is busy from one waiting packet to the next.
        self.next_service = if waiting > 1 { sent } else { Nanos::MAX };
        let size = u64::from(transit.packet.size);
        self.backlog_bytes -= size;
        self.counters.sent_bytes += size;
        self.counters.sent_packets += 1;
        if let Some(waits) = &mut self.waits {
            waits.serve();
        }
        self.queue.departure(starts, &mut transit.packet, self.backlog_bytes);
    }

    /// The packet that reaches the far end next, if it has gone into service.
    #[inline(always)]
    #[must_use]
    pub fn next_on_the_way<'a>(&self, packets: &'a Packets) -> Option<&'a Transit> {
        self.fifo.first_dequeued(packets)
    }

    /// The packet that [`Link::next_on_the_way`] shows has reached the far end; returns whether it
    /// got there, or was lost.
    #[inline(always)]
    pub fn deliver(&mut self, transit: &Transit, packets: &mut Packets) -> bool {
        self.fifo.remove(packets);
        !self.is_lost(LossPlace::AfterQueue, transit.arrives, &transit.packet, packets)
    }

    /// Moves all packets that are on the way to the end of a list.
    pub fn move_on(&mut self, packets: &mut Packets, list: &mut Vec<Transit>) {
        self.fifo.move_dequeued(packets, list);
    }

    /// Keeps packets that have passed a transmitter elsewhere until they reach the far end.
    pub fn hold_all(&mut self, packets: &mut Packets, list: &[Transit]) {
        self.fifo.append_dequeued(packets, list);
    }

    /// When the packet that has waited longest goes into service; never if none waits.
    #[must_use]
    pub fn next_service(&self) -> Nanos {
        self.next_service
    }

    /// When the next packet reaches the far end; never if there is none.
    #[inline(always)]
    #[must_use]
    pub fn next_arrival(&self, packets: &Packets) -> Nanos {
        self.fifo.first(packets).map_or(Nanos::MAX, |transit| transit.arrives)
    }

    /// Wire bytes sent until `now`, the packet in service with the part that has left; up to date
    /// after `advance`.
    #[must_use]
    pub fn served_bytes(&self, now: Nanos) -> f64 {
        let service_ends = self
            .station
            .as_ref()
            .map_or(self.next_service.min(self.free_at), |station| station.sending_until);
        let unsent = match &self.varying {
            _ if service_ends <= now => 0.0,
            None => capacity_bytes(self.rate_bps, service_ends - now),
            Some(varying) => varying.capacity_bytes(now, service_ends),
        };
        // As if framing came last.
        self.counters.sent_bytes as f64 - (unsent - f64::from(self.framing)).max(0.0)
    }

    /// Counters until `now`, to which the link has been advanced.
    pub fn counters(&mut self, now: Nanos) -> &Counters {
        self.integrate(now, self.backlog().packets);
        &self.counters
    }

    /// Largest queue since the last call, packets; the present one at least.
    pub fn take_queue_max(&mut self) -> u64 {
        let waiting = self.backlog().packets;
        std::mem::replace(&mut self.counters.queue_max, waiting).max(waiting)
    }

    /// From now on waiting times are counted; the link has been advanced to now.
    pub fn measure(&mut self, now: Nanos) {
        let waiting = if self.station.is_some() { 0 } else { self.backlog().packets };
        self.waits = Some(Box::new(Waits::new(now, self.counters.sent_packets, waiting)));
    }

    /// The waiting times since then, and no more are counted; the link has been advanced to now.
    pub fn take_waits(&mut self) -> Option<Spread> {
        Some(self.waits.take()?.spread(self.counters.sent_packets))
    }

    /// The packets that have gone into service and not yet reached the far end, the first to get
    /// there first, each with the time when its last bit left: of these, those that get there at
    /// `from` or later.
    pub fn on_the_way<'a>(
        &'a self,
        packets: &'a Packets,
        from: Nanos,
    ) -> impl Iterator<Item = (Nanos, &'a Transit)> {
        let (before, rest) = self.fifo.dequeued_from(packets, from);
        let mut sent = self.cable.as_ref().map(|cable| cable.on_the_way().skip(before));
        rest.map(move |transit| {
            let sent = sent.as_mut().and_then(Iterator::next);
            (sent.unwrap_or_else(|| transit.arrives - self.delay), transit)
        })
    }

    /// The queue discipline.
    #[must_use]
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// What waits.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        match &self.station {
            None => Backlog { packets: self.fifo.waiting(), bytes: self.backlog_bytes },
            Some(station) => station.waiting(),
        }
    }

    /// Until `to` so many packets have been `waiting`.
    #[inline(always)]
    fn integrate(&mut self, to: Nanos, waiting: u64) {
        // A run that is broken off may have links that are a little ahead of it.
        let length = to.saturating_sub(self.counters.integrated_to);
        self.counters.queue_integral += u128::from(waiting) * u128::from(length);
        self.counters.integrated_to = to;
    }
}
