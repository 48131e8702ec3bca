//! What one arrival plus departure costs: `cargo bench -p xcp-engine`. Prints nanoseconds per
//! packet, the best of many short rounds, for the machine may have other things to do.

use std::hint::black_box;
use std::time::Instant;
use xcp_engine::{ForwardHeader, Router, RouterConfig, WireFormat};

fn main() {
    for format in [WireFormat::Extended, WireFormat::Classic] {
        for flows in [1usize, 64, 4096] {
            println!(
                "{format:?}, {flows} flows: {:.1} ns per arrival + departure",
                cost(format, flows)
            );
        }
    }
}

/// Packets of flows with different RTTs and windows on a full 10 Gbit/s link, 1500 bytes each.
fn cost(format: WireFormat, flows: usize) -> f64 {
    let rtt = |i: usize| 20_000_000 + 37_000 * (i as u64 % 5000);
    let headers: Vec<_> = (0..flows)
        .map(|i| {
            ForwardHeader::encode(
                format,
                rtt(i),
                1.25e9 / flows as f64 / 1500.0 * rtt(i) as f64 / 1e9,
                1e9,
            )
        })
        .collect();
    let mut router =
        Router::new(&RouterConfig::xcp(1_250_000_000), 0, 1).expect("the preset is valid");
    let packets = 20_000;
    let mut now = 0;
    let mut next = (0..flows).cycle();
    (0..200)
        .map(|_| {
            let start = Instant::now();
            for i in next.by_ref().take(packets) {
                now += 1200;
                let mut h = black_box(headers[i]);
                router.arrival(now, 1500, &h, 0);
                router.departure(now, 1500, &mut h, 0);
                black_box(h);
            }
            start.elapsed().as_nanos() as f64 / packets as f64
        })
        .fold(f64::INFINITY, f64::min)
}
