//! A flow at both its ends: the endpoints, and the bookkeeping that lets one event per endpoint stand for timers that move all the time.

use xcp_scenario::model::{self, Traffic};
use xcp_scenario::units::{NANOS_PER_SEC, Nanos};

use crate::datagrams::Datagrams;
use crate::rng::{Purpose, Stream};
use crate::tcp::{Receiver, ReceiverConfig, Sender, SenderConfig};

/// A flow.
#[derive(Debug)]
pub struct Flow {
    /// When it really starts, jitter included.
    pub start: Nanos,
    /// Its endpoints.
    pub ends: Ends,
}

/// The two endpoints.
#[derive(Debug)]
pub enum Ends {
    /// A TCP connection.
    Tcp {
        /// Sends data.
        sender: Sender,
        /// Acknowledges it.
        receiver: Receiver,
        /// The sender's pending event.
        sender_alarm: Alarm,
        /// The receiver's pending event.
        receiver_alarm: Alarm,
    },
    /// UDP.
    Udp {
        /// Sends datagrams.
        source: Datagrams,
        /// Payload that came through, bytes.
        delivered_bytes: u64,
        /// Payload of one datagram, bytes.
        payload: u64,
    },
}

/// The one event in the queue that stands for an endpoint's timers. A timer that moves later costs nothing: the event goes off too early,
/// is found out, and is set anew. Only a timer that moves earlier needs another event; the one it overtakes is stale and ignored.
#[derive(Debug)]
pub struct Alarm {
    pending: Nanos,
}

impl Default for Alarm {
    fn default() -> Self {
        Self { pending: Nanos::MAX }
    }
}

impl Alarm {
    /// Told when the endpoint next wants to be woken; returns the time of a new event if one is needed.
    pub fn set(&mut self, wanted: Nanos) -> Option<Nanos> {
        if wanted >= self.pending {
            return None;
        }
        self.pending = wanted;
        Some(wanted)
    }

    /// An event has gone off; `false` if it is stale.
    pub fn ring(&mut self, now: Nanos) -> bool {
        if self.pending != now {
            return false;
        }
        self.pending = Nanos::MAX;
        true
    }
}

/// What a flow has counted since the beginning of the run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Payload delivered in order, bytes.
    pub delivered_bytes: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Sum of the RTT samples, nanoseconds.
    pub rtt_sum: u128,
    /// Number of RTT samples.
    pub rtt_samples: u64,
}

impl Flow {
    /// Builds flow number `index` of a scenario.
    #[must_use]
    pub fn new(spec: &model::Flow, index: usize, seed: u64) -> Self {
        let number = index as u32;
        let size = spec.packet_bytes as u16;
        let start = spec.start + Stream::new(seed, Purpose::Start, index).below(spec.start_jitter);
        let ends = match &spec.traffic {
            Traffic::Tcp(tcp) => Ends::Tcp {
                sender: Sender::new(&SenderConfig::new(number, tcp, size)),
                receiver: Receiver::new(&ReceiverConfig::new(number, tcp, size)),
                sender_alarm: Alarm::default(),
                receiver_alarm: Alarm::default(),
            },
            Traffic::Udp(pattern) => Ends::Udp {
                source: Datagrams::new(number, size, pattern, Stream::new(seed, Purpose::Datagrams, index)),
                delivered_bytes: 0,
                payload: Datagrams::payload(size),
            },
        };
        Self { start, ends }
    }

    /// Counters so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        match &self.ends {
            Ends::Tcp { sender, receiver, .. } => Totals {
                delivered_bytes: receiver.delivered_bytes(),
                retransmits: sender.retransmits(),
                timeouts: sender.timeouts(),
                rtt_sum: sender.rtt_sum(),
                rtt_samples: sender.rtt_samples(),
            },
            Ends::Udp { delivered_bytes, .. } => Totals { delivered_bytes: *delivered_bytes, ..Totals::default() },
        }
    }

    /// Congestion window now, packets; `None` for a flow without one.
    #[must_use]
    pub fn cwnd_packets(&self) -> Option<f64> {
        match &self.ends {
            Ends::Tcp { sender, .. } => Some(sender.cwnd_packets()),
            Ends::Udp { .. } => None,
        }
    }

    /// Smoothed RTT now, seconds; `None` before the first sample.
    #[must_use]
    pub fn srtt_seconds(&self) -> Option<f64> {
        match &self.ends {
            Ends::Tcp { sender, .. } if sender.srtt() > 0 => Some(sender.srtt() as f64 / NANOS_PER_SEC as f64),
            _ => None,
        }
    }

    /// When a finite transfer was completely acknowledged.
    #[must_use]
    pub fn completed_at(&self) -> Option<Nanos> {
        match &self.ends {
            Ends::Tcp { sender, .. } => sender.completed_at(),
            Ends::Udp { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However a timer moves, it goes off when it is due and only then.
        #[test]
        fn alarm_rings_when_due(moves in prop::collection::vec((1u64..20, 1u64..40), 1..60)) {
            let mut alarm = Alarm::default();
            let mut events = crate::events::Events::default();
            let (mut now, mut due) = (0, Nanos::MAX);
            for (pause, after) in moves {
                // Events until the next move.
                let until = now + pause;
                while events.next_time() <= until {
                    let (at, _) = events.pop().unwrap();
                    prop_assert!(at <= due, "missed {due}");
                    if alarm.ring(at) {
                        if at == due { due = Nanos::MAX; }
                        if let Some(t) = alarm.set(due) { events.push(t, 0); }
                    }
                }
                prop_assert!(due > until, "due {due} went by");
                now = until;
                due = now + after;
                if let Some(t) = alarm.set(due) { events.push(t, 0); }
            }
        }
    }
}
