//! The shaper in front of a device: a rate, and a queue of a chosen length in which packets wait for it. The XCP router reckons with that rate and
//! looks at that queue.
//!
//! A rate counts bytes of Ethernet frames: the IP packet and 14 bytes.

mod look;
mod options;

pub use look::{QdiscInfo, QdiscStats, root, stats};
use options::Rate;

use crate::netlink::qdiscs::{ROOT, Wanted};
use crate::netlink::{Error, Netlink, Result};

/// The number of a shaper that [`install`] made, by which it is known again: "xc".
const HANDLE: u32 = 0x7863 << 16;

/// What holds packets back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shaper {
    /// Hierarchical token bucket, with one class for everything. Sends a packet that the device will cut up (GSO) as a whole.
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

/// Where the queue of a shaper hangs: its class number 1. htb's is ours to number, tbf's always has this one.
fn queue_of(handle: u32) -> u32 {
    handle | 1
}

/// Puts a shaper in front of a device, in the place of whatever is there (look with [`root`] first). If it fails half-way nothing of it stays.
pub fn install(nl: &mut Netlink, index: u32, shaper: Shaper, rate_bps: u64, limit: Limit) -> Result<()> {
    let rate = rate(nl, index, rate_bps)?;
    // Neither can become the other, and htb does not even become itself again.
    remove(nl, index)?;
    put(nl, index, shaper, &rate, limit).inspect_err(|_| {
        // The first error is the one to tell.
        let _ = remove(nl, index);
    })
}

fn put(nl: &mut Netlink, index: u32, shaper: Shaper, rate: &Rate, limit: Limit) -> Result<()> {
    let root = Wanted { index, handle: HANDLE, parent: ROOT, kind: shaper.name() };
    match shaper {
        Shaper::Htb => {
            nl.set_qdisc(&root, |request| options::htb(request, queue_of(0)))?;
            set_class(nl, index, rate)?;
        }
        // The queue that this makes is replaced next.
        Shaper::Tbf => nl.set_qdisc(&root, |request| options::tbf(request, rate, rate.burst))?,
    }
    set_queue(nl, index, limit)
}

/// Changes the rate. What is in the queue stays there.
pub fn change_rate(nl: &mut Netlink, index: u32, shaper: Shaper, rate_bps: u64) -> Result<()> {
    let info = own(nl, index, "change the rate")?;
    if info.shaper != Some(shaper) {
        let why = format!("its shaper is {}, not {}", info.kind, shaper.name());
        return Err(Error::refused(format!("change the rate of the network device number {index}"), why));
    }
    let rate = rate(nl, index, rate_bps)?;
    match shaper {
        Shaper::Htb => set_class(nl, index, &rate),
        Shaper::Tbf => {
            let root = Wanted { index, handle: HANDLE, parent: ROOT, kind: shaper.name() };
            // A tbf that is changed sets the limit of its queue to its own number, whatever the unit (tbf_change, fifo_set_limit).
            let limit = info.limit.map_or(rate.burst, Limit::number);
            nl.set_qdisc(&root, |request| options::tbf(request, &rate, limit))
        }
    }
}

/// Changes how much the queue holds. What is in it stays there, unless the unit changes.
pub fn change_limit(nl: &mut Netlink, index: u32, limit: Limit) -> Result<()> {
    own(nl, index, "change the queue's limit")?;
    set_queue(nl, index, limit)
}

/// Removes a shaper that [`install`] made; the kernel's default comes in its place. Anybody else's stays.
pub fn remove(nl: &mut Netlink, index: u32) -> Result<()> {
    if !root(nl, index)?.ours {
        return Ok(());
    }
    nl.delete_qdisc(index, HANDLE, ROOT)
}

fn rate(nl: &mut Netlink, index: u32, rate_bps: u64) -> Result<Rate> {
    let rate = Rate::new(rate_bps, nl.link(index)?.mtu);
    if rate.bytes_per_s == 0 {
        let doing = format!("limit the network device number {index} to {rate_bps} bit/s");
        return Err(Error::refused(doing, "the kernel counts whole bytes a second: the least is 8 bit/s"));
    }
    Ok(rate)
}

fn own(nl: &mut Netlink, index: u32, what: &str) -> Result<QdiscInfo> {
    let info = root(nl, index)?;
    if info.ours {
        return Ok(info);
    }
    let why = format!(
        "its queueing discipline is {}, which xcpnet did not put there; change it with tc, or let xcpnet install a shaper",
        info.kind
    );
    Err(Error::refused(format!("{what} of the network device number {index}"), why))
}

fn set_class(nl: &mut Netlink, index: u32, rate: &Rate) -> Result<()> {
    let class = Wanted { index, handle: queue_of(HANDLE), parent: HANDLE, kind: Shaper::Htb.name() };
    nl.set_class(&class, |request| options::htb_class(request, rate))
}

fn set_queue(nl: &mut Netlink, index: u32, limit: Limit) -> Result<()> {
    let queue = Wanted { index, handle: 0, parent: queue_of(HANDLE), kind: limit.kind() };
    nl.set_qdisc(&queue, |request| {
        // struct tc_fifo_qopt
        request.plain(&limit.number().to_ne_bytes());
    })
}
