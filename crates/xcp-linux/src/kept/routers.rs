//! `xcpnet router add`, `change`, `del` and `show`: the program, the shaper in front of it, and the
//! directory that keeps both.

use std::io;

use super::file_system::Alone;
use crate::error::{Error, Result};
use crate::link;
use crate::namespace::Namespace;
use crate::netlink::{Device, Netlink};
use crate::police::Police;
use crate::qdisc::{self, Limit, Others, QdiscInfo, QdiscStats, Shaper, Whose};
use crate::router::{self, Hangs, Hook, Router, RouterConfig};

/// The directory that keeps them, each in one of its own.
const DIRECTORY: &str = "router";
/// How the names of those begin that are only being made: where no command is at work, one has not
/// come to its end. The shaper comes when all else is there, so where nothing hangs there is none.
const UNFINISHED: &str = "unfinished-";

/// What sets the device's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shaping {
    /// A shaper that comes and goes with the router, with the queue's limit.
    Ours(Shaper, Limit),
    /// An htb that comes and goes with the router, with two queues of this limit: one for XCP's
    /// packets, one for all others.
    Classes {
        /// Whose turn it is.
        others: Others,
        /// Of each queue.
        limit: Limit,
        /// Thousandths of the capacity that the law hands out: 1000, or XCP's share where it is to
        /// leave the others theirs even if they do not use it.
        law_share: u16,
    },
    /// What is there: a device at line rate, or a shaper of somebody else's.
    None,
}

impl Shaping {
    /// How much each queue holds, where it is ours to say.
    pub fn limit_mut(&mut self) -> Option<&mut Limit> {
        match self {
            Self::Ours(_, limit) | Self::Classes { limit, .. } => Some(limit),
            Self::None => None,
        }
    }
}

/// Settings with which a router is added.
#[derive(Debug, Clone)]
pub struct RouterPlan {
    /// Name of the device.
    pub device: String,
    /// The law; its capacity is the link's.
    pub law: xcp_engine::RouterConfig,
    /// What limits the device to that capacity.
    pub shaping: Shaping,
    /// Where the program attaches: TCX or clsact.
    pub hook: Hook,
    /// Of the rounding of feedback.
    pub seed: u64,
    /// The policer before the law, if there is to be one.
    pub police: Option<Police>,
}

/// A router at its device.
#[derive(Debug)]
pub struct KeptRouter {
    /// The device at whose egress it works.
    pub device: Device,
    /// The router's program and its state.
    pub router: Router,
    /// The device's root qdisc.
    pub qdisc: QdiscInfo,
    /// Counters of the root qdisc.
    pub qdisc_stats: QdiscStats,
    /// What XCP's queue and the others' count, where they are apart.
    pub class_stats: Option<[QdiscStats; 2]>,
    /// Programs of others that see packets before the router does, and can keep them from it.
    pub behind: Vec<String>,
}

impl KeptRouter {
    /// Whether frames pass the device that the router does not see: a bridge's from one port to
    /// another leave by the port's way out.
    #[must_use]
    pub fn is_passed_by(&self) -> bool {
        self.device.kind.as_deref() == Some("bridge")
    }

    /// Whether the device's shaper came with the router.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.qdisc.whose == Some(Whose::Router)
    }

    /// The longest frame that the shaper lets through, or its queue holds, bytes, where the device
    /// has longer ones: its MTU has grown since the shaper was made, or somebody else made it so.
    #[must_use]
    pub fn drops_beyond(&self) -> Option<u32> {
        let longest = [self.qdisc.longest_frame, self.holds_no_more_than()].into_iter().flatten();
        longest.min().filter(|longest| *longest < self.device.full_frame())
    }

    /// Bytes that its queue holds, if it is limited by them.
    #[must_use]
    pub fn holds_no_more_than(&self) -> Option<u32> {
        match self.qdisc.limit {
            Some(Limit::Bytes(bytes)) => Some(bytes),
            Some(Limit::Packets(_)) | None => None,
        }
    }
}

/// How the names of what is kept of a namespace's devices begin. A namespace that is gone has its
/// number in /proc given to another one; this one it takes along.
fn prefix(namespace: &Namespace) -> Result<String> {
    let cookie = namespace
        .cookie()
        .map_err(|e| Error::because("cannot tell the network namespace from others", e))?;
    Ok(format!("{cookie}-"))
}

fn directory_name(namespace: &Namespace, index: u32) -> Result<String> {
    Ok(format!("{}{index}", prefix(namespace)?))
}

/// Adds a router; nothing is left of it if that fails.
///
/// # Errors
/// No such device, or one that has a router or a proxy's shaper, or the loopback device; a capacity
/// above what the device's own shaper lets through; a device whose queue cannot be seen; a kernel
/// that lacks something.
pub fn add(plan: &RouterPlan, namespace: &Namespace) -> Result<KeptRouter> {
    let mut netlink = Netlink::open_in(namespace)?;
    let device = find(&mut netlink, &plan.device)?;
    if device.loopback {
        // And the program would take its frames for packets without a header of the link layer.
        return Err(Error::new(format!(
            "{} is the loopback device, and nothing that passes it leaves this machine",
            device.name
        ))
        .remedy("name the device at the bottleneck"));
    }
    let name = directory_name(namespace, device.index)?;
    check_no_proxys(&mut netlink, &device, namespace)?;
    // Two at once would each take the other's work for its own and clear it away.
    let alone = Alone::make()?;
    clear_away(&alone, namespace, &mut netlink)?;
    if alone.open(DIRECTORY)?.is_some_and(|all| all.has(&name)) {
        return Err(Error::new(format!("{} already has a router", device.name)).remedy(format!(
            "change it with `xcpnet router change dev {0} ...{1}` or remove it with `xcpnet \
             router del dev {0}{1}`",
            device.name,
            namespace.called().option()
        )));
    }
    let capacity_bps = plan.law.capacity_bytes_per_sec.saturating_mul(8);
    let before = qdisc::root(&mut netlink, device.index)?;
    match plan.shaping {
        Shaping::None => check_foreign(&device, &before, capacity_bps, namespace)?,
        Shaping::Ours(..) | Shaping::Classes { .. } => {
            check_replaceable(&device, &before, namespace)?
        }
    }
    let unfinished = format!("{UNFINISHED}{name}");
    let made = (|| {
        // What cannot be kept is not set up. Its directory is there before it, so that whatever
        // ends this command leaves something that the next one knows.
        let all = alone.make_in(DIRECTORY)?;
        let directory = all.make(&unfinished)?;
        let classes = match plan.shaping {
            Shaping::Classes { law_share, .. } => Some(law_share),
            Shaping::Ours(..) | Shaping::None => None,
        };
        let config = RouterConfig {
            law: plan.law.clone(),
            seed: plan.seed,
            link_bytes: device.link_bytes(),
            hook: plan.hook,
            police: plan.police,
            classes,
            urgent: false,
        };
        let attached = namespace
            .run(|| Router::attach_kept(device.index, &config, &directory))
            .map_err(|e| Error::because("cannot enter the namespace", e))?;
        let router = attached.map_err(|e| Error::around(&device.name, e))?;
        let (nl, index) = (&mut netlink, device.index);
        let shaped = match plan.shaping {
            Shaping::Ours(shaper, limit) => {
                qdisc::install(nl, index, Whose::Router, shaper, capacity_bps, limit)
            }
            Shaping::Classes { others, limit, .. } => {
                qdisc::install_classes(nl, index, capacity_bps, limit, others)
            }
            Shaping::None => Ok(()),
        };
        // The law counts it, and would be alone in that: whatever does not heed the law has to be
        // held to the link's rate by the shaper.
        let shaped = match u16::try_from(plan.law.overhead_bytes).unwrap_or(u16::MAX) {
            overhead @ 1.. if plan.shaping != Shaping::None => {
                shaped.and_then(|()| qdisc::set_overhead(nl, index, Whose::Router, overhead))
            }
            _ => shaped,
        };
        if let Err(e) = shaped.map_err(Error::from).and_then(|()| all.rename(&unfinished, &name)) {
            // The first error is the one to tell.
            let _ = namespace.run(|| router.detach());
            return Err(e);
        }
        Ok(router)
    })();
    match made {
        Ok(router) => kept(&mut netlink, namespace, device, router),
        Err(e) => {
            if plan.shaping != Shaping::None {
                let _ = qdisc::remove(&mut netlink, device.index, Whose::Router);
            }
            let _ = alone.clear(DIRECTORY, Some(&unfinished));
            Err(e)
        }
    }
}

fn kept(
    netlink: &mut Netlink,
    namespace: &Namespace,
    device: Device,
    router: Router,
) -> Result<KeptRouter> {
    let (qdisc, qdisc_stats) =
        (qdisc::root(netlink, device.index)?, qdisc::stats(netlink, device.index)?);
    let behind = namespace
        .run(|| router.behind(device.index))
        .map_err(|e| Error::because("cannot enter the namespace", e))?;
    let class_stats =
        qdisc.others.map(|_| qdisc::class_stats(netlink, device.index)).transpose()?;
    Ok(KeptRouter { device, router, qdisc, qdisc_stats, class_stats, behind })
}

/// Where a proxy shapes a device, it is its router, too.
fn check_no_proxys(netlink: &mut Netlink, device: &Device, namespace: &Namespace) -> Result<()> {
    let there = qdisc::root(netlink, device.index)?;
    match there.somebody_elses(device, Whose::Router) {
        Some(why) if there.whose == Some(Whose::Proxy) => Err(Error::new(why).remedy(format!(
            "run `xcpnet pep down{}` first, with --name NAME if the proxy was given one",
            namespace.called().option()
        ))),
        _ => Ok(()),
    }
}

fn check_replaceable(device: &Device, root: &QdiscInfo, namespace: &Namespace) -> Result<()> {
    let Some(why) = root.somebody_elses(device, Whose::Router) else { return Ok(()) };
    Err(Error::new(why).remedy(format!(
        "keep it and use `shaper none`, or remove it first: {} qdisc del dev {} root",
        namespace.called().command("tc"),
        device.name
    )))
}

/// Without a shaper of ours the queue must be one that can be seen, and the capacity not above what
/// it lets through.
fn check_foreign(
    device: &Device,
    root: &QdiscInfo,
    capacity_bps: u64,
    namespace: &Namespace,
) -> Result<()> {
    // It works without a lock and counts for each processor apart (net/sched/sch_generic.c): the
    // one counter that the program can read stays at nought.
    if root.kind == "pfifo_fast" {
        return Err(Error::new(format!(
            "{} has pfifo_fast, which does not report how long its queue is",
            device.name
        ))
        .remedy(format!(
            "give it a queue that does, e.g. {} qdisc replace dev {} root pfifo, or let xcpnet \
             shape it (shaper htb)",
            namespace.called().command("tc"),
            device.name
        )));
    }
    if root.multi_queue {
        return Err(Error::new(format!(
            "{} spreads its packets over several queues ({}): there is no single queue to watch",
            device.name, root.kind
        ))
        .remedy(format!(
            "give it one, e.g. {} qdisc replace dev {} root pfifo, or let xcpnet \
            shape it (shaper htb)",
            namespace.called().command("tc"),
            device.name
        )));
    }
    match root.rate_bps {
        Some(rate) if capacity_bps > rate => Err(Error::new(format!(
            "the capacity, {capacity_bps} bit/s, is above what the {} of {} lets through, {rate} \
             bit/s: a queue would stand forever",
            root.kind, device.name
        ))
        .remedy("give a capacity of at most that")),
        _ => Ok(()),
    }
}

fn find(netlink: &mut Netlink, name: &str) -> Result<Device> {
    let devices = netlink.links()?;
    let device = devices.iter().find(|d| d.name == name);
    device.cloned().ok_or_else(|| Device::absent(name, &devices))
}

/// Bytes of the longest frame that a device sends.
///
/// # Errors
/// No such device.
pub fn full_frame(device: &str, namespace: &Namespace) -> Result<u32> {
    Ok(find(&mut Netlink::open_in(namespace)?, device)?.full_frame())
}

/// The routers of a namespace, in the order of their devices.
///
/// # Errors
/// The devices cannot be listed.
pub fn list(namespace: &Namespace) -> Result<Vec<KeptRouter>> {
    match Alone::existing()? {
        Some(alone) => list_in(&alone, namespace, &mut Netlink::open_in(namespace)?),
        None => Ok(Vec::new()),
    }
}

fn list_in(alone: &Alone, namespace: &Namespace, netlink: &mut Netlink) -> Result<Vec<KeptRouter>> {
    clear_away(alone, namespace, netlink)?;
    let Some(all) = alone.open(DIRECTORY)? else { return Ok(Vec::new()) };
    let (prefix, mut found) = (prefix(namespace)?, Vec::new());
    for device in netlink.links()? {
        if let Some(directory) = all.open(&format!("{prefix}{}", device.index))? {
            let router = Router::open(&directory, device.index)
                .map_err(|e| Error::around(format_args!("the router of {}", device.name), e))?;
            found.push(kept(netlink, namespace, device, router)?);
        }
    }
    Ok(found)
}

/// The router of a device.
///
/// # Errors
/// No such device, or it has none.
pub fn need(device: &str, namespace: &Namespace) -> Result<KeptRouter> {
    find(&mut Netlink::open_in(namespace)?, device)?;
    of(list(namespace)?, device, namespace)
}

fn of(routers: Vec<KeptRouter>, device: &str, namespace: &Namespace) -> Result<KeptRouter> {
    routers.into_iter().find(|r| r.device.name == device).ok_or_else(|| {
        Error::new(format!("{device} has no router")).remedy(format!(
            "add one: xcpnet router add dev {device} capacity 10mbit{}",
            namespace.called().option()
        ))
    })
}

/// Changes a router's capacity, and the rate of the shaper that came with it; the limit of that
/// one's queue if given.
///
/// # Errors
/// There is no router, or the shaper is a proxy's; one that is not ours lets less through, or was
/// to get another limit.
pub fn change(
    device: &str,
    capacity_bps: Option<u64>,
    limit: Option<Limit>,
    namespace: &Namespace,
) -> Result<KeptRouter> {
    let mut netlink = Netlink::open_in(namespace)?;
    let there = find(&mut netlink, device)?;
    check_no_proxys(&mut netlink, &there, namespace)?;
    let Some(alone) = Alone::existing()? else { return of(Vec::new(), device, namespace) };
    let kept = of(list_in(&alone, namespace, &mut netlink)?, device, namespace)?;
    let index = kept.device.index;
    if let Some(limit) = limit {
        if !kept.is_ours() {
            return Err(Error::new(format!("the queue of {device} does not belong to xcpnet"))
                .remedy("change its limit where it was set up (tc)"));
        }
        qdisc::change_limit(&mut netlink, index, Whose::Router, limit)?;
    }
    if let Some(capacity) = capacity_bps {
        match kept.qdisc.shaper {
            Some(shaper) if kept.is_ours() => {
                qdisc::change_rate(&mut netlink, index, Whose::Router, shaper, capacity)?
            }
            _ => check_foreign(&kept.device, &kept.qdisc, capacity, namespace)?,
        }
        kept.router.set_capacity(capacity / 8)?;
    }
    of(list_in(&alone, namespace, &mut netlink)?, device, namespace)
}

/// Removes a router, a half-made one too, and the shaper that came with it.
///
/// # Errors
/// No such device, it has none, or a proxy's shaper; one that cannot be taken off, which then stays
/// as it is.
pub fn delete(device: &str, namespace: &Namespace) -> Result<()> {
    let mut netlink = Netlink::open_in(namespace)?;
    let device = find(&mut netlink, device)?;
    check_no_proxys(&mut netlink, &device, namespace)?;
    let name = directory_name(namespace, device.index)?;
    let none = || {
        Err(Error::new(format!("{} has no router", device.name)).remedy(format!(
            "`xcpnet router show{}` lists the routers",
            namespace.called().option()
        )))
    };
    let Some(alone) = Alone::existing()? else { return none() };
    if clear_away(&alone, namespace, &mut netlink)?.contains(&name) {
        return Ok(());
    }
    let Some(directory) = alone.open(DIRECTORY)?.map_or(Ok(None), |all| all.open(&name))? else {
        return none();
    };
    // As long as anything is left of it the next command has to know: its directory goes last. And
    // once it is off its device a command in any namespace clears it away, which may not see the
    // shaper.
    qdisc::remove(&mut netlink, device.index, Whose::Router)?;
    namespace
        .run(|| router::take_off(&directory, device.index))
        .map_err(|e| Error::because("cannot enter the namespace", e))?
        .map_err(|e| Error::around(format_args!("the router of {}", device.name), e))?;
    alone.clear(DIRECTORY, Some(&name))
}

/// Clears away what is no router any more, as far as it can be seen from this namespace; returns
/// the names of what it was.
///
/// * Its device, or the whole namespace, is gone.
/// * Its device has gone to another namespace, where the kernel leaves it the program but not the
///   shaper: the program is taken off, by the next command in either namespace.
/// * The command that was to make it did not come to its end; nobody else is at work now. As long
///   as it hangs on a device, there may be a shaper, and it is for a command that can see that.
fn clear_away(alone: &Alone, namespace: &Namespace, netlink: &mut Netlink) -> Result<Vec<String>> {
    let mut gone = Vec::new();
    let Some(all) = alone.open(DIRECTORY)? else { return Ok(gone) };
    let told = |e| Error::because("cannot enter the namespace", e);
    let (devices, prefix) = (netlink.links()?, prefix(namespace)?);
    for entry in all.names()? {
        let Ok(Some(directory)) = all.open(&entry) else { continue };
        let name = entry.strip_prefix(UNFINISHED).unwrap_or(&entry);
        let unfinished = name != entry;
        // Of a device that is here, if it is where it was.
        let was_here = name.starts_with(&prefix);
        let here = devices.iter().find(|d| format!("{prefix}{}", d.index) == name);
        let unshape = |netlink: &mut Netlink| {
            here.map_or(Ok(()), |device| qdisc::remove(netlink, device.index, Whose::Router))
        };
        match Router::open(&directory, here.map_or(0, |d| d.index)) {
            Err(_) if unfinished && router::is_half_made(&directory) => {}
            // Of another version of xcpnet: for its user to remove.
            Err(_) if !was_here || !router::is_half_made(&directory) => continue,
            Err(_) => unshape(netlink)?,
            Ok(found) => {
                match namespace.run(|| found.hangs(here.is_some())).map_err(told)?? {
                    Hangs::Somewhere if !(unfinished && here.is_some()) => continue,
                    // What was finished may have a shaper.
                    Hangs::Unfinished if !unfinished && !was_here => continue,
                    Hangs::Nowhere | Hangs::Unfinished | Hangs::Somewhere => {}
                    Hangs::By(program) => {
                        let first = here.into_iter().chain(&devices);
                        let at = hangs_at(program, first, namespace)?;
                        let is_elsewhere = at.is_none() && !was_here;
                        let is_there = at.is_some() && at == here.map(|d| d.index);
                        if is_elsewhere || is_there && !unfinished {
                            continue;
                        }
                    }
                }
                unshape(netlink)?;
                // A filter can be reached only where its device is.
                if here.is_some() || found.hook() == "tcx" {
                    namespace.run(|| found.detach()).map_err(told)??;
                }
            }
        }
        // One that cannot be removed is no reason to refuse all others.
        if alone.clear(DIRECTORY, Some(&entry)).is_ok() {
            gone.push(name.to_owned());
        }
    }
    Ok(gone)
}

/// On which of these devices of a namespace a program hangs.
fn hangs_at<'d>(
    program: u32,
    devices: impl Iterator<Item = &'d Device> + Send,
    namespace: &Namespace,
) -> Result<Option<u32>> {
    let look = || -> io::Result<Option<u32>> {
        for device in devices {
            match link::programs_on_the_way_out(device.index) {
                Ok(programs) if programs.contains(&program) => return Ok(Some(device.index)),
                Ok(_) => {}
                // Gone meanwhile.
                Err(e) if e.raw_os_error() == Some(libc::ENODEV) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(None)
    };
    let entered = namespace.run(look);
    let found = entered.map_err(|e| Error::because("cannot enter the namespace", e))?;
    found.map_err(|e| Error::because("cannot see what is attached to the devices", e))
}
