//! The endpoint programs (`bpf/endpoint.bpf.c`): XCP in the kernel's own TCP for the sockets of a
//! cgroup. Attach, ask for one socket, read; `load` loads them. Which cgroup and devices, and where
//! it is kept while no process runs, is the caller's and `kept`'s.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use libbpf_rs::{MapCore as _, MapFlags, MapHandle};

use crate::error::{Error, Result, is_root};
use crate::kept::file_system::Directory;
use crate::link::{self, Link, Position, Target};
use crate::object::{bytes_of, from_bytes, hush, read_only_entry, write_only_entry};
use crate::shared::{
    xcp_about, xcp_ask_flags, xcp_connection, xcp_connection_state, xcp_endpoint_counts,
    xcp_no_room, xcp_record, xcp_robust_connection, xcp_shown,
};
use crate::subscribers::Subscribers;

mod ask;
mod connection;
mod load;

pub use ask::{Ask, EndpointConfig, FALLBACK, FIRST_WINDOW, Give};
pub use connection::{Agreement, Connection, Robust, Shown};
pub use load::check_fallback;
pub(crate) use load::is_xcpnets;

/// What the iterator is kept as that shows connections: of all network namespaces, or of the
/// caller's.
const SHOW: &str = "show";
const SHOW_HERE: &str = "show_here";
/// What the programs are kept as that make room beside SACK.
const ROOM: [&str; 2] = ["room_ethernet", "room_bare"];

/// Packets in the two accounts from which connections begin (bpf/endpoint_start.h).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Start {
    /// Packets available for first windows.
    pub window: u32,
    /// For what follows when the round-trip time is known.
    pub rest: u32,
    /// Number of connections that are starting.
    pub beginners: u32,
}

/// What became of the endpoint's connections since it was loaded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct EndpointCounts {
    /// Both ends speak XCP.
    pub agreed: u64,
    /// The peer, or something on the way, does not.
    pub fallen_peer: u64,
    /// Connections that fell back because feedback stopped.
    pub fallen_silent: u64,
    /// XCP was chosen for a connection that was open already.
    pub fallen_late: u64,
    /// Options of ours that contradict themselves; ignored.
    pub malformed: u64,
}

/// The programs, loaded. They work as long as this value lives, or for good once it is pinned.
#[derive(Debug)]
pub struct Endpoint {
    name: String,
    fallback: String,
    /// The congestion control's registration.
    congestion: Link,
    /// The iterator that shows connections.
    show: Link,
    /// The iterator over listening sockets; not there once kept.
    listeners: Option<Link>,
    /// What connections may begin with, and what they have taken of it; not there once kept.
    start: Option<[MapHandle; 2]>,
    /// Whose sockets are; not there once kept.
    whose: Option<MapHandle>,
    cgroups: Vec<Link>,
    devices: Vec<Link>,
    connections: MapHandle,
    /// What robust senders are beside; not there once kept.
    robust: Option<MapHandle>,
    counts: MapHandle,
    about: MapHandle,
    programs: Programs,
    no_room: Option<NoRoom>,
    /// Whether `show` goes over the sockets of all network namespaces.
    everywhere: bool,
}

/// Programs by descriptor, to attach to more cgroups and devices.
#[derive(Debug)]
struct Programs {
    endpoint: OwnedFd,
    /// For devices with a link layer and without; none where the kernel does not take them.
    room: Option<[OwnedFd; 2]>,
}

/// Why the option makes itself no room beside SACK. The rest of the endpoint works without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoRoom {
    /// The kernel does not take the programs that do it.
    Refused,
    /// There is no TCX for them to hang on, which came with Linux 6.6.
    NoTcx,
}

impl NoRoom {
    /// What is lost without room beside SACK, in words.
    pub const COST: &'static str = "feedback that finds no room beside timestamps and three SACK \
        blocks waits for a later acknowledgement, but none is lost";

    /// The reason, in words.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Refused => "the kernel rejects the programs for it",
            Self::NoTcx => "it has no TCX, which came with Linux 6.6",
        }
    }
}

/// Where a kernel does not list the connections of all network namespaces, in words.
pub const ONLY_HERE: &str = "only connections of the current network namespace are listed: this \
    kernel refuses to iterate over the storage of sockets";

/// What is known of an endpoint that was kept.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct About {
    /// The congestion control's name.
    pub name: String,
    /// The one that takes over.
    pub fallback: String,
    /// The cgroup whose sockets are served.
    pub cgroup: String,
}

impl Endpoint {
    /// The congestion control's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// From now on sockets made by this cgroup's processes are served. For listening sockets that
    /// are there already see [`Endpoint::wake_listeners`].
    ///
    /// # Errors
    /// Not a directory of cgroup v2; an exclusive program is attached above or below it.
    pub fn attach(&mut self, cgroup: BorrowedFd<'_>) -> Result<()> {
        let link = Link::new(self.programs.endpoint.as_fd(), Target::SockOps(cgroup)).map_err(
            |e| match e.raw_os_error() {
                // cgroup_bpf_attach: what is attached without BPF_F_ALLOW_MULTI stays alone with
                // its cgroup, and with those below it.
                Some(libc::EPERM) if is_root() => Error::new(
                    "another sock_ops program has exclusive use of the cgroup, or of one above or \
                     below it",
                )
                .remedy(
                    "`bpftool cgroup tree` shows which one (sock_ops); choose a cgroup that it \
                     does not occupy (--cgroup), or have it attached with `multi`",
                ),
                _ => Error::because("cannot attach the endpoint to the cgroup", e),
            },
        )?;
        self.cgroups.push(link);
        Ok(())
    }

    /// Serves sockets of the calling thread's network namespace that listen already, too. Returns
    /// how many have to be opened anew, because the kernel is older than 6.12.
    ///
    /// # Errors
    /// The iterator cannot be run.
    pub fn wake_listeners(&self) -> Result<usize> {
        let Some(listeners) = &self.listeners else { return Ok(0) };
        let refused = listeners
            .read_iterator()
            .map_err(|e| Error::because("cannot go through the listening sockets", e))?;
        Ok(refused.len())
    }

    /// Makes room for the option beside SACK in what leaves by this device of the calling thread's
    /// network namespace (bpf/endpoint_room.h), before any program that hangs there sees it. Where
    /// the kernel cannot have it, nothing is done: [`Endpoint::no_room`].
    ///
    /// # Errors
    /// No such device.
    pub fn make_room(&mut self, ifindex: u32, ethernet: bool) -> Result<()> {
        let Some([with_link_layer, bare]) = &self.programs.room else { return Ok(()) };
        let program = if ethernet { with_link_layer } else { bare };
        match Link::new(program.as_fd(), Target::Egress(ifindex, Position::First)) {
            Ok(link) => self.devices.push(link),
            // A kernel that does not know this kind of link.
            Err(e) if e.raw_os_error() == Some(libc::EINVAL) => self.no_room = Some(NoRoom::NoTcx),
            Err(e) => {
                return Err(Error::because(
                    format_args!("cannot attach to device {ifindex} (TCX egress)"),
                    e,
                ));
            }
        }
        Ok(())
    }

    /// The same for a device that has come for all others, which have gone.
    ///
    /// # Errors
    /// No such device.
    pub fn make_room_again(&mut self, ifindex: u32, ethernet: bool) -> Result<()> {
        // Where the device has been in another namespace, they hang on it still.
        self.devices.drain(..).for_each(|link| link.detach());
        self.make_room(ifindex, ethernet)
    }

    /// Why there is no room beside SACK, as far as [`Endpoint::make_room`] has found out.
    #[must_use]
    pub fn no_room(&self) -> Option<NoRoom> {
        self.no_room
    }

    /// Whether a cgroup whose sockets it served is gone. One that was made since under the same
    /// name is another one.
    #[must_use]
    pub fn has_lost_its_group(&self) -> bool {
        self.cgroups.iter().any(Link::has_lost_its_group)
    }

    /// At how many devices there is.
    #[must_use]
    pub fn rooms(&self) -> usize {
        self.devices.iter().filter(|link| !link.is_orphan()).count()
    }

    /// Sets how one socket is to behave, before it connects or listens; what a listener accepts
    /// inherits it. Choosing the congestion control, by `setsockopt(TCP_CONGESTION)`, is still the
    /// socket's owner's to do.
    ///
    /// # Errors
    /// Not a socket.
    pub fn ask(&self, socket: BorrowedFd<'_>, ask: &Ask) -> Result<()> {
        let mut raw = xcp_connection { ask: (*ask).into(), ..xcp_connection::default() };
        raw.ask.flags.0 |= xcp_ask_flags::XCP_ASK_OWN.0;
        self.connections
            .update(&socket.as_raw_fd().to_ne_bytes(), bytes_of(&raw), MapFlags::ANY)
            .map_err(|e| Error::because("cannot set how a socket behaves", e))
    }

    /// What connections have taken so far for their beginning, modulo 2^32.
    ///
    /// # Errors
    /// The map cannot be read; the endpoint is a kept one.
    pub fn taken(&self) -> Result<Start> {
        Ok(Start {
            window: self.start_taken(0)?,
            rest: self.start_taken(1)?,
            beginners: self.start_taken(2)?,
        })
    }

    /// Keeps counting, modulo 2^32, while connections that were asked to begin with what is lent
    /// and have the robust sender are limited by a bound of their own: by a queue that no router
    /// governs, or what looked like one.
    ///
    /// # Errors
    /// As [`Endpoint::taken`].
    pub fn bound(&self) -> Result<u32> {
        self.start_taken(3)
    }

    fn start_taken(&self, entry: u32) -> Result<u32> {
        let (_, taken) = self.start()?;
        let bytes = taken
            .lookup(&entry.to_ne_bytes(), MapFlags::ANY)
            .map_err(|e| Error::because("cannot read what was lent", e))?;
        Ok(bytes.and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes))
    }

    /// Lends packets to connections that begin and were asked to ([`Ask::start`]): until what they
    /// have taken reaches this (bpf/endpoint_start.h). `beginners`: how many are to share what is
    /// left. `rtt`: the round trip in which what is lent can be on the way.
    ///
    /// # Errors
    /// The map cannot be written; the endpoint is a kept one.
    pub fn lend(&self, until: Start, rtt: Duration) -> Result<()> {
        let rtt_us = u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX);
        let (limits, _) = self.start()?;
        for (account, limit) in
            [(0u32, until.window), (1, until.rest), (2, until.beginners), (3, rtt_us)]
        {
            limits
                .update(&account.to_ne_bytes(), &limit.to_ne_bytes(), MapFlags::ANY)
                .map_err(|e| Error::because("cannot lend packets to connections that begin", e))?;
        }
        Ok(())
    }

    fn start(&self) -> Result<(&MapHandle, &MapHandle)> {
        let [limits, taken] =
            self.start.as_ref().ok_or_else(|| Error::new("a kept endpoint lends nothing"))?;
        Ok((limits, taken))
    }

    /// Where it is said whose sockets are: a link is shared among these then, however many sockets
    /// they have. To be had once, and not of a kept endpoint.
    pub fn subscribers(&mut self) -> Option<Subscribers> {
        self.whose.take().map(Subscribers::new)
    }

    /// One socket's XCP; `None` where it has none.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn connection(&self, socket: BorrowedFd<'_>) -> Result<Option<Connection>> {
        let key = socket.as_raw_fd().to_ne_bytes();
        let cannot = |e| Error::because("cannot read a connection", e);
        let bytes = self.connections.lookup(&key, MapFlags::ANY).map_err(cannot)?;
        let Some(raw) = bytes.as_deref().and_then(from_bytes::<xcp_connection>) else {
            return Ok(None);
        };
        let robust = match &self.robust {
            Some(map) if raw.ask.has(xcp_ask_flags::XCP_ASK_ROBUST) => {
                map.lookup(&key, MapFlags::ANY).map_err(cannot)?
            }
            _ => None,
        };
        let robust = robust.as_deref().and_then(from_bytes::<xcp_robust_connection>);
        Ok(Some(Connection::new(&raw, robust.map(|r| r.sender).as_ref())))
    }

    /// Takes away what is noted of a socket, as if there had been no memory for it: for tests.
    ///
    /// # Errors
    /// Nothing is noted.
    pub fn forget(&self, socket: BorrowedFd<'_>) -> Result<()> {
        let key = socket.as_raw_fd().to_ne_bytes();
        self.connections.delete(&key).map_err(|e| Error::because("cannot forget a connection", e))
    }

    /// Counters since the programs were loaded.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn counts(&self) -> Result<EndpointCounts> {
        let raw: xcp_endpoint_counts =
            read_only_entry(&self.counts, MapFlags::ANY, "the endpoint's counters")?;
        Ok(EndpointCounts {
            agreed: raw.agreed,
            fallen_peer: raw.fallen_peer,
            fallen_silent: raw.fallen_silent,
            fallen_late: raw.fallen_late,
            malformed: raw.malformed,
        })
    }

    /// Whether [`Endpoint::connections`] are those of all network namespaces.
    #[must_use]
    pub fn sees_everywhere(&self) -> bool {
        self.everywhere
    }

    /// All connections that have anything to do with XCP, of all network namespaces; of the
    /// caller's where the kernel tells of no others ([`Endpoint::sees_everywhere`]).
    ///
    /// # Errors
    /// The iterator cannot be read.
    pub fn connections(&self) -> Result<Vec<Shown>> {
        let bytes = self
            .show
            .read_iterator()
            .map_err(|e| Error::because("cannot list the connections", e))?;
        let records = bytes
            .chunks_exact(std::mem::size_of::<xcp_record>())
            .filter_map(from_bytes::<xcp_record>);
        let ours = records.filter(|xcp_record { shown: xcp_shown { connection, .. }, .. }| {
            connection.state != xcp_connection_state::XCP_UNTOUCHED
                || connection.ask.has(xcp_ask_flags::XCP_ASK_OWN)
        });
        Ok(ours.map(|raw| Shown::from(&raw)).collect())
    }

    /// Keeps everything in a directory of a BPF file system, so that it outlives this process.
    /// `cgroup`: what was attached to, for [`Endpoint::about`].
    ///
    /// # Errors
    /// The directory is not on a BPF file system, or not empty.
    pub(crate) fn pin(&self, directory: &Directory, cgroup: &Path) -> Result<()> {
        let about = xcp_about {
            name: c_text(self.name.as_bytes()),
            fallback: c_text(self.fallback.as_bytes()),
            cgroup: c_text(cgroup.as_os_str().as_encoded_bytes()),
            no_room: match self.no_room {
                None => xcp_no_room::XCP_ROOM,
                Some(NoRoom::Refused) => xcp_no_room::XCP_ROOM_REFUSED,
                Some(NoRoom::NoTcx) => xcp_no_room::XCP_ROOM_NO_TCX,
            },
        };
        write_only_entry(&self.about, MapFlags::ANY, &about, "the endpoint's notes")?;
        for (name, object) in [
            ("connections", self.connections.as_fd()),
            ("counts", self.counts.as_fd()),
            ("about", self.about.as_fd()),
            ("endpoint", self.programs.endpoint.as_fd()),
        ] {
            link::pin(object, directory, name)?;
        }
        for (name, program) in ROOM.iter().zip(self.programs.room.iter().flatten()) {
            link::pin(program.as_fd(), directory, name)?;
        }
        self.show.pin(directory, if self.everywhere { SHOW } else { SHOW_HERE })?;
        for (number, link) in self.cgroups.iter().enumerate() {
            link.pin(directory, &format!("cgroup_{number}"))?;
        }
        for (number, link) in self.devices.iter().enumerate() {
            link.pin(directory, &format!("device_{number}"))?;
        }
        self.congestion.pin(directory, "congestion")
    }

    /// The endpoint that was kept in a directory. Dropping the value leaves everything where it is.
    ///
    /// # Errors
    /// Nothing, or only a part of it, is kept there.
    pub(crate) fn open(directory: &Directory) -> Result<Self> {
        hush();
        let several = |prefix: &str| -> Result<Vec<Link>> {
            let names = (0..).map(|n| format!("{prefix}_{n}"));
            names
                .take_while(|name| directory.has(name))
                .map(|name| Link::open(directory, &name))
                .collect()
        };
        let everywhere = !directory.has(SHOW_HERE);
        let about_map = link::open_map(directory, "about")?;
        let raw = read_only_entry::<xcp_about>(&about_map, MapFlags::ANY, "the endpoint's notes")?;
        let about: About = (&raw).into();
        Ok(Self {
            name: about.name,
            fallback: about.fallback,
            congestion: Link::open(directory, "congestion")?,
            show: Link::open(directory, if everywhere { SHOW } else { SHOW_HERE })?,
            listeners: None,
            start: None,
            whose: None,
            cgroups: several("cgroup")?,
            devices: several("device")?,
            connections: link::open_map(directory, "connections")?,
            robust: None,
            counts: link::open_map(directory, "counts")?,
            about: about_map,
            programs: Programs {
                endpoint: link::open(directory, "endpoint")?,
                room: match ROOM {
                    [ethernet, bare] if directory.has(ethernet) => {
                        Some([link::open(directory, ethernet)?, link::open(directory, bare)?])
                    }
                    _ => None,
                },
            },
            no_room: match raw.no_room {
                xcp_no_room::XCP_ROOM_REFUSED => Some(NoRoom::Refused),
                xcp_no_room::XCP_ROOM_NO_TCX => Some(NoRoom::NoTcx),
                _ => None,
            },
            everywhere,
        })
    }

    /// What was noted when it was kept.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn about(&self) -> Result<About> {
        Ok((&read_only_entry::<xcp_about>(&self.about, MapFlags::ANY, "the endpoint's notes")?)
            .into())
    }

    /// Takes everything off for good, pinned or not; the directory's files are the caller's to
    /// remove. Connections that use it go on as the fallback.
    pub fn detach(self) {
        for link in self.cgroups.iter().chain(&self.devices) {
            link.detach();
        }
        self.congestion.detach();
    }
}

impl From<&xcp_about> for About {
    fn from(raw: &xcp_about) -> Self {
        let text = |chars: &[i8]| {
            let bytes: Vec<u8> =
                chars.iter().map(|char| *char as u8).take_while(|byte| *byte != 0).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Self { name: text(&raw.name), fallback: text(&raw.fallback), cgroup: text(&raw.cgroup) }
    }
}

/// As much of a text as there is room for, zeros behind it.
fn c_text<const N: usize>(text: &[u8]) -> [i8; N] {
    std::array::from_fn(|at| text.get(at).map_or(0, |byte| *byte as i8))
}
