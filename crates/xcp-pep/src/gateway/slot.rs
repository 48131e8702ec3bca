//! The numbers by which a gateway's proxy is known to the kernel: marks, routing table, queue, the
//! packet filter's tables. Each proxy of a network namespace has its own.

use serde::{Deserialize, Serialize};
use xcp_linux::netlink::Diversion;

/// The first proxy's table of the packet filter; the second's is `xcpnet_pep_2`.
pub const TABLE: &str = "xcpnet_pep";
/// The first one's lock (`owner.rs`).
pub const OWNER_TABLE: &str = "xcpnet_pep_owner";
/// Where the first one holds openings, and its routing table.
pub const QUEUE: u16 = 22_595;
/// Its routing rule's place.
const PRIORITY: u32 = 1_900;

/// A proxy's place among those of a network namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "u8", into = "u8")]
pub struct Slot(u8);

impl From<u8> for Slot {
    fn from(number: u8) -> Self {
        Self(number % Self::MOST)
    }
}

impl From<Slot> for u8 {
    fn from(slot: Slot) -> Self {
        slot.0
    }
}

impl Slot {
    /// Proxies in a network namespace at the most.
    pub const MOST: u8 = 16;

    /// All slots, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::MOST).map(Self)
    }

    /// "XCP" and a byte for the first, "YCP" for the second.
    fn mark(self, byte: u8) -> u32 {
        0x5843_5000 + (u32::from(self.0) << 24) + u32::from(byte)
    }

    /// Of packets that are to stay here. "XCPE".
    #[must_use]
    pub fn diverted(self) -> u32 {
        self.mark(b'E')
    }

    /// Of what our sockets send. "XCPO".
    #[must_use]
    pub fn own(self) -> u32 {
        self.mark(b'O')
    }

    /// Of openings that were held, and are to go on. "XCPC".
    #[must_use]
    pub fn confirmed(self) -> u32 {
        self.mark(b'C')
    }

    /// Of openings that are to be reset. "XCPR".
    #[must_use]
    pub fn refused(self) -> u32 {
        self.mark(b'R')
    }

    /// Of openings that are to be answered by ICMP with this code, 0 to 15.
    #[must_use]
    pub fn unreachable(self, code: u8) -> u32 {
        self.mark(0x80) + u32::from(code)
    }

    /// Where openings are held.
    #[must_use]
    pub fn queue(self) -> u16 {
        QUEUE + u16::from(self.0)
    }

    /// The routing rule for what stays here, and the table it leads to.
    #[must_use]
    pub fn diversion(self) -> Diversion {
        Diversion {
            mark: self.diverted(),
            table: u32::from(self.queue()),
            priority: PRIORITY + u32::from(self.0),
        }
    }

    fn table_name(self, first: &str) -> String {
        if self.0 == 0 { first.to_owned() } else { format!("{first}_{}", self.0 + 1) }
    }

    /// The packet filter's table with its rules.
    #[must_use]
    pub fn table(self) -> String {
        self.table_name(TABLE)
    }

    /// The one that is its lock.
    #[must_use]
    pub fn owner_table(self) -> String {
        self.table_name(OWNER_TABLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn nobody_has_anothers_numbers() {
        let mut marks = HashSet::new();
        let mut names = HashSet::new();
        for slot in Slot::all() {
            let own = [slot.diverted(), slot.own(), slot.confirmed(), slot.refused()];
            let codes = (0..16).map(|code| slot.unreachable(code));
            assert!(own.into_iter().chain(codes).all(|mark| marks.insert(mark)), "{slot:?}");
            assert!([slot.table(), slot.owner_table()].into_iter().all(|name| names.insert(name)));
        }
        assert_eq!(Slot::default().diverted(), 0x5843_5045, "published in docs/pep.md");
        assert_eq!(Slot::default().table(), TABLE);
    }
}
