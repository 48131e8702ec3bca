//! `pep up`: a proxy in the background. Its log is a file; what whoever started it has to know
//! comes through a pipe, its stdout, a line each: warnings, and then that it is ready, or why it
//! cannot be. So nothing has to be picked out of the log, and a disk that is full hides nothing.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Write};
use std::path::Path;
use std::process::{Child, Command as Program, Stdio};

use xcp_linux::process::start_time;
use xcp_pep::gateway::found::Found;
use xcp_pep::gateway::owner;
use xcp_pep::gateway::state::Place;
use xcp_pep::run::{Command, READY};

use crate::failure::Failure;
use crate::output::Printer;
use crate::terminal;

const WARNING: &str = "warning: ";
const ERROR: &str = "error: ";

/// The proxy's end: each write is a warning of its log. Nobody may be there to read them any more.
pub(super) struct ToStarter;

impl Write for ToStarter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let _ = writeln!(io::stdout(), "{WARNING}{}", text.trim_end().replace('\n', " "));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Why the proxy did not come up. One that has been up has nobody at the other end.
pub(super) fn tell_starter(failure: &Failure) {
    let _ = writeln!(io::stdout(), "{ERROR}{failure}");
}

/// Prints the warnings of a proxy that starts until it is up, or until it has said why it is not.
/// `None`: it said nothing of that.
fn listen(from: impl io::Read) -> Option<Result<(), Failure>> {
    let mut from = BufReader::new(from);
    let mut line = String::new();
    while from.read_line(&mut line).is_ok_and(|length| length > 0) {
        if line.trim_end() == READY {
            return Some(Ok(()));
        }
        if let Some(why) = line.strip_prefix(ERROR) {
            let mut why = why.to_owned();
            let _ = from.read_to_string(&mut why);
            return Some(Err(Failure::new(why.trim_end())));
        }
        terminal::tell(line.trim_end());
        line.clear();
    }
    None
}

/// Why it ended without a word of its own: killed, or its end is in its log.
fn silent_end(child: &mut Child, log: &Path) -> Failure {
    let status = child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
    let said = std::fs::read_to_string(log).unwrap_or_default();
    let said = said.trim_end();
    Failure::new(format!(
        "the proxy ended before it was up ({status}){}{said}",
        if said.is_empty() { "" } else { "; its log:\n" }
    ))
}

/// Removes logs of proxies that were killed, together with who started them, before they were up:
/// nobody has them open any more.
fn remove_orphans(directory: &Path) {
    for entry in directory.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let starter = name
            .to_str()
            .and_then(|name| name.strip_prefix("pep-")?.rsplit_once(".log."))
            .and_then(|(_, pid)| pid.parse().ok());
        if starter.is_some_and(|pid| start_time(pid).is_none())
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && File::open(entry.path()).is_ok_and(|log| log.try_lock().is_ok())
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Starts it, and says so when it is up. Nothing is left of one that does not come up.
pub(super) fn up(command: &Command, place: &Place, printer: &mut Printer) -> Result<(), Failure> {
    let pid = start(command, place).inspect_err(|_| {
        // Others' places keep it.
        let _ = place.path().parent().map(std::fs::remove_dir);
    })?;
    let what = match (&command.options.wan, command.options.listen.as_slice()) {
        (Some(wan), []) => format!("connections across {wan} are carried by XCP"),
        (Some(wan), addresses) => {
            format!("connections across {wan} are carried by XCP; clients at {}", list(addresses))
        }
        (None, addresses) => format!("clients at {}", list(addresses)),
    };
    let log = place.log();
    printer
        .line(&format!("the proxy is up (process {pid}): {what}; it logs into {}", log.display()))
}

/// Starts it: the same command line with `run` for `up`. Returns its process when it is up.
fn start(command: &Command, place: &Place) -> Result<u32, Failure> {
    let unwritable = |path: &Path, e: io::Error| Failure::new(place.unwritable(path, e));
    if let Some(parent) = place.path().parent() {
        std::fs::create_dir_all(parent).map_err(|e| unwritable(parent, e))?;
        remove_orphans(parent);
    }
    if let Some((pid, _)) = Found::look(place, &command.name).living {
        return Err(Failure::new(format!(
            "a proxy is already running here (process {pid}); run `{}` first",
            owner::down(&command.name)
        )));
    }
    let log = place.log();
    // Another one may be starting, and an earlier one may have left its log: the file gets its name
    // when the proxy is up.
    let mut own = log.clone().into_os_string();
    own.push(format!(".{}", std::process::id()));
    let own = std::path::PathBuf::from(own);
    let logs = File::create(&own).map_err(|e| unwritable(&own, e))?;
    // For as long as the proxy has it open (`remove_orphans`).
    let _ = logs.try_lock();
    let mut words: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    if let Some(word) = words.iter_mut().find(|word| *word == "up") {
        *word = "run".into();
    }
    words.push("--in-background".into());
    words.push(log.clone().into());
    let program = std::env::current_exe()
        .map_err(|e| Failure::new(format!("cannot find this program: {e}")))?;
    let mut child = Program::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(logs)
        .spawn()
        .map_err(|e| Failure::new(format!("cannot start the proxy: {e}")))?;
    let told = child.stdout.take().and_then(listen);
    match told.unwrap_or_else(|| Err(silent_end(&mut child, &own))) {
        Ok(()) => {}
        Err(failure) => {
            let _ = child.wait();
            let _ = std::fs::remove_file(&own);
            return Err(failure);
        }
    }
    std::fs::rename(&own, &log).map_err(|e| unwritable(&log, e))?;
    Ok(child.id())
}

fn list(addresses: &[std::net::SocketAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_proxy_says_is_a_warning_until_it_is_up_or_says_why_not() {
        assert!(listen(&b"warning: one\nready\nwarning: late\n"[..]).is_some_and(|r| r.is_ok()));
        let failed = listen(&b"warning: one\nerror: no room;\nmake some\n"[..]).unwrap();
        assert_eq!(failed.unwrap_err().to_string(), "no room;\nmake some");
        assert!(listen(&b"warning: one\n"[..]).is_none());
    }
}
