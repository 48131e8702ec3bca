//! A part of the network with its endpoints, and the loop that takes the earliest event there and
//! lets it happen.
//!
//! A run is one region, or several that run on processors of their own (`partition.rs` divides,
//! `simulate.rs` keeps them in step). A region knows of the others only that packets leave for them
//! and come from them; both take at least the lookahead. So what happens in a region does not
//! depend on how far the others have come, and a run's results not on how it was divided.

use xcp_model::spread::Spread;
use xcp_model::units::Nanos;

use crate::events::NEVER;
use crate::fifo::Transit;
use crate::flow::{Receiving, Sending, Sink, Source};
use crate::network::{Network, Port};
use crate::packet::{Ack, Body, Packet, SackBlocks, SackId};
use crate::partition::Ends;

/// A region.
#[derive(Debug)]
pub struct Region<'r> {
    /// How far it has come.
    pub now: Nanos,
    /// Its links.
    pub network: Network<'r>,
    /// Where the ends of all flows are.
    pub ends: &'r Ends,
    /// Ends of flows that send from here.
    pub senders: Vec<Sending>,
    /// Ends of flows that receive here.
    pub receivers: Vec<Receiving>,
    /// How many ends that send and that receive there are, or will be when the run is built.
    pub places: [usize; 2],
    /// Links that lead to other regions.
    pub exits: Vec<usize>,
    /// Far ends of links that come from other regions.
    pub entries: Vec<usize>,
    /// RTT samples of the flows that send from here, by group, once they are counted.
    pub round_trips: Vec<Spread>,
}

/// Packets that have left one region and not yet come into the next, in the order in which they
/// will arrive, and their SACK blocks.
#[derive(Debug, Default)]
pub struct Crossing {
    packets: Vec<Transit>,
    sacks: Vec<SackBlocks>,
}

impl Crossing {
    /// When the first of them arrives.
    #[must_use]
    pub fn first_arrival(&self) -> Nanos {
        self.packets.first().map_or(NEVER, |transit| transit.arrives)
    }
}

/// Which of an endpoint's events a timer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timer {
    Sender(usize),
    Receiver(usize),
    /// The flow is told to stop: at its sending end, at its receiving end.
    StopSending(usize),
    StopReceiving(usize),
}

/// The acknowledgement that a packet is, if it has SACK blocks.
fn acknowledgement_with_sack(transit: &mut Transit) -> Option<&mut Ack> {
    match &mut transit.packet.body {
        Body::Ack(ack) if ack.sack != SackId::NONE => Some(ack),
        _ => None,
    }
}

impl Region<'_> {
    /// How many timers the event queue must have for so many endpoints. Events at the same time
    /// happen in this order: links, media, detours, senders, receivers, stops.
    #[must_use]
    pub fn timers(senders: usize, receivers: usize, stops: bool) -> usize {
        (senders + receivers) * if stops { 2 } else { 1 }
    }

    fn timer(&self, number: u32) -> Timer {
        let [senders, receivers] = self.places;
        let ends = senders + receivers;
        match number as usize {
            n if n < senders => Timer::Sender(n),
            n if n < ends => Timer::Receiver(n - senders),
            n if n < ends + senders => Timer::StopSending(n - ends),
            n => Timer::StopReceiving(n - ends - senders),
        }
    }

    fn number(&self, timer: Timer) -> u32 {
        let [senders, receivers] = self.places;
        let ends = senders + receivers;
        (match timer {
            Timer::Sender(n) => n,
            Timer::Receiver(n) => senders + n,
            Timer::StopSending(n) => ends + n,
            Timer::StopReceiving(n) => ends + senders + n,
        }) as u32
    }

    /// Sets when a sending end starts.
    pub fn start(&mut self, sender: usize) {
        let timer = self.number(Timer::Sender(sender));
        self.network.events.set_timer(timer, self.senders[sender].start);
    }

    /// Sets when a sending end is told to stop.
    pub fn stop_sending(&mut self, sender: usize, at: Nanos) {
        let timer = self.number(Timer::StopSending(sender));
        self.network.events.set_timer(timer, at);
    }

    /// Sets when a receiving end is to note what has been delivered.
    pub fn stop_receiving(&mut self, receiver: usize, at: Nanos) {
        let timer = self.number(Timer::StopReceiving(receiver));
        self.network.events.set_timer(timer, at);
    }

    /// When something happens here next, or may be on its way to another region.
    #[must_use]
    pub fn next(&self) -> Nanos {
        let events = self.network.events.first().0;
        self.exits
            .iter()
            .map(|&link| self.network.links[link].next_service())
            .fold(events, Nanos::min)
    }

    /// Lets happen what happens before `until`, but at most `steps` events; returns whether that
    /// was all of it.
    pub fn run(&mut self, until: Nanos, steps: u32) -> bool {
        for _ in 0..steps {
            let (now, source) = self.network.events.first();
            if now >= until {
                return true;
            }
            self.now = now;
            match self.network.events.timer(source) {
                None if (source as usize) < self.network.links.len() => {
                    self.arrival(source as usize)
                }
                None => {
                    let number = source as usize - self.network.links.len();
                    match number.checked_sub(self.network.media.len()) {
                        None => self.network.turn(now, number),
                        Some(detour) => self.late_arrival(detour),
                    }
                }
                Some(number) => match self.timer(number) {
                    Timer::Sender(n) => self.sender_event(n),
                    Timer::Receiver(n) => self.receiver_event(n),
                    Timer::StopSending(n) => self.stop(n),
                    Timer::StopReceiving(n) => self.note_delivered(n),
                },
            }
        }
        false
    }

    /// Takes in what has come from other regions.
    pub fn enter(&mut self, entry: usize, crossing: &mut Crossing) {
        let link = self.entries[entry];
        let Network { links, packets, events, .. } = &mut self.network;
        if links[link].is_empty() {
            events.set_link(link as u32, crossing.first_arrival());
        }
        if !crossing.sacks.is_empty() {
            let mut sacks = crossing.sacks.drain(..);
            for ack in crossing.packets.iter_mut().filter_map(acknowledgement_with_sack) {
                ack.sack = sacks.next().map_or(SackId::NONE, |blocks| packets.sacks.keep(blocks));
            }
        }
        links[link].hold_all(packets, &crossing.packets);
        crossing.packets.clear();
    }

    /// Hands over what has left for another region before `until`.
    pub fn leave(&mut self, exit: usize, until: Nanos, crossing: &mut Crossing) {
        let Network { links, packets, .. } = &mut self.network;
        let link = &mut links[self.exits[exit]];
        link.advance(until.saturating_sub(1), packets);
        let before = crossing.packets.len();
        link.move_on(packets, &mut crossing.packets);
        if !packets.sacks.is_empty() {
            for ack in crossing.packets[before..].iter_mut().filter_map(acknowledgement_with_sack) {
                crossing.sacks.push(packets.sacks.take(ack.sack));
            }
        }
    }

    /// A packet reaches a link's far end.
    #[inline(always)]
    fn arrival(&mut self, number: usize) {
        let Network { links, packets, .. } = &mut self.network;
        let link = &mut links[number];
        // Departures can be made up for when they matter: for this packet's own sake, and for those
        // that could go ahead.
        if link.feeds || link.next_on_the_way(packets).is_none() {
            link.advance(self.now, packets);
        }
        if let Some(transit) = link.next_on_the_way(packets) {
            let mut transit = *transit;
            let extra = link.detour.as_mut().map_or(0, |detour| detour.falls_back_by());
            if link.deliver(&transit, packets) {
                if extra > 0 {
                    self.network.fall_back(number, extra, transit);
                } else {
                    self.go_on(&mut transit);
                }
            }
        }
        if self.network.links[number].feeds {
            self.network.go_ahead(number);
        }
        let Network { links, packets, events, .. } = &mut self.network;
        events.set_link(number as u32, links[number].next_arrival(packets));
    }

    /// A packet that had fallen back goes on.
    fn late_arrival(&mut self, detour: usize) {
        if let Some(mut transit) = self.network.next_of_detour(self.now, detour) {
            self.go_on(&mut transit);
        }
    }

    /// A packet goes on from a link's far end.
    #[inline(always)]
    fn go_on(&mut self, transit: &mut Transit) {
        match transit.next.link() {
            Some(next) => {
                self.network.forward(self.now, next, transit.position, &mut transit.packet);
            }
            None => self.receive(&transit.packet),
        }
    }

    /// From now on waiting times and round trips are counted.
    pub fn measure(&mut self, now: Nanos) {
        let groups =
            self.senders.iter().map(|sending| sending.group as usize + 1).max().unwrap_or(0);
        self.round_trips = vec![Spread::default(); groups];
        for link in &mut self.network.links {
            link.measure(now);
        }
    }

    /// A packet has come to the end of its route.
    #[inline(never)]
    fn receive(&mut self, packet: &Packet) {
        let flow = packet.flow as usize;
        if let Body::Ack(ack) = &packet.body {
            let number = self.ends.sending(flow).index;
            let blocks = self.network.packets.sacks.take(ack.sack);
            let sending = &mut self.senders[number as usize];
            let mut port = Port { now: self.now, route: sending.route, network: &mut self.network };
            let samples = sending.rtt_samples();
            let next = match &mut sending.source {
                Source::Tcp(sender) => {
                    sender.on_ack(self.now, packet, ack, &blocks, &mut port);
                    sender.next_timer()
                }
                Source::Liar(liar) => liar.on_ack(self.now, packet, ack, &blocks, &mut port),
                Source::Udp(_) => return,
            };
            if let Some(spread) = self.round_trips.get_mut(sending.group as usize)
                && sending.rtt_samples() > samples
            {
                spread.add(self.now.saturating_sub(packet.timestamp));
            }
            self.network.events.set_timer_earlier(number, next);
            return;
        }
        let number = self.ends.receiving(flow).index as usize;
        let receiving = &mut self.receivers[number];
        let mut port = Port { now: self.now, route: receiving.route, network: &mut self.network };
        let next = match &mut receiving.sink {
            Sink::Tcp(receiver) => {
                receiver.on_packet(self.now, packet, &mut port);
                receiver.next_timer()
            }
            Sink::Liar(liar) => liar.on_packet(self.now, packet, &mut port),
            Sink::Udp { delivered_bytes, payload } => {
                *delivered_bytes += *payload;
                return;
            }
        };
        self.network.events.set_timer_earlier((self.places[0] + number) as u32, next);
    }

    /// A sender starts, or one of its timers has run out.
    fn sender_event(&mut self, number: usize) {
        let sending = &mut self.senders[number];
        let mut port = Port { now: self.now, route: sending.route, network: &mut self.network };
        let starting = !std::mem::replace(&mut sending.started, true);
        let next = match &mut sending.source {
            Source::Tcp(sender) => {
                if starting {
                    sender.start(self.now, &mut port);
                } else if sender.next_timer() <= self.now {
                    sender.on_timer(self.now, &mut port);
                }
                sender.next_timer()
            }
            Source::Liar(liar) if starting => liar.start(self.now, &mut port),
            Source::Liar(liar) => liar.on_timer(self.now, &mut port),
            Source::Udp(source) if starting => source.start(self.now).unwrap_or(NEVER),
            Source::Udp(source) => match source.send(self.now) {
                Some((mut packet, next)) => {
                    crate::packet::Outbox::send(&mut port, &mut packet);
                    next.unwrap_or(NEVER)
                }
                None => NEVER,
            },
        };
        self.network.events.set_timer(number as u32, next);
    }

    fn receiver_event(&mut self, number: usize) {
        let timer = self.number(Timer::Receiver(number));
        let receiving = &mut self.receivers[number];
        let mut port = Port { now: self.now, route: receiving.route, network: &mut self.network };
        let next = match &mut receiving.sink {
            Sink::Tcp(receiver) => {
                if receiver.next_timer() <= self.now {
                    receiver.on_timer(self.now, &mut port);
                }
                receiver.next_timer()
            }
            Sink::Liar(liar) => liar.on_timer(self.now, &mut port),
            Sink::Udp { .. } => return,
        };
        self.network.events.set_timer(timer, next);
    }

    fn stop(&mut self, number: usize) {
        self.stop_sending(number, NEVER);
        match &mut self.senders[number].source {
            Source::Tcp(sender) => sender.stop(self.now),
            Source::Liar(liar) => liar.stop(self.now),
            Source::Udp(source) => source.stop(),
        }
    }

    fn note_delivered(&mut self, number: usize) {
        self.stop_receiving(number, NEVER);
        let receiving = &mut self.receivers[number];
        receiving.delivered_when_stopped = Some(receiving.delivered_bytes());
    }
}
