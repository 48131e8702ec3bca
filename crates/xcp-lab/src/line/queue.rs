//! A first-in-first-out queue before a transmitter whose rate is known in advance. Everything about
//! a packet is known when it comes: when the transmitter is through with those before it, and so
//! when it leaves; nothing has to be kept but the times at which the waiting ones go into service.
//!
//! Who may enter, RED's arithmetic and exact transmission times are the simulator's too
//! (`xcp_elements`).

use std::collections::VecDeque;

use xcp_elements::{Backlog, Red, Serializer, Varying};
use xcp_model::rng::{Purpose, Stream};
use xcp_model::units::Nanos;
use xcp_model::{Discipline, Limit};

use super::config::QueueConfig;

/// Queue and transmitter.
#[derive(Debug)]
pub struct Queue {
    limit: Limit,
    red: Option<Red>,
    transmitter: Transmitter,
    overhead_bytes: i32,
    /// When the transmitter has sent all it was given.
    free_at: Nanos,
    waiting: VecDeque<Waiting>,
    state: QueueState,
}

/// What says how long a packet takes.
#[derive(Debug)]
enum Transmitter {
    Constant(Serializer),
    Varying(Varying),
}

impl Transmitter {
    /// When a packet has been sent that begins to be sent at `starts`; `idle` if the transmitter
    /// had nothing to send just before.
    fn transmit(&mut self, starts: Nanos, idle: bool, bytes: u16) -> Nanos {
        match self {
            Self::Constant(line) => starts.saturating_add(if idle {
                line.transmit_first(bytes)
            } else {
                line.transmit(bytes)
            }),
            Self::Varying(line) => line.transmit(starts, bytes),
        }
    }
}

/// A packet before its service.
#[derive(Debug)]
struct Waiting {
    service_starts: Nanos,
    bytes: u16,
}

/// What waits, the packet in service not counted, and what has waited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueState {
    /// Up to when this is true, `CLOCK_MONOTONIC`.
    pub as_of: Nanos,
    /// Packets that wait.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Most packets since the last look.
    pub max_packets: u64,
    /// Packets that were let in, those in service and gone included.
    pub taken_packets: u64,
    /// Their bytes.
    pub taken_bytes: u64,
    /// Waiting packets integrated over time, packet nanoseconds. Between two looks, the difference
    /// over the time is the mean queue.
    pub integral: u64,
}

impl Queue {
    /// An empty queue, its rate never zero; `zero` is the scenario's time zero on the clock of its
    /// arrivals.
    #[must_use]
    pub fn new(config: &QueueConfig, zero: Nanos, seed: u64, index: usize) -> Self {
        let rate_bps = config.rates.at(0);
        let transmitter = if config.rates.steps().len() > 1 {
            Transmitter::Varying(Varying::new(config.rates.later(zero), 0))
        } else {
            Transmitter::Constant(Serializer::new(rate_bps))
        };
        let red = match &config.queue.discipline {
            Discipline::Red(red) => {
                let random = Stream::new(seed, Purpose::Red, index);
                Some(Red::new(red, rate_bps, random))
            }
            Discipline::DropTail | Discipline::Xcp(_) => None,
        };
        Self {
            limit: config.limit(),
            red,
            transmitter,
            overhead_bytes: config.overhead_bytes,
            free_at: 0,
            waiting: VecDeque::new(),
            state: QueueState::default(),
        }
    }

    /// A frame arrives, not before the one before it. Returns when its last bit leaves; `None` if
    /// it is dropped.
    pub fn arrival(&mut self, now: Nanos, frame_bytes: u32) -> Option<Nanos> {
        self.advance(now);
        let bytes = (i64::from(frame_bytes) + i64::from(self.overhead_bytes))
            .clamp(1, i64::from(u16::MAX)) as u16;
        if now >= self.free_at {
            // An idle transmitter takes the packet whatever the limit.
            if self.red.as_mut().is_some_and(|red| !red.arrival(now, 0, Some(self.free_at), false))
            {
                return None;
            }
            self.take(bytes);
            self.free_at = self.transmitter.transmit(now, now > self.free_at, bytes);
            return Some(self.free_at);
        }
        let backlog = Backlog { packets: self.state.packets, bytes: self.state.bytes };
        let full = backlog.is_full(self.limit, bytes);
        let taken =
            self.red.as_mut().map_or(!full, |red| red.arrival(now, backlog.packets, None, full));
        if !taken {
            return None;
        }
        self.take(bytes);
        self.waiting.push_back(Waiting { service_starts: self.free_at, bytes });
        self.state.packets += 1;
        self.state.bytes += u64::from(bytes);
        self.state.max_packets = self.state.max_packets.max(self.state.packets);
        self.free_at = self.transmitter.transmit(self.free_at, false, bytes);
        Some(self.free_at)
    }

    fn take(&mut self, bytes: u16) {
        self.state.taken_packets += 1;
        self.state.taken_bytes += u64::from(bytes);
    }

    /// The queue at this time, which is not before any earlier one; the maximum begins anew.
    pub fn look(&mut self, now: Nanos) -> QueueState {
        self.advance(now);
        let seen = self.state;
        self.state.max_packets = seen.packets;
        seen
    }

    /// Whether the transmitter has sent all it was given.
    #[must_use]
    pub fn is_idle(&self, now: Nanos) -> bool {
        now >= self.free_at
    }

    /// Makes up for what has gone into service until `now`.
    fn advance(&mut self, now: Nanos) {
        while let Some(first) = self.waiting.front().filter(|first| first.service_starts <= now) {
            let (starts, bytes) = (first.service_starts, first.bytes);
            self.integrate(starts);
            self.waiting.pop_front();
            self.state.packets -= 1;
            self.state.bytes -= u64::from(bytes);
        }
        self.integrate(now);
    }

    fn integrate(&mut self, to: Nanos) {
        let length = to.saturating_sub(self.state.as_of);
        // 2^64 packet nanoseconds: 10000 packets for three weeks.
        self.state.integral =
            self.state.integral.wrapping_add(self.state.packets.wrapping_mul(length));
        self.state.as_of = self.state.as_of.max(to);
    }
}
