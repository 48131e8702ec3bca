//! Ends of flows that lie. Each is an honest TCP (`tcp/`) with somebody beside it who rewrites what
//! goes out and what comes in: losses, timers, pacing and acknowledgements are as ever, and honest
//! flows know nothing of this file. What may be said is `model::Lies`'s.
//!
//! 1. What a sender's headers say of RTT and window is rewritten as they leave, on SYNs, data and
//!    what is sent again.
//! 2. Feedback is rewritten before the sender takes it. It adds up by the rules of honest feedback:
//!    a sender that takes increases for ten times what they are has its window pulled back by
//!    decreases, unless it ignores those, too.
//! 3. A window that is kept is a bound below and above of the engine's sender
//!    (`tcp/congestion/xcp.rs`); no loss or timeout lowers it.
//! 4. A receiver that forges writes the same feedback into every acknowledgement, with a router's
//!    mark: the sender is honest and believes it. So it does where the time on acknowledgements is
//!    made up: one that hides queues says that each left as soon after the data had as ever; and where
//!    TCP is to blame for all that waits.
//! 5. A source that floods sends datagrams (`datagrams.rs`) with a header that never changes and
//!    asks for all it can.

use xcp_engine::{ForwardHeader, ReturnHeader, Rounding, WAIT_MAX, WireFormat, flags};
use xcp_model::units::Nanos;
use xcp_model::{Claim, Lies};

use crate::packet::{Ack, Body, Outbox, Packet, SackBlocks, SackId};
use crate::tcp::{Receiver, Sender, SenderConfig};

/// Only headers of this format lie; the reader of scenarios sees to that.
const FORMAT: WireFormat = WireFormat::Extended;

/// What headers are made to say.
#[derive(Debug, Clone, Copy)]
struct Claims {
    rtt: Option<Claim<Nanos>>,
    window: Option<Claim<f64>>,
    asks_bps: Option<f64>,
    link: Option<u32>,
}

impl Claims {
    fn of(lies: &Lies) -> Self {
        let Lies { rtt, window, asks_bps, link, .. } = *lies;
        Self { rtt, window, asks_bps, link }
    }

    fn write(&self, header: &mut ForwardHeader) {
        if let Some(bps) = self.asks_bps {
            header.feedback = FORMAT.encode_feedback(bps / 8.0, Rounding::Nearest);
        }
        if let Some(link) = self.link {
            header.flags |= flags::IDS;
            header.bottleneck_id = link;
            header.next_bottleneck_id = link;
        }
        match self.rtt {
            None => {}
            Some(Claim::Is(rtt)) => header.rtt = FORMAT.encode_rtt(rtt),
            // Unknown times anything is unknown.
            Some(Claim::Times(factor)) => {
                header.rtt = header
                    .rtt_ns()
                    .map_or(0, |rtt| FORMAT.encode_rtt((rtt as f64 * factor) as Nanos))
            }
        }
        match self.window {
            None => {}
            Some(Claim::Is(packets)) => header.window = FORMAT.encode_window(packets),
            Some(Claim::Times(factor)) => {
                header.window =
                    FORMAT.encode_window(header.window_packets().unwrap_or(0.0) * factor)
            }
        }
    }
}

/// Where a lying sender's packets go: they are rewritten on the way.
struct Mouth<'a, O> {
    claims: Claims,
    out: &'a mut O,
}

impl<O: Outbox> Outbox for Mouth<'_, O> {
    fn send(&mut self, packet: &mut Packet) {
        if let Body::Syn { header } | Body::Data { header, .. } = &mut packet.body {
            self.claims.write(header);
        }
        self.out.send(packet);
    }

    fn sack(&mut self, blocks: SackBlocks) -> SackId {
        self.out.sack(blocks)
    }
}

/// A sender that lies, or whose receiver does. What its functions return is when its next timer
/// runs out, as [`Sender::next_timer`] has it.
#[derive(Debug)]
pub struct LyingSender {
    honest: Sender,
    claims: Claims,
    increases: f64,
    decreases: f64,
}

impl LyingSender {
    /// A sender that has not started, with an honest one's settings.
    #[must_use]
    pub fn new(mut config: SenderConfig, lies: &Lies) -> Self {
        config.kept_window = lies.cwnd;
        let Lies { increases, decreases, .. } = *lies;
        Self { honest: Sender::new(&config), claims: Claims::of(lies), increases, decreases }
    }

    /// The sender that it makes use of.
    #[must_use]
    pub fn honest(&self) -> &Sender {
        &self.honest
    }

    /// As [`Sender::start`].
    pub fn start(&mut self, now: Nanos, out: &mut impl Outbox) -> Nanos {
        self.honest.start(now, &mut Mouth { claims: self.claims, out });
        self.honest.next_timer()
    }

    /// As [`Sender::on_ack`].
    pub fn on_ack(
        &mut self,
        now: Nanos,
        packet: &Packet,
        ack: &Ack,
        sack: &SackBlocks,
        out: &mut impl Outbox,
    ) -> Nanos {
        let ack = Ack { returned: self.heard(ack.returned), ..*ack };
        self.honest.on_ack(now, packet, &ack, sack, &mut Mouth { claims: self.claims, out });
        self.honest.next_timer()
    }

    /// As [`Sender::on_timer`].
    pub fn on_timer(&mut self, now: Nanos, out: &mut impl Outbox) -> Nanos {
        if self.honest.next_timer() <= now {
            self.honest.on_timer(now, &mut Mouth { claims: self.claims, out });
        }
        self.honest.next_timer()
    }

    /// As [`Sender::stop`].
    pub fn stop(&mut self, now: Nanos) {
        self.honest.stop(now);
    }

    /// What it takes an answer for.
    fn heard(&self, mut returned: ReturnHeader) -> ReturnHeader {
        let value = returned.feedback_value();
        let factor = if value < 0.0 { self.decreases } else { self.increases };
        if factor != 1.0 {
            returned.feedback = FORMAT.encode_feedback(value * factor, Rounding::Nearest);
        }
        returned
    }
}

/// Where a lying receiver's acknowledgements go.
struct Hand<'a, O> {
    /// What they return, where that is a lie.
    feedback: Option<u16>,
    /// How long data seem to have been on their way, where that is one.
    there: Option<Nanos>,
    /// Whether TCP is to blame for that.
    blames: bool,
    out: &'a mut O,
}

impl<O: Outbox> Outbox for Hand<'_, O> {
    fn send(&mut self, packet: &mut Packet) {
        if let Body::Ack(Ack { returned, stamp_ms, .. }) = &mut packet.body {
            if let Some(feedback) = self.feedback {
                returned.feedback = feedback;
                returned.flags |= flags::MARK;
            }
            if self.blames {
                returned.flags |= flags::MARK;
                returned.wait = WAIT_MAX;
            }
            if let Some(there) = self.there {
                *stamp_ms = ((packet.timestamp + there) / 1_000_000) as u32;
            }
        }
        self.out.send(packet);
    }

    fn sack(&mut self, blocks: SackBlocks) -> SackId {
        self.out.sack(blocks)
    }
}

/// A receiver that returns what no router said, hides how long data were on their way, or blames TCP
/// for it. What its functions return is as [`Receiver::next_timer`] has it.
#[derive(Debug)]
pub struct LyingReceiver {
    honest: Receiver,
    feedback: Option<u16>,
    hides: bool,
    blames: bool,
    /// The least time that anything took.
    least: Nanos,
}

impl LyingReceiver {
    /// A receiver that makes use of an honest one.
    #[must_use]
    pub fn new(honest: Receiver, lies: &Lies) -> Self {
        let encode = |bps| FORMAT.encode_feedback(bps as f64 / 8.0, Rounding::Nearest);
        let feedback = lies.returns_bps.map(encode);
        Self { honest, feedback, hides: lies.hides, blames: lies.blames, least: Nanos::MAX }
    }

    /// The receiver that it makes use of.
    #[must_use]
    pub fn honest(&self) -> &Receiver {
        &self.honest
    }

    /// As [`Receiver::on_packet`].
    pub fn on_packet(&mut self, now: Nanos, packet: &Packet, out: &mut impl Outbox) -> Nanos {
        self.least = self.least.min(now.saturating_sub(packet.timestamp));
        let (honest, mut hand) = self.hand(out);
        honest.on_packet(now, packet, &mut hand);
        self.honest.next_timer()
    }

    /// As [`Receiver::on_timer`].
    pub fn on_timer(&mut self, now: Nanos, out: &mut impl Outbox) -> Nanos {
        let (honest, mut hand) = self.hand(out);
        honest.on_timer(now, &mut hand);
        self.honest.next_timer()
    }

    fn hand<'a, O: Outbox>(&'a mut self, out: &'a mut O) -> (&'a mut Receiver, Hand<'a, O>) {
        let Self { honest, feedback, hides, blames, least } = self;
        (honest, Hand { feedback: *feedback, there: hides.then_some(*least), blames: *blames, out })
    }
}

/// What is in the datagrams of a source that lies.
#[must_use]
pub fn datagram(lies: &Lies) -> Body {
    let mut header = ForwardHeader::encode(FORMAT, 0, 0.0, f64::MAX);
    Claims::of(lies).write(&mut header);
    Body::Claim { header, forged: lies.forged }
}
