//! The shaper: set, seen to be set, changed, removed; and what it counts of packets that are known.

use std::net::UdpSocket;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use xcp_linux::netlink::Netlink;
use xcp_linux::qdisc::{self, Limit, Others, QdiscStats, Shaper, Whose};
use xcp_linux::sysctl;

use crate::{RIGHT, Wire, wire};

const SHAPERS: [Shaper; 2] = [Shaper::Htb, Shaper::Tbf];

/// A wire on which nothing goes but what is put there, and a socket on its left.
fn quiet_wire(test: &str) -> Option<(Wire, Netlink)> {
    let wire = wire(test)?;
    for namespace in [&wire.left, &wire.right] {
        // Otherwise the kernel says hello to the neighbours. Where there is no IPv6, it does not.
        let _ = namespace.run(|| sysctl::write("net.ipv6.conf.all.disable_ipv6", "1")).unwrap();
    }
    let nl = Netlink::open_in(&wire.left).unwrap();
    Some((wire, nl))
}

#[test]
fn what_is_installed_is_what_is_found() {
    let Some((wire, mut nl)) = quiet_wire("shapers") else { return };
    let index = wire.left_index;
    let before = qdisc::root(&mut nl, index).unwrap();
    assert!(
        before.whose.is_none() && before.shaper.is_none() && before.rate_bps.is_none(),
        "{before:?}"
    );
    let limit = prop_oneof![
        (1u32..100_000).prop_map(Limit::Packets),
        (1514u32..100_000_000).prop_map(Limit::Bytes)
    ];
    let step = (
        proptest::sample::select(&SHAPERS),
        1u64..13_000_000_000,
        limit.clone(),
        1u64..13_000_000_000,
        limit,
        any::<u16>(),
    );
    let mut runner =
        TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
    runner
        .run(&step, |(shaper, rate, limit, new_rate, new_limit, overhead)| {
            let mut nl = Netlink::open_in(&wire.left).unwrap();
            // One after another without removal between, as a user might.
            qdisc::install(&mut nl, index, Whose::Router, shaper, rate * 8, limit).unwrap();
            let found = qdisc::root(&mut nl, index).unwrap();
            prop_assert!(
                found.whose == Some(Whose::Router)
                    && !found.multi_queue
                    && found.handle == 0x7863_0000,
                "{:?}",
                found
            );
            prop_assert_eq!(
                (found.shaper, found.rate_bps, found.limit, found.overhead),
                (Some(shaper), Some(rate * 8), Some(limit), 0)
            );
            qdisc::set_overhead(&mut nl, index, Whose::Router, overhead).unwrap();
            let found = qdisc::root(&mut nl, index).unwrap();
            prop_assert_eq!(
                (found.shaper, found.rate_bps, found.limit, found.overhead),
                (Some(shaper), Some(rate * 8), Some(limit), overhead)
            );
            prop_assert!(found.longest_frame.is_none_or(|longest| longest >= 1518));
            qdisc::change_rate(&mut nl, index, Whose::Router, shaper, new_rate * 8).unwrap();
            let found = qdisc::root(&mut nl, index).unwrap();
            prop_assert_eq!(
                (found.shaper, found.rate_bps, found.limit, found.overhead),
                (Some(shaper), Some(new_rate * 8), Some(limit), overhead)
            );
            qdisc::change_limit(&mut nl, index, Whose::Router, new_limit).unwrap();
            let found = qdisc::root(&mut nl, index).unwrap();
            prop_assert_eq!(
                (found.shaper, found.rate_bps, found.limit, found.overhead),
                (Some(shaper), Some(new_rate * 8), Some(new_limit), overhead)
            );
            Ok(())
        })
        .unwrap();
    qdisc::remove(&mut nl, index, Whose::Router).unwrap();
    assert_eq!(qdisc::root(&mut nl, index).unwrap(), before);
    qdisc::remove(&mut nl, index, Whose::Router).unwrap();
}

#[test]
fn two_queues_are_found_and_stay_what_they_are() {
    let Some((wire, mut nl)) = quiet_wire("classes") else { return };
    let index = wire.left_index;
    let before = qdisc::root(&mut nl, index).unwrap();
    let limit = prop_oneof![
        (1u32..100_000).prop_map(Limit::Packets),
        (1514u32..100_000_000).prop_map(Limit::Bytes)
    ];
    let others =
        prop_oneof![Just(Others::First), Just(Others::Last), (1u16..1000).prop_map(Others::Fair)];
    // From 1 Mbit/s on a thousandth of the rate is whole bytes enough to be told from its
    // neighbours.
    let step =
        (others, 125_000u64..13_000_000_000, limit.clone(), 125_000u64..13_000_000_000, limit);
    let mut runner =
        TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
    runner
        .run(&step, |(others, rate, limit, new_rate, new_limit)| {
            let mut nl = Netlink::open_in(&wire.left).unwrap();
            let found = |rate: u64, limit| {
                let found = qdisc::root(&mut Netlink::open_in(&wire.left).unwrap(), index).unwrap();
                prop_assert!(
                    found.whose == Some(Whose::Router) && found.shaper == Some(Shaper::Htb),
                    "{:?}",
                    found
                );
                prop_assert_eq!(
                    (found.others, found.rate_bps, found.limit),
                    (Some(others), Some(rate * 8), Some(limit))
                );
                Ok(())
            };
            qdisc::install_classes(&mut nl, index, rate * 8, limit, others).unwrap();
            found(rate, limit)?;
            qdisc::change_rate(&mut nl, index, Whose::Router, Shaper::Htb, new_rate * 8).unwrap();
            found(new_rate, limit)?;
            qdisc::change_limit(&mut nl, index, Whose::Router, new_limit).unwrap();
            found(new_rate, new_limit)
        })
        .unwrap();
    qdisc::install(&mut nl, index, Whose::Router, Shaper::Htb, 1_000_000, Limit::Packets(5))
        .unwrap();
    assert_eq!(qdisc::root(&mut nl, index).unwrap().others, None);
    qdisc::remove(&mut nl, index, Whose::Router).unwrap();
    assert_eq!(qdisc::root(&mut nl, index).unwrap(), before);
}

#[test]
fn what_is_one_ones_the_other_leaves_alone() {
    let Some((wire, mut nl)) = quiet_wire("shapers of two") else { return };
    let (index, limit) = (wire.left_index, Limit::Packets(5));
    for (one, other) in [(Whose::Router, Whose::Proxy), (Whose::Proxy, Whose::Router)] {
        qdisc::install(&mut nl, index, one, Shaper::Htb, 1_000_000, limit).unwrap();
        let before = qdisc::root(&mut nl, index).unwrap();
        assert_eq!(before.whose, Some(one));
        let refusals = [
            qdisc::install(&mut nl, index, other, Shaper::Htb, 2_000_000, limit),
            qdisc::change_rate(&mut nl, index, other, Shaper::Htb, 2_000_000),
            qdisc::change_limit(&mut nl, index, other, Limit::Packets(6)),
        ];
        assert!(refusals.iter().all(Result::is_err), "{refusals:?}");
        qdisc::remove(&mut nl, index, other).unwrap();
        assert_eq!(qdisc::root(&mut nl, index).unwrap(), before);
        qdisc::remove(&mut nl, index, one).unwrap();
        assert_eq!(qdisc::root(&mut nl, index).unwrap().whose, None);
    }
    // Two queues that are a proxy's are found, too.
    qdisc::install_urgent(&mut nl, index, 1_000_000, limit).unwrap();
    let found = qdisc::root(&mut nl, index).unwrap();
    assert_eq!(
        (found.whose, found.others, found.limit),
        (Some(Whose::Proxy), Some(Others::Last), Some(limit))
    );
}

#[test]
fn packets_are_counted_once_whether_sent_waiting_or_dropped() {
    let Some((wire, mut nl)) = quiet_wire("counters of shapers") else { return };
    let index = wire.left_index;
    let socket = wire.left.run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    let payload = [0; 1000];
    let frame = 1000 + 8 + 20 + 14;
    for (shaper, limit, held) in [
        (Shaper::Htb, Limit::Packets(5), 5),
        (Shaper::Htb, Limit::Bytes(5 * frame), 5),
        (Shaper::Tbf, Limit::Packets(7), 7),
        (Shaper::Tbf, Limit::Bytes(7 * frame + 1), 7),
    ] {
        // 8 seconds a frame: what is sent is what the burst holds.
        qdisc::install(&mut nl, index, Whose::Router, shaper, 1000, limit).unwrap();
        assert_eq!(qdisc::stats(&mut nl, index).unwrap(), QdiscStats::default(), "{shaper:?}");
        for _ in 0..20 {
            // The kernel tells the sender of a drop.
            let _ = socket.send_to(&payload, (RIGHT, 9));
        }
        let counted = qdisc::stats(&mut nl, index).unwrap();
        assert!((1..3).contains(&counted.packets), "{shaper:?} {limit:?} {counted:?}");
        assert_eq!(counted.bytes, counted.packets * u64::from(frame), "{shaper:?} {counted:?}");
        assert_eq!(
            (counted.qlen, counted.backlog_bytes),
            (held, held * frame),
            "{shaper:?} {counted:?}"
        );
        assert_eq!(
            counted.packets + u64::from(counted.qlen + counted.drops),
            20,
            "{shaper:?} {counted:?}"
        );
        assert!(counted.overlimits > 0, "{shaper:?} {counted:?}");
        // A higher rate lets those go that wait.
        qdisc::change_rate(&mut nl, index, Whose::Router, shaper, 1_000_000_000).unwrap();
        let waiting = qdisc::stats(&mut nl, index).unwrap();
        assert!(waiting.qlen <= held && waiting.drops == counted.drops, "{shaper:?} {waiting:?}");
        qdisc::remove(&mut nl, index, Whose::Router).unwrap();
    }
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    let Some((wire, mut nl)) = quiet_wire("refused shapers") else { return };
    let index = wire.left_index;
    let before = qdisc::root(&mut nl, index).unwrap();
    let zero = qdisc::install(&mut nl, index, Whose::Router, Shaper::Htb, 7, Limit::Packets(5))
        .unwrap_err();
    let absent =
        qdisc::install(&mut nl, 9999, Whose::Router, Shaper::Tbf, 1_000_000, Limit::Packets(5))
            .unwrap_err();
    let not_ours =
        qdisc::change_rate(&mut nl, index, Whose::Router, Shaper::Htb, 1_000_000).unwrap_err();
    assert_eq!(qdisc::stats(&mut nl, index).unwrap(), QdiscStats::default());
    assert_eq!(qdisc::root(&mut nl, index).unwrap(), before);
    qdisc::install(&mut nl, index, Whose::Router, Shaper::Tbf, 1_000_000, Limit::Packets(5))
        .unwrap();
    let other =
        qdisc::change_rate(&mut nl, index, Whose::Router, Shaper::Htb, 1_000_000).unwrap_err();
    // The shaper stays with a device that is switched off; what there is without one is not shown.
    nl.set_down(index).unwrap();
    assert!(qdisc::root(&mut nl, index).unwrap().whose.is_some());
    qdisc::remove(&mut nl, index, Whose::Router).unwrap();
    assert_eq!(qdisc::root(&mut nl, index).unwrap().kind, "noop");
    assert_eq!(qdisc::stats(&mut nl, index).unwrap(), QdiscStats::default());
    let gone = qdisc::stats(&mut nl, 9999).unwrap_err();
    for (error, words) in [
        (gone, &["9999", "No such device"][..]),
        (zero, &["7 bit/s", "minimum"]),
        (absent, &["9999", "No such device"]),
        (not_ours, &["noqueue", "install"]),
        (other, &["tbf, not htb"]),
    ] {
        let text = error.to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
}
