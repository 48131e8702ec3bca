//! XCP's packets and all others in queues of their own: a flood without headers, which no policer
//! holds back, takes what is the others' and no more; and XCP takes what the others leave. (That a
//! link that is split stays split is seen in the lab, where there are delays.)

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use xcp_engine::Input;
use xcp_linux::endpoint::Give;
use xcp_linux::qdisc::Others;
use xcp_linux::router::Hook;

use crate::site::{Site, endpoint};

const RATE_BPS: u64 = 20_000_000;
/// As in `liars`: the only delay there is.
const TARGET_BYTES: u64 = 100_000;
const SETTLING: Duration = Duration::from_secs(6);
const MEASURED: Duration = Duration::from_secs(4);

/// What three XCP flows have of the link beside a flood of datagrams at twice its rate, or none.
fn goodput(others: Option<Others>, flood: bool, hook: Hook) -> Option<f64> {
    let site = Site::new()?;
    let _endpoint = endpoint(&site, Give::All);
    let mut law = xcp_engine::RouterConfig::xcp(RATE_BPS / 8);
    law.queue_target_bytes = TARGET_BYTES;
    // What another queue takes is not this law's input.
    law.input = if others.is_none() { Input::All } else { Input::Xcp };
    let router = match others {
        Some(others) => site.router_with_classes(RATE_BPS, hook, law, others),
        None => site.router_of(RATE_BPS, hook, law),
    };
    let listeners: Vec<TcpListener> = (0..3)
        .map(|_| {
            site.d
                .run(|| TcpListener::bind(SocketAddr::new(site.address(false), 0)).unwrap())
                .unwrap()
        })
        .collect();
    let (over, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let part = thread::scope(|scope| {
        for listener in &listeners {
            let to = listener.local_addr().unwrap();
            let (mut sender, over) =
                (site.s.run(|| TcpStream::connect(to).unwrap()).unwrap(), &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) && sender.write_all(&[0; 1 << 14]).is_ok() {}
            });
            let (mut receiver, _) = listener.accept().unwrap();
            let count = &count;
            scope.spawn(move || {
                let mut data = vec![0; 1 << 16];
                while let Ok(n @ 1..) = receiver.read(&mut data) {
                    count.fetch_add(n as u64, Ordering::Relaxed);
                }
            });
        }
        if flood {
            let socket = site.s.run(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
            let (to, over) = (SocketAddr::new(site.address(false), 9), &over);
            scope.spawn(move || {
                // 40 Mbit/s in pieces of 2 ms, made up for where this thread was late.
                let (begin, mut sent) = (Instant::now(), 0);
                while !over.load(Ordering::Relaxed) {
                    let due = (begin.elapsed().as_secs_f64() * 2.0 * RATE_BPS as f64 / 8.0 / 1442.0)
                        as u64;
                    while sent < due {
                        let _ = socket.send_to(&[0; 1400], to);
                        sent += 1;
                    }
                    thread::sleep(Duration::from_millis(2));
                }
            });
        }
        thread::sleep(SETTLING);
        // What fills a hole brings all that came before: where its queue tells what XCP had of the
        // link, that is what counts.
        let sent =
            || site.class_stats().map_or(count.load(Ordering::Relaxed), |[xcp, _]| xcp.bytes);
        let (before, begin) = (sent(), Instant::now());
        thread::sleep(MEASURED);
        let part = (sent() - before) as f64 * 8.0 / begin.elapsed().as_secs_f64() / RATE_BPS as f64;
        over.store(true, Ordering::Relaxed);
        part
    });
    let stats = site.class_stats();
    println!(
        "{others:?}, flood {flood}: {part:.3} of the link; {stats:?}; {:?}",
        router.status().unwrap().counts
    );
    if let (Some([xcp, others]), Some(wanted)) = (stats, others) {
        assert!(xcp.packets > 1000, "{xcp:?}");
        let whole = RATE_BPS as f64 / 8.0 * (SETTLING + MEASURED).as_secs_f64();
        let least = if wanted == Others::Last { 0.0 } else { 0.3 };
        assert!(!flood || others.drops > 1000 && others.bytes as f64 > least * whole, "{others:?}");
    }
    site.assert_checksums();
    Some(part)
}

#[test]
fn a_flood_without_headers_takes_no_more_than_the_others_share() {
    let Some(beside) = goodput(None, true, Hook::Any) else { return };
    assert!(beside < 0.2, "the flood takes nothing even where nothing is kept apart: {beside:.3}");
    for hook in [Hook::Any, Hook::Clsact] {
        let kept = goodput(Some(Others::Fair(600)), true, hook).unwrap_or_default();
        assert!((0.55..0.65).contains(&kept), "XCP has {kept:.3} of the link, and 0.6 are its own");
    }
    let first = goodput(Some(Others::Last), true, Hook::Any).unwrap_or_default();
    assert!(first > 0.85, "XCP goes first and has {first:.3}");
    let alone = goodput(Some(Others::Fair(600)), false, Hook::Any).unwrap_or_default();
    assert!(alone > 0.85, "nobody else is there, and XCP has {alone:.3}");
}
