//! What headers take of a TCP packet, so that whoever turns rates on the wire into goodput reckons
//! alike.

use crate::model::{Congestion, Tcp, WireFormat};

/// Bytes of the IPv4 and TCP headers.
pub const HEADERS: u32 = 20 + 20;
/// Bytes of the timestamps option (RFC 7323), padded.
pub const TIMESTAMPS: u32 = 12;

impl Tcp {
    /// Bytes of XCP's forward option, in SYNs and data packets; 0 for a flow that does not speak
    /// XCP. Bottleneck ids take 8 more, in either format.
    #[must_use]
    pub fn option_bytes(&self) -> u32 {
        let ids = if self.ids.is_some() { 8 } else { 0 };
        match (&self.congestion, self.wire) {
            (Congestion::Xcp, WireFormat::Classic | WireFormat::ClassicInteger) => 8 + ids,
            (Congestion::Xcp, WireFormat::Extended) => 12 + ids,
            _ => 0,
        }
    }

    /// Bytes of XCP's return option, in acknowledgements. A bottleneck id takes 4 more.
    #[must_use]
    pub fn return_option_bytes(&self) -> u32 {
        let id = if self.ids.is_some() { 4 } else { 0 };
        match (&self.congestion, self.wire) {
            (Congestion::Xcp, WireFormat::Classic | WireFormat::ClassicInteger) => 4 + id,
            (Congestion::Xcp, WireFormat::Extended) => 8 + id,
            _ => 0,
        }
    }

    /// Bytes of headers and options that a segment has besides its payload.
    #[must_use]
    pub fn header_bytes(&self) -> u32 {
        HEADERS + TIMESTAMPS + self.option_bytes()
    }

    /// Payload of a full segment: what headers and options leave of a packet of that size; at least
    /// 1.
    #[must_use]
    pub fn payload_bytes(&self, packet_bytes: u32) -> u32 {
        packet_bytes.saturating_sub(self.header_bytes()).max(1)
    }
}
