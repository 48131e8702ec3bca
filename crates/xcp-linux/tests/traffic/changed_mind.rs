//! A program that chooses another congestion control in mid-connection, and XCP again.

use std::io::{Read as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use xcp_linux::endpoint::Give;
use xcp_linux::router::Hook;

use crate::site::{Site, endpoint};
use crate::{MEGABYTE, robust_connection};

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
