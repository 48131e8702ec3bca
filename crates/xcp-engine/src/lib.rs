//! `engine/` for Rust.

/// XCP's forward header as it stands on the wire, fields in host order and still encoded.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForwardHeader {
    /// Sender's RTT, encoded.
    pub rtt: u16,
    /// Sender's window, encoded.
    pub window: u16,
    /// Request, then grant, encoded.
    pub feedback: u16,
    /// Flags.
    pub flags: u8,
    /// Routers that processed the packet.
    pub hops: u8,
    /// The link that limits the flow (iXCP).
    pub bottleneck_id: u32,
    /// The link that will (iXCP).
    pub next_bottleneck_id: u32,
}

/// XCP's return header as it stands on the wire, fields in host order and still encoded.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReturnHeader {
    /// Feedback summed since the last ACK, encoded.
    pub feedback: u16,
    /// Flags.
    pub flags: u8,
    /// Routers that processed the newest packet.
    pub hops: u8,
    /// iXCP.
    pub next_bottleneck_id: u32,
}
