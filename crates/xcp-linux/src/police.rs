//! The policer of a router in the kernel: how it is asked for, what the program is told of it
//! before it is loaded, how what it has done is read. What it does is engine/policer.h's business.

use std::fmt;

use xcp_engine::{POLICER_WORDS, Policer, PolicerConfig, PolicerState};

use crate::error::{Error, Result};
use crate::programs::router::OpenRouterSkel;
use crate::shared::{xcp_control, xcp_police};

/// Settings of a policer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Police {
    /// Flows that its table is good for, the longest RTT that is believed, and the table's secret.
    pub config: PolicerConfig,
    /// How it tells senders apart.
    pub by: PoliceBy,
}

/// Whose packets go by one clock: together they get no more than one flow would.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoliceBy {
    /// Those with the same addresses and ports.
    Flow,
    /// Those whose source addresses begin with the same bits.
    Source {
        /// How many of an IPv4 address, up to 32.
        v4: u8,
        /// How many of an IPv6 address, up to 128.
        v6: u8,
    },
}

impl PoliceBy {
    /// By the whole source address.
    pub const ADDRESS: Self = Self::Source { v4: 32, v6: 128 };
    /// By the networks that one customer is usually given (RFC 6177 for IPv6).
    pub const PREFIX: Self = Self::Source { v4: 24, v6: 64 };
}

impl fmt::Display for PoliceBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flow => f.write_str("flow"),
            &Self::ADDRESS => f.write_str("address"),
            Self::Source { v4, v6 } => write!(f, "prefix /{v4} and /{v6}"),
        }
    }
}

/// A policer at work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policing {
    /// How it tells senders apart.
    pub by: PoliceBy,
    /// Flows that its table is good for.
    pub flows: u32,
    /// What it has done.
    pub state: PolicerState,
}

impl PoliceBy {
    /// The same to the program.
    fn told(self) -> xcp_police {
        match self {
            Self::Flow => xcp_police::XCP_POLICE_FLOWS,
            Self::Source { .. } => xcp_police::XCP_POLICE_SOURCES,
        }
    }
}

impl xcp_control {
    /// The same with this policer noted.
    pub fn policed(self, police: &Police) -> Self {
        let (v4, v6) = match police.by {
            PoliceBy::Flow => (0, 0),
            PoliceBy::Source { v4, v6 } => (v4, v6),
        };
        Self {
            police: police.by.told().0.into(),
            police_sets: police.config.sets().into(),
            police_prefix_v4: v4.into(),
            police_prefix_v6: v6.into(),
            ..self
        }
    }

    /// The policer that was noted, with its state.
    pub fn policing(&self, words: &[u64; POLICER_WORDS]) -> Option<Policing> {
        let bits = |noted: u64, most: u8| noted.min(most.into()) as u8;
        let by = match xcp_police(u32::try_from(self.police).unwrap_or(0)) {
            xcp_police::XCP_POLICE_FLOWS => PoliceBy::Flow,
            xcp_police::XCP_POLICE_SOURCES => PoliceBy::Source {
                v4: bits(self.police_prefix_v4, 32),
                v6: bits(self.police_prefix_v6, 128),
            },
            _ => return None,
        };
        Some(Policing {
            by,
            flows: u32::try_from(self.police_sets).unwrap_or(u32::MAX),
            state: Policer::state_of(words),
        })
    }
}

/// An IPv4 address's first bits, as they lie in the packet.
pub fn mask_v4(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0).to_be()
}

/// An IPv6 address's first bits, as two words as they lie in the packet.
pub fn mask_v6(bits: u8) -> [u64; 2] {
    let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0).to_be_bytes();
    let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| mask[at + i]));
    [word(0), word(8)]
}

/// Tells a program that is about to be loaded of its policer, and makes the table as large as it
/// has to be.
pub(crate) fn prepare(open: &mut OpenRouterSkel<'_>, police: Option<&Police>) -> Result<()> {
    let Some(police) = police else { return Ok(()) };
    let sets = police.config.sets();
    let rodata = open
        .maps
        .rodata_data
        .as_deref_mut()
        .ok_or_else(|| Error::new("the router program has no settings"))?;
    rodata.police_sets = sets;
    rodata.police = police.by.told();
    if let PoliceBy::Source { v4, v6 } = police.by {
        rodata.police_mask_v4 = mask_v4(v4);
        rodata.police_mask_v6 = mask_v6(v6);
    }
    let told = |e: libbpf_rs::Error| {
        Error::because(format_args!("cannot make a table for {sets} flows"), e)
    };
    open.maps.policed.set_max_entries(sets).map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_keep_the_first_bits() {
        assert_eq!(
            [0, 1, 24, 32].map(mask_v4).map(u32::to_ne_bytes),
            [[0; 4], [128, 0, 0, 0], [255, 255, 255, 0], [255; 4]]
        );
        assert_eq!(mask_v6(64), [u64::MAX, 0]);
        assert_eq!(mask_v6(128), [u64::MAX, u64::MAX]);
        assert_eq!(mask_v6(0), [0, 0]);
        assert_eq!(mask_v6(65)[1].to_ne_bytes(), [128, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn what_was_noted_is_read_again() {
        let config = PolicerConfig { flows: 1000, ..PolicerConfig::DEFAULT };
        for by in [
            PoliceBy::Flow,
            PoliceBy::ADDRESS,
            PoliceBy::PREFIX,
            PoliceBy::Source { v4: 0, v6: 48 },
        ] {
            let noted = xcp_control::default().policed(&Police { config, by });
            let read = noted.policing(&[0; POLICER_WORDS]).unwrap();
            assert_eq!((read.by, read.flows), (by, 1024));
        }
        assert_eq!(xcp_control::default().policing(&[0; POLICER_WORDS]), None);
    }
}
