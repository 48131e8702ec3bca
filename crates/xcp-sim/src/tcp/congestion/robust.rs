//! The robust sender: the engine's, and the times at which segments were sent, of which it wants
//! the newest one's round trip. No arithmetic of the protocol here.
//!
//! 1. Losses and timeouts are repaired by the scenario's recovery; three duplicate ACKs are none of
//!    its business. What is lost counts when that is found, and what has arrived when it is
//!    reported, as in the kernel, not when it is repaired or acknowledged, which may be much later.
//! 2. The sample is the newest segment's that an acknowledgement covers, as the kernel takes it;
//!    RFC 7323's timestamps, by which the timeout goes, give the oldest one's, in which a delayed
//!    acknowledgement's wait is. While something is under repair it is theirs all the same.

use super::{Acked, Control};
use crate::packet::{Ack, Packet};
use crate::tcp::SenderConfig;
use std::cell::Cell;
use std::collections::VecDeque;
use xcp_engine::{Answer, ForwardHeader, RobustSender, Sendable};
use xcp_model::units::{NANOS_PER_SEC, Nanos};

/// The engine's sender.
#[derive(Debug, Clone)]
pub(in crate::tcp) struct RobustWindow {
    engine: RobustSender,
    /// When the segments from `first` on were sent; 0 for those sent again.
    sent: VecDeque<Nanos>,
    first: u64,
    /// As in [`Acked`], of the last one.
    delivered: u64,
    found_lost: u32,
    /// What [`RobustSender::limit`] says; 0 where it may have changed. It is asked for whenever a
    /// packet may go, and changes with acknowledgements.
    limit: Cell<u32>,
}

impl Control for RobustWindow {
    fn new(config: &SenderConfig) -> Self {
        let engine =
            RobustSender::new(config.overhead + config.payload, config.initial_window, config.ids);
        RobustWindow {
            engine,
            sent: VecDeque::new(),
            first: 0,
            delivered: 0,
            found_lost: 0,
            limit: Cell::new(0),
        }
    }

    fn cwnd(&self) -> u32 {
        if self.limit.get() == 0 {
            self.limit.set(self.engine.limit());
        }
        self.limit.get()
    }

    fn window(&self) -> f64 {
        self.engine.window()
    }

    fn pacing_rate(&self) -> Option<f64> {
        self.engine.gap_ns().map(|gap| NANOS_PER_SEC as f64 / gap.max(1) as f64)
    }

    fn acked(&mut self, ack: &Acked) {
        let delivered = ack.delivered - self.delivered;
        let lost = ack.found_lost.wrapping_sub(self.found_lost);
        (self.delivered, self.found_lost) = (ack.delivered, ack.found_lost);
        let newest = self.newest(ack.acknowledged);
        // While there are holes, what is acknowledged now may have arrived long ago; the echo is
        // that of the segment which has just filled one.
        let answered = if ack.open && newest > 0 { newest } else { ack.sent_at };
        self.engine().answered(&Answer {
            now_ns: ack.now,
            sent_ns: ack.sent_at,
            rtt_ns: ack.now.saturating_sub(answered).max(1),
            srtt_ns: ack.srtt,
            returned: ack.returned,
            answers: 1,
            covered: ack.segments,
            delivered: delivered as u32,
            skipped: lost, // this TCP finds all that is skipped lost at once
            missing: lost,
            lost,
            stamp_ms: ack.stamp_ms,
            stamped: true,
            limited: ack.limited,
            unused: [0; 2],
        });
    }

    fn lost(&mut self, _flight: u32) {}

    fn timed_out(&mut self, _flight: u32, _again: bool) {}

    fn limit(&mut self, _: u32) {}
}

impl RobustWindow {
    /// The engine's sender, which is about to change.
    #[inline(always)]
    fn engine(&mut self) -> &mut RobustSender {
        self.limit.set(0);
        &mut self.engine
    }

    /// Writes the header of a packet sent now, as [`super::xcp::XcpWindow`] does.
    pub fn write_header(&mut self, now: Nanos, sendable: u32, header: &mut ForwardHeader) {
        // pacing.rs moves a packet that waits
        self.engine.write_header(now, &Sendable { window_limit: sendable }, false, header);
    }

    /// Writes the header of a SYN.
    pub fn write_opening(&self, sendable: u32, header: &mut ForwardHeader) {
        self.engine.write_opening(&Sendable { window_limit: sendable }, header);
    }

    /// A segment goes.
    pub fn sent(&mut self, now: Nanos, segment: u64, again: bool) {
        if again {
            let index = segment.checked_sub(self.first).and_then(|n| usize::try_from(n).ok());
            if let Some(at) = index.and_then(|index| self.sent.get_mut(index)) {
                *at = 0;
            }
        } else {
            self.sent.push_back(now);
        }
    }

    /// When the newest of the segments before `upto` was sent, of those that no acknowledgement
    /// covered before; 0: unknown, or there are none.
    #[inline(always)]
    fn newest(&mut self, upto: u64) -> Nanos {
        let mut newest = 0;
        while self.first < upto {
            let Some(at) = self.sent.pop_front() else { break };
            self.first += 1;
            newest = at;
        }
        newest
    }

    /// `packet` answers the SYN.
    pub fn syn_answered(&mut self, now: Nanos, packet: &Packet, ack: &Ack) {
        let rtt = now.saturating_sub(packet.timestamp);
        let answer = Answer {
            now_ns: now,
            sent_ns: packet.timestamp,
            rtt_ns: rtt.max(1),
            srtt_ns: rtt,
            covered: 1,
            stamp_ms: ack.stamp_ms,
            stamped: true,
            ..Answer::default()
        };
        self.engine().answered(&answer);
        self.engine().opened(&Answer { returned: ack.returned, answers: 1, ..answer });
    }

    /// The retransmission timer expired. Returns the most that it need wait for next.
    pub fn expired(&mut self, now: Nanos) -> Option<Nanos> {
        self.engine().on_timeout(now);
        self.engine.patience_ns()
    }
}
