//! What the router programs and their loaders share: the law's state with what guards it, the
//! counters, the settings; and loading the program that a law needs.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};

use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{MapFlags, MapHandle};
use xcp_engine::{POLICER_WORDS, Policer, ROBUST_WORDS, ROUTER_WORDS, RobustRouter};

use crate::error::{Error, Result};
use crate::object::{Plain, handle, read_only_entry, write_only_entry};
use crate::police::{self, Noted, Police};
use crate::programs::robust::RobustSkelBuilder;
use crate::programs::router::RouterSkelBuilder;
use crate::qdisc;
use crate::router::RouterCounts;
use crate::urgent::{self, Bound};

/// `struct xcp_port_counts` of bpf/router.h.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct PortCounts {
    processed: u64,
    processed_bytes: u64,
    lowered: u64,
    backlog: u64,
    backlog_max: u64,
}

/// `struct xcp_port_others` of bpf/router.h.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct PortOthers {
    packets: u64,
    bytes: u64,
    returned: u64,
    returned_bytes: u64,
    fragments: u64,
    malformed: u64,
    unreadable: u64,
    contended: u64,
    least_backlog: u64,
}

impl PortOthers {
    fn plus(&self, more: &Self) -> Self {
        Self {
            packets: self.packets + more.packets,
            bytes: self.bytes + more.bytes,
            returned: self.returned + more.returned,
            returned_bytes: self.returned_bytes + more.returned_bytes,
            fragments: self.fragments + more.fragments,
            malformed: self.malformed + more.malformed,
            unreadable: self.unreadable + more.unreadable,
            contended: self.contended + more.contended,
            least_backlog: self.least_backlog.min(more.least_backlog),
        }
    }
}

fn counted(counts: &PortCounts, others: &PortOthers, steered: u64) -> RouterCounts {
    RouterCounts {
        processed: counts.processed,
        processed_bytes: counts.processed_bytes,
        lowered: counts.lowered,
        returned: others.returned,
        returned_bytes: others.returned_bytes,
        // Two counters that are read while packets pass: one may be ahead of the other.
        other: others.packets.saturating_sub(others.returned),
        other_bytes: others.bytes.saturating_sub(others.returned_bytes),
        fragments: others.fragments,
        malformed: others.malformed,
        unreadable: others.unreadable,
        contended: others.contended,
        steered,
        backlog: counts.backlog,
        backlog_max: counts.backlog_max,
    }
}

/// What a router's map holds, under its sequence lock.
pub(crate) trait Guarded: Plain {
    fn sequence(&self) -> u64;
}

/// `struct xcp_port` of bpf/router.h.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Port {
    sequence: u64,
    router: [u64; ROUTER_WORDS],
    counts: PortCounts,
    told: PortOthers,
    others: PortOthers,
    policer: [u64; POLICER_WORDS],
}

// SAFETY: repr(C), 8-byte words: no padding; every pattern is valid.
unsafe impl Plain for Port {}

impl Guarded for Port {
    fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl Port {
    pub fn new(router: &xcp_engine::Router, policer: Option<&Policer>) -> Self {
        let none = PortOthers { least_backlog: u64::MAX, ..PortOthers::default() };
        Self {
            sequence: 0,
            router: *router.words(),
            counts: PortCounts::default(),
            told: none,
            others: none,
            policer: policer.map_or([0; POLICER_WORDS], |policer| *policer.words()),
        }
    }

    /// State of the policer, as raw words.
    pub fn policer(&self) -> &[u64; POLICER_WORDS] {
        &self.policer
    }

    /// The law's state, and the counters.
    pub fn parts(&self) -> (xcp_engine::Router, RouterCounts) {
        (xcp_engine::Router::from_words(self.router), counted(&self.counts, &self.others, 0))
    }
}

/// `struct xcp_robust_port` of bpf/robust.bpf.c.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RobustPort {
    sequence: u64,
    router: [u64; ROBUST_WORDS],
    counts: PortCounts,
    others: PortOthers,
    missed: PortOthers,
    steered: u64,
}

// SAFETY: as for `Port`.
unsafe impl Plain for RobustPort {}

impl Guarded for RobustPort {
    fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl RobustPort {
    pub fn new(router: &RobustRouter) -> Self {
        Self {
            sequence: 0,
            router: *router.words(),
            counts: PortCounts::default(),
            others: PortOthers::default(),
            missed: PortOthers::default(),
            steered: 0,
        }
    }

    /// The law's state, and the counters.
    pub fn parts(&self) -> (RobustRouter, RouterCounts) {
        (
            RobustRouter::from_words(&self.router),
            counted(&self.counts, &self.others.plus(&self.missed), self.steered),
        )
    }
}

/// How often a reader tries to find the state between two packets.
const READ_TRIES: u32 = 10_000;

/// The states and the counters, of one moment: what lies between two reads of the same even
/// sequence number. A router so busy that there is never such a moment is read as it comes.
pub(crate) fn read<P: Guarded>(map: &MapHandle) -> Result<P> {
    let read = || read_only_entry::<P>(map, MapFlags::ANY, "the router's state");
    let mut before = read()?;
    for _ in 0..READ_TRIES {
        let port = read()?;
        let after = read()?;
        if before.sequence() == after.sequence() && before.sequence() % 2 == 0 {
            return Ok(port);
        }
        before = after;
    }
    Ok(before)
}

/// `struct xcp_control` of bpf/router.h.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Control {
    /// Capacity of the link, bytes/s.
    pub capacity: u64,
    /// Whether the clsact hook was not there before: then it goes with the router.
    pub made_clsact: u64,
    pub noted: Noted,
    /// Thousandths of the link's capacity that the law has.
    pub law_share: u64,
    /// Whether the program is bpf/robust.bpf.c's.
    pub calendar: u64,
}

// SAFETY: words.
unsafe impl Plain for Control {}

impl Control {
    pub fn new(
        bytes_per_sec: u64,
        police: Option<&Police>,
        law_share: u16,
        calendar: bool,
    ) -> Self {
        let law_share = law_share.clamp(1, 1000).into();
        Self {
            capacity: part(bytes_per_sec, law_share),
            made_clsact: 0,
            noted: Noted::of(police),
            law_share,
            calendar: calendar.into(),
        }
    }

    /// The same for another capacity of the link.
    pub fn at(self, bytes_per_sec: u64) -> Self {
        Self { capacity: part(bytes_per_sec, self.law_share), ..self }
    }
}

/// So many thousandths, at least 1: what is left of a capacity.
fn part(bytes_per_sec: u64, thousandths: u64) -> u64 {
    let part = u128::from(bytes_per_sec) * u128::from(thousandths) / 1000;
    u64::try_from(part).unwrap_or(u64::MAX).max(1)
}

/// What a program is told before it is loaded.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'p> {
    /// Of the link layer's header; `None` leaves the program's own.
    pub link_bytes: Option<u32>,
    /// Whether time and queue come with the packets.
    pub rehearsal: bool,
    /// Whether there are two queues.
    pub classes: bool,
    pub police: Option<&'p Police>,
    /// Whether some packets may go first; not in the program with a calendar.
    pub urgent: bool,
}

/// A loaded program and its maps.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub program: OwnedFd,
    pub port: MapHandle,
    pub control: MapHandle,
    /// The policer's table, in the program that knows one.
    pub policed: Option<MapHandle>,
    /// What tells it what is urgent, if it is to know.
    pub bound: Option<Bound>,
}

impl Loaded {
    /// Sets the law's state, and the counters.
    pub fn begin<P: Guarded>(&self, port: &P) -> Result<()> {
        write_only_entry(&self.port, MapFlags::ANY, port, "the router's state")
    }
}

/// Loads bpf/router.bpf.c's program, or, for a law with a calendar, bpf/robust.bpf.c's.
pub(crate) fn load(calendar: bool, settings: Settings<'_>) -> Result<Loaded> {
    let cannot_open = |e: libbpf_rs::Error| Error::because("cannot open the router program", &e);
    let refused = |e: libbpf_rs::Error| Error::because("the kernel rejects the router program", &e);
    let held = |fd: std::io::Result<OwnedFd>| {
        fd.map_err(|e| Error::because("cannot hold the router program", &e))
    };
    let mut object = MaybeUninit::uninit();
    if calendar {
        let mut open = RobustSkelBuilder::default().open(&mut object).map_err(cannot_open)?;
        if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
            rodata.link_bytes = settings.link_bytes.unwrap_or(rodata.link_bytes);
            rodata.rehearsal = settings.rehearsal.into();
        }
        let skel = open.load().map_err(refused)?;
        return Ok(Loaded {
            program: held(skel.progs.xcp_robust.as_fd().try_clone_to_owned())?,
            port: handle(&skel.maps.port)?,
            control: handle(&skel.maps.control)?,
            policed: None,
            bound: None,
        });
    }
    let mut open = RouterSkelBuilder::default().open(&mut object).map_err(cannot_open)?;
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.link_bytes = settings.link_bytes.unwrap_or(rodata.link_bytes);
        rodata.rehearsal = settings.rehearsal.into();
        if settings.classes {
            rodata.xcp_class = qdisc::XCP_CLASS;
            rodata.others_class = qdisc::OTHERS_CLASS;
        }
    }
    police::prepare(&mut open, settings.police)?;
    if settings.urgent {
        urgent::prepare(&mut open)?;
    }
    let skel = open.load().map_err(refused)?;
    Ok(Loaded {
        program: held(skel.progs.xcp_router.as_fd().try_clone_to_owned())?,
        port: handle(&skel.maps.port)?,
        control: handle(&skel.maps.control)?,
        policed: Some(handle(&skel.maps.policed)?),
        bound: settings.urgent.then(|| Bound::new(&skel)).transpose()?,
    })
}
