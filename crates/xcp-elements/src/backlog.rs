//! What waits in a queue, and whether more may.

use xcp_model::Limit;

/// What waits, the packet in service not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Backlog {
    /// Whether a packet of this size would overfill the queue.
    #[inline]
    #[must_use]
    pub fn is_full(self, limit: Limit, size: u16) -> bool {
        match limit {
            Limit::Packets(packets) => self.packets >= packets,
            Limit::Bytes(bytes) => self.bytes + u64::from(size) > bytes,
        }
    }
}
