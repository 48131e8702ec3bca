//! What is recorded while a run goes on: series at every tick, and the state of all counters at
//! both ends of the measured period. One set of rules for every backend, which shows its links and
//! flows as [`Gauges`]; they are only looked at.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::advice::advice;
use crate::model::{self, Direction, DirectionId, Sampling, Scenario};
use crate::run::{
    FlowSummary, GroupSummary, LinkSummary, Quantity, Run, Series, Subject, Summary, jain,
};
use crate::spread::{Percentiles, Spread};
use crate::steps::Steps;
use crate::units::{NANOS_PER_SEC, Nanos, Period};
use crate::values::Values;

/// No time: what never happens.
const NEVER: Nanos = Nanos::MAX;

/// What a backend has counted, by the scenario's numbers of link directions and flows. All counts
/// are from the beginning of the run.
pub trait Gauges {
    /// A flow, to look at.
    type Flow<'a>: FlowGauge
    where
        Self: 'a;

    /// A link direction until `now`.
    fn link(&mut self, number: DirectionId, now: Nanos) -> LinkCounts;

    /// Its largest queue since the last call, packets; the present one at least.
    fn take_queue_max(&mut self, number: DirectionId, now: Nanos) -> u64;

    /// What its XCP router says of itself; `None` where there is none. Which quantities these are
    /// never changes in a run.
    fn router(&mut self, number: DirectionId, now: Nanos) -> Option<Vec<(Quantity, f64)>>;

    /// A flow.
    fn flow(&self, number: usize) -> Self::Flow<'_>;

    /// The measured period begins: from now on waiting times and round trips are counted, if the
    /// backend can.
    fn measure(&mut self, _now: Nanos) {}

    /// What the packets waited that have come to a link direction since then, and have gone into
    /// service.
    fn waits(&mut self, _number: DirectionId) -> Option<Spread> {
        None
    }

    /// The RTT samples of a group of flows since then; groups are numbered as the scenario has
    /// them.
    fn round_trips(&mut self, _group: usize) -> Option<Spread> {
        None
    }
}

/// What a link direction has counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinkCounts {
    /// Wire bytes sent, those of a packet in service as far as they have left.
    pub served_bytes: f64,
    /// Packets sent so far.
    pub sent_packets: u64,
    /// Packets dropped by the queue.
    pub drops: u64,
    /// Of these: by its policer.
    pub refused: u64,
    /// Packets lost on the link.
    pub lost: u64,
    /// Waiting packets integrated over time, packet nanoseconds.
    pub queue_integral: u128,
    /// Packets waiting at the moment.
    pub queue: u64,
}

/// A flow while it runs.
pub trait FlowGauge {
    /// When it really starts, jitter included.
    fn start(&self) -> Nanos;
    /// Counters so far.
    fn totals(&self) -> Totals;
    /// Congestion window now, packets; `None` for a flow without one.
    fn cwnd_packets(&self) -> Option<f64>;
    /// Smoothed RTT now, seconds; `None` before the first sample.
    fn srtt_seconds(&self) -> Option<f64>;
    /// When a finite transfer was completely acknowledged.
    fn completed_at(&self) -> Option<Nanos>;
}

/// What a flow has counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Payload delivered in order, bytes.
    pub delivered_bytes: u64,
    /// The same without what came after the flow had been told to stop.
    pub delivered_while_active: u64,
    /// Segments sent again so far.
    pub retransmits: u64,
    /// Retransmission timeouts so far.
    pub timeouts: u64,
    /// Sum of the RTT samples, nanoseconds.
    pub rtt_sum: u128,
    /// Number of RTT samples.
    pub rtt_samples: u64,
}

/// What a line of this rate could send in a stretch of time, bytes.
#[must_use]
pub fn capacity_bytes(rate_bps: u64, length: Nanos) -> f64 {
    rate_bps as f64 / 8.0 * (length as f64 / NANOS_PER_SEC as f64)
}

/// Ticks of a run whose series are switched off: means over samples still want some.
const UNRECORDED_TICKS: u64 = 100;

/// The recorder of one run.
#[derive(Debug)]
pub struct Recorder<'s> {
    backend: &'static str,
    scenario: &'s Scenario,
    interval: Nanos,
    recording: bool,
    times: Vec<Nanos>,
    links: Vec<LinkRecord>,
    flows: Vec<FlowRecord>,
    /// Of each flow, if series are recorded.
    series: Vec<FlowSeries>,
    /// Each flow's counters when the measured period began; empty if that was before anything was
    /// counted.
    from: Vec<Totals>,
    /// Each flow's numbers, made when the measured period ends.
    summaries: Vec<FlowSummary>,
    /// RTT samples of that period, by group.
    round_trips: Vec<Option<Percentiles>>,
    /// Jain's index of that period.
    jain: Option<f64>,
    phase: Phase,
    measured: Period,
    looks: Looks,
}

/// When to look next, by what for; [`NEVER`] when that has been done.
#[derive(Debug)]
struct Looks {
    tick: Nanos,
    measure_from: Nanos,
    measure_to: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Before,
    Within,
    After,
}

#[derive(Debug, Default)]
struct LinkRecord {
    name: String,
    rates: Steps,
    last: LinkMark,
    from: LinkMark,
    to: LinkMark,
    interval_max: u64,
    measured_max: u64,
    waits: Option<Percentiles>,
    columns: Vec<(Quantity, Values)>,
}

/// A link's counters at some time.
#[derive(Debug, Clone, Copy, Default)]
struct LinkMark {
    at: Nanos,
    counts: LinkCounts,
}

/// What every flow needs. There may be a million of them: what only some runs want is kept apart.
#[derive(Debug, Clone, Copy, Default)]
struct FlowRecord {
    cwnd_sum: f64,
    cwnd_samples: u64,
}

/// A flow's series.
#[derive(Debug, Default)]
struct FlowSeries {
    last: Totals,
    columns: Vec<(Quantity, Values)>,
}

impl<'s> Recorder<'s> {
    /// A recorder for a scenario, run by `backend`.
    #[must_use]
    pub fn new(scenario: &'s Scenario, backend: &'static str) -> Self {
        let (interval, recording) = match scenario.sample {
            Sampling::Off => ((scenario.duration / UNRECORDED_TICKS).max(1), false),
            Sampling::Every(interval) | Sampling::PerRtt(interval) => {
                (interval.max(1), scenario.series)
            }
        };
        let links = scenario.links.iter().flat_map(|link| {
            let names = [link.name.clone(), format!("{}.reverse", link.name)];
            let rates = link.directions.each_ref().map(Direction::rates);
            names.into_iter().zip(rates).map(|(name, rates)| LinkRecord {
                name,
                rates,
                ..LinkRecord::default()
            })
        });
        Self {
            backend,
            scenario,
            interval,
            recording,
            times: Vec::new(),
            links: links.collect(),
            flows: vec![FlowRecord::default(); scenario.flows.len()],
            series: if recording {
                scenario.flows.iter().map(|_| FlowSeries::default()).collect()
            } else {
                Vec::new()
            },
            from: Vec::new(),
            summaries: Vec::new(),
            round_trips: Vec::new(),
            jain: None,
            phase: Phase::Before,
            measured: scenario.measure,
            looks: Looks {
                tick: interval,
                measure_from: scenario.measure.from,
                measure_to: scenario.measure.to,
            },
        }
    }

    /// When it wants to look next. At that time, before anything else happens, [`Recorder::look`]
    /// is to be called.
    #[must_use]
    pub fn next_look(&self) -> Nanos {
        self.looks.tick.min(self.looks.measure_from).min(self.looks.measure_to)
    }

    /// The ends of the sampling intervals so far.
    #[must_use]
    pub fn times(&self) -> &[Nanos] {
        &self.times
    }

    /// The series of link directions so far, by name; none if none are kept.
    pub fn link_series(&self) -> impl Iterator<Item = (&str, Quantity, &Values)> {
        self.links.iter().flat_map(|link| {
            link.columns.iter().map(|(quantity, values)| (&link.name[..], *quantity, values))
        })
    }

    /// The series of flows so far, by their numbers in the scenario; none if none are kept.
    pub fn flow_series(&self) -> impl Iterator<Item = (usize, Quantity, &Values)> {
        self.series.iter().enumerate().flat_map(|(number, flow)| {
            flow.columns.iter().map(move |(quantity, values)| (number, *quantity, values))
        })
    }

    /// Looks. Returns whether a sampling interval ended.
    pub fn look(&mut self, now: Nanos, gauges: &mut impl Gauges) -> bool {
        let ticks = self.looks.tick == now;
        if ticks {
            self.tick(now, gauges);
            self.looks.tick = now + self.interval;
        }
        if self.looks.measure_from == now {
            self.measure_from(now, gauges);
            self.looks.measure_from = NEVER;
        }
        if self.looks.measure_to == now {
            self.measure_to(now, gauges);
            self.looks.measure_to = NEVER;
        }
        ticks
    }

    /// A sampling interval ends.
    fn tick(&mut self, now: Nanos, gauges: &mut impl Gauges) {
        self.times.push(now);
        for (number, record) in self.links.iter_mut().enumerate() {
            record.collect_max(gauges.take_queue_max(number, now), self.phase);
            if self.recording {
                record.sample(number, now, gauges);
            }
            record.interval_max = gauges.link(number, now).queue;
        }
        let specs = &self.scenario.flows;
        if self.phase == Phase::Within {
            for (number, (record, spec)) in self.flows.iter_mut().zip(specs).enumerate() {
                let flow = &gauges.flow(number);
                if flow.start() < now && now <= end(spec, flow) {
                    record.sample_cwnd(flow);
                }
            }
        }
        for (number, (series, spec)) in self.series.iter_mut().zip(specs).enumerate() {
            let flow = &gauges.flow(number);
            series.sample(now, self.interval, flow, end(spec, flow));
        }
    }

    /// The measured period begins.
    fn measure_from(&mut self, now: Nanos, gauges: &mut impl Gauges) {
        for (number, record) in self.links.iter_mut().enumerate() {
            record.collect_max(gauges.take_queue_max(number, now), self.phase);
            record.from = LinkMark { at: now, counts: gauges.link(number, now) };
            record.measured_max = record.from.counts.queue;
        }
        if now > 0 {
            self.from = (0..self.flows.len()).map(|number| gauges.flow(number).totals()).collect();
        }
        gauges.measure(now);
        self.measured.from = now;
        self.phase = Phase::Within;
    }

    /// The measured period ends.
    fn measure_to(&mut self, now: Nanos, gauges: &mut impl Gauges) {
        for (number, record) in self.links.iter_mut().enumerate() {
            record.collect_max(gauges.take_queue_max(number, now), self.phase);
            record.to = LinkMark { at: now, counts: gauges.link(number, now) };
            record.waits = gauges.waits(number).and_then(|waits| waits.percentiles());
        }
        let groups = 0..self.scenario.groups().count();
        self.round_trips = groups
            .map(|group| gauges.round_trips(group).and_then(|spread| spread.percentiles()))
            .collect();
        self.measured.to = now;
        self.summaries.reserve_exact(self.flows.len());
        let mut goodputs = Vec::new();
        let begun = self.from.iter().copied().chain(std::iter::repeat(Totals::default()));
        for (number, ((record, spec), from)) in
            self.flows.iter_mut().zip(&self.scenario.flows).zip(begun).enumerate()
        {
            let flow = &gauges.flow(number);
            // A flow, or a measured period, between two ticks: what the window is now has to do.
            if record.cwnd_samples == 0
                && flow.start() < now
                && end(spec, flow) > self.measured.from
            {
                record.sample_cwnd(flow);
            }
            let active = active(spec, flow, self.measured);
            let summary = record.summary(spec, active, &from, &flow.totals());
            if spec.is_tcp() && summary.active {
                goodputs.push(summary.goodput);
            }
            self.summaries.push(summary);
        }
        self.jain = jain(&goodputs);
        self.from = Vec::new();
        self.phase = Phase::After;
    }

    /// Closes the books at `now` and makes the run of them.
    #[must_use]
    pub fn finish(mut self, now: Nanos, interrupted: bool, gauges: &mut impl Gauges) -> Run {
        if self.phase == Phase::Before {
            // Interrupted before anything was to be measured: what there is, from the beginning.
            self.measured.from = 0;
            self.phase = Phase::Within;
        }
        if self.phase == Phase::Within {
            self.measure_to(now, gauges);
        }
        for (number, summary) in self.summaries.iter_mut().enumerate() {
            let flow = gauges.flow(number);
            summary.completed_at = flow.completed_at().map(seconds);
            summary.completion_time = flow.completed_at().map(|at| seconds(at - flow.start()));
            summary.start = seconds(flow.start());
        }
        let groups = self.groups();
        let scenario = self.scenario;
        let summary = Summary {
            seed: scenario.seed,
            backend: self.backend.into(),
            title: scenario.title.clone(),
            variant: scenario.variant.clone(),
            links: self
                .links
                .iter()
                .map(|record| (record.name.clone(), record.summary()))
                .collect(),
            flows: self.summaries,
            groups,
            jain: self.jain,
            interrupted,
            notes: advice(scenario),
        };
        let times = Arc::new(self.times);
        let series = |subject: Subject, columns: Vec<(Quantity, Values)>| {
            let times = times.clone();
            columns.into_iter().map(move |(quantity, mut values)| {
                values.shrink_to_fit();
                Series { subject: subject.clone(), quantity, times: times.clone(), values }
            })
        };
        let of_links =
            self.links.into_iter().flat_map(|r| series(Subject::Link(r.name), r.columns));
        let of_flows = scenario
            .flows
            .iter()
            .zip(self.series)
            .flat_map(|(f, s)| series(Subject::Flow(f.name().to_string()), s.columns));
        Run {
            title: scenario.title.clone(),
            variant: scenario.variant.clone(),
            completed: now,
            duration: scenario.duration,
            summary,
            series: of_links.chain(of_flows).collect(),
        }
    }
}

impl Recorder<'_> {
    /// What is said of flows together, when all is known of each.
    fn groups(&self) -> Vec<GroupSummary> {
        let mut members = self.summaries.as_slice();
        let groups = self.scenario.groups().zip(&self.round_trips).map(|(flows, rtt)| {
            let (own, rest) = members.split_at(flows.len());
            members = rest;
            let times: Vec<f64> = own.iter().filter_map(|flow| flow.completion_time).collect();
            let group = &flows[0].group;
            GroupSummary {
                name: group.name.to_string(),
                from: self.scenario.nodes[group.from].clone(),
                to: self.scenario.nodes[group.to].clone(),
                flows: own.len(),
                completed: times.len(),
                completion_time: Percentiles::of(times),
                rtt: *rtt,
            }
        });
        groups.collect()
    }
}

impl LinkRecord {
    /// Looks at the largest queue since the last look.
    fn collect_max(&mut self, max: u64, phase: Phase) {
        self.interval_max = self.interval_max.max(max);
        if phase == Phase::Within {
            self.measured_max = self.measured_max.max(max);
        }
    }

    fn sample(&mut self, number: DirectionId, now: Nanos, gauges: &mut impl Gauges) {
        let mark = LinkMark { at: now, counts: gauges.link(number, now) };
        let last = std::mem::replace(&mut self.last, mark);
        let length = now - last.at;
        let (before, counts, last) = (last.at, &mark.counts, &last.counts);
        let row = [
            (
                Quantity::Utilisation,
                (counts.served_bytes - last.served_bytes).max(0.0)
                    / self.rates.capacity_bytes(before, now),
            ),
            (
                Quantity::QueueMean,
                (counts.queue_integral - last.queue_integral) as f64 / length as f64,
            ),
            (Quantity::QueueMax, self.interval_max as f64),
            (Quantity::Drops, (counts.drops - last.drops) as f64),
            (Quantity::Lost, (counts.lost - last.lost) as f64),
        ];
        let router = gauges.router(number, now);
        append(&mut self.columns, row.into_iter().chain(router.into_iter().flatten()));
    }

    fn summary(&self) -> LinkSummary {
        let length = self.to.at - self.from.at;
        let (from, to) = (&self.from.counts, &self.to.counts);
        let per = |amount: f64, of: f64| if length == 0 { 0.0 } else { amount / of };
        LinkSummary {
            utilisation: per(
                to.served_bytes - from.served_bytes,
                self.rates.capacity_bytes(self.from.at, self.to.at),
            ),
            queue_mean: per((to.queue_integral - from.queue_integral) as f64, length as f64),
            queue_max: self.measured_max,
            drops: to.drops - from.drops,
            refused: to.refused - from.refused,
            lost: to.lost - from.lost,
            packets: to.sent_packets - from.sent_packets,
            queue_delay: self.waits,
        }
    }
}

impl FlowRecord {
    fn sample_cwnd(&mut self, flow: &impl FlowGauge) {
        self.cwnd_sum += flow.cwnd_packets().unwrap_or(0.0);
        self.cwnd_samples += 1;
    }

    /// The numbers of the measured period; when the transfer is complete, if it ever is, is known
    /// in the end.
    fn summary(
        &self,
        spec: &model::Flow,
        active: Period,
        from: &Totals,
        to: &Totals,
    ) -> FlowSummary {
        let samples = to.rtt_samples - from.rtt_samples;
        let rtt_sum = (to.rtt_sum - from.rtt_sum) as f64 / NANOS_PER_SEC as f64;
        FlowSummary {
            name: spec.name(),
            active: active.length() > 0,
            goodput: rate_bps(
                to.delivered_while_active - from.delivered_while_active,
                active.length(),
            ),
            rtt_mean: if samples == 0 { 0.0 } else { rtt_sum / samples as f64 },
            retransmits: to.retransmits - from.retransmits,
            timeouts: u32::try_from(to.timeouts - from.timeouts).unwrap_or(u32::MAX),
            cwnd_mean: if self.cwnd_samples == 0 {
                0.0
            } else {
                self.cwnd_sum / self.cwnd_samples as f64
            },
            completed_at: None,
            completion_time: None,
            start: 0.0,
            bytes: spec.bytes().and_then(NonZeroU64::new),
        }
    }
}

impl FlowSeries {
    /// A sampling interval ends at `now`; the flow has nothing more to send from `end` on.
    fn sample(&mut self, now: Nanos, interval: Nanos, flow: &impl FlowGauge, end: Nanos) {
        let totals = flow.totals();
        let last = std::mem::replace(&mut self.last, totals);
        // A flow that was over when the interval began has no window and no round trips any more.
        let running = flow.start() < now && end.saturating_add(interval) > now;
        let shown = |value: Option<f64>| if running { value.unwrap_or(f64::NAN) } else { f64::NAN };
        let row = [
            (Quantity::Goodput, rate_bps(totals.delivered_bytes - last.delivered_bytes, interval)),
            (Quantity::Cwnd, shown(flow.cwnd_packets())),
            (Quantity::Srtt, shown(flow.srtt_seconds())),
            (Quantity::Retransmits, (totals.retransmits - last.retransmits) as f64),
        ];
        append(&mut self.columns, row);
    }
}

/// When a flow has nothing more to send, as far as that is known; else `NEVER`.
fn end(spec: &model::Flow, flow: &impl FlowGauge) -> Nanos {
    spec.group.stop.unwrap_or(NEVER).min(flow.completed_at().unwrap_or(NEVER))
}

/// The part of the measured period in which a flow had something to send.
fn active(spec: &model::Flow, flow: &impl FlowGauge, measured: Period) -> Period {
    let from = measured.from.max(flow.start()).min(measured.to);
    Period { from, to: end(spec, flow).min(measured.to).max(from) }
}

fn seconds(time: Nanos) -> f64 {
    time as f64 / NANOS_PER_SEC as f64
}

fn rate_bps(bytes: u64, length: Nanos) -> f64 {
    if length == 0 { 0.0 } else { bytes as f64 * 8.0 * (NANOS_PER_SEC as f64 / length as f64) }
}

/// Adds a value to each column; the first row makes them.
fn append(columns: &mut Vec<(Quantity, Values)>, row: impl IntoIterator<Item = (Quantity, f64)>) {
    if columns.is_empty() {
        columns.extend(row.into_iter().map(|(quantity, value)| {
            let mut column = Values::default();
            column.push(value);
            (quantity, column)
        }));
        columns.shrink_to_fit();
        return;
    }
    for ((_, column), (_, value)) in columns.iter_mut().zip(row) {
        column.push(value);
    }
}
