//! Why the program ends with a status other than 0, in words and as the status.

use std::fmt::Display;

use crate::terminal;

/// A claim lies outside its band.
pub const OUTSIDE: u8 = 1;
/// The machine lacks something.
pub const LACKING: u8 = 1;
/// The input is wrong, or the result could not be written.
pub const UNUSABLE: u8 = 2;
/// Ctrl-C, as shells count it (128 + SIGINT).
pub const INTERRUPTED: u8 = 130;

/// A message for stderr and an exit status.
#[derive(Debug)]
pub struct Failure {
    message: String,
    /// Exit status of the program.
    pub status: u8,
}

impl Failure {
    /// Bad input or an unwritable result.
    pub fn new(message: impl Display) -> Self {
        Self { message: message.to_string(), status: UNUSABLE }
    }

    /// The same with another status.
    pub fn with_status(message: impl Display, status: u8) -> Self {
        Self { message: message.to_string(), status }
    }

    /// Prints the message. A closed stderr is nobody to tell.
    pub fn tell(&self) {
        let text = self.message.trim_end();
        terminal::tell(&format!(
            "{}{text}",
            if text.starts_with("error") { "" } else { "error: " }
        ));
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<xcp_scenario::ScenarioError> for Failure {
    fn from(error: xcp_scenario::ScenarioError) -> Self {
        Self::new(error)
    }
}

impl From<xcp_sweep::Error> for Failure {
    fn from(error: xcp_sweep::Error) -> Self {
        let status = if error.is_interrupted() { INTERRUPTED } else { UNUSABLE };
        Self::with_status(error, status)
    }
}

impl From<xcp_report::files::WriteError> for Failure {
    fn from(error: xcp_report::files::WriteError) -> Self {
        Self::new(error)
    }
}
