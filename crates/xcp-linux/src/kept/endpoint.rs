//! `xcpnet endpoint enable` and `disable`.

use std::os::fd::AsFd as _;
use std::path::PathBuf;

use super::file_system::Alone;
use crate::cgroup;
use crate::endpoint::{Endpoint, EndpointConfig, NoRoom};
use crate::error::{Error, Result};
use crate::namespace::Namespace;
use crate::netlink::{Device, Netlink};

/// Settings with which the endpoint is enabled.
#[derive(Debug, Clone)]
pub struct EndpointPlan {
    /// Settings of the kernel programs.
    pub config: EndpointConfig,
    /// Whose sockets; the root of cgroup v2 if absent.
    pub cgroup: Option<PathBuf>,
    /// Devices on which the option makes itself room beside SACK; every Ethernet device that is up
    /// if empty.
    pub devices: Vec<String>,
}

/// The directory that keeps it.
const DIRECTORY: &str = "endpoint";

/// The endpoint that is enabled, if one is.
///
/// # Errors
/// It was left half-removed.
pub fn endpoint() -> Result<Option<Endpoint>> {
    let Some(alone) = Alone::existing()? else { return Ok(None) };
    let Some(directory) = alone.open(DIRECTORY)? else { return Ok(None) };
    Endpoint::open(&directory).map(Some).map_err(|e| {
        Error::around("the endpoint is only partly set up", e)
            .remedy("`xcpnet endpoint disable` removes it")
    })
}

/// An endpoint that was enabled.
#[derive(Debug)]
pub struct Enabled {
    /// The cgroup whose sockets are served.
    pub cgroup: PathBuf,
    /// Devices at which there is room for the option beside SACK.
    pub devices: Vec<Device>,
    /// Why there is none at any.
    pub no_room: Option<NoRoom>,
    /// Sockets that listen already and have to be opened anew to answer.
    pub deaf: usize,
}

/// Enables XCP for a cgroup's sockets, and makes room on devices of a namespace; returns what it
/// did with: the cgroup and the devices.
///
/// # Errors
/// It is enabled already; no cgroup v2; no such device; a kernel that lacks something. Nothing is
/// left of it then.
pub fn enable(plan: &EndpointPlan, namespace: &Namespace) -> Result<Enabled> {
    let cgroup = plan.cgroup.clone().map_or_else(cgroup::mount_point, Ok)?;
    let held = cgroup::open(&cgroup)?;
    let mut netlink = Netlink::open_in(namespace)?;
    let there = netlink.links()?;
    if let Some(absent) = plan.devices.iter().find(|name| !there.iter().any(|d| &d.name == *name)) {
        return Err(Device::absent(absent, &there));
    }
    let chosen = |d: &Device| {
        if plan.devices.is_empty() { d.up && !d.loopback } else { plan.devices.contains(&d.name) }
    };
    let devices: Vec<Device> = there.into_iter().filter(chosen).collect();
    let alone = Alone::make()?;
    if let Some(there) = alone.open(DIRECTORY)? {
        return Err(match Endpoint::open(&there).and_then(|e| e.about()) {
            Ok(about) => {
                Error::new(format!("the endpoint is already enabled, for {}", about.cgroup))
                    .remedy("run `xcpnet endpoint disable` first")
            }
            Err(_) => Error::new("there is an endpoint that was only partly set up, or removed")
                .remedy("`xcpnet endpoint disable` removes it"),
        });
    }
    let mut endpoint = Endpoint::load(&plan.config)?;
    let room = namespace
        .run(|| {
            devices.iter().try_for_each(|d| {
                endpoint.make_room(d.index, d.mac.is_some()).map_err(|e| Error::around(&d.name, e))
            })
        })
        .map_err(|e| Error::because("cannot enter the network namespace", e))?;
    room?;
    endpoint.attach(held.as_fd())?;
    let deaf = namespace
        .run(|| endpoint.wake_listeners())
        .map_err(|e| Error::because("cannot enter the network namespace", e))??;
    let kept = alone.make_in(DIRECTORY).and_then(|directory| endpoint.pin(&directory, &cgroup));
    if let Err(e) = kept {
        let _ = alone.clear(DIRECTORY, None);
        return Err(e);
    }
    let no_room = endpoint.no_room();
    Ok(Enabled {
        cgroup,
        devices: if no_room.is_some() { Vec::new() } else { devices },
        no_room,
        deaf,
    })
}

/// Disables it, half-removed ones too; `false` if there was nothing.
///
/// # Errors
/// Files cannot be removed.
pub fn disable() -> Result<bool> {
    let Some(alone) = Alone::existing()? else { return Ok(false) };
    let Some(directory) = alone.open(DIRECTORY)? else { return Ok(false) };
    if let Ok(endpoint) = Endpoint::open(&directory) {
        endpoint.detach();
    }
    // Whatever else is kept there lets go when its file is gone.
    alone.clear(DIRECTORY, None)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use rustix::mount::{MountPropagationFlags, mount_change};
    use rustix::thread::UnshareFlags;

    use super::super::file_system::mount_private;
    use super::*;
    use crate::endpoint::Ask;
    use crate::rehearsal::{endpoint_without_asking, endpoint_without_room};

    #[test]
    fn a_kernel_that_does_not_ask_before_it_sends_has_all_the_rest() {
        if !crate::error::is_root() {
            return xcp_skip::skipped!(
                "root",
                "an endpoint that is not asked before sending: needs root"
            );
        }
        let config = |start| EndpointConfig {
            name: format!("xw{}", std::process::id()),
            ask: Ask { start, ..Ask::default() },
            ..EndpointConfig::default()
        };
        for start in [true, false] {
            let loaded = endpoint_without_asking(&config(start)).unwrap();
            assert_eq!(loaded.no_room(), None, "start: {start}");
        }
    }

    /// `endpoint show` is another process than `enable`: it has to know, too.
    #[test]
    fn why_there_is_no_room_beside_sack_is_kept() {
        if !crate::error::is_root() {
            return xcp_skip::skipped!(
                "root",
                "what is kept of an endpoint without room beside SACK: needs root"
            );
        }
        let on_its_own = || {
            // SAFETY: what makes it unsafe is leaving the table of descriptors, which is not asked
            // for.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }.unwrap();
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
            mount_private().unwrap();
            let config = EndpointConfig {
                name: format!("xu{}", std::process::id()),
                ..EndpointConfig::default()
            };
            let mut loaded = endpoint_without_room(&config).unwrap();
            loaded.make_room(1, true).unwrap();
            loaded
                .pin(
                    &Alone::make().unwrap().make_in(DIRECTORY).unwrap(),
                    &PathBuf::from("/sys/fs/cgroup"),
                )
                .unwrap();
            drop(loaded);
            let kept = endpoint().unwrap().unwrap();
            assert_eq!((kept.no_room(), kept.rooms()), (Some(NoRoom::Refused), 0));
            assert_eq!(kept.about().unwrap().cgroup, "/sys/fs/cgroup");
            drop(kept);
            assert!(disable().unwrap());
        };
        std::thread::scope(|scope| scope.spawn(on_its_own).join()).unwrap();
    }
}
