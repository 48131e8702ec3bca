//! What a shared medium can carry of data that all go one way, when every second packet is
//! acknowledged over the same medium.
//!
//! Without collisions it is a quotient. Where data always wait, it is what carrier sense and
//! binary exponential back-off leave, and the state (two counters of collisions, two back-offs, the
//! acknowledgements that wait) has no closed form: two stations are simulated, by the rules of the
//! simulator's medium (IEEE 802.3, clause 4), and nothing else.

use std::collections::VecDeque;

use xcp_model::rng::{Purpose, Stream};

/// Bytes of an acknowledgement: headers, timestamps and XCP's option.
pub const ACKNOWLEDGEMENT: f64 = 64.0;
/// Packets that an acknowledgement is for.
const EVERY: u64 = 2;
/// Slot time, bytes.
const SLOT: u64 = 64;
/// Collisions after which a packet is given up.
const ATTEMPTS: u32 = 16;
/// Collisions up to which the range of the back-off doubles.
const DOUBLINGS: u32 = 10;
/// Data packets that are sent before and while one measures. The mean over so many has a standard
/// deviation of some .0003.
const WARM_UP: u64 = 20_000;
const MEASURED: u64 = 1_000_000;
/// Acknowledgements that wait in the end where more come than go; some hundreds may, otherwise.
const CROWD: u64 = 10_000;

/// What it carries when data always wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Saturated {
    /// Bytes of data over what the medium could carry at its rate.
    pub utilisation: f64,
    /// Collisions for each packet of data.
    pub collisions: f64,
    /// The share of acknowledgements that are given up after sixteen collisions.
    pub lost: f64,
}

/// The share of its rate that data packets of this size can have if nothing ever collides.
#[must_use]
pub fn without_collisions(packet: f64, framing: f64) -> f64 {
    packet / (packet + framing + (ACKNOWLEDGEMENT + framing) / EVERY as f64)
}

/// A station.
#[derive(Debug, Default)]
struct Station {
    /// Whether it leaves a slot after each packet.
    yields: bool,
    waiting: u64,
    ready: u64,
    collisions: u32,
    lost: u64,
}

impl Station {
    fn collide(&mut self, free: u64, random: &mut Stream) {
        self.collisions += 1;
        let slots = random.below(1 << self.collisions.min(DOUBLINGS));
        self.ready = free + slots * SLOT;
        if self.collisions == ATTEMPTS {
            (self.collisions, self.ready) = (0, free);
            self.waiting -= 1;
            self.lost += 1;
        }
    }

    fn send(&mut self, until: u64) {
        (self.collisions, self.ready) = (0, until + if self.yields { SLOT } else { 0 });
        self.waiting -= 1;
    }
}

/// Two stations, one with data that always wait, one with an acknowledgement for every second
/// packet, which comes back `delay` byte times after it was sent; `yields`: whether they leave a
/// slot to the other one after each packet. `None` where acknowledgements come faster than they are
/// sent, so that nothing becomes steady.
#[must_use]
pub fn saturated(packet: u64, framing: u64, delay: u64, yields: [bool; 2]) -> Option<Saturated> {
    let mut random = Stream::new(1, Purpose::Medium, 0);
    let mut data = Station { waiting: u64::MAX, yields: yields[0], ..Station::default() };
    let mut acks = Station { yields: yields[1], ..Station::default() };
    let mut coming: VecDeque<u64> = VecDeque::new();
    let (mut now, mut sent, mut collisions, mut made) = (0u64, 0u64, 0u64, 0u64);
    let mut before = (0, 0, 0, 0);
    while sent < WARM_UP + MEASURED {
        while coming.front().is_some_and(|&at| at <= now) {
            coming.pop_front();
            acks.waiting += 1;
        }
        let wants = [data.ready <= now, acks.waiting > 0 && acks.ready <= now];
        match wants {
            [true, true] => {
                now += SLOT;
                collisions += 1;
                data.collide(now, &mut random);
                acks.collide(now, &mut random);
            }
            [true, false] => {
                now += packet + framing;
                data.send(now);
                sent += 1;
                if sent.is_multiple_of(EVERY) {
                    made += 1;
                    coming.push_back(now + delay);
                }
                if sent == WARM_UP {
                    before = (now, collisions, made, acks.lost);
                }
            }
            [false, true] => {
                now += ACKNOWLEDGEMENT as u64 + framing;
                acks.send(now);
            }
            [false, false] => {
                let ack = if acks.waiting > 0 {
                    Some(acks.ready)
                } else {
                    coming.front().map(|&at| at.max(acks.ready))
                };
                now = ack.map_or(data.ready, |at| at.min(data.ready));
            }
        }
    }
    (acks.waiting < CROWD).then(|| Saturated {
        utilisation: (MEASURED * packet) as f64 / (now - before.0) as f64,
        collisions: (collisions - before.1) as f64 / MEASURED as f64,
        lost: (acks.lost - before.3) as f64 / ((made - before.2).max(1)) as f64,
    })
}
