//! The long link swallows large packets, without a word (`worker/outage.rs` has seen it): the
//! kernel is to try smaller ones from now on.

use std::sync::atomic::Ordering;

use xcp_linux::sysctl;

use super::set_up::Proxy;
use crate::gateway::keeper::Keeper;

/// Off, as the kernel has it; where a packet seems to be swallowed.
const PROBING: &str = "net.ipv4.tcp_mtu_probing";
const OFF: &str = "0";
const WHERE_SWALLOWED: &str = "1";

/// Has it try them, once.
pub(super) fn look(proxy: &mut Proxy, keeper: &mut Keeper) {
    let known = proxy.state.sysctls.iter().any(|(name, ..)| name == PROBING);
    if known || !proxy.shared.swallowing.load(Ordering::Relaxed) {
        return;
    }
    let told = match sysctl::read(PROBING) {
        Ok(now) if now == OFF => {
            let change = (PROBING.to_owned(), now, WHERE_SWALLOWED.to_owned());
            proxy.state.sysctls.push(change);
            keeper
                .note(&proxy.state)
                .map_err(|e| e.to_string())
                .and_then(|()| sysctl::write(PROBING, WHERE_SWALLOWED).map_err(|e| e.to_string()))
        }
        // It does already, as somebody wanted.
        Ok(_) => return,
        Err(why) => Err(why.to_string()),
    };
    match told {
        Ok(()) => tracing::warn!(
            "large packets disappear on the long link: smaller ones are tried after some seconds \
             of each connection; use --mss to set their size beforehand"
        ),
        Err(why) => {
            proxy.shared.swallowing.store(false, Ordering::Relaxed);
            tracing::error!(%why, "large packets disappear on the long link (--mss)");
        }
    }
}
