//! An XCP sender's window (engine/sender.h). When to send, and what a loss is, is the transport's
//! business.

use crate::ffi;
use crate::header::{ForwardHeader, ReturnHeader, WireFormat};

/// Settings of a sender.
#[derive(Debug, Clone, PartialEq)]
pub struct SenderConfig {
    /// Encoding of its headers.
    pub format: WireFormat,
    /// Size of a full packet on the wire, bytes, headers included: what one packet of window is
    /// worth.
    pub packet_bytes: u32,
    /// First congestion window, packets.
    pub initial_window: u32,
    /// The window never goes below this, packets; at least 2^-10.
    pub min_window: f64,
    /// The window never goes above this, packets; `u32::MAX` is no limit (and then nothing bounds
    /// the request either).
    pub max_window: u32,
    /// Whether it tells the routers what it will really send, ages unused allowance and bounds its
    /// request. `false` is the sender of the 2005 Linux study, whose window runs away when a buffer
    /// limits it.
    pub honest: bool,
    /// Classic: whether feedback is rounded to whole packets, as in the study's alternative
    /// implementation. For comparison.
    pub whole_packets: bool,
    /// Whether its packets carry bottleneck ids, for routers that shuffle only the flows they
    /// limit; and then the id of the sender's own access link, or 0 for none (engine/sender.h).
    pub ids: Option<u32>,
}

impl SenderConfig {
    /// An honest sender with a first window of 2 packets, at least 1 packet, no upper limit.
    pub fn new(format: WireFormat, packet_bytes: u32) -> Self {
        SenderConfig {
            format,
            packet_bytes,
            initial_window: 2,
            min_window: 1.0,
            max_window: u32::MAX,
            honest: true,
            whole_packets: false,
            ids: None,
        }
    }
}

/// What lets the sender send, besides the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sendable {
    /// Packets in flight that the receiver's window, the send buffer and the application's data
    /// allow; `u32::MAX` is no limit.
    pub window_limit: u32,
}

impl Sendable {
    /// Nothing but the window limits the sender.
    pub const UNLIMITED: Sendable = Sendable { window_limit: u32::MAX };
}

/// The congestion window of one connection.
#[derive(Debug, Clone)]
pub struct Sender([u64; ffi::SENDER_WORDS]);

const ONE: f64 = 4_294_967_296.0; // a packet, in the window's unit

impl Sender {
    /// A sender with its initial window. Settings out of range are brought into it.
    pub fn new(config: &SenderConfig) -> Sender {
        let mut state = [0; ffi::SENDER_WORDS];
        let classic = u32::from(config.format == WireFormat::Classic);
        let initial = u64::from(config.initial_window) << 32;
        let least = (config.min_window.max(0.0) * ONE) as u64;
        let most = u64::from(config.max_window) << 32;
        // SAFETY: shim.c asserts that struct xcp_sender has SENDER_WORDS words.
        unsafe {
            ffi::xcp_shim_sender_init(
                &mut state,
                classic,
                config.packet_bytes,
                initial,
                least,
                most,
                u32::from(config.honest),
            )
        };
        if config.whole_packets {
            // SAFETY: `state` is initialised and of that size.
            unsafe { ffi::xcp_shim_sender_set_whole(&mut state) };
        }
        if let Some(own) = config.ids {
            // SAFETY: initialised just now.
            unsafe { ffi::xcp_shim_sender_use_ids(&mut state, own) };
        }
        Sender(state)
    }

    /// The window in packets, fraction included.
    #[inline]
    pub fn window(&self) -> f64 {
        self.0[ffi::SENDER_CWND] as f64 / ONE
    }

    /// Whole packets that may be in flight, at least 1.
    #[inline]
    pub fn cwnd(&self) -> u32 {
        ((self.0[ffi::SENDER_CWND] >> 32) as u32).max(1)
    }

    /// Whether routers on the path are heard of, and still were within the last two round trips;
    /// else an honest sender grows and answers losses as TCP does.
    #[inline]
    pub fn marked(&self) -> bool {
        // SAFETY: `self.0` was initialised by `new`.
        unsafe { ffi::xcp_shim_sender_marked(&self.0) != 0 }
    }

    /// The header of a packet that is sent now. `srtt_ns`: smoothed RTT, 0 while unknown.
    #[inline]
    pub fn header(&mut self, now_ns: u64, srtt_ns: u64, sendable: &Sendable) -> ForwardHeader {
        let mut h = ForwardHeader::default();
        self.write_header(now_ns, srtt_ns, sendable, &mut h);
        h
    }

    /// As [`Sender::header`], into a header that is there already.
    #[inline]
    pub fn write_header(
        &mut self,
        now_ns: u64,
        srtt_ns: u64,
        sendable: &Sendable,
        header: &mut ForwardHeader,
    ) {
        // SAFETY: as in `marked`; `header` is valid for the call.
        unsafe {
            ffi::xcp_shim_sender_header(&mut self.0, now_ns, srtt_ns, sendable.window_limit, header)
        };
    }

    /// An acknowledgement brought feedback. `cwnd_limited`: whether the window, and not buffers or
    /// the application, holds the sender back; if not, an honest sender ignores increases. Headers
    /// that are absent or of the other format are ignored.
    #[inline]
    pub fn feedback(
        &mut self,
        now_ns: u64,
        header: &ReturnHeader,
        srtt_ns: u64,
        cwnd_limited: bool,
    ) {
        self.feedback_segments(now_ns, header, srtt_ns, cwnd_limited, 1);
    }

    /// As [`Sender::feedback`], for a packet that stands for so many of the segments in which the
    /// header was sent.
    #[inline]
    pub fn feedback_segments(
        &mut self,
        now_ns: u64,
        header: &ReturnHeader,
        srtt_ns: u64,
        cwnd_limited: bool,
        segments: u32,
    ) {
        // SAFETY: as in `header`.
        unsafe {
            ffi::xcp_shim_sender_feedback(
                &mut self.0,
                now_ns,
                header,
                srtt_ns,
                u32::from(cwnd_limited),
                segments,
            )
        }
    }

    /// A retransmission timeout: the window becomes one packet. Where no router has been heard of,
    /// slow start then ends at half of what it was.
    pub fn on_timeout(&mut self) {
        // SAFETY: as in `marked`.
        unsafe { ffi::xcp_shim_sender_timeout(&mut self.0) }
    }

    /// A loss (three duplicate ACKs). `halve`: whether the connection halves its window then. An
    /// honest sender that has heard of no router halves in any case, to no less than two packets,
    /// and from then on grows by one packet per round trip.
    pub fn on_loss(&mut self, halve: bool) {
        // SAFETY: as in `marked`.
        unsafe { ffi::xcp_shim_sender_loss(&mut self.0, u32::from(halve)) }
    }

    /// The id of the link that limits the flow, where ids are used and one is known.
    pub fn bottleneck_id(&self) -> Option<u32> {
        // SAFETY: as in `marked`.
        Some(unsafe { ffi::xcp_shim_sender_limited_by(&self.0) }).filter(|id| *id != 0)
    }

    /// The timeout or loss answered last was none: the window and slow start's threshold of
    /// `before` come back where they were larger (RFC 4015).
    pub fn restore(&mut self, before: &Sender) {
        // SAFETY: as in `marked`; `before` is valid for the call.
        unsafe { ffi::xcp_shim_sender_restore(&mut self.0, &before.0) }
    }

    /// A sender as it lies in memory, here and in a kernel program's map: `struct xcp_sender` of
    /// engine/sender.h.
    pub fn from_words(words: [u64; ffi::SENDER_WORDS]) -> Sender {
        Sender(words)
    }

    pub(crate) fn words(&self) -> &[u64; ffi::SENDER_WORDS] {
        &self.0
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64; ffi::SENDER_WORDS] {
        &mut self.0
    }
}
