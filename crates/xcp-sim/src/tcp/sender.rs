//! The sending end: puts window, recovery, timer, pacing and limits together.
//!
//! Every ACK goes through the same steps: RTT sample and XCP feedback, the scoreboard, recovery's
//! verdict, the window's growth, the timer, and then `transmit`, the only place that decides
//! whether another segment may go. The retransmission timer restarts on every ACK for new data (RFC
//! 6298 §5.3) and on a fast retransmission (Linux and ns-2 do; with RTO just above the RTT,
//! recovery would else often end in a timeout); restarting moves a number, whoever drives the
//! sender keeps one event and asks `next_timer` again when that comes.

use super::config::SenderConfig;
use super::congestion::{Acked, Congestion, Control};
use super::counts::{Counts, SenderStats};
use super::pacing::Pacer;
use super::recovery::{Next, Recovery, Step};
use super::rtt::Rtt;
use crate::packet::{Ack, Body, Outbox, Packet, SackBlocks, SackId};
use xcp_engine::ForwardHeader;
use xcp_model::units::Nanos;

/// Whether the connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Idle,
    SynSent { repeated: bool },
    Established,
}

/// A TCP sender.
///
/// Fields in the order of their use, and 100,000 flows in mind: what every ACK touches comes first,
/// in as few cache lines as it takes, and what a connection without losses does not need takes no
/// room (`recovery`).
#[derive(Debug, Clone)]
#[repr(C)]
pub struct Sender {
    /// First segment not acknowledged.
    una: u64,
    /// First segment never sent.
    nxt: u64,
    /// First segment beyond the transfer.
    end: u64,
    /// First segment of the transfer that does not exist, whatever `stop` did to `end`.
    transfer: u64,
    /// When the retransmission timer expires; `u64::MAX` while it is off.
    deadline: Nanos,
    /// When pacing lets the next packet go; `u64::MAX` if none waits for that.
    wake: Nanos,
    /// Segments that the receiver's window and the send buffer allow above `una`.
    buffers: u32,
    /// Segments the send buffer allows above `una`.
    send_buffer: u32,
    flow: u32,
    /// A full data packet on the wire, bytes.
    full_size: u16,
    /// The transfer's last packet, bytes.
    last_size: u16,
    congestion: Congestion,
    rtt: Rtt,
    recovery: Recovery,
    counts: Counts,
    pacer: Pacer,
    /// First outstanding segment at the last timeout.
    timed_out_at: u64,
    /// When the whole transfer was acknowledged; `u64::MAX` before.
    completed_at: Nanos,
    syn_size: u16,
    handshake: bool,
    connection: Connection,
    /// Whether it was the window (or pacing, its other face) that ended the last round of
    /// transmissions.
    limited: bool,
}

impl Sender {
    /// A sender that has not started.
    #[must_use]
    pub fn new(config: &SenderConfig) -> Self {
        let payload = u64::from(config.payload);
        let (transfer, last) = match config.bytes {
            u64::MAX => (u64::MAX, payload),
            bytes => (
                bytes.div_ceil(payload),
                if bytes % payload == 0 { payload } else { bytes % payload },
            ),
        };
        Sender {
            una: 0,
            nxt: 0,
            end: transfer,
            transfer,
            deadline: Nanos::MAX,
            wake: Nanos::MAX,
            buffers: config.peer_window.min(config.send_buffer),
            send_buffer: config.send_buffer,
            flow: config.flow,
            full_size: (config.overhead + config.payload) as u16,
            last_size: (u64::from(config.overhead) + last) as u16,
            congestion: Congestion::new(config),
            rtt: Rtt::new(config.rto_min, config.rto_policy),
            recovery: Recovery::new(config.recovery),
            counts: Counts::default(),
            pacer: Pacer::new(config.paced),
            timed_out_at: u64::MAX,
            completed_at: Nanos::MAX,
            syn_size: config.syn_bytes,
            handshake: config.handshake,
            connection: Connection::Idle,
            limited: true,
        }
    }

    /// Opens the connection: a SYN, or without handshake the first window.
    pub fn start(&mut self, now: Nanos, out: &mut impl Outbox) {
        if self.connection != Connection::Idle {
            return;
        }
        if self.handshake {
            self.connection = Connection::SynSent { repeated: false };
            self.send_syn(now, out);
        } else {
            self.connection = Connection::Established;
            self.check_completed(now);
            self.transmit(now, out);
        }
    }

    /// Takes a SYN-ACK or an acknowledgement, `ack` of this packet with its SACK blocks; an ACK for
    /// what was never sent is ignored.
    #[inline]
    pub fn on_ack(
        &mut self,
        now: Nanos,
        packet: &Packet,
        ack: &Ack,
        sack: &SackBlocks,
        out: &mut impl Outbox,
    ) {
        let segments = packet.seq.wrapping_sub(self.una);
        let advances = segments.wrapping_sub(1) < self.nxt - self.una;
        if !(advances && self.recovery.is_open() && ack.sack == SackId::NONE && !ack.syn) {
            self.on_other_ack(now, packet, ack, sack, out);
            return;
        }
        // Nothing is amiss: the whole life of most connections. (Data is outstanding, so the
        // connection stands.)
        self.take_sample(now, packet);
        self.take_feedback(now, ack);
        self.una = packet.seq;
        self.recovery.advanced_open(packet.timestamp);
        self.grow(now, packet, ack, segments, true, false);
        self.take_window(ack);
        self.restart_timer(now);
        self.pacer.plan(self.rtt.srtt(), &self.congestion);
        self.transmit_new(now, out);
    }

    /// Everything but an ACK that advances while nothing is amiss.
    #[inline(never)]
    fn on_other_ack(
        &mut self,
        now: Nanos,
        packet: &Packet,
        ack: &Ack,
        sack: &SackBlocks,
        out: &mut impl Outbox,
    ) {
        if ack.syn {
            self.on_syn_ack(now, packet, ack, out);
            return;
        }
        if self.connection != Connection::Established || packet.seq > self.nxt {
            return;
        }
        let old = self.una;
        let segments = packet.seq.saturating_sub(old);
        let open = self.recovery.is_open();
        if segments > 0 {
            self.take_sample(now, packet);
        }
        // On every ACK, duplicates and late ones included: each carries feedback that no other
        // does.
        self.take_feedback(now, ack);
        if segments > 0 {
            self.una = packet.seq;
            let was_fast = self.recovery.fast();
            let step =
                self.recovery.advanced(old, self.una, packet.timestamp, self.congestion.cwnd());
            let news = ack.sack != SackId::NONE && self.take_sack(packet.seq, sack);
            debug_assert!(!news || self.una < self.nxt);
            self.grow(now, packet, ack, segments, open, was_fast);
            self.take_window(ack);
            self.after_advance(now, step, out);
            if news && !self.recovery.repairing() {
                // RFC 6675 §5: news by SACK make a duplicate ACK "regardless of its status as a
                // cumulative acknowledgment".
                self.on_duplicate(now, packet.timestamp, news, out);
            }
        } else {
            let news = ack.sack != SackId::NONE && self.take_sack(packet.seq, sack);
            self.grow(now, packet, ack, 0, open, self.recovery.fast());
            if packet.seq == old && self.nxt > old {
                self.on_duplicate(now, packet.timestamp, news, out);
            }
        }
        self.pacer.plan(self.rtt.srtt(), &self.congestion);
        self.transmit(now, out);
    }

    #[inline(always)]
    fn take_sample(&mut self, now: Nanos, packet: &Packet) {
        let sample = now.saturating_sub(packet.timestamp);
        self.rtt.sample(sample);
        self.counts.rtt_sample(sample);
    }

    /// Tells the congestion control of an acknowledgement; `open`, `recovering`: as in [`Acked`].
    #[inline(always)]
    fn grow(
        &mut self,
        now: Nanos,
        packet: &Packet,
        ack: &Ack,
        segments: u64,
        open: bool,
        recovering: bool,
    ) {
        self.congestion.acked(&Acked {
            now,
            sent_at: packet.timestamp,
            rtt: (segments > 0).then(|| now.saturating_sub(packet.timestamp)),
            srtt: self.rtt.srtt(),
            segments: segments.min(u64::from(u32::MAX)) as u32,
            acknowledged: self.una,
            sent: self.nxt,
            delivered: self.una + self.recovery.reported(),
            found_lost: self.recovery.found(),
            open,
            returned: ack.returned,
            stamp_ms: ack.stamp_ms,
            limited: self.limited,
            recovering,
        });
    }

    #[inline(always)]
    fn take_feedback(&mut self, now: Nanos, ack: &Ack) {
        if let Congestion::Xcp(xcp) = &mut self.congestion {
            xcp.feedback(now, &ack.returned, self.rtt.srtt(), self.limited);
        }
    }

    #[inline(always)]
    fn take_window(&mut self, ack: &Ack) {
        self.buffers = ack.window.max(1).min(self.send_buffer);
    }

    /// New data was acknowledged.
    #[inline(always)]
    fn restart_timer(&mut self, now: Nanos) {
        if self.una == self.nxt {
            // RFC 6298 §5.2.
            self.deadline = Nanos::MAX;
            self.check_completed(now);
        } else {
            // RFC 6298 §5.3.
            self.deadline = now.saturating_add(self.rtt.rto());
        }
    }

    fn on_duplicate(&mut self, now: Nanos, echo: Nanos, news: bool, out: &mut impl Outbox) {
        let flight = self.flight();
        if self.recovery.duplicate(self.una, self.nxt, echo, news) == Step::Enter {
            self.congestion.lost(flight);
            self.counts.fast_recoveries += 1;
            self.send_first_again(now, out);
            self.deadline = now.saturating_add(self.rtt.rto());
        } else {
            self.repair_again(now, out);
        }
    }

    /// Sends the first segment once more if it was sent again in vain.
    fn repair_again(&mut self, now: Nanos, out: &mut impl Outbox) {
        if self.recovery.first_lost_again(self.una, self.nxt) {
            self.send_any(now, self.una, true, out);
            self.deadline = now.saturating_add(self.rtt.rto());
        }
    }

    fn after_advance(&mut self, now: Nanos, step: Step, out: &mut impl Outbox) {
        let mut restart = true;
        match step {
            Step::Partial { restart_timer } => {
                restart = restart_timer;
                self.send_first_again(now, out);
            }
            Step::Leave { avoid_burst: true } => {
                let outstanding = self.recovery.in_network(self.una, self.nxt);
                // RFC 6582 §3.2 step 3, full acknowledgements, option 1.
                self.congestion
                    .limit(u32::try_from(outstanding).unwrap_or(u32::MAX).max(1).saturating_add(1));
            }
            Step::Leave { avoid_burst: false } | Step::Go | Step::Enter => {}
        }
        if restart || self.una == self.nxt {
            self.restart_timer(now);
        }
        self.repair_again(now, out);
    }

    fn on_syn_ack(&mut self, now: Nanos, packet: &Packet, ack: &Ack, out: &mut impl Outbox) {
        let Connection::SynSent { repeated } = self.connection else { return };
        self.connection = Connection::Established;
        // The echo names the SYN that was answered: a sample even if it was repeated (RFC 7323
        // §4.1).
        self.rtt.sample(now.saturating_sub(packet.timestamp));
        if repeated {
            self.rtt.syn_was_lost();
        }
        self.take_window(ack);
        self.deadline = Nanos::MAX;
        if let Congestion::Xcp(xcp) = &mut self.congestion {
            xcp.feedback(now, &ack.returned, self.rtt.srtt(), false);
        } else if let Congestion::Robust(robust) = &mut self.congestion {
            robust.syn_answered(now, packet, ack);
        }
        self.check_completed(now);
        self.pacer.plan(self.rtt.srtt(), &self.congestion);
        self.transmit(now, out);
    }

    /// To be called when `next_timer` has come; harmless before.
    pub fn on_timer(&mut self, now: Nanos, out: &mut impl Outbox) {
        if self.deadline <= now {
            match self.connection {
                Connection::SynSent { .. } => {
                    self.counts.syn_retransmits += 1;
                    self.connection = Connection::SynSent { repeated: true };
                    self.rtt.expired(None);
                    self.deadline = Nanos::MAX;
                    self.send_syn(now, out);
                }
                _ => self.on_timeout(now, out),
            }
        } else if self.wake <= now {
            self.transmit(now, out);
        }
    }

    fn on_timeout(&mut self, now: Nanos, out: &mut impl Outbox) {
        self.counts.timeouts += 1;
        let flight = self.flight();
        self.congestion.timed_out(flight, self.timed_out_at == self.una);
        let patience = match &mut self.congestion {
            Congestion::Robust(robust) => robust.expired(now),
            _ => None,
        };
        self.timed_out_at = self.una;
        self.recovery.timed_out(self.una, self.nxt);
        // RFC 6298 §5.4 to §5.6: resend the earliest, back off, restart.
        self.rtt.expired(patience);
        self.deadline = now.saturating_add(self.rtt.rto());
        self.pacer.plan(self.rtt.srtt(), &self.congestion);
        self.send_first_again(now, out);
        self.transmit(now, out);
    }

    /// The earliest time `on_timer` has something to do; `u64::MAX`: never.
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Nanos {
        self.deadline.min(self.wake)
    }

    /// No new data from now on. What is outstanding is still repaired; the transfer does not count
    /// as completed unless all of it was sent.
    pub fn stop(&mut self, _now: Nanos) {
        self.end = self.end.min(self.nxt);
        if self.nxt == self.una {
            self.wake = Nanos::MAX;
            if self.connection != Connection::Established {
                // Not even a connection is wanted any more.
                self.connection = Connection::Established;
                self.deadline = Nanos::MAX;
            }
        }
    }

    /// The congestion window, packets.
    #[must_use]
    pub fn cwnd_packets(&self) -> f64 {
        self.congestion.window()
    }

    /// Smoothed RTT; 0 before the first sample.
    #[must_use]
    pub fn srtt(&self) -> Nanos {
        self.rtt.srtt()
    }

    /// What was counted.
    #[must_use]
    pub fn stats(&self) -> SenderStats {
        self.counts.stats(self.nxt)
    }

    /// Data segments sent again.
    #[must_use]
    pub fn retransmits(&self) -> u64 {
        self.stats().retransmits
    }

    /// Expiries of the retransmission timer.
    #[must_use]
    pub fn timeouts(&self) -> u64 {
        self.stats().timeouts
    }

    /// Sum of the RTT samples, nanoseconds.
    #[must_use]
    pub fn rtt_sum(&self) -> u128 {
        self.stats().rtt_sum
    }

    /// Number of RTT samples.
    #[must_use]
    pub fn rtt_samples(&self) -> u64 {
        self.counts.rtt_samples()
    }

    /// When the last byte of a finite transfer was acknowledged.
    #[must_use]
    pub fn completed_at(&self) -> Option<Nanos> {
        (self.completed_at != Nanos::MAX).then_some(self.completed_at)
    }

    /// Whether losses are being repaired: fast recovery, or what follows a timeout.
    #[must_use]
    pub fn in_recovery(&self) -> bool {
        self.recovery.repairing()
    }

    /// Packets taken to be in the network (RFC 6675's pipe; without SACK, what is not acknowledged
    /// less the duplicate ACKs).
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        self.recovery.in_network(self.una, self.nxt)
    }

    /// First segment not acknowledged, first segment never sent.
    #[must_use]
    pub fn sequence(&self) -> (u64, u64) {
        (self.una, self.nxt)
    }

    /// RFC 5681's FlightSize without what limited transmit and inflation sent beyond the window.
    fn flight(&self) -> u32 {
        u32::try_from(self.nxt - self.una).unwrap_or(u32::MAX).min(self.congestion.cwnd())
    }

    fn check_completed(&mut self, now: Nanos) {
        if self.una >= self.transfer && self.completed_at == Nanos::MAX {
            self.completed_at = now;
        }
    }

    /// Enters SACK blocks into the scoreboard; returns whether any says something new.
    fn take_sack(&mut self, base: u64, blocks: &SackBlocks) -> bool {
        if !self.recovery.sack() {
            return false;
        }
        let mut news = 0;
        for block in blocks {
            let Some(from) = base.checked_add(u64::from(block.start)) else { continue };
            let Some(to) = from.checked_add(u64::from(block.length)) else { continue };
            // The first outstanding segment is known to be missing, whatever a late ACK said
            // before.
            let from = from.max(self.una + 1);
            if from < to && to <= self.nxt {
                news += self.recovery.sacked(self.una, from, to);
            }
        }
        news > 0
    }

    /// Sends what window, pacing, buffers and the application allow.
    #[inline(never)]
    fn transmit(&mut self, now: Nanos, out: &mut impl Outbox) {
        if self.connection != Connection::Established {
            return;
        }
        if self.recovery.is_open() {
            self.transmit_new(now, out);
        } else {
            self.transmit_any(now, out);
        }
    }

    /// The same for a connection that stands and misses nothing: there is only new data to send.
    #[inline(always)]
    fn transmit_new(&mut self, now: Nanos, out: &mut impl Outbox) {
        self.wake = Nanos::MAX;
        let window_end = self.una + u64::from(self.congestion.cwnd());
        let end = self.end.min(self.una + u64::from(self.buffers)).min(window_end);
        let sendable = self.sendable();
        let mut segment = self.nxt;
        while segment < end {
            if self.must_wait(now) {
                return;
            }
            self.nxt = segment + 1;
            self.send(now, segment, false, sendable, out);
            segment += 1;
        }
        self.limited = segment >= window_end;
    }

    /// The same for one that may have to repair something.
    #[inline(never)]
    fn transmit_any(&mut self, now: Nanos, out: &mut impl Outbox) {
        self.wake = Nanos::MAX;
        let cwnd = u64::from(self.congestion.cwnd());
        let end = self.end.min(self.una + u64::from(self.buffers));
        loop {
            self.limited = true;
            if self.recovery.outstanding(self.una, self.nxt) >= cwnd {
                return;
            }
            let Some(next) = self.recovery.next_segment(self.una, self.nxt, self.nxt < end) else {
                self.limited = false;
                return;
            };
            if self.must_wait(now) {
                return;
            }
            self.recovery.sent(self.una, self.nxt, next);
            match next {
                Next::New => {
                    self.nxt += 1;
                    self.send_any(now, self.nxt - 1, false, out);
                }
                Next::Again(segment) | Next::Rescue(segment) => {
                    self.send_any(now, segment, true, out)
                }
            }
        }
    }

    /// Whether pacing keeps the next packet back; then the timer is set for it. Pacing is the
    /// window's other face.
    #[inline(always)]
    fn must_wait(&mut self, now: Nanos) -> bool {
        if !self.pacer.enabled() || now >= self.pacer.next() {
            return false;
        }
        self.wake = self.pacer.next();
        self.limited = true;
        true
    }

    /// Sends the first outstanding segment again, regardless of window and pacing.
    fn send_first_again(&mut self, now: Nanos, out: &mut impl Outbox) {
        self.recovery.first_sent_again(self.una, self.nxt);
        self.send_any(now, self.una, true, out);
    }

    #[inline(never)]
    fn send_any(&mut self, now: Nanos, segment: u64, retransmission: bool, out: &mut impl Outbox) {
        self.counts.retransmits += u64::from(retransmission);
        let sendable = self.sendable_while_repairing();
        self.send(now, segment, retransmission, sendable, out);
    }

    /// `sendable`: what goes into XCP's header.
    #[inline(always)]
    fn send(
        &mut self,
        now: Nanos,
        segment: u64,
        retransmission: bool,
        sendable: u32,
        out: &mut impl Outbox,
    ) {
        // The header is written where it stays: copying what has just been written in halves would
        // have to wait for it.
        let mut packet = Packet {
            seq: segment,
            timestamp: now,
            flow: self.flow,
            size: if segment + 1 == self.transfer { self.last_size } else { self.full_size },
            body: Body::Data { header: ForwardHeader::default(), retransmission },
        };
        if let (Body::Data { header, .. }, Congestion::Xcp(xcp)) =
            (&mut packet.body, &mut self.congestion)
        {
            xcp.write_header(now, self.rtt.srtt(), sendable, header);
        } else if let (Body::Data { header, .. }, Congestion::Robust(robust)) =
            (&mut packet.body, &mut self.congestion)
        {
            robust.write_header(now, sendable, header);
            robust.sent(now, segment, retransmission);
        }
        self.pacer.sent(now);
        if self.deadline == Nanos::MAX {
            // RFC 6298 §5.1.
            self.deadline = now.saturating_add(self.rtt.rto());
        }
        out.send(&mut packet);
    }

    fn send_syn(&mut self, now: Nanos, out: &mut impl Outbox) {
        self.deadline = now.saturating_add(self.rtt.rto());
        let mut header = ForwardHeader::default();
        let sendable = self.sendable();
        if let Congestion::Xcp(xcp) = &mut self.congestion {
            xcp.write_header(now, self.rtt.srtt(), sendable, &mut header);
        } else if let Congestion::Robust(robust) = &mut self.congestion {
            robust.write_opening(sendable, &mut header);
        }
        out.send(&mut Packet {
            seq: 0,
            timestamp: now,
            flow: self.flow,
            size: self.syn_size,
            body: Body::Syn { header },
        });
    }

    /// The most that buffers and the application's data let be in the network, packets; `u32::MAX`:
    /// any number.
    #[inline(always)]
    fn sendable(&self) -> u32 {
        let data = self.end - self.una;
        // A buffer without bound has all ones, too.
        data.min(u64::from(self.buffers)) as u32
    }

    /// The same while losses may be under repair. The window does not slide then, so it is what is
    /// in the network, what is lost and yet to be repaired, and the new data that still fits. (Lost
    /// segments count: after a timeout they are all there is to send, and who did not ask for the
    /// window to send them would repair a blackout a few a round trip.)
    fn sendable_while_repairing(&self) -> u32 {
        if !self.recovery.repairing() {
            return self.sendable();
        }
        // A buffer without bound does not fill up with what recovery leaves behind.
        let most = if self.buffers == u32::MAX { u64::MAX } else { u64::from(self.buffers) };
        let fresh = most.min(self.end - self.una).saturating_sub(self.nxt - self.una);
        let present =
            self.recovery.in_network(self.una, self.nxt) + self.recovery.lost_unrepaired(self.una);
        fresh.saturating_add(present).min(u64::from(u32::MAX)) as u32
    }
}
