//! What the router program costs per packet (BPF_PROG_TEST_RUN), beside a program that does
//! nothing, without and with a policer, and by the law that remembers its promises (`robust`):
//! medians, ns. Needs root.

use xcp_engine::{Policer, PolicerConfig, Preset, RobustRouter, Router, RouterConfig, WireFormat};
use xcp_linux::police::{Police, PoliceBy};
use xcp_linux::rehearsal::{Rehearsal, nothing_ns};

const REPEAT: u32 = 500_000;
const ROUNDS: usize = 9;
/// Bytes a second: so many that one flow that does nothing but send does not get more than its
/// share, which would be refused at less cost.
const CAPACITY: u64 = 100_000_000_000;

fn frame(protocol: u8, options: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([
        8, 0, 0x45, 0, 5, 0xdc, 0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    frame.extend([
        0,
        80,
        0x9c,
        0x40,
        0,
        0,
        0,
        1,
        0,
        0,
        0,
        2,
        (((20 + options.len()) / 4) << 4) as u8,
        0x18,
        1,
        0,
        0,
        0,
        0,
        0,
    ]);
    frame.extend(options);
    frame.resize(1514, 0);
    frame
}

/// The same in IPv6.
fn frame_v6(options: &[u8]) -> Vec<u8> {
    let old = frame(6, options);
    let mut frame = old[..12].to_vec();
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 5, 0xb4, 6, 64]);
    frame.extend((0..32).map(|i| i + 1));
    frame.extend(&old[34..]);
    frame.truncate(1514);
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
    // One packet every 67 ns, which is less than it takes here: the policer believes all of it,
    // where it corrects what `ours` claims.
    let (rtt, window) = (
        WireFormat::Extended.encode_rtt(1_000_000).to_be_bytes(),
        WireFormat::Extended.encode_window(15_000.0).to_be_bytes(),
    );
    let fast = [254, 12, 0x58, 0x43, 0x60, 0, rtt[0], rtt[1], window[0], window[1], 0x7f, 0xff];
    let answer = [254, 8, 0x58, 0x43, 0x52, 1, 0xa8, 0x71];
    let classic = [14, 8, 0x7f, 0xff, 0, 100, 0, 100];
    let frames = [
        ("udp", frame(17, &[])),
        ("plain tcp, timestamps", frame(6, &stamps)),
        ("plain tcp, timestamps and sack", frame(6, &[&stamps[..], &sack].concat())),
        ("xcp data", frame(6, &[&stamps[..], &fast].concat())),
        ("xcp data, not to be believed", frame(6, &[&stamps[..], &ours].concat())),
        ("xcp data, no timestamps", frame(6, &ours)),
        ("xcp acknowledgement", frame(6, &[&stamps[..], &answer].concat())),
        ("xcp acknowledgement, sack", frame(6, &[&stamps[..], &sack, &answer].concat())),
        ("xcp data, classic", frame(6, &[&stamps[..], &classic].concat())),
        ("xcp data, ipv6", frame_v6(&[&stamps[..], &fast].concat())),
    ];
    let mut law = RouterConfig::xcp(CAPACITY);
    law.input = xcp_engine::Input::All;
    let police =
        |by| Some(Police { config: PolicerConfig { seed: 7, ..PolicerConfig::DEFAULT }, by });
    let kinds = [
        ("-", None),
        ("by flow", police(PoliceBy::Flow)),
        ("by address", police(PoliceBy::ADDRESS)),
        ("by prefix", police(PoliceBy::PREFIX)),
    ];
    let mut programs = Vec::new();
    for (name, police) in kinds {
        let program = match Rehearsal::load_policed(true, police.as_ref()) {
            Ok(program) => program,
            Err(e) => return println!("SKIPPED: {e}"),
        };
        let mut router = Router::new(&law, 0, 1).expect("a law in range");
        let policer = police.map(|police| Policer::new(&police.config, &mut router));
        program
            .begin_policed(law.capacity_bytes_per_sec, &router, policer.as_ref())
            .expect("maps can be written");
        programs.push((name, program));
    }
    match Rehearsal::load_robust(true) {
        Ok(program) => {
            let law = RouterConfig::preset(Preset::Robust, CAPACITY);
            let router = RobustRouter::new(&law, 0, 1).expect("a law in range");
            program.begin_robust(CAPACITY, &router).expect("maps can be written");
            programs.push(("robust", program));
        }
        Err(e) => return println!("SKIPPED: {e}"),
    }
    // By turns, so that a machine that slows down slows all of them.
    let mut nothing = Vec::new();
    let mut costs = vec![vec![Vec::new(); frames.len()]; programs.len()];
    for _ in 0..ROUNDS {
        nothing.push(nothing_ns(&frames[0].1, REPEAT).expect("it ran before"));
        for (at, (_, frame)) in frames.iter().enumerate() {
            for (costs, (_, program)) in costs.iter_mut().zip(&programs) {
                costs[at].push(program.cost_ns(frame, REPEAT).expect("it ran before"));
            }
        }
    }
    println!("{:32} {:>10} ns", "a program that does nothing", median(nothing));
    let names: String = programs.iter().map(|(name, _)| format!("{name:>13}")).collect();
    println!("{:32} {names}", "policer, or law");
    for (at, (name, _)) in frames.iter().enumerate() {
        let row: String =
            costs.iter().map(|costs| format!("{:>10} ns", median(costs[at].clone()))).collect();
        println!("{name:32} {row}");
    }
}
