//! What a proxy has set up that does not go with its process, written down before it is done, so
//! that whoever cleans up knows: its keeper, `pep down`, or the next `pep up`. One directory for
//! each proxy, named after the network namespace.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use xcp_linux::namespace::Namespace;
use xcp_linux::netlink::{Netlink, sockets};
pub use xcp_linux::process::start_time;
use xcp_linux::qdisc::{self, Shaper, Whose};
use xcp_linux::{Error, Result, cgroup, sysctl};

use super::owner::{Owner, owners};
use super::slot::Slot;

/// Where root's are; others' are in `$XDG_RUNTIME_DIR`, or in a directory of the user's own among
/// the temporary files.
const ROOT: &str = "/run/xcpnet";

/// How long what waits in a shaper may take to leave, and how often it is looked whether it has.
const LET_GO: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(5);
/// What does not leave in time is sent at this rate.
const AT_ONCE_BPS: u64 = 10_000_000_000;

/// A setting with what it was and what it became.
pub type Changed = (String, String, String);

/// What to take back.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct State {
    /// Process id of the proxy.
    pub pid: u32,
    /// When it started, in the kernel's ticks since boot: with the number, what tells it from all
    /// others.
    pub start: u64,
    /// Numbers of tables, marks and queues that the proxy uses.
    #[serde(default)]
    pub slot: Slot,
    /// Whether packets are diverted by a routing rule.
    pub diverts: bool,
    /// Device whose shaper is ours.
    pub shaper: Option<u32>,
    /// Settings that were changed.
    pub sysctls: Vec<Changed>,
    /// The proxy's control group.
    pub cgroup: Option<PathBuf>,
    /// Where it logs, if in a file of ours.
    pub log: Option<PathBuf>,
    /// It has ended in order: its log tells nobody anything any more.
    #[serde(default)]
    pub ended: bool,
}

/// The directory of a running proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place(PathBuf);

impl Place {
    /// Of the proxy of this name in a network namespace.
    #[must_use]
    pub fn of(namespace: &Namespace, name: &str) -> Self {
        let user = rustix::process::geteuid();
        // Paths that are not absolute do not count (XDG Base Directory Specification).
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let base = match runtime.filter(|path| path.is_absolute()) {
            _ if user.is_root() => PathBuf::from(ROOT),
            Some(runtime) => runtime.join("xcpnet"),
            None => std::env::temp_dir().join(format!("xcpnet-{}", user.as_raw())),
        };
        Self(base.join(format!("pep-{}-{name}", namespace.inode())))
    }

    /// Path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Where `pep show` asks.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }

    /// Where a proxy in the background logs.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        // A name may have dots, so this is not another extension.
        let mut path = self.0.clone().into_os_string();
        path.push(".log");
        path.into()
    }

    fn file(&self) -> PathBuf {
        self.0.join("state.json")
    }

    /// Whether the directory above is this user's: what somebody else has put there says nothing of
    /// what we have set up.
    fn is_ours(&self) -> bool {
        let above = self.0.parent().and_then(|above| fs::symlink_metadata(above).ok());
        above.is_some_and(|about| {
            about.is_dir() && about.uid() == rustix::process::geteuid().as_raw()
        })
    }

    /// What is written there.
    #[must_use]
    pub fn read(&self) -> Option<State> {
        if !self.is_ours() {
            return None;
        }
        serde_json::from_slice(&fs::read(self.file()).ok()?).ok()
    }

    /// Writes it, whole or not at all.
    ///
    /// # Errors
    /// No place to write.
    pub fn write(&self, state: &State) -> Result<()> {
        let written = || -> std::io::Result<()> {
            // For others to look at where it is root's, and nobody else's business where it is a
            // user's.
            let mode = if rustix::process::geteuid().is_root() { 0o755 } else { 0o700 };
            fs::DirBuilder::new().recursive(true).mode(mode).create(&self.0)?;
            if !self.is_ours() {
                return Err(std::io::Error::other("the directory above belongs to somebody else"));
            }
            let new = self.0.join("state.new");
            let mut file = fs::File::create(&new)?;
            file.write_all(&serde_json::to_vec(state)?)?;
            fs::rename(new, self.file())
        };
        written().map_err(|e| self.unwritable(&self.file(), e))
    }

    /// Why something of this proxy could not be written, and what to do about it.
    #[must_use]
    pub fn unwritable(&self, path: &Path, why: std::io::Error) -> Error {
        let full = why.kind() == std::io::ErrorKind::StorageFull;
        let error = Error::because(format_args!("cannot write {}", path.display()), why);
        match self.0.parent().filter(|_| full) {
            Some(above) => error.remedy(format!(
                "make room there; `df {0}` and `df -i {0}` show what is used up",
                above.display()
            )),
            None => error,
        }
    }

    /// The proxy that lives there.
    #[must_use]
    pub fn living(&self) -> Option<State> {
        self.read().filter(|state| start_time(state.pid) == Some(state.start))
    }

    /// Takes back what is written there of a proxy that is no more; the directory last. Goes on
    /// where something fails, and says what.
    ///
    /// # Errors
    /// Something stays.
    pub fn clean(&self) -> Result<()> {
        match self.read() {
            Some(state) => self.clean_after(&state),
            None => self.remove(Vec::new()),
        }
    }

    /// The same for one of which is known what it has set up, whatever is written.
    ///
    /// # Errors
    /// Something stays.
    pub fn clean_after(&self, state: &State) -> Result<()> {
        let mut failed = Vec::new();
        state.take_back(&mut failed);
        // The directory may be another one's by now.
        if failed.is_empty()
            && self.read().is_some_and(|now| (now.pid, now.start) != (state.pid, state.start))
        {
            return Ok(());
        }
        self.remove(failed)
    }

    fn remove(&self, mut failed: Vec<String>) -> Result<()> {
        if failed.is_empty() {
            match fs::remove_dir_all(&self.0) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    failed.push(format!("{}: {e}", self.0.display()))
                }
                _ => {}
            }
            // Others' places keep it.
            let _ = self.0.parent().map(fs::remove_dir);
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(Error::new(format!("cannot undo everything: {}", failed.join("; "))))
        }
    }
}

/// Has what waits in a shaper sent, the resets of what was carried among it: at the link's rate as
/// far as that goes in a second, then at once. Nobody sends a reset again.
fn let_go(netlink: &mut Netlink, index: u32) {
    let Ok(now) = qdisc::stats(netlink, index) else { return };
    let all = now.bytes + u64::from(now.backlog_bytes);
    let is_sent_in = |netlink: &mut Netlink, patience: Duration| {
        let until = Instant::now() + patience;
        loop {
            match qdisc::stats(netlink, index) {
                Ok(now) if now.bytes < all && Instant::now() < until => sleep(LOOK),
                result => return result.is_ok_and(|now| now.bytes >= all),
            }
        }
    };
    if !is_sent_in(netlink, LET_GO)
        && qdisc::change_rate(netlink, index, Whose::Proxy, Shaper::Htb, AT_ONCE_BPS).is_ok()
    {
        is_sent_in(netlink, LET_GO);
    }
}

impl State {
    /// The other proxies of this network namespace: what they have by now is theirs.
    fn others(&self) -> Vec<Owner> {
        let all = if self.diverts { owners().unwrap_or_default() } else { Vec::new() };
        all.into_iter().filter(|owner| (owner.pid, owner.start) != (self.pid, self.start)).collect()
    }

    fn take_back(&self, failed: &mut Vec<String>) {
        let mut done = |result: std::result::Result<(), String>| failed.extend(result.err());
        let others = self.others();
        if self.diverts || self.shaper.is_some() {
            match Netlink::open() {
                Err(e) => done(Err(e.to_string())),
                Ok(mut netlink) => {
                    if self.diverts && others.iter().all(|other| other.slot != self.slot) {
                        done(netlink.undivert(&self.slot.diversion()).map_err(|e| e.to_string()));
                        // Else clients that use a port again within a minute would find nobody.
                        // Kernels that cannot do it forget them by themselves.
                        let _ = sockets::end_lingering(self.slot.own());
                    }
                    if let Some(index) = self.shaper
                        && netlink
                            .link(index)
                            .is_ok_and(|device| others.iter().all(|other| other.wan != device.name))
                        && qdisc::root(&mut netlink, index)
                            .is_ok_and(|root| root.whose == Some(Whose::Proxy))
                    {
                        let_go(&mut netlink, index);
                        done(
                            qdisc::remove(&mut netlink, index, Whose::Proxy)
                                .map_err(|e| e.to_string()),
                        );
                    }
                }
            }
        }
        // The last one puts them back.
        let sysctls = if others.is_empty() { &self.sysctls[..] } else { &[] };
        for (name, before, ours) in sysctls {
            // Somebody who has changed it since keeps what he wanted.
            if sysctl::read(name).is_ok_and(|now| now == *ours) {
                done(sysctl::write(name, before).map_err(|e| e.to_string()));
            }
        }
        if let Some(group) = &self.cgroup
            && group.is_dir()
        {
            // The proxy may be waiting for its keeper; its sockets stay where they were made.
            if start_time(self.pid) == Some(self.start)
                && let Some(above) = group.parent()
            {
                let _ = cgroup::add(above, self.pid);
            }
            done(cgroup::remove(group).map_err(|e| e.to_string()));
        }
        if let Some(log) = self.log.as_ref().filter(|_| self.ended) {
            let _ = fs::remove_file(log);
        }
    }
}
