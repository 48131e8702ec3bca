//! The choices that make up a router's law (engine/law.h), in real units, and the named laws.

use crate::ffi;
use std::fmt;

/// Control interval d.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interval {
    /// Mean RTT over flows (XCP).
    #[default]
    Mean,
    /// Longest RTT seen in the interval ("An Example of Instability in XCP").
    Max,
}

/// What of the link is XCP's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CapacityForXcp {
    /// The configured capacity.
    #[default]
    Configured,
    /// The configured capacity less the measured traffic of others (XCP-IR). Not with
    /// [`RouterConfig::count_other`].
    MinusOther,
}

/// Whose packets are shuffled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Shuffle {
    /// Everybody's.
    #[default]
    All,
    /// Those whose bottleneck id is this link (iXCP).
    Matching,
}

/// Who gets spare bandwidth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spare {
    /// All flows alike.
    #[default]
    All,
    /// All flows, scaled by N / N_b, at most [`RouterConfig::spare_most`] (P-XCP).
    Scaled,
    /// The flows limited here, with headroom for the others (engine/limited.h). Only with
    /// [`Shuffle::Matching`].
    Limited,
}

/// Gain on one packet's feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gain {
    /// One for all.
    #[default]
    Uniform,
    /// min(1, d / the packet's RTT), on increase and decrease alike.
    OwnRtt,
}

/// What the router knows of what it has granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Control {
    /// Nothing (draft-falk-xcp-spec-03): what a [`crate::Router`] carries out.
    #[default]
    Draft,
    /// All of it, and when it will be seen (engine/robust.h): what a [`crate::RobustRouter`]
    /// carries out.
    Calendar,
}

/// The named laws, each a preset of the choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Preset {
    /// Katabi, Handley & Rohrs 2002.
    #[default]
    Xcp = 0,
    /// XCP with Increased Robustness (Sakumoto, Ohsaki & Imase 2010). Its queue target is for the
    /// user to set.
    XcpIr = 1,
    /// "Improving XCP to Achieve Max-Min Fair Bandwidth Allocation", as the paper has it.
    Ixcp = 2,
    /// iXCP with spare bandwidth for the flows limited at the link (engine/limited.h), alpha 0.25
    /// and beta 0.0884.
    IxcpR = 3,
    /// P-XCP: spare bandwidth times N / N_b.
    PXcp = 4,
    /// The control interval is the longest RTT ("An Example of Instability in XCP").
    MaxRtt = 5,
    /// The gain follows every flow's own RTT.
    OwnRtt = 6,
    /// A calendar of promises (engine/robust.h), alpha 0.7: only for a [`crate::RobustRouter`].
    Robust = 7,
}

impl Preset {
    /// All of them.
    pub const ALL: [Preset; 8] = [
        Preset::Xcp,
        Preset::XcpIr,
        Preset::Ixcp,
        Preset::IxcpR,
        Preset::PXcp,
        Preset::MaxRtt,
        Preset::OwnRtt,
        Preset::Robust,
    ];
    /// Those that a [`crate::Router`] carries out, in the kernel too.
    pub const DRAFT: [Preset; 7] = [
        Preset::Xcp,
        Preset::XcpIr,
        Preset::Ixcp,
        Preset::IxcpR,
        Preset::PXcp,
        Preset::MaxRtt,
        Preset::OwnRtt,
    ];

    /// Its name in scenario files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Xcp => "xcp",
            Preset::XcpIr => "xcp-ir",
            Preset::Ixcp => "ixcp",
            Preset::IxcpR => "ixcp-r",
            Preset::PXcp => "p-xcp",
            Preset::MaxRtt => "max-rtt",
            Preset::OwnRtt => "own-rtt",
            Preset::Robust => "robust",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|p| p.name() == name)
    }
}

/// Settings of a router: one value per choice of the law.
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
    /// Charge feedback to residue pools.
    pub pools: bool,
    /// Count traffic without XCP headers as input too. Without it only XCP's own packets count,
    /// acknowledgements included.
    pub count_other: bool,
    /// Control interval.
    pub interval: Interval,
    /// Shortest control interval, ns: at least 1.
    pub min_interval_ns: u64,
    /// Longest control interval and the longest RTT that is believed, ns: at most 2^42. What paths
    /// may really have (engine/law.h says why).
    pub max_interval_ns: u64,
    /// Bytes that may stand in the queue: at most 2^40.
    pub queue_target_bytes: u64,
    /// Gain on one packet's feedback.
    pub gain: Gain,
    /// What of the link is XCP's.
    pub capacity_for_xcp: CapacityForXcp,
    /// Whose packets are shuffled.
    pub shuffle: Shuffle,
    /// Who gets spare bandwidth.
    pub spare: Spare,
    /// What N / N_b is taken for at most: at least 1.
    pub spare_most: u8,
    /// What the router knows of what it has granted.
    pub control: Control,
    /// With [`Control::Calendar`]: TCP without XCP in the same queue is dropped at random, so that
    /// it has what its flows have a right to.
    pub steer_tcp: bool,
    /// With [`Control::Calendar`]: the capacity is measured by what departs, and is never taken for
    /// more than [`RouterConfig::capacity_bytes_per_sec`].
    pub measure_capacity: bool,
}

impl RouterConfig {
    /// XCP as published (Katabi, Handley & Rohrs 2002): alpha 0.4, beta 0.226, gamma 0.1, d the
    /// mean RTT, everything in the queue is input.
    pub fn xcp(capacity_bytes_per_sec: u64) -> Self {
        RouterConfig::preset(Preset::Xcp, capacity_bytes_per_sec)
    }

    /// A named law.
    pub fn preset(preset: Preset, capacity_bytes_per_sec: u64) -> Self {
        let mut law = ffi::Law::default();
        // SAFETY: writes one Law to the pointer, which is valid and exclusive.
        unsafe { ffi::xcp_shim_law_preset(&mut law, preset as u32, capacity_bytes_per_sec) };
        let (alpha, beta) = match preset {
            Preset::IxcpR => (0.25, 0.0884),
            Preset::Robust => (0.7, 0.0),
            _ => (0.4, 0.226),
        };
        debug_assert_eq!(
            (fraction("alpha", alpha), fraction("beta", beta)),
            (Ok(law.alpha), Ok(law.beta)),
            "as engine/law.h has them"
        );
        RouterConfig {
            capacity_bytes_per_sec,
            alpha,
            beta,
            gamma: 0.1,
            overhead_bytes: law.overhead,
            pools: law.pools != 0,
            count_other: law.input == 0,
            interval: if law.interval == 0 { Interval::Mean } else { Interval::Max },
            min_interval_ns: law.min_interval_ns,
            max_interval_ns: law.max_interval_ns,
            queue_target_bytes: law.queue_target,
            gain: if law.gain == 0 { Gain::Uniform } else { Gain::OwnRtt },
            capacity_for_xcp: if law.capacity_for_xcp == 0 {
                CapacityForXcp::Configured
            } else {
                CapacityForXcp::MinusOther
            },
            shuffle: if law.shuffle == 0 { Shuffle::All } else { Shuffle::Matching },
            spare: match law.spare {
                0 => Spare::All,
                1 => Spare::Scaled,
                _ => Spare::Limited,
            },
            spare_most: law.spare_most,
            control: if law.control == 0 { Control::Draft } else { Control::Calendar },
            steer_tcp: law.tcp != 0,
            measure_capacity: law.capacity_known != 0,
        }
    }

    /// What the engine's answer to this law means.
    pub(crate) fn verdict(&self, wrong: i32) -> Result<(), ConfigError> {
        Err(match wrong {
            0 => return Ok(()),
            1 => ConfigError::Capacity,
            2 => ConfigError::Intervals,
            3 => ConfigError::Gain { name: "alpha", value: self.alpha },
            4 => ConfigError::Overhead,
            5 => ConfigError::QueueTarget,
            7 => ConfigError::OtherTwice,
            8 => ConfigError::SpareWithoutIds,
            9 => ConfigError::Control,
            _ => ConfigError::SpareMost,
        })
    }

    pub(crate) fn law(&self) -> Result<ffi::Law, ConfigError> {
        Ok(ffi::Law {
            capacity: self.capacity_bytes_per_sec,
            min_interval_ns: self.min_interval_ns,
            max_interval_ns: self.max_interval_ns,
            queue_target: self.queue_target_bytes,
            alpha: fraction("alpha", self.alpha)?,
            beta: fraction("beta", self.beta)?,
            gamma: fraction("gamma", self.gamma)?,
            overhead: self.overhead_bytes,
            interval: match self.interval {
                Interval::Mean => 0,
                Interval::Max => 1,
            },
            capacity_for_xcp: match self.capacity_for_xcp {
                CapacityForXcp::Configured => 0,
                CapacityForXcp::MinusOther => 1,
            },
            shuffle: match self.shuffle {
                Shuffle::All => 0,
                Shuffle::Matching => 1,
            },
            spare: match self.spare {
                Spare::All => 0,
                Spare::Scaled => 1,
                Spare::Limited => 2,
            },
            gain: match self.gain {
                Gain::Uniform => 0,
                Gain::OwnRtt => 1,
            },
            input: u8::from(!self.count_other),
            pools: u8::from(self.pools),
            spare_most: self.spare_most,
            control: match self.control {
                Control::Draft => 0,
                Control::Calendar => 1,
            },
            tcp: u8::from(self.steer_tcp),
            capacity_known: u8::from(self.measure_capacity),
            unused: [0; 5],
        })
    }
}

/// A gain as a fraction of 2^32.
fn fraction(name: &'static str, v: f64) -> Result<u32, ConfigError> {
    let scaled = (v * 4_294_967_296.0).round();
    if (0.0..=f64::from(u32::MAX)).contains(&scaled) {
        Ok(scaled as u32)
    } else {
        Err(ConfigError::Gain { name, value: v })
    }
}

/// What is wrong with a [`RouterConfig`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// Capacity is 0 or above 2^40 bytes/s.
    Capacity,
    /// The intervals are not 0 < min <= max <= 2^42 ns.
    Intervals,
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
    /// The capacity is less other traffic, and input counts it too.
    OtherTwice,
    /// Spare bandwidth for the flows limited here, and the shuffle for all.
    SpareWithoutIds,
    /// N / N_b bounded by 0.
    SpareMost,
    /// A calendar with choices that it does not know, what belongs to it without one, or a router
    /// of the other kind.
    Control,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Capacity => {
                write!(f, "capacity must be between 1 byte/s and 2^40 bytes/s (8.8 Tbit/s)")
            }
            ConfigError::Intervals => write!(
                f,
                "control intervals must satisfy 0 < shortest <= longest <= 2^42 ns (4398 s)"
            ),
            ConfigError::Gain { name, value } => {
                let least = if *name == "alpha" { "above 0" } else { "at least 0" };
                write!(f, "{name} = {value} is outside its range: {least} and below 1")
            }
            ConfigError::Overhead => write!(f, "overhead per packet must be at most 65535 bytes"),
            ConfigError::QueueTarget => write!(f, "the queue target must be at most 2^40 bytes"),
            ConfigError::OtherTwice => {
                write!(
                    f,
                    "capacity-for-xcp = minus-other takes other traffic off the capacity, and \
                        input = all counts it as well: twice; write input = xcp"
                )
            }
            ConfigError::SpareWithoutIds => {
                write!(
                    f,
                    "spare = limited is for links that shuffle only the flows limited there; \
                        write shuffle = matching"
                )
            }
            ConfigError::SpareMost => {
                write!(f, "spare-most, the bound of N / N_b, must be from 1 to 255")
            }
            ConfigError::Control => {
                write!(
                    f,
                    "control = calendar goes with the preset robust, and steering TCP and a \
                        measured capacity go with the calendar; this router knows one of the two \
                        kinds only"
                )
            }
        }
    }
}

impl std::error::Error for ConfigError {}
