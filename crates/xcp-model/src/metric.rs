//! Names of numbers of a result, as expectations use them: what there is, what a name means,
//! whether a scenario has it. Finding the number in a [`Run`](crate::run::Run) is `expect.rs`'s.

use crate::model::{Flow, Sampling, Scenario};
use crate::name::FlowName;
use crate::run::Quantity;
use crate::units::Period;
use xcp_law::text::{listed, suggest};

/// A number of a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Metric {
    /// Jain's index of the goodputs of the TCP flows.
    Jain,
    /// Of a link's direction, by the name the summary has.
    Link { direction: String, number: Number },
    /// Of a flow, or of several put together.
    Flow { flows: Selection, number: Number, over: Over },
}

/// Flows meant by a name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Selection {
    /// All TCP flows: `*`.
    All,
    /// A flow, or the members of a group.
    Named(String),
}

/// A number of one link direction or flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    /// A statistic of a sampled quantity.
    Sampled(Quantity, Stat),
    /// Link: seconds of the period in which it sent nothing: its length times one minus the
    /// utilisation.
    IdleTime,
    /// Link: packets sent. Summary only.
    Packets,
    /// Packets that the policer refused.
    Refused,
    /// What this part of the packets waited no longer than.
    QueueDelay(Part),
    /// Flow: timeouts. Summary only.
    Timeouts,
    /// Flow: when the transfer was complete, seconds. Summary only.
    CompletedAt,
    /// Flow: how long the transfer took, seconds. Summary only.
    CompletionTime,
}

/// A statistic over the samples of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stat {
    Mean,
    Min,
    Max,
    Sum,
    /// Coefficient of variation: standard deviation over mean.
    Cov,
    /// The last one.
    End,
    /// Slope of the least-squares line, per second.
    Growth,
    /// Half of the time it was less.
    Median,
    /// When it was last more than 5 % from its level at the end, seconds from the period's begin.
    Settling,
}

/// A part of the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Half,
    P95,
    P99,
}

/// How the numbers of several flows are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Mean,
    Min,
    Max,
    Sum,
    /// Jain's index.
    Jain,
    /// Greatest less least, over the mean.
    Spread,
    /// The middle one.
    Median,
    /// 95 and 99 % of them are no greater.
    P95,
    P99,
}

const STATS: &[(&str, Stat)] = &[
    ("mean", Stat::Mean),
    ("min", Stat::Min),
    ("max", Stat::Max),
    ("sum", Stat::Sum),
    ("cov", Stat::Cov),
    ("end", Stat::End),
    ("growth", Stat::Growth),
    ("median", Stat::Median),
    ("settling", Stat::Settling),
];
const OVERS: &[(&str, Over)] = &[
    ("mean", Over::Mean),
    ("min", Over::Min),
    ("max", Over::Max),
    ("sum", Over::Sum),
    ("jain", Over::Jain),
    ("spread", Over::Spread),
    ("median", Over::Median),
    ("p95", Over::P95),
    ("p99", Over::P99),
];

/// A sampled quantity: its name, and the statistic its bare name stands for.
type Sampled = (&'static str, Quantity, Option<Stat>);
const LINK_QUANTITIES: &[Sampled] = &[
    ("utilisation", Quantity::Utilisation, Some(Stat::Mean)),
    ("queue", Quantity::QueueMean, None),
    ("drops", Quantity::Drops, Some(Stat::Sum)),
    ("lost", Quantity::Lost, Some(Stat::Sum)),
    ("control_interval", Quantity::ControlInterval, None),
    ("flows_estimated", Quantity::FlowsEstimated, None),
    ("phi", Quantity::Phi, None),
    ("shuffled", Quantity::Shuffled, None),
    ("persistent_queue", Quantity::PersistentQueue, None),
    ("input_traffic", Quantity::InputTraffic, None),
];
const FLOW_QUANTITIES: &[Sampled] = &[
    ("goodput", Quantity::Goodput, Some(Stat::Mean)),
    ("rtt", Quantity::Srtt, None),
    ("cwnd", Quantity::Cwnd, None),
    ("retransmits", Quantity::Retransmits, Some(Stat::Sum)),
];
const LINK_EXTRA: &[(&str, Number)] = &[
    ("idle_time", Number::IdleTime),
    ("packets", Number::Packets),
    ("refused", Number::Refused),
    ("queue_delay_p50", Number::QueueDelay(Part::Half)),
    ("queue_delay_p95", Number::QueueDelay(Part::P95)),
    ("queue_delay_p99", Number::QueueDelay(Part::P99)),
];
const FLOW_EXTRA: &[(&str, Number)] = &[
    ("timeouts", Number::Timeouts),
    ("completed_at", Number::CompletedAt),
    ("completion_time", Number::CompletionTime),
];

/// What is wrong with a name, and what would be right.
pub type Wrong = (String, String);

/// Reads a name.
pub(crate) fn parse(text: &str) -> Result<Metric, Wrong> {
    let help = || {
        "metrics are `jain`, `links.NAME.NUMBER` and `flows.NAME.NUMBER`, \
            like \"links.bottleneck.utilisation\""
            .to_string()
    };
    let parts = xcp_law::text::split_path(text)
        .ok_or_else(|| (format!("\"{text}\" is not a metric"), help()))?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["jain"] => Ok(Metric::Jain),
        ["links", name, number] => Ok(Metric::Link {
            direction: (*name).into(),
            number: number_of(number, LINK_QUANTITIES, LINK_EXTRA, "link")?,
        }),
        ["links", name, "reverse", number] => Ok(Metric::Link {
            direction: format!("{name}.reverse"),
            number: number_of(number, LINK_QUANTITIES, LINK_EXTRA, "link")?,
        }),
        ["flows", name, number] => Ok(Metric::Flow {
            flows: selection(name),
            number: flow_number(number)?,
            over: Over::Mean,
        }),
        ["flows", name, number, over] => {
            let over =
                OVERS.iter().find(|(word, _)| word == over).map(|(_, o)| *o).ok_or_else(|| {
                    (
                        format!("\"{over}\" is not a way of combining flows"),
                        suggest(over, OVERS.iter().map(|(word, _)| *word), "ways"),
                    )
                })?;
            Ok(Metric::Flow { flows: selection(name), number: flow_number(number)?, over })
        }
        _ => Err((format!("\"{text}\" is not a metric"), help())),
    }
}

fn selection(name: &str) -> Selection {
    if name == "*" { Selection::All } else { Selection::Named(name.into()) }
}

fn flow_number(text: &str) -> Result<Number, Wrong> {
    number_of(text, FLOW_QUANTITIES, FLOW_EXTRA, "flow")
}

fn number_of(
    text: &str,
    quantities: &[Sampled],
    extra: &[(&'static str, Number)],
    kind: &str,
) -> Result<Number, Wrong> {
    if let Some((_, number)) = extra.iter().find(|(name, _)| *name == text) {
        return Ok(*number);
    }
    for (name, quantity, bare) in quantities {
        let Some(rest) = text.strip_prefix(name) else { continue };
        let stat = match rest.strip_prefix('_') {
            Some(stat) => STATS.iter().find(|(word, _)| *word == stat).map(|(_, s)| *s),
            None if rest.is_empty() => *bare,
            None => None,
        };
        return match stat {
            // A queue is sampled twice: its mean and its maximum.
            Some(Stat::Max) if *quantity == Quantity::QueueMean => {
                Ok(Number::Sampled(Quantity::QueueMax, Stat::Max))
            }
            Some(stat) => Ok(Number::Sampled(*quantity, stat)),
            None => {
                let words = listed(STATS.iter().map(|(word, _)| *word));
                Err((
                    format!("\"{text}\" is not a number of a {kind}"),
                    format!("write `{name}_STATISTIC`; the statistics are {words}"),
                ))
            }
        };
    }
    let known =
        quantities.iter().map(|(name, _, _)| *name).chain(extra.iter().map(|(name, _)| *name));
    Err((
        format!("a {kind} has no number \"{text}\""),
        suggest(text, known, "numbers (with a statistic as in `queue_mean`)"),
    ))
}

impl Metric {
    fn number(&self) -> Option<Number> {
        match self {
            Self::Jain => None,
            Self::Link { number, .. } | Self::Flow { number, .. } => Some(*number),
        }
    }

    /// Whether the summary has this number of the measured period.
    pub fn in_summary(&self) -> bool {
        match self.number() {
            None
            | Some(
                Number::IdleTime
                | Number::Packets
                | Number::Refused
                | Number::QueueDelay(_)
                | Number::Timeouts
                | Number::CompletedAt
                | Number::CompletionTime,
            ) => true,
            Some(Number::Sampled(quantity, stat)) => matches!(
                (quantity, stat),
                (
                    Quantity::Utilisation
                        | Quantity::QueueMean
                        | Quantity::Goodput
                        | Quantity::Srtt
                        | Quantity::Cwnd,
                    Stat::Mean
                ) | (Quantity::QueueMax, Stat::Max)
                    | (Quantity::Drops | Quantity::Lost | Quantity::Retransmits, Stat::Sum)
            ),
        }
    }

    /// Whether only the summary has it.
    pub fn only_in_summary(&self) -> bool {
        matches!(
            self.number(),
            Some(
                Number::Packets
                    | Number::Refused
                    | Number::QueueDelay(_)
                    | Number::Timeouts
                    | Number::CompletedAt
                    | Number::CompletionTime
            )
        )
    }
}

/// Whether a scenario's result will have the number.
pub fn check(text: &str, period: Option<Period>, scenario: &Scenario) -> Result<(), Wrong> {
    let metric = parse(text)?;
    match &metric {
        Metric::Jain => {}
        Metric::Link { direction, .. } => {
            let name = direction.strip_suffix(".reverse").unwrap_or(direction);
            let known = scenario.links.iter().map(|l| l.name.as_str());
            if !known.clone().any(|k| k == name) {
                return Err((format!("no link is named `{name}`"), suggest(name, known, "links")));
            }
        }
        Metric::Flow { flows, .. } => {
            if select(flows, &scenario.flows).next().is_none() {
                return Err(match flows {
                    Selection::All => {
                        ("`*` means all TCP flows, and there are none".into(), "name a flow".into())
                    }
                    Selection::Named(name) => {
                        let mut known: Vec<&str> =
                            scenario.flows.iter().map(|f| &*f.group.name).collect();
                        known.dedup();
                        (
                            format!("no flow is named `{name}`"),
                            suggest(name, known.iter().copied(), "flows (or `*`)"),
                        )
                    }
                });
            }
        }
    }
    if period.is_some() && metric.only_in_summary() {
        return Err((
            format!("\"{text}\" is known only for the measured period"),
            "leave out `from` and `to`, or set `measure`".into(),
        ));
    }
    let interval = match scenario.sample {
        Sampling::Off if period.is_some() || !metric.in_summary() => {
            return Err((
                format!("\"{text}\" needs samples, but `sample` is off"),
                "set `sample`, or leave out `from` and `to`".into(),
            ));
        }
        Sampling::Off => return Ok(()),
        Sampling::Every(t) | Sampling::PerRtt(t) => t,
    };
    let span = period.unwrap_or(scenario.measure);
    if (period.is_some() || !metric.in_summary()) && span.length() < interval {
        let shown = xcp_law::quantity::show_time(interval);
        return Err((
            format!("the period is shorter than the {shown} between samples"),
            "sample more often, or look at a longer period".into(),
        ));
    }
    Ok(())
}

/// The flows meant, and their places in the list.
pub(crate) fn select<'a>(
    selection: &'a Selection,
    flows: &'a [Flow],
) -> impl Iterator<Item = (usize, &'a Flow)> {
    let named = match selection {
        Selection::All => None,
        Selection::Named(name) => Some((name.as_str(), FlowName::from(name.as_str()))),
    };
    flows.iter().enumerate().filter(move |(_, flow)| match &named {
        None => flow.is_tcp(),
        Some((group, name)) => {
            *flow.group.name == **group
                || (flow.number == name.number() && *flow.group.name == *name.stem())
        }
    })
}
