//! Equal senders in the fluid model: what they have on the way, how it reaches the routers of the
//! route, how their window moves.

use std::collections::VecDeque;

use crate::network::Class;

use super::router::RouterState;
use super::{Load, Source};

/// What one sender sent in one step.
struct Slot {
    /// When, seconds.
    at: f64,
    load: Load,
    /// What its headers say: RTT over window (seconds per byte), and RTT.
    x: f64,
    rtt: f64,
    /// Least of what routers granted so far, bytes/s per byte.
    granted: f64,
}

/// One class of senders. Slots are numbered from the first ever sent; those before `first` are
/// acknowledged and gone.
pub(super) struct Sender {
    count: f64,
    packet: f64,
    paced: bool,
    start: f64,
    stop: f64,
    /// Bytes that buffers let be on the way.
    bound: f64,
    window: f64,
    rtt: f64,
    base_rtt: f64,
    route: Vec<usize>,
    reach: Vec<f64>,
    slots: VecDeque<Slot>,
    first: usize,
    outstanding: f64,
    /// By router of the route: slots that have arrived, slots that have departed.
    arrived: Vec<usize>,
    departed: Vec<usize>,
    /// And those that had arrived before this step.
    before: Vec<usize>,
}

impl Source for Sender {
    type At = RouterState;

    fn new(class: &Class, start: f64, stop: f64) -> Self {
        Self {
            count: class.count as f64,
            packet: class.packet,
            paced: class.paced,
            start,
            stop,
            bound: class.limit.map_or(f64::INFINITY, |rate| rate / 8.0 * class.rtt),
            window: class.initial_window * class.packet,
            rtt: class.rtt,
            base_rtt: class.rtt,
            route: class.route.clone(),
            reach: class.reach.clone(),
            slots: VecDeque::new(),
            first: 0,
            outstanding: 0.0,
            arrived: vec![0; class.route.len()],
            departed: vec![0; class.route.len()],
            before: vec![0; class.route.len()],
        }
    }

    /// Acknowledgements of what was sent a round trip ago: dw = bytes x granted x T.
    fn hear(&mut self, now: f64, dt: f64, waits: &[f64]) {
        let rtt = self.base_rtt + self.route.iter().map(|&l| waits[l]).sum::<f64>();
        let departed = self.departed.last().copied().unwrap_or(usize::MAX);
        while self.first < departed
            && self.slots.front().is_some_and(|slot| slot.at <= now - rtt + 0.5 * dt)
        {
            let Some(slot) = self.slots.pop_front() else { break };
            self.first += 1;
            self.outstanding -= slot.load.sent;
            self.rtt = now - slot.at;
            if slot.granted.is_finite() {
                self.window += slot.load.bytes() * slot.granted * self.rtt;
                self.window = self.window.clamp(self.packet, self.bound.max(self.packet));
            }
        }
    }

    /// Sends for a step; returns one flow's bytes.
    fn send(&mut self, now: f64, dt: f64) -> f64 {
        if now < self.start || now >= self.stop {
            return 0.0;
        }
        let bytes = if self.paced || now < self.start + self.base_rtt {
            self.window.min(self.bound) / self.rtt * dt
        } else {
            (self.window.min(self.bound) - self.outstanding).max(0.0)
        };
        if bytes > 0.0 {
            self.outstanding += bytes;
            self.slots.push_back(Slot {
                at: now,
                load: Load::new(bytes),
                x: self.rtt / self.window,
                rtt: self.rtt,
                granted: f64::INFINITY,
            });
        }
        bytes
    }

    /// What is on the way reaches queues, and leaves them with what the routers grant.
    fn cross(&mut self, now: f64, dt: f64, waits: &[f64], routers: &mut [RouterState]) {
        self.before.clone_from(&self.arrived);
        let mut waited = 0.0;
        for (hop, &l) in self.route.iter().enumerate() {
            let reached = now - self.reach[hop] - waited + 0.5 * dt;
            let before = if hop == 0 { usize::MAX } else { self.departed[hop - 1] };
            while let Some(slot) = self
                .slots
                .get(self.arrived[hop] - self.first)
                .filter(|s| s.at <= reached && self.arrived[hop] < before)
            {
                routers[l].arrive(self.count * slot.load.bytes(), slot.x, slot.rtt);
                self.arrived[hop] += 1;
            }
            waited += waits[l];
            let left = now - self.reach[hop] - waited + 0.5 * dt;
            while self.departed[hop] < self.arrived[hop] {
                let index = self.departed[hop] - self.first;
                let Some(slot) = self.slots.get_mut(index).filter(|s| s.at <= left) else { break };
                let bytes = self.count * slot.load.bytes();
                slot.granted = routers[l].grant(bytes, slot.x, slot.rtt, slot.granted);
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
