//! Fewer rights once all is set up: another user, and of root's capabilities only those that
//! connections and `pep show` need.

use rustix::process::{Gid, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use xcp_linux::{Error, Result};

/// What stays: transparent sockets, marks and rules (NET_ADMIN, NET_RAW), clients' ports below 1024
/// (NET_BIND_SERVICE), the routers' and endpoint's maps (BPF).
const KEPT: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::BPF);

/// Numeric ids of a user.
#[derive(Debug, Clone, Copy)]
pub struct User {
    uid: u32,
    gid: u32,
}

/// Looks a user up in the system's list.
///
/// # Errors
/// There is none of that name.
pub fn user(name: &str) -> Result<User> {
    let list = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let numbers = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.first() == Some(&name)).then_some(())?;
        Some(User { uid: fields.get(2)?.parse().ok()?, gid: fields.get(3)?.parse().ok()? })
    };
    list.lines().find_map(numbers).ok_or_else(|| {
        Error::new(format!("there is no user \"{name}\"")).remedy(
            "choose one with --user, or create it: useradd --system --no-create-home \
                xcpnet",
        )
    })
}

/// Drops them for the calling thread and those it starts: call it before there are others.
///
/// # Errors
/// Not permitted.
pub fn drop_to(user: User) -> Result<()> {
    let told =
        |e: rustix::io::Errno| Error::because("cannot drop privileges", std::io::Error::from(e));
    let sets = |kept| CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    rustix::thread::set_no_new_privs(true).map_err(told)?;
    // SAFETY: a user's and group's numbers that the system's list has.
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    rustix::thread::set_keep_capabilities(true).map_err(told)?;
    rustix::thread::set_thread_groups(&[]).map_err(told)?;
    rustix::thread::set_thread_res_gid(gid, gid, gid).map_err(told)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid).map_err(told)?;
    rustix::thread::set_keep_capabilities(false).map_err(told)?;
    set_capabilities(None, sets(KEPT)).map_err(told)
}
