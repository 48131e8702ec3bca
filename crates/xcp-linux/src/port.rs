//! What the router programs and their loaders share: the law's state with what guards it, the
//! counters, the settings; and loading the program that a law needs.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};

use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{MapFlags, MapHandle};
use xcp_engine::{POLICER_WORDS, Policer, RobustRouter};

use crate::error::{Error, Result};
use crate::object::{Plain, cast, handle, read_only_entry, write_only_entry};
use crate::police::{self, Police};
use crate::programs::robust::RobustSkelBuilder;
use crate::programs::router::RouterSkelBuilder;
use crate::qdisc;
use crate::router::RouterCounts;
use crate::shared::{xcp_control, xcp_port, xcp_port_counts, xcp_port_others, xcp_robust_port};
use crate::urgent::{self, Bound};

impl xcp_port_others {
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

fn counted(counts: &xcp_port_counts, others: &xcp_port_others, steered: u64) -> RouterCounts {
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

impl Guarded for xcp_port {
    fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl xcp_port {
    pub fn new(router: &xcp_engine::Router, policer: Option<&Policer>) -> Self {
        let none = xcp_port_others { least_backlog: u64::MAX, ..xcp_port_others::default() };
        Self {
            sequence: 0,
            router: cast(router.words()),
            counts: xcp_port_counts::default(),
            told: none,
            others: none,
            policer: policer.map_or_else(Default::default, |policer| cast(policer.words())),
        }
    }

    /// State of the policer, as raw words.
    pub fn policer(&self) -> [u64; POLICER_WORDS] {
        cast(&self.policer)
    }

    /// The law's state, and the counters.
    pub fn parts(&self) -> (xcp_engine::Router, RouterCounts) {
        (xcp_engine::Router::from_words(cast(&self.router)), counted(&self.counts, &self.others, 0))
    }
}

impl Guarded for xcp_robust_port {
    fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl xcp_robust_port {
    pub fn new(router: &RobustRouter) -> Self {
        Self { router: cast(router.words()), ..Self::default() }
    }

    /// The law's state, and the counters.
    pub fn parts(&self) -> (RobustRouter, RouterCounts) {
        // What the two programs have in common has a type in each.
        let [others, missed] = [&self.others, &self.missed].map(cast::<_, xcp_port_others>);
        (
            RobustRouter::from_words(&cast(&self.router)),
            counted(&cast(&self.counts), &others.plus(&missed), self.steered),
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

impl xcp_control {
    pub fn new(
        bytes_per_sec: u64,
        police: Option<&Police>,
        law_share: u16,
        calendar: bool,
    ) -> Self {
        let law_share = law_share.clamp(1, 1000).into();
        let control = Self {
            capacity: part(bytes_per_sec, law_share),
            law_share,
            calendar: calendar.into(),
            ..Self::default()
        };
        police.map_or(control, |police| control.policed(police))
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
    let cannot_open = |e: libbpf_rs::Error| Error::because("cannot open the router program", e);
    let refused = |e: libbpf_rs::Error| Error::because("the kernel rejects the router program", e);
    let held = |fd: std::io::Result<OwnedFd>| {
        fd.map_err(|e| Error::because("cannot hold the router program", e))
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
