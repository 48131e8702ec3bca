//! Feedback in whole packets, the 2005 study's "alternative implementation": the law's own value,
//! rounded to the nearest.

use proptest::prelude::*;
use xcp_engine::{ForwardHeader, Router, RouterConfig, Sendable, Sender, SenderConfig, WireFormat};

const SIZE: u32 = 1500;
const MS: u64 = 1_000_000;

/// A header of a sender with this window that asks for all there is.
fn header(window: u32, rtt: u64, whole: bool) -> ForwardHeader {
    let config = SenderConfig {
        initial_window: window,
        honest: false,
        whole_packets: whole,
        ..SenderConfig::new(WireFormat::Classic, SIZE)
    };
    Sender::new(&config).header(0, rtt, &Sendable::UNLIMITED)
}

/// What a router of 10 Mbit/s, on whose link one flow has sent `packets` an interval of one round
/// trip, gives the next packet.
fn grant(capacity: u64, window: u32, rtt: u64, packets: u64, whole: bool) -> f64 {
    let mut router = Router::new(&RouterConfig::xcp(capacity), 0, 1).unwrap();
    let mut now = 0;
    let mut last = 0.0;
    for _ in 0..3 * packets {
        let mut h = header(window, rtt, whole);
        router.pass(now, SIZE, &mut h);
        last = h.feedback_value();
        now += rtt / packets;
    }
    last
}

proptest! {
    #[test]
    fn a_whole_grant_is_the_nearest_to_the_exact_one(capacity in 100_000u64..10_000_000, window in 1u32..1000, rtt in 10u64..1000, load in 0.2f64..2.0) {
        let rtt = rtt * MS;
        let packets = ((f64::from(window) * load) as u64).max(2);
        let (exact, whole) = (grant(capacity, window, rtt, packets, false), grant(capacity, window, rtt, packets, true));
        prop_assert_eq!(whole, whole.round());
        // The exact one is rounded to one in 256 or 2^-12 packets.
        prop_assert!((whole - exact).abs() <= 0.5 + exact.abs() / 200.0 + 0.001, "{exact} became {whole}");
    }
}

/// The study's own example: capacity changes by a part D, and each packet of a converged flow is
/// due alpha D packets; less than half of one is lost.
#[test]
fn less_than_half_a_packet_is_lost() {
    let rtt = 500 * MS;
    let window = 416;
    for (change, lost) in [(0.5, true), (1.0, true), (2.0, false)] {
        let capacity = (1_250_000.0 * (1.0 + change)) as u64;
        let exact = grant(capacity, window, rtt, window.into(), false);
        assert!((exact - 0.4 * change).abs() < 0.05, "{change}: {exact}");
        assert_eq!(
            grant(capacity, window, rtt, window.into(), true) == 0.0,
            lost,
            "{change}: {exact}"
        );
    }
}
