//! What a router that runs a law shows of itself.

/// What a router's last closed control interval came to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RouterState {
    /// d: the estimate the law divides by, seconds.
    pub mean_rtt_s: f64,
    /// Length planned for the running interval, seconds: d within the configured bounds.
    pub control_interval_s: f64,
    /// The shortest control interval that the law allows, seconds.
    pub min_interval_s: f64,
    /// The longest one, and the longest RTT that is believed, seconds.
    pub max_interval_s: f64,
    /// Flows, estimated as the sum of RTT/window over the interval's packets, divided by its
    /// length.
    pub flows_estimated: f64,
    /// Aggregate feedback F (phi), bit/s.
    pub phi_bps: f64,
    /// Traffic shuffled in the last control interval, bit/s.
    pub shuffled_bps: f64,
    /// Input traffic y, overhead included, bit/s.
    pub input_traffic_bps: f64,
    /// Queue that did not drain within the last interval, bytes.
    pub persistent_queue_bytes: f64,
    /// Left to hand out in the running interval, bit/s.
    pub residue_pos_bps: f64,
    /// Left to take back in the running interval, bit/s.
    pub residue_neg_bps: f64,
    /// Capacity that the law was told, bit/s.
    pub capacity_bps: f64,
    /// Intervals closed so far.
    pub intervals: u64,
}
