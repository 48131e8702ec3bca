//! XCP on the long link: the endpoint for this proxy's sockets, in a control group of its own, and
//! the router at the device's way out for what this gateway sends. Both hang on this process's
//! descriptors; the shaper and the control group are its [`State`](super::state::State)'s.

use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use xcp_engine::{Control, Gain, Preset};
use xcp_linux::endpoint::{Ask, Endpoint, EndpointConfig, Give};
use xcp_linux::namespace::{Called, Namespace};
use xcp_linux::netlink::{Device, Netlink};
use xcp_linux::qdisc::{self, Limit, Shaper, Whose};
use xcp_linux::router::{Hook, Router, RouterConfig};
use xcp_linux::urgent::Urgent;
use xcp_linux::{Error, Result, cgroup, kept};

use super::look::Finding;

/// The law of the long link's router, if this gateway has it, and of its senders, where none is
/// named.
pub const DEFAULT_LAW: Preset = Preset::Robust;
/// The one where that cannot serve: urgent packets, shares (Zhou, Yeung and Li's P-XCP, made for
/// satellites).
pub const OTHER_LAW: Preset = Preset::PXcp;
/// What the shaper's queue holds, in round trips of the link.
const QUEUE_RTTS: u128 = 2;
const FULL_SEGMENT: usize = 1448;
/// Subscribers that are told apart, some 100 bytes each.
const SUBSCRIBERS: u32 = 16_384;
/// Questions for neighbours are broadcast; a hub may have hundreds of them.
const MOST_NEIGHBOURS: usize = 16;

/// A law by its name. One without a calendar has the gain of each flow's own round-trip time: flows
/// from beyond the far gateway have others than the link's.
///
/// # Errors
/// It is not known.
pub fn law(name: &str) -> Result<Preset> {
    Preset::named(name).ok_or_else(|| {
        Error::new(format!("law: \"{name}\" is not known"))
            .remedy(format!("there are {}", Preset::WORDS.join(", ")))
    })
}

/// A law on a link of a rate.
#[must_use]
pub fn law_on(preset: Preset, rate_bps: u64) -> xcp_engine::RouterConfig {
    let mut law = xcp_engine::RouterConfig::preset(preset, rate_bps / 8);
    if preset != Preset::Robust {
        law.gain = Gain::OwnRtt;
    }
    law
}

/// The devices named, with their numbers.
///
/// # Errors
/// One is not there, is down or the loopback device, or both sides are the same.
pub fn devices(netlink: &mut Netlink, wan: &str, lan: &[String]) -> Result<(Device, Vec<Device>)> {
    let all = netlink.links()?;
    let find = |option: &str, name: &str| {
        let absent = || {
            let why = Device::absent(name, all.iter().filter(|d| !d.loopback));
            Error::around(format_args!("--{option}"), why)
        };
        let device = all.iter().find(|d| d.name == name).ok_or_else(absent)?;
        let ip = Called::entered().command("ip");
        if device.loopback {
            return Err(Error::new(format!(
                "--{option}: {name} is the loopback device, and nothing is forwarded across it"
            ))
            .remedy(format!("give another one; `{ip} link` lists them")));
        }
        if !device.up {
            return Err(Error::new(format!("--{option}: the device {name} is down"))
                .remedy(format!("{ip} link set {name} up")));
        }
        Ok(device.clone())
    };
    let wan = find("wan", wan)?;
    let lan = lan.iter().map(|name| find("lan", name)).collect::<Result<Vec<_>>>()?;
    for (at, device) in lan.iter().enumerate() {
        if lan[..at].iter().any(|other| other.index == device.index) {
            return Err(Error::new(format!("--lan: {} is given twice", device.name))
                .remedy("give each device once"));
        }
    }
    if lan.iter().any(|d| d.index == wan.index) {
        return Err(Error::new(format!("{} is given as both --wan and --lan", wan.name))
            .remedy("give the device of each side"));
    }
    Ok((wan, lan))
}

/// Whether a device can be shaped: not where it has a router, or somebody's shaper.
///
/// # Errors
/// It cannot be looked at.
pub fn shaper(netlink: &mut Netlink, device: &Device, namespace: &Namespace) -> Result<Finding> {
    if kept::list(namespace)?.iter().any(|router| router.device.index == device.index) {
        return Ok(Finding::in_the_way(
            "shaper",
            format!("{} already has an XCP router", device.name),
            format!(
                "leave out --rate to use it, or remove it: xcpnet router del dev {}{}",
                device.name,
                namespace.called().option()
            ),
        ));
    }
    let root = qdisc::root(netlink, device.index)?;
    if let Some(why) = root.somebody_elses(device, Whose::Proxy) {
        return Ok(Finding::in_the_way(
            "shaper",
            why,
            format!(
                "remove it: {} qdisc del dev {} root",
                namespace.called().command("tc"),
                device.name
            ),
        ));
    }
    Ok(Finding::ok(
        "shaper",
        format!("{} has {}, which our shaper replaces", device.name, root.kind),
    ))
}

/// What the shaper's queue holds where connections are few.
#[must_use]
pub fn queue_bytes(rate_bps: u64, rtt_ns: u64) -> u32 {
    let bytes = u128::from(rate_bps) * u128::from(rtt_ns) * QUEUE_RTTS / 8_000_000_000;
    u32::try_from(bytes).unwrap_or(u32::MAX).max(128 << 10)
}

/// The long link, as far as its shaper goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shaping {
    /// Rate of the shaper, bit/s.
    pub rate: u64,
    /// Its round trip, ns.
    pub rtt: u64,
    /// Whether what is urgent has a queue of its own.
    pub urgent: bool,
}

/// Sets the shaper up, in the place of the one that is there.
///
/// # Errors
/// What the kernel refuses.
pub fn shape(netlink: &mut Netlink, device: u32, link: Shaping) -> Result<()> {
    let limit = Limit::Bytes(queue_bytes(link.rate, link.rtt));
    if link.urgent {
        qdisc::install_urgent(netlink, device, link.rate, limit)?;
    } else {
        qdisc::install(netlink, device, Whose::Proxy, Shaper::Htb, link.rate, limit)?;
    }
    Ok(())
}

/// Has the kernel find out whom routes across the long link lead to. Where that one answers from the
/// far side (a bridging modem, a tunnel for Ethernet), the first connection would otherwise wait for
/// one more round trip. Nothing depends on it.
pub fn call_neighbours(netlink: &mut Netlink, device: u32) {
    let told = |why| {
        tracing::debug!(%why, "a neighbour is asked for when the first connection needs it");
    };
    match netlink.routers(device) {
        Ok(routers) => routers
            .into_iter()
            .take(MOST_NEIGHBOURS)
            .filter_map(|router| netlink.ask_for_neighbour(device, router).err())
            .for_each(told),
        Err(why) => told(why),
    }
}

/// Sets the shaper up, and the router in front of it.
///
/// # Errors
/// What the kernel refuses.
pub fn router(
    netlink: &mut Netlink,
    device: &Device,
    law: &xcp_engine::RouterConfig,
    rtt_ns: u64,
    urgent: Option<Urgent>,
) -> Result<Router> {
    let rate = law.capacity_bytes_per_sec * 8;
    shape(netlink, device.index, Shaping { rate, rtt: rtt_ns, urgent: urgent.is_some() })?;
    let config = RouterConfig {
        law: law.clone(),
        seed: 1,
        link_bytes: device.link_bytes(),
        hook: Hook::Any,
        police: None,
        classes: None,
        // It may become so later, if the law has room for it.
        urgent: law.control == Control::Draft,
    };
    let attached = Router::attach(device.index, &config).and_then(|router| {
        if config.urgent {
            router.set_urgent(urgent)?;
        }
        Ok(router)
    });
    attached.map_err(|e| Error::around(&device.name, e))
}

/// Where this process's control group will be.
///
/// # Errors
/// cgroup v2 is not mounted.
pub fn group() -> Result<PathBuf> {
    Ok(cgroup::current()?.join(format!("xcpnet-pep-{}", std::process::id())))
}

/// The endpoint for sockets that this process makes from now on; `window`: bytes that a peer may
/// send at once, in the first round trip already.
///
/// # Errors
/// What the kernel refuses.
pub fn endpoint(
    group: &Path,
    wan: &Device,
    fallback: &str,
    window: usize,
    ask: Ask,
) -> Result<Endpoint> {
    // Names are the machine's, and others may have theirs.
    let name = format!("xcp_pep{}", std::process::id());
    let receive_window = u32::try_from(window / FULL_SEGMENT).unwrap_or(u32::MAX).max(10);
    let config = EndpointConfig {
        name,
        fallback: fallback.into(),
        give: Give::Nobody,
        ask,
        receive_window,
        subscribers: SUBSCRIBERS,
    };
    let mut endpoint = Endpoint::load(&config)?;
    cgroup::make(group)?;
    let held = cgroup::open(group)?;
    endpoint.attach(held.as_fd())?;
    endpoint.make_room(wan.index, wan.mac.is_some()).map_err(|e| Error::around(&wan.name, e))?;
    cgroup::enter(group)?;
    Ok(endpoint)
}
