//! The shaper in front of a device: a rate, and a queue of a chosen length in which packets wait
//! for it. The XCP router reckons with that rate and looks at that queue.
//!
//! Where asked, there are two queues behind the shaper, one for XCP's packets and one for all
//! others ([`Others`]): two classes of htb's, each with a share of the rate of its own, and what
//! one does not use is the other's. Which class a packet belongs to the router's program says.
//!
//! Or one for what is urgent and goes first, and one for the rest ([`install_urgent`]).
//!
//! A rate counts bytes of Ethernet frames: the IP packet and 14 bytes; and what the link adds to
//! each, if that is said ([`set_overhead`]).

mod look;
mod options;

pub use look::{QdiscInfo, QdiscStats, class_stats, root, stats};
use options::Rate;

use crate::netlink::qdiscs::{ROOT, Wanted};
use crate::netlink::{Error, Netlink, Result};

/// Whose a shaper of ours is. Each has a number of its own, by which it is known again: one leaves
/// the other's alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Whose {
    /// A router's: of `xcpnet router`, or of an emulated network.
    Router,
    /// A proxy's, of `xcpnet pep`.
    Proxy,
}

impl Whose {
    /// Its number: "xc", "xp".
    const fn handle(self) -> u32 {
        match self {
            Self::Router => 0x7863 << 16,
            Self::Proxy => 0x7870 << 16,
        }
    }

    fn of(handle: u32) -> Option<Self> {
        [Self::Router, Self::Proxy].into_iter().find(|whose| whose.handle() == handle)
    }

    /// The class of XCP's packets, where there are two. The router's program writes it into
    /// `skb->priority`, which htb takes for a class (htb_classify).
    const fn xcp_class(self) -> u32 {
        self.handle() | 2
    }

    /// The class of all others. Packets that the program never saw go there, too.
    const fn others_class(self) -> u32 {
        self.handle() | 3
    }

    /// The classes, and the numbers of their queues. By its number the program finds XCP's
    /// (`XCP_CLASS_QUEUE` of bpf/router.h).
    const fn queues(self) -> [(u32, u32); 2] {
        [(self.xcp_class(), 0x7864 << 16), (self.others_class(), 0x7865 << 16)]
    }
}

pub(crate) const XCP_CLASS: u32 = Whose::Router.xcp_class();
pub(crate) const OTHERS_CLASS: u32 = Whose::Router.others_class();
/// The first of them where what is urgent has a queue of its own; the other one is the rest's.
pub(crate) const URGENT_CLASS: u32 = Whose::Proxy.xcp_class();

/// What holds packets back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shaper {
    /// Hierarchical token bucket, with one class for everything. Sends a packet that the device
    /// will cut up (GSO) as a whole.
    Htb,
    /// Token bucket filter. Cuts up packets that are larger than its burst.
    Tbf,
}

impl Shaper {
    /// Its name in the kernel.
    pub fn name(self) -> &'static str {
        match self {
            Self::Htb => "htb",
            Self::Tbf => "tbf",
        }
    }

    fn of(kind: &str) -> Option<Self> {
        [Self::Htb, Self::Tbf].into_iter().find(|shaper| shaper.name() == kind)
    }
}

/// How much the queue holds; what comes on top of it is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Packets (pfifo). One that the device will cut up counts once.
    Packets(u32),
    /// Bytes of Ethernet frames (bfifo).
    Bytes(u32),
}

impl Limit {
    fn kind(self) -> &'static str {
        match self {
            Self::Packets(_) => "pfifo",
            Self::Bytes(_) => "bfifo",
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::Packets(limit) | Self::Bytes(limit) => limit,
        }
    }
}

/// Whose packets are sent where XCP's and all others wait in queues of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Others {
    /// The others', while there are any.
    First,
    /// XCP's, while there are any.
    Last,
    /// While both have packets, XCP's have this share of the rate, in thousandths, 1 to 999.
    Fair(u16),
}

/// What the class that has to wait gets all the same, in thousandths of the rate: without a rate
/// there is no class.
const LEAST: u16 = 1;

impl Others {
    /// XCP's share, from 0.001 to 0.999.
    #[must_use]
    pub fn fair(share: f64) -> Self {
        Self::Fair(((share * 1000.0).round() as u16).clamp(LEAST, 1000 - LEAST))
    }

    /// Thousandths of the rate that are XCP's, and whose turn comes first, XCP's and the others'.
    fn terms(self) -> (u16, [u32; 2]) {
        match self {
            Self::First => (LEAST, [1, 0]),
            Self::Last => (1000 - LEAST, [0, 1]),
            Self::Fair(share) => (share.clamp(LEAST, 1000 - LEAST), [0, 0]),
        }
    }

    /// What was asked for where this is what is found.
    fn of(xcp_bps: u64, whole_bps: u64, priorities: [u32; 2]) -> Self {
        match priorities {
            [1, 0] => Self::First,
            [0, 1] => Self::Last,
            _ => Self::fair(xcp_bps as f64 / whole_bps.max(1) as f64),
        }
    }
}

/// Where the queue of a shaper hangs: its class number 1. htb's is ours to number, tbf's always has
/// this one.
fn queue_of(handle: u32) -> u32 {
    handle | 1
}

/// Puts a shaper in front of a device, in the place of whatever is there (look with [`root`]
/// first), but for one of ours that is another's. If it fails half-way nothing of it stays.
pub fn install(
    nl: &mut Netlink,
    index: u32,
    whose: Whose,
    shaper: Shaper,
    rate_bps: u64,
    limit: Limit,
) -> Result<()> {
    let rate = rate(nl, index, rate_bps)?;
    replace(nl, index, whose, |nl| {
        let root = Wanted { index, handle: whose.handle(), parent: ROOT, kind: shaper.name() };
        match shaper {
            Shaper::Htb => {
                nl.set_qdisc(&root, |request| options::htb(request, queue_of(0)))?;
                set_class(nl, index, whose, &rate)?;
            }
            // The queue that this makes is replaced next.
            Shaper::Tbf => {
                nl.set_qdisc(&root, |request| options::tbf(request, &rate, rate.burst))?
            }
        }
        set_queues(nl, index, whose, limit, None)
    })
}

/// As [`install`], a router's htb with a queue of this limit for XCP's packets and another one for
/// all others. Without the router's program all packets are others.
pub fn install_classes(
    nl: &mut Netlink,
    index: u32,
    rate_bps: u64,
    limit: Limit,
    others: Others,
) -> Result<()> {
    install_two(nl, index, Whose::Router, rate_bps, limit, others)
}

/// As [`install`], a proxy's htb with a queue of this limit for urgent packets, which are sent while
/// there are any, and another one for the rest. Without the router's program nothing is urgent; that
/// it is not too much is the program's business, too.
pub fn install_urgent(nl: &mut Netlink, index: u32, rate_bps: u64, limit: Limit) -> Result<()> {
    // Which class has the program's packets does not matter to the shaper.
    install_two(nl, index, Whose::Proxy, rate_bps, limit, Others::Last)
}

fn install_two(
    nl: &mut Netlink,
    index: u32,
    whose: Whose,
    rate_bps: u64,
    limit: Limit,
    others: Others,
) -> Result<()> {
    let rate = rate(nl, index, rate_bps)?;
    replace(nl, index, whose, |nl| {
        let (handle, kind) = (whose.handle(), Shaper::Htb.name());
        nl.set_qdisc(&Wanted { index, handle, parent: ROOT, kind }, |request| {
            options::htb(request, whose.others_class() & 0xffff)
        })?;
        set_class(nl, index, whose, &rate)?;
        set_classes(nl, index, whose, &rate, others)?;
        set_queues(nl, index, whose, limit, Some(others))
    })
}

/// Neither shaper can become the other, and htb does not even become itself again.
fn replace(
    nl: &mut Netlink,
    index: u32,
    whose: Whose,
    put: impl FnOnce(&mut Netlink) -> Result<()>,
) -> Result<()> {
    let there = root(nl, index)?;
    if there.whose.is_some_and(|other| other != whose)
        && let Some(why) = there.somebody_elses(&nl.link(index)?, whose)
    {
        let doing = format!("put a shaper in front of the network device number {index}");
        return Err(Error::refused(doing, why));
    }
    remove(nl, index, whose)?;
    put(nl).inspect_err(|_| {
        // The first error is the one to tell.
        let _ = remove(nl, index, whose);
    })
}

/// Changes the rate. What is in the queue stays there.
pub fn change_rate(
    nl: &mut Netlink,
    index: u32,
    whose: Whose,
    shaper: Shaper,
    rate_bps: u64,
) -> Result<()> {
    let info = own(nl, index, whose, "change the rate")?;
    if info.shaper != Some(shaper) {
        let why = format!("its shaper is {}, not {}", info.kind, shaper.name());
        return Err(Error::refused(
            format!("change the rate of the network device number {index}"),
            why,
        ));
    }
    let rate = rate(nl, index, rate_bps)?.with_overhead(info.overhead);
    set_rate(nl, index, whose, &info, shaper, rate)
}

/// Has a shaper of ours count so many bytes more for each frame: what the link adds to it. For a
/// packet that the device will cut up, they count once.
pub fn set_overhead(nl: &mut Netlink, index: u32, whose: Whose, overhead: u16) -> Result<()> {
    let info = own(nl, index, whose, "change the overhead")?;
    match (info.shaper, info.rate_bps) {
        (Some(shaper), Some(rate_bps)) if info.overhead != overhead => {
            let rate = rate(nl, index, rate_bps)?.with_overhead(overhead);
            set_rate(nl, index, whose, &info, shaper, rate)
        }
        _ => Ok(()),
    }
}

fn set_rate(
    nl: &mut Netlink,
    index: u32,
    whose: Whose,
    info: &QdiscInfo,
    shaper: Shaper,
    rate: Rate,
) -> Result<()> {
    match shaper {
        Shaper::Htb => {
            set_class(nl, index, whose, &rate)?;
            info.others.map_or(Ok(()), |others| set_classes(nl, index, whose, &rate, others))
        }
        Shaper::Tbf => {
            let root = Wanted { index, handle: whose.handle(), parent: ROOT, kind: shaper.name() };
            // A tbf that is changed sets the limit of its queue to its own number, whatever the
            // unit (tbf_change, fifo_set_limit).
            let limit = info.limit.map_or(rate.burst, Limit::number);
            nl.set_qdisc(&root, |request| options::tbf(request, &rate, limit))
        }
    }
}

/// Changes how much the queue holds. What is in it stays there, unless the unit changes.
pub fn change_limit(nl: &mut Netlink, index: u32, whose: Whose, limit: Limit) -> Result<()> {
    let info = own(nl, index, whose, "change the queue's limit")?;
    if info.others.is_some() && info.limit.is_none_or(|before| before.kind() != limit.kind()) {
        // A queue with a number cannot be replaced by one of another kind with the same number.
        for (parent, handle) in whose.queues() {
            // Somebody may have taken it away.
            if nl
                .get_qdisc(index, parent, |queue| Some(queue.handle))
                .is_ok_and(|found| found == Some(handle))
            {
                nl.delete_qdisc(index, handle, parent)?;
            }
        }
    }
    set_queues(nl, index, whose, limit, info.others)
}

/// Removes a shaper that [`install`] made; the kernel's default comes in its place. Anybody else's
/// stays.
pub fn remove(nl: &mut Netlink, index: u32, whose: Whose) -> Result<()> {
    if root(nl, index)?.whose != Some(whose) {
        return Ok(());
    }
    nl.delete_qdisc(index, whose.handle(), ROOT)
}

fn rate(nl: &mut Netlink, index: u32, rate_bps: u64) -> Result<Rate> {
    let rate = Rate::new(rate_bps, nl.link(index)?.mtu);
    if rate.bytes_per_s == 0 {
        let doing = format!("limit the network device number {index} to {rate_bps} bit/s");
        return Err(Error::refused(
            doing,
            "the kernel counts whole bytes per second: the minimum is 8 bit/s",
        ));
    }
    Ok(rate)
}

fn own(nl: &mut Netlink, index: u32, whose: Whose, what: &str) -> Result<QdiscInfo> {
    let info = root(nl, index)?;
    if info.whose == Some(whose) {
        return Ok(info);
    }
    let why = format!(
        "its queueing discipline is {}, which xcpnet did not install; change it with tc, or let \
         xcpnet install a shaper",
        info.kind
    );
    Err(Error::refused(format!("{what} of \"{}\"", nl.link(index)?.name), why))
}

fn set_class(nl: &mut Netlink, index: u32, whose: Whose, rate: &Rate) -> Result<()> {
    let (parent, kind) = (whose.handle(), Shaper::Htb.name());
    let class = Wanted { index, handle: queue_of(parent), parent, kind };
    nl.set_class(&class, |request| options::htb_class(request, rate, rate, 0))
}

/// The two classes below the one that has the rate.
fn set_classes(
    nl: &mut Netlink,
    index: u32,
    whose: Whose,
    rate: &Rate,
    others: Others,
) -> Result<()> {
    let (xcp, priorities) = others.terms();
    for (handle, share, priority) in
        [(whose.xcp_class(), xcp, priorities[0]), (whose.others_class(), 1000 - xcp, priorities[1])]
    {
        let (parent, kind) = (queue_of(whose.handle()), Shaper::Htb.name());
        let class = Wanted { index, handle, parent, kind };
        nl.set_class(&class, |request| {
            options::htb_class(request, &rate.share(share), rate, priority)
        })?;
    }
    Ok(())
}

fn set_queues(
    nl: &mut Netlink,
    index: u32,
    whose: Whose,
    limit: Limit,
    others: Option<Others>,
) -> Result<()> {
    let (one, two) = ([(queue_of(whose.handle()), 0)], whose.queues());
    for &(parent, handle) in if others.is_some() { &two[..] } else { &one[..] } {
        let queue = Wanted { index, handle, parent, kind: limit.kind() };
        nl.set_qdisc(&queue, |request| {
            // struct tc_fifo_qopt
            request.plain(&limit.number().to_ne_bytes());
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The programs take both numbers from packets' priorities.
    #[test]
    fn the_programs_know_both_numbers() {
        let header = include_str!("../../bpf/router.h");
        for (name, whose) in [("SHAPER", Whose::Router), ("PROXYS_SHAPER", Whose::Proxy)] {
            let line = format!("#define XCP_{name} {:#x}U\n", whose.handle() >> 16);
            assert!(header.contains(&line), "{line}");
        }
    }
}
