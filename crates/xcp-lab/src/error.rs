//! Why a scenario cannot be run on this machine, in words that name the place and the remedy.

use std::fmt;

/// Why there is no run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabError {
    /// The scenario asks for what Linux cannot do, or the lab cannot build.
    Refused(String),
    /// The machine lacks something: a privilege, a kernel feature, a file system.
    Missing(String),
    /// Something failed while the lab was built or the scenario ran.
    Failed(String),
}

impl LabError {
    /// What is needed and not there; the way out is `xcpnet doctor`.
    pub(crate) fn missing(what: impl fmt::Display) -> Self {
        Self::Missing(format!("{what}; `xcpnet doctor` says what this kernel can do"))
    }

    /// A step that failed, and what the system says of it.
    pub(crate) fn failed(step: impl fmt::Display, why: impl fmt::Display) -> Self {
        Self::Failed(format!("the lab cannot {step}: {why}"))
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(what) | Self::Missing(what) | Self::Failed(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for LabError {}
