//! What sets the window: the interface of a congestion control, and all there are.
//!
//! One enum, so that the choice costs a branch and no indirection; each rule in its own file. What
//! only XCP has, its headers, goes past the interface: `sender.rs` asks for `Congestion::Xcp`.

mod cubic;
mod reno;
mod robust;
mod vegas;
mod xcp;

use cubic::Cubic;
use reno::Reno;
use robust::RobustWindow;
use vegas::Vegas;
use xcp::XcpWindow;
pub(super) use xcp::engine_format;

use crate::tcp::SenderConfig;
use xcp_engine::ReturnHeader;
use xcp_model::units::Nanos;

/// No window grows beyond this, so that sums of windows fit 32 bits.
const MAX_WINDOW: u32 = 1 << 30;

/// What an acknowledgement says.
///
/// From these a control can take what it needs: a round trip is over when `acknowledged` passes
/// what `sent` was at its beginning; the rate of delivery is what `delivered` has grown by since
/// `sent_at`, by `now - sent_at`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acked {
    /// The time.
    pub now: Nanos,
    /// When the segment was sent that this acknowledgement answers.
    pub sent_at: Nanos,
    /// The round trip it shows; `None` if it acknowledges nothing new (RFC 7323 section 4).
    pub rtt: Option<Nanos>,
    /// The smoothed RTT, this sample included.
    pub srtt: Nanos,
    /// Segments that it acknowledges for the first time; 0: a duplicate.
    pub segments: u32,
    /// First segment that is not acknowledged.
    pub acknowledged: u64,
    /// First segment that was never sent.
    pub sent: u64,
    /// Segments that have arrived, whether acknowledged or reported by SACK.
    pub delivered: u64,
    /// Segments found lost, so far; not those that a timeout took for lost. Wraps.
    pub found_lost: u32,
    /// Nothing was under repair when it came.
    pub open: bool,
    /// Its XCP header.
    pub returned: ReturnHeader,
    /// The receiver's time on it, ms.
    pub stamp_ms: u32,
    /// The window, and nothing else, held the sender back.
    pub limited: bool,
    /// Fast recovery was under way when it came: the window has been reduced, and Reno's does not
    /// grow.
    pub recovering: bool,
}

/// What a congestion control does.
pub(super) trait Control {
    /// As a connection begins.
    fn new(config: &SenderConfig) -> Self;

    /// Whole packets that may be outstanding; at least 1.
    fn cwnd(&self) -> u32;

    /// The window with its fraction, packets.
    fn window(&self) -> f64 {
        f64::from(self.cwnd())
    }

    /// Packets per second to send at; `None`: the window spread over the round trip where the
    /// scenario wants pacing, bursts where it does not.
    fn pacing_rate(&self) -> Option<f64> {
        None
    }

    /// An acknowledgement came.
    fn acked(&mut self, ack: &Acked);

    /// Three duplicate ACKs, or SACK's equivalent, with `flight` packets outstanding.
    fn lost(&mut self, flight: u32);

    /// The retransmission timer expired; `again`: for a segment it had expired for already.
    fn timed_out(&mut self, flight: u32, again: bool);

    /// The window shall be no more than `most` packets: fast recovery is over, and a larger one
    /// would leave in one burst.
    fn limit(&mut self, most: u32);
}

/// The enum of all controls, and the way to each of them.
macro_rules! controls {
    ($($(#[$comment:meta])* $variant:ident($control:ty) = $word:literal,)*) => {
        /// Congestion control.
        #[derive(Debug, Clone)]
        pub(super) enum Congestion {
            $($(#[$comment])* $variant($control),)*
        }

        /// What scenarios call them.
        pub(crate) const WORDS: &[&str] = &[$($word),*];

        impl Control for Congestion {
            fn new(config: &SenderConfig) -> Self {
                match config.control_word() {
                    $($word => Self::$variant(<$control>::new(config)),)*
                    name => unreachable!("a scenario with {name} is refused beforehand"),
                }
            }

            #[inline]
            fn cwnd(&self) -> u32 {
                match self { $(Self::$variant(control) => control.cwnd(),)* }
            }

            #[inline]
            fn window(&self) -> f64 {
                match self { $(Self::$variant(control) => control.window(),)* }
            }

            #[inline]
            fn pacing_rate(&self) -> Option<f64> {
                match self { $(Self::$variant(control) => control.pacing_rate(),)* }
            }

            #[inline]
            fn acked(&mut self, ack: &Acked) {
                match self { $(Self::$variant(control) => control.acked(ack),)* }
            }

            fn lost(&mut self, flight: u32) {
                match self { $(Self::$variant(control) => control.lost(flight),)* }
            }

            fn timed_out(&mut self, flight: u32, again: bool) {
                match self { $(Self::$variant(control) => control.timed_out(flight, again),)* }
            }

            fn limit(&mut self, most: u32) {
                match self { $(Self::$variant(control) => control.limit(most),)* }
            }
        }
    };
}

controls! {
    Reno(Reno) = "reno",
    Cubic(Cubic) = "cubic",
    Vegas(Vegas) = "vegas",
    // The engine's sender is the largest, and a flow has one of these, in place.
    Xcp(XcpWindow) = "xcp",
    Robust(RobustWindow) = "xcp-robust",
}
