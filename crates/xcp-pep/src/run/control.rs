//! The thread that is asked and told: signals, questions of `pep show`, Prometheus, and the file of
//! options when it is to be read again.

use std::io::Write as _;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use xcp_law::Preset;
use xcp_linux::qdisc::{self, Shaper, Whose};
use xcp_linux::{Error, Result};

use super::door::{Door, Visitors};
use super::set_up::Proxy;
use super::{Command, READY, again, show, swallowed, watch};
use crate::gateway::keeper::Keeper;
use crate::gateway::rules::Diverted;
use crate::gateway::wan::{self, Shaping};
use crate::options::{Change, Exclude, Options};
use crate::socket;
use crate::worker::Order;

/// One connection in so many has to end before more are taken where there were too many.
const ROOM: usize = 20;
/// How long it is waited where something is to be looked at again before long.
const SOON: Duration = Duration::from_millis(50);

/// SIGTERM, SIGINT and SIGHUP as something to read.
#[derive(Debug)]
pub(super) struct Signals(OwnedFd);

impl Signals {
    /// Takes them for this thread and those it starts.
    pub fn take() -> Result<Self> {
        // SAFETY: a set of signals is initialised before use; signalfd returns a descriptor of ours
        // or -1.
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
            return Err(Error::because(
                "cannot listen for signals",
                std::io::Error::last_os_error(),
            ));
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
///
/// # Errors
/// It was `pep up`, and was killed: nobody would know of the proxy.
fn tell_ready(command: &Command) -> Result<()> {
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
        writeln!(std::io::stdout(), "{READY}").map_err(|e| {
            Error::because("cannot tell whoever started the proxy that it is up", e)
        })?;
        // Nobody reads any more what is said there.
        if let Ok(null) = std::fs::File::options().write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdout(null);
        }
    }
    Ok(())
}

/// Until it is told to end.
pub(super) fn control(mut proxy: Proxy, command: &Command, keeper: &mut Keeper) -> Result<()> {
    let mut now = command.options.clone();
    tell_ready(command)?;
    tracing::info!(
        wan = proxy.plan.wan.as_ref().map(|d| d.name.as_str()),
        listen = ?now.listen,
        congestion = proxy.plan.congestion.as_deref(),
        router = proxy.router.is_some(),
        "the proxy is up"
    );
    let mut end: Option<Instant> = None;
    let mut visitors = Visitors::default();
    loop {
        if proxy.shared.failure().is_some()
            || end.is_some_and(|at| {
                at <= Instant::now() || proxy.shared.active.load(Ordering::Relaxed) == 0
            })
        {
            break;
        }
        let active = proxy.shared.active.load(Ordering::Relaxed);
        if let (Some(beginnings), Some(endpoint), Some(router)) =
            (&mut proxy.beginnings, &proxy.endpoint, &proxy.router)
        {
            beginnings.look(Instant::now(), endpoint, router, &mut proxy.netlink, active);
        }
        make_room(&mut proxy, end.is_some());
        swallowed::look(&mut proxy, keeper);
        watch::look(&mut proxy, Instant::now());
        let soon =
            end.is_some() || proxy.beginnings.is_some() || proxy.passing || !visitors.is_empty();
        let patience = if soon { Some(SOON) } else { proxy.links.as_ref().map(|_| watch::PAUSE) };
        let asked = wait(&proxy, &visitors, patience)?;
        while let Some(signal) = proxy.signals.next() {
            match signal {
                libc::SIGHUP => match reload(&mut proxy, command, &now) {
                    Ok(changed) => now = changed.options,
                    Err(why) => tracing::error!(%why, "the settings stay as they were"),
                },
                _ if end.is_some() => end = Some(Instant::now()),
                _ => {
                    let patience = now.drain().unwrap_or_default();
                    tracing::info!(
                        connections = proxy.shared.active.load(Ordering::Relaxed),
                        ?patience,
                        "draining"
                    );
                    drain(&mut proxy);
                    end = Some(Instant::now() + patience);
                }
            }
        }
        let instant = Instant::now();
        welcome(&mut visitors, &proxy, &asked, instant);
        if asked.links
            && let Some(links) = &mut proxy.links
        {
            links.forget();
            again::look(&mut proxy, &now, keeper)?;
        }
        visitors.turn(instant, |door, question| match door {
            Door::Http => show::answer_http(&proxy, question),
            Door::Own { trusted } => {
                let question = String::from_utf8_lossy(question);
                let words: Vec<&str> = question.split_whitespace().collect();
                let told = match words[..] {
                    ["reload" | "rate", ..] if !trusted => {
                        Err(Error::new("only root may tell the proxy to change; run it with sudo"))
                    }
                    ["reload"] => reload(&mut proxy, command, &now),
                    ["rate", out, ref rest @ ..] if rest.len() < 2 => {
                        rates(&mut proxy, &now, out, rest.first().copied())
                    }
                    ["show"] => return show::answer(&proxy),
                    _ => Err(Error::new(format!("\"{}\" is not a valid order", words.join(" ")))),
                };
                match told {
                    Ok(changed) => {
                        now = changed.options;
                        serde_json::json!({ "done": changed.words }).to_string().into_bytes()
                    }
                    Err(why) => {
                        serde_json::json!({ "error": why.to_string() }).to_string().into_bytes()
                    }
                }
            }
        });
    }
    let left = proxy.shared.active.load(Ordering::Relaxed);
    tracing::info!(reset = left, "the proxy is stopping");
    proxy.crew.stop();
    if let Some(why) = proxy.shared.failure() {
        return Err(Error::new(why));
    }
    proxy.state.ended = true;
    // A keeper that is gone removes no log.
    let _ = keeper.note(&proxy.state);
    Ok(())
}

/// Where there are as many connections as may be, more pass untouched until some have ended.
fn make_room(proxy: &mut Proxy, ending: bool) {
    let most = proxy.shared.settings().connections;
    let active = proxy.shared.active.load(Ordering::Relaxed);
    let full = proxy.shared.full.load(Ordering::Relaxed);
    let room = full && active <= most - most.div_ceil(ROOM);
    if room {
        proxy.shared.full.store(false, Ordering::Relaxed);
        tracing::info!(connections = active, "there is room for connections again");
    }
    let pass = full && !room;
    if pass == proxy.passing || ending {
        return;
    }
    if let (Some(table), Some(diverted)) = (&mut proxy.table, &proxy.plan.diverted) {
        let changed = if pass { diverted.drain(table) } else { diverted.change(table) };
        if let Err(why) = changed {
            tracing::error!(%why, "the packet filter's rules stay as they were");
        }
    }
    proxy.passing = pass;
}

struct Asked {
    show: bool,
    metrics: bool,
    /// Devices have come, gone or changed.
    links: bool,
}

/// No longer than `patience`, if there is something to be looked at again then.
fn wait(proxy: &Proxy, visitors: &Visitors, patience: Option<Duration>) -> Result<Asked> {
    let doors = [
        Some(proxy.signals.0.as_fd()),
        Some(proxy.show.as_fd()),
        proxy.metrics.as_ref().map(|metrics| metrics.as_fd()),
        proxy.links.as_ref().map(|links| links.as_fd()),
        proxy.shared.bell.as_ref().map(|bell| bell.as_fd()),
    ];
    let mut fds: Vec<PollFd<'_>> =
        doors.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    fds.extend(visitors.waits().map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)));
    let wait = patience.map(|patience| Timespec {
        tv_sec: patience.as_secs() as i64,
        tv_nsec: patience.subsec_nanos().into(),
    });
    match poll(&mut fds, wait.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(e) => return Err(Error::because("cannot wait for signals", std::io::Error::from(e))),
    }
    // Those that are there are at the beginning, in their order.
    let mut answers = fds.iter();
    let [_, show, metrics, links, bell] = doors.map(|door| {
        door.and_then(|_| answers.next()).is_some_and(|fd| fd.revents().contains(PollFlags::IN))
    });
    if bell && let Some(bell) = &proxy.shared.bell {
        let _ = rustix::io::read(bell, &mut [0u8; 8]);
    }
    Ok(Asked { show, metrics, links })
}

/// Lets in who has come.
fn welcome(visitors: &mut Visitors, proxy: &Proxy, asked: &Asked, now: Instant) {
    if asked.show {
        match proxy.show.accept() {
            Ok((stream, _)) => {
                let peer = rustix::net::sockopt::socket_peercred(&stream).ok();
                let trusted = peer.is_some_and(|peer| peer.uid.is_root() || peer.uid == proxy.user);
                if stream.set_nonblocking(true).is_ok() {
                    visitors.come(stream.into(), Door::Own { trusted }, now);
                }
            }
            Err(why) => socket::pause_if_exhausted(&why),
        }
    }
    if asked.metrics
        && let Some(metrics) = &proxy.metrics
    {
        match metrics.accept() {
            Ok((stream, _)) => {
                if stream.set_nonblocking(true).is_ok() {
                    visitors.come(stream.into(), Door::Http, now);
                }
            }
            Err(why) => socket::pause_if_exhausted(&why),
        }
    }
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

/// What came of a change.
struct Changed {
    options: Options,
    /// For whoever asked.
    words: String,
}

/// Reads the file again. Connections that are there keep what they have.
fn reload(proxy: &mut Proxy, command: &Command, now: &Options) -> Result<Changed> {
    let Some(file) = &command.file else {
        return Err(Error::new("there is no options file to read again")
            .remedy("start the proxy with --config FILE"));
    };
    let mut new = command.typed.clone().over(Options::load(file)?);
    let mut differences = now.differences(&new);
    // A link that is shaped gets another rate; a shaper is added or removed only at the start.
    if proxy.plan.wan.is_some() && new.rate.is_some() != now.rate.is_some() {
        differences.iter_mut().filter(|(name, _)| name == "rate").for_each(|d| d.1 = Change::Start);
        new.rate.clone_from(&now.rate);
    }
    let those = |wanted: Change| {
        let names: Vec<&str> = differences
            .iter()
            .filter(|(_, change)| *change == wanted)
            .map(|(name, _)| name.as_str())
            .collect();
        names.join(", ")
    };
    let (changed, fixed) = (those(Change::Live), those(Change::Start));
    apply(proxy, now, &new)?;
    let mut words = if changed.is_empty() {
        "nothing was changed".to_owned()
    } else {
        format!("changed: {changed}")
    };
    if !fixed.is_empty() {
        words.push_str(&format!(
            "; different in the file, but only changed when the proxy is restarted: {fixed}"
        ));
    }
    if changed.contains("connections") && new.connections > Some(proxy.connections) {
        words.push_str(&format!(
            "; there can be at most {} connections until the proxy is restarted, because it has \
             descriptors for no more",
            proxy.connections
        ));
    }
    tracing::info!(file = %file.display(), "settings read again; {words}");
    // What did not take effect is still to be told the next time.
    Ok(Changed { options: now.clone().with_live(new), words })
}

/// The link has other rates. What the file says of them holds again when that is read again.
fn rates(proxy: &mut Proxy, now: &Options, out: &str, come: Option<&str>) -> Result<Changed> {
    let mut new = now.clone();
    new.rate = Some(out.to_owned());
    new.rate_in = come.map(ToOwned::to_owned).or(new.rate_in);
    if proxy.router.is_none() {
        return Err(Error::new("this proxy does not shape a link: it was started without --rate")
            .remedy("start it with --rate; then the rate can be changed"));
    }
    apply(proxy, now, &new)?;
    let words = match come {
        Some(come) => format!("the gateway sends {out}, receives {come}"),
        None => format!("the gateway sends {out}"),
    };
    tracing::info!("the long link's rates have changed: {words}");
    Ok(Changed { options: new, words })
}

/// The long link has another rate, or other packets go first on it.
fn reshape(proxy: &mut Proxy, now: &Options, new: &Options, link: Shaping) -> Result<()> {
    let (Some(router), Some(wan)) = (&proxy.router, &proxy.plan.wan) else { return Ok(()) };
    let before = now.shaping()?;
    if before.is_none_or(|before| before.urgent != link.urgent) {
        // There is one queue more, or less: what waits in it now is sent again by its senders.
        if proxy.wan_is_there {
            wan::shape(&mut proxy.netlink, wan.index, link)?;
        }
        if let Some(beginnings) = &mut proxy.beginnings {
            beginnings.move_to(wan.index);
        }
    } else if before != Some(link) && proxy.wan_is_there {
        qdisc::change_rate(&mut proxy.netlink, wan.index, Whose::Proxy, Shaper::Htb, link.rate)?;
    }
    if proxy.plan.law != Some(Preset::Robust) {
        router.set_urgent(new.urgent()?)?;
    }
    if before.is_none_or(|before| (before.rate, before.rtt) != (link.rate, link.rtt)) {
        router.set_capacity(link.rate / 8)?;
        if let Some(beginnings) = &mut proxy.beginnings {
            beginnings.set_rate(link.rate, link.rtt);
        }
    }
    Ok(())
}

/// Makes the long link what it was, where [`reshape`] has failed half-way or something after it.
fn shape_back(proxy: &mut Proxy, before: &Options, new: &Options) {
    if let Ok(Some(link)) = before.shaping()
        && let Err(why) = reshape(proxy, new, before, link)
    {
        tracing::error!(%why, "the long link keeps a part of the new settings");
    }
}

/// Other connections are to be left alone.
fn exclude(proxy: &mut Proxy, exclude: Vec<Exclude>) -> Result<()> {
    let (Some(table), Some(diverted)) = (&mut proxy.table, &mut proxy.plan.diverted) else {
        return Ok(());
    };
    if diverted.exclude == exclude {
        return Ok(());
    }
    let changed = Diverted { exclude, ..diverted.clone() };
    // While new connections pass untouched there are no rules for them.
    if !proxy.passing && !proxy.shared.draining.load(Ordering::Relaxed) {
        changed.change(table)?;
    }
    *diverted = changed;
    Ok(())
}

/// Other options take effect, as far as they may: all of them, or none where one of them fails.
fn apply(proxy: &mut Proxy, now: &Options, new: &Options) -> Result<()> {
    let mark = if proxy.plan.diverted.is_some() { proxy.slot.own() } else { 0 };
    let mut settings = new.settings(proxy.plan.congestion.as_deref(), mark)?;
    let excludes = new.excludes()?;
    new.drain()?;
    new.law()?;
    if let Some(running) = proxy.plan.law {
        new.go_with(running)?;
    }
    let shaping = new.shaping()?;
    settings.connections = settings.connections.min(proxy.connections);
    settings.held = proxy.shared.settings().held;
    settings.early &= !now.confirm.unwrap_or(false);
    let windows = new.windows()? != now.windows()?;
    let shaped = shaping.map_or(Ok(()), |link| reshape(proxy, now, new, link));
    if let Err(why) = shaped.and_then(|()| exclude(proxy, excludes)) {
        shape_back(proxy, now, new);
        return Err(why);
    }
    let early = settings.early != proxy.shared.settings().early;
    proxy.shared.set(settings);
    if windows {
        proxy.crew.tell(|| Order::Resize);
    }
    if early {
        proxy.crew.tell(|| Order::Early);
    }
    Ok(())
}
