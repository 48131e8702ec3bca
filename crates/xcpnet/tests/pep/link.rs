//! What the proxies make of the long link: how a connection begins, an outage, and last words that
//! are on their way longer than their speaker lives.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use super::site::{Proxy, SERVER, Site};
use super::traffic::{Wish, connect, listen, read_all, receive, send};
use super::{gateways, one, until};
use xcp_linux::namespace::Namespace;
use xcp_linux::sysctl;

/// 20 Mbit/s and 200 ms: 330 packets.
const LINK: &[&str] = &["--rate", "20mbit", "--rtt", "200ms"];
const DELAY: Duration = Duration::from_millis(100);

/// A server that answers one wish and closes at once, whatever the client does.
fn abrupt(site: &Site, port: u16) -> std::thread::JoinHandle<()> {
    let listener = listen(&site.server, SERVER[0], port);
    spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let wish = Wish::read(&mut stream).unwrap();
        let _ = send(&mut stream, wish.seed, wish.down);
    })
}

/// What a gateway has lent so far.
pub fn lent(proxy: &Proxy, what: &str) -> u64 {
    proxy.show()["gateway"]["lent"][what].as_u64().unwrap()
}

/// The far gateway's window across the link.
fn window(far: &Proxy) -> Option<u64> {
    far.show()["connections"][0]["client_leg"]["cwnd"].as_u64()
}

/// ARP's question goes across the link where that is one Ethernet; the first client need not wait.
#[test]
fn gateways_know_each_other_before_anybody_connects() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let knows = |gateway: &Namespace, other: &str| {
        let read = || std::fs::read_to_string("/proc/thread-self/net/arp");
        let table = gateway.run(read).unwrap().unwrap();
        table.lines().any(|line| line.starts_with(other) && line.contains("0x2"))
    };
    assert!(!knows(&site.near, "10.71.9.2 ") && !knows(&site.far, "10.71.9.1 "));
    let Some(_proxies) = gateways(&site, LINK) else { return };
    until("near knows far", || knows(&site.near, "10.71.9.2 "));
    until("far knows near", || knows(&site.far, "10.71.9.1 "));
}

#[test]
fn on_an_idle_link_one_connection_begins_with_most_of_it() {
    let _one = one();
    for law in ["p-xcp", "robust"] {
        let Some(site) = Site::new(DELAY, 0.0) else { return };
        let Some([near, far]) = gateways(&site, &[LINK, &["--law", law]].concat()) else { return };
        let server = abrupt(&site, 5011);
        let mut stream = connect(&site.client, SERVER[0], 5011).unwrap();
        let begin = Instant::now();
        stream.write_all(&Wish { seed: 1, down: 2 << 20, reset_at: u64::MAX }.bytes()).unwrap();
        assert_eq!(receive(&mut stream, 1).0, 2 << 20);
        eprintln!("{law}: 2 MiB in {:?}", begin.elapsed());
        server.join().unwrap();
        assert_eq!(lent(&far, "beginners"), 1, "{law}");
        // Three quarters of what its first window had left, or more, and not all: somebody may
        // come.
        let rest = lent(&far, "rest");
        assert!(((330 - 64) * 3 / 4..330).contains(&rest), "{law}: {}", far.show());
        assert_eq!(lent(&near, "rest"), 0, "{law}: the other way nothing waited: {}", near.show());
    }
}

#[test]
fn a_round_trip_that_was_named_too_long_lends_no_more_than_the_link_carries() {
    let _one = one();
    let Some(site) = Site::new(Duration::from_millis(20), 0.0) else { return };
    // 66 packets, of which 990 would be told by the default of 600 ms.
    let Some([_near, far]) = gateways(&site, &["--rate", "20mbit"]) else { return };
    let server = abrupt(&site, 5015);
    let mut stream = connect(&site.client, SERVER[0], 5015).unwrap();
    stream.write_all(&Wish { seed: 5, down: 1 << 20, reset_at: u64::MAX }.bytes()).unwrap();
    assert_eq!(receive(&mut stream, 5).0, 1 << 20);
    server.join().unwrap();
    let rest = lent(&far, "rest");
    assert!(rest > 10 && rest <= 66, "{rest} packets lent");
}

#[test]
fn after_an_outage_the_window_is_that_of_before() {
    let _one = one();
    let Some(site) = Site::new(DELAY, 0.0) else { return };
    let Some([_near, far]) = gateways(&site, LINK) else { return };
    let server = abrupt(&site, 5012);
    let mut stream = connect(&site.client, SERVER[0], 5012).unwrap();
    stream.write_all(&Wish { seed: 2, down: 1 << 30, reset_at: u64::MAX }.bytes()).unwrap();
    let (read, reader) = read_all(&stream);
    // Twenty windows, by which time the connection has its share.
    let mut before = 0;
    until("the window has grown", || {
        before = before.max(window(&far).unwrap_or(0));
        read.load(Ordering::Relaxed) > 10 << 20
    });
    site.cut();
    until("the timeout has taken the window", || window(&far) == Some(1));
    // What was on its way has long been read.
    let count = read.load(Ordering::Relaxed);
    site.mend();
    until("the link is back", || read.load(Ordering::Relaxed) > count);
    // Two round trips: what comes may be read before its acknowledgement is back at the sender, and
    // a window that begins anew is eight packets after one and sixty-four after two. What is shown
    // is what may be in flight: half as much again where round trips took so much longer, as they do
    // where this machine's processors were away, and more while what was lent was being sent. So the
    // most of before may be well beyond the window, which a third of it is not.
    let begin = Instant::now();
    let mut after = Vec::new();
    while begin.elapsed() < 4 * DELAY {
        after.push(window(&far).unwrap_or(0));
        sleep(Duration::from_millis(20));
    }
    assert!(
        before > 200 && after.iter().any(|after| after * 3 >= before),
        "at most {before} packets before, {after:?} after"
    );
    stream.shutdown(Shutdown::Both).unwrap();
    reader.join().unwrap();
    drop(stream);
    server.join().unwrap();
}

#[test]
fn a_server_that_is_gone_is_heard_to_its_last_byte() {
    let _one = one();
    let Some(site) = Site::new(Duration::from_millis(20), 0.0) else { return };
    // 700 kB take seven seconds. After one the server's kernel knows nothing of the connection any
    // more, and after three it is asked whether it is there.
    let Some(_proxies) =
        gateways(&site, &["--rate", "800kbit", "--rtt", "40ms", "--keepalive", "3s"])
    else {
        return;
    };
    site.server.run(|| sysctl::write("net.ipv4.tcp_fin_timeout", "1").unwrap()).unwrap();
    let server = abrupt(&site, 5013);
    let mut stream = connect(&site.client, SERVER[0], 5013).unwrap();
    stream.write_all(&Wish { seed: 3, down: 700_000, reset_at: u64::MAX }.bytes()).unwrap();
    server.join().unwrap();
    let (read, error) = receive(&mut stream, 3);
    assert!(error.is_none() && read == 700_000, "{read} {error:?}");
}

#[test]
fn a_client_that_has_ended_and_is_gone_ends_its_server() {
    let _one = one();
    let Some(site) = Site::new(Duration::from_millis(20), 0.0) else { return };
    let Some([near, far]) = gateways(&site, &["--rate", "20mbit", "--rtt", "40ms"]) else { return };
    let server = abrupt(&site, 5016);
    let mut stream = connect(&site.client, SERVER[0], 5016).unwrap();
    stream.write_all(&Wish { seed: 6, down: 1 << 30, reset_at: u64::MAX }.bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    stream.read_exact(&mut [0; 100_000]).unwrap();
    // More has come, which nobody has read: a reset, on every leg.
    drop(stream);
    until("the server learns of it", || server.is_finished());
    for proxy in [near, far] {
        until("nothing is left of it", || {
            proxy.show()["connections"].as_array().is_some_and(Vec::is_empty)
        });
    }
}

/// A short connection needs no timer for it; one that lasts has it soon.
#[test]
fn who_is_silent_for_long_is_asked_on_every_leg() {
    let _one = one();
    let Some(site) = Site::new(Duration::from_millis(1), 0.0) else { return };
    let Some(_proxies) = gateways(&site, &[]) else { return };
    let listener = listen(&site.server, SERVER[0], 5017);
    let mut stream = connect(&site.client, SERVER[0], 5017).unwrap();
    stream.write_all(b"hello").unwrap();
    let _accepted = listener.accept().unwrap();
    for gateway in [&site.near, &site.far] {
        let timers = || {
            let output = gateway.run(|| Command::new("ss").arg("-tno").output()).unwrap().unwrap();
            String::from_utf8_lossy(&output.stdout).matches("timer:(keepalive").count()
        };
        until("both legs are watched", || timers() == 2);
    }
}

#[test]
fn who_drains_waits_for_what_the_kernel_still_holds() {
    let _one = one();
    let Some(site) = Site::new(Duration::from_millis(20), 0.0) else { return };
    let Some([near, far]) = gateways(&site, &["--rate", "800kbit", "--rtt", "40ms"]) else {
        return;
    };
    let server = abrupt(&site, 5014);
    let mut stream = connect(&site.client, SERVER[0], 5014).unwrap();
    stream.write_all(&Wish { seed: 4, down: 300_000, reset_at: u64::MAX }.bytes()).unwrap();
    // Both have said all they have to say long before it has crossed the link.
    stream.shutdown(Shutdown::Write).unwrap();
    server.join().unwrap();
    let reader = spawn(move || receive(&mut stream, 4));
    sleep(Duration::from_millis(500));
    assert_eq!(far.show()["connections"][0]["state"], "closing", "{}", far.show());
    far.down(false);
    let (read, error) = reader.join().unwrap();
    assert!(error.is_none() && read == 300_000, "{read} {error:?}");
    near.down(false);
}
