//! XCP's window: interim, constant until the engine's sender is there.

use crate::tcp::SenderConfig;
use xcp_engine::{ForwardHeader, ReturnHeader};
use xcp_scenario::units::Nanos;

/// The engine's sender and what the scenario says about losses.
#[derive(Debug, Clone)]
pub(in crate::tcp) struct XcpWindow {
    cwnd: u32,
}

impl XcpWindow {
    pub fn new(config: &SenderConfig) -> Self {
        XcpWindow { cwnd: config.initial_window }
    }

    pub fn cwnd(&self) -> u32 {
        self.cwnd
    }

    pub fn window(&self) -> f64 {
        f64::from(self.cwnd)
    }

    /// The header of a packet sent now, of which at most `sendable` will be sent per round trip.
    pub fn header(&mut self, _now: Nanos, _srtt: Nanos, _sendable: u32) -> ForwardHeader {
        ForwardHeader::default()
    }

    /// Feedback came back.
    pub fn feedback(&mut self, _now: Nanos, _returned: &ReturnHeader, _srtt: Nanos, _limited: bool) {}

    /// Three duplicate ACKs.
    pub fn lost(&mut self) {}

    /// The retransmission timer expired.
    pub fn timed_out(&mut self) {
        self.cwnd = 1;
    }
}
