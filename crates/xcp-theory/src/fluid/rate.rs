//! Equal senders whose state is their rate in the fluid model: engine/robust_sender.h where routers
//! govern, W = rate · base.
//!
//! Where this differs from it:
//! 1. There is no bound B by delay: no queue without a router is the narrow one here, which the
//!    model sees to before it begins (`NoFluid::ForeignQueue`).
//! 2. W does not fall below one packet, and base is the round trip of empty queues.
//! 3. What may be in flight besides never holds anybody back.

use std::collections::VecDeque;

use crate::network::Class;

use super::calendar::{CalendarState, Passing};
use super::{Load, Source};

/// Increase goes no further than so many times what the last round delivered, and so many packets.
const CAP: (f64, f64) = (8.0, 4.0);

/// What one sender sent in one step.
struct Slot {
    /// When, seconds.
    at: f64,
    load: Load,
    /// When it reaches the next queue, or, after the last, the sender; what that queue must have
    /// sent before it is its turn.
    next: f64,
    turn: f64,
    /// RTT over window in its headers, seconds per byte.
    x: f64,
    /// What is left of what it asks for, bytes/s per byte.
    granted: f64,
    /// The link that it says limits it, and the last one that lowered what it asks for.
    limited_by: Option<usize>,
    lowered_by: Option<usize>,
}

/// One class of senders. Slots are numbered from the first ever sent; those before `first` are
/// acknowledged and gone.
pub(super) struct RateSender {
    count: f64,
    packet: f64,
    start: f64,
    stop: f64,
    /// Bytes that buffers let be on the way.
    bound: f64,
    window: f64,
    base: f64,
    /// No increase beyond it, bytes; what this round delivered so far, and since when it lasts.
    cap: f64,
    delivered: f64,
    round: f64,
    limited_by: Option<usize>,
    route: Vec<usize>,
    reach: Vec<f64>,
    slots: VecDeque<Slot>,
    first: usize,
    /// By router of the route: slots that have arrived, slots that have departed.
    arrived: Vec<usize>,
    departed: Vec<usize>,
    /// And those that had arrived before this step.
    before: Vec<usize>,
}

impl Source for RateSender {
    type At = CalendarState;

    fn new(class: &Class, start: f64, stop: f64) -> Self {
        Self {
            count: class.count as f64,
            packet: class.packet,
            start,
            stop,
            bound: class.limit.map_or(f64::INFINITY, |rate| rate / 8.0 * class.rtt),
            window: class.initial_window * class.packet,
            base: class.rtt,
            cap: f64::INFINITY,
            delivered: 0.0,
            round: start,
            limited_by: None,
            route: class.route.clone(),
            reach: class.reach.clone(),
            slots: VecDeque::new(),
            first: 0,
            arrived: vec![0; class.route.len()],
            departed: vec![0; class.route.len()],
            before: vec![0; class.route.len()],
        }
    }

    /// Acknowledgements of what was sent a round trip ago: dW = bytes · granted · base.
    fn hear(&mut self, now: f64, dt: f64, _waits: &[f64]) {
        let departed = self.departed.last().copied().unwrap_or(usize::MAX);
        while self.first < departed
            && self.slots.front().is_some_and(|slot| slot.next <= now + 0.5 * dt)
        {
            let Some(slot) = self.slots.pop_front() else { break };
            self.first += 1;
            self.delivered += slot.load.bytes();
            self.limited_by = slot.lowered_by;
            if slot.granted.is_finite() {
                let moved = self.window + slot.load.bytes() * slot.granted * self.base;
                self.window = moved.min(self.cap.max(self.window)).max(self.packet);
            }
            if slot.at >= self.round {
                self.cap = CAP.0 * self.delivered + CAP.1 * self.packet;
                self.delivered = 0.0;
                self.round = now;
            }
        }
    }

    /// Sends for a step; returns one flow's bytes.
    fn send(&mut self, now: f64, dt: f64) -> f64 {
        if now < self.start || now >= self.stop {
            return 0.0;
        }
        let window = self.window.min(self.bound);
        let bytes = window / self.base * dt;
        // What brings the window to the buffer's bound within a round trip.
        let asked = if self.bound.is_finite() {
            (self.bound - window) / window / self.base
        } else {
            f64::INFINITY
        };
        self.slots.push_back(Slot {
            at: now,
            load: Load::new(bytes),
            next: now + self.reach.first().copied().unwrap_or(self.base),
            turn: 0.0,
            x: self.base / window,
            granted: asked,
            limited_by: self.limited_by,
            lowered_by: None,
        });
        bytes
    }

    /// What is on the way reaches queues, and leaves them with what the routers grant.
    fn cross(&mut self, now: f64, dt: f64, _waits: &[f64], routers: &mut [CalendarState]) {
        self.before.clone_from(&self.arrived);
        let (count, rtt) = (self.count, self.base);
        let passing = |slot: &Slot| Passing {
            bytes: count * slot.load.bytes(),
            x: slot.x,
            rtt,
            asked: slot.granted,
            limited_by: slot.limited_by,
        };
        for (hop, &l) in self.route.iter().enumerate() {
            let before = if hop == 0 { usize::MAX } else { self.departed[hop - 1] };
            while self.arrived[hop] < before {
                let index = self.arrived[hop] - self.first;
                let Some(slot) = self.slots.get_mut(index).filter(|s| s.next <= now + 0.5 * dt)
                else {
                    break;
                };
                slot.turn = routers[l].arrive(now, &passing(slot));
                self.arrived[hop] += 1;
            }
            let further = self.reach.get(hop + 1).copied().unwrap_or(self.base) - self.reach[hop];
            while self.departed[hop] < self.arrived[hop] {
                let index = self.departed[hop] - self.first;
                let Some(slot) =
                    self.slots.get_mut(index).filter(|s| s.turn <= routers[l].sent_by(dt))
                else {
                    break;
                };
                let (granted, lowered) = routers[l].grant(&passing(slot));
                slot.granted = granted;
                slot.next = now + further;
                if lowered {
                    slot.lowered_by = Some(l);
                }
                self.departed[hop] += 1;
            }
        }
    }

    fn hops(&self) -> usize {
        self.route.len()
    }

    fn came(&mut self, hop: usize) -> (usize, impl Iterator<Item = &mut Load>) {
        let came = self.before[hop] - self.first..self.arrived[hop] - self.first;
        (self.route[hop], self.slots.range_mut(came).map(|slot| &mut slot.load))
    }
}
