//! A pair of delay lines between two devices of this network namespace, until it is killed: a long
//! link for experiments by hand and by scripts.
//!
//! `ip netns exec WIRE wire w0 w1 delay=300ms loss=0.01 reorder=0.01 reorder-delay=5ms
//! blackout=25..35 modem=10000000 modem-packets=1000 seed=1`
//!
//! `loss` and `reorder` are probabilities in each direction; what is reordered falls back by up to
//! `reorder-delay` (5 ms unless it is given), so that others overtake it. `blackout` is in seconds
//! after the start. `modem` is a rate in bit/s, behind a queue of so many packets (1000 unless that is
//! given) in each direction. "ready" is printed when frames are taken; at SIGTERM it says what became of
//! them.

use std::collections::HashMap;
use std::io::Write as _;

use xcp_lab::line::{Line, LineConfig, QueueConfig, Reorder, monotonic_now};
use xcp_linux::offload::{self, Offload};
use xcp_model::units::Period;
use xcp_model::{Limit, Loss, LossPlace, Queue};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (names, settings): (Vec<&String>, Vec<&String>) =
        words.iter().partition(|word| !word.contains('='));
    let [one, other] = names[..] else { panic!("two devices, e.g. wire w0 w1 delay=300ms") };
    let settings: HashMap<&str, &str> =
        settings.iter().filter_map(|word| word.split_once('=')).collect();
    let number = |key: &str, default: f64| {
        settings.get(key).map_or(default, |v| v.trim_end_matches("ms").parse().expect(key))
    };
    let nanos = |seconds: &str| (seconds.parse::<f64>().expect("blackout=25..35") * 1e9) as u64;
    let blackouts =
        settings.get("blackout").map(|text| text.split_once("..").expect("blackout=25..35"));
    let (loss, reorder) = (number("loss", 0.0), number("reorder", 0.0));
    let most = (number("reorder-delay", 5.0) * 1e6) as u64;
    for device in [one, other] {
        Offload::ALL
            .into_iter()
            .for_each(|o| offload::set(device, o, false).expect("offloads off"));
    }
    let modem = settings.contains_key("modem").then(|| QueueConfig {
        rates: (number("modem", 0.0) as u64).into(),
        queue: Queue::drop_tail(Limit::Packets(number("modem-packets", 1000.0) as u64)),
        overhead_bytes: 0,
    });
    let always = Period { from: 0, to: u64::MAX };
    let config = |index| LineConfig {
        delays: ((number("delay", 0.0) * 1e6) as u64).into(),
        losses: if loss > 0.0 {
            vec![Loss { probability: loss, place: LossPlace::AfterQueue, period: always }]
        } else {
            Vec::new()
        },
        losses_elsewhere: false,
        blackouts: blackouts
            .iter()
            .map(|(from, to)| Period { from: nanos(from), to: nanos(to) })
            .collect(),
        reorder: (reorder > 0.0).then_some(Reorder { probability: reorder, most }),
        queue: modem.clone(),
        seed: number("seed", 1.0) as u64,
        index,
        zero: monotonic_now(),
        mtu: 1500,
        input_rate_bps: 1_000_000_000,
    };
    let line =
        |index, from: &str, to: &str| Line::start(&config(index), None, from, to).expect("a line");
    let end = Termination::block();
    let lines = [line(0, one, other), line(1, other, one)];
    // Who does not want to hear it has closed its end; that is no reason to fail.
    let mut out = std::io::stdout();
    let _ = writeln!(out, "ready").and_then(|()| out.flush());
    end.wait();
    for (line, (from, to)) in lines.into_iter().zip([(one, other), (other, one)]) {
        let report = line.stop();
        let (wire, trouble) = (report.wire, report.faults().join("; "));
        let _ = writeln!(
            out,
            "{from} to {to}: {} in, {} lost, {} fell back; {trouble}",
            report.packets_in, wire.lost_at_random, wire.fell_back
        );
    }
}

/// SIGTERM and SIGINT, waited for.
struct Termination(libc::sigset_t);

impl Termination {
    /// They end nothing from now on, in this thread and those it starts.
    fn block() -> Self {
        // SAFETY: a signal set is plain bits, made by `sigemptyset`; the calls read and write it
        // only while they last.
        unsafe {
            let mut signals = std::mem::zeroed();
            libc::sigemptyset(&raw mut signals);
            libc::sigaddset(&raw mut signals, libc::SIGTERM);
            libc::sigaddset(&raw mut signals, libc::SIGINT);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut());
            Self(signals)
        }
    }

    fn wait(&self) {
        let mut signal = 0;
        // SAFETY: the set was made by `block`, and the number is written during the call only.
        unsafe { libc::sigwait(&raw const self.0, &raw mut signal) };
    }
}
