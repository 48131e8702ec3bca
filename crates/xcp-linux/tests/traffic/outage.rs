//! The robust sender in an outage: how often it tries, how long the kernel keeps the connection, and
//! that nothing of this stays.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use xcp_linux::endpoint::Give;
use xcp_linux::router::Hook;
use xcp_linux::sysctl;

use crate::site::{Site, endpoint};
use crate::{MEGABYTE, robust_connection};

/// Linux 6.15.
const TCP_RTO_MAX_MS: i32 = 44;

const PATIENCE: Duration = Duration::from_secs(15);
/// More than all of a test takes.
const WHOLE: Duration = Duration::from_secs(180);

/// An option of TCP's that is a number; `None` where the kernel does not have it.
fn option(socket: &TcpStream, option: i32) -> Option<u32> {
    let (mut value, mut length) = (0u32, size_of::<u32>() as u32);
    // SAFETY: the kernel writes at most `length` bytes into `value`.
    let got = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            (&raw mut value).cast(),
            &raw mut length,
        )
    };
    (got == 0).then_some(value)
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn set_user_timeout(socket: &TcpStream, value: u32) {
    // SAFETY: the kernel reads four bytes of `value`.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_USER_TIMEOUT,
            (&raw const value).cast(),
            size_of::<u32>() as u32,
        )
    };
    assert_eq!(set, 0);
}

/// How often the timer has expired since anything came back.
fn expiries(socket: &TcpStream) -> u8 {
    // struct tcp_info (include/uapi/linux/tcp.h) begins with tcpi_state, tcpi_ca_state,
    // tcpi_retransmits
    option(socket, libc::TCP_INFO).unwrap().to_ne_bytes()[2]
}

/// Every option by which the kernel decides when to send again and when to give up.
fn timers(socket: &TcpStream) -> (Option<u32>, Option<u32>) {
    (option(socket, TCP_RTO_MAX_MS), option(socket, libc::TCP_USER_TIMEOUT))
}

#[test]
fn it_tries_once_a_second_and_is_given_up_no_sooner() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::Nobody);
    let law = xcp_engine::RouterConfig::preset(xcp_engine::Preset::Robust, 20_000_000 / 8);
    let _router = site.router_of(20_000_000, Hook::Any, law);
    // Eight expiries, whatever the bound: 0.2 + 0.4 + ... + 25.6 + 51.2 s, as the kernel counts.
    site.s.run(|| sysctl::write("net.ipv4.tcp_retries2", "8").unwrap()).unwrap();
    let (socket, mut other) = robust_connection(&site, &endpoint, PATIENCE);
    if option(&socket, TCP_RTO_MAX_MS).is_none() {
        xcp_skip::skipped!("kernel", "the timer of the robust sender in an outage: Linux 6.15");
        return;
    }
    let before = timers(&socket);
    assert_eq!(before.1, Some(0));
    let read = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut data = vec![0; MEGABYTE];
            while let Ok(bytes @ 1..) = other.read(&mut data) {
                read.fetch_add(bytes, Ordering::Relaxed);
            }
        });
        let mut writing = socket.try_clone().unwrap();
        // So that what fails ends, too.
        let end = Instant::now() + WHOLE;
        let over = scope
            .spawn(move || while Instant::now() < end && writing.write_all(&[7; 4096]).is_ok() {});
        let forward = |on| site.r.run(|| sysctl::write("net.ipv4.ip_forward", on).unwrap());
        until("a router governs it", || {
            endpoint.connection(socket.as_fd()).unwrap().is_some_and(|c| c.marked)
                && read.load(Ordering::Relaxed) > 4 * MEGABYTE
        });
        let outage = |own: u32| {
            // An outage soon after another is congestion.
            thread::sleep(Duration::from_millis(2200));
            set_user_timeout(&socket, own);
            forward("0").unwrap();
            until("the timer has expired twice", || expiries(&socket) >= 2);
            let within = timers(&socket);
            forward("1").unwrap();
            let count = read.load(Ordering::Relaxed);
            until("the link is back", || read.load(Ordering::Relaxed) > count + MEGABYTE);
            assert_eq!(timers(&socket), (before.0, Some(own)), "after {within:?}");
            within
        };
        for (own, kept) in [(0, 102_200), (77_000, 77_000)] {
            // Routers may have been about to change something: then it backs off as ever.
            let bounded = (0..4).map(|_| outage(own)).find(|w| *w != (before.0, Some(own)));
            assert_eq!(bounded, Some((Some(1000), Some(kept))));
        }
        socket.shutdown(std::net::Shutdown::Both).unwrap();
        over.join().unwrap();
    });
}
