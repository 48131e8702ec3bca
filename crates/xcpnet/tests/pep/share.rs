//! Who has many connections has no more of the long link than who has one.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::site::{Proxy, SERVER, Site, pep};
use super::traffic::{Wish, connect, listen, rustix_linger, serve};
use super::{DELAY, gateways, one};

/// Of the client's address of IPv4, and of its address of IPv6.
const CONNECTIONS: [usize; 2] = [8, 1];
const SETTLES: Duration = Duration::from_secs(2);
const MEASURED: Duration = Duration::from_secs(3);

/// Bytes that come to each of the client's two addresses.
fn shares(site: &Site, port: u16) -> [f64; 2] {
    let ended = AtomicBool::new(false);
    let counts = [AtomicU64::new(0), AtomicU64::new(0)];
    let mut servers = Vec::new();
    std::thread::scope(|scope| {
        for (family, many) in CONNECTIONS.into_iter().enumerate() {
            servers.push(serve(listen(&site.server, SERVER[family], port), many));
            for number in 0..many {
                let mut stream = connect(&site.client, SERVER[family], port).unwrap();
                let wish = Wish { seed: number as u64, down: 1 << 30, reset_at: u64::MAX };
                stream.write_all(&wish.bytes()).unwrap();
                let (count, ended) = (&counts[family], &ended);
                scope.spawn(move || {
                    let mut buffer = [0; 16 << 10];
                    while !ended.load(Ordering::Relaxed) {
                        let read = stream.read(&mut buffer).unwrap();
                        count.fetch_add(read as u64, Ordering::Relaxed);
                    }
                    rustix_linger(&stream);
                });
            }
        }
        let now = || counts.each_ref().map(|count| count.load(Ordering::Relaxed) as f64);
        std::thread::sleep(SETTLES);
        let before = now();
        std::thread::sleep(MEASURED);
        let after = now();
        ended.store(true, Ordering::Relaxed);
        [after[0] - before[0], after[1] - before[1]]
    })
}

#[test]
fn who_has_many_connections_gets_no_more_than_who_has_one() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let link = ["--rate", "20mbit", "--rate-in", "20mbit", "--rtt", "40ms"];
    let Some([_near, far]) = gateways(&site, &[&link[..], &["--share", "address"]].concat()) else {
        return;
    };
    // As connections, the many would have eight times as much. Shares are what the processors leave
    // of them, too: on a machine that was busy throughout they were 1.6 to 1 once.
    let fair = |[many, one]: [f64; 2]| (0.75..1.33).contains(&(many / one));
    let filled = |[many, one]: [f64; 2]| (many + one) * 8.0 / MEASURED.as_secs_f64() > 14e6;
    let mut seen = Vec::new();
    for port in 5201..5204 {
        seen.push(shares(&site, port));
        if seen.last().is_some_and(|shares| fair(*shares) && filled(*shares)) {
            break;
        }
    }
    let last = seen[seen.len() - 1];
    assert!(fair(last) && filled(last), "bytes of many and of one, in {MEASURED:?}: {seen:?}");
    assert_eq!(far.show()["gateway"]["share"], "address");
    let wrong = pep(&site.far, "check", &["--wan", "wan", "--lan", "lan", "--share", "customer"]);
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(!wrong.status.success() && said.contains("prefix/28"), "{said}");
    drop::<Proxy<'_>>(far);
}
