//! XCP's window: the engine's sender, and what the scenario says about losses. No arithmetic of the
//! protocol here.
//!
//! 1. Three duplicate ACKs: retransmit, and leave the window alone or halve it, as the scenario
//!    chooses; while no router has been heard of, the engine halves it in any case. The draft's
//!    answer, TCP for the rest of the connection, is not offered.
//! 2. The window moves with every ACK's feedback, in recovery too; slow start and additive increase
//!    exist only as the engine's requests while no router has been heard of.
//! 3. A retransmission timeout: one packet, as all XCP senders have it.

use super::{Acked, Control};
use crate::tcp::SenderConfig;
use xcp_engine::{ForwardHeader, ReturnHeader, Sendable};
use xcp_model::units::Nanos;
use xcp_model::{LossResponse, WireFormat};

/// The engine's name for a format of the scenario's.
pub(in crate::tcp) fn engine_format(wire: WireFormat) -> xcp_engine::WireFormat {
    match wire {
        WireFormat::Classic | WireFormat::ClassicInteger => xcp_engine::WireFormat::Classic,
        WireFormat::Extended => xcp_engine::WireFormat::Extended,
    }
}

/// The engine's sender.
#[derive(Debug, Clone)]
pub(in crate::tcp) struct XcpWindow {
    engine: xcp_engine::Sender,
    response: LossResponse,
}

impl Control for XcpWindow {
    fn new(config: &SenderConfig) -> Self {
        let mut settings = xcp_engine::SenderConfig {
            initial_window: config.initial_window,
            honest: config.honest,
            whole_packets: config.wire == WireFormat::ClassicInteger,
            ids: config.ids,
            ..xcp_engine::SenderConfig::new(
                engine_format(config.wire),
                config.overhead + config.payload,
            )
        };
        if let Some(kept) = config.kept_window {
            // Between bounds that leave it no room nothing moves the window; who is not honest asks
            // for all there is.
            settings = xcp_engine::SenderConfig {
                initial_window: kept,
                min_window: f64::from(kept),
                max_window: kept,
                honest: false,
                ..settings
            };
        }
        XcpWindow { engine: xcp_engine::Sender::new(&settings), response: config.loss_response }
    }

    #[inline]
    fn cwnd(&self) -> u32 {
        self.engine.cwnd()
    }

    #[inline]
    fn window(&self) -> f64 {
        self.engine.window()
    }

    /// The window is the routers': what an ACK says to it, it says by its feedback.
    #[inline]
    fn acked(&mut self, _: &Acked) {}

    fn lost(&mut self, _flight: u32) {
        self.engine.on_loss(match self.response {
            LossResponse::None => false,
            LossResponse::Halve => true,
        });
    }

    fn timed_out(&mut self, _flight: u32, _again: bool) {
        self.engine.on_timeout();
    }

    /// What the network takes is not a matter of this sender's losses.
    fn limit(&mut self, _: u32) {}
}

impl XcpWindow {
    /// Writes the header of a packet sent now; buffers, data and recovery let at most `sendable`
    /// packets be outstanding.
    #[inline]
    pub fn write_header(
        &mut self,
        now: Nanos,
        srtt: Nanos,
        sendable: u32,
        header: &mut ForwardHeader,
    ) {
        self.engine.write_header(now, srtt, &Sendable { window_limit: sendable }, header);
    }

    /// Feedback came back; `limited`: the window is what holds the sender back.
    #[inline]
    pub fn feedback(&mut self, now: Nanos, returned: &ReturnHeader, srtt: Nanos, limited: bool) {
        self.engine.feedback(now, returned, srtt, limited);
    }
}
