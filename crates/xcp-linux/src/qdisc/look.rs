//! What a device's queueing discipline is and what it has counted.

use super::{Limit, OTHERS_CLASS, Others, Shaper, Whose, XCP_CLASS, options, queue_of};
use crate::netlink::message::{attribute, number};
use crate::netlink::qdiscs::{Described, ROOT};
use crate::netlink::{Device, Netlink, Result};

/// Number of the attribute with bytes and packets, in the counters (`TCA_STATS_BASIC`).
const BASIC: u16 = 1;
/// The one with the queue (`TCA_STATS_QUEUE`).
const QUEUE: u16 = 3;
/// The one with packets where 32 bits do not hold them (`TCA_STATS_PKT64`).
const PACKETS: u16 = 8;

/// What is at the root of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QdiscInfo {
    /// `htb`, `tbf`, `fq_codel`, `mq`, `noqueue`, ...
    pub kind: String,
    /// Its number; the major part is in the upper half. 0 for one that the kernel gave by itself.
    pub handle: u32,
    /// What of ours it is or could be.
    pub shaper: Option<Shaper>,
    /// To what it limits the device: the rate of a tbf, the ceiling of an htb that has one class at
    /// the top.
    pub rate_bps: Option<u64>,
    /// What it adds to each frame when it reckons with that rate, bytes.
    pub overhead: u16,
    /// The longest frame that a tbf lets through, bytes: its burst. It drops longer ones.
    pub longest_frame: Option<u32>,
    /// What the queue below the shaper holds at the most, if it is a pfifo or bfifo.
    pub limit: Option<Limit>,
    /// Whether XCP's packets and all others wait in queues of their own, and whose turn it is.
    pub others: Option<Others>,
    /// Whose it is if it was made by [`super::install`].
    pub whose: Option<Whose>,
    /// Whether the device's packets are spread over several queues, each with its own discipline.
    /// There is then no one queue to look at.
    pub multi_queue: bool,
}

impl QdiscInfo {
    /// Says so if this is a device's and somebody else's: a shaper may hold a whole configuration,
    /// and is not thrown away unasked. What the kernel gave by itself may be replaced.
    #[must_use]
    pub fn somebody_elses(&self, device: &Device, us: Whose) -> Option<String> {
        let Device { name, .. } = device;
        match self.whose {
            _ if self.handle == 0 => None,
            Some(whose) if whose == us => None,
            Some(Whose::Proxy) => Some(format!("{name} has the shaper of a proxy (xcpnet pep)")),
            Some(Whose::Router) => Some(format!("{name} has the shaper of an XCP router")),
            None => {
                let kind = &self.kind;
                Some(format!("{name} has a queueing discipline that somebody set up ({kind})"))
            }
        }
    }
}

/// What a queueing discipline has counted since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QdiscStats {
    /// Sent, Ethernet headers counted.
    pub bytes: u64,
    /// Sent; a packet that the device will cut up counts as its parts.
    pub packets: u64,
    /// Not taken into the queue, or thrown out of it. One that the device would have cut up counts
    /// once. Starts again at 0 after 2^32 - 1, as the rest does.
    pub drops: u32,
    /// How often there was something to send and no leave to.
    pub overlimits: u32,
    /// In the queue, Ethernet headers counted.
    pub backlog_bytes: u32,
    /// Packets in the queue; one that the device will cut up counts once.
    pub qlen: u32,
}

/// Looks at the root of a device.
pub fn root(nl: &mut Netlink, index: u32) -> Result<QdiscInfo> {
    let found = nl.get_qdisc(index, ROOT, |qdisc| {
        let kind = qdisc.kind()?;
        let shaper = Shaper::of(&kind);
        let tbf = qdisc.options().filter(|_| shaper == Some(Shaper::Tbf));
        Some(QdiscInfo {
            handle: qdisc.handle,
            shaper,
            rate_bps: tbf.and_then(options::tbf_rate_bps),
            overhead: tbf.and_then(options::tbf_overhead).unwrap_or_default(),
            longest_frame: tbf.and_then(options::tbf_burst),
            limit: None,
            others: None,
            whose: shaper.and_then(|_| Whose::of(qdisc.handle)),
            multi_queue: matches!(kind.as_str(), "mq" | "mqprio" | "taprio"),
            kind,
        })
    })?;
    let Some(mut info) = found else {
        // A device that is down has one that is built in (noop), which is not shown; the device
        // names it.
        let kind = nl.link(index)?.qdisc;
        return Ok(QdiscInfo {
            kind,
            handle: 0,
            shaper: None,
            rate_bps: None,
            overhead: 0,
            longest_frame: None,
            limit: None,
            others: None,
            whose: None,
            multi_queue: false,
        });
    };
    if info.shaper == Some(Shaper::Htb) {
        let top = |class: &Described<'_>| {
            let options = class.options().filter(|_| class.parent == ROOT)?;
            Some((options::htb_class_rate_bps(options)?, options::htb_class_overhead(options)?))
        };
        if let [(rate_bps, overhead)] = nl.classes(index, top)?[..] {
            info.rate_bps = Some(rate_bps);
            info.overhead = overhead;
        }
    }
    if let Some(whose) = info.whose
        && info.shaper == Some(Shaper::Htb)
    {
        let shares = nl.classes(index, |class| {
            Some((class.handle, options::htb_class_share(class.options()?)?))
        })?;
        let share_of = |handle| shares.iter().find(|share| share.0 == handle).map(|share| share.1);
        let both = (share_of(whose.xcp_class()), share_of(whose.others_class()), info.rate_bps);
        info.others = match both {
            (Some((xcp_bps, first)), Some((_, second)), Some(whole_bps)) => {
                Some(Others::of(xcp_bps, whole_bps, [first, second]))
            }
            _ => None,
        };
    }
    if info.whose.is_some() || info.shaper == Some(Shaper::Tbf) {
        let queue = match info.whose {
            Some(whose) if info.others.is_some() => whose.xcp_class(),
            _ => queue_of(info.handle),
        };
        info.limit = nl
            .get_qdisc(index, queue, |queue| {
                let limit = number(queue.options()?, 0)?;
                match queue.kind()?.as_str() {
                    "pfifo" => Some(Limit::Packets(limit)),
                    "bfifo" => Some(Limit::Bytes(limit)),
                    _ => None,
                }
            })
            .or_else(|e| if e.errno() == Some(libc::ENOENT) { Ok(None) } else { Err(e) })?;
    }
    Ok(info)
}

/// Reads the counters at the root of a device: one question and one answer, so that it can be asked
/// often. All are 0 where packets do not queue (noqueue) or where the device is down: nothing is
/// counted there.
///
/// A shaper counts what its queue drops as its own (htb_enqueue, tbf_enqueue: `qdisc_qstats_drop`
/// where the queue did not take a packet), so the root's number is all of them.
pub fn stats(nl: &mut Netlink, index: u32) -> Result<QdiscStats> {
    stats_of(nl, index, ROOT)
}

/// The counters of the two queues of a router's shaper with classes, XCP's and the others'.
pub fn class_stats(nl: &mut Netlink, index: u32) -> Result<[QdiscStats; 2]> {
    Ok([stats_of(nl, index, XCP_CLASS)?, stats_of(nl, index, OTHERS_CLASS)?])
}

fn stats_of(nl: &mut Netlink, index: u32, parent: u32) -> Result<QdiscStats> {
    let read = nl.get_qdisc(index, parent, |qdisc| {
        let counters = qdisc.statistics()?;
        let (basic, queue) = (attribute(counters, BASIC)?, attribute(counters, QUEUE)?);
        let many = attribute(counters, PACKETS).and_then(wide);
        Some(QdiscStats {
            bytes: wide(basic)?,
            packets: many.or_else(|| number(basic, 8).map(u64::from))?,
            qlen: number(queue, 0)?,
            backlog_bytes: number(queue, 4)?,
            drops: number(queue, 8)?,
            overlimits: number(queue, 16)?,
        })
    })?;
    Ok(read.unwrap_or_default())
}

fn wide(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?))
}
