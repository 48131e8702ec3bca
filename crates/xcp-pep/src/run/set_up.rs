//! Sets a proxy up, in an order in which nothing is diverted before all is there, and everything is
//! written down before it is done.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use xcp_law::Preset;
use xcp_linux::endpoint::{Ask, Endpoint, check_fallback};
use xcp_linux::namespace::Namespace;
use xcp_linux::netlink::nfqueue::Queue;
use xcp_linux::netlink::nftables::{OwnedTable, Spelling, Version};
use xcp_linux::netlink::{Device, Links, Netlink};
use xcp_linux::router::Router;
use xcp_linux::{Error, Result, sysctl};

use super::beginnings::Beginnings;
use super::watch::Watch;
use super::{Command, limits};
use crate::confirm::{self, Holder};
use crate::gateway::keeper::Keeper;
use crate::gateway::look::{self, Finding, Standing};
use crate::gateway::owner::{self, Lock};
use crate::gateway::rules::{self, Diverted};
use crate::gateway::slot::Slot;
use crate::gateway::state::{Changed, Place, State, start_time};
use crate::gateway::{privileges, wan};
use crate::options::Options;
use crate::seldom::Seldom;
use crate::settings::{Kind, Settings};
use crate::shared::Shared;
use crate::socket;
use crate::trunk;
use crate::worker::names::Asker;
use crate::worker::{BACKLOG, Crew, Listener, Worker, listener};

/// Retransmissions and probes in vain: the most the kernel takes.
const TRIES: u32 = 255;

/// What was decided and can be told.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Rules, where connections are diverted.
    pub diverted: Option<Diverted>,
    /// The long link's device.
    pub wan: Option<Device>,
    /// The congestion control's name, where there is XCP.
    pub congestion: Option<String>,
    /// The long link's law, where there is one.
    pub law: Option<Preset>,
}

/// A proxy that is set up.
pub(super) struct Proxy {
    pub plan: Plan,
    pub slot: Slot,
    pub shared: Arc<Shared>,
    pub crew: Crew,
    pub table: Option<OwnedTable>,
    pub endpoint: Option<Endpoint>,
    pub router: Option<Router>,
    pub netlink: Netlink,
    pub show: std::os::unix::net::UnixListener,
    pub metrics: Option<std::net::TcpListener>,
    pub signals: super::control::Signals,
    /// Tells of devices that come and go, where we are a gateway.
    pub links: Option<Links>,
    /// Whether the long link's device is there.
    pub wan_is_there: bool,
    /// What the keeper was told.
    pub state: State,
    /// What others take away, or put in the way.
    pub watch: Watch,
    /// Who the proxy was made by.
    pub user: rustix::process::Uid,
    /// New connections pass untouched, because there are too many.
    pub passing: bool,
    /// Of a line about packets that are swallowed and sizes that cannot be tried.
    pub swallowed: Seldom,
    /// Connections, after the limit of descriptors.
    pub connections: usize,
    /// How connections begin on the long link, where we are its router.
    pub beginnings: Option<Beginnings>,
}

/// What is asked for, before anything is looked at.
///
/// # Errors
/// It is nothing, half of something, or none.
fn check_options(options: &Options) -> Result<()> {
    if options.wan.is_none() && options.listen.is_empty() {
        return Err(Error::new("this proxy has nothing to do").remedy(
            "give its devices (--wan DEV --lan DEV), an address for clients (--listen \
             127.0.0.1:1080), or both",
        ));
    }
    if options.wan.is_some() {
        if !xcp_linux::error::is_root() {
            return Err(Error::new("diverting connections needs root")
                .remedy("run it with sudo, or as an explicit proxy: --listen ADDRESS"));
        }
        if options.lan.is_empty() {
            return Err(Error::new("--wan is given without --lan")
                .remedy("give the devices towards clients and servers: --lan DEV"));
        }
    } else if !options.lan.is_empty() {
        return Err(Error::new("--lan is given without --wan")
            .remedy("give the device towards the long link: --wan DEV"));
    }
    options.settings(None, 0)?;
    options.excludes()?;
    options.memory()?;
    options.workers()?;
    options.drain()?;
    options.rto_max_ms()?;
    options.initial_window()?;
    options.trunk()?;
    options.rate_bps()?;
    options.law()?;
    options.log_level()?;
    if options.wan.is_some() {
        // The endpoint's own name is made for each proxy, and is nobody's wish.
        check_fallback(options.fallback(), "")?;
    }
    user(options)?;
    Ok(())
}

/// All that can be known of a proxy that would have this name, and nothing done.
///
/// # Errors
/// What `pep up` would refuse for another reason than what is in the way.
pub fn check(options: &Options, name: &str) -> Result<Vec<Finding>> {
    check_options(options)?;
    let settings = options.settings(None, 0)?;
    let trunk = options.trunk_plan()?;
    room(options, &settings, trunk.as_ref())?;
    let found = look::look(options, name)?;
    // One that is up already has these addresses itself.
    if found.iter().all(|finding| finding.standing != Standing::InTheWay) {
        let namespace = Namespace::current()
            .map_err(|e| Error::because("cannot open this network namespace", e))?;
        check_place(&Place::of(&namespace, name), name)?;
        let _listeners = explicit_listeners(options, &settings)?;
        let _metrics = options.metrics.map(super::show::listen_http).transpose()?;
    }
    Ok(found)
}

/// Descriptors for as many connections as are wanted, or for as many as there can be.
fn room(options: &Options, settings: &Settings, trunk: Option<&trunk::Plan>) -> Result<usize> {
    let pipes = (options.memory()? / settings.held).max(options.workers()?);
    let held = if holds(options) { confirm::MOST as usize } else { 0 };
    let links = trunk.map_or(0, |plan| plan.warm + trunk::MOST_ANSWERED);
    let asked = options.connections.is_some();
    let each = if trunk.is_some() && !options.listen.is_empty() { 3 } else { 2 };
    limits::raise(settings.connections, asked, limits::Needs { each, pipes, held, links })
}

/// Whether connection attempts wait for their servers' answers.
fn holds(options: &Options) -> bool {
    options.wan.is_some() && options.confirm == Some(true)
}

/// Nobody of this name is up.
fn check_place(place: &Place, name: &str) -> Result<()> {
    match place.living() {
        Some(state) => {
            Err(Error::new(format!("a proxy is already running here (process {})", state.pid))
                .remedy(format!("run `{}` first", owner::down(name))))
        }
        None => Ok(()),
    }
}

/// Takes back what a proxy of this name has left.
fn clear(place: &Place) -> Result<()> {
    if place.read().is_some() {
        tracing::warn!(
            "a proxy was killed together with its keeper; what it left behind is being removed"
        );
        place.clean()?;
    }
    Ok(())
}

/// The long link, if there is one, as ours alone: nothing of another one's is touched where it is
/// not.
fn lock(options: &Options, name: &str, place: &Place) -> Result<Option<Lock>> {
    let Some(wan) = &options.wan else {
        clear(place)?;
        return Ok(None);
    };
    wan::devices(&mut Netlink::open()?, wan, &options.lan)?;
    owner::wait_for_room(name, wan)?;
    clear(place)?;
    for finding in look::look(options, name)? {
        match finding.standing {
            Standing::Ok => {}
            Standing::Warning => tracing::warn!("{}", finding.error()),
            Standing::InTheWay => return Err(finding.error()),
        }
    }
    owner::take(name, wan).map(Some)
}

/// Settings that others have changed here already, with what they were: the last one puts them
/// back.
fn adopted(namespace: &Namespace, slot: Slot, wanted: &[Changed]) -> Vec<Changed> {
    let others = owner::owners().unwrap_or_default();
    let states = others
        .iter()
        .filter(|other| other.slot != slot)
        .filter_map(|other| Place::of(namespace, &other.name).read());
    let mut found: Vec<Changed> = Vec::new();
    for changed in states.flat_map(|state| state.sysctls) {
        let (name, _, ours) = &changed;
        let known = wanted.iter().chain(&found).any(|(other, ..)| other == name);
        if !known && sysctl::read(name).is_ok_and(|now| now == *ours) {
            found.push(changed);
        }
    }
    found
}

/// Settings that a gateway needs.
fn sysctls() -> Result<Vec<Changed>> {
    let read = |name: &str| sysctl::read(name).map_err(Error::told_by);
    let mut wanted = Vec::new();
    // Data with a SYN: sent (1), and taken (2).
    let open = read("net.ipv4.tcp_fastopen")?;
    let both = open.parse::<u32>().unwrap_or(0) | 3;
    if open != both.to_string() {
        wanted.push(("net.ipv4.tcp_fastopen".to_owned(), open, both.to_string()));
    }
    // A client that uses its port again soon gets it again on the long link, too.
    let reuse = read("net.ipv4.tcp_tw_reuse")?;
    if reuse != "1" {
        wanted.push(("net.ipv4.tcp_tw_reuse".to_owned(), reuse, "1".to_owned()));
    }
    // Connections that are opened at the same time wait for a round trip in the listener's queue;
    // where it is full, the kernel answers with cookies, and what answers those has no socket by
    // which it could be known.
    let queue = read("net.core.somaxconn")?;
    if queue.parse::<u32>().unwrap_or(0) < BACKLOG.into() {
        wanted.push(("net.core.somaxconn".to_owned(), queue, BACKLOG.to_string()));
    }
    // With retransmissions every second, fifteen in vain (tcp_retries2) would be a quarter of a
    // minute; our sockets are given up by time instead.
    let tries = read("net.ipv4.tcp_retries2")?;
    if tries.parse::<u32>().unwrap_or(0) < TRIES {
        wanted.push(("net.ipv4.tcp_retries2".to_owned(), tries, TRIES.to_string()));
    }
    Ok(wanted)
}

/// What is there of XCP on the long link.
struct Xcp {
    wan: Device,
    endpoint: Option<Endpoint>,
    router: Option<Router>,
    /// The router's, if there is one, and the senders'.
    law: Option<Preset>,
    congestion: Option<String>,
}

fn gateway(
    options: &Options,
    state: &mut State,
    keeper: &mut Keeper,
    netlink: &mut Netlink,
) -> Result<Xcp> {
    let namespace = Namespace::current()
        .map_err(|e| Error::because("cannot open this network namespace", e))?;
    let name = options.wan.as_deref().unwrap_or_default();
    let (device, _) = wan::devices(netlink, name, &options.lan)?;
    let rate = options.rate_bps()?;
    let named = options.law()?;
    let law = rate.map(|bps| wan::law_on(named, bps));
    state.diverts = true;
    state.shaper = law.as_ref().map(|_| device.index);
    state.sysctls = sysctls()?;
    state.sysctls.extend(adopted(&namespace, state.slot, &state.sysctls));
    let group = wan::group()?;
    state.cgroup = Some(group.clone());
    keeper.note(state)?;
    for (name, _, ours) in &state.sysctls {
        sysctl::write(name, ours).map_err(Error::told_by)?;
    }
    let rtt = options.rtt_ns()?;
    let router =
        law.map(|law| wan::router(netlink, &device, &law, rtt, options.urgent()?)).transpose()?;
    let ask = Ask {
        initial_window: options.initial_window()?,
        start: lends(options) && router.is_some(),
        robust: named == Preset::Robust,
        rto_max_ms: options.rto_max_ms()?,
        ..Ask::default()
    };
    let window = options.windows()?.receive;
    let endpoint = wan::endpoint(&group, &device, options.fallback(), window, ask)?;
    let congestion = Some(endpoint.name().to_owned());
    wan::call_neighbours(netlink, device.index);
    Ok(Xcp { wan: device, endpoint: Some(endpoint), router, law: Some(named), congestion })
}

/// Whether connections begin with what is lent: not where somebody has fixed the first window.
fn lends(options: &Options) -> bool {
    options.initial_window.is_none()
}

/// The congestion control of explicit proxies, which may have no right to set anything up: that of
/// `xcpnet endpoint enable`, if it is there.
fn own_xcp() -> Option<String> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let probe = socket::tcp(&any).ok()?;
    rustix::net::sockopt::set_tcp_congestion(&probe, "xcp").is_ok().then(|| "xcp".to_owned())
}

fn diverted_listeners(settings: &Settings) -> Result<Vec<Listener>> {
    let mut found = Vec::new();
    for version in [Version::V4, Version::V6] {
        for kind in [Kind::FromLan, Kind::FromWan] {
            let address = SocketAddr::new(rules::listener_address(version), 0);
            let early = settings.early && kind == Kind::FromWan;
            match listener(address, kind, settings, true, early) {
                Ok(listener) => found.push(listener),
                // IPv6 is switched off.
                Err(e)
                    if version == Version::V6
                        && matches!(
                            e.raw_os_error(),
                            Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL)
                        ) => {}
                Err(e) => {
                    return Err(Error::because(format_args!("cannot listen at {address}"), e));
                }
            }
        }
    }
    Ok(found)
}

fn explicit_listeners(options: &Options, settings: &Settings) -> Result<Vec<Listener>> {
    let open = |address: &SocketAddr| {
        listener(*address, Kind::Explicit, settings, false, false).map_err(|e| {
            let number = e.raw_os_error();
            let error = Error::because(format_args!("cannot listen at {address}"), e);
            match number {
                Some(libc::EADDRINUSE) => error.remedy(format!(
                    "another program has the port: `ss -ltnp sport = :{}` names it",
                    address.port()
                )),
                Some(libc::EADDRNOTAVAIL) => {
                    error.remedy("it is not an address of this machine: `ip address` lists them")
                }
                _ => error,
            }
        })
    };
    options.listen.iter().map(open).collect()
}

/// Keeps the trunk, of which the workers are to know.
fn trunk_of(plan: trunk::Plan, shared: &Arc<Shared>) -> Result<trunk::keeper::Keeper> {
    let listen = plan.listen;
    let pool = trunk::Pool::new(&plan).map_err(|e| Error::because("cannot make a trunk", e))?;
    let pool = shared.trunk.get_or_init(|| Arc::new(pool)).clone();
    trunk::keeper::Keeper::new(shared.clone(), pool, plan).map_err(|e| {
        Error::because(format_args!("trunk: cannot listen at {listen}"), e).remedy(
            "give the address at which the other gateway reaches this one: --trunk-listen \
             ADDRESS[:PORT]",
        )
    })
}

/// The user to become; `None`: stay.
fn user(options: &Options) -> Result<Option<privileges::User>> {
    match options.user.as_deref() {
        Some("root") => Ok(None),
        _ if !xcp_linux::error::is_root() => Ok(None),
        Some(name) => privileges::user(name).map(Some),
        None => privileges::user("nobody").map(Some),
    }
}

/// Sets everything up; the keeper takes it back.
pub(super) fn set_up(command: &Command) -> Result<(Proxy, Option<Lock>, Keeper)> {
    let options = &command.options;
    let namespace = Namespace::current()
        .map_err(|e| Error::because("cannot open this network namespace", e))?;
    let place = Place::of(&namespace, &command.name);
    check_options(options)?;
    check_place(&place, &command.name)?;
    for warning in options.warnings() {
        tracing::warn!("{warning}");
    }
    let user = user(options)?;
    let excludes = options.excludes()?;
    let pid = std::process::id();
    let lock = lock(options, &command.name, &place)?;
    let slot = lock.as_ref().map(|lock| lock.slot).unwrap_or_default();
    let mut state = State {
        pid,
        start: start_time(pid).unwrap_or(0),
        slot,
        log: command.log_file.clone(),
        ..State::default()
    };
    let mut keeper = Keeper::start(&place)?;
    keeper.note(&state)?;
    let set_up = || -> Result<Proxy> {
        let signals = super::control::Signals::take()?;
        let mut netlink = Netlink::open()?;
        let mut xcp = match &options.wan {
            Some(_) => gateway(options, &mut state, &mut keeper, &mut netlink)?,
            None => Xcp {
                wan: no_device(),
                endpoint: None,
                router: None,
                law: None,
                congestion: own_xcp(),
            },
        };
        let is_gateway = options.wan.is_some();
        let mut settings =
            options.settings(xcp.congestion.as_deref(), if is_gateway { slot.own() } else { 0 })?;
        let workers = options.workers()?;
        let memory = options.memory()?;
        let trunk = options.trunk_plan()?;
        let connections = room(options, &settings, trunk.as_ref())?;
        settings.connections = connections;
        let diverted = if is_gateway { diverted_listeners(&settings)? } else { Vec::new() };
        let explicit = explicit_listeners(options, &settings)?;
        let show = super::show::listen(&place)?;
        let made_by = rustix::process::geteuid();
        let links = is_gateway.then(Links::open).transpose()?;
        let metrics = options.metrics.map(super::show::listen_http).transpose()?;
        let hold = holds(options);
        let queue = hold.then(|| Queue::bind(slot.queue(), 2 * confirm::MOST)).transpose()?;
        let mut rules = is_gateway.then(|| Diverted {
            slot,
            wan: xcp.wan.name.clone(),
            lan: options.lan.clone(),
            exclude: excludes,
            listeners: diverted.iter().map(|listener| (listener.kind, listener.address)).collect(),
            hold: hold.then_some(Spelling::Expression),
        });
        let beginnings = match (options.rate_bps()?, &xcp.router) {
            (Some(rate), Some(_)) => {
                Some(Beginnings::new(rate, options.rtt_ns()?, xcp.wan.index, lends(options)))
            }
            _ => None,
        };
        let listeners: Vec<Listener> = diverted.into_iter().chain(explicit).collect();
        let names_needed = !options.listen.is_empty();
        let shared = Arc::new(Shared::new(settings));
        shared.wan.store(xcp.wan.index, Ordering::Relaxed);
        if let Some(subscribers) = xcp.endpoint.as_mut().and_then(Endpoint::subscribers) {
            let _ = shared.subscribers.set(subscribers);
        }
        if is_gateway {
            netlink.divert(&slot.diversion())?;
        }
        let holder = queue.map(|queue| Holder::new(shared.clone(), queue, slot)).transpose();
        let holder = holder.map_err(|e| Error::because("cannot hold connection attempts", e))?;
        let trunk = trunk.map(|plan| trunk_of(plan, &shared)).transpose()?;
        let table = rules.as_mut().map(Diverted::raise).transpose()?;
        // From here on there are threads, which inherit what they may do.
        let made = |asker: &Asker| {
            (0..workers)
                .map(|_| {
                    Worker::new(shared.clone(), listeners.clone(), asker.clone(), memory / workers)
                })
                .collect::<std::io::Result<Vec<_>>>()
                .map_err(|e| Error::because("cannot make a worker", e))
        };
        let idle = Asker::default();
        let mut crew = made(&idle)?;
        if let Some(user) = user {
            privileges::drop_to(user)?;
        }
        if names_needed {
            let asker = Asker::start().map_err(|e| Error::because("cannot start threads", e))?;
            crew.iter_mut().for_each(|worker| worker.look_names_up_with(asker.clone()));
        }
        tracing::debug!(pipes = crew.iter().map(Worker::pipes).sum::<usize>(), "pipes");
        let crew = Crew::start(crew, holder, trunk)
            .map_err(|e| Error::because("cannot start threads", e))?;
        let plan = Plan {
            diverted: rules,
            wan: is_gateway.then(|| xcp.wan.clone()),
            congestion: xcp.congestion.clone(),
            law: xcp.law,
        };
        Ok(Proxy {
            plan,
            slot,
            shared,
            crew,
            table,
            endpoint: xcp.endpoint,
            router: xcp.router,
            netlink,
            show,
            metrics,
            signals,
            passing: false,
            swallowed: Seldom::default(),
            links,
            wan_is_there: true,
            state: state.clone(),
            watch: Watch::default(),
            user: made_by,
            connections,
            beginnings,
        })
    };
    let made = set_up();
    match made {
        Ok(proxy) => Ok((proxy, lock, keeper)),
        Err(e) => {
            // The control group cannot be removed while this process is in it.
            if let Some(group) = &state.cgroup
                && let Some(above) = group.parent()
                && group.is_dir()
            {
                let _ = xcp_linux::cgroup::enter(above);
            }
            keeper.release();
            Err(e)
        }
    }
}

fn no_device() -> Device {
    Device {
        index: 0,
        name: String::new(),
        mtu: 0,
        up: false,
        running: false,
        operational: false,
        kind: None,
        loopback: false,
        mac: None,
        tx_queue_len: 0,
        tx_queues: 0,
        qdisc: String::new(),
        master: None,
        filtered: [false; 2],
    }
}
