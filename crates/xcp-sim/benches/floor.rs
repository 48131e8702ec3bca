//! The floor under any simulator of this design: what the dumbbell's packets and events cost when
//! nothing is done with them. `cargo bench -p xcp-sim --bench floor`. Prints nanoseconds per data
//! packet, the best of many short rounds, for the machine may have other things to do.
//!
//! A data packet and its acknowledgement cross six link directions between them: a line of 64 bytes
//! moves from ring to ring six times, the rings as long as the packets under way on the dumbbell of
//! bench/scenarios/speed.toml. Of its events two are left, data and acknowledgement reaching the
//! bottleneck's far end; the other links are fed by one link alone and go ahead without an event.
//! No law, no TCP, no counting.

use std::hint::black_box;
use std::time::Instant;

use xcp_sim::events::Events;

/// A packet on a link: one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u64; 8]);

/// Nanoseconds between data packets: 1050 bytes at 1 Gbit/s.
const GAP: u64 = 8400;
/// Delays of the six link directions on a packet's way there and its acknowledgement's back.
const DELAYS_US: [u64; 6] = [1000, 18_000, 1000, 1000, 18_000, 1000];
/// The bottleneck's two directions.
const WITH_EVENT: [usize; 2] = [1, 4];

struct Ring {
    slots: Box<[Line]>,
    head: usize,
    tail: usize,
}

impl Ring {
    fn holding(packets: usize) -> Self {
        let slots = vec![Line([0; 8]); (packets + 1).next_power_of_two()].into_boxed_slice();
        Self { slots, head: 0, tail: packets }
    }

    fn pop(&mut self) -> Line {
        let line = self.slots[self.head & (self.slots.len() - 1)];
        self.head += 1;
        line
    }

    fn push(&mut self, line: Line) {
        let at = self.tail & (self.slots.len() - 1);
        self.slots[at] = line;
        self.tail += 1;
    }
}

fn main() {
    for flows in [10, 100, 1000] {
        let (moved, both) = (cost(flows, false), cost(flows, true));
        println!(
            "floor, {flows:4} flows: {both:5.1} ns per data packet and its acknowledgement \
                ({moved:.1} of them for moving it), {:.1} million packets/s",
            1000.0 / both
        );
    }
}

/// Nanoseconds per data packet, with or without its events.
fn cost(flows: u32, with_events: bool) -> f64 {
    let links = DELAYS_US.len() as u32;
    let mut events = Events::new(1 << 50, links, flows * 2).expect("a fortnight fits");
    let mut rings = DELAYS_US.map(|us| Ring::holding((us * 1000 / GAP) as usize));
    let mut now = 0;
    let rounds = 200;
    let packets = 20_000;
    (0..rounds)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..packets {
                now += GAP;
                let mut line = rings[5].pop();
                line.0[0] = now;
                for (link, ring) in rings.iter_mut().enumerate() {
                    // In at one end, out at the other, with the time at which it will be there.
                    line.0[1] = now + DELAYS_US[link] * 1000;
                    ring.push(line);
                    if link < 5 {
                        line = ring.pop();
                    }
                    if with_events && WITH_EVENT.contains(&link) {
                        black_box(events.first());
                        events.set_link(link as u32, line.0[1]);
                    }
                }
                black_box(&mut line);
            }
            start.elapsed().as_nanos() as f64 / f64::from(packets)
        })
        .fold(f64::INFINITY, f64::min)
}
