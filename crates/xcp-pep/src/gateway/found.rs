//! What there is of a proxy, told from what cannot lie: processes, locks, rules. What is written of
//! it may have been removed, or be of one that was killed.

use std::time::Duration;

use xcp_linux::netlink::Netlink;
use xcp_linux::{Result, cgroup};

use super::owner::{self, Owner, owners};
use super::slot::Slot;
use super::state::{Place, State, start_time};

/// A proxy of a name, as it was found.
#[derive(Debug)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its process and when that was started, if it lives.
    pub living: Option<(u32, u64)>,
    /// Its lock, if it is a gateway: its keeper's where it does not live.
    pub owner: Option<Owner>,
    /// What is written of it.
    pub state: Option<State>,
    /// Gateways' proxies of other names.
    pub others: Vec<Owner>,
}

impl Found {
    /// Looks. Who may not ask the packet filter learns what is written.
    #[must_use]
    pub fn look(place: &Place, name: &str) -> Self {
        let (mut ours, others): (Vec<_>, Vec<_>) =
            owners().unwrap_or_default().into_iter().partition(|owner| owner.name == name);
        let (owner, state) = (ours.pop(), place.read());
        let of_owner = owner.as_ref().map(|owner| (owner.pid, owner.start));
        let of_state = state.as_ref().map(|state| (state.pid, state.start));
        let lives = |(pid, start): &(u32, u64)| start_time(*pid) == Some(*start);
        let living = [of_owner, of_state].into_iter().flatten().find(lives);
        Self { name: name.to_owned(), living, owner, state, others }
    }

    /// Whether nothing at all is there.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.living.is_none() && self.owner.is_none() && self.state.is_none()
    }

    /// The others in words, if there are any.
    #[must_use]
    pub fn other_words(&self) -> Option<String> {
        let words: Vec<String> = self.others.iter().map(Owner::words).collect();
        (!words.is_empty()).then(|| format!("there is {}; choose it with --name", words.join(", ")))
    }

    /// That it takes questions and has not answered within this time, in words.
    #[must_use]
    pub fn why_hung(&self, time: Duration) -> String {
        let Some((pid, _)) = self.living else { return self.why_silent() };
        let seconds = time.as_secs();
        format!(
            "the proxy (process {pid}) has not answered within {seconds} s; if somebody has \
             stopped it, `kill -CONT {pid}` lets it go on, and `{} --now` ends it in any case",
            owner::down(&self.name)
        )
    }

    /// Why it cannot be asked, in words.
    #[must_use]
    pub fn why_silent(&self) -> String {
        match (&self.living, &self.owner, &self.state) {
            (Some((pid, _)), _, None) => format!(
                "a proxy is running (process {pid}), but its directory was removed, so that it \
                 cannot be queried; it continues to work, and `{}` ends it",
                owner::down(&self.name)
            ),
            (Some((pid, _)), ..) => {
                format!(
                    "a proxy is running (process {pid}) but does not answer yet; its log says \
                    why"
                )
            }
            (None, Some(owner), _) => {
                format!(
                    "the proxy (process {}) has ended; what it set up is being undone",
                    owner.pid
                )
            }
            (None, None, Some(state)) => format!(
                "the proxy (process {}) was killed together with its keeper; `{}` removes what it \
                 left behind",
                state.pid,
                owner::down(&self.name)
            ),
            (None, None, None) => {
                let others =
                    self.other_words().map(|words| format!("; {words}")).unwrap_or_default();
                format!("no proxy with this name is running in this network namespace{others}")
            }
        }
    }
}

/// Takes back what nobody is left to take back, as far as it can be known: both proxy and keeper
/// were killed, and what was written is gone. Returns how many routing rules there were.
///
/// # Errors
/// Not root; what the kernel refuses.
pub fn take_back_leftovers() -> Result<usize> {
    let owned: Vec<Slot> = owners()?.into_iter().map(|owner| owner.slot).collect();
    let mut netlink = Netlink::open()?;
    let mut count = 0;
    for slot in Slot::all().filter(|slot| !owned.contains(slot)) {
        if netlink.diverts(&slot.diversion())? {
            // One that comes up at this moment takes its lock before it diverts anything: whose
            // lock cannot be had lives.
            let Some(_lock) = owner::hold(slot) else { continue };
            netlink.undivert(&slot.diversion())?;
            count += 1;
        }
    }
    let groups = cgroup::current().ok().and_then(|at| at.read_dir().ok());
    for group in groups.into_iter().flatten().flatten() {
        let name = group.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix("xcpnet-pep-"))
            .and_then(|pid| pid.parse().ok());
        if pid.is_some_and(|pid| start_time(pid).is_none()) {
            let _ = cgroup::remove(&group.path());
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_ends_it_says_its_name() {
        let said = |name: &str, living, state| {
            let found =
                Found { name: name.to_owned(), living, owner: None, state, others: Vec::new() };
            found.why_silent()
        };
        for (name, command) in
            [("main", "`xcpnet pep down`"), ("two", "`xcpnet pep down --name two`")]
        {
            let lost = said(name, Some((7, 99)), None);
            assert!(lost.contains(command), "{lost}");
            let left = said(name, None, Some(State::default()));
            assert!(left.contains(command), "{left}");
        }
    }
}
