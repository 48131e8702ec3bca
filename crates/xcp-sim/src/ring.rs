//! The packets of one link, from the tail of its queue to the far end of its cable, in one ring buffer.
//!
//! First in, first out holds for the whole link, so one ring serves as queue and as pipe; a cursor tells how far dequeuing has come. The
//! ring is walked in order, which the processor's prefetcher knows.

use xcp_scenario::units::Nanos;

use crate::packet::Token;

/// A packet on a link and what is known of it when it comes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Transit {
    /// When it goes into service.
    pub starts: Nanos,
    /// When its last bit reaches the far end.
    pub arrives: Nanos,
    /// The packet.
    pub token: Token,
}

/// The ring. Positions count packets since the beginning of the run; the capacity is a power of two.
#[derive(Debug)]
pub struct Ring {
    slots: Box<[Transit]>,
    head: u64,
    dequeued: u64,
    tail: u64,
}

const LEAST_CAPACITY: usize = 4;

impl Default for Ring {
    fn default() -> Self {
        Self { slots: vec![Transit::default(); LEAST_CAPACITY].into_boxed_slice(), head: 0, dequeued: 0, tail: 0 }
    }
}

impl Ring {
    /// Adds a packet at the tail.
    pub fn push(&mut self, transit: Transit) {
        if self.held() as usize == self.slots.len() {
            self.grow();
        }
        let at = self.slot(self.tail);
        self.slots[at] = transit;
        self.tail += 1;
    }

    /// Adds a packet that is in service already; none must be waiting.
    pub fn push_served(&mut self, transit: Transit) {
        debug_assert!(self.dequeued == self.tail);
        self.push(transit);
        self.dequeued = self.tail;
    }

    /// The next packet to go into service.
    #[must_use]
    pub fn next_to_dequeue(&self) -> Option<&Transit> {
        (self.dequeued < self.tail).then(|| &self.slots[self.slot(self.dequeued)])
    }

    /// Moves the cursor past the packet that goes into service.
    pub fn dequeue(&mut self) {
        debug_assert!(self.dequeued < self.tail);
        self.dequeued += 1;
    }

    /// When the packet nearest the far end gets there.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Nanos> {
        (self.head < self.tail).then(|| self.slots[self.slot(self.head)].arrives)
    }

    /// The packet nearest the far end, if it has been dequeued.
    #[must_use]
    pub fn first_dequeued(&self) -> Option<&Transit> {
        (self.head < self.dequeued).then(|| &self.slots[self.slot(self.head)])
    }

    /// Takes the packet nearest the far end, if it has been dequeued.
    pub fn pop(&mut self) -> Option<Token> {
        if self.head == self.dequeued {
            return None;
        }
        let at = self.slot(self.head);
        self.head += 1;
        Some(self.slots[at].token)
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
        position as usize & (self.slots.len() - 1)
    }

    #[cold]
    fn grow(&mut self) {
        let capacity = self.slots.len() * 2;
        let mut slots = vec![Transit::default(); capacity].into_boxed_slice();
        for position in self.head..self.tail {
            slots[position as usize & (capacity - 1)] = self.slots[self.slot(position)];
        }
        self.slots = slots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Against two plain queues: one before, one behind the cursor.
        #[test]
        fn behaves_as_two_queues(operations in prop::collection::vec(0u8..6, 0..500)) {
            let mut ring = Ring::default();
            let (mut waiting, mut under_way) = (VecDeque::new(), VecDeque::new());
            for (serial, operation) in (0u64..).zip(operations) {
                match operation {
                    0..=2 => {
                        ring.push(Transit { starts: serial, arrives: 0, token: Token { packet: serial as u32, ..Token::default() } });
                        waiting.push_back(serial);
                    }
                    3 => {
                        prop_assert_eq!(ring.next_to_dequeue().map(|s| s.starts), waiting.front().copied());
                        if let Some(serial) = waiting.pop_front() {
                            ring.dequeue();
                            under_way.push_back(serial);
                        }
                    }
                    4 if waiting.is_empty() => {
                        ring.push_served(Transit { token: Token { packet: serial as u32, ..Token::default() }, ..Transit::default() });
                        under_way.push_back(serial);
                    }
                    _ => prop_assert_eq!(ring.pop().map(|t| u64::from(t.packet)), under_way.pop_front()),
                }
                prop_assert_eq!(ring.waiting(), waiting.len() as u64);
                prop_assert_eq!(ring.held(), (waiting.len() + under_way.len()) as u64);
                prop_assert_eq!(ring.next_arrival().is_some(), !(waiting.is_empty() && under_way.is_empty()));
            }
        }
    }
}
