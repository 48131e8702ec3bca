//! What a delay line is told: one direction of a link, and how much may come.

use std::io;

use xcp_model::steps::Steps;
use xcp_model::units::{NANOS_PER_SEC, Nanos, Period};
use xcp_model::{self as model, Limit, Loss, Reorder};

/// Bytes of a frame that an MTU does not count: the Ethernet header.
pub(super) const ETHERNET_HEADER_BYTES: u32 = 14;

/// How long the thread may be kept from running without the ring overflowing.
const RING_SLACK: Nanos = 50_000_000;

/// Packets are taken to be this large on average, and a third of the MTU where that is more: half
/// of them full, half acknowledgements.
const MEAN_PACKET_BYTES: u64 = 500;

/// What fits into memory of a size that nobody minds: 105 MB where the MTU is 1500.
const MOST_SLOTS: u64 = 65_536;

/// One direction of an emulated wire.
#[derive(Debug, Clone)]
pub struct LineConfig {
    /// How long a frame is on the way, by when it is sent, in times of the scenario. Frames keep
    /// their order where that changes.
    pub delays: Steps,
    /// Random losses, in times of the scenario.
    pub losses: Vec<Loss>,
    /// Whether another line has losses of this direction, those before its queue: then those on the
    /// way draw the numbers of a second place, as where one line has both.
    pub losses_elsewhere: bool,
    /// When everything sent is lost, in times of the scenario.
    pub blackouts: Vec<Period>,
    /// Frames that others overtake; without, all keep their order.
    pub reorder: Option<Reorder>,
    /// A queue and a transmitter in front of the wire; without, frames are on their way at once.
    pub queue: Option<QueueConfig>,
    /// The scenario's seed.
    pub seed: u64,
    /// The number of the link direction, for its random numbers.
    pub index: usize,
    /// `CLOCK_MONOTONIC` at the scenario's time zero ([`monotonic_now`](super::monotonic_now)), the
    /// same for all lines of a lab.
    pub zero: Nanos,
    /// The devices' MTU. A frame with more than that is not sent on, and counted.
    pub mtu: u32,
    /// The fastest that frames are expected to come, bit/s. It sets the ring's size; more may come
    /// while there is room.
    pub input_rate_bps: u64,
}

/// A queue of the line's own, where the kernel has none of the kind or its own is not wanted.
#[derive(Debug, Clone)]
pub struct QueueConfig {
    /// Rate of the transmitter behind the queue, bit/s, in times of the scenario.
    pub rates: Steps,
    /// Drop-tail or RED; an XCP queue is the kernel's to run.
    pub queue: model::Queue,
    /// Added to a frame's length, Ethernet header included, to get what it takes on the wire: tc's
    /// `overhead`. With -14 packets are counted from the IP header on, as in a simulation.
    pub overhead_bytes: i32,
}

impl LineConfig {
    /// Slots of the receive ring: room for all that comes while a frame is held, and while the
    /// thread does not get to run.
    #[must_use]
    pub fn ring_slots(&self) -> u32 {
        let mean = MEAN_PACKET_BYTES.max(u64::from(self.mtu) / 3);
        let (queued, drain) = match &self.queue {
            None => (0, 0),
            Some(queue) => {
                let (packets, bytes) = match queue.limit() {
                    Limit::Packets(packets) => {
                        (packets, packets.saturating_mul(u64::from(self.mtu)))
                    }
                    Limit::Bytes(bytes) => (bytes / mean, bytes),
                };
                (packets, nanos(bytes, queue.rates.range().0))
            }
        };
        // A slot is used again in its turn only: one frame that falls back keeps all behind it.
        let fallen_back = self.reorder.map_or(0, |reorder| reorder.most);
        let held = self
            .delays
            .range()
            .1
            .saturating_add(drain)
            .saturating_add(fallen_back)
            .saturating_add(RING_SLACK);
        let bytes =
            u128::from(held) * u128::from(self.input_rate_bps) / (8 * u128::from(NANOS_PER_SEC));
        let coming = u64::try_from(bytes / u128::from(mean)).unwrap_or(u64::MAX);
        coming.saturating_add(queued).clamp(1024, MOST_SLOTS) as u32
    }

    /// Refuses what cannot be emulated.
    pub(super) fn check(&self) -> io::Result<()> {
        let bad = |what: String| {
            Err(io::Error::new(io::ErrorKind::InvalidInput, format!("delay line: {what}")))
        };
        if let Some(loss) = self.losses.iter().find(|loss| !(0.0..=1.0).contains(&loss.probability))
        {
            return bad(format!(
                "a loss probability of {}; it must be from 0 to 1",
                loss.probability
            ));
        }
        if let Some(reorder) =
            self.reorder.filter(|reorder| !(0.0..=1.0).contains(&reorder.probability))
        {
            return bad(format!(
                "a probability of {} that a frame is overtaken; it must be from 0 to 1",
                reorder.probability
            ));
        }
        // The least is what IPv4 asks of a link (RFC 791); the greatest what leaves room for a
        // header in 65535 bytes.
        if !(68..=65_000).contains(&self.mtu) {
            return bad(format!("an MTU of {} bytes; it must be from 68 to 65000", self.mtu));
        }
        match &self.queue {
            Some(queue) if queue.rates.range().0 == 0 => {
                bad("a queue whose rate is zero never empties; \
                give it a rate"
                    .into())
            }
            Some(queue) if queue.queue.router().is_some() => {
                bad("an XCP queue is run by the kernel's router program; a line can have \
                    drop-tail or RED"
                    .into())
            }
            _ => Ok(()),
        }
    }
}

impl QueueConfig {
    /// What the queue holds.
    #[must_use]
    pub fn limit(&self) -> Limit {
        self.queue.limit
    }
}

/// Time that bytes take at a rate.
fn nanos(bytes: u64, rate_bps: u64) -> Nanos {
    u64::try_from(u128::from(bytes) * 8 * u128::from(NANOS_PER_SEC) / u128::from(rate_bps.max(1)))
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> LineConfig {
        LineConfig {
            delays: 25_000_000.into(),
            losses: Vec::new(),
            losses_elsewhere: false,
            blackouts: Vec::new(),
            reorder: None,
            queue: None,
            seed: 1,
            index: 0,
            zero: 0,
            mtu: 1500,
            input_rate_bps: 1_000_000_000,
        }
    }

    #[test]
    fn the_ring_grows_with_rate_delay_and_queue_and_stays_finite() {
        // 75 ms at 1 Gbit/s are 9.4 MB.
        assert_eq!(config().ring_slots(), 18_750);
        assert_eq!(LineConfig { input_rate_bps: 1_000_000, ..config() }.ring_slots(), 1024);
        assert_eq!(LineConfig { delays: u64::MAX.into(), ..config() }.ring_slots(), 65_536);
        // 75 ms more.
        let reordering = LineConfig {
            reorder: Some(Reorder { probability: 0.1, most: 75_000_000 }),
            ..config()
        };
        assert_eq!(reordering.ring_slots(), 37_500);
        let queue = |limit| QueueConfig {
            rates: 10_000_000.into(),
            queue: model::Queue::drop_tail(limit),
            overhead_bytes: 0,
        };
        // 10 packets more, which take 12 ms.
        let queued = LineConfig { queue: Some(queue(Limit::Packets(10))), ..config() };
        assert_eq!(queued.ring_slots(), 18_750 + 3_000 + 10);
        let endless = LineConfig { queue: Some(queue(Limit::Bytes(u64::MAX))), ..config() };
        assert_eq!(endless.ring_slots(), 65_536);
    }

    #[test]
    fn what_cannot_be_is_refused_in_words() {
        let loss = |probability| Loss {
            probability,
            place: model::LossPlace::AfterQueue,
            period: Period { from: 0, to: 1 },
        };
        let drop_tail = model::Queue::drop_tail(Limit::Packets(1));
        for (config, word) in [
            (LineConfig { losses: vec![loss(1.5)], ..config() }, "1.5"),
            (LineConfig { losses: vec![loss(f64::NAN)], ..config() }, "NaN"),
            (
                LineConfig { reorder: Some(Reorder { probability: -0.1, most: 1 }), ..config() },
                "overtaken",
            ),
            (LineConfig { mtu: 20, ..config() }, "MTU"),
            (
                LineConfig {
                    queue: Some(QueueConfig {
                        rates: 0.into(),
                        queue: drop_tail,
                        overhead_bytes: 0,
                    }),
                    ..config()
                },
                "rate",
            ),
        ] {
            assert!(config.check().unwrap_err().to_string().contains(word));
        }
        assert!(LineConfig { losses: vec![loss(0.0), loss(1.0)], ..config() }.check().is_ok());
    }
}
