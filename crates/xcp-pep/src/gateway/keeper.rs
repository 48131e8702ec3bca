//! The keeper: a process that waits for the proxy's end, however that comes, and takes back what
//! does not go with it. The proxy has dropped the privileges for that by then, and after `kill -9`
//! it could not.
//!
//! It is told by the proxy what there will be to take back, before that is done ([`Keeper::note`]);
//! it writes it down for others, but goes by what it was told: a file may be removed, or be
//! somebody else's by then.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use rustix::process::{Pid, WaitOptions, waitpid};
use xcp_linux::{Error, Result};

use super::state::{Place, State};

/// The proxy's end of it.
#[derive(Debug)]
pub struct Keeper {
    pid: Pid,
    /// Open as long as the proxy lives.
    line: Option<BufReader<UnixStream>>,
}

impl Keeper {
    /// Starts it. Call it while the process has one thread, and before anything is opened that is
    /// to go with the proxy: the keeper holds what was open.
    ///
    /// # Errors
    /// No process, no sockets.
    pub fn start(place: &Place) -> Result<Self> {
        let told = |e: io::Error| Error::around("cannot start the process that cleans up", e);
        let (theirs, ours) = UnixStream::pair().map_err(told)?;
        // SAFETY: the process has one thread, so no lock is held by one that is missing in the
        // child.
        let pid = unsafe { libc::fork() };
        match pid {
            ..0 => Err(told(io::Error::last_os_error())),
            0 => {
                drop(ours);
                keep(BufReader::new(theirs), place)
            }
            child => {
                let pid = Pid::from_raw(child)
                    .ok_or_else(|| told(io::Error::other("no process number")))?;
                Ok(Self { pid, line: Some(BufReader::new(ours)) })
            }
        }
    }

    /// Tells it all that there will be to take back; returns when it is written down.
    ///
    /// # Errors
    /// It could not be written, or the keeper is no more.
    pub fn note(&mut self, state: &State) -> Result<()> {
        let told = |e: io::Error| Error::around("cannot record what is to be undone", e);
        let gone =
            |what: &str| told(io::Error::other(format!("the process that cleans up {what}")));
        let line = self.line.as_mut().ok_or_else(|| gone("has been released"))?;
        let mut text = serde_json::to_vec(state).map_err(|e| told(e.into()))?;
        text.push(b'\n');
        let mut answer = String::new();
        line.get_mut().write_all(&text).and_then(|()| line.read_line(&mut answer)).map_err(told)?;
        match answer.trim_end() {
            WRITTEN => Ok(()),
            "" => Err(gone("has ended")),
            why => Err(Error::new(why)),
        }
    }

    /// Lets it clean up and waits until it has.
    pub fn release(mut self) {
        self.line = None;
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// What the keeper answers where there is nothing to object to.
const WRITTEN: &str = "written";

fn keep(mut line: BufReader<UnixStream>, place: &Place) -> ! {
    let _ = rustix::process::setsid();
    let _ = rustix::process::chdir("/");
    let _ = rustix::thread::set_name(c"xcpnet-pep-keep");
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
        // SAFETY: a signal to be ignored.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let mut last = None;
    let mut text = String::new();
    // Ends when the proxy has gone.
    while line.read_line(&mut text).is_ok_and(|length| length > 0) {
        if let Ok(state) = serde_json::from_str::<State>(&text) {
            let written = place.write(&state);
            last = Some(state);
            let answer =
                written.map_or_else(|e| e.to_string().replace('\n', " "), |()| WRITTEN.to_owned());
            let _ = line.get_mut().write_all(format!("{answer}\n").as_bytes());
        }
        text.clear();
    }
    let failed = last.is_some_and(|state| place.clean_after(&state).is_err());
    // SAFETY: ends the process without running what the parent has registered for its own end.
    unsafe { libc::_exit(failed.into()) }
}
