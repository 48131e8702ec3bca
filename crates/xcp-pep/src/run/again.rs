//! The long link's device goes and comes back under another number, as those of PPP, LTE and USB
//! do. The packet filter's rules know it by its name. What hangs on its number went with it, and is
//! set up again: the shaper, the router, the room beside SACK. Where that cannot be done the proxy
//! ends with an error, and whoever keeps it running starts it anew.
//!
//! One that had another name for a while comes back under the number that it had, with all of it;
//! one that was in another namespace, maybe under another number and without the shaper.

use std::sync::atomic::Ordering;

use xcp_linux::Result;
use xcp_linux::netlink::Device;

use super::set_up::Proxy;
use crate::gateway::keeper::Keeper;
use crate::gateway::wan;
use crate::options::Options;

/// Devices have changed: maybe this one.
pub(super) fn look(proxy: &mut Proxy, options: &Options, keeper: &mut Keeper) -> Result<()> {
    let Some(before) = proxy.plan.wan.clone() else { return Ok(()) };
    let now = match proxy.netlink.index_of(&before.name)? {
        Some(index) => Some(proxy.netlink.link(index)?),
        None => None,
    };
    match now {
        Some(device) if device.index == before.index && proxy.wan_is_there => Ok(()),
        // It is told of again when it is switched on.
        Some(device) if device.up => set_up(proxy, options, keeper, device),
        _ => {
            if std::mem::take(&mut proxy.wan_is_there) {
                tracing::error!(
                    wan = before.name,
                    "the long link's device is gone; everything on it is set up again when it is \
                     back"
                );
            }
            Ok(())
        }
    }
}

fn set_up(proxy: &mut Proxy, options: &Options, keeper: &mut Keeper, device: Device) -> Result<()> {
    if let (Some(shaping), true) = (options.shaping()?, proxy.router.is_some()) {
        proxy.state.shaper = Some(device.index);
        keeper.note(&proxy.state)?;
        wan::shape(&mut proxy.netlink, device.index, shaping)?;
    }
    // After the endpoint's, which makes room for the option that the router writes into.
    if let Some(endpoint) = &mut proxy.endpoint {
        endpoint.make_room_again(device.index, device.mac.is_some())?;
    }
    if let Some(router) = &mut proxy.router {
        router.attach_again(device.index)?;
    }
    if let Some(beginnings) = &mut proxy.beginnings {
        beginnings.move_to(device.index);
    }
    wan::call_neighbours(&mut proxy.netlink, device.index);
    proxy.shared.wan.store(device.index, Ordering::Relaxed);
    tracing::info!(wan = device.name, "the long link's device is back and has been set up again");
    proxy.wan_is_there = true;
    proxy.plan.wan = Some(device);
    Ok(())
}
