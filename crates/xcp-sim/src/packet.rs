//! The packet as endpoints send and receive it, and what acknowledgements say besides.

use xcp_engine::{ForwardHeader, ReturnHeader};
use xcp_model::units::Nanos;

/// A packet. 48 bytes, so that with what a link knows of it (`fifo.rs`) it fills a cache line.
#[derive(Debug, Clone, Copy, Default)]
pub struct Packet {
    /// Data: the segment's number, from 0. ACK: the next segment expected, all before it have
    /// arrived.
    pub seq: u64,
    /// Data: when it was sent (RFC 7323's TSval, in nanoseconds). ACK: the echo (TSecr).
    pub timestamp: Nanos,
    /// Index of the flow in the scenario.
    pub flow: u32,
    /// Bytes on the wire, headers included; IP's total length allows no more than 65535.
    pub size: u16,
    /// What it carries.
    pub body: Body,
}

/// What a packet carries.
#[derive(Debug, Clone, Copy, Default)]
pub enum Body {
    /// Opens a TCP connection; `header` is XCP's offer, if the flow speaks XCP.
    Syn {
        /// XCP header; a default one where the flow does not speak XCP.
        header: ForwardHeader,
    },
    /// A TCP segment with data.
    Data {
        /// XCP header; a default one where the flow does not speak XCP.
        header: ForwardHeader,
        /// Whether it was sent before.
        retransmission: bool,
    },
    /// SYN-ACK or a pure acknowledgement.
    Ack(Ack),
    /// UDP.
    #[default]
    Datagram,
    /// A datagram with XCP's forward header, as those send it who flood a router with claims.
    Claim {
        /// What it claims.
        header: ForwardHeader,
        /// Whether it poses as a flow of its own, as if its addresses were forged.
        forged: bool,
    },
}

/// A pure acknowledgement. `Packet::seq` is the cumulative acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ack {
    /// Advertised window: segments that may be outstanding above `seq`.
    pub window: u32,
    /// XCP's feedback on its way home.
    pub returned: ReturnHeader,
    /// SACK blocks, if there are any.
    pub sack: SackId,
    /// Whether it answers a SYN.
    pub syn: bool,
    /// When it was sent, by the receiver's clock (RFC 7323's TSval), in milliseconds as Linux has
    /// it.
    pub stamp_ms: u32,
}

const _: () = assert!(size_of::<Packet>() == 48);

/// Segments `start..start + length`, relative to the cumulative acknowledgement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First segment, counted from `Packet::seq`.
    pub start: u32,
    /// Number of segments.
    pub length: u32,
}

/// SACK blocks (RFC 2018) of one acknowledgement, the newest first, empty ones at the end.
pub type SackBlocks = [SackBlock; 3];

/// Names the SACK blocks of an acknowledgement under way. Few have any, so they are kept apart and
/// do not make every packet larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SackId(u32);

impl SackId {
    /// No blocks.
    pub const NONE: SackId = SackId(u32::MAX);
}

impl Default for SackId {
    fn default() -> Self {
        Self::NONE
    }
}

/// SACK blocks of the acknowledgements under way.
#[derive(Debug, Default)]
pub struct Sacks {
    kept: Vec<SackBlocks>,
    free: Vec<u32>,
}

impl Sacks {
    /// Keeps the blocks of an acknowledgement that is sent.
    ///
    /// # Panics
    /// With more than 2^32 of them at once.
    pub fn keep(&mut self, blocks: SackBlocks) -> SackId {
        if let Some(id) = self.free.pop() {
            self.kept[id as usize] = blocks;
            return SackId(id);
        }
        self.kept.push(blocks);
        SackId(
            u32::try_from(self.kept.len() - 1).expect("fewer than 2^32 acknowledgements under way"),
        )
    }

    /// Takes the blocks of an acknowledgement that has arrived.
    #[inline]
    pub fn take(&mut self, id: SackId) -> SackBlocks {
        if id == SackId::NONE { SackBlocks::default() } else { self.take_kept(id) }
    }

    #[cold]
    fn take_kept(&mut self, id: SackId) -> SackBlocks {
        self.free.push(id.0);
        self.kept[id.0 as usize]
    }

    /// Whether no acknowledgement under way has any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.len() == self.free.len()
    }

    /// A packet is gone.
    pub fn discard(&mut self, packet: &Packet) {
        if let Body::Ack(ack) = &packet.body {
            self.take(ack.sack);
        }
    }
}

/// Where a sans-I/O endpoint puts the packets it wants sent now.
pub trait Outbox {
    /// Takes a packet; what it leaves there means nothing.
    fn send(&mut self, packet: &mut Packet);
    /// Takes the SACK blocks of an acknowledgement; what it returns goes into the packet.
    fn sack(&mut self, blocks: SackBlocks) -> SackId;
}

/// What a router makes of a packet.
#[derive(Debug)]
pub enum Class<'a> {
    /// Carries XCP's forward header.
    XcpData(&'a mut ForwardHeader),
    /// An acknowledgement with XCP's return header.
    XcpAck,
    /// Anything else.
    Other,
}

impl Packet {
    /// What a router that keeps accounts of flows tells them apart by: as much as a hash of
    /// addresses and ports would. The same for all packets of a flow that have a forward header,
    /// except that of a source that forges addresses every packet has its own.
    #[inline]
    #[must_use]
    pub fn policing_key(&self) -> u64 {
        let serial = if matches!(self.body, Body::Claim { forged: true, .. }) {
            self.seq.wrapping_add(1)
        } else {
            0
        };
        serial << 32 | u64::from(self.flow)
    }

    /// Its class.
    #[inline(always)]
    pub fn class(&mut self) -> Class<'_> {
        // Data first, by a comparison: a jump through a table cannot be foreseen as well.
        if !matches!(self.body, Body::Data { .. }) {
            return match &mut self.body {
                Body::Ack(ack) if ack.returned.is_present() => Class::XcpAck,
                Body::Syn { header } | Body::Claim { header, .. } if header.is_present() => {
                    Class::XcpData(header)
                }
                _ => Class::Other,
            };
        }
        match &mut self.body {
            Body::Data { header, .. } if header.is_present() => Class::XcpData(header),
            _ => Class::Other,
        }
    }
}
