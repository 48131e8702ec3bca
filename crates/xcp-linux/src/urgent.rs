//! What goes first on a router's device, up to a bound (`bpf/router_urgent.h`): how the program is
//! told, and how what it has done is read. The two queues are `qdisc`'s.

use libbpf_rs::{MapFlags, MapHandle};

use crate::error::{Error, Result};
use crate::object::{handle, read_only_entry, write_only_entry};
use crate::programs::router::{OpenRouterSkel, RouterSkel};
use crate::qdisc;
use crate::shared::{xcp_urgency, xcp_urgent};

/// Packets that go first, and how many may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Urgent {
    /// A bit for each DSCP, the lowest for 0.
    pub codes: u64,
    /// The bound: thousandths of the link's capacity.
    pub share: u16,
}

impl Urgent {
    /// Whether packets with this DSCP are.
    #[must_use]
    pub fn has(&self, dscp: u8) -> bool {
        dscp < 64 && self.codes >> dscp & 1 == 1
    }
}

/// What passed with such a mark, in packets (a super-packet counts as its segments).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct UrgentCounts {
    /// Packets that were sent first.
    pub packets: u64,
    /// Bytes of those packets.
    pub bytes: u64,
    /// Were beyond the bound, and went with the others.
    pub excess: u64,
    /// Bytes of those packets.
    pub excess_bytes: u64,
}

/// Where a program that may tell urgent packets apart is told which, and what it has counted.
#[derive(Debug)]
pub(crate) struct Bound {
    urgency: MapHandle,
    account: MapHandle,
}

/// Lets a program that is about to be loaded tell urgent packets apart.
pub(crate) fn prepare(open: &mut OpenRouterSkel<'_>) -> Result<()> {
    let rodata = open
        .maps
        .rodata_data
        .as_deref_mut()
        .ok_or_else(|| Error::new("the router program has no settings"))?;
    rodata.urgent_class = qdisc::URGENT_CLASS;
    let flows = rodata.urgent_places;
    open.maps
        .urgent_flows
        .set_max_entries(flows)
        .map_err(|e| Error::because(format_args!("cannot make a table for {flows} flows"), e))
}

impl Bound {
    pub fn new(skel: &RouterSkel<'_>) -> Result<Self> {
        Ok(Self { urgency: handle(&skel.maps.urgency)?, account: handle(&skel.maps.urgent)? })
    }

    pub fn set(&self, urgent: Option<Urgent>) -> Result<()> {
        let value = urgent.map_or(xcp_urgency::default(), |urgent| xcp_urgency {
            codes: urgent.codes,
            share: urgent.share.into(),
        });
        write_only_entry(&self.urgency, MapFlags::ANY, &value, "what is urgent to the router")
    }

    pub fn counts(&self) -> Result<UrgentCounts> {
        let account: xcp_urgent =
            read_only_entry(&self.account, MapFlags::ANY, "the router's urgent packets")?;
        Ok(UrgentCounts {
            packets: account.packets,
            bytes: account.bytes,
            excess: account.excess,
            excess_bytes: account.excess_bytes,
        })
    }
}
