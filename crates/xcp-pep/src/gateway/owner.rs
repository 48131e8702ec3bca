//! Who has which long link: at most one proxy for each. The lock is an empty table of the packet
//! filter that belongs to the proxy and its keeper together. The kernel lets nobody else change it,
//! and removes it when both have gone, however they went; so where it is, somebody is at work.
//! Its comment says who; unlike a file nobody can remove it.

use std::time::{Duration, Instant};

use xcp_linux::namespace::Called;
use xcp_linux::netlink::nftables::OwnedTable;
use xcp_linux::netlink::tables;
use xcp_linux::{Error, Result};

use super::slot::{OWNER_TABLE, Slot};
use super::state::start_time;

/// How long a keeper may take to take back what a proxy has left.
const CLEANING: Duration = Duration::from_secs(20);
/// The name of a proxy that was given none.
pub const UNNAMED: &str = "main";
/// What every comment of ours begins with.
const WORDS: &str = "xcpnet pep";

/// A proxy of a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Numbers of tables, marks and queues that the proxy uses.
    pub slot: Slot,
    /// Name of the proxy (`--name`).
    pub name: String,
    /// The device of its long link.
    pub wan: String,
    /// Process id of the proxy.
    pub pid: u32,
    /// When that was started ([`start_time`]).
    pub start: u64,
}

impl Owner {
    fn comment(&self) -> String {
        let Self { name, wan, pid, start, .. } = self;
        format!("{WORDS}: name {name} wan {wan} process {pid} start {start}")
    }

    fn read(slot: Slot, comment: &str) -> Option<Self> {
        let mut words = comment.strip_prefix(WORDS)?.strip_prefix(": ")?.split(' ');
        let mut value =
            |key: &str| words.next().filter(|word| *word == key).and_then(|_| words.next());
        let (name, wan) = (value("name")?.to_owned(), value("wan")?.to_owned());
        let (pid, start) = (value("process")?.parse().ok()?, value("start")?.parse().ok()?);
        Some(Self { slot, name, wan, pid, start })
    }

    /// Whether the proxy itself lives; where not, its keeper is at work.
    #[must_use]
    pub fn lives(&self) -> bool {
        start_time(self.pid) == Some(self.start)
    }

    /// As others are told of it.
    #[must_use]
    pub fn words(&self) -> String {
        format!("\"{}\" (process {}, --wan {})", self.name, self.pid, self.wan)
    }
}

/// The proxies of the calling thread's network namespace that are gateways.
///
/// # Errors
/// The packet filter cannot be asked: not root, no nf_tables.
pub fn owners() -> Result<Vec<Owner>> {
    let tables = tables::list()?;
    let of = |slot: Slot| {
        let table = tables.iter().find(|table| table.name == slot.owner_table())?;
        Owner::read(slot, table.comment.as_deref()?)
    };
    Ok(Slot::all().filter_map(of).collect())
}

/// A long link that is ours, as long as this lives in any process.
#[derive(Debug)]
pub struct Lock {
    _table: OwnedTable,
    /// The numbers that came with it.
    pub slot: Slot,
}

/// The command that ends a proxy of this name, in the network namespace that this thread has
/// entered.
#[must_use]
pub fn down(name: &str) -> String {
    let which = if name == UNNAMED { String::new() } else { format!(" --name {name}") };
    format!("xcpnet pep down{which}{}", Called::entered().option())
}

/// What keeps a proxy of this name from this long link, and what to do about it.
pub(super) fn obstacle(owners: &[Owner], name: &str, wan: &str) -> Option<(String, String)> {
    let owner = owners.iter().find(|owner| owner.wan == wan || owner.name == name)?;
    let down = down(&owner.name);
    let told = if owner.wan == wan {
        format!("a proxy is already running here for {wan}: {}", owner.words())
    } else {
        format!("a proxy with this name is already running here: {}", owner.words())
    };
    let remedy = if owner.wan == wan {
        format!("run `{down}` first")
    } else {
        format!("give this one another --name, or run `{down}` first")
    };
    Some((told, remedy))
}

fn refused((told, remedy): (String, String)) -> Error {
    Error::new(told).remedy(remedy)
}

/// Waits until no keeper is at work any more on what a proxy of this name or on this long link has
/// left.
///
/// # Errors
/// A proxy has the name or the long link.
pub fn wait_for_room(name: &str, wan: &str) -> Result<()> {
    let until = Instant::now() + CLEANING;
    loop {
        let found = owners()?;
        let Some(why) = obstacle(&found, name, wan) else { return Ok(()) };
        let waits =
            found.iter().any(|owner| (owner.wan == wan || owner.name == name) && !owner.lives());
        if !waits || Instant::now() >= until {
            return Err(refused(why));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Takes a long link for this process.
///
/// # Errors
/// Another one has it, or the name; there are too many.
pub fn take(name: &str, wan: &str) -> Result<Lock> {
    wait_for_room(name, wan)?;
    let pid = std::process::id();
    let start = start_time(pid).unwrap_or_default();
    for slot in Slot::all() {
        let owner = Owner { slot, name: name.into(), wan: wan.into(), pid, start };
        let table = match OwnedTable::with_comment(&slot.owner_table(), Some(&owner.comment()), &[])
        {
            Ok(table) => table,
            // Another one's; EPERM where it has an owner.
            Err(e) if matches!(e.errno(), Some(libc::EEXIST | libc::EPERM)) && is_there(slot) => {
                continue;
            }
            Err(e) => return Err(e.into()),
        };
        // Two that came at the same time see each other here, and both give way.
        let others: Vec<Owner> = owners()?.into_iter().filter(|other| other.slot != slot).collect();
        return obstacle(&others, name, wan)
            .map_or(Ok(Lock { _table: table, slot }), |why| Err(refused(why)));
    }
    Err(Error::new(format!("there are already {} proxies in this network namespace", Slot::MOST))
        .remedy(format!(
            "`{} list tables` shows who owns them: {OWNER_TABLE}...",
            Called::entered().command("nft")
        )))
}

/// The lock of a place that nobody has, without a name: for as long as what was left there is taken
/// back. `None` where somebody has it.
pub(super) fn hold(slot: Slot) -> Option<OwnedTable> {
    OwnedTable::with_comment(&slot.owner_table(), None, &[]).ok()
}

fn is_there(slot: Slot) -> bool {
    tables::list().is_ok_and(|all| all.iter().any(|table| table.name == slot.owner_table()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str, wan: &str) -> Owner {
        Owner { slot: Slot::from(3), name: name.into(), wan: wan.into(), pid: 7, start: 99 }
    }

    #[test]
    fn what_is_written_is_read() {
        let one = owner("main", "eth1.100");
        assert_eq!(Owner::read(one.slot, &one.comment()), Some(one));
        for other in [
            "",
            "xcpnet pep",
            "xcpnet pep: name main wan",
            "somebody: name a wan b process 1 start 2",
        ] {
            assert_eq!(Owner::read(Slot::default(), other), None, "{other}");
        }
    }

    #[test]
    fn names_and_links_have_one_owner_each() {
        let there = [owner("main", "sat0"), owner("two", "sat1")];
        assert!(obstacle(&there, "three", "sat2").is_none());
        let told =
            |name, wan| refused(obstacle(&there, name, wan).expect("an obstacle")).to_string();
        let second = told("three", "sat1");
        assert!(
            second.contains("already running here for sat1")
                && second.contains("pep down --name two"),
            "{second}"
        );
        let named = told("main", "sat2");
        assert!(named.contains("another --name") && named.contains("`xcpnet pep down`"), "{named}");
    }
}
