//! A router's law as numbers and choices in real units, what the named laws consist of, and which
//! combinations are refused.

use std::fmt;

use crate::choice::{
    CapacityForXcp, CapacityKnown, Control, Gain, Input, Interval, Preset, Shuffle, Spare, Tcp,
};

/// The longest control interval that can be set, ns: what the RTT of a header can say.
pub const INTERVAL_MAX_NS: u64 = 1 << 42;
const CAPACITY_MAX: u64 = 1 << 40;
const QUEUE_TARGET_MAX: u64 = 1 << 40;
/// The longest queue target with a calendar: this part of what the link carries in a second, or so
/// many bytes (`engine/law.h`).
const CALENDAR_TARGET_PART: u64 = 200;
const CALENDAR_TARGET_LEAST: u64 = 3000;
const OVERHEAD_MAX: u32 = 65535;

/// Settings of a router: one value for each choice of the law.
#[derive(Debug, Clone, PartialEq)]
pub struct RouterConfig {
    /// Capacity of the link, bytes/s: 1 to 2^40.
    pub capacity_bytes_per_sec: u64,
    /// Gain on spare bandwidth: above 0, below 1. (Stable for equal RTTs below pi / (4 sqrt 2) =
    /// 0.555.)
    pub alpha: f64,
    /// Gain on the persistent queue: 0 to below 1.
    pub beta: f64,
    /// Part of the traffic that is shuffled in a control interval: 0 to below 1.
    pub gamma: f64,
    /// Bytes of framing per packet that the router does not see: at most 65535.
    pub overhead_bytes: u32,
    /// Whether feedback is charged to residue pools.
    pub pools: bool,
    /// What counts as input traffic.
    pub input: Input,
    /// How the control interval d is formed.
    pub interval: Interval,
    /// Shortest control interval, ns: at least 1.
    pub min_interval_ns: u64,
    /// Longest control interval and the longest RTT that is believed, ns: at most
    /// [`INTERVAL_MAX_NS`]. What paths may really have (engine/law.h says why).
    pub max_interval_ns: u64,
    /// Bytes that may stand in the queue: at most 2^40.
    pub queue_target_bytes: u64,
    /// Gain on one packet's feedback.
    pub gain: Gain,
    /// What of the capacity is XCP's.
    pub capacity_for_xcp: CapacityForXcp,
    /// Whose packets are shuffled.
    pub shuffle: Shuffle,
    /// Who gets spare bandwidth.
    pub spare: Spare,
    /// What N / N_b is taken for at most: at least 1.
    pub spare_most: u8,
    /// What the router knows of what it has granted.
    pub control: Control,
    /// TCP without XCP in the queue of a router with a calendar.
    pub tcp: Tcp,
    /// How a router with a calendar knows its capacity.
    pub capacity_known: CapacityKnown,
}

impl RouterConfig {
    /// XCP as published (Katabi, Handley & Rohrs 2002): alpha 0.4, beta 0.226, gamma 0.1, d the
    /// mean RTT, everything in the queue is input.
    #[must_use]
    pub const fn xcp(capacity_bytes_per_sec: u64) -> Self {
        Self {
            capacity_bytes_per_sec,
            alpha: 0.4,
            beta: 0.226,
            gamma: 0.1,
            overhead_bytes: 0,
            pools: true,
            input: Input::All,
            interval: Interval::Mean,
            min_interval_ns: 100_000,
            max_interval_ns: 65_536_000_000,
            queue_target_bytes: 0,
            gain: Gain::Uniform,
            capacity_for_xcp: CapacityForXcp::Configured,
            shuffle: Shuffle::All,
            spare: Spare::All,
            spare_most: 8,
            control: Control::Draft,
            tcp: Tcp::Left,
            capacity_known: CapacityKnown::Given,
        }
    }

    /// A named law, as `engine/law.h` has it.
    #[must_use]
    pub const fn preset(preset: Preset, capacity_bytes_per_sec: u64) -> Self {
        let mut law = Self::xcp(capacity_bytes_per_sec);
        match preset {
            Preset::Xcp => {}
            Preset::XcpIr => {
                law.capacity_for_xcp = CapacityForXcp::MinusOther;
                law.input = Input::Xcp;
            }
            Preset::Ixcp => law.shuffle = Shuffle::Matching,
            Preset::IxcpR => {
                law.shuffle = Shuffle::Matching;
                law.spare = Spare::Limited;
                law.alpha = 0.25;
                law.beta = 0.0884;
            }
            Preset::PXcp => law.spare = Spare::Scaled,
            Preset::MaxRtt => law.interval = Interval::Max,
            Preset::OwnRtt => law.gain = Gain::OwnRtt,
            Preset::Robust => {
                law.control = Control::Calendar;
                law.tcp = Tcp::Steered;
                law.shuffle = Shuffle::Matching;
                law.spare = Spare::Limited;
                law.alpha = 0.7;
                law.beta = 0.0;
            }
        }
        law
    }

    /// Whether this is a law that a router can run, as `xcp_law_check` of `engine/law.h` judges.
    ///
    /// # Errors
    /// The first setting, or pair of settings, that is not.
    pub fn check(&self) -> Result<(), ConfigError> {
        let gains = [("alpha", self.alpha), ("beta", self.beta), ("gamma", self.gamma)];
        if let Some((name, value)) = gains.into_iter().find(|(_, v)| fraction(*v).is_none()) {
            return Err(ConfigError::Gain { name, value });
        }
        if !(1..=CAPACITY_MAX).contains(&self.capacity_bytes_per_sec) {
            Err(ConfigError::Capacity)
        } else if !(1..=self.max_interval_ns).contains(&self.min_interval_ns)
            || self.max_interval_ns > INTERVAL_MAX_NS
        {
            Err(ConfigError::Intervals {
                min_ns: self.min_interval_ns,
                max_ns: self.max_interval_ns,
            })
        } else if fraction(self.alpha) == Some(0) {
            Err(ConfigError::Gain { name: "alpha", value: self.alpha })
        } else if self.overhead_bytes > OVERHEAD_MAX {
            Err(ConfigError::Overhead)
        } else if self.queue_target_bytes > QUEUE_TARGET_MAX {
            Err(ConfigError::QueueTarget)
        } else if self.control == Control::Calendar && self.queue_target_bytes > self.target_most()
        {
            Err(ConfigError::CalendarTarget)
        } else if self.spare_most == 0 {
            Err(ConfigError::SpareMost)
        } else if self.control == Control::Calendar && !self.goes_with_a_calendar() {
            Err(ConfigError::Calendar)
        } else if self.control == Control::Draft
            && (self.tcp != Tcp::Left || self.capacity_known != CapacityKnown::Given)
        {
            Err(ConfigError::OnlyCalendar)
        } else if self.capacity_for_xcp == CapacityForXcp::MinusOther && self.input == Input::All {
            Err(ConfigError::OtherTwice)
        } else if self.spare == Spare::Limited && self.shuffle != Shuffle::Matching {
            Err(ConfigError::SpareWithoutIds)
        } else {
            Ok(())
        }
    }

    /// The longest queue target with a calendar, bytes.
    fn target_most(&self) -> u64 {
        (self.capacity_bytes_per_sec / CALENDAR_TARGET_PART).max(CALENDAR_TARGET_LEAST)
    }

    fn goes_with_a_calendar(&self) -> bool {
        let robust = Self::preset(Preset::Robust, 1);
        let choices = |law: &Self| {
            (law.interval, law.input, law.capacity_for_xcp, law.gain, law.shuffle, law.spare)
        };
        // What it has no use for may not be set to anything either.
        let unused = |law: &Self| (fraction(law.beta), law.spare_most);
        self.pools && choices(self) == choices(&robust) && unused(self) == unused(&robust)
    }

    /// Whether its router wants to know which link limits a flow.
    #[must_use]
    pub fn wants_ids(&self) -> bool {
        self.shuffle == Shuffle::Matching
    }
}

/// A gain as a fraction of 2^32, as the engine takes it; `None` outside of its range.
#[must_use]
pub fn fraction(gain: f64) -> Option<u32> {
    let scaled = (gain * 4_294_967_296.0).round();
    (0.0..=f64::from(u32::MAX)).contains(&scaled).then_some(scaled as u32)
}

/// What is wrong with a [`RouterConfig`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// Capacity is 0 or above 2^40 bytes/s.
    Capacity,
    /// The intervals are not 0 < min <= max <= [`INTERVAL_MAX_NS`].
    Intervals {
        /// The shortest.
        min_ns: u64,
        /// The longest.
        max_ns: u64,
    },
    /// A gain is outside its range.
    Gain {
        /// Which.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// More than 65535 bytes of overhead.
    Overhead,
    /// A queue target above 2^40 bytes.
    QueueTarget,
    /// With a calendar, a queue target above two full packets and what the link carries in 5 ms.
    CalendarTarget,
    /// The capacity is less other traffic, and input counts it too.
    OtherTwice,
    /// Spare bandwidth for the flows limited here, and the shuffle for all.
    SpareWithoutIds,
    /// N / N_b bounded by 0.
    SpareMost,
    /// A calendar with choices that it does not know.
    Calendar,
    /// Without a calendar, what only goes with one.
    OnlyCalendar,
    /// A law with a calendar for a router that has none, or one without for a router that has one.
    OtherRouter,
}

impl ConfigError {
    /// The keys concerned: what is to be changed is most likely the first one that was written.
    #[must_use]
    pub fn keys(&self) -> &'static [&'static str] {
        match self {
            Self::Capacity => &["capacity"],
            Self::Intervals { max_ns, .. } if *max_ns > INTERVAL_MAX_NS => &["max-interval"],
            Self::Intervals { .. } => &["min-interval", "max-interval"],
            Self::Gain { name: "alpha", .. } => &["alpha"],
            Self::Gain { name: "beta", .. } => &["beta"],
            Self::Gain { .. } => &["gamma"],
            Self::Overhead => &["overhead"],
            Self::QueueTarget | Self::CalendarTarget => &["target"],
            Self::OtherTwice => &["input", "capacity-for-xcp", "preset"],
            Self::SpareWithoutIds => &["shuffle", "spare", "preset"],
            Self::SpareMost => &["spare-most"],
            Self::Calendar => &[
                "interval",
                "input",
                "capacity-for-xcp",
                "gain",
                "shuffle",
                "spare",
                "pools",
                "beta",
                "spare-most",
                "control",
                "preset",
            ],
            Self::OnlyCalendar => &["tcp", "capacity-known", "control"],
            Self::OtherRouter => &["control", "preset"],
        }
    }

    /// What to write instead.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            // 2^40 bytes/s are more, but no rate above this can be written.
            Self::Capacity => "write a rate from \"8bit\" to \"8tbit\"",
            Self::Intervals { max_ns, .. } if *max_ns > INTERVAL_MAX_NS => {
                "write the longest RTT of any path, like \"1s\""
            }
            Self::Intervals { .. } => "write a min-interval that is no longer than max-interval",
            Self::Gain { name: "alpha", .. } => "write a number above 0 and below 1",
            Self::Gain { .. } => "write a number that is at least 0 and below 1",
            Self::Overhead => "write a number of bytes up to 65535",
            Self::QueueTarget => "write a shorter queue",
            Self::CalendarTarget => "write 5 ms or two full packets at most, or leave it out",
            Self::OtherTwice => "write input = \"xcp\" with capacity-for-xcp = \"minus-other\"",
            Self::SpareWithoutIds => "write shuffle = \"matching\" with spare = \"limited\"",
            Self::SpareMost => "write a number from 1 to 255",
            Self::Calendar => "leave it out, or choose another preset",
            Self::OnlyCalendar => "write preset = \"robust\", or leave it out",
            Self::OtherRouter => "choose another law, or simulate it",
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ns: u64| ns as f64 / 1e9;
        match self {
            Self::Capacity => {
                f.write_str("the capacity must lie between 1 byte/s and 2^40 bytes/s")
            }
            Self::Intervals { max_ns, .. } if *max_ns > INTERVAL_MAX_NS => f.write_str(
                "`max-interval` is more than 4398 s, just above the longest RTT that a \
                    header can hold",
            ),
            Self::Intervals { min_ns: 0, .. } => {
                f.write_str("the shortest control interval must be longer than 0")
            }
            Self::Intervals { min_ns, max_ns } => write!(
                f,
                "the shortest control interval, {} s, is longer than the longest, {} s",
                seconds(*min_ns),
                seconds(*max_ns)
            ),
            Self::Gain { name, value } => {
                let least = if *name == "alpha" { "above 0" } else { "at least 0" };
                write!(f, "{value} is out of range: the gain must be {least} and below 1")
            }
            Self::Overhead => f.write_str("the overhead per packet must be at most 65535 bytes"),
            Self::QueueTarget => f.write_str("the queue target must be at most 2^40 bytes"),
            Self::CalendarTarget => f.write_str(
                "with the law `robust` the queue target must be at most 5 ms, or two full packets: \
                 its senders take a queue that stands for longer to be one that no router governs, \
                 and then yield the link to senders that do not",
            ),
            Self::OtherTwice => f.write_str(
                "other traffic would be subtracted twice: from the capacity, and again as input",
            ),
            Self::SpareWithoutIds => f.write_str(
                "spare bandwidth goes to the flows limited here, and the shuffle would move rate \
                 to flows limited elsewhere",
            ),
            Self::SpareMost => f.write_str("the limit of N/N_b must be from 1 to 255"),
            Self::Calendar => f.write_str(
                "a router with a calendar allows only the choices of the preset `robust`",
            ),
            Self::OnlyCalendar => {
                f.write_str("this requires a router with a calendar (the preset `robust`)")
            }
            Self::OtherRouter => f.write_str(
                "a law with a calendar (`robust`) and one without need different kinds of router",
            ),
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity;

    /// What is advised against a capacity out of range is read, and is in range.
    #[test]
    fn the_rates_advised_can_be_written() {
        let rates: Vec<u64> = ConfigError::Capacity
            .remedy()
            .split('"')
            .skip(1)
            .step_by(2)
            .map(|text| quantity::rate(text).unwrap())
            .collect();
        assert_eq!(rates, [quantity::MIN_RATE_BPS, quantity::MAX_RATE_BPS]);
        for rate in rates {
            assert_eq!(RouterConfig::xcp(rate / 8).check(), Ok(()));
        }
    }

    /// A queue that the router keeps is not to look like one that no router governs.
    #[test]
    fn with_a_calendar_the_target_is_short() {
        let check = |preset, capacity, target| {
            let law = RouterConfig::preset(preset, capacity);
            RouterConfig { queue_target_bytes: target, ..law }.check()
        };
        let too_long = Err(ConfigError::CalendarTarget);
        assert_eq!(check(Preset::Robust, 12_500_000, 62_500), Ok(()));
        assert_eq!(check(Preset::Robust, 12_500_000, 62_501), too_long);
        assert_eq!(check(Preset::Robust, 12_500, 3000), Ok(()), "two packets");
        assert_eq!(check(Preset::Robust, 12_500, 3001), too_long);
        assert_eq!(check(Preset::Xcp, 12_500_000, 10_000_000), Ok(()));
    }
}
