//! After an outage of the long link: when to look which connections wait in vain, and to ask their
//! peers. A connection that waits retransmits every second at the most often (TCP_RTO_MAX_MS takes
//! no less), so a second may pass before it learns that the link is back. A probe without data
//! costs 66 bytes and may go ten times a second; with its answer the kernel goes on, and has its
//! window back soon. Who looks and asks is the worker, who at the same time tells the kernel how
//! long to wait for the silent peers of connections that last.
//!
//! Where probes are answered and retransmissions are not, the link is there and swallows what is
//! large. The kernel can try smaller packets (RFC 4821), but takes every outage of three seconds
//! for that: its packets are 244 bytes long after ten. So it is told to only where this was seen.
//!
//! Whoever retransmits every second has to be told how long to wait, too: the kernel works that out
//! from the same second (tcp_model_timeout) and would give up after 15 s. Connections are told when
//! they are half a second old, however many there are: most are over by then.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Between looks.
const CALM: Duration = Duration::from_millis(500);
/// Between looks, and so between probes of a connection, while one waits.
const OUTAGE: Duration = Duration::from_millis(100);
/// Connections looked at in one look; with more of them, each has its turn.
pub(super) const AT_ONCE: usize = 64;

/// When to look next, and where.
#[derive(Debug, Default)]
pub(super) struct Outage {
    at: Option<Instant>,
    place: usize,
    /// Connections that have not been told how long to wait, and when they are to be.
    young: VecDeque<(Instant, u64)>,
}

impl Outage {
    /// There is something to look at: a new connection, or one that is not open yet.
    pub fn arm(&mut self, now: Instant, connection: u64) {
        self.at.get_or_insert(now + CALM);
        self.young.push_back((now + CALM, connection));
    }

    /// A connection that is to be told now, if it still is there.
    pub fn grown(&mut self, now: Instant) -> Option<u64> {
        let (at, connection) = *self.young.front()?;
        (at <= now).then(|| self.young.pop_front()).map(|_| connection)
    }

    /// When to look next; `None` if there is nothing to watch.
    pub fn next(&self) -> Option<Instant> {
        self.at
    }

    /// Places to look at now, if it is time, of so many.
    pub fn due(
        &mut self,
        now: Instant,
        places: usize,
    ) -> Option<impl Iterator<Item = usize> + use<>> {
        self.at.take_if(|at| *at <= now)?;
        let first = self.place;
        let count = AT_ONCE.min(places);
        self.place = (first + count) % places.max(1);
        Some((0..count).map(move |n| (first + n) % places))
    }

    /// What was found: how many are there at all, and how many of those looked at wait.
    pub fn found(&mut self, now: Instant, connections: usize, waiting: usize) {
        self.at = (connections > 0).then(|| now + if waiting > 0 { OUTAGE } else { CALM });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_turn_and_nobody_two() {
        let begin = Instant::now();
        for places in [1, 63, 64, 65, 1000] {
            let mut outage = Outage::default();
            let (mut now, mut seen) = (begin, vec![0; places]);
            for _ in 0..places.div_ceil(AT_ONCE.min(places)) {
                outage.arm(now, 0);
                now += CALM;
                outage.due(now, places).expect("it is time").for_each(|place| seen[place] += 1);
                outage.found(now, 1, 0);
            }
            assert!(
                seen.iter().all(|n| (1..=2).contains(n))
                    && seen.iter().sum::<i32>() < 2 * places.max(AT_ONCE) as i32,
                "{places}: {seen:?}"
            );
        }
    }

    #[test]
    fn it_rests_where_there_is_nothing() {
        let now = Instant::now();
        let mut outage = Outage::default();
        assert!(outage.next().is_none() && outage.due(now, 0).is_none());
        outage.arm(now, 0);
        assert!(outage.due(now, 10).is_none(), "not yet");
        let later = now + CALM;
        assert_eq!(outage.due(later, 0).map(Iterator::count), Some(0));
        outage.found(later, 1, 1);
        assert_eq!(outage.next(), Some(later + OUTAGE));
        assert!(outage.due(later + OUTAGE, 1).is_some());
        outage.found(later + OUTAGE, 0, 0);
        assert_eq!(outage.next(), None);
    }
    #[test]
    fn all_are_told_when_they_are_half_a_second_old() {
        let (begin, mut outage) = (Instant::now(), Outage::default());
        let millisecond = Duration::from_millis(1);
        for number in 0..20_000 {
            outage.arm(begin + millisecond * (number / 100), number.into());
        }
        assert_eq!(outage.grown(begin + CALM - millisecond), None);
        let told = |outage: &mut Outage, now| std::iter::from_fn(|| outage.grown(now)).count();
        assert_eq!(told(&mut outage, begin + CALM), 100);
        assert_eq!(told(&mut outage, begin + CALM + 199 * millisecond), 19_900);
        assert_eq!(outage.grown(begin + 2 * CALM), None);
    }
}
