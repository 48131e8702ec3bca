//! A router's law as a scenario has it: a preset, and what the file says beside it. What the
//! choices mean is `engine/law.h`'s.

use crate::fields::Fields;
use crate::quantity;
use crate::units::Nanos;

/// Choices that make up a router's law. A named law (`xcp`) is a preset of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Law {
    /// Name of the preset it started from.
    pub name: String,
    /// Gain on spare bandwidth.
    pub alpha: f64,
    /// Gain on the persistent queue.
    pub beta: f64,
    /// Share of the traffic shuffled in every control interval.
    pub gamma: f64,
    /// Bytes added to each packet's size for framing the router cannot see.
    pub overhead_bytes: u32,
    /// Whether feedback is charged to residue pools.
    pub pools: bool,
    /// Capacity the router believes in, bit/s; `None` is the link's rate.
    pub capacity_bps: Option<u64>,
    /// Q_T, the queue that may stand, bytes.
    pub target_bytes: u64,
    /// What the router counts as input traffic.
    pub input: Input,
    /// The control interval.
    pub interval: Interval,
    /// The shortest control interval.
    pub min_interval: Nanos,
    /// The longest control interval, and the longest RTT that is believed.
    pub max_interval: Nanos,
    /// What of the link is XCP's.
    pub capacity_for_xcp: CapacityForXcp,
    /// Whose packets are shuffled.
    pub shuffle: Shuffle,
    /// Who gets spare bandwidth.
    pub spare: Spare,
    /// What N / N_b is taken for at most where spare bandwidth is scaled by it.
    pub spare_most: u8,
    /// The gain on one packet's feedback.
    pub gain: Gain,
    /// What the router knows of what it has granted.
    pub control: Control,
    /// With a calendar: whether TCP in the same queue is dropped so that it has its share.
    pub steer_tcp: bool,
    /// With a calendar: whether the capacity is measured, and is never more than it was given.
    pub measure_capacity: bool,
}

/// What a router counts as input traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// Every packet that arrives at the queue (XCP 2002: one queue, everything in it is input
    /// traffic).
    All,
    /// Packets of XCP flows only, acknowledgements included, as ns-2's XCP queue counts.
    Xcp,
}

/// The control interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interval {
    /// The mean RTT of the flows (XCP).
    Mean,
    /// The longest RTT seen in the last one.
    Max,
}

/// What of the link is XCP's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapacityForXcp {
    /// All of it.
    Configured,
    /// What other traffic leaves (XCP-IR).
    MinusOther,
}

/// Whose packets are shuffled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shuffle {
    /// Everybody's (XCP).
    All,
    /// Those of the flows that this link limits (iXCP).
    Matching,
}

/// Who gets spare bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spare {
    /// All flows alike (XCP).
    All,
    /// All flows, N / N_b times as much (P-XCP).
    Scaled,
    /// The flows that this link limits, with headroom for the others (the cured iXCP).
    Limited,
}

/// The gain on one packet's feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gain {
    /// One for all (XCP).
    Uniform,
    /// min(1, d / the flow's RTT).
    OwnRtt,
}

/// What a router knows of what it has granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Nothing (XCP).
    Draft,
    /// All of it, and when it will be seen.
    Calendar,
}

/// No control interval is longer: what the RTT field of a header can say, as the engine has it.
const INTERVAL_LIMIT: Nanos = 1 << 42;

/// Names of the presets; the engine's have the same (a test of xcp-sim holds them against each
/// other).
pub(crate) const LAWS: &[&str] =
    &["xcp", "xcp-ir", "ixcp", "ixcp-r", "p-xcp", "max-rtt", "own-rtt", "robust"];

impl Law {
    /// XCP (Katabi et al. 2002).
    #[must_use]
    pub fn xcp() -> Self {
        Self {
            name: "xcp".into(),
            alpha: 0.4,
            beta: 0.226,
            gamma: 0.1,
            overhead_bytes: 0,
            pools: true,
            capacity_bps: None,
            target_bytes: 0,
            input: Input::All,
            interval: Interval::Mean,
            min_interval: 100_000,
            max_interval: 65_536_000_000,
            capacity_for_xcp: CapacityForXcp::Configured,
            shuffle: Shuffle::All,
            spare: Spare::All,
            spare_most: 8,
            gain: Gain::Uniform,
            control: Control::Draft,
            steer_tcp: false,
            measure_capacity: false,
        }
    }

    /// A named law; `None` for a name that is none.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let name = *LAWS.iter().find(|law| **law == name)?;
        let xcp = Self { name: name.into(), ..Self::xcp() };
        Some(match name {
            "xcp-ir" => {
                Self { capacity_for_xcp: CapacityForXcp::MinusOther, input: Input::Xcp, ..xcp }
            }
            "ixcp" => Self { shuffle: Shuffle::Matching, ..xcp },
            "ixcp-r" => Self {
                shuffle: Shuffle::Matching,
                spare: Spare::Limited,
                alpha: 0.25,
                beta: 0.0884,
                ..xcp
            },
            "p-xcp" => Self { spare: Spare::Scaled, ..xcp },
            "max-rtt" => Self { interval: Interval::Max, ..xcp },
            "own-rtt" => Self { gain: Gain::OwnRtt, ..xcp },
            "robust" => Self {
                control: Control::Calendar,
                steer_tcp: true,
                shuffle: Shuffle::Matching,
                spare: Spare::Limited,
                alpha: 0.7,
                beta: 0.0,
                ..xcp
            },
            _ => xcp,
        })
    }

    /// Whether its router wants to know which link limits a flow.
    #[must_use]
    pub fn wants_ids(&self) -> bool {
        self.shuffle == Shuffle::Matching
    }
}

/// What a calendar has no use for, and what only it has.
fn calendar(fields: &Fields<'_>, law: &Law, preset: &Law) {
    if law.control == Control::Draft {
        if law.steer_tcp {
            let what = "TCP is steered by a router that remembers its promises only";
            fields.faults.add(fields.span_of("tcp"), what, "write preset = \"robust\"");
        }
        return;
    }
    let fixed = [
        ("beta", law.beta == preset.beta),
        ("pools", law.pools == preset.pools),
        ("input", law.input == preset.input),
        ("interval", law.interval == preset.interval),
        ("capacity-for-xcp", law.capacity_for_xcp == preset.capacity_for_xcp),
        ("shuffle", law.shuffle == preset.shuffle),
        ("spare", law.spare == preset.spare),
        ("gain", law.gain == preset.gain),
    ];
    for (key, _) in fixed.iter().filter(|(_, kept)| !kept) {
        let what = format!("the preset `robust` knows no other `{key}` than its own");
        fields.faults.add(fields.span_of(key), what, "leave it out, or take another preset");
    }
}

/// Reads a `law`; its queue target is known once the flows are.
pub(crate) fn read(fields: &Fields<'_>) -> Law {
    let preset = fields.choice("preset").and_then(Law::preset).unwrap_or_else(Law::xcp);
    let law = Law {
        alpha: fields.number("alpha").unwrap_or(preset.alpha),
        beta: fields.number("beta").unwrap_or(preset.beta),
        gamma: fields.number("gamma").unwrap_or(preset.gamma),
        overhead_bytes: fields.size("overhead").map_or(preset.overhead_bytes, |n| n as u32),
        pools: fields.bool("pools").unwrap_or(preset.pools),
        capacity_bps: fields.rate("capacity"),
        input: match fields.choice("input") {
            Some("all") => Input::All,
            Some(_) => Input::Xcp,
            None => preset.input,
        },
        interval: match fields.choice("interval") {
            Some("mean") => Interval::Mean,
            Some(_) => Interval::Max,
            None => preset.interval,
        },
        min_interval: fields.time("min-interval").unwrap_or(preset.min_interval),
        max_interval: fields.time("max-interval").unwrap_or(preset.max_interval),
        capacity_for_xcp: match fields.choice("capacity-for-xcp") {
            Some("configured") => CapacityForXcp::Configured,
            Some(_) => CapacityForXcp::MinusOther,
            None => preset.capacity_for_xcp,
        },
        shuffle: match fields.choice("shuffle") {
            Some("all") => Shuffle::All,
            Some(_) => Shuffle::Matching,
            None => preset.shuffle,
        },
        spare: match fields.choice("spare") {
            Some("all") => Spare::All,
            Some("scaled") => Spare::Scaled,
            Some(_) => Spare::Limited,
            None => preset.spare,
        },
        spare_most: fields.integer("spare-most").map_or(preset.spare_most, |n| n as u8),
        gain: match fields.choice("gain") {
            Some("uniform") => Gain::Uniform,
            Some(_) => Gain::OwnRtt,
            None => preset.gain,
        },
        steer_tcp: fields.choice("tcp").map_or(preset.steer_tcp, |tcp| tcp == "steered"),
        ..preset.clone()
    };
    if law.capacity_for_xcp == CapacityForXcp::MinusOther && law.input == Input::All {
        let at = if fields.item("input").is_some() { "input" } else { "capacity-for-xcp" };
        let what = "other traffic would be taken off twice: off the capacity, and again as input";
        fields.faults.add(
            fields.span_of(at),
            what,
            "write input = \"xcp\" with capacity-for-xcp = \"minus-other\"",
        );
    }
    if law.spare == Spare::Limited && law.shuffle != Shuffle::Matching {
        let at = if fields.item("shuffle").is_some() { "shuffle" } else { "spare" };
        let what = "spare bandwidth for the flows limited here, and a shuffle that moves rate to \
            flows limited elsewhere";
        fields.faults.add(
            fields.span_of(at),
            what,
            "write shuffle = \"matching\" with spare = \"limited\"",
        );
    }
    calendar(fields, &law, &preset);
    if law.max_interval > INTERVAL_LIMIT {
        let what = "`max-interval` is more than the 4398 s that an RTT can be in a header";
        fields.faults.add(
            fields.span_of("max-interval"),
            what,
            "write the longest RTT that the paths have, like \"1s\"",
        );
    } else if law.min_interval > law.max_interval {
        let at =
            if fields.item("min-interval").is_some() { "min-interval" } else { "max-interval" };
        let (least, most) =
            (quantity::show_time(law.min_interval), quantity::show_time(law.max_interval));
        let what =
            format!("the shortest control interval, {least}, is longer than the longest, {most}");
        fields.faults.add(
            fields.span_of(at),
            what,
            "write a min-interval that is no longer than max-interval",
        );
    }
    law
}
