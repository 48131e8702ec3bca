//! XCP's two headers in memory, and what their words mean.

use crate::ffi;

/// Bits of the headers' `flags`. They live in memory only; the wire formats have their own.
pub mod flags {
    /// There is a header; all-zero means none.
    pub const PRESENT: u8 = 0x01;
    /// The words are encoded as the classic format has them, else as the extended one.
    pub const CLASSIC: u8 = 0x02;
    /// A router processed the packet. The classic format has no room for it: its headers never
    /// carry it.
    pub const MARK: u8 = 0x04;
    /// The bottleneck ids mean something.
    pub const IDS: u8 = 0x08;
    /// A return header that came with data: it may be one of several segments' part of a sum. On no
    /// wire.
    pub const SHARED: u8 = 0x10;
    /// A forward header whose sender keeps the rate that it is given, so that a router can rely on
    /// when a change takes effect. The classic format has no room for it.
    pub const KEEPS: u8 = 0x20;
    /// In a forward header: it came with a SYN (on no wire), or, where it tells an RTT, the packet
    /// was sent at once with others of its window, not spread over the RTT.
    pub const OPENS: u8 = 0x40;
}

/// The longest wait that a header can say: that code, or longer.
pub const WAIT_MAX: u8 = 15;

/// Which encoding a connection uses on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WireFormat {
    /// The options of Zhang & Henderson's Linux implementation (2005): RTT in ms, windows in whole
    /// packets, feedback in packets of window.
    Classic,
    /// Ours (docs/wire-format.md): RTT from nanoseconds, windows from 2^-10 packets, feedback in
    /// bytes/s, a mark, how long the packet waits behind TCP, ids.
    #[default]
    Extended,
}

/// How an encoder rounds what lies between two codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, halves away from zero.
    Nearest,
    /// Towards zero.
    TowardsZero,
    /// Up where these 64 uniformly random bits say so, so that the mean is exact.
    Random(u64),
}

impl Rounding {
    fn dither(self) -> u64 {
        match self {
            Rounding::Nearest => 1 << 63,
            Rounding::TowardsZero => 0,
            Rounding::Random(bits) => bits,
        }
    }
}

/// XCP's forward header as it stands on the wire, fields in host order and still encoded. The
/// default is no header at all.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForwardHeader {
    /// Sender's RTT, encoded; 0 is unknown.
    pub rtt: u16,
    /// Sender's window in packets, as encoded on the wire.
    pub window: u16,
    /// Request, then grant, encoded.
    pub feedback: u16,
    /// Flag bits; see [`flags`].
    pub flags: u8,
    /// How long it waits behind TCP in queues where routers steer TCP, all on the path so far, as a
    /// code up to [`WAIT_MAX`].
    pub wait: u8,
    /// The link that limits the flow (iXCP).
    pub bottleneck_id: u32,
    /// The link that will (iXCP).
    pub next_bottleneck_id: u32,
}

/// XCP's return header as it stands on the wire, fields in host order and still encoded. The
/// default is no header at all.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReturnHeader {
    /// Feedback summed since the last ACK, encoded.
    pub feedback: u16,
    /// Flag bits; see [`flags`].
    pub flags: u8,
    /// How long the newest packet waited behind TCP, a code up to [`WAIT_MAX`].
    pub wait: u8,
    /// Id of the link that last lowered the feedback (iXCP); 0 if unknown.
    pub next_bottleneck_id: u32,
}

const _: () = assert!(size_of::<ForwardHeader>() == 16 && size_of::<ReturnHeader>() == 8);

fn format_of(header_flags: u8) -> WireFormat {
    if header_flags & flags::CLASSIC != 0 { WireFormat::Classic } else { WireFormat::Extended }
}

fn flags_of(format: WireFormat) -> u8 {
    match format {
        WireFormat::Classic => flags::PRESENT | flags::CLASSIC,
        WireFormat::Extended => flags::PRESENT,
    }
}

impl ForwardHeader {
    /// A header that says this, as a sender would: RTT in nanoseconds (0 unknown), window in
    /// packets, feedback as [`WireFormat::encode_feedback`] takes it. For tests and displays;
    /// connections use [`crate::Sender::header`].
    pub fn encode(format: WireFormat, rtt_ns: u64, window: f64, feedback: f64) -> Self {
        ForwardHeader {
            rtt: format.encode_rtt(rtt_ns),
            window: format.encode_window(window),
            feedback: format.encode_feedback(feedback, Rounding::Nearest),
            flags: flags_of(format),
            ..Default::default()
        }
    }

    /// Whether there is a header.
    pub fn is_present(&self) -> bool {
        self.flags & flags::PRESENT != 0
    }

    /// How the words are encoded.
    pub fn format(&self) -> WireFormat {
        format_of(self.flags)
    }

    /// Whether a router processed the packet.
    pub fn marked(&self) -> bool {
        self.flags & flags::MARK != 0
    }

    /// The sender's RTT in nanoseconds; `None` is unknown.
    pub fn rtt_ns(&self) -> Option<u64> {
        self.format().decode_rtt(self.rtt)
    }

    /// The sender's window in packets; `None` is unknown.
    pub fn window_packets(&self) -> Option<f64> {
        self.format().decode_window(self.window)
    }

    /// Feedback: bytes/s (extended) or packets of window (classic).
    pub fn feedback_value(&self) -> f64 {
        self.format().decode_feedback(self.feedback)
    }
}

impl ReturnHeader {
    /// A header that carries this feedback, in the unit of [`WireFormat::encode_feedback`]. For
    /// tests; connections use [`crate::Receiver::returned`].
    pub fn encode(format: WireFormat, feedback: f64, marked: bool) -> Self {
        ReturnHeader {
            feedback: format.encode_feedback(feedback, Rounding::Nearest),
            flags: flags_of(format) | if marked { flags::MARK } else { 0 },
            ..Default::default()
        }
    }

    /// Whether there is a header.
    pub fn is_present(&self) -> bool {
        self.flags & flags::PRESENT != 0
    }

    /// How the word is encoded.
    pub fn format(&self) -> WireFormat {
        format_of(self.flags)
    }

    /// Whether a router processed the newest packet acknowledged.
    pub fn marked(&self) -> bool {
        self.flags & flags::MARK != 0
    }

    /// Feedback: bytes/s (extended) or packets of window (classic).
    pub fn feedback_value(&self) -> f64 {
        self.format().decode_feedback(self.feedback)
    }
}

/// A float's magnitude as `m * 2^e` with `m` below 2^53; exact. Not a number becomes 0, infinity
/// 2^1023.
fn split(v: f64) -> (u64, i32) {
    let v = if v.is_nan() { 0.0 } else { v.abs().min(f64::MAX) };
    let bits = v.to_bits();
    let field = (bits >> 52) as i32;
    let fraction = bits & ((1 << 52) - 1);
    if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) }
}

impl WireFormat {
    /// RTT code nearest to `ns`, saturating; 0 stays 0, unknown.
    pub fn encode_rtt(self, ns: u64) -> u16 {
        match self {
            WireFormat::Classic => ffi::xcp_shim_classic_rtt_encode(ns),
            WireFormat::Extended => ffi::xcp_shim_extended_rtt_encode(ns),
        }
    }

    /// Round-trip time in nanoseconds; `None` if it is unknown.
    pub fn decode_rtt(self, code: u16) -> Option<u64> {
        match self {
            _ if code == 0 => None,
            WireFormat::Classic => Some(u64::from(code) * 1_000_000),
            WireFormat::Extended => Some(ffi::xcp_shim_extended_rtt_decode(code)),
        }
    }

    /// Window code nearest to `packets`, saturating at the format's least and greatest window.
    pub fn encode_window(self, packets: f64) -> u16 {
        let packets = packets.max(0.0);
        match self {
            WireFormat::Classic => {
                ffi::xcp_shim_classic_window_encode((packets * 4_294_967_296.0) as u64)
            }
            WireFormat::Extended => {
                let (m, e) = split(packets);
                ffi::xcp_shim_extended_window_encode(m, e)
            }
        }
    }

    /// Window in packets; `None` where the code says nothing.
    pub fn decode_window(self, code: u16) -> Option<f64> {
        match self {
            WireFormat::Classic => (code != 0).then_some(f64::from(code)),
            WireFormat::Extended => {
                let mut e = 0;
                // SAFETY: `e` outlives the call, which writes one i32 to it.
                let m = unsafe { ffi::xcp_shim_extended_window_decode(code, &mut e) };
                (m != 0).then(|| f64::from(m) * f64::from(e).exp2())
            }
        }
    }

    /// Feedback code: `value` in bytes/s (extended) or packets of window (classic), saturating.
    pub fn encode_feedback(self, value: f64, rounding: Rounding) -> u16 {
        let (m, e) = split(value);
        let negative = u32::from(value < 0.0);
        match self {
            WireFormat::Classic => {
                ffi::xcp_shim_classic_feedback_encode(m, e, negative, rounding.dither())
            }
            WireFormat::Extended => {
                ffi::xcp_shim_extended_feedback_encode(m, e, negative, rounding.dither())
            }
        }
    }

    /// Feedback in the unit of [`WireFormat::encode_feedback`]; the extended format's rates above
    /// 4.4 TB/s come back as that.
    pub fn decode_feedback(self, code: u16) -> f64 {
        match self {
            WireFormat::Classic => ffi::xcp_shim_classic_feedback_decode(code) as f64 / 4096.0,
            WireFormat::Extended => {
                ffi::xcp_shim_extended_feedback_decode(code) as f64 / 1_048_576.0
            }
        }
    }
}
