//! A program that chooses otherwise: another congestion control in mid-connection, and XCP again;
//! a limit of its own; another peer for the same socket.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use xcp_linux::endpoint::{Ask, Give};
use xcp_linux::router::Hook;

use crate::site::{Site, connect_asking, endpoint};
use crate::{MEGABYTE, listen, payload, robust_connection};

const PATIENCE: Duration = Duration::from_secs(15);

#[test]
fn headers_stop_with_another_congestion_control_and_begin_again() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::Nobody);
    let law = xcp_engine::RouterConfig::preset(xcp_engine::Preset::Robust, 20_000_000 / 8);
    let router = site.router_of(20_000_000, Hook::Any, law);
    let (socket, mut other) = robust_connection(&site, &endpoint, PATIENCE);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut data = vec![0; MEGABYTE];
            while let Ok(1..) = other.read(&mut data) {}
        });
        let mut writing = socket.try_clone().unwrap();
        let over = scope.spawn(move || while writing.write_all(&[7; 4096]).is_ok() {});
        let count = || {
            let status = router.status().unwrap();
            (status.counts.processed, status.counts.other)
        };
        // Whether it is the first of the two that grows by a hundred packets first.
        let grows = || {
            let (begin, before) = (Instant::now(), count());
            loop {
                let now = count();
                if now.0 > before.0 + 100 || now.1 > before.1 + 100 {
                    return Some(now.0 > before.0 + 100);
                }
                if begin.elapsed() > PATIENCE {
                    return None;
                }
                thread::sleep(Duration::from_millis(5));
            }
        };
        let choose = |name: &str| {
            rustix::net::sockopt::set_tcp_congestion(&socket, name).unwrap();
            // What is in the queue has left by then.
            thread::sleep(Duration::from_millis(500));
        };
        let mut headers = vec![grows()];
        for name in ["reno", endpoint.name()] {
            choose(name);
            headers.push(grows());
        }
        socket.shutdown(std::net::Shutdown::Both).unwrap();
        over.join().unwrap();
        assert_eq!(headers, [Some(true), Some(false), Some(true)], "XCP, reno, XCP");
    });
}

/// `SO_MAX_PACING_RATE`, bytes/s.
fn limit(socket: &TcpStream, most: u32) {
    // SAFETY: the value is as long as is said, and lives as long as the call.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const most).cast(),
            4,
        )
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// A program may limit its own rate, under XCP and after it.
#[test]
fn a_programs_own_limit_holds() {
    const MOST: u32 = 400_000;
    const WHILE: Duration = Duration::from_millis(300);
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::Nobody);
    let law = xcp_engine::RouterConfig::preset(xcp_engine::Preset::Robust, 20_000_000 / 8);
    let _router = site.router_of(20_000_000, Hook::Any, law);
    for robust in [true, false] {
        let listener = listen(&site, false);
        let ask = Ask { robust, ..Ask::default() };
        let to = listener.local_addr().unwrap();
        let socket = site.s.run(|| connect_asking(to, &endpoint, &ask)).unwrap();
        limit(&socket, MOST);
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        other.set_read_timeout(Some(PATIENCE)).unwrap();
        let came = &AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut data = vec![0; MEGABYTE];
                while let Ok(n @ 1..) = other.read(&mut data) {
                    came.fetch_add(n, Ordering::Relaxed);
                }
            });
            let mut writing = socket.try_clone().unwrap();
            scope.spawn(move || while writing.write_all(&[7; 4096]).is_ok() {});
            let mut rates = Vec::new();
            for name in [endpoint.name(), "cubic"] {
                rustix::net::sockopt::set_tcp_congestion(&socket, name).unwrap();
                thread::sleep(WHILE); // what was sent before is in
                let (begun, before) = (Instant::now(), came.load(Ordering::Relaxed));
                thread::sleep(WHILE);
                let rate = (came.load(Ordering::Relaxed) - before) as f64;
                rates.push(rate / begun.elapsed().as_secs_f64());
            }
            socket.shutdown(std::net::Shutdown::Both).unwrap();
            assert!(
                rates.iter().all(|r| *r > 0.0 && *r < 1.2 * f64::from(MOST)),
                "robust {robust}: XCP and cubic have {rates:.0?} bytes/s of {MOST}"
            );
        });
    }
}

/// A socket that is connected again (connect(2), `AF_UNSPEC`) knows nothing of the path that it was
/// connected over before.
#[test]
fn a_socket_that_connects_again_begins_anew() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::Nobody);
    let law = xcp_engine::RouterConfig::preset(xcp_engine::Preset::Robust, 20_000_000 / 8);
    let _router = site.router_of(20_000_000, Hook::Any, law);
    let (mut socket, mut other) = robust_connection(&site, &endpoint, PATIENCE);
    let mut data = payload(MEGABYTE / 4);
    thread::scope(|scope| {
        scope.spawn(|| socket.write_all(&payload(MEGABYTE / 4)).unwrap());
        other.read_exact(&mut data).unwrap();
    });
    let before = endpoint.connection(socket.as_fd()).unwrap().unwrap();
    assert!(before.forwards > 10 && before.rtt_samples > 1, "{before:?}");
    let nobody = libc::sockaddr { sa_family: libc::AF_UNSPEC as u16, sa_data: [0; 14] };
    // SAFETY: an address that is as long as is said, and lives as long as the call.
    let left = unsafe { libc::connect(socket.as_raw_fd(), &raw const nobody, 16) };
    assert_eq!(left, 0, "{}", std::io::Error::last_os_error());
    let listener = listen(&site, false);
    rustix::net::connect(&socket, &listener.local_addr().unwrap()).unwrap();
    let (mut other, _) = listener.accept().unwrap();
    socket.write_all(b"hello").unwrap();
    other.read_exact(&mut [0; 5]).unwrap();
    let after = endpoint.connection(socket.as_fd()).unwrap().unwrap();
    assert!(after.sending && after.robust.is_some(), "{after:?}");
    assert!(after.forwards == 1 && after.rtt_samples <= 2, "{after:?}");
}
