//! The summary as scripts read it: one JSON object per run, one run per line.
//!
//! Every number has the name that it has in the tables of a sweep, unit included (`goodput_bps`).
//! The names that were published first (`goodput`) are kept beside them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Serialize, Serializer};
use xcp_scenario::run::{FlowSummary, GroupSummary, LinkSummary, Run, Summary};
use xcp_scenario::spread::Percentiles;

/// A summary under both sets of names.
#[derive(Debug, Serialize)]
pub struct Told<'a> {
    seed: u64,
    backend: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    title: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    variant: &'a str,
    #[serde(serialize_with = "links")]
    links: &'a BTreeMap<String, LinkSummary>,
    #[serde(serialize_with = "flows")]
    flows: &'a [FlowSummary],
    #[serde(serialize_with = "groups", skip_serializing_if = "<[_]>::is_empty")]
    groups: &'a [GroupSummary],
    jain: f64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'a [String],
}

impl<'a> From<&'a Summary> for Told<'a> {
    fn from(summary: &'a Summary) -> Self {
        // Whole, so that a new field is not forgotten here.
        let Summary {
            seed,
            backend,
            title,
            variant,
            links,
            flows,
            groups,
            jain,
            interrupted,
            notes,
        } = summary;
        Self {
            seed: *seed,
            backend,
            title,
            variant,
            links,
            flows,
            groups,
            jain: *jain,
            interrupted: *interrupted,
            notes,
        }
    }
}

/// A link direction: its numbers under their first names, and those whose name in the tables is
/// another.
#[derive(Serialize)]
struct Link<'a> {
    #[serde(flatten)]
    first: &'a LinkSummary,
    queue_mean_packets: f64,
    queue_max_packets: u64,
    #[serde(flatten)]
    queue_delay: Option<QueueDelay>,
}

#[derive(Serialize)]
struct QueueDelay {
    queue_delay_p50_s: f64,
    queue_delay_p95_s: f64,
    queue_delay_p99_s: f64,
}

impl<'a> From<&'a LinkSummary> for Link<'a> {
    fn from(link: &'a LinkSummary) -> Self {
        let delay = |p: Percentiles| QueueDelay {
            queue_delay_p50_s: p.p50,
            queue_delay_p95_s: p.p95,
            queue_delay_p99_s: p.p99,
        };
        Self {
            first: link,
            queue_mean_packets: link.queue_mean,
            queue_max_packets: link.queue_max,
            queue_delay: link.queue_delay.map(delay),
        }
    }
}

/// A flow, in the same way.
#[derive(Serialize)]
struct Flow<'a> {
    #[serde(flatten)]
    first: &'a FlowSummary,
    flow: String,
    goodput_bps: f64,
    /// No sample is no mean, not a mean of zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_mean_s: Option<f64>,
    cwnd_mean_packets: f64,
    start_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completion_time_s: Option<f64>,
}

impl<'a> From<&'a FlowSummary> for Flow<'a> {
    fn from(flow: &'a FlowSummary) -> Self {
        Self {
            first: flow,
            flow: flow.name.to_string(),
            goodput_bps: flow.goodput,
            rtt_mean_s: (flow.rtt_mean > 0.0).then_some(flow.rtt_mean),
            cwnd_mean_packets: flow.cwnd_mean,
            start_s: flow.start,
            size_bytes: flow.bytes.map(Into::into),
            completed_at_s: flow.completed_at,
            completion_time_s: flow.completion_time,
        }
    }
}

/// A group of flows, in the same way.
#[derive(Serialize)]
struct Group<'a> {
    #[serde(flatten)]
    first: &'a GroupSummary,
    group: &'a str,
    #[serde(flatten)]
    completion_time: Option<CompletionTime>,
    #[serde(flatten)]
    rtt: Option<Rtt>,
}

#[derive(Serialize)]
struct CompletionTime {
    completion_time_p50_s: f64,
    completion_time_p95_s: f64,
    completion_time_p99_s: f64,
}

#[derive(Serialize)]
struct Rtt {
    rtt_p50_s: f64,
    rtt_p95_s: f64,
    rtt_p99_s: f64,
}

impl<'a> From<&'a GroupSummary> for Group<'a> {
    fn from(group: &'a GroupSummary) -> Self {
        let completion_time = |p: Percentiles| CompletionTime {
            completion_time_p50_s: p.p50,
            completion_time_p95_s: p.p95,
            completion_time_p99_s: p.p99,
        };
        let rtt = |p: Percentiles| Rtt { rtt_p50_s: p.p50, rtt_p95_s: p.p95, rtt_p99_s: p.p99 };
        Self {
            first: group,
            group: &group.name,
            completion_time: group.completion_time.map(completion_time),
            rtt: group.rtt.map(rtt),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
fn links<S: Serializer>(all: &&BTreeMap<String, LinkSummary>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(all.iter().map(|(name, link)| (name, Link::from(link))))
}

fn flows<S: Serializer>(all: &&[FlowSummary], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().map(Flow::from))
}

fn groups<S: Serializer>(all: &&[GroupSummary], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().map(Group::from))
}

/// Writes one line per run, in order, each ending in a newline. Numbers are written in full. A run
/// of many flows makes a long line: it is never held as a whole, and `out` need not be buffered.
///
/// # Errors
/// The writer's.
pub fn write(runs: &[Run], out: impl Write) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    for run in runs {
        serde_json::to_writer(&mut out, &Told::from(&run.summary))?;
        out.write_all(b"\n")?;
    }
    out.flush()
}
