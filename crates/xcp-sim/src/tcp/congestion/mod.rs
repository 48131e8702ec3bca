//! What sets the window. One enum, so that the choice costs a branch and no indirection; each rule in its own file.

mod cubic;
mod reno;
mod xcp;

use cubic::Cubic;
use reno::Reno;
use xcp::XcpWindow;
pub(super) use xcp::engine_format;

use crate::tcp::SenderConfig;
use xcp_scenario::model;
use xcp_scenario::units::Nanos;

/// No window grows beyond this, so that sums of windows fit 32 bits.
const MAX_WINDOW: u32 = 1 << 30;

/// Congestion control.
#[derive(Debug, Clone)]
pub(super) enum Congestion {
    Reno(Reno),
    Cubic(Cubic),
    // The engine's sender is the larger one, and a flow has one of these, in place.
    Xcp(XcpWindow),
}

impl Congestion {
    pub fn new(config: &SenderConfig) -> Self {
        match &config.congestion {
            model::Congestion::Reno => Congestion::Reno(Reno::new(config.initial_window)),
            model::Congestion::Cubic => Congestion::Cubic(Cubic::new(config.initial_window)),
            model::Congestion::Xcp => Congestion::Xcp(XcpWindow::new(config)),
            model::Congestion::Kernel(name) => unreachable!("the simulator refuses scenarios with a kernel's congestion control, {name}"),
        }
    }

    /// Whole packets that may be outstanding; at least 1.
    #[inline]
    pub fn cwnd(&self) -> u32 {
        match self {
            Congestion::Reno(c) => c.cwnd(),
            Congestion::Cubic(c) => c.cwnd(),
            Congestion::Xcp(c) => c.cwnd(),
        }
    }

    /// The window with its fraction, packets.
    pub fn window(&self) -> f64 {
        match self {
            Congestion::Reno(c) => f64::from(c.cwnd()),
            Congestion::Cubic(c) => c.window(),
            Congestion::Xcp(c) => c.window(),
        }
    }

    /// `segments` were acknowledged for the first time, outside of fast recovery; `limited`: the window, and nothing else, held the sender back.
    #[inline]
    pub fn acked(&mut self, now: Nanos, srtt: Nanos, segments: u32, limited: bool) {
        match self {
            Congestion::Reno(c) => {
                if limited {
                    c.acked(segments);
                }
            }
            Congestion::Cubic(c) => c.acked(now, srtt, segments, limited),
            Congestion::Xcp(_) => {}
        }
    }

    /// Three duplicate ACKs, or SACK's equivalent, with `flight` packets outstanding.
    pub fn lost(&mut self, flight: u32) {
        match self {
            Congestion::Reno(c) => c.lost(flight),
            Congestion::Cubic(c) => c.lost(flight),
            Congestion::Xcp(c) => c.lost(),
        }
    }

    /// Fast recovery is over and `flight` packets are outstanding. RFC 6582 §3.2 step 3, full acknowledgements, option 1: no burst.
    pub fn recovered_without_burst(&mut self, flight: u32) {
        let most = flight.max(1) + 1;
        match self {
            Congestion::Reno(c) => c.limit(most),
            Congestion::Cubic(c) => c.limit(most),
            // The window is the routers', what the network takes is not a matter of this sender's losses.
            Congestion::Xcp(_) => {}
        }
    }

    /// The retransmission timer expired; `again`: for a segment it had expired for already.
    pub fn timed_out(&mut self, flight: u32, again: bool) {
        match self {
            Congestion::Reno(c) => c.timed_out(flight, again),
            Congestion::Cubic(c) => c.timed_out(flight, again),
            Congestion::Xcp(c) => c.timed_out(),
        }
    }
}
