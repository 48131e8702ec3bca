//! A proxy from its set-up to its end: everything in its order (`set_up`), then signals,
//! questions and settings (`control`) until it is told to end.

mod again;
mod beginnings;
mod control;
mod door;
mod limits;
mod set_up;
pub mod show;
mod swallowed;
mod watch;

use std::path::PathBuf;

use xcp_linux::Result;

pub use set_up::check;
pub use show::{Answer, Gateway, ask};

use crate::options::Options;

/// The line by which a proxy in the background says on stdout that it is up.
pub const READY: &str = "ready";

/// What to run.
#[derive(Debug, Clone)]
pub struct Command {
    /// The user's wishes, those of the file included.
    pub options: Options,
    /// As the command line has them, to be laid over the file again.
    pub typed: Options,
    /// The file, to be read again at SIGHUP.
    pub file: Option<PathBuf>,
    /// Tells this proxy from others of the same network namespace.
    pub name: String,
    /// Tell that it is ready by a line on stdout, and log into this file from the beginning: it is
    /// in the background.
    pub log_file: Option<PathBuf>,
}

/// Runs a proxy until it is told to end.
///
/// # Errors
/// It cannot be set up. Nothing of it is left then.
pub fn run(command: &Command) -> Result<()> {
    // The lock is the keeper's, too, and goes when that has cleaned up.
    let (proxy, lock, keeper) = set_up::set_up(command)?;
    let mut keeper = keeper;
    let ended = control::control(proxy, command, &mut keeper);
    drop(lock);
    keeper.release();
    ended
}
