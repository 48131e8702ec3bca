//! From the scenario's settings to what the two ends need: sizes on the wire and limits in
//! segments.
//!
//! What the buffers count: a buffer holds whole packets, headers included (`packet_bytes` each), as
//! a kernel's does; Linux counts still more (the true size of its buffers), so that there a buffer
//! of a given size holds fewer packets than here. The window a receiver may advertise without
//! window scaling, 65535 bytes, counts payload, as TCP's window field does.

use super::opening::FIRST as FIRST_OPENED;
use xcp_model::sizes::{HEADERS, TIMESTAMPS};
use xcp_model::units::Nanos;
use xcp_model::{
    Congestion, LossResponse, ReceiveWindow, Recovery, RtoPolicy, Tcp, WireFormat, XcpSender,
};

/// The options of a SYN as Linux sends them, timestamps included: MSS, window scale, SACK
/// permitted.
const SYN_OPTIONS: u32 = 20;
/// TCP options take at most 40 bytes.
const OPTION_SPACE: u32 = 40;

/// A sender's settings.
#[derive(Debug, Clone)]
pub struct SenderConfig {
    /// Index of the flow, written into every packet.
    pub flow: u32,
    /// Payload of a full segment, bytes.
    pub payload: u32,
    /// Headers and options of a data packet, bytes.
    pub overhead: u32,
    /// Size of a SYN on the wire, bytes.
    pub syn_bytes: u16,
    /// Bytes to transfer; `u64::MAX` is without end.
    pub bytes: u64,
    /// Segments the send buffer holds; `u32::MAX` is never a limit.
    pub send_buffer: u32,
    /// Window the receiver will advertise, segments: what a connection without handshake knows
    /// beforehand.
    pub peer_window: u32,
    /// What sets the window.
    pub congestion: Congestion,
    /// How losses are repaired.
    pub recovery: Recovery,
    /// Which of XCP's senders it is, where `congestion` is XCP.
    pub xcp_sender: XcpSender,
    /// An XCP sender's answer to three duplicate ACKs.
    pub loss_response: LossResponse,
    /// Whether packets are spread over the round trip.
    pub paced: bool,
    /// XCP's header format.
    pub wire: WireFormat,
    /// Whether the connection opens with SYN and SYN-ACK.
    pub handshake: bool,
    /// First window, packets.
    pub initial_window: u32,
    /// Lower bound of the retransmission timeout, see `rtt.rs`.
    pub rto_min: Nanos,
    /// What happens to the timeout when it expires again.
    pub rto_policy: RtoPolicy,
    /// Whether an XCP sender reports no more window than it can use.
    pub honest: bool,
    /// Whether packets carry bottleneck ids, and which they start with: 0 for none, or the first
    /// link's, which is not known here.
    pub ids: Option<u32>,
    /// The window, packets, that an XCP sender keeps whatever it is told, asking for all that a
    /// header can say; `None` for honest ones.
    pub kept_window: Option<u32>,
}

impl SenderConfig {
    /// The sender of flow number `flow` whose full packets take `packet_bytes` on the wire.
    #[must_use]
    pub fn new(flow: u32, tcp: &Tcp, packet_bytes: u16) -> Self {
        let option = tcp.option_bytes();
        SenderConfig {
            flow,
            payload: tcp.payload_bytes(u32::from(packet_bytes)),
            overhead: HEADERS + TIMESTAMPS + option,
            syn_bytes: (HEADERS + SYN_OPTIONS + option) as u16,
            bytes: tcp.bytes.unwrap_or(u64::MAX),
            send_buffer: segments(tcp.send_buffer, packet_bytes),
            peer_window: first_window(tcp, packet_bytes),
            congestion: tcp.congestion.clone(),
            recovery: tcp.recovery,
            xcp_sender: tcp.xcp_sender,
            loss_response: tcp.loss_response,
            paced: tcp.paced,
            wire: tcp.wire,
            handshake: tcp.handshake,
            initial_window: tcp.initial_window.max(1),
            rto_min: tcp.rto_min,
            rto_policy: tcp.rto_policy,
            honest: tcp.honest_window,
            ids: tcp.ids.map(|_| 0),
            kept_window: None,
        }
    }

    /// What scenarios call the congestion control.
    pub(super) fn control_word(&self) -> &str {
        match (&self.congestion, self.xcp_sender) {
            (Congestion::Xcp, XcpSender::Robust) => "xcp-robust",
            _ => self.congestion.name(),
        }
    }
}

/// A receiver's settings.
#[derive(Debug, Clone)]
pub struct ReceiverConfig {
    /// Index of the flow, written into every packet.
    pub flow: u32,
    /// Payload of a full segment, bytes.
    pub payload: u32,
    /// Bytes to transfer; `u64::MAX` is without end.
    pub bytes: u64,
    /// Advertised window, segments.
    pub window: u32,
    /// How the receiver comes to advertise it.
    pub opens: ReceiveWindow,
    /// Other windows that it advertises later, in order of time.
    pub window_changes: Vec<(Nanos, u32)>,
    /// Whether every second segment is acknowledged instead of every one.
    pub delayed_ack: bool,
    /// SACK blocks per acknowledgement at most; 0 where the sender does not use them.
    pub sack_blocks: u8,
    /// Size of an acknowledgement without SACK blocks, bytes.
    pub ack_bytes: u16,
    /// Size of a SYN-ACK, bytes.
    pub syn_ack_bytes: u16,
    /// XCP's header format, `None` for a flow that does not speak XCP.
    pub xcp: Option<WireFormat>,
}

impl ReceiverConfig {
    /// The receiver of flow number `flow` whose full packets take `packet_bytes` on the wire.
    #[must_use]
    pub fn new(flow: u32, tcp: &Tcp, packet_bytes: u16) -> Self {
        let xcp = (tcp.congestion == Congestion::Xcp).then_some(tcp.wire);
        let option = tcp.return_option_bytes();
        let payload = tcp.payload_bytes(u32::from(packet_bytes));
        // Blocks take 8 bytes each beside 2 bytes of kind and length, padded by 2: three beside
        // timestamps, two beside XCP's option too.
        let blocks = if matches!(tcp.recovery, Recovery::Sack | Recovery::SackLinux) {
            ((OPTION_SPACE - TIMESTAMPS - option - 4) / 8).min(3)
        } else {
            0
        };
        ReceiverConfig {
            flow,
            payload,
            bytes: tcp.bytes.unwrap_or(u64::MAX),
            window: receive_window(tcp, tcp.receive_buffer, packet_bytes),
            opens: tcp.receive_window,
            window_changes: tcp
                .receive_buffer_changes
                .iter()
                .map(|change| (change.at, receive_window(tcp, change.bytes, packet_bytes)))
                .collect(),
            delayed_ack: tcp.delayed_ack,
            sack_blocks: blocks as u8,
            ack_bytes: (HEADERS + TIMESTAMPS + option) as u16,
            syn_ack_bytes: (HEADERS + SYN_OPTIONS + option) as u16,
            xcp,
        }
    }
}

/// Segments that a receiver with this buffer advertises.
fn receive_window(tcp: &Tcp, buffer: Option<u64>, packet_bytes: u16) -> u32 {
    let scaled = if tcp.window_scaling {
        u32::MAX
    } else {
        (65535 / tcp.payload_bytes(u32::from(packet_bytes))).max(1)
    };
    segments(buffer, packet_bytes).min(scaled)
}

/// Segments that a receiver advertises first.
fn first_window(tcp: &Tcp, packet_bytes: u16) -> u32 {
    let whole = receive_window(tcp, tcp.receive_buffer, packet_bytes);
    match tcp.receive_window {
        ReceiveWindow::Open => whole,
        ReceiveWindow::TwoPerAck | ReceiveWindow::Feedback => whole.min(FIRST_OPENED),
    }
}

/// Packets that fit into a buffer, at least one, else a connection could never move.
fn segments(buffer: Option<u64>, packet_bytes: u16) -> u32 {
    buffer.map_or(u32::MAX, |bytes| {
        (bytes / u64::from(packet_bytes.max(1))).clamp(1, u64::from(u32::MAX)) as u32
    })
}
