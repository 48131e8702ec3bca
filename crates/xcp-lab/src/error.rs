//! Why a scenario cannot be run on this machine, in words that name the place and the remedy.

use std::error::Error;
use std::fmt;

/// What is said, including the error behind it where there is one, which is its source too.
#[derive(Debug)]
pub struct Cause {
    text: String,
    reason: Option<Box<dyn Error + Send + Sync>>,
}

/// Why there is no run.
#[derive(Debug)]
#[non_exhaustive]
pub enum LabError {
    /// The scenario asks for what Linux cannot do, or the lab cannot build.
    Refused(String),
    /// The machine lacks something: a privilege, a kernel feature, a file system.
    Missing(Cause),
    /// Something failed while the lab was built or the scenario ran.
    Failed(Cause),
}

impl LabError {
    /// What is needed and not there; the way out is `xcpnet doctor`.
    pub(crate) fn missing(what: impl fmt::Display) -> Self {
        let text = format!("{what}; `xcpnet doctor` says what this kernel can do");
        Self::Missing(Cause { text, reason: None })
    }

    /// What is needed and not there, as an error tells it that names the way out itself.
    pub(crate) fn lacks(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let reason = why.into();
        Self::Missing(Cause { text: reason.to_string(), reason: Some(reason) })
    }

    /// A step that failed, and what the system says of it.
    pub(crate) fn failed(
        step: impl fmt::Display,
        why: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        let reason = why.into();
        let text = format!("the lab cannot {step}: {reason}");
        Self::Failed(Cause { text, reason: Some(reason) })
    }
}

impl From<&str> for Cause {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), reason: None }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(what) => f.write_str(what),
            Self::Missing(cause) | Self::Failed(cause) => cause.fmt(f),
        }
    }
}

impl Error for LabError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(_) => None,
            Self::Missing(cause) | Self::Failed(cause) => Some(cause.reason.as_deref()?),
        }
    }
}
