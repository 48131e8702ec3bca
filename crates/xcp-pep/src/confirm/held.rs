//! Openings that are held: the client's SYN waits in the kernel while the leg to the server is
//! being opened. A table without sockets and clocks: it is told the time, and what it holds of a
//! leg is its caller's business.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use crate::settings::Kind;
use crate::shared::Ends;

/// A client that sends its SYN again does so later each time, at most twice as late; beyond that
/// and this it has given up.
const SILENT: Duration = Duration::from_secs(10);

/// An opening that is held.
#[derive(Debug)]
pub struct Opening<L> {
    /// Addresses and ports of client and server.
    pub ends: Ends,
    /// Where it comes from.
    pub kind: Kind,
    /// The newest SYN, by the kernel's number.
    pub packet: u32,
    /// The leg to the server.
    pub leg: L,
    /// Its ends: the client's, but for the port if that was taken.
    pub leg_ends: Ends,
    /// When the first SYN came.
    pub since: Instant,
    last: Instant,
    gap: Duration,
}

/// What a SYN is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Met {
    /// It opens a connection that is not held.
    New,
    /// It was sent again; it is held now, and the one of before (its number) is to be dropped.
    Again(u32),
    /// Our own leg's, come back.
    Loop,
}

/// All that is held, oldest first.
#[derive(Debug)]
pub struct Held<L> {
    openings: BTreeMap<u64, Opening<L>>,
    numbers: HashMap<Ends, u64>,
    legs: HashMap<Ends, u64>,
    next: u64,
    most: usize,
}

impl<L> Held<L> {
    /// Holds so many at the most.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            openings: BTreeMap::new(),
            numbers: HashMap::new(),
            legs: HashMap::new(),
            next: 0,
            most: most.max(1),
        }
    }

    /// How many are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.openings.len()
    }

    /// Whether no attempt is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.openings.is_empty()
    }

    /// A SYN has come.
    pub fn meet(&mut self, ends: &Ends, packet: u32, now: Instant) -> Met {
        if let Some(opening) =
            self.numbers.get(ends).and_then(|number| self.openings.get_mut(number))
        {
            opening.gap = now.saturating_duration_since(opening.last);
            opening.last = now;
            return Met::Again(std::mem::replace(&mut opening.packet, packet));
        }
        if self.legs.contains_key(ends) { Met::Loop } else { Met::New }
    }

    /// Holds one that is [`Met::New`]; returns its number, and the oldest if that has to go for it.
    pub fn hold(
        &mut self,
        (ends, kind, packet): (Ends, Kind, u32),
        leg: L,
        leg_ends: Ends,
        now: Instant,
    ) -> (u64, Option<Opening<L>>) {
        let oldest =
            (self.len() >= self.most).then(|| self.openings.keys().next().copied()).flatten();
        let gone = oldest.and_then(|number| self.take(number));
        let number = self.next;
        self.next += 1;
        self.numbers.insert(ends, number);
        self.legs.insert(leg_ends, number);
        self.openings.insert(
            number,
            Opening {
                ends,
                kind,
                packet,
                leg,
                leg_ends,
                since: now,
                last: now,
                gap: Duration::ZERO,
            },
        );
        (number, gone)
    }

    /// One by its number.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<&Opening<L>> {
        self.openings.get(&number)
    }

    /// The one whose leg has these ends.
    #[must_use]
    pub fn of_leg(&self, ends: &Ends) -> Option<u64> {
        self.legs.get(ends).copied()
    }

    /// Holds it no longer.
    pub fn take(&mut self, number: u64) -> Option<Opening<L>> {
        let opening = self.openings.remove(&number)?;
        self.numbers.remove(&opening.ends);
        self.legs.remove(&opening.leg_ends);
        Some(opening)
    }

    /// Takes those whose server has not answered for so long, or whose client has given up.
    pub fn overdue(&mut self, patience: Duration, now: Instant) -> Vec<Opening<L>> {
        let is_overdue = |opening: &Opening<L>| {
            now.saturating_duration_since(opening.since) >= patience
                || now.saturating_duration_since(opening.last) > opening.gap * 2 + SILENT
        };
        let numbers: Vec<u64> = self
            .openings
            .iter()
            .filter(|(_, opening)| is_overdue(opening))
            .map(|(number, _)| *number)
            .collect();
        numbers.into_iter().filter_map(|number| self.take(number)).collect()
    }

    /// Removes and returns all attempts.
    pub fn clear(&mut self) -> Vec<Opening<L>> {
        self.numbers.clear();
        self.legs.clear();
        std::mem::take(&mut self.openings).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::net::{Ipv4Addr, SocketAddr};

    fn ends(client: u16) -> Ends {
        (
            SocketAddr::new(Ipv4Addr::LOCALHOST.into(), client),
            SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 80),
        )
    }

    proptest! {
        /// Beside a list that does the same slowly: every SYN is held once, nothing is lost, never
        /// more than may be, the oldest goes first.
        #[test]
        fn holds_what_a_list_would(most in 1usize..6, steps in proptest::collection::vec((0u16..8, 0u8..4), 0..60)) {
            let start = Instant::now();
            let mut held = Held::new(most);
            let mut list: VecDeque<(u16, u32, u64)> = VecDeque::new();
            for (at, (client, action)) in steps.into_iter().enumerate() {
                let (packet, now) = (at as u32, start + Duration::from_millis(at as u64));
                let known = list.iter().position(|(c, ..)| *c == client);
                if action < 3 {
                    match held.meet(&ends(client), packet, now) {
                        Met::New => {
                            prop_assert_eq!(known, None);
                            // Half of the legs have other ports.
                            let leg = if client % 2 == 0 { ends(client) } else { ends(client + 1000) };
                            prop_assert_eq!(held.meet(&leg, packet, now), Met::New);
                            let (number, gone) = held.hold((ends(client), Kind::FromLan, packet), client, leg, now);
                            let oldest = (list.len() == most).then(|| list.pop_front()).flatten();
                            prop_assert_eq!(gone.map(|o| (o.leg, o.packet)), oldest.map(|(c, p, _)| (c, p)));
                            prop_assert_eq!(held.of_leg(&leg), Some(number));
                            if leg != ends(client) {
                                prop_assert_eq!(held.meet(&leg, packet, now), Met::Loop);
                            }
                            list.push_back((client, packet, number));
                        }
                        Met::Again(before) => {
                            let at = known.expect("it is held");
                            prop_assert_eq!(before, list[at].1);
                            list[at].1 = packet;
                        }
                        Met::Loop => prop_assert!(false, "no leg has a client's ends"),
                    }
                } else if let Some(at) = known {
                    let (_, packet, number) = list.remove(at).unwrap();
                    let opening = held.take(number).unwrap();
                    prop_assert_eq!((opening.ends, opening.packet), (ends(client), packet));
                    prop_assert!(held.take(number).is_none() && held.of_leg(&opening.leg_ends).is_none());
                }
                prop_assert_eq!(held.len(), list.len());
                prop_assert!(held.len() <= most);
            }
            let all: Vec<u32> = held.clear().into_iter().map(|o| o.packet).collect();
            prop_assert_eq!(all, list.into_iter().map(|(_, packet, _)| packet).collect::<Vec<_>>());
            prop_assert!(held.is_empty());
        }

        /// A client that doubles its time, as TCP does, is waited for until the patience ends; one
        /// that is silent is not.
        #[test]
        fn a_client_that_tries_again_is_waited_for(first_ms in 500u64..4000, silent_after in 0usize..5) {
            let start = Instant::now();
            let patience = Duration::from_secs(100);
            let mut held = Held::new(4);
            held.hold((ends(1), Kind::FromLan, 0), (), ends(1), start);
            let (mut now, mut wait) = (start, Duration::from_millis(first_ms));
            for _ in 0..silent_after {
                let next = now + wait;
                if next >= start + patience {
                    break;
                }
                prop_assert!(held.overdue(patience, next).is_empty());
                prop_assert!(matches!(held.meet(&ends(1), 0, next), Met::Again(0)));
                now = next;
                wait *= 2;
            }
            // Silent from then on: `wait` is twice the last gap.
            let end = (now + wait + SILENT + Duration::from_millis(1)).min(start + patience);
            prop_assert_eq!(held.overdue(patience, end).len(), 1);
        }
    }
}
