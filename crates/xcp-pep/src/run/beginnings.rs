//! What connections begin with where this gateway is the router of the long link. It shapes the
//! link, so it knows how much of it is free, and lends that to those that begin
//! (bpf/endpoint_start.h), who need no round trips to find out. Beside them it keeps the queue long
//! enough for one packet of every connection: fewer than one in flight TCP cannot have.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use xcp_linux::Result;
use xcp_linux::endpoint::{Endpoint, Start};
use xcp_linux::netlink::Netlink;
use xcp_linux::qdisc::{self, Limit, Whose};
use xcp_linux::router::{Router, RouterStatus};

use crate::gateway::wan::queue_bytes;

/// A full packet on the wire.
const PACKET_BYTES: u64 = 1514;
/// First windows of one round trip come to a link's content divided by this, whatever else is on
/// it.
const WINDOWS_SHARE: u64 = 4;
/// What was lent does not show in what is sent before so many round trips.
const LENT_ROUND_TRIPS: u32 = 2;
/// A link that carried less than was said is taken to do so for so many round trips.
const BOUND_ROUND_TRIPS: u32 = 100;
/// The accounts are kept in this fraction of a packet.
const FRACTION: u64 = 1 << 16;

/// What was seen at a time.
#[derive(Debug, Clone, Copy)]
struct Seen {
    at: Instant,
    /// Bytes sent into the link so far.
    bytes: u64,
    /// Bytes that the router had granted and not seen yet when a packet last passed, in a round
    /// trip.
    promised: u64,
    taken: Start,
    /// Keeps counting while senders are bound by a queue that the router does not see.
    bound: u32,
}

/// The accounts, without anything of the kernel: what to lend, from what was sent and taken.
#[derive(Debug)]
struct Accounts {
    /// Bytes that the link carries in a round trip.
    content: u64,
    rtt: Duration,
    seen: VecDeque<Seen>,
    /// What is left for first windows, in fractions of a packet.
    windows: u64,
    /// When senders were last seen to be bound.
    bound: Option<Instant>,
    limits: Start,
}

impl Accounts {
    fn new(rate_bps: u64, rtt: Duration) -> Self {
        let content = u128::from(rate_bps) * rtt.as_nanos() / 8_000_000_000;
        let content = u64::try_from(content).unwrap_or(u64::MAX);
        let windows = content / PACKET_BYTES / WINDOWS_SHARE * FRACTION;
        Self { content, rtt, seen: VecDeque::new(), windows, bound: None, limits: Start::default() }
    }

    /// The link has another rate. What is on it stays there, and so does what was lent.
    fn change(&mut self, rate_bps: u64, rtt: Duration) {
        let fresh = Self::new(rate_bps, rtt);
        self.content = fresh.content;
        self.rtt = rtt;
        self.windows = self.windows.min(fresh.windows);
    }

    /// The newest that was seen no later than so long ago, or the oldest there is.
    fn ago(&self, now: Instant, time: Duration) -> Option<&Seen> {
        let old =
            self.seen.iter().rev().find(|seen| now.saturating_duration_since(seen.at) >= time);
        old.or_else(|| self.seen.front())
    }

    /// New limits.
    fn next(&mut self, seen: Seen) -> Start {
        let Seen { at: now, bytes, promised, taken, bound } = seen;
        let full = self.content / PACKET_BYTES / WINDOWS_SHARE * FRACTION;
        if let Some(last) = self.seen.back() {
            // A packet each is taken even where nothing is left; nobody has to pay that back.
            let used = u64::from(taken.window.wrapping_sub(last.taken.window)) * FRACTION;
            let waited = now.saturating_duration_since(last.at).min(self.rtt).as_nanos();
            let earned = u128::from(full) * waited / self.rtt.as_nanos().max(1);
            self.windows = (self.windows.saturating_sub(used) + earned as u64).min(full);
            if bound != last.bound {
                self.bound = Some(now);
            }
        }
        let sent = self.ago(now, self.rtt).map_or(0, |then| bytes.saturating_sub(then.bytes));
        let lent = self
            .ago(now, self.rtt * LENT_ROUND_TRIPS)
            .map_or(0, |then| taken.rest.wrapping_sub(then.taken.rest));
        // After a round trip of silence nobody has taken what was promised.
        let promised = if sent == 0 { 0 } else { promised };
        let free = self.content.saturating_sub(sent).saturating_sub(promised) / PACKET_BYTES;
        let is_bound = |since| now.saturating_duration_since(since) < self.rtt * BOUND_ROUND_TRIPS;
        let free = match self.bound.is_some_and(is_bound) {
            true => 0, // what is free is not known
            false => free.saturating_sub(u64::from(lent)),
        };
        let beginners = self
            .ago(now, self.rtt)
            .map_or(0, |then| taken.beginners.wrapping_sub(then.taken.beginners));
        let packets = |n: u64| u32::try_from(n).unwrap_or(u32::MAX).min(i32::MAX as u32);
        self.limits = Start {
            window: taken.window.wrapping_add(packets(self.windows / FRACTION)),
            rest: taken.rest.wrapping_add(packets(free)),
            beginners: beginners.max(1),
        };
        while self.seen.get(1).is_some_and(|second| {
            now.saturating_duration_since(second.at) >= self.rtt * LENT_ROUND_TRIPS
        }) {
            self.seen.pop_front();
        }
        self.seen.push_back(seen);
        self.limits
    }
}

/// Lends, and keeps the queue.
#[derive(Debug)]
pub(super) struct Beginnings {
    accounts: Accounts,
    /// Whether first windows are ours to choose.
    lends: bool,
    wan: u32,
    /// Bytes of the queue as it was set up, and as it is.
    queue: u32,
    queue_now: u32,
}

impl Beginnings {
    /// For the link behind the device `wan`. `lends`: whether nobody has fixed the first window.
    pub fn new(rate_bps: u64, rtt_ns: u64, wan: u32, lends: bool) -> Self {
        let queue = queue_bytes(rate_bps, rtt_ns);
        Self {
            accounts: Accounts::new(rate_bps, Duration::from_nanos(rtt_ns)),
            lends,
            wan,
            queue,
            queue_now: queue,
        }
    }

    /// The link is behind another device, whose queue is as it is set up.
    pub fn move_to(&mut self, wan: u32) {
        self.wan = wan;
        self.queue_now = self.queue;
    }

    /// The link has another rate.
    pub fn set_rate(&mut self, rate_bps: u64, rtt_ns: u64) {
        self.accounts.change(rate_bps, Duration::from_nanos(rtt_ns));
        self.queue = queue_bytes(rate_bps, rtt_ns);
    }

    /// To be called several times in a round trip.
    pub fn look(
        &mut self,
        now: Instant,
        endpoint: &Endpoint,
        router: &Router,
        netlink: &mut Netlink,
        active: usize,
    ) {
        if let Err(why) = self.try_look(now, endpoint, router, netlink, active) {
            tracing::debug!(%why, "connections continue to start as before");
        }
    }

    fn try_look(
        &mut self,
        now: Instant,
        endpoint: &Endpoint,
        router: &Router,
        netlink: &mut Netlink,
        active: usize,
    ) -> Result<()> {
        if self.lends {
            let RouterStatus { counts, calendar, .. } = router.status()?;
            let bytes = counts.processed_bytes + counts.returned_bytes + counts.other_bytes;
            let promised_bps = calendar.map_or(0.0, |calendar| calendar.promised_bps);
            let promised = promised_bps.max(0.0) * self.accounts.rtt.as_secs_f64() / 8.0;
            let (taken, bound) = (endpoint.taken()?, endpoint.bound()?);
            let seen = Seen { at: now, bytes, promised: promised as u64, taken, bound };
            let limits = self.accounts.next(seen);
            endpoint.lend(limits, self.accounts.rtt)?;
        }
        let wanted = queue_for(self.queue, active);
        if wanted.abs_diff(self.queue_now) > self.queue_now / 4 {
            qdisc::change_limit(netlink, self.wan, Whose::Proxy, Limit::Bytes(wanted))?;
            self.queue_now = wanted;
        }
        Ok(())
    }
}

/// Bytes of the queue where there are so many connections: a packet of each, and another where its
/// answer comes so late that it is sent again.
fn queue_for(least: u32, active: usize) -> u32 {
    let each = (active as u64).saturating_mul(PACKET_BYTES * 2);
    u32::try_from(each).unwrap_or(u32::MAX).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RTT: Duration = Duration::from_millis(600);

    fn seen(at: Instant, bytes: u64, taken: Start) -> Seen {
        Seen { at, bytes, promised: 0, taken, bound: 0 }
    }

    fn accounts() -> (Accounts, Instant) {
        (Accounts::new(20_000_000, RTT), Instant::now())
    }

    #[test]
    fn an_idle_link_is_lent_whole_and_a_full_one_not_at_all() {
        let (mut accounts, begin) = accounts();
        assert_eq!(
            accounts.next(seen(begin, 0, Start::default())),
            Start { window: 247, rest: 990, beginners: 1 }
        );
        // 20 Mbit/s are 125,000 bytes in 50 ms.
        for tick in 1..40u64 {
            let at = begin + Duration::from_millis(50) * tick as u32;
            accounts.next(seen(at, 125_000 * tick, Start::default()));
        }
        assert_eq!(accounts.limits, Start { window: 247, rest: 0, beginners: 1 });
    }

    #[test]
    fn what_was_lent_comes_back_when_it_would_show() {
        let (mut accounts, begin) = accounts();
        accounts.next(seen(begin, 0, Start::default()));
        let taken = Start { window: 61, rest: 742, beginners: 3 };
        let at = |ms: u64| begin + Duration::from_millis(ms);
        assert_eq!(
            accounts.next(seen(at(50), 0, taken)),
            Start { window: 61 + 247 - 61 + 20, rest: 742 + 990 - 742, beginners: 3 }
        );
        // Nothing was sent after all.
        for tick in 2..=26 {
            accounts.next(seen(at(50 * tick), 0, taken));
        }
        assert_eq!(accounts.limits, Start { window: 61 + 247, rest: 742 + 990, beginners: 1 });
    }

    /// What a router with a calendar has promised to others is theirs.
    #[test]
    fn what_is_promised_is_not_lent() {
        let (mut accounts, begin) = accounts();
        let mut rest = |ms, bytes, promised| {
            let at = begin + Duration::from_millis(ms);
            accounts.next(Seen { promised, ..seen(at, bytes, Start::default()) }).rest
        };
        assert_eq!(rest(0, 0, 500_000), 990);
        assert_eq!(rest(50, 1514, 500_000), 659);
        assert_eq!(rest(100, 1514, 5_000_000), 0);
        assert_eq!(rest(650, 1514, 5_000_000), 990, "silence");
    }

    /// Nor is anything where senders have found a queue that the router does not see.
    #[test]
    fn a_link_that_carries_less_than_was_said_is_not_lent() {
        let (mut accounts, begin) = accounts();
        let mut rest = |seconds, bound| {
            let at = begin + Duration::from_secs(seconds);
            accounts.next(Seen { bound, ..seen(at, 0, Start::default()) }).rest
        };
        assert_eq!(rest(0, u32::MAX), 990);
        assert_eq!(rest(1, 0), 0);
        assert_eq!(rest(60, 0), 0);
        assert_eq!(rest(61, 0), 990);
    }

    /// A full link that becomes faster has room for what it gains, not for all that it holds, and
    /// who has found another queue is believed for as long.
    #[test]
    fn another_rate_forgets_nothing() {
        let (begin, rtt_ns) = (Instant::now(), RTT.as_nanos() as u64);
        let mut link = Beginnings::new(20_000_000, rtt_ns, 1, true);
        // 20 Mbit/s all the time
        let limits = |link: &mut Beginnings, tick: u64, bound| {
            let at = begin + Duration::from_millis(50) * tick as u32;
            link.accounts.next(Seen { bound, ..seen(at, 125_000 * tick, Start::default()) })
        };
        for tick in 0..40 {
            limits(&mut link, tick, 0);
        }
        assert_eq!(limits(&mut link, 40, 0).rest, 0);
        link.set_rate(30_000_000, rtt_ns);
        assert_eq!(limits(&mut link, 41, 0).rest, 495, "half of what it held");
        link.set_rate(10_000_000, rtt_ns);
        let Start { window, rest, .. } = limits(&mut link, 42, 0);
        assert_eq!([window, rest], [123, 0]);
        assert_eq!(limits(&mut link, 43, 1).rest, 0);
        link.set_rate(40_000_000, rtt_ns);
        assert_eq!(limits(&mut link, 44, 1).rest, 0, "what is free is not known");
    }

    #[test]
    fn the_queue_holds_a_packet_of_each() {
        assert_eq!(
            [0, 1000, 5000].map(|active| queue_for(3_000_000, active)),
            [3_000_000, 3_028_000, 15_140_000]
        );
    }

    proptest! {
        /// Whatever connections take, counters running over, at most a link's content is lent
        /// beyond what was sent in the last round trip.
        #[test]
        fn never_more_than_the_link_carries(
            steps in prop::collection::vec((1u64..400, 0u64..300_000, 0u32..400, 0u32..1000), 1..60),
            from in any::<u32>(),
        ) {
            let (mut accounts, begin) = accounts();
            let (mut now, mut bytes, mut taken) = (begin, 0, Start { window: from, rest: from, beginners: from });
            let mut limits = accounts.next(seen(now, bytes, taken));
            for (ms, sent, window, rest) in steps {
                now += Duration::from_millis(ms);
                bytes += sent;
                let left = limits.rest.wrapping_sub(taken.rest);
                taken = Start { window: taken.window.wrapping_add(window), rest: taken.rest.wrapping_add(rest.min(left)), ..taken };
                limits = accounts.next(seen(now, bytes, taken));
                prop_assert!(limits.rest.wrapping_sub(taken.rest) <= 990);
                prop_assert!(limits.window.wrapping_sub(taken.window) <= 247);
            }
        }
    }
}
