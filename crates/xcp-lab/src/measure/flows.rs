//! How flows stand: what their receivers have read, and what the kernel (of XCP flows our endpoint)
//! says of their senders.

use std::sync::{Arc, Mutex, PoisonError};

use xcp_model::record::{FlowGauge, Totals};
use xcp_model::units::{NANOS_PER_SEC, Nanos};

use crate::plan::Kind;
use crate::traffic::socket::TcpInfo;
use crate::traffic::{FlowState, Shared};
use crate::xcp::Reading;

/// Looks at the flows of a run.
pub(crate) struct Flows {
    shared: Arc<Shared>,
    meters: Vec<Mutex<Meter>>,
}

/// What has been seen of a flow.
#[derive(Debug, Clone, Copy, Default)]
struct Meter {
    info: Option<TcpInfo>,
    xcp: Option<Reading>,
    /// Of the smoothed RTT, whenever acknowledgements have come since the look before.
    rtt_sum: u128,
    rtt_samples: u64,
}

impl Flows {
    /// Looks at these.
    pub fn new(shared: &Arc<Shared>) -> Self {
        Self {
            shared: shared.clone(),
            meters: shared.flows.iter().map(|_| Mutex::default()).collect(),
        }
    }

    /// Looks at all connections that are under way, and takes a sample of their round-trip times.
    pub fn sample(&self) {
        let under_way = |number: &usize| self.shared.states[*number].completed_at().is_none();
        (0..self.meters.len()).filter(under_way).for_each(|number| self.look(number, true));
    }

    /// Looks at a connection, if it has begun.
    fn look(&self, number: usize, sample: bool) {
        let Some(socket) = self.shared.states[number].sender() else { return };
        let Ok(info) = TcpInfo::of(socket) else { return };
        let xcp = self.shared.xcp.as_ref().and_then(|xcp| xcp.flow(socket));
        let mut meter = self.meters[number].lock().unwrap_or_else(PoisonError::into_inner);
        if sample
            && info.srtt > 0
            && meter.info.is_none_or(|before| before.segments_in != info.segments_in)
        {
            meter.rtt_sum += u128::from(info.srtt);
            meter.rtt_samples += 1;
        }
        // An endpoint that has forgotten a connection keeps its last word.
        meter.xcp = xcp.or(meter.xcp);
        meter.info = Some(info);
    }

    /// Flows that were to speak XCP and do not any more, and why.
    pub fn fallen(&self) -> impl Iterator<Item = (usize, String)> + '_ {
        let why = |meter: &Mutex<Meter>| {
            meter.lock().unwrap_or_else(PoisonError::into_inner).xcp.and_then(|xcp| xcp.fallen())
        };
        self.meters
            .iter()
            .enumerate()
            .filter_map(move |(number, meter)| Some((number, why(meter)?)))
    }

    /// A flow as it is now.
    pub fn flow(&self, number: usize) -> FlowView<'_> {
        let (plan, state) = (&self.shared.flows[number], &self.shared.states[number]);
        if state.completed_at().is_none() {
            self.look(number, false);
        }
        let meter = *self.meters[number].lock().unwrap_or_else(PoisonError::into_inner);
        let congestion =
            if let Kind::Tcp(tcp) = &plan.kind { Some(tcp.congestion.is_none()) } else { None };
        FlowView { start: plan.start.unwrap_or(Nanos::MAX), xcp: congestion, state, meter }
    }
}

/// A flow, to look at.
pub(crate) struct FlowView<'a> {
    start: Nanos,
    /// Whether it speaks XCP; `None` for datagrams.
    xcp: Option<bool>,
    state: &'a FlowState,
    meter: Meter,
}

impl FlowGauge for FlowView<'_> {
    fn start(&self) -> Nanos {
        self.start
    }

    fn totals(&self) -> Totals {
        let info = self.meter.info.unwrap_or_default();
        // Of an XCP flow always the endpoint's, which never go back, even if it has nothing to say
        // yet.
        let (rtt_sum, rtt_samples) = if self.xcp == Some(true) {
            self.meter.xcp.map_or((0, 0), |xcp| (xcp.rtt_sum, xcp.rtt_samples))
        } else {
            (self.meter.rtt_sum, self.meter.rtt_samples)
        };
        Totals {
            delivered_bytes: self.state.delivered(),
            delivered_while_active: self.state.delivered_while_active(),
            retransmits: info.retransmits,
            timeouts: info.timeouts.unwrap_or(0),
            rtt_sum,
            rtt_samples,
        }
    }

    fn cwnd_packets(&self) -> Option<f64> {
        let info = self.meter.info?;
        Some(
            self.meter
                .xcp
                .filter(|xcp| xcp.sending)
                .map_or(f64::from(info.cwnd), |xcp| xcp.cwnd_packets),
        )
    }

    fn srtt_seconds(&self) -> Option<f64> {
        let srtt = self
            .meter
            .xcp
            .filter(|xcp| xcp.sending)
            .map(|xcp| xcp.srtt)
            .or(self.meter.info.map(|info| info.srtt))?;
        Some(srtt).filter(|&srtt| srtt > 0).map(|srtt| srtt as f64 / NANOS_PER_SEC as f64)
    }

    fn completed_at(&self) -> Option<Nanos> {
        self.state.completed_at()
    }
}
