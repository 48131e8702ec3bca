//! A router's law as a scenario has it: a preset, and what is said beside it.

use xcp_law::{Preset, RouterConfig};

/// A law for a link of a rate that is not known here.
#[derive(Debug, Clone, PartialEq)]
pub struct Law {
    /// The preset it started from.
    pub preset: Preset,
    /// Capacity the router believes in, bit/s; `None` is the link's rate.
    pub capacity_bps: Option<u64>,
    /// All other settings. Its capacity means nothing; see [`Law::at`].
    pub config: RouterConfig,
}

impl Law {
    /// XCP (Katabi et al. 2002).
    #[must_use]
    pub fn xcp() -> Self {
        Self::preset(Preset::Xcp)
    }

    /// The law with the settings of a preset.
    #[must_use]
    pub fn preset(preset: Preset) -> Self {
        Self { preset, capacity_bps: None, config: RouterConfig::preset(preset, 0) }
    }

    /// The settings of its router on a link of `rate_bps`.
    #[must_use]
    pub fn at(&self, rate_bps: u64) -> RouterConfig {
        let capacity_bytes_per_sec = self.capacity_bps.unwrap_or(rate_bps) / 8;
        RouterConfig { capacity_bytes_per_sec, ..self.config.clone() }
    }
}
