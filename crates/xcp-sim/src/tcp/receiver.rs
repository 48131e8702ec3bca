//! The receiving end: puts segments in order, acknowledges them, and carries XCP's feedback home.
//!
//! 1. Delayed ACKs (RFC 5681 §4.2): every second segment in order, or 40 ms after the first,
//!    Linux's least delay; the RFC allows 500 ms. Linux's quick-ACK phase at the start of a
//!    connection is not modelled.
//! 2. Out of order, duplicate, or filling a hole: acknowledged at once (RFC 5681 §4.2).
//! 3. Echoed timestamp (RFC 7323 §4.3): that of the earliest segment the ACK answers; out-of-order
//!    arrivals leave it as it was.
//! 4. The application reads at once, so the advertised window is the whole buffer from the start;
//!    Linux opens it gradually, which the 2005 XCP study had to work around (`opening.rs`, where
//!    asked for).
//! 5. SACK (RFC 2018): the block just changed first, then the ones reported before it. No DSACK.

use super::bits::Bits;
use super::config::ReceiverConfig;
use super::congestion::engine_format;
use super::opening::Opening;
use crate::packet::{Ack, Body, Outbox, Packet, SackBlock, SackBlocks, SackId};
use xcp_engine::{ForwardHeader, ReturnHeader};
use xcp_model::units::Nanos;

/// How long an ACK may wait.
const DELAY: Nanos = 40_000_000;
/// SACK blocks remembered.
const BLOCKS: usize = 3;
/// Segments this far ahead are nobody's: beyond any window a sender can have.
const HORIZON: u64 = 1 << 31;

/// The time on an acknowledgement: Linux's clock for it has milliseconds.
const fn stamp_ms(now: Nanos) -> u32 {
    (now / 1_000_000) as u32
}

/// A TCP receiver.
///
/// As in the sender, what every packet touches comes first, and what a connection without losses
/// does not need takes no room.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct Receiver {
    /// Next segment expected.
    nxt: u64,
    /// Sums XCP's feedback until the next ACK, where the flow speaks XCP.
    feedback: xcp_engine::Receiver,
    /// What most packets, and most connections, do without.
    rare: Option<Box<Rare>>,
    /// When the delayed ACK must go; `u64::MAX` if none waits.
    deadline: Nanos,
    flow: u32,
    window: u32,
    ack_bytes: u16,
    delayed: bool,
    xcp: bool,
    /// Segments in order not yet acknowledged.
    pending: u32,
    /// Timestamp to echo.
    echo: Nanos,
    bytes: u64,
    payload: u32,
    syn_ack_bytes: u16,
    sack_blocks: u8,
}

/// Segments out of order, and a window that is not simply `window`.
#[derive(Debug, Clone, Default)]
struct Rare {
    early: Early,
    opening: Option<Opening>,
}

/// Segments out of order.
#[derive(Debug, Clone, Default)]
struct Early {
    segments: Bits,
    /// How many.
    count: u64,
    /// End of the highest.
    highest: u64,
    /// Blocks of them, the most recently changed first; empty ones at the end.
    blocks: [(u64, u64); BLOCKS],
}

impl Receiver {
    /// A receiver that has seen nothing.
    #[must_use]
    pub fn new(config: &ReceiverConfig) -> Self {
        let opening = Opening::new(config.opens, config.window, &config.window_changes);
        Receiver {
            nxt: 0,
            feedback: xcp_engine::Receiver::new(
                config.xcp.map_or(xcp_engine::WireFormat::Extended, engine_format),
            ),
            rare: opening
                .map(|opening| Box::new(Rare { early: Early::default(), opening: Some(opening) })),
            deadline: Nanos::MAX,
            flow: config.flow,
            window: config.window,
            ack_bytes: config.ack_bytes,
            delayed: config.delayed_ack,
            xcp: config.xcp.is_some(),
            pending: 0,
            echo: 0,
            bytes: config.bytes,
            payload: config.payload,
            syn_ack_bytes: config.syn_ack_bytes,
            sack_blocks: config.sack_blocks.min(BLOCKS as u8),
        }
    }

    /// Takes a SYN or a data packet; everything else is ignored.
    #[inline]
    pub fn on_packet(&mut self, now: Nanos, packet: &Packet, out: &mut impl Outbox) {
        match &packet.body {
            Body::Data { header, .. }
                if packet.seq == self.nxt && self.rare.is_none() && !self.delayed =>
            {
                // In order and acknowledged at once: nearly all packets of most connections.
                self.nxt += 1;
                self.echo = packet.timestamp;
                let returned =
                    if self.xcp { self.feedback.answer(header) } else { ReturnHeader::default() };
                let (window, sack, stamp_ms) = (self.window, SackId::NONE, stamp_ms(now));
                let ack = Ack { window, returned, sack, syn: false, stamp_ms };
                let (seq, timestamp) = (self.nxt, packet.timestamp);
                out.send(&mut Packet {
                    seq,
                    timestamp,
                    flow: self.flow,
                    size: self.ack_bytes,
                    body: Body::Ack(ack),
                });
            }
            _ => self.on_other_packet(now, packet, out),
        }
    }

    #[inline(never)]
    fn on_other_packet(&mut self, now: Nanos, packet: &Packet, out: &mut impl Outbox) {
        match &packet.body {
            Body::Syn { header } => {
                self.take_header(header);
                self.send_ack(now, packet.timestamp, true, out);
            }
            Body::Data { header, .. } => {
                self.take_header(header);
                self.on_data(now, packet, out);
            }
            Body::Ack(_) | Body::Datagram | Body::Claim { .. } => {}
        }
    }

    fn on_data(&mut self, now: Nanos, packet: &Packet, out: &mut impl Outbox) {
        let seq = packet.seq;
        // RFC 7323 §4.3 (2): a segment that starts at or before the last ACK sent.
        if seq <= self.nxt - u64::from(self.pending) {
            self.echo = packet.timestamp;
        }
        let mut at_once = !self.delayed;
        if seq == self.nxt {
            self.nxt += 1;
            self.pending += 1;
            if let Some(rare) = self.rare.as_mut().filter(|rare| rare.early.count > 0) {
                let end = rare.early.close_gap(self.nxt);
                self.pending += u32::try_from(end - self.nxt).unwrap_or(u32::MAX);
                self.nxt = end;
                if rare.early.count == 0 {
                    rare.early = Early::default();
                    if rare.opening.is_none() {
                        self.rare = None;
                    }
                }
                at_once = true;
            }
        } else {
            at_once = true;
            if seq >= self.nxt && seq - self.nxt < HORIZON {
                let early = &mut self.rare.get_or_insert_default().early;
                early.keep(self.nxt, seq, self.sack_blocks > 0);
            }
        }
        if at_once || self.pending >= 2 {
            self.send_ack(now, self.echo, false, out);
        } else if self.deadline == Nanos::MAX {
            self.deadline = now + DELAY;
        }
    }

    fn send_ack(&mut self, now: Nanos, echo: Nanos, syn: bool, out: &mut impl Outbox) {
        let returned = self.returned();
        let opening = self.rare.as_mut().and_then(|rare| rare.opening.as_mut());
        let window = match opening {
            None => self.window,
            Some(opening) => opening.advertise(now, self.nxt, &returned),
        };
        let mut ack = Ack { window, returned, sack: SackId::NONE, syn, stamp_ms: stamp_ms(now) };
        let mut size = if syn { self.syn_ack_bytes } else { self.ack_bytes };
        if let (Some(rare), false) = (&self.rare, syn) {
            let (blocks, count) = rare.early.report(self.nxt, self.sack_blocks);
            if count > 0 {
                ack.sack = out.sack(blocks);
                // Kind, length and blocks, padded to a multiple of four.
                size += 4 + 8 * count;
            }
        }
        self.pending = 0;
        self.deadline = Nanos::MAX;
        out.send(&mut Packet {
            seq: self.nxt,
            timestamp: echo,
            flow: self.flow,
            size,
            body: Body::Ack(ack),
        });
    }

    /// To be called when `next_timer` has come; harmless before.
    pub fn on_timer(&mut self, now: Nanos, out: &mut impl Outbox) {
        if self.deadline <= now {
            self.send_ack(now, self.echo, false, out);
        }
    }

    /// When a delayed ACK must go; `u64::MAX`: none waits.
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Nanos {
        self.deadline
    }

    /// Payload delivered in order, bytes.
    #[must_use]
    pub fn delivered_bytes(&self) -> u64 {
        self.nxt.saturating_mul(u64::from(self.payload)).min(self.bytes)
    }

    fn take_header(&mut self, header: &ForwardHeader) {
        if self.xcp {
            self.feedback.data(header);
        }
    }

    fn returned(&mut self) -> ReturnHeader {
        if self.xcp { self.feedback.returned() } else { ReturnHeader::default() }
    }
}

impl Early {
    /// What lies below `nxt` is in order now: returns up to where it is in one piece, and forgets
    /// that.
    fn close_gap(&mut self, nxt: u64) -> u64 {
        let end = self.segments.next_gap(nxt, self.highest).max(nxt);
        self.count -= self.segments.remove(nxt - 1, end);
        self.retain_blocks(|block| block.0 >= end);
        end
    }

    /// Keeps an out-of-order segment above `nxt`.
    fn keep(&mut self, nxt: u64, seq: u64, sack: bool) {
        self.highest = self.highest.max(seq + 1);
        self.segments.reserve(nxt, self.highest);
        self.count += self.segments.insert(seq, seq + 1);
        if sack {
            let block = self.block_around(nxt, seq);
            self.retain_blocks(|other| other.1 < block.0 || block.1 < other.0);
            self.blocks.rotate_right(1);
            self.blocks[0] = block;
        }
    }

    /// The whole block that `seq`, just kept, is part of. A block known from before spares looking
    /// through it: one that grows by a segment per packet costs the same however long it is.
    fn block_around(&self, nxt: u64, seq: u64) -> (u64, u64) {
        let mut start = seq;
        let mut end = seq + 1;
        for known in &self.blocks {
            if known.0 < known.1 {
                if known.0 < start && start <= known.1 {
                    start = known.0;
                }
                if known.0 <= end && end < known.1 {
                    end = known.1;
                }
            }
        }
        (self.segments.run_start(nxt, start), self.segments.next_gap(end, self.highest))
    }

    fn retain_blocks(&mut self, mut keep: impl FnMut(&(u64, u64)) -> bool) {
        let mut kept = 0;
        for i in 0..BLOCKS {
            let block = self.blocks[i];
            if block.0 < block.1 && keep(&block) {
                self.blocks[kept] = block;
                kept += 1;
            }
        }
        self.blocks[kept..].fill((0, 0));
    }

    /// The SACK blocks of an acknowledgement, at most so many, and how many there are.
    fn report(&self, nxt: u64, most: u8) -> (SackBlocks, u16) {
        let mut blocks = SackBlocks::default();
        let mut count = 0;
        for (block, into) in self.blocks.iter().zip(&mut blocks).take(usize::from(most)) {
            if block.0 < block.1 {
                *into =
                    SackBlock { start: (block.0 - nxt) as u32, length: (block.1 - block.0) as u32 };
                count += 1;
            }
        }
        (blocks, count)
    }
}
