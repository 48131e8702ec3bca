//! What is measured rather than asserted, as a busy machine would fail it: `cargo test -p xcp-linux
//! --release --test plumbing -- --ignored --nocapture measure`.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use xcp_linux::netlink::Netlink;
use xcp_linux::qdisc::{self, Limit, QdiscStats, Shaper, Whose};

use crate::{RIGHT, Wire, namespace, wire};

/// Fills the shaper with full-sized datagrams, or with a TCP connection (whose packets are cut up
/// after the shaper), while `f` runs.
fn while_busy<T>(wire: &Wire, tcp: bool, f: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if tcp {
            let server = wire.right.run(|| TcpListener::bind((RIGHT, 0))).unwrap().unwrap();
            let to = server.local_addr().unwrap();
            let mut client = wire.left.run(|| TcpStream::connect(to)).unwrap().unwrap();
            client.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            scope.spawn(move || {
                let mut connection = server.accept().unwrap().0;
                while connection.read(&mut vec![0; 1 << 20]).is_ok_and(|n| n > 0) {}
            });
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let _ = client.write(&[0; 1 << 17]);
                }
            });
        } else {
            let socket = wire.left.run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
            let done = &done;
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let _ = socket.send_to(&[0; 1472], (RIGHT, 9));
                }
            });
        }
        let result = f();
        done.store(true, Ordering::Relaxed);
        result
    })
}

fn timed_stats(nl: &mut Netlink, index: u32) -> (Instant, QdiscStats) {
    let stats = qdisc::stats(nl, index).unwrap();
    (Instant::now(), stats)
}

#[test]
#[ignore = "half a minute; prints"]
fn measure_rates() {
    for (tcp, limit) in [(false, Limit::Packets(100)), (true, Limit::Bytes(1_000_000))] {
        for rate_bps in [100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000] {
            for shaper in [Shaper::Htb, Shaper::Tbf] {
                let Some(wire) = wire("rates of shapers") else { return };
                let mut nl = Netlink::open_in(&wire.left).unwrap();
                qdisc::install(&mut nl, wire.left_index, Whose::Router, shaper, rate_bps, limit)
                    .unwrap();
                while_busy(&wire, tcp, || {
                    std::thread::sleep(Duration::from_millis(500));
                    let (start, before) = timed_stats(&mut nl, wire.left_index);
                    std::thread::sleep(Duration::from_secs(if rate_bps < 1_000_000 {
                        10
                    } else {
                        3
                    }));
                    let (end, after) = timed_stats(&mut nl, wire.left_index);
                    let measured =
                        (after.bytes - before.bytes) as f64 * 8.0 / (end - start).as_secs_f64();
                    let off = (measured / rate_bps as f64 - 1.0) * 100.0;
                    let name = shaper.name();
                    let sent = if tcp { "TCP" } else { "UDP" };
                    println!(
                        "{sent} {name} {rate_bps:>10} bit/s: {measured:>13.0} ({off:+.2} %), \
                            {after:?}"
                    );
                    // What waits would be sent for minutes.
                    qdisc::remove(&mut nl, wire.left_index, Whose::Router).unwrap();
                });
            }
        }
    }
}

#[test]
#[ignore = "prints"]
fn measure_stats() {
    let Some(wire) = wire("cost of counters") else { return };
    let mut nl = Netlink::open_in(&wire.left).unwrap();
    let index = wire.left_index;
    qdisc::install(&mut nl, index, Whose::Router, Shaper::Htb, 100_000_000, Limit::Packets(1000))
        .unwrap();
    let cost = |nl: &mut Netlink| {
        let mut each: Vec<Duration> = (0..20_000)
            .map(|_| {
                let start = Instant::now();
                qdisc::stats(nl, index).unwrap();
                start.elapsed()
            })
            .collect();
        each.sort();
        let at = |share: f64| each[(share * (each.len() - 1) as f64) as usize];
        format!(
            "median {:?}, 99 % {:?}, 99.9 % {:?}, most {:?}",
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0)
        )
    };
    println!("idle:            {}", cost(&mut nl));
    println!("100 Mbit/s UDP:  {}", while_busy(&wire, false, || cost(&mut nl)));
    let Some(other) = namespace("cost of counters") else { return };
    for i in 0..100 {
        nl.add_veth(&format!("a{i}"), &format!("b{i}"), &other).unwrap();
    }
    println!("100 devices:     {}", cost(&mut nl));
    let start = Instant::now();
    for _ in 0..100 {
        qdisc::root(&mut nl, index).unwrap();
    }
    println!("root():          {:?}", start.elapsed() / 100);
}
