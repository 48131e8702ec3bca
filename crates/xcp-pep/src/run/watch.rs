//! What was set up may be taken away by others while the proxy runs, and settings may come to be in
//! its way: network managers flush routing rules that are not theirs, Docker has bridges filtered,
//! wg-quick has marks count on the way back. New connections would hang, without a word. So all
//! that is looked at every now and then: what is missing is put back, and what is in the way is
//! told, in the log and by `pep show`. Only the packet filter's tables are safe, because the kernel
//! lets nobody but their owner change or remove them.

use std::time::{Duration, Instant};

use xcp_linux::namespace::Called;
use xcp_linux::netlink::{Device, Netlink};

use super::set_up::Proxy;
use crate::gateway::look::{self, Finding};
use crate::gateway::slot::Slot;

/// A client sends its SYN again after a second, and then after two more: whoever comes while
/// something is missing waits no longer than that.
pub(super) const PAUSE: Duration = Duration::from_secs(2);

/// When was looked, and what was found.
#[derive(Debug, Default)]
pub(super) struct Watch {
    last: Option<Instant>,
    /// What makes new connections hang.
    pub in_the_way: Vec<Finding>,
}

/// Looks, if it is time.
pub(super) fn look(proxy: &mut Proxy, now: Instant) {
    let Some(diverted) = &proxy.plan.diverted else { return };
    if proxy.watch.last.is_some_and(|last| now.saturating_duration_since(last) < PAUSE) {
        return;
    }
    proxy.watch.last = Some(now);
    let mut found = Vec::from_iter(missing(&mut proxy.netlink, diverted.slot));
    let names = std::iter::once(("wan", &diverted.wan))
        .chain(diverted.lan.iter().map(|name| ("lan", name)));
    let devices: Vec<(&str, Device)> = names
        .filter_map(|(option, name)| {
            let index = proxy.netlink.index_of(name).ok().flatten()?;
            Some((option, proxy.netlink.link(index).ok()?))
        })
        .collect();
    let devices: Vec<(&str, &Device)> = devices.iter().map(|(option, d)| (*option, d)).collect();
    found.extend(look::hanging(&devices));
    tell(&proxy.watch.in_the_way, &found);
    proxy.watch.in_the_way = found;
}

/// Has marked packets come here again. What keeps them away where that cannot be done.
fn missing(netlink: &mut Netlink, slot: Slot) -> Option<Finding> {
    let diversion = slot.diversion();
    let misled = |netlink: &mut Netlink| {
        netlink.misled(&diversion).unwrap_or_else(|why| {
            tracing::debug!(%why, "cannot look whether the routing rules are there");
            Vec::new()
        })
    };
    let before = misled(netlink);
    if before.is_empty() {
        return None;
    }
    let done = netlink.divert(&diversion);
    let still = misled(netlink);
    if still.is_empty() {
        tracing::warn!(
            "somebody has removed the proxy's routing rule (priority {}) or its route (table {}) \
             for {}, without which new connections hang; what was missing has been put back",
            diversion.priority,
            diversion.table,
            before.join(" and ")
        );
        return None;
    }
    let finding = look::misled(slot, &still);
    Some(match done {
        Ok(()) => finding,
        Err(why) => Finding {
            found: format!("{}: {why}", finding.found),
            remedy: Some(format!(
                "the loopback device has to be up ({} link set lo up); it is tried again every \
                 {} s",
                Called::entered().command("ip"),
                PAUSE.as_secs()
            )),
            ..finding
        },
    })
}

/// Logs what is new, once, and what is over.
fn tell(before: &[Finding], now: &[Finding]) {
    for finding in now.iter().filter(|finding| !before.contains(finding)) {
        tracing::warn!("new connections hang: {}", finding.error());
    }
    for finding in before.iter().filter(|finding| !now.contains(finding)) {
        tracing::info!("no longer so: {}", finding.found);
    }
}
