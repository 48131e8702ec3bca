//! Packets of several segments, cut up and put together again on the way or not: what an option
//! says of one segment must count once for each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use xcp_linux::endpoint::Give;
use xcp_linux::router::Hook;

use crate::forged::{self, Segment};
use crate::site::{Site, connections, endpoint};
use crate::{MEGABYTE, Plan, transfer};

/// Data both ways, cut up behind the routers and not put together at the hosts: every segment
/// carries its part of what is returned. On 100 Mbit/s and two milliseconds a window is some
/// fifteen packets; it was thousands when each segment counted for all. The two milliseconds are a
/// queue that one router keeps: on the veths alone a fast machine has windows of two packets, and
/// none of several segments.
#[test]
fn what_is_returned_counts_once() {
    let Some(site) = Site::new() else { return };
    let endpoint = endpoint(&site, Give::All);
    let routers = [site.router_with(100_000_000, Hook::Any, 25_000), site.router_back(100_000_000)];
    site.join_nothing();
    // A machine that stands still for tens of milliseconds makes round trips, and windows, as long
    // as that; what counts twice makes them so each time.
    let largest = |six| {
        let over = AtomicBool::new(false);
        let (worst, done) = thread::scope(|scope| {
            let watching = scope.spawn(|| {
                let mut worst = (0.0f64, 0);
                while !over.load(Ordering::Relaxed) {
                    for c in connections(&site, &endpoint) {
                        worst = (
                            worst.0.max(c.connection.cwnd_packets),
                            worst.1.max(c.connection.srtt_ns),
                        );
                    }
                    thread::sleep(Duration::from_millis(5));
                }
                worst
            });
            let done = transfer(
                &site,
                Plan { six, bytes: 16 * MEGABYTE, back: 16 * MEGABYTE, ..Plan::new(&endpoint) },
            );
            over.store(true, Ordering::Relaxed);
            (watching.join().unwrap(), done)
        });
        let (sender, receiver) = (done.sender.unwrap(), done.receiver.unwrap());
        println!(
            "six {six}: windows up to {:.0} packets, RTT up to {} ms",
            worst.0,
            worst.1 / 1_000_000
        );
        assert!(
            sender.marked && receiver.marked && sender.receiving && receiver.receiving,
            "{sender:?} {receiver:?}"
        );
        // a packet's option counted for all of its segments: headers sent are fewer than headers
        // received
        assert!(
            receiver.received > sender.forwards + sender.forwards / 4,
            "there were no packets of several segments: {sender:?} {receiver:?}"
        );
        println!("headers sent {}, received {}", sender.forwards, receiver.received);
        assert_eq!(
            (site.dropped(), site.dropped_back()),
            (0, 0),
            "packets were dropped behind routers"
        );
        worst.0
    };
    for six in [false, true] {
        let tries: Vec<f64> = (0..3).map(|_| largest(six)).take_while(|w| *w >= 400.0).collect();
        assert!(tries.len() < 3, "windows of {tries:.0?} packets");
    }
    drop(routers);
    site.assert_checksums();
}

/// What a virtual machine's host sends on for it: a large packet with the size of its segments, and
/// not yet their number.
#[test]
fn a_guests_packets_count_as_their_segments() {
    let Some(site) = Site::new() else { return };
    let router = site.router(100_000_000, Hook::Any);
    let (packets, each, size) = (10, 40, 1400);
    let mut segment = Segment { payload: vec![7; each * size], ..Segment::default() };
    segment.options = forged::forward(100_000_000, 10.0, 0.0);
    site.r.run(|| (0..packets).for_each(|_| segment.send_large("r1", size as u16))).unwrap();
    let counts = router.status().unwrap().counts;
    assert_eq!(counts.processed as usize, packets * each, "{counts:?}");
    // and those that the router only counts
    segment.options.clear();
    let before = counts.other;
    site.r.run(|| (0..packets).for_each(|_| segment.send_large("r1", size as u16))).unwrap();
    let counts = router.status().unwrap().counts;
    // (a host looks for its neighbours, too)
    assert!(
        (packets * each..packets * each + 10).contains(&((counts.other - before) as usize)),
        "{counts:?}"
    );
}
