//! A sender whose state is its rate, and that bounds itself by delay (engine/robust_sender.h). When
//! to send, and what a loss is, is the transport's business.

use crate::ffi::{self, ROBUST_SENDER_WORDS};
use crate::header::{ForwardHeader, ReturnHeader};
use crate::sender::Sendable;

/// An acknowledgement, and what it says: `struct xcp_robust_answer`. The default says nothing.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Answer {
    /// When it came.
    pub now_ns: u64,
    /// When what it answers was sent.
    pub sent_ns: u64,
    /// The RTT of the newest segment that it covers; 0: unknown, for that was sent again, or
    /// something is under repair.
    pub rtt_ns: u64,
    /// The smoothed RTT, with that.
    pub srtt_ns: u64,
    /// Its header.
    pub returned: ReturnHeader,
    /// Of the segments that it answers, the header is so many's; 0: it has none.
    pub answers: u32,
    /// Segments that were not acknowledged before; a SYN is one.
    pub covered: u32,
    /// Segments that it says are in, and none before it said so.
    pub delivered: u32,
    /// So many more are between the newest that is in now and the newest before.
    pub skipped: u32,
    /// All before the newest that are not in yet.
    pub missing: u32,
    /// Segments found lost with it, of those that were sent first since the last timeout.
    pub lost: u32,
    /// The receiver's time on it, in ms modulo 2^32 (RFC 7323's TSval, as Linux has it), if it is
    /// stamped.
    pub stamp_ms: u32,
    /// Whether it is.
    pub stamped: bool,
    /// The window, or pacing, and nothing else holds the sender back.
    pub limited: bool,
    /// Nothing; so that all bytes are somebody's.
    pub unused: [u8; 2],
}

const _: () = assert!(size_of::<Answer>() == 72 && std::mem::offset_of!(Answer, limited) == 69);

/// What bounds a robust sender besides the routers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Nothing.
    Free,
    /// Delay.
    Delay,
    /// CUBIC.
    Compete,
}

/// What a robust sender does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RobustSenderState {
    /// The rate times the base RTT, packets.
    pub window: f64,
    /// The same as the routers' feedback has it; infinite where there is no router.
    pub explicit_window: f64,
    /// Packets that may be in flight; infinite where only the routers bound it.
    pub bound_packets: f64,
    /// The least RTT seen, ns; 0 before there is one.
    pub base_ns: u64,
    /// What limits the packets in flight.
    pub bound: Bound,
    /// Whether routers answer this connection.
    pub routed: bool,
    /// How often delay or loss has bound it.
    pub binds: u32,
    /// How often it has begun to compete.
    pub competes: u32,
    /// Whether the path's length jumps all the time, so that delay says nothing of a queue.
    pub jumps: bool,
}

/// `struct xcp_robust_sender`, from the beginning of a cache line on: what each packet needs of it
/// comes first and takes two.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
struct State([u64; ROBUST_SENDER_WORDS]);

/// One connection's rate and bound.
#[derive(Debug, Clone)]
pub struct RobustSender(Box<State>);

const ONE: f64 = 4_294_967_296.0; // a packet, in a window's unit

fn packets(q32: u64) -> f64 {
    if q32 == u64::MAX { f64::INFINITY } else { q32 as f64 / ONE }
}

impl RobustSender {
    /// A sender of full packets of so many bytes, with its first window, packets. `ids`: as in
    /// [`crate::SenderConfig::ids`].
    pub fn new(packet_bytes: u32, initial_window: u32, ids: Option<u32>) -> Self {
        let mut state = Box::new(State([0; ROBUST_SENDER_WORDS]));
        // SAFETY: shim.c asserts that struct xcp_robust_sender has ROBUST_SENDER_WORDS words.
        unsafe {
            ffi::xcp_shim_robust_sender_init(
                &mut state.0,
                packet_bytes,
                u64::from(initial_window) << 32,
                ids.is_some().into(),
                ids.unwrap_or(0),
            )
        };
        RobustSender(state)
    }

    /// A sender as it lies in memory.
    #[must_use]
    pub fn from_words(words: &[u64; ROBUST_SENDER_WORDS]) -> Self {
        RobustSender(Box::new(State(*words)))
    }

    /// How it lies in memory.
    #[must_use]
    pub fn words(&self) -> &[u64; ROBUST_SENDER_WORDS] {
        &self.0.0
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64; ROBUST_SENDER_WORDS] {
        &mut self.0.0
    }

    /// The rate times the base RTT, packets.
    #[inline]
    pub fn window(&self) -> f64 {
        self.0.0[ffi::SENDER_CWND] as f64 / ONE
    }

    /// The time between two packets, ns; `None` before there is an RTT.
    #[inline]
    pub fn gap_ns(&self) -> Option<u64> {
        let (base_ns, window) = (self.0.0[ffi::SENDER_BASE], self.0.0[ffi::SENDER_CWND]);
        let gap = match u32::try_from(base_ns) {
            Ok(0) => return None,
            // All but a few: a division of words.
            Ok(_) => (base_ns << 32).checked_div(window),
            Err(_) => (u128::from(base_ns) << 32)
                .checked_div(window.into())
                .map(|gap| u64::try_from(gap).unwrap_or(u64::MAX)),
        };
        Some(gap.unwrap_or(u64::MAX))
    }

    /// Whole packets that may be in flight, at least 1.
    #[inline]
    pub fn limit(&self) -> u32 {
        // SAFETY: `self.0` was initialised by `new`.
        unsafe { ffi::xcp_shim_robust_sender_limit(&self.0.0) }
    }

    /// Writes the header of a packet that is sent now. `late`: the pacer does not move a packet that
    /// waits when the rate changes, and routers are told so.
    #[inline]
    pub fn write_header(
        &mut self,
        now_ns: u64,
        sendable: &Sendable,
        late: bool,
        header: &mut ForwardHeader,
    ) {
        let limit = sendable.window_limit;
        // SAFETY: as in `limit`; `header` is valid for the call.
        unsafe {
            ffi::xcp_shim_robust_sender_header(&mut self.0.0, now_ns, limit, late.into(), header)
        }
    }

    /// Writes the header of a SYN, which asks for a first window.
    pub fn write_opening(&self, sendable: &Sendable, header: &mut ForwardHeader) {
        let limit = sendable.window_limit;
        // SAFETY: as in `write_header`.
        unsafe { ffi::xcp_shim_robust_sender_open(&self.0.0, limit, header) }
    }

    /// An acknowledgement came. The SYN's comes first, as one that only covers something.
    #[inline]
    pub fn answered(&mut self, answer: &Answer) {
        // SAFETY: as in `limit`; `answer` is valid for the call, and laid out as in C.
        unsafe { ffi::xcp_shim_robust_sender_answered(&mut self.0.0, answer) }
    }

    /// What the SYN was answered, after [`RobustSender::answered`].
    pub fn opened(&mut self, answer: &Answer) {
        // SAFETY: as in `answered`.
        unsafe { ffi::xcp_shim_robust_sender_opened(&mut self.0.0, answer) }
    }

    /// A router on this host has this many packets of the link to give away at once, without a
    /// promise: its rate grows by so many in a round trip.
    pub fn lent(&mut self, now_ns: u64, packets: u32) {
        // SAFETY: as in `limit`.
        unsafe { ffi::xcp_shim_robust_sender_lent(&mut self.0.0, now_ns, packets) }
    }

    /// No answer of this round raises W beyond so many packets, whatever it says: what the peer
    /// takes is known.
    pub fn hold(&mut self, packets: u32) {
        // SAFETY: as in `limit`.
        unsafe { ffi::xcp_shim_robust_sender_hold(&mut self.0.0, packets) }
    }

    /// The retransmission timer expired.
    pub fn on_timeout(&mut self, now_ns: u64) {
        // SAFETY: as in `limit`.
        unsafe { ffi::xcp_shim_robust_sender_timeout(&mut self.0.0, now_ns) }
    }

    /// The most that the retransmission timer need wait for, ns, however often it has expired;
    /// `None`: as long as it likes.
    pub fn patience_ns(&self) -> Option<u64> {
        // SAFETY: as in `limit`.
        let patience = unsafe { ffi::xcp_shim_robust_sender_patience(&self.0.0) };
        (patience > 0).then_some(patience)
    }

    /// A snapshot of its rate and bound.
    pub fn state(&self) -> RobustSenderState {
        let v = self.view();
        RobustSenderState {
            window: packets(v.window),
            explicit_window: packets(v.explicit_window),
            bound_packets: packets(v.bound),
            base_ns: v.base_ns,
            bound: match v.mode {
                0 => Bound::Free,
                1 => Bound::Delay,
                _ => Bound::Compete,
            },
            routed: v.routed != 0,
            binds: v.binds,
            competes: v.competes,
            jumps: v.jumps != 0,
        }
    }

    #[inline]
    fn view(&self) -> ffi::RobustSenderView {
        let mut v = ffi::RobustSenderView::default();
        // SAFETY: reads one initialised sender, writes one view; ffi.rs mirrors the C struct.
        unsafe { ffi::xcp_shim_robust_sender_view(&self.0.0, &mut v) };
        v
    }
}
