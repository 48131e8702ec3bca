//! The receiving end: puts segments in order, acknowledges them, and carries XCP's feedback home.
//!
//! 1. Delayed ACKs (RFC 5681 §4.2): every second segment in order, or 40 ms after the first, Linux's least delay; the RFC allows 500 ms. Linux's
//!    quick-ACK phase at the start of a connection is not modelled.
//! 2. Out of order, duplicate, or filling a hole: acknowledged at once (RFC 5681 §4.2).
//! 3. Echoed timestamp (RFC 7323 §4.3): that of the earliest segment the ACK answers; out-of-order arrivals leave it as it was.
//! 4. The application reads at once, so the advertised window is the whole buffer from the start; Linux opens it gradually, which the 2005 XCP
//!    study had to work around.
//! 5. SACK (RFC 2018): the block just changed first, then the ones reported before it. No DSACK.

use super::bits::Bits;
use super::config::ReceiverConfig;
use super::congestion::engine_format;
use crate::packet::{Ack, Body, Outbox, Packet, SackBlock, SackBlocks, SackId};
use xcp_engine::{ForwardHeader, ReturnHeader};
use xcp_scenario::units::Nanos;

/// How long an ACK may wait.
const DELAY: Nanos = 40_000_000;
/// SACK blocks remembered.
const BLOCKS: usize = 3;
/// Segments this far ahead are nobody's: beyond any window a sender can have.
const HORIZON: u64 = 1 << 31;

/// A TCP receiver.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// Next segment expected.
    nxt: u64,
    /// Timestamp to echo.
    echo: Nanos,
    /// When the delayed ACK must go; `u64::MAX` if none waits.
    deadline: Nanos,
    payload: u64,
    bytes: u64,
    flow: u32,
    window: u32,
    ack_bytes: u16,
    syn_ack_bytes: u16,
    delayed: bool,
    sack_blocks: u8,
    /// Segments in order not yet acknowledged.
    pending: u32,
    /// Segments out of order, how many, and the end of the highest.
    early: Bits,
    early_count: u64,
    highest: u64,
    /// Blocks of them, the most recently changed first; empty ones at the end.
    blocks: [(u64, u64); BLOCKS],
    duplicates: u64,
    /// Sums XCP's feedback until the next ACK.
    xcp: Option<xcp_engine::Receiver>,
}

impl Receiver {
    /// A receiver that has seen nothing.
    #[must_use]
    pub fn new(config: &ReceiverConfig) -> Self {
        Receiver {
            nxt: 0,
            echo: 0,
            deadline: Nanos::MAX,
            payload: u64::from(config.payload),
            bytes: config.bytes,
            flow: config.flow,
            window: config.window,
            ack_bytes: config.ack_bytes,
            syn_ack_bytes: config.syn_ack_bytes,
            delayed: config.delayed_ack,
            sack_blocks: config.sack_blocks.min(BLOCKS as u8),
            pending: 0,
            early: Bits::default(),
            early_count: 0,
            highest: 0,
            blocks: [(0, 0); BLOCKS],
            duplicates: 0,
            xcp: config.xcp.map(|wire| xcp_engine::Receiver::new(engine_format(wire))),
        }
    }

    /// Takes a SYN or a data packet; everything else is ignored.
    pub fn on_packet(&mut self, now: Nanos, packet: &Packet, out: &mut impl Outbox) {
        match &packet.body {
            Body::Syn { header } => {
                self.take_header(header);
                self.send_ack(packet.timestamp, true, out);
            }
            Body::Data { header, .. } => {
                self.take_header(header);
                self.on_data(now, packet, out);
            }
            Body::Ack(_) | Body::Datagram => {}
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
            if self.early_count > 0 {
                self.close_gap();
                at_once = true;
            }
        } else {
            at_once = true;
            if seq < self.nxt {
                self.duplicates += 1;
            } else if seq - self.nxt < HORIZON {
                self.keep(seq);
            }
        }
        if at_once || self.pending >= 2 {
            self.send_ack(self.echo, false, out);
        } else if self.deadline == Nanos::MAX {
            self.deadline = now + DELAY;
        }
    }

    /// The segment below the out-of-order ones arrived: what follows it in one piece is in order now.
    fn close_gap(&mut self) {
        let end = self.early.next_gap(self.nxt, self.highest);
        self.early_count -= self.early.remove(self.nxt - 1, end.max(self.nxt));
        self.pending += u32::try_from(end.max(self.nxt) - self.nxt).unwrap_or(u32::MAX);
        self.nxt = self.nxt.max(end);
        if self.early_count == 0 {
            self.early.shrink();
        }
        let nxt = self.nxt;
        self.retain_blocks(|block| block.0 >= nxt);
    }

    /// Keeps an out-of-order segment.
    fn keep(&mut self, seq: u64) {
        self.highest = self.highest.max(seq + 1);
        self.early.reserve(self.nxt, self.highest);
        if self.early.insert(seq, seq + 1) == 0 {
            self.duplicates += 1;
        } else {
            self.early_count += 1;
        }
        if self.sack_blocks > 0 {
            let block = self.block_around(seq);
            self.retain_blocks(|other| other.1 < block.0 || block.1 < other.0);
            self.blocks.rotate_right(1);
            self.blocks[0] = block;
        }
    }

    /// The whole block that `seq`, just kept, is part of. A block known from before spares looking through it: one that grows by a segment
    /// per packet costs the same however long it is.
    fn block_around(&self, seq: u64) -> (u64, u64) {
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
        (self.early.run_start(self.nxt, start), self.early.next_gap(end, self.highest))
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

    /// The SACK blocks of an acknowledgement and how many there are.
    fn report(&self) -> (SackBlocks, u16) {
        let mut blocks = SackBlocks::default();
        let mut count = 0;
        for (block, into) in self.blocks.iter().zip(&mut blocks).take(usize::from(self.sack_blocks)) {
            if block.0 < block.1 {
                *into = SackBlock { start: (block.0 - self.nxt) as u32, length: (block.1 - block.0) as u32 };
                count += 1;
            }
        }
        (blocks, count)
    }

    fn send_ack(&mut self, echo: Nanos, syn: bool, out: &mut impl Outbox) {
        let mut ack = Ack { window: self.window, returned: self.returned(), sack: SackId::NONE, syn };
        let mut size = if syn { self.syn_ack_bytes } else { self.ack_bytes };
        if self.early_count > 0 && !syn {
            let (blocks, count) = self.report();
            if count > 0 {
                ack.sack = out.sack(blocks);
                // Kind, length and blocks, padded to a multiple of four.
                size += 4 + 8 * count;
            }
        }
        self.pending = 0;
        self.deadline = Nanos::MAX;
        out.send(&mut Packet { seq: self.nxt, timestamp: echo, flow: self.flow, size, body: Body::Ack(ack) });
    }

    /// To be called when `next_timer` has come; harmless before.
    pub fn on_timer(&mut self, now: Nanos, out: &mut impl Outbox) {
        if self.deadline <= now {
            self.send_ack(self.echo, false, out);
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
        self.nxt.saturating_mul(self.payload).min(self.bytes)
    }

    /// Segments that arrived more than once.
    #[must_use]
    pub fn duplicate_segments(&self) -> u64 {
        self.duplicates
    }

    #[inline]
    fn take_header(&mut self, header: &ForwardHeader) {
        if let Some(xcp) = &mut self.xcp {
            xcp.data(header);
        }
    }

    #[inline]
    fn returned(&mut self) -> ReturnHeader {
        self.xcp.as_mut().map_or_else(ReturnHeader::default, xcp_engine::Receiver::returned)
    }
}
