//! A lab as the recorder sees it: link directions by their queues and lines, flows by their
//! sockets.

use std::sync::Arc;

use xcp_elements::router_quantities;
use xcp_linux::netlink::Netlink;
use xcp_linux::qdisc;
use xcp_model::DirectionId;
use xcp_model::record::{self, LinkCounts};
use xcp_model::run::Quantity;
use xcp_model::units::Nanos;

use super::flows::{FlowView, Flows};
use super::queues::Seen;
use crate::line::Line;
use crate::xcp::Router;

/// Where a link direction is looked at.
pub(crate) enum Source {
    /// A queue of the kernel's, at a device.
    Queue { netlink: Netlink, index: u32, seen: Arc<Seen>, frame_bytes: Option<u32> },
    /// A line that is the queue, by its number.
    Line(usize),
    /// A device without a queue.
    Device { netlink: Netlink, index: u32 },
}

/// One link direction.
pub(crate) struct Direction {
    pub source: Source,
    /// Lines that lose packets of it, by their numbers.
    pub lines: Vec<usize>,
    pub router: Option<Router>,
    /// What was read last: a queue that cannot be read has not changed.
    pub last: LinkCounts,
}

/// All of it.
pub(crate) struct Gauges<'a> {
    pub directions: &'a mut [Direction],
    pub lines: &'a [Line],
    pub flows: &'a Flows,
}

/// Packets that wait. Where one may be several segments (`frame_bytes`: of a full frame), as many
/// as their bytes would be.
pub(crate) fn packets(stats: &qdisc::QdiscStats, frame_bytes: Option<u32>) -> u64 {
    match frame_bytes {
        None => stats.qlen.into(),
        Some(bytes) => stats.backlog_bytes.div_ceil(bytes).into(),
    }
}

impl Direction {
    /// Its counters now.
    fn read(&mut self, now: Nanos, lines: &[Line]) -> LinkCounts {
        let lost = self
            .lines
            .iter()
            .map(|&line| lines[line].report().wire)
            .map(|wire| wire.lost_at_random + wire.lost_in_blackouts)
            .sum();
        // What cannot be read has not changed.
        let refused = self.router.as_ref().and_then(Router::refused).unwrap_or(self.last.refused);
        let counts = match &mut self.source {
            Source::Queue { netlink, index, seen, frame_bytes } => {
                qdisc::stats(netlink, *index).ok().map(|stats| {
                    let queue = packets(&stats, *frame_bytes);
                    seen.look(now, queue);
                    LinkCounts {
                        served_bytes: stats.bytes as f64,
                        sent_packets: stats.packets,
                        drops: u64::from(stats.drops) + refused,
                        refused,
                        lost,
                        queue_integral: seen.integral(),
                        queue,
                    }
                })
            }
            Source::Line(line) => {
                let report = lines[*line].report();
                report.queue.map(|queue| LinkCounts {
                    served_bytes: (queue.taken_bytes - queue.bytes) as f64,
                    sent_packets: queue.taken_packets - queue.packets,
                    drops: report.wire.queue_drops,
                    refused: 0,
                    lost,
                    queue_integral: queue.integral.into(),
                    queue: queue.packets,
                })
            }
            Source::Device { netlink, index } => netlink.sent(*index).ok().map(|sent| LinkCounts {
                served_bytes: sent.bytes as f64,
                sent_packets: sent.packets,
                drops: sent.drops,
                refused: 0,
                lost,
                queue_integral: 0,
                queue: 0,
            }),
        };
        self.last = counts.unwrap_or(LinkCounts { lost, ..self.last });
        self.last
    }
}

impl record::Gauges for Gauges<'_> {
    type Flow<'b>
        = FlowView<'b>
    where
        Self: 'b;

    fn link(&mut self, number: DirectionId, now: Nanos) -> LinkCounts {
        self.directions[number].read(now, self.lines)
    }

    fn take_queue_max(&mut self, number: DirectionId, _: Nanos) -> u64 {
        match &self.directions[number].source {
            Source::Queue { seen, .. } => seen.take_max(),
            // A report's maximum is since the report before.
            Source::Line(line) => {
                self.lines[*line].report().queue.map_or(0, |queue| queue.max_packets)
            }
            Source::Device { .. } => 0,
        }
    }

    fn router(&mut self, number: DirectionId, _: Nanos) -> Option<Vec<(Quantity, f64)>> {
        Some(router_quantities(&self.directions[number].router.as_mut()?.state()?).to_vec())
    }

    fn flow(&self, number: usize) -> FlowView<'_> {
        self.flows.flow(number)
    }
}
