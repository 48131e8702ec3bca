//! The thread that is asked and told: signals, questions of `pep show`, Prometheus, and the file of options when it is to be read again.

use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use xcp_linux::{Error, Result, qdisc};

use super::set_up::Proxy;
use super::{Command, show};
use crate::options::{Change, Options};
use crate::worker::Order;

/// SIGTERM, SIGINT and SIGHUP as something to read.
#[derive(Debug)]
pub(super) struct Signals(OwnedFd);

impl Signals {
    /// Takes them for this thread and those it starts.
    pub fn take() -> Result<Self> {
        // SAFETY: a set of signals is initialised before use; signalfd returns a descriptor of ours or -1.
        let fd = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(Error::because("cannot listen to signals", &std::io::Error::last_os_error()));
        }
        // SAFETY: the kernel has just given us this descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    fn next(&self) -> Option<i32> {
        // SAFETY: a structure of integers, for all of which zero is a value.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let length = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer is as long as it says and outlives the call.
        let read = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut info).cast(), length) };
        (read == length as isize).then_some(info.ssi_signo as i32)
    }
}

/// Tells whoever started it that it is ready: systemd (sd_notify(3)), or `pep up`.
fn tell_ready(command: &Command) {
    if let Some(path) = std::env::var_os("NOTIFY_SOCKET")
        && let Ok(socket) = UnixDatagram::unbound()
        && let Ok(manager) = match path.as_bytes().strip_prefix(b"@") {
            Some(name) => UnixAddress::from_abstract_name(name),
            None => UnixAddress::from_pathname(&path),
        }
    {
        let _ = socket.send_to_addr(b"READY=1", &manager);
    }
    if command.log_file.is_some() {
        println!("ready");
        // Whoever started it waits for the end of this.
        if let Ok(null) = std::fs::File::open("/dev/null") {
            let _ = rustix::stdio::dup2_stdout(null);
        }
    }
}

/// Until it is told to end.
pub(super) fn control(mut proxy: Proxy, command: &Command) -> Result<()> {
    let mut now = command.options.clone();
    tell_ready(command);
    tracing::info!(
        wan = proxy.plan.wan.as_ref().map(|d| d.name.as_str()),
        listen = ?now.listen,
        congestion = proxy.plan.congestion.as_deref(),
        router = proxy.router.is_some(),
        "the proxy is up"
    );
    let mut end: Option<Instant> = None;
    loop {
        if end.is_some_and(|at| at <= Instant::now() || proxy.shared.active.load(Ordering::Relaxed) == 0) {
            break;
        }
        let active = proxy.shared.active.load(Ordering::Relaxed);
        if let (Some(beginnings), Some(endpoint), Some(router)) = (&mut proxy.beginnings, &proxy.endpoint, &proxy.router) {
            beginnings.look(Instant::now(), endpoint, router, &mut proxy.netlink, active);
        }
        let asked = wait(&proxy, end.is_some() || proxy.beginnings.is_some())?;
        while let Some(signal) = proxy.signals.next() {
            match signal {
                libc::SIGHUP => match reload(&mut proxy, command, &now) {
                    Ok(options) => now = options,
                    Err(why) => tracing::error!(%why, "the settings stay as they were"),
                },
                _ if end.is_some() => end = Some(Instant::now()),
                _ => {
                    let patience = now.drain().unwrap_or_default();
                    tracing::info!(connections = proxy.shared.active.load(Ordering::Relaxed), ?patience, "draining");
                    drain(&mut proxy);
                    end = Some(Instant::now() + patience);
                }
            }
        }
        if asked.show {
            show::answer(&proxy);
        }
        if asked.metrics {
            show::answer_http(&proxy);
        }
    }
    let left = proxy.shared.active.load(Ordering::Relaxed);
    tracing::info!(reset = left, "the proxy ends");
    proxy.crew.stop();
    Ok(())
}

struct Asked {
    show: bool,
    metrics: bool,
}

/// `soon`: something is to be looked at again before long.
fn wait(proxy: &Proxy, soon: bool) -> Result<Asked> {
    let mut fds =
        vec![PollFd::from_borrowed_fd(proxy.signals.0.as_fd(), PollFlags::IN), PollFd::from_borrowed_fd(proxy.show.as_fd(), PollFlags::IN)];
    if let Some(metrics) = &proxy.metrics {
        fds.push(PollFd::from_borrowed_fd(metrics.as_fd(), PollFlags::IN));
    }
    let wait = soon.then(|| Timespec { tv_sec: 0, tv_nsec: Duration::from_millis(50).as_nanos() as i64 });
    match poll(&mut fds, wait.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(e) => return Err(Error::because("cannot wait for signals", &std::io::Error::from(e))),
    }
    let ready = |at: usize| fds.get(at).is_some_and(|fd| fd.revents().contains(PollFlags::IN));
    Ok(Asked { show: ready(1), metrics: ready(2) })
}

/// New connections pass untouched; those that are here go on.
fn drain(proxy: &mut Proxy) {
    proxy.shared.draining.store(true, Ordering::Relaxed);
    if let (Some(table), Some(diverted)) = (&mut proxy.table, &proxy.plan.diverted)
        && let Err(why) = diverted.drain(table)
    {
        tracing::error!(%why, "new connections are still diverted");
    }
    proxy.crew.tell(|| Order::Drain);
}

/// Reads the file again. Connections that are there keep what they have.
fn reload(proxy: &mut Proxy, command: &Command, now: &Options) -> Result<Options> {
    let Some(file) = &command.file else {
        return Err(Error::new("there is no file of options to read again").remedy("start it with --config FILE"));
    };
    let new = command.typed.clone().over(Options::load(file)?);
    let differences = now.differences(&new);
    let those = |wanted: Change| {
        let names: Vec<&str> = differences.iter().filter(|(_, change)| *change == wanted).map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    };
    let (changed, fixed) = (those(Change::Live), those(Change::Start));
    if !fixed.is_empty() {
        tracing::warn!(settings = fixed, "these change only when the proxy is started anew");
    }
    let mark = if proxy.plan.diverted.is_some() { proxy.slot.own() } else { 0 };
    let mut settings = new.settings(proxy.plan.congestion.as_deref(), mark)?;
    let excludes = new.excludes()?;
    let rate = new.rate_bps()?;
    settings.connections = settings.connections.min(proxy.connections);
    settings.held = proxy.shared.settings().held;
    if let (Some(table), Some(diverted)) = (&mut proxy.table, &mut proxy.plan.diverted)
        && diverted.exclude != excludes
    {
        let changed = crate::gateway::rules::Diverted { exclude: excludes, ..diverted.clone() };
        changed.change(table)?;
        *diverted = changed;
    }
    if let (Some(router), Some(rate), Some(wan)) = (&proxy.router, rate, &proxy.plan.wan)
        && now.rate_bps()? != Some(rate)
    {
        qdisc::change_rate(&mut proxy.netlink, wan.index, qdisc::Shaper::Htb, rate)?;
        router.set_capacity(rate / 8)?;
        if let Some(beginnings) = &mut proxy.beginnings {
            beginnings.set_rate(rate, new.rtt_ns()?);
        }
    } else if rate.is_some() != proxy.router.is_some() && proxy.plan.wan.is_some() {
        tracing::warn!("a router comes or goes only when the proxy is started anew");
    }
    proxy.shared.set(settings);
    tracing::info!(file = %file.display(), changed, "settings read again");
    Ok(new)
}
