//! The keeper: a process that waits for the proxy's end, however that comes, and takes back what does not go with it. The proxy has dropped the
//! privileges for that by then, and after `kill -9` it could not.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, waitpid};
use xcp_linux::{Error, Result};

use super::state::Place;

/// The proxy's end of it.
#[derive(Debug)]
pub struct Keeper {
    pid: Pid,
    /// Open as long as the proxy lives.
    line: Option<OwnedFd>,
}

impl Keeper {
    /// Starts it. Call it while the process has one thread, and before anything is opened that is to go with the proxy: the keeper holds what was
    /// open.
    ///
    /// # Errors
    /// No process, no pipe.
    pub fn start(place: &Place) -> Result<Self> {
        let told = |e: &dyn std::fmt::Display| Error::new(format!("cannot start the process that cleans up: {e}"));
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| told(&e))?;
        // SAFETY: the process has one thread, so no lock is held by one that is missing in the child.
        let pid = unsafe { libc::fork() };
        match pid {
            ..0 => Err(told(&std::io::Error::last_os_error())),
            0 => {
                drop(write);
                keep(read, place)
            }
            child => {
                let pid = Pid::from_raw(child).ok_or_else(|| told(&"no process number"))?;
                Ok(Self { pid, line: Some(write) })
            }
        }
    }

    /// Lets it clean up and waits until it has.
    pub fn release(mut self) {
        self.line = None;
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

fn keep(line: OwnedFd, place: &Place) -> ! {
    let _ = rustix::process::setsid();
    let _ = rustix::process::chdir("/");
    let _ = rustix::thread::set_name(c"xcpnet-pep-keep");
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
        // SAFETY: a signal to be ignored.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    // Nothing is ever written: this returns when the proxy has gone.
    let _ = File::from(line).read_to_end(&mut Vec::new());
    let failed = place.clean().is_err();
    // SAFETY: ends the process without running what the parent has registered for its own end.
    unsafe { libc::_exit(failed.into()) }
}
