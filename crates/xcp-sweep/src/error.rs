//! Why a sweep cannot be done, in words, and of which kind that is.

use std::fmt::{self, Display};

use xcp_report::files::WriteError;
use xcp_scenario::{Problem, ScenarioError};

/// An error of a sweep.
#[derive(Debug, Clone)]
pub struct Error {
    message: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// Somebody asked for something that cannot be.
    Refused,
    /// The scenario is wrong.
    Scenario(Vec<Problem>),
    /// The system would not have it.
    Write,
    /// Somebody asked to end.
    Interrupted,
}

impl Error {
    /// Something that cannot be, and what can.
    pub fn refused(message: impl Display) -> Self {
        Self { message: message.to_string(), kind: Kind::Refused }
    }

    /// A scenario's faults, told like this.
    pub fn scenario(message: impl Display, problems: Vec<Problem>) -> Self {
        Self { message: message.to_string(), kind: Kind::Scenario(problems) }
    }

    /// Ended early because somebody asked for it.
    pub fn interrupted(message: impl Display) -> Self {
        Self { message: message.to_string(), kind: Kind::Interrupted }
    }

    /// The system would not have it.
    pub fn system(message: impl Display) -> Self {
        Self { message: message.to_string(), kind: Kind::Write }
    }

    /// Whether somebody asked to end.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        matches!(self.kind, Kind::Interrupted)
    }

    /// Whether it is the system's: a full disk, a directory that may not be written to.
    #[must_use]
    pub fn is_system(&self) -> bool {
        matches!(self.kind, Kind::Write)
    }

    /// The scenario's faults, if it is those.
    #[must_use]
    pub fn problems(&self) -> Option<&[Problem]> {
        match &self.kind {
            Kind::Scenario(problems) => Some(problems),
            _ => None,
        }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        Self::system(error)
    }
}

impl From<ScenarioError> for Error {
    fn from(error: ScenarioError) -> Self {
        Self::scenario(&error, error.problems().to_vec())
    }
}
