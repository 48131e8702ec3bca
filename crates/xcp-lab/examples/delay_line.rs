//! Measures a pair of delay lines on this machine: two hosts in network namespaces, a line each
//! way, and load.
//!
//! `cargo run --release -p xcp-lab --example delay_line -- delay=25ms rate=1000 seconds=10
//! load=udp`
//!
//! `load` is `udp` (our own paced sender, one way), `both` (the same both ways), or what iperf3 is
//! to be told, e.g. `load="-t 10 -C cubic"`. `rate` is in Mbit/s of frames, `size` their bytes,
//! `bursts` (microseconds) how often the sender sends; `idle=20` adds as many idle lines;
//! `shape=1000` puts a shaper of so many Mbit/s in front (for iperf3's TCP); `checksums=on` leaves
//! tx checksums to the devices.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use xcp_lab::line::{Line, LineConfig, Report, monotonic_now};

#[path = "../tests/bed/mod.rs"]
mod bed;
use bed::{Bed, LEFT, Namespace, RIGHT};

fn main() {
    let arguments: HashMap<String, String> = std::env::args()
        .skip(1)
        .filter_map(|a| a.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())))
        .collect();
    let text = |key: &str, default: &str| {
        arguments.get(key).cloned().unwrap_or_else(|| default.to_owned())
    };
    let number =
        |key: &str, default: f64| arguments.get(key).map_or(default, |v| v.parse().expect(key));
    let delay_ms: f64 = text("delay", "25ms").trim_end_matches("ms").parse().expect("delay=25ms");
    let (rate, seconds, size) =
        (number("rate", 1000.0) * 1e6, number("seconds", 10.0), number("size", 1514.0) as usize);
    let mtu = (size as u32 - 14).max(1500);
    let load = text("load", "udp");

    let Some(bed) = Bed::new(mtu) else { return };
    bed.turn_offloads_off();
    if text("checksums", "off") == "on" {
        for (namespace, device) in [
            (&bed.left, "left0"),
            (&bed.right, "right0"),
            (&bed.wire, &bed.device_left),
            (&bed.wire, &bed.device_right),
        ] {
            namespace
                .enter(|| bed::set_offload(device, bed::ETHTOOL_STXCSUM, true))
                .expect("ethtool");
        }
    }
    if let Some(shape) = arguments.get("shape") {
        let qdisc = format!("qdisc add dev left0 root tbf rate {shape}mbit burst 32kb limit 8mb");
        let status =
            bed.left.enter(|| Command::new("tc").args(qdisc.split(' ')).status()).expect("tc");
        assert!(status.success(), "tc {qdisc}");
    }
    for host in [&bed.left, &bed.right] {
        host.enter(|| {
            for (file, value) in
                [("tcp_wmem", "4096 16384 67108864"), ("tcp_rmem", "4096 4000000 67108864")]
            {
                std::fs::write(format!("/proc/sys/net/ipv4/{file}"), value).expect(file);
            }
        });
    }
    let config = LineConfig {
        delays: ((delay_ms * 1e6) as u64).into(),
        losses: Vec::new(),
        losses_elsewhere: false,
        blackouts: Vec::new(),
        reorder: None,
        queue: None,
        seed: 1,
        index: 0,
        zero: monotonic_now(),
        mtu,
        input_rate_bps: rate as u64,
    };
    let idle_beds: Vec<Bed> =
        (0..number("idle", 0.0) as usize / 2).filter_map(|_| Bed::new(1500)).collect();
    let line = |bed: &Bed, from: &str, to: &str| {
        Line::start(&config, Some(bed.wire.as_fd()), from, to).expect("a line")
    };
    let pair = |bed: &Bed| {
        [
            line(bed, &bed.device_left, &bed.device_right),
            line(bed, &bed.device_right, &bed.device_left),
        ]
    };
    let idle: Vec<_> = idle_beds.iter().map(pair).collect();
    let lines = pair(&bed);

    let (begin, used_before) = (Instant::now(), line_seconds());
    match load.as_str() {
        "udp" => {
            stream(&bed.left, &bed.right, LEFT, RIGHT, rate, seconds, size, number("bursts", 200.0))
        }
        "both" => thread::scope(|scope| {
            scope.spawn(|| {
                stream(
                    &bed.left,
                    &bed.right,
                    LEFT,
                    RIGHT,
                    rate,
                    seconds,
                    size,
                    number("bursts", 200.0),
                )
            });
            scope.spawn(|| {
                stream(
                    &bed.right,
                    &bed.left,
                    RIGHT,
                    LEFT,
                    rate,
                    seconds,
                    size,
                    number("bursts", 200.0),
                )
            });
        }),
        iperf => {
            let mut server = bed
                .right
                .enter(|| Command::new("iperf3").args(["-s", "-1"]).stdout(Stdio::null()).spawn())
                .expect("iperf3");
            sleep(Duration::from_millis(300));
            let client = bed
                .left
                .enter(|| {
                    Command::new("iperf3")
                        .args(["-c", RIGHT])
                        .args(iperf.split_whitespace())
                        .output()
                })
                .expect("iperf3");
            let output = String::from_utf8_lossy(&client.stdout);
            let summary =
                output.lines().filter(|line| line.contains("sender") || line.contains("receiver"));
            summary.for_each(|line| println!("  {line}"));
            server.kill().expect("kill");
            server.wait().expect("wait");
        }
    }
    let used = (line_seconds() - used_before) / begin.elapsed().as_secs_f64();
    let load_average = std::fs::read_to_string("/proc/loadavg").expect("loadavg");
    println!(
        "  the lines used {:.0} % of a processor; load average {}",
        used * 100.0,
        load_average.split(' ').next().unwrap_or_default()
    );
    for (name, line) in ["there", "back "].iter().zip(lines) {
        print(name, &line.stop());
    }
    for report in idle.into_iter().flatten().map(Line::stop) {
        assert_eq!(report.packets_in, 0, "idle");
    }
}

/// Sends datagrams at a rate in bursts, counts what arrives and how late.
#[expect(clippy::too_many_arguments, reason = "a measurement's knobs")]
fn stream(
    from: &Namespace,
    to: &Namespace,
    from_address: &str,
    to_address: &str,
    rate: f64,
    seconds: f64,
    size: usize,
    burst_micros: f64,
) {
    let receiver = to.enter(|| UdpSocket::bind((to_address, 7000))).expect("bind");
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, 64 << 20).expect("buffer");
    receiver.set_read_timeout(Some(Duration::from_secs(1))).expect("timeout");
    let sender = from.enter(|| UdpSocket::bind((from_address, 7001))).expect("bind");
    sender.connect((to_address, 7000)).expect("connect");
    thread::scope(|scope| {
        let received = scope.spawn(|| {
            let (mut buffer, mut count, mut reordered, mut last, mut least, mut most) =
                ([0u8; 9100], 0u64, 0u64, 0, u64::MAX, 0);
            while let Ok(length) = receiver.recv(&mut buffer) {
                let number = u64::from_le_bytes(buffer[..8].try_into().expect("8 bytes"));
                let transit = monotonic_now()
                    - u64::from_le_bytes(buffer[8..16].try_into().expect("8 bytes"));
                assert_eq!(length, size - 42);
                reordered += u64::from(count > 0 && number < last);
                (last, least, most) = (number, least.min(transit), most.max(transit));
                count += 1;
            }
            (count, reordered, least, most)
        });
        let mut buffer = vec![0u8; size - 42];
        let (begin, mut sent, mut bursts) = (Instant::now(), 0u64, 0u64);
        while begin.elapsed().as_secs_f64() < seconds {
            bursts += 1;
            let until = begin + Duration::from_secs_f64(bursts as f64 * burst_micros * 1e-6);
            sleep(until.saturating_duration_since(Instant::now()));
            let due = (begin.elapsed().as_secs_f64() * rate / 8.0 / size as f64) as u64;
            while sent < due {
                buffer[..8].copy_from_slice(&sent.to_le_bytes());
                buffer[8..16].copy_from_slice(&monotonic_now().to_le_bytes());
                sender.send(&buffer).expect("send");
                sent += 1;
            }
        }
        let took = begin.elapsed().as_secs_f64();
        let (count, reordered, least, most) = received.join().expect("receiver");
        println!(
            "  sent {sent} ({:.0} Mbit/s), missing {}, out of order {reordered}, transit {} to {} \
                us",
            sent as f64 * size as f64 * 8e-6 / took,
            sent - count,
            least / 1000,
            most / 1000
        );
    });
}

fn print(name: &str, report: &Report) {
    let lateness = &report.lateness;
    println!(
        "  {name} in {} out {} | late us p50 {} p99 {} p99.9 {} max {} | ring drops {} | {}",
        report.packets_in,
        report.packets_out,
        lateness.quantile(0.5) / 1000,
        lateness.quantile(0.99) / 1000,
        lateness.quantile(0.999) / 1000,
        lateness.max() / 1000,
        report.trouble.ring_drops,
        if report.faults().is_empty() { "good".to_owned() } else { report.faults().join("; ") }
    );
}

/// Processor seconds used by the lines' threads.
fn line_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("tasks");
    let seconds = tasks.filter_map(|task| {
        let path = task.ok()?.path();
        let line = std::fs::read_to_string(path.join("comm")).ok()?.starts_with("line ");
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        line.then(|| text.split_whitespace().next()?.parse::<f64>().ok()).flatten()
    });
    seconds.sum::<f64>() / 1e9
}
