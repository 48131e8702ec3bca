//! A pair of delay lines between two devices of this network namespace, until it is killed: a long link for experiments by hand and by scripts.
//!
//! `ip netns exec WIRE wire w0 w1 delay=300ms loss=0.01 blackout=25..35 seed=1`
//!
//! `loss` is a probability in each direction, `blackout` in seconds after the start; "ready" is printed when frames are taken.

use std::collections::HashMap;
use std::io::Write as _;

use xcp_lab::line::{Line, LineConfig, monotonic_now};
use xcp_linux::offload::{self, Offload};
use xcp_scenario::model::{Loss, LossPlace};
use xcp_scenario::units::Period;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (names, settings): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| !word.contains('='));
    let [one, other] = names[..] else { panic!("two devices, e.g. wire w0 w1 delay=300ms") };
    let settings: HashMap<&str, &str> = settings.iter().filter_map(|word| word.split_once('=')).collect();
    let number = |key: &str, default: f64| settings.get(key).map_or(default, |v| v.trim_end_matches("ms").parse().expect(key));
    let nanos = |seconds: &str| (seconds.parse::<f64>().expect("blackout=25..35") * 1e9) as u64;
    let blackouts = settings.get("blackout").map(|text| text.split_once("..").expect("blackout=25..35"));
    let loss = number("loss", 0.0);
    for device in [one, other] {
        Offload::ALL.into_iter().for_each(|o| offload::set(device, o, false).expect("offloads off"));
    }
    let always = Period { from: 0, to: u64::MAX };
    let config = |index| LineConfig {
        delay: (number("delay", 0.0) * 1e6) as u64,
        losses: if loss > 0.0 { vec![Loss { probability: loss, place: LossPlace::AfterQueue, period: always }] } else { Vec::new() },
        blackouts: blackouts.iter().map(|(from, to)| Period { from: nanos(from), to: nanos(to) }).collect(),
        queue: None,
        seed: number("seed", 1.0) as u64,
        index,
        zero: monotonic_now(),
        mtu: 1500,
        input_rate_bps: 1_000_000_000,
    };
    let line = |index, from: &str, to: &str| Line::start(&config(index), None, from, to).expect("a line");
    let _lines = [line(0, one, other), line(1, other, one)];
    println!("ready");
    std::io::stdout().flush().expect("stdout");
    loop {
        std::thread::park();
    }
}
