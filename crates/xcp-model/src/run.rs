//! What every backend returns: a summary for tables and scripts, and series for plots. Knows
//! neither backends nor reports.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::name::FlowName;
use crate::spread::Percentiles;
use crate::units::Nanos;
use crate::values::Values;

/// The result of one scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Title of the scenario.
    pub title: String,
    /// The variant's name; empty where the file has none.
    pub variant: String,
    /// How far the run came; less than the scenario's duration if it was interrupted.
    pub completed: Nanos,
    /// The duration that was asked for.
    pub duration: Nanos,
    /// The numbers over the measured period.
    pub summary: Summary,
    /// The curves over the whole run.
    pub series: Vec<Series>,
}

/// The numbers of a run, over the measured period. Field names are a published contract: they are
/// kept, more may come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Seed of the run.
    pub seed: u64,
    /// Backend that ran it: `sim` or `linux`.
    pub backend: String,
    /// Title of the scenario.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Name of the variant.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// By link direction: `NAME`, and `NAME.reverse` for the other way.
    pub links: BTreeMap<String, LinkSummary>,
    /// In the scenario's order.
    pub flows: Vec<FlowSummary>,
    /// What is said of flows together: one for each `[[flow]]` of the file, in its order. `flows`
    /// has the members of the first, then those of the second, and so on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupSummary>,
    /// Jain's fairness index of the goodputs of the TCP flows active in the measured period; `None`
    /// when there are none, or none of them gets anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jain: Option<f64>,
    /// Whether the run was cut short.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// What one should know before believing the numbers: settings the backend could only
    /// approximate, signs that the run went wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One direction of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkSummary {
    /// Wire bytes sent over capacity, 0..=1.
    pub utilisation: f64,
    /// Time-weighted mean queue, packets, the one in service not counted.
    pub queue_mean: f64,
    /// Largest queue in the measured period, packets.
    pub queue_max: u64,
    /// Packets dropped by the queue, those that its policer refused among them.
    pub drops: u64,
    /// Of these: packets that the policer refused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// Packets lost on the link (random loss, blackout), not by the queue.
    pub lost: u64,
    /// Packets sent in the measured period.
    pub packets: u64,
    /// What packets waited in the queue, those that did not wait among them; `None` where the
    /// backend does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_delay: Option<Percentiles>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The numbers of one flow over the measured period.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Name of the flow.
    pub name: FlowName,
    /// Whether it was active in some part of the measured period: started, not stopped, not
    /// complete. If not, it has no goodput, and counts in no mean of several flows.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub active: bool,
    /// Payload delivered in order to the receiving application, bit/s, over the part of the
    /// measured period in which the flow was active.
    pub goodput: f64,
    /// Mean of the RTT samples, seconds; 0 if there were none.
    pub rtt_mean: f64,
    /// Segments sent again in the measured period.
    pub retransmits: u64,
    /// Retransmission timeouts in the measured period.
    pub timeouts: u32,
    /// Mean congestion window, packets, sampled at the end of every sampling interval; 0 if there
    /// was none.
    pub cwnd_mean: f64,
    /// When a finite transfer was completely acknowledged, seconds from the start of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<f64>,
    /// How long that took from the flow's start, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<f64>,
    /// When it started, jitter included, seconds.
    #[serde(default)]
    pub start: f64,
    /// Bytes to transfer; `None`: without end, or datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<NonZeroU64>,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_true(yes: &bool) -> bool {
    *yes
}

impl FlowSummary {
    /// `goodput` of a flow that was active.
    #[must_use]
    pub fn goodput(&self) -> Option<f64> {
        self.active.then_some(self.goodput)
    }

    /// `rtt_mean` where there was a sample: no sample is no mean, not a mean of zero.
    #[must_use]
    pub fn rtt_mean(&self) -> Option<f64> {
        (self.rtt_mean > 0.0).then_some(self.rtt_mean)
    }

    /// `cwnd_mean` where there was a window.
    #[must_use]
    pub fn cwnd_mean(&self) -> Option<f64> {
        (self.cwnd_mean > 0.0).then_some(self.cwnd_mean)
    }
}

/// The flows of one `[[flow]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupSummary {
    /// Name of the group.
    pub name: String,
    /// The node where they begin.
    pub from: String,
    /// The node where they end.
    pub to: String,
    /// How many there are.
    pub flows: usize,
    /// How many of them completed their transfer, in the whole run.
    pub completed: usize,
    /// How long those took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Percentiles>,
    /// All their RTT samples of the measured period; `None` where there was none, or where the
    /// backend does not tell them one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Percentiles>,
}

/// One quantity of one link or flow over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The link or flow that it describes.
    pub subject: Subject,
    /// The quantity that it shows.
    pub quantity: Quantity,
    /// Ends of the sampling intervals; shared by the series of a run.
    pub times: Arc<Vec<Nanos>>,
    /// One value per time; NaN where there is none.
    pub values: Values,
}

/// What a series describes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Subject {
    /// A link direction: `NAME` or `NAME.reverse`.
    Link(String),
    /// A flow.
    Flow(String),
}

/// A measured quantity. Averages and counts are over the sampling interval that ends at the time;
/// "now" is at that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Quantity {
    /// Link: wire bytes sent over capacity.
    Utilisation,
    /// Link: time-weighted mean queue, packets.
    QueueMean,
    /// Link: largest queue, packets.
    QueueMax,
    /// Link: packets dropped by the queue.
    Drops,
    /// Link: packets lost on the link.
    Lost,
    /// Flow: payload delivered in order, bit/s.
    Goodput,
    /// Flow: congestion window now, packets.
    Cwnd,
    /// Flow: smoothed RTT now, seconds.
    Srtt,
    /// Flow: segments sent again.
    Retransmits,
    /// XCP router: length of the control interval now (mean RTT), seconds.
    ControlInterval,
    /// XCP router: flows it estimates.
    FlowsEstimated,
    /// XCP router: aggregate feedback phi of the last interval, bit/s.
    Phi,
    /// XCP router: shuffled traffic of the last interval, bit/s.
    Shuffled,
    /// XCP router: persistent queue now, bytes.
    PersistentQueue,
    /// XCP router: input traffic of the last interval, bit/s.
    InputTraffic,
}

impl Quantity {
    /// All of them, in their order.
    pub const ALL: [Self; 15] = [
        Self::Utilisation,
        Self::QueueMean,
        Self::QueueMax,
        Self::Drops,
        Self::Lost,
        Self::Goodput,
        Self::Cwnd,
        Self::Srtt,
        Self::Retransmits,
        Self::ControlInterval,
        Self::FlowsEstimated,
        Self::Phi,
        Self::Shuffled,
        Self::PersistentQueue,
        Self::InputTraffic,
    ];

    /// Whether it is a flow's, and not a link direction's.
    #[must_use]
    pub fn is_of_flows(self) -> bool {
        matches!(self, Self::Goodput | Self::Cwnd | Self::Srtt | Self::Retransmits)
    }

    /// Whether only link directions with an XCP router have it.
    #[must_use]
    pub fn is_of_routers(self) -> bool {
        matches!(
            self,
            Self::ControlInterval
                | Self::FlowsEstimated
                | Self::Phi
                | Self::Shuffled
                | Self::PersistentQueue
                | Self::InputTraffic
        )
    }

    /// Column name: `snake_case`, unit included where it is not plain.
    #[must_use]
    pub fn column(self) -> &'static str {
        match self {
            Self::Utilisation => "utilisation",
            Self::QueueMean => "queue_mean_packets",
            Self::QueueMax => "queue_max_packets",
            Self::Drops => "drops",
            Self::Lost => "lost",
            Self::Goodput => "goodput_bps",
            Self::Cwnd => "cwnd_packets",
            Self::Srtt => "srtt_s",
            Self::Retransmits => "retransmits",
            Self::ControlInterval => "control_interval_s",
            Self::FlowsEstimated => "flows_estimated",
            Self::Phi => "phi_bps",
            Self::Shuffled => "shuffled_bps",
            Self::PersistentQueue => "persistent_queue_bytes",
            Self::InputTraffic => "input_traffic_bps",
        }
    }
}

/// Watches a run and may end it.
pub trait Observer {
    /// Called a few hundred times in a run, and more often in a long one, with the time of the run;
    /// `Break` ends it there.
    fn progress(&mut self, now: Nanos) -> ControlFlow<()>;
}

/// Observes nothing.
impl Observer for () {
    fn progress(&mut self, _: Nanos) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Run {
    /// The series of a subject, if it was recorded.
    #[must_use]
    pub fn find(&self, subject: &Subject, quantity: Quantity) -> Option<&Series> {
        self.series.iter().find(|s| s.quantity == quantity && &s.subject == subject)
    }
}

/// Jain's fairness index, (Σx)² / (n Σx²): 1 when all are equal, 1/n when one has everything. `None`
/// where there is nothing to share: of an empty or all-zero list.
#[must_use]
pub fn jain(rates: &[f64]) -> Option<f64> {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}
