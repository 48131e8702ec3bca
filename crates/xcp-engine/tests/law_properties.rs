//! What the law must do whatever the traffic: bounds, shares, estimates, and its conduct after
//! silence.

use proptest::prelude::*;
use xcp_engine::exact::{grant, router_words, view};
use xcp_engine::{
    CapacityForXcp, ConfigError, ForwardHeader, Gain, Input, Interval, Preset, RobustRouter,
    Rounding, Router, RouterConfig, Spare, WireFormat, flags,
};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
const C: u64 = 1_250_000;

fn header(rtt_ns: u64, window: f64) -> ForwardHeader {
    ForwardHeader::encode(WireFormat::Extended, rtt_ns, window, f64::INFINITY)
}

/// A flow that sends evenly at its window and RTT.
struct Flow {
    rtt: u64,
    window: f64,
    size: u32,
}

impl Flow {
    fn rate(&self) -> f64 {
        self.window * f64::from(self.size) * 1e9 / self.rtt as f64
    }
}

/// Feeds arrivals of the flows, evenly spaced, from `from` to `to`; packets depart at once.
fn feed(router: &mut Router, flows: &[Flow], from: u64, to: u64) {
    let mut events: Vec<(u64, usize)> = vec![];
    for (i, f) in flows.iter().enumerate() {
        let gap = f.rtt as f64 / f.window;
        let mut t = from as f64 + gap * (0.5 + 0.1 * i as f64 / flows.len() as f64);
        while t < to as f64 {
            events.push((t as u64, i));
            t += gap;
        }
    }
    events.sort_unstable();
    for (t, i) in events {
        let mut h = header(flows[i].rtt, flows[i].window);
        router.arrival(t, flows[i].size, &h, 0);
        router.departure(t, flows[i].size, &mut h, 0);
    }
}

/// A router in the middle of an interval that has just begun, after steady traffic of these flows.
fn steady(config: &RouterConfig, flows: &[Flow]) -> (Router, u64) {
    let mut router = Router::new(config, 0, 7).expect("valid");
    let mut now = 0;
    while view(&router).intervals < 6 {
        let end = view(&router).start_ns + view(&router).interval_ns;
        feed(&mut router, flows, now, end);
        router.other_departure(end, 40, true, 0);
        now = end;
    }
    (router, now)
}

#[test]
fn d_is_the_mean_over_flows_not_packets() {
    // 100 packets per 10 ms beside 1 packet per 100 ms: the mean over packets would be 10.1 ms
    let flows = [
        Flow { rtt: 10 * MS, window: 100.0, size: 100 },
        Flow { rtt: 100 * MS, window: 1.0, size: 1500 },
    ];
    let mut router =
        Router::new(&RouterConfig { min_interval_ns: S, ..RouterConfig::xcp(C) }, 0, 7)
            .expect("valid");
    feed(&mut router, &flows, 0, 50 * MS);
    router.other_departure(50 * MS, 40, true, 0);
    feed(&mut router, &flows, 50 * MS, 1050 * MS);
    router.other_departure(1050 * MS, 40, true, 0);
    let s = router.state();
    assert!((s.mean_rtt_s - 0.055).abs() < 1e-4, "{s:?}");
    assert!((s.flows_estimated - 2.0).abs() < 1e-2, "{s:?}");
    assert!(
        (s.input_traffic_bps / 8.0 - flows.iter().map(Flow::rate).sum::<f64>()).abs()
            < 0.01 * C as f64,
        "{s:?}"
    );
}

#[test]
fn longest_rtt_where_chosen() {
    let flows = [
        Flow { rtt: 10 * MS, window: 100.0, size: 100 },
        Flow { rtt: 100 * MS, window: 4.0, size: 1500 },
    ];
    let (router, _) =
        steady(&RouterConfig { interval: Interval::Max, ..RouterConfig::xcp(C) }, &flows);
    assert!((router.state().mean_rtt_s - 0.1).abs() < 1e-4);
}

/// Increase: the same change of rate for every flow. Decrease: in proportion to the rate.
#[test]
fn shares() {
    let flows = [
        Flow { rtt: 40 * MS, window: 10.0, size: 1000 },
        Flow { rtt: 40 * MS, window: 20.0, size: 1000 },
        Flow { rtt: 120 * MS, window: 30.0, size: 1500 },
        Flow { rtt: 5 * MS, window: 2.0, size: 64 },
    ];
    let total: f64 = flows.iter().map(Flow::rate).sum();
    let (router, _) = steady(&RouterConfig::xcp(total as u64), &flows);
    let per_second: Vec<_> = flows
        .iter()
        .map(|f| {
            let h = header(f.rtt, f.window);
            let g = grant(&router, f.size, &h);
            // packets per second as the header's rounded words have it
            let rate = h.window_packets().expect("known") / h.rtt_ns().expect("known") as f64;
            (g.pos_q as f64 * rate, g.neg_q as f64 * rate / (rate * f64::from(f.size)))
        })
        .collect();
    for (up, down) in &per_second {
        assert!((up / per_second[0].0 - 1.0).abs() < 1e-6, "{per_second:?}");
        assert!((down / per_second[0].1 - 1.0).abs() < 1e-6, "{per_second:?}");
        assert!(*up > 0.0 && *down > 0.0);
    }
}

/// A window below one packet counts as one packet, whatever it says: the router is left as by a
/// packet that says one. Windows from one packet on count as they say.
#[test]
fn a_window_below_one_packet_is_taken_for_one() {
    let after = |window: u16| {
        let (mut router, now) =
            steady(&RouterConfig::xcp(C), &[Flow { rtt: 100 * MS, window: 20.0, size: 1500 }]);
        let mut h = ForwardHeader { window, ..header(MS, 1.0) };
        router.arrival(now + 1, 66, &h, 0);
        router.departure(now + 1, 66, &mut h, 0);
        (router_words(&router).to_vec(), h.feedback)
    };
    let one = header(MS, 1.0).window;
    // The code of the least window (2^-10 packets), one between, the last below one.
    for below in [1 << 10, header(MS, 0.25).window, one - 1] {
        assert_eq!(after(below), after(one), "{below:#06x}");
    }
    assert_ne!(after(one + 1), after(one));
    // A word that means "unknown" still does.
    assert_ne!(after((1 << 10) - 1), after(one));
}

/// Small packets at 100 a second that claim an RTT of 1 ms and a window of a thousandth packet, so
/// X = 1 s: they do not pass for the hundred flows that they would be by their word.
#[test]
fn claims_of_less_than_a_packet_do_not_pass_for_flows() {
    let honest = Flow { rtt: 100 * MS, window: 80.0, size: 1500 };
    let mut router =
        Router::new(&RouterConfig { min_interval_ns: S, ..RouterConfig::xcp(C) }, 0, 7)
            .expect("valid");
    feed(&mut router, std::slice::from_ref(&honest), 0, 50 * MS);
    router.other_departure(50 * MS, 40, true, 0);
    feed(&mut router, std::slice::from_ref(&honest), 50 * MS, 1050 * MS);
    for _ in 0..100 {
        let mut h = header(MS, 1e-3);
        router.arrival(1050 * MS - 1, 66, &h, 0);
        router.departure(1050 * MS - 1, 66, &mut h, 0);
    }
    router.other_departure(1050 * MS, 40, true, 0);
    let flows = router.state().flows_estimated;
    assert!(
        (flows - 1.1).abs() < 0.02,
        "one flow, and a hundred packets of X = 1 ms in a second: {flows}"
    );
}

/// Scaled by min(1, d / RTT), a flow with RTTs above d is served both increase and decrease at the
/// lower gain, others as before.
#[test]
fn own_rtt_gain_scales_both_signs() {
    let flows = [
        Flow { rtt: 20 * MS, window: 10.0, size: 1000 },
        Flow { rtt: 180 * MS, window: 90.0, size: 1000 },
    ];
    let (uniform, _) = steady(&RouterConfig::xcp(C), &flows);
    let (own, _) = steady(&RouterConfig { gain: Gain::OwnRtt, ..RouterConfig::xcp(C) }, &flows);
    let d = own.state().mean_rtt_s;
    for f in &flows {
        let h = header(f.rtt, f.window);
        let (u, o) = (grant(&uniform, f.size, &h), grant(&own, f.size, &h));
        let gain = (d / (h.rtt_ns().expect("known") as f64 / 1e9)).min(1.0);
        for (u, o) in [(u.pos_q, o.pos_q), (u.neg_q, o.neg_q)] {
            assert!((o as f64 - u as f64 * gain).abs() <= 1e-6 * u as f64 + 1.0, "{u} {o} {gain}");
        }
    }
}

/// After silence (more than an interval of it) the first packets share the spare capacity as one
/// flow's packets would; none gets all of it.
#[test]
fn silence() {
    for gap in [150 * MS, S, 100 * S, 10_000_000 * S] {
        let flow = Flow { rtt: 100 * MS, window: 20.0, size: 1500 };
        let (mut router, now) = steady(&RouterConfig::xcp(C), std::slice::from_ref(&flow));
        router.arrival(now + 1, 1500, &header(flow.rtt, flow.window), 0);
        let now = now + 100 * MS + gap;
        let mut sum = 0.0;
        for i in 0..100 {
            let mut h = header(flow.rtt, flow.window);
            router.arrival(now + i, 1500, &h, 0);
            router.departure(now + i, 1500, &mut h, 0);
            let fb = h.feedback_value();
            assert!(
                (0.0..=0.4 * C as f64 / flow.window * 1.01).contains(&fb),
                "{fb} after {gap} ns"
            );
            sum += fb;
        }
        assert!(sum <= 0.4 * C as f64 * 1.01, "{sum} after {gap} ns");
        assert!((router.state().mean_rtt_s - 0.1).abs() < 1e-4, "d stays");
    }
}

/// A link so slow that hardly a packet passes per interval: y is right all the same, because time
/// is measured, not assumed.
#[test]
fn packets_rarer_than_intervals() {
    let mut router =
        Router::new(&RouterConfig { max_interval_ns: 10 * MS, ..RouterConfig::xcp(1000) }, 0, 1)
            .expect("valid");
    for i in 0..40 {
        let mut h = header(S, 1.0); // one packet of 1500 bytes per second: 1.5 times capacity
        router.arrival(i * S, 1500, &h, 0);
        router.departure(i * S, 1500, &mut h, 0);
    }
    let s = router.state();
    assert!((s.input_traffic_bps - 12_000.0).abs() < 1.0, "{s:?}");
    assert!((s.flows_estimated - 1.0).abs() < 1e-3, "{s:?}");
    assert!((s.phi_bps - 0.4 * (8000.0 - 12_000.0)).abs() < 1.0, "{s:?}");
}

#[test]
fn capacity_may_change() {
    let flow = Flow { rtt: 100 * MS, window: 80.0, size: 1500 };
    let (mut router, now) = steady(&RouterConfig::xcp(C), std::slice::from_ref(&flow));
    for capacity in [C / 2, 2 * C] {
        router.set_capacity(capacity);
        let v = view(&router);
        let end = v.start_ns + v.interval_ns;
        feed(&mut router, std::slice::from_ref(&flow), now.max(v.start_ns), end);
        router.other_departure(end, 40, true, 0);
        let s = router.state();
        assert!(
            (s.phi_bps / 8.0 - 0.4 * (capacity as f64 - s.input_traffic_bps / 8.0)).abs() < 1.0,
            "{s:?}"
        );
    }
    router.set_capacity(0);
    router.set_capacity(u64::MAX);
    assert_eq!(router.state().capacity_bps, 8.0 * (1u64 << 40) as f64);
}

/// The persistent queue is the least backlog over a period, and a burst that drains within it does
/// not count.
#[test]
fn persistent_queue() {
    let flow = Flow { rtt: 100 * MS, window: 20.0, size: 1500 };
    let (mut router, now) = steady(&RouterConfig::xcp(C), std::slice::from_ref(&flow));
    let feed = |router: &mut Router, from: u64, backlog: &dyn Fn(u64) -> u64| {
        for i in 0..300 {
            router.other_departure(from + i * MS, 40, true, backlog(i));
        }
    };
    feed(&mut router, now, &|i| 9000 + 1500 * (i % 7));
    assert_eq!(router.state().persistent_queue_bytes, 9000.0);
    feed(&mut router, now + 300 * MS, &|i| if i % 20 == 0 { 0 } else { 30_000 });
    assert_eq!(router.state().persistent_queue_bytes, 0.0);
}

#[test]
fn traffic_of_others_counts_where_it_should() {
    for (input, want) in [(Input::All, 4500.0), (Input::Xcp, 3000.0)] {
        let mut router =
            Router::new(&RouterConfig { input, ..RouterConfig::xcp(C) }, 0, 1).expect("valid");
        router.arrival(0, 1500, &header(100 * MS, 1.0), 0);
        router.other_arrival(0, 1500, true, 0);
        router.other_arrival(0, 1500, false, 0);
        router.other_departure(S, 40, true, 0);
        assert!((router.state().input_traffic_bps / 8.0 - want).abs() < 1e-3);
    }
}

#[test]
fn settings_are_checked() {
    let good = RouterConfig::xcp(C);
    assert!(Router::new(&good, 0, 0).is_ok());
    let wrong = |c: RouterConfig| Router::new(&c, 0, 0).map(|_| ()).expect_err("must be refused");
    for capacity in [0, (1 << 40) + 1, u64::MAX] {
        assert_eq!(wrong(RouterConfig::xcp(capacity)), ConfigError::Capacity);
    }
    for (min, max) in [(0, S), (S, MS), (S, 1 << 43)] {
        assert_eq!(
            wrong(RouterConfig { min_interval_ns: min, max_interval_ns: max, ..good.clone() }),
            ConfigError::Intervals { min_ns: min, max_ns: max }
        );
    }
    for alpha in [0.0, -0.1, 1.0, f64::INFINITY] {
        assert_eq!(
            wrong(RouterConfig { alpha, ..good.clone() }),
            ConfigError::Gain { name: "alpha", value: alpha }
        );
    }
    assert!(matches!(
        wrong(RouterConfig { beta: f64::NAN, ..good.clone() }),
        ConfigError::Gain { name: "beta", .. }
    ));
    assert!(matches!(
        wrong(RouterConfig { gamma: 2.0, ..good.clone() }),
        ConfigError::Gain { name: "gamma", .. }
    ));
    assert_eq!(
        wrong(RouterConfig { overhead_bytes: 65536, ..good.clone() }),
        ConfigError::Overhead
    );
    assert_eq!(
        wrong(RouterConfig { queue_target_bytes: u64::MAX, ..good.clone() }),
        ConfigError::QueueTarget
    );
    // Others' traffic off the capacity, and in the input as well.
    assert_eq!(
        wrong(RouterConfig { capacity_for_xcp: CapacityForXcp::MinusOther, ..good.clone() }),
        ConfigError::OtherTwice
    );
    assert_eq!(
        wrong(RouterConfig { input: Input::All, ..RouterConfig::preset(Preset::XcpIr, C) }),
        ConfigError::OtherTwice
    );
    assert_eq!(
        wrong(RouterConfig { spare: Spare::Limited, ..good.clone() }),
        ConfigError::SpareWithoutIds
    );
    assert_eq!(wrong(RouterConfig { spare_most: 0, ..good.clone() }), ConfigError::SpareMost);
    for preset in Preset::ALL.iter().copied() {
        let config = RouterConfig::preset(preset, C);
        let kinds = (Router::new(&config, 0, 0), RobustRouter::new(&config, 0, 0));
        let robust = preset == Preset::Robust;
        assert_eq!((kinds.0.is_ok(), kinds.1.is_ok()), (!robust, robust), "{}", preset.name());
        assert_eq!(Preset::named(preset.name()), Some(preset));
    }
    // A law that is refused leaves the router's own.
    let mut router = Router::new(&good, 0, 0).expect("valid");
    let before = *router.words();
    assert_eq!(
        router.set_law(&RouterConfig { spare: Spare::Limited, ..good.clone() }),
        Err(ConfigError::SpareWithoutIds)
    );
    assert_eq!(router.words(), &before);
}

/// Without an RTT: no increase, in either format.
#[test]
fn unknown_rtt() {
    let flows = [Flow { rtt: 100 * MS, window: 20.0, size: 1500 }];
    for format in [WireFormat::Extended, WireFormat::Classic] {
        let (mut router, now) = steady(&RouterConfig::xcp(C), &flows);
        let mut h = ForwardHeader { rtt: 0, ..ForwardHeader::encode(format, 0, 2.0, 1e9) };
        router.arrival(now + 1, 1500, &h, 0);
        router.departure(now + 1, 1500, &mut h, 0);
        assert!(h.feedback_value() <= 0.0);
        assert_eq!(h.marked(), format == WireFormat::Extended);
    }
}

/// Rates as the extended format has them.
fn rate(h: &ForwardHeader, size: u32) -> f64 {
    match h.format() {
        WireFormat::Extended => h.feedback_value(),
        WireFormat::Classic => {
            h.feedback_value() * f64::from(size) * 1e9 / h.rtt_ns().expect("known") as f64
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// In one interval the sum of what is granted stays within the positive pool, of what is taken
    /// within the negative one, whatever the requests.
    ///
    /// Where the bound comes from: pos and neg are cut to what is left in their pools, and the
    /// pools are charged at least what the header then says. Rounding moves a value by less than a
    /// step, 2^-9 of it or 2^-20 bytes/s (classic: 2^-8 or 2^-12 packets of window), and the pools'
    /// own fixed point by 2^-20 bytes/s.
    #[test]
    fn sums_stay_within_the_pools(
        packets in prop::collection::vec((1.0..500f64, 0.1..300f64, 64..1500u32, prop_oneof![Just(f64::INFINITY), -1e5..1e5f64]), 1..200),
        load in 0.5..1.5f64, classic in any::<bool>(),
    ) {
        let format = if classic { WireFormat::Classic } else { WireFormat::Extended };
        let flow = Flow { rtt: 100 * MS, window: 80.0, size: 1500 };
        let (mut router, now) = steady(&RouterConfig::xcp((flow.rate() / load) as u64), std::slice::from_ref(&flow));
        let v = view(&router);
        let (pool_pos, pool_neg) = (v.pool_pos as f64 / 1_048_576.0, v.pool_neg as f64 / 1_048_576.0);
        let (mut granted, mut taken, mut slack) = (0.0, 0.0, 0.0);
        for (rtt, window, size, request) in packets {
            let request = if classic { request / 1e4 } else { request };
            let mut h = ForwardHeader::encode(format, (rtt * 1e6) as u64, window, request);
            let asked = rate(&h, size);
            router.departure(now + 1, size, &mut h, 0);
            let got = rate(&h, size);
            prop_assert!(got <= asked, "raised from {} to {}", asked, got);
            granted += got.max(0.0);
            // what upstream took is not this router's doing
            taken += if got < asked { (-got).max(0.0) } else { 0.0 };
            slack += got.abs() / 256.0 + if classic { f64::from(size) * 1e9 / h.rtt_ns().expect("known") as f64 / 4096.0 } else { 1e-5 };
        }
        prop_assert!(granted <= pool_pos + slack, "{granted} of {pool_pos}");
        prop_assert!(taken <= pool_neg + slack, "{taken} of {pool_neg}");
    }

    /// Whatever upstream wrote, in whatever state the router is: never raised; the mark only
    /// comes; nothing else changes.
    #[test]
    fn never_raised(words in prop::collection::vec(any::<(u16, u16, u16, bool, u16)>(), 1..100), gap in 1..50 * MS, queue in 0..1_000_000u64) {
        let mut router = Router::new(&RouterConfig::xcp(C), 0, 1).expect("valid");
        let mut now = 0;
        for (rtt, window, feedback, classic, size) in words {
            now += gap;
            let flags = flags::PRESENT | if classic { flags::CLASSIC } else { 0 };
            let before = ForwardHeader { rtt, window, feedback, flags, wait: 14, bottleneck_id: 5, next_bottleneck_id: 6 };
            let mut after = before;
            router.arrival(now, size.into(), &after, queue);
            router.departure(now, size.into(), &mut after, queue);
            router.departure(now, size.into(), &mut after, queue);
            prop_assert!(after.feedback_value() <= before.feedback_value());
            prop_assert_eq!(after.marked(), !classic);
            prop_assert_eq!(ForwardHeader { feedback, flags, ..after }, before);
            let mut withheld = before;
            Router::withhold(&mut withheld);
            prop_assert_eq!(withheld.feedback_value(), before.feedback_value().min(0.0));
            prop_assert_eq!(withheld.marked(), !classic);
            prop_assert_eq!(ForwardHeader { feedback, flags, ..withheld }, before);
        }
    }

    /// Over a window's packets the rounded feedback adds up to what was meant: within 4 standard
    /// deviations of a random walk, which has no drift.
    #[test]
    fn rounding_does_not_drift(seed in any::<u64>(), load in 0.6..1.4f64) {
        let flow = Flow { rtt: 100 * MS, window: 80.0, size: 1500 };
        let (router, _) = steady(&RouterConfig { pools: false, ..RouterConfig::xcp((flow.rate() / load) as u64) }, std::slice::from_ref(&flow));
        let h = header(flow.rtt, flow.window);
        let g = grant(&router, 1500, &h);
        let meant = g.fb as f64 * f64::from(g.e).exp2() * if g.below == 1 { -1.0 } else { 1.0 };
        let mut router = router;
        let skip = seed % 1000;
        let now = view(&router).start_ns + 1;
        let n = 1000;
        let mut sum = 0.0;
        for i in 0..n + skip {
            let mut h = h;
            router.departure(now, 1500, &mut h, 0);
            if i >= skip {
                sum += h.feedback_value();
            }
        }
        let step = {
            let f = |r| WireFormat::Extended.decode_feedback(WireFormat::Extended.encode_feedback(meant, r));
            (f(Rounding::Random(u64::MAX)) - f(Rounding::TowardsZero)).abs()
        };
        prop_assert!((sum - n as f64 * meant).abs() <= 5.0 * step * 0.5 * (n as f64).sqrt(), "{sum} for {}, step {step}", n as f64 * meant);
    }
}
