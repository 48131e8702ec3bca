//! The summary as scripts read it: one JSON object per run, one run per line.
//!
//! Every number has the name that it has in the tables of a sweep, unit included (`goodput_bps`).
//! The names that were published first (`goodput`) are kept beside them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Serialize, Serializer};
use xcp_model::run::{FlowSummary, GroupSummary, LinkSummary, Run, Summary};
use xcp_model::spread::Percentiles;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    jain: Option<f64>,
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
    queue_delay: BTreeMap<String, f64>,
}

impl<'a> From<&'a LinkSummary> for Link<'a> {
    fn from(link: &'a LinkSummary) -> Self {
        Self {
            first: link,
            queue_mean_packets: link.queue_mean,
            queue_max_packets: link.queue_max,
            queue_delay: percentiles("queue_delay", link.queue_delay),
        }
    }
}

/// A flow, in the same way.
#[derive(Serialize)]
struct Flow<'a> {
    #[serde(flatten)]
    first: &'a FlowSummary,
    flow: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    goodput_bps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_mean_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwnd_mean_packets: Option<f64>,
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
            goodput_bps: flow.goodput(),
            rtt_mean_s: flow.rtt_mean(),
            cwnd_mean_packets: flow.cwnd_mean(),
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
    completion_time: BTreeMap<String, f64>,
    #[serde(flatten)]
    rtt: BTreeMap<String, f64>,
}

impl<'a> From<&'a GroupSummary> for Group<'a> {
    fn from(group: &'a GroupSummary) -> Self {
        Self {
            first: group,
            group: &group.name,
            completion_time: percentiles("completion_time", group.completion_time),
            rtt: percentiles("rtt", group.rtt),
        }
    }
}

/// The columns of a distribution in seconds; none where nothing was measured.
fn percentiles(of: &str, measured: Option<Percentiles>) -> BTreeMap<String, f64> {
    let columns = |p: Percentiles| [("p50", p.p50), ("p95", p.p95), ("p99", p.p99)];
    let named = |(share, seconds)| (format!("{of}_{share}_s"), seconds);
    measured.into_iter().flat_map(columns).map(named).collect()
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
