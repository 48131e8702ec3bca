//! The packets of one link, from the tail of its queue to the far end of its cable, in one line;
//! and the store that all lines share.
//!
//! First in, first out holds for the whole link, so one line serves as queue and as pipe; a cursor
//! tells how far dequeuing has come. Lines are made of blocks that go back to the store when the
//! last of their packets has left, the one given back last taken first: a run takes as much memory
//! as it has packets under way, a block's rest at either end of each line apart, and walks through
//! it in order, which the processor's prefetcher knows.

use xcp_model::units::Nanos;

use crate::packet::{Packet, Sacks};
use crate::routing::{Hop, Position};

/// A packet on a link: one cache line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub struct Transit {
    /// When its last bit reaches the far end.
    pub arrives: Nanos,
    /// The packet.
    pub packet: Packet,
    /// Where its route goes on from there, see [`crate::routing`].
    pub position: Position,
    /// What is there.
    pub next: Hop,
}

const _: () = assert!(size_of::<Transit>() == 64);

/// Packets to a block.
const BLOCK: usize = 32;

type Block = [Transit; BLOCK];
type BlockId = u32;

const NO_BLOCK: BlockId = BlockId::MAX;

/// All packets under way, and what acknowledgements among them say besides.
#[derive(Debug)]
pub struct Packets {
    blocks: Vec<Block>,
    /// For each block, the one after it in its line, or in the list of free ones.
    next: Vec<BlockId>,
    free: BlockId,
    /// Reports of what has arrived out of order.
    pub sacks: Sacks,
}

impl Default for Packets {
    fn default() -> Self {
        Self { blocks: Vec::new(), next: Vec::new(), free: NO_BLOCK, sacks: Sacks::default() }
    }
}

impl Packets {
    fn take_block(&mut self) -> BlockId {
        if self.free != NO_BLOCK {
            let block = self.free;
            self.free = self.next[block as usize];
            return block;
        }
        let block =
            BlockId::try_from(self.blocks.len()).expect("fewer than 2^37 packets under way");
        self.blocks.push([Transit::default(); BLOCK]);
        self.next.push(NO_BLOCK);
        block
    }

    #[cold]
    #[inline(never)]
    fn give_back(&mut self, block: BlockId) -> BlockId {
        std::mem::replace(&mut self.next[block as usize], std::mem::replace(&mut self.free, block))
    }

    #[inline(always)]
    fn slot(&self, block: BlockId, position: u64) -> &Transit {
        &self.blocks[block as usize][position as usize % BLOCK]
    }

    #[inline(always)]
    fn slot_mut(&mut self, block: BlockId, position: u64) -> &mut Transit {
        &mut self.blocks[block as usize][position as usize % BLOCK]
    }
}

/// A place in a line: packets since the beginning of the run, and the block it falls into.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    position: u64,
    /// Known only if there is a packet at the position or before it in the same block.
    block: BlockId,
}

impl Cursor {
    #[inline(always)]
    fn starts_block(self) -> bool {
        self.position.is_multiple_of(BLOCK as u64)
    }
}

/// A line.
#[derive(Debug)]
pub struct Fifo {
    head: Cursor,
    dequeued: Cursor,
    tail: Cursor,
}

impl Default for Fifo {
    fn default() -> Self {
        let start = Cursor { position: 0, block: NO_BLOCK };
        Self { head: start, dequeued: start, tail: start }
    }
}

impl Fifo {
    /// Adds a packet at the tail.
    #[inline(always)]
    pub fn push(
        &mut self,
        packets: &mut Packets,
        arrives: Nanos,
        packet: &Packet,
        position: Position,
        next: Hop,
    ) {
        if self.tail.starts_block() {
            self.extend(packets);
        }
        *packets.slot_mut(self.tail.block, self.tail.position) =
            Transit { arrives, packet: *packet, position, next };
        self.tail.position += 1;
    }

    /// Adds a packet that is in service already; none must be waiting.
    #[inline(always)]
    pub fn push_served(
        &mut self,
        packets: &mut Packets,
        arrives: Nanos,
        packet: &Packet,
        position: Position,
        next: Hop,
    ) {
        debug_assert!(self.waiting() == 0);
        self.push(packets, arrives, packet, position, next);
        self.dequeued = self.tail;
    }

    #[cold]
    #[inline(never)]
    fn extend(&mut self, packets: &mut Packets) {
        let block = packets.take_block();
        if self.head.position == self.tail.position {
            self.head.block = block;
        } else {
            packets.next[self.tail.block as usize] = block;
        }
        if self.dequeued.position == self.tail.position {
            self.dequeued.block = block;
        }
        self.tail.block = block;
    }

    /// The next packet to go into service, which must exist; moves the cursor past it.
    #[inline(always)]
    pub fn dequeue<'a>(&mut self, packets: &'a mut Packets) -> &'a mut Transit {
        debug_assert!(self.waiting() > 0);
        let Cursor { position, block } = self.dequeued;
        self.dequeued.position += 1;
        if self.dequeued.starts_block() {
            // The next block, where there is one; else `extend` says which.
            self.dequeued.block = packets.next[block as usize];
        }
        packets.slot_mut(block, position)
    }

    /// The packet nearest the far end.
    #[inline(always)]
    #[must_use]
    pub fn first<'a>(&self, packets: &'a Packets) -> Option<&'a Transit> {
        (self.head.position < self.tail.position)
            .then(|| packets.slot(self.head.block, self.head.position))
    }

    /// The packet nearest the far end, if it has been dequeued.
    #[inline(always)]
    #[must_use]
    pub fn first_dequeued<'a>(&self, packets: &'a Packets) -> Option<&'a Transit> {
        (self.head.position < self.dequeued.position)
            .then(|| packets.slot(self.head.block, self.head.position))
    }

    /// Forgets the packet nearest the far end, which must have been dequeued.
    #[inline(always)]
    pub fn remove(&mut self, packets: &mut Packets) {
        debug_assert!(self.head.position < self.dequeued.position);
        self.head.position += 1;
        if self.head.starts_block() {
            self.head.block = packets.give_back(self.head.block);
        }
    }

    /// Moves all packets that have been dequeued to the end of a list.
    pub fn move_dequeued(&mut self, packets: &mut Packets, list: &mut Vec<Transit>) {
        while self.head.position < self.dequeued.position {
            let first = self.head.position as usize % BLOCK;
            let length =
                ((self.dequeued.position - self.head.position) as usize).min(BLOCK - first);
            list.extend_from_slice(
                &packets.blocks[self.head.block as usize][first..first + length],
            );
            self.head.position += length as u64;
            if self.head.starts_block() {
                self.head.block = packets.give_back(self.head.block);
            }
        }
    }

    /// Adds packets that have been dequeued elsewhere; none must be waiting.
    pub fn append_dequeued(&mut self, packets: &mut Packets, mut list: &[Transit]) {
        debug_assert!(self.waiting() == 0);
        while !list.is_empty() {
            if self.tail.starts_block() {
                self.extend(packets);
            }
            let first = self.tail.position as usize % BLOCK;
            let (now, later) = list.split_at(list.len().min(BLOCK - first));
            packets.blocks[self.tail.block as usize][first..first + now.len()].copy_from_slice(now);
            self.tail.position += now.len() as u64;
            list = later;
        }
        self.dequeued = self.tail;
    }

    /// The packets that have been dequeued and arrive at a time or later, those nearest the far end
    /// first, and how many have been dequeued that arrive before. Packets must arrive in order.
    ///
    /// Of the others it looks at one in a block: whoever asks often need not walk the whole line.
    pub fn dequeued_from<'a>(
        &self,
        packets: &'a Packets,
        from: Nanos,
    ) -> (usize, impl Iterator<Item = &'a Transit> + use<'a>) {
        let (mut at, end) = (self.head, self.dequeued.position);
        while at.position < end {
            let last = (at.position | (BLOCK as u64 - 1)).min(end - 1);
            if packets.slot(at.block, last).arrives >= from {
                break;
            }
            at.position = last + 1;
            if at.starts_block() {
                at.block = packets.next[at.block as usize];
            }
        }
        while at.position < end && packets.slot(at.block, at.position).arrives < from {
            at.position += 1;
        }
        let before = (at.position - self.head.position) as usize;
        let rest = std::iter::from_fn(move || {
            if at.position == end {
                return None;
            }
            let transit = packets.slot(at.block, at.position);
            at.position += 1;
            if at.starts_block() {
                at.block = packets.next[at.block as usize];
            }
            Some(transit)
        });
        (before, rest)
    }

    /// Packets that wait for service.
    #[inline(always)]
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.tail.position - self.dequeued.position
    }

    /// Whether nothing is on the link.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.position == self.tail.position
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn packet(serial: u64) -> Packet {
        Packet { seq: serial, ..Packet::default() }
    }

    proptest! {
        /// Several lines that share a store, each against two plain queues: one before, one behind
        /// the cursor. The store keeps no more blocks than the lines ever needed at once.
        #[test]
        fn lines_behave_as_two_queues(operations in prop::collection::vec((0usize..3, 0u8..8, 1usize..50), 0..300), from in 0u64..300) {
            let mut packets = Packets::default();
            let mut lines: [(Fifo, VecDeque<u64>, VecDeque<u64>); 3] = Default::default();
            let mut serial = 0;
            let mut most = 0;
            for (line, operation, times) in operations {
                for _ in 0..times {
                    let (fifo, waiting, under_way) = &mut lines[line];
                    match operation {
                        0..=1 => {
                            fifo.push(&mut packets, serial, &packet(serial), 0, Hop::END);
                            waiting.push_back(serial);
                            serial += 1;
                        }
                        2 | 3 => {
                            if let Some(serial) = waiting.pop_front() {
                                prop_assert_eq!(fifo.dequeue(&mut packets).packet.seq, serial);
                                under_way.push_back(serial);
                            }
                        }
                        4 if waiting.is_empty() => {
                            fifo.push_served(&mut packets, serial, &packet(serial), 0, Hop::END);
                            under_way.push_back(serial);
                            serial += 1;
                        }
                        6 => {
                            let mut moved = Vec::new();
                            fifo.move_dequeued(&mut packets, &mut moved);
                            prop_assert_eq!(moved.iter().map(|t| t.packet.seq).collect::<Vec<_>>(), under_way.drain(..).collect::<Vec<_>>());
                        }
                        7 if waiting.is_empty() => {
                            let more: Vec<Transit> =
                                (serial..serial + 45).map(|s| Transit { arrives: s, packet: packet(s), ..Transit::default() }).collect();
                            fifo.append_dequeued(&mut packets, &more);
                            under_way.extend(serial..serial + 45);
                            serial += 45;
                        }
                        _ => {
                            prop_assert_eq!(fifo.first_dequeued(&packets).map(|t| t.packet.seq), under_way.front().copied());
                            if under_way.pop_front().is_some() {
                                fifo.remove(&mut packets);
                            }
                        }
                    }
                    for from in [0, serial.saturating_sub(from), serial] {
                        let (before, rest) = fifo.dequeued_from(&packets, from);
                        let rest: Vec<u64> = rest.map(|t| t.packet.seq).collect();
                        let expected: Vec<u64> = under_way.iter().copied().filter(|&s| s >= from).collect();
                        prop_assert_eq!(before, under_way.len() - expected.len());
                        prop_assert_eq!(rest, expected);
                    }
                    prop_assert_eq!(fifo.waiting(), waiting.len() as u64);
                    prop_assert_eq!(fifo.is_empty(), waiting.is_empty() && under_way.is_empty());
                    prop_assert_eq!(fifo.first(&packets).map(|t| t.arrives), under_way.front().or(waiting.front()).copied());
                    let needed: usize = lines.iter().map(|(_, a, b)| (a.len() + b.len()) / BLOCK + 2).sum();
                    most = most.max(needed);
                }
            }
            prop_assert!(packets.blocks.len() <= most);
        }
    }
}
