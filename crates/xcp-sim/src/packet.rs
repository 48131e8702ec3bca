//! The packet: one cache line, in one place from its sender to its end.

use xcp_engine::{ForwardHeader, ReturnHeader};
use xcp_scenario::units::Nanos;

use crate::routing::Position;

/// A packet on its way. 64 bytes, so that looking at it costs one miss.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub struct Packet {
    /// Data: the segment's number, from 0. ACK: the next segment expected, all before it have arrived.
    pub seq: u64,
    /// Data: when it was sent (RFC 7323's TSval, in nanoseconds). ACK: the echo (TSecr).
    pub timestamp: Nanos,
    /// Index of the flow.
    pub flow: u32,
    /// Bytes on the wire, headers included; IP's total length allows no more than 65535.
    pub size: u16,
    /// What it carries.
    pub body: Body,
}

/// What a packet carries.
#[derive(Debug, Clone, Copy)]
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
    Datagram,
}

/// A pure acknowledgement. `Packet::seq` is the cumulative acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ack {
    /// Advertised window: segments that may be outstanding above `seq`.
    pub window: u32,
    /// XCP's feedback on its way home.
    pub returned: ReturnHeader,
    /// SACK blocks (RFC 2018), the newest first; see `sack_count`.
    pub sack: [SackBlock; 3],
    /// How many of `sack` are meant.
    pub sack_count: u8,
    /// Whether it answers a SYN.
    pub syn: bool,
}

/// Segments `start..start + length`, relative to the cumulative acknowledgement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First segment, counted from `Packet::seq`.
    pub start: u32,
    /// Number of segments.
    pub length: u32,
}

/// Where a sans-I/O endpoint puts the packets it wants sent now.
pub trait Outbox {
    /// Takes a packet.
    fn send(&mut self, packet: Packet);
}

const _: () = assert!(size_of::<Packet>() == 64);

/// The packets that are under way. Slots are used again, the one freed last first, so that they stay in the cache.
#[derive(Debug, Default)]
pub struct Packets {
    slots: Vec<Packet>,
    free: Vec<PacketId>,
}

/// Names a packet under way.
pub type PacketId = u32;

/// What a router needs to know of a packet before it looks into it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Class {
    /// Carries XCP's forward header.
    XcpData,
    /// An acknowledgement with XCP's return header.
    XcpAck,
    /// Anything else.
    #[default]
    Other,
}

impl Packet {
    /// Its class.
    #[must_use]
    pub fn class(&self) -> Class {
        match &self.body {
            Body::Data { header, .. } | Body::Syn { header } if header.is_present() => Class::XcpData,
            Body::Ack(ack) if ack.returned.is_present() => Class::XcpAck,
            _ => Class::Other,
        }
    }

    /// XCP's forward header, or the place for it; `None` where a packet of this kind has none.
    pub fn header_mut(&mut self) -> Option<&mut ForwardHeader> {
        match &mut self.body {
            Body::Data { header, .. } | Body::Syn { header } => Some(header),
            Body::Ack(_) | Body::Datagram => None,
        }
    }
}

/// What links pass on in a packet's stead: all they need to know of it, so that a hop need not wait for the packet itself to come from memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Token {
    /// The packet.
    pub packet: PacketId,
    /// Where its route goes on, see [`crate::routing`].
    pub position: Position,
    /// Bytes on the wire.
    pub size: u16,
    /// What routers make of it.
    pub class: Class,
}

impl Packets {
    /// Takes a packet in.
    ///
    /// # Panics
    /// With more than 2^32 packets under way at once, 275 GB of them.
    #[inline(always)]
    pub fn insert(&mut self, packet: Packet) -> PacketId {
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = packet;
            return id;
        }
        let id = PacketId::try_from(self.slots.len()).expect("fewer than 2^32 packets under way");
        self.slots.push(packet);
        id
    }

    /// A packet has come to its end.
    pub fn remove(&mut self, id: PacketId) {
        self.free.push(id);
    }
}

impl std::ops::Index<PacketId> for Packets {
    type Output = Packet;
    fn index(&self, id: PacketId) -> &Packet {
        &self.slots[id as usize]
    }
}

impl std::ops::IndexMut<PacketId> for Packets {
    fn index_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.slots[id as usize]
    }
}
