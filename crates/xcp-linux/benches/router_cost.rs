//! What the router program costs per packet (BPF_PROG_TEST_RUN), beside a program that does nothing: medians, ns. Needs root.

use xcp_engine::{Router, RouterConfig};
use xcp_linux::rehearsal::{Rehearsal, nothing_ns};

const REPEAT: u32 = 500_000;
const ROUNDS: usize = 9;

fn frame(protocol: u8, options: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0, 5, 0xdc, 0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0, 80, 0x9c, 0x40, 0, 0, 0, 1, 0, 0, 0, 2, (((20 + options.len()) / 4) << 4) as u8, 0x18, 1, 0, 0, 0, 0, 0]);
    frame.extend(options);
    frame.resize(1514, 0);
    frame
}

fn median(mut values: Vec<u32>) -> u32 {
    values.sort_unstable();
    values[values.len() / 2]
}

fn main() {
    let stamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let sack = [1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2];
    let ours = [254, 12, 0x58, 0x43, 0x60, 0, 0x96, 0xe7, 0x46, 0x80, 0x7f, 0xff];
    let answer = [254, 8, 0x58, 0x43, 0x52, 1, 0xa8, 0x71];
    let classic = [14, 8, 0x7f, 0xff, 0, 100, 0, 100];
    let frames = [
        ("udp", frame(17, &[])),
        ("plain tcp, timestamps", frame(6, &stamps)),
        ("plain tcp, timestamps and sack", frame(6, &[&stamps[..], &sack].concat())),
        ("xcp data", frame(6, &[&stamps[..], &ours].concat())),
        ("xcp data, no timestamps", frame(6, &ours)),
        ("xcp acknowledgement", frame(6, &[&stamps[..], &answer].concat())),
        ("xcp acknowledgement, sack", frame(6, &[&stamps[..], &sack, &answer].concat())),
        ("xcp data, classic", frame(6, &[&stamps[..], &classic].concat())),
    ];
    let mut law = RouterConfig::xcp(125_000_000);
    law.count_other = true;
    let program = match Rehearsal::load(true) {
        Ok(program) => program,
        Err(e) => return println!("SKIPPED: {e}"),
    };
    program.begin(law.capacity_bytes_per_sec, &Router::new(&law, 0, 1).expect("a law in range")).expect("maps can be written");
    // By turns, so that a machine that slows down slows all of them.
    let mut nothing = Vec::new();
    let mut costs = vec![Vec::new(); frames.len()];
    for _ in 0..ROUNDS {
        nothing.push(nothing_ns(&frames[0].1, REPEAT).expect("it ran before"));
        for (cost, (_, frame)) in costs.iter_mut().zip(&frames) {
            cost.push(program.cost_ns(frame, REPEAT).expect("it ran before"));
        }
    }
    println!("{:32} {:>4} ns", "a program that does nothing", median(nothing));
    for ((name, _), cost) in frames.iter().zip(costs) {
        println!("{name:32} {:>4} ns", median(cost));
    }
}
