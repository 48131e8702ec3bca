//! The packets of one link, from the tail of its queue to the far end of its cable, in one ring buffer.
//!
//! First in, first out holds for the whole link, so one ring serves as queue and as pipe; a cursor tells how far dequeuing has come. The
//! ring is walked in order, which the processor's prefetcher knows; it grows as needed and is never copied otherwise.

use xcp_scenario::units::Nanos;

use crate::packet::Packet;

/// A packet on a link, with the times that were known when it came.
#[derive(Debug, Clone, Copy)]
pub struct InTransit {
    /// The packet.
    pub packet: Packet,
    /// When it goes into service.
    pub starts: Nanos,
    /// When its last bit reaches the far end.
    pub arrives: Nanos,
}

/// The ring. Positions count packets since the beginning of the run.
#[derive(Debug, Default)]
pub struct Ring {
    slots: Vec<InTransit>,
    head: u64,
    dequeued: u64,
    tail: u64,
}

impl Ring {
    /// Adds a packet at the tail.
    pub fn push(&mut self, item: InTransit) {
        let held = (self.tail - self.head) as usize;
        if held == self.slots.len() {
            self.grow(item);
        } else {
            let at = self.slot(self.tail);
            self.slots[at] = item;
        }
        self.tail += 1;
    }

    /// When the next packet goes into service, and its size.
    #[must_use]
    pub fn next_to_dequeue(&self) -> Option<(Nanos, u16)> {
        (self.dequeued < self.tail).then(|| {
            let item = &self.slots[self.slot(self.dequeued)];
            (item.starts, item.packet.size)
        })
    }

    /// Moves the cursor past the packet that goes into service and returns it, to be changed where it lies.
    pub fn dequeue(&mut self) -> &mut Packet {
        debug_assert!(self.dequeued < self.tail);
        let at = self.slot(self.dequeued);
        self.dequeued += 1;
        &mut self.slots[at].packet
    }

    /// The packet nearest the far end.
    #[must_use]
    pub fn first(&self) -> Option<&InTransit> {
        (self.head < self.tail).then(|| &self.slots[self.slot(self.head)])
    }

    /// Takes the packet nearest the far end; it must have been dequeued.
    pub fn pop(&mut self) -> Option<Packet> {
        if self.head == self.dequeued {
            return None;
        }
        let packet = self.slots[self.slot(self.head)].packet;
        self.head += 1;
        Some(packet)
    }

    /// Packets that wait for service.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.tail - self.dequeued
    }

    /// Packets on the link, waiting or under way.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.tail - self.head
    }

    fn slot(&self, position: u64) -> usize {
        // The capacity is a power of two.
        (position as usize) & (self.slots.len() - 1)
    }

    #[cold]
    fn grow(&mut self, filler: InTransit) {
        let held = (self.tail - self.head) as usize;
        let capacity = (held * 2).max(16);
        let mut slots = Vec::with_capacity(capacity);
        slots.resize(capacity, filler);
        for position in self.head..self.tail {
            slots[(position as usize) & (capacity - 1)] = self.slots[self.slot(position)];
        }
        // The slot of the newcomer, for which the caller found no room.
        slots[(self.tail as usize) & (capacity - 1)] = filler;
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Body;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn item(seq: u64) -> InTransit {
        InTransit { packet: Packet { seq, timestamp: 0, flow: 0, hop: 0, size: 0, body: Body::Datagram }, starts: seq, arrives: seq }
    }

    proptest! {
        /// Against two plain queues: one before, one behind the cursor.
        #[test]
        fn behaves_as_two_queues(operations in prop::collection::vec(0u8..5, 0..500)) {
            let mut ring = Ring::default();
            let (mut waiting, mut under_way) = (VecDeque::new(), VecDeque::new());
            for (serial, operation) in (0u64..).zip(operations) {
                match operation {
                    0..=2 => { ring.push(item(serial)); waiting.push_back(serial); }
                    3 => {
                        prop_assert_eq!(ring.next_to_dequeue().map(|i| i.0), waiting.front().copied());
                        if let Some(s) = waiting.pop_front() { ring.dequeue(); under_way.push_back(s); }
                    }
                    _ => prop_assert_eq!(ring.pop().map(|p| p.seq), under_way.pop_front()),
                }
                prop_assert_eq!(ring.waiting(), waiting.len() as u64);
                prop_assert_eq!(ring.held(), (waiting.len() + under_way.len()) as u64);
                prop_assert_eq!(ring.first().map(|i| i.starts), under_way.front().or(waiting.front()).copied());
            }
        }
    }
}
