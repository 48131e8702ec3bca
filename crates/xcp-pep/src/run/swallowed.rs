//! The long link swallows large packets, without a word (`worker/outage.rs` has seen it): the
//! kernel is to try smaller ones from now on.

use std::sync::atomic::Ordering;
use std::time::Instant;

use xcp_linux::sysctl;

use super::set_up::Proxy;
use crate::gateway::keeper::Keeper;
use crate::gateway::state::State;

/// Off, as the kernel has it; where a packet seems to be swallowed.
const PROBING: &str = "net.ipv4.tcp_mtu_probing";
const OFF: &str = "0";
const WHERE_SWALLOWED: &str = "1";

/// Has it try them, once.
pub(super) fn look(proxy: &mut Proxy, keeper: &mut Keeper) {
    if is_known(&proxy.state) || !proxy.shared.swallowing.load(Ordering::Relaxed) {
        return;
    }
    let read = sysctl::read(PROBING).map_err(|e| e.to_string());
    let told = change(&mut proxy.state, read, |state| {
        keeper.note(state).map_err(|e| e.to_string())?;
        sysctl::write(PROBING, WHERE_SWALLOWED).map_err(|e| e.to_string())
    });
    match told {
        Ok(true) => tracing::warn!(
            "large packets disappear on the long link: smaller ones are tried after some seconds \
             of each connection; use --mss to set their size beforehand"
        ),
        Ok(false) => {}
        Err(why) => {
            // Nor is the keeper to put it back; where it cannot be told, that is what it said.
            let _ = keeper.note(&proxy.state);
            if proxy.swallowed.may(Instant::now()) {
                tracing::error!(%why, "large packets disappear on the long link (--mss)");
            }
        }
    }
    // Where it was not changed, it is looked at when the next one is swallowed, and not before.
    proxy.shared.swallowing.store(false, Ordering::Relaxed);
}

/// Whether it was changed, here or by another proxy whose changes are ours to put back, too.
fn is_known(state: &State) -> bool {
    state.sysctls.iter().any(|(name, ..)| name == PROBING)
}

/// What is to be done where it was read, and whether it was: `begin` notes the change and makes it.
/// Only one that was made is to be put back.
fn change(
    state: &mut State,
    read: Result<String, String>,
    begin: impl FnOnce(&State) -> Result<(), String>,
) -> Result<bool, String> {
    let now = read?;
    if now != OFF {
        // It does already, as somebody wanted.
        return Ok(false);
    }
    state.sysctls.push((PROBING.to_owned(), now, WHERE_SWALLOWED.to_owned()));
    let begun = begin(state);
    if begun.is_err() {
        state.sysctls.pop();
    }
    begun.map(|()| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_changed_is_tried_again() {
        let mut state = State::default();
        let failed = change(&mut state, Ok(OFF.to_owned()), |_| Err("not today".to_owned()));
        assert!(failed.is_err() && !is_known(&state));
        let unread = change(&mut state, Err("not there".to_owned()), |_| Ok(()));
        assert!(unread.is_err() && !is_known(&state));
        // Somebody else's choice is not ours to put back.
        assert_eq!(change(&mut state, Ok("2".to_owned()), |_| Ok(())), Ok(false));
        assert!(!is_known(&state));
        // It is noted before it is made.
        let begin = |state: &State| is_known(state).then_some(()).ok_or_else(String::new);
        assert_eq!(change(&mut state, Ok(OFF.to_owned()), begin), Ok(true));
        assert!(is_known(&state));
    }
}
